//! `esker bench`: the command line, the engines in turn, the outputs, the exit code.

use crate::exit::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, exit_code};
use crate::flags::config::Config;
use crate::flags::{Given, table};
use crate::host;
use crate::interrupt::Interrupt;
use crate::output::{LineFile, check_writable, complain, say, text};
use crate::process;
use crate::progress::Display;
use crate::record::{Host, Record, Run};
use crate::report::records::COLUMNS;
use crate::report::render::csv::line;
use crate::run::{Outcome, Runner, Setup};
use crate::values::ValuePool;
use crate::workload::{self, BENCHMARKS};
use clap::error::ErrorKind;
use esker_engines::{Description, EngineKind, registry};
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Instant;

const ABOUT: &str = "Measures Esker and other key-value engines with the benchmarks of db_bench.";

const EXAMPLES: &str = include_str!("../data/help/bench.txt").trim_ascii_end();

/// Runs `esker bench` with the arguments after that word and returns the exit code of the process.
pub fn bench_main(args: &[String]) -> i32 {
    let kinds = crate::all_kinds();
    bench_with(args, &kinds, &mut std::io::stdout(), Display::detect(), Interrupt::from_signals)
}

/// The same with everything it depends on passed in. `interrupt` is called once, when the run
/// begins.
pub fn bench_with(
    args: &[String],
    kinds: &[EngineKind],
    out: &mut dyn Write,
    display: Display,
    interrupt: impl FnOnce() -> Interrupt,
) -> i32 {
    let command = table::command().about(ABOUT).override_usage("esker bench [--name=value ...]").after_help(EXAMPLES);
    let given = match Given::of(command, args) {
        Ok(given) => given,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            say(out, error.to_string().trim_end());
            return EXIT_OK;
        }
        Err(error) => return usage(&esker_usage::summary(&error.to_string(), "esker bench")),
    };
    let config = match Config::new(&given) {
        Ok(config) => config,
        Err(problem) => return usage(&problem),
    };
    if given.boolean("list") {
        say(out, &list(kinds, &config));
        return EXIT_OK;
    }
    for warning in &given.warnings {
        eprintln!("{warning}");
    }
    let mut bench = match Bench::new(config, kinds, out, display, interrupt()) {
        Ok(bench) => bench,
        Err(problem) => return complain("bench", &problem, EXIT_FAILED),
    };
    let begin = Instant::now();
    bench.run();
    if bench.introduced {
        eprintln!("total: {:.3} s", begin.elapsed().as_secs_f64());
    }
    bench.finish()
}

fn usage(problem: &str) -> i32 {
    complain("bench", problem, EXIT_USAGE)
}

struct Bench<'a> {
    config: Config,
    kinds: &'a [EngineKind],
    out: &'a mut dyn Write,
    display: Display,
    interrupt: Interrupt,
    pool: ValuePool,
    host: Host,
    json_file: LineFile,
    csv_file: LineFile,
    records: Vec<Record>,
    problem: bool,
    interrupted: bool,
    /// Engines that failed or are not here: later repetitions leave them out.
    given_up: BTreeSet<String>,
    /// Whether an engine was opened, and before it the lines about the run were written.
    introduced: bool,
}

impl<'a> Bench<'a> {
    fn new(
        config: Config,
        kinds: &'a [EngineKind],
        out: &'a mut dyn Write,
        display: Display,
        interrupt: Interrupt,
    ) -> Result<Bench<'a>, String> {
        let (known, unknown): (Vec<&String>, Vec<&String>) =
            config.benchmarks.iter().partition(|name| workload::find(name).is_some());
        if known.is_empty() {
            return Err(unknown_benchmarks(&unknown));
        }
        if !unknown.is_empty() {
            eprintln!("esker bench: {}", unknown_benchmarks(&unknown));
        }
        let problem = !unknown.is_empty();
        let json_file = LineFile::create(config.json.as_deref())?;
        let mut csv_file = LineFile::create(config.csv.as_deref())?;
        csv_file.line(line(COLUMNS.header()).trim_end())?;
        if let Some(path) = &config.html {
            check_writable(path)?;
        }
        let display = if config.quiet { Display::Hidden } else { display };
        Ok(Bench {
            pool: ValuePool::new(config.compression_ratio),
            host: host::describe(&config.db),
            given_up: BTreeSet::new(),
            records: Vec::new(),
            interrupted: false,
            introduced: false,
            problem,
            config,
            kinds,
            out,
            display,
            interrupt,
            json_file,
            csv_file,
        })
    }

    fn run(&mut self) {
        for repetition in 1..=self.config.repeat {
            for name in self.config.engines.clone() {
                if self.interrupt.is_requested() {
                    self.interrupted = true;
                    return;
                }
                if !self.given_up.contains(&name) {
                    self.run_engine(&name, repetition);
                }
            }
        }
    }

    fn complain(&mut self, engine: &str, problem: &str) {
        eprintln!("esker bench: {engine}: {}", registry::without_name(engine, problem));
        self.problem = true;
        self.given_up.insert(engine.to_string());
    }

    fn run_engine(&mut self, name: &str, repetition: u32) {
        let kinds = self.kinds;
        let Some(kind) = kinds.iter().find(|kind| kind.name == name) else {
            return self.complain(name, "this build does not have the engine");
        };
        if let Err(error) = (kind.probe)(self.config.libraries.get(name).map(|path| path.as_path())) {
            if self.config.engines_named {
                return self.complain(name, &error.to_string());
            }
            eprintln!("{}", registry::left_out(name, &error.to_string()));
            self.given_up.insert(name.to_string());
            return;
        }
        let config = self.config.clone();
        let (pool, host, interrupt) = (self.pool.clone(), self.host.clone(), self.interrupt.clone());
        let display = self.display;
        let setup =
            Setup { config: &config, kind, pool: &pool, host: &host, interrupt: &interrupt, display, repetition };
        let mut runner = match Runner::open(setup) {
            Ok(runner) => runner,
            Err(problem) => return self.complain(name, &problem),
        };
        self.introduce();
        self.print_header(&runner, name);
        for benchmark in config.benchmarks.iter().filter_map(|name| workload::find(name)) {
            if !self.take(runner.run(benchmark, &config), name, benchmark.name) {
                break;
            }
        }
        if let Err(problem) = runner.close() {
            self.complain(name, &format!("closing: {problem}"));
        }
    }

    /// What concerns the whole run, once, as soon as something can be measured.
    fn introduce(&mut self) {
        if !self.introduced {
            self.introduced = true;
            eprintln!("Esker:      {}", self.host.esker_build);
            eprintln!("Date:       {}", self.host.date);
            eprintln!("CPU:        {} * {}", self.host.cores, self.host.cpu);
        }
    }

    fn print_header(&mut self, runner: &Runner<'_>, name: &str) {
        let Some(Description { version, settings, .. }) = runner.description() else { return };
        // One engine alone prints exactly what db_bench prints.
        if self.config.engines.len() > 1 || self.config.repeat > 1 {
            say(self.out, &format!("Engine:     {name} {version}"));
        }
        eprintln!("Settings:   {name} {version}");
        for (setting, value) in settings {
            eprintln!("            {setting} = {value}");
        }
        say(self.out, &text::header(&self.config));
    }

    /// Takes the outcome of one benchmark; whether the engine goes on.
    fn take(&mut self, outcome: Outcome, engine: &str, benchmark: &str) -> bool {
        match outcome {
            Outcome::Text(text) => say(self.out, &format!("\n{text}")),
            Outcome::Dying => {
                self.complain(engine, &process::die());
                return false;
            }
            Outcome::Row(record) => {
                say(self.out, &text::row(&record, self.config.row_form));
                let details = text::details(&record, &self.config);
                if !details.is_empty() {
                    say(self.out, &details);
                }
                if let Err(problem) = self
                    .json_file
                    .json(&record)
                    .and_then(|()| self.csv_file.line(line(COLUMNS.row(&record)).trim_end()))
                {
                    eprintln!("esker bench: {problem}");
                    self.problem = true;
                }
                self.records.push(*record);
            }
            Outcome::Interrupted(ops) => {
                eprintln!("{benchmark}: interrupted after {ops} operations; it makes no row");
                self.interrupted = true;
                return false;
            }
            Outcome::Failed(problem) => {
                self.complain(engine, &format!("{benchmark}: {problem}"));
                return false;
            }
        }
        true
    }

    fn finish(self) -> i32 {
        let mut problem = self.problem;
        if let Some(path) = &self.config.html {
            let run = Run { title: "esker bench".into(), host: self.host, records: self.records };
            if let Err(error) = crate::report::write_html(&run, path) {
                eprintln!("esker bench: cannot write {}: {error}", path.display());
                problem = true;
            }
        }
        exit_code(self.interrupted, problem)
    }
}

/// One line that names every unknown benchmark, with the nearest that exists.
fn unknown_benchmarks(names: &[&String]) -> String {
    let described: Vec<String> = names
        .iter()
        .map(|name| match workload::nearest(name) {
            Some(near) => format!("unknown benchmark '{name}' (did you mean {near}?)"),
            None => format!("unknown benchmark '{name}'"),
        })
        .collect();
    format!("{}; --list shows all", described.join(", "))
}

fn list(kinds: &[EngineKind], config: &Config) -> String {
    let mut text = String::from("Engines:\n");
    for kind in kinds {
        let library = config.libraries.get(kind.name).map(|path| path.as_path());
        let state = (kind.probe)(library).unwrap_or_else(|error| format!("not available: {error}"));
        push_wrapped(&mut text, kind.name, &state);
    }
    text.push_str("\nBenchmarks (* starts with an empty database):\n");
    for (benchmark, meaning) in BENCHMARKS.iter().filter_map(|benchmark| Some((benchmark, benchmark.meaning()?))) {
        let name = format!("{}{}", benchmark.name, if benchmark.fresh { " *" } else { "" });
        push_wrapped(&mut text, &name, meaning);
    }
    text.trim_end().to_string()
}

/// Appends `name` and its wrapped meaning in two columns.
fn push_wrapped(text: &mut String, name: &str, meaning: &str) {
    const COLUMN: usize = 30;
    const WIDTH: usize = 100;
    let mut line = format!("  {name:<width$}", width = COLUMN - 2);
    if !line.ends_with("  ") {
        text.push_str(line.trim_end());
        text.push('\n');
        line = " ".repeat(COLUMN);
    }
    for word in meaning.split(' ') {
        if line.len() + word.len() >= WIDTH && line.len() > COLUMN {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(COLUMN);
        }
        line.push_str(word);
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
