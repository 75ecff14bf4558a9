//! Whether one run is slower than another, row by row: the ratio of the medians of their times with
//! a 95 % interval.

use crate::report::blocks::{Block, Field, Line, Look, Section, TableOf};
use crate::report::measured::{Key, Measured, micros_of};
use crate::report::scoreboard::verdict::{Verdict, decide};
use crate::stats::{bootstrap_ratio_interval, median};
use crate::text::number;

const BOOTSTRAP_SEED: u32 = 301;

/// One row of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What was measured.
    pub key: Key,
    /// Median microseconds of wall time per operation in the older run.
    pub base: f64,
    /// The same in the newer run.
    pub new: f64,
    /// The 95 % interval of `new / base`; with one repetition there is none.
    pub interval: Option<(f64, f64)>,
    /// Whether a side has more than one repetition.
    pub repeated: bool,
    /// What follows.
    pub verdict: Verdict,
}

impl Change {
    /// How much larger the time became, as a fraction; negative: a gain.
    pub fn loss(&self) -> f64 {
        self.new / self.base - 1.0
    }

    /// What the interval shows.
    fn shown(&self) -> &'static str {
        match self.interval {
            None => "one repetition: no interval",
            Some((low, high)) if low <= 1.0 && high >= 1.0 => "no difference shown",
            Some((low, _)) if low > 1.0 => "slower",
            Some(_) => "faster",
        }
    }

    /// The study, the experiment and the setting.
    fn place(&self) -> String {
        let parts = [self.key.study.clone(), self.key.experiment.clone(), self.key.setting()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn verdict_field(&self) -> Field {
        let look = match self.verdict {
            Verdict::Held => Look::Plain,
            Verdict::Unclear | Verdict::Incomparable(_) => Look::Quiet,
            Verdict::Lost => Look::Bad,
        };
        Field::looking(look, self.verdict.to_string())
    }
}

/// Both runs, compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Rows that are in both.
    pub changes: Vec<Change>,
    /// Rows that only the older run has.
    pub gone: usize,
    /// Rows that only the newer run has.
    pub added: usize,
}

impl Comparison {
    /// Compares every row that both runs have. `max_loss` is a fraction. It is an error if there is
    /// none.
    pub fn of(base: &[Measured<'_>], new: &[Measured<'_>], max_loss: f64) -> Result<Comparison, String> {
        let mut comparison = Comparison::default();
        for before in base.iter().filter(|measured| measured.micros().is_some()) {
            let after = new.iter().find(|measured| measured.key == before.key && measured.micros().is_some());
            match after.and_then(|after| change(before, after, max_loss)) {
                Some(change) => comparison.changes.push(change),
                None => comparison.gone += 1,
            }
        }
        let is_known = |measured: &&Measured| base.iter().any(|before| before.key == measured.key);
        comparison.added = new.iter().filter(|measured| !is_known(measured)).count();
        if comparison.changes.is_empty() {
            return Err("nothing to compare: the runs have no row in common".into());
        }
        Ok(comparison)
    }

    /// How many rows have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }

    /// The comparison in one line.
    pub fn summary(&self, max_loss: f64) -> String {
        let single = self.changes.iter().filter(|change| change.interval.is_none()).count();
        let mut text = format!(
            "{} rows compared: {} slower by more than {max_loss} %, {} unclear",
            self.changes.len(),
            self.count(Verdict::Lost),
            self.count(Verdict::Unclear)
        );
        let counted = [
            (single, "judged by the plain ratio, for want of a second repetition"),
            (self.gone, "only in the run compared with"),
            (self.added, "only in the new run"),
        ];
        for (count, what) in counted.iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(", {count} {what}"));
        }
        text
    }

    /// The comparison as a section of a report.
    pub fn section(&self, with: &str, max_loss: f64) -> Section {
        let mut changes: Vec<&Change> = self.changes.iter().collect();
        changes.sort_by(|one, two| two.loss().total_cmp(&one.loss()));
        let caption = format!(
            "{} wall time per operation, then ({with}) and now: the largest loss first. A row is LOST if it is slower by \
             more than {max_loss} % and its interval does not hold 1; with one repetition, by the plain ratio.",
            if self.changes.iter().any(|change| change.repeated) { "Median" } else { "The" }
        );
        let table = TableOf::new(caption, "row", &changes, |change| Line::of(&change.key.engine, &change.key.row))
            .words("engine", |change| change.key.engine_name())
            .words("setting", |change| change.place())
            .number("then \u{b5}s/op", |change| number::figure(change.base))
            .number("now \u{b5}s/op", |change| number::figure(change.new))
            .number("change", |change| format!("{:+.1} %", change.loss() * 100.0))
            .number("95 % interval of the ratio", |change| change.interval.map(number::interval))
            .words("shown", |change| change.shown())
            .words("verdict", |change| change.verdict_field());
        let summary = format!("{}.", self.summary(max_loss));
        let summary = if self.count(Verdict::Lost) > 0 { Block::Warning(summary) } else { Block::Text(summary) };
        Section::new("compared", "Then and now", vec![summary, Block::Table(table.done())])
    }
}

fn change(before: &Measured<'_>, after: &Measured<'_>, max_loss: f64) -> Option<Change> {
    let (then, now) = (before.figures(micros_of), after.figures(micros_of));
    let (base, new) = (median(&then)?, median(&now)?);
    let interval = bootstrap_ratio_interval(&now, &then, BOOTSTRAP_SEED);
    let num = |measured: &Measured| measured.ran.iter().map(|record| (record.num, record.threads)).max();
    let verdict = if num(before) != num(after) {
        Verdict::Incomparable("another number of entries or threads")
    } else {
        let sure = interval.is_none_or(|(low, _)| low > 1.0);
        let precise = interval.is_none_or(|(_, high)| high <= 1.0 + max_loss);
        decide(new / base - 1.0, max_loss, sure, precise)
    };
    let repeated = then.len().max(now.len()) > 1;
    Some(Change { key: before.key.clone(), base, new, interval, repeated, verdict })
}

#[cfg(test)]
mod tests {
    use super::super::load::cell_of_records;
    use super::*;
    use crate::record::Record;
    use crate::report::study::measured::measure;
    use crate::sweep::grid::StudyRun;

    fn run(times: &[f64]) -> [StudyRun; 1] {
        let record = |(repetition, micros): (u32, &f64)| Record {
            row: "fillseq".into(),
            repetition,
            num: 100,
            micros_per_op_wall: *micros,
            ..Record::default()
        };
        let cells = (1..).zip(times).map(|one| cell_of_records("", "esker", vec![record(one)]));
        [StudyRun { finished: cells.collect(), ..StudyRun::default() }]
    }

    fn only(base: &[f64], new: &[f64]) -> Change {
        let (base, new) = (run(base), run(new));
        let comparison = Comparison::of(&measure(&base, &[]), &measure(&new, &[]), 0.10).unwrap();
        comparison.changes[0].clone()
    }

    #[test]
    fn a_loss_beyond_doubt_is_lost() {
        let change = only(&[1.0, 1.01, 1.02, 1.0, 1.01], &[1.3, 1.31, 1.32, 1.3, 1.31]);
        assert_eq!((change.verdict, change.shown()), (Verdict::Lost, "slower"));
    }

    #[test]
    fn noise_is_no_loss() {
        let change = only(&[1.0, 1.5, 1.2, 0.9, 1.1], &[1.3, 0.9, 1.6, 1.25, 1.0]);
        assert_eq!((change.verdict, change.shown()), (Verdict::Unclear, "no difference shown"));
        let change = only(&[1.0, 1.01, 1.02, 0.99, 1.0], &[1.0, 1.02, 1.01, 0.98, 1.0]);
        assert_eq!((change.verdict, change.shown()), (Verdict::Held, "no difference shown"));
    }

    #[test]
    fn one_repetition_is_judged_by_the_ratio_and_says_so() {
        assert_eq!((only(&[1.0], &[1.2]).verdict, only(&[1.0], &[1.2]).interval), (Verdict::Lost, None));
        assert_eq!(only(&[1.0], &[1.05]).verdict, Verdict::Held);
        assert_eq!(only(&[1.0], &[0.5]).shown(), "one repetition: no interval");
    }
}
