use super::*;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, compare};
use crate::base::memory::MemoryPool;
use crate::memtable::arena::{Appender, START};

struct Written {
    arena: Arena,
    appender: Appender,
    entries: Vec<(Vec<u8>, Sequence)>,
}

impl Written {
    fn new() -> Written {
        Written::with_room(1 << 20)
    }

    fn with_room(bytes: usize) -> Written {
        let (arena, appender) = Arena::new(bytes, &Arc::<MemoryPool>::default());
        Written { arena, appender, entries: Vec::new() }
    }

    /// All in one run, as a flush needs it.
    fn seal(&self, order: &mut Order) -> Arc<Run> {
        order.extend(&self.arena, START, self.appender.end());
        while let Some(pair) = order.any_pair() {
            order.replace(&pair, Run::merge(&self.arena, &pair[0], &pair[1]));
        }
        order.first()
    }

    fn write(&mut self, key: &[u8]) {
        let sequence = self.entries.len() as u64 + 1;
        let entry = Entry { key, sequence, kind: Kind::Put, expiry_ms: NEVER, value: b"" };
        self.arena.append(&mut self.appender, &entry, 0, 0);
        self.entries.push((key.to_vec(), sequence));
    }

    fn sorted(&self) -> Vec<(Vec<u8>, Sequence)> {
        let mut sorted = self.entries.clone();
        sorted.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
        sorted
    }

    fn content(&self, run: &Run) -> Vec<(Vec<u8>, Sequence)> {
        let entries = (0..run.len()).map(|index| self.arena.stored(run.offset(index)));
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
    for seed in 1..if cfg!(miri) { 4 } else { 40u64 } {
        let mut state = seed;
        let prefixes: &[&[u8]] = match seed % 3 {
            0 => &[b""],
            1 => &[b"all of them begin like this "],
            _ => &[b"all of them begin like ", b"all of them begin like this ", b"all", b"all of the"],
        };
        let mut written = Written::new();
        let mut order = Order::default();
        for round in 0..if cfg!(miri) { 4 } else { 30 } {
            for _ in 0..(state >> 40) % [1, 3, 200][round % 3] + 1 {
                let key = random_key(&mut state, prefixes);
                written.write(&key);
            }
            let runs = order.extend(&written.arena, START, written.appender.end()).to_vec();
            assert!(runs.len() < 6, "seed {seed}: {} runs", runs.len());
            let mut all: Vec<_> = runs.iter().flat_map(|run| written.content(run)).collect();
            all.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
            assert_eq!(all, written.sorted(), "seed {seed}");
            for run in &runs {
                check_searches(&written, run, &mut state, prefixes, seed);
            }
        }
        let sealed = written.seal(&mut order);
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
        for sequence in [0, written.appender.end() as u64 / 100, MAX_SEQUENCE] {
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
            order.extend(&written.arena, START, written.appender.end());
        }
    }
    let run = written.seal(&mut order);
    assert_eq!(run.head_prefix(), b"000000000000");
    assert_eq!(written.content(&run), written.entries);
}

/// A number that looks random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
#[cfg_attr(miri, ignore = "it counts; nothing that others do not do as well, for an hour")]
fn no_reader_beside_a_writer_moves_many_entries_and_few_runs_are_left() {
    for (seed, most_at_once, background) in [(1, 1, true), (2, 300, true), (3, 2000, true), (4, 2000, false)] {
        let mut state = seed;
        let mut written = Written::with_room(16 << 20);
        let mut order = Order::default();
        while written.entries.len() < 200_000 {
            let fresh = (next(&mut state) % most_at_once + 1) as usize;
            for _ in 0..fresh {
                let key = format!("{:016}", next(&mut state) % 1_000_000);
                written.write(key.as_bytes());
            }
            let before = order.moved;
            let runs = order.extend(&written.arena, START, written.appender.end()).len();
            let moved = order.moved - before;
            if background {
                // Each merge of a reader's makes a run longer than the one before by a quarter at
                // least, up to the limit.
                assert!(moved <= fresh + 5 * MOST_MERGED, "seed {seed}: {moved} moved for {fresh}");
                assert!(runs <= 10, "seed {seed}: {runs} runs");
                while let Some(pair) = order.pair_to_merge() {
                    order.replace(&pair, Run::merge(&written.arena, &pair[0], &pair[1]));
                }
            } else {
                assert!(runs <= MOST_RUNS, "seed {seed}: {runs} runs");
            }
        }
        // With one entry at a time each is copied along with a short run.
        let each = order.moved / written.entries.len();
        assert!(each < if most_at_once == 1 { 160 } else { 24 }, "seed {seed}: every entry was moved {each} times");
        let sealed = written.seal(&mut order);
        assert_eq!(written.content(&sealed), written.sorted(), "seed {seed}");
    }
}

#[test]
fn a_merge_of_runs_that_are_gone_is_dropped() {
    let mut written = Written::new();
    let mut order = Order::default();
    let count = if cfg!(miri) { 300 } else { 3000 };
    for number in 0..count {
        written.write(format!("{:04}", number * 7919 % count).as_bytes());
        if number == count * 2 / 3 {
            order.extend(&written.arena, START, written.appender.end());
        }
    }
    order.extend(&written.arena, START, written.appender.end());
    let old = [order.first(), order.first()];
    order.replace(&old, Run::empty());
    let sealed = written.seal(&mut order);
    assert_eq!(written.content(&sealed), written.sorted());
}
