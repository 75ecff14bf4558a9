//! Numbers in ascending order, laid out for search: a static B-tree whose nodes are cache lines.
//!
//! The numbers fill lines of eight, in order. Above them is a level with the last number of each
//! line but the last, in lines of eight again, and so on up to a single line. A search reads one
//! line of each level; all but the lowest one or two levels stay in the fastest cache. A binary
//! search over 16384 numbers waits for 14 loads in a row, this one for 5.

const WIDTH: usize = 8;

/// A cache line of numbers, filled up with the largest one, which is below nothing.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; WIDTH]);

impl Line {
    /// How many are below `wanted`.
    #[inline]
    fn below(&self, wanted: u64) -> usize {
        self.0.iter().map(|&number| usize::from(number < wanted)).sum()
    }
}

/// See the module's comment.
#[derive(Debug, Default)]
pub(super) struct StaticBTree {
    length: usize,
    /// The numbers themselves, then the levels above them, the highest one last.
    lines: Vec<Line>,
    /// Where in `lines` the levels begin, the highest one first.
    levels: Vec<usize>,
}

impl StaticBTree {
    /// The tree of `numbers`, which ascend; some may be the same.
    pub(super) fn new(numbers: &[u64]) -> StaticBTree {
        let mut lines: Vec<Line> = Vec::new();
        let mut levels = Vec::new();
        let mut level = numbers.to_vec();
        while !level.is_empty() {
            levels.push(lines.len());
            let (whole, rest) = level.as_chunks::<WIDTH>();
            let filled = (!rest.is_empty()).then(|| {
                let mut line = [u64::MAX; WIDTH];
                line[..rest.len()].copy_from_slice(rest);
                line
            });
            let of_level: Vec<Line> = whole.iter().copied().chain(filled).map(Line).collect();
            level = of_level[..of_level.len() - 1].iter().map(|line| line.0[WIDTH - 1]).collect();
            lines.extend(of_level);
        }
        levels.reverse();
        lines.shrink_to_fit();
        StaticBTree { length: numbers.len(), lines, levels }
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>() + self.levels.capacity() * size_of::<usize>()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        if index < self.length { self.lines.get(index / WIDTH).map(|line| line.0[index % WIDTH]) } else { None }
    }

    /// How many are below `wanted`.
    #[inline]
    pub(super) fn rank(&self, wanted: u64) -> usize {
        let mut at = 0;
        for &level in &self.levels {
            // A level leads only to lines that the next one has.
            at = at * WIDTH + self.lines.get(level + at).map_or(0, |line| line.below(wanted));
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_what_a_count_finds() {
        for length in (0..150).chain([511, 512, 513, 4095, 4096, 4097, 5000]) {
            // Neighbours that are the same, and the largest number itself.
            let mut numbers: Vec<u64> = (0..length).map(|i| i / 3 * 10).collect();
            numbers.extend((length % 4 == 1).then_some(u64::MAX));
            let heads = StaticBTree::new(&numbers);
            assert_eq!(heads.len(), numbers.len());
            let probes = numbers.iter().flat_map(|&n| [n.saturating_sub(1), n, n.saturating_add(1)]);
            for wanted in probes.chain([0, u64::MAX]) {
                assert_eq!(heads.rank(wanted), numbers.partition_point(|&n| n < wanted), "{wanted} of {length}");
            }
            assert!((0..numbers.len()).all(|i| heads.get(i) == Some(numbers[i])));
            assert_eq!(heads.get(numbers.len()), None);
        }
    }
}
