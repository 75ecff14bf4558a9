//! Which entries a flush or compaction keeps. Pure: entries in THE order in, entries in THE order out.
//!
//! Live snapshots divide the sequence numbers into strata: two versions of a key that no snapshot lies between are in the same stratum, and only what the
//! newer one makes of the older one can ever be read. So in each stratum of a key
//! - a put or delete hides everything older,
//! - merge operands are combined with each other and with the put or delete below them,
//! - at the bottom of the tree, in the oldest stratum, operands become a put, a delete goes, and the sequence number becomes 0.
//!
//! An operator that fails, or panics, changes nothing: the entries are kept as they are, and reads of that key report it.

use crate::base::key::{Entry, Kind, MAX_VALUE_BYTES, NEVER, Sequence};
use crate::error::Result;
use crate::iter::Cursor;
use crate::merge_operator::MergeOperator;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What decides.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The sequence numbers that live snapshots read at, ascending.
    pub snapshots: &'a [Sequence],
    /// Nothing older than the input exists for any of its keys.
    pub bottom: bool,
    /// The keyspace's operator, if it is known.
    pub operator: Option<&'a dyn MergeOperator>,
}

impl Rules<'_> {
    /// The stratum of a version; smaller is older.
    #[inline]
    fn stratum(&self, sequence: Sequence) -> usize {
        match self.snapshots {
            [] => 0,
            snapshots => snapshots.partition_point(|&snapshot| snapshot < sequence),
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    pub read: u64,
    pub kept: u64,
}

/// Merge operands of one key in one stratum, newest first.
#[derive(Default)]
struct Operands {
    stratum: usize,
    entries: Vec<(Sequence, Vec<u8>)>,
}

struct Retain<'a, 'e> {
    rules: Rules<'a>,
    emit: &'e mut dyn FnMut(Entry<'_>) -> Result<()>,
    key: Vec<u8>,
    /// The stratum in which everything older of this key is hidden.
    hidden: Option<usize>,
    operands: Operands,
    done: Retained,
}

/// Passes every entry of `cursor`, from the first, and hands those to keep to `emit`. `pause` is called now and then.
pub fn retain(
    cursor: &mut impl Cursor,
    rules: Rules<'_>,
    emit: &mut dyn FnMut(Entry<'_>) -> Result<()>,
    pause: &mut dyn FnMut() -> Result<()>,
) -> Result<Retained> {
    const PAUSE_EVERY: u64 = 1024;
    let mut retain =
        Retain { rules, emit, key: Vec::new(), hidden: None, operands: Operands::default(), done: Retained::default() };
    cursor.seek_to_first()?;
    let mut first = true;
    while cursor.valid() {
        let entry = cursor.entry();
        if first || entry.key != retain.key {
            retain.finish_key()?;
            retain.key.clear();
            retain.key.extend_from_slice(entry.key);
            retain.hidden = None;
            first = false;
        }
        retain.take(entry)?;
        retain.done.read += 1;
        if retain.done.read.is_multiple_of(PAUSE_EVERY) {
            pause()?;
        }
        cursor.next()?;
    }
    retain.finish_key()?;
    Ok(retain.done)
}

impl Retain<'_, '_> {
    #[inline]
    fn take(&mut self, entry: Entry<'_>) -> Result<()> {
        let stratum = self.rules.stratum(entry.sequence);
        if self.hidden == Some(stratum) {
            return Ok(());
        }
        if !self.operands.entries.is_empty() {
            if self.operands.stratum == stratum {
                return self.take_below_operands(entry, stratum);
            }
            self.emit_operands()?;
        }
        if entry.kind == Kind::Merge && entry.expiry_ms == NEVER {
            self.operands.stratum = stratum;
            self.operands.entries.push((entry.sequence, entry.value.to_vec()));
            return Ok(());
        }
        if entry.kind != Kind::Merge {
            self.hidden = Some(stratum);
        }
        self.keep(entry, stratum)
    }

    /// An entry below collected operands, in the same stratum.
    fn take_below_operands(&mut self, entry: Entry<'_>, stratum: usize) -> Result<()> {
        if entry.kind == Kind::Merge {
            let newer = self.operands.entries.last_mut();
            let operator = self.rules.operator;
            let folded = newer.as_ref().and_then(|(_, newer)| {
                let operator = operator?;
                catch_unwind(AssertUnwindSafe(|| operator.partial_merge(entry.key, entry.value, newer))).ok()?
            });
            match (newer, folded) {
                (Some(newer), Some(folded)) if folded.len() <= MAX_VALUE_BYTES => newer.1 = folded,
                _ => self.operands.entries.push((entry.sequence, entry.value.to_vec())),
            }
            return Ok(());
        }
        self.hidden = Some(stratum);
        let existing = (entry.kind == Kind::Put).then_some(entry.value);
        match self.full_merge(existing) {
            Some(merged) => self.emit_merged(merged, stratum),
            None => {
                self.emit_operands()?;
                self.keep_as_is(entry)
            }
        }
    }

    /// The operands on top of `existing`: the value, or `Some(None)` for a delete. `None` if the operator cannot.
    fn full_merge(&self, existing: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        let operator = self.rules.operator?;
        let oldest_first: Vec<&[u8]> =
            self.operands.entries.iter().rev().map(|(_, operand)| operand.as_slice()).collect();
        let merged = catch_unwind(AssertUnwindSafe(|| operator.full_merge(&self.key, existing, &oldest_first)));
        merged.ok()?.ok().filter(|value| value.as_ref().is_none_or(|value| value.len() <= MAX_VALUE_BYTES))
    }

    fn emit_merged(&mut self, merged: Option<Vec<u8>>, stratum: usize) -> Result<()> {
        let sequence = self.operands.entries.first().map_or(0, |(sequence, _)| *sequence);
        self.operands.entries.clear();
        let key = std::mem::take(&mut self.key);
        let (kind, value) = match &merged {
            Some(value) => (Kind::Put, value.as_slice()),
            None => (Kind::Delete, &[][..]),
        };
        let result = self.keep(Entry { key: &key, sequence, kind, expiry_ms: NEVER, value }, stratum);
        self.key = key;
        result
    }

    fn emit_operands(&mut self) -> Result<()> {
        for (sequence, operand) in std::mem::take(&mut self.operands.entries) {
            let entry = Entry { key: &self.key, sequence, kind: Kind::Merge, expiry_ms: NEVER, value: &operand };
            self.done.kept += 1;
            (self.emit)(entry)?;
        }
        Ok(())
    }

    /// No more versions of the key will come.
    #[inline]
    fn finish_key(&mut self) -> Result<()> {
        if self.operands.entries.is_empty() {
            return Ok(());
        }
        let stratum = self.operands.stratum;
        if self.rules.bottom
            && let Some(merged) = self.full_merge(None)
        {
            return self.emit_merged(merged, stratum);
        }
        self.emit_operands()
    }

    #[inline]
    fn keep(&mut self, mut entry: Entry<'_>, stratum: usize) -> Result<()> {
        if self.rules.bottom && stratum == 0 {
            // Nothing older of this key is kept, in the input or below it.
            match entry.kind {
                Kind::Delete => return Ok(()),
                Kind::Put | Kind::PutLarge | Kind::MergeFirst => entry.sequence = 0,
                Kind::Merge => {}
            }
        }
        self.keep_as_is(entry)
    }

    #[inline]
    fn keep_as_is(&mut self, entry: Entry<'_>) -> Result<()> {
        self.done.kept += 1;
        (self.emit)(entry)
    }
}

#[cfg(test)]
mod tests;
