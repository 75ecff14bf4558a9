//! Seeded choices of the simulated machine.

/// A small generator of the splitmix family: equal seeds give equal choices on every platform.
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// A stream of its own for each item, so that one item's choices do not depend on how many
    /// others there are.
    pub(super) fn new(seed: u64, item: u64) -> Random {
        let mut random = Random { state: seed };
        random.state = random.next() ^ item.wrapping_mul(0xd605_1e4d_2f0e_9a5b);
        random
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(super) fn pick(&mut self, from: &[usize]) -> usize {
        from[self.below(from.len())]
    }

    pub(super) fn garbage(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
