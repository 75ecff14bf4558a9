//! Answers of the engine: compared with the model's, and in words.

use crate::Checked;
use crate::model::{Answer, Entry, MergeFails, NEVER};
use crate::state::{shown, time};
use esker::{Error, Expiry, Slice};
use std::fmt;

/// What an iterator yields.
type Found = Option<esker::Result<(Slice, Slice)>>;

/// In words.
pub fn shown_entry(found: Found) -> String {
    match found {
        None => "nothing".to_string(),
        Some(Ok((key, value))) => format!("{}={}", shown(&key), shown(&value)),
        Some(Err(error)) => format!("an error: {error}"),
    }
}

/// Whether the engine's answer is the model's.
pub fn compare_answer(expected: &Answer, found: esker::Result<Option<Slice>>) -> Checked<()> {
    match (expected, found) {
        (Ok(None), Ok(None)) | (Err(_), Err(Error::MergeFailed { .. })) => Ok(()),
        (Ok(Some(expected)), Ok(Some(found))) if found[..] == expected[..] => Ok(()),
        (expected, Ok(found)) => {
            let expected = expected.as_ref().map(|value| value.as_ref().map(|value| shown(value)));
            Err(format!("the value is {:?}, expected {expected:?}", found.map(|found| shown(&found))))
        }
        (_, Err(error)) => Err(format!("the read failed: {error}")),
    }
}

/// Whether the engine's pair is the model's.
pub fn compare_entry(expected: &Option<Entry>, found: Found) -> Checked<()> {
    match (expected, found) {
        (None, None) | (Some((_, Err(_))), Some(Err(Error::MergeFailed { .. }))) => Ok(()),
        (Some((key, Ok(value))), Some(Ok((found_key, found))))
            if found_key[..] == key[..] && found[..] == value[..] =>
        {
            Ok(())
        }
        (expected, found) => {
            let expected = expected.as_ref().map(|(key, value)| (shown(key), value.as_ref().map(|value| shown(value))));
            Err(format!("the pair is {}, expected {expected:?}", shown_entry(found)))
        }
    }
}

/// Whether the engine's answer, which is no bytes, is the model's.
pub fn compare_known<T: PartialEq + fmt::Debug>(
    expected: &Result<T, MergeFails>,
    found: esker::Result<T>,
) -> Checked<()> {
    match (expected, found) {
        (Err(_), Err(Error::MergeFailed { .. })) => Ok(()),
        (Ok(expected), Ok(found)) if found == *expected => Ok(()),
        (expected, found) => Err(format!("the answer is {found:?}, expected {expected:?}")),
    }
}

/// Whether the engine's expiry of a key is the model's. `fails`: the key's operands cannot be
/// combined.
pub fn compare_expiry(expected: Option<u64>, fails: bool, found: &esker::Result<Option<Expiry>>) -> Checked<()> {
    // Later than any date that a calendar has; the engine may count it as never.
    const FAR: u64 = 1 << 62;
    let right = match (expected, found) {
        (None, Ok(None)) | (Some(NEVER), Ok(Some(Expiry::Never))) => true,
        (Some(FAR..), Ok(Some(expiry))) => match expiry {
            Expiry::At(at) => *at >= time(1 << 47),
            _ => true,
        },
        (Some(expiry), Ok(Some(Expiry::At(at)))) => *at == time(expiry),
        // Whether it combines what it does not need is for the engine to choose.
        (Some(_), Err(Error::MergeFailed { .. })) => fails,
        _ => false,
    };
    if right {
        return Ok(());
    }
    Err(format!("it expires at {found:?}, expected {expected:?}, {:?}", expected.map(time)))
}
