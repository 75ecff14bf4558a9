//! Sorted sets: parts of them read, removed, stored and popped.

use super::arguments::{count, integer, is, syntax};
use super::blocking::{block, mpop_arguments, timeout};
use super::sorted::{LexBound, Reading, ScoreBound, Scored, Span, put, read, remove_all};
use crate::protocol::Reply;
use crate::store::{Context, Failure, Kind, Open, Outcome};
use bytes::Bytes;

/// By what the ends of a range are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// A range as a command gives it.
#[derive(Debug)]
struct Request {
    span: Span,
    reading: Reading,
    with_scores: bool,
}

/// How the older commands fix what ZRANGE takes as options.
#[derive(Clone, Copy, Debug)]
struct Form {
    fixed: Option<(By, bool)>,
    is_stored: bool,
}

impl Request {
    /// Parses `min max options...`.
    fn parse(arguments: &[Bytes], form: Form) -> Outcome<Request> {
        let (mut by, mut is_backward) = form.fixed.unwrap_or((By::Rank, false));
        let (mut limit, mut with_scores) = (None, false);
        let mut options = arguments[2..].iter();
        while let Some(option) = options.next() {
            if is(option, "WITHSCORES") && !form.is_stored {
                with_scores = true;
            } else if is(option, "LIMIT") && options.len() >= 2 {
                let mut number = || options.next().map_or_else(syntax, |number| integer(number));
                limit = Some((number()?, number()?));
            } else if form.fixed.is_none() && !is_backward && is(option, "REV") {
                is_backward = true;
            } else if form.fixed.is_none() && by == By::Rank && is(option, "BYSCORE") {
                by = By::Score;
            } else if form.fixed.is_none() && by == By::Rank && is(option, "BYLEX") {
                by = By::Lex;
            } else {
                return syntax();
            }
        }
        if limit.is_some() && by == By::Rank {
            return Failure::refused(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            );
        }
        if with_scores && by == By::Lex {
            return Failure::refused("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        }
        let (offset, limit) = match limit {
            None => (0, u64::MAX),
            Some((offset, _)) if offset < 0 => (0, 0),
            Some((offset, limit)) => (offset as u64, u64::try_from(limit).unwrap_or(u64::MAX)),
        };
        // Backwards, the greater end comes first.
        let (low, high) = if is_backward { (&arguments[1], &arguments[0]) } else { (&arguments[0], &arguments[1]) };
        let span = match by {
            By::Rank => Span::Rank(integer(&arguments[0])?, integer(&arguments[1])?),
            By::Score => Span::Score(ScoreBound::parse(low)?, ScoreBound::parse(high)?),
            By::Lex => Span::Lex(LexBound::parse(low)?, LexBound::parse(high)?),
        };
        Ok(Request { span, reading: Reading { is_backward, offset, limit }, with_scores })
    }
}

fn scored(found: Vec<Scored>, with_scores: bool) -> Reply {
    if with_scores {
        Reply::Pairs(found.into_iter().map(|(member, score)| (Reply::Bulk(member), Reply::Double(score))).collect())
    } else {
        Reply::Array(found.into_iter().map(|(member, _)| Reply::Bulk(member)).collect())
    }
}

fn range(context: &mut Context<'_>, arguments: &[Bytes], fixed: Option<(By, bool)>) -> Outcome {
    let request = Request::parse(&arguments[2..], Form { fixed, is_stored: false })?;
    let found = match context.open(&arguments[1], Kind::SortedSet)? {
        Some(open) => read(context, &open, &request.span, request.reading)?,
        None => Vec::new(),
    };
    Ok(scored(found, request.with_scores))
}

/// ZRANGE key min max [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
pub fn zrange(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, None)
}

/// ZREVRANGE key start end [WITHSCORES]
pub fn zrevrange(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, Some((By::Rank, true)))
}

/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
pub fn zrangebyscore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, Some((By::Score, false)))
}

/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
pub fn zrevrangebyscore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, Some((By::Score, true)))
}

/// ZRANGEBYLEX key min max [LIMIT offset count]
pub fn zrangebylex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, Some((By::Lex, false)))
}

/// ZREVRANGEBYLEX key max min [LIMIT offset count]
pub fn zrevrangebylex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    range(context, arguments, Some((By::Lex, true)))
}

/// Stores members with their scores as the sorted set at the key, over what is there.
pub fn store(context: &mut Context<'_>, key: &Bytes, found: &[Scored]) -> Outcome {
    if let Some(old) = context.entry(key)? {
        context.delete(key, &old)?;
    }
    if !found.is_empty() {
        let mut open = context.create(key, Kind::SortedSet)?;
        for (member, score) in found {
            put(context, &mut open, member, None, *score)?;
        }
        context.close(&open)?;
        context.filled(key);
    }
    Ok(Reply::count(found.len()))
}

/// ZRANGESTORE to from min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]
pub fn zrangestore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let request = Request::parse(&arguments[3..], Form { fixed: None, is_stored: true })?;
    let found = match context.open(&arguments[2], Kind::SortedSet)? {
        Some(open) => read(context, &open, &request.span, request.reading)?,
        None => Vec::new(),
    };
    store(context, &arguments[1], &found)
}

fn counted(context: &mut Context<'_>, key: &Bytes, span: &Span) -> Outcome {
    let Some(open) = context.open(key, Kind::SortedSet)? else { return Ok(Reply::Integer(0)) };
    Ok(Reply::count(read(context, &open, span, Reading::ALL)?.len()))
}

/// ZCOUNT key min max
pub fn zcount(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let span = Span::Score(ScoreBound::parse(&arguments[2])?, ScoreBound::parse(&arguments[3])?);
    counted(context, &arguments[1], &span)
}

/// ZLEXCOUNT key min max
pub fn zlexcount(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let span = Span::Lex(LexBound::parse(&arguments[2])?, LexBound::parse(&arguments[3])?);
    counted(context, &arguments[1], &span)
}

fn remove_span(context: &mut Context<'_>, key: &Bytes, span: &Span) -> Outcome {
    let Some(mut open) = context.open(key, Kind::SortedSet)? else { return Ok(Reply::Integer(0)) };
    let found = read(context, &open, span, Reading::ALL)?;
    remove_all(context, &mut open, &found)?;
    Ok(Reply::count(found.len()))
}

/// ZREMRANGEBYRANK key start end
pub fn zremrangebyrank(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let span = Span::Rank(integer(&arguments[2])?, integer(&arguments[3])?);
    remove_span(context, &arguments[1], &span)
}

/// ZREMRANGEBYSCORE key min max
pub fn zremrangebyscore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let span = Span::Score(ScoreBound::parse(&arguments[2])?, ScoreBound::parse(&arguments[3])?);
    remove_span(context, &arguments[1], &span)
}

/// ZREMRANGEBYLEX key min max
pub fn zremrangebylex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let span = Span::Lex(LexBound::parse(&arguments[2])?, LexBound::parse(&arguments[3])?);
    remove_span(context, &arguments[1], &span)
}

/// Takes up to so many members from an end.
fn pop(context: &mut Context<'_>, open: &mut Open, limit: usize, is_greatest: bool) -> Outcome<Vec<Scored>> {
    let reading = Reading { is_backward: is_greatest, offset: 0, limit: limit as u64 };
    let span = Span::Lex(LexBound::Least, LexBound::Greatest);
    let found = read(context, open, &span, reading)?;
    remove_all(context, open, &found)?;
    Ok(found)
}

fn pop_from(context: &mut Context<'_>, arguments: &[Bytes], is_greatest: bool) -> Outcome {
    let limit = match &arguments[2..] {
        [] => None,
        [number] => Some(count(number)?),
        _ => return syntax(),
    };
    let Some(mut open) = context.open(&arguments[1], Kind::SortedSet)? else { return Ok(Reply::Array(Vec::new())) };
    let found = pop(context, &mut open, limit.unwrap_or(1), is_greatest)?;
    if limit.is_some() {
        return Ok(scored(found, true));
    }
    Ok(Reply::Array(
        found.into_iter().flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]).collect(),
    ))
}

/// ZPOPMIN key [count]
pub fn zpopmin(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    pop_from(context, arguments, false)
}

/// ZPOPMAX key [count]
pub fn zpopmax(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    pop_from(context, arguments, true)
}

/// The first of the keys that has members, and members taken from it.
fn pop_first(
    context: &mut Context<'_>,
    keys: &[Bytes],
    limit: usize,
    is_greatest: bool,
) -> Outcome<Option<(Bytes, Vec<Scored>)>> {
    for key in keys {
        if let Some(mut open) = context.open(key, Kind::SortedSet)? {
            return Ok(Some((key.clone(), pop(context, &mut open, limit, is_greatest)?)));
        }
    }
    Ok(None)
}

fn mpop(context: &mut Context<'_>, arguments: &[Bytes], before: usize) -> Outcome<Option<Reply>> {
    let (keys, is_greatest, limit) = mpop_arguments(arguments, before, ["MIN", "MAX"])?;
    let Some((key, found)) = pop_first(context, keys, limit, is_greatest)? else { return Ok(None) };
    let pairs = found.into_iter().map(|(member, score)| Reply::Array(vec![Reply::Bulk(member), Reply::Double(score)]));
    Ok(Some(Reply::Array(vec![Reply::Bulk(key), Reply::Array(pairs.collect())])))
}

/// ZMPOP number key... MIN | MAX [COUNT count]
pub fn zmpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(mpop(context, arguments, 1)?.unwrap_or(Reply::NilArray))
}

/// BZMPOP timeout number key... MIN | MAX [COUNT count]
pub fn bzmpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let timeout_ms = timeout(&arguments[1])?;
    match mpop(context, arguments, 2)? {
        Some(reply) => Ok(reply),
        None => block(mpop_arguments(arguments, 2, ["MIN", "MAX"])?.0, timeout_ms, Reply::NilArray),
    }
}

fn blocking_pop(context: &mut Context<'_>, arguments: &[Bytes], is_greatest: bool) -> Outcome {
    let Some((last, keys)) = arguments[1..].split_last() else { return syntax() };
    let timeout_ms = timeout(last)?;
    match pop_first(context, keys, 1, is_greatest)? {
        None => block(keys, timeout_ms, Reply::NilArray),
        Some((key, found)) => {
            let pair = found.into_iter().flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]);
            Ok(Reply::Array([Reply::Bulk(key)].into_iter().chain(pair).collect()))
        }
    }
}

/// BZPOPMIN key... timeout
pub fn bzpopmin(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    blocking_pop(context, arguments, false)
}

/// BZPOPMAX key... timeout
pub fn bzpopmax(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    blocking_pop(context, arguments, true)
}
