//! The steps of a process, from what its plan says of them.

use super::expression::{Names, evaluate, filled, plain};
use super::file::{Scalar, Short, StepTable};
use super::problem::Problem;
use super::values::Values;
use crate::sweep::task::Step;
use crate::workload::{self, Benchmark};
use std::collections::BTreeSet;
use std::str::FromStr;
use toml::Spanned;

/// What steps are made from.
pub struct Steps<'a> {
    /// The engine.
    pub engine: &'a str,
    /// Names in expressions.
    pub names: &'a Names,
    /// The flags of the process.
    pub flags: &'a Values,
    /// The longest time of a benchmark in seconds that says nothing else; 0: none.
    pub most_seconds: f64,
    /// Whether rows of one cell must have names of their own.
    pub distinct: bool,
}

impl Steps<'_> {
    /// The steps of a process, and whether it works on the database that the one before it left.
    /// `rows` are those of the cell so far.
    pub fn make(
        &self,
        written: &[Spanned<Short<StepTable>>],
        is_first: bool,
        rows: &mut BTreeSet<String>,
    ) -> Result<(Vec<Step>, bool), Problem> {
        let mut steps = Vec::new();
        let mut continues = false;
        for entry in written {
            let table = &entry.get_ref().0;
            if table.without.iter().any(|engine| engine == self.engine) {
                continue;
            }
            let made = self.step(table).and_then(|(benchmark, step)| {
                if steps.is_empty() {
                    continues = !is_first && !benchmark.fresh;
                } else if benchmark.fresh && continues {
                    let name = benchmark.name;
                    return Err(format!(
                        "`{name}` starts with an empty database, but this process works on the one before it left; give `{name}` a [[process]] of its own"
                    ));
                }
                match &step.row {
                    Some(row) if row.is_empty() || (!rows.insert(row.clone()) && self.distinct) => {
                        let name = benchmark.name;
                        Err(format!("there is a row `{row}` already; name this one: \"{name} as ...\""))
                    }
                    _ => Ok(step),
                }
            });
            steps.push(made.map_err(|text| Problem::at(entry.span(), text))?);
        }
        Ok((steps, continues))
    }

    fn step(&self, table: &StepTable) -> Result<(&'static Benchmark, Step), String> {
        let text = filled(&table.run, self.names)?;
        let (name, row) = match text.split_once(" as ") {
            Some((name, row)) => (name.trim(), row.trim()),
            None => (text.trim(), text.trim()),
        };
        let benchmark = workload::find(name).ok_or_else(|| match workload::nearest(name) {
            Some(near) => format!("unknown benchmark `{name}`; did you mean `{near}`?"),
            None => format!("unknown benchmark `{name}`; `esker bench --list` shows all"),
        })?;
        let is_on = |number: f64| number != 0.0;
        let shown = self.number(&table.shown)?.is_none_or(is_on);
        let every = matches!(self.flags.get("histogram").map(String::as_str), Some("1" | "true"));
        let limit = self.flag("max_seconds").filter(|seconds: &f64| *seconds > 0.0).unwrap_or(self.most_seconds);
        let rate = |given: Option<f64>, name: &str| given.or(self.flag(name)).filter(|rate: &f64| *rate > 0.0);
        Ok((
            benchmark,
            Step {
                threads: self.whole(&table.threads)?.or(self.flag("threads")).unwrap_or(1),
                writes: self.whole(&table.writes)?,
                reads: self.whole(&table.reads)?,
                every_latency: self.number(&table.every_latency)?.map_or(every, is_on),
                most_seconds: self.number(&table.most_seconds)?.unwrap_or(limit),
                settle: self.number(&table.settle)?.is_some_and(is_on),
                writes_per_second: rate(self.number(&table.writes_per_second)?, "writes_per_second"),
                rate: self.number(&table.rate)?,
                ..Step::new(benchmark.name, shown.then_some(row))
            },
        ))
    }

    fn number(&self, written: &Option<Scalar>) -> Result<Option<f64>, String> {
        let number = written.as_ref().map(|text| evaluate(&text.0, self.names)).transpose()?;
        Ok(number.filter(|number| !number.is_nan()))
    }

    fn whole<T: FromStr>(&self, written: &Option<Scalar>) -> Result<Option<T>, String> {
        let Some(number) = self.number(written)? else { return Ok(None) };
        let text = plain(number);
        text.parse().map(Some).map_err(|_| format!("{text} is not a whole number that is not negative"))
    }

    fn flag<T: FromStr>(&self, name: &str) -> Option<T> {
        self.flags.get(name).and_then(|value| value.parse().ok())
    }
}
