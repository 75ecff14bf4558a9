//! A log for each user: lines are appended to a value that nobody reads for it.
//!
//! Run it with `cargo run --example append_log`, or with a directory as its argument to keep the
//! database: a second run then appends more.

use esker::merge::StringAppend;
use esker::{Db, KeyspaceOptions, Options, WriteOptions};
use std::error::Error;
use std::path::Path;

/// Appends to logs in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(directory, Options::default())?;
    // The delimiter goes between what is appended. It is part of the operator's stored name:
    // opening the keyspace with another one is refused.
    let logs = db.keyspace("logs", KeyspaceOptions::default().merge_operator(StringAppend::new("\n")))?;
    let before = logs.get("ada")?.map_or(0, |log| lines(&log));

    logs.merge("ada", "signed in")?;
    for page in 1..=1000 {
        logs.merge("ada", format!("read page {page}"))?;
    }
    // The others survive the death of this program; a synced write, and everything before it, also
    // a power failure.
    logs.merge_with("ada", "paid", &WriteOptions::new().sync(true))?;
    logs.merge("bob", "signed in")?;

    let log = logs.get("ada")?.ok_or("it was written")?;
    assert_eq!(lines(&log), before + 1002);
    assert!(log.ends_with(b"\nread page 1000\npaid"));
    println!("the log of ada has {} lines in {} bytes", lines(&log), log.len());

    // The engine combines what is appended as it goes. How far it was behind at worst:
    println!("operands that a read had to combine: {}", db.stats().longest_merge_chain);
    assert!(db.stats().longest_merge_chain < 1000);

    // A delete ends a log, and the next line begins another one. In a batch both happen at once.
    let mut batch = db.batch();
    batch.delete(&logs, "bob")?;
    batch.merge(&logs, "bob", "came back")?;
    batch.commit()?;
    assert_eq!(logs.get("bob")?.as_deref(), Some(&b"came back"[..]));

    drop(logs);
    db.close()?;
    Ok(())
}

/// The number of lines; an empty log has none.
fn lines(log: &[u8]) -> usize {
    if log.is_empty() { 0 } else { log.split(|&byte| byte == b'\n').count() }
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-append-log-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
