//! Sets.

use super::arguments::{count, is, signed_count, syntax};
use super::scan::{draw_any, draw_distinct};
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Failure, Kind, Open, Outcome};
use bytes::Bytes;
use std::collections::BTreeSet;

/// SADD key member...
pub fn sadd(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    for member in &arguments[2..] {
        context.check_member(member)?;
    }
    let mut open = context.open_or_create(&arguments[1], Kind::Set)?;
    let before = open.count();
    for member in &arguments[2..] {
        if context.member(&open, member)?.is_none() {
            context.put_member(&mut open, member, b"", true)?;
        }
    }
    if open.count() > before {
        context.close(&open)?;
    }
    Ok(Reply::Integer((open.count() - before) as i64))
}

/// SREM key member...
pub fn srem(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(mut open) = context.open(&arguments[1], Kind::Set)? else { return Ok(Reply::Integer(0)) };
    let before = open.count();
    for member in &arguments[2..] {
        if context.member(&open, member)?.is_some() {
            context.delete_member(&mut open, member)?;
        }
    }
    if open.count() < before {
        context.close(&open)?;
    }
    Ok(Reply::Integer((before - open.count()) as i64))
}

fn holds(context: &mut Context<'_>, open: Option<&Open>, member: &[u8]) -> Outcome<bool> {
    match open {
        Some(open) => Ok(context.member(open, member)?.is_some()),
        None => Ok(false),
    }
}

/// SISMEMBER key member
pub fn sismember(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Set)?;
    Ok(Reply::Integer(i64::from(holds(context, open.as_ref(), &arguments[2])?)))
}

/// SMISMEMBER key member...
pub fn smismember(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Set)?;
    let mut found = Vec::new();
    for member in &arguments[2..] {
        found.push(Reply::Integer(i64::from(holds(context, open.as_ref(), member)?)));
    }
    Ok(Reply::Array(found))
}

/// SCARD key
pub fn scard(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Set)?;
    Ok(Reply::Integer(open.map_or(0, |open| open.count() as i64)))
}

fn members(context: &mut Context<'_>, open: Option<&Open>) -> Outcome<Vec<Bytes>> {
    match open {
        Some(open) => Ok(context.members(open)?.into_iter().map(|(member, _)| member).collect()),
        None => Ok(Vec::new()),
    }
}

fn set_of(members: impl IntoIterator<Item = Bytes>) -> Reply {
    Reply::Set(members.into_iter().map(Reply::Bulk).collect())
}

/// SMEMBERS key
pub fn smembers(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Set)?;
    Ok(set_of(members(context, open.as_ref())?))
}

/// SPOP key [count]
pub fn spop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let wanted = match &arguments[2..] {
        [] => None,
        [number] => Some(count(number)?),
        _ => return syntax(),
    };
    let Some(mut open) = context.open(&arguments[1], Kind::Set)? else {
        return Ok(if wanted.is_some() { Reply::Set(Vec::new()) } else { Reply::Nil });
    };
    let drawn = draw_distinct(context, &open, wanted.map_or(1, |wanted| wanted as u64))?;
    for (member, _) in &drawn {
        context.delete_member(&mut open, member)?;
    }
    if !drawn.is_empty() {
        context.close(&open)?;
    }
    let mut drawn = drawn.into_iter().map(|(member, _)| member);
    Ok(if wanted.is_some() { set_of(drawn) } else { Reply::optional(drawn.next()) })
}

/// SRANDMEMBER key [count]
pub fn srandmember(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let wanted = match &arguments[2..] {
        [] => None,
        [number] => Some(signed_count(number)?),
        _ => return syntax(),
    };
    let open = context.open(&arguments[1], Kind::Set)?;
    let Some(wanted) = wanted else {
        let Some(open) = open else { return Ok(Reply::Nil) };
        return Ok(Reply::optional(draw_any(context, &open, 1)?.first().map(|(member, _)| member)));
    };
    let drawn = match &open {
        None => Vec::new(),
        Some(open) if wanted < 0 => draw_any(context, open, wanted.unsigned_abs())?,
        Some(open) => draw_distinct(context, open, wanted.unsigned_abs())?,
    };
    Ok(Reply::Array(drawn.into_iter().map(|(member, _)| Reply::Bulk(member)).collect()))
}

/// SMOVE from to member
pub fn smove(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (from, to, member) = (&arguments[1], &arguments[2], &arguments[3]);
    let Some(mut source) = context.open(from, Kind::Set)? else { return Ok(Reply::Integer(0)) };
    let existing = context.open(to, Kind::Set)?;
    if context.member(&source, member)?.is_none() {
        return Ok(Reply::Integer(0));
    }
    if from == to {
        return Ok(Reply::Integer(1));
    }
    context.delete_member(&mut source, member)?;
    context.close(&source)?;
    let mut target = match existing {
        Some(existing) => existing,
        None => context.create(to, Kind::Set)?,
    };
    if context.member(&target, member)?.is_none() {
        context.put_member(&mut target, member, b"", true)?;
        context.close(&target)?;
    }
    Ok(Reply::Integer(1))
}

fn open_all(context: &mut Context<'_>, keys: &[Bytes]) -> Outcome<Vec<Option<Open>>> {
    keys.iter().map(|key| context.open(key, Kind::Set)).collect()
}

/// The members that are in all sets, up to `limit` of them.
fn intersection(context: &mut Context<'_>, keys: &[Bytes], limit: usize) -> Outcome<Vec<Bytes>> {
    let sets = open_all(context, keys)?;
    let Some(mut sets) = sets.into_iter().collect::<Option<Vec<Open>>>() else { return Ok(Vec::new()) };
    sets.sort_by_key(Open::count);
    let mut found = Vec::new();
    for member in members(context, sets.first())? {
        let mut is_everywhere = true;
        for other in &sets[1..] {
            is_everywhere = is_everywhere && holds(context, Some(other), &member)?;
        }
        if is_everywhere {
            found.push(member);
            if found.len() == limit {
                break;
            }
        }
    }
    Ok(found)
}

fn union(context: &mut Context<'_>, keys: &[Bytes]) -> Outcome<Vec<Bytes>> {
    let mut found = BTreeSet::new();
    for set in open_all(context, keys)? {
        found.extend(members(context, set.as_ref())?);
    }
    Ok(found.into_iter().collect())
}

fn difference(context: &mut Context<'_>, keys: &[Bytes]) -> Outcome<Vec<Bytes>> {
    let sets = open_all(context, keys)?;
    let mut found = Vec::new();
    for member in members(context, sets.first().and_then(Option::as_ref))? {
        let mut is_elsewhere = false;
        for other in &sets[1..] {
            is_elsewhere = is_elsewhere || holds(context, other.as_ref(), &member)?;
        }
        if !is_elsewhere {
            found.push(member);
        }
    }
    Ok(found)
}

/// Stores the members as the set at the key, over what is there.
fn store(context: &mut Context<'_>, key: &Bytes, members: Vec<Bytes>) -> Outcome {
    if let Some(old) = context.entry(key)? {
        context.delete(key, &old)?;
    }
    if !members.is_empty() {
        let mut open = context.create(key, Kind::Set)?;
        for member in &members {
            context.put_member(&mut open, member, b"", true)?;
        }
        context.close(&open)?;
    }
    Ok(Reply::count(members.len()))
}

/// SINTER key...
pub fn sinter(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(set_of(intersection(context, &arguments[1..], usize::MAX)?))
}

/// SUNION key...
pub fn sunion(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(set_of(union(context, &arguments[1..])?))
}

/// SDIFF key...
pub fn sdiff(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(set_of(difference(context, &arguments[1..])?))
}

/// SINTERSTORE to key...
pub fn sinterstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let members = intersection(context, &arguments[2..], usize::MAX)?;
    store(context, &arguments[1], members)
}

/// SUNIONSTORE to key...
pub fn sunionstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let members = union(context, &arguments[2..])?;
    store(context, &arguments[1], members)
}

/// SDIFFSTORE to key...
pub fn sdiffstore(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let members = difference(context, &arguments[2..])?;
    store(context, &arguments[1], members)
}

/// The keys and the limit of SINTERCARD and ZINTERCARD.
pub fn keys_and_limit(arguments: &[Bytes]) -> Outcome<(&[Bytes], usize)> {
    let number = match parse_integer(&arguments[1]) {
        Some(number) if number > 0 => number as usize,
        _ => return Failure::refused("ERR numkeys should be greater than 0"),
    };
    let Some((keys, options)) = arguments[2..].split_at_checked(number) else {
        return Failure::refused("ERR Number of keys can't be greater than number of args");
    };
    let mut limit = 0;
    for pair in options.chunks(2) {
        match pair {
            [option, value] if is(option, "LIMIT") => match parse_integer(value).map(usize::try_from) {
                Some(Ok(value)) => limit = value,
                _ => return Failure::refused("ERR LIMIT can't be negative"),
            },
            _ => return syntax(),
        }
    }
    Ok((keys, if limit == 0 { usize::MAX } else { limit }))
}

/// SINTERCARD number key... [LIMIT limit]
pub fn sintercard(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (keys, limit) = keys_and_limit(arguments)?;
    Ok(Reply::count(intersection(context, keys, limit)?.len()))
}
