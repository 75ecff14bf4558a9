use super::*;
use crate::base::key::{Entry, Kind, NEVER};
use crate::base::memory::MemoryPool;
use std::sync::Arc;

#[test]
fn heads_behind_a_shorter_prefix_are_those_of_the_whole_keys() {
    let key = b"0123456789abcdefghij";
    for long in 0..key.len() {
        for short in 0..=long {
            assert_eq!(lengthened(&key[short..long], head(key, long)), head(key, short), "{short} {long}");
        }
    }
}

#[test]
fn merges_of_all_lengths_keep_the_order_of_versions() {
    let mut state = 7u64;
    for case in 0..if cfg!(miri) { 6 } else { 60 } {
        let (arena, mut appender) = Arena::new(1 << 20, &Arc::<MemoryPool>::default());
        let mut sequence = 0;
        let mut gather = |count: usize| {
            let mut gathered = Gathered::default();
            for _ in 0..count {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let number = (state >> 33) % 300;
                // Of one length, which the head reaches the end of or not; or of several, that
                // begin each other.
                let key = match case % 3 {
                    0 => format!("{number:09}"),
                    1 => format!("{:013}", number << 30),
                    _ => format!("key{}{}", "\0".repeat(number as usize % 3), number / 30),
                };
                sequence += 1;
                let entry = Entry { key: key.as_bytes(), sequence, kind: Kind::Put, expiry_ms: NEVER, value: b"" };
                let at = arena.append(&mut appender, &entry, 0, 0);
                gathered.push(&arena, entry.key, (at / 8) as u32);
            }
            gathered.sort(&arena);
            gathered.to_run()
        };
        let counts = [(1, 500), (500, 1), (0, 5), (20, 900), (300, 200), (1, 1)][case / 3 % 6];
        let (a, b) = (gather(counts.0), gather(counts.1));
        let merged = Run::merge(&arena, &a, &b);
        let mut expected: Vec<u32> = a.offsets.iter().chain(&b.offsets).copied().collect();
        expected.sort_by(|&x, &y| compare_in_full(&arena, x, y));
        assert_eq!(merged.offsets, expected, "case {case}");
        let heads = expected.iter().map(|&offset| head(arena.stored(offset).key(), merged.prefix.len()));
        assert_eq!(merged.heads, heads.collect::<Vec<_>>(), "case {case}");
    }
}
