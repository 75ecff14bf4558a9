//! `esker study scoreboard`: every engine on the published workloads, interleaved, with equal
//! durability, memory and compression.

use crate::exit::{EXIT_FAILED, EXIT_USAGE, exit_code};
use crate::flags::config::{engine_names, library};
use crate::host;
use crate::output::{LineFile, check_writable, complain, say};
use crate::record::{Host, Record, Run};
use crate::report::scoreboard::{summary, tables};
use crate::sweep::grid::{Cell, Execution, Finished, Performed, Plan, RunDirectory, kept_cells, perform};
use crate::sweep::memory;
use crate::sweep::plan::Wanted;
use crate::sweep::scoreboard as rows;
use crate::sweep::task::{Budget, Step};
use crate::workload;
use esker_engines::registry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shown below the options.
pub const EXAMPLES: &str = include_str!("../../data/help/scoreboard.txt").trim_ascii_end();

const TITLE: &str = "Scoreboard";

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// End within three minutes on two cores: fewer entries, one repetition, every row limited in
    /// time
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
    /// File for one JSON object per repetition of a row, in the form of `esker bench --json`,
    /// written as rows finish.
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// File for the rows as CSV; without FILE they go to standard output in place of the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub csv: Option<PathBuf>,
    /// File for a self-contained report.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Directory that keeps what each engine did of each group of rows; one that holds a part of it
    /// is resumed
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    pub run: Option<PathBuf>,
    /// Directory for the databases.
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Shared library of an engine; may be given several times.
    #[arg(long = "lib", value_name = "NAME=PATH")]
    pub libraries: Vec<String>,
    /// Memory of each engine, write buffer and cache together, in bytes [default: 128 MiB per
    /// million entries, at least 8 MiB]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// End with exit code 1 if Esker's ratio to the best peer is below this in any row.
    #[arg(long, value_name = "RATIO")]
    pub require_ratio: Option<f64>,
    /// Only the rows whose names contain this (their groups' loads are run too).
    #[arg(long, value_name = "TEXT")]
    pub rows: Option<String>,
    /// Only the rows that this file names, one a line, with all that their groups run before them,
    /// as `esker study compare --failing` writes it.
    #[arg(long, value_name = "FILE")]
    pub rows_from: Option<PathBuf>,
}

/// Time for everything of a quick study.
const QUICK_BUDGET: Duration = Duration::from_secs(160);

impl Arguments {
    /// The longest seconds of a row that loads what others read, and of any other row.
    fn limits(&self) -> (f64, f64) {
        if self.quick { (5.0, 1.5) } else { (600.0, 120.0) }
    }

    /// What is asked of the plan, but for the engines. The error is one line.
    fn wanted(&self) -> Result<Wanted, String> {
        let (num, repeat, synced_writes) = if self.quick { (100_000, 1, 100) } else { (1_000_000, 3, 1000) };
        let (num, repeat) = (self.num.unwrap_or(num), self.repeat.unwrap_or(repeat));
        if num < 1000 || repeat == 0 {
            return Err("--num must be at least 1000 and --repeat at least 1".into());
        }
        let memory = self.memory.unwrap_or(num.saturating_mul(134).clamp(8 << 20, 1 << 40));
        let quick = u64::from(self.quick);
        let numbers = [("num", num), ("memory", memory), ("synced_writes", synced_writes), ("quick", quick)];
        let numbers = numbers.map(|(name, value)| (name.to_string(), value.to_string())).into();
        Ok(Wanted { repeat, numbers, ..Wanted::default() })
    }
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments, out: &mut dyn Write, mut execution: Execution<'_>) -> i32 {
    let complain = |problem: String, code| complain("study scoreboard", &problem, code);
    let asked = match Asked::new(arguments, &mut execution) {
        Ok(asked) => asked,
        Err(problem) => return complain(problem, EXIT_USAGE),
    };
    match Board::new(arguments, asked, execution).and_then(|mut board| board.measure().map(|()| board)) {
        Ok(board) => board.report(out),
        Err(problem) => complain(problem, EXIT_FAILED),
    }
}

/// What the command line asks for, read and checked.
struct Asked {
    /// Of the engines requested; [`Board`] leaves only those that are here.
    wanted: Wanted,
    /// The only rows wanted, if there is a list.
    rows: Option<Vec<String>>,
}

impl Asked {
    /// Directory and libraries go to `execution`.
    fn new(arguments: &Arguments, execution: &mut Execution<'_>) -> Result<Asked, String> {
        let wanted = Wanted { engines: engine_names(&arguments.engines)?, ..arguments.wanted()? };
        execution.libraries = arguments.libraries.iter().map(|text| library(text)).collect::<Result<_, _>>()?;
        execution.db = arguments.db.clone().unwrap_or_else(|| execution.db.clone());
        let rows = arguments.rows_from.as_deref().map(row_names).transpose()?;
        // Whatever is wrong with the flags is wrong for every group: learn it now.
        rows::plan(&Wanted { engines: vec!["esker".into()], ..wanted.clone() })?;
        Ok(Asked { wanted, rows })
    }
}

struct Board<'a> {
    arguments: &'a Arguments,
    asked: Asked,
    execution: Execution<'a>,
    /// Keeps what was done, if that was requested.
    directory: Option<RunDirectory>,
    host: Host,
    record_file: LineFile,
    records: Vec<Record>,
    begin: Instant,
    rows_left: u32,
    problem: bool,
}

impl<'a> Board<'a> {
    fn new(arguments: &'a Arguments, asked: Asked, execution: Execution<'a>) -> Result<Board<'a>, String> {
        let files = [&arguments.json, &arguments.html, &arguments.csv];
        for path in files.into_iter().flatten().filter(|path| path.as_os_str() != "-") {
            check_writable(path)?;
        }
        let kinds = execution.kinds;
        let mut board = Board {
            record_file: LineFile::create(arguments.records.as_deref())?,
            host: host::describe(&execution.db),
            execution,
            directory: None,
            records: Vec::new(),
            begin: Instant::now(),
            rows_left: 0,
            problem: false,
            arguments,
            asked,
        };
        for name in std::mem::take(&mut board.asked.wanted.engines) {
            let kind = kinds.iter().find(|kind| kind.name == name);
            let library = board.execution.libraries.get(&name).map(|path| path.as_path());
            match kind.map(|kind| (kind, (kind.probe)(library))) {
                Some((_, Ok(version))) => {
                    eprintln!("{name}: {version}");
                    board.asked.wanted.engines.push(name);
                }
                Some((_, Err(problem))) => board.leave_out(&name, &problem.to_string()),
                None => board.leave_out(&name, "this build does not have the engine"),
            }
        }
        if board.asked.wanted.engines.is_empty() {
            return Err("no engine can be used here".into());
        }
        if let Some(path) = &arguments.run {
            board.directory = Some(RunDirectory::create_or_resume(path, &board.plan()?)?);
        }
        Ok(board)
    }

    /// All that is to be done, in order.
    fn plan(&self) -> Result<Plan, String> {
        let mut plan = rows::plan(&self.asked.wanted)?;
        let wanted = |step: &Step| step.row.as_ref().is_some_and(|row| self.wants(&rows::label(row, step.threads)));
        plan.cells.retain(|cell| cell.tasks.iter().flat_map(|task| &task.steps).any(wanted));
        for task in plan.cells.iter_mut().flat_map(|cell| &mut cell.tasks) {
            let steps = std::mem::take(&mut task.steps);
            task.steps = steps.into_iter().filter_map(|step| self.step(step)).collect();
        }
        Ok(plan)
    }

    fn leave_out(&mut self, name: &str, problem: &str) {
        eprintln!("{}", registry::left_out(name, problem));
        self.problem |= self.arguments.engines != "all";
    }

    fn wants(&self, label: &str) -> bool {
        self.arguments.rows.as_deref().is_none_or(|text| label.contains(text))
            && self.asked.rows.as_ref().is_none_or(|rows| rows.iter().any(|row| row == label))
    }

    fn measure(&mut self) -> Result<(), String> {
        let Wanted { engines, numbers, repeat: of, .. } = &self.asked.wanted;
        eprintln!("memory of each engine: {} bytes (write buffer and cache together)", numbers["memory"]);
        for kind in registry::KINDS.iter().filter(|kind| engines.iter().any(|name| name == kind.name)) {
            eprintln!("  {}", memory::describe(kind));
        }
        let of = *of;
        let plan = self.plan()?;
        let kept = match &self.directory {
            Some(directory) => kept_cells(&plan, directory, &self.host)?,
            None => vec![None; plan.cells.len()],
        };
        self.rows_left = plan.cells.iter().flat_map(|cell| &cell.tasks).map(|task| task.steps.len() as u32).sum();
        for (cell, kept) in plan.cells.into_iter().zip(kept) {
            if self.execution.interrupt.is_requested() {
                break;
            }
            let elapsed = self.begin.elapsed().as_secs();
            let repetition = cell.repetition;
            if kept.is_none() {
                eprintln!("[{elapsed:>4} s] {repetition}/{of} {}: {}", cell.experiment, cell.engine);
            }
            let rows: usize = cell.tasks.iter().map(|task| task.steps.len()).sum();
            let name = format!("{}: {}", cell.engine, cell.experiment);
            if let Err(problem) = self.measure_cell(cell, kept) {
                eprintln!("{name}: {problem}");
                self.problem = true;
            }
            self.rows_left -= rows as u32;
        }
        Ok(())
    }

    /// Measures a cell. What was measured before something went wrong, or before an interrupt,
    /// counts; what is kept for another time is whole.
    fn measure_cell(&mut self, mut cell: Cell, kept: Option<Finished>) -> Result<(), String> {
        if let Some(finished) = kept {
            return finished.records.into_iter().try_for_each(|record| self.take(record));
        }
        // The time that is left is no part of what is to be done: a study with a budget keeps
        // nothing.
        let seconds = QUICK_BUDGET.saturating_sub(self.begin.elapsed()).as_secs_f64();
        for task in &mut cell.tasks {
            task.budget = self.arguments.quick.then_some(Budget { seconds, steps: self.rows_left });
        }
        let Performed { finished, interrupted } = perform(&cell, &self.execution, &self.host)?;
        finished.records.iter().for_each(announce);
        finished.records.iter().cloned().try_for_each(|record| self.take(record))?;
        if interrupted {
            return Ok(());
        }
        if let Some(directory) = &self.directory {
            directory.keep(&finished)?;
        }
        finished.failure.map_or(Ok(()), Err)
    }

    /// A step of the plan as it is done; `None` if nobody requested its row and no other row reads
    /// what it loads.
    fn step(&self, mut step: Step) -> Option<Step> {
        let benchmark = workload::find(&step.benchmark)?;
        let is_wanted = step.row.as_ref().is_some_and(|row| self.wants(&rows::label(row, step.threads)));
        // Rows of a list are measured again: what comes before them in their group must be as it
        // was.
        if !is_wanted && !benchmark.fresh && step.row.is_some() && self.asked.rows.is_none() {
            return None;
        }
        if !is_wanted {
            (step.row, step.settle) = (None, false);
        }
        let (load, other) = self.arguments.limits();
        step.most_seconds = if benchmark.fresh { load } else { other };
        Some(step)
    }

    fn take(&mut self, record: Record) -> Result<(), String> {
        self.record_file.json(&record)?;
        self.records.push(record);
        Ok(())
    }

    fn report(self, out: &mut dyn Write) -> i32 {
        let groups = summary::groups(&self.records);
        let (lines, means) = (summary::summarize(&groups), summary::means(&groups));
        let csv = self.arguments.csv.as_deref();
        if csv == Some(Path::new("-")) {
            say(out, tables::comma_separated(&lines).trim_end());
        } else {
            say(out, &tables::text(&groups, &lines, &means));
        }
        let mut problem = self.problem;
        let run = Run { title: TITLE.into(), host: self.host.clone(), records: self.records };
        for result in [
            Some(write_json(self.arguments.json.as_deref(), &lines, &means)),
            csv.filter(|path| *path != Path::new("-")).map(|path| save(path, &tables::comma_separated(&lines))),
            self.arguments.html.as_deref().map(|path| {
                crate::report::write_html(&run, path).map_err(|e| format!("cannot write {}: {e}", path.display()))
            }),
        ] {
            if let Some(Err(trouble)) = result {
                complain("study scoreboard", &trouble, EXIT_FAILED);
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
        exit_code(self.execution.interrupt.is_requested(), problem)
    }
}

/// The names of rows in a file, one a line.
fn row_names(path: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let names: Vec<String> = text.lines().map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect();
    match names.iter().find(|name| !rows::is_label(name)) {
        Some(name) => Err(format!("{}: there is no row {name}", path.display())),
        None => Ok(names),
    }
}

fn announce(record: &Record) {
    if let Some(reason) = &record.skipped {
        eprintln!("  {}: {} skipped: {reason}", record.engine, record.row);
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn write_json(path: Option<&Path>, lines: &[summary::Line], means: &[summary::Means]) -> Result<(), String> {
    let mut file = LineFile::create(path)?;
    lines.iter().try_for_each(|line| file.json(line))?;
    means.iter().try_for_each(|mean| file.json(mean))
}
