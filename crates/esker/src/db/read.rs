//! The read path for one key.
//!
//! 1. Load the keyspace's view: no lock, no counter shared with other readers.
//! 2. Probe the active memtable's index, then those of the full ones, newest first.
//! 3. Probe the filters of the runs that can hold the key, then search those that may, newest first.
//! 4. The first put or delete decides. Merge operands met before it are combined with it.

use super::inner::{Inner, KeyspaceInner};
use crate::base::key::{Entry, Kind, Sequence, hash};
use crate::base::slice::Slice;
use crate::error::{Error, Result, escape_key};
use crate::table::{Table, Version};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the versions of a key amount to so far.
#[derive(Default)]
struct Lookup {
    /// Newest first.
    operands: Vec<Slice>,
    /// The newest put or delete: its value, or none.
    base: Option<Option<Slice>>,
}

impl Lookup {
    #[inline]
    fn take(&mut self, kind: Kind, value: impl FnOnce() -> Slice) -> ControlFlow<()> {
        match kind {
            Kind::Merge => {
                self.operands.push(value());
                ControlFlow::Continue(())
            }
            Kind::MergeFirst => {
                self.operands.push(value());
                self.base = Some(None);
                ControlFlow::Break(())
            }
            Kind::Put | Kind::PutLarge => {
                self.base = Some(Some(value()));
                ControlFlow::Break(())
            }
            Kind::Delete => {
                self.base = Some(None);
                ControlFlow::Break(())
            }
        }
    }
}

/// The value of `key` as of `sequence`.
pub fn get(inner: &Inner, keyspace: &KeyspaceInner, key: &[u8], sequence: Sequence) -> Result<Option<Slice>> {
    let hash = hash(key);
    let view = keyspace.view.load();
    let mut lookup = Lookup::default();
    let mut from_memory = |entry: Entry<'_>| lookup.take(entry.kind, || Slice::copy(entry.value));
    let found = view.active.get(key, hash, sequence, &mut from_memory);
    let found = view.frozen.iter().try_fold(found, |found, memtable| match found {
        ControlFlow::Break(()) => Err(()),
        ControlFlow::Continue(()) => Ok(memtable.get(key, hash, sequence, &mut from_memory)),
    });
    if matches!(found, Ok(ControlFlow::Continue(()))) {
        search_runs(&view.tree.runs, key, hash, sequence, &mut lookup)?;
    }
    if lookup.operands.is_empty() {
        return Ok(lookup.base.flatten());
    }
    let operands: Vec<&[u8]> = lookup.operands.iter().rev().map(|operand| &**operand).collect();
    let existing = lookup.base.as_ref().and_then(|base| base.as_deref());
    Ok(full_merge(inner, keyspace, key, existing, &operands)?.map(Slice::from))
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
    let mut visit = |version: Version| lookup.take(version.kind, || version.value).is_continue();
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
