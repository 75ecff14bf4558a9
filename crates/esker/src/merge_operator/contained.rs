//! Calls of an operator that may panic.

use super::{MergeError, MergeOperator};
use crate::base::callback::contained;
use crate::base::key::MAX_VALUE_BYTES;

fn panicked() -> MergeError {
    MergeError("the operator panicked".into())
}

/// As [`MergeOperator::full_merge`]; a panic is an error, and so is a result that is longer than a
/// value may be.
pub fn full_merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Option<Vec<u8>>, MergeError> {
    let merged = contained(|| operator.full_merge(key, existing, operands)).unwrap_or_else(|| Err(panicked()))?;
    match &merged {
        Some(value) if value.len() > MAX_VALUE_BYTES => {
            Err(MergeError(format!("the result has {} bytes, at most {MAX_VALUE_BYTES} are possible", value.len())))
        }
        _ => Ok(merged),
    }
}

/// As [`MergeOperator::partial_merge`]; a panic, and a result that is longer than an operand may
/// be, are a refusal.
pub fn partial_merge(operator: &dyn MergeOperator, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
    contained(|| operator.partial_merge(key, older, newer)).flatten().filter(|merged| merged.len() <= MAX_VALUE_BYTES)
}

/// One operand for all of these, if the operator combines them: in pairs, pairs of pairs, and so
/// on, so that none is copied often.
pub fn partial_merges(operator: &dyn MergeOperator, key: &[u8], oldest_first: &[&[u8]]) -> Option<Vec<u8>> {
    match oldest_first {
        [] => None,
        [one] => Some(one.to_vec()),
        many => {
            let (older, newer) = many.split_at(many.len() / 2);
            let older = partial_merges(operator, key, older)?;
            partial_merge(operator, key, &older, &partial_merges(operator, key, newer)?)
        }
    }
}

/// As [`MergeOperator::may_delete`]; a panic is a yes.
pub fn may_delete(operator: &dyn MergeOperator) -> bool {
    contained(|| operator.may_delete()).unwrap_or(true)
}

/// As [`MergeOperator::check_operand`]; a panic is a refusal.
pub fn check_operand(operator: &dyn MergeOperator, operand: &[u8]) -> Result<(), MergeError> {
    contained(|| operator.check_operand(operand)).unwrap_or_else(|| Err(panicked()))
}

/// The operator's name, if it does not panic.
pub fn name(operator: &dyn MergeOperator) -> Result<String, MergeError> {
    contained(|| operator.name().to_owned()).ok_or_else(panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsTwice;

    impl Drop for PanicsTwice {
        fn drop(&mut self) {
            panic!("what the panic carried panics");
        }
    }

    #[test]
    fn nothing_of_a_panic_gets_out() {
        assert_eq!(contained(|| 7), Some(7));
        assert_eq!(contained(|| -> u8 { panic!("on purpose") }), None);
        assert_eq!(contained(|| -> u8 { std::panic::panic_any(PanicsTwice) }), None);
    }
}
