//! Keys of the benchmarks: a number in decimal, zero padded, so that the order of bytes is the
//! order of numbers.
//!
//! ```text
//! key = prefix "a" * key_prefix, digits of the number padded with "0" to key_size (16 by default)
//! ```

/// The fewest digits a key may have.
pub const MIN_KEY_SIZE: usize = 16;

const PAIRS: [u8; 200] = {
    let mut table = [0u8; 200];
    let mut i = 0;
    while i < 100 {
        table[2 * i] = b'0' + (i / 10) as u8;
        table[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    table
};

/// A buffer that holds one key at a time; setting it allocates nothing.
#[derive(Debug, Clone)]
pub struct KeyBuffer {
    bytes: Vec<u8>,
    /// The upper digits in the buffer, as a number: they seldom change, and then need no
    /// formatting.
    high: u64,
}

impl KeyBuffer {
    /// A buffer for keys with `prefix` leading bytes and `size` digits (at least [`MIN_KEY_SIZE`]),
    /// holding key 0.
    pub fn new(prefix: usize, size: usize) -> KeyBuffer {
        let mut bytes = vec![b'a'; prefix];
        bytes.resize(prefix + size.max(MIN_KEY_SIZE), b'0');
        KeyBuffer { bytes, high: 0 }
    }

    /// Makes this the key of `number`, of which only the last 16 digits count.
    #[inline]
    pub fn set(&mut self, number: u64) {
        let (high, low) = (number / 100_000_000, number % 100_000_000);
        let end = self.bytes.len();
        if high != self.high {
            write_eight(&mut self.bytes[end - 16..end - 8], (high % 100_000_000) as u32);
            self.high = high;
        }
        write_eight(&mut self.bytes[end - 8..], low as u32);
    }

    /// The key.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number that a key of this form stands for; `None` if it has another form.
    #[inline]
    pub fn number_of(&self, key: &[u8]) -> Option<u64> {
        let digits = key.len().checked_sub(MIN_KEY_SIZE)?;
        // What stands before the last 16 digits is the same in every key.
        if key.len() != self.bytes.len() || key[..digits] != self.bytes[..digits] {
            return None;
        }
        key[digits..]
            .iter()
            .try_fold(0u64, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
    }
}

#[inline]
fn write_eight(out: &mut [u8], number: u32) {
    let (high, low) = (number / 10_000, number % 10_000);
    for (at, pair) in [high / 100, high % 100, low / 100, low % 100].into_iter().enumerate() {
        let from = 2 * pair as usize;
        out[2 * at] = PAIRS[from];
        out[2 * at + 1] = PAIRS[from + 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_zero_padded_decimals() {
        let mut key = KeyBuffer::new(0, 16);
        for number in [0, 7, 99_999_999, 100_000_000, 3, 1_234_567_890_123_456, 9_999_999_999_999_999] {
            key.set(number);
            assert_eq!(key.bytes(), format!("{number:016}").as_bytes());
        }
        let mut key = KeyBuffer::new(3, 20);
        key.set(42);
        assert_eq!(key.bytes(), b"aaa00000000000000000042");
    }

    #[test]
    fn keys_give_their_number_back() {
        for (prefix, size) in [(0, 16), (3, 20)] {
            let mut key = KeyBuffer::new(prefix, size);
            let parser = key.clone();
            for number in [0, 7, 100_000_000, 9_999_999_999_999_999] {
                key.set(number);
                assert_eq!(parser.number_of(key.bytes()), Some(number));
            }
        }
        let parser = KeyBuffer::new(1, 17);
        for other in
            [&b""[..], b"17", b"a0000000000000001", b"b00000000000000001", b"a10000000000000001", b"a0000000000000000x"]
        {
            assert_eq!(parser.number_of(other), None);
        }
    }
}
