//! A writer whose every write says which one it was, so that what was acknowledged can be told from
//! one number.
//!
//! Write number n goes to slot (n - 1) mod `slots`, and its value is a function of the seed, the
//! writer and n. A slot must hold the last acknowledged write to it; the one write that failed last
//! may be there or not, unless it was refused because writes are stalled: then it is not there.

use crate::Checked;
use crate::random::Random;
use crate::state::shown;
use esker::{Error, Keyspace, StallPolicy, WriteOptions};
use std::ops::RangeInclusive;

/// One of these in so many writes is synced.
const WRITES_PER_SYNC: u64 = 512;

/// A writer, and what it knows to be stored. Several may write to one keyspace.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The seed of the values.
    pub seed: u64,
    /// Which one of several.
    pub id: u64,
    /// Keys that it writes to in turn.
    pub slots: u64,
    /// Bytes of a value; at least 8.
    pub value_bytes: usize,
    /// Writes that were acknowledged: numbers 1 to this.
    pub acknowledged: u64,
    /// The write after those was tried and failed.
    pub in_doubt: bool,
}

impl Writer {
    /// One that has written nothing.
    pub fn new(seed: u64, id: u64, slots: u64, value_bytes: usize) -> Writer {
        Writer { seed, id, slots, value_bytes, acknowledged: 0, in_doubt: false }
    }

    /// What all its keys begin with.
    pub fn prefix(&self) -> String {
        format!("{:03}/", self.id)
    }

    /// The key of a write. Neighbours of the order of writing are none of the order of keys.
    pub fn key(&self, number: u64) -> Vec<u8> {
        let slot = (number - 1) % self.slots;
        format!("{}{:016x}", self.prefix(), slot.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
    }

    /// The value of a write; nothing compresses it.
    pub fn value(&self, number: u64) -> Vec<u8> {
        let mut random = Random::derived(self.seed, &[self.id, number]);
        let mut bytes = number.to_le_bytes().to_vec();
        while bytes.len() < self.value_bytes {
            bytes.extend_from_slice(&random.next().to_le_bytes());
        }
        bytes.truncate(self.value_bytes.max(8));
        bytes
    }

    /// The next write; after a failure the same one again.
    pub fn step(&mut self, keyspace: &Keyspace) -> esker::Result<()> {
        self.step_with(keyspace, StallPolicy::Wait)
    }

    /// The same with this policy.
    pub fn step_with(&mut self, keyspace: &Keyspace, policy: StallPolicy) -> esker::Result<()> {
        let number = self.acknowledged + 1;
        let options = WriteOptions::new().sync(number.is_multiple_of(WRITES_PER_SYNC)).stall(policy);
        let was_in_doubt = std::mem::replace(&mut self.in_doubt, true);
        let outcome = keyspace.put_with(self.key(number), self.value(number), &options);
        if let Err(Error::WriteStalled { .. }) = &outcome {
            self.in_doubt = was_in_doubt;
        }
        outcome?;
        self.acknowledged = number;
        self.in_doubt = false;
        Ok(())
    }

    /// The writes that must be there.
    pub fn present(&self) -> RangeInclusive<u64> {
        self.acknowledged.saturating_sub(self.slots) + 1..=self.acknowledged
    }

    /// Whether a slot may hold this write.
    fn allows(&self, number: u64) -> bool {
        self.present().contains(&number) || self.in_doubt && number == self.acknowledged + 1
    }

    /// Compares what a scan of its keys has yielded, and says how many there were.
    pub fn check<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl Iterator<Item = esker::Result<(K, V)>>,
    ) -> Checked<u64> {
        let (mut found, mut doubtful, mut last) = (0, 0, Vec::new());
        for pair in pairs {
            let (key, value) = pair.map_err(|error| format!("a scan failed: {error}"))?;
            let (key, value) = (key.as_ref(), value.as_ref());
            if key <= &last[..] {
                return Err(format!("{} comes after {}", shown(key), shown(&last)));
            }
            last = key.to_vec();
            let number = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if number == 0 || !self.allows(number) || key != self.key(number) || value != self.value(number) {
                let (id, acknowledged) = (self.id, self.acknowledged);
                let key = shown(key);
                return Err(format!("{key} holds write {number} of writer {id}, which acknowledged {acknowledged}"));
            }
            found += 1;
            // With a free slot for it, the write in doubt is a key more.
            doubtful += u64::from(number > self.acknowledged && self.acknowledged < self.slots);
        }
        let expected = self.acknowledged.min(self.slots);
        if found - doubtful != expected {
            return Err(format!("{} keys of writer {} are there, {expected} must be", found - doubtful, self.id));
        }
        Ok(found)
    }

    /// Compares one write with what a get has found.
    pub fn check_get(&self, number: u64, found: Option<&[u8]>) -> Checked<()> {
        let next = self.acknowledged + 1;
        let replaced = self.in_doubt && self.key(next) == self.key(number) && found == Some(&self.value(next)[..]);
        if found == Some(&self.value(number)[..]) || replaced {
            return Ok(());
        }
        let found = found.map_or("nothing".to_string(), shown);
        Err(format!("a get of write {number} of writer {} found {found}", self.id))
    }

    /// Compares what is found at the key of the next write, which was refused, with what was there
    /// before it.
    pub fn check_refused(&self, found: Option<&[u8]>) -> Checked<()> {
        let next = self.acknowledged + 1;
        match next.checked_sub(self.slots) {
            Some(before @ 1..) => self.check_get(before, found),
            _ if found.is_none() => Ok(()),
            _ => Err(format!("write {next} of writer {} was refused, and something is there", self.id)),
        }
    }

    /// Compares all that the keyspace holds of it, by scan and, for some, by get.
    pub fn check_all(&self, keyspace: &Keyspace) -> Checked<u64> {
        const GETS: usize = 500;
        let found = self.check(keyspace.prefix(self.prefix()))?;
        let step = (self.present().count() / GETS).max(1);
        for number in self.present().step_by(step) {
            let value = keyspace.get(self.key(number)).map_err(|error| format!("a get failed: {error}"))?;
            self.check_get(number, value.as_deref())?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Writer;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn right(writer: &Writer) -> Pairs {
        let mut pairs: Pairs = writer.present().map(|number| (writer.key(number), writer.value(number))).collect();
        pairs.sort();
        pairs
    }

    fn check(writer: &Writer, pairs: &Pairs) -> Result<u64, String> {
        writer.check(pairs.iter().cloned().map(Ok))
    }

    fn writer(acknowledged: u64) -> Writer {
        Writer { acknowledged, ..Writer::new(7, 1, 10, 40) }
    }

    #[test]
    fn the_right_answer_is_accepted() {
        for acknowledged in [0, 1, 9, 10, 11, 34] {
            let writer = writer(acknowledged);
            assert_eq!(check(&writer, &right(&writer)), Ok(acknowledged.min(10)));
        }
    }

    #[test]
    fn each_wrong_answer_is_noticed() {
        let writer = writer(34);
        let good = right(&writer);
        for at in 0..good.len() {
            let mut lost = good.clone();
            lost.remove(at);
            assert!(check(&writer, &lost).unwrap_err().contains("9 keys"), "{at}");
            let mut old = good.clone();
            let number = u64::from_le_bytes(*old[at].1.first_chunk().unwrap());
            old[at].1 = writer.value(number - 10);
            assert!(check(&writer, &old).unwrap_err().contains("holds write"), "{at}");
            let mut flipped = good.clone();
            flipped[at].1[20] ^= 1;
            assert!(check(&writer, &flipped).is_err(), "{at}");
            let mut twice = good.clone();
            twice.insert(at, good[at].clone());
            assert!(check(&writer, &twice).unwrap_err().contains("comes after"), "{at}");
        }
        let mut swapped = good.clone();
        swapped.swap(0, 1);
        assert!(check(&writer, &swapped).unwrap_err().contains("comes after"));
        // A write that nobody made.
        let mut more = good.clone();
        more.retain(|(key, _)| *key != writer.key(35));
        more.push((writer.key(35), writer.value(35)));
        more.sort();
        assert!(check(&writer, &more).is_err());
        assert!(
            writer
                .check(std::iter::once(Err::<(Vec<u8>, Vec<u8>), _>(esker::Error::Stalled { reason: String::new() })))
                .is_err()
        );
    }

    #[test]
    fn a_write_in_doubt_may_be_there_or_not() {
        for acknowledged in [0, 4, 10, 34] {
            let mut doubting = writer(acknowledged);
            doubting.in_doubt = true;
            assert!(check(&doubting, &right(&writer(acknowledged))).is_ok());
            assert!(check(&doubting, &right(&writer(acknowledged + 1))).is_ok());
            assert!(check(&doubting, &right(&writer(acknowledged + 2))).is_err());
        }
    }

    #[test]
    fn a_get_is_compared_too() {
        let mut writer = writer(34);
        assert!(writer.check_get(25, Some(&writer.value(25))).is_ok());
        assert!(writer.check_get(25, None).is_err());
        assert!(writer.check_get(25, Some(&writer.value(35))).is_err());
        writer.in_doubt = true;
        assert!(writer.check_get(25, Some(&writer.value(35))).is_ok());
        assert!(writer.check_get(26, Some(&writer.value(35))).is_err());
    }

    #[test]
    fn a_refused_write_that_is_there_or_has_taken_what_was_there_is_noticed() {
        let full = writer(34);
        assert!(full.check_refused(Some(&full.value(25))).is_ok());
        assert!(full.check_refused(Some(&full.value(35))).is_err());
        assert!(full.check_refused(None).is_err());
        for acknowledged in [0, 4, 9] {
            let writer = writer(acknowledged);
            assert!(writer.check_refused(None).is_ok());
            assert!(writer.check_refused(Some(&writer.value(acknowledged + 1))).is_err());
        }
    }
}
