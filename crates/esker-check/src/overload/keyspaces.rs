//! Thousands of keyspaces in one database: all there after every open, and what an open costs.

use super::machine::{limit, mib, status_bytes};
use super::share::{Share, failed};
use crate::Checked;
use esker::{Db, KeyspaceOptions, Options};
use rustix::process::Resource;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

fn options() -> Options {
    Options::default().memory_budget_bytes(128 << 20)
}

fn name(number: u64) -> String {
    format!("keyspace-{number}")
}

/// In the first round all are written, then some: another table for each of them would be more open
/// files than many systems allow.
fn is_written(number: u64, round: u64) -> bool {
    round == 1 || number.is_multiple_of(10)
}

/// What the keyspace of that number holds after so many rounds.
fn value(seed: u64, number: u64, round: u64) -> String {
    let round = if is_written(number, round) { round } else { round - 1 };
    format!("{seed}, {number}, {round}")
}

fn write(db: &Db, share: &Share, round: u64) -> Checked<()> {
    for number in 0..share.keyspaces {
        let keyspace = db.keyspace(&name(number), KeyspaceOptions::default()).map_err(failed("a new keyspace"))?;
        if is_written(number, round) {
            keyspace.put("key", value(share.seed, number, round)).map_err(failed("a write"))?;
        }
    }
    Ok(())
}

/// Compares names, values and that nothing else is there.
fn check(db: &Db, share: &Share, round: u64) -> Checked<()> {
    let names: BTreeSet<String> = db.keyspaces().into_iter().collect();
    let expected: BTreeSet<String> = (0..share.keyspaces).map(name).collect();
    if names != expected {
        let wrong = names.symmetric_difference(&expected).next();
        return Err(format!("{} keyspaces of {}; wrong: {wrong:?}", names.len(), share.keyspaces));
    }
    for number in 0..share.keyspaces {
        let keyspace = db.existing_keyspace(&name(number)).map_err(failed("a keyspace"))?;
        let found: Vec<_> = keyspace.iter().collect::<esker::Result<_>>().map_err(failed("a scan"))?;
        let right = value(share.seed, number, round);
        let is_right = matches!(&found[..], [(key, value)] if &key[..] == b"key" && value[..] == *right.as_bytes());
        if !is_right {
            return Err(format!("{} holds {found:?}, not {right:?}", keyspace.name()));
        }
    }
    Ok(())
}

fn open(path: &Path) -> Checked<(Db, f64)> {
    let started = Instant::now();
    let db = Db::open(path, options()).map_err(failed("open"))?;
    Ok((db, started.elapsed().as_secs_f64()))
}

pub(super) fn run(share: &Share) -> Checked<String> {
    // Every table is an open file.
    limit(Resource::Nofile, None)?;
    let path = share.directory.join("db");
    let (db, _) = open(&path)?;
    let started = Instant::now();
    write(&db, share, 1)?;
    let created = started.elapsed().as_secs_f64();
    check(&db, share, 1)?;
    drop(db);
    let (db, from_log) = open(&path)?;
    check(&db, share, 1)?;
    write(&db, share, 2)?;
    let started = Instant::now();
    db.flush().map_err(failed("a flush"))?;
    let flushed = started.elapsed().as_secs_f64();
    db.close().map_err(failed("close"))?;
    let (db, from_tables) = open(&path)?;
    check(&db, share, 2)?;
    let tables = db.stats().table_files;
    drop(db);
    Ok(format!(
        "{} keyspaces, all there: created in {created:.1} s, opened from the log in {from_log:.2} s, flushed in {flushed:.1} s, {tables} \
         tables opened in {from_tables:.2} s, {} of memory at most",
        share.keyspaces,
        mib(status_bytes("VmHWM")?)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Share, check, write};
    use esker::env::mem::MemEnv;
    use esker::{Db, Options};
    use std::sync::Arc;

    #[test]
    fn a_keyspace_too_few_or_an_old_value_is_noticed() {
        let share = Share::decode(&["", "1", "0", "0", "3"].map(str::to_string)).unwrap();
        let db = Db::open("db", Options::default().env(Arc::new(MemEnv::new()))).unwrap();
        write(&db, &share, 1).unwrap();
        assert_eq!(check(&db, &share, 1), Ok(()));
        assert!(check(&db, &share, 2).is_err());
        assert!(check(&db, &Share { keyspaces: 4, ..share.clone() }, 1).unwrap_err().contains("3 keyspaces of 4"));
        assert!(check(&db, &Share { keyspaces: 2, ..share }, 1).unwrap_err().contains("3 keyspaces of 2"));
    }
}
