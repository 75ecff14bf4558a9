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
    // As strtoul reads it: nothing is 0, and a negative number counts from the end.
    let (is_negative, digits) = match argument {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let is_number = argument.is_empty() || digits.first().is_some_and(u8::is_ascii_digit);
    let text = std::str::from_utf8(if digits.is_empty() { b"0" } else { digits }).ok();
    match text.filter(|_| is_number).and_then(|text| text.parse::<u64>().ok()) {
        Some(cursor) => Ok(if is_negative { cursor.wrapping_neg() } else { cursor }),
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

/// Draws of more than one out of so many members walk over all of them once, each member with the
/// same probability. For fewer, a member is drawn by a random place: with the probability of the
/// gap before it.
const WALKED: u64 = 32;
/// Collections up to this size are always walked over.
const WALKED_ALWAYS: u64 = 4096;
/// The reply of a draw, whose size the client chooses and not what is stored, is at most so long.
const DRAWN_BYTES_MAX: usize = 64 << 20;
/// What a drawn member takes in memory beside its bytes, about.
const DRAWN_OVERHEAD_BYTES: usize = 64;

fn is_walked(open: &Open, count: u64) -> bool {
    open.count() <= WALKED_ALWAYS || count.saturating_mul(WALKED) >= open.count()
}

/// Draws `count` members, each at most once.
pub fn draw_distinct(context: &mut Context<'_>, open: &Open, count: u64) -> Outcome<Vec<(Bytes, Bytes)>> {
    if count >= open.count() {
        return context.members(open);
    }
    if is_walked(open, count) {
        return walk_distinct(context, open, count);
    }
    let mut drawn = std::collections::BTreeMap::new();
    // Members that few places lead to could be drawn without end.
    let draws = count.saturating_mul(4).saturating_add(64);
    for _ in 0..draws {
        if drawn.len() as u64 == count {
            let mut drawn: Vec<_> = drawn.into_iter().collect();
            context.random.shuffle(&mut drawn);
            return Ok(drawn);
        }
        drawn.extend(random_member(context, open)?);
    }
    walk_distinct(context, open, count)
}

/// Draws in one walk: each member with the probability that the number still wanted has among those
/// that are left.
fn walk_distinct(context: &mut Context<'_>, open: &Open, count: u64) -> Outcome<Vec<(Bytes, Bytes)>> {
    let mut random = context.random.clone();
    let (mut wanted, mut left) = (count, open.count());
    let mut drawn = Vec::new();
    members_from(context, open, 0, |_, member, value| {
        if random.below(left) < wanted {
            drawn.push((Bytes::copy_from_slice(member), Bytes::copy_from_slice(value)));
            wanted -= 1;
        }
        left = left.saturating_sub(1);
        wanted > 0
    })?;
    random.shuffle(&mut drawn);
    context.random = random;
    Ok(drawn)
}

/// Counts what a draw takes in memory; false beyond the limit.
#[derive(Debug, Default)]
struct DrawnBytes(usize);

impl DrawnBytes {
    fn add(&mut self, (member, value): (&[u8], &[u8]), times: usize) -> bool {
        // What is drawn more than once shares its bytes here, but not in the reply.
        let each = member.len() + value.len() + DRAWN_OVERHEAD_BYTES;
        self.0 = self.0.saturating_add(each.saturating_mul(times));
        self.0 <= DRAWN_BYTES_MAX
    }
}

fn too_many<T>() -> Outcome<T> {
    Failure::refused(format!("ERR the reply would be longer than {DRAWN_BYTES_MAX} bytes; ask for fewer"))
}

/// Draws `count` members with replacement.
///
/// # Errors
/// A draw of more than [`DRAWN_BYTES_MAX`] is refused; those of the engine.
pub fn draw_any(context: &mut Context<'_>, open: &Open, count: u64) -> Outcome<Vec<(Bytes, Bytes)>> {
    if count > (DRAWN_BYTES_MAX / DRAWN_OVERHEAD_BYTES) as u64 {
        return too_many();
    }
    let mut bytes = DrawnBytes::default();
    let mut drawn = Vec::new();
    if !is_walked(open, count) {
        for _ in 0..count {
            let Some((member, value)) = random_member(context, open)? else { break };
            if !bytes.add((&member, &value), 1) {
                return too_many();
            }
            drawn.push((member, value));
        }
        return Ok(drawn);
    }
    let mut ranks: Vec<u64> = (0..count).map(|_| context.random.below(open.count())).collect();
    ranks.sort_unstable();
    let mut ranks = &ranks[..];
    let (mut rank, mut is_within) = (0, true);
    members_from(context, open, 0, |_, member, value| {
        let times = ranks.partition_point(|drawn| *drawn <= rank);
        is_within = bytes.add((member, value), times);
        if is_within && times > 0 {
            let pair = (Bytes::copy_from_slice(member), Bytes::copy_from_slice(value));
            drawn.extend(std::iter::repeat_n(pair, times));
        }
        ranks = &ranks[times..];
        rank += 1;
        is_within && !ranks.is_empty()
    })?;
    if !is_within {
        return too_many();
    }
    context.random.shuffle(&mut drawn);
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
