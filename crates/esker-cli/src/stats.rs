//! `esker stats`: sizes, shape and health of a database.

use crate::failure::Failure;
use crate::output::Output;
use crate::watch::{Source, watch};
use crate::{keyspaces, open};
use esker::{Db, Health, LatencyHistogram, MemoryStats, Metric, PrometheusText, Recorder, Stats};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  esker stats --db data
  esker stats --db data --json | jq .table_bytes
  esker stats --db data --prometheus
  esker stats --db data --watch
  esker stats --watch 1 --from /run/program/esker.prom

The database is opened read-only for this: counters of work (flushes, stalls, cache hits) are those of this opening.
Whether the program that writes can do so is unknown, and --prometheus leaves it out. --watch opens the database again
each time, beside the program that writes: writes a second, sizes and runs are those of the database, and each time the
log is read again. Stalls, cache hits and rates of work are known to that program alone. It can leave its figures, as
text of esker::PrometheusText, in the file esker.prom in the directory of the database, written anew each minute at
least: --watch shows them from there. --from shows those in any other file.";

/// Show sizes, shape and health of a database; opens read-only
#[derive(clap::Args)]
#[command(name = "stats", after_help = EXAMPLES)]
pub struct StatsCommand {
    /// The directory of the database
    #[arg(long, env = "ESKER_DB", value_name = "DIR", required_unless_present = "from")]
    db: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Print all metrics in the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
    /// Show figures again every so many seconds, with rates, until ended
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds,
        conflicts_with_all = ["json", "prometheus"])]
    watch: Option<Duration>,
    /// With --watch: stop after so many views
    #[arg(long, value_name = "VIEWS", requires = "watch")]
    times: Option<u64>,
    /// With --watch: read the figures from this file, in the text format of Prometheus
    #[arg(long, value_name = "FILE", requires = "watch")]
    from: Option<PathBuf>,
}

/// A time between two views.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "use a number of seconds from 0.05 to 86400".into())
}

impl StatsCommand {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        if let Some(interval) = self.watch {
            let source = match (self.from, self.db) {
                (Some(file), _) => Source::File(file),
                (None, db) => Source::Directory(db.unwrap_or_default()),
            };
            return watch(&source, interval, self.times);
        }
        let db = open::read_only(&self.db.unwrap_or_default())?;
        let (stats, health) = (db.stats(), db.health());
        let mut output = Output::standard();
        if self.prometheus {
            output.bytes(prometheus(&db).as_bytes())?;
        } else if self.json {
            output.line(&stats_json(&stats, &health).to_string())?;
        } else {
            output.line(stats.to_string().trim_end())?;
            if let Some(problem) = &health.problem {
                output.line(&format!("problem: {problem}"))?;
            }
            if health.failed_merges > 0 {
                output.line(&format!("failed merges: {}", health.failed_merges))?;
            }
        }
        output.finish()
    }
}

/// The figures of a database that was opened to look at it. Whether it takes writes is not among
/// them: this opening takes none, and that says nothing about the program that writes.
fn prometheus(db: &Db) -> String {
    struct OfTheDirectory(PrometheusText);
    impl Recorder for OfTheDirectory {
        fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
            self.0.counter(metric, keyspace, value);
        }

        fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
            if metric.name != "health.writable" {
                self.0.gauge(metric, keyspace, value);
            }
        }

        fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
            self.0.histogram(metric, latencies);
        }
    }
    let mut recorder = OfTheDirectory(PrometheusText::new());
    db.record(&mut recorder);
    recorder.0.to_string()
}

fn memory_json(memory: &MemoryStats) -> Value {
    json!({
        "budget_bytes": memory.budget_bytes,
        "memtable_bytes": memory.memtable_bytes,
        "immutable_memtable_bytes": memory.immutable_memtable_bytes,
        "cache_bytes": memory.cache_bytes,
        "cache_capacity_bytes": memory.cache_capacity_bytes,
        "index_bytes": memory.index_bytes,
        "filter_bytes": memory.filter_bytes,
        "pinned_bytes": memory.pinned_bytes,
        "unused_pool_bytes": memory.unused_pool_bytes,
    })
}

/// What `esker stats --json` tells, and `stats` in the shell.
pub fn stats_json(stats: &Stats, health: &Health) -> Value {
    json!({
        "wal_bytes": stats.wal_bytes,
        "flush_bytes": stats.flush_bytes,
        "compaction_bytes": stats.compaction_bytes,
        "flushes": stats.flushes,
        "compactions": stats.compactions,
        "memtable_bytes": stats.memtable_bytes,
        "table_bytes": stats.table_bytes,
        "table_files": stats.table_files,
        "cache_bytes": stats.cache_bytes,
        "cache_hits": stats.cache_hits,
        "cache_misses": stats.cache_misses,
        "tables_searched": stats.tables_searched,
        "filter_and_index_bytes": stats.filter_and_index_bytes,
        "memory": memory_json(&stats.memory),
        "delay_micros": stats.delay_micros,
        "delays": stats.delays,
        "stall_micros": stats.stall_micros,
        "stalls": stats.stalls,
        "refused_writes": stats.refused_writes,
        "live_snapshots": stats.live_snapshots,
        "last_sequence": stats.last_sequence,
        "keyspaces": stats.keyspaces.iter().map(keyspaces::keyspace_json).collect::<Vec<_>>(),
        "health": {
            "problem": health.problem,
            "stall_reason": health.stall_reason,
            "failed_merges": health.failed_merges,
        },
    })
}
