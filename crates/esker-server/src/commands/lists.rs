//! Lists.

use super::arguments::{NO_SUCH_KEY, count, index_range, integer, is, signed_count, syntax};
use super::blocking::{block, mpop_arguments, timeout};
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Failure, Kind, Open, Outcome, item_key};
use bytes::Bytes;

/// The index of the format of the element `offset` behind the first.
fn index(open: &Open, offset: u64) -> i64 {
    open.collection.first.wrapping_add(offset as i64)
}

fn put_item(context: &mut Context<'_>, open: &Open, index: i64, value: &[u8]) -> Outcome<()> {
    context.put_element(&item_key(open.collection.generation, index), value)
}

/// Adds an element at an end.
fn push_one(context: &mut Context<'_>, open: &mut Open, is_front: bool, value: &[u8]) -> Outcome<()> {
    if is_front {
        open.collection.first = open.collection.first.wrapping_sub(1);
    }
    let place = if is_front { open.collection.first } else { index(open, open.count()) };
    put_item(context, open, place, value)?;
    open.collection.count += 1;
    Ok(())
}

/// Takes an element from an end; there is one.
fn pop_one(context: &mut Context<'_>, open: &mut Open, is_front: bool) -> Outcome<Bytes> {
    let place = if is_front { open.collection.first } else { index(open, open.count().saturating_sub(1)) };
    let value = context.item(open, place)?.map(|value| Bytes::copy_from_slice(&value)).unwrap_or_default();
    context.delete_element(&item_key(open.collection.generation, place))?;
    open.collection.count = open.collection.count.saturating_sub(1);
    if is_front {
        open.collection.first = open.collection.first.wrapping_add(1);
    }
    Ok(value)
}

fn push(context: &mut Context<'_>, arguments: &[Bytes], is_front: bool, creates: bool) -> Outcome {
    let key = &arguments[1];
    let mut open = match context.open(key, Kind::List)? {
        Some(open) => open,
        None if creates => context.create(key, Kind::List)?,
        None => return Ok(Reply::Integer(0)),
    };
    for value in &arguments[2..] {
        push_one(context, &mut open, is_front, value)?;
    }
    context.close(&open)?;
    context.filled(key);
    Ok(Reply::Integer(open.count() as i64))
}

/// LPUSH key element...
pub fn lpush(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    push(context, arguments, true, true)
}

/// RPUSH key element...
pub fn rpush(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    push(context, arguments, false, true)
}

/// LPUSHX key element...
pub fn lpushx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    push(context, arguments, true, false)
}

/// RPUSHX key element...
pub fn rpushx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    push(context, arguments, false, false)
}

/// Takes up to `limit` elements from an end.
fn pop_some(context: &mut Context<'_>, open: &mut Open, is_front: bool, limit: usize) -> Outcome<Vec<Reply>> {
    let mut popped = Vec::new();
    while popped.len() < limit && open.count() > 0 {
        popped.push(Reply::Bulk(pop_one(context, open, is_front)?));
    }
    if !popped.is_empty() {
        context.close(open)?;
    }
    Ok(popped)
}

fn pop(context: &mut Context<'_>, arguments: &[Bytes], is_front: bool) -> Outcome {
    let limit = match &arguments[2..] {
        [] => None,
        [number] => Some(count(number)?),
        _ => return super::arguments::arity(if is_front { "lpop" } else { "rpop" }),
    };
    let Some(mut open) = context.open(&arguments[1], Kind::List)? else {
        return Ok(if limit.is_some() { Reply::NilArray } else { Reply::Nil });
    };
    let mut popped = pop_some(context, &mut open, is_front, limit.unwrap_or(1))?;
    Ok(if limit.is_some() { Reply::Array(popped) } else { popped.pop().unwrap_or(Reply::Nil) })
}

/// LPOP key [count]
pub fn lpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    pop(context, arguments, true)
}

/// RPOP key [count]
pub fn rpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    pop(context, arguments, false)
}

/// LLEN key
pub fn llen(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let open = context.open(&arguments[1], Kind::List)?;
    Ok(Reply::Integer(open.map_or(0, |open| open.count() as i64)))
}

/// The offset that an index means, of which negative ones count from the end.
fn offset_of(open: &Open, index: i64) -> Option<u64> {
    let offset = if index < 0 { index.checked_add(open.count() as i64)? } else { index };
    u64::try_from(offset).ok().filter(|&offset| offset < open.count())
}

/// LINDEX key index
pub fn lindex(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::List)? else { return Ok(Reply::Nil) };
    let Some(offset) = offset_of(&open, integer(&arguments[2])?) else { return Ok(Reply::Nil) };
    Ok(Reply::optional(context.item(&open, index(&open, offset))?))
}

/// LSET key index element
pub fn lset(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let Some(open) = context.open(&arguments[1], Kind::List)? else { return Failure::refused(NO_SUCH_KEY) };
    let Some(offset) = offset_of(&open, integer(&arguments[2])?) else {
        return Failure::refused("ERR index out of range");
    };
    put_item(context, &open, index(&open, offset), &arguments[3])?;
    context.close(&open)?;
    Ok(Reply::OK)
}

/// LRANGE key start end
pub fn lrange(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (start, end) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let mut found = Vec::new();
    if let Some(open) = context.open(&arguments[1], Kind::List)?
        && let Some((start, end)) = index_range(start, end, open.count())
    {
        let generation = open.collection.generation;
        let (from, to) = (item_key(generation, index(&open, start)), item_key(generation, index(&open, end)));
        context.scan_elements(from..=to, false, |_, value| {
            found.push(Reply::bulk(value));
            true
        })?;
    }
    Ok(Reply::Array(found))
}

/// LTRIM key start end
pub fn ltrim(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (start, end) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let Some(mut open) = context.open(&arguments[1], Kind::List)? else { return Ok(Reply::OK) };
    let length = open.count();
    let (start, behind) = index_range(start, end, length).map_or((length, length), |(start, end)| (start, end + 1));
    for offset in (0..start).chain(behind..length) {
        context.delete_element(&item_key(open.collection.generation, index(&open, offset)))?;
    }
    open.collection.first = index(&open, start);
    open.collection.count = behind - start;
    context.close(&open)?;
    Ok(Reply::OK)
}

/// LINSERT key BEFORE | AFTER pivot element
pub fn linsert(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let is_after = is(&arguments[2], "AFTER");
    if !is_after && !is(&arguments[2], "BEFORE") {
        return syntax();
    }
    let Some(mut open) = context.open(&arguments[1], Kind::List)? else { return Ok(Reply::Integer(0)) };
    let items = context.items(&open)?;
    let Some(pivot) = items.iter().position(|item| item == &arguments[3]) else { return Ok(Reply::Integer(-1)) };
    let place = pivot + usize::from(is_after);
    // The shorter side makes room.
    if place <= items.len() / 2 {
        open.collection.first = open.collection.first.wrapping_sub(1);
        for (offset, item) in items[..place].iter().enumerate() {
            put_item(context, &open, index(&open, offset as u64), item)?;
        }
    } else {
        for (offset, item) in items.iter().enumerate().skip(place) {
            put_item(context, &open, index(&open, offset as u64 + 1), item)?;
        }
    }
    put_item(context, &open, index(&open, place as u64), &arguments[4])?;
    open.collection.count += 1;
    context.close(&open)?;
    Ok(Reply::Integer(open.count() as i64))
}

/// LREM key count element
pub fn lrem(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let wanted = integer(&arguments[2])?;
    let Some(mut open) = context.open(&arguments[1], Kind::List)? else { return Ok(Reply::Integer(0)) };
    let items = context.items(&open)?;
    let limit = if wanted == 0 { usize::MAX } else { usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX) };
    let mut matching: Vec<usize> = (0..items.len()).filter(|&offset| items[offset] == arguments[3]).collect();
    if wanted < 0 {
        matching.drain(..matching.len().saturating_sub(limit));
    } else {
        matching.truncate(limit);
    }
    let Some(&first) = matching.first() else { return Ok(Reply::Integer(0)) };
    let mut removed = matching.iter().peekable();
    let kept = items.iter().enumerate().filter(|(offset, _)| removed.next_if(|&&next| next == *offset).is_none());
    for (offset, (old, item)) in kept.enumerate().skip(first) {
        debug_assert!(old > offset);
        put_item(context, &open, index(&open, offset as u64), item)?;
    }
    for offset in items.len() - matching.len()..items.len() {
        context.delete_element(&item_key(open.collection.generation, index(&open, offset as u64)))?;
    }
    open.collection.count -= matching.len() as u64;
    context.close(&open)?;
    Ok(Reply::count(matching.len()))
}

/// Moves an element from an end of a list to an end of another one, or the same. `None` if there is
/// none.
fn move_one(
    context: &mut Context<'_>,
    (from, is_from_front): (&Bytes, bool),
    (to, is_to_front): (&Bytes, bool),
) -> Outcome<Option<Reply>> {
    let Some(mut source) = context.open(from, Kind::List)? else { return Ok(None) };
    if from == to {
        let value = pop_one(context, &mut source, is_from_front)?;
        push_one(context, &mut source, is_to_front, &value)?;
        context.close(&source)?;
        return Ok(Some(Reply::Bulk(value)));
    }
    let mut target = context.open_or_create(to, Kind::List)?;
    let value = pop_one(context, &mut source, is_from_front)?;
    context.close(&source)?;
    push_one(context, &mut target, is_to_front, &value)?;
    context.close(&target)?;
    context.filled(to);
    Ok(Some(Reply::Bulk(value)))
}

fn is_left(argument: &[u8]) -> Outcome<bool> {
    if is(argument, "LEFT") {
        Ok(true)
    } else if is(argument, "RIGHT") {
        Ok(false)
    } else {
        syntax()
    }
}

/// LMOVE from to LEFT | RIGHT LEFT | RIGHT
pub fn lmove(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (from, to) = ((&arguments[1], is_left(&arguments[3])?), (&arguments[2], is_left(&arguments[4])?));
    Ok(move_one(context, from, to)?.unwrap_or(Reply::Nil))
}

/// RPOPLPUSH from to
pub fn rpoplpush(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(move_one(context, (&arguments[1], false), (&arguments[2], true))?.unwrap_or(Reply::Nil))
}

/// BLMOVE from to LEFT | RIGHT LEFT | RIGHT timeout
pub fn blmove(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (from, to) = ((&arguments[1], is_left(&arguments[3])?), (&arguments[2], is_left(&arguments[4])?));
    let timeout_ms = timeout(&arguments[5])?;
    match move_one(context, from, to)? {
        Some(reply) => Ok(reply),
        None => block(&arguments[1..2], timeout_ms, Reply::Nil),
    }
}

/// BRPOPLPUSH from to timeout
pub fn brpoplpush(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let timeout_ms = timeout(&arguments[3])?;
    match move_one(context, (&arguments[1], false), (&arguments[2], true))? {
        Some(reply) => Ok(reply),
        None => block(&arguments[1..2], timeout_ms, Reply::Nil),
    }
}

/// The first of the keys that has elements, and elements taken from it.
fn pop_first(
    context: &mut Context<'_>,
    keys: &[Bytes],
    is_front: bool,
    limit: usize,
) -> Outcome<Option<(Bytes, Vec<Reply>)>> {
    for key in keys {
        if let Some(mut open) = context.open(key, Kind::List)? {
            return Ok(Some((key.clone(), pop_some(context, &mut open, is_front, limit)?)));
        }
    }
    Ok(None)
}

fn blocking_pop(context: &mut Context<'_>, arguments: &[Bytes], is_front: bool) -> Outcome {
    let Some((last, keys)) = arguments[1..].split_last() else { return syntax() };
    let timeout_ms = timeout(last)?;
    match pop_first(context, keys, is_front, 1)? {
        None => block(keys, timeout_ms, Reply::NilArray),
        Some((key, popped)) => Ok(Reply::Array([Reply::Bulk(key)].into_iter().chain(popped).collect())),
    }
}

/// BLPOP key... timeout
pub fn blpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    blocking_pop(context, arguments, true)
}

/// BRPOP key... timeout
pub fn brpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    blocking_pop(context, arguments, false)
}

fn mpop(context: &mut Context<'_>, arguments: &[Bytes], before: usize) -> Outcome<Option<Reply>> {
    let (keys, is_right, limit) = mpop_arguments(arguments, before, ["LEFT", "RIGHT"])?;
    let found = pop_first(context, keys, !is_right, limit)?;
    Ok(found.map(|(key, popped)| Reply::Array(vec![Reply::Bulk(key), Reply::Array(popped)])))
}

/// LMPOP number key... LEFT | RIGHT [COUNT count]
pub fn lmpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    Ok(mpop(context, arguments, 1)?.unwrap_or(Reply::NilArray))
}

/// BLMPOP timeout number key... LEFT | RIGHT [COUNT count]
pub fn blmpop(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let timeout_ms = timeout(&arguments[1])?;
    match mpop(context, arguments, 2)? {
        Some(reply) => Ok(reply),
        None => block(mpop_arguments(arguments, 2, ["LEFT", "RIGHT"])?.0, timeout_ms, Reply::NilArray),
    }
}

/// What LPOS looks for.
#[derive(Debug)]
struct Search {
    rank: i64,
    count: Option<usize>,
    looked_at: usize,
}

impl Search {
    fn parse(options: &[Bytes]) -> Outcome<Search> {
        let mut parsed = Search { rank: 1, count: None, looked_at: usize::MAX };
        let unsigned = |value: &[u8], error: &'static str| match parse_integer(value).map(usize::try_from) {
            Some(Ok(value)) => Ok(value),
            _ => Failure::refused(error),
        };
        for pair in options.chunks(2) {
            match pair {
                [option, value] if is(option, "RANK") => {
                    parsed.rank = signed_count(value)?;
                    if parsed.rank == 0 {
                        return Failure::refused(
                            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or \
                             use negative to start from the end of the list",
                        );
                    }
                }
                [option, value] if is(option, "COUNT") => {
                    parsed.count = Some(unsigned(value, "ERR COUNT can't be negative")?);
                }
                [option, value] if is(option, "MAXLEN") => {
                    parsed.looked_at = unsigned(value, "ERR MAXLEN can't be negative")?;
                    if parsed.looked_at == 0 {
                        parsed.looked_at = usize::MAX;
                    }
                }
                _ => return syntax(),
            }
        }
        Ok(parsed)
    }

    fn positions(&self, items: &[Bytes], wanted: &Bytes) -> Vec<usize> {
        let matches = |&(_, item): &(usize, &Bytes)| item == wanted;
        let all = items.iter().enumerate();
        let found: Vec<usize> = if self.rank > 0 {
            all.take(self.looked_at).filter(matches).map(|(offset, _)| offset).collect()
        } else {
            all.rev().take(self.looked_at).filter(matches).map(|(offset, _)| offset).collect()
        };
        let skipped = usize::try_from(self.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let limit = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        found.into_iter().skip(skipped).take(limit).collect()
    }
}

/// LPOS key element [RANK rank] [COUNT count] [MAXLEN length]
pub fn lpos(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let search = Search::parse(&arguments[3..])?;
    let items = match context.open(&arguments[1], Kind::List)? {
        Some(open) => context.items(&open)?,
        None => Vec::new(),
    };
    let found = search.positions(&items, &arguments[2]);
    Ok(match search.count {
        Some(_) => Reply::Array(found.into_iter().map(Reply::count).collect()),
        None => found.first().map_or(Reply::Nil, |&offset| Reply::count(offset)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_from_both_ends() {
        let items: Vec<Bytes> = ["a", "b", "a", "a"].iter().map(|item| Bytes::from(*item)).collect();
        let search = |rank, count, looked_at| Search { rank, count, looked_at };
        let wanted = Bytes::from("a");
        assert_eq!(search(1, Some(0), usize::MAX).positions(&items, &wanted), [0, 2, 3]);
        assert_eq!(search(-2, Some(0), usize::MAX).positions(&items, &wanted), [2, 0]);
        assert_eq!(search(2, None, usize::MAX).positions(&items, &wanted), [2]);
        assert_eq!(search(1, Some(0), 2).positions(&items, &wanted), [0]);
        assert!(Search::parse(&[Bytes::from("RANK"), Bytes::from("0")]).is_err());
    }
}
