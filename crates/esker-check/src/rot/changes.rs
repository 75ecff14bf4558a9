//! What a database tells readers of changes, compared with what it told before it was damaged.
//!
//! "Where a segment of the log is missing or damaged, reading is `Corruption`, and there is no
//! silent gap": what is told is a run of the right batches, which begins where the reader began, or
//! where it was sent by the answer that older ones are gone, and ends with the last batch of the
//! state that the database holds, or before an error.

use crate::Checked;
use crate::feed::read_from;
use crate::powerloss::script::NAMES;
use crate::state::other_name;
use esker::{ChangeBatch, ChangeOperation, Db, Error};

/// What is told from some write on.
struct Part {
    from: u64,
    batches: Vec<ChangeBatch>,
}

/// Everything that a database tells, from its first write on.
pub struct Told {
    /// Behind each of these but the last, changes are gone up to where the next one begins.
    parts: Vec<Part>,
    /// Whether the last of them ends because there are no more changes, and not with an error.
    is_whole: bool,
    /// Answers that were errors; that changes are gone is one of those.
    pub errors: u64,
}

impl Told {
    /// Reads all changes of a database that has kept them from the first write on. It is wrong to
    /// send a reader back.
    pub fn by(db: &Db) -> Checked<Told> {
        let mut told = Told { parts: Vec::new(), is_whole: false, errors: 0 };
        let mut from = 1;
        loop {
            let (batches, read) = read_from(db, from);
            let behind = batches.last().map_or(from, ChangeBatch::next_sequence);
            told.parts.push(Part { from, batches });
            match read {
                Ok(()) => {
                    told.is_whole = true;
                    return Ok(told);
                }
                Err(Error::Gone { oldest }) if oldest <= behind => {
                    return Err(format!(
                        "a reader of changes that was told of all before {behind} is sent to {oldest}"
                    ));
                }
                Err(Error::Gone { oldest }) => {
                    told.errors += 1;
                    from = oldest;
                }
                Err(_) => {
                    told.errors += 1;
                    return Ok(told);
                }
            }
        }
    }

    /// Whether these are the right batches, and behind them a load into that keyspace, if there was
    /// one.
    pub fn agrees(&self, right: &[ChangeBatch], loaded: Option<usize>) -> bool {
        self.parts.iter().enumerate().all(|(number, part)| {
            let is_end = self.is_whole && number + 1 == self.parts.len();
            part.agrees(right, loaded, is_end)
        })
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Part { from, batches } in &self.parts {
            let behind = batches.last().map_or(*from, ChangeBatch::next_sequence);
            write!(f, "{} batches from {from} to before {behind}, then ", batches.len())?;
        }
        write!(f, "{}", if self.is_whole { "no more" } else { "an error" })
    }
}

impl Part {
    /// `is_end`: nothing may be missing at the end.
    fn agrees(&self, right: &[ChangeBatch], loaded: Option<usize>, is_end: bool) -> bool {
        let first = right.partition_point(|batch| batch.next_sequence() <= self.from);
        let expected = &right[first..];
        let common = self.batches.len().min(expected.len());
        if self.batches[..common] != expected[..common] {
            return false;
        }
        let is_complete = common == expected.len();
        let behind = right.last().map_or(1, ChangeBatch::next_sequence);
        match (&self.batches[common..], loaded) {
            ([], None) => !is_end || is_complete,
            // The load itself may be among what is gone.
            ([], Some(_)) => !is_end || (is_complete && self.from > behind),
            ([load], Some(keyspace)) => is_load(load, keyspace, behind),
            _ => false,
        }
    }
}

/// Whether that is a load into the keyspace, no earlier than the write `least`.
fn is_load(batch: &ChangeBatch, keyspace: usize, least: u64) -> bool {
    let [change] = &batch.changes[..] else { return false };
    let names = [NAMES[keyspace].to_owned(), other_name(NAMES[keyspace])];
    change.operation == ChangeOperation::Load
        && change.sequence >= least
        && names.iter().any(|name| name.as_str() == &*change.keyspace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::ALL_BYTES;
    use esker::env::mem::MemEnv;
    use esker::{ChangeRetention, Options};
    use std::sync::Arc;

    /// The batches of six puts, and one of a load behind them.
    fn written() -> (Vec<ChangeBatch>, ChangeBatch) {
        let options = Options::default().env(Arc::new(MemEnv::new())).keep_changes(ChangeRetention::Bytes(ALL_BYTES));
        let db = Db::open("data", options).unwrap();
        let keyspace = db.keyspace(NAMES[0], Default::default()).unwrap();
        (0..6u8).for_each(|number| keyspace.put([number], [number]).unwrap());
        keyspace.ingest([("loaded", "value")]).unwrap();
        let told = Told::by(&db).unwrap();
        assert!(told.is_whole && told.errors == 0 && told.parts.len() == 1);
        let mut batches = told.parts.into_iter().next().unwrap().batches;
        let load = batches.pop().unwrap();
        assert_eq!(batches.len(), 6);
        (batches, load)
    }

    fn told(parts: &[(u64, &[ChangeBatch])], is_whole: bool) -> Told {
        let parts = parts.iter().map(|(from, batches)| Part { from: *from, batches: batches.to_vec() });
        Told { parts: parts.collect(), is_whole, errors: 0 }
    }

    /// If only the number of batches were compared, or only that they are right ones, this would
    /// fail.
    #[test]
    fn a_change_that_is_missing_or_wrong_or_comes_twice_is_noticed() {
        let (right, _) = written();
        let agrees = |batches: &[ChangeBatch], is_whole: bool| told(&[(1, batches)], is_whole).agrees(&right, None);
        assert!(agrees(&right, true) && agrees(&right, false));
        for number in 0..right.len() {
            let mut missing = right.clone();
            missing.remove(number);
            assert!(!agrees(&missing, true), "{number}");
            assert_eq!(agrees(&missing, false), number + 1 == right.len(), "only the end may be behind an error");
            let mut twice = right.clone();
            twice.insert(number, right[number].clone());
            assert!(!agrees(&twice, true) && !agrees(&twice, false), "{number}");
            let mut other = right.clone();
            other[number].changes[0].operation = right[(number + 1) % right.len()].changes[0].operation.clone();
            assert!(!agrees(&other, true) && !agrees(&other, false), "{number}");
            let mut elsewhere = right.clone();
            elsewhere[number].changes[0].sequence += 100;
            assert!(!agrees(&elsewhere, true) && !agrees(&elsewhere, false), "{number}");
        }
        let mut swapped = right.clone();
        swapped.swap(2, 3);
        assert!(!agrees(&swapped, true) && !agrees(&swapped, false));
        assert!(!told(&[(1, &right[..])], true).agrees(&right[..5], None), "the last one is of a commit that is lost");
        assert!(agrees(&[], false) && !agrees(&[], true));
    }

    /// If a reader that was told that changes are gone could go on anywhere, this would fail.
    #[test]
    fn changes_are_gone_only_as_far_as_was_said() {
        let (right, _) = written();
        let agrees = |parts: &[(u64, &[ChangeBatch])], is_whole: bool| told(parts, is_whole).agrees(&right, None);
        let third = right[2].changes[0].sequence;
        let nothing: &[ChangeBatch] = &[];
        assert!(agrees(&[(1, nothing), (third, &right[2..])], true));
        assert!(agrees(&[(1, &right[..1]), (third, &right[2..])], true));
        assert!(agrees(&[(1, nothing), (third, &right[2..4])], false));
        assert!(agrees(&[(1, nothing), (right[5].next_sequence(), nothing)], true), "all are gone");
        assert!(!agrees(&[(1, nothing), (third, &right[3..])], true), "the third one is missing");
        assert!(!agrees(&[(1, nothing), (third, &right[2..4])], true), "the last ones are missing");
        assert!(!agrees(&[(1, nothing), (third, &right[1..])], true), "the second one is gone");
        assert!(!agrees(&[(1, &right[1..2]), (third, &right[2..])], true), "the first one is missing");
    }

    #[test]
    fn a_load_is_told_once_behind_everything_else() {
        let (right, load) = written();
        let with_load = [&right[..], std::slice::from_ref(&load)].concat();
        let agrees = |batches: &[ChangeBatch], is_whole: bool, loaded: Option<usize>| {
            told(&[(1, batches)], is_whole).agrees(&right, loaded)
        };
        assert!(agrees(&with_load, true, Some(0)) && agrees(&with_load, false, Some(0)));
        assert!(agrees(&right, false, Some(0)) && !agrees(&right, true, Some(0)), "it is missing");
        assert!(!agrees(&with_load, true, None) && !agrees(&with_load, false, None), "nobody has loaded");
        assert!(!agrees(&with_load, true, Some(1)), "into another keyspace");
        let mut early = with_load.clone();
        early.swap(5, 6);
        assert!(!agrees(&early, true, Some(0)));
        let twice = [&with_load[..], std::slice::from_ref(&load)].concat();
        assert!(!agrees(&twice, true, Some(0)));
        let mut put = with_load.clone();
        put[6].changes[0].operation = right[0].changes[0].operation.clone();
        assert!(!agrees(&put, true, Some(0)), "it is no load");
        let nothing: &[ChangeBatch] = &[];
        assert!(told(&[(1, nothing), (load.next_sequence(), nothing)], true).agrees(&right, Some(0)), "all are gone");
    }

    #[test]
    fn a_database_that_has_given_up_what_it_kept_sends_its_reader_on() {
        let env = MemEnv::new();
        let keeping = || Options::default().env(Arc::new(env.clone())).keep_changes(ChangeRetention::Bytes(ALL_BYTES));
        let put = |options: Options, key: &str| {
            let db = Db::open("data", options).unwrap();
            db.keyspace(NAMES[0], Default::default()).unwrap().put(key, "value").unwrap();
            db
        };
        put(keeping(), "first").close().unwrap();
        // Without the option they are given up.
        put(Options::default().env(Arc::new(env.clone())), "second").close().unwrap();
        let found = Told::by(&put(keeping(), "third")).unwrap();
        assert!(found.is_whole && found.errors == 1, "{found}");
        assert_eq!(found.parts.iter().map(|part| part.batches.len()).collect::<Vec<_>>(), [0, 1], "{found}");
    }
}
