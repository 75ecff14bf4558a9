//! The two scenarios. Keys are decimal numbers without padding, drawn from as many as there are
//! puts, so that about 63 % of them are written; what is read back is a sample of those that were.

use super::time::Time;
use crate::judgement::ttl_rows::{EMPTIED, GONE, LIVING, SIZED};
use crate::random::LehmerRandom;
use esker::{Db, Keyspace, KeyspaceOptions, Options, Ttl, WriteOptions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const VALUE_BYTES: usize = 2048;
const SAMPLE: usize = 100;
const SEED: u32 = 301;

/// Something that must hold.
#[derive(Debug, Serialize)]
pub struct Check {
    pub scenario: &'static str,
    pub what: String,
    pub held: bool,
    /// What was found, for people.
    pub found: String,
    /// The number it turns on, where judgement wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<u64>,
    /// What that is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

struct Checks {
    scenario: &'static str,
    list: Vec<Check>,
}

impl Checks {
    fn add(&mut self, what: impl Into<String>, held: bool, found: impl Into<String>) {
        let (what, found) = (what.into(), found.into());
        self.list.push(Check { scenario: self.scenario, what, held, found, figure: None, of: None });
    }

    /// The same with the number it turns on.
    fn add_figure(&mut self, what: &str, held: bool, figure: u64, of: Option<u64>, found: String) {
        self.list.push(Check { scenario: self.scenario, what: what.into(), held, found, figure: Some(figure), of });
    }
}

fn failed(error: esker::Error) -> String {
    error.to_string()
}

/// Runs both, each in a fresh directory below `base`.
pub fn run(base: &Path, data_mib: u64, ttl_s: u64, time: &Time) -> Result<Vec<Check>, String> {
    let puts = data_mib * (1 << 20) / VALUE_BYTES as u64;
    let mut checks = Checks { scenario: "read", list: Vec::new() };
    read(&base.join("read"), puts, ttl_s, time, &mut checks)?;
    if !time.interrupt.is_requested() {
        checks.scenario = "compaction";
        compaction(base, puts, ttl_s, time, &mut checks)?;
    }
    Ok(checks.list)
}

fn open(directory: &Path, time: &Time) -> Result<(Db, Keyspace), String> {
    let db = Db::open(directory, Options::default().clock(time.clock.clone())).map_err(failed)?;
    let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    let keyspace = db.keyspace("ttl", options).map_err(failed)?;
    Ok((db, keyspace))
}

/// What was loaded.
struct Loaded {
    /// The keys written, with the time at which each was written last.
    keys: BTreeMap<String, u64>,
    began_ms: u64,
    ended_ms: u64,
}

impl Loaded {
    /// Keys written, spread over all of them.
    fn sample(&self) -> Vec<&String> {
        self.keys.keys().step_by((self.keys.len() / SAMPLE).max(1)).take(SAMPLE).collect()
    }

    /// A time at which every key has expired.
    fn all_expired_ms(&self, ttl_s: u64) -> u64 {
        self.ended_ms + ttl_s * 1000
    }
}

fn load(keyspace: &Keyspace, puts: u64, ttl_s: u64, time: &Time) -> Result<Loaded, String> {
    let mut random = LehmerRandom::new(SEED);
    let value = vec![b'a'; VALUE_BYTES];
    let options = WriteOptions::new().ttl(Duration::from_secs(ttl_s));
    let mut keys = BTreeMap::new();
    let began_ms = time.now_ms();
    for _ in 0..puts {
        let key = (random.uniform(puts) + 1).to_string();
        keyspace.put_with(&key, &value, &options).map_err(failed)?;
        keys.insert(key, time.now_ms());
        if time.interrupt.is_requested() {
            break;
        }
    }
    Ok(Loaded { keys, began_ms, ended_ms: time.now_ms() })
}

fn check_loading(loaded: &Loaded, ttl_s: u64, checks: &mut Checks) {
    let seconds = (loaded.ended_ms - loaded.began_ms) as f64 / 1000.0;
    checks.add(
        "loading ends before the first key expires",
        loaded.ended_ms - loaded.began_ms < ttl_s * 1000,
        format!("{seconds:.2} s for {} keys", loaded.keys.len()),
    );
}

fn read(directory: &Path, puts: u64, ttl_s: u64, time: &Time, checks: &mut Checks) -> Result<(), String> {
    let (db, keyspace) = open(directory, time)?;
    let loaded = load(&keyspace, puts, ttl_s, time)?;
    check_loading(&loaded, ttl_s, checks);
    let sample = loaded.sample();
    let count = || -> Result<usize, String> {
        let mut found = 0;
        for key in &sample {
            found += usize::from(keyspace.get(key).map_err(failed)?.is_some_and(|value| value.len() == VALUE_BYTES));
        }
        Ok(found)
    };
    let found = count()?;
    let all = sample.len();
    let text = |found: usize| format!("{found} of {all}");
    checks.add_figure(LIVING, found == all, found as u64, Some(all as u64), text(found));
    let listed = keyspace.iter().count();
    checks.add(
        "an iterator finds every key",
        listed == loaded.keys.len(),
        format!("{listed} of {}", loaded.keys.len()),
    );
    time.wait_until(loaded.all_expired_ms(ttl_s) - 1);
    let last = loaded.keys.iter().max_by_key(|(_, written_ms)| **written_ms).map(|(key, _)| key.as_str());
    if let (Some(last), true) = (last, time.stepped.is_some()) {
        let alive = keyspace.get(last).map_err(failed)?.is_some();
        checks.add("the key written last lives for the whole time", alive, "1 ms before its expiry");
    }
    time.wait_until(loaded.all_expired_ms(ttl_s));
    let found = count()?;
    checks.add_figure(GONE, found == 0, found as u64, Some(all as u64), text(found));
    let listed = keyspace.iter().count() + keyspace.iter().rev().count();
    checks.add("an iterator finds nothing, in either direction", listed == 0, format!("{listed} keys"));
    drop(keyspace);
    db.close().map_err(failed)
}

fn compaction(base: &Path, puts: u64, ttl_s: u64, time: &Time, checks: &mut Checks) -> Result<(), String> {
    let empty = base.join("empty");
    let (db, keyspace) = open(&empty, time)?;
    drop(keyspace);
    db.close().map_err(failed)?;
    let empty_bytes = directory_bytes(&empty)?;

    let directory = base.join("compaction");
    let (db, keyspace) = open(&directory, time)?;
    let loaded = load(&keyspace, puts, ttl_s, time)?;
    check_loading(&loaded, ttl_s, checks);
    // All digits lie in this range.
    let size = || keyspace.approximate_size("-".."A").map_err(failed);
    let before = size()?;
    checks.add_figure(SIZED, before > 0, before, None, format!("{before} bytes"));
    time.wait_until(loaded.all_expired_ms(ttl_s));
    db.compact().map_err(failed)?;
    let after = size()?;
    checks.add_figure(EMPTIED, after == 0, after, None, format!("{after} bytes"));
    let listed = keyspace.iter().count();
    checks.add("an iterator finds nothing", listed == 0, format!("{listed} keys"));
    let stats = db.stats();
    let tables = stats.table_files;
    checks.add("no table is left", tables == 0, format!("{tables} tables, {} bytes", stats.table_bytes));
    let written = stats.expired_entries;
    checks.add("the drops are counted", written > 0, format!("{written} entries; {} keys", loaded.keys.len()));
    drop(keyspace);
    db.close().map_err(failed)?;
    let left = directory_bytes(&directory)?;
    // The log's segment may be a larger one than that of a database that was never written.
    let held = left <= empty_bytes + (1 << 20);
    checks.add("closed, it is as small as an empty database", held, format!("{left} bytes; empty: {empty_bytes}"));
    Ok(())
}

/// The files of a directory, each with what the system knows of it.
pub fn files(directory: &Path) -> Result<Vec<(PathBuf, Metadata)>, String> {
    let known = |entry: io::Result<DirEntry>| entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)));
    let listed = std::fs::read_dir(directory).and_then(|entries| entries.map(known).collect());
    listed.map_err(|error| format!("cannot list {}: {error}", directory.display()))
}

/// Bytes allocated to the files of a directory.
pub fn directory_bytes(directory: &Path) -> Result<u64, String> {
    Ok(files(directory)?.iter().map(|(_, data)| data.blocks() * 512).sum())
}
