//! What two scoreboards say about each row of Esker, with the other engines as the yardstick:
//! machines have moods, and what slows everything down is no loss of Esker's.
//!
//! The figure of a row is Esker's time over the geometric mean of the yardsticks' times in the same
//! row of the same file. The loss is how much larger that figure became. Its noise is half the
//! spread, (slowest - fastest) / median, of each of the times it is made of, added as independent
//! errors are.

use crate::report::engine_style::OURS;
use crate::stats::geometric_mean;
use crate::study::scoreboard::summary::Line;
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
    let own = base.iter().filter(|line| line.engine == OURS);
    own.filter_map(|before| {
        let after = find(new, &before.row, OURS)?;
        let both = |name: &&str| find(base, &before.row, name).is_some() && find(new, &before.row, name).is_some();
        let others = base.iter().filter(|line| line.row == before.row && line.engine != OURS);
        let names = others.map(|line| line.engine.as_str());
        let names: Vec<&str> = names
            .filter(|name| yardsticks.is_empty() || yardsticks.iter().any(|wanted| wanted == name))
            .filter(both)
            .collect();
        Some(compare_row(base, new, before, after, &names, max_loss))
    })
    .collect()
}

fn find<'a>(lines: &'a [Line], row: &str, engine: &str) -> Option<&'a Line> {
    lines.iter().find(|line| line.row == row && line.engine == engine)
}

fn compare_row(base: &[Line], new: &[Line], before: &Line, after: &Line, names: &[&str], max_loss: f64) -> Compared {
    let figure = |lines: &[Line], own: &Line| {
        let others: Vec<&Line> = names.iter().filter_map(|name| find(lines, &own.row, name)).collect();
        let mean = geometric_mean(others.iter().map(|line| line.micros_per_op));
        let count = others.len().max(1) as f64;
        let noise: f64 = others.iter().map(|line| (half_spread(line) / count).powi(2)).sum();
        (own.micros_per_op / mean.unwrap_or(1.0), half_spread(own).powi(2) + noise)
    };
    let ((base_figure, base_noise), (new_figure, new_noise)) = (figure(base, before), figure(new, after));
    let loss = new_figure / base_figure.max(f64::MIN_POSITIVE) - 1.0;
    let noise = (base_noise + new_noise).sqrt();
    let verdict = if names.is_empty() {
        Verdict::Incomparable("no other engine in both files")
    } else if before.ops != after.ops {
        Verdict::Incomparable("another number of operations, or a row that ended early")
    } else {
        decide(loss, max_loss, loss > max_loss + noise, noise <= max_loss)
    };
    let yardsticks = names.iter().map(|name| name.to_string()).collect();
    Compared { row: before.row.clone(), base: base_figure, new: new_figure, loss, noise, yardsticks, verdict }
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
