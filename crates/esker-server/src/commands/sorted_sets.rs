//! Sorted sets: members and their scores.

use super::arguments::{NO_FLOAT, double, is, pairs, signed_count, syntax};
use super::scan::{draw_any, draw_distinct};
use super::sorted::{decoded, put, rank, remove_all, score};
use crate::protocol::Reply;
use crate::store::{Context, Failure, Kind, Outcome};
use bytes::Bytes;
use std::collections::HashSet;

/// What ZADD changes.
#[derive(Clone, Copy, Debug, Default)]
struct AddOptions {
    is_if_absent: bool,
    is_if_present: bool,
    is_if_greater: bool,
    is_if_less: bool,
    counts_changed: bool,
    is_increment: bool,
}

impl AddOptions {
    /// The options, and how many arguments they are.
    fn parse(arguments: &[Bytes]) -> (AddOptions, usize) {
        let mut parsed = AddOptions::default();
        for (index, option) in arguments.iter().enumerate() {
            let place = if is(option, "NX") {
                &mut parsed.is_if_absent
            } else if is(option, "XX") {
                &mut parsed.is_if_present
            } else if is(option, "GT") {
                &mut parsed.is_if_greater
            } else if is(option, "LT") {
                &mut parsed.is_if_less
            } else if is(option, "CH") {
                &mut parsed.counts_changed
            } else if is(option, "INCR") {
                &mut parsed.is_increment
            } else {
                return (parsed, index);
            };
            *place = true;
        }
        (parsed, arguments.len())
    }

    fn check(self, pairs: &[Bytes]) -> Outcome<()> {
        if pairs.is_empty() || pairs.len() % 2 == 1 {
            return syntax();
        }
        if self.is_if_absent && self.is_if_present {
            return Failure::refused("ERR XX and NX options at the same time are not compatible");
        }
        if self.is_if_greater && self.is_if_less || self.is_if_absent && (self.is_if_greater || self.is_if_less) {
            return Failure::refused("ERR GT, LT, and/or NX options at the same time are not compatible");
        }
        if self.is_increment && pairs.len() > 2 {
            return Failure::refused("ERR INCR option supports a single increment-element pair");
        }
        Ok(())
    }

    /// The score that a member gets, if it gets another one.
    fn decide(self, old: Option<f64>, given: f64) -> Outcome<Option<f64>> {
        let Some(old) = old else { return Ok(if self.is_if_present { None } else { Some(given) }) };
        if self.is_if_absent {
            return Ok(None);
        }
        let new = if self.is_increment { old + given } else { given };
        if new.is_nan() {
            return Failure::refused("ERR resulting score is not a number (NaN)");
        }
        Ok(if self.is_if_greater && new <= old || self.is_if_less && new >= old { None } else { Some(new) })
    }
}

fn add(context: &mut Context<'_>, key: &Bytes, options: AddOptions, pairs: &[Bytes]) -> Outcome {
    options.check(pairs)?;
    let mut scores = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        scores.push(double(&pair[0], NO_FLOAT)?);
        context.check_member(&pair[1])?;
    }
    let mut open = match context.open(key, Kind::SortedSet)? {
        Some(open) => open,
        None if options.is_if_present => {
            return Ok(if options.is_increment { Reply::Nil } else { Reply::Integer(0) });
        }
        None => context.create(key, Kind::SortedSet)?,
    };
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (pair, given) in pairs.chunks_exact(2).zip(scores) {
        let member = &pair[1];
        let old = score(context, &open, member)?;
        last = options.decide(old, given)?;
        let Some(new) = last else { continue };
        added += i64::from(old.is_none());
        if old != Some(new) {
            changed += i64::from(old.is_some());
            put(context, &mut open, member, old, new)?;
        }
    }
    if added + changed > 0 {
        context.close(&open)?;
        context.filled(key);
    }
    Ok(match last {
        Some(score) if options.is_increment => Reply::Double(score),
        None if options.is_increment => Reply::Nil,
        _ => Reply::Integer(if options.counts_changed { added + changed } else { added }),
    })
}

/// ZADD key [NX | XX] [GT | LT] [CH] [INCR] (score member)...
pub fn zadd(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (options, length) = AddOptions::parse(&arguments[2..]);
    add(context, &arguments[1], options, &arguments[2 + length..])
}

/// ZINCRBY key increment member
pub fn zincrby(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let options = AddOptions { is_increment: true, ..AddOptions::default() };
    add(context, &arguments[1], options, &arguments[2..])
}

/// ZREM key member...
pub fn zrem(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(mut open) = context.open(&arguments[1], Kind::SortedSet)? else { return Ok(Reply::Integer(0)) };
    let mut removed: Vec<(Bytes, f64)> = Vec::new();
    let mut seen = HashSet::new();
    for member in &arguments[2..] {
        if seen.insert(member)
            && let Some(score) = score(context, &open, member)?
        {
            removed.push((member.clone(), score));
        }
    }
    remove_all(context, &mut open, &removed)?;
    Ok(Reply::count(removed.len()))
}

/// ZCARD key
pub fn zcard(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::SortedSet)?;
    Ok(Reply::Integer(open.map_or(0, |open| open.count() as i64)))
}

/// ZSCORE key member
pub fn zscore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::SortedSet)? else { return Ok(Reply::Nil) };
    Ok(score(context, &open, &arguments[2])?.map_or(Reply::Nil, Reply::Double))
}

/// ZMSCORE key member...
pub fn zmscore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::SortedSet)?;
    let mut scores = Vec::new();
    for member in &arguments[2..] {
        scores.push(match &open {
            Some(open) => score(context, open, member)?.map_or(Reply::Nil, Reply::Double),
            None => Reply::Nil,
        });
    }
    Ok(Reply::Array(scores))
}

fn ranked(context: &mut Context<'_>, arguments: &[Bytes], is_reverse: bool) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::SortedSet)? else { return Ok(Reply::Nil) };
    let Some(score) = score(context, &open, &arguments[2])? else { return Ok(Reply::Nil) };
    let rank = rank(context, &open, &arguments[2], score)?;
    Ok(Reply::Integer(if is_reverse { open.count().saturating_sub(rank + 1) } else { rank } as i64))
}

/// ZRANK key member
pub fn zrank(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    ranked(context, arguments, false)
}

/// ZREVRANK key member
pub fn zrevrank(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    ranked(context, arguments, true)
}

/// ZRANDMEMBER key [count [WITHSCORES]]
pub fn zrandmember(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let count = arguments.get(2).map(|count| signed_count(count)).transpose()?;
    let with_scores = match arguments.get(3..) {
        None | Some([]) => false,
        Some([option]) if is(option, "WITHSCORES") => pairs(count)?,
        Some(_) => return syntax(),
    };
    let open = context.open(&arguments[1], Kind::SortedSet)?;
    let Some(count) = count else {
        let Some(open) = open else { return Ok(Reply::Nil) };
        return Ok(Reply::optional(draw_any(context, &open, 1)?.first().map(|(member, _)| member)));
    };
    let drawn = match &open {
        None => Vec::new(),
        Some(open) if count < 0 => draw_any(context, open, count.unsigned_abs())?,
        Some(open) => draw_distinct(context, open, count.unsigned_abs())?,
    };
    let drawn = drawn.into_iter().map(|(member, score)| (Reply::Bulk(member), Reply::Double(decoded(&score))));
    Ok(if with_scores {
        Reply::Pairs(drawn.collect())
    } else {
        Reply::Array(drawn.map(|(member, _)| member).collect())
    })
}
