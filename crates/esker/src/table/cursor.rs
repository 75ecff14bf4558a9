//! A position in a table. Stepping within a block is an index, and the key's rest copied behind the prefix that
//! is already there.

use super::block::{Block, EXPIRIES, KEY_OFFSETS, KINDS, Layout, SEQUENCES, copy_short};
use super::reader::Table;
use super::source::ReadAhead;
use crate::base::key::{Entry, Kind, NEVER, Sequence};
use crate::base::slice::Pin;
use crate::error::{Error, Result};
use crate::iter::Cursor;
use crate::iter::merging::repeat_error;
use std::ops::Range;
use std::sync::Arc;

impl Table {
    /// A cursor over all entries. Without `fill_cache` the blocks it loads are not kept in the cache: the way
    /// for compaction and other bulk reads.
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
    /// The block that `held` and `layout` are of.
    number: usize,
    held: Held,
    /// Entries in the block at hand; 0 while the cursor is not valid, whatever `held` is.
    count: usize,
    index: usize,
    layout: Option<Layout>,
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
    /// In the mapping: these bytes of the file.
    InPlace(Range<usize>),
}

impl TableCursor {
    fn new(table: Arc<Table>, fill_cache: bool) -> TableCursor {
        TableCursor {
            table,
            fill_cache,
            ahead: ReadAhead::default(),
            number: 0,
            held: Held::Nothing,
            count: 0,
            index: 0,
            layout: None,
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
        if self.number != number || self.layout.is_none() {
            self.layout = None;
            self.held = Held::Nothing;
            let (held, layout) = self.fetch(number)?;
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
        if let Some(place) = self.table.in_place(number)? {
            return Ok((Held::InPlace(place.start..place.start + place.bytes.len()), place.layout));
        }
        let ahead = if self.fill_cache { None } else { Some(&mut self.ahead) };
        let block = self.table.owned(number, self.fill_cache, ahead)?.into_block();
        let block = block.ok_or_else(|| self.table.inconsistent(number))?;
        let layout = block.layout;
        Ok((Held::Block(block), layout))
    }

    /// Makes the cursor invalid, and unusable as well if `result` is an error.
    fn end(&mut self, result: Result<()>) -> Result<()> {
        self.count = 0;
        self.index = 0;
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
        self.load_entry();
        Ok(())
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
        let number = if backward { self.number.checked_sub(1) } else { self.number.checked_add(1) };
        self.start_block(number, backward)
    }

    fn seek_in(&mut self, number: usize, key: &[u8], sequence: Sequence) -> Result<()> {
        self.enter(number)?;
        let Some(layout) = self.layout else { return Ok(()) };
        let index = layout.lower_bound(self.bytes(), key, sequence);
        if index >= layout.count {
            // The index says that the block's last entry is at or after the one sought.
            return Err(self.table.inconsistent(number));
        }
        self.index = index;
        self.load_entry();
        Ok(())
    }
}

impl Cursor for TableCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.failure = None;
        self.start_block(Some(0), false)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.failure = None;
        self.start_block(self.table.index.len().checked_sub(1), true)
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.failure = None;
        let number = self.table.index.find(key, sequence);
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
        self.load_entry();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.index == 0 {
            return self.leave_block(true);
        }
        self.index -= 1;
        self.load_entry();
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.count != 0
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
