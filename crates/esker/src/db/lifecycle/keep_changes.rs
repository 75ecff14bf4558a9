//! What an open does for readers of changes.

use crate::base::key::{MAX_SEQUENCE, Sequence};
use crate::blob::format::file_name;
use crate::error::Result;
use crate::options::{ChangeRetention, Options};
use crate::version::edit::ManifestState;
use crate::wal::format::{HEADER_BYTES, record_bytes};
use crate::wal::segment::{Position, SegmentMaker};
use crate::wal::writer::{Inherited, LogWriter};
use std::collections::BTreeSet;
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
            match behind_hole(state, oldest).filter(|_| are_kept) {
                _ if are_kept && are_all_there => {}
                Some((last, segment)) => {
                    state.forget_changes_before(last + 1, segment);
                    archive.free_before(segment, maker, free);
                }
                None => {
                    state.forget_changes();
                    archive.free_before(u64::MAX, maker, free);
                    // There is none behind the last number, and the next open would refuse one.
                    state.changes_from = (state.last_sequence + 1).min(MAX_SEQUENCE);
                }
            }
            archive.keep(retention, state.last_sequence, options.clock.now_ms());
        }
        None => state.forget_changes(),
    }
}

/// The last write before the first segment that a recovery began, of those that are there from
/// `oldest` on, and that segment.
fn behind_hole(state: &ManifestState, oldest: Option<u64>) -> Option<(Sequence, u64)> {
    let mut recovered = state.changes_recovered.iter().map(|(&last, &segment)| (last, segment));
    recovered.find(|&(_, segment)| oldest.is_some_and(|oldest| oldest <= segment))
}

/// Whether the oldest segment with changes was the newest one, without a record, when the manifest
/// was written: a record that came later and is not there is in no table either. Behind its header
/// a segment has a link (`wal/format.rs`).
fn has_no_record(state: &ManifestState) -> bool {
    let (segment, offset) = state.log_synced;
    segment == state.changes_segment && offset <= HEADER_BYTES as u64 + record_bytes(24)
}

/// Makes durable what was replayed of a log that was not closed, and the blob files that it refers
/// to: of what is in tables with the next manifest, no change is missing for readers, which have
/// only the log. The process that wrote it may have died before it synced anything.
///
/// It may also have died because a sync had failed. Then the system shows bytes that the device
/// will never get, and takes them for written (`recovery_flush.rs`), so that a power loss can leave
/// a hole in the changes. Nothing tells these apart now; so the state notes how far the log was
/// not known to be on the device: readers that find a hole up to there are told that the changes
/// are gone.
pub fn make_durable(
    options: &Options,
    directory: &Path,
    log: &LogWriter,
    state: &mut ManifestState,
    referred_to: &BTreeSet<u64>,
) -> Result<()> {
    for &number in referred_to {
        // They were all read just now.
        options.env.open_log(&directory.join(file_name(number)), None, false)?.sync()?;
    }
    let segment = log.position().segment;
    if log.shared().end_of_replayed() > Position::from(state.log_synced) {
        state.note_recovered(state.last_sequence, segment);
    }
    // Their names were synced with that of the new segment.
    log.shared().sync_to(Position { segment, offset: 0 })
}
