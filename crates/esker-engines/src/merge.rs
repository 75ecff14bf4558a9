//! Merge for engines that have none of their own: the read-modify-write that their users would
//! write, and the locks it needs.

use super::{EngineError, Operation, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The operators that every engine here offers, by the names RocksDB gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOperator {
    /// Adds 8-byte little-endian counters, wrapping.
    UInt64Add,
    /// The operand replaces the value.
    Put,
    /// The greater of the two, in byte order.
    Max,
    /// Appends the operand after a comma.
    StringAppend,
}

impl MergeOperator {
    const NAMES: [(&'static str, MergeOperator); 4] = [
        ("uint64add", MergeOperator::UInt64Add),
        ("put", MergeOperator::Put),
        ("max", MergeOperator::Max),
        ("stringappend", MergeOperator::StringAppend),
    ];

    /// The operator called `name`, if `name` is given.
    pub fn from_option(name: Option<&str>) -> Result<Option<MergeOperator>> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let named = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator);
        let unknown =
            || EngineError(format!("unknown merge operator `{name}`: known are uint64add, put, max and stringappend"));
        named.ok_or_else(unknown).map(Some)
    }

    /// The operator's name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }

    /// Replaces `value` by the result of merging `operand` into it; `found` says whether `value`
    /// holds an existing value.
    pub fn apply(self, value: &mut Vec<u8>, found: bool, operand: &[u8]) -> Result<()> {
        if !found {
            value.clear();
        }
        match self {
            MergeOperator::UInt64Add => {
                let sum = counter(operand)?.wrapping_add(if found { counter(value)? } else { 0 });
                value.clear();
                value.extend_from_slice(&sum.to_le_bytes());
            }
            MergeOperator::Put => replace(value, operand),
            MergeOperator::Max => {
                if !found || value.as_slice() < operand {
                    replace(value, operand);
                }
            }
            MergeOperator::StringAppend => {
                if found {
                    value.push(b',');
                }
                value.extend_from_slice(operand);
            }
        }
        Ok(())
    }
}

/// The error of a merge on a database that was opened without an operator.
pub fn no_operator(engine: &str) -> EngineError {
    EngineError(format!("{engine}: opened without a merge operator"))
}

fn counter(bytes: &[u8]) -> Result<u64> {
    let bytes: [u8; 8] = bytes
        .try_into()
        .map_err(|_| EngineError(format!("uint64add: a counter has 8 bytes, this value has {}", bytes.len())))?;
    Ok(u64::from_le_bytes(bytes))
}

fn replace(value: &mut Vec<u8>, operand: &[u8]) {
    value.clear();
    value.extend_from_slice(operand);
}

/// A batch operation without merges: the new value of a key, or `None` for a removal.
pub struct Resolved<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its new value.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Whether a batch holds a merge.
pub fn has_merge(batch: &[Operation<'_>]) -> bool {
    batch.iter().any(|operation| matches!(operation, Operation::Merge(..)))
}

/// Turns every merge of a batch into a put. `get` reads the database; what an earlier operation of
/// the batch did to a key is seen.
pub fn resolve<'a>(
    operator: Option<MergeOperator>,
    engine: &str,
    batch: &[Operation<'a>],
    mut get: impl FnMut(&[u8], &mut Vec<u8>) -> Result<bool>,
) -> Result<Vec<Resolved<'a>>> {
    let mut latest: HashMap<&[u8], Option<Vec<u8>>> = HashMap::new();
    let mut resolved = Vec::with_capacity(batch.len());
    for operation in batch {
        let (key, value) = match *operation {
            Operation::Put(key, value) => {
                latest.insert(key, Some(value.to_vec()));
                (key, Some(Cow::Borrowed(value)))
            }
            Operation::Delete(key) => {
                latest.insert(key, None);
                (key, None)
            }
            Operation::Merge(key, operand) => {
                let operator = operator.ok_or_else(|| no_operator(engine))?;
                let mut value = Vec::new();
                let found = match latest.get(key) {
                    Some(Some(earlier)) => {
                        value.extend_from_slice(earlier);
                        true
                    }
                    Some(None) => false,
                    None => get(key, &mut value)?,
                };
                operator.apply(&mut value, found, operand)?;
                latest.insert(key, Some(value.clone()));
                (key, Some(Cow::Owned(value)))
            }
        };
        resolved.push(Resolved { key, value });
    }
    Ok(resolved)
}

/// Locks striped by key, for engines without transactions. They keep merges apart from each other,
/// not from plain puts: that is what a program has that counts with such an engine.
pub struct KeyLocks {
    stripes: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Default for KeyLocks {
    fn default() -> KeyLocks {
        KeyLocks { stripes: (0..256).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }
}

impl KeyLocks {
    fn stripe(&self, key: &[u8]) -> usize {
        (self.hasher.hash_one(key) % self.stripes.len() as u64) as usize
    }

    fn lock_stripe(&self, stripe: usize) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a holder that panicked left nothing half done.
        self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks one key.
    pub fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        self.lock_stripe(self.stripe(key))
    }

    /// Locks the keys that a batch merges into, in stripe order so that two batches cannot wait for
    /// each other.
    pub fn lock_merges(&self, batch: &[Operation<'_>]) -> Vec<MutexGuard<'_, ()>> {
        let merged = batch.iter().filter_map(|operation| match operation {
            Operation::Merge(key, _) => Some(self.stripe(key)),
            _ => None,
        });
        let mut stripes: Vec<usize> = merged.collect();
        stripes.sort_unstable();
        stripes.dedup();
        stripes.into_iter().map(|stripe| self.lock_stripe(stripe)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What operators make of values, each engine shows (`tests/suite/peers.rs`).
    #[test]
    fn a_counter_has_eight_bytes() {
        for (existing, operand) in [(&b"abc"[..], &[0; 8][..]), (b"12345678", b"abc")] {
            let merged = MergeOperator::UInt64Add.apply(&mut existing.to_vec(), true, operand);
            assert!(merged.unwrap_err().0.contains("this value has 3"));
        }
    }
}
