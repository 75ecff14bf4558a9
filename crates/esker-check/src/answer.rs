//! Answers of the engine: compared with the model's, and in words.

use crate::Checked;
use crate::model::Answer;
use crate::state::shown;
use esker::{Error, Slice};

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
