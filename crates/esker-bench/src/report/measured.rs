//! Records put together by what they measure: all repetitions of one row of one cell.

use super::blocks::{Bar, Whose};
use super::engine_style::{display_name, rank};
use crate::record::Record;
use crate::stats;
use crate::text::number;
use crate::workload;
use esker_engines::Durability;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a measurement is of: everything but the repetition.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The study.
    pub study: String,
    /// The study's question.
    pub experiment: String,
    /// The engine.
    pub engine: String,
    /// Its configuration, where there are several.
    pub variant: String,
    /// What varies over the grid.
    pub variables: BTreeMap<String, String>,
    /// The row within the cell.
    pub row: String,
}

impl Key {
    /// The engine as its authors write it, with its configuration.
    pub fn engine_name(&self) -> String {
        engine_name(&self.engine, &self.variant)
    }

    /// The variables in a line: `threads 10, scale 1/100`; empty if there are none.
    pub fn setting(&self) -> String {
        setting(&self.variables)
    }

    /// The value of a variable; empty if it has none.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}

/// Variables in a line: `threads 10, scale 1/100`; empty if there are none.
pub fn setting<'v>(variables: impl IntoIterator<Item = (&'v String, &'v String)>) -> String {
    variables.into_iter().map(|(name, value)| setting_of(name, value)).collect::<Vec<_>>().join(", ")
}

/// One variable with its value: `write buffer 2 MiB`; of `variant` the value alone.
fn setting_of(name: &str, value: &str) -> String {
    let value = readable_value(value);
    match (name, name.strip_suffix("_mib")) {
        ("variant", _) => value,
        (_, Some(of)) => format!("{} {value} MiB", readable(of)),
        (name, None) => format!("{} {value}", readable(name)),
    }
}

/// A value with its thousands apart, if it has so many.
pub fn readable_value(value: &str) -> String {
    match value.parse::<u64>() {
        Ok(figure) if figure >= 10_000 => number::whole(figure as f64),
        _ => value.to_string(),
    }
}

/// The name of an engine with its configuration: `SQLite (rowid)`.
pub fn engine_name(engine: &str, variant: &str) -> String {
    match variant {
        "" => display_name(engine).to_string(),
        _ => format!("{} ({variant})", display_name(engine)),
    }
}

/// `write_buffer_mib` as people write it.
pub fn readable(variable: &str) -> String {
    let text = variable.replace('_', " ");
    match text.strip_suffix(" mib") {
        Some(name) => format!("{name} (MiB)"),
        None => text,
    }
}

/// All repetitions of one measurement.
#[derive(Debug, Clone, Default)]
pub struct Measured<'a> {
    /// What it is of.
    pub key: Key,
    /// Those that ran.
    pub ran: Vec<&'a Record>,
    /// Why one did not, if one did not.
    pub skipped: Option<&'a str>,
    /// The load that ended early, if one did: the database of a repetition held fewer entries.
    pub short_load: Option<&'a str>,
    /// Whether a repetition broke a rule of fairness.
    pub broke_rule: bool,
}

impl<'a> Measured<'a> {
    /// Takes up one repetition.
    pub fn add(&mut self, record: &'a Record, short_load: Option<&'a str>) {
        match &record.skipped {
            Some(reason) => self.skipped = Some(reason),
            None => {
                self.ran.push(record);
                self.short_load = self.short_load.or(short_load);
            }
        }
    }
}

/// The mark behind figures that were measured on fewer entries than there should be.
pub const SHORT: &str = "\u{a7}";

impl Measured<'_> {
    /// The mark of its figures, if they have one.
    pub fn mark(&self) -> &'static str {
        if self.short_load.is_some() { SHORT } else { "" }
    }

    /// What stands behind its name: a double dagger if it broke a rule, and the mark of its
    /// figures.
    pub fn name_marks(&self) -> String {
        let broke_rule = if self.broke_rule { "\u{2021}" } else { "" };
        let marks = [broke_rule, self.mark()].into_iter().filter(|mark| !mark.is_empty());
        marks.map(|mark| format!(" {mark}")).collect()
    }

    /// The durability class of its writes.
    pub fn durability(&self) -> Option<Durability> {
        self.ran.iter().find_map(|record| record.durability)
    }

    /// The repetition whose throughput is nearest to the median: the one that stands for all where
    /// only one can be drawn.
    pub fn typical(&self) -> Option<&Record> {
        let middle = self.rate().unwrap_or(0.0);
        let distance = |record: &&&Record| (record.ops_per_sec - middle).abs();
        self.ran.iter().min_by(|one, two| distance(one).total_cmp(&distance(two))).copied()
    }

    /// The smallest and the largest figure of the repetitions.
    pub fn range(&self, field: impl Fn(&Record) -> f64) -> Option<(f64, f64)> {
        stats::extent(self.figures(field))
    }

    /// The figures of the repetitions; those that are not positive count as not taken.
    pub fn figures(&self, field: impl Fn(&Record) -> f64) -> Vec<f64> {
        let figures = self.ran.iter().map(|record| field(record));
        figures.filter(|figure| figure.is_finite() && *figure > 0.0).collect()
    }

    /// The median over the repetitions.
    pub fn median(&self, field: impl Fn(&Record) -> f64) -> Option<f64> {
        stats::median(self.figures(field))
    }

    /// Operations per second of wall time: the median.
    pub fn rate(&self) -> Option<f64> {
        self.median(|record| record.ops_per_sec)
    }

    /// A bar of its rate in a unit, with a note; without a rate the note is why there is none.
    pub fn bar(&self, name: String, unit: &str, note: String) -> Bar {
        let rate = self.rate();
        let absent = || (number::ABSENT.to_string(), self.skipped.unwrap_or("not measured").to_string());
        let (text, note) =
            rate.map_or_else(absent, |rate| (format!("{} {unit}", number::whole(rate)).trim_end().to_string(), note));
        Bar { name, of: Whose::engine(&self.key.engine), length: rate, range: self.rates(), text, note }
    }

    /// Microseconds of wall time per operation: the median.
    pub fn micros(&self) -> Option<f64> {
        self.median(micros_of)
    }

    /// The least and the greatest rate, where there are two repetitions or more.
    pub fn rates(&self) -> Option<(f64, f64)> {
        self.range(|record| record.ops_per_sec).filter(|_| self.ran.len() > 1)
    }

    /// (slowest - fastest) / median of the rates, where there are two repetitions or more.
    pub fn spread(&self) -> Option<f64> {
        let (low, high) = self.rates()?;
        Some((high - low) / self.rate()?)
    }

    /// The same of the times.
    pub fn micros_spread(&self) -> Option<f64> {
        let (fastest, slowest) = self.range(micros_of).filter(|_| self.ran.len() > 1)?;
        Some((slowest - fastest) / self.micros()?)
    }

    /// The spread in words: `~3 %`; an absent figure for one repetition.
    pub fn spread_text(&self) -> String {
        self.spread().map_or(number::ABSENT.to_string(), |spread| format!("~{:.0} %", spread * 100.0))
    }

    /// What its repetitions say, each thing once.
    pub fn messages(&self) -> String {
        let bare = |message: &str| message.trim().trim_start_matches('(').trim_end_matches(')').to_string();
        let mut messages = distinct(self.ran.iter().map(|record| bare(&record.message)));
        messages.retain(|message| !message.is_empty());
        messages.extend(self.skipped.map(|reason| format!("skipped: {reason}")));
        messages.join("; ")
    }
}

/// The figure that runs are compared by: microseconds of wall time per operation.
pub fn micros_of(record: &Record) -> f64 {
    if record.micros_per_op_wall > 0.0 { record.micros_per_op_wall } else { record.micros_per_op }
}

/// The name of the row of a record.
pub fn row_name(record: &Record) -> &str {
    if record.row.is_empty() { &record.benchmark } else { &record.row }
}

/// The load that ended early, of the database that a record was measured on, if one did. Older
/// records do not say it: there it follows from the records before, of which `before` knows.
pub fn short_load<'a>(before: &mut Option<&'a str>, record: &'a Record) -> Option<&'a str> {
    let is_fresh = workload::find(&record.benchmark).is_some_and(|benchmark| benchmark.fresh);
    if is_fresh && record.skipped.is_none() {
        let is_short = record.benchmark.starts_with("fill") && record.ended_early();
        *before = is_short.then(|| row_name(record));
    }
    record.short_load.as_deref().or(*before)
}

/// Values of variables in their order: numbers and fractions by size, words by letter, words last.
pub fn compare_values(one: &str, two: &str) -> Ordering {
    match (quantity(one), quantity(two)) {
        (Some(one), Some(two)) => one.total_cmp(&two),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(two),
    }
}

/// `12`, `1/100` or `8 MiB` as a number.
fn quantity(text: &str) -> Option<f64> {
    let (figure, unit) = text.split_once(' ').unwrap_or((text, ""));
    let factor = match unit {
        "" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    let value = match figure.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => figure.parse().ok()?,
    };
    Some(value * factor).filter(|value| value.is_finite())
}

/// By variables, then by engine as in every table.
pub fn order(one: &Key, two: &Key) -> Ordering {
    let names = one.variables.keys().chain(two.variables.keys());
    let by_variables = names.map(|name| compare_values(one.variable(name), two.variable(name)));
    by_variables
        .fold(Ordering::Equal, Ordering::then)
        .then_with(|| rank(&one.engine).cmp(&rank(&two.engine)))
        .then_with(|| (&one.engine, &one.variant).cmp(&(&two.engine, &two.variant)))
}

/// Values, each once, in the order of their first occurrence.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The first of the values that is it, or a new one behind them.
pub fn entry<T>(values: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = values.iter().position(is_it).unwrap_or(values.len());
    if place == values.len() {
        values.push(new());
    }
    &mut values[place]
}

/// The engines of measurements with their variants, in the order of every table.
pub fn engines<'a, 'b: 'a>(all: impl IntoIterator<Item = &'a Measured<'b>>) -> Vec<(&'a str, &'a str)> {
    let of = |measured: &'a Measured<'b>| (measured.key.engine.as_str(), measured.key.variant.as_str());
    let mut engines = distinct(all.into_iter().map(of));
    engines.sort_by_key(|(engine, _)| rank(engine));
    engines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_natural_order() {
        let mut values = ["all", "10", "8 MiB", "2", "1/10", "1/100", "64 KiB", "x y"];
        values.sort_by(|one, two| compare_values(one, two));
        assert_eq!(values, ["1/100", "1/10", "2", "10", "64 KiB", "8 MiB", "all", "x y"]);
        assert_eq!(readable("write_buffer_mib"), "write buffer (MiB)");
    }

    #[test]
    fn what_follows_a_load_that_ended_early_is_known() {
        let record = |benchmark: &str, message: &str| Record {
            benchmark: benchmark.into(),
            message: message.into(),
            ..Record::default()
        };
        let records = [
            record("fillseq", ""),
            record("fillrandom", "(ended early after 5.0 s)"),
            record("readrandom", "(ended early after 1.5 s)"),
            record("fillbatch", ""),
            record("readrandom", "(ended early after 1.5 s)"),
        ];
        let mut before = None;
        let loads: Vec<Option<&str>> = records.iter().map(|record| short_load(&mut before, record)).collect();
        assert_eq!(loads, [None, Some("fillrandom"), Some("fillrandom"), None, None]);
    }
}
