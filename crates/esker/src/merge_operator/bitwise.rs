//! Operators on the bits of byte strings. The shorter of two counts as if it had zero bytes at its
//! end.

use super::{MergeError, MergeOperator};

pub(super) const BYTES_XOR: &str = "bytesxor";
pub(super) const BIT_OR: &str = "bitor";

/// Flips the bits of the value that are set in the operand. The value becomes as long as the
/// longest operand so far; an absent key counts as empty.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::BytesXor};
/// let parity = db.keyspace("parity", KeyspaceOptions::default().merge_operator(BytesXor))?;
/// parity.merge("disk", [0b0110])?;
/// parity.merge("disk", [0b0011])?;
/// assert_eq!(parity.get("disk")?.as_deref(), Some(&[0b0101][..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct BytesXor;

/// Sets the bits of the value that are set in the operand: sets of small numbers, flags, filters.
/// The value becomes as long as the longest operand so far; an absent key counts as empty.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::BitOr};
/// let flags = db.keyspace("flags", KeyspaceOptions::default().merge_operator(BitOr))?;
/// flags.merge("ada", [0b01])?;
/// flags.merge("ada", [0b10])?;
/// assert_eq!(flags.get("ada")?.as_deref(), Some(&[0b11][..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct BitOr;

/// Both functions here are associative and have the zero byte as their neutral element, so that
/// padding changes nothing and operands combine as values do.
fn combine<'a>(parts: impl Iterator<Item = &'a [u8]>, function: impl Fn(u8, u8) -> u8) -> Vec<u8> {
    let mut result: Vec<u8> = Vec::new();
    for part in parts {
        if part.len() > result.len() {
            result.resize(part.len(), 0);
        }
        result.iter_mut().zip(part).for_each(|(byte, &other)| *byte = function(*byte, other));
    }
    result
}

macro_rules! bitwise {
    ($operator:ty, $name:expr, $function:expr) => {
        impl MergeOperator for $operator {
            fn name(&self) -> &str {
                $name
            }

            fn full_merge(
                &self,
                _key: &[u8],
                existing: Option<&[u8]>,
                operands: &[&[u8]],
            ) -> Result<Option<Vec<u8>>, MergeError> {
                Ok(Some(combine(existing.into_iter().chain(operands.iter().copied()), $function)))
            }

            fn may_delete(&self) -> bool {
                false
            }

            fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
                Some(combine([older, newer].into_iter(), $function))
            }
        }
    };
}

bitwise!(BytesXor, BYTES_XOR, |a, b| a ^ b);
bitwise!(BitOr, BIT_OR, |a, b| a | b);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_one_counts_as_padded_with_zeroes() {
        let (long, short) = (&[0b1100, 0b0011, 0xff][..], &[0b1010][..]);
        for (older, newer) in [(long, short), (short, long)] {
            assert_eq!(BytesXor.full_merge(b"", Some(older), &[newer]), Ok(Some(vec![0b0110, 0b0011, 0xff])));
            assert_eq!(BitOr.full_merge(b"", Some(older), &[newer]), Ok(Some(vec![0b1110, 0b0011, 0xff])));
        }
        assert_eq!(BytesXor.full_merge(b"", None, &[long, long]), Ok(Some(vec![0; 3])));
        assert_eq!(BitOr.full_merge(b"", None, &[b""]), Ok(Some(vec![])));
    }
}
