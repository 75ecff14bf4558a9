//! What each merge operator means, one operand at a time.
//!
//! Operands are taken in order, each onto the result of those before it. An engine may combine them
//! in other groups only where that changes nothing, so this order is the meaning: for saturating
//! addition, say, no other grouping is right.

/// The read that needs this merge must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeFails;

/// The merge operator of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// No operator: merging is refused.
    None,
    /// Adds 8-byte little-endian numbers, wrapping.
    UInt64Add,
    /// Adds 8-byte little-endian signed numbers; a sum out of range stays at the end of the range.
    Int64Add,
    /// Joins with a comma.
    StringAppend,
    /// Keeps the greatest byte string.
    Max,
    /// Keeps the least byte string.
    Min,
    /// Keeps the last operand.
    Put,
    /// Exclusive or of the bytes; the shorter string counts as continued by zeros.
    BytesXor,
    /// Or of the bytes; the shorter string counts as continued by zeros.
    BitOr,
    /// Not built in: keeps the longest, of equally long ones the newest; an empty operand deletes
    /// the key.
    Longest,
    /// Not built in: as [`Operator::Longest`] without the deleting, but it fails on operands that
    /// begin with [`FAILING`] and panics on those that begin with [`PANICKING`].
    Fragile,
    /// As [`Operator::Longest`] under another name: an operator that a program may forget to
    /// supply.
    Shelved,
}

/// First byte of the operands that [`Operator::Fragile`] refuses.
pub const FAILING: u8 = b'!';

/// First byte of the operands that make [`Operator::Fragile`] panic.
pub const PANICKING: u8 = b'?';

impl Operator {
    /// Whether a merge with this operand is visibly wrong.
    pub fn refuses(self, operand: &[u8]) -> bool {
        match self {
            Operator::None => true,
            Operator::UInt64Add | Operator::Int64Add => operand.len() != 8,
            _ => false,
        }
    }

    /// The value after one operand; `None` if the operator deletes the key.
    pub fn combine(self, existing: Option<&[u8]>, operand: &[u8]) -> Result<Option<Vec<u8>>, MergeFails> {
        Ok(Some(match self {
            Operator::None => return Err(MergeFails),
            Operator::UInt64Add => {
                let old = existing.map_or(Ok(0), |bytes| eight(bytes).map(u64::from_le_bytes))?;
                old.wrapping_add(u64::from_le_bytes(eight(operand)?)).to_le_bytes().to_vec()
            }
            Operator::Int64Add => {
                let old = existing.map_or(Ok(0), |bytes| eight(bytes).map(i64::from_le_bytes))?;
                old.saturating_add(i64::from_le_bytes(eight(operand)?)).to_le_bytes().to_vec()
            }
            Operator::StringAppend => match existing {
                Some(existing) => [existing, operand].join(&b","[..]),
                None => operand.to_vec(),
            },
            Operator::Max => existing.map_or(operand, |existing| existing.max(operand)).to_vec(),
            Operator::Min => existing.map_or(operand, |existing| existing.min(operand)).to_vec(),
            Operator::Put => operand.to_vec(),
            Operator::BytesXor => padded(existing.unwrap_or_default(), operand, |a, b| a ^ b),
            Operator::BitOr => padded(existing.unwrap_or_default(), operand, |a, b| a | b),
            Operator::Longest | Operator::Shelved if operand.is_empty() => return Ok(None),
            Operator::Longest | Operator::Shelved => longer(existing, operand),
            Operator::Fragile if matches!(operand.first(), Some(&FAILING | &PANICKING)) => return Err(MergeFails),
            Operator::Fragile => longer(existing, operand),
        }))
    }
}

/// The longer one; of equally long ones the newer. Without its defect [`Operator::Fragile`] makes
/// this of every operand.
pub(super) fn longer(existing: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    match existing {
        Some(existing) if existing.len() > operand.len() => existing.to_vec(),
        _ => operand.to_vec(),
    }
}

fn eight(bytes: &[u8]) -> Result<[u8; 8], MergeFails> {
    bytes.try_into().map_err(|_| MergeFails)
}

fn padded(left: &[u8], right: &[u8], combine: fn(u8, u8) -> u8) -> Vec<u8> {
    let byte = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
    (0..left.len().max(right.len())).map(|index| combine(byte(left, index), byte(right, index))).collect()
}
