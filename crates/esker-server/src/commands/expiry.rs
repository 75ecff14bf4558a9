//! When keys expire.

use super::arguments::{ExpiryForm, integer, is};
use crate::protocol::Reply;
use crate::store::{Context, Failure, Outcome};
use bytes::Bytes;

/// Which expiries EXPIRE and its like replace.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    is_if_none: bool,
    is_if_some: bool,
    is_if_later: bool,
    is_if_sooner: bool,
}

impl Condition {
    fn parse(options: &[Bytes]) -> Outcome<Condition> {
        let mut parsed = Condition::default();
        for option in options {
            let place = if is(option, "NX") {
                &mut parsed.is_if_none
            } else if is(option, "XX") {
                &mut parsed.is_if_some
            } else if is(option, "GT") {
                &mut parsed.is_if_later
            } else if is(option, "LT") {
                &mut parsed.is_if_sooner
            } else {
                return Failure::refused(format!("ERR Unsupported option {}", String::from_utf8_lossy(option)));
            };
            *place = true;
        }
        if parsed.is_if_none && (parsed.is_if_some || parsed.is_if_later || parsed.is_if_sooner) {
            return Failure::refused("ERR NX and XX, GT or LT options at the same time are not compatible");
        }
        if parsed.is_if_later && parsed.is_if_sooner {
            return Failure::refused("ERR GT and LT options at the same time are not compatible");
        }
        Ok(parsed)
    }

    /// Whether the new expiry takes the place of the old one. No expiry is the latest.
    fn allows(self, old: Option<u64>, new: i64) -> bool {
        let old = old.map(|old| i64::try_from(old).unwrap_or(i64::MAX));
        !(self.is_if_none && old.is_some()
            || self.is_if_some && old.is_none()
            || self.is_if_later && old.is_none_or(|old| new <= old)
            || self.is_if_sooner && old.is_some_and(|old| new >= old))
    }
}

fn expire_in(context: &mut Context<'_>, arguments: &[Bytes], form: ExpiryForm, command: &str) -> Outcome {
    let condition = Condition::parse(&arguments[3..])?;
    let value = integer(&arguments[2])?;
    let Some(at) = form.milliseconds(value, context.now_ms()) else {
        return Failure::refused(format!("ERR invalid expire time in '{command}' command"));
    };
    let key = &arguments[1];
    let Some(entry) = context.entry(key)? else { return Ok(Reply::Integer(0)) };
    if !condition.allows(entry.expiry_ms, at) {
        return Ok(Reply::Integer(0));
    }
    match u64::try_from(at) {
        Ok(at) if at > context.now_ms() => context.set_expiry(key, &entry, Some(at))?,
        _ => context.delete(key, &entry)?,
    }
    Ok(Reply::Integer(1))
}

/// EXPIRE key seconds [NX | XX | GT | LT]
pub fn expire(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expire_in(context, arguments, ExpiryForm { is_seconds: true, is_absolute: false }, "expire")
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT]
pub fn pexpire(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expire_in(context, arguments, ExpiryForm { is_seconds: false, is_absolute: false }, "pexpire")
}

/// EXPIREAT key seconds [NX | XX | GT | LT]
pub fn expireat(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expire_in(context, arguments, ExpiryForm { is_seconds: true, is_absolute: true }, "expireat")
}

/// PEXPIREAT key milliseconds [NX | XX | GT | LT]
pub fn pexpireat(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expire_in(context, arguments, ExpiryForm { is_seconds: false, is_absolute: true }, "pexpireat")
}

fn expiry(context: &mut Context<'_>, key: &[u8], of: impl Fn(u64, u64) -> u64) -> Outcome {
    let Some(entry) = context.entry(key)? else { return Ok(Reply::Integer(-2)) };
    let Some(at) = entry.expiry_ms else { return Ok(Reply::Integer(-1)) };
    Ok(Reply::Integer(i64::try_from(of(at, context.now_ms())).unwrap_or(i64::MAX)))
}

/// TTL key
pub fn ttl(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expiry(context, &arguments[1], |at, now| at.saturating_sub(now).saturating_add(500) / 1000)
}

/// PTTL key
pub fn pttl(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expiry(context, &arguments[1], |at, now| at.saturating_sub(now))
}

/// EXPIRETIME key
pub fn expiretime(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expiry(context, &arguments[1], |at, _| at.saturating_add(500) / 1000)
}

/// PEXPIRETIME key
pub fn pexpiretime(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    expiry(context, &arguments[1], |at, _| at)
}

/// PERSIST key
pub fn persist(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let key = &arguments[1];
    match context.entry(key)? {
        Some(entry) if entry.expiry_ms.is_some() => {
            context.set_expiry(key, &entry, None)?;
            Ok(Reply::Integer(1))
        }
        _ => Ok(Reply::Integer(0)),
    }
}
