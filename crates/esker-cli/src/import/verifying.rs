//! Reads both sides of an import once more, and compares how many pairs there are and a hash of all
//! of them in their order.

use super::source_error::refused;
use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use esker::{Comparator, Keyspace, ReverseBytewise};
use esker_engines::import::Source;
use std::hash::Hasher;
use twox_hash::XxHash3_64;

/// What one side holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// How many pairs.
    pub pairs: u64,
    /// The bytes of keys and values.
    pub bytes: u64,
    /// XXH3 of each pair: the length of the key, the key, the length of the value, the value.
    pub hash: u64,
}

struct Adding {
    sum: Sum,
    hasher: XxHash3_64,
}

impl Adding {
    fn new() -> Adding {
        Adding { sum: Sum { pairs: 0, bytes: 0, hash: 0 }, hasher: XxHash3_64::new() }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.sum.pairs += 1;
        self.sum.bytes += (key.len() + value.len()) as u64;
        for part in [key, value] {
            self.hasher.write(&(part.len() as u64).to_le_bytes());
            self.hasher.write(part);
        }
    }

    fn finish(mut self) -> Sum {
        self.sum.hash = self.hasher.finish();
        self.sum
    }
}

/// Compares the sides. `expected`: the pairs that were copied, for the progress.
pub fn verify(source: &mut dyn Source, keyspace: &Keyspace, expected: u64) -> Result<Sum, Failure> {
    let mut progress = Progress::new("verifying", Unit::Records, Some(expected.saturating_mul(2)));
    let mut there = Adding::new();
    let read = source.read(None, &mut |key, value| {
        there.add(key, value);
        progress.set(there.sum.pairs);
        true
    });
    read.map_err(refused)?;
    let there = there.finish();
    let mut here = Adding::new();
    let mut cursor = keyspace.cursor()?;
    // The source is in the order of bytes, which is that of the keyspace or its reverse: in a
    // database with any other order of keys, this command opens nothing.
    let is_reverse = keyspace.comparator() == ReverseBytewise.name();
    if is_reverse { cursor.seek_to_last() } else { cursor.seek_to_first() }?;
    while cursor.valid() {
        here.add(cursor.key(), cursor.value());
        progress.set(there.pairs + here.sum.pairs);
        if is_reverse { cursor.prev() } else { cursor.next() }?;
    }
    let here = here.finish();
    if here == there {
        return Ok(here);
    }
    let side = |sum: Sum| format!("{} pairs, {} bytes, hash {:016x}", sum.pairs, sum.bytes, sum.hash);
    let what = format!("the copy is not the source: {} here, {} there", side(here), side(there));
    Err(Failure::Operation(format!("{what}; something wrote to one of them: import into another keyspace")))
}
