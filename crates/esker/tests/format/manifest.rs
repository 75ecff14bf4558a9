//! `CURRENT` and the manifest: doc/format/manifest.md.

use crate::bytes::{Input, Read, checksum, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a database, as its manifest has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    pub version: u32,
    pub number: u64,
    pub next_file: u64,
    pub last_sequence: u64,
    pub log_floor: u64,
    pub log_synced: (u64, u64),
    /// Segment and offset of the end of the log, if the database was closed.
    pub closed: Option<(u64, u64)>,
    pub next_keyspace: u64,
    /// The first write whose change is kept, and its segment.
    pub changes: Option<(u64, u64)>,
    /// Loads, drops and former settings, for readers of changes.
    pub events: Vec<Event>,
    /// Up to which writes changes may be lost, and the segments of those behind them.
    pub recovered: Vec<(u64, u64)>,
    pub keyspaces: BTreeMap<u64, Keyspace>,
    /// Whether a record follows the last edit that repeats `next_file`.
    pub is_vouched: bool,
    /// Whether the end of the file is none of a record.
    pub is_torn: bool,
    /// The tags of all fields that were met.
    pub fields: BTreeSet<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keyspace {
    pub name: String,
    pub comparator: String,
    pub operator: String,
    pub ttl: u64,
    /// Every write up to there is in tables.
    pub flushed: u64,
    /// The number of the style, and its parameter.
    pub style: (u64, u64),
    pub tables: BTreeMap<u64, Table>,
}

/// What happened to a keyspace at a place in the order of writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub sequence: u64,
    pub keyspace: u64,
    /// 14 a load, 15 and 17 a drop, 16 other settings.
    pub tag: u64,
    pub former: Settings,
}

/// What a keyspace was called before, and so on, as far as the event says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub name: String,
    pub comparator: Option<String>,
    pub operator: String,
    pub ttl: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub run: u64,
    pub bytes: u64,
}

/// The name that `CURRENT` has, and its number.
pub fn current(line: &[u8]) -> Read<(String, u64)> {
    let line = std::str::from_utf8(line).map_err(|problem| problem.to_string())?;
    let (name, rest) = line.split_once(' ').ok_or("CURRENT without a space")?;
    ensure!(rest == format!("{:08x}\n", checksum(name.as_bytes(), 0, 0)), "CURRENT: {line:?}");
    Ok((name.into(), number(name).ok_or_else(|| format!("CURRENT names {name}"))?))
}

/// The number in the name of a manifest.
pub fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("MANIFEST-")?;
    let number = digits.parse().ok()?;
    (format!("{number:06}") == digits).then_some(number)
}

/// Reads the manifest of that number. What follows the last record that verifies is only allowed
/// where the end may be torn.
pub fn read(bytes: &[u8], number: u64, may_be_torn: bool) -> Read<Manifest> {
    let mut input = Input::new(bytes);
    ensure!(input.take(8)? == b"ESKERMAN", "magic number");
    let mut manifest = Manifest { version: input.u32()?, number: input.u64()?, ..Manifest::default() };
    ensure!(input.u32()? == checksum(&bytes[..20], 0, 0), "checksum of the header");
    ensure!(manifest.number == number, "number {} in a manifest named {number}", manifest.number);
    for index in 0.. {
        let at = input.at();
        let Ok(edit) = record(&mut input, number) else {
            ensure!(index > 0 && may_be_torn, "the record at {at} does not verify");
            ensure!(!anything_intact(bytes, at, number), "a record behind {at} verifies");
            manifest.is_torn = true;
            break;
        };
        // Everything, and then each edit with its voucher.
        let is_voucher = index > 0 && index % 2 == 0;
        let next_file = manifest.next_file;
        let tags = apply(&mut manifest, edit).map_err(|what| format!("edit at {at}: {what}"))?;
        if is_voucher {
            ensure!(tags == [1] && manifest.next_file == next_file, "no voucher at {at}");
        }
        manifest.is_vouched = index == 0 || is_voucher;
        manifest.fields.extend(tags);
        if input.is_empty() {
            break;
        }
    }
    ensure!(manifest.version == version(&manifest), "version {}", manifest.version);
    Ok(manifest)
}

/// The least version that has what this manifest has.
fn version(manifest: &Manifest) -> u32 {
    let has = |tags: &[u64]| tags.iter().any(|tag| manifest.fields.contains(tag));
    match () {
        () if has(&[18]) => 6,
        () if has(&[16, 17]) => 5,
        () if has(&[13, 14, 15]) => 4,
        () if manifest.keyspaces.values().any(|keyspace| keyspace.comparator != "bytewise") => 4,
        () => 3,
    }
}

fn record<'a>(input: &mut Input<'a>, number: u64) -> Read<&'a [u8]> {
    let (at, begin) = (input.at() as u64, input.clone());
    let sum = input.u32()?;
    let length = input.u32()? as usize;
    let edit = input.take(length)?;
    let mut covered = begin;
    covered.take(4)?;
    ensure!(sum == checksum(covered.take(4 + length)?, number, at), "checksum");
    Ok(edit)
}

/// Whether a record verifies anywhere behind that place.
fn anything_intact(bytes: &[u8], behind: usize, number: u64) -> bool {
    (behind + 1..bytes.len()).any(|at| {
        let mut input = Input::new(bytes);
        input.take(at).is_ok() && record(&mut input, number).is_ok()
    })
}

/// Applies the fields of an edit, and tells their tags.
fn apply(manifest: &mut Manifest, edit: &[u8]) -> Read<Vec<u64>> {
    let (mut input, mut tags) = (Input::new(edit), Vec::new());
    while !input.is_empty() {
        let tag = input.varint()?;
        field(manifest, tag, &mut input)?;
        tags.push(tag);
    }
    Ok(tags)
}

fn field(manifest: &mut Manifest, tag: u64, input: &mut Input<'_>) -> Read<()> {
    match tag {
        1 => manifest.next_file = manifest.next_file.max(input.varint()?),
        2 => manifest.last_sequence = manifest.last_sequence.max(input.varint()?),
        3 => manifest.log_floor = manifest.log_floor.max(input.varint()?),
        8 => manifest.closed = Some((input.varint()?, input.varint()?)),
        10 => manifest.log_synced = manifest.log_synced.max((input.varint()?, input.varint()?)),
        12 => manifest.next_keyspace = manifest.next_keyspace.max(input.varint()?),
        13 => {
            let changes = (input.varint()?, input.varint()?);
            manifest.changes = Some(manifest.changes.unwrap_or_default().max(changes));
            manifest.events.retain(|event| event.sequence >= changes.0);
            manifest.recovered.retain(|recovered| recovered.0 >= changes.0);
        }
        18 => manifest.recovered.push((input.varint()?, input.varint()?)),
        14..=17 => event(manifest, tag, input)?,
        _ => field_of_a_keyspace(manifest, tag, input)?,
    }
    Ok(())
}

fn event(manifest: &mut Manifest, tag: u64, input: &mut Input<'_>) -> Read<()> {
    let (sequence, keyspace) = (input.varint()?, input.varint()?);
    let mut former = Settings::default();
    if tag != 14 {
        former.name = input.text()?;
    }
    if tag != 14 && tag != 16 {
        former.comparator = Some(input.text()?);
    }
    if tag >= 16 {
        (former.operator, former.ttl) = (input.text()?, input.varint()?);
    }
    manifest.events.push(Event { sequence, keyspace, tag, former });
    Ok(())
}

fn field_of_a_keyspace(manifest: &mut Manifest, tag: u64, input: &mut Input<'_>) -> Read<()> {
    let id = input.varint()?;
    if tag == 4 {
        let (name, comparator, operator) = (input.text()?, input.text()?, input.text()?);
        let ttl = input.varint()?;
        let keyspace = Keyspace { name, comparator, operator, ttl, ..Keyspace::default() };
        ensure!(manifest.keyspaces.insert(id, keyspace).is_none(), "keyspace {id} is created twice");
        manifest.next_keyspace = manifest.next_keyspace.max(id + 1);
        return Ok(());
    }
    if tag == 11 {
        ensure!(manifest.keyspaces.remove(&id).is_some(), "keyspace {id} is dropped, and is not there");
        return Ok(());
    }
    let keyspace = manifest.keyspaces.get_mut(&id).ok_or_else(|| format!("no keyspace {id}"))?;
    match tag {
        5 => keyspace.flushed = keyspace.flushed.max(input.varint()?),
        6 => {
            let (run, number, bytes) = (input.varint()?, input.varint()?, input.varint()?);
            let before = keyspace.tables.insert(number, Table { run, bytes });
            ensure!(before.is_none(), "table {number} is added twice");
        }
        7 => {
            let number = input.varint()?;
            ensure!(keyspace.tables.remove(&number).is_some(), "table {number} is removed, and is not there");
        }
        9 => keyspace.style = (input.varint()?, input.varint()?),
        other => return Err(format!("field {other}")),
    }
    Ok(())
}
