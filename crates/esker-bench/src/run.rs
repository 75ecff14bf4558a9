//! Runs benchmarks one after another on one engine and makes a record of each.

mod opening;

use crate::directory::BenchDirectory;
use crate::expiries::Expiries;
use crate::flags::config::Config;
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::pace;
use crate::process::{self, Consumption};
use crate::progress::Display;
use crate::random::LehmerRandom;
use crate::record::{Host, Record, SCHEMA_VERSION, Verification};
use crate::threads::{Crew, CrewResult};
use crate::times::Times;
use crate::values::ValuePool;
use crate::verify;
use crate::verify::differences::Checking;
use crate::verify::history::{History, Written};
use crate::watch::Watch;
use crate::worker::Job;
use crate::workload::{Access, Benchmark, Body, Check};
use esker_engines::{Counters, Description, EngineError, EngineKind, EngineOptions, NO_TTL, Opened, Result};
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
    /// Its writes are done, and now the process is to die without closing anything:
    /// [`process::die`].
    Dying,
    /// The run was interrupted after so many operations; there is no row.
    Interrupted(u64),
    /// The engine failed, for the reason given in one line.
    Failed(String),
}

/// One engine with its directory, and what has been done so far.
pub struct Runner<'a> {
    setup: Setup<'a>,
    directory: BenchDirectory,
    engine: Option<Opened>,
    open_synced: bool,
    /// Whether the database was opened for entries that expire.
    open_expiring: bool,
    /// What the first opening took.
    opened: (Duration, Consumption),
    threads_created: u64,
    history: History,
}

fn one_line(error: EngineError) -> String {
    error.0.trim().replace('\n', "; ")
}

impl<'a> Runner<'a> {
    /// Opens the engine in its sub-directory, emptied first unless existing databases are to be
    /// kept.
    pub fn open(setup: Setup<'a>) -> std::result::Result<Runner<'a>, String> {
        let path = setup.config.db.join(setup.kind.name);
        let directory = BenchDirectory::claim(&path, setup.config.use_existing_db)?;
        if !setup.config.use_existing_db {
            directory.empty()?;
        }
        let open_synced = setup.config.options.sync;
        let history = History::new(!setup.config.use_existing_db);
        let mut runner = Runner {
            setup,
            directory,
            engine: None,
            open_synced,
            open_expiring: false,
            opened: Default::default(),
            threads_created: 0,
            history,
        };
        runner.open_first().map_err(one_line)?;
        Ok(runner)
    }

    /// What the engine says of itself; `None` if it is not open any more.
    pub fn description(&self) -> Option<&Description> {
        self.engine.as_ref().map(|engine| &engine.description)
    }

    fn open_options(&self, synced: bool) -> EngineOptions {
        let mut options = self.setup.config.options.clone();
        options.sync = synced;
        options.disable_wal = options.disable_wal && !synced;
        options.ttl = self.open_expiring;
        options
    }

    fn open_engine(&mut self, synced: bool) -> Result<()> {
        let options = self.open_options(synced);
        let library = self.setup.config.libraries.get(self.setup.kind.name);
        self.engine =
            Some((self.setup.kind.open)(&self.directory.database(), &options, library.map(|path| path.as_path()))?);
        self.open_synced = synced;
        Ok(())
    }

    fn close_engine(&mut self) -> Result<()> {
        self.engine.take().map_or(Ok(()), Opened::close)
    }

    fn engine(&self) -> Result<&Opened> {
        self.engine.as_ref().ok_or_else(|| EngineError("the database is not open".into()))
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

    /// Runs one benchmark. Of flags that are not those the engine was opened with, what concerns
    /// the clients (threads, operations, latencies) is obeyed.
    pub fn run(&mut self, benchmark: &Benchmark, config: &Config) -> Outcome {
        if self.setup.interrupt.is_requested() {
            return Outcome::Interrupted(0);
        }
        self.try_run(benchmark, config).unwrap_or_else(|error| Outcome::Failed(one_line(error)))
    }

    fn try_run(&mut self, benchmark: &Benchmark, config: &Config) -> Result<Outcome> {
        if let Some(reason) = self.reason_to_skip(benchmark, config)? {
            let mut record = self.blank_record(benchmark, config)?;
            record.skipped = Some(reason);
            // What an engine lacks must not move the key sequences of the benchmarks that follow.
            // (db_bench itself creates no threads for a benchmark that it skips because the
            // database is to be kept.)
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
        let job = self.make_job(benchmark, config)?;
        if self.setup.interrupt.is_requested() {
            return Ok(Outcome::Interrupted(0));
        }
        if let Body::Crash(put) = benchmark.body {
            self.crew(benchmark, config, &job, self.threads_created)?.alone(put)?;
            let interrupted = self.setup.interrupt.is_requested();
            return Ok(if interrupted { Outcome::Interrupted(0) } else { Outcome::Dying });
        }
        let mut record = self.blank_record(benchmark, config)?;
        let began = Consumption::begin();
        let counters = self.engine()?.counters();
        record.tree_before = self.engine()?.tree();
        let watch = Watch::start(&self.directory);
        let result = self.run_body(benchmark, config, job);
        let (now, most) = watch.finish();
        (record.disk_bytes, record.peak_disk_bytes) = (now.disk_bytes, most.disk_bytes);
        let mut result = result?;
        record.short_load = self.history.short_load().map(String::from);
        let consumed = result.consumed.unwrap_or_else(|| began.until_now());
        if result.times.stopped && self.setup.interrupt.is_requested() {
            return Ok(Outcome::Interrupted(result.times.ops));
        }
        // What Esker keeps in this process for its next database is no memory of the other
        // engines'.
        let of_others = if self.setup.kind.name == "esker" { 0 } else { esker::unused_memory_bytes() as u64 };
        record.rss_peak_bytes = consumed.rss_peak_bytes.saturating_sub(of_others);
        record.rss_anonymous_peak_bytes = most.anonymous_bytes.saturating_sub(of_others);
        record.cpu_user_s = (consumed.user_s - result.times.spun.as_secs_f64()).max(0.0);
        record.cpu_sys_s = consumed.system_s;
        // `open` replaces the engine, whose counters then start anew; `recover` is about the time
        // since it was opened.
        let reopened =
            matches!(benchmark.body, Body::Open | Body::Reopen | Body::Create | Body::Recover | Body::Survivors);
        let before = if reopened { Counters::default() } else { counters };
        record.counters = self.engine()?.counters().since(before);
        record.tree = self.engine()?.tree();
        record.writer_ops_per_sec = result.writer_ops_per_sec;
        record.writer_wanted_per_sec = result.writer_ops_per_sec.and(config.writes_per_second);
        record.rate_wanted_per_sec = config.rate.filter(|_| benchmark.has_rate());
        self.complete_message(&mut result, benchmark, config)?;
        record.found = result.found;
        record.message = result.message;
        result.times.fill_in(&mut record);
        Ok(Outcome::Row(Box::new(record)))
    }

    fn reason_to_skip(&self, benchmark: &Benchmark, config: &Config) -> Result<Option<String>> {
        let capabilities = self.engine()?.description.capabilities;
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
        } else if benchmark.access == Access::Expire && !capabilities.ttl {
            NO_TTL
        } else if config.rate.is_some() && benchmark.has_rate() && (benchmark.job)(config).batch > 1 {
            "--rate needs operations that are done one by one"
        } else if matches!(benchmark.body, Body::Recover) && !config.use_existing_db {
            "--use_existing_db is false, so there is nothing to recover"
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
            self.open_expiring = benchmark.access == Access::Expire;
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

    /// What the threads are to do, once what comes before them is done.
    fn make_job(&self, benchmark: &Benchmark, config: &Config) -> Result<Job> {
        let mut job = (benchmark.job)(config);
        if matches!(benchmark.body, Body::EveryKeyOnce(_)) {
            job.permutation = permutation(&job, config.seed + self.threads_created + 1);
        }
        job.complete = self.history.holds_every_key(job.num);
        if benchmark.access == Access::Expire {
            job.expiries = Expiries::new(job.keys)?;
        }
        if let Some(before) = benchmark.before {
            self.crew(benchmark, config, &job, 0)?.alone(before)?;
            self.engine()?.finish_writes()?;
        }
        Ok(job)
    }

    fn crew<'b>(
        &'b self,
        benchmark: &'b Benchmark,
        config: &'b Config,
        job: &'b Job,
        created: u64,
    ) -> Result<Crew<'b>> {
        Ok(Crew {
            config,
            benchmark,
            engine: self.engine()?,
            pool: self.setup.pool,
            job,
            created,
            interrupt: self.setup.interrupt,
            display: self.setup.display,
        })
    }

    fn run_body(&mut self, benchmark: &Benchmark, config: &Config, job: Job) -> Result<CrewResult> {
        let created = self.threads_created;
        self.threads_created += u64::from(Crew::size(config, benchmark));
        match benchmark.body {
            Body::Compact => self.time_once(|runner| runner.engine()?.compact_all()),
            Body::WaitIdle => self.time_once(|runner| runner.engine()?.wait_idle()),
            Body::Check(check) => self.check(check, config),
            Body::Open => self.time_opens(job.ops),
            Body::Survivors => self.kill_and_count(config, job.ops),
            Body::Reopen | Body::Create => self.time_each_open(job.ops, matches!(benchmark.body, Body::Create)),
            Body::Recover => self.look_at_recovery(&self.crew(benchmark, config, &job, created)?),
            _ => {
                let mut written = Written::new(benchmark, config, &job, created);
                let result = self.crew(benchmark, config, &job, created)?.run()?;
                if benchmark.writes() {
                    written.whole = !result.times.stopped;
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
            engine: self.engine()?.engine.as_ref(),
            written: self.history.written(),
            pool: self.setup.pool,
            keys: &KeyBuffer::new(config.key_prefix, config.key_size),
            interrupt: self.setup.interrupt,
        };
        let Some(checked) = checking.run(check)? else {
            return Ok(Times { stopped: true, ..Times::default() }.into());
        };
        if let Some(problem) = checked.problem() {
            return Err(EngineError(problem));
        }
        let times = Times::of_one(checked.expected, start, start.elapsed());
        Ok(CrewResult { times, message: checked.message(), ..CrewResult::default() })
    }

    /// Reads the whole database, and a sample of it twice; `None` if interrupted. The error is one
    /// line.
    pub fn verification(&self) -> std::result::Result<Option<Verification>, String> {
        let (expiring, interrupt) = (self.open_expiring, self.setup.interrupt);
        let verified =
            self.engine().and_then(|engine| verify::content::verify(engine.engine.as_ref(), expiring, interrupt));
        verified.map_err(one_line)
    }

    fn time_once(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<CrewResult> {
        let start = Instant::now();
        work(self)?;
        Ok(Times::of_one(1, start, start.elapsed()).into())
    }

    /// Waits until background work is done and a moment longer, for files that are removed late:
    /// bytes on the device. The error is one line.
    pub fn settled_disk_bytes(&self) -> std::result::Result<u64, String> {
        const MOMENT: Duration = Duration::from_millis(200);
        self.engine().and_then(|engine| engine.wait_idle()).map_err(one_line)?;
        std::thread::sleep(MOMENT);
        Ok(self.directory.disk_bytes())
    }

    fn complete_message(&self, result: &mut CrewResult, benchmark: &Benchmark, config: &Config) -> Result<()> {
        let achieved = result.times.ops as f64 / result.times.wall_s().max(1e-9);
        let mut add = |text: String| {
            if !result.message.is_empty() {
                result.message.push(' ');
            }
            result.message.push_str(&text);
        };
        if benchmark.access == Access::Merge && !self.engine()?.description.capabilities.merge {
            add("(read-modify-write: engine has no merge)".into());
        }
        match config.rate.filter(|_| benchmark.has_rate()) {
            Some(wanted) if pace::kept_up(achieved, wanted) => add(format!("(rate: {wanted}/s)")),
            Some(wanted) => add(format!("(rate: {achieved:.0} of {wanted}/s, did not keep up)")),
            None => {}
        }
        match (result.writer_ops_per_sec, config.writes_per_second) {
            (None, _) => {}
            (Some(rate), None) => add(format!("(writer: {rate:.0}/s)")),
            (Some(rate), Some(wanted)) if pace::kept_up(rate, wanted) => add(format!("(writer: {wanted:.0}/s)")),
            (Some(rate), Some(wanted)) => add(format!("(writer: {rate:.0} of {wanted:.0}/s, did not keep up)")),
        }
        if result.times.stopped {
            add(format!("(ended early after {:.1} s)", result.times.wall_s()));
        }
        Ok(())
    }

    fn blank_record(&self, benchmark: &Benchmark, config: &Config) -> Result<Record> {
        let engine = self.engine()?;
        let options = self.open_options(self.open_synced);
        // The engine says what its writes are worth as it is open now; `prepare` opened it for this
        // benchmark.
        let Description { version, settings, durability, .. } = engine.description.clone();
        let durability = Some(durability).filter(|_| benchmark.writes());
        let shared =
            matches!(benchmark.body, Body::Threads(_) | Body::BesideWriter(..) | Body::Crash(_) | Body::Refused(_));
        Ok(Record {
            schema: SCHEMA_VERSION,
            engine: self.setup.kind.name.into(),
            engine_version: version,
            benchmark: benchmark.name.into(),
            row: benchmark.name.into(),
            repetition: self.setup.repetition,
            threads: if shared { config.threads } else { 1 },
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
