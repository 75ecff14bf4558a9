//! Compaction of runs into one.

use super::output::{Output, OutputOptions};
use super::output_splitter::OutputSplitter;
use super::parallel::{Part, in_parallel};
use super::version_gc::{PAUSE_EVERY, Retained, Rules, retain};
use crate::base::range_tombstone::RangeTombstones;
use crate::error::{Error, Result};
use crate::iter::bounded::Bounded;
use crate::iter::merging::MergingCursor;
use crate::table::Table;
use crate::version::cursor::AnyCursor;
use crate::version::runs::Run;
use std::cell::RefCell;
use std::sync::Arc;

/// The output of a compaction.
#[derive(Debug, Default)]
pub struct Compacted {
    pub tables: Vec<Arc<Table>>,
    /// Entries that the filter removed or replaced.
    pub filtered: u64,
    /// Entries whose value went because they had expired.
    pub expired: u64,
}

/// Writes what must be kept of `runs`, neighbours, newest first. `pause` is the yield point: it is
/// called now and then, in this thread, with the number of entries read since, can do more urgent
/// work, and stops the job by an error. With several `parts`, each is written by a thread of its
/// own, which gets no further than `ahead` entries, or a pause's worth, beyond the numbers passed
/// to `pause`.
pub fn compact(
    runs: &[Arc<Run>],
    rules: Rules<'_>,
    options: &OutputOptions<'_>,
    splitter: &OutputSplitter,
    parts: &[Part],
    ahead: u64,
    pause: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Compacted> {
    let expected: u64 = runs.iter().map(|run| run.entries()).sum();
    let work = |part: &Part, pause: &mut dyn FnMut(u64) -> Result<()>| {
        compact_part(runs, rules, (options, splitter), part, pause)
    };
    let results = match parts {
        [] => vec![work(&Part::default(), pause)?],
        [only] => vec![work(only, pause)?],
        several => in_parallel(several, &work, ahead, pause)?,
    };
    let mut compacted = Compacted::default();
    let mut read = 0;
    for (tables, done) in results {
        compacted.tables.extend(tables);
        compacted.filtered += done.filtered;
        compacted.expired += done.expired;
        read += done.read;
    }
    if read != expected {
        // One of them states another number than it has: counting each finds which, and names it.
        for table in runs.iter().flat_map(|run| &run.tables) {
            pause(0)?;
            table.verify(&mut |_| {})?;
        }
        let what = format!("the tables to merge have {expected} entries, {read} were read");
        let path = runs.first().and_then(|run| run.tables.first()).map(|table| table.path().to_path_buf());
        return Err(Error::corruption(path.unwrap_or_default(), 0, what));
    }
    Ok(compacted)
}

/// The keys of one part: at or after its start, before its end.
fn compact_part(
    runs: &[Arc<Run>],
    rules: Rules<'_>,
    (options, splitter): (&OutputOptions<'_>, &OutputSplitter),
    part: &Part,
    pause: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<(Vec<Arc<Table>>, Retained)> {
    let tombstones = RangeTombstones::union(runs.iter().map(|run| &*run.range_tombstones));
    // An empty end is behind every key.
    let (start, end) = (part.start.as_deref().unwrap_or_default(), part.end.as_deref().unwrap_or_default());
    let tombstones = if *part == Part::default() { tombstones } else { tombstones.clip(start, end) };
    let mut output = Output::new(options, rules.reduce(&tombstones), splitter);
    let mut input = MergingCursor::new(runs.iter().map(|run| AnyCursor::over(run, false)).collect(), &options.order);
    let load_large = &|reference: &[u8]| options.large.load(reference);
    // Entries are many to a pause; large values among them may be long.
    let pause = RefCell::new(pause);
    let emit = &mut |entry: crate::base::key::Entry<'_>| {
        output.add(entry)?;
        if output.copied_much() { (pause.borrow_mut())(0) } else { Ok(()) }
    };
    let pause = &mut || (pause.borrow_mut())(PAUSE_EVERY);
    let done = match part {
        Part { start: None, end: None } => retain(&mut input, &tombstones, rules, load_large, emit, pause)?,
        Part { start, end } => {
            let mut input = Bounded::new(input, start.as_deref(), end.as_deref(), &options.order);
            retain(&mut input, &tombstones, rules, load_large, emit, pause)?
        }
    };
    Ok((output.finish()?, done))
}
