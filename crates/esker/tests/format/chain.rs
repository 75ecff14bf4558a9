//! The segments of the log, put in order: doc/format/wal.md, "Reading it back".

use crate::bytes::{Read, ensure};
use crate::directory::Left;
use crate::log::{Batch, Link, Segment, begin};
use crate::manifest::Manifest;
use crate::operation::Operation;
use std::collections::BTreeMap;

/// Where the header of a segment ends.
const BEHIND_HEADER: u64 = 64;

/// The log from the floor on.
#[derive(Debug, Default)]
pub struct Log {
    pub batches: Vec<Batch>,
    /// The segment and the offset of its end.
    pub end: (u64, u64),
    pub is_closed: bool,
    /// Whether the log ends in a segment that has others behind it.
    pub is_cut: bool,
    /// Whether it ends before a segment without a link that has others behind it.
    pub lost_a_link: bool,
    /// Whether the file of a segment had another number before.
    pub is_used_again: bool,
    /// The number of every segment that was read, oldest first.
    pub chain: Vec<u64>,
}

/// Reads the segments that the manifest needs, oldest first.
pub fn read(
    segments: &BTreeMap<u64, Segment>,
    manifest: &Manifest,
    left: Left,
    is_whole: &dyn Fn(u64, &Operation) -> bool,
) -> Read<Log> {
    let chain = links(segments, manifest.log_floor)?;
    let mut log = Log::default();
    for (index, &(number, _)) in chain.iter().enumerate() {
        let contents = segments[&number].contents(is_whole)?;
        log.batches.extend(contents.batches);
        log.end = (number, contents.end);
        log.is_closed = contents.is_closed;
        log.chain.push(number);
        log.is_used_again |= segments[&number].is_used_again()?;
        let Some((next, link)) = chain.get(index + 1) else { break };
        let Some(link) = link else {
            ensure!(left == Left::Anyhow, "segment {next} has no link");
            (log.is_cut, log.lost_a_link) = (true, true);
            break;
        };
        ensure!(link.synced <= contents.end, "segment {next} vouches for {} of {number}", link.synced);
        ensure!(link.end >= contents.end, "segment {number} goes on behind its end, {}", link.end);
        if link.end > contents.end {
            ensure!(left == Left::Anyhow, "segment {number} ends before {}", link.end);
            log.is_cut = true;
            break;
        }
    }
    ensure!(log.end >= manifest.log_synced, "the log ends at {:?}, before {:?}", log.end, manifest.log_synced);
    ensure!(manifest.closed.is_none_or(|closed| closed == log.end), "the log ends at {:?}: {manifest:?}", log.end);
    check_sequences(&log.batches)?;
    if left == Left::InOrder {
        for segment in segments.values() {
            check_rest(segment, &log, &chain)?;
        }
    }
    Ok(log)
}

/// From the newest segment with a link back to the floor: numbers with their links, oldest first.
/// One that was never synced may have lost its link.
pub fn links(segments: &BTreeMap<u64, Segment>, floor: u64) -> Read<Vec<(u64, Option<Link>)>> {
    let mut chain: Vec<(u64, Option<Link>)> = Vec::new();
    for segment in segments.values() {
        if let Some(link) = segment.link()? {
            ensure!(link.number < segment.number, "segment {} links to {}", segment.number, link.number);
        }
    }
    let newest_below = |end: u64| {
        let mut below = segments.range(floor..end).rev();
        below.find(|(_, segment)| matches!(segment.link(), Ok(Some(_)))).map(|(&number, _)| number)
    };
    let mut next = newest_below(u64::MAX);
    while let Some(number) = next.filter(|&number| number >= floor) {
        let segment = segments.get(&number).ok_or_else(|| format!("no segment {number}"))?;
        let link = segment.link()?;
        let vouched = chain.first().and_then(|(_, behind)| *behind).is_some_and(|behind| behind.synced > BEHIND_HEADER);
        ensure!(link.is_some() || !vouched, "segment {number} has no link, and was synced");
        chain.insert(0, (number, link));
        let previous = link.map_or_else(|| newest_below(number), |link| Some(link.number));
        next = previous.filter(|_| number > floor);
    }
    ensure!(chain.first().is_none_or(|(number, _)| *number == floor || floor <= 1), "chain {chain:?} from {floor}");
    Ok(chain)
}

fn check_sequences(batches: &[Batch]) -> Read<()> {
    for pair in batches.windows(2) {
        let behind = pair[0].sequence + pair[0].operations.len() as u64;
        ensure!(behind <= pair[1].sequence, "batch {} behind batch {}", pair[1].sequence, pair[0].sequence);
    }
    Ok(())
}

fn check_rest(segment: &Segment, log: &Log, chain: &[(u64, Option<Link>)]) -> Read<()> {
    let place = chain.iter().position(|&(number, _)| number == segment.number);
    let end = match place {
        Some(place) => chain.get(place + 1).and_then(|(_, link)| *link).map_or(log.end.1, |link| link.end),
        // Free, or kept for readers of changes; or prepared.
        None if segment.link()?.is_some() => segment.contents(&|_, _| true)?.end,
        None => begin(segment)?,
    };
    segment.check_rest(end)
}
