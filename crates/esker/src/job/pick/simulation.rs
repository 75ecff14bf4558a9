//! What each style costs, on a model: keys only, merged as planned.

use super::shape::{RunShape, TableShape};
use super::*;

const FLUSH_ENTRIES: u64 = 256;
const TABLE_ENTRIES: usize = 512;
const FLUSHES: u64 = 1200;
const KEYS: u64 = 100_000;

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
        settled: false,
    }
}

fn shape_of(runs: &[Run]) -> Shape<'_> {
    Shape {
        runs: runs.iter().map(|run| RunShape::new(run.iter().map(table).collect())).collect(),
        oldest_snapshot: u64::MAX,
        level_base_bytes: 4 * FLUSH_ENTRIES,
        ..Shape::default()
    }
}

fn carry_out(runs: &mut Vec<Run>, plan: Plan, number: &mut u64) -> u64 {
    let (taken, target): (Run, usize) = match plan {
        Plan::Merge { first, last } => {
            let taken = runs.splice(first..=last, [Vec::new()]).flatten().collect();
            (taken, first)
        }
        Plan::Partial { parts, target } => {
            let taken =
                parts.into_iter().flat_map(|part| runs[part.run].drain(part.tables).collect::<Vec<_>>()).collect();
            (taken, target)
        }
        other => panic!("nothing is dead here: {other:?}"),
    };
    let mut keys: Vec<[u8; 8]> = taken.into_iter().flat_map(|(_, keys)| keys).collect();
    keys.sort_unstable();
    keys.dedup();
    for chunk in keys.chunks(TABLE_ENTRIES) {
        *number += 1;
        runs[target].push((*number, chunk.to_vec()));
    }
    runs[target].sort_by(|a, b| a.1.cmp(&b.1));
    let disjoint = runs[target].windows(2).all(|pair| pair[0].1.last() < pair[1].1.first());
    assert!(disjoint, "tables of a run overlap");
    runs.retain(|run| !run.is_empty());
    keys.len() as u64
}

/// Entries written for each one put, the most runs there were, and the most space for each live key.
fn simulate(style: CompactionStyle) -> (f64, usize, f64) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut runs: Vec<Run> = Vec::new();
    let (mut written, mut number, mut most_runs, mut most_space) = (0, 0, 0, 0f64);
    let mut live = std::collections::BTreeSet::new();
    for _ in 0..FLUSHES {
        let mut keys = std::collections::BTreeSet::new();
        for _ in 0..FLUSH_ENTRIES {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            keys.insert((random % KEYS).to_be_bytes());
        }
        written += keys.len() as u64;
        live.extend(keys.iter().copied());
        number += 1;
        runs.insert(0, vec![(number, keys.into_iter().collect())]);
        for step in 0.. {
            let Some(plan) = pick(&shape_of(&runs), style) else { break };
            written += carry_out(&mut runs, plan, &mut number);
            assert!(step < 1000, "{style:?} does not come to an end");
        }
        most_runs = most_runs.max(runs.len());
        let space: usize = runs.iter().flatten().map(|(_, keys)| keys.len()).sum();
        most_space = most_space.max(space as f64 / live.len() as f64);
    }
    (written as f64 / (FLUSHES * FLUSH_ENTRIES) as f64, most_runs, most_space)
}

/// Writes are cheapest with tiered runs, space and reads with levels.
#[test]
fn every_style_costs_what_it_says() {
    let [lazy, leveled, tiered] = [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered]
        .map(|style| {
            let (writes, runs, space) = simulate(style);
            println!(
                "{style:?}: each entry is written {writes:.1} times; at most {runs} runs, {space:.2} times the space"
            );
            (writes, runs, space)
        });
    assert!(lazy.0 < 14.0 && leveled.0 < 16.0 && tiered.0 < 6.0, "writes: {lazy:?} {leveled:?} {tiered:?}");
    assert!(lazy.1 <= 8 && leveled.1 <= 8 && tiered.1 <= 12, "runs: {lazy:?} {leveled:?} {tiered:?}");
    assert!(leveled.2 < 1.6 && lazy.2 < 2.5 && tiered.2 <= 3.5, "space: {lazy:?} {leveled:?} {tiered:?}");
}
