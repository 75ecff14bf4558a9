//! The elements of sorted sets, each stored by member and by score; and spans of them.

use super::arguments::index_range;
use crate::protocol::parse_any_double;
use crate::store::{Context, Failure, Open, Outcome, prefix_of_scores, score_key, score_of, sortable};
use bytes::Bytes;

/// A member with its score.
pub type Scored = (Bytes, f64);

/// The score of a member.
pub fn score(context: &mut Context<'_>, open: &Open, member: &[u8]) -> Outcome<Option<f64>> {
    Ok(context.member(open, member)?.map(|stored| decoded(&stored)))
}

/// The score in a stored value.
pub fn decoded(stored: &[u8]) -> f64 {
    stored.try_into().map_or(0.0, f64::from_le_bytes)
}

/// Gives a member a score; `old` is the one that it has.
pub fn put(context: &mut Context<'_>, open: &mut Open, member: &[u8], old: Option<f64>, new: f64) -> Outcome<()> {
    if let Some(old) = old {
        context.delete_element(&score_key(open.collection.generation, old, member))?;
    }
    context.put_member(open, member, &new.to_le_bytes(), old.is_none())?;
    // Both zeros are at the same place in the order; the value tells the negative one.
    let mark: &[u8] = if new == 0.0 && new.is_sign_negative() { b"-" } else { b"" };
    context.put_element(&score_key(open.collection.generation, new, member), mark)
}

/// Removes a member with its score.
pub fn remove(context: &mut Context<'_>, open: &mut Open, member: &[u8], score: f64) -> Outcome<()> {
    context.delete_element(&score_key(open.collection.generation, score, member))?;
    context.delete_member(open, member)
}

/// An end of a span of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreBound {
    score: f64,
    is_exclusive: bool,
}

impl ScoreBound {
    /// The bound in an argument: a number, which `(` excludes.
    pub fn parse(argument: &[u8]) -> Outcome<ScoreBound> {
        let number = argument.strip_prefix(b"(");
        match parse_any_double(number.unwrap_or(argument)) {
            Some(score) => Ok(ScoreBound { score, is_exclusive: number.is_some() }),
            None => Failure::refused("ERR min or max is not a float"),
        }
    }

    /// The first key behind what the bound includes, or excludes.
    fn key(self, generation: u64, is_behind: bool) -> Vec<u8> {
        let bits = u64::from_be_bytes(sortable(self.score)) + u64::from(is_behind);
        [&prefix_of_scores(generation)[..], &bits.to_be_bytes()].concat()
    }
}

/// An end of a span of members.
#[derive(Clone, Debug)]
pub enum LexBound {
    /// Before all.
    Least,
    /// Behind all.
    Greatest,
    /// At this member.
    Included(Bytes),
    /// Next to this member.
    Excluded(Bytes),
}

impl LexBound {
    /// The bound in an argument: `-`, `+`, or a member behind `[` or `(`.
    pub fn parse(argument: &Bytes) -> Outcome<LexBound> {
        match &argument[..] {
            b"-" => Ok(LexBound::Least),
            b"+" => Ok(LexBound::Greatest),
            [b'[', ..] => Ok(LexBound::Included(argument.slice(1..))),
            [b'(', ..] => Ok(LexBound::Excluded(argument.slice(1..))),
            _ => Failure::refused("ERR min or max not valid string range item"),
        }
    }

    fn is_at_or_below(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Least => true,
            LexBound::Greatest => false,
            LexBound::Included(bound) => &bound[..] <= member,
            LexBound::Excluded(bound) => &bound[..] < member,
        }
    }

    fn is_at_or_above(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Least => false,
            LexBound::Greatest => true,
            LexBound::Included(bound) => member <= &bound[..],
            LexBound::Excluded(bound) => member < &bound[..],
        }
    }
}

/// A part of a sorted set.
#[derive(Clone, Debug)]
pub enum Span {
    /// By ranks, of which negative ones count from the end.
    Rank(i64, i64),
    /// By score.
    Score(ScoreBound, ScoreBound),
    /// By member, where all scores are the same.
    Lex(LexBound, LexBound),
}

/// How a span is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// From the greatest to the least; ranks count from the greatest then.
    pub is_backward: bool,
    /// How many are passed over.
    pub offset: u64,
    /// How many are read at most.
    pub limit: u64,
}

impl Reading {
    /// Everything, from the least to the greatest.
    pub const ALL: Reading = Reading { is_backward: false, offset: 0, limit: u64::MAX };
}

/// The range of all keys of members by score.
fn whole(generation: u64) -> (Vec<u8>, Vec<u8>) {
    let from = prefix_of_scores(generation);
    let mut to = from.clone();
    if let Some(last) = to.last_mut() {
        *last += 1;
    }
    (from, to)
}

/// The members of a span, each with its score.
pub fn read(context: &mut Context<'_>, open: &Open, span: &Span, reading: Reading) -> Outcome<Vec<Scored>> {
    let generation = open.collection.generation;
    let Reading { is_backward, mut offset, mut limit } = reading;
    let (from, to) = match span {
        Span::Rank(start, end) => {
            let Some((start, end)) = index_range(*start, *end, open.count()) else { return Ok(Vec::new()) };
            (offset, limit) = (start, end - start + 1);
            whole(generation)
        }
        Span::Score(min, max) => (min.key(generation, min.is_exclusive), max.key(generation, !max.is_exclusive)),
        Span::Lex(..) => whole(generation),
    };
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    context.scan_elements(from..to, is_backward, |key, value| {
        let Some((score, member)) = score_of(key) else { return true };
        if let Span::Lex(min, max) = span {
            if !min.is_at_or_below(member) {
                return !is_backward;
            }
            if !max.is_at_or_above(member) {
                return is_backward;
            }
        }
        if offset > 0 {
            offset -= 1;
            return true;
        }
        let score = if value.is_empty() { score } else { -0.0 };
        found.push((Bytes::copy_from_slice(member), score));
        (found.len() as u64) < limit
    })?;
    Ok(found)
}

/// How many members come before the one with this score.
pub fn rank(context: &mut Context<'_>, open: &Open, member: &[u8], score: f64) -> Outcome<u64> {
    let generation = open.collection.generation;
    let (from, _) = whole(generation);
    let mut before = 0;
    context.scan_elements(from..score_key(generation, score, member), false, |_, _| {
        before += 1;
        true
    })?;
    Ok(before)
}

/// Takes members away, and stores what is left.
pub fn remove_all(context: &mut Context<'_>, open: &mut Open, members: &[Scored]) -> Outcome<()> {
    for (member, score) in members {
        remove(context, open, member, *score)?;
    }
    if !members.is_empty() {
        context.close(open)?;
    }
    Ok(())
}

/// The product or sum, or 0 where it is no number.
pub fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}
