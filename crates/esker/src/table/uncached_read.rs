//! Point reads of blocks that are not in the cache.
//!
//! A block that the cache is going to keep is decompressed whole. Any other is decompressed only as
//! far as the search reads: the columns of keys, which come first, and the bytes up to the end of
//! the value. It goes into memory that the thread reuses for the next one, so that nothing is
//! allocated, counted or freed.

use super::block::{Block, HEADER_BYTES, Layout};
use super::format::{TRAILER_BYTES, codec_of};
use super::found_entry::{FoundEntry, Place};
use super::reader::Table;
use super::visit::{Visited, visit_block};
use crate::base::coding::DecodeError;
use crate::base::compression::{Partly, room_in};
use crate::base::key::Sequence;
use crate::base::slice::Pin;
use crate::error::Result;
use std::cell::Cell;

/// Larger blocks are decompressed whole: their values may be long, and are better pinned than
/// copied.
const MOST_BYTES: usize = 128 << 10;

/// The memory that a thread reuses: as long as the longest block of up to [`MOST_BYTES`] that it
/// came to.
#[derive(Default)]
struct Memory {
    /// For a block as it is in the file.
    stored: Vec<u8>,
    /// For a block that is unpacked.
    raw: Vec<u8>,
}

thread_local! {
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { stored: Vec::new(), raw: Vec::new() }) };
}

impl Table {
    /// [`visit_block`] for block `number`, which is neither in place nor in the cache.
    #[inline(never)]
    pub(super) fn visit_missed(
        &self,
        number: usize,
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<Visited> {
        let (handle, length) = self.located(number)?;
        let damaged = |error: DecodeError| self.damaged(handle.offset, error);
        if length > MOST_BYTES + TRAILER_BYTES {
            let block = self.load(number)?;
            let place = Place::Block(&block);
            return visit_block(block.bytes(), &block.layout, key, max_sequence, self.order(), place, visit)
                .map_err(damaged);
        }
        // Taken out, so that nothing is borrowed while foreign code is called. A thread that is
        // ending has none any more.
        let mut memory = MEMORY.try_with(Cell::take).unwrap_or_default();
        let visited = self.visit_missed_in(&mut memory, (number, handle.offset, length), key, max_sequence, visit);
        let _ = MEMORY.try_with(|kept| kept.set(memory));
        visited
    }

    fn visit_missed_in(
        &self,
        memory: &mut Memory,
        (number, offset, length): (usize, u64, usize),
        key: &[u8],
        max_sequence: Sequence,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<Visited> {
        let damaged = |error: DecodeError| self.damaged(offset, error);
        let stored = match self.in_mapping(number, offset, length) {
            Some(stored) => stored,
            None => {
                let stored = room_in(&mut memory.stored, length);
                self.file.0.read_at(offset, stored)?;
                stored
            }
        };
        let is_known = self.verified.unpacked.contains(number);
        let (content, compression) = self.content(stored, offset, is_known)?;
        let (raw_bytes, room) = self.raw_size(offset, (content, compression))?;
        let is_kept = self.cache.admits(Block::weight_of(room));
        if is_kept || raw_bytes > MOST_BYTES {
            let block = match is_kept {
                true => self.keep((number, offset), (content, compression), room)?,
                false => self.whole(offset, (content, compression))?,
            };
            self.note_unpacked(number, is_known);
            let place = Place::Block(&block);
            return visit_block(block.bytes(), &block.layout, key, max_sequence, self.order(), place, visit)
                .map_err(damaged);
        }
        let Some(codec) = codec_of(compression) else {
            let layout = Layout::parse(content).map_err(damaged)?;
            layout.validate(content).map_err(damaged)?;
            return visit_block(content, &layout, key, max_sequence, self.order(), Place::Passing, visit)
                .map_err(damaged);
        };
        let mut partly = Partly::new(codec, content, &mut memory.raw).map_err(damaged)?;
        let layout = Layout::of(partly.up_to(HEADER_BYTES).map_err(damaged)?, raw_bytes).map_err(damaged)?;
        if !is_known {
            layout.validate(partly.up_to(layout.values).map_err(damaged)?).map_err(damaged)?;
            self.note_unpacked(number, is_known);
        }
        visit_block(partly, &layout, key, max_sequence, self.order(), Place::Passing, visit).map_err(damaged)
    }
}
