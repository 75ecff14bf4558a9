//! Values of the benchmarks: consecutive slices of one pool of text that shrinks to a chosen
//! fraction under LZ-class codecs.

use crate::random::LehmerRandom;

const POOL_BYTES: usize = 1_048_576;
const PIECE_BYTES: usize = 100;
const POOL_SEED: u32 = 301;

/// The pool: pieces of 100 bytes, each a few random printable bytes repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePool {
    bytes: Vec<u8>,
}

impl ValuePool {
    /// The pool for a compression ratio; it is the same in every run and every thread.
    pub fn new(ratio: f64) -> ValuePool {
        let mut random = LehmerRandom::new(POOL_SEED);
        let raw = ((PIECE_BYTES as f64 * ratio) as usize).clamp(1, PIECE_BYTES);
        let mut bytes = Vec::with_capacity(POOL_BYTES + PIECE_BYTES);
        while bytes.len() < POOL_BYTES {
            let start = bytes.len();
            bytes.extend((0..raw).map(|_| b' ' + random.uniform(95) as u8));
            for at in raw..PIECE_BYTES {
                bytes.push(bytes[start + at % raw]);
            }
        }
        ValuePool { bytes }
    }

    /// The size of every pool, which every value must be smaller than.
    pub const BYTES: usize = POOL_BYTES.next_multiple_of(PIECE_BYTES);

    /// A reader at the pool's beginning: each benchmark starts there, so operation i always writes
    /// the same bytes.
    pub fn cursor(&self) -> ValueCursor<'_> {
        ValueCursor { pool: &self.bytes, position: 0 }
    }
}

/// Hands out the values one after another.
#[derive(Debug, Clone)]
pub struct ValueCursor<'a> {
    pool: &'a [u8],
    position: usize,
}

impl<'a> ValueCursor<'a> {
    /// The next `size` bytes; from the beginning again if they do not fit. At most the whole pool.
    #[inline]
    pub fn slice(&mut self, size: usize) -> &'a [u8] {
        let size = size.min(self.pool.len());
        if self.position + size > self.pool.len() {
            self.position = 0;
        }
        let value = &self.pool[self.position..self.position + size];
        self.position += size;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fnv1a(bytes: &[u8]) -> u32 {
        bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }

    #[test]
    fn pools_are_the_published_ones() {
        let half = ValuePool::new(0.5);
        assert_eq!(half.bytes.len(), 1_048_600);
        assert_eq!(&half.bytes[..20], b"^{Vhz\"!/%wMZ;'a F/RE");
        assert_eq!(fnv1a(&half.bytes), 0xc94c_ab69);
        assert_eq!(fnv1a(&ValuePool::new(1.0).bytes), 0x516f_fff6);
    }

    #[test]
    fn values_wrap_and_never_exceed_the_pool() {
        let pool = ValuePool::new(0.5);
        let mut values = pool.cursor();
        assert_eq!(values.slice(100), &pool.bytes[..100]);
        assert_eq!(values.slice(100), &pool.bytes[100..200]);
        assert_eq!(values.slice(1_048_500), &pool.bytes[..1_048_500]);
        assert_eq!(values.slice(usize::MAX).len(), pool.bytes.len());
        assert_eq!(ValuePool::new(0.0).bytes.len(), 1_048_600);
        assert_eq!(ValuePool::new(7.0), ValuePool::new(1.0));
    }
}
