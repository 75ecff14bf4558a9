//! The merge operators of the model as the engine is given them: the built-in ones by their names,
//! three of its own, and one that mends what another has failed on.

use crate::model::{FAILING, Operator, PANICKING};
use esker::{MergeError, MergeOperator, merge};
use std::sync::{Arc, Once};

/// The operator to supply, if the keyspace has one.
pub fn supply(operator: Operator) -> Option<Arc<dyn MergeOperator>> {
    let name = match operator {
        Operator::None => return None,
        Operator::Longest => return Some(Arc::new(Longest("check-longest"))),
        Operator::Shelved => return Some(Arc::new(Longest("check-shelved"))),
        Operator::Fragile => return Some(Arc::new(Fragile { is_mended: false })),
        Operator::StringAppend => return Some(Arc::new(merge::StringAppend::new(","))),
        Operator::UInt64Add => "uint64add",
        Operator::Int64Add => "int64add",
        Operator::Max => "max",
        Operator::Min => "min",
        Operator::Put => "put",
        Operator::BytesXor => "bytesxor",
        Operator::BitOr => "bitor",
    };
    merge::built_in(name)
}

/// The operator that takes the place of [`Operator::Fragile`] under the same name, and never fails.
pub fn mended() -> Arc<dyn MergeOperator> {
    Arc::new(Fragile { is_mended: true })
}

/// The text of the panics that [`Operator::Fragile`] makes, and code that is passed to a call.
pub const ON_PURPOSE: &str = "the check panics on purpose";

/// Keeps the panics that are made on purpose from filling the screen. Other panics are reported as
/// ever.
pub fn silence_panics_on_purpose() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&ON_PURPOSE) {
                usual(info);
            }
        }));
    });
}

/// Keeps the longest; of equally long ones the newest. An empty operand deletes.
struct Longest(&'static str);

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        self.0
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let mut kept = existing;
        for operand in operands {
            kept = match kept {
                _ if operand.is_empty() => None,
                Some(older) if older.len() > operand.len() => Some(older),
                _ => Some(operand),
            };
        }
        Ok(kept.map(<[u8]>::to_vec))
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        if newer.is_empty() {
            return Some(Vec::new());
        }
        // An empty operand must stay: it deletes what is below.
        if older.is_empty() {
            return None;
        }
        Some(if older.len() > newer.len() { older } else { newer }.to_vec())
    }
}

/// Keeps the longest, and fails or panics on some operands unless it is mended.
struct Fragile {
    is_mended: bool,
}

impl Fragile {
    fn is_sound(&self, operand: &[u8]) -> bool {
        if self.is_mended {
            return true;
        }
        if operand.first() == Some(&PANICKING) {
            std::panic::panic_any(ON_PURPOSE);
        }
        operand.first() != Some(&FAILING)
    }
}

impl MergeOperator for Fragile {
    fn name(&self) -> &str {
        "check-fragile"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let mut kept = existing;
        for operand in operands {
            if !self.is_sound(operand) {
                return Err(MergeError("an operand that fails on purpose".to_string()));
            }
            kept = kept.filter(|older| older.len() > operand.len()).or(Some(operand));
        }
        Ok(kept.map(<[u8]>::to_vec))
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        if !self.is_sound(older) || !self.is_sound(newer) {
            return None;
        }
        Some(if older.len() > newer.len() { older } else { newer }.to_vec())
    }
}
