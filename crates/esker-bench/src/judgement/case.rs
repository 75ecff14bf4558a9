//! One claim and one engine, with what judging them needs: lookups, ratios with their intervals,
//! and the words for them.

use super::verdict::{Judgement, Verdict};
use crate::measurements::{Measurements, Query};
use crate::published::Hypothesis;
use crate::record::Record;
use crate::stats::{bootstrap_of_medians, bootstrap_ratio_interval, median};
use crate::text::number::three_digits as number;
use std::cell::RefCell;
use std::collections::BTreeSet;

pub const SEED: u32 = 301;

/// Two single repetitions of the same thing may differ by as much; a ratio nearer to 1 shows no
/// difference. MEM-9 has the same number among its thresholds, for its reader.
pub const SHOWN_BY_ONE: f64 = 1.2;
/// What a sentence says of the first ratio without an interval, and of those after it.
pub const ONE_REPETITION: &str = "one repetition, so no interval, and no difference of less than a fifth is shown";
const ANOTHER: &str = "one repetition";

/// A claim to be judged of an engine.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub hypothesis: &'a Hypothesis,
    pub measured: &'a Measurements<'a>,
    /// Whose rows are looked up.
    pub study: &'a str,
    pub engine: &'a str,
    /// What is to be said of the rows that were looked at: rules of fairness that they break.
    pub notes: &'a RefCell<BTreeSet<String>>,
}

/// So many broken rules are told in a sentence.
const NOTES_TOLD: usize = 3;

impl<'a> Case<'a> {
    /// The same claim, looked up for another engine.
    pub fn of(&self, engine: &'a str) -> Case<'a> {
        Case { engine, ..*self }
    }

    pub fn query<'q>(&'q self, experiment: &'q str, row: &'q str, variables: &'q [(&'q str, &'q str)]) -> Query<'q> {
        Query { study: self.study, experiment, engine: self.engine, row, variables }
    }

    /// Every repetition of a row.
    pub fn records(&self, experiment: &str, row: &str, variables: &[(&str, &str)]) -> Vec<&'a Record> {
        self.records_of_size(experiment, row, variables, None)
    }

    /// Every repetition of a row, of the size `num` or else of the largest there is.
    pub fn records_of_size(
        &self,
        experiment: &str,
        row: &str,
        variables: &[(&str, &str)],
        num: Option<u64>,
    ) -> Vec<&'a Record> {
        let rows = self.measured.rows_of_one_variant(&self.query(experiment, row, variables), num);
        for row in &rows {
            let of_row = |reason: &String| format!("{} {}: {reason}", self.engine, row.record.row);
            self.notes.borrow_mut().extend(row.notes.iter().map(of_row));
        }
        rows.into_iter().map(|row| row.record).collect()
    }

    /// The sizes that a row was measured at.
    pub fn sizes(&self, experiment: &str, row: &str, variables: &[(&str, &str)]) -> BTreeSet<u64> {
        self.measured.sizes(&self.query(experiment, row, variables))
    }

    /// Operations per second of every repetition.
    pub fn rates(&self, experiment: &str, row: &str, variables: &[(&str, &str)]) -> Vec<f64> {
        rates(&self.records(experiment, row, variables))
    }

    /// The printed microseconds per operation of every repetition.
    pub fn micros(&self, experiment: &str, row: &str, variables: &[(&str, &str)]) -> Vec<f64> {
        micros(&self.records(experiment, row, variables))
    }

    /// Why a row is not there.
    pub fn reason(&self, experiment: &str, row: &str) -> String {
        self.measured.reason(&self.query(experiment, row, &[]))
    }

    pub fn judged(&self, value: String, direction: Verdict, magnitude: Verdict, why: String) -> Judgement {
        let (hypothesis, engine) = (self.hypothesis.id.clone(), self.engine.to_owned());
        let why = sentence(&format!("{}{}", told_once(&why), self.noted()));
        Judgement { hypothesis, engine, value, direction, magnitude, why }
    }

    fn noted(&self) -> String {
        let notes = self.notes.borrow();
        let told: Vec<&str> = notes.iter().take(NOTES_TOLD).map(String::as_str).collect();
        match notes.len().saturating_sub(NOTES_TOLD) {
            _ if told.is_empty() => String::new(),
            0 => format!(" (note: {})", told.join("; ")),
            more => format!(" (note: {}; and {more} more)", told.join("; ")),
        }
    }

    pub fn not_measured(&self, why: impl AsRef<str>) -> Judgement {
        self.judged(String::new(), Verdict::NotMeasured, Verdict::NotMeasured, why.as_ref().to_owned())
    }

    pub fn not_testable(&self, value: String, why: impl AsRef<str>) -> Judgement {
        self.judged(value, Verdict::NotTestableHere, Verdict::NotTestableHere, why.as_ref().to_owned())
    }

    pub fn threshold(&self, name: &str) -> f64 {
        self.hypothesis.threshold(name)
    }

    pub fn published(&self, name: &str) -> f64 {
        self.hypothesis.published(name)
    }

    /// Whether a ratio is within the claim's factor of the published one.
    pub fn near(&self, value: f64, published: f64) -> bool {
        let factor = self.threshold("factor");
        value <= published * factor && value >= published / factor
    }
}

/// Operations per second.
pub fn rates(records: &[&Record]) -> Vec<f64> {
    records.iter().map(|record| record.ops_per_sec).collect()
}

/// The printed microseconds per operation.
pub fn micros(records: &[&Record]) -> Vec<f64> {
    records.iter().map(|record| record.micros_per_op).collect()
}

/// The largest size that all of these have; none if they share none.
pub fn common_size(places: &[BTreeSet<u64>]) -> Option<u64> {
    let (first, others) = places.split_first()?;
    first.iter().rev().find(|num| others.iter().all(|place| place.contains(num))).copied()
}

/// What one repetition cannot show is said once in a sentence.
fn told_once(text: &str) -> String {
    match text.split_once(ONE_REPETITION) {
        Some((before, after)) => format!("{before}{ONE_REPETITION}{}", after.replace(ONE_REPETITION, ANOTHER)),
        None => text.to_owned(),
    }
}

fn sentence(text: &str) -> String {
    let mut text = text.trim().to_owned();
    if let Some(first) = text.get(..1) {
        // Names of engines stay as they are.
        let word = text.split([' ', ',', ':']).next().unwrap_or_default();
        if !esker_engines::ENGINES.contains(&word)
            && !crate::workload::BENCHMARKS.iter().any(|b| word.starts_with(b.name))
        {
            let first = first.to_uppercase();
            text.replace_range(..1, &first);
        }
    }
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}

/// What is said where a side of a ratio is 0.
pub const NO_RATIO: &str = "a rate of zero has no ratio";

/// A ratio of medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub value: f64,
    /// 95 %; none with a single repetition on either side.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// None if a side is empty or zero.
    pub fn of(numerator: &[f64], denominator: &[f64]) -> Option<Ratio> {
        let value = median(numerator)? / median(denominator)?;
        let interval = bootstrap_ratio_interval(numerator, denominator, SEED);
        (value.is_finite() && value > 0.0).then_some(Ratio { value, interval })
    }

    /// (a / b) / (c / d).
    pub fn of_ratios(samples: [&[f64]; 4]) -> Option<Ratio> {
        let [a, b, c, d] = samples;
        let value = (median(a)? / median(b)?) / (median(c)? / median(d)?);
        let interval = bootstrap_of_medians(&samples, |m| (m[0] / m[1]) / (m[2] / m[3]), SEED);
        (value.is_finite() && value > 0.0).then_some(Ratio { value, interval })
    }

    /// Whether the interval holds 1; without one, whether the ratio is so near to 1 that one
    /// repetition cannot tell.
    pub fn shows_nothing(&self) -> bool {
        let (low, high) = self.interval.unwrap_or((self.value / SHOWN_BY_ONE, self.value * SHOWN_BY_ONE));
        low <= 1.0 && 1.0 <= high
    }

    /// Whether it is larger than `limit`, where the claim is that it is above 1.
    pub fn above(&self, limit: f64) -> Verdict {
        if self.shows_nothing() { Verdict::NoDifferenceShown } else { held(self.value > limit) }
    }

    /// Whether it is smaller than `limit`, where the claim is that it is below 1.
    pub fn below(&self, limit: f64) -> Verdict {
        if self.shows_nothing() { Verdict::NoDifferenceShown } else { held(self.value < limit) }
    }

    /// `3.12 [2.98, 3.31]`.
    pub fn short(&self) -> String {
        match self.interval {
            Some((low, high)) => format!("{} [{}, {}]", number(self.value), number(low), number(high)),
            None => number(self.value),
        }
    }

    /// The same for a sentence.
    pub fn text(&self) -> String {
        match self.interval {
            Some((low, high)) => {
                format!("{} (95 % interval {} to {})", number(self.value), number(low), number(high))
            }
            None => format!("{} ({ONE_REPETITION})", number(self.value)),
        }
    }
}

pub fn held(holds: bool) -> Verdict {
    if holds { Verdict::Held } else { Verdict::NotHeld }
}

/// All must hold; else what is worst of them, where nothing is worse than a clear no.
pub fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    use Verdict::*;
    let worst_first = [NotHeld, NoDifferenceShown, NotMeasured, NotTestableHere, RefutedByArithmetic, Held];
    let place = |verdict: &Verdict| worst_first.iter().position(|other| other == verdict);
    verdicts.into_iter().min_by_key(place).unwrap_or(NotMeasured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_holds_one_shows_nothing() {
        let same = Ratio::of(&[10.0, 11.0, 12.0], &[10.0, 11.0, 12.0]).unwrap();
        assert_eq!(same.above(0.5), Verdict::NoDifferenceShown);
        let more = Ratio::of(&[20.0, 21.0, 22.0], &[10.0, 10.1, 10.2]).unwrap();
        assert_eq!(
            (more.above(1.0), more.above(3.0), more.below(1.0)),
            (Verdict::Held, Verdict::NotHeld, Verdict::NotHeld)
        );
        let single = Ratio::of(&[20.0], &[10.0]).unwrap();
        assert_eq!((single.above(1.0), single.interval), (Verdict::Held, None));
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        assert_eq!(Ratio::of(&[1.0], &[0.0]), None);
    }

    #[test]
    fn one_repetition_shows_no_small_difference() {
        let single = |value: f64| Ratio::of(&[value], &[1.0]).unwrap();
        for near in [0.84, 0.97, 1.0, 1.03, 1.19] {
            let ratio = single(near);
            let verdicts = [ratio.above(1.0), ratio.above(1.1), ratio.below(1.0), ratio.below(0.9)];
            assert_eq!(verdicts, [Verdict::NoDifferenceShown; 4], "{near}");
            assert!(ratio.text().contains("no interval, and no difference of less than a fifth is shown"));
        }
        assert_eq!((single(1.21).above(1.0), single(0.82).above(1.0)), (Verdict::Held, Verdict::NotHeld));
        assert_eq!((single(0.82).below(1.0), single(1.21).below(1.0)), (Verdict::Held, Verdict::NotHeld));
        // Repetitions show a difference as small as theirs.
        let repeated = Ratio::of(&[1.03, 1.04, 1.05], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(repeated.above(1.0), Verdict::Held);
    }

    #[test]
    fn there_is_one_number_for_what_one_repetition_shows() {
        let reason = crate::published::DATA.hypotheses.iter().find(|hypothesis| hypothesis.id == "MEM-9").unwrap();
        assert_eq!(reason.threshold("gap without interval"), SHOWN_BY_ONE);
    }

    #[test]
    fn the_worst_verdict_counts() {
        assert_eq!(all([Verdict::Held, Verdict::NotHeld, Verdict::NoDifferenceShown]), Verdict::NotHeld);
        assert_eq!(all([Verdict::Held, Verdict::NoDifferenceShown]), Verdict::NoDifferenceShown);
        assert_eq!(all([Verdict::Held, Verdict::Held]), Verdict::Held);
        assert_eq!(all([]), Verdict::NotMeasured);
    }
}
