//! What commands that wait have in common, and commands that pop from the first of many keys.

use super::arguments::{is, syntax};
use crate::protocol::{Reply, parse_any_double, parse_integer};
use crate::store::{Blocked, Failure, Outcome};
use bytes::Bytes;

/// A timeout in seconds, as milliseconds.
pub fn timeout(argument: &[u8]) -> Outcome<u64> {
    // Beyond this, milliseconds are no integer any more, which has the same error as negative ones.
    const SECONDS_MAX: f64 = 9.223_372_036_854_776e15;
    match parse_any_double(argument) {
        Some(seconds) if !(0.0..=SECONDS_MAX).contains(&seconds) => Failure::refused("ERR timeout is negative"),
        Some(seconds) => Ok((seconds * 1000.0).ceil() as u64),
        None => Failure::refused("ERR timeout is not a float or out of range"),
    }
}

/// Has the client wait for one of the keys.
pub fn block(keys: &[Bytes], timeout_ms: u64, otherwise: Reply) -> Outcome {
    Err(Failure::Blocked(Blocked { keys: keys.to_vec(), timeout_ms, otherwise }))
}

/// The arguments of LMPOP and its like from the count of keys on: the keys, whether the second of
/// the two words stands behind them, and how many elements.
pub fn mpop_arguments<'a>(
    arguments: &'a [Bytes],
    before: usize,
    words: [&str; 2],
) -> Outcome<(&'a [Bytes], bool, usize)> {
    let number = match arguments.get(before).and_then(|number| parse_integer(number)) {
        Some(number) if number > 0 => number as usize,
        _ => return Failure::refused("ERR numkeys should be greater than 0"),
    };
    let Some((keys, rest)) = arguments[before + 1..].split_at_checked(number) else { return syntax() };
    let Some((word, options)) = rest.split_first() else { return syntax() };
    let is_second = is(word, words[1]);
    if !is_second && !is(word, words[0]) {
        return syntax();
    }
    match options {
        [] => Ok((keys, is_second, 1)),
        [option, count, rest @ ..] if is(option, "COUNT") => match parse_integer(count) {
            Some(count) if count > 0 && rest.is_empty() => Ok((keys, is_second, count as usize)),
            Some(count) if count > 0 => syntax(),
            _ => Failure::refused("ERR count should be greater than 0"),
        },
        _ => syntax(),
    }
}
