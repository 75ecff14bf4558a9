//! The memtable study: its plan, and that its readers find what they must.
//!
//! A reader of another process repeats the writer's random numbers, modulo a fifth of the keys.
//! What it finds is therefore a fixed number for every size, and the published 706,756 of 1,000,000
//! is one of them.

#![allow(clippy::unwrap_used)]

use esker_bench::filled::Filled;
use esker_bench::interrupt::Interrupt;
use esker_bench::random::{KeyGeneration, KeyRandom};
use esker_bench::record::{Host, Record};
use esker_bench::study::planned::Planned;
use esker_bench::sweep::grid::{self, Cell, Execution, Plan};
use esker_engines::registry::{self, KINDS};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Entries of the load, and keys that the reader of a fifth of them finds.
const FOUND: [(u64, u64); 5] =
    [(10_000, 1412), (100_000, 14_047), (500_000, 70_698), (1_000_000, 141_545), (5_000_000, 706_756)];

fn planned(arguments: &str, engines: &[&str]) -> Plan {
    Planned::find("memtable").unwrap().plan(&arguments.split(' ').collect::<Vec<_>>(), engines, &[]).unwrap()
}

/// Does a cell in this process.
fn perform(cell: &Cell, db: &Path) -> Vec<Record> {
    let execution = Execution { db: db.into(), ..Execution::here(&KINDS, Interrupt::new()) };
    let finished = grid::perform(cell, &execution, &Host::default()).unwrap().finished;
    assert_eq!(finished.failure, None, "{}", cell.name());
    finished.records
}

fn engines_here() -> Vec<&'static str> {
    let here = |name: &&str| match (registry::find(name).unwrap().probe)(None) {
        Ok(_) => true,
        Err(missing) => {
            assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
            eprintln!("skipped: {missing}");
            false
        }
    };
    ["esker", "leveldb", "rocksdb"].into_iter().filter(here).collect()
}

fn found(records: &[Record], row: &str) -> Option<u64> {
    records.iter().find(|record| record.row == row).unwrap_or_else(|| panic!("no row {row}")).found
}

#[test]
fn the_published_number_of_keys_comes_out_of_the_random_numbers() {
    for (entries, expected) in FOUND {
        let filled = Filled::replay(KeyGeneration::LevelDb, 1000, entries, entries / 5);
        let mut random = KeyRandom::new(KeyGeneration::LevelDb, 1001);
        let found = (0..entries / 5).filter(|_| filled.has(random.uniform(entries / 5))).count();
        assert_eq!(found as u64, expected, "{entries} entries");
    }
}

/// Reads `../shared/published.json`, beside the project, where the published figures are kept.
/// Without it the numbers above stand alone.
#[test]
fn the_expected_numbers_are_the_published_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{} is needed here", path.display());
        eprintln!("skipped: no {}", path.display());
        return;
    };
    let published: serde_json::Value = serde_json::from_str(&text).unwrap();
    let golden = published["golden"]["found_counts"].as_array().unwrap();
    let golden: BTreeMap<u64, u64> = golden
        .iter()
        .map(|line| (line["N"].as_u64().unwrap(), line["new_process_num_N_div_5"].as_u64().unwrap()))
        .collect();
    assert_eq!(golden, FOUND.into());
    assert_eq!(published["golden"]["dku_706756"]["found"], 706_756);
}

#[test]
fn readers_of_the_grid_find_the_published_numbers() {
    let db = tempfile::tempdir().unwrap();
    for engine in engines_here() {
        for (scale, expected) in [(0.002, 1412), (0.02, 14_047)] {
            let plan = planned(&format!("--scale {scale} --experiments grid"), &[engine]);
            assert_eq!(plan.cells.len(), 25);
            let corner =
                |cell: &&Cell| cell.variables["write_buffer_mib"] == "2" && cell.variables["max_file_mib"] == "32";
            let records = perform(plan.cells.iter().find(corner).unwrap(), db.path());
            let rows: Vec<&str> = records.iter().map(|record| record.row.as_str()).collect();
            assert_eq!(rows, ["fillseq", "readrandom after fillseq", "fillrandom", "readrandom after fillrandom"]);
            let reads = (1e6 * scale) as u64;
            assert_eq!(found(&records, "readrandom after fillseq"), Some(reads), "{engine}");
            assert_eq!(found(&records, "readrandom after fillrandom"), Some(expected), "{engine}");
            for record in &records {
                let counted = record.counters.comparisons;
                let counts = engine != "esker" && record.row.starts_with("fill");
                assert_eq!(counted.is_some(), counts, "{engine} {} {counted:?}", record.row);
                assert!(!counts || counted > Some(5 * reads), "{engine} {} {counted:?}", record.row);
            }
        }
    }
}

#[test]
fn what_is_asked_for_is_in_force() {
    let db = tempfile::tempdir().unwrap();
    for engine in engines_here() {
        let plan = planned("--scale 0.002 --experiments grid", &[engine]);
        let records = perform(&plan.cells[0], db.path());
        let settings: Vec<BTreeMap<String, String>> =
            records.iter().map(|record| record.settings.iter().cloned().collect()).collect();
        for setting in &settings {
            assert_eq!(setting["compression"], "none", "{engine}");
        }
        let filter = |index: usize| {
            let setting: &BTreeMap<String, String> = &settings[index];
            setting.get("bloom_bits").or(setting.get("filter_bits_per_key")).cloned().unwrap()
        };
        // In LevelDB 0 bits are a filter, if a bad one; its reader has none.
        let filters = (filter(0), filter(1));
        let expected = if engine == "leveldb" { ("0 (a filter of one probe)", "none") } else { ("0", "0") };
        assert_eq!((filters.0.as_str(), filters.1.as_str()), expected, "{engine}");
        assert!(records[1].tree_before.is_some_and(|tree| tree.runs > 0), "{engine}: {:?}", records[1].tree_before);
    }
}

#[test]
fn hits_and_misses_are_told_apart_in_every_variant() {
    let db = tempfile::tempdir().unwrap();
    // What a reader finds that does not repeat the random numbers of the load.
    let filled = Filled::replay(KeyGeneration::LevelDb, 1000, 10_000, 2000);
    let mut random = KeyRandom::new(KeyGeneration::LevelDb, 2001);
    let other_seed = (0..2000).filter(|_| filled.has(random.uniform(2000))).count() as u64;
    for engine in engines_here() {
        let plan = planned("--scale 0.002 --experiments why", &[engine]);
        assert_eq!(plan.cells.len(), 14);
        for cell in plan.cells.iter().filter(|cell| cell.variables["write_buffer_mib"] == "2") {
            let records = perform(cell, db.path());
            let variant = cell.variables["variant"].as_str();
            let expected = match variant {
                "unique keys" | "all keys" => 2000,
                "other seed" => other_seed,
                _ => 1412,
            };
            assert_eq!(found(&records, "readrandom"), Some(expected), "{engine} {variant}");
            if variant == "unique keys" {
                assert_eq!(records.len(), 2);
                continue;
            }
            assert_eq!(found(&records, "readrandom hits"), Some(2000), "{engine} {variant}");
            assert_eq!(found(&records, "readrandom misses"), Some(0), "{engine} {variant}");
            let fill = records.iter().find(|record| record.row == "fill").unwrap();
            assert!(fill.counters.flushes.is_some(), "{engine} {variant}: {:?}", fill.counters);
            let hits = records.iter().find(|record| record.row == "readrandom hits").unwrap();
            assert_eq!(hits.counters.files_probed.is_some(), ["esker", "rocksdb"].contains(&engine));
        }
    }
}

#[test]
fn topics_have_one_variable_and_run() {
    let db = tempfile::tempdir().unwrap();
    let plan = planned("--scale 0.002 --experiments wal,style,block-size,filter,cache", &engines_here());
    let names: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.experiment.as_str()).collect();
    assert_eq!(names, ["block size", "cache", "filter", "style", "wal"].into());
    for cell in &plan.cells {
        assert_eq!(cell.variables.keys().map(String::as_str).collect::<Vec<_>>(), [cell.experiment.as_str()]);
        let records = perform(cell, db.path());
        assert_eq!(records.len(), cell.tasks[0].steps.len());
        assert!(records.iter().all(|record| record.skipped.is_none()), "{}", cell.name());
    }
}

#[test]
fn cells_differ_and_are_interleaved() {
    let plan = planned("--spot-repeat 3", &["esker", "leveldb", "rocksdb"]);
    let hashes: BTreeSet<String> = plan.cells.iter().map(Cell::hash).collect();
    assert_eq!(hashes.len(), plan.cells.len());
    let grid = plan.cells.iter().filter(|cell| cell.experiment == "grid");
    assert_eq!(grid.clone().count(), 3 * (25 + 2 * 7));
    let engines: Vec<&str> = grid.take(3).map(|cell| cell.engine.as_str()).collect();
    assert_eq!(engines, ["esker", "leveldb", "rocksdb"]);
    let first = &plan.cells[0].tasks;
    assert_eq!((first[0].flags["num"].as_str(), first[0].flags["write_buffer_size"].as_str()), ("5000000", "2097152"));
    assert_eq!((first[1].flags["num"].as_str(), first[1].flags["reads"].as_str()), ("1000000", "1000000"));
    assert_eq!(first.iter().map(|task| task.keep).collect::<Vec<_>>(), [true, false, true, false]);
}

#[test]
fn mistakes_are_one_line() {
    let study = Planned::find("memtable").unwrap();
    for wrong in ["--scale=0", "--scale=NaN", "--scale=1e9", "--repeat=0", "--spot-repeat=0"] {
        assert!(!study.plan(&[wrong], &["esker"], &[]).unwrap_err().contains('\n'));
    }
}
