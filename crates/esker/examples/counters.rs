//! Counters: page views that are counted without reading what is there.
//!
//! Run it with `cargo run --example counters`, or with a directory as its argument to keep the
//! database: a second run then goes on counting.

use esker::merge::{Int64Add, UInt64Add};
use esker::{Db, KeyspaceOptions, Options};
use std::error::Error;
use std::path::Path;

/// Counts in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(directory, Options::default())?;

    // A keyspace gets its merge operator when it is created, and keeps it for ever. `UInt64Add`
    // adds numbers of eight bytes.
    let views = db.keyspace("views", KeyspaceOptions::default().merge_operator(UInt64Add))?;
    let before = count(views.get("/index.html")?.as_deref())?;

    // A merge says what to do with the value, not what the value is. It reads nothing, so that it
    // costs as little as a put, and two threads that count the same page never get in each other's
    // way.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    views.merge("/index.html", 1u64.to_le_bytes()).expect("the disk is not full");
                }
            });
        }
    });
    views.merge("/about.html", 7u64.to_le_bytes())?;

    // A get sees every merge that returned before it. A key that was never counted has no value.
    let now = count(views.get("/index.html")?.as_deref())?;
    assert_eq!(now, before + 4000);
    assert!(views.get("/nothing.html")?.is_none());

    // What an operator cannot take is refused before anything is written.
    assert!(views.merge("/index.html", "one").is_err());

    // `Int64Add` is signed, and stays at its limits instead of wrapping around: for balances and
    // gauges that go both ways.
    let stock = db.keyspace("stock", KeyspaceOptions::default().merge_operator(Int64Add))?;
    stock.put("screws", 100i64.to_le_bytes())?;
    // A batch is one write: both numbers change, or neither does.
    let mut batch = db.batch();
    batch.merge(&stock, "screws", (-12i64).to_le_bytes())?;
    batch.merge(&stock, "screws sold", 12i64.to_le_bytes())?;
    batch.commit()?;
    let screws = stock.get("screws")?.ok_or("there are some")?;
    assert_eq!(i64::from_le_bytes(screws.as_ref().try_into()?), 88);

    // Scans combine merges as gets do.
    for pair in views.iter() {
        let (page, value) = pair?;
        println!("{:<12} {}", String::from_utf8_lossy(&page), count(Some(&value))?);
    }
    drop((views, stock));
    db.close()?;
    Ok(())
}

/// The number in a value; no value counts as 0.
fn count(value: Option<&[u8]>) -> Result<u64, Box<dyn Error>> {
    match value {
        Some(bytes) => Ok(u64::from_le_bytes(bytes.try_into()?)),
        None => Ok(0),
    }
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-counters-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
