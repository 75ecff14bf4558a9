//! Everything that a database which holds a known state must answer, by every call that reads.

use super::script::NAMES;
use crate::Checked;
use crate::model::{NEVER, Operator};
use crate::operators::supply;
use crate::orders::order_of;
use crate::state::{Place, State, find_keyspace, shown};
use esker::{Counters, Cursor, Db, Error, Expiry, Keyspace, Slice, Snapshot, Transaction, TypedKeyspace};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Bound;
use std::time::UNIX_EPOCH;

/// Why a survey ended.
enum Ended {
    /// With an answer that is wrong.
    Wrong(String),
    /// With an error of the engine.
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Ended {
        Ended::Failed(error)
    }
}

type Surveyed = Result<(), Ended>;

type Pair = (Vec<u8>, Vec<u8>);

/// Asks for all of it, and for the places that are not in the state, by single and by many reads,
/// by scans of both directions, by cursors, by a snapshot, in a transaction and as typed values.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer.
pub fn survey(db: &Db, state: &State, places: &BTreeSet<Place>) -> Checked<esker::Result<()>> {
    let (snapshot, mut transaction) = (db.snapshot(), db.transaction());
    let mut all = || -> Surveyed {
        for (index, name) in NAMES.iter().enumerate() {
            let keyspace = match find_keyspace(db, name) {
                Ok(keyspace) => keyspace,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let part = Part::new(&keyspace, index, state, places);
            let checked = part.check(&snapshot, &mut transaction);
            checked.map_err(|ended| match ended {
                Ended::Wrong(what) => Ended::Wrong(format!("keyspace {name}: {what}")),
                failed => failed,
            })?;
        }
        same("what is said of the database", db.keyspaces().len(), db.stats().keyspaces.len())
    };
    match all() {
        Ok(()) => Ok(Ok(())),
        Err(Ended::Failed(error)) => Ok(Err(error)),
        Err(Ended::Wrong(what)) => Err(what),
    }
}

/// One keyspace, and what it holds.
struct Part<'a> {
    keyspace: &'a Keyspace,
    /// In its order.
    pairs: Vec<Pair>,
    expiries: Vec<u64>,
    /// Of its keys and of those that are not there.
    probes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Whether keys that share a prefix are neighbours.
    has_prefixes: bool,
}

fn same<T: PartialEq + Debug>(what: &str, expected: T, found: T) -> Surveyed {
    if found == expected {
        return Ok(());
    }
    Err(Ended::Wrong(format!("{what}: {found:?}, expected {expected:?}")))
}

/// The same of pairs, with the first difference only.
fn same_pairs(what: &str, expected: &[Pair], found: &[Pair]) -> Surveyed {
    let words = |pair: Option<&Pair>| pair.map(|(key, value)| [shown(key), shown(value)].join("="));
    let longer = expected.len().max(found.len());
    for index in 0..longer {
        if expected.get(index) != found.get(index) {
            return same(&format!("{what}, pair {index}"), words(expected.get(index)), words(found.get(index)));
        }
    }
    Ok(())
}

fn own((key, value): (Slice, Slice)) -> Pair {
    (key.to_vec(), value.to_vec())
}

fn collected(entries: impl Iterator<Item = esker::Result<(Slice, Slice)>>) -> esker::Result<Vec<Pair>> {
    entries.map(|entry| entry.map(own)).collect()
}

fn milliseconds(expiry: Option<Expiry>) -> Option<u64> {
    expiry.map(|expiry| match expiry {
        Expiry::At(at) => at.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64),
        Expiry::Never => NEVER,
    })
}

impl<'a> Part<'a> {
    fn new(keyspace: &'a Keyspace, index: usize, state: &State, places: &BTreeSet<Place>) -> Part<'a> {
        let order = order_of(NAMES[index]);
        let mut held: Vec<_> = state.iter().filter(|((other, _), _)| *other == index).collect();
        held.sort_by(|(a, _), (b, _)| order.compare(&a.1, &b.1));
        let mut probes: Vec<_> = held.iter().map(|((_, key), held)| (key.clone(), Some(held.value.clone()))).collect();
        let absent = places.iter().filter(|place| place.0 == index && !state.contains_key(*place));
        probes.extend(absent.map(|(_, key)| (key.clone(), None)));
        Part {
            keyspace,
            pairs: held.iter().map(|((_, key), held)| (key.clone(), held.value.clone())).collect(),
            expiries: held.iter().map(|(_, held)| held.expiry).collect(),
            probes,
            has_prefixes: order.has_prefixes(),
        }
    }

    fn check(&self, snapshot: &Snapshot, transaction: &mut Transaction) -> Surveyed {
        self.check_keyspace()?;
        self.check_spans(snapshot)?;
        self.check_cursor(self.keyspace.cursor()?)?;
        self.check_cursor(snapshot.cursor(self.keyspace)?)?;
        self.check_snapshot(snapshot)?;
        self.check_transaction(transaction)?;
        self.check_typed()
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.pairs.iter().map(|(key, _)| key.clone()).collect()
    }

    fn ends(&self) -> (Option<Pair>, Option<Pair>) {
        (self.pairs.first().cloned(), self.pairs.last().cloned())
    }

    /// What many reads at once must answer, and what they did.
    fn same_values(&self, what: &str, found: Vec<esker::Result<Option<Slice>>>) -> Surveyed {
        let found: Vec<_> = found.into_iter().collect::<esker::Result<_>>()?;
        same(&format!("{what}, answers"), self.probes.len(), found.len())?;
        for ((key, expected), found) in self.probes.iter().zip(found) {
            let what = format!("{what} of {}", shown(key));
            same(&what, expected.as_deref().map(shown), found.as_deref().map(shown))?;
        }
        Ok(())
    }

    fn check_keyspace(&self) -> Surveyed {
        let keyspace = self.keyspace;
        self.same_values("multi_get", keyspace.multi_get(self.probes.iter().map(|(key, _)| key)))?;
        let mut buffer = Vec::new();
        for (key, expected) in &self.probes {
            let what = shown(key);
            same(&format!("contains_key of {what}"), expected.is_some(), keyspace.contains_key(key)?)?;
            let found = keyspace.get_into(key, &mut buffer)?.then(|| buffer.clone());
            same(&format!("get_into of {what}"), expected.clone(), found)?;
        }
        let keys = keyspace.iter().keys().map(|key| key.map(|key| key.to_vec()));
        same("keys", self.keys(), keys.collect::<esker::Result<_>>()?)?;
        let mut backwards = collected(keyspace.iter().rev())?;
        backwards.reverse();
        same_pairs("a scan from the back", &self.pairs, &backwards)?;
        let (first, last) = (keyspace.first()?.map(own), keyspace.last()?.map(own));
        same("first and last", self.ends(), (first, last))?;
        same("count", self.pairs.len() as u64, keyspace.count(..)?)?;
        // What they say is about so much: that they say it is all.
        keyspace.approximate_count(..)?;
        keyspace.approximate_size(..)?;
        Ok(())
    }

    /// A range in the middle, and a prefix.
    fn check_spans(&self, snapshot: &Snapshot) -> Surveyed {
        let keyspace = self.keyspace;
        let (low, high) = (self.pairs.len() / 3, self.pairs.len() - self.pairs.len() / 3);
        if let (Some((from, _)), Some((to, _))) = (self.pairs.get(low), self.pairs.get(high)) {
            let bounds = || (Bound::Included(from.clone()), Bound::Excluded(to.clone()));
            same_pairs("a range", &self.pairs[low..high], &collected(keyspace.range(bounds()))?)?;
            same_pairs(
                "a range of a snapshot",
                &self.pairs[low..high],
                &collected(snapshot.range(keyspace, bounds()))?,
            )?;
            same("count of a range", (high - low) as u64, keyspace.count(bounds())?)?;
        }
        let Some((key, _)) = self.pairs.get(low).filter(|_| self.has_prefixes) else { return Ok(()) };
        let prefix = &key[..key.len() / 2];
        let expected: Vec<Pair> = self.pairs.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
        same_pairs("a prefix", &expected, &collected(keyspace.prefix(prefix))?)?;
        same_pairs("a prefix of a snapshot", &expected, &collected(snapshot.prefix(keyspace, prefix))?)
    }

    /// Forward from the first key, back from the last, and to every third.
    fn check_cursor(&self, mut cursor: Cursor) -> Surveyed {
        let at = |cursor: &Cursor| cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.seek_to_first()?;
        for pair in &self.pairs {
            same("a cursor", Some(pair.clone()), at(&cursor))?;
            cursor.next()?;
        }
        same("a cursor at the end", None, at(&cursor))?;
        cursor.seek_to_last()?;
        for pair in self.pairs.iter().rev() {
            same("a cursor going back", Some(pair.clone()), at(&cursor))?;
            cursor.prev()?;
        }
        for pair in self.pairs.iter().step_by(3) {
            cursor.seek(&pair.0)?;
            same("a cursor at a key", Some(pair.clone()), at(&cursor))?;
            cursor.seek_for_prev(&pair.0)?;
            same("a cursor at a key from above", Some(pair.clone()), at(&cursor))?;
        }
        let mut keys = cursor.keys_only().within(..);
        keys.seek_to_first()?;
        for (key, _) in &self.pairs {
            same("a cursor of keys", Some(key.as_slice()), keys.valid().then(|| keys.key()))?;
            keys.next()?;
        }
        same("a cursor of keys at the end", false, keys.valid())
    }

    fn check_snapshot(&self, snapshot: &Snapshot) -> Surveyed {
        let keyspace = self.keyspace;
        self.same_values(
            "multi_get of a snapshot",
            snapshot.multi_get(keyspace, self.probes.iter().map(|(key, _)| key))?,
        )?;
        same_pairs("a scan of a snapshot", &self.pairs, &collected(snapshot.iter(keyspace))?)?;
        let ends = (snapshot.first(keyspace)?.map(own), snapshot.last(keyspace)?.map(own));
        same("first and last of a snapshot", self.ends(), ends)?;
        same("count of a snapshot", self.pairs.len() as u64, snapshot.count(keyspace, ..)?)?;
        let mut buffer = Vec::new();
        for (key, expected) in &self.probes {
            let found = snapshot.get(keyspace, key)?.map(|found| found.to_vec());
            same(&format!("get of a snapshot of {}", shown(key)), expected, &found)?;
            let found = snapshot.get_into(keyspace, key, &mut buffer)?.then(|| buffer.clone());
            same(&format!("get_into of a snapshot of {}", shown(key)), expected, &found)?;
            same("contains_key of a snapshot", expected.is_some(), snapshot.contains_key(keyspace, key)?)?;
        }
        for ((key, _), &expiry) in self.pairs.iter().zip(&self.expiries) {
            same("expires_at of a snapshot", Some(expiry), milliseconds(snapshot.expires_at(keyspace, key)?))?;
        }
        Ok(())
    }

    fn check_transaction(&self, transaction: &mut Transaction) -> Surveyed {
        let keyspace = self.keyspace;
        let found = transaction.multi_get(keyspace, self.probes.iter().map(|(key, _)| key));
        self.same_values("multi_get of a transaction", found)?;
        same_pairs("a scan of a transaction", &self.pairs, &collected(transaction.iter(keyspace))?)?;
        let ends = (transaction.first(keyspace)?.map(own), transaction.last(keyspace)?.map(own));
        same("first and last of a transaction", self.ends(), ends)?;
        same("count of a transaction", self.pairs.len() as u64, transaction.count(keyspace, ..)?)?;
        for ((key, value), &expiry) in self.pairs.iter().zip(&self.expiries) {
            let found = transaction.get(keyspace, key)?.map(|found| found.to_vec());
            same("get of a transaction", Some(value), found.as_ref())?;
            same("contains_key of a transaction", true, transaction.contains_key(keyspace, key)?)?;
            same("expires_at of a transaction", Some(expiry), milliseconds(transaction.expires_at(keyspace, key)?))?;
        }
        Ok(())
    }

    fn check_typed(&self) -> Surveyed {
        let typed = TypedKeyspace::<Vec<u8>, Vec<u8>>::new(self.keyspace.clone());
        let pairs: Vec<Pair> = typed.iter().collect::<esker::Result<_>>()?;
        same_pairs("a typed scan", &self.pairs, &pairs)?;
        let found = typed.multi_get(self.probes.iter().map(|(key, _)| key));
        let found = found.into_iter().map(|value| value.map(|value| value.map(Slice::from))).collect();
        self.same_values("typed multi_get", found)?;
        same("typed first and last", self.ends(), (typed.first()?, typed.last()?))?;
        let counts = supply(Operator::UInt64Add).map(|operator| operator.name().to_owned());
        if self.keyspace.merge_operator() != counts {
            return Ok(());
        }
        let counters = Counters::<Vec<u8>>::new(self.keyspace.clone())?;
        for (key, expected) in &self.probes {
            let number = expected.as_deref().map_or(Some(0), |value| value.try_into().ok().map(u64::from_le_bytes));
            if let Some(number) = number {
                same("a counter", number, counters.get(key)?)?;
            }
        }
        Ok(())
    }
}
