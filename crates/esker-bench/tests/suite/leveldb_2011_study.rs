//! The page of 2011: every experiment has its rows on every engine found here.

#![allow(clippy::unwrap_used)]

use esker_bench::interrupt::Interrupt;
use esker_bench::record::{Host, Record};
use esker_bench::study::planned::Planned;
use esker_bench::sweep::grid::{self, Cell, Execution, Plan};
use esker_engines::{ENGINES, registry};
use std::collections::BTreeSet;
use std::path::Path;

fn planned(experiments: &str, engines: &[&str], scale: f64) -> Plan {
    let arguments = format!("--experiments={experiments} --scale={scale} --sync-ops=5 --kill-ops=1000 --repeat=1");
    let arguments: Vec<&str> = arguments.split(' ').filter(|argument| *argument != "--experiments=").collect();
    Planned::find("leveldb-2011").unwrap().plan(&arguments, engines, &[]).unwrap()
}

fn perform(cell: &Cell, db: &Path) -> Option<Vec<Record>> {
    let kinds = esker_bench::all_kinds();
    let kind = kinds.iter().find(|kind| kind.name == cell.engine).unwrap();
    if let Err(missing) = (kind.probe)(None) {
        assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
        eprintln!("skipped: {missing}");
        return None;
    }
    let execution = Execution { db: db.into(), ..Execution::here(&kinds, Interrupt::new()) };
    let finished = grid::perform(cell, &execution, &Host::default()).unwrap().finished;
    assert_eq!(finished.failure, None, "{}", cell.name());
    Some(finished.records)
}

fn rows(cell: &Cell) -> Vec<&str> {
    cell.tasks.iter().flat_map(|task| &task.steps).filter_map(|step| step.row.as_deref()).collect()
}

#[test]
fn every_row_is_measured_on_every_engine() {
    let db = tempfile::tempdir().unwrap();
    let in_process = "baseline,large-values,batches,sync,no-compression,more-memory,larger-caches,no-compression-reads";
    for cell in planned(in_process, &ENGINES, 0.005).cells {
        let Some(records) = perform(&cell, db.path()) else { continue };
        assert_eq!(records.iter().map(|record| record.row.as_str()).collect::<Vec<_>>(), rows(&cell));
        for record in &records {
            assert!(record.skipped.is_none() && record.ops > 0, "{} {}", cell.name(), record.row);
        }
    }
}

#[test]
fn the_plan_is_that_of_the_page() {
    let plan = planned("", &ENGINES, 1.0);
    let hashes: BTreeSet<String> = plan.cells.iter().map(Cell::hash).collect();
    assert_eq!(hashes.len(), plan.cells.len());
    let of = |experiment: &str, engine: &str| -> Vec<&Cell> {
        plan.cells.iter().filter(|cell| cell.experiment == experiment && cell.engine == engine).collect()
    };
    let baseline = of("baseline", "leveldb");
    assert_eq!(baseline.len(), 1);
    let flags = &baseline[0].tasks[0].flags;
    assert_eq!((flags["write_buffer_size"].as_str(), flags["cache_size"].as_str()), ("2097152", "2097152"));
    assert_eq!(
        flags["benchmarks"],
        "fillseq,readseq,readrandom,fillrandom,readrandom,readseq,compact,readrandom,readseq"
    );
    let variants: Vec<&str> = of("baseline", "sqlite").iter().map(|cell| cell.variant.as_str()).collect();
    assert_eq!(variants, ["rowid", "without rowid"]);
    let sqlite = &of("more memory", "sqlite")[0].tasks[0].flags;
    assert_eq!((sqlite["num_pages"].as_str(), sqlite["page_size"].as_str()), ("131072", "1024"));
    let kyoto = &of("baseline", "kyoto")[0].tasks[0].flags;
    assert_eq!((kyoto["cache_size"].as_str(), kyoto["page_size"].as_str()), ("4194304", "1024"));
    let memory = &of("more memory", "rocksdb")[0].tasks[0].flags;
    assert_eq!((memory["write_buffer_size"].as_str(), memory["cache_size"].as_str()), ("125829120", "8388608"));
    assert_eq!(of("sync", "device").len(), 1);
    assert_eq!(rows(of("sync", "device")[0]), ["device sync"]);
    assert!(of("no compression", "sqlite").is_empty() && of("kill", "kyoto").is_empty());
    assert_eq!(of("no compression", "kyoto")[0].tasks[0].flags["compression"], "0");
    for engine in ENGINES.iter().filter(|engine| **engine != "kyoto") {
        assert_eq!(rows(of("kill", engine)[0]), ["survivors after kill"], "{engine}");
    }
}

#[test]
fn the_device_takes_its_time_for_synced_puts() {
    let db = tempfile::tempdir().unwrap();
    let plan = planned("sync", &["esker"], 1.0);
    let records = perform(&plan.cells[0], db.path()).unwrap();
    assert_eq!((records[0].engine.as_str(), records[0].row.as_str(), records[0].ops), ("device", "device sync", 5));
    assert!(records[0].micros_per_op > 0.0 && records[0].durability.is_some());
}

#[test]
fn larger_write_buffers_are_counted_as_fewer_flushes() {
    if (registry::find("leveldb").unwrap().probe)(None).is_err() {
        assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"));
        eprintln!("skipped: no LevelDB");
        return;
    }
    let db = tempfile::tempdir().unwrap();
    let flushes = |experiment: &str| {
        let plan = planned(experiment, &["leveldb"], 0.05);
        let records = perform(&plan.cells[0], db.path()).unwrap();
        let fill = records.iter().find(|record| record.row == "fillrandom").unwrap();
        (fill.counters.flushes.unwrap(), fill.counters.compaction_bytes)
    };
    let (small, large) = (flushes("baseline"), flushes("more-memory"));
    assert!(small.0 > 4 * large.0.max(1) && small.1 >= large.1, "{small:?} {large:?}");
}

#[test]
fn mistakes_are_one_line() {
    let study = Planned::find("leveldb-2011").unwrap();
    for wrong in ["--scale=0", "--scale=NaN", "--sync-ops=0", "--kill-ops=0"] {
        assert!(!study.plan(&[wrong], &["esker"], &[]).unwrap_err().contains('\n'));
    }
}
