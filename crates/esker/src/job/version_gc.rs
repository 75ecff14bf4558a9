//! Version garbage collection: which entries a flush or compaction keeps. Pure: entries in internal
//! key order in and out.
//!
//! Live snapshots divide the sequence numbers into snapshot stripes: two versions of a key that no
//! snapshot lies between are in the same stripe, and only what the newer one makes of the older one
//! can ever be read. So in each stripe of a key
//! - a put or delete hides everything older,
//! - merge operands are combined with each other and with the put or delete below them,
//! - a range tombstone is a delete of each key that it covers, but for being kept apart from the
//!   entries: the newest of each stripe stays,
//! - at the bottom of the version, in the oldest stripe, operands become a put, deletes of keys and
//!   ranges go, and the sequence number becomes 0.
//!
//! An entry that has expired for every reader is a delete, whatever it was. That is right for
//! operands too, and for what lies under them: the write path never lets an operand expire later
//! than what it is combined with (`db/write/merge_expiry.rs`), so everything newer in the chain has
//! expired as well.
//!
//! An operator that fails, or panics, changes nothing: the entries are kept as they are, and reads
//! of that key report it.

use crate::base::expiry::visible;
use crate::base::key::{Entry, Kind, MAX_VALUE_BYTES, NEVER, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::{Fragment, RangeTombstones};
use crate::compaction_filter::{CompactionFilter, Decision};
use crate::error::Result;
use crate::iter::Cursor;
use crate::merge_operator::chain::LongestChain;
use crate::merge_operator::{MergeOperator, contained};
use operands::{Operand, Operands};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What decides.
#[derive(Clone, Copy, Default)]
pub struct Rules<'a> {
    /// The sequence numbers that live snapshots read at, ascending.
    pub snapshots: &'a [Sequence],
    /// What expires at or before this time has expired for every reader, present and future; 0
    /// where nothing expires.
    pub expired_until_ms: u64,
    /// Entries of this keyspace can expire. Then every operand has something to be combined with,
    /// if only by its kind; one that has not is what is left of an expired value, and stands for
    /// none.
    pub expires: bool,
    /// Nothing older than the input exists for any of its keys.
    pub bottom: bool,
    /// The keyspace's operator, if it is known.
    pub operator: Option<&'a dyn MergeOperator>,
    /// Operands on top of a large value stay what they are, so that it is not read.
    pub leaves_large: bool,
    /// Decides about puts that no snapshot sees.
    pub filter: Option<&'a dyn CompactionFilter>,
    /// Where to note how many operands are kept in a row.
    pub longest_chain: Option<&'a LongestChain>,
}

impl Rules<'_> {
    /// The stripe of a version; smaller is older.
    #[inline]
    fn stripe(&self, sequence: Sequence) -> usize {
        match self.snapshots {
            [] => 0,
            snapshots => snapshots.partition_point(|&snapshot| snapshot < sequence),
        }
    }

    /// Which range tombstones to keep.
    pub fn reduce(&self, tombstones: &RangeTombstones) -> RangeTombstones {
        tombstones.reduced(|newest_first| {
            let mut kept = newest_first.to_vec();
            kept.dedup_by_key(|sequence| self.stripe(*sequence));
            kept.retain(|&sequence| !self.bottom || self.stripe(sequence) > 0);
            kept
        })
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    pub read: u64,
    pub kept: u64,
    /// Entries whose value went because they had expired.
    pub expired: u64,
    /// Entries that the filter removed or replaced.
    pub filtered: u64,
}

/// Entries read between two pauses.
pub const PAUSE_EVERY: u64 = 1024;

struct Retain<'a, 'e> {
    rules: Rules<'a>,
    load_large: &'e dyn Fn(&[u8]) -> Result<Vec<u8>>,
    emit: &'e mut dyn FnMut(Entry<'_>) -> Result<()>,
    key: Vec<u8>,
    /// The stripe in which everything older of this key is hidden.
    hidden: Option<usize>,
    /// The range tombstones over this and later keys.
    fragments: &'a [Arc<Fragment>],
    order: &'a KeyOrder,
    /// Those over this key that are older than all of its versions passed so far, newest first.
    tombstones: &'a [Sequence],
    operands: Operands,
    /// Operands of this key emitted since the last entry that hides what is older.
    chain: usize,
    done: Retained,
}

/// Passes every entry of `cursor`, from the first, and hands those to keep to `emit`; `tombstones`
/// are the range tombstones of the same sources. `load_large` reads the value behind the reference
/// of a `PutBlob`, for operands on top of it. `pause` is called now and then.
pub fn retain(
    cursor: &mut impl Cursor,
    tombstones: &RangeTombstones,
    rules: Rules<'_>,
    load_large: &dyn Fn(&[u8]) -> Result<Vec<u8>>,
    emit: &mut dyn FnMut(Entry<'_>) -> Result<()>,
    pause: &mut dyn FnMut() -> Result<()>,
) -> Result<Retained> {
    let mut retain = Retain {
        rules,
        load_large,
        emit,
        key: Vec::new(),
        hidden: None,
        fragments: tombstones.fragments(),
        order: tombstones.order(),
        tombstones: &[],
        operands: Operands::default(),
        chain: 0,
        done: Retained::default(),
    };
    cursor.seek_to_first()?;
    let mut first = true;
    while cursor.valid() {
        let entry = cursor.entry();
        if first || entry.key != retain.key {
            retain.finish_key()?;
            retain.key.clear();
            retain.key.extend_from_slice(entry.key);
            retain.hidden = None;
            retain.find_tombstones();
            retain.chain = 0;
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
    fn take(&mut self, mut entry: Entry<'_>) -> Result<()> {
        if !self.tombstones.is_empty() {
            self.pass_tombstones(entry.sequence)?;
        }
        let stripe = self.rules.stripe(entry.sequence);
        if self.hidden == Some(stripe) {
            return Ok(());
        }
        if !visible(entry.expiry_ms, self.rules.expired_until_ms) {
            self.done.expired += 1;
            entry = Entry { kind: Kind::Delete, expiry_ms: NEVER, value: &[], ..entry };
        }
        if !self.operands.entries.is_empty() {
            if self.operands.stripe == stripe {
                return self.take_below_operands(entry, stripe);
            }
            self.emit_operands()?;
        }
        match entry.kind {
            Kind::Merge => {
                self.operands.stripe = stripe;
                self.operands.push_older(self.rules.operator, &entry);
                Ok(())
            }
            Kind::MergeFirst => {
                self.operands.stripe = stripe;
                self.take_first_operand(entry, stripe)
            }
            _ => self.take_base(entry, stripe),
        }
    }

    /// The operand that starts from nothing: with those above it, it is the whole value.
    fn take_first_operand(&mut self, entry: Entry<'_>, stripe: usize) -> Result<()> {
        self.hidden = Some(stripe);
        self.operands.push_older(self.rules.operator, &entry);
        match self.full_merge(None) {
            Some(merged) => self.emit_merged(merged, stripe),
            None => self.emit_operands(),
        }
    }

    /// Finds the range tombstones over a key that was just begun.
    #[inline]
    fn find_tombstones(&mut self) {
        while let Some((fragment, later)) = self.fragments.split_first()
            && !self.order.is_before_end(&self.key, &fragment.end)
        {
            self.fragments = later;
        }
        let over = self.fragments.first().filter(|fragment| !self.order.less(&self.key, &fragment.start));
        self.tombstones = over.map_or(&[], |fragment| &fragment.sequences);
    }

    /// Takes the range tombstones above `sequence`: each is a delete of the key that is not kept as
    /// an entry.
    fn pass_tombstones(&mut self, sequence: Sequence) -> Result<()> {
        while let Some((&newest, older)) = self.tombstones.split_first()
            && newest > sequence
        {
            self.tombstones = older;
            let stripe = self.rules.stripe(newest);
            if self.hidden == Some(stripe) {
                continue;
            }
            self.hidden = Some(stripe);
            if self.operands.entries.is_empty() {
                continue;
            }
            let merged = match self.operands.stripe == stripe {
                true if self.rules.expires => Some(None),
                true => self.full_merge(None),
                false => None,
            };
            match merged {
                Some(merged) => self.emit_merged(merged, stripe)?,
                None => self.emit_operands()?,
            }
        }
        Ok(())
    }

    /// A put or a delete.
    #[inline]
    fn take_base(&mut self, entry: Entry<'_>, stripe: usize) -> Result<()> {
        self.hidden = Some(stripe);
        self.chain = 0;
        if let Some(filter) = self.rules.filter
            && entry.kind == Kind::Put
            && stripe == self.rules.snapshots.len()
        {
            return self.keep_filtered(filter, entry, stripe);
        }
        self.keep(entry, stripe)
    }

    /// A put that is newer than every snapshot.
    fn keep_filtered(&mut self, filter: &dyn CompactionFilter, entry: Entry<'_>, stripe: usize) -> Result<()> {
        let decision = catch_unwind(AssertUnwindSafe(|| filter.decide(entry.key, entry.value)));
        match decision.unwrap_or(Decision::Keep) {
            Decision::Remove => {
                self.done.filtered += 1;
                self.keep(Entry { kind: Kind::Delete, expiry_ms: NEVER, value: &[], ..entry }, stripe)
            }
            Decision::Replace(value) if value.len() <= MAX_VALUE_BYTES => {
                self.done.filtered += 1;
                self.keep(Entry { value: &value, ..entry }, stripe)
            }
            Decision::Keep | Decision::Replace(_) => self.keep(entry, stripe),
        }
    }

    /// An entry below collected operands, in the same stripe.
    fn take_below_operands(&mut self, entry: Entry<'_>, stripe: usize) -> Result<()> {
        if entry.kind == Kind::Merge {
            self.operands.push_older(self.rules.operator, &entry);
            return Ok(());
        }
        if entry.kind == Kind::MergeFirst {
            return self.take_first_operand(entry, stripe);
        }
        self.hidden = Some(stripe);
        if entry.kind == Kind::Delete && self.rules.expires {
            // Under it goes nothing; above it, only the newest place matters.
            return self.emit_merged(None, stripe);
        }
        let merged = match entry.kind {
            Kind::PutBlob if self.rules.leaves_large => None,
            // If the value cannot be read, all stays as it is, and reads of the key say so.
            Kind::PutBlob => match (self.load_large)(entry.value) {
                Ok(value) => self.full_merge(Some(&value)),
                Err(_) => None,
            },
            kind => self.full_merge((kind == Kind::Put).then_some(entry.value)),
        };
        match merged {
            Some(merged) => self.emit_merged(merged, stripe),
            None => {
                self.emit_operands()?;
                self.keep_as_is(entry)
            }
        }
    }

    /// The operands on top of `existing`: the value, or `Some(None)` for a delete. `None` if the
    /// operator cannot.
    fn full_merge(&self, existing: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        let operator = self.rules.operator?;
        contained::full_merge(operator, &self.key, existing, &self.operands.oldest_first()).ok()
    }

    fn emit_merged(&mut self, merged: Option<Vec<u8>>, stripe: usize) -> Result<()> {
        // The newest operand stands for all, and its expiry is the key's.
        let newest = self.operands.entries.first();
        let (sequence, expiry_ms) = newest.map_or((0, NEVER), |newest| (newest.sequence, newest.expiry_ms));
        self.operands.entries.clear();
        self.chain = 0;
        let key = std::mem::take(&mut self.key);
        let entry = match &merged {
            Some(value) => Entry { key: &key, sequence, kind: Kind::Put, expiry_ms, value },
            None => Entry { key: &key, sequence, kind: Kind::Delete, expiry_ms: NEVER, value: &[] },
        };
        let result = self.keep(entry, stripe);
        self.key = key;
        result
    }

    fn emit_operands(&mut self) -> Result<()> {
        self.operands.settle(self.rules.operator, &self.key);
        self.chain += self.operands.entries.len();
        if let Some(longest) = self.rules.longest_chain {
            longest.note(self.chain);
        }
        for operand in std::mem::take(&mut self.operands.entries) {
            let Operand { sequence, kind, expiry_ms, value } = &operand;
            let entry = Entry { key: &self.key, sequence: *sequence, kind: *kind, expiry_ms: *expiry_ms, value };
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
        self.pass_tombstones(0)?;
        if self.operands.entries.is_empty() {
            return Ok(());
        }
        let stripe = self.operands.stripe;
        if self.rules.bottom && self.rules.expires {
            return self.emit_merged(None, stripe);
        }
        if self.rules.bottom
            && let Some(merged) = self.full_merge(None)
        {
            return self.emit_merged(merged, stripe);
        }
        self.emit_operands()
    }

    #[inline]
    fn keep(&mut self, mut entry: Entry<'_>, stripe: usize) -> Result<()> {
        if self.rules.bottom && stripe == 0 {
            // Nothing older of this key is kept, in the input or below it.
            match entry.kind {
                Kind::Delete => return Ok(()),
                Kind::Put | Kind::PutBlob | Kind::MergeFirst => entry.sequence = 0,
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

mod operands;
#[cfg(test)]
mod tests;
