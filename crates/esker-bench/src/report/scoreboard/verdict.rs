//! What two scoreboards say about each row of Esker, with the other engines as the yardstick:
//! machines have moods, and what slows everything down is no loss of Esker's.
//!
//! The figure of a row is Esker's time over the geometric mean of the yardsticks' times in the same
//! row of the same file. The loss is how much larger that figure became. Its noise is half the
//! spread, (slowest - fastest) / median, of each of the times it is made of, added as independent
//! errors are.

use crate::report::engine_style::OURS;
use crate::report::scoreboard::summary::Line;
use crate::stats::geometric_mean;
use std::fmt;

/// What is to be done about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The loss is not above the limit.
    Held,
    /// The loss is above the limit, but not by more than the noise; or the noise alone is above the
    /// limit. A repetition may tell.
    Unclear,
    /// The loss is above the limit by more than the noise.
    Lost,
    /// Nothing can be said, for this reason.
    Incomparable(&'static str),
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Verdict::Held => "held",
            Verdict::Unclear => "unclear",
            Verdict::Lost => "LOST",
            Verdict::Incomparable(reason) => reason,
        })
    }
}

/// One row of both files.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its name.
    pub row: String,
    /// Esker's time over the yardsticks' in the older file.
    pub base: f64,
    /// The same in the newer file.
    pub new: f64,
    /// How much larger it became, as a fraction; negative: a gain.
    pub loss: f64,
    /// How much of that may be noise, as a fraction.
    pub noise: f64,
    /// The engines that stood beside Esker in both files.
    pub yardsticks: Vec<String>,
    /// What follows.
    pub verdict: Verdict,
}

/// Compares every row that Esker has in `base`. Rows that `new` does not have are left out: only
/// some may have been requested of it.
pub fn compare(base: &[Line], new: &[Line], yardsticks: &[String], max_loss: f64) -> Vec<Compared> {
    let after = |before: &Line| new.iter().find(|line| line.row == before.row && line.engine == before.engine);
    let is_yardstick =
        |line: &&Line| line.engine != OURS && (yardsticks.is_empty() || yardsticks.contains(&line.engine));
    let row = |own: &Line| {
        let others = base.iter().filter(|line| line.row == own.row).filter(is_yardstick);
        let (before, after_them): (Vec<&Line>, Vec<&Line>) =
            others.filter_map(|line| Some((line, after(line)?))).unzip();
        Some(compare_row((own, &before), (after(own)?, &after_them), max_loss))
    };
    base.iter().filter(|line| line.engine == OURS).filter_map(row).collect()
}

/// Compares a row before and after: Esker's line, and those of its yardsticks.
fn compare_row(before: (&Line, &[&Line]), after: (&Line, &[&Line]), max_loss: f64) -> Compared {
    let figure = |(own, others): (&Line, &[&Line])| {
        let mean = geometric_mean(others.iter().map(|line| line.micros_per_op));
        let count = others.len().max(1) as f64;
        let noise: f64 = others.iter().map(|line| (half_spread(line) / count).powi(2)).sum();
        (own.micros_per_op / mean.unwrap_or(1.0), half_spread(own).powi(2) + noise)
    };
    let ((base, base_noise), (new, new_noise)) = (figure(before), figure(after));
    let loss = new / base.max(f64::MIN_POSITIVE) - 1.0;
    let noise = (base_noise + new_noise).sqrt();
    let verdict = if before.1.is_empty() {
        Verdict::Incomparable("no other engine in both files")
    } else if before.0.ops != after.0.ops {
        Verdict::Incomparable("another number of operations, or a row that ended early")
    } else {
        decide(loss, max_loss, loss > max_loss + noise, noise <= max_loss)
    };
    let yardsticks = before.1.iter().map(|line| line.engine.clone()).collect();
    Compared { row: before.0.row.clone(), base, new, loss, noise, yardsticks, verdict }
}

/// What follows from a loss. `sure`: the noise cannot have made it. `precise`: the noise cannot
/// have hidden one above the limit.
pub fn decide(loss: f64, max_loss: f64, sure: bool, precise: bool) -> Verdict {
    match loss > max_loss {
        true if sure => Verdict::Lost,
        false if precise => Verdict::Held,
        _ => Verdict::Unclear,
    }
}

/// Of one repetition nothing is known.
fn half_spread(line: &Line) -> f64 {
    (line.max - line.min) / line.micros_per_op.max(f64::MIN_POSITIVE) / 2.0
}

/// Puts what a second measurement says in the place of what the first one said, row by row.
pub fn replace(first: &mut [Compared], second: Vec<Compared>) {
    for again in second {
        if let Some(row) = first.iter_mut().find(|row| row.row == again.row) {
            *row = again;
        }
    }
}
