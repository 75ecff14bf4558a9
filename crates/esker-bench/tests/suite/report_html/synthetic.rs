//! Made-up runs for the tests of the report; the figures mean nothing.

use esker_bench::record::{Host, Percentiles, Record, Run, SCHEMA_VERSION};
use esker_engines::{Counters, Durability, ENGINES};

/// Rows with the microseconds per operation of Esker, the class of writes, and whether keys are
/// looked up.
pub const ROWS: [(&str, f64, Option<Durability>); 20] = [
    ("fillseq", 0.62, Some(Durability::OperatingSystem)),
    ("fillrandom", 0.81, Some(Durability::OperatingSystem)),
    ("overwrite", 0.94, Some(Durability::OperatingSystem)),
    ("fillsync", 412.0, Some(Durability::Device)),
    ("fillseqbatch", 0.31, Some(Durability::OperatingSystem)),
    ("fillrandbatch", 0.44, Some(Durability::OperatingSystem)),
    ("fill100K", 61.0, Some(Durability::OperatingSystem)),
    ("fillrandom without log", 0.52, Some(Durability::Process)),
    ("mergerandom", 0.12, Some(Durability::OperatingSystem)),
    ("mergerandom, hot keys", 0.06, Some(Durability::OperatingSystem)),
    ("deleteseq", 0.71, Some(Durability::OperatingSystem)),
    ("deleterandom", 0.97, Some(Durability::OperatingSystem)),
    ("readseq", 0.11, None),
    ("readreverse", 0.16, None),
    ("readrandom", 2.31, None),
    ("readrandom after compact", 1.72, None),
    ("readmissing", 0.64, None),
    ("readhot", 0.82, None),
    ("seekrandom", 3.42, None),
    ("readwhilewriting", 3.91, Some(Durability::OperatingSystem)),
];

/// A generator of pseudo-random numbers in 0..1, the same on every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Eight engines, twenty rows, three repetitions.
pub fn full() -> Run {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let mut records = Vec::new();
    for (row, micros, durability) in ROWS {
        let slowness: Vec<f64> = (0..ENGINES.len()).map(|_| 0.8 + noise.next() * noise.next() * 14.0).collect();
        for repetition in 1..=3 {
            for (index, engine) in ENGINES.iter().enumerate() {
                let mut record = record(engine, row, repetition, durability);
                let factor = if index == 0 { 1.0 } else { slowness[index] };
                measure(&mut record, micros * factor * (0.95 + 0.1 * noise.next()), &mut noise);
                adjust(&mut record);
                records.push(record);
            }
        }
    }
    Run { title: "Esker and seven other engines".into(), host: host(), records }
}

/// Cells that are skipped, of another durability, or done by another means.
fn adjust(record: &mut Record) {
    match (record.engine.as_str(), record.row.as_str()) {
        ("kyoto", "seekrandom") => {
            let reason = "TreeDB has no iterator that starts between keys".to_string();
            *record = Record { skipped: Some(reason), ..bare(record) };
        }
        ("sqlite" | "lmdb" | "redb", "fillrandom without log") => {
            let reason = "engine cannot leave its log out".to_string();
            *record = Record { skipped: Some(reason), ..bare(record) };
        }
        ("lmdb", "fillsync") => record.durability = Some(Durability::OperatingSystem),
        (_, row) if row.starts_with("merge") && !matches!(record.engine.as_str(), "esker" | "rocksdb") => {
            record.message = "(read-modify-write: engine has no merge)".into();
        }
        (_, row) if row.starts_with("readrandom") => {
            record.found = Some(632_150);
            record.message = "(632150 of 1000000 found)".into();
        }
        _ => {}
    }
}

fn bare(record: &Record) -> Record {
    Record {
        engine: record.engine.clone(),
        benchmark: record.benchmark.clone(),
        row: record.row.clone(),
        threads: record.threads,
        repetition: record.repetition,
        host: host(),
        ..Record::default()
    }
}

/// A record with everything but figures.
pub fn record(engine: &str, row: &str, repetition: u32, durability: Option<Durability>) -> Record {
    let mut record = Record {
        schema: SCHEMA_VERSION,
        engine: engine.into(),
        engine_version: format!("1.{repetition}.0 (made up)").replace(".2.", ".1.").replace(".3.", ".1."),
        benchmark: row.split([' ', ',']).next().unwrap_or(row).into(),
        row: row.into(),
        repetition,
        threads: 1,
        num: 1_000_000,
        durability,
        host: host(),
        ..Record::default()
    };
    record.host.load_1min = 0.1 * repetition as f64;
    record.options.sync = durability == Some(Durability::Device);
    record.options.disable_wal = durability == Some(Durability::Process);
    let sync = if record.options.sync { "fdatasync per write" } else { "write to the operating system" };
    record.settings = [
        ("durability", sync),
        ("memory", "4 MiB buffer, 8 MiB cache"),
        ("compression", "LZ4"),
        ("filter", "10 bits per key"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .to_vec();
    let flags = [
        ("num", "1000000"),
        ("seed", "301"),
        ("value_size", if row == "fill100K" { "100000" } else { "100" }),
        ("threads", "1"),
    ];
    record.flags = flags.map(|(name, value)| (name.to_string(), value.to_string())).into();
    for flag in [
        "block_size",
        "cache_size",
        "write_buffer_size",
        "max_file_size",
        "open_files",
        "compression_ratio",
        "histogram",
    ] {
        record.flags.insert(flag.into(), "4096".into());
    }
    record
}

/// Fills the figures in for `micros` per operation.
fn measure(record: &mut Record, micros: f64, noise: &mut Noise) {
    let ops = if micros > 50.0 { 20_000 } else { 1_000_000 };
    record.ops = ops;
    record.bytes = ops * 116;
    record.wall_s = ops as f64 * micros / 1e6;
    record.sum_thread_s = record.wall_s;
    record.micros_per_op = micros;
    record.micros_per_op_wall = micros;
    record.ops_per_sec = 1e6 / micros;
    record.mb_per_sec = record.ops_per_sec * 116.0 / 1_048_576.0;
    record.cpu_user_s = record.wall_s * 0.83;
    record.cpu_sys_s = record.wall_s * 0.12;
    record.rss_peak_bytes = (21.0e6 + 4.0e7 * noise.next()) as u64;
    record.disk_bytes = (6.1e7 + 9.0e7 * noise.next()) as u64;
    record.counters =
        Counters { wal_bytes: ops * 120, flush_bytes: ops * 70, compaction_bytes: ops * 310, ..Counters::default() };
    let mut buckets = std::collections::BTreeMap::new();
    let mut latencies: Vec<f64> = (0..5000).map(|_| micros * 0.7 * (1.0 - noise.next()).powf(-0.45)).collect();
    latencies.sort_by(f64::total_cmp);
    for latency in &latencies {
        *buckets.entry((latency.ln() * 30.0).ceil() as i64).or_insert(0u64) += ops / 5000;
    }
    record.histogram = buckets.into_iter().map(|(bucket, count)| ((bucket as f64 / 30.0).exp(), count)).collect();
    let at = |share: f64| latencies[((share * 5000.0) as usize).min(4999)];
    record.latency = Percentiles {
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        p9999_us: at(0.9999),
        max_us: at(1.0),
    };
    record.series_interval_s = 0.05;
    let intervals = (record.wall_s / 0.05).ceil() as usize;
    let usual = record.ops_per_sec * 0.05;
    let dip = |index: usize| if index % 17 == 16 { 0.3 } else { 1.0 };
    // The last interval is as long as what is left of the time.
    let length = |index: usize| (record.wall_s / 0.05 - index as f64).min(1.0);
    let mut count = |index: usize| (usual * length(index) * dip(index) * (0.9 + 0.2 * noise.next())) as u64;
    record.series = (0..intervals).map(&mut count).collect();
}

fn host() -> Host {
    Host {
        cpu: "Made-up Processor 9000 at 3.20 GHz".into(),
        cores: 8,
        memory_bytes: 32 << 30,
        kernel: "6.12.0".into(),
        file_system: "ext4".into(),
        mount_options: "rw,relatime".into(),
        free_bytes: 200 << 30,
        load_1min: 0.2,
        governor: "performance".into(),
        esker_build: "0.1.0 (release)".into(),
        command_line:
            "esker bench --engines=all --num=1000000 --repetitions=3 --benchmarks=fillseq,fillrandom,readrandom".into(),
        date: "2030-01-02T03:04:05Z".into(),
    }
}
