//! One keyspace of a database that a survey reads in every way.

use crate::model::{NEVER, Operator};
use crate::operators::supply;
use crate::orders::order_of;
use crate::powerloss::script::NAMES;
use crate::state::{Place, State, shown};
use esker::{Counters, Cursor, Error, Expiry, Keyspace, Slice, Snapshot, Transaction, TypedKeyspace};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Bound;
use std::time::UNIX_EPOCH;

/// Why a survey ended.
pub(super) enum Ended {
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

pub(super) type Surveyed = Result<(), Ended>;

type Pair = (Vec<u8>, Vec<u8>);

/// One keyspace, and what it holds.
pub(super) struct Part<'a> {
    pub(super) keyspace: &'a Keyspace,
    /// In its order.
    pub(super) pairs: Vec<Pair>,
    expiries: Vec<u64>,
    /// Of its keys and of those that are not there.
    pub(super) probes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Whether keys that share a prefix are neighbours.
    has_prefixes: bool,
}

pub(super) fn same<T: PartialEq + Debug>(what: &str, expected: T, found: T) -> Surveyed {
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
    pub(super) fn new(keyspace: &'a Keyspace, index: usize, state: &State, places: &BTreeSet<Place>) -> Part<'a> {
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

    pub(super) fn check(&self, snapshot: &Snapshot, transaction: &mut Transaction) -> Surveyed {
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
