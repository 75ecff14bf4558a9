//! The names in expressions of claims:
//!
//! ```text
//! name   = figure | [ of "." ] row [ "." column ] | "size" | role | engine | verdict
//!        | threshold | "published_" value          with underscores for blanks
//! of     = role | "rival" | "device"               the judged engine, if nothing is said
//! role   = "LevelDB" | "TreeDB" | "SQLite"         by itself, whether the engine has that role
//! column = one of [`reported`], operations per second if nothing is said
//!        | "sizes"                                 all that it was measured at
//!        | "grid" | "published"                    microseconds of the 25 cells
//! ```
//!
//! `size` is what the rows of the groups of `sizes` share. Of published values, that of the role
//! counts where there is one for each.

use super::data::{CLAIMS, Claim};
use super::value::{Found, Value, call};
use crate::judgement::case::{Case, common_size, micros};
use crate::judgement::role::Role;
use crate::judgement::verdict::Verdict;
use crate::published::{DATA, GRID_MIB};
use crate::record::Record;
use crate::stats::median;
use crate::sweep::plan::expression::{self, Apply, evaluate_in};
use esker_engines::ENGINES;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// A claim and an engine, with what was looked up already.
pub struct Scope<'a> {
    pub case: Case<'a>,
    claim: &'a Claim,
    /// The repetition that is told of; none: the median of all.
    pub repetition: Cell<Option<usize>>,
    /// None: of each row the largest there is. The error is why there is none.
    size: Result<Option<u64>, String>,
    known: RefCell<BTreeMap<String, Found>>,
}

/// Where a row is.
pub struct Place<'a> {
    study: Option<&'a str>,
    pub experiment: &'a str,
    pub row: &'a str,
    variables: Vec<(&'a str, &'a str)>,
}

impl<'a> Scope<'a> {
    pub fn new(case: Case<'a>, claim: &'a Claim) -> Scope<'a> {
        let mut scope = Scope { case, claim, repetition: Cell::default(), size: Ok(None), known: RefCell::default() };
        for group in &claim.sizes {
            let of_row = |row: &str| {
                let place = scope.place(row)?;
                Some(case.sizes(place.experiment, place.row, &place.variables))
            };
            let shared = |rows: &String| rows.split(" and ").filter_map(of_row).reduce(|one, other| &one & &other);
            let sizes = group.iter().filter_map(shared);
            let measured: Vec<BTreeSet<u64>> = sizes.filter(|sizes| !sizes.is_empty()).collect();
            scope.size = match common_size(&measured) {
                None if !measured.is_empty() => Err(claim.differ.clone()),
                common => Ok(common),
            };
            if scope.size.is_ok() {
                break;
            }
        }
        scope
    }

    pub fn place(&self, row: &str) -> Option<Place<'a>> {
        let text = self.claim.rows.get(row)?;
        let of_another = text.split_once(": ").map(|(study, text)| (Some(study), text));
        let (study, text) = of_another.unwrap_or((None, text));
        let mut parts = text.split(" / ");
        let (experiment, row) = (parts.next()?, parts.next()?);
        let variables =
            parts.next().into_iter().flat_map(|all| all.split(", ")).filter_map(|pair| pair.split_once('='));
        Some(Place { study, experiment, row, variables: variables.collect() })
    }

    /// What an expression stands for. The error is why that is not known.
    pub fn value(&self, text: &str) -> Found {
        evaluate_in(text, self)
    }

    /// A row of an engine; none if the claim has no such row.
    fn row(&self, name: &str) -> Option<Found> {
        let of_another = name.split_once('.').and_then(|(of, name)| Some((self.engine(of)?, name)));
        let (engine, name) = of_another.unwrap_or((self.case.engine, name));
        let (row, column) = name.split_once('.').unwrap_or((name, "rate"));
        let place = self.place(row)?;
        // What is to be said of a row is said by the claims of its own study.
        let unsaid = RefCell::default();
        let case = match place.study {
            Some(study) => Case { engine, study, notes: &unsaid, ..self.case },
            None => self.case.of(engine),
        };
        Some(self.numbers(&case, &place, column).map(Value::Numbers))
    }

    fn numbers(&self, case: &Case<'_>, place: &Place<'_>, column: &str) -> Result<Vec<f64>, String> {
        let (Place { experiment, row, variables, .. }, missing) = (place, || case.reason(place.experiment, place.row));
        let num = self.size.clone().map_err(|why| if why.is_empty() { missing() } else { why })?;
        let numbers: Vec<f64> = match column {
            "grid" => return grid(case, place),
            "published" => DATA.grid(row).map_or_else(Vec::new, |grid| grid.concat()),
            "sizes" => case.sizes(experiment, row, variables).into_iter().map(|num| num as f64).collect(),
            _ => {
                let records = case.records_of_size(experiment, row, variables, num);
                records.into_iter().filter_map(|record| reported(record, column)).collect()
            }
        };
        if numbers.is_empty() { Err(missing()) } else { Ok(numbers) }
    }

    /// The engine that is meant by a name.
    pub fn engine(&self, of: &str) -> Option<&'a str> {
        match of {
            "device" => Some("device"),
            "rival" => Some(Role::of(self.case.engine).rival().engine(&self.case)),
            _ => Role::named(of).map(|role| role.engine(&self.case)),
        }
    }

    fn published(&self, name: &str) -> Found {
        let of_role = format!("{} {name}", Role::of(self.case.engine).name());
        let found = [name, &of_role].into_iter().find_map(|name| self.case.hypothesis.published.get(name));
        Ok(Value::Numbers(vec![*found.ok_or("nothing was published")?]))
    }

    /// Whether it stands for anything, where it is measured.
    #[cfg(test)]
    pub fn is_name(&self, name: &str) -> bool {
        let published = name.starts_with("published_");
        let full = Record { found: Some(1), threads: 1, ops: 1, ..Record::default() };
        let column = name.rsplit_once('.').is_none_or(|(_, column)| {
            ["grid", "published", "sizes", "comparisons"].contains(&column)
                || self.claim.rows.contains_key(column)
                || reported(&full, column).is_some()
        });
        let missing = "there is no name";
        published || column && !self.look_up(name).is_err_and(|why| why.starts_with(missing))
    }

    fn look_up(&self, name: &str) -> Found {
        if let Some(text) = self.claim.figures.get(name).or_else(|| CLAIMS.figures.get(name)) {
            return self.value(text);
        }
        if let Some(role) = Role::named(name) {
            return Ok(Value::of(Role::of(self.case.engine) == role));
        }
        if ENGINES.contains(&name) {
            return Ok(Value::of(self.case.engine == name));
        }
        let name_with_blanks = name.replace('_', " ");
        if let Some(published) = name_with_blanks.strip_prefix("published ") {
            return self.published(published);
        }
        let threshold = || Some(Value::Numbers(vec![*self.case.hypothesis.thresholds.get(&name_with_blanks)?]));
        Ok(match name {
            "held" => Value::Verdict(Verdict::Held),
            "not_held" => Value::Verdict(Verdict::NotHeld),
            "not_measured" => Value::Verdict(Verdict::NotMeasured),
            "not_testable" => Value::Verdict(Verdict::NotTestableHere),
            "refuted" => Value::Verdict(Verdict::RefutedByArithmetic),
            "size" => Value::Numbers(self.size.clone()?.into_iter().map(|num| num as f64).collect()),
            _ => match self.row(name) {
                Some(row) => row?,
                None => threshold().ok_or_else(|| format!("there is no name `{name}`"))?,
            },
        })
    }
}

impl expression::Scope for Scope<'_> {
    type Value = Value;

    fn number(&self, number: f64) -> Value {
        Value::Numbers(vec![number])
    }

    fn combined(&self, one: Value, sign: &str, apply: Apply, other: Value) -> Value {
        one.combined(sign, apply, &other)
    }

    fn name(&self, name: &str) -> Found {
        let known = self.known.borrow().get(name).cloned();
        known.unwrap_or_else(|| {
            let found = self.look_up(name);
            self.known.borrow_mut().insert(name.to_owned(), found.clone());
            found
        })
    }

    fn call(&self, function: &str, arguments: &[&str]) -> Found {
        match (function, arguments) {
            ("known", [text]) => Ok(Value::of(self.value(text).is_ok())),
            // All that is known.
            ("list", [first, ..]) => {
                let known = arguments.iter().filter_map(|text| self.value(text).ok());
                let known: Vec<f64> = known.flat_map(|value| value.numbers()).collect();
                if known.is_empty() { self.value(first) } else { Ok(Value::Numbers(known)) }
            }
            ("or", [text, otherwise]) => self.value(text).or_else(|_| self.value(otherwise)),
            ("if", [condition, then, otherwise]) => {
                self.value(if self.value(condition)?.holds() { then } else { otherwise })
            }
            _ => {
                let mut values = Vec::new();
                // Both sides of a ratio are looked up: what is to be said of one that is there is
                // said even where the other is missing.
                for pair in arguments.chunks(2) {
                    let found: Vec<Found> = pair.iter().map(|text| self.value(text)).collect();
                    values.extend(found.into_iter().collect::<Result<Vec<_>, _>>()?);
                }
                call(function, &values)
            }
        }
    }
}

/// What a record says; none if the engine does not report it.
fn reported(record: &Record, name: &str) -> Option<f64> {
    let entries = record.ops as f64 / f64::from(record.threads.max(1));
    match name {
        "rate" => Some(record.ops_per_sec),
        "micros" => Some(record.micros_per_op),
        "seconds" => Some(record.wall_s),
        "size" => Some(record.num as f64),
        "operations" => Some(record.ops as f64),
        "threads" => Some(f64::from(record.threads)),
        "found" => record.found.map(|found| found as f64),
        // Of what one thread looks up.
        "share" => record.found.filter(|_| entries > 0.0).map(|found| found as f64 / entries),
        "disk" => Some(record.disk_bytes as f64 / 1_048_576.0),
        "flushed" => Some(record.counters.flush_bytes as f64 / 1_048_576.0),
        "compacted" => Some(record.counters.compaction_bytes as f64 / 1_048_576.0),
        "comparisons" => record.counters.comparisons.map(|count| count as f64 / record.ops as f64),
        "merges" => Some(f64::from(u8::from(!record.message.contains("no merge")))),
        _ => None,
    }
}

/// The medians. The error is why there are none.
fn grid(case: &Case<'_>, place: &Place<'_>) -> Result<Vec<f64>, String> {
    let (Place { experiment, row, .. }, mut grid, mut sizes) = (place, Vec::new(), BTreeSet::new());
    for (buffer, file) in GRID_MIB.iter().flat_map(|buffer| GRID_MIB.map(|file| (buffer, file))) {
        let records = case.records(experiment, row, &[("write_buffer_mib", buffer), ("max_file_mib", file)]);
        sizes.extend(records.iter().map(|record| record.num));
        grid.extend(median(micros(&records)).filter(|value| *value > 0.0));
    }
    match (grid.len(), sizes.len()) {
        (25, 1) => Ok(grid),
        (25, _) => Err(format!("the cells of {row} are of {} different sizes", sizes.len())),
        (0, _) => Err(case.reason(experiment, row)),
        (cells, _) => Err(format!("{cells} of the 25 cells of {row} are measured, and the claim is about all of them")),
    }
}
