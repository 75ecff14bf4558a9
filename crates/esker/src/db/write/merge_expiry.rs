//! Merges into keyspaces in which entries expire: what an operand is combined with, and when the
//! result expires, is decided when it is written, and recorded. So neither replay nor compaction
//! ever decides it again.
//!
//! - On a live key the operand keeps the key's expiry, unless it brings its own.
//! - On an absent or expired key it starts from nothing: it is written as [`Kind::MergeFirst`],
//!   with its own time to live or the keyspace's default.
//!
//! What is written keeps one invariant: **in a chain, a base and the operands above it, no entry
//! expires later than those below it.** Then an expired entry means that everything newer in its
//! chain has expired too, so that compaction may drop any expired entry by itself. An operand that
//! would make a live key live longer is therefore written together with a copy of everything below
//! it, all with the new expiry.
//!
//! The copy of a large value is another reference to it. Until it is in the memtable, nothing but
//! the writer lock keeps the blob file: its remover searches for references with that lock held,
//! too (`remover.rs`).

use crate::base::batch::{AnyOperation, Operation, Operations, RangeDelete, encode, encode_range};
use crate::base::expiry::{Life, lifetime_rank, visible};
use crate::base::key::{Kind, MAX_SEQUENCE, NEVER, hash};
use crate::db::read::blob_value;
use crate::db::read::get::{Base, Lookup, Sources, full_merge, look_up};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::write::batch_size::{ArenaReservation, add_reservation, add_reservation_bytes, start_record};
use crate::error::{Error, Result};
use crate::merge_operator::contained;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A batch in which every merge says what it is.
pub struct Resolved {
    /// With space for the log's record header in front.
    pub record: Vec<u8>,
    pub count: u64,
    pub needs: Vec<ArenaReservation>,
}

/// What a key holds: a base and the operands above it. Without a base it is absent.
#[derive(Default)]
struct Chain {
    base: Option<(Kind, Vec<u8>)>,
    /// Oldest first; without that of a base that is an operand itself.
    operands: Vec<Vec<u8>>,
    expiry_ms: u64,
}

impl Chain {
    fn of(lookup: &Lookup) -> Chain {
        let mut operands: Vec<Vec<u8>> = lookup.operands.iter().rev().map(|operand| operand.to_vec()).collect();
        let base = match &lookup.base {
            // Only `get_into` copies.
            Base::None | Base::Absent | Base::Copied => return Chain::default(),
            Base::First => Some((Kind::MergeFirst, operands.remove(0))),
            Base::Value(value) => Some((Kind::Put, value.to_vec())),
            Base::Blob(reference) => Some((Kind::PutBlob, reference.to_vec())),
        };
        Chain { base, operands, expiry_ms: lookup.expiry_ms }
    }

    /// Whether the operator makes no value of it. One that fails makes a value that cannot be read.
    fn amounts_to_nothing(&self, inner: &Inner, keyspace: &KeyspaceInner, key: &[u8]) -> Result<bool> {
        let loaded;
        let (existing, first) = match &self.base {
            None => return Ok(true),
            Some((Kind::MergeFirst, operand)) => (None, Some(operand)),
            Some((Kind::PutBlob, _)) if self.operands.is_empty() => return Ok(false),
            Some((Kind::PutBlob, reference)) => match blob_value::load(inner, reference) {
                Ok(value) => {
                    loaded = value;
                    (Some(loaded.as_slice()), None)
                }
                Err(Error::Corruption { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
            Some((_, value)) => (Some(value.as_slice()), None),
        };
        let operands: Vec<&[u8]> = first.into_iter().chain(&self.operands).map(Vec::as_slice).collect();
        Ok(!operands.is_empty() && matches!(full_merge(inner, keyspace, key, existing, &operands), Ok(None)))
    }
}

/// Resolves the merges among the operations in `payload`, under the writer lock: the state that it
/// finds is the state that the batch meets.
///
/// # Errors
/// What reading the keys concerned fails with.
pub fn resolve(inner: &Inner, writer: &Writer, payload: &[u8], now_ms: u64) -> Result<Resolved> {
    let mut record = Vec::with_capacity(payload.len() + 64);
    start_record(&mut record);
    let is_alone = Operations::new(payload).nth(1).is_none();
    let out = Resolved { record, count: 0, needs: Vec::new() };
    let mut resolver = Resolver { inner, now_ms, is_alone, known: HashMap::new(), ranges: Vec::new(), out };
    for operation in Operations::new(payload) {
        let operation = operation.map_err(|_| Error::invalid("a malformed batch"))?;
        let operation = match operation {
            AnyOperation::Key(operation) => operation,
            AnyOperation::Range(range) => {
                resolver.take_range(range);
                continue;
            }
        };
        match writer.keyspaces.get(operation.keyspace as usize).and_then(Option::as_ref) {
            Some(target) if target.keyspace.ttl.is_enabled() => resolver.take(&target.keyspace, &operation)?,
            _ => resolver.write(&operation),
        }
    }
    Ok(resolver.out)
}

struct Resolver<'a, 'b> {
    inner: &'a Inner,
    now_ms: u64,
    /// There is one operation only.
    is_alone: bool,
    /// What the batch itself made of its keys so far, by keyspace and key.
    known: HashMap<(u64, Vec<u8>), Chain>,
    /// What the batch itself deleted so far.
    ranges: Vec<RangeDelete<'b>>,
    out: Resolved,
}

impl<'b> Resolver<'_, 'b> {
    fn write(&mut self, operation: &Operation<'_>) {
        encode(&mut self.out.record, operation);
        add_reservation(&mut self.out.needs, operation);
        self.out.count += 1;
    }

    fn take_range(&mut self, range: RangeDelete<'b>) {
        encode_range(&mut self.out.record, &range);
        add_reservation_bytes(&mut self.out.needs, range.keyspace, 0);
        self.out.count += 1;
        for ((keyspace, key), chain) in &mut self.known {
            if range.covers(*keyspace, key) {
                *chain = Chain::default();
            }
        }
        self.ranges.push(range);
    }

    fn take(&mut self, keyspace: &KeyspaceInner, operation: &Operation<'_>) -> Result<()> {
        let place = (keyspace.id, operation.key.to_vec());
        let chain = match operation.kind {
            Kind::Merge => return self.take_merge(keyspace, operation, place),
            Kind::Delete => Chain::default(),
            kind => Chain {
                base: Some((kind, operation.value.to_vec())),
                operands: Vec::new(),
                expiry_ms: operation.expiry_ms,
            },
        };
        self.known.insert(place, chain);
        self.write(operation);
        Ok(())
    }

    fn take_merge(&mut self, keyspace: &KeyspaceInner, operation: &Operation<'_>, place: (u64, Vec<u8>)) -> Result<()> {
        let may_delete = keyspace.operator().is_some_and(|operator| contained::may_delete(&*operator));
        if !may_delete
            && self.is_alone
            && let Some(expiry_ms) = self.expiry_in_memory(keyspace, operation)
        {
            self.write(&Operation { expiry_ms, ..*operation });
            return Ok(());
        }
        let mut chain = match self.known.remove(&place) {
            Some(chain) => chain,
            None if self.ranges.iter().any(|range| range.covers(place.0, &place.1)) => Chain::default(),
            None => {
                let read_state = keyspace.read_state.load();
                let sources = Sources::new(self.inner, keyspace, &read_state);
                Chain::of(&look_up(sources, operation.key, MAX_SEQUENCE, self.now_ms)?)
            }
        };
        let live = chain.base.is_some()
            && visible(chain.expiry_ms, self.now_ms)
            && !(may_delete && chain.amounts_to_nothing(self.inner, keyspace, operation.key)?);
        let own = operation.expiry_ms;
        if live {
            let expiry_ms = if own == NEVER { chain.expiry_ms } else { own };
            if lifetime_rank(expiry_ms) > lifetime_rank(chain.expiry_ms) {
                self.copy(&chain, operation, expiry_ms);
            }
            self.write(&Operation { expiry_ms, ..*operation });
            chain.operands.push(operation.value.to_vec());
            chain.expiry_ms = expiry_ms;
        } else {
            let expiry_ms = if own == NEVER { keyspace.ttl.expiry_ms(Life::Default, self.now_ms) } else { own };
            self.write(&Operation { kind: Kind::MergeFirst, expiry_ms, ..*operation });
            let base = Some((Kind::MergeFirst, operation.value.to_vec()));
            chain = Chain { base, operands: Vec::new(), expiry_ms };
        }
        self.known.insert(place, chain);
        Ok(())
    }

    /// The expiry for the operand, if the newest version of its key is in the active memtable and
    /// that is all there is to know: it is alive, and will not live longer.
    fn expiry_in_memory(&self, keyspace: &KeyspaceInner, operation: &Operation<'_>) -> Option<u64> {
        let mut newest = None;
        let read_state = keyspace.read_state.load();
        if read_state.active.has_range_tombstones() {
            return None;
        }
        let _ = read_state.active.get(operation.key, hash(operation.key), MAX_SEQUENCE, &mut |entry| {
            newest = Some((entry.kind, entry.expiry_ms));
            ControlFlow::Break(())
        });
        let (kind, expiry_ms) = newest?;
        let own = operation.expiry_ms;
        let extends = own != NEVER && lifetime_rank(own) > lifetime_rank(expiry_ms);
        if kind == Kind::Delete || !visible(expiry_ms, self.now_ms) || extends {
            return None;
        }
        Some(if own == NEVER { expiry_ms } else { own })
    }

    /// Writes the chain again, with another expiry.
    fn copy(&mut self, chain: &Chain, operation: &Operation<'_>, expiry_ms: u64) {
        if let Some((kind, value)) = &chain.base {
            self.write(&Operation { kind: *kind, expiry_ms, value, ..*operation });
        }
        for operand in &chain.operands {
            self.write(&Operation { kind: Kind::Merge, expiry_ms, value: operand, ..*operation });
        }
    }
}
