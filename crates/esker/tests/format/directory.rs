//! All files of a database, each by its name: none may be unknown, and none may have bytes that no
//! page explains.

use crate::blob::{Blob, Reference};
use crate::bytes::{Read, ensure};
use crate::chain::{self, Log};
use crate::log::Segment;
use crate::manifest::{self, Manifest};
use crate::operation::{Kind, Operation};
use crate::order::Order;
use crate::runs;
use crate::table::{self, Table};
use esker::env::mem::MemEnv;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a directory.
pub type Files = BTreeMap<String, Vec<u8>>;

/// How the files came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a database that was closed, or whose last handle was dropped: tables may be left over,
    /// each of them whole.
    InOrder,
    /// The same, and an earlier process ended at any moment: logs and blob files may be torn.
    Recovered,
    /// By a process or a machine that ended at any moment: files may be left over or cut short, and
    /// the ends of logs torn.
    Anyhow,
}

/// A database, decoded.
#[derive(Debug)]
pub struct Database {
    pub manifest: Manifest,
    pub log: Log,
    pub segments: BTreeMap<u64, Segment>,
    pub tables: BTreeMap<u64, Table>,
    pub blobs: BTreeMap<u64, Blob>,
}

/// The files of a directory of a real file system, without the directory that a repair leaves.
pub fn on_disk(directory: &Path) -> Files {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| entry.file_name() != "lost");
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    named.collect()
}

/// The files of a directory of a simulated one.
pub fn in_memory(env: &MemEnv, directory: &Path) -> Files {
    let paths = env.files().into_iter().filter(|path| path.parent() == Some(directory));
    let named = paths.map(|path| {
        let bytes = env.file_bytes(&path).unwrap();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), bytes)
    });
    named.collect()
}

impl Database {
    /// Decodes every file.
    pub fn read(files: &Files, left: Left) -> Read<Database> {
        let (name, number) = manifest::current(files.get("CURRENT").ok_or("no CURRENT")?)?;
        let bytes = files.get(&name).ok_or_else(|| format!("no {name}"))?;
        let manifest = manifest::read(bytes, number, left == Left::Anyhow)?;
        let blobs = blobs(files, left)?;
        let tables = tables(files, &manifest, &blobs)?;
        let segments = segments(files, left)?;
        let is_whole = |sequence: u64, operation: &Operation| {
            let is_needed = manifest.keyspaces.get(&operation.keyspace()).is_some_and(|at| sequence > at.flushed);
            !is_needed || operation.reference().is_none_or(|reference| value(&blobs, reference).is_ok())
        };
        let log = chain::read(&segments, &manifest, left, &is_whole)?;
        let database = Database { manifest, log, segments, tables, blobs };
        if left != Left::Anyhow {
            database.check_nothing_is_left_over(files, &name)?;
        }
        if left == Left::InOrder {
            database.blobs.values().try_for_each(Blob::check_whole)?;
        }
        Ok(database)
    }

    /// The large value of a reference.
    pub fn value(&self, reference: &[u8]) -> Read<Vec<u8>> {
        value(&self.blobs, reference)
    }

    /// Whether a table belongs to a keyspace, or did and was not removed before the end.
    fn is_table_known(&self, number: u64, bytes: &[u8]) -> Read<bool> {
        if self.tables.contains_key(&number) {
            return Ok(true);
        }
        let owner = table::owner(number, bytes)?;
        let table = table::read(number, bytes, Order::named(&owner.comparator)?)?;
        ensure!(table.properties.sequences.1 <= self.manifest.last_sequence, "table {number} has unknown writes");
        Ok(owner.id < self.manifest.next_keyspace)
    }

    fn check_nothing_is_left_over(&self, files: &Files, manifest: &str) -> Read<()> {
        let mut numbers = BTreeSet::new();
        for (name, bytes) in files {
            let number = name.split_once('.').and_then(|(digits, _)| digits.parse::<u64>().ok());
            let is_known = match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
                "wal" => true,
                "table" => self.is_table_known(number.unwrap_or(0), bytes)?,
                "blob" => number.is_some(),
                _ => name == "CURRENT" || name == manifest || check_other(name, bytes)?,
            };
            ensure!(is_known, "no page explains {name}, {} bytes", bytes.len());
            let given = number.filter(|_| !name.ends_with(".wal")).or(manifest::number(name));
            ensure!(given.is_none_or(|given| numbers.insert(given)), "two files with the number of {name}");
            let used = number.unwrap_or(0).max(manifest::number(name).unwrap_or(0));
            let is_given_out = used < self.manifest.next_file || name.ends_with(".wal") || name.ends_with(".blob");
            ensure!(is_given_out, "{name}, and the next file is {}", self.manifest.next_file);
        }
        Ok(())
    }
}

/// Checks a file that holds nothing of the contents. False if no page has its name.
fn check_other(name: &str, bytes: &[u8]) -> Read<bool> {
    match name {
        "LOCK" => Ok(bytes.strip_suffix(b"\n").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))),
        "RESERVE" => Ok(bytes.len() <= 512 << 10 && bytes.iter().all(|&byte| byte == 0)),
        _ => Ok(false),
    }
}

fn value(blobs: &BTreeMap<u64, Blob>, reference: &[u8]) -> Read<Vec<u8>> {
    let reference = Reference::read(reference)?;
    let blob = blobs.get(&reference.file).ok_or_else(|| format!("no blob file {}", reference.file))?;
    blob.value(reference)
}

/// The files whose names are a number and that ending.
fn numbered<'a>(files: &'a Files, ending: &str) -> Vec<(u64, &'a str, &'a [u8])> {
    let named = files.iter().filter_map(|(name, bytes)| {
        let digits = name.strip_suffix(ending)?;
        let number = digits.parse().ok()?;
        (format!("{number:06}") == digits).then_some((number, name.as_str(), bytes.as_slice()))
    });
    named.collect()
}

fn blobs(files: &Files, left: Left) -> Read<BTreeMap<u64, Blob>> {
    let mut blobs = BTreeMap::new();
    for (number, name, bytes) in numbered(files, ".blob") {
        match Blob::read(number, bytes.to_vec()) {
            Ok(blob) => drop(blobs.insert(number, blob)),
            Err(what) => ensure!(left != Left::InOrder, "{name}: {what}"),
        }
    }
    Ok(blobs)
}

fn tables(files: &Files, manifest: &Manifest, blobs: &BTreeMap<u64, Blob>) -> Read<BTreeMap<u64, Table>> {
    let mut tables = BTreeMap::new();
    for (id, keyspace) in &manifest.keyspaces {
        let order = Order::named(&keyspace.comparator)?;
        for (&number, stated) in &keyspace.tables {
            let name = format!("{number:06}.table");
            let bytes = files.get(&name).ok_or_else(|| format!("no {name}"))?;
            ensure!(bytes.len() as u64 == stated.bytes, "{name} has {} bytes: {stated:?}", bytes.len());
            let table = table::read(number, bytes, order).map_err(|what| format!("{name}: {what}"))?;
            let owner = table.properties.keyspace.as_ref().ok_or_else(|| format!("{name} has no section 128"))?;
            ensure!(owner.id == *id && owner.comparator == keyspace.comparator, "{name} belongs to {owner:?}");
            for entry in table.entries.iter().filter(|entry| entry.kind == Kind::PutBlob) {
                value(blobs, &entry.value).map_err(|what| format!("{name}: {what}"))?;
            }
            ensure!(tables.insert(number, table).is_none(), "{name} belongs to two keyspaces");
        }
        runs::check(keyspace, &tables, order)?;
    }
    Ok(tables)
}

fn segments(files: &Files, left: Left) -> Read<BTreeMap<u64, Segment>> {
    let mut segments = BTreeMap::new();
    for (_, name, bytes) in numbered(files, ".wal") {
        match Segment::read(name, bytes.to_vec())? {
            Some(segment) => {
                let number = segment.number;
                ensure!(segments.insert(number, segment).is_none(), "two segments with the number {number}");
            }
            None => ensure!(left != Left::InOrder, "{name} has no header"),
        }
    }
    Ok(segments)
}
