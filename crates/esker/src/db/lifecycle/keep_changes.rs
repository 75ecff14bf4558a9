//! What an open does for readers of changes.

use crate::base::blob_reference::DistinctValues;
use crate::blob::format::{HEADER_BYTES as BLOB_HEADER_BYTES, file_name};
use crate::error::Result;
use crate::options::{ChangeRetention, Options};
use crate::version::edit::ManifestState;
use crate::wal::format::{HEADER_BYTES, record_bytes};
use crate::wal::segment::{Position, SegmentMaker, write_again};
use crate::wal::writer::{Inherited, LogWriter};
use std::path::Path;

/// Goes on with the changes that were kept before, begins to keep them, or gives them up.
pub fn decide(options: &Options, state: &mut ManifestState, maker: &SegmentMaker, inherited: &mut Inherited) {
    let are_kept = state.changes_from > 0;
    match options.keep_changes.filter(|retention| are_kept || *retention != ChangeRetention::AsBefore) {
        Some(retention) => {
            let replayed = inherited.retired.first().map(|retired| retired.segment.number);
            let Inherited { archive, free, .. } = inherited;
            // What is older was left by an open that kept none.
            archive.free_before(state.changes_segment, maker, free);
            let oldest = archive.oldest().map(|archived| archived.number).or(replayed);
            // Without a record the oldest segment is replaced by each open, which may be cut short
            // before a manifest says so.
            let are_all_there = oldest.is_some_and(|oldest| oldest <= state.changes_segment) || has_no_record(state);
            if state.changes_from == 0 || !are_all_there {
                state.forget_changes();
                archive.free_before(u64::MAX, maker, free);
                state.changes_from = state.last_sequence + 1;
            }
            archive.keep(retention, state.last_sequence, options.clock.now_ms());
        }
        None => state.forget_changes(),
    }
}

/// Whether the oldest segment with changes was the newest one, without a record, when the manifest
/// was written: a record that came later and is not there is in no table either. Behind its header
/// a segment has a link (`wal/format.rs`).
fn has_no_record(state: &ManifestState) -> bool {
    let (segment, offset) = state.log_synced;
    segment == state.changes_segment && offset <= HEADER_BYTES as u64 + record_bytes(24)
}

/// Makes durable what was replayed of a log that was not closed, and the large values that it
/// refers to: of what is in tables with the next manifest, no change is ever missing. The process
/// that wrote it may have died before it synced anything, or because a sync had failed: then the
/// system shows bytes that the device will never get, and takes them for written
/// (`recovery_flush.rs`). So what is not known to be on the device, behind `synced`, is written
/// once more before the sync.
pub fn make_durable(
    options: &Options,
    directory: &Path,
    log: &LogWriter,
    synced: Position,
    large_values: &DistinctValues,
) -> Result<()> {
    for (number, values) in large_values.stretches() {
        let file = options.env.open_log(&directory.join(file_name(number)), None, false)?;
        write_again(&*file, 0..BLOB_HEADER_BYTES)?;
        write_again(&*file, values)?;
        file.sync()?;
    }
    // The names of all these files were synced with that of the new segment.
    log.shared().write_again_behind(synced)?;
    log.shared().sync_to(Position { segment: log.position().segment, offset: 0 })
}
