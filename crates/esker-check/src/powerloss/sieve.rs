//! The compaction filter of scripts.

use esker::{CompactionFilter, Decision};

/// A filter that removes some values and replaces some others, by what it keeps.
pub struct Sieve;

impl CompactionFilter for Sieve {
    fn name(&self) -> &str {
        "check-sieve"
    }

    fn decide(&self, _key: &[u8], value: &[u8]) -> Decision {
        decision(value)
    }
}

/// A quarter of all values go, and a quarter lose half of their bytes.
pub fn decision(value: &[u8]) -> Decision {
    match value.first().map(|&first| (first, first % 4)) {
        Some((_, 0)) => Decision::Remove,
        Some((first, 1)) => {
            let half = value.len().div_ceil(2);
            Decision::Replace([&[first + 1][..], &value[1..half]].concat())
        }
        _ => Decision::Keep,
    }
}
