//! Hashes.

use super::arguments::{NO_FLOAT, arity, integer, is, pairs, signed_count, syntax};
use super::scan::{draw_any, draw_distinct};
use crate::protocol::{Reply, add_decimals, format_integer, is_infinity, parse_any_double, parse_integer};
use crate::store::{Context, Failure, Kind, Outcome};
use bytes::Bytes;

fn set_fields(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome<i64> {
    for pair in arguments[2..].chunks_exact(2) {
        context.check_member(&pair[0])?;
    }
    let mut open = context.open_or_create(&arguments[1], Kind::Hash)?;
    let before = open.count();
    for pair in arguments[2..].chunks_exact(2) {
        let is_new = context.member(&open, &pair[0])?.is_none();
        context.put_member(&mut open, &pair[0], &pair[1], is_new)?;
    }
    context.close(&open)?;
    Ok((open.count() - before) as i64)
}

/// HSET key (field value)...
pub fn hset(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    if arguments.len() % 2 == 1 {
        return arity("hset");
    }
    Ok(Reply::Integer(set_fields(context, arguments)?))
}

/// HMSET key (field value)...
pub fn hmset(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    if arguments.len() % 2 == 1 {
        return arity("hmset");
    }
    set_fields(context, arguments)?;
    Ok(Reply::OK)
}

/// HSETNX key field value
pub fn hsetnx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    context.check_member(&arguments[2])?;
    let mut open = context.open_or_create(&arguments[1], Kind::Hash)?;
    if context.member(&open, &arguments[2])?.is_some() {
        return Ok(Reply::Integer(0));
    }
    context.put_member(&mut open, &arguments[2], &arguments[3], true)?;
    context.close(&open)?;
    Ok(Reply::Integer(1))
}

/// HGET key field
pub fn hget(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::Hash)? else { return Ok(Reply::Nil) };
    Ok(Reply::optional(context.member(&open, &arguments[2])?))
}

/// HMGET key field...
pub fn hmget(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Hash)?;
    let mut values = Vec::with_capacity(arguments.len());
    for field in &arguments[2..] {
        values.push(match &open {
            Some(open) => Reply::optional(context.member(open, field)?),
            None => Reply::Nil,
        });
    }
    Ok(Reply::Array(values))
}

/// HDEL key field...
pub fn hdel(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(mut open) = context.open(&arguments[1], Kind::Hash)? else { return Ok(Reply::Integer(0)) };
    let before = open.count();
    for field in &arguments[2..] {
        if context.member(&open, field)?.is_some() {
            context.delete_member(&mut open, field)?;
        }
    }
    if open.count() < before {
        context.close(&open)?;
    }
    Ok(Reply::Integer((before - open.count()) as i64))
}

/// HLEN key
pub fn hlen(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::Hash)?;
    Ok(Reply::Integer(open.map_or(0, |open| open.count() as i64)))
}

/// HSTRLEN key field
pub fn hstrlen(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::Hash)? else { return Ok(Reply::Integer(0)) };
    Ok(Reply::count(context.member(&open, &arguments[2])?.map_or(0, |value| value.len())))
}

/// HEXISTS key field
pub fn hexists(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::Hash)? else { return Ok(Reply::Integer(0)) };
    Ok(Reply::Integer(i64::from(context.member(&open, &arguments[2])?.is_some())))
}

fn all(context: &mut Context<'_>, key: &Bytes) -> Outcome<Vec<(Bytes, Bytes)>> {
    match context.open(key, Kind::Hash)? {
        Some(open) => context.members(&open),
        None => Ok(Vec::new()),
    }
}

/// HKEYS key
pub fn hkeys(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let all = all(context, &arguments[1])?;
    Ok(Reply::Array(all.into_iter().map(|(field, _)| Reply::Bulk(field)).collect()))
}

/// HVALS key
pub fn hvals(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let all = all(context, &arguments[1])?;
    Ok(Reply::Array(all.into_iter().map(|(_, value)| Reply::Bulk(value)).collect()))
}

/// HGETALL key
pub fn hgetall(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let all = all(context, &arguments[1])?;
    Ok(Reply::Map(all.into_iter().map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value))).collect()))
}

/// HINCRBY key field increment
pub fn hincrby(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let increment = integer(&arguments[3])?;
    context.check_member(&arguments[2])?;
    let mut open = context.open_or_create(&arguments[1], Kind::Hash)?;
    let old = context.member(&open, &arguments[2])?;
    let before = match &old {
        None => 0,
        Some(old) => match parse_integer(old) {
            Some(before) => before,
            None => return Failure::refused("ERR hash value is not an integer"),
        },
    };
    let Some(sum) = before.checked_add(increment) else {
        return Failure::refused("ERR increment or decrement would overflow");
    };
    context.put_member(&mut open, &arguments[2], format_integer(sum).as_bytes(), old.is_none())?;
    context.close(&open)?;
    Ok(Reply::Integer(sum))
}

/// HINCRBYFLOAT key field increment
pub fn hincrbyfloat(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    match parse_any_double(&arguments[3]) {
        None => return Failure::refused(NO_FLOAT),
        Some(_) if is_infinity(&arguments[3]) => return Failure::refused("ERR value is NaN or Infinity"),
        Some(_) if add_decimals(b"0", &arguments[3]).is_none() => return Failure::refused(NO_FLOAT),
        Some(_) => {}
    }
    context.check_member(&arguments[2])?;
    let mut open = context.open_or_create(&arguments[1], Kind::Hash)?;
    let old = context.member(&open, &arguments[2])?;
    let sum = match add_decimals(old.as_deref().unwrap_or(b"0"), &arguments[3]) {
        None => return Failure::refused("ERR hash value is not a float"),
        Some((_, false)) => return Failure::refused("ERR increment would produce NaN or Infinity"),
        Some((sum, true)) => sum,
    };
    context.put_member(&mut open, &arguments[2], sum.as_bytes(), old.is_none())?;
    context.close(&open)?;
    Ok(Reply::bulk(sum))
}

/// HRANDFIELD key [count [WITHVALUES]]
pub fn hrandfield(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let count = arguments.get(2).map(|count| signed_count(count)).transpose()?;
    let with_values = match arguments.get(3..) {
        None | Some([]) => false,
        Some([option]) if is(option, "WITHVALUES") => pairs(count)?,
        Some(_) => return syntax(),
    };
    let open = context.open(&arguments[1], Kind::Hash)?;
    let Some(count) = count else {
        let Some(open) = open else { return Ok(Reply::Nil) };
        return Ok(Reply::optional(draw_any(context, &open, 1)?.first().map(|(field, _)| field)));
    };
    let drawn = match &open {
        None => Vec::new(),
        Some(open) if count < 0 => draw_any(context, open, count.unsigned_abs())?,
        Some(open) => draw_distinct(context, open, count.unsigned_abs())?,
    };
    let drawn = drawn.into_iter().map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value)));
    Ok(if with_values { Reply::Pairs(drawn.collect()) } else { Reply::Array(drawn.map(|(field, _)| field).collect()) })
}
