//! A test for merge operators: whether the result depends on when operands are combined. It must
//! not, because when the engine combines them is not specified.
//!
//! The law is one: applying operands one by one, a delete being no value for the next, gives the
//! same as applying them all at once, and the same as applying what is left after combining
//! neighbours in any way. What an operator refuses counts as its result.

use super::{MergeOperator, contained};
use crate::base::callback;
use crate::base::random::Random;
use crate::error::escape_key;
use std::fmt;

/// What an operator made of operands.
///
/// ```
/// use esker::merge::Outcome;
/// # use esker::{MergeError, MergeOperator, merge::check_laws};
/// # /// Forgets what was before.
/// # struct Last;
/// # impl MergeOperator for Last {
/// #     fn name(&self) -> &str { "last" }
/// #     fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
/// #         Ok(operands.last().map(|operand| operand.to_vec()))
/// #     }
/// #     fn partial_merge(&self, _: &[u8], older: &[u8], _: &[u8]) -> Option<Vec<u8>> { Some(older.to_vec()) }
/// # }
/// // Its partial merge keeps the older operand.
/// let violation = check_laws(&Last, &[b"a", b"b"], &[]).unwrap_err();
/// assert!(matches!(violation.one_by_one, Some(Outcome::Value(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This value.
    Value(Vec<u8>),
    /// The key is deleted, or never was there.
    NoValue,
    /// An error, with its text. The laws hold for any error.
    Refused(String),
}

impl Outcome {
    fn same_as(&self, other: &Outcome) -> bool {
        matches!((self, other), (Outcome::Refused(_), Outcome::Refused(_))) || self == other
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Value(value) => write!(f, "the value \"{}\"", escape_key(value)),
            Outcome::NoValue => f.write_str("no value"),
            Outcome::Refused(why) => write!(f, "an error ({why})"),
        }
    }
}

/// Operands with which an operator does not do what the engine relies on. Its text says all of it.
///
/// ```
/// # use esker::{MergeError, MergeOperator, merge::check_laws};
/// # /// Forgets what was before.
/// # struct Last;
/// # impl MergeOperator for Last {
/// #     fn name(&self) -> &str { "last" }
/// #     fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
/// #         Ok(operands.last().map(|operand| operand.to_vec()))
/// #     }
/// #     fn partial_merge(&self, _: &[u8], older: &[u8], _: &[u8]) -> Option<Vec<u8>> { Some(older.to_vec()) }
/// # }
/// // Its partial merge keeps the older operand.
/// let violation = check_laws(&Last, &[b"a", b"b"], &[]).unwrap_err();
/// println!("{violation}");
/// assert_ne!(violation.one_by_one, violation.otherwise);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LawViolation {
    /// What went wrong, in words.
    pub what: String,
    /// The key.
    pub key: Vec<u8>,
    /// The value below the operands, if any.
    pub existing: Option<Vec<u8>>,
    /// The operands, oldest first.
    pub operands: Vec<Vec<u8>>,
    /// What applying the operands one by one gives.
    pub one_by_one: Option<Outcome>,
    /// The operands in the other way they were applied, oldest first: some combined with their
    /// neighbours.
    pub combined: Vec<Vec<u8>>,
    /// What that gives.
    pub otherwise: Option<Outcome>,
}

impl fmt::Display for LawViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |operands: &[Vec<u8>]| {
            let quoted: Vec<String> = operands.iter().map(|operand| format!("\"{}\"", escape_key(operand))).collect();
            format!("[{}]", quoted.join(", "))
        };
        write!(f, "{}: key \"{}\", ", self.what, escape_key(&self.key))?;
        match &self.existing {
            Some(value) => write!(f, "existing value \"{}\", ", escape_key(value))?,
            None => f.write_str("no existing value, ")?,
        }
        write!(f, "operands {}", list(&self.operands))?;
        if let Some(outcome) = &self.one_by_one {
            write!(f, "; one by one they give {outcome}")?;
        }
        if let Some(outcome) = &self.otherwise {
            write!(f, "; as {} they give {outcome}", list(&self.combined))?;
        }
        Ok(())
    }
}

impl std::error::Error for LawViolation {}

/// Tests whether `operator` may be used: whether its results do not depend on when operands are
/// combined, it is deterministic, and does not panic.
///
/// `operands` are samples of what is merged, `existing` of what is put beforehand; no value, and
/// values that operands lead to, are tried in any case. Choose what is at the edges: empty,
/// smallest, largest, equal, of the wrong form. Operands that `check_operand` refuses are left out,
/// as the engine does. Sequences of up to three samples are tried in full if they are few, longer
/// ones at random, always the same ones. Takes a few milliseconds for cheap operators and a dozen
/// samples.
///
/// ```
/// use esker::merge::check_laws;
/// use esker::{MergeError, MergeOperator};
///
/// /// Keeps the average, or so its author thought.
/// struct Average;
///
/// impl MergeOperator for Average {
///     fn name(&self) -> &str { "average" }
///     fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
///         let samples: Vec<u8> = existing.into_iter().chain(operands.iter().copied()).flatten().copied().collect();
///         let sum: u32 = samples.iter().map(|&sample| u32::from(sample)).sum();
///         Ok(Some(vec![(sum / samples.len().max(1) as u32) as u8]))
///     }
///     fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> { None }
/// }
///
/// // The average of averages is something else.
/// let violation = check_laws(&Average, &[&[10], &[20], &[60]], &[]).unwrap_err();
/// println!("{violation}");
///
/// // Sums and numbers of samples can be combined; here the engine's counter stands for such an operator.
/// let samples = [0, 1, u64::MAX].map(u64::to_le_bytes);
/// let samples: Vec<&[u8]> = samples.iter().map(|sample| &sample[..]).collect();
/// check_laws(&esker::merge::UInt64Add, &samples, &samples).unwrap();
/// ```
///
/// # Errors
/// The first violation found, with the operands that show it.
pub fn check_laws(
    operator: &dyn MergeOperator,
    operands: &[&[u8]],
    existing: &[&[u8]],
) -> Result<(), Box<LawViolation>> {
    let mut check =
        Check { operator, samples: Vec::new(), existing: Vec::new(), random: Random::new(0x9e37_79b9_7f4a_7c15) };
    check.look_at_the_name()?;
    for &operand in operands {
        if check.accepts(operand)? {
            check.samples.push(operand);
        }
    }
    check.existing = [None].into_iter().chain(existing.iter().map(|value| Some(value.to_vec()))).collect();
    check.short_sequences()?;
    check.random_sequences()
}

/// Sequences of two or three samples are tried in full while there are at most this many.
const MOST_SHORT_SEQUENCES: usize = 1000;
const RANDOM_SEQUENCES: usize = 400;
const LONGEST_SEQUENCE: usize = 9;
/// Values that operands led to and that are kept as existing ones.
const MOST_VALUES: usize = 32;
/// Longest of them: operators that append would otherwise grow without end.
const LONGEST_VALUE: usize = 1 << 12;
/// The operator is free to treat keys differently.
const KEYS: [&[u8]; 2] = [b"", b"key"];

struct Check<'a> {
    operator: &'a dyn MergeOperator,
    samples: Vec<&'a [u8]>,
    existing: Vec<Option<Vec<u8>>>,
    random: Random,
}

/// An existing value, and the operands that are applied to it.
#[derive(Clone, Copy)]
struct Case<'a> {
    key: &'a [u8],
    existing: Option<&'a [u8]>,
    operands: &'a [&'a [u8]],
}

impl Case<'_> {
    fn violation(&self, what: &str) -> Box<LawViolation> {
        Box::new(LawViolation {
            what: what.into(),
            key: self.key.to_vec(),
            existing: self.existing.map(<[u8]>::to_vec),
            operands: self.operands.iter().map(|operand| operand.to_vec()).collect(),
            one_by_one: None,
            combined: Vec::new(),
            otherwise: None,
        })
    }
}

impl Check<'_> {
    fn look_at_the_name(&self) -> Result<(), Box<LawViolation>> {
        let case = Case { key: b"", existing: None, operands: &[] };
        match (contained::name(self.operator), contained::name(self.operator)) {
            (Ok(first), Ok(second)) if first == second => Ok(()),
            (Ok(first), Ok(second)) => Err(case.violation(&format!("the name changes, from {first:?} to {second:?}"))),
            _ => Err(case.violation("`name` panicked")),
        }
    }

    fn accepts(&self, operand: &[u8]) -> Result<bool, Box<LawViolation>> {
        let case = Case { key: b"", existing: None, operands: &[operand] };
        match callback::contained(|| self.operator.check_operand(operand)) {
            Some(result) => Ok(result.is_ok()),
            None => Err(case.violation("`check_operand` panicked")),
        }
    }

    fn short_sequences(&mut self) -> Result<(), Box<LawViolation>> {
        let samples = self.samples.clone();
        for length in 1..=3u32 {
            let Some(sequences) = samples.len().checked_pow(length).filter(|&n| n <= MOST_SHORT_SEQUENCES) else {
                break;
            };
            for code in 0..sequences {
                let at = |place: u32| samples[code / samples.len().pow(place) % samples.len()];
                let operands: Vec<&[u8]> = (0..length).map(at).collect();
                for which in 0..self.existing.len() {
                    self.sequence(which, &operands)?;
                }
            }
        }
        Ok(())
    }

    fn random_sequences(&mut self) -> Result<(), Box<LawViolation>> {
        let samples = self.samples.clone();
        if samples.is_empty() {
            return Ok(());
        }
        for _ in 0..RANDOM_SEQUENCES {
            let length = 1 + self.random.index(LONGEST_SEQUENCE);
            let operands: Vec<&[u8]> = (0..length).map(|_| samples[self.random.index(samples.len())]).collect();
            let which = self.random.index(self.existing.len());
            let reached = self.sequence(which, &operands)?;
            if let Outcome::Value(value) = reached
                && value.len() <= LONGEST_VALUE
                && self.existing.len() < MOST_VALUES
                && !self.existing.contains(&Some(value.clone()))
            {
                self.existing.push(Some(value));
            }
        }
        Ok(())
    }

    /// Tries one sequence in every way that is tried, and returns what it comes to.
    fn sequence(&mut self, which: usize, operands: &[&[u8]]) -> Result<Outcome, Box<LawViolation>> {
        let existing = self.existing[which].clone();
        let case = Case { key: KEYS[self.random.index(KEYS.len())], existing: existing.as_deref(), operands };
        let expected = self.one_by_one(case)?;
        self.compare(case, &expected, operands, "all operands at once give something else")?;
        self.compare(case, &expected, operands, "the operator is not deterministic")?;
        // Bit n of a cut: operands n and n + 1 are not combined.
        let places = operands.len() - 1;
        let cuts: Vec<usize> = match 1usize << places {
            few if few <= 8 => (0..few).collect(),
            many => (0..6).map(|_| self.random.index(many)).collect(),
        };
        for cut in cuts {
            for newest_first in [false, true] {
                let combined = self.combine(case, cut, newest_first)?;
                let slices: Vec<&[u8]> = combined.iter().map(Vec::as_slice).collect();
                self.compare(case, &expected, &slices, "partial merges change the result")?;
            }
        }
        Ok(expected)
    }

    fn full_merge(&self, case: Case<'_>, what: &str) -> Result<Outcome, Box<LawViolation>> {
        let Case { key, existing, operands } = case;
        match callback::contained(|| self.operator.full_merge(key, existing, operands)) {
            None => Err(case.violation(&format!("`full_merge` panicked, {what}"))),
            Some(Ok(Some(value))) => Ok(Outcome::Value(value)),
            Some(Ok(None)) => Ok(Outcome::NoValue),
            Some(Err(why)) => Ok(Outcome::Refused(why.0)),
        }
    }

    fn one_by_one(&self, case: Case<'_>) -> Result<Outcome, Box<LawViolation>> {
        let mut value = case.existing.map(<[u8]>::to_vec);
        for operand in case.operands {
            let step = Case { key: case.key, existing: value.as_deref(), operands: &[operand] };
            value = match self.full_merge(step, "with one operand")? {
                Outcome::Value(value) => Some(value),
                Outcome::NoValue => None,
                // What cannot be combined stays as it is, and is in the way of everything after it.
                refused => return Ok(refused),
            };
        }
        Ok(value.map_or(Outcome::NoValue, Outcome::Value))
    }

    fn compare(
        &self,
        case: Case<'_>,
        expected: &Outcome,
        operands: &[&[u8]],
        what: &str,
    ) -> Result<(), Box<LawViolation>> {
        let found = self.full_merge(Case { operands, ..case }, "with several operands")?;
        if found.same_as(expected) {
            return Ok(());
        }
        Err(Box::new(LawViolation {
            one_by_one: Some(expected.clone()),
            combined: operands.iter().map(|operand| operand.to_vec()).collect(),
            otherwise: Some(found),
            ..*case.violation(what)
        }))
    }

    /// The operands with neighbours combined, except at the cuts and where the operator declines;
    /// starting with the oldest or the newest.
    fn combine(&self, case: Case<'_>, cut: usize, newest_first: bool) -> Result<Vec<Vec<u8>>, Box<LawViolation>> {
        let mut combined: Vec<Vec<u8>> = Vec::new();
        let mut places: Vec<usize> = (0..case.operands.len()).collect();
        if newest_first {
            places.reverse();
        }
        for (index, &place) in places.iter().enumerate() {
            let operand = case.operands[place];
            let boundary = if newest_first { place } else { place.wrapping_sub(1) };
            let merged = match combined.last() {
                Some(last) if index > 0 && cut >> boundary & 1 == 0 => {
                    let (older, newer) = if newest_first { (operand, &last[..]) } else { (&last[..], operand) };
                    let pair = Case { operands: &[older, newer], ..case };
                    let merge = || callback::contained(|| self.operator.partial_merge(case.key, older, newer));
                    let merged = merge().ok_or_else(|| pair.violation("`partial_merge` panicked"))?;
                    if merge() != Some(merged.clone()) {
                        return Err(pair.violation("`partial_merge` is not deterministic"));
                    }
                    merged
                }
                _ => None,
            };
            match (merged, combined.last_mut()) {
                (Some(merged), Some(last)) => *last = merged,
                _ => combined.push(operand.to_vec()),
            }
        }
        if newest_first {
            combined.reverse();
        }
        Ok(combined)
    }
}

#[cfg(test)]
mod tests;
