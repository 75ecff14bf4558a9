//! The cost of each style, on a model: keys only, compacted as planned.

use super::shape::{RunShape, TableShape};
use super::*;
use std::collections::BTreeSet;

/// A flush of twice as many makes a table that is cut.
const FLUSH_ENTRIES: u64 = 128;
const TABLE_ENTRIES: usize = 256;
/// A compaction that does not go into the last run is cut into this many tables at least.
const UPPER_TABLES: usize = 8;

/// A run: tables of sorted keys.
type Run = Vec<(u64, Vec<[u8; 8]>)>;

fn table((number, keys): &(u64, Vec<[u8; 8]>)) -> TableShape<'_> {
    TableShape {
        blob_bytes: 0,
        number: *number,
        bytes: keys.len() as u64,
        entries: keys.len() as u64,
        deletes: 0,
        expiring_entries: 0,
        smallest_expiry_ms: 0,
        largest_expiry_ms: 0,
        newest: *number,
        smallest: keys.first().map_or(&[], |key| key.as_slice()),
        largest: Bound::Included(keys.last().map_or(&[], |key| key.as_slice())),
        rewrite_futile: false,
    }
}

fn shape_of(runs: &[Run], high_read_amp: bool) -> Shape<'_> {
    Shape {
        runs: runs.iter().map(|run| RunShape::new(run.iter().map(table).collect())).collect(),
        oldest_snapshot: u64::MAX,
        level_base_bytes: 4 * FLUSH_ENTRIES,
        high_read_amp,
        ..Shape::default()
    }
}

/// Carries out a plan; returns the entries written.
fn carry_out(runs: &mut Vec<Run>, plan: Plan, number: &mut u64) -> u64 {
    let last = runs.len() - 1;
    let mut boundaries: Vec<[u8; 8]> = runs[last].iter().map(|(_, keys)| keys[0]).collect();
    let (taken, target, plain): (Run, usize, bool) = match plan {
        Plan::Merge { first, last: end } => {
            let taken = runs.splice(first..=end, [Vec::new()]).flatten().collect();
            (taken, first, end == last)
        }
        Plan::Partial { parts, target } => {
            let taken =
                parts.into_iter().flat_map(|part| runs[part.run].drain(part.tables).collect::<Vec<_>>()).collect();
            (taken, target, true)
        }
        other => panic!("nothing is dead here: {other:?}"),
    };
    let mut keys: Vec<[u8; 8]> = taken.into_iter().flat_map(|(_, keys)| keys).collect();
    keys.sort_unstable();
    keys.dedup();
    let most = if plain { TABLE_ENTRIES } else { TABLE_ENTRIES.min(keys.len().div_ceil(UPPER_TABLES)) };
    if plain {
        boundaries.clear();
    }
    let mut rest = keys.as_slice();
    let mut boundaries = boundaries.as_slice();
    while !rest.is_empty() {
        let mut length = most.min(rest.len());
        // Where a table of the last run begins, if that comes at half of the size or later.
        while let Some((boundary, later)) = boundaries.split_first() {
            let at = rest.partition_point(|key| key < boundary);
            if at >= length {
                break;
            }
            boundaries = later;
            if at >= most.div_ceil(2) {
                length = at;
                break;
            }
        }
        *number += 1;
        runs[target].push((*number, rest[..length].to_vec()));
        rest = &rest[length..];
    }
    runs[target].sort_by(|a, b| a.1.cmp(&b.1));
    let disjoint = runs[target].windows(2).all(|pair| pair[0].1.last() < pair[1].1.first());
    assert!(disjoint, "tables of a run overlap");
    runs.retain(|run| !run.is_empty());
    keys.len() as u64
}

/// What a load costs.
#[derive(Debug, Default)]
struct Cost {
    /// Entries written for each one put.
    writes: f64,
    /// The most runs there were.
    runs: usize,
    /// The most entries in tables for each live key.
    space: f64,
    /// The most entries that one compaction wrote, beside its inputs, for each live key. Counted
    /// once there are enough to be cut.
    beside: f64,
}

/// Puts keys below `keys` in random order, so many flushes of them.
fn simulate(style: CompactionStyle, flushes: u64, keys: u64) -> Cost {
    simulate_with(style, false, flushes, keys)
}

/// The same with high read amplification, and without.
fn simulate_with(style: CompactionStyle, high_read_amp: bool, flushes: u64, keys: u64) -> Cost {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut runs: Vec<Run> = Vec::new();
    let (mut written, mut number, mut cost) = (0, 0, Cost::default());
    let mut live = BTreeSet::new();
    for _ in 0..flushes {
        let mut flushed = BTreeSet::new();
        for _ in 0..FLUSH_ENTRIES {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            flushed.insert((random % keys).to_be_bytes());
        }
        written += flushed.len() as u64;
        live.extend(flushed.iter().copied());
        number += 1;
        runs.insert(0, vec![(number, flushed.into_iter().collect())]);
        for step in 0.. {
            cost.runs = cost.runs.max(runs.len());
            let Some(plan) = pick(&shape_of(&runs, high_read_amp), style) else { break };
            let wrote = carry_out(&mut runs, plan, &mut number);
            written += wrote;
            if live.len() > 32 * TABLE_ENTRIES {
                cost.beside = cost.beside.max(wrote as f64 / live.len() as f64);
            }
            assert!(step < 1000, "{style:?} does not come to an end");
        }
        let space: usize = runs.iter().flatten().map(|(_, keys)| keys.len()).sum();
        cost.space = cost.space.max(space as f64 / live.len() as f64);
    }
    cost.writes = written as f64 / (flushes * FLUSH_ENTRIES) as f64;
    println!("{style:?}, {flushes} flushes of {keys} keys: {cost:.2?}");
    cost
}

/// Every key is put about once.
const UNIQUE: u64 = u64::MAX;

/// Loads of three sizes: each key new, 37 of 100 puts of a key that is there, and each key three
/// times.
fn loads(style: CompactionStyle) -> Vec<Cost> {
    let sizes = [(20, 1), (110, 1), (400, 1), (1200, 3)];
    let repeated = sizes.map(|(flushes, times)| simulate(style, flushes, flushes * FLUSH_ENTRIES / times));
    repeated.into_iter().chain([110, 400].map(|flushes| simulate(style, flushes, UNIQUE))).collect()
}

#[test]
fn lazy_leveling_costs_what_it_says() {
    let mut costs = loads(CompactionStyle::LazyLeveling);
    costs.push(simulate(CompactionStyle::LazyLeveling, 5000, 5000 * FLUSH_ENTRIES));
    for cost in costs {
        assert!(cost.writes < 8.0 && cost.runs <= 13 && cost.space < 1.6 && cost.beside < 0.5, "{cost:?}");
    }
}

/// A load of gets without filters has few runs to search, for more rewrites.
#[test]
fn lazy_leveling_costs_more_while_gets_probe_many_runs() {
    for (flushes, keys, writes) in [(20, 1, 8.0), (110, 1, 8.0), (400, 1, 12.0), (1200, 3, 12.0), (5000, 1, 24.0)] {
        let cost = simulate_with(CompactionStyle::LazyLeveling, true, flushes, flushes * FLUSH_ENTRIES / keys);
        assert!(cost.writes < writes && cost.runs <= 5 && cost.space < 1.4 && cost.beside < 0.5, "{cost:?}");
    }
}

/// Space and reads are cheapest with levels.
#[test]
fn leveled_costs_what_it_says() {
    for cost in loads(CompactionStyle::Leveled) {
        assert!(cost.writes < 18.0 && cost.runs <= 8 && cost.space < 1.6 && cost.beside < 0.5, "{cost:?}");
    }
}

/// Writes are cheapest with tiers.
#[test]
fn tiered_costs_what_it_says() {
    for cost in loads(CompactionStyle::Tiered) {
        assert!(cost.writes < 6.0 && cost.runs <= 13 && cost.space <= 3.5 && cost.beside <= 1.0, "{cost:?}");
    }
}
