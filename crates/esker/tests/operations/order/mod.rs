//! Keyspaces with an order of their own.

mod callbacks;
mod lawless;
mod opening;
mod walks;

use esker::Comparator;
use std::cmp::Ordering;

/// Shorter keys first, those of a length by their bytes.
#[derive(Debug)]
pub struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "test.by-length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// As a function says.
pub struct By<F>(pub &'static str, pub F);

impl<F: Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static> Comparator for By<F> {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.1)(a, b)
    }
}
