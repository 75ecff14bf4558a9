//! How many keys lookups find: as many as the key sequence says, and all engines the same number.
//!
//! The sequence is LevelDB's: loads and lookups of a cell are played on a set of integers. This is
//! the check against the golden numbers (`--benchmarks=fillrandom,readrandom --num=1000000` finds
//! 632,150) for any number of keys, in every run.

use super::violation::{Member, Violation, odd};
use crate::flags::table;
use crate::random::{KeyGeneration, LehmerRandom};
use crate::record::Record;
use crate::sweep::grid::{Cell, Finished};
use crate::sweep::task::{Step, Task};
use crate::threads::{Crew, thread_seed};
use crate::workload::{self, Body};
use std::collections::BTreeMap;

/// Where rows have everything in common that decides how many keys a lookup finds, all find as
/// many. One process may do a row several times, each with keys of its own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lookups<'a> {
    benchmark: &'a str,
    ops: u64,
    flags: BTreeMap<&'a str, Option<&'a str>>,
    time: usize,
}

/// Reports the members whose lookups found another number of keys than the key sequence implies. If
/// that number is unknown, reports those that differ from the most frequent number, or all if no
/// number is the most frequent.
pub(super) fn check(group: &[Member<'_>], played: &mut Played, found: &mut Vec<Violation>) {
    let mut alike: BTreeMap<Lookups<'_>, Vec<(&Member<'_>, u64)>> = BTreeMap::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for member in group {
        let time = times.entry(member.name()).or_default();
        *time += 1;
        let record = member.record;
        let Some(keys) = record.found.filter(|_| found_is_fixed(member)) else { continue };
        if let Some(expected) = expected(member, played) {
            if keys != expected {
                let reason = format!("it found {keys} keys where the key sequence has it find {expected}");
                found.push(member.violation(reason));
            }
            continue;
        }
        let of_keys = table::all().filter(|flag| flag.decides_keys);
        let flags =
            of_keys.map(|flag| (flag.name.as_str(), record.flags.get(&flag.name).map(String::as_str))).collect();
        let lookups = Lookups { benchmark: &record.benchmark, ops: record.ops, flags, time: *time };
        alike.entry(lookups).or_default().push((member, keys));
    }
    for members in alike.values() {
        odd(members, |keys| *keys, |keys| format!("it found {keys} keys, unlike"), found);
    }
}

fn expected(member: &Member<'_>, played: &mut Played) -> Option<u64> {
    let at = member.finished.records.iter().position(|record| std::ptr::eq(record, member.record))?;
    played.expected(member.finished).get(at).copied().flatten()
}

/// Whether the number of keys that a row found follows from its flags alone: one thread has looked
/// them up, and neither a clock nor chance has decided what was there. Records that came without
/// their steps do not say.
fn found_is_fixed(member: &Member<'_>) -> bool {
    let (record, finished) = (member.record, member.finished);
    let only_reads = workload::find(&record.benchmark).is_some_and(|benchmark| benchmark.only_reads());
    let has_steps = finished.cell.tasks.iter().any(|task| !task.steps.is_empty());
    only_reads && record.threads <= 1 && member.is_whole() && has_steps && !leaves_keys_to_chance(&finished.cell)
}

fn leaves_keys_to_chance(cell: &Cell) -> bool {
    let steps = cell.tasks.iter().flat_map(|task| task.steps.iter().map(move |step| (task, step)));
    steps.into_iter().any(|(task, step)| is_left_to_chance(task, step))
}

/// Whether it is chance which keys a step writes or removes.
fn is_left_to_chance(task: &Task, step: &Step) -> bool {
    let Some(benchmark) = workload::find(&step.benchmark).filter(|benchmark| benchmark.writes()) else { return false };
    // What ends early says so in its row, if it makes one.
    let may_end_unseen = step.row.is_none() && (step.most_seconds > 0.0 || task.budget.is_some());
    may_end_unseen
        || matches!(benchmark.body, Body::BesideWriter(..) | Body::Survivors | Body::Crash(_))
        || (step.threads > 1 && !step.only_adds())
}

/// Larger sets are not played: it would take longer than a report should.
const MOST_KEYS: u64 = 100_000_000;

/// What a step does, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Move {
    /// Nothing is there any more.
    Empty,
    /// Keys 0, 1, ... are put.
    PutInOrder { ops: u64 },
    /// Keys are drawn and put.
    PutRandom { ops: u64, keys: u64, seed: u64 },
    /// Keys are drawn and looked up.
    Look { ops: u64, keys: u64, seed: u64 },
}

/// What was played before: cells of all engines make the same moves.
#[derive(Debug, Default)]
pub(super) struct Played {
    found: BTreeMap<Vec<Move>, Vec<u64>>,
}

impl Played {
    /// For each row of the cell how many keys it must have found; `None` where that is not known:
    /// it looks for none, or something before it is more than a load of keys in order or at random,
    /// a lookup or a scan, by one thread.
    fn expected(&mut self, finished: &Finished) -> Vec<Option<u64>> {
        let mut expected = vec![None; finished.records.len()];
        let (moves, rows) = moves(finished).unwrap_or_default();
        if rows.iter().all(Option::is_none) {
            return expected;
        }
        let found = self.found.entry(moves).or_insert_with_key(|moves| play(moves));
        for (row, found) in rows.into_iter().zip(found.iter()) {
            if let Some(place) = row.and_then(|row| expected.get_mut(row)) {
                *place = Some(*found);
            }
        }
        expected
    }
}

/// The moves of a cell up to the first one that is not known, and for each lookup among them the
/// row it made, if it made one.
fn moves(finished: &Finished) -> Option<(Vec<Move>, Vec<Option<usize>>)> {
    let (mut moves, mut rows, mut next_row) = (Vec::new(), Vec::new(), 0);
    for (number, task) in finished.cell.tasks.iter().enumerate() {
        let task_config = task.config().ok()?;
        if task_config.key_generation != KeyGeneration::LevelDb || (number == 0 && task_config.use_existing_db) {
            break;
        }
        let is_kept = number.checked_sub(1).and_then(|before| finished.cell.tasks.get(before)).is_some_and(|t| t.keep);
        if !task_config.use_existing_db || !is_kept {
            moves.push(Move::Empty);
        }
        let mut created = 0;
        for step in &task.steps {
            let benchmark = workload::find(&step.benchmark)?;
            let config = step.config(&task_config, None);
            if config.fresh_process {
                created = 0;
            }
            let row = step.row.as_ref().map(|_| next_row);
            next_row += usize::from(row.is_some());
            let record = row.and_then(|row| finished.records.get(row));
            let seed = thread_seed(config.key_generation, config.seed, created, 0);
            created += u64::from(Crew::size(&config, benchmark));
            // What starts with an empty database is skipped where there is to be none.
            let is_skipped = benchmark.fresh && config.use_existing_db;
            let is_plain = config.threads == 1 && benchmark.before.is_none() && !is_skipped;
            if !is_plain || record.is_some_and(|record| record.skipped.is_some()) {
                return Some((moves, rows));
            }
            if benchmark.fresh {
                moves.push(Move::Empty);
            }
            match benchmark.name {
                "fillseq" | "fillseqsync" | "fillbatch" | "fillseqbatch" | "fillseq100K" => {
                    moves.push(Move::PutInOrder { ops: (benchmark.job)(&config).ops });
                }
                "fillrandom" | "fillsync" | "fillrandsync" | "fillrandbatch" | "fill100K" | "fillrand100K"
                | "overwrite" | "overwritebatch" => {
                    let job = (benchmark.job)(&config);
                    moves.push(Move::PutRandom { ops: job.ops, keys: job.keys, seed });
                }
                "readrandom" | "readrandomsmall" | "readrand100K" => {
                    let job = (benchmark.job)(&config);
                    moves.push(Move::Look { ops: job.ops, keys: job.keys, seed });
                    let is_it = |record: &Record| record.ops == job.ops && record.num == job.num;
                    rows.push(row.filter(|_| record.is_some_and(is_it)));
                }
                // It changes nothing, whatever it finds.
                _ if benchmark.only_reads() && matches!(benchmark.body, Body::Threads(_)) => {}
                _ if matches!(benchmark.body, Body::Compact | Body::WaitIdle) => {}
                _ => return Some((moves, rows)),
            }
        }
    }
    Some((moves, rows))
}

/// How many keys each lookup finds; none for those after a set that is too large.
fn play(moves: &[Move]) -> Vec<u64> {
    let mut there: Vec<u64> = Vec::new();
    let put = |there: &mut Vec<u64>, key: u64| {
        let word = (key / 64) as usize;
        if there.len() <= word {
            there.resize(word + 1, 0);
        }
        there[word] |= 1 << (key % 64);
    };
    let mut found = Vec::new();
    for step in moves {
        match *step {
            Move::Empty => there.clear(),
            Move::PutInOrder { ops } if ops <= MOST_KEYS => (0..ops).for_each(|key| put(&mut there, key)),
            Move::PutRandom { ops, keys, seed } if ops.max(keys) <= MOST_KEYS => {
                let mut random = LehmerRandom::new(seed as u32);
                (0..ops).for_each(|_| put(&mut there, random.uniform(keys)));
            }
            Move::Look { ops, keys, seed } if ops <= MOST_KEYS => {
                let mut random = LehmerRandom::new(seed as u32);
                let has = |key: u64| there.get((key / 64) as usize).is_some_and(|word| word >> (key % 64) & 1 == 1);
                found.push((0..ops).filter(|_| has(random.uniform(keys))).count() as u64);
            }
            Move::PutInOrder { .. } | Move::PutRandom { .. } | Move::Look { .. } => break,
        }
    }
    found
}
