//! How many keys the lookups of a cell must find, from LevelDB's key sequence alone: its loads and
//! lookups are played on a set of integers. This is the check against the golden numbers
//! (`--benchmarks=fillrandom,readrandom --num=1000000` finds 632,150) for any number of keys, in
//! every run.

use crate::random::{KeyGeneration, LehmerRandom};
use crate::record::Record;
use crate::study::grid::Finished;
use crate::threads::{Crew, thread_seed};
use crate::workload::{self, Body};
use std::collections::BTreeMap;

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
    pub(super) fn expected(&mut self, finished: &Finished) -> Vec<Option<u64>> {
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
