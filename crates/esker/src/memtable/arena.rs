//! The memory of a memtable: one block of entries, appended to by one writer, read by anyone.
//!
//! This file and `index.rs` are the only ones of the memtable with `unsafe`. What makes it sound:
//! 1. Only the owner of the arena's one [`Appender`] appends, and only behind all that was appended
//!    before.
//! 2. An entry's key, value and expiry are written before its offset is published, with a release
//!    store, in the index or in the published length; readers learn offsets only from those, with
//!    acquire loads.
//! 3. After publication the only bytes that change are the header words and the values of exactly
//!    eight bytes; both are read and written as atomics only, never through a plain reference.
//!    Headers are changed by the writer alone, such values by any thread.
//!
//! ```text
//! entry, at an offset divisible by 8:
//!   0  u64  sequence << 8 | kind
//!   8  u32  offset / 8 of the next older version of the key that a snapshot may still need, 0 for none
//!  12  u32  key length
//!  16  u32  value length
//!  20  u32  flags: 1 dead (superseded, and no snapshot can see it), 2 an expiry follows; above the lowest eight bits, merge operands in a row from here
//!           through the older versions
//!  24  [u64 expiry]  key, padding to 8, value, padding to 8
//! ```

use crate::base::key::{Kind, NEVER, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::memory::{Memory, MemoryPool};
use crate::base::prefetch::prefetch_address;
use crate::base::sync::{AtomicU32, AtomicU64, raw};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Offset of the first entry: 0 means "none" in the index.
pub(super) const START: usize = 8;
const HEADER_BYTES: usize = 24;
/// Cache lines of an entry of about a hundred bytes.
const ENTRY_LINES: usize = 3;
const OLDER_AT: usize = 8;
const KEY_LENGTH_AT: usize = 12;
const VALUE_LENGTH_AT: usize = 16;
const FLAGS_AT: usize = 20;
const DEAD: u32 = 1;
const HAS_EXPIRY: u32 = 2;
const CHAIN_SHIFT: u32 = 8;
/// The longest chain that is counted.
pub(super) const MOST_CHAIN: u32 = u32::MAX >> CHAIN_SHIFT;

/// Offsets fit 32 bits in units of eight bytes.
pub const MAX_ARENA_BYTES: usize = 32 << 30;

fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

/// The arena bytes of an entry.
pub fn entry_bytes(key_length: usize, value_length: usize, expiry_ms: u64) -> usize {
    let expiry = if expiry_ms == NEVER { 0 } else { 8 };
    HEADER_BYTES + expiry + padded(key_length) + padded(value_length)
}

/// See the module's comment.
pub struct Arena {
    memory: Memory,
    /// Which appender is its own.
    number: u64,
    /// That of the keys.
    order: KeyOrder,
}

/// The right to append to one arena. There is one, made with the arena: its owner is the one
/// writer.
#[derive(Debug)]
pub struct Appender {
    arena: u64,
    end: usize,
}

impl Appender {
    /// Where the next entry will be.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }
}

// SAFETY: shared access to the memory follows the three rules of the module's comment.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena for `capacity` bytes of entries with keys in the bytewise order, which the system
    /// backs with memory as it is touched, with the right to append to it.
    pub fn new(capacity: usize, pool: &Arc<MemoryPool>) -> (Arena, Appender) {
        // Never used again, unlike an address.
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let memory = pool.take(padded(capacity.saturating_add(START).clamp(64, MAX_ARENA_BYTES)));
        (Arena { memory, number, order: KeyOrder::Bytewise }, Appender { arena: number, end: START })
    }

    /// This arena, for keys in another order.
    pub fn in_order(self, order: KeyOrder) -> Arena {
        Arena { order, ..self }
    }

    /// The order of the keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    #[inline]
    pub fn capacity(&self) -> usize {
        self.memory.bytes()
    }

    /// Has the first `end` bytes backed with memory.
    pub fn touch_until(&self, end: usize) {
        self.memory.touch_until(end);
    }

    /// How many of the first bytes are known to be backed.
    pub fn touched(&self) -> usize {
        self.memory.touched()
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.capacity());
        // SAFETY: in bounds and aligned (checked); words reached this way are only ever accessed as
        // atomics (rule 3).
        unsafe { raw::word(self.memory.start().as_ptr().add(at)) }
    }

    #[inline]
    fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.capacity());
        // SAFETY: in bounds and aligned (checked); header halves are only ever accessed as 32-bit
        // atomics (rule 3).
        unsafe { raw::half(self.memory.start().as_ptr().add(at)) }
    }

    #[inline]
    fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at <= self.capacity() && length <= self.capacity() - at);
        // SAFETY: in bounds (checked), initialised (memory from the pool was zeroed once), and
        // immutable: callers ask only for the keys and for the values not eight bytes long of
        // published entries (rules 2 and 3).
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().add(at), length) };
        raw::reads(bytes.as_ptr(), length);
        bytes
    }

    /// Writes bytes of an entry that is not published yet.
    ///
    /// # Safety
    /// `at` is not before the end of the arena's appender, which the caller has.
    #[inline]
    unsafe fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.capacity() && bytes.len() <= self.capacity() - at);
        raw::writes(self.memory.start().as_ptr().wrapping_add(at), bytes.len());
        // SAFETY: in bounds (checked); nothing else refers to these bytes before the entry is
        // published (rule 2), and the caller is the only writer (it promises it). `bytes` is a
        // shared reference to other memory: no references into an unpublished part exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.start().as_ptr().add(at), bytes.len()) }
    }

    /// Appends a whole entry, not published yet, and returns where it is. `chain`: see
    /// [`Stored::chain`].
    pub(super) fn append(
        &self,
        appender: &mut Appender,
        entry: &crate::base::key::Entry<'_>,
        older: u32,
        chain: u32,
    ) -> usize {
        assert_eq!(appender.arena, self.number, "the appender is another arena's");
        let at = appender.end;
        let has_expiry = entry.expiry_ms != NEVER;
        self.word(at).store(entry.sequence << 8 | entry.kind as u64, Relaxed);
        self.half(at + OLDER_AT).store(older, Relaxed);
        self.half(at + KEY_LENGTH_AT).store(entry.key.len() as u32, Relaxed);
        self.half(at + VALUE_LENGTH_AT).store(entry.value.len() as u32, Relaxed);
        let flags = chain.min(MOST_CHAIN) << CHAIN_SHIFT | if has_expiry { HAS_EXPIRY } else { 0 };
        self.half(at + FLAGS_AT).store(flags, Relaxed);
        let mut next = at + HEADER_BYTES;
        if has_expiry {
            self.word(next).store(entry.expiry_ms, Relaxed);
            next += 8;
        }
        // SAFETY: behind the end of the arena's own appender (checked), which is borrowed uniquely
        // until it moves.
        unsafe { self.write(next, entry.key) };
        next += padded(entry.key.len());
        match entry.value.try_into() {
            Ok(eight) => self.word(next).store(u64::from_le_bytes(eight), Relaxed),
            // SAFETY: as above.
            Err(_) => unsafe { self.write(next, entry.value) },
        }
        appender.end = next + padded(entry.value.len());
        at
    }

    /// The published entry at `at`.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Stored<'_> {
        Stored { arena: self, at }
    }

    /// Starts loading the entry at this many times eight bytes.
    #[inline]
    pub(super) fn prefetch(&self, offset: u32) {
        self.prefetch_entry(offset as usize * 8);
    }

    /// Starts loading the entry at `at`.
    #[inline]
    pub(super) fn prefetch_entry(&self, at: usize) {
        prefetch_address(self.memory.start().as_ptr().addr() + at, ENTRY_LINES);
    }

    /// The published entry at this many times eight bytes, which is how offsets are kept in four
    /// bytes.
    #[inline]
    pub(super) fn stored(&self, offset: u32) -> Stored<'_> {
        self.entry(offset as usize * 8)
    }
}

/// A published entry in an arena.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    arena: &'a Arena,
    at: usize,
}

impl<'a> Stored<'a> {
    #[inline]
    pub fn sequence(&self) -> Sequence {
        self.arena.word(self.at).load(Relaxed) >> 8
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.arena.word(self.at).load(Relaxed) as u8).expect("only kinds are stored there")
    }

    /// Moves the entry to a later write that was folded into it.
    #[inline]
    pub fn set_sequence(&self, _writer: &mut Appender, sequence: Sequence) {
        self.arena.word(self.at).store(sequence << 8 | self.kind() as u64, Relaxed);
    }

    /// The offset of the next older version, if a snapshot may need it.
    #[inline]
    pub fn older(&self) -> Option<usize> {
        match self.arena.half(self.at + OLDER_AT).load(Relaxed) {
            0 => None,
            units => Some(units as usize * 8),
        }
    }

    /// Merge operands in a row from here through the older versions; 0 if this is none.
    #[inline]
    pub fn chain(&self) -> u32 {
        self.arena.half(self.at + FLAGS_AT).load(Relaxed) >> CHAIN_SHIFT
    }

    #[inline]
    pub fn is_dead(&self) -> bool {
        self.arena.half(self.at + FLAGS_AT).load(Relaxed) & DEAD != 0
    }

    /// Whether this is a put that a reader at `sequence` sees, and that never expires. Once it is,
    /// it is until that reader leaves.
    #[inline]
    pub fn is_plain(&self, sequence: Sequence) -> bool {
        let word = self.arena.word(self.at).load(Relaxed);
        let flags = self.arena.half(self.at + FLAGS_AT).load(Relaxed);
        word as u8 == Kind::Put as u8 && word >> 8 <= sequence && flags & (DEAD | HAS_EXPIRY) == 0
    }

    /// Marks the entry as superseded and invisible to every snapshot.
    #[inline]
    pub fn set_dead(&self, _writer: &mut Appender) {
        let flags = self.arena.half(self.at + FLAGS_AT);
        flags.store(flags.load(Relaxed) | DEAD, Relaxed);
    }

    #[inline]
    pub(super) fn has_expiry(&self) -> bool {
        self.arena.half(self.at + FLAGS_AT).load(Relaxed) & HAS_EXPIRY != 0
    }

    #[inline]
    pub fn expiry_ms(&self) -> u64 {
        if self.has_expiry() { self.arena.word(self.at + HEADER_BYTES).load(Relaxed) } else { NEVER }
    }

    #[inline]
    fn key_at(&self) -> usize {
        self.at + HEADER_BYTES + if self.has_expiry() { 8 } else { 0 }
    }

    #[inline]
    fn key_length(&self) -> usize {
        self.arena.half(self.at + KEY_LENGTH_AT).load(Relaxed) as usize
    }

    #[inline]
    pub fn value_length(&self) -> usize {
        self.arena.half(self.at + VALUE_LENGTH_AT).load(Relaxed) as usize
    }

    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.arena.bytes(self.key_at(), self.key_length())
    }

    #[inline]
    fn value_at(&self) -> usize {
        self.key_at() + padded(self.key_length())
    }

    /// The value. One of exactly eight bytes may be changed by the writer at any time, so it is
    /// copied, into `eight`.
    #[inline]
    pub fn value<'b>(&self, eight: &'b mut [u8; 8]) -> &'b [u8]
    where
        'a: 'b,
    {
        if let Some(found) = self.eight() {
            *eight = found.get().to_le_bytes();
            return eight;
        }
        self.long_value()
    }

    /// The value, which must not have exactly eight bytes.
    #[inline]
    pub fn long_value(&self) -> &'a [u8] {
        let length = self.value_length();
        assert_ne!(length, 8);
        self.arena.bytes(self.value_at(), length)
    }

    /// The value if it has exactly eight bytes.
    #[inline]
    pub fn eight(&self) -> Option<Eight<'a>> {
        if self.value_length() == 8 { Some(Eight(self.arena.word(self.value_at()))) } else { None }
    }

    /// The offset behind the entry.
    #[inline]
    pub fn end(&self) -> usize {
        self.value_at() + padded(self.value_length())
    }
}

/// A value of exactly eight bytes, a little-endian number, which any thread may change in one step.
#[derive(Clone, Copy)]
pub struct Eight<'a>(&'a AtomicU64);

impl Eight<'_> {
    #[inline]
    pub fn get(self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub fn set(self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to it, wrapping around.
    #[inline]
    pub fn add(self, operand: u64) {
        self.0.fetch_add(operand, Relaxed);
    }
}
