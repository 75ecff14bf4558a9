//! The merge operators, by their names in the manifest: doc/semantics.md has the built-in ones.

use crate::bytes::{Read, ensure};

/// The name of an operator of this test's own: it appends, and does not combine operands.
pub const CONCATENATION: &str = "concatenation";

/// The value after all operands, oldest first, on top of what is there.
pub fn merged(operator: &str, existing: Option<Vec<u8>>, operands: &[Vec<u8>]) -> Read<Vec<u8>> {
    let mut value = existing;
    for operand in operands {
        value = Some(one(operator, value, operand)?);
    }
    value.ok_or_else(|| "no operands".into())
}

fn one(operator: &str, value: Option<Vec<u8>>, operand: &[u8]) -> Read<Vec<u8>> {
    let operand = operand.to_vec();
    let Some(value) = value else { return Ok(operand) };
    Ok(match operator {
        "uint64add" => (u64::from_le_bytes(eight(&value)?).wrapping_add(u64::from_le_bytes(eight(&operand)?)))
            .to_le_bytes()
            .to_vec(),
        "int64add" => (i64::from_le_bytes(eight(&value)?).saturating_add(i64::from_le_bytes(eight(&operand)?)))
            .to_le_bytes()
            .to_vec(),
        "max" => value.max(operand),
        "min" => value.min(operand),
        "put" => operand,
        CONCATENATION => [value, operand].concat(),
        "bytesxor" => bits(&value, &operand, |a, b| a ^ b),
        "bitor" => bits(&value, &operand, |a, b| a | b),
        other => match other.strip_prefix("stringappend:") {
            Some(hex) => [value, delimiter(hex)?, operand].concat(),
            None => return Err(format!("operator {other:?}")),
        },
    })
}

fn eight(bytes: &[u8]) -> Read<[u8; 8]> {
    bytes.try_into().map_err(|_| format!("{} bytes where integers are added", bytes.len()))
}

/// The shorter side counts as padded with zero bytes.
fn bits(a: &[u8], b: &[u8], combine: impl Fn(u8, u8) -> u8) -> Vec<u8> {
    let at = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
    (0..a.len().max(b.len())).map(|index| combine(at(a, index), at(b, index))).collect()
}

fn delimiter(hex: &str) -> Read<Vec<u8>> {
    ensure!(hex.is_ascii() && hex.len().is_multiple_of(2), "delimiter {hex}");
    let pairs = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    pairs.collect::<Result<_, _>>().map_err(|problem| problem.to_string())
}
