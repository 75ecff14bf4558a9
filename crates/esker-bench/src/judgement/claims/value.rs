//! What expressions of claims stand for, and the functions between them.

use crate::judgement::case::{NO_RATIO, Ratio, SEED, all, held};
use crate::judgement::verdict::Verdict;
use crate::stats::{bootstrap_interval, extent, geometric_mean, median};
use crate::sweep::plan::expression::Apply;

/// What an expression of a claim stands for, or why it stands for nothing.
pub type Found = Result<Value, String>;

/// What an expression of a claim stands for.
#[derive(Debug, Clone)]
pub enum Value {
    /// One number, or those of all repetitions, or of all cells.
    Numbers(Vec<f64>),
    Ratio(Ratio),
    Verdict(Verdict),
}

impl Value {
    pub fn of(holds: bool) -> Value {
        Value::Numbers(vec![f64::from(u8::from(holds))])
    }

    pub fn numbers(&self) -> Vec<f64> {
        match self {
            Value::Numbers(numbers) => numbers.clone(),
            Value::Ratio(ratio) => vec![ratio.value],
            Value::Verdict(verdict) => vec![f64::from(u8::from(*verdict == Verdict::Held))],
        }
    }

    /// What is asked of many numbers must be so of all.
    pub fn verdict(&self) -> Verdict {
        match self {
            Value::Verdict(verdict) => *verdict,
            other => held(other.numbers().iter().all(|number| *number != 0.0)),
        }
    }

    pub fn holds(&self) -> bool {
        self.verdict() == Verdict::Held
    }

    /// Verdicts are joined as [`all`] does it, numbers one by one, and one with all.
    pub fn combined(&self, sign: &str, apply: Apply, other: &Value) -> Value {
        if sign == "&&" {
            return Value::Verdict(all([self.verdict(), other.verdict()]));
        }
        let (a, b) = (self.numbers(), other.numbers());
        let count = if a.is_empty() || b.is_empty() { 0 } else { a.len().max(b.len()) };
        Value::Numbers((0..count).map(|at| apply(a[at % a.len()], b[at % b.len()])).collect())
    }
}

/// What a function makes of these.
pub fn call(function: &str, arguments: &[Value]) -> Found {
    let numbers: Vec<Vec<f64>> = arguments.iter().map(Value::numbers).collect();
    let numbers: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
    let ratio = |ratio: Option<Ratio>| Ok(Value::Ratio(ratio.ok_or(NO_RATIO)?));
    match (function, &numbers[..], arguments.first()) {
        ("ratio", [a, b], _) => ratio(Ratio::of(a, b)),
        ("ratio", [a, b, c, d], _) => ratio(Ratio::of_ratios([a, b, c, d])),
        ("spread", [list], _) => {
            let interval = bootstrap_interval(list, SEED);
            ratio(median(*list).map(|value| Ratio { value, interval }))
        }
        (_, [_, others @ ..], Some(Value::Ratio(ratio))) if RATIO.contains(&function) => {
            of_ratio(function, ratio, others)
        }
        _ => of_numbers(function, &numbers).map(Value::Numbers).ok_or_else(|| none(function, numbers.len())),
    }
}

fn none(function: &str, arguments: usize) -> String {
    format!("there is no function `{function}` of {arguments}")
}

/// The functions of ratios with their intervals.
const RATIO: [&str; 6] = ["low", "high", "shows_nothing", "above", "below", "shown"];

fn of_ratio(function: &str, ratio: &Ratio, others: &[&[f64]]) -> Found {
    let interval = ratio.interval.ok_or("there is no interval");
    Ok(match (function, others) {
        ("low", []) => Value::Numbers(vec![interval?.0]),
        ("high", []) => Value::Numbers(vec![interval?.1]),
        ("shows_nothing", []) => Value::of(ratio.shows_nothing()),
        ("above", [[limit]]) => Value::Verdict(ratio.above(*limit)),
        ("below", [[limit]]) => Value::Verdict(ratio.below(*limit)),
        ("shown", [[_]]) if ratio.shows_nothing() => Value::Verdict(Verdict::NoDifferenceShown),
        // What is so, where there is a difference at all.
        ("shown", [[holds]]) => Value::of(*holds != 0.0),
        _ => return Err(none(function, others.len() + 1)),
    })
}

fn of_numbers(function: &str, arguments: &[&[f64]]) -> Option<Vec<f64>> {
    let lines = |cells: &[f64], of: fn(&[f64]) -> f64| cells.chunks(LINE).map(of).collect();
    let one = |number: f64| Some(vec![number]);
    match (function, arguments) {
        ("least", [list]) => one(least(list)),
        ("greatest", [list]) => one(extent(*list)?.1),
        ("sum", [list]) => one(list.iter().sum()),
        ("mean", [list]) => one(mean(list)),
        ("geometric_mean", [list]) => one(geometric_mean(*list)?),
        ("median", [list]) => one(median(*list)?),
        ("first", [list]) => one(*list.first()?),
        ("last", [list]) => one(*list.last()?),
        ("exp", [list]) => Some(list.iter().map(|value| value.exp()).collect()),
        ("ln", [list]) => Some(list.iter().map(|value| value.ln()).collect()),
        ("abs", [list]) => Some(list.iter().map(|value| value.abs()).collect()),
        ("falls", [list]) => Some(list.windows(2).map(|pair| pair[0] - pair[1]).collect()),
        ("between", [list, [from], [to]]) => {
            Some(list.iter().map(|value| f64::from(u8::from((from..=to).contains(&value)))).collect())
        }
        ("line", [cells, [at]]) => Some(cells.chunks(LINE).nth(*at as usize)?.to_vec()),
        ("column", [cells, [at]]) => Some(cells.iter().skip(*at as usize).step_by(LINE).copied().collect()),
        ("means", [cells]) => Some(lines(cells, mean)),
        ("leasts", [cells]) => Some(lines(cells, least)),
        _ => None,
    }
}

/// Cells of a line of a grid.
const LINE: usize = crate::published::GRID_MIB.len();

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn least(values: &[f64]) -> f64 {
    extent(values).map_or(f64::NAN, |(least, _)| least)
}
