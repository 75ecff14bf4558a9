//! Iterators, which read ahead: each call to the pool returns many entries.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::range::KeyRange;
use crate::values::{Format, Input, bytes};
use crate::work::{Answer, Work, run};
use esker::{Iter, Keys, Slice};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, JsValue, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which part of an entry is wanted, and as what.
#[derive(Clone, Copy)]
pub struct Parts {
    /// The keys' format, if they are wanted.
    pub keys: Option<Format>,
    /// The values' format, if they are wanted.
    pub values: Option<Format>,
}

/// An iterator over one snapshot.
#[napi]
pub struct EntryIterator {
    shared: Arc<Shared>,
}

struct Shared {
    database: Arc<OpenDatabase>,
    position: Mutex<Option<Position>>,
    aborted: AtomicBool,
    parts: Parts,
}

/// Where the next call goes on.
struct Position {
    snapshot: esker::Snapshot,
    range: KeyRange,
    /// None at the beginning and after a seek: the next call makes it, in the pool.
    scan: Option<Scan>,
    target: Option<Vec<u8>>,
    /// Met behind entries that a call has returned: what the next call returns.
    failure: Option<Failure>,
}

enum Scan {
    Entries(Iter),
    Keys(Keys),
    /// After a seek out of the range.
    Nothing,
}

impl EntryIterator {
    /// Before the first entry of the range.
    pub fn new(database: Arc<OpenDatabase>, snapshot: esker::Snapshot, range: KeyRange, parts: Parts) -> EntryIterator {
        let position = Mutex::new(Some(Position { snapshot, range, scan: None, target: None, failure: None }));
        EntryIterator { shared: Arc::new(Shared { database, position, aborted: AtomicBool::new(false), parts }) }
    }
}

#[napi]
impl EntryIterator {
    /// The next entries: at most `size`, and, after the first, no more once `most_bytes` are
    /// reached. A failure comes after the entries before it.
    #[napi]
    pub fn nextv(&self, size: u32, most_bytes: f64) -> AsyncTask<Work<ReadAhead>> {
        let shared = Arc::clone(&self.shared);
        let call = shared.database.begin();
        run(move || {
            let call = call?;
            let mut position = shared.position.lock();
            let position = position.as_mut().ok_or_else(Failure::iterator_not_open)?;
            let entries = position.read(&call, &shared, size as usize, most_bytes as usize);
            drop(call);
            entries.map(|entries| ReadAhead { entries, shared: Arc::clone(&shared) })
        })
    }

    /// Goes to a key: the next entry is that of the key or, in the iterator's order, of the first
    /// one behind it.
    #[napi]
    pub fn seek(&self, target: Input<'_>) {
        if let Some(position) = self.shared.position.lock().as_mut() {
            position.target = Some(bytes(target));
            position.scan = None;
            position.failure = None;
        }
    }

    /// Ends the call under way, and all calls after it, with `LEVEL_ABORTED`.
    #[napi]
    pub fn abort(&self) {
        self.shared.aborted.store(true, Ordering::Relaxed);
    }

    /// Releases what it holds.
    #[napi]
    pub fn close(&self) {
        let released = self.shared.position.lock().take();
        drop(released);
    }
}

impl Position {
    fn read(
        &mut self,
        database: &OpenDatabase,
        shared: &Shared,
        size: usize,
        most_bytes: usize,
    ) -> Result<Entries, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let parts = shared.parts;
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => none.insert(begin(&self.snapshot, database, &self.range, self.target.take(), parts)),
        };
        let mut entries = Entries::new(parts);
        while entries.count < size && (entries.count == 0 || entries.bytes.len() < most_bytes) {
            if shared.aborted.load(Ordering::Relaxed) {
                return Err(Failure::aborted());
            }
            match scan.next(self.range.reverse) {
                Some(Ok((key, value))) => entries.add(&key, value.as_deref().unwrap_or_default()),
                Some(Err(error)) if entries.count == 0 => return Err(error.into()),
                // A promise has one result: first what was read before it.
                Some(Err(error)) => {
                    self.failure = Some(error.into());
                    break;
                }
                None => {
                    entries.ended = true;
                    break;
                }
            }
        }
        Ok(entries)
    }
}

fn begin(
    snapshot: &esker::Snapshot,
    database: &OpenDatabase,
    range: &KeyRange,
    target: Option<Vec<u8>>,
    parts: Parts,
) -> Scan {
    let mut bounds = (range.lower.clone(), range.upper.clone());
    if let Some(target) = target {
        if !bounds.contains(&target) {
            return Scan::Nothing;
        }
        *(if range.reverse { &mut bounds.1 } else { &mut bounds.0 }) = Bound::Included(target);
    }
    let iter = snapshot.range(&database.keyspace, bounds);
    if parts.values.is_some() { Scan::Entries(iter) } else { Scan::Keys(iter.keys()) }
}

impl Scan {
    fn next(&mut self, reverse: bool) -> Option<esker::Result<(Slice, Option<Slice>)>> {
        let entry = |entry: esker::Result<(Slice, Slice)>| entry.map(|(key, value)| (key, Some(value)));
        let key_only = |key: esker::Result<Slice>| key.map(|key| (key, None));
        match (self, reverse) {
            (Scan::Entries(iter), false) => iter.next().map(entry),
            (Scan::Entries(iter), true) => iter.next_back().map(entry),
            (Scan::Keys(keys), false) => keys.next().map(key_only),
            (Scan::Keys(keys), true) => keys.next_back().map(key_only),
            (Scan::Nothing, _) => None,
        }
    }
}

/// Entries that were read, one behind the other.
struct Entries {
    bytes: Vec<u8>,
    /// Where each key or value that is wanted ends in `bytes`.
    ends: Vec<usize>,
    parts: Parts,
    count: usize,
    ended: bool,
}

impl Entries {
    fn new(parts: Parts) -> Entries {
        Entries { bytes: Vec::new(), ends: Vec::new(), parts, count: 0, ended: false }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        for (part, bytes) in [(self.parts.keys, key), (self.parts.values, value)] {
            if part.is_some() {
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len());
            }
        }
    }
}

/// What a call has read, unless it is aborted on the way to JavaScript.
pub struct ReadAhead {
    entries: Entries,
    shared: Arc<Shared>,
}

impl Answer for ReadAhead {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        if self.shared.aborted.load(Ordering::Relaxed) {
            return Err(Failure::aborted().into_error(env));
        }
        self.entries.into_js(env)
    }
}

impl Entries {
    /// An array: key, value, key, value, and so on, without the part that is not wanted; at last
    /// whether there are no more.
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let formats = [self.parts.keys, self.parts.values];
        let mut formats = formats.into_iter().flatten().cycle();
        let mut array = env.create_array(self.ends.len() as u32 + 1)?;
        let mut start = 0;
        for (index, end) in self.ends.iter().enumerate() {
            let bytes = &self.bytes[start..*end];
            let value = match formats.next() {
                Some(format) => format.copy(env, bytes)?,
                None => ().into_unknown(env)?,
            };
            array.set(index as u32, value)?;
            start = *end;
        }
        array.set(self.ends.len() as u32, self.ended)?;
        Ok(array.to_unknown())
    }
}
