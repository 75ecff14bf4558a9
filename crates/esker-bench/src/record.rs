//! What a run leaves behind: one [`Record`] per engine, benchmark and repetition, and one [`Run`]
//! around them. The JSON lines of `--json` are these structs; the report, the CSV and the
//! comparisons read nothing else.

use esker_engines::{Counters, Durability, EngineOptions, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON lines; raised when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The result of one benchmark on one engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record {
    /// See [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The engine, one of [`esker_engines::ENGINES`].
    pub engine: String,
    /// Version and build of the engine.
    pub engine_version: String,
    /// The benchmark's name, as in `--benchmarks`.
    pub benchmark: String,
    /// The row of a study this belongs to, where it differs from the benchmark (`readrandom after
    /// compact`).
    pub row: String,
    /// 1, 2, ... where runs are repeated.
    pub repetition: u32,
    /// Client threads.
    pub threads: u32,
    /// `--num`.
    pub num: u64,
    /// Operations really done, over all threads.
    pub ops: u64,
    /// Keys found, for benchmarks that look keys up: thread 0's, as db_bench prints it.
    pub found: Option<u64>,
    /// Bytes counted as db_bench counts them.
    pub bytes: u64,
    /// Seconds from the first thread's start to the last one's finish.
    pub wall_s: f64,
    /// Sum of the threads' times, in seconds.
    pub sum_thread_s: f64,
    /// Microseconds per operation as one thread sees it: the sum of thread times over all
    /// operations. The figure of the printed line. Where there is a `rate_wanted_per_sec` it
    /// includes the waiting for operations to be due, and says nothing about the engine.
    pub micros_per_op: f64,
    /// Microseconds of wall time per operation.
    pub micros_per_op_wall: f64,
    /// Operations per second of wall time.
    pub ops_per_sec: f64,
    /// MiB per second of wall time, 0 where no bytes are counted.
    pub mb_per_sec: f64,
    /// User CPU seconds of the whole process during the benchmark, without those that clients spent
    /// on waiting for operations to be due.
    pub cpu_user_s: f64,
    /// System CPU seconds of the whole process during the benchmark.
    pub cpu_sys_s: f64,
    /// Latencies, in fields of the line itself; 0 where they were not taken.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// Peak resident memory of the process during the benchmark, in bytes.
    pub rss_peak_bytes: u64,
    /// The most of that which no file was mapped to, as far as a look about every 100 ms sees; 0 in
    /// older records.
    #[serde(default)]
    pub rss_anonymous_peak_bytes: u64,
    /// Bytes in the database directory after the benchmark.
    pub disk_bytes: u64,
    /// The most bytes in the database directory during the benchmark, as far as a look about every
    /// 100 ms sees.
    #[serde(default)]
    pub peak_disk_bytes: u64,
    /// Bytes there after a load, once the engine's background work was done; where a study
    /// requests that.
    #[serde(default)]
    pub settled_disk_bytes: Option<u64>,
    /// What the engine counted during the benchmark.
    pub counters: Counters,
    /// How its tables lay when the benchmark began, where the engine tells.
    #[serde(default)]
    pub tree_before: Option<Tree>,
    /// How they lay when it ended: what is left to compact.
    #[serde(default)]
    pub tree: Option<Tree>,
    /// The durability class the writes had.
    pub durability: Option<Durability>,
    /// The message of the printed line: `(632150 of 1000000 found)`, `(read-modify-write: engine
    /// has no merge)`.
    pub message: String,
    /// The load that ended early, if one did: the database held fewer entries than it should have.
    /// Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_load: Option<String>,
    /// Why the benchmark did not run on this engine, if it did not; all figures are 0 then.
    pub skipped: Option<String>,
    /// Latency distribution: (upper bound in microseconds, operations) of the occupied buckets, for
    /// the plot.
    pub histogram: Vec<(f64, u64)>,
    /// Operations finished in each interval of `series_interval_s`, for the plot of throughput over
    /// time.
    pub series: Vec<u64>,
    /// Length of one interval of `series`, in seconds.
    pub series_interval_s: f64,
    /// Operations in the worst second, wherever it began; where the benchmark took two seconds or
    /// more.
    #[serde(default)]
    pub worst_second_ops: Option<f64>,
    /// Operations in the median second.
    #[serde(default)]
    pub median_second_ops: Option<f64>,
    /// Rate of the thread that wrote beside the readers.
    #[serde(default)]
    pub writer_ops_per_sec: Option<f64>,
    /// The rate that was requested, if it was not to write as fast as it could.
    #[serde(default)]
    pub writer_wanted_per_sec: Option<f64>,
    /// What a look at everything after the run has shown, where one was requested: with the last
    /// record of its process.
    #[serde(default)]
    pub verification: Option<Verification>,
    /// The rate requested of all threads together, if operations were to start at fixed times. The
    /// latencies above then count from these.
    #[serde(default)]
    pub rate_wanted_per_sec: Option<f64>,
    /// Then also: how long operations took from when they really started, which leaves out that
    /// they started late.
    #[serde(default)]
    pub service: Option<Percentiles>,
    /// What was requested of the engine.
    pub options: EngineOptions,
    /// What the engine says it runs with.
    pub settings: Vec<(String, String)>,
    /// Every flag of the run, by name, defaults included.
    pub flags: BTreeMap<String, String>,
    /// The machine.
    pub host: Host,
    /// When the benchmark started, seconds since the Unix epoch.
    pub started_unix_s: u64,
}

impl Record {
    /// Whether it says that it ended before its operations were done.
    pub fn ended_early(&self) -> bool {
        self.message.contains("(ended early")
    }

    /// What the engine says of one of its settings.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Percentiles of the times of operations, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50_us: f64,
    /// Nine of ten operations took no longer; so for the others.
    pub p90_us: f64,
    /// See `p90_us`.
    pub p99_us: f64,
    /// See `p90_us`.
    pub p999_us: f64,
    /// See `p90_us`.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// What a look at a whole database, after a run and outside its times, has shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verification {
    /// Entries that a scan has seen.
    pub entries: u64,
    /// A hash of all of them, in whatever order: 32 hexadecimal digits. Two databases with the same
    /// entries have the same.
    pub content_hash: String,
    /// Entries that were looked up again, one by one.
    pub sampled: u64,
    /// Those of them that a lookup did not find, or found with another value.
    pub mismatches: u64,
}

/// The machine and build a run was made with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Host {
    /// CPU model as the system reports it.
    pub cpu: String,
    /// Logical cores usable by the process.
    pub cores: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// File system type of the database directory.
    pub file_system: String,
    /// Mount options of that file system.
    pub mount_options: String,
    /// Free bytes on that file system at the start.
    pub free_bytes: u64,
    /// 1-minute load average at the start.
    pub load_1min: f64,
    /// CPU frequency governor, where there is one.
    pub governor: String,
    /// Version of esker, with the commit it was built from where that is known, and the build
    /// profile.
    pub esker_build: String,
    /// The whole command line.
    pub command_line: String,
    /// The date and time of the run, RFC 3339, UTC.
    pub date: String,
}

/// All records of one invocation, as reports take them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// The title of the report.
    pub title: String,
    /// The machine.
    pub host: Host,
    /// Every row, in the order they were made.
    pub records: Vec<Record>,
}
