//! A sweep whose names have been looked up and whose values have been checked.

use super::file::{Flags, ProcessTable, Scalar, SweepFile};
use super::problem::Problem;
use crate::flags::check;
use crate::flags::config::engine_names;
use crate::flags::table::{self, Flag, Shape};
use crate::workload;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::Spanned;

/// Flags that the sweep itself sets, and what says it instead.
const RESERVED: [(&str, &str); 13] = [
    ("engine", "`engines` says which"),
    ("lib", "give --lib on the command line"),
    ("benchmarks", "each [[process]] has its own"),
    ("db", "give --db on the command line"),
    ("use_existing_db", "a [[process]] works on what the one before it left, unless it begins with a load"),
    ("list", "it does nothing here"),
    ("help", "it does nothing here"),
    ("repeat", "write `repeat` above all tables"),
    ("latency_every", "one operation in 16 is measured; `histogram = 1` measures all"),
    ("fresh_process", "each [[process]] is one"),
    ("json", "the run directory holds every record"),
    ("csv", "`esker report` makes it from the run directory"),
    ("html", "`esker report` makes it from the run directory"),
];

/// A sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The title of the report.
    pub title: Option<String>,
    /// Engines, by name.
    pub engines: Vec<String>,
    /// Repetitions.
    pub repeat: u32,
    /// What varies, the slowest first.
    pub axes: Vec<Axis>,
    /// The processes of every cell.
    pub processes: Vec<SweepProcess>,
    /// The longest time of a benchmark in seconds; 0: none.
    pub benchmark_seconds: f64,
}

/// A flag and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The flag.
    pub flag: &'static str,
    /// What is shown, what is set, and where it stands in the file.
    pub values: Vec<(String, String, Range<usize>)>,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepProcess {
    /// Benchmark and row.
    pub steps: Vec<(&'static str, String)>,
    /// Whether it works on the database that the process before it left.
    pub continues: bool,
    /// The flags that hold for every process.
    pub common: BTreeMap<&'static str, String>,
    /// Its own, which hold against the axes too.
    pub own: BTreeMap<&'static str, String>,
    /// Where it stands in the file.
    pub at: Range<usize>,
}

/// Checks a file.
pub fn check_file(file: &SweepFile) -> Result<Sweep, Problem> {
    let common = flags(&file.flags)?;
    let mut processes = Vec::new();
    let mut rows = BTreeSet::new();
    for table in &file.processes {
        processes.push(process(table, &common, processes.is_empty(), &mut rows)?);
    }
    if processes.is_empty() {
        return Err(Problem::at(0..0, "a sweep needs at least one [[process]]".into()));
    }
    if *file.repeat.get_ref() == 0 {
        return Err(Problem::at(file.repeat.span(), "`repeat` must be at least 1".into()));
    }
    Ok(Sweep {
        title: file.title.clone(),
        engines: engines(&file.engines)?,
        repeat: *file.repeat.get_ref(),
        axes: axes(file)?,
        processes,
        benchmark_seconds: seconds(file)?,
    })
}

fn seconds(file: &SweepFile) -> Result<f64, Problem> {
    match &file.limits.benchmark_seconds {
        None => Ok(0.0),
        Some(seconds) if seconds.get_ref().is_finite() && *seconds.get_ref() > 0.0 => Ok(*seconds.get_ref()),
        Some(seconds) => Err(Problem::at(seconds.span(), "`benchmark_seconds` must be above 0".into())),
    }
}

fn engines(names: &[Spanned<String>]) -> Result<Vec<String>, Problem> {
    let mut engines: Vec<String> = Vec::new();
    for name in names {
        // A comma in a name would make it two.
        let known = if name.get_ref().contains(',') {
            Err("one name each, please".into())
        } else {
            engine_names(name.get_ref())
        };
        for engine in known.map_err(|text| Problem::at(name.span(), text))? {
            if !engines.contains(&engine) {
                engines.push(engine);
            }
        }
    }
    if engines.is_empty() {
        return Err(Problem::at(0..0, "`engines` names no engine".into()));
    }
    Ok(engines)
}

fn axes(file: &SweepFile) -> Result<Vec<Axis>, Problem> {
    let mut axes = Vec::new();
    let mut in_order: Vec<_> = file.axes.iter().collect();
    in_order.sort_by_key(|(name, _)| name.span().start);
    for (name, values) in in_order {
        let flag = flag(name)?;
        if values.get_ref().is_empty() {
            return Err(Problem::at(values.span(), format!("`{}` has no values", flag.name)));
        }
        if let Some((other, _)) = file.flags.iter().find(|(other, _)| other.get_ref() == name.get_ref()) {
            let text = format!("`{}` is in [axes] too; take it out here", flag.name);
            return Err(Problem::at(other.span(), text));
        }
        let mut axis = Axis { flag: flag.name, values: Vec::new() };
        for written in values.get_ref() {
            let (shown, value) = value(flag, written)?;
            if axis.values.iter().any(|(_, other, _)| *other == value) {
                return Err(Problem::at(written.span(), format!("`{}` has the value {shown} twice", flag.name)));
            }
            axis.values.push((shown, value, written.span()));
        }
        axes.push(axis);
    }
    Ok(axes)
}

fn flags(written: &Flags) -> Result<BTreeMap<&'static str, String>, Problem> {
    let pair = |(name, scalar): (&Spanned<String>, &Spanned<Scalar>)| {
        let flag = flag(name)?;
        Ok((flag.name, value(flag, scalar)?.1))
    };
    written.iter().map(pair).collect()
}

fn flag(name: &Spanned<String>) -> Result<&'static Flag, Problem> {
    let wrong = |text: String| Problem::at(name.span(), text);
    if let Some((_, instead)) = RESERVED.iter().find(|(reserved, _)| reserved == name.get_ref()) {
        return Err(wrong(format!("`{}` is not for a sweep to set: {instead}", name.get_ref())));
    }
    table::find(name.get_ref()).ok_or_else(|| {
        wrong(match table::nearest(name.get_ref()) {
            Some(near) => format!("unknown flag `{}`; did you mean `{near}`?", name.get_ref()),
            None => format!("unknown flag `{}`; `esker bench --help` lists all", name.get_ref()),
        })
    })
}

/// What is shown of a value, and what is set.
fn value(flag: &Flag, written: &Spanned<Scalar>) -> Result<(String, String), Problem> {
    let shown = written.get_ref().0.trim();
    let plain = match flag.shape {
        Shape::Unsigned | Shape::Signed => size(shown).unwrap_or_else(|| shown.to_owned()),
        _ => shown.to_owned(),
    };
    let value = check(flag, &plain).map_err(|text| {
        Problem::at(
            written.span(),
            text.strip_prefix("--").map_or(text.clone(), |text| format!("`{}", text.replacen(':', "`:", 1))),
        )
    })?;
    Ok((shown.to_owned(), value))
}

/// The bytes of `2 MiB`.
fn size(text: &str) -> Option<String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let shift = match unit.trim() {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).map(|bytes| bytes.to_string())
}

fn process(
    table: &ProcessTable,
    common: &BTreeMap<&'static str, String>,
    first: bool,
    rows: &mut BTreeSet<String>,
) -> Result<SweepProcess, Problem> {
    let mut steps = Vec::new();
    let mut continues = false;
    for written in table.benchmarks.get_ref() {
        let wrong = |text: String| Problem::at(written.span(), text);
        let (name, row) = match written.get_ref().split_once(" as ") {
            Some((name, row)) => (name.trim(), row.trim()),
            None => (written.get_ref().trim(), written.get_ref().trim()),
        };
        let benchmark = workload::find(name).ok_or_else(|| {
            wrong(match workload::nearest(name) {
                Some(near) => format!("unknown benchmark `{name}`; did you mean `{near}`?"),
                None => format!("unknown benchmark `{name}`; `esker bench --list` shows all"),
            })
        })?;
        if steps.is_empty() {
            continues = !first && !benchmark.fresh;
        } else if benchmark.fresh && continues {
            return Err(wrong(format!(
                "`{name}` starts with an empty database, but this process works on the one before it left; give `{name}` a [[process]] of its own"
            )));
        }
        if row.is_empty() || !rows.insert(row.to_owned()) {
            return Err(wrong(format!("there is a row `{row}` already; name this one: \"{name} as ...\"")));
        }
        steps.push((benchmark.name, row.to_owned()));
    }
    if steps.is_empty() {
        return Err(Problem::at(table.benchmarks.span(), "`benchmarks` names no benchmark".into()));
    }
    Ok(SweepProcess {
        steps,
        continues,
        common: common.clone(),
        own: flags(&table.flags)?,
        at: table.benchmarks.span(),
    })
}
