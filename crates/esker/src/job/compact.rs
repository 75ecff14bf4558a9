//! Merging runs into one.

use super::output::{Output, OutputOptions};
use super::retain::{Rules, retain};
use crate::base::range_tombstone::RangeTombstones;
use crate::error::{Error, Result};
use crate::iter::merging::MergingCursor;
use crate::table::Table;
use crate::version::cursor::AnyCursor;
use crate::version::tree::Run;
use std::sync::Arc;

/// Writes what must be kept of `runs`, neighbours, newest first. `pause` is called now and then: more urgent work can be done in it,
/// and its error stops the job.
pub fn compact(
    runs: &[Arc<Run>],
    rules: Rules<'_>,
    options: &OutputOptions<'_>,
    pause: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<Arc<Table>>> {
    let tombstones = RangeTombstones::union(runs.iter().map(|run| &*run.range_tombstones));
    let mut output = Output::new(options, rules.reduce(&tombstones));
    let mut input = MergingCursor::new(runs.iter().map(|run| AnyCursor::over(run, false)).collect());
    let done = retain(&mut input, &tombstones, rules, &mut |entry| output.add(entry), pause)?;
    let expected: u64 = runs.iter().map(|run| run.entries()).sum();
    if done.read != expected {
        let what = format!("the tables to merge have {expected} entries, {} were read", done.read);
        let path = runs.first().and_then(|run| run.tables.first()).map(|table| table.path().to_path_buf());
        return Err(Error::corruption(path.unwrap_or_default(), 0, what));
    }
    output.finish()
}
