//! What a scan has the system load before it reads it from the mapping.
//!
//! The mapping is advised as one of single pages (`env/os/map.rs`), so that a lookup reads no more
//! than its block. A scan that has passed some blocks goes on, probably, and names what comes next,
//! in windows that grow with it. Its own reading and that of the device overlap.

use std::ops::Range;

/// A scan that is shorter names nothing.
const LEAST_PASSED: u64 = 16 << 10;
const FIRST_WINDOW: u64 = 64 << 10;
const LAST_WINDOW: u64 = 1 << 20;

/// How far a scan has named what it will read.
#[derive(Debug, Default)]
pub(super) struct LookAhead {
    backward: bool,
    /// The end of what was named, in the direction of the scan.
    named: Option<u64>,
}

impl LookAhead {
    /// Forgets it all, as a seek does.
    pub(super) fn clear(&mut self) {
        self.named = None;
    }

    /// What is to be named now, if anything, before the blocks of a file are read at `block`.
    /// `passed` bytes lie behind the scan, and the blocks end at `end`.
    #[inline]
    pub(super) fn next(&mut self, block: Range<u64>, passed: u64, backward: bool, end: u64) -> Option<Range<u64>> {
        if passed < LEAST_PASSED {
            return None;
        }
        let window = passed.clamp(FIRST_WINDOW, LAST_WINDOW);
        let start = self.named.filter(|_| self.backward == backward);
        let range = if backward {
            let start = start.unwrap_or(block.end).min(block.end);
            if start + window / 2 < block.start {
                return None;
            }
            start.saturating_sub(window)..start
        } else {
            let start = start.unwrap_or(block.start).max(block.start);
            if start > block.end + window / 2 {
                return None;
            }
            start.min(end)..(start + window).min(end)
        };
        self.backward = backward;
        self.named = Some(if backward { range.start } else { range.end });
        Some(range).filter(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 8 << 10;
    const END: u64 = 8 << 20;

    /// The ranges that a scan names, with the block before which it names each.
    fn named(backward: bool) -> Vec<(u64, Range<u64>)> {
        let mut ahead = LookAhead::default();
        let step = |passed: u64| {
            let start = if backward { END - passed - BLOCK } else { passed };
            ahead.next(start..start + BLOCK, passed, backward, END).map(|range| (start, range))
        };
        (0..END / BLOCK).map(|number| number * BLOCK).filter_map(step).collect()
    }

    /// Everything behind the first blocks is named, once, before it is read, and in few ranges.
    #[test]
    fn all_is_named_once_and_ahead() {
        for backward in [false, true] {
            let named = named(backward);
            let is_ahead = |(block, range): &(u64, Range<u64>)| {
                let before = if backward { range.end <= block + BLOCK } else { range.start >= *block };
                before && range.end - range.start <= LAST_WINDOW
            };
            assert!(named.iter().all(is_ahead), "{named:?}");
            let joined = named.windows(2).all(|pair| {
                let (first, second) = (&pair[0].1, &pair[1].1);
                if backward { second.end == first.start } else { second.start == first.end }
            });
            assert!(joined, "{named:?}");
            let bytes: u64 = named.iter().map(|(_, range)| range.end - range.start).sum();
            assert_eq!(bytes, END - LEAST_PASSED, "{named:?}");
            assert!(named.len() < 40, "{named:?}");
        }
    }

    #[test]
    fn a_short_scan_names_nothing_and_a_turn_begins_anew() {
        let mut ahead = LookAhead::default();
        assert_eq!(ahead.next(0..BLOCK, BLOCK, false, END), None);
        let first = 1 << 20;
        assert_eq!(ahead.next(first..first + BLOCK, LEAST_PASSED, false, END), Some(first..first + FIRST_WINDOW));
        assert_eq!(ahead.next(first + BLOCK..first + 2 * BLOCK, LEAST_PASSED, false, END), None);
        let back = first - BLOCK;
        assert_eq!(ahead.next(back..first, LEAST_PASSED, true, END), Some(first - FIRST_WINDOW..first));
        ahead.clear();
        assert_eq!(ahead.next(0..BLOCK, LEAST_PASSED, true, END), Some(0..BLOCK));
    }
}
