//! Made-up runs of every study; the figures mean nothing.

use esker_bench::record::{Host, Percentiles, Record, SCHEMA_VERSION};
use esker_bench::sweep::grid::{Cell, Finished, StudyRun};
use esker_engines::{Durability, ENGINES};

pub const SIZES: [&str; 5] = ["2", "4", "8", "16", "32"];

/// One run of each study.
pub fn all() -> Vec<StudyRun> {
    vec![rmw(), memtable(), leveldb_2011(), workloads(), sweep()]
}

pub fn run(study: &str, title: &str, finished: Vec<Finished>) -> StudyRun {
    StudyRun { study: study.into(), title: title.into(), finished, missing: 0 }
}

pub fn host() -> Host {
    Host {
        cpu: "Made-up Processor 9000 at 3.20 GHz".into(),
        cores: 2,
        memory_bytes: 24 << 30,
        kernel: "6.12.0".into(),
        file_system: "ext4".into(),
        mount_options: "rw,relatime".into(),
        governor: "performance".into(),
        esker_build: "0.1.0 (release)".into(),
        command_line: "esker study made-up --repeat 2".into(),
        date: "2030-01-02T03:04:05Z".into(),
        ..Host::default()
    }
}

pub fn record(engine: &str, row: &str, repetition: u32, micros: f64) -> Record {
    Record {
        schema: SCHEMA_VERSION,
        engine: engine.into(),
        engine_version: "1.2.3 (made up)".into(),
        benchmark: row.split(' ').next().unwrap_or(row).into(),
        row: row.into(),
        repetition,
        threads: 1,
        num: 1_000_000,
        ops: 1_000_000,
        wall_s: micros,
        micros_per_op: micros,
        micros_per_op_wall: micros,
        ops_per_sec: 1e6 / micros,
        latency: Percentiles {
            p50_us: micros * 0.8,
            p99_us: micros * 5.0,
            p999_us: micros * 31.0,
            p9999_us: micros * 160.0,
            max_us: micros * 900.0,
            ..Percentiles::default()
        },
        disk_bytes: 123 << 20,
        rss_peak_bytes: 45 << 20,
        durability: row.starts_with("fill").then_some(Durability::OperatingSystem),
        host: host(),
        started_unix_s: 1_900_000_000,
        ..Record::default()
    }
}

/// A cell with rows and their microseconds per operation; repetitions differ by a few percent.
pub fn cell(
    experiment: &str,
    (engine, variant): (&str, &str),
    variables: &[(&str, &str)],
    repetition: u32,
    rows: &[(&str, f64)],
) -> Finished {
    let noise = 1.0 + 0.03 * f64::from(repetition - 1);
    let records = rows.iter().map(|(row, micros)| record(engine, row, repetition, micros * noise)).collect();
    Finished {
        schema: 1,
        cell: Cell {
            experiment: experiment.into(),
            engine: engine.into(),
            variant: variant.into(),
            variables: variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            repetition,
            tasks: Vec::new(),
        },
        records,
        failure: None,
        seconds: 12.5,
        host: host(),
        finished_unix_s: 1_900_000_000 + u64::from(repetition) * 3600,
    }
}

/// How much slower than Esker an engine is here.
fn slowness(engine: &str) -> f64 {
    1.0 + ENGINES.iter().position(|known| *known == engine).unwrap_or(0) as f64 * 0.9
}

fn memtable() -> StudyRun {
    let mut cells = Vec::new();
    for engine in ["esker", "leveldb", "rocksdb"] {
        let slow = slowness(engine);
        for (line, buffer) in SIZES.iter().enumerate() {
            for (column, file) in SIZES.iter().enumerate() {
                let (line, column) = (line as f64, column as f64);
                let rows = [
                    ("fillseq", slow * (0.7 + 0.01 * column)),
                    ("readrandom after fillseq", slow * (1.1 + 0.005 * line)),
                    ("fillrandom", slow * (3.0 - 0.4 * line - 0.05 * column)),
                    ("readrandom after fillrandom", slow * (1.4 + 0.2 * line)),
                ];
                let variables = [("write_buffer_mib", *buffer), ("max_file_mib", *file)];
                let mut finished = cell("grid", (engine, ""), &variables, 1, &rows);
                for record in &mut finished.records {
                    if record.benchmark == "readrandom" {
                        record.found = Some(706_756);
                        record.message = "(706756 of 1000000 found)".into();
                    }
                }
                cells.push(finished);
            }
        }
        for variant in ["plain", "wait idle", "compact", "unique keys", "bloom 10", "all keys", "other seed"] {
            for buffer in ["2", "32"] {
                let rows = [("fill", slow * 2.5), ("readrandom", slow * 2.0), ("readrandom hits", slow * 1.8)];
                let variables = [("write_buffer_mib", buffer), ("variant", variant)];
                cells.push(cell("why", (engine, ""), &variables, 1, &rows));
            }
        }
        for wal in ["on", "off"] {
            cells.push(cell("wal", (engine, ""), &[("wal", wal)], 1, &[("fillseq", slow), ("fillrandom", slow * 2.0)]));
        }
    }
    run("memtable", "Write buffer and file size", cells)
}

fn leveldb_2011() -> StudyRun {
    let reads = [("readseq", 0.1), ("readrandom", 2.0)];
    let fills = [("fillseq", 0.6), ("fillrandom", 1.2)];
    let baseline = [
        ("fillseq", 0.6),
        ("readseq", 0.1),
        ("readrandom", 2.1),
        ("fillrandom", 1.1),
        ("readrandom after fillrandom", 3.0),
        ("readseq after fillrandom", 0.2),
        ("readrandom after compact", 2.0),
        ("readseq after compact", 0.1),
    ];
    let experiments: [(&str, &[(&str, f64)]); 8] = [
        ("baseline", &baseline),
        ("large values", &[("fillseq100K", 90.0), ("fillrand100K", 120.0)]),
        ("batches", &[("fillseqbatch", 0.4), ("fillrandbatch", 0.7)]),
        ("sync", &[("fillseqsync", 900.0), ("fillrandsync", 950.0)]),
        ("no compression", &fills),
        ("more memory", &fills),
        ("larger caches", &reads),
        ("no compression reads", &reads),
    ];
    let mut cells = Vec::new();
    for (experiment, rows) in experiments {
        for engine in ENGINES {
            let variants: &[&str] = if engine == "sqlite" { &["rowid", "without rowid"] } else { &[""] };
            let rows: Vec<(&str, f64)> = rows.iter().map(|(row, micros)| (*row, micros * slowness(engine))).collect();
            for variant in variants {
                for repetition in 1..=2 {
                    cells.push(cell(experiment, (engine, variant), &[], repetition, &rows));
                }
            }
        }
    }
    for finished in cells.iter_mut().filter(|finished| finished.cell.engine == "kyoto") {
        for record in finished.records.iter_mut().filter(|record| record.row.ends_with("batch")) {
            *record = Record { skipped: Some("engine has no batches".into()), ops_per_sec: 0.0, ..record.clone() };
        }
    }
    // One engine whose writes were less durable than the others'.
    for record in cells.iter_mut().filter(|finished| finished.cell.engine == "redb").flat_map(|cell| &mut cell.records)
    {
        record.durability = record.durability.map(|_| Durability::Process);
    }
    run("leveldb-2011", "The page of 2011", cells)
}

fn rmw() -> StudyRun {
    let mut cells = Vec::new();
    for engine in ["esker", "rocksdb"] {
        for (scale, num) in [("1/100", "500000"), ("1/10", "5000000"), ("1", "50000000")] {
            for (benchmark, micros, check) in
                [("updaterandom", 2.2, "verifyupdates"), ("mergerandom", 0.6, "verifymerges")]
            {
                let variables = [("threads", "10"), ("num", num), ("scale", scale), ("benchmark", benchmark)];
                for repetition in 1..=2 {
                    let rows = [(benchmark, micros * slowness(engine)), (check, 0.3)];
                    let mut finished = cell("seed", (engine, ""), &variables, repetition, &rows);
                    finished.records[0].found = (benchmark == "updaterandom").then_some(450_003);
                    finished.records[1].message = "(500000 counters, every one as it must be)".into();
                    cells.push(finished);
                }
            }
        }
        let deferred = [("readrandom after updaterandom", 2.0), ("readrandom after mergerandom", 4.0)];
        cells.push(cell("deferred", (engine, ""), &[("threads", "1"), ("num", "500000")], 1, &deferred));
    }
    run("rmw", "Read-modify-write", cells)
}

fn workloads() -> StudyRun {
    let mut cells = Vec::new();
    for engine in ENGINES {
        for rate in ["20000", "80000"] {
            let mut finished =
                cell("fixed rate", (engine, ""), &[("rate", rate)], 1, &[("readrandom at a fixed rate", 12.5)]);
            finished.records[0].latency.max_us = 88_000.0 * slowness(engine);
            cells.push(finished);
        }
        let rows = [("ycsb A", 1.5), ("ycsb B", 1.2), ("ycsb E", 9.0), ("queue", 0.8)];
        cells.push(cell("ycsb", (engine, ""), &[], 1, &rows));
    }
    let mut failed = cell("queue", ("fjall", ""), &[], 1, &[]);
    failed.failure = Some("no space left on device".into());
    cells.push(failed);
    StudyRun { missing: 3, ..run("workloads", "Workloads that other tools lack", cells) }
}

fn sweep() -> StudyRun {
    let mut cells = Vec::new();
    for engine in ["esker", "leveldb"] {
        for block in ["1 KiB", "4 KiB", "16 KiB"] {
            for threads in ["1", "2"] {
                let variables = [("block_size", block), ("threads", threads)];
                let micros = slowness(engine) * if threads == "1" { 1.0 } else { 0.7 };
                cells.push(cell(
                    "",
                    (engine, ""),
                    &variables,
                    1,
                    &[("readrandom", micros), ("fillrandom", 2.0 * micros)],
                ));
            }
        }
    }
    run("sweep", "Block size and threads", cells)
}
