//! Writing a memtable as tables.

use super::output::{Output, OutputOptions};
use super::output_splitter::OutputSplitter;
use super::version_gc::{Rules, retain};
use crate::base::range_tombstone::RangeTombstones;
use crate::error::Result;
use crate::memtable::Memtable;
use crate::table::Table;
use std::sync::Arc;

/// What a flush did.
pub struct Flushed {
    pub tables: Vec<Arc<Table>>,
    /// Entries whose value went because they had expired.
    pub expired: u64,
}

/// Writes what must be kept of an immutable memtable. No table if nothing is left. `pause` is
/// called now and then.
pub fn flush(
    memtable: &Arc<Memtable>,
    rules: Rules<'_>,
    options: &OutputOptions<'_>,
    pause: &mut dyn FnMut(),
) -> Result<Flushed> {
    let tombstones = RangeTombstones::union(memtable.range_tombstones().iter().map(|set| &**set));
    let splitter = OutputSplitter::default();
    let mut output = Output::new(options, rules.reduce(&tombstones), &splitter);
    let load_large = &|reference: &[u8]| options.large.load(reference);
    let emit = &mut |entry: crate::base::key::Entry<'_>| output.add(entry);
    let pause = &mut || {
        pause();
        Ok(())
    };
    let done = retain(&mut memtable.sealed_cursor(), &tombstones, rules, load_large, emit, pause)?;
    Ok(Flushed { tables: output.finish()?, expired: done.expired })
}
