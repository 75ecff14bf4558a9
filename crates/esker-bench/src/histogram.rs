//! Latencies in nanoseconds, in buckets of a fixed relative width.

use hdrhistogram::Histogram;

/// A latency histogram in nanoseconds, from one nanosecond to one hour with three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds that the library documents as valid")
}
