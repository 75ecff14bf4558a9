//! Sorted sets: unions, intersections and differences, also with sets, whose members have the
//! score 1.

use super::arguments::{NO_INTEGER, double, is, syntax};
use super::sets::keys_and_limit;
use super::sorted::{Scored, decoded, number_or_zero};
use super::sorted_ranges::store;
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Failure, Kind, Outcome, WRONG_TYPE};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What members are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of a member become one.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Least,
    Greatest,
}

impl Aggregate {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(a + b),
            Aggregate::Least => a.min(b),
            Aggregate::Greatest => a.max(b),
        }
    }
}

/// The keys and options of such a command.
#[derive(Debug)]
struct Request<'a> {
    keys: &'a [Bytes],
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl Request<'_> {
    /// Parses `number key... options...`. Keys of other types are refused before wrong options.
    fn parse<'a>(
        context: &mut Context<'_>,
        arguments: &'a [Bytes],
        operation: Operation,
        is_stored: bool,
        command: &str,
    ) -> Outcome<Request<'a>> {
        let (keys, options) = keys_and_options(arguments, command)?;
        for key in keys {
            kind(context, key)?;
        }
        Request::parse_options(keys, options, operation, is_stored)
    }

    fn parse_options<'a>(
        keys: &'a [Bytes],
        mut options: &'a [Bytes],
        operation: Operation,
        is_stored: bool,
    ) -> Outcome<Request<'a>> {
        let mut request =
            Request { keys, weights: vec![1.0; keys.len()], aggregate: Aggregate::Sum, with_scores: false };
        while let Some((option, rest)) = options.split_first() {
            options = rest;
            if operation != Operation::Difference && is(option, "WEIGHTS") && rest.len() >= keys.len() {
                let (weights, behind) = rest.split_at(keys.len());
                request.weights = weights
                    .iter()
                    .map(|weight| double(weight, "ERR weight value is not a float"))
                    .collect::<Outcome<_>>()?;
                options = behind;
            } else if operation != Operation::Difference && is(option, "AGGREGATE") && !rest.is_empty() {
                request.aggregate = match &rest[0] {
                    word if is(word, "SUM") => Aggregate::Sum,
                    word if is(word, "MIN") => Aggregate::Least,
                    word if is(word, "MAX") => Aggregate::Greatest,
                    _ => return syntax(),
                };
                options = &rest[1..];
            } else if !is_stored && is(option, "WITHSCORES") {
                request.with_scores = true;
            } else {
                return syntax();
            }
        }
        Ok(request)
    }
}

/// Splits `number key... options...`.
fn keys_and_options<'a>(arguments: &'a [Bytes], command: &str) -> Outcome<(&'a [Bytes], &'a [Bytes])> {
    let Some(number) = parse_integer(&arguments[0]) else { return Failure::refused(NO_INTEGER) };
    if number < 1 {
        return Failure::refused(format!("ERR at least 1 input key is needed for '{command}' command"));
    }
    arguments[1..].split_at_checked(number as usize).map_or_else(syntax, Ok)
}

/// The type of a sorted set or a set, if there is one.
fn kind(context: &mut Context<'_>, key: &Bytes) -> Outcome<Option<Kind>> {
    match context.entry(key)? {
        None => Ok(None),
        Some(entry) if matches!(entry.kind(), Kind::Set | Kind::SortedSet) => Ok(Some(entry.kind())),
        Some(_) => Failure::refused(WRONG_TYPE),
    }
}

/// The members of a sorted set or a set.
fn members(context: &mut Context<'_>, key: &Bytes) -> Outcome<BTreeMap<Bytes, f64>> {
    let Some(kind) = kind(context, key)? else { return Ok(BTreeMap::new()) };
    let Some(open) = context.open(key, kind)? else { return Ok(BTreeMap::new()) };
    let all = context.members(&open)?.into_iter();
    Ok(all.map(|(member, score)| (member, if kind == Kind::Set { 1.0 } else { decoded(&score) })).collect())
}

fn combine(context: &mut Context<'_>, operation: Operation, request: &Request<'_>) -> Outcome<Vec<Scored>> {
    let mut inputs = Vec::with_capacity(request.keys.len());
    for (key, weight) in request.keys.iter().zip(&request.weights) {
        let mut input = members(context, key)?;
        for score in input.values_mut() {
            *score = number_or_zero(*score * weight);
        }
        inputs.push(input);
    }
    let mut inputs = inputs.into_iter();
    let mut combined = inputs.next().unwrap_or_default();
    for input in inputs {
        match operation {
            Operation::Union => {
                for (member, score) in input {
                    combined
                        .entry(member)
                        .and_modify(|before| *before = request.aggregate.of(*before, score))
                        .or_insert(score);
                }
            }
            Operation::Intersection => {
                combined.retain(|member, before| match input.get(member) {
                    Some(score) => {
                        *before = request.aggregate.of(*before, *score);
                        true
                    }
                    None => false,
                });
            }
            Operation::Difference => combined.retain(|member, _| !input.contains_key(member)),
        }
    }
    let mut found: Vec<Scored> = combined.into_iter().collect();
    found.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    Ok(found)
}

fn show(context: &mut Context<'_>, arguments: &[Bytes], operation: Operation, command: &str) -> Outcome {
    let request = Request::parse(context, &arguments[1..], operation, false, command)?;
    let found = combine(context, operation, &request)?.into_iter();
    Ok(if request.with_scores {
        Reply::Pairs(found.map(|(member, score)| (Reply::Bulk(member), Reply::Double(score))).collect())
    } else {
        Reply::Array(found.map(|(member, _)| Reply::Bulk(member)).collect())
    })
}

fn keep(context: &mut Context<'_>, arguments: &[Bytes], operation: Operation, command: &str) -> Outcome {
    let request = Request::parse(context, &arguments[2..], operation, true, command)?;
    let found = combine(context, operation, &request)?;
    store(context, &arguments[1], &found)
}

/// ZUNION number key... [WEIGHTS weight...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]
pub fn zunion(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    show(context, arguments, Operation::Union, "zunion")
}

/// ZINTER, as ZUNION
pub fn zinter(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    show(context, arguments, Operation::Intersection, "zinter")
}

/// ZDIFF number key... [WITHSCORES]
pub fn zdiff(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    show(context, arguments, Operation::Difference, "zdiff")
}

/// ZUNIONSTORE to number key... [WEIGHTS weight...] [AGGREGATE SUM | MIN | MAX]
pub fn zunionstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    keep(context, arguments, Operation::Union, "zunionstore")
}

/// ZINTERSTORE, as ZUNIONSTORE
pub fn zinterstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    keep(context, arguments, Operation::Intersection, "zinterstore")
}

/// ZDIFFSTORE to number key...
pub fn zdiffstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    keep(context, arguments, Operation::Difference, "zdiffstore")
}

/// ZINTERCARD number key... [LIMIT limit]
pub fn zintercard(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (keys, _) = keys_and_options(&arguments[1..], "zintercard")?;
    for key in keys {
        kind(context, key)?;
    }
    let (keys, limit) = keys_and_limit(arguments)?;
    let request = Request { keys, weights: vec![1.0; keys.len()], aggregate: Aggregate::Sum, with_scores: false };
    Ok(Reply::count(combine(context, Operation::Intersection, &request)?.len().min(limit)))
}
