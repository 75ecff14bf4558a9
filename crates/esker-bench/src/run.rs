//! Runs benchmarks one after another on one engine and makes a record of each.

use crate::directory::BenchDirectory;
use crate::disk_watch::DiskWatch;
use crate::engine::{Capabilities, Counters, Durability, Engine, EngineError, EngineKind, Result};
use crate::flags::config::Config;
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::meter::{Total, new_histogram};
use crate::pace;
use crate::process::{self, CpuTimes};
use crate::progress::Display;
use crate::random::LehmerRandom;
use crate::record::{Host, Record, SCHEMA_VERSION};
use crate::threads::{Crew, CrewResult};
use crate::values::ValuePool;
use crate::verify::history::{History, Written};
use crate::verify::{self, Checking, Verification};
use crate::worker::Job;
use crate::workload::{Access, Benchmark, Body, Check};
use std::time::{Duration, Instant};

/// What a run on one engine is made from.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The flags.
    pub config: &'a Config,
    /// The engine.
    pub kind: &'a EngineKind,
    /// Where values come from, made for the flags' compression ratio.
    pub pool: &'a ValuePool,
    /// The machine, for the records.
    pub host: &'a Host,
    /// Ends the run early.
    pub interrupt: &'a Interrupt,
    /// How progress is shown.
    pub display: Display,
    /// 1, 2, ...
    pub repetition: u32,
}

/// What became of one benchmark.
#[derive(Debug)]
pub enum Outcome {
    /// It ran, or was skipped for the reason in the record.
    Row(Box<Record>),
    /// It only has something to say.
    Text(String),
    /// The run was interrupted after so many operations; there is no row.
    Interrupted(u64),
    /// The engine failed, for the reason given in one line.
    Failed(String),
}

/// One engine with its directory, and what has been done so far.
pub struct Runner<'a> {
    setup: Setup<'a>,
    directory: BenchDirectory,
    engine: Option<Box<dyn Engine>>,
    open_synced: bool,
    threads_created: u64,
    history: History,
}

fn one_line(error: EngineError) -> String {
    error.0.trim().replace('\n', "; ")
}

impl<'a> Runner<'a> {
    /// Opens the engine in its sub-directory, emptied first unless existing databases are to be kept.
    pub fn open(setup: Setup<'a>) -> std::result::Result<Runner<'a>, String> {
        let path = setup.config.db.join(setup.kind.name);
        let directory = BenchDirectory::claim(&path, setup.config.use_existing_db)?;
        if !setup.config.use_existing_db {
            directory.empty()?;
        }
        let open_synced = setup.config.options.sync;
        let history = History::new(!setup.config.use_existing_db);
        let mut runner = Runner { setup, directory, engine: None, open_synced, threads_created: 0, history };
        runner.open_engine(open_synced).map_err(one_line)?;
        Ok(runner)
    }

    /// The engine's version.
    pub fn version(&self) -> String {
        self.engine.as_ref().map_or_else(String::new, |engine| engine.version())
    }

    /// What the engine says it runs with.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.engine.as_ref().map_or_else(Vec::new, |engine| engine.effective_settings())
    }

    fn open_engine(&mut self, synced: bool) -> Result<()> {
        let mut options = self.setup.config.options.clone();
        options.sync = synced;
        options.disable_wal = options.disable_wal && !synced;
        let library = self.setup.config.libraries.get(self.setup.kind.name);
        self.engine =
            Some((self.setup.kind.open)(&self.directory.database(), &options, library.map(|path| path.as_path()))?);
        self.open_synced = synced;
        Ok(())
    }

    fn close_engine(&mut self) -> Result<()> {
        self.engine.take().map_or(Ok(()), |engine| engine.close())
    }

    fn engine(&self) -> Result<&dyn Engine> {
        self.engine.as_deref().ok_or_else(|| EngineError("the database is not open".into()))
    }

    /// Closes the engine. The error is one line.
    pub fn close(mut self) -> std::result::Result<(), String> {
        self.close_engine().map_err(one_line)
    }

    /// Closes the engine and removes its data. The error is one line.
    pub fn close_and_remove(mut self) -> std::result::Result<(), String> {
        self.close_engine().map_err(one_line)?;
        self.directory.empty()
    }

    /// Runs one benchmark with the flags of the run.
    pub fn run(&mut self, benchmark: &Benchmark) -> Outcome {
        let config = self.setup.config;
        self.run_with(benchmark, config)
    }

    /// Runs one benchmark with other flags than those the engine was opened with: what concerns the clients (threads, operations, latencies)
    /// is obeyed.
    pub fn run_with(&mut self, benchmark: &Benchmark, config: &Config) -> Outcome {
        if self.setup.interrupt.is_requested() {
            return Outcome::Interrupted(0);
        }
        self.try_run(benchmark, config).unwrap_or_else(|error| Outcome::Failed(one_line(error)))
    }

    fn try_run(&mut self, benchmark: &Benchmark, config: &Config) -> Result<Outcome> {
        if let Some(reason) = self.reason_to_skip(benchmark, config)? {
            let mut record = self.blank_record(benchmark, config)?;
            record.skipped = Some(reason);
            // What an engine lacks must not move the key sequences of the benchmarks that follow. (db_bench itself creates no threads for
            // a benchmark that it skips because the database is to be kept.)
            if !(benchmark.fresh && config.use_existing_db) {
                self.threads_created += u64::from(Crew::size(config, benchmark));
            }
            return Ok(Outcome::Row(Box::new(record)));
        }
        if let Body::Property(name) = benchmark.body {
            let text = self.engine()?.property(name);
            return Ok(Outcome::Text(text.unwrap_or_else(|| format!("(engine has no {name})"))));
        }
        self.prepare(benchmark, config)?;
        let mut record = self.blank_record(benchmark, config)?;
        process::reset_peak_memory();
        let cpu = CpuTimes::now();
        let counters = self.engine()?.counters();
        let watch = DiskWatch::start(&self.directory);
        let result = self.run_body(benchmark, config);
        (record.disk_bytes, record.peak_disk_bytes) = watch.finish();
        let mut result = result?;
        let cpu_after = CpuTimes::now();
        if result.total.stopped && self.setup.interrupt.is_requested() {
            return Ok(Outcome::Interrupted(result.total.ops));
        }
        // What Esker keeps in this process for its next database is no memory of the other engines'.
        let of_others = if self.setup.kind.name == "esker" { 0 } else { esker::unused_memory_bytes() as u64 };
        record.rss_peak_bytes = process::peak_memory_bytes().saturating_sub(of_others);
        record.cpu_user_s = cpu_after.user_s - cpu.user_s;
        record.cpu_sys_s = cpu_after.system_s - cpu.system_s;
        // `open` replaces the engine, whose counters then start anew.
        let reopened = matches!(benchmark.body, Body::Open | Body::Reopen | Body::Create);
        let before = if reopened { Counters::default() } else { counters };
        record.counters = difference(self.engine()?.counters(), before);
        record.writer_ops_per_sec = result.writer_ops_per_sec;
        record.writer_wanted_per_sec = result.writer_ops_per_sec.and(config.writes_per_second);
        self.complete_message(&mut result, benchmark, config.writes_per_second)?;
        record.found = result.found;
        record.message = result.message;
        fill_in(&mut record, &result.total);
        Ok(Outcome::Row(Box::new(record)))
    }

    fn reason_to_skip(&self, benchmark: &Benchmark, config: &Config) -> Result<Option<String>> {
        let capabilities: Capabilities = self.engine()?.capabilities();
        if let Body::Check(check) = benchmark.body {
            return Ok(self.history.reason_against(check, self.setup.host.memory_bytes));
        }
        let reason = if benchmark.fresh && config.use_existing_db {
            "--use_existing_db is true"
        } else if benchmark.access == Access::Merge && config.options.merge_operator.is_none() {
            "--merge_operator is unknown"
        } else if benchmark.name == "readreverse" && !capabilities.reverse {
            "engine has no reverse iteration"
        } else if matches!(benchmark.body, Body::Compact) && !capabilities.compact {
            "engine has no compaction"
        } else if let Body::Refused(reason) = benchmark.body {
            reason
        } else {
            return Ok(None);
        };
        Ok(Some(reason.to_string()))
    }

    /// Everything that comes before the timed part.
    fn prepare(&mut self, benchmark: &Benchmark, config: &Config) -> Result<()> {
        let synced = if benchmark.writes() { benchmark.is_synced(config) } else { self.open_synced };
        if benchmark.fresh {
            self.close_engine()?;
            self.empty_directory()?;
            self.open_engine(synced)?;
        } else if synced != self.open_synced || config.fresh_process {
            // Some engines fix at open whether writes wait for the device.
            self.close_engine()?;
            self.open_engine(synced)?;
        }
        if config.fresh_process {
            self.threads_created = 0;
        }
        if config.wait_idle_before_read && benchmark.only_reads() {
            self.engine()?.wait_idle()?;
        }
        if config.drop_caches {
            process::drop_file_cache().map_err(EngineError)?;
        }
        Ok(())
    }

    fn empty_directory(&mut self) -> Result<()> {
        self.directory.empty().map_err(EngineError)?;
        self.history.clear();
        Ok(())
    }

    fn run_body(&mut self, benchmark: &Benchmark, config: &Config) -> Result<CrewResult> {
        let mut job = (benchmark.job)(config);
        let created = self.threads_created;
        self.threads_created += u64::from(Crew::size(config, benchmark));
        match benchmark.body {
            Body::Compact => self.time_once(|runner| runner.engine()?.compact_all()),
            Body::WaitIdle => self.time_once(|runner| runner.engine()?.wait_idle()),
            Body::Check(check) => self.check(check, config),
            Body::Open => self.time_opens(job.ops),
            Body::Reopen | Body::Create => self.time_each_open(job.ops, matches!(benchmark.body, Body::Create)),
            _ => {
                if matches!(benchmark.body, Body::EveryKeyOnce(_)) {
                    job.permutation = permutation(&job, config.seed + created + 1);
                }
                let mut written = Written::new(benchmark, config, &job, created);
                let crew = Crew {
                    config,
                    benchmark,
                    engine: self.engine()?,
                    pool: self.setup.pool,
                    job: &job,
                    created,
                    interrupt: self.setup.interrupt,
                    display: self.setup.display,
                };
                let result = crew.run()?;
                if benchmark.writes() {
                    written.whole = !result.total.stopped;
                    self.history.add(written);
                }
                Ok(result)
            }
        }
    }

    /// Compares what is there with what was written. An operation is a key.
    fn check(&self, check: Check, config: &Config) -> Result<CrewResult> {
        let start = Instant::now();
        let checking = Checking {
            engine: self.engine()?,
            written: self.history.written(),
            pool: self.setup.pool,
            keys: &KeyBuffer::new(config.key_prefix, config.key_size),
            interrupt: self.setup.interrupt,
        };
        let Some(checked) = checking.run(check)? else {
            let total = Total { stopped: true, ..Total::default() };
            return Ok(CrewResult { total, ..CrewResult::default() });
        };
        if let Some(problem) = checked.problem() {
            return Err(EngineError(problem));
        }
        let result = single_result(checked.expected, start.elapsed().as_secs_f64());
        Ok(CrewResult { message: checked.message(), ..result })
    }

    /// Reads the whole database, and a sample of it twice; `None` if interrupted. The error is one line.
    pub fn verification(&self) -> std::result::Result<Option<Verification>, String> {
        let verified = self.engine().and_then(|engine| verify::content::verify(engine, self.setup.interrupt));
        verified.map_err(one_line)
    }

    fn time_once(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<CrewResult> {
        let start = Instant::now();
        work(self)?;
        Ok(single_result(1, start.elapsed().as_secs_f64()))
    }

    fn time_opens(&mut self, times: u64) -> Result<CrewResult> {
        let start = Instant::now();
        let mut done = 0;
        while done < times && !self.setup.interrupt.is_requested() {
            self.close_engine()?;
            self.open_engine(self.open_synced)?;
            done += 1;
        }
        let mut result = single_result(done, start.elapsed().as_secs_f64());
        result.total.stopped = done < times;
        Ok(result)
    }

    /// Opens, and nothing else, each with its own latency. `create`: each begins without a database.
    fn time_each_open(&mut self, times: u64, create: bool) -> Result<CrewResult> {
        let mut histogram = new_histogram();
        let mut seconds = 0.0;
        let mut done = 0;
        while done < times && !self.setup.interrupt.is_requested() {
            self.close_engine()?;
            if create {
                self.empty_directory()?;
            }
            let start = Instant::now();
            self.open_engine(self.open_synced)?;
            let took = start.elapsed();
            histogram.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1));
            seconds += took.as_secs_f64();
            done += 1;
        }
        let mut result = single_result(done, seconds);
        result.total.histogram = Some(histogram);
        result.total.stopped = done < times;
        Ok(result)
    }

    /// Waits until background work is done and a moment longer, for files that are removed late: bytes on the device. The error is one line.
    pub fn settled_disk_bytes(&self) -> std::result::Result<u64, String> {
        const MOMENT: Duration = Duration::from_millis(200);
        self.engine().and_then(|engine| engine.wait_idle()).map_err(one_line)?;
        std::thread::sleep(MOMENT);
        Ok(self.directory.disk_bytes())
    }

    fn complete_message(&self, result: &mut CrewResult, benchmark: &Benchmark, wanted: Option<f64>) -> Result<()> {
        let mut add = |text: String| {
            if !result.message.is_empty() {
                result.message.push(' ');
            }
            result.message.push_str(&text);
        };
        if benchmark.access == Access::Merge && !self.engine()?.capabilities().merge {
            add("(read-modify-write: engine has no merge)".into());
        }
        match (result.writer_ops_per_sec, wanted) {
            (None, _) => {}
            (Some(rate), None) => add(format!("(writer: {rate:.0}/s)")),
            (Some(rate), Some(wanted)) if pace::kept_up(rate, wanted) => add(format!("(writer: {wanted:.0}/s)")),
            (Some(rate), Some(wanted)) => add(format!("(writer: {rate:.0} of {wanted:.0}/s, did not keep up)")),
        }
        if result.total.stopped {
            add(format!("(ended early after {:.1} s)", result.total.wall_s));
        }
        Ok(())
    }

    fn blank_record(&self, benchmark: &Benchmark, config: &Config) -> Result<Record> {
        let engine = self.engine()?;
        let mut options = self.setup.config.options.clone();
        options.sync = self.open_synced;
        options.disable_wal = options.disable_wal && !self.open_synced;
        // The engine says what its writes are worth as it is open now; `prepare` opened it for this benchmark.
        let settings = engine.effective_settings();
        let class = settings.iter().find(|(name, _)| name == "durability").and_then(|(_, c)| Durability::from_name(c));
        let durability = class.filter(|_| benchmark.writes());
        let single = matches!(
            benchmark.body,
            Body::EveryKeyOnce(_)
                | Body::Compact
                | Body::Open
                | Body::Reopen
                | Body::Create
                | Body::WaitIdle
                | Body::Check(_)
        );
        Ok(Record {
            schema: SCHEMA_VERSION,
            engine: self.setup.kind.name.into(),
            engine_version: engine.version(),
            benchmark: benchmark.name.into(),
            row: benchmark.name.into(),
            repetition: self.setup.repetition,
            threads: if single { 1 } else { config.threads },
            num: config.num,
            durability,
            options,
            settings,
            flags: config.flags.clone(),
            host: self.setup.host.clone(),
            started_unix_s: crate::host::unix_seconds(),
            ..Record::default()
        })
    }
}

fn single_result(ops: u64, seconds: f64) -> CrewResult {
    let total = Total { ops, wall_s: seconds, sum_thread_s: seconds, ..Total::default() };
    CrewResult { total, ..CrewResult::default() }
}

/// The numbers 0..ops in random order.
fn permutation(job: &Job, seed: u64) -> Vec<u64> {
    let mut random = LehmerRandom::new(seed as u32);
    let mut numbers: Vec<u64> = (0..job.ops).collect();
    for last in (1..numbers.len()).rev() {
        // Two draws, because one has only 31 bits.
        let draw = (u64::from(random.draw()) << 31) | u64::from(random.draw());
        numbers.swap(last, (draw % (last as u64 + 1)) as usize);
    }
    numbers
}

fn difference(after: Counters, before: Counters) -> Counters {
    Counters {
        comparisons: after.comparisons.saturating_sub(before.comparisons),
        wal_bytes: after.wal_bytes.saturating_sub(before.wal_bytes),
        flush_bytes: after.flush_bytes.saturating_sub(before.flush_bytes),
        compaction_bytes: after.compaction_bytes.saturating_sub(before.compaction_bytes),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        cache_hits: after.cache_hits.saturating_sub(before.cache_hits),
        cache_misses: after.cache_misses.saturating_sub(before.cache_misses),
        stall_micros: after.stall_micros.saturating_sub(before.stall_micros),
    }
}

/// Derives a record's figures from the threads' counts and times.
pub fn fill_in(record: &mut Record, total: &Total) {
    // A benchmark without operations (a scan of an empty database) shows its duration as that of one, as db_bench does.
    let ops = total.ops.max(1) as f64;
    let wall = total.wall_s.max(1e-9);
    record.ops = total.ops;
    record.bytes = total.bytes;
    record.wall_s = total.wall_s;
    record.sum_thread_s = total.sum_thread_s;
    record.micros_per_op = total.sum_thread_s * 1e6 / ops;
    record.micros_per_op_wall = total.wall_s * 1e6 / ops;
    record.ops_per_sec = total.ops as f64 / wall;
    record.mb_per_sec = total.bytes as f64 / 1_048_576.0 / wall;
    record.p50_us = total.quantile_us(0.5);
    record.p90_us = total.quantile_us(0.9);
    record.p99_us = total.quantile_us(0.99);
    record.p999_us = total.quantile_us(0.999);
    record.p9999_us = total.quantile_us(0.9999);
    record.max_us = total.histogram.as_ref().map_or(0.0, |h| h.max() as f64 / 1000.0);
    record.histogram = total.buckets();
    record.series = total.series.clone();
    record.series_interval_s = total.series_interval_s;
    record.worst_second_ops = total.seconds.map(|(worst, _)| worst);
    record.median_second_ops = total.seconds.map(|(_, median)| median);
}
