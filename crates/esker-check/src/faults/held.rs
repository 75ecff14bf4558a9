//! Snapshots and iterators that are held while calls fail, and what each may show.

use crate::Checked;
use crate::orders::order_of;
use crate::powerloss::script::{NAMES, SLOTS};
use crate::state::{Place, State, existing_keyspaces, shown, snapshot_values};
use esker::{Db, Iter, Keyspace, Snapshot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Entry = (Vec<u8>, Vec<u8>);

/// One of the states that was possible when the readers began.
struct Candidate {
    seen: BTreeMap<Place, Option<Vec<u8>>>,
    /// What the iterator has not yielded yet.
    left: VecDeque<Entry>,
}

struct Holding {
    snapshot: Snapshot,
    /// The keyspaces of its time.
    keyspaces: Vec<(usize, Keyspace)>,
    /// None once it failed.
    iterator: Option<Iter>,
    /// Those that what was read so far agrees with: the readers show one of them, and always the
    /// same one.
    candidates: Vec<Candidate>,
}

/// The held readers of a handle.
#[derive(Default)]
pub struct Held([Option<Holding>; SLOTS]);

impl Held {
    /// Begins readers of a database that is in one of those states; the iterator is over the
    /// keyspace of that index.
    pub fn hold(&mut self, slot: usize, db: &Db, keyspace: (&Keyspace, usize), possible: &BTreeSet<State>) {
        // They are looked up in memory, where nothing fails.
        let keyspaces = existing_keyspaces(db, &NAMES).unwrap_or_default();
        let candidate = |state: &State| {
            let seen = state.iter().map(|(place, held)| (place.clone(), Some(held.value.clone()))).collect();
            let own = state.iter().filter(|((index, _), _)| *index == keyspace.1);
            let mut left: Vec<Entry> = own.map(|((_, key), held)| (key.clone(), held.value.clone())).collect();
            left.sort_by(|a, b| order_of(NAMES[keyspace.1]).compare(&a.0, &b.0));
            Candidate { seen, left: left.into() }
        };
        self.0[slot] = Some(Holding {
            snapshot: db.snapshot(),
            keyspaces,
            iterator: Some(keyspace.0.iter()),
            candidates: possible.iter().map(candidate).collect(),
        });
    }

    /// So many steps of the iterator, from both ends in turns, then everything that the snapshot
    /// shows.
    pub fn look(&mut self, slot: usize, db: &Db, steps: usize) -> Checked<esker::Result<()>> {
        let Some(holding) = &mut self.0[slot] else { return Ok(Ok(())) };
        for number in 0..steps {
            if let Err(error) = holding.step(number % 3 != 2)? {
                // What it yields behind an error is not promised.
                holding.iterator = None;
                return Ok(Err(error));
            }
        }
        let seen = match snapshot_values((db, &NAMES), &holding.snapshot, &holding.keyspaces) {
            Ok(seen) => seen,
            Err(error) => return Ok(Err(error)),
        };
        holding.candidates.retain(|candidate| candidate.seen == seen);
        if holding.candidates.is_empty() {
            return Err(format!("a held snapshot shows {} keys, in none of the states that were possible", seen.len()));
        }
        Ok(Ok(()))
    }
}

impl Holding {
    fn step(&mut self, front: bool) -> Checked<esker::Result<()>> {
        let Some(iterator) = &mut self.iterator else { return Ok(Ok(())) };
        let found = if front { iterator.next() } else { iterator.next_back() };
        let found = match found.transpose() {
            Ok(found) => found.map(|(key, value)| (key.to_vec(), value.to_vec())),
            Err(error) => return Ok(Err(error)),
        };
        let mut take = |candidate: &mut Candidate| {
            let expected = if front { candidate.left.pop_front() } else { candidate.left.pop_back() };
            expected == found
        };
        self.candidates.retain_mut(&mut take);
        if self.candidates.is_empty() {
            let found = found.map(|(key, value)| [shown(&key), shown(&value)].join("="));
            return Err(format!("a held iterator yields {found:?}, which no state that was possible has there"));
        }
        Ok(Ok(()))
    }
}
