//! Point reads of blocks that are not in the cache.
//!
//! A block that the cache is going to keep is made whole. Any other is unpacked only as far as the search looks: the columns of keys, which come first, and
//! what lies before the end of the value. It goes into memory that the thread uses again for the next one, so that nothing is allocated, counted or freed.

use super::block::{Block, HEADER_BYTES, Layout};
use super::compress::{LZ4, Partly, STORED, decompress, split_size};
use super::format::{split, unseal};
use super::reader::Table;
use super::version::{Place, Version};
use super::visit::{Visited, visit_block};
use crate::base::key::Sequence;
use crate::base::slice::Pin;
use crate::error::Result;
use std::cell::Cell;
use std::sync::Arc;

/// Larger blocks are made whole: their values may be long, and are better pinned than copied.
const MOST_BYTES: usize = 128 << 10;

/// What a thread uses again.
#[derive(Default)]
struct Memory {
    /// For a block as it is in the file.
    stored: Vec<u8>,
    /// For a block that is unpacked.
    raw: Vec<u8>,
}

thread_local! {
    static MEMORY: Cell<Memory> = Cell::default();
}

impl Table {
    /// [`visit_block`] for block `number`, which is neither in place nor in the cache.
    #[inline(never)]
    pub(super) fn visit_missed(
        &self,
        number: usize,
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(Version<'_>) -> bool,
    ) -> Result<Option<Visited>> {
        // Taken out, so that nothing is borrowed while strangers are called. A thread that is ending has none any more.
        let mut memory = MEMORY.try_with(Cell::take).unwrap_or_default();
        let visited = self.visit_missed_in(&mut memory, number, key, max_sequence, visit);
        if memory.stored.capacity() <= MOST_BYTES {
            let _ = MEMORY.try_with(|kept| kept.set(memory));
        }
        visited
    }

    fn visit_missed_in(
        &self,
        memory: &mut Memory,
        number: usize,
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(Version<'_>) -> bool,
    ) -> Result<Option<Visited>> {
        let (handle, length) = self.located(number)?;
        let offset = handle.offset;
        let damaged = |error| self.damaged(offset, error);
        let stored = self.stored(number, &mut memory.stored, (offset, length))?;
        // In the mapping a block is checked once.
        let is_good = self.verified.good.contains(number);
        let (content, compression) = match split(stored) {
            Some((content, LZ4, _)) if is_good => (content, LZ4),
            _ => unseal(stored, &self.path, self.file_number, offset)?,
        };
        let raw_bytes = if compression == STORED { content.len() } else { split_size(content).map_err(damaged)?.0 };
        let kept = self.cache.admits(Block::weight_of(raw_bytes));
        if kept || raw_bytes > MOST_BYTES {
            let bytes = match compression {
                STORED => content.to_vec(),
                _ => decompress(content, Vec::new()).map_err(damaged)?,
            };
            let block = Arc::new(Block::new(bytes).map_err(damaged)?.charged(&self.cache));
            self.verified.good.insert(number);
            let block = if kept { self.cache.insert(&self.slots, number, block) } else { block };
            return Ok(visit_block(block.bytes(), &block.layout, key, max_sequence, Place::Block(&block), visit));
        }
        if compression == STORED {
            let layout = Layout::parse(content).map_err(damaged)?;
            layout.validate(content).map_err(damaged)?;
            return Ok(visit_block(content, &layout, key, max_sequence, Place::Passing, visit));
        }
        let mut partly = Partly::new(content, &mut memory.raw).map_err(damaged)?;
        let layout = Layout::of(partly.up_to(HEADER_BYTES).map_err(damaged)?, raw_bytes).map_err(damaged)?;
        if !is_good {
            layout.validate(partly.up_to(layout.values).map_err(damaged)?).map_err(damaged)?;
            self.verified.good.insert(number);
        }
        Ok(visit_block(partly, &layout, key, max_sequence, Place::Passing, visit))
    }
}
