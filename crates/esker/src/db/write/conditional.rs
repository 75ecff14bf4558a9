//! Writes that depend on the value that they replace: one lookup and one write at one place in the
//! order of writes.
//!
//! The key is looked up twice. The first lookup takes no lock: it brings what has to be read into
//! memory, and ends a write whose condition does not hold, if no other write was under way: then
//! the value that it found was the newest one at that moment, and not a part of a batch. The second
//! one runs under the writer lock, so that nothing comes
//! between it and the write. Nothing is read from a blob file under the lock, unless large values
//! replace one another faster than they can be read.
//!
//! Values that threads change in place, without the lock, are kept from changing by a barrier
//! (`in_place_write.rs`) from before the second lookup until the write is applied.

use crate::base::key::{Kind, MAX_SEQUENCE};
use crate::base::slice::Slice;
use crate::db::read::blob_value;
use crate::db::read::get::{Base, Lookup, Sources, look_up, value_of};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::snapshots::ReadPoint;
use crate::db::write::commit::{Precondition, Verdict};
use crate::db::write::in_place_write::Barrier;
use crate::error::Result;
use crate::version::runs::Version;
use std::sync::{Arc, Weak};

/// Lookups without the lock before a large value is read under it.
const MOST_ROUNDS: usize = 4;

/// The value of one key decides about the write.
pub struct OnValue<'a, F> {
    inner: &'a Inner,
    keyspace: &'a KeyspaceInner,
    key: &'a [u8],
    /// Whether the write may go ahead, given the value of the key. Called for every lookup; the
    /// last call counts.
    decide: F,
    /// What was seen expired stays expired, if the clock steps back meanwhile.
    now_ms: u64,
    rounds: usize,
    /// Whether it merges into what it finds.
    merges: bool,
    /// Where a merge meets entries that expire, the tables from before the last lookup: a job may
    /// give back what was found, if the clock has stepped back. Weak: it must not keep their files.
    searched: Option<Weak<Version>>,
    /// The large value that was read last, and its reference.
    blob: Option<(Slice, Slice)>,
    barrier: Option<Barrier<'a>>,
}

impl<'a, F: FnMut(Option<Slice>) -> Result<bool>> OnValue<'a, F> {
    pub fn new(
        inner: &'a Inner,
        keyspace: &'a KeyspaceInner,
        (kind, key): (Kind, &'a [u8]),
        decide: F,
    ) -> OnValue<'a, F> {
        let merges = kind == Kind::Merge;
        OnValue {
            inner,
            keyspace,
            key,
            decide,
            now_ms: 0,
            rounds: 0,
            merges,
            searched: None,
            blob: None,
            barrier: None,
        }
    }

    fn present_version(&self) -> Weak<Version> {
        Arc::downgrade(&self.keyspace.read_state.load().version)
    }

    /// The decision about the value that the key has now. `None`: it is a large one that was not
    /// read before, and is not to be read here.
    fn look(&mut self, may_read: bool) -> Result<Option<bool>> {
        self.now_ms = self.now_ms.max(self.inner.now_ms(self.keyspace));
        // Held until the value is loaded: it keeps the file of a large one.
        let loaded = self.keyspace.read_state.load();
        let read_state = self.keyspace.visible(&loaded, ReadPoint::newest(0))?;
        let sources = Sources::new(self.inner, self.keyspace, read_state);
        let mut lookup = look_up(sources, self.key, MAX_SEQUENCE, self.now_ms)?;
        if !self.load_blob(&mut lookup, may_read)? {
            return Ok(None);
        }
        let value = value_of(self.inner, self.keyspace, &read_state.merge_epoch, self.key, lookup)?;
        (self.decide)(value).map(Some)
    }

    /// Puts the large value in the place of its reference. False if it would have to be read.
    fn load_blob(&mut self, lookup: &mut Lookup, may_read: bool) -> Result<bool> {
        let Base::Blob(reference) = &lookup.base else { return Ok(true) };
        let known = self.blob.as_ref().filter(|(known, _)| known == reference);
        let value = match known {
            Some((_, value)) => value.clone(),
            None if !may_read => return Ok(false),
            None => {
                let value = Slice::from(blob_value::load(self.inner, reference)?);
                self.blob = Some((reference.clone(), value.clone()));
                value
            }
        };
        lookup.base = Base::Value(value);
        Ok(true)
    }
}

impl<F: FnMut(Option<Slice>) -> Result<bool>> Precondition for OnValue<'_, F> {
    fn catch_up(&mut self) -> Result<Verdict> {
        self.inner.refuse_in_callback()?;
        self.inner.error_state.check()?;
        self.barrier = None;
        self.rounds += 1;
        let inner = self.inner;
        let (looked, is_whole) = inner.look_between_writes(|| self.look(true));
        // What may be a part of a batch decides nothing, and neither does its failure.
        Ok(if is_whole && looked? == Some(false) { Verdict::Declined } else { Verdict::Holds })
    }

    fn holds(&mut self, _: &Writer) -> Result<Verdict> {
        if self.keyspace.adds_in_place() || self.keyspace.puts_in_place() {
            self.barrier = Some(Barrier::raise(self.inner));
        }
        self.searched = (self.merges && self.keyspace.ttl().is_enabled()).then(|| self.present_version());
        Ok(match self.look(self.rounds >= MOST_ROUNDS)? {
            Some(true) => Verdict::Holds,
            Some(false) => Verdict::Declined,
            None => Verdict::Repeat,
        })
    }

    fn applied(&mut self) {
        self.barrier = None;
    }

    fn still_holds(&self) -> bool {
        self.searched.as_ref().is_none_or(|searched| searched.ptr_eq(&self.present_version()))
    }

    fn now_ms(&self) -> Option<u64> {
        Some(self.now_ms)
    }
}
