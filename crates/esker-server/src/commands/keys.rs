//! Keys as a whole.

use super::arguments::{NO_DATABASE, NO_SUCH_KEY, arity, integer, is, syntax};
use super::descriptions::help;
use crate::protocol::{Reply, parse_integer};
use crate::store::{Body, Collection, Context, Entry, Failure, Kind, Outcome};
use bytes::Bytes;

/// DEL key... and UNLINK
pub fn del(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let mut deleted = 0;
    for key in &arguments[1..] {
        if let Some(entry) = context.entry(key)? {
            context.delete(key, &entry)?;
            deleted += 1;
        }
    }
    Ok(Reply::Integer(deleted))
}

/// EXISTS key... and TOUCH
pub fn exists(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let mut found = 0;
    for key in &arguments[1..] {
        found += i64::from(context.entry(key)?.is_some());
    }
    Ok(Reply::Integer(found))
}

/// TYPE key
pub fn type_of(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let entry = context.entry(&arguments[1])?;
    Ok(Reply::Status(entry.map_or("none", |entry| entry.kind().name()).into()))
}

/// Puts an entry at a key, over what is there, and wakes those who wait for elements there.
fn place(context: &mut Context<'_>, key: &Bytes, entry: &Entry) -> Outcome<()> {
    context.put_as(key, entry)?;
    context.filled(key);
    Ok(())
}

fn rename_to(context: &mut Context<'_>, arguments: &[Bytes], replaces: bool) -> Outcome<bool> {
    let (from, to) = (&arguments[1], &arguments[2]);
    let Some(entry) = context.entry(from)? else { return Failure::refused(NO_SUCH_KEY) };
    if from == to {
        return Ok(replaces);
    }
    if let Some(old) = context.entry(to)? {
        if !replaces {
            return Ok(false);
        }
        context.delete(to, &old)?;
    }
    context.forget(from)?;
    place(context, to, &entry)?;
    Ok(true)
}

/// RENAME key to
pub fn rename(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    rename_to(context, arguments, true).map(|_| Reply::OK)
}

/// RENAMENX key to
pub fn renamenx(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    rename_to(context, arguments, false).map(|is_done| Reply::Integer(i64::from(is_done)))
}

/// Copies an entry of the current database to a key of another one, or the same. False if
/// something is there and is to stay.
fn copy_to(context: &mut Context<'_>, entry: &Entry, (database, to): (usize, &Bytes), replaces: bool) -> Outcome<bool> {
    let from_database = context.database();
    let elements = match &entry.body {
        Body::String(..) => Vec::new(),
        Body::Collection(collection) => elements_of(context, collection)?,
    };
    context.switch(database)?;
    let old = context.entry(to)?;
    let is_free = old.is_none() || replaces;
    if is_free {
        if let Some(old) = &old {
            context.delete(to, old)?;
        }
        let mut copied = entry.clone();
        if let Body::Collection(collection) = &mut copied.body {
            collection.generation = context.create(to, collection.kind)?.collection.generation;
            let generation = collection.generation.to_be_bytes();
            for (mut key, value) in elements {
                key[..8].copy_from_slice(&generation);
                context.put_element(&key, &value)?;
            }
        }
        // The expiry is noted as that of a new collection.
        context.set_expiry(to, &Entry { expiry_ms: None, body: copied.body }, entry.expiry_ms)?;
        context.filled(to);
    }
    context.switch(from_database)?;
    Ok(is_free)
}

/// All elements of a collection, as they are stored.
fn elements_of(context: &mut Context<'_>, collection: &Collection) -> Outcome<Vec<(Vec<u8>, Vec<u8>)>> {
    let (from, to) = (collection.generation.to_be_bytes(), (collection.generation + 1).to_be_bytes());
    let mut elements = Vec::new();
    context.scan_elements(from..to, false, |key, value| {
        elements.push((key.to_vec(), value.to_vec()));
        true
    })?;
    Ok(elements)
}

fn database(context: &Context<'_>, argument: &[u8]) -> Outcome<usize> {
    let number = integer(argument)?;
    match usize::try_from(number) {
        Ok(number) if number < context.databases() => Ok(number),
        _ => Failure::refused(NO_DATABASE),
    }
}

const SAME: &str = "ERR source and destination objects are the same";

/// COPY key to [DB number] [REPLACE]
pub fn copy(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (mut to_database, mut replaces) = (context.database(), false);
    let mut options = arguments[3..].iter();
    while let Some(option) = options.next() {
        if is(option, "REPLACE") {
            replaces = true;
        } else if is(option, "DB") {
            let Some(number) = options.next() else { return syntax() };
            to_database = database(context, number)?;
        } else {
            return syntax();
        }
    }
    let (from, to) = (&arguments[1], &arguments[2]);
    if from == to && to_database == context.database() {
        return Failure::refused(SAME);
    }
    let Some(entry) = context.entry(from)? else { return Ok(Reply::Integer(0)) };
    Ok(Reply::Integer(i64::from(copy_to(context, &entry, (to_database, to), replaces)?)))
}

/// MOVE key number
pub fn move_key(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let to_database = database(context, &arguments[2])?;
    if to_database == context.database() {
        return Failure::refused(SAME);
    }
    let key = &arguments[1];
    let Some(entry) = context.entry(key)? else { return Ok(Reply::Integer(0)) };
    let is_moved = copy_to(context, &entry, (to_database, key), false)?;
    if is_moved {
        context.delete(key, &entry)?;
    }
    Ok(Reply::Integer(i64::from(is_moved)))
}

/// DBSIZE
pub fn dbsize(context: &mut Context<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Integer(i64::try_from(context.count_keys()?).unwrap_or(i64::MAX)))
}

fn check_flush(arguments: &[Bytes]) -> Outcome<()> {
    match &arguments[1..] {
        [] => Ok(()),
        [mode] if is(mode, "SYNC") || is(mode, "ASYNC") => Ok(()),
        _ => syntax(),
    }
}

/// FLUSHDB [ASYNC | SYNC]
pub fn flushdb(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    check_flush(arguments)?;
    context.clear()?;
    Ok(Reply::OK)
}

/// FLUSHALL [ASYNC | SYNC]
pub fn flushall(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    check_flush(arguments)?;
    let current = context.database();
    for number in 0..context.databases() {
        // One that was never used stays without keyspaces.
        if context.is_created(number) {
            context.switch(number)?;
            context.clear()?;
        }
    }
    context.switch(current)?;
    Ok(Reply::OK)
}

/// SWAPDB first second
pub fn swapdb(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let parsed =
        |argument: &[u8], error: &'static str| parse_integer(argument).map_or_else(|| Failure::refused(error), Ok);
    let first = parsed(&arguments[1], "ERR invalid first DB index")?;
    let second = parsed(&arguments[2], "ERR invalid second DB index")?;
    let number = |number: i64| usize::try_from(number).ok().filter(|&number| number < context.databases());
    let (Some(first), Some(second)) = (number(first), number(second)) else { return Failure::refused(NO_DATABASE) };
    if first != second {
        context.swap(first, second)?;
    }
    Ok(Reply::OK)
}

/// The name of the form that a server in memory would keep the value in: clients ask for it.
fn encoding(context: &mut Context<'_>, key: &Bytes, entry: &Entry) -> Outcome<&'static str> {
    let Body::Collection(collection) = &entry.body else {
        let value = entry.string().unwrap_or_default();
        return Ok(match value.len() {
            ..=20 if parse_integer(value).is_some() => "int",
            ..=44 => "embstr",
            _ => "raw",
        });
    };
    let limits = context.thresholds();
    let (small, large, entries, bytes) = match collection.kind {
        Kind::Set => ("intset", "hashtable", limits.set_entries, usize::MAX),
        Kind::SortedSet => ("listpack", "skiplist", limits.sorted_set_entries, limits.sorted_set_value_bytes),
        Kind::Hash => ("listpack", "hashtable", limits.hash_entries, limits.hash_value_bytes),
        Kind::List | Kind::String => return Ok("quicklist"),
    };
    if collection.count > entries {
        return Ok(large);
    }
    let Some(open) = context.open(key, collection.kind)? else { return Ok(small) };
    let members = context.members(&open)?;
    let is_small = |member: &Bytes, value: &Bytes| match collection.kind {
        Kind::Set => parse_integer(member).is_some(),
        Kind::Hash => member.len() <= bytes && value.len() <= bytes,
        _ => member.len() <= bytes,
    };
    Ok(if members.iter().all(|(member, value)| is_small(member, value)) { small } else { large })
}

/// OBJECT ENCODING | REFCOUNT | IDLETIME | FREQ key
pub fn object(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let name = String::from_utf8_lossy(&arguments[1]).to_lowercase();
    if name == "help" {
        return Ok(help("object"));
    }
    if !["encoding", "refcount", "idletime", "freq"].contains(&name.as_str()) {
        let name = String::from_utf8_lossy(&arguments[1]);
        return Failure::refused(format!("ERR unknown subcommand '{name}'. Try OBJECT HELP."));
    }
    if arguments.len() != 3 {
        return arity(&format!("object|{name}"));
    }
    let key = &arguments[2];
    let Some(entry) = context.entry(key)? else { return Ok(Reply::Nil) };
    match name.as_str() {
        "encoding" => Ok(Reply::bulk(encoding(context, key, &entry)?)),
        "refcount" => Ok(Reply::Integer(1)),
        "idletime" => Ok(Reply::Integer(0)),
        _ => Failure::refused(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        ),
    }
}

/// MEMORY USAGE key [SAMPLES count]: the bytes of the key and of all that it holds, as they are
/// stored, without what compression saves.
pub fn memory(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let given = String::from_utf8_lossy(&arguments[1]);
    if is(&arguments[1], "HELP") && arguments.len() == 2 {
        return Ok(help("memory"));
    }
    if !is(&arguments[1], "USAGE") {
        return Failure::refused(format!("ERR unknown subcommand '{given}'. Try MEMORY HELP."));
    }
    let Some((key, options)) = arguments[2..].split_first() else { return arity("memory|usage") };
    for option in options.chunks(2) {
        match option {
            [option, count] if is(option, "SAMPLES") && integer(count)? >= 0 => {}
            _ => return syntax(),
        }
    }
    let Some(entry) = context.entry(key)? else { return Ok(Reply::Nil) };
    let mut bytes = key.len() + entry.string().map_or(32, <[u8]>::len);
    if let Body::Collection(collection) = &entry.body {
        bytes += elements_of(context, collection)?.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    }
    Ok(Reply::count(bytes))
}
