//! Merges into keyspaces in which entries expire, and changes of an expiry: what an operand is
//! combined with, what a key holds, and when the result expires, is decided when it is written, and
//! recorded. So neither replay nor compaction ever decides it again.
//!
//! - On a live key the operand keeps the key's expiry, unless it brings its own.
//! - On an absent or expired key it starts from nothing: it is written as [`Kind::MergeFirst`],
//!   with its own time to live or the keyspace's default.
//!
//! What is written keeps one invariant: **in a chain, a base and the operands above it, no entry
//! expires later than those below it.** Then an expired entry means that everything newer in its
//! chain has expired too, so that compaction may drop any expired entry by itself. An operand that
//! would make a live key live longer is therefore written together with a copy of everything below
//! it, all with the new expiry. So is a change of the expiry alone, longer or shorter: it writes a
//! copy of what the key holds, and nothing if that is nothing.
//!
//! Where the newest entry of a key in memory decides, nothing else is looked up. An operand decides
//! only if what it was written upon must still be there: otherwise it may be visible and yet stand
//! for nothing (`has_base`), and what is merged onto it would be lost. And if a job may be giving
//! back what the key holds, because it began before the clock stepped back, the operand is written
//! together with a copy of that.
//!
//! The copy of a large value is another reference to it. Until it is in the memtable, nothing but
//! the writer lock keeps the blob file: its remover searches for references with that lock held,
//! too (`remover.rs`).

use crate::base::batch::{
    AnyOperation, ExpiryChange, Operation, Operations, RangeDelete, Unresolved, encode, encode_range,
};
use crate::base::blob_reference::BlobReference;
use crate::base::expiry::{Life, lifetime_rank, visible};
use crate::base::key::{Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::base::slice::Slice;
use crate::db::read::blob_value;
use crate::db::read::get::{Base, Lookup, Sources, look_up};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::snapshots::ReadPoint;
use crate::db::write::batch_size::{
    ArenaReservation, add_range_reservation, add_reservation, reservation_bytes, start_record,
};
use crate::error::{Error, Result, escape_key};
use crate::memtable::Memtable;
use crate::merge_operator::contained;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A batch in which every merge says what it is, and which changes no expiry.
pub struct Resolved {
    /// With space for the log's record header in front.
    pub record: Vec<u8>,
    pub count: u64,
    pub needs: Vec<ArenaReservation>,
}

/// What a key holds: a base and the operands above it. Without a base it is absent.
#[derive(Default)]
struct Chain {
    base: Option<(Kind, Slice)>,
    /// Oldest first; without that of a base that is an operand itself.
    operands: Vec<Vec<u8>>,
    expiry_ms: u64,
    /// Below these operands of the batch is what the key held before, which is alive and was not
    /// read.
    is_unread: bool,
    /// It is alive, and yet a job at work may be giving it back.
    may_go: bool,
}

impl Chain {
    fn of(lookup: &Lookup) -> Chain {
        let mut operands: Vec<Vec<u8>> = lookup.operands.iter().rev().map(|operand| operand.to_vec()).collect();
        let base = match &lookup.base {
            // Only `get_into` copies.
            Base::None | Base::Absent | Base::Copied => return Chain::default(),
            Base::First => Some((Kind::MergeFirst, Slice::from(operands.remove(0)))),
            Base::Value(value) => Some((Kind::Put, value.clone())),
            Base::Blob(reference) => Some((Kind::PutBlob, reference.clone())),
        };
        Chain { base, operands, expiry_ms: lookup.expiry_ms, ..Chain::default() }
    }

    /// What the operator makes of it, which may be nothing; `None` if it cannot tell. `large`: the
    /// value of a base that is a reference; without it that cannot be told. No read, which would be
    /// counted where it fails.
    fn merged(&self, keyspace: &KeyspaceInner, key: &[u8], large: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        let (existing, first) = match self.base.as_ref()? {
            (Kind::MergeFirst, operand) => (None, Some(&**operand)),
            (Kind::PutBlob, _) => (Some(large?), None),
            (_, value) => (Some(&**value), None),
        };
        let operands: Vec<&[u8]> = first.into_iter().chain(self.operands.iter().map(Vec::as_slice)).collect();
        contained::full_merge(&*keyspace.operator()?, key, existing, &operands).ok()
    }

    /// Whether the operator makes no value of it. One that fails makes a value that cannot be read.
    fn amounts_to_nothing(&self, inner: &Inner, keyspace: &KeyspaceInner, key: &[u8]) -> Result<bool> {
        let large = match &self.base {
            None => return Ok(true),
            Some((Kind::MergeFirst, _)) => None,
            Some(_) if self.operands.is_empty() => return Ok(false),
            Some((Kind::PutBlob, reference)) => match blob_value::load(inner, reference) {
                Ok(value) => Some(value),
                Err(Error::Corruption { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
            Some(_) => None,
        };
        Ok(self.merged(keyspace, key, large.as_deref()) == Some(None))
    }
}

/// What a change of the expiry of `key` needs room for, about, in the memtable: what the key holds.
/// None if it has no value. Looks the key up without the lock, so that the commit finds it in
/// memory.
pub fn bytes_to_copy(inner: &Inner, keyspace: &KeyspaceInner, key: &[u8]) -> Result<Option<usize>> {
    let loaded = keyspace.read_state.load();
    let read_state = keyspace.visible(&loaded, ReadPoint::newest(0))?;
    let found = look_up(Sources::new(inner, keyspace, read_state), key, MAX_SEQUENCE, inner.now_ms(keyspace))?;
    let bytes = |value: &[u8]| {
        reservation_bytes(&Operation { keyspace: keyspace.id, kind: Kind::Merge, expiry_ms: u64::MAX, key, value })
    };
    let base = match &found.base {
        Base::None | Base::Absent => return Ok(None),
        Base::First | Base::Copied => 0,
        Base::Value(value) | Base::Blob(value) => bytes(value),
    };
    Ok(Some(base + found.operands.iter().map(|operand| bytes(operand)).sum::<usize>()))
}

/// Whether the rules for merges into one of the keyspaces were changed while they were in use.
#[inline]
pub fn are_altered(writer: &Writer, needs: &[ArenaReservation]) -> bool {
    !writer.altered_merges.is_empty() && needs.iter().any(|(id, _)| writer.altered_merges.contains(id))
}

/// Checks the merges in `payload` by the present operators, where they may have been prepared
/// before these were set. Whether one goes to a keyspace in which entries can expire.
///
/// # Errors
/// `InvalidArgument`, if an operator refuses its operand.
#[cold]
pub fn check_altered(writer: &Writer, payload: &[u8]) -> Result<bool> {
    let mut expires = false;
    let mut operations = Operations::new(payload);
    while let Some(Ok(operation)) = operations.next_unresolved() {
        let Unresolved::Logged(AnyOperation::Key(operation)) = operation else { continue };
        let target = writer.keyspaces.get(operation.keyspace as usize).and_then(Option::as_ref);
        let Some(target) = target.filter(|_| operation.kind == Kind::Merge) else { continue };
        if writer.altered_merges.contains(&operation.keyspace) {
            check_operand(&target.keyspace, operation.key, operation.value)?;
        }
        expires |= target.keyspace.ttl().is_enabled();
    }
    Ok(expires)
}

/// Refuses an operand that the operator of the keyspace refuses.
#[inline]
pub fn check_operand(keyspace: &KeyspaceInner, key: &[u8], operand: &[u8]) -> Result<()> {
    keyspace.check_operand(operand).map_err(|reason| {
        let shown = escape_key(keyspace.order.key_of(key));
        Error::invalid(format!("merge into key {shown} of keyspace {:?}: {reason}", keyspace.name()))
    })
}

/// Resolves the merges among the operations in `payload`, under the writer lock: the state that it
/// finds is the state that the batch meets.
///
/// # Errors
/// What reading the keys concerned fails with.
pub fn resolve(inner: &Inner, writer: &Writer, payload: &[u8], now_ms: u64) -> Result<Resolved> {
    let mut record = Vec::with_capacity(payload.len() + 64);
    start_record(&mut record);
    let out = Resolved { record, count: 0, needs: Vec::new() };
    let mut resolver = Resolver { inner, now_ms, is_last: false, known: HashMap::new(), ranges: Vec::new(), out };
    let mut operations = Operations::new(payload);
    while let Some(operation) = operations.next_unresolved() {
        resolver.is_last = operations.is_at_end();
        let keyspace = |number: u64| writer.keyspaces.get(number as usize).and_then(Option::as_ref);
        match operation.map_err(|_| Error::invalid("a malformed batch"))? {
            Unresolved::Logged(AnyOperation::Range(range)) => {
                let order = keyspace(range.keyspace).map(|target| target.keyspace.order.clone());
                resolver.take_range(range, order.unwrap_or_default());
            }
            Unresolved::Logged(AnyOperation::Key(operation)) => match keyspace(operation.keyspace) {
                Some(target) if target.keyspace.ttl().is_enabled() => resolver.take(&target.keyspace, &operation)?,
                _ => resolver.write(&operation),
            },
            Unresolved::Expiry(change) => {
                if let Some(target) = keyspace(change.keyspace) {
                    resolver.take_expiry_change(&target.keyspace, &change)?;
                }
            }
        }
    }
    Ok(resolver.out)
}

struct Resolver<'a, 'b> {
    inner: &'a Inner,
    now_ms: u64,
    /// Whether this is the last operation: no later one reads the key that it changes.
    is_last: bool,
    /// What the batch itself made of its keys so far, by keyspace and key.
    known: HashMap<(u64, Vec<u8>), Chain>,
    /// What the batch itself deleted so far.
    ranges: Vec<(RangeDelete<'b>, KeyOrder)>,
    out: Resolved,
}

impl<'b> Resolver<'_, 'b> {
    fn write(&mut self, operation: &Operation<'_>) {
        encode(&mut self.out.record, operation);
        add_reservation(&mut self.out.needs, operation);
        self.out.count += 1;
    }

    fn take_range(&mut self, range: RangeDelete<'b>, order: KeyOrder) {
        encode_range(&mut self.out.record, &range);
        add_range_reservation(&mut self.out.needs, &range);
        self.out.count += 1;
        for ((keyspace, key), chain) in &mut self.known {
            if range.covers(&order, *keyspace, key) {
                *chain = Chain::default();
            }
        }
        self.ranges.push((range, order));
    }

    fn take(&mut self, keyspace: &KeyspaceInner, operation: &Operation<'_>) -> Result<()> {
        let place = (keyspace.id, operation.key.to_vec());
        let chain = match operation.kind {
            Kind::Merge => return self.take_merge(keyspace, operation, place),
            Kind::Delete => Chain::default(),
            kind => Chain {
                base: Some((kind, Slice::copy(operation.value))),
                expiry_ms: operation.expiry_ms,
                ..Chain::default()
            },
        };
        self.remember(place, chain);
        self.write(operation);
        Ok(())
    }

    /// Keeps what the batch has made of a key, if a later operation may ask.
    fn remember(&mut self, place: (u64, Vec<u8>), chain: Chain) {
        if !self.is_last {
            self.known.insert(place, chain);
        }
    }

    /// What the batch has made of a key so far, which is about to change.
    fn take_known(&mut self, place: &(u64, Vec<u8>)) -> Option<Chain> {
        // Most batches are a single write: it pays for no hash.
        if self.known.is_empty() { None } else { self.known.remove(place) }
    }

    fn take_merge(&mut self, keyspace: &KeyspaceInner, operation: &Operation<'_>, place: (u64, Vec<u8>)) -> Result<()> {
        let may_delete = keyspace.operator().is_some_and(|operator| contained::may_delete(&*operator));
        if !may_delete
            && !self.was_changed(&place)
            && let Some(expiry_ms) = self.expiry_in_memory(keyspace, operation)
        {
            self.write(&Operation { expiry_ms, ..*operation });
            if !self.is_last {
                let operands = vec![operation.value.to_vec()];
                self.known.insert(place, Chain { operands, expiry_ms, is_unread: true, ..Chain::default() });
            }
            return Ok(());
        }
        let mut chain = match self.take_known(&place) {
            // Alive, and what it consists of does not matter.
            Some(chain) if chain.is_unread && !extends(operation.expiry_ms, chain.expiry_ms) => chain,
            known => self.chain(keyspace, &place, known)?,
        };
        let own = operation.expiry_ms;
        if self.is_live(keyspace, operation.key, &chain)? {
            let expiry_ms = if own == NEVER { chain.expiry_ms } else { own };
            if chain.may_go || extends(own, chain.expiry_ms) {
                self.copy(&mut chain, keyspace, operation.key, expiry_ms);
            }
            self.write(&Operation { expiry_ms, ..*operation });
            chain.operands.push(operation.value.to_vec());
            chain.expiry_ms = expiry_ms;
        } else {
            let expiry_ms = if own == NEVER { keyspace.ttl().expiry_ms(Life::Default, self.now_ms) } else { own };
            self.write(&Operation { kind: Kind::MergeFirst, expiry_ms, ..*operation });
            let base = Some((Kind::MergeFirst, Slice::copy(operation.value)));
            chain = Chain { base, expiry_ms, ..Chain::default() };
        }
        self.remember(place, chain);
        Ok(())
    }

    fn take_expiry_change(&mut self, keyspace: &KeyspaceInner, change: &ExpiryChange<'_>) -> Result<()> {
        let place = (keyspace.id, change.key.to_vec());
        let known = self.take_known(&place);
        let mut chain = self.chain(keyspace, &place, known)?;
        if self.is_live(keyspace, change.key, &chain)? {
            self.copy(&mut chain, keyspace, change.key, change.expiry_ms);
            chain.expiry_ms = change.expiry_ms;
        }
        self.remember(place, chain);
        Ok(())
    }

    /// Whether the batch itself wrote to the key, or deleted it.
    fn was_changed(&self, place: &(u64, Vec<u8>)) -> bool {
        self.known.contains_key(place) || self.was_deleted(place)
    }

    /// Whether the batch itself deleted a range with the key.
    fn was_deleted(&self, (keyspace, key): &(u64, Vec<u8>)) -> bool {
        self.ranges.iter().any(|(range, order)| range.covers(order, *keyspace, key))
    }

    /// What the key holds after the operations so far, all of it. `known`: what these made of it.
    fn chain(&self, keyspace: &KeyspaceInner, place: &(u64, Vec<u8>), known: Option<Chain>) -> Result<Chain> {
        let (operands, expiry_ms) = match known {
            Some(Chain { operands, expiry_ms, is_unread: true, .. }) => (operands, Some(expiry_ms)),
            Some(chain) => return Ok(chain),
            None if self.was_deleted(place) => return Ok(Chain::default()),
            None => (Vec::new(), None),
        };
        // Before the read state: a job that has ended by then is in that.
        let reclaimed_until_ms = self.reclaimed_until_ms();
        let read_state = keyspace.read_state.load();
        let sources = Sources::new(self.inner, keyspace, &read_state);
        let mut chain = Chain::of(&look_up(sources, &place.1, MAX_SEQUENCE, self.now_ms)?);
        chain.may_go = !visible(chain.expiry_ms, reclaimed_until_ms) && !has_base_in(&read_state.active, &place.1);
        chain.operands.extend(operands);
        chain.expiry_ms = expiry_ms.unwrap_or(chain.expiry_ms);
        Ok(chain)
    }

    /// What jobs at work take for expired, if that is more than the clock does, which has stepped
    /// back then.
    fn reclaimed_until_ms(&self) -> u64 {
        let snapshots = &self.inner.snapshots;
        if self.now_ms < snapshots.given_back_until_ms() { snapshots.reclaimed_until_ms() } else { 0 }
    }

    /// Whether the key has a value.
    fn is_live(&self, keyspace: &KeyspaceInner, key: &[u8], chain: &Chain) -> Result<bool> {
        if !visible(chain.expiry_ms, self.now_ms) {
            return Ok(false);
        }
        let may_delete = keyspace.operator().is_some_and(|operator| contained::may_delete(&*operator));
        Ok(chain.is_unread
            || chain.base.is_some() && !(may_delete && chain.amounts_to_nothing(self.inner, keyspace, key)?))
    }

    /// The expiry for the operand, if the newest version of its key in the active memtable decides
    /// it: that version is alive, for certain, and its expiry does not move.
    fn expiry_in_memory(&self, keyspace: &KeyspaceInner, operation: &Operation<'_>) -> Option<u64> {
        let mut newest = None;
        let read_state = keyspace.read_state.load();
        if read_state.active.has_range_tombstones() {
            return None;
        }
        let _ = read_state.active.get(operation.key, hash(operation.key), MAX_SEQUENCE, &mut |entry| {
            newest = Some((entry.kind, entry.sequence, entry.expiry_ms));
            ControlFlow::Break(())
        });
        let (kind, sequence, expiry_ms) = newest?;
        let has_value = match kind {
            Kind::Put | Kind::PutBlob | Kind::MergeFirst => true,
            Kind::Merge => self.has_base(keyspace, sequence, expiry_ms),
            Kind::Delete => false,
        };
        let own = operation.expiry_ms;
        if !has_value || !visible(expiry_ms, self.now_ms) || extends(own, expiry_ms) {
            return None;
        }
        Some(if own == NEVER { expiry_ms } else { own })
    }

    /// Whether the base of an operand in the active memtable must still be there, without a look at
    /// it. It was when the operand was written, and it does not expire before the operand. So it is
    /// gone only if
    /// - a job took it for expired by a clock that has stepped back since, in this process or in an
    ///   earlier one, whose operands were replayed,
    /// - or a compaction filter or FIFO compaction took it alive.
    ///
    /// Call with a read state that was loaded before.
    #[inline]
    fn has_base(&self, keyspace: &KeyspaceInner, sequence: Sequence, expiry_ms: u64) -> bool {
        visible(expiry_ms, self.inner.snapshots.given_back_until_ms()) && keyspace.compaction.has_kept_base(sequence)
    }

    /// Writes the chain again, with this expiry: as one value where it can be, because a reader
    /// without a snapshot may come between the copies.
    fn copy(&mut self, chain: &mut Chain, keyspace: &KeyspaceInner, key: &[u8], expiry_ms: u64) {
        if !chain.operands.is_empty()
            && let Some(Some(value)) = chain.merged(keyspace, key, None)
        {
            *chain = Chain { base: Some((Kind::Put, Slice::from(value))), ..Chain::default() };
        }
        let copied = |kind, value| Operation { keyspace: keyspace.id, kind, expiry_ms, key, value };
        if let Some((kind, value)) = &chain.base {
            let reference = BlobReference::decode(value).filter(|_| *kind == Kind::PutBlob);
            reference.iter().for_each(|reference| self.inner.blobs.note_logged(reference.file));
            self.write(&copied(*kind, value));
        }
        for operand in &chain.operands {
            self.write(&copied(Kind::Merge, operand));
        }
        chain.may_go = false;
    }
}

/// Whether the memtable has the newest base of a key that has a value: then no job at work reads
/// it. Range tombstones do not matter, as they would have hidden the value.
fn has_base_in(active: &Memtable, key: &[u8]) -> bool {
    let mut has_base = false;
    let _ = active.get(key, hash(key), MAX_SEQUENCE, &mut |entry| {
        has_base = matches!(entry.kind, Kind::Put | Kind::PutBlob | Kind::MergeFirst);
        if entry.kind == Kind::Merge { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    has_base
}

/// Whether an operand with an expiry of its own makes a value live longer.
fn extends(own: u64, expiry_ms: u64) -> bool {
    own != NEVER && lifetime_rank(own) > lifetime_rank(expiry_ms)
}
