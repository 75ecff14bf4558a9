//! Bits of strings.

use super::arguments::{STRING_BYTES_MAX, integer, is, syntax};
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Entry, Failure, Outcome};
use bytes::Bytes;

/// The byte and the mask of a bit.
fn place(argument: &[u8]) -> Outcome<(usize, u8)> {
    let offset = parse_integer(argument).and_then(|offset| usize::try_from(offset).ok());
    match offset.filter(|offset| offset / 8 < STRING_BYTES_MAX) {
        Some(offset) => Ok((offset / 8, 0x80 >> (offset % 8))),
        None => Failure::refused("ERR bit offset is not an integer or out of range"),
    }
}

fn value_of(entry: Option<&Entry>) -> &[u8] {
    entry.and_then(Entry::string).unwrap_or_default()
}

/// GETBIT key offset
pub fn getbit(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (byte, mask) = place(&arguments[2])?;
    let entry = context.string(&arguments[1])?;
    let is_set = value_of(entry.as_ref()).get(byte).is_some_and(|byte| byte & mask != 0);
    Ok(Reply::Integer(i64::from(is_set)))
}

/// SETBIT key offset 0 | 1
pub fn setbit(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (byte, mask) = place(&arguments[2])?;
    let is_set = match parse_integer(&arguments[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => return Failure::refused("ERR bit is not an integer or out of range"),
    };
    let old = context.string(&arguments[1])?;
    let mut value = value_of(old.as_ref()).to_vec();
    if value.get(byte).is_some_and(|found| (found & mask != 0) == is_set) {
        // Nothing changes, also for those that watch the key.
        return Ok(Reply::Integer(i64::from(is_set)));
    }
    value.resize(value.len().max(byte + 1), 0);
    let was_set = value[byte] & mask != 0;
    if is_set {
        value[byte] |= mask;
    } else {
        value[byte] &= !mask;
    }
    let expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    context.set_string(&arguments[1], &[&value], expiry_ms, old.as_ref())?;
    Ok(Reply::Integer(i64::from(was_set)))
}

/// BITCOUNT key [start end [BYTE | BIT]]
pub fn bitcount(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    // Redis looks at the key first, and at the range only where there is one.
    let entry = context.string(&arguments[1])?;
    if entry.is_none() {
        return Ok(Reply::Integer(0));
    }
    let range = match &arguments[2..] {
        [] => None,
        [start, end] => Some((integer(start)?, integer(end)?, false)),
        [start, end, unit] => {
            let (start, end) = (integer(start)?, integer(end)?);
            if !is(unit, "BYTE") && !is(unit, "BIT") {
                return syntax();
            }
            Some((start, end, is(unit, "BIT")))
        }
        _ => return syntax(),
    };
    let value = value_of(entry.as_ref());
    let (first, last) = match range {
        None => (0, value.len() as i64 * 8 - 1),
        Some((start, end, is_bits)) => {
            let length = value.len() as i64 * if is_bits { 8 } else { 1 };
            if start < 0 && end < 0 && start > end {
                return Ok(Reply::Integer(0));
            }
            let from = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
            let (start, end) = (from(start), from(end).min(length - 1));
            if is_bits { (start, end) } else { (start.saturating_mul(8), end.saturating_mul(8) + 7) }
        }
    };
    Ok(Reply::Integer(ones(value, first, last)))
}

/// How many of these bits are set.
fn ones(value: &[u8], first: i64, last: i64) -> i64 {
    if first > last {
        return 0;
    }
    let (first, last) = (first as usize, last as usize);
    let within = |byte: usize| {
        let low = if byte == first / 8 { 0xff >> (first % 8) } else { 0xff };
        let high = if byte == last / 8 { 0xff << (7 - last % 8) } else { 0xff };
        low & high as u8
    };
    let bytes = value.iter().enumerate().skip(first / 8).take(last / 8 - first / 8 + 1);
    bytes.map(|(place, byte)| i64::from((byte & within(place)).count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_of_parts() {
        let value = [0b1010_1010, 0xff, 0b0000_0001];
        for (first, last, count) in [(0, 23, 13), (0, 0, 1), (1, 1, 0), (6, 8, 2), (23, 23, 1), (8, 15, 8), (5, 4, 0)] {
            assert_eq!(ones(&value, first, last), count, "{first} {last}");
        }
    }
}
