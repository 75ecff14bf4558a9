//! SCAN and its like: a part of the keys or elements, and where to go on.
//!
//! The cursor is the place of the next one (`store/encoding.rs`). Whatever is there from the first
//! call to the last is yielded once.

use super::arguments::{NO_INTEGER, is, syntax};
use crate::protocol::{Reply, parse_integer};
use crate::store::{Context, Failure, Kind, Open, Outcome, key_place, matches_glob, member_of, prefix_of_members};
use bytes::Bytes;

/// Smaller collections are yielded whole.
const WHOLE: u64 = 128;

/// What a scan yields.
#[derive(Debug)]
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<&'a [u8]>,
}

impl Options<'_> {
    fn parse(options: &[Bytes], has_kinds: bool) -> Outcome<Options<'_>> {
        let mut parsed = Options { pattern: None, count: 10, kind: None };
        for pair in options.chunks(2) {
            match pair {
                [option, count] if is(option, "COUNT") => {
                    let Some(count) = parse_integer(count) else { return Failure::refused(NO_INTEGER) };
                    match usize::try_from(count) {
                        Ok(count) if count > 0 => parsed.count = count,
                        _ => return syntax(),
                    }
                }
                [option, pattern] if is(option, "MATCH") => parsed.pattern = Some(pattern),
                [option, kind] if is(option, "TYPE") && has_kinds => parsed.kind = Some(kind),
                _ => return syntax(),
            }
        }
        Ok(parsed)
    }

    fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| matches_glob(pattern, name))
    }
}

fn cursor(argument: &[u8]) -> Outcome<u64> {
    let text = std::str::from_utf8(argument).ok();
    match text.and_then(|text| text.parse().ok()) {
        Some(cursor) => Ok(cursor),
        None => Failure::refused("ERR invalid cursor"),
    }
}

/// Counts what was visited, and says when to stop: not between two of the same place.
#[derive(Debug)]
struct Progress {
    left: usize,
    last: u64,
    next: u64,
}

impl Progress {
    fn new(count: usize) -> Progress {
        Progress { left: count, last: 0, next: 0 }
    }

    fn visits(&mut self, place: u64) -> bool {
        if self.left == 0 && place != self.last {
            self.next = place;
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.last = place;
        true
    }
}

fn reply(next: u64, found: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(found)])
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub fn scan(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let from = cursor(&arguments[1])?;
    let options = Options::parse(&arguments[2..], true)?;
    let mut progress = Progress::new(options.count);
    let mut found = Vec::new();
    if from >> 48 == 0 {
        context.scan_keys(&key_place(from), |place, key, entry| {
            if !progress.visits(place) {
                return false;
            }
            if options.kind.is_none_or(|kind| is(kind, entry.kind().name())) && options.matches(key) {
                found.push(Reply::bulk(key));
            }
            true
        })?;
    }
    Ok(reply(progress.next, found))
}

/// KEYS pattern
pub fn keys(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let mut found = Vec::new();
    context.scan_keys(&key_place(0), |_, key, _| {
        if matches_glob(&arguments[1], key) {
            found.push(Reply::bulk(key));
        }
        true
    })?;
    Ok(Reply::Array(found))
}

/// Yields members from a place on.
fn members_from(
    context: &mut Context<'_>,
    open: &Open,
    place: u64,
    mut each: impl FnMut(u64, &[u8], &[u8]) -> bool,
) -> Outcome<()> {
    let prefix = prefix_of_members(open.collection.generation);
    let from = [&prefix[..], &key_place(place)].concat();
    let mut end = prefix.clone();
    // The kinds of elements are letters, so that this is behind all members and before the rest.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    context.scan_elements(from..end, false, |key, value| match key.get(prefix.len()..).and_then(member_of) {
        Some((place, member)) => each(place, member, value),
        None => true,
    })
}

fn scan_members(
    context: &mut Context<'_>,
    arguments: &[Bytes],
    kind: Kind,
    mut show: impl FnMut(&[u8], &[u8], &mut Vec<Reply>),
) -> Outcome {
    let from = cursor(&arguments[2])?;
    let Some(open) = context.open(&arguments[1], kind)? else { return Ok(reply(0, Vec::new())) };
    let mut options = Options::parse(&arguments[3..], false)?;
    if open.count() <= WHOLE {
        options.count = usize::MAX;
    }
    let mut progress = Progress::new(options.count);
    let mut found = Vec::new();
    if from >> 48 == 0 {
        members_from(context, &open, from, |place, member, value| {
            if !progress.visits(place) {
                return false;
            }
            if options.matches(member) {
                show(member, value, &mut found);
            }
            true
        })?;
    }
    Ok(reply(progress.next, found))
}

/// HSCAN key cursor [MATCH pattern] [COUNT count]
pub fn hscan(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    scan_members(context, arguments, Kind::Hash, |field, value, found| {
        found.push(Reply::bulk(field));
        found.push(Reply::bulk(value));
    })
}

/// SSCAN key cursor [MATCH pattern] [COUNT count]
pub fn sscan(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    scan_members(context, arguments, Kind::Set, |member, _, found| found.push(Reply::bulk(member)))
}

/// ZSCAN key cursor [MATCH pattern] [COUNT count]
pub fn zscan(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    scan_members(context, arguments, Kind::SortedSet, |member, score, found| {
        let score = score.try_into().map_or(0.0, f64::from_le_bytes);
        found.push(Reply::bulk(member));
        found.push(Reply::bulk(crate::protocol::format_double(score)));
    })
}

/// A member from a random place, with its value.
fn random_member(context: &mut Context<'_>, open: &Open) -> Outcome<Option<(Bytes, Bytes)>> {
    let mut found = None;
    let place = context.random.below(1 << 48);
    for from in [place, 0] {
        members_from(context, open, from, |_, member, value| {
            found = Some((Bytes::copy_from_slice(member), Bytes::copy_from_slice(value)));
            false
        })?;
        if found.is_some() {
            break;
        }
    }
    Ok(found)
}

/// Up to so many members are read whole to draw from them, each with the same probability. From
/// more a member is drawn by a random place: with the probability of the gap before it.
const DRAWN_FROM_ALL: u64 = 4096;

/// Draws `count` members, each at most once.
pub fn draw_distinct(context: &mut Context<'_>, open: &Open, count: u64) -> Outcome<Vec<(Bytes, Bytes)>> {
    if open.count() <= DRAWN_FROM_ALL || count >= open.count() / 4 {
        let mut all = context.members(open)?;
        if count < open.count() {
            context.random.shuffle(&mut all);
            all.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        return Ok(all);
    }
    let mut drawn = std::collections::BTreeMap::new();
    while (drawn.len() as u64) < count {
        let Some((member, value)) = random_member(context, open)? else { break };
        drawn.insert(member, value);
    }
    let mut drawn: Vec<_> = drawn.into_iter().collect();
    context.random.shuffle(&mut drawn);
    Ok(drawn)
}

/// Draws `count` members, any of them as often as it comes.
pub fn draw_any(context: &mut Context<'_>, open: &Open, count: u64) -> Outcome<Vec<(Bytes, Bytes)>> {
    const DRAWN_MAX: u64 = 1 << 27;
    if count > DRAWN_MAX {
        return Failure::refused(super::arguments::OUT_OF_RANGE);
    }
    let mut drawn = Vec::new();
    if open.count() <= DRAWN_FROM_ALL {
        let all = context.members(open)?;
        for _ in 0..count {
            drawn.extend(all.get(context.random.below(all.len() as u64) as usize).cloned());
        }
    } else {
        for _ in 0..count {
            drawn.extend(random_member(context, open)?);
        }
    }
    Ok(drawn)
}

/// RANDOMKEY
pub fn randomkey(context: &mut Context<'_>, _: &[Bytes]) -> Outcome {
    let mut found = Reply::Nil;
    let place = context.random.below(1 << 48);
    for from in [place, 0] {
        context.scan_keys(&key_place(from), |_, key, _| {
            found = Reply::bulk(key);
            false
        })?;
        if found != Reply::Nil {
            break;
        }
    }
    Ok(found)
}
