//! The cells of a plan: of every experiment each combination of its axes, on every engine, as often
//! as it is repeated.

use super::expression::{Names, evaluate, filled, holds};
use super::file::{AxisTable, AxisValue, EngineTable, ExperimentTable, Numbers, PlanFile, ProcessTable};
use super::problem::Problem;
use super::step::Steps;
use super::values::{Values, find_flag, set_flags, value};
use crate::flags::table::Flag;
use crate::sweep::grid::{Cell, Plan};
use crate::sweep::task::Task;
use esker_engines::device;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// More than anybody means.
const MOST_CELLS: u64 = 100_000;

/// What is asked of a plan.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Engines, by name.
    pub engines: Vec<String>,
    /// Repetitions.
    pub repeat: u32,
    /// Experiments, by name; those of the plan's own choice if there are none.
    pub experiments: Vec<String>,
    /// Names that are replaced.
    pub numbers: Names,
}

impl Wanted {
    /// The names of a plan, with those that are replaced.
    pub fn names(&self, file: &PlanFile) -> Names {
        let mut names = Names::from([("repeat".to_string(), self.repeat.to_string())]);
        replace(&mut names, &file.numbers);
        names.extend(self.numbers.clone());
        names
    }
}

fn replace(names: &mut Names, by: &Numbers) {
    names.extend(by.iter().map(|(name, text)| (name.clone(), text.0.clone())));
}

/// A mistake whose place is all of the file.
fn somewhere(text: String) -> Problem {
    Problem::at(0..0, text)
}

/// The cells of `file`, in the order in which they are done. `title` is that of a file without one.
pub fn expand(file: &PlanFile, wanted: &Wanted, title: &str) -> Result<Plan, Problem> {
    let names = wanted.names(file);
    let study = file.study.as_ref();
    let title = match study.and_then(|study| study.title_scaled.as_deref()) {
        Some(scaled) if evaluate("scale", &names) != Ok(1.0) => scaled,
        _ => file.title.as_deref().unwrap_or(title),
    };
    let title = if study.is_some() { filled(title, &names).map_err(somewhere)? } else { title.to_owned() };
    let alone = alone(file);
    let mut expansion = Expansion { file, wanted, names, cells: Vec::new() };
    let mut chosen = Vec::new();
    for experiment in alone.iter().chain(&file.experiments) {
        if expansion.is_chosen(experiment).map_err(somewhere)? {
            let repetitions = experiment.repeat.as_deref().unwrap_or("repeat");
            let repetitions = evaluate(repetitions, &expansion.names).map_err(somewhere)? as u32;
            chosen.push((Expanded { experiment, axes: axes(file, experiment, &expansion.names)? }, repetitions));
        }
    }
    if study.is_some_and(|study| study.repeats_experiments) {
        for (expanded, repetitions) in &chosen {
            (1..=*repetitions).try_for_each(|repetition| expansion.add(expanded, repetition))?;
        }
    } else {
        for repetition in 1..=chosen.iter().map(|(_, repetitions)| *repetitions).max().unwrap_or(0) {
            for (expanded, _) in chosen.iter().filter(|(_, repetitions)| *repetitions >= repetition) {
                expansion.add(expanded, repetition)?;
            }
        }
    }
    Ok(Plan { study: study.map_or("sweep", |study| &study.name).into(), title, cells: expansion.cells })
}

/// The one experiment of a file that has its axes and processes by itself.
fn alone(file: &PlanFile) -> Option<ExperimentTable> {
    file.experiments.is_empty().then(|| ExperimentTable {
        name: "sweep".into(),
        processes: file.processes.clone(),
        ..ExperimentTable::default()
    })
}

/// One axis with its values, and where these stand in the file.
struct Axis<'a> {
    name: &'a str,
    said: bool,
    /// The flag that it is of, in a sweep.
    flag: Option<&'static Flag>,
    values: Vec<(Cow<'a, AxisValue>, Range<usize>)>,
}

struct Expanded<'a> {
    experiment: &'a ExperimentTable,
    axes: Vec<Axis<'a>>,
}

fn axes<'a>(file: &'a PlanFile, experiment: &'a ExperimentTable, names: &Names) -> Result<Vec<Axis<'a>>, Problem> {
    let mut axes = Vec::new();
    if file.experiments.is_empty() {
        let mut in_order: Vec<_> = file.axes.iter().collect();
        in_order.sort_by_key(|(name, _)| name.span().start);
        for (name, values) in in_order {
            let flag = find_flag(name)?;
            if let Some((other, _)) = file.flags.iter().find(|(other, _)| other.get_ref() == name.get_ref()) {
                return Err(Problem::at(other.span(), format!("`{}` is in [axes] too; take it out here", flag.name)));
            }
            if values.get_ref().is_empty() {
                return Err(Problem::at(values.span(), format!("`{}` has no values", flag.name)));
            }
            let values = values.get_ref().iter().map(|value| (Cow::Borrowed(&value.get_ref().0), value.span()));
            let axis = Axis { name: &flag.name, said: true, flag: Some(flag), values: values.collect() };
            distinct(&axis, names)?;
            axes.push(axis);
        }
    }
    for table in &experiment.axes {
        let is_same = |shared: &&AxisTable| shared.name == table.name;
        let shared = file.shared_axes.iter().find(is_same).filter(|_| table.values.is_empty());
        let values = shared.map_or(&table.values, |shared| &shared.values);
        let listed = values.iter().map(|value| (Cow::Borrowed(&value.get_ref().0), value.span()));
        let named = table.values_of.as_ref().and_then(|name| names.get(name)).map_or("", String::as_str);
        let named = named.split(',').map(str::trim).filter(|text| !text.is_empty());
        let named = named.map(|text| (Cow::Owned(AxisValue::from(text.to_owned())), 0..0));
        axes.push(Axis { name: &table.name, said: !table.unsaid, flag: None, values: listed.chain(named).collect() });
    }
    Ok(axes)
}

/// No value of a flag is there twice.
fn distinct(axis: &Axis<'_>, names: &Names) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    for (written, at) in &axis.values {
        let Some(flag) = axis.flag else { return Ok(()) };
        let value = value(flag, &written.shown, names).map_err(|text| Problem::at(at.clone(), text))?;
        if !known.insert(value) {
            return Err(Problem::at(at.clone(), format!("`{}` has the value {} twice", flag.name, written.shown)));
        }
    }
    Ok(())
}

struct Expansion<'a> {
    file: &'a PlanFile,
    wanted: &'a Wanted,
    names: Names,
    cells: Vec<Cell>,
}

/// One combination of the values of an experiment's axes.
struct Point<'a> {
    chosen: Vec<(&'a Axis<'a>, &'a AxisValue)>,
    names: Names,
    /// Its place in the file, if it is the first combination or differs from the first in one
    /// value. Only these are checked for mistakes of whole sets of flags.
    differs_at: Option<Option<Range<usize>>>,
}

impl Expansion<'_> {
    fn is_chosen(&self, experiment: &ExperimentTable) -> Result<bool, String> {
        match (&self.wanted.experiments[..], &experiment.default) {
            ([], Some(default)) => holds(default, &self.names),
            ([], None) => Ok(true),
            (names, _) => Ok(names.contains(&experiment.name)),
        }
    }

    /// Adds the cells of an experiment's repetition.
    fn add(&mut self, expanded: &Expanded<'_>, repetition: u32) -> Result<(), Problem> {
        let combinations = expanded.axes.iter().map(|axis| axis.values.len() as u64);
        let combinations = combinations.fold(self.wanted.engines.len() as u64, u64::saturating_mul);
        let repetitions = u64::from(self.wanted.repeat.max(1));
        if combinations.saturating_mul(repetitions).saturating_add(self.cells.len() as u64) > MOST_CELLS {
            return Err(somewhere(format!("more than {MOST_CELLS} cells; take some values out of [axes]")));
        }
        let experiment = expanded.experiment;
        let fixed = &experiment.fixed_engines;
        let mut engines = if fixed.is_empty() { self.wanted.engines.clone() } else { fixed.clone() };
        if self.file.study.as_ref().is_some_and(|study| study.takes_turns) && !engines.is_empty() {
            let turn = (repetition as usize - 1) % engines.len();
            engines.rotate_left(turn);
        }
        for point in self.points(expanded, repetition) {
            if !experiment.when.as_ref().map_or(Ok(true), |when| holds(when, &point.names)).map_err(somewhere)? {
                continue;
            }
            for engine in engines.iter().filter(|engine| !experiment.without.contains(*engine)) {
                let has =
                    |(_, value): &(&Axis<'_>, &AxisValue)| value.engines.is_empty() || value.engines.contains(engine);
                if !point.chosen.iter().all(has) {
                    continue;
                }
                let tables: Vec<&EngineTable> =
                    self.file.of_engines.iter().filter(|table| table.names.contains(engine)).collect();
                let none = if tables.is_empty() { vec![None] } else { Vec::new() };
                for table in none.into_iter().chain(tables.into_iter().map(Some)) {
                    let made = self.cell(experiment, engine, table, &point, repetition)?;
                    self.cells.push(made);
                }
            }
        }
        Ok(())
    }

    /// All combinations, the last axis the fastest.
    fn points<'b>(&self, expanded: &'b Expanded<'b>, repetition: u32) -> Vec<Point<'b>> {
        let mut names = self.names.clone();
        names.insert("repetition".into(), repetition.to_string());
        replace(&mut names, &expanded.experiment.numbers);
        let first = Point { chosen: Vec::new(), names, differs_at: (repetition == 1).then_some(None) };
        expanded.axes.iter().fold(vec![first], |shorter, axis| {
            let longer = |point: Point<'b>| {
                axis.values.iter().enumerate().map(move |(index, (value, at))| {
                    let mut names = point.names.clone();
                    names.insert(axis.name.to_string(), value.shown.clone());
                    replace(&mut names, &value.numbers);
                    let mut chosen = point.chosen.clone();
                    chosen.push((axis, value));
                    let differs_at = match (&point.differs_at, index) {
                        (before, 0) => before.clone(),
                        (Some(None), _) => Some(Some(at.clone())),
                        _ => None,
                    };
                    Point { chosen, names, differs_at }
                })
            };
            shorter.into_iter().flat_map(longer).collect()
        })
    }

    fn cell(
        &self,
        experiment: &ExperimentTable,
        engine: &str,
        of_engine: Option<&EngineTable>,
        point: &Point<'_>,
        repetition: u32,
    ) -> Result<Cell, Problem> {
        let flags = self.flags(experiment, of_engine, point)?;
        let mut variables = Vec::new();
        for (name, text) in &self.file.variables {
            variables.push((name.clone(), filled(text, &point.names).map_err(somewhere)?));
        }
        let said = point.chosen.iter().filter(|(axis, _)| axis.said);
        variables.extend(said.map(|(axis, value)| (axis.name.to_owned(), value.shown.trim().to_owned())));
        let (mut tasks, mut places, mut rows) = (Vec::new(), Vec::new(), BTreeSet::new());
        for table in &experiment.processes {
            if table.when.as_ref().map_or(Ok(true), |when| holds(when, &point.names)).map_err(somewhere)? {
                tasks.push(self.task(table, engine, &flags, &point.names, tasks.is_empty(), &mut rows)?);
                places.push(table.benchmarks.span());
            }
        }
        let memory = experiment.memory.as_ref().map(|memory| evaluate(memory, &point.names));
        let memory = memory.transpose().map_err(somewhere)?.filter(|bytes| !bytes.is_nan()).map(|bytes| bytes as u64);
        let verifies = self.file.study.as_ref().is_none_or(|study| study.verifies);
        let kept: Vec<bool> = tasks.iter().skip(1).map(Task::continues).chain([false]).collect();
        for (task, keep) in tasks.iter_mut().zip(kept) {
            // A database stays for as long as the next process continues with it. Only at its end:
            // the look at everything warms caches. The bare device holds nothing to look at.
            (task.keep, task.verify) = (keep, verifies && !keep && engine != device::NAME);
            (task.repetition, task.memory) = (repetition, memory);
        }
        let cell = Cell {
            experiment: experiment.name.clone(),
            engine: engine.to_owned(),
            variant: of_engine.map_or(String::new(), |table| table.variant.clone()),
            variables: variables.into_iter().collect(),
            repetition,
            tasks,
        };
        if let Some(place) = &point.differs_at {
            for (task, at) in cell.tasks.iter().zip(places) {
                task.config().map_err(|text| Problem::at(place.clone().unwrap_or(at), text))?;
            }
        }
        Ok(cell)
    }

    /// The flags of a cell but for those of its processes alone.
    fn flags(
        &self,
        experiment: &ExperimentTable,
        of_engine: Option<&EngineTable>,
        point: &Point<'_>,
    ) -> Result<Values, Problem> {
        let mut flags = Values::new();
        set_flags(&mut flags, &self.file.flags, &point.names)?;
        set_flags(&mut flags, &experiment.flags, &point.names)?;
        if let Some(table) = of_engine {
            set_flags(&mut flags, &table.flags, &point.names)?;
        }
        for (axis, chosen) in &point.chosen {
            if let Some(flag) = axis.flag
                && let Some(value) = value(flag, &chosen.shown, &point.names).map_err(somewhere)?
            {
                flags.insert(&flag.name, value);
            }
            set_flags(&mut flags, &chosen.flags, &point.names)?;
        }
        Ok(flags)
    }

    fn task(
        &self,
        table: &ProcessTable,
        engine: &str,
        common: &Values,
        names: &Names,
        is_first: bool,
        rows: &mut BTreeSet<String>,
    ) -> Result<Task, Problem> {
        let mut flags = common.clone();
        let mut benchmarks = &table.benchmarks;
        for name in &table.like {
            let template = self.file.templates.get(name);
            let template = template.ok_or_else(|| somewhere(format!("there is no template `{name}`")))?;
            set_flags(&mut flags, &template.flags, names)?;
            benchmarks = if benchmarks.get_ref().is_empty() { &template.benchmarks } else { benchmarks };
        }
        set_flags(&mut flags, &table.flags, names)?;
        let limit = self.file.limits.benchmark_seconds.as_ref().map_or(0.0, |seconds| *seconds.get_ref());
        let distinct = self.file.study.is_none();
        let steps = Steps { engine, names, flags: &flags, most_seconds: limit, distinct };
        let (steps, continues) = steps.make(benchmarks.get_ref(), is_first, rows)?;
        if steps.is_empty() {
            return Err(Problem::at(table.benchmarks.span(), "`benchmarks` names no benchmark".into()));
        }
        let names: Vec<&str> = steps.iter().map(|step| step.benchmark.as_str()).collect();
        let mut flags: BTreeMap<String, String> =
            flags.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        flags.insert("benchmarks".into(), names.join(","));
        flags.insert("use_existing_db".into(), u8::from(continues).to_string());
        Ok(Task { engine: engine.into(), flags, steps, ..Task::default() })
    }
}
