//! What the sectors of a file held before they were last written: what a disk still holds there
//! that has acknowledged a write and lost it.

use super::content::{Content, PAGE};
use std::collections::BTreeSet;
use std::ops::Range;

/// The unit that a disk writes as a whole.
pub(super) const SECTOR: usize = 512;

/// Of each sector and of each page that was ever written the bytes before its last write. A page is
/// remembered besides, because its sectors may have been written at different times.
#[derive(Clone, Default)]
pub(super) struct Earlier {
    sectors: BTreeSet<usize>,
    by_sector: Content,
    by_page: Content,
}

impl Earlier {
    /// Notes that `written` was put over `before` in one go.
    pub(super) fn note(&mut self, before: &Content, written: &[Range<usize>]) {
        let touched = |unit: usize| -> BTreeSet<usize> {
            let some = written.iter().filter(|range| !range.is_empty());
            some.flat_map(|range| range.start / unit..=(range.end - 1) / unit).collect()
        };
        for sector in touched(SECTOR) {
            self.by_sector.write(sector * SECTOR, &padded(before, sector * SECTOR, SECTOR));
            self.sectors.insert(sector);
        }
        for page in touched(PAGE) {
            self.by_page.write(page * PAGE, &padded(before, page * PAGE, PAGE));
        }
    }

    /// The unit at `start`, which is a whole sector or page, before its last write; `None` if it
    /// was never written.
    pub(super) fn unit(&self, start: usize, unit: usize) -> Option<Vec<u8>> {
        self.sectors.range(start / SECTOR..(start + unit).div_ceil(SECTOR)).next()?;
        Some(padded(if unit == PAGE { &self.by_page } else { &self.by_sector }, start, unit))
    }
}

/// Those bytes, with zeroes behind the end.
pub(super) fn padded(content: &Content, start: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let there = content.len().saturating_sub(start).min(len);
    let whole = content.read(start, &mut bytes[..there]);
    debug_assert!(whole || there == 0);
    bytes
}
