//! Arguments of commands, and the errors that clients know by their words.

use crate::protocol::{parse_double, parse_integer};
use crate::store::{Failure, Outcome};

/// Arguments in an order that the command does not have.
pub const SYNTAX: &str = "ERR syntax error";
/// What is to be an integer is none.
pub const NO_INTEGER: &str = "ERR value is not an integer or out of range";
/// What is to be a number is none.
pub const NO_FLOAT: &str = "ERR value is not a valid float";
/// A count that is negative.
pub const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";
/// A count beyond what can be.
pub const OUT_OF_RANGE: &str = "ERR value is out of range";
/// An integer whose negative is none.
const NO_NEGATIVE: &str = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
/// A key that has to exist.
pub const NO_SUCH_KEY: &str = "ERR no such key";
/// A logical database that is not there.
pub const NO_DATABASE: &str = "ERR DB index is out of range";
/// A string that would be too long.
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
/// The longest string.
pub const STRING_BYTES_MAX: usize = 512 << 20;

/// Whether there can be so many arguments; at least so many as are wanted, if that is negative.
pub fn accepts(wanted: i64, count: usize) -> bool {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if wanted < 0 { count >= -wanted } else { count == wanted }
}

/// Refuses the order of the arguments.
pub fn syntax<T>() -> Outcome<T> {
    Failure::refused(SYNTAX)
}

/// Refuses the number of arguments.
pub fn arity<T>(command: &str) -> Outcome<T> {
    Failure::refused(format!("ERR wrong number of arguments for '{command}' command"))
}

/// Whether the argument is this word, in any case.
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// The argument as an integer.
pub fn integer(argument: &[u8]) -> Outcome<i64> {
    parse_integer(argument).map_or_else(|| Failure::refused(NO_INTEGER), Ok)
}

/// The argument as a count: an integer that is not negative.
pub fn count(argument: &[u8]) -> Outcome<usize> {
    let value = parse_integer(argument).and_then(|value| usize::try_from(value).ok());
    value.map_or_else(|| Failure::refused(NOT_POSITIVE), Ok)
}

/// The argument as an integer whose negative is one too.
pub fn signed_count(argument: &[u8]) -> Outcome<i64> {
    let value = integer(argument)?;
    if value == i64::MIN { Failure::refused(NO_NEGATIVE) } else { Ok(value) }
}

/// True, for a command whose reply has two elements for each of so many.
pub fn pairs(count: Option<i64>) -> Outcome<bool> {
    match count {
        Some(count) if count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 => Failure::refused(OUT_OF_RANGE),
        _ => Ok(true),
    }
}

/// The argument as a number, with an error of its own.
pub fn double(argument: &[u8], otherwise: &'static str) -> Outcome<f64> {
    parse_double(argument).map_or_else(|| Failure::refused(otherwise), Ok)
}

/// The part of `0..length` that two indexes mean, of which negative ones count from the end; `None`
/// if nothing is between them.
pub fn index_range(start: i64, end: i64, length: u64) -> Option<(u64, u64)> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let start = if start < 0 { (length.saturating_add(start)).max(0) } else { start };
    let end = if end < 0 { length.saturating_add(end) } else { end.min(length - 1) };
    (start <= end && start < length && end >= 0).then_some((start as u64, end as u64))
}

/// How an expiry is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryForm {
    /// In seconds, else in milliseconds.
    pub is_seconds: bool,
    /// Since the epoch, else from now on.
    pub is_absolute: bool,
}

impl ExpiryForm {
    /// The form that an option such as `EX` stands for.
    pub fn of_option(option: &[u8]) -> Option<ExpiryForm> {
        for (word, is_seconds, is_absolute) in
            [("EX", true, false), ("PX", false, false), ("EXAT", true, true), ("PXAT", false, true)]
        {
            if is(option, word) {
                return Some(ExpiryForm { is_seconds, is_absolute });
            }
        }
        None
    }

    /// The expiry in milliseconds since the epoch, which may have passed; `None` if it is beyond
    /// what can be.
    pub fn milliseconds(self, value: i64, now_ms: u64) -> Option<i64> {
        let value = if self.is_seconds { value.checked_mul(1000)? } else { value };
        if self.is_absolute { Some(value) } else { value.checked_add(i64::try_from(now_ms).ok()?) }
    }

    /// The expiry that a write sets, which is positive.
    pub fn parse(self, argument: &[u8], now_ms: u64, command: &str) -> Outcome<u64> {
        let value = integer(argument)?;
        let at = if value <= 0 { None } else { self.milliseconds(value, now_ms) };
        match at.and_then(|at| u64::try_from(at).ok()) {
            Some(at) => Ok(at),
            None => Failure::refused(format!("ERR invalid expire time in '{command}' command")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_from_both_ends() {
        for (start, end, length, range) in [
            (0, -1, 3, Some((0, 2))),
            (-100, 100, 3, Some((0, 2))),
            (1, 0, 3, None),
            (3, 5, 3, None),
            (0, -4, 3, None),
            (0, 0, 0, None),
            (i64::MIN, i64::MAX, 3, Some((0, 2))),
        ] {
            assert_eq!(index_range(start, end, length), range, "{start} {end} {length}");
        }
    }
}
