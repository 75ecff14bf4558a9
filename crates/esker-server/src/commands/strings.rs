//! Strings, and the numbers in them.

use super::arguments::{ExpiryForm, NO_FLOAT, NO_INTEGER, STRING_BYTES_MAX, TOO_LONG, arity, integer, is, syntax};
use crate::protocol::{Reply, add_decimals, format_integer, parse_integer};
use crate::store::{Context, Entry, Failure, Outcome, WRONG_TYPE};
use bytes::Bytes;

fn value_of(entry: Option<&Entry>) -> &[u8] {
    entry.and_then(Entry::string).unwrap_or_default()
}

fn reply_of(entry: Option<&Entry>) -> Reply {
    Reply::optional(entry.and_then(Entry::string))
}

/// GET key
pub fn get(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(reply_of(context.string(&arguments[1])?.as_ref()))
}

/// STRLEN key
pub fn strlen(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(Reply::count(value_of(context.string(&arguments[1])?.as_ref()).len()))
}

/// MGET key...
pub fn mget(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let mut values = Vec::with_capacity(arguments.len());
    for key in &arguments[1..] {
        values.push(reply_of(context.entry(key)?.as_ref()));
    }
    Ok(Reply::Array(values))
}

/// When a SET happens, and what it does besides.
#[derive(Debug, Default)]
struct SetOptions {
    is_if_absent: bool,
    is_if_present: bool,
    returns_old: bool,
    keeps_expiry: bool,
    expiry: Option<(ExpiryForm, Bytes)>,
}

impl SetOptions {
    fn parse(options: &[Bytes]) -> Outcome<SetOptions> {
        let mut parsed = SetOptions::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if is(option, "NX") && !parsed.is_if_present {
                parsed.is_if_absent = true;
            } else if is(option, "XX") && !parsed.is_if_absent {
                parsed.is_if_present = true;
            } else if is(option, "GET") {
                parsed.returns_old = true;
            } else if is(option, "KEEPTTL") && parsed.expiry.is_none() {
                parsed.keeps_expiry = true;
            } else if let Some(form) = ExpiryForm::of_option(option)
                // The last of the same form counts, as with Redis.
                && parsed.expiry.as_ref().is_none_or(|(given, _)| *given == form)
                && !parsed.keeps_expiry
                && let Some(value) = options.next()
            {
                parsed.expiry = Some((form, value.clone()));
            } else {
                return syntax();
            }
        }
        Ok(parsed)
    }
}

/// SET key value, with all options
pub fn set(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let options = SetOptions::parse(&arguments[3..])?;
    let mut expiry_ms = match &options.expiry {
        Some((form, value)) => Some(form.parse(value, context.now_ms(), "set")?),
        None => None,
    };
    let key = &arguments[1];
    let old = context.entry(key)?;
    if options.returns_old && old.as_ref().is_some_and(|old| old.string().is_none()) {
        return Failure::refused(WRONG_TYPE);
    }
    let declined = if options.returns_old { reply_of(old.as_ref()) } else { Reply::Nil };
    if options.is_if_absent && old.is_some() || options.is_if_present && old.is_none() {
        return Ok(declined);
    }
    if options.keeps_expiry {
        expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    }
    context.set_string(key, &[&arguments[2]], expiry_ms, old.as_ref())?;
    Ok(if options.returns_old { declined } else { Reply::OK })
}

/// SETNX key value
pub fn setnx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let is_absent = context.entry(&arguments[1])?.is_none();
    if is_absent {
        context.set_string(&arguments[1], &[&arguments[2]], None, None)?;
    }
    Ok(Reply::Integer(i64::from(is_absent)))
}

fn set_for(context: &mut Context<'_>, arguments: &[Bytes], is_seconds: bool, command: &str) -> Outcome {
    let form = ExpiryForm { is_seconds, is_absolute: false };
    let expiry_ms = form.parse(&arguments[2], context.now_ms(), command)?;
    let old = context.entry(&arguments[1])?;
    context.set_string(&arguments[1], &[&arguments[3]], Some(expiry_ms), old.as_ref())?;
    Ok(Reply::OK)
}

/// SETEX key seconds value
pub fn setex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    set_for(context, arguments, true, "setex")
}

/// PSETEX key milliseconds value
pub fn psetex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    set_for(context, arguments, false, "psetex")
}

/// GETSET key value
pub fn getset(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let old = context.string(&arguments[1])?;
    context.set_string(&arguments[1], &[&arguments[2]], None, old.as_ref())?;
    Ok(reply_of(old.as_ref()))
}

/// GETDEL key
pub fn getdel(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let old = context.string(&arguments[1])?;
    if let Some(old) = &old {
        context.delete(&arguments[1], old)?;
    }
    Ok(reply_of(old.as_ref()))
}

/// GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]
pub fn getex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let change = match &arguments[2..] {
        [] => None,
        [option] if is(option, "PERSIST") => Some(None),
        [option, value] => {
            let Some(form) = ExpiryForm::of_option(option) else { return syntax() };
            Some(Some((form, value)))
        }
        _ => return syntax(),
    };
    let key = &arguments[1];
    let Some(entry) = context.string(key)? else { return Ok(Reply::Nil) };
    // Where there is no key, an expiry that cannot be is no error.
    let parse = |(form, value): (ExpiryForm, &Bytes)| form.parse(value, context.now_ms(), "getex");
    match change.map(|expiry| expiry.map(parse).transpose()).transpose()? {
        Some(Some(at)) if at <= context.now_ms() => context.delete(key, &entry)?,
        Some(None) if entry.expiry_ms.is_none() => {}
        Some(expiry_ms) => context.set_expiry(key, &entry, expiry_ms)?,
        None => {}
    }
    Ok(reply_of(Some(&entry)))
}

/// MSET (key value)...
pub fn mset(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return arity("mset");
    }
    set_all(context, &arguments[1..])?;
    Ok(Reply::OK)
}

/// MSETNX (key value)...
pub fn msetnx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return arity("msetnx");
    }
    for pair in arguments[1..].chunks_exact(2) {
        if context.entry(&pair[0])?.is_some() {
            return Ok(Reply::Integer(0));
        }
    }
    set_all(context, &arguments[1..])?;
    Ok(Reply::Integer(1))
}

fn set_all(context: &mut Context<'_>, pairs: &[Bytes]) -> Outcome<()> {
    // A key that cannot be stored is found before the first is written.
    let mut old = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        old.push(context.entry(&pair[0])?.filter(|old| old.string().is_none()));
    }
    for (pair, old) in pairs.chunks_exact(2).zip(&old) {
        context.set_string(&pair[0], &[&pair[1]], None, old.as_ref())?;
    }
    Ok(())
}

/// APPEND key value
pub fn append(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let old = context.string(&arguments[1])?;
    let before = value_of(old.as_ref());
    let length = before.len() + arguments[2].len();
    if length > STRING_BYTES_MAX {
        return Failure::refused(TOO_LONG);
    }
    let expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    context.set_string(&arguments[1], &[before, &arguments[2]], expiry_ms, old.as_ref())?;
    Ok(Reply::count(length))
}

/// GETRANGE key start end
pub fn getrange(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (start, end) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let entry = context.string(&arguments[1])?;
    let value = value_of(entry.as_ref());
    let length = value.len() as i64;
    if value.is_empty() || start < 0 && end < 0 && start > end {
        return Ok(Reply::bulk(""));
    }
    let from = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    let (start, end) = (from(start), from(end).min(length - 1));
    Ok(Reply::bulk(if start > end { &[] } else { &value[start as usize..=end as usize] }))
}

/// SETRANGE key offset value
pub fn setrange(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Ok(offset) = usize::try_from(integer(&arguments[2])?) else {
        return Failure::refused("ERR offset is out of range");
    };
    let old = context.string(&arguments[1])?;
    let before = value_of(old.as_ref());
    let written = &arguments[3];
    if written.is_empty() {
        return Ok(Reply::count(before.len()));
    }
    let Some(end) = offset.checked_add(written.len()).filter(|&end| end <= STRING_BYTES_MAX) else {
        return Failure::refused(TOO_LONG);
    };
    let gap = vec![0; offset.saturating_sub(before.len())];
    let kept = &before[..offset.min(before.len())];
    let behind = before.get(end..).unwrap_or_default();
    let expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    context.set_string(&arguments[1], &[kept, &gap, written, behind], expiry_ms, old.as_ref())?;
    Ok(Reply::count(end.max(before.len())))
}

fn add(context: &mut Context<'_>, key: &Bytes, increment: i64) -> Outcome {
    let old = context.string(key)?;
    let before = match &old {
        None => 0,
        Some(old) => match old.string().and_then(parse_integer) {
            Some(before) => before,
            None => return Failure::refused(NO_INTEGER),
        },
    };
    let Some(sum) = before.checked_add(increment) else {
        return Failure::refused("ERR increment or decrement would overflow");
    };
    let expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    context.set_string(key, &[format_integer(sum).as_bytes()], expiry_ms, old.as_ref())?;
    Ok(Reply::Integer(sum))
}

/// INCR key
pub fn incr(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    add(context, &arguments[1], 1)
}

/// DECR key
pub fn decr(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    add(context, &arguments[1], -1)
}

/// INCRBY key increment
pub fn incrby(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    add(context, &arguments[1], integer(&arguments[2])?)
}

/// DECRBY key decrement
pub fn decrby(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    match integer(&arguments[2])?.checked_neg() {
        Some(increment) => add(context, &arguments[1], increment),
        None => Failure::refused("ERR decrement would overflow"),
    }
}

/// INCRBYFLOAT key increment
pub fn incrbyfloat(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let old = context.string(&arguments[1])?;
    let before = old.as_ref().map_or(&b"0"[..], |old| value_of(Some(old)));
    let sum = match add_decimals(before, &arguments[2]) {
        None => return Failure::refused(NO_FLOAT),
        Some((_, false)) => return Failure::refused("ERR increment would produce NaN or Infinity"),
        Some((sum, true)) => sum,
    };
    let expiry_ms = old.as_ref().and_then(|old| old.expiry_ms);
    context.set_string(&arguments[1], &[sum.as_bytes()], expiry_ms, old.as_ref())?;
    Ok(Reply::bulk(sum))
}
