use super::*;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER};
use crate::base::memory::MemoryPool;

struct Written {
    arena: Arena,
    end: usize,
    entries: Vec<(Vec<u8>, Sequence)>,
}

const START: usize = 8;

impl Written {
    fn new() -> Written {
        Written { arena: Arena::new(1 << 20, &Arc::<MemoryPool>::default()), end: START, entries: Vec::new() }
    }

    fn write(&mut self, key: &[u8]) {
        let sequence = self.entries.len() as u64 + 1;
        let entry = Entry { key, sequence, kind: Kind::Put, expiry_ms: NEVER, value: b"" };
        self.end += self.arena.write_entry(self.end, &entry, 0, 0);
        self.entries.push((key.to_vec(), sequence));
    }

    fn sorted(&self) -> Vec<(Vec<u8>, Sequence)> {
        let mut sorted = self.entries.clone();
        sorted.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
        sorted
    }

    fn content(&self, run: &Run) -> Vec<(Vec<u8>, Sequence)> {
        let entries = run.offsets.iter().map(|&offset| self.arena.stored(offset));
        entries.map(|entry| (entry.key().to_vec(), entry.sequence())).collect()
    }
}

fn random_key(state: &mut u64, prefixes: &[&[u8]]) -> Vec<u8> {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let random = *state >> 33;
    let mut key = prefixes[random as usize % prefixes.len()].to_vec();
    // Few different bytes, among them zeroes: many ties, many keys that begin others.
    key.extend((0..random / 16 % 12).map(|at| [0, 0, b'a', 255][(random >> (8 + at)) as usize % 4]));
    key
}

#[test]
fn random_keys_are_ordered_and_found_in_every_run() {
    for seed in 1..40u64 {
        let mut state = seed;
        let prefixes: &[&[u8]] = match seed % 3 {
            0 => &[b""],
            1 => &[b"all of them begin like this "],
            _ => &[b"all of them begin like ", b"all of them begin like this ", b"all", b"all of the"],
        };
        let mut written = Written::new();
        let mut order = Order::default();
        for round in 0..30 {
            for _ in 0..(state >> 40) % [1, 3, 200][round % 3] + 1 {
                let key = random_key(&mut state, prefixes);
                written.write(&key);
            }
            let runs = order.extend(&written.arena, START, written.end).to_vec();
            assert!(runs.len() < 6, "seed {seed}: {} runs", runs.len());
            let mut all: Vec<_> = runs.iter().flat_map(|run| written.content(run)).collect();
            all.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
            assert_eq!(all, written.sorted(), "seed {seed}");
            for run in &runs {
                check_searches(&written, run, &mut state, prefixes, seed);
            }
        }
        let sealed = order.seal(&written.arena, START, written.end);
        assert_eq!(written.content(&sealed), written.sorted(), "seed {seed}");
    }
}

fn check_searches(written: &Written, run: &Run, state: &mut u64, prefixes: &[&[u8]], seed: u64) {
    let content = written.content(run);
    for probe in 0..20 {
        let key = match probe {
            0 => Vec::new(),
            1 => vec![255; 40],
            _ if probe % 2 == 0 => content[(*state >> 33) as usize % content.len()].0.clone(),
            _ => random_key(state, prefixes),
        };
        for sequence in [0, written.end as u64 / 100, MAX_SEQUENCE] {
            let expected = content.partition_point(|entry| compare(&entry.0, entry.1, &key, sequence).is_lt());
            let found = run.lower_bound(&written.arena, run.first_candidate(&key), &key, sequence);
            assert_eq!(found, expected, "seed {seed}, key {key:?} at {sequence}");
        }
        let candidates = run.candidates(&key);
        assert!(content[..candidates.start].iter().all(|entry| entry.0 < key), "seed {seed}, key {key:?}");
        assert!(content[candidates.end..].iter().all(|entry| entry.0 > key), "seed {seed}, key {key:?}");
    }
}

#[test]
fn a_sequential_load_is_not_sorted_and_its_prefix_shrinks() {
    let mut written = Written::new();
    let mut order = Order::default();
    for number in 95..1105 {
        written.write(format!("{number:016}").as_bytes());
        if number % 101 == 0 {
            order.extend(&written.arena, START, written.end);
        }
    }
    let run = order.seal(&written.arena, START, written.end);
    assert_eq!(run.prefix, b"000000000000");
    assert_eq!(written.content(&run), written.entries);
}

#[test]
fn heads_behind_a_shorter_prefix_are_those_of_the_whole_keys() {
    let key = b"0123456789abcdefghij";
    for long in 0..key.len() {
        for short in 0..=long {
            assert_eq!(lengthened(&key[short..long], head(key, long)), head(key, short), "{short} {long}");
        }
    }
}
