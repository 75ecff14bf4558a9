//! The study of counters: its cells have the published flags, and it runs. A program of its own,
//! because one of the rules of comparison is about the memory of the process.

#![allow(clippy::unwrap_used)]

use esker_bench::interrupt::Interrupt;
use esker_bench::reference;
use esker_bench::study::planned::Planned;
use esker_bench::sweep::fairness;
use esker_bench::sweep::grid::{Cell, Execution, GridArguments, Plan, RunDirectory, run_study};
use std::collections::BTreeSet;

fn made(text: &str, engines: &[&str]) -> Plan {
    Planned::find("rmw").unwrap().plan(&text.split_whitespace().collect::<Vec<_>>(), engines, &[]).unwrap()
}

fn flag<'a>(cell: &'a Cell, name: &str) -> &'a str {
    cell.tasks[0].flags.get(name).map_or("", String::as_str)
}

#[test]
fn a_tenth_has_a_tenth_of_everything_but_blocks() {
    let plan = made("", &["esker"]);
    let seed: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.experiment == "seed").collect();
    assert_eq!(seed.len(), 2);
    for cell in seed {
        for (name, value) in [
            ("num", "5000000"),
            ("threads", "10"),
            ("value_size", "8"),
            ("block_size", "65536"),
            ("disable_wal", "1"),
            ("write_buffer_size", "419430"),
            ("max_file_size", "209715"),
            ("max_bytes_for_level_base", "1048576"),
            ("cache_size", "838860"),
            ("num_levels", "6"),
            ("level0_file_num_compaction_trigger", "4"),
            ("level0_slowdown_writes_trigger", "8"),
            ("level0_stop_writes_trigger", "12"),
            ("min_level_to_compress", "2"),
            ("max_background_compactions", "20"),
        ] {
            assert_eq!(flag(cell, name), value, "{name}");
        }
        let variables: Vec<&str> = cell.variables.keys().map(String::as_str).collect();
        assert_eq!(variables, ["benchmark", "num", "scale", "threads"]);
        let steps = &cell.tasks[0].steps;
        assert!(steps[0].threads == 10 && steps[0].every_latency && cell.tasks[0].verify);
        let config = cell.tasks[0].config().unwrap();
        assert_eq!(config.merge_keys, 5_000_000);
    }
}

#[test]
fn the_full_size_is_the_published_one() {
    let plan = made("--scale 1", &["esker"]);
    assert_eq!(plan.cells.len(), 4);
    let of = |name: &str| plan.cells.iter().filter(|cell| cell.experiment == name).collect::<Vec<_>>();
    let steps = |cell: &Cell| cell.tasks[0].steps.iter().map(|step| step.benchmark.clone()).collect::<Vec<_>>();
    for cells in [of("seed"), of("recommended")] {
        assert_eq!(steps(cells[0]), ["updaterandom", "verifyupdates"]);
        assert_eq!(steps(cells[1]), ["mergerandom", "verifymerges"]);
        assert_eq!((flag(cells[1], "merge_operator"), flag(cells[0], "merge_operator")), ("uint64add", ""));
        assert!(cells.iter().all(|cell| (flag(cell, "num"), flag(cell, "block_size")) == ("50000000", "65536")));
    }
    for cell in of("seed") {
        assert_eq!((flag(cell, "cache_size"), flag(cell, "bloom_bits")), ("8388608", "-1"));
        assert_eq!(cell.tasks[0].memory, None);
    }
    for cell in of("recommended") {
        // Nothing that tunes an engine of the year of the published run.
        assert_eq!((flag(cell, "num_levels"), flag(cell, "bloom_bits"), flag(cell, "statistics")), ("", "", ""));
        assert_eq!(cell.tasks[0].memory, Some(3_200_000_000));
    }
    let engines = |text: &str| made(text, &[]).cells.into_iter().map(|cell| cell.engine).collect::<BTreeSet<_>>();
    assert_eq!(engines("--scale 1"), ["esker".to_string()].into());
    assert_eq!(engines("--scale 1/100"), ["esker".to_string(), "rocksdb".to_string()].into());
    let experiments: BTreeSet<String> = made("--scale 1 --experiments seed,deferred", &["esker"])
        .cells
        .into_iter()
        .map(|cell| cell.experiment)
        .collect();
    assert_eq!(experiments, ["seed".to_string(), "deferred".to_string()].into());
}

#[test]
fn every_experiment_varies_what_it_is_about() {
    let plan = made("--scale 1/100", &["esker", "rocksdb"]);
    let cells = |name: &str| plan.cells.iter().filter(|cell| cell.experiment == name).collect::<Vec<_>>();
    let counts = ["seed", "unscaled", "threads", "small blocks", "cached", "operand", "deferred", "recommended"];
    assert_eq!(counts.map(|name| cells(name).len()), [4, 4, 8, 8, 4, 4, 4, 4]);
    for cell in cells("unscaled") {
        assert_eq!((flag(cell, "num"), flag(cell, "write_buffer_size")), ("500000", "4194304"));
        assert_eq!((flag(cell, "max_file_size"), flag(cell, "max_bytes_for_level_base")), ("2097152", "10485760"));
    }
    for cell in cells("seed") {
        // A hundredth would be 41,943 bytes, of which LevelDB and RocksDB make 65,536.
        assert_eq!(flag(cell, "write_buffer_size"), "65536");
    }
    let threads: Vec<u32> = cells("threads").iter().map(|cell| cell.tasks[0].steps[0].threads).collect();
    assert_eq!(threads, [1, 1, 2, 2, 1, 1, 2, 2]);
    for cell in cells("small blocks") {
        assert_eq!(flag(cell, "block_size"), "4096");
        let expected = if cell.variables["cache"] == "all" { "32000000" } else { "83886" };
        assert_eq!(flag(cell, "cache_size"), expected);
    }
    for cell in cells("operand") {
        assert_eq!(flag(cell, "merge_operand"), cell.variables["operand"]);
        assert!(!cell.variables.contains_key("benchmark"));
    }
    let rows = |cell: &Cell| cell.tasks[0].steps.iter().filter_map(|step| step.row.clone()).collect::<Vec<_>>();
    assert_eq!(
        rows(cells("deferred")[0]),
        [
            "updaterandom",
            "readrandom after updaterandom",
            "readrandom after updaterandom after compact",
            "verifyupdates"
        ]
    );
    // Cells are told apart by what they do.
    let mut hashes: Vec<String> = plan.cells.iter().map(Cell::hash).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), plan.cells.len());
}

/// Few enough counters for a test.
fn tiny(mut plan: Plan) -> Plan {
    for task in plan.cells.iter_mut().flat_map(|cell| &mut cell.tasks) {
        task.flags.insert("num".into(), "500".into());
        task.steps.iter_mut().for_each(|step| step.reads = step.reads.map(|_| 100));
    }
    plan
}

#[test]
fn all_cells_run_and_verify() {
    let base = tempfile::tempdir().unwrap();
    let run = base.path().join("run");
    let grid = GridArguments { run: Some(run.clone()), db: Some(base.path().join("db")), ..GridArguments::default() };
    let kinds = [reference::KIND, esker_engines::esker::KIND];
    let mut out = Vec::new();
    let study = Planned::find("rmw").unwrap();
    let make = |engines: &[String]| {
        let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
        study.plan(&["--scale=1/100"], &engines, &[]).map(tiny)
    };
    let execution = Execution::here(&kinds, Interrupt::new());
    let code = run_study(execution, "study rmw", &grid, "reference,esker", make, &mut out);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&out));
    let finished = RunDirectory::open(&run).unwrap().finished().unwrap();
    assert_eq!(finished.len(), 40);
    for cell in &finished {
        assert_eq!(cell.failure, None, "{}", cell.cell.name());
        let last = cell.records.last().unwrap();
        assert!(last.benchmark.starts_with("verify") && last.skipped.is_none(), "{}", cell.cell.name());
        let look = last.verification.as_ref().unwrap();
        assert!(look.entries > 0 && look.mismatches == 0, "{}", cell.cell.name());
    }
    // The reference engine maps nothing, and Esker its tables where the published flags do not ask
    // for the contrary; everything else is as fair as it must be.
    let mut broken = fairness::violations(&finished);
    broken.retain(|one| {
        let maps = one.reason.contains("mapped memory (its tables)");
        !(maps && one.engine == "esker" && one.experiment == "recommended")
    });
    assert_eq!(broken, []);
}
