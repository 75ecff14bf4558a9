//! The interpreted command line: what a run does.

use super::Given;
use super::table::{self, Use};
use crate::keys::MIN_KEY_SIZE;
use crate::random::KeyGeneration;
use esker_engines::{Compression, ENGINES, EngineOptions, device};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Which operations' latencies are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Every operation in point benchmarks, one in 64 in scans.
    Automatic,
    /// Every operation.
    Every,
    /// One operation in so many.
    Sampled(u32),
    /// None.
    Off,
}

/// The operand of merge benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOperand {
    /// The next bytes of the value pool.
    Random,
    /// The number 1, little endian, in value_size bytes.
    One,
}

/// How a row is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// As LevelDB's db_bench does.
    LevelDb,
    /// As RocksDB's did in 2013.
    RocksDb,
}

/// Entries that live longer do not expire in a benchmark.
const LONGEST_TTL: Duration = Duration::from_secs(86_400);

/// Everything a run of a benchmark list depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Engine names, in order.
    pub engines: Vec<String>,
    /// Whether the engines were named one by one: then a missing one is an error.
    pub engines_named: bool,
    /// Shared libraries by engine name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Benchmark names, in order.
    pub benchmarks: Vec<String>,
    /// The directory above the engines' directories.
    pub db: PathBuf,
    /// Keep existing databases.
    pub use_existing_db: bool,
    /// Entries, and number of different keys.
    pub num: u64,
    /// Reads per thread.
    pub reads: u64,
    /// Writes per thread, if set.
    pub writes: Option<u64>,
    /// Deletes per thread.
    pub deletes: u64,
    /// Client threads.
    pub threads: u32,
    /// Bytes of a value.
    pub value_size: usize,
    /// Digits of a key.
    pub key_size: usize,
    /// Bytes in front of every key.
    pub key_prefix: usize,
    /// Fraction to which values shrink.
    pub compression_ratio: f64,
    /// Different keys of merge benchmarks.
    pub merge_keys: u64,
    /// Merges per hundred operations of the mixed merge benchmark.
    pub merge_read_percent: u64,
    /// Repetitions.
    pub repeat: u32,
    /// Which latencies are taken.
    pub latency: Latency,
    /// The form of printed rows.
    pub row_form: RowForm,
    /// Print latency distributions.
    pub print_histogram: bool,
    /// Print comparisons.
    pub comparisons: bool,
    /// Print counters.
    pub statistics: bool,
    /// Operations between progress lines of a thread; 0: automatic.
    pub stats_interval: u64,
    /// Print engine statistics at those lines.
    pub stats_per_interval: bool,
    /// Key sequence.
    pub key_generation: KeyGeneration,
    /// Operand of merges.
    pub merge_operand: MergeOperand,
    /// Rate of the thread that writes beside readers; `None`: as fast as it can.
    pub writes_per_second: Option<f64>,
    /// Operations a second of all threads together, at times fixed beforehand; `None`: one after
    /// another.
    pub rate: Option<f64>,
    /// How long entries live that expire.
    pub ttl: Duration,
    /// Base of the thread seeds.
    pub seed: u64,
    /// The `--num` of the `fillrandom` that made the database, for reads of keys that it wrote or
    /// left out.
    pub fill_num: u64,
    /// The `--seed` of that `fillrandom`.
    pub fill_seed: u64,
    /// Longest time of a benchmark, in seconds.
    pub max_seconds: Option<f64>,
    /// Wait for background work before reads.
    pub wait_idle_before_read: bool,
    /// Drop the file cache before each benchmark.
    pub drop_caches: bool,
    /// Reopen and restart seeds before each benchmark.
    pub fresh_process: bool,
    /// JSON lines file.
    pub json: Option<PathBuf>,
    /// CSV file.
    pub csv: Option<PathBuf>,
    /// HTML report.
    pub html: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
    /// What is requested of the engines.
    pub options: EngineOptions,
    /// Every flag, by name, for the records.
    pub flags: BTreeMap<String, String>,
}

impl Config {
    /// Interprets a command line. The error is one line.
    pub fn new(given: &Given) -> Result<Config, String> {
        let scale: f64 = given.number("scale").unwrap_or(1.0);
        if scale <= 0.0 {
            return Err("--scale must be greater than 0".into());
        }
        let scaled = |value: u64| ((value as f64 * scale).round() as u64).max(value.min(1));
        let count = |name: &str| given.number::<i64>(name).and_then(|n| u64::try_from(n).ok()).map(scaled);
        let num = scaled(given.number("num").unwrap_or(1_000_000));
        let engines = engine_names(given.get("engine").unwrap_or("esker"))?;
        let mut config = Config {
            engines_named: given.get("engine") != Some("all"),
            engines,
            libraries: libraries(given)?,
            benchmarks: list(given.get("benchmarks").unwrap_or("")),
            db: given.get("db").map_or_else(default_directory, PathBuf::from),
            use_existing_db: given.boolean("use_existing_db"),
            num,
            reads: count("reads").unwrap_or(num),
            writes: count("writes"),
            deletes: count("deletes").unwrap_or(num),
            threads: given.number("threads").unwrap_or(1),
            value_size: given.number("value_size").unwrap_or(100),
            key_size: given.number("key_size").unwrap_or(16),
            key_prefix: given.number("key_prefix").unwrap_or(0),
            compression_ratio: given.number("compression_ratio").unwrap_or(0.5),
            merge_keys: count("merge_keys").unwrap_or(num),
            merge_read_percent: given.number("mergereadpercent").unwrap_or(70),
            repeat: given.number("repeat").unwrap_or(1),
            latency: latency(given)?,
            print_histogram: matches!(given.get("histogram"), Some("1" | "true")),
            comparisons: given.boolean("comparisons"),
            statistics: given.boolean("statistics"),
            stats_interval: given.number("stats_interval").unwrap_or(0),
            stats_per_interval: given.boolean("stats_per_interval"),
            key_generation: match given.get("keygen") {
                Some("rocksdb") => KeyGeneration::RocksDb,
                Some("leveldb") => KeyGeneration::LevelDb,
                other => return Err(format!("--keygen: '{}' is neither leveldb nor rocksdb", other.unwrap_or(""))),
            },
            row_form: match given.get("row_form") {
                Some("rocksdb") => RowForm::RocksDb,
                Some("leveldb") => RowForm::LevelDb,
                other => return Err(format!("--row_form: '{}' is neither leveldb nor rocksdb", other.unwrap_or(""))),
            },
            merge_operand: match given.get("merge_operand") {
                Some("one") => MergeOperand::One,
                Some("random") => MergeOperand::Random,
                other => return Err(format!("--merge_operand: '{}' is neither random nor one", other.unwrap_or(""))),
            },
            writes_per_second: given.number("writes_per_second").filter(|rate| *rate > 0.0),
            rate: given.number("rate").filter(|rate| *rate > 0.0),
            ttl: Duration::from_millis(given.number("ttl_ms").unwrap_or(200)),
            seed: given.number("seed").filter(|seed| *seed != 0).unwrap_or(1000),
            fill_num: given.number("fill_num").map_or(num, scaled),
            fill_seed: given.number("fill_seed").filter(|seed| *seed != 0).unwrap_or(1000),
            max_seconds: given.number("max_seconds").filter(|seconds| *seconds > 0.0),
            wait_idle_before_read: given.boolean("wait_idle_before_read"),
            drop_caches: given.boolean("drop_caches"),
            fresh_process: given.boolean("fresh_process"),
            json: given.get("json").map(PathBuf::from),
            csv: given.get("csv").map(PathBuf::from),
            html: given.get("html").map(PathBuf::from),
            quiet: given.boolean("quiet"),
            options: engine_options(given, scale)?,
            flags: given.all(),
        };
        config.options.expected_data_bytes = config.expected_data_bytes();
        config.check()?;
        Ok(config)
    }

    /// Bytes of one key.
    pub fn key_bytes(&self) -> usize {
        self.key_prefix + self.key_size
    }

    /// An upper estimate of what the database will hold, for engines that map a fixed size: every
    /// write of the largest load, with room for the versions that a store without overwriting in
    /// place keeps.
    fn expected_data_bytes(&self) -> u64 {
        let entry = (self.key_bytes() + self.value_size) as u64;
        let small = self.num.max(self.writes.unwrap_or(0)).saturating_mul(entry);
        let large = (self.num / 1000).max(self.writes.unwrap_or(0)).saturating_mul(100_016);
        let has_large = self.benchmarks.iter().any(|name| name.contains("100K"));
        small.max(if has_large { large } else { 0 }).saturating_mul(4).saturating_add(256 << 20)
    }

    fn check(&self) -> Result<(), String> {
        let pool = crate::values::ValuePool::BYTES;
        let problem = if self.num == 0 {
            "--num must be at least 1"
        } else if self.num.max(self.fill_num) > 10_000_000_000_000_000 {
            "--num and --fill_num must be at most 10^16, the numbers that keys have room for"
        } else if self.threads == 0 || self.threads > 4096 {
            "--threads must be between 1 and 4096"
        } else if self.value_size >= pool {
            return Err(format!("--value_size must be below {pool}, the size of the pool that values are taken from"));
        } else if self.key_size < MIN_KEY_SIZE || self.key_bytes() > 65_536 {
            "--key_size must be at least 16, and with --key_prefix at most 65536"
        } else if self.repeat == 0 {
            "--repeat must be at least 1"
        } else if self.merge_read_percent > 100 {
            "--mergereadpercent must be at most 100"
        } else if self.ttl.is_zero() || self.ttl > LONGEST_TTL {
            "--ttl_ms must be at least 1 and at most 86400000, a day"
        } else if self.benchmarks.is_empty() {
            "--benchmarks names no benchmark"
        } else {
            return Ok(());
        };
        Err(problem.to_string())
    }
}

/// The names of a comma list, without empty ones.
pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect()
}

/// The engines of a comma list or `all`. The error is one line. The engine `reference` (in memory,
/// for checking the program itself) and the bare `device` are accepted too but not part of `all`.
pub fn engine_names(text: &str) -> Result<Vec<String>, String> {
    if text == "all" {
        return Ok(ENGINES.iter().map(|name| name.to_string()).collect());
    }
    let mut names: Vec<String> = Vec::new();
    for name in list(text) {
        if !ENGINES.contains(&name.as_str()) && ![crate::reference::NAME, device::NAME].contains(&name.as_str()) {
            return Err(format!("unknown engine '{name}'; engines are {} and all", ENGINES.join(", ")));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { Err("--engine names no engine".into()) } else { Ok(names) }
}

/// Splits `NAME=PATH`. The error is one line.
pub fn library(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if ENGINES.contains(&name) && !path.is_empty() => Ok((name.into(), path.into())),
        Some((name, path)) if !path.is_empty() => Err(format!("--lib: unknown engine '{name}'")),
        _ => Err(format!("--lib: '{text}' is not NAME=PATH")),
    }
}

fn libraries(given: &Given) -> Result<BTreeMap<String, PathBuf>, String> {
    given.every("lib").iter().map(|text| library(text)).collect()
}

fn latency(given: &Given) -> Result<Latency, String> {
    if let Some(every) = given.number::<u32>("latency_every") {
        return Ok(if every <= 1 { Latency::Every } else { Latency::Sampled(every) });
    }
    match given.get("histogram") {
        None => Ok(Latency::Automatic),
        Some("1" | "true") => Ok(Latency::Every),
        Some("0" | "false") => Ok(Latency::Off),
        Some(other) => Err(format!("--histogram: '{other}' is neither 0 nor 1")),
    }
}

/// The directory used when none is given, one per user as db_bench does it.
pub fn default_directory() -> PathBuf {
    let base = match std::env::var_os("TEST_TMPDIR") {
        Some(directory) => PathBuf::from(directory),
        None => std::env::temp_dir().join(format!("esker-bench-{}", nix::unistd::geteuid())),
    };
    base.join("dbbench")
}

fn engine_options(given: &Given, scale: f64) -> Result<EngineOptions, String> {
    const LEAST: u64 = 16 << 10;
    const MOST: u64 = 1 << 30;
    let scaled = |value: u64| (value as f64 * scale).round() as u64;
    let file = given.number::<u64>("max_file_size").or_else(|| given.number("target_file_size_base"));
    let max_file_bytes = file.map(|bytes| scaled(bytes).clamp(LEAST, MOST));
    let merge_operator = given.get("merge_operator").map(String::from);
    if let Some(name) = merge_operator.as_deref().filter(|n| !["uint64add", "put", "max", "stringappend"].contains(n)) {
        return Err(format!("--merge_operator: '{name}' is none of uint64add, put, max, stringappend"));
    }
    Ok(EngineOptions {
        write_buffer_bytes: scaled(given.number("write_buffer_size").unwrap_or(4 << 20)).clamp(LEAST, MOST),
        cache_bytes: given.number::<i64>("cache_size").and_then(|n| u64::try_from(n).ok()).map(scaled),
        block_bytes: given.number("block_size").unwrap_or(4096).clamp(256, 4 << 20),
        max_file_bytes,
        bloom_bits: given.number("bloom_bits"),
        compression: match given.get("compression_type").or_else(|| given.get("compression")) {
            Some("0" | "false" | "none" | "no") => Compression::None,
            Some("zstd") => Compression::Zstd,
            _ => Compression::Lz,
        },
        open_files: given.number::<i64>("open_files").and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        merge_operator,
        expected_data_bytes: 0,
        disable_wal: given.boolean("disable_wal"),
        sync: given.boolean("sync"),
        ttl: false,
        extra: extra_options(given, scale, max_file_bytes),
    })
}

/// The flags that only engines know, as given; older names under their present ones.
fn extra_options(given: &Given, scale: f64, max_file_bytes: Option<u64>) -> BTreeMap<String, String> {
    let mut extra = BTreeMap::new();
    for flag in table::all().filter(|flag| flag.used == Use::Engine && given.has(&flag.name)) {
        if let Some(value) = given.get(&flag.name) {
            extra.insert(flag.name.clone(), value.to_string());
        }
    }
    // Both change what some engines do, not only what is printed.
    for name in ["statistics", "comparisons"].into_iter().filter(|name| given.boolean(name)) {
        extra.insert(name.into(), "1".into());
    }
    if let Some(bytes) = given.number::<u64>("max_bytes_for_level_base") {
        extra.insert("max_bytes_for_level_base".into(), ((bytes as f64 * scale).round() as u64).to_string());
    }
    let jobs =
        ["max_background_compactions", "base_background_compactions"].iter().filter_map(|n| given.number::<u64>(n));
    if let (Some(jobs), false) = (jobs.max(), extra.contains_key("max_background_jobs")) {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        extra.insert("max_background_jobs".into(), jobs.clamp(1, 2 * cores).to_string());
    }
    if let Some(factor) = given.number::<u64>("max_grandparent_overlap_factor") {
        let bytes = factor.saturating_mul(max_file_bytes.unwrap_or(2 << 20));
        extra.entry("max_compaction_bytes".into()).or_insert(bytes.to_string());
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        let given = Given::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>());
        Config::new(&given.map_err(|error| esker_usage::summary(&error.to_string(), "esker bench"))?)
    }

    #[test]
    fn engines_are_told_to_count() {
        let extra = |text: &str| config(text).unwrap().options.extra;
        assert!(extra("").is_empty() && extra("--statistics=0").is_empty());
        let told = extra("--statistics --comparisons=1");
        assert_eq!((told["statistics"].as_str(), told["comparisons"].as_str()), ("1", "1"));
    }

    #[test]
    fn defaults_are_those_of_db_bench() {
        let config = config("").unwrap();
        assert_eq!(
            (config.num, config.reads, config.deletes, config.merge_keys),
            (1_000_000, 1_000_000, 1_000_000, 1_000_000)
        );
        assert_eq!(config.engines, ["esker"]);
        assert_eq!(config.options.write_buffer_bytes, 4 << 20);
        assert_eq!(config.options.cache_bytes, None);
        assert_eq!(config.seed, 1000);
        assert_eq!(config.latency, Latency::Automatic);
    }

    #[test]
    fn the_command_line_of_the_counter_run() {
        let config = config(
            "--benchmarks=updaterandom,mergerandom --num=50000000 --threads=10 --value_size=8 --block_size=65536 \
             --merge_operator=uint64add --disable_wal=1 --max_background_compactions=20 --num_levels=6 \
             --level0_file_num_compaction_trigger=4 --max_grandparent_overlap_factor=10 --disable_seek_compaction=1 \
             --min_level_to_compress=2 --delete_obsolete_files_period_micros=300000000 --statistics=1 --mmap_read=0",
        )
        .unwrap();
        assert_eq!(config.options.extra["num_levels"], "6");
        assert_eq!(config.options.extra["max_compaction_bytes"], (20u64 << 20).to_string());
        assert_eq!(config.options.extra["mmap_read"], "0");
        assert!(config.options.extra["max_background_jobs"].parse::<u64>().unwrap() <= 20);
        assert!(!config.options.extra.contains_key("disable_seek_compaction"));
    }

    #[test]
    fn scaling_keeps_the_shape() {
        let config =
            config("--num=5000000 --reads=1000000 --scale=0.1 --cache_size=8388608 --max_file_size=2097152").unwrap();
        assert_eq!((config.num, config.reads), (500_000, 100_000));
        assert_eq!(config.options.write_buffer_bytes, 419_430);
        assert_eq!(config.options.cache_bytes, Some(838_861));
        assert_eq!(config.options.max_file_bytes, Some(209_715));
    }

    #[test]
    fn senseless_values_are_refused() {
        for text in [
            "--num=0",
            "--threads=0",
            "--value_size=2000000",
            "--repeat=0",
            "--engine=foo",
            "--engine=,",
            "--keygen=x",
            "--row_form=x",
            "--merge_operator=foo",
            "--lib=foo",
            "--lib=foo=/x",
            "--scale=0",
            "--benchmarks=,",
            "--histogram=7",
            "--key_size=3",
            "--ttl_ms=0",
            "--ttl_ms=86400001",
        ] {
            let error = config(text).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn engines_and_libraries() {
        assert_eq!(config("--engine=all").unwrap().engines.len(), ENGINES.len());
        let config = config("--engine=lmdb,esker,lmdb --lib rocksdb=/x.so").unwrap();
        assert_eq!(config.engines, ["lmdb", "esker"]);
        assert_eq!(config.libraries["rocksdb"], PathBuf::from("/x.so"));
    }
}
