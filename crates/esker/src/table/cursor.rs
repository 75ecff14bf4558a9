//! A position in a table. Stepping within a block is an index, and the key's rest copied behind the
//! prefix that is already there.

use super::block::{Block, EXPIRIES, KEY_OFFSETS, KINDS, Layout, SEQUENCES, copy_short};
use super::look_ahead::LookAhead;
use super::reader::Table;
use super::source::{Passing, ReadAhead};
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence};
use crate::base::slice::Pin;
use crate::env::mapping_fault_seen;
use crate::error::{Error, Result};
use crate::iter::merging::repeat_error;
use crate::iter::{Cursor, PlainSearch};
use std::ops::Range;
use std::sync::Arc;

/// A scan that has passed more than this part of the cache's budget keeps no more blocks in the
/// cache: it would only evict what others need.
const BULK_PART: usize = 16;

impl Table {
    /// A cursor over all entries. Without `fill_cache` it is a cursor for jobs, which write what
    /// they read: it reads and verifies every block from the file, not from the cache or from a
    /// mapping that was verified before, and the cache keeps no block of it.
    pub fn cursor(self: &Arc<Self>, fill_cache: bool) -> TableCursor {
        TableCursor::new(Arc::clone(self), fill_cache)
    }
}

/// A [`Cursor`] over one table. Seeking is free of allocation once its key buffer has grown.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<Table>,
    fill_cache: bool,
    ahead: ReadAhead,
    look_ahead: LookAhead,
    /// Bytes of blocks passed since the last seek, here and in the tables before.
    passed: usize,
    /// Memory for the next block.
    spare: Vec<u8>,
    /// The block that a seek was prepared to look into.
    prepared: Option<usize>,
    /// The block that `held` and `layout` are of.
    number: usize,
    held: Held,
    /// Entries in the block at hand; 0 while the cursor is not valid, whatever `held` is.
    count: usize,
    index: usize,
    layout: Option<Layout>,
    /// Whether every entry of the block is plain, once that was determined.
    plain: Option<bool>,
    /// The key at hand: the block's prefix, then the entry's rest.
    key: Vec<u8>,
    sequence: Sequence,
    kind: Kind,
    expiry_ms: u64,
    /// The value at hand, in the bytes of `held`.
    value: Range<usize>,
    /// The error that made the cursor unusable until the next seek.
    failure: Option<Error>,
}

/// The block at hand.
#[derive(Debug)]
enum Held {
    Nothing,
    Block(Arc<Block>),
    /// Loaded for this cursor alone.
    Own(Block),
    /// In the mapping: these bytes of the file.
    InPlace(Range<usize>),
}

impl TableCursor {
    fn new(table: Arc<Table>, fill_cache: bool) -> TableCursor {
        TableCursor {
            table,
            fill_cache,
            ahead: ReadAhead::default(),
            look_ahead: LookAhead::default(),
            passed: 0,
            spare: Vec::new(),
            prepared: None,
            number: 0,
            held: Held::Nothing,
            count: 0,
            index: 0,
            layout: None,
            plain: None,
            key: Vec::new(),
            sequence: 0,
            kind: Kind::Put,
            expiry_ms: NEVER,
            value: 0..0,
            failure: None,
        }
    }

    /// The content of the block at hand.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.held {
            Held::Block(block) => block.bytes(),
            Held::Own(block) => block.bytes(),
            Held::InPlace(range) => self.table.file.bytes().get(range.clone()).unwrap_or_default(),
            Held::Nothing => &[],
        }
    }

    /// Takes over the entry at `index` of the block at hand.
    #[inline]
    fn load_entry(&mut self) {
        let Some(layout) = &self.layout else { return };
        let bytes = match &self.held {
            Held::Block(block) => block.bytes(),
            Held::Own(block) => block.bytes(),
            Held::InPlace(range) => self.table.file.bytes().get(range.clone()).unwrap_or_default(),
            Held::Nothing => &[],
        };
        let rest = layout.key_rest(bytes, self.index);
        if layout.has(KEY_OFFSETS) {
            self.key.truncate(layout.prefix_bytes);
            self.key.extend_from_slice(rest);
        } else if let Some(target) = self.key.get_mut(layout.prefix_bytes..) {
            // The buffer has had the right length since the block was entered.
            copy_short(target, rest);
        }
        let (start, end) = layout.value_range(bytes, self.index);
        self.value = start..end;
        if layout.has(SEQUENCES | KINDS | EXPIRIES) {
            self.sequence = layout.sequence_of(bytes, self.index);
            self.kind = layout.kind_of(bytes, self.index);
            self.expiry_ms = layout.expiry_of(bytes, self.index);
        }
    }

    /// Makes block `number` the one at hand, at its first entry.
    fn enter(&mut self, number: usize) -> Result<()> {
        self.count = 0;
        self.index = 0;
        // What was handed out of the block at hand may be borrowed until now.
        self.intact()?;
        if self.number != number || self.layout.is_none() {
            self.layout = None;
            self.plain = None;
            if let Held::Own(block) = std::mem::replace(&mut self.held, Held::Nothing) {
                self.spare = block.into_spare();
            }
            let was_lost = self.table.file.has_lost_mapping();
            let fetched = self.fetch(number);
            if mapping_fault_seen() && self.fill_cache && !was_lost {
                self.table.file.0.check_mapping()?;
            }
            let (held, layout) = fetched?;
            self.held = held;
            self.layout = Some(layout);
            self.number = number;
        }
        let Some(layout) = self.layout else { return Ok(()) };
        self.count = layout.count;
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend_from_slice(layout.prefix(self.bytes()));
        if !layout.has(KEY_OFFSETS) {
            key.resize(layout.prefix_bytes + layout.key_width, 0);
        }
        self.key = key;
        (self.sequence, self.kind, self.expiry_ms) = (layout.sequence, layout.kind, layout.expiry_ms);
        Ok(())
    }

    fn fetch(&mut self, number: usize) -> Result<(Held, Layout)> {
        if !self.fill_cache {
            let block = self.table.once(number, &mut self.ahead, std::mem::take(&mut self.spare))?;
            let layout = block.layout;
            return Ok((Held::Own(block), layout));
        }
        if let Some(place) = self.table.in_place(number)? {
            return Ok((Held::InPlace(place.start..place.start + place.bytes.len()), place.layout));
        }
        if self.passed > self.table.cache.budget_bytes() / BULK_PART {
            // A scan goes on as it came: the next block's bytes come in while this one is decoded.
            let next = if number < self.number { number.wrapping_sub(1) } else { number + 1 };
            self.table.prefetch_packed(next);
            let spare = std::mem::take(&mut self.spare);
            return Ok(match self.table.passing(number, &mut self.ahead, spare)? {
                Passing::Shared(block) => {
                    let layout = block.layout;
                    (Held::Block(block), layout)
                }
                Passing::Own(block) => {
                    let layout = block.layout;
                    (Held::Own(block), layout)
                }
            });
        }
        let block = self.table.owned(number)?;
        let layout = block.layout;
        Ok((Held::Block(block), layout))
    }

    /// Bytes of blocks passed since the last seek.
    pub fn passed_bytes(&self) -> usize {
        self.passed
    }

    /// Goes on with the scan of another table in which so many bytes of blocks were passed.
    pub fn go_on(&mut self, passed_bytes: usize) {
        self.passed = passed_bytes;
    }

    /// Makes the cursor invalid, and unusable as well if `result` is an error.
    fn end(&mut self, result: Result<()>) -> Result<()> {
        self.count = 0;
        self.index = 0;
        // An unavailable page of the mapping is the cause of any error after it.
        let result = self.intact().and(result);
        if let Err(error) = &result {
            self.failure = Some(repeat_error(error));
            self.layout = None;
            self.held = Held::Nothing;
        }
        result
    }

    /// Goes to the first or last entry of block `number`, or ends where there is none.
    fn start_block(&mut self, number: Option<usize>, at_end: bool) -> Result<()> {
        let Some(number) = number.filter(|&number| number < self.table.index.len()) else {
            return self.end(Ok(()));
        };
        if let Err(error) = self.enter(number) {
            return self.end(Err(error));
        }
        if at_end {
            self.index = self.count - 1;
        }
        self.take_entry()
    }

    /// Takes over the entry at `index`, if it could be read.
    #[inline]
    fn take_entry(&mut self) -> Result<()> {
        self.load_entry();
        if mapping_fault_seen() && self.intact().is_err() { self.end(Ok(())) } else { Ok(()) }
    }

    /// A step out of the block at hand.
    #[cold]
    fn leave_block(&mut self, backward: bool) -> Result<()> {
        if let Some(error) = &self.failure {
            return Err(repeat_error(error));
        }
        if self.count == 0 {
            return Ok(());
        }
        self.passed = self.passed.saturating_add(self.bytes().len());
        let number = if backward { self.number.checked_sub(1) } else { self.number.checked_add(1) };
        self.look_ahead(number, backward);
        self.start_block(number, backward)
    }

    /// Names what comes behind the next block, where the system would not find out by itself.
    fn look_ahead(&mut self, number: Option<usize>, backward: bool) {
        if !self.fill_cache || !self.table.mapped {
            return;
        }
        let Some(handle) = number.and_then(|number| self.table.index.handle(number)) else { return };
        let block = handle.offset..handle.offset.saturating_add(handle.bytes);
        let end = self.table.index.data_end();
        if let Some(range) = self.look_ahead.next(block, self.passed as u64, backward, end) {
            self.table.file.0.will_read(range.start, range.end - range.start);
        }
    }

    fn seek_in(&mut self, number: usize, key: &[u8], sequence: Sequence) -> Result<()> {
        self.enter(number)?;
        let Some(layout) = self.layout else { return Ok(()) };
        let index = layout.lower_bound(self.bytes(), key, sequence, self.table.order());
        if index >= layout.count {
            if !self.table.order().is_trusted() {
                // The comparator's fault; the search goes on where the index led.
                self.table.order().note_fault();
                return self.start_block(number.checked_add(1), false);
            }
            // The index says that the block's last entry is at or after the one sought.
            return Err(self.table.inconsistent(number));
        }
        self.index = index;
        self.take_entry()
    }
}

impl Cursor for TableCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.failure = None;
        self.prepared = None;
        self.start_block(Some(0), false)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.failure = None;
        self.prepared = None;
        self.start_block(self.table.index.len().checked_sub(1), true)
    }

    fn prepare(&mut self, key: &[u8], stage: usize) {
        if stage == 0 {
            let number = self.table.index.find(key, MAX_SEQUENCE);
            self.table.prefetch_block(number);
            self.prepared = Some(number);
            return;
        }
        let cached = self.prepared.and_then(|number| self.table.cached(number));
        if let Some(block) = cached.as_ref().and_then(|hit| hit.as_ref()) {
            if stage == 1 { block.prefetch_layout() } else { block.prefetch_keys() }
        }
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.failure = None;
        self.passed = 0;
        self.look_ahead.clear();
        let prepared = self.prepared.take().filter(|_| sequence == MAX_SEQUENCE);
        let number = prepared.unwrap_or_else(|| self.table.index.find(key, sequence));
        if number >= self.table.index.len() {
            return self.end(Ok(()));
        }
        match self.seek_in(number, key, sequence) {
            Ok(()) => Ok(()),
            error => self.end(error),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let next = self.index + 1;
        if next >= self.count {
            return self.leave_block(false);
        }
        self.index = next;
        self.take_entry()
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.index == 0 {
            return self.leave_block(true);
        }
        self.index -= 1;
        self.take_entry()
    }

    #[inline]
    fn valid(&self) -> bool {
        self.count != 0
    }

    fn plain_run(&mut self, search: PlainSearch<'_>) -> usize {
        let Some(layout) = self.layout else { return 0 };
        let plain = self.plain.unwrap_or_else(|| layout.is_plain(self.bytes()));
        self.plain = Some(plain);
        if !plain || self.table.summary.largest_sequence > search.sequence {
            return 0;
        }
        let bytes = self.bytes();
        let until = |key| layout.lower_bound(bytes, key, MAX_SEQUENCE, self.table.order());
        if !search.backward {
            let end = search.until.map_or(self.count, until);
            return end.saturating_sub(self.index + 1);
        }
        // The block before may end with a newer version of the first key.
        let first = search.until.map_or(0, |key| {
            let first = until(key);
            let is_key =
                first < layout.count && key.strip_prefix(layout.prefix(bytes)) == Some(layout.key_rest(bytes, first));
            first + usize::from(is_key)
        });
        self.index.saturating_sub(first.max(1))
    }

    #[inline]
    fn step_plain(&mut self, backward: bool) {
        let index = if backward { self.index.wrapping_sub(1) } else { self.index + 1 };
        if index < self.count {
            self.index = index;
            self.load_entry();
        }
    }

    #[inline]
    fn is_first_of_key(&self) -> bool {
        let Some(layout) = &self.layout else { return false };
        match self.index.checked_sub(1) {
            None => self.number == 0,
            Some(_) if !layout.has(SEQUENCES) => true,
            Some(before) => {
                let bytes = self.bytes();
                layout.key_rest(bytes, before) != layout.key_rest(bytes, self.index)
            }
        }
    }

    fn intact(&self) -> Result<()> {
        if mapping_fault_seen() && matches!(self.held, Held::InPlace(_)) {
            return self.table.file.0.check_mapping();
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.bytes().get(self.value.clone()).unwrap_or_default()
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            sequence: self.sequence,
            kind: self.kind,
            expiry_ms: self.expiry_ms,
            value: self.bytes().get(self.value.clone()).unwrap_or_default(),
        }
    }
}
