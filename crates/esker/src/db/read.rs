//! The read path for one key.
//!
//! 1. Load the keyspace's view: no lock, no counter shared with other readers.
//! 2. Probe the active memtable's index, then those of the full ones, newest first.
//! 3. Probe the filters of the runs that can hold the key, then search those that may, newest first.
//! 4. The first put or delete decides. Merge operands met before it are combined with it. If the newest version has expired, the key has no value,
//!    whatever is older.

use super::inner::{Inner, KeyspaceInner, View};
use crate::base::expiry::{Expiry, visible};
use crate::base::key::{Entry, Kind, NEVER, Sequence, hash};
use crate::base::slice::Slice;
use crate::error::{Error, Result, escape_key};
use crate::table::{Table, Version};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Under what a key's operands lie.
#[derive(Debug, Default)]
pub enum Base {
    /// No version that decides was met: nothing.
    #[default]
    None,
    /// The key was deleted, or has expired.
    Absent,
    /// The oldest operand starts from nothing.
    First,
    /// The value of a put.
    Value(Slice),
    /// The reference of a large value.
    Large(Slice),
}

/// What the versions of a key amount to, for one reader.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The reader's time.
    now_ms: u64,
    /// The operands above the base, newest first.
    pub operands: Vec<Slice>,
    pub base: Base,
    /// The expiry of the newest version, which is the key's.
    pub expiry_ms: u64,
}

impl Lookup {
    fn new(now_ms: u64) -> Lookup {
        Lookup { now_ms, ..Lookup::default() }
    }

    #[inline]
    fn take(&mut self, kind: Kind, expiry_ms: u64, value: impl FnOnce() -> Slice) -> ControlFlow<()> {
        if expiry_ms != NEVER && self.operands.is_empty() {
            // The newest version decides; once it has expired it masks everything older.
            if !visible(expiry_ms, self.now_ms) {
                self.base = Base::Absent;
                return ControlFlow::Break(());
            }
            self.expiry_ms = expiry_ms;
        }
        self.base = match kind {
            Kind::Merge => {
                self.operands.push(value());
                return ControlFlow::Continue(());
            }
            Kind::MergeFirst => {
                self.operands.push(value());
                Base::First
            }
            Kind::Put => Base::Value(value()),
            Kind::PutLarge => Base::Large(value()),
            Kind::Delete => Base::Absent,
        };
        ControlFlow::Break(())
    }
}

/// The value of `key` as of `sequence` and the time `now_ms`.
pub fn get(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    key: &[u8],
    sequence: Sequence,
    now_ms: u64,
) -> Result<Option<Slice>> {
    let lookup = look_up(&keyspace.view.load(), key, sequence, now_ms)?;
    value_of(inner, keyspace, key, lookup)
}

/// When the value of `key` expires, if it has one.
pub fn expires_at(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    key: &[u8],
    sequence: Sequence,
    now_ms: u64,
) -> Result<Option<Expiry>> {
    let lookup = look_up(&keyspace.view.load(), key, sequence, now_ms)?;
    let expiry_ms = lookup.expiry_ms;
    // Operands may amount to no value.
    Ok(value_of(inner, keyspace, key, lookup)?.map(|_| Expiry::from_ms(expiry_ms)))
}

/// Collects the versions of `key` that a reader at `sequence` and `now_ms` has to look at.
#[inline]
pub fn look_up(view: &View, key: &[u8], sequence: Sequence, now_ms: u64) -> Result<Lookup> {
    let hash = hash(key);
    let mut lookup = Lookup::new(now_ms);
    let mut from_memory = |entry: Entry<'_>| lookup.take(entry.kind, entry.expiry_ms, || Slice::copy(entry.value));
    let found = view.active.get(key, hash, sequence, &mut from_memory);
    let found = view.frozen.iter().try_fold(found, |found, memtable| match found {
        ControlFlow::Break(()) => Err(()),
        ControlFlow::Continue(()) => Ok(memtable.get(key, hash, sequence, &mut from_memory)),
    });
    if matches!(found, Ok(ControlFlow::Continue(()))) {
        search_runs(&view.tree.runs, key, hash, sequence, &mut lookup)?;
    }
    Ok(lookup)
}

/// The value that a lookup amounts to.
#[inline]
pub fn value_of(inner: &Inner, keyspace: &KeyspaceInner, key: &[u8], lookup: Lookup) -> Result<Option<Slice>> {
    let base = match lookup.base {
        // An operand that lost what it was combined with, when that expired: possible only if the clock stepped back.
        Base::None | Base::Absent if keyspace.ttl.is_enabled() => return Ok(None),
        Base::None | Base::Absent | Base::First => None,
        Base::Value(value) | Base::Large(value) => Some(value),
    };
    if lookup.operands.is_empty() {
        return Ok(base);
    }
    let operands: Vec<&[u8]> = lookup.operands.iter().rev().map(|operand| &**operand).collect();
    Ok(full_merge(inner, keyspace, key, base.as_deref(), &operands)?.map(Slice::from))
}

#[inline]
fn search_runs(
    runs: &[std::sync::Arc<crate::version::tree::Run>],
    key: &[u8],
    hash: u64,
    sequence: Sequence,
    lookup: &mut Lookup,
) -> Result<()> {
    if runs.len() > 1 {
        // One cache miss for all filters instead of one after the other.
        runs.iter().filter_map(|run| run.table_for(key)).for_each(|table| table.prefetch_filter(hash));
    }
    for table in runs.iter().filter_map(|run| run.table_for(key)) {
        if search_table(table, key, hash, sequence, lookup)?.is_break() {
            break;
        }
    }
    Ok(())
}

#[inline]
fn search_table(
    table: &Table,
    key: &[u8],
    hash: u64,
    sequence: Sequence,
    lookup: &mut Lookup,
) -> Result<ControlFlow<()>> {
    let mut visit = |version: Version| lookup.take(version.kind, version.expiry_ms, || version.value).is_continue();
    let go_on = table.get(key, hash, sequence, &mut visit)?;
    Ok(if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
}

/// What `operands`, oldest first, make of `existing`, or why the operator cannot tell.
pub fn full_merge(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Option<Vec<u8>>> {
    let Some(operator) = keyspace.operator() else {
        let operator = keyspace.operator_name.clone().unwrap_or_else(|| "(none)".into());
        return Err(Error::MissingMergeOperator { keyspace: keyspace.name.clone(), operator });
    };
    // A panic in a user's operator ends here: it harms reads of this key only.
    let merged = catch_unwind(AssertUnwindSafe(|| operator.full_merge(key, existing, operands)));
    let reason = match merged {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.0,
        Err(_) => "the operator panicked".to_owned(),
    };
    inner.condition.merge_failed();
    Err(Error::MergeFailed {
        keyspace: keyspace.name.clone(),
        key: escape_key(key),
        operator: operator.name().to_owned(),
        reason,
    })
}
