//! Signed counters that stay at their limits.
//!
//! Adding with saturation is not associative: `(MAX + 1) - 1` is `MAX - 1`, and `MAX + (1 - 1)` is
//! `MAX`. Two operands can therefore not always be combined into one. An operand stands for the
//! function `x -> clamp(x + a)`. For `a` and `b` of the same sign, say not negative,
//! `clamp(clamp(x + a) + b)` is `min(MAX, min(MAX, x + a) + b)`, which is `min(MAX, x + (a + b))`
//! for every `x`, because a sum that is at `MAX` stays there. That is the function of the operand
//! `a + b`, if that sum does not overflow. If it does, no operand has the same effect (`MAX` twice
//! moves `MIN` to `MAX - 1`). With different signs, whether the first operand reaches the limit
//! depends on `x`, and no single operand has the same effect. Operands are combined if and only if
//! they have the same sign and their sum does not overflow.

use super::{MergeError, MergeOperator};

/// The stored name of [`Int64Add`].
pub(crate) const INT64_ADD: &str = "int64add";

/// Adds 8-byte little-endian signed integers. A sum beyond the smallest or largest number stays
/// there, and goes on from there. An absent key counts as 0. Operands and values of any other size
/// are refused.
///
/// Operands are added one after the other, in the order in which they were written: increments and
/// decrements are combined before their value is known only with their like, so that keys with many
/// of both, far from their value, cost a little more to read than with [`super::UInt64Add`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::Int64Add};
/// let level = db.keyspace("level", KeyspaceOptions::default().merge_operator(Int64Add))?;
/// level.merge("tank", 1i64.to_le_bytes())?;
/// level.merge("tank", (-3i64).to_le_bytes())?;
/// assert_eq!(level.get("tank")?.as_deref(), Some(&(-2i64).to_le_bytes()[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Int64Add;

fn int64(bytes: &[u8], what: &str) -> Result<i64, MergeError> {
    let array =
        bytes.try_into().map_err(|_| MergeError(format!("{what} has {} bytes, {INT64_ADD} takes 8", bytes.len())))?;
    Ok(i64::from_le_bytes(array))
}

impl MergeOperator for Int64Add {
    fn name(&self) -> &str {
        INT64_ADD
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let mut sum = existing.map_or(Ok(0), |value| int64(value, "the existing value"))?;
        for operand in operands {
            sum = sum.saturating_add(int64(operand, "an operand")?);
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let (older, newer) = (int64(older, "").ok()?, int64(newer, "").ok()?);
        let same_sign = (older >= 0 && newer >= 0) || (older <= 0 && newer <= 0);
        // See the module's comment: anything else would not be exact for every value that may lie
        // below.
        let sum = if same_sign { older.checked_add(newer)? } else { return None };
        Some(sum.to_le_bytes().to_vec())
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        int64(operand, "the operand").map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(existing: Option<i64>, operands: &[i64]) -> i64 {
        let bytes: Vec<[u8; 8]> = operands.iter().map(|n| n.to_le_bytes()).collect();
        let slices: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
        let existing = existing.map(i64::to_le_bytes);
        let value = Int64Add.full_merge(b"k", existing.as_ref().map(|b| &b[..]), &slices).unwrap().unwrap();
        i64::from_le_bytes(value.try_into().unwrap())
    }

    fn combined(older: i64, newer: i64) -> Option<i64> {
        let merged = Int64Add.partial_merge(b"k", &older.to_le_bytes(), &newer.to_le_bytes())?;
        Some(i64::from_le_bytes(merged.try_into().unwrap()))
    }

    #[test]
    fn sums_stay_at_the_limits_and_go_on_from_there() {
        assert_eq!(merged(None, &[5, -7]), -2);
        assert_eq!(merged(Some(i64::MAX), &[1, -1]), i64::MAX - 1);
        assert_eq!(merged(Some(i64::MIN), &[-1, 1]), i64::MIN + 1);
        assert!(Int64Add.full_merge(b"", Some(b"abc"), &[&[0; 8]]).is_err());
        assert!(Int64Add.check_operand(b"abc").is_err());
        assert!(Int64Add.partial_merge(b"", b"abc", &[0; 8]).is_none());
    }

    /// Combined where that is exact for every value below, and nowhere else that matters: one sign,
    /// no overflow.
    #[test]
    fn operands_are_combined_only_where_no_value_can_tell() {
        assert_eq!(combined(3, 4), Some(7));
        assert_eq!(combined(-3, -4), Some(-7));
        assert_eq!(combined(0, -4), Some(-4));
        assert_eq!(combined(1, -1), None);
        assert_eq!(combined(i64::MAX, 1), None);
        assert_eq!(combined(i64::MIN, -1), None);
        let edges = [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
        for older in edges {
            for newer in edges {
                let Some(both) = combined(older, newer) else { continue };
                for existing in edges {
                    let context = format!("{existing} {older} {newer}");
                    assert_eq!(merged(Some(existing), &[both]), merged(Some(existing), &[older, newer]), "{context}");
                }
            }
        }
    }
}
