//! A hash of all entries that does not depend on their order, and a sample of them looked up again.
//!
//! ```text
//! entry hash   = xxh3_128(key length:u64 LE, key, value length:u64 LE, value)
//! content hash = xxh3_128(entries:u64 LE, bytes of keys and values:u64 LE, sum of the entry hashes modulo 2^128:u128 LE)
//! sample       = the entries with the least entry hashes: the same ones in every engine that holds the same
//! ```

use super::scan::every_entry;
use crate::interrupt::Interrupt;
use crate::record::Verification;
use esker_engines::{Engine, Result, Session};
use std::collections::BinaryHeap;
use twox_hash::XxHash3_128;

/// Entries that are looked up again.
pub const SAMPLE: usize = 1000;

/// Reads everything once and a sample once more; `None` if interrupted. With `expiring`, entries
/// may go by themselves: one that is neither found nor seen by another scan any more is left out of
/// the sample.
pub fn verify(engine: &dyn Engine, expiring: bool, interrupt: &Interrupt) -> Result<Option<Verification>> {
    let mut session = engine.session()?;
    let (mut content, mut sample) = (Content::default(), Sample::default());
    let whole = every_entry(session.as_mut(), interrupt, |key, value| {
        let hash = content.add(key, value);
        sample.offer(hash, key);
    })?;
    if !whole {
        return Ok(None);
    }
    let mut value = Vec::new();
    let (mut sampled, mut mismatches) = (0, 0);
    // By hash, and so in no order that an engine could profit from.
    for (hash, key) in sample.0.into_sorted_vec() {
        let found = session.get(&key, &mut value)?;
        if expiring && !found && !is_seen(session.as_mut(), &key)? {
            continue;
        }
        sampled += 1;
        mismatches += u64::from(!found || content.entry_hash(&key, &value) != hash);
    }
    Ok(Some(Verification { entries: content.entries, content_hash: content.hash(), sampled, mismatches }))
}

/// Whether a scan sees the key.
fn is_seen(session: &mut dyn Session, key: &[u8]) -> Result<bool> {
    let mut iteration = session.iterate()?;
    Ok(iteration.seek(key)? && iteration.key() == key)
}

/// What has been seen so far.
#[derive(Debug, Default)]
struct Content {
    entries: u64,
    bytes: u64,
    sum: u128,
    buffer: Vec<u8>,
}

impl Content {
    /// Adds an entry, and returns its hash.
    fn add(&mut self, key: &[u8], value: &[u8]) -> u128 {
        let hash = self.entry_hash(key, value);
        self.entries += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.sum = self.sum.wrapping_add(hash);
        hash
    }

    fn entry_hash(&mut self, key: &[u8], value: &[u8]) -> u128 {
        self.buffer.clear();
        for part in [key, value] {
            self.buffer.extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.buffer.extend_from_slice(part);
        }
        XxHash3_128::oneshot(&self.buffer)
    }

    fn hash(&self) -> String {
        let mut all = Vec::with_capacity(32);
        all.extend_from_slice(&self.entries.to_le_bytes());
        all.extend_from_slice(&self.bytes.to_le_bytes());
        all.extend_from_slice(&self.sum.to_le_bytes());
        format!("{:032x}", XxHash3_128::oneshot(&all))
    }
}

/// The entries with the least hashes; the greatest of them is on top.
#[derive(Debug, Default)]
struct Sample(BinaryHeap<(u128, Vec<u8>)>);

impl Sample {
    fn offer(&mut self, hash: u128, key: &[u8]) {
        if self.0.len() == SAMPLE {
            if self.0.peek().is_none_or(|(greatest, _)| hash >= *greatest) {
                return;
            }
            self.0.pop();
        }
        self.0.push((hash, key.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(entries: &[(&[u8], &[u8])]) -> String {
        let mut content = Content::default();
        for (key, value) in entries {
            content.add(key, value);
        }
        content.hash()
    }

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let one = content(&[(b"a", b"1"), (b"b", b"2")]);
        assert_eq!(one.len(), 32);
        assert_eq!(one, content(&[(b"b", b"2"), (b"a", b"1")]));
        for other in [
            content(&[]),
            content(&[(b"a", b"1")]),
            content(&[(b"a", b"2"), (b"b", b"1")]),
            content(&[(b"a1", b""), (b"b", b"2")]),
            content(&[(b"a", b"1"), (b"b", b"2"), (b"b", b"2")]),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_sample_does_not_depend_on_the_order() {
        let keys: Vec<Vec<u8>> = (0..5000u32).map(|number| number.to_le_bytes().to_vec()).collect();
        let sample = |keys: &mut dyn Iterator<Item = &Vec<u8>>| {
            let (mut content, mut sample) = (Content::default(), Sample::default());
            keys.for_each(|key| {
                let hash = content.add(key, b"");
                sample.offer(hash, key);
            });
            sample.0.into_sorted_vec()
        };
        let forward = sample(&mut keys.iter());
        assert_eq!(forward.len(), SAMPLE);
        assert_eq!(forward, sample(&mut keys.iter().rev()));
    }
}
