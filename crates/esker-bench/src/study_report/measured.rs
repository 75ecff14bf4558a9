//! Records put together by what they measure: all repetitions of one row of one cell.

use crate::record::Record;
use crate::report::engine_style::{display_name, rank};
use crate::report::group::row_name;
use crate::report::number;
use crate::stats;
use crate::study::grid::StudyRun;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a measurement is of: everything but the repetition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
pub fn setting(variables: &BTreeMap<String, String>) -> String {
    variables.iter().map(|(name, value)| setting_of(name, value)).collect::<Vec<_>>().join(", ")
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
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// What it is of.
    pub key: Key,
    /// Those that ran.
    pub ran: Vec<&'a Record>,
    /// Why one did not, if one did not.
    pub skipped: Option<&'a str>,
}

impl Measured<'_> {
    /// The figures of the repetitions; those that are not positive count as not taken.
    pub fn figures(&self, field: impl Fn(&Record) -> f64) -> Vec<f64> {
        let figures = self.ran.iter().map(|record| field(record));
        figures.filter(|figure| figure.is_finite() && *figure > 0.0).collect()
    }

    /// The median over the repetitions.
    pub fn median(&self, field: impl Fn(&Record) -> f64) -> Option<f64> {
        stats::median(&self.figures(field))
    }

    /// Operations per second of wall time: the median.
    pub fn rate(&self) -> Option<f64> {
        self.median(|record| record.ops_per_sec)
    }

    /// Microseconds of wall time per operation: the median.
    pub fn micros(&self) -> Option<f64> {
        self.median(micros_of)
    }

    /// The least and the greatest rate, where there are two repetitions or more.
    pub fn rates(&self) -> Option<(f64, f64)> {
        stats::extent(&self.figures(|record| record.ops_per_sec)).filter(|_| self.ran.len() > 1)
    }

    /// (slowest - fastest) / median of the rates, where there are two repetitions or more.
    pub fn spread(&self) -> Option<f64> {
        let (low, high) = self.rates()?;
        Some((high - low) / self.rate()?)
    }

    /// The spread in words: `~3 %`; an absent figure for one repetition.
    pub fn spread_text(&self) -> String {
        self.spread().map_or(number::ABSENT.to_string(), |spread| format!("~{:.0} %", spread * 100.0))
    }

    /// What its repetitions say, each thing once.
    pub fn messages(&self) -> String {
        let mut messages: Vec<String> = Vec::new();
        for record in &self.ran {
            let message = record.message.trim().trim_start_matches('(').trim_end_matches(')').to_string();
            if !message.is_empty() && !messages.contains(&message) {
                messages.push(message);
            }
        }
        let skipped = self.skipped.map(|reason| format!("skipped: {reason}"));
        messages.into_iter().chain(skipped).collect::<Vec<_>>().join("; ")
    }
}

/// The figure that runs are compared by: microseconds of wall time per operation.
pub fn micros_of(record: &Record) -> f64 {
    if record.micros_per_op_wall > 0.0 { record.micros_per_op_wall } else { record.micros_per_op }
}

/// Everything that was measured, in the order in which it first was.
pub fn measure(runs: &[StudyRun]) -> Vec<Measured<'_>> {
    let mut positions: BTreeMap<Key, usize> = BTreeMap::new();
    let mut all: Vec<Measured> = Vec::new();
    for run in runs {
        for finished in &run.finished {
            for record in &finished.records {
                let cell = &finished.cell;
                let key = Key {
                    study: run.study.clone(),
                    experiment: cell.experiment.clone(),
                    engine: cell.engine.clone(),
                    variant: cell.variant.clone(),
                    variables: cell.variables.clone(),
                    row: row_name(record).to_string(),
                };
                let position = *positions.entry(key).or_insert_with_key(|key| {
                    all.push(Measured { key: key.clone(), ran: Vec::new(), skipped: None });
                    all.len() - 1
                });
                match &record.skipped {
                    Some(reason) => all[position].skipped = Some(reason),
                    None => all[position].ran.push(record),
                }
            }
        }
    }
    all
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

/// The distinct values of what `of` gives, in the order of their first occurrence.
pub fn distinct<'a, 'b: 'a>(
    all: impl IntoIterator<Item = &'a Measured<'b>>,
    of: impl Fn(&Key) -> String,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for measured in all {
        let value = of(&measured.key);
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
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
    fn repetitions_come_together() {
        let record = |rate: f64| Record { row: "fillseq".into(), ops_per_sec: rate, ..Record::default() };
        let mut finished = crate::study_report::load::cell_of_records("", "esker", vec![record(10.0)]);
        let mut again = finished.clone();
        again.cell.repetition = 2;
        again.records = vec![record(30.0)];
        finished.records.push(Record { row: "x".into(), skipped: Some("no x".into()), ..Record::default() });
        let runs = [StudyRun { study: "s".into(), finished: vec![finished, again], ..StudyRun::default() }];
        let all = measure(&runs);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].rate(), all[0].rates()), (Some(20.0), Some((10.0, 30.0))));
        assert_eq!(all[0].spread_text(), "~100 %");
        assert_eq!((all[1].rate(), all[1].messages().as_str()), (None, "skipped: no x"));
    }
}
