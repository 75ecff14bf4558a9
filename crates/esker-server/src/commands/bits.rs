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
    let bytes = value.iter().enumerate().skip(first / 8).take(last / 8 - first / 8 + 1);
    bytes.map(|(place, byte)| i64::from((byte & within(first, last, place)).count_ones())).sum()
}

/// The bits of a byte that are among those from `first` to `last`.
fn within(first: usize, last: usize, byte: usize) -> u8 {
    let low = if byte == first / 8 { 0xff_u8 >> (first % 8) } else { 0xff };
    let high = if byte == last / 8 { 0xff_u8 << (7 - last % 8) } else { 0xff };
    low & high
}

/// BITPOS key 0 | 1 [start [end [BYTE | BIT]]]
pub fn bitpos(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let is_set = match integer(&arguments[2])? {
        0 => false,
        1 => true,
        _ => return Failure::refused("ERR The bit argument must be 1 or 0."),
    };
    let entry = context.string(&arguments[1])?;
    if entry.is_none() {
        // Zeros without end, whatever the range is.
        return Ok(Reply::Integer(if is_set { -1 } else { 0 }));
    }
    let value = value_of(entry.as_ref());
    let (start, end, is_bits) = match &arguments[3..] {
        [] => (0, None, false),
        [start] => (integer(start)?, None, false),
        [start, end] => (integer(start)?, Some(integer(end)?), false),
        [start, end, unit] => {
            let start = integer(start)?;
            if !is(unit, "BYTE") && !is(unit, "BIT") {
                return syntax();
            }
            (start, Some(integer(end)?), is(unit, "BIT"))
        }
        _ => return syntax(),
    };
    let length = value.len() as i64 * if is_bits { 8 } else { 1 };
    let from = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    let (first, last) = (from(start), end.map_or(length - 1, |end| from(end).min(length - 1)));
    if first > last {
        return Ok(Reply::Integer(-1));
    }
    let (first, last) = if is_bits { (first, last) } else { (first * 8, last * 8 + 7) };
    // Without an end zeros follow.
    let otherwise = if is_set || end.is_some() { -1 } else { value.len() as i64 * 8 };
    Ok(Reply::Integer(first_bit(value, is_set, first as usize, last as usize).unwrap_or(otherwise)))
}

/// The place of the first one of these bits that is so.
fn first_bit(value: &[u8], is_set: bool, first: usize, last: usize) -> Option<i64> {
    (first / 8..=last / 8).find_map(|place| {
        let wanted = if is_set { value[place] } else { !value[place] } & within(first, last, place);
        (wanted != 0).then(|| place as i64 * 8 + i64::from(wanted.leading_zeros()))
    })
}

/// BITOP AND | OR | XOR | NOT target key...
pub fn bitop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (operation, target, keys) = (&arguments[1], &arguments[2], &arguments[3..]);
    let combine: fn(u8, u8) -> u8 = match operation {
        word if is(word, "AND") => |left, right| left & right,
        word if is(word, "OR") => |left, right| left | right,
        word if is(word, "XOR") => |left, right| left ^ right,
        // Of a string and ones.
        word if is(word, "NOT") => |left, right| !left & right,
        _ => return syntax(),
    };
    let is_not = is(operation, "NOT");
    if is_not && keys.len() != 1 {
        return Failure::refused("ERR BITOP NOT must be called with a single source key.");
    }
    let mut result: Option<Vec<u8>> = None;
    for key in keys {
        let entry = context.string(key)?;
        let value = value_of(entry.as_ref());
        result = Some(match result {
            None => value.to_vec(),
            Some(mut result) => {
                result.resize(result.len().max(value.len()), 0);
                // A shorter string goes on with zeros.
                let bytes = value.iter().copied().chain(std::iter::repeat(0));
                result.iter_mut().zip(bytes).for_each(|(left, right)| *left = combine(*left, right));
                result
            }
        });
    }
    let mut result = result.unwrap_or_default();
    if is_not {
        result.iter_mut().for_each(|byte| *byte = combine(*byte, 0xff));
    }
    let old = context.entry(target)?;
    match &old {
        Some(old) if result.is_empty() => context.delete(target, old)?,
        None if result.is_empty() => {}
        _ => context.set_string(target, &[&result], None, old.as_ref())?,
    }
    Ok(Reply::count(result.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_of_parts() {
        let value = [0b0000_0000, 0b0001_1111, 0xff];
        for (is_set, first, last, place) in [
            (true, 0, 23, Some(11)),
            (true, 0, 10, None),
            (true, 14, 14, Some(14)),
            (false, 11, 23, None),
            (false, 9, 23, Some(9)),
            (false, 16, 23, None),
            (true, 7, 16, Some(11)),
        ] {
            assert_eq!(first_bit(&value, is_set, first, last), place, "{is_set} {first} {last}");
        }
    }

    #[test]
    fn ones_of_parts() {
        let value = [0b1010_1010, 0xff, 0b0000_0001];
        for (first, last, count) in [(0, 23, 13), (0, 0, 1), (1, 1, 0), (6, 8, 2), (23, 23, 1), (8, 15, 8), (5, 4, 0)] {
            assert_eq!(ones(&value, first, last), count, "{first} {last}");
        }
    }
}
