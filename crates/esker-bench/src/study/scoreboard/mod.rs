//! `esker study scoreboard`: every engine on the published workloads, interleaved, with equal durability, memory and compression.

pub mod rows;
pub mod summary;
pub mod table;

use crate::bench::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, check_writable};
use crate::engine::EngineKind;
use crate::flags::Given;
use crate::flags::config::{Config, Latency, default_directory, engine_names, library};
use crate::host;
use crate::interrupt::{EXIT_INTERRUPTED, Interrupt};
use crate::output::{LineFile, say};
use crate::progress::Display;
use crate::record::{Host, Record, Run};
use crate::run::{Outcome, Runner, Setup};
use crate::values::ValuePool;
use crate::workload::{self, Benchmark};
use rows::{GROUPS, Group, MEMORY, Operations, Row};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study scoreboard --quick
  esker study scoreboard --html scoreboard.html --records rows.jsonl
  esker study scoreboard --engines esker,rocksdb,lmdb --rows fillrandom --repeat 5

Engines take turns within a repetition. Peers whose library is not here are left out, with a line
that says what to install.

Exit codes: 0 all went well; 1 an engine failed, or a ratio is below --require-ratio;
2 wrong command line; 130 interrupted.";

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// End within three minutes on two cores: fewer entries, one repetition, every row limited in time
    #[arg(long)]
    pub quick: bool,
    /// Engines, by name, joined by commas; those that are not here are left out of `all`
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub engines: String,
    /// Repetitions [default: 3, with --quick 1]
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// Entries [default: 1000000, with --quick 100000]
    #[arg(long, value_name = "N")]
    pub num: Option<u64>,
    /// File for one JSON object per row and engine.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// File for one JSON object per repetition of a row, in the form of `esker bench --json`, written as rows finish.
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// File for the rows as CSV; without FILE they go to standard output in place of the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub csv: Option<PathBuf>,
    /// File for a self-contained report.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Directory for the databases.
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Shared library of an engine; may be given several times.
    #[arg(long = "lib", value_name = "NAME=PATH")]
    pub libraries: Vec<String>,
    /// Memory of each engine, write buffer and cache together, in bytes [default: 128 MiB per million
    /// entries, at least 8 MiB]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// End with exit code 1 if Esker's ratio to the best peer is below this in any row.
    #[arg(long, value_name = "RATIO")]
    pub require_ratio: Option<f64>,
    /// Only the rows whose names contain this (their groups' loads are run too).
    #[arg(long, value_name = "TEXT")]
    pub rows: Option<String>,
}

/// How large the study is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    num: u64,
    repeat: u32,
    memory: u64,
    synced_writes: u64,
    /// Longest time of a row that loads what others read.
    load_limit: Duration,
    /// Longest time of any other row.
    row_limit: Duration,
    /// Time for everything.
    budget: Option<Duration>,
}

impl Size {
    fn new(arguments: &Arguments) -> Result<Size, String> {
        let num = arguments.num.unwrap_or(if arguments.quick { 100_000 } else { 1_000_000 });
        let repeat = arguments.repeat.unwrap_or(if arguments.quick { 1 } else { 3 });
        if num < 1000 || repeat == 0 {
            return Err("--num must be at least 1000 and --repeat at least 1".into());
        }
        let memory = arguments.memory.unwrap_or((num.saturating_mul(134)).clamp(8 << 20, 1 << 40));
        let seconds = |quick: f64, full: f64| Duration::from_secs_f64(if arguments.quick { quick } else { full });
        Ok(Size {
            num,
            repeat,
            memory,
            synced_writes: if arguments.quick { 100 } else { 1000 },
            load_limit: seconds(5.0, 600.0),
            row_limit: seconds(1.5, 120.0),
            budget: arguments.quick.then_some(Duration::from_secs(160)),
        })
    }
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    let kinds = crate::all_kinds();
    main_with(arguments, &kinds, &mut std::io::stdout(), Display::detect(), Interrupt::from_signals)
}

/// The same with everything it depends on passed in. `interrupt` is called once, when the study begins.
pub fn main_with(
    arguments: &Arguments,
    kinds: &[EngineKind],
    out: &mut dyn Write,
    display: Display,
    interrupt: impl FnOnce() -> Interrupt,
) -> i32 {
    let parsed = Size::new(arguments).and_then(|size| Ok((size, Base::new(arguments, size)?)));
    let (size, base) = match parsed {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("esker study scoreboard: {problem}");
            return EXIT_USAGE;
        }
    };
    let board = Board::new(arguments, size, base, kinds, display, interrupt());
    match board {
        Ok(mut board) => {
            board.measure();
            board.report(out)
        }
        Err(problem) => {
            eprintln!("esker study scoreboard: {problem}");
            EXIT_FAILED
        }
    }
}

/// What all rows' flags have in common.
struct Base {
    engines: Vec<String>,
    named: bool,
    libraries: BTreeMap<String, PathBuf>,
    db: PathBuf,
}

impl Base {
    fn new(arguments: &Arguments, size: Size) -> Result<Base, String> {
        let base = Base {
            engines: engine_names(&arguments.engines)?,
            named: arguments.engines != "all",
            libraries: arguments.libraries.iter().map(|text| library(text)).collect::<Result<_, _>>()?,
            db: arguments.db.clone().unwrap_or_else(default_directory),
        };
        // Whatever is wrong with the flags is wrong for every group: learn it now.
        for group in GROUPS {
            base.config(group, size, "esker")?;
        }
        Ok(base)
    }

    /// The flags of one group on one engine.
    fn config(&self, group: &Group, size: Size, engine: &str) -> Result<Config, String> {
        let benchmarks: Vec<&str> = group.rows.iter().map(|row| row.benchmark).collect();
        let mut given = Given::default();
        given.set("benchmarks", benchmarks.join(","));
        given.set("num", size.num.to_string());
        given.set("db", self.db.display().to_string());
        given.set("engine", engine.to_string());
        if group.disable_wal {
            given.set("disable_wal", "1".into());
        }
        if group.counters {
            given.set("value_size", "8".into());
            given.set("merge_operator", "uint64add".into());
        }
        let mut config = Config::new(&given)?;
        config.libraries = self.libraries.clone();
        // A clock reading after every operation would weigh most on the fastest engines.
        config.latency = Latency::Sampled(16);
        rows::set_memory(&mut config.options, engine, size.memory);
        for (flag, value) in [
            ("latency_every", "16".to_string()),
            ("write_buffer_size", config.options.write_buffer_bytes.to_string()),
            ("cache_size", config.options.cache_bytes.unwrap_or(0).to_string()),
        ] {
            config.flags.insert(flag.into(), value);
        }
        Ok(config)
    }
}

struct Board<'a> {
    arguments: &'a Arguments,
    size: Size,
    base: Base,
    engines: Vec<&'a EngineKind>,
    display: Display,
    interrupt: Interrupt,
    pool: ValuePool,
    host: Host,
    record_file: Option<LineFile>,
    records: Vec<Record>,
    begin: Instant,
    rows_left: u32,
    problem: bool,
}

impl<'a> Board<'a> {
    fn new(
        arguments: &'a Arguments,
        size: Size,
        base: Base,
        kinds: &'a [EngineKind],
        display: Display,
        interrupt: Interrupt,
    ) -> Result<Board<'a>, String> {
        let files = [&arguments.json, &arguments.html, &arguments.csv];
        for path in files.into_iter().flatten().filter(|path| path.as_os_str() != "-") {
            check_writable(path)?;
        }
        let mut board = Board {
            record_file: arguments.records.as_deref().map(LineFile::create).transpose()?,
            host: host::describe(&base.db),
            pool: ValuePool::new(0.5),
            engines: Vec::new(),
            records: Vec::new(),
            begin: Instant::now(),
            rows_left: 0,
            problem: false,
            arguments,
            size,
            base,
            display,
            interrupt,
        };
        for name in board.base.engines.clone() {
            let kind = kinds.iter().find(|kind| kind.name == name);
            let library = board.base.libraries.get(&name).map(|path| path.as_path());
            match kind.map(|kind| (kind, (kind.probe)(library))) {
                Some((kind, Ok(version))) => {
                    eprintln!("{name}: {version}");
                    board.engines.push(kind);
                }
                Some((_, Err(problem))) => board.leave_out(&name, &problem.to_string()),
                None => board.leave_out(&name, "this build does not have the engine"),
            }
        }
        if board.engines.is_empty() { Err("no engine can be used here".into()) } else { Ok(board) }
    }

    fn leave_out(&mut self, name: &str, problem: &str) {
        eprintln!("{name}: left out: {problem}");
        self.problem |= self.base.named;
    }

    fn wants(&self, row: &Row) -> bool {
        self.arguments.rows.as_deref().is_none_or(|text| row.label().contains(text))
    }

    fn groups(&self) -> Vec<&'static Group> {
        let wanted = |group: &&Group| group.rows.iter().any(|row| row.name.is_some() && self.wants(row));
        GROUPS.iter().filter(wanted).collect()
    }

    fn measure(&mut self) {
        eprintln!("memory of each engine: {} bytes (write buffer and cache together)", self.size.memory);
        for split in MEMORY.iter().filter(|split| self.engines.iter().any(|kind| kind.name == split.engine)) {
            eprintln!("  {}: {}", split.engine, split.reason);
        }
        let groups = self.groups();
        let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
        self.rows_left = (rows * self.engines.len()) as u32 * self.size.repeat;
        for repetition in 1..=self.size.repeat {
            // Each repetition begins with another engine, so that none always runs on a machine just idle or just busy.
            let mut engines = self.engines.clone();
            let turn = (repetition as usize - 1) % engines.len();
            engines.rotate_left(turn);
            for group in &groups {
                for kind in &engines {
                    if self.interrupt.is_requested() {
                        return;
                    }
                    let elapsed = self.begin.elapsed().as_secs();
                    let of = self.size.repeat;
                    eprintln!("[{elapsed:>4} s] {repetition}/{of} {}: {}", group.name, kind.name);
                    let left = self.rows_left - group.rows.len() as u32;
                    if let Err(problem) = self.measure_group(group, kind, repetition) {
                        eprintln!("{}: {}: {problem}", kind.name, group.name);
                        self.problem = true;
                    }
                    self.rows_left = left;
                }
            }
        }
    }

    fn measure_group(&mut self, group: &Group, kind: &EngineKind, repetition: u32) -> Result<(), String> {
        let config = self.base.config(group, self.size, kind.name)?;
        let (pool, host, interrupt) = (self.pool.clone(), self.host.clone(), self.interrupt.clone());
        let display = self.display;
        let setup =
            Setup { config: &config, kind, pool: &pool, host: &host, interrupt: &interrupt, display, repetition };
        let mut runner = Runner::open(setup)?;
        for row in group.rows {
            let Some(benchmark) = workload::find(row.benchmark) else { continue };
            // Rows that nobody asked for are run only if later rows read what they load.
            if !self.wants(row) && !benchmark.fresh && row.name.is_some() {
                continue;
            }
            let config = self.row_config(&config, row, benchmark);
            self.rows_left = self.rows_left.saturating_sub(1);
            match runner.run_with(benchmark, &config) {
                Outcome::Row(record) => self.take(*record, row)?,
                Outcome::Text(_) => {}
                Outcome::Interrupted(_) => break,
                Outcome::Failed(problem) => {
                    // Whatever is left of the engine goes away with the runner; the failure is what is reported.
                    let _ = runner.close();
                    return Err(format!("{}: {problem}", row.label()));
                }
            }
        }
        runner.close_and_remove()
    }

    fn row_config(&self, group: &Config, row: &Row, benchmark: &Benchmark) -> Config {
        let mut config = group.clone();
        config.threads = row.threads;
        match row.operations {
            Operations::Defined => {}
            Operations::Synced => config.writes = Some(self.size.synced_writes),
            Operations::Shared => {
                let each = (self.size.num / u64::from(row.threads)).max(1);
                config.writes = Some(each);
                config.reads = each;
            }
        }
        if row.operations == Operations::Synced || row.benchmark.ends_with("100K") {
            // Slow operations: all of them are timed, and the clock does not matter.
            config.latency = Latency::Every;
        }
        let most = if benchmark.fresh { self.size.load_limit } else { self.size.row_limit };
        config.max_seconds = Some(self.limit(most).as_secs_f64());
        config.flags.insert("threads".into(), row.threads.to_string());
        config.flags.insert("writes".into(), config.writes.map_or("-1".into(), |writes| writes.to_string()));
        config
    }

    /// The time a row may take: where there is a budget, a few times its even share of what is left, because most rows take far less.
    fn limit(&self, most: Duration) -> Duration {
        let Some(budget) = self.size.budget else { return most };
        let left = budget.saturating_sub(self.begin.elapsed());
        (left * 4 / self.rows_left.max(1)).clamp(Duration::from_millis(50), most)
    }

    fn take(&mut self, mut record: Record, row: &Row) -> Result<(), String> {
        let (Some(name), true) = (row.name, self.wants(row)) else { return Ok(()) };
        record.row = name.to_string();
        if let Some(reason) = &record.skipped {
            eprintln!("  {}: {} skipped: {reason}", record.engine, row.label());
        }
        if let Some(file) = &mut self.record_file {
            let line =
                serde_json::to_string(&record).map_err(|error| format!("cannot write a row as JSON: {error}"))?;
            file.line(&line)?;
        }
        self.records.push(record);
        Ok(())
    }

    fn report(self, out: &mut dyn Write) -> i32 {
        let lines = summary::summarize(&self.records);
        let means = summary::means(&lines);
        let csv = self.arguments.csv.as_deref();
        if csv == Some(Path::new("-")) {
            say(out, table::comma_separated(&lines).trim_end());
        } else {
            say(out, &table::text(&lines, &means));
        }
        let mut problem = self.problem;
        let run = Run { title: "Scoreboard".into(), host: self.host.clone(), records: self.records };
        for result in [
            self.arguments.json.as_deref().map(|path| write_json(path, &lines, &means)),
            csv.filter(|path| *path != Path::new("-")).map(|path| save(path, &table::comma_separated(&lines))),
            self.arguments.html.as_deref().map(|path| {
                crate::report::write_html(&run, path).map_err(|e| format!("cannot write {}: {e}", path.display()))
            }),
        ] {
            if let Some(Err(trouble)) = result {
                eprintln!("esker study scoreboard: {trouble}");
                problem = true;
            }
        }
        let least = self.arguments.require_ratio.unwrap_or(0.0);
        for line in summary::behind(&lines, least) {
            let ratio = line.ratio_to_best_peer.unwrap_or(0.0);
            let peer = line.best_peer.as_deref().unwrap_or("");
            eprintln!("{}: {ratio:.2}x of {peer}, below {least}", line.row);
            problem = true;
        }
        match (self.interrupt.is_requested(), problem) {
            (true, _) => EXIT_INTERRUPTED,
            (false, true) => EXIT_FAILED,
            (false, false) => EXIT_OK,
        }
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn write_json(path: &Path, lines: &[summary::Line], means: &[summary::Means]) -> Result<(), String> {
    let failed = |error: serde_json::Error| format!("cannot write {}: {error}", path.display());
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line).map_err(failed)?);
        text.push('\n');
    }
    for mean in means {
        text.push_str(&serde_json::to_string(mean).map_err(failed)?);
        text.push('\n');
    }
    save(path, &text)
}
