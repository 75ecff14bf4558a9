//! A gauge of maxima: the highest reading of each sensor, kept without reading it back.
//!
//! Run it with `cargo run --example max_gauge`, or with a directory as its argument to keep the
//! database.

use esker::merge::{Max, Min};
use esker::{Db, KeyspaceOptions, Options};
use std::error::Error;
use std::path::Path;

/// Writes readings to the database in `directory`, and looks at their extremes.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(directory, Options::default())?;
    let highest = db.keyspace("highest", KeyspaceOptions::default().merge_operator(Max))?;
    let lowest = db.keyspace("lowest", KeyspaceOptions::default().merge_operator(Min))?;

    // What an earlier run left: after a delete, the next reading is the highest and the lowest.
    for gauge in [&highest, &lowest] {
        gauge.delete("attic")?;
    }
    for (sensor, tenths) in [("attic", 215), ("cellar", 84), ("attic", 307), ("attic", -12), ("cellar", 91)] {
        // The same reading goes to both, or to neither.
        let mut batch = db.batch();
        batch.merge(&highest, sensor, ordered(tenths))?;
        batch.merge(&lowest, sensor, ordered(tenths))?;
        batch.commit()?;
    }

    // A snapshot is all keyspaces at one moment: highest and lowest are of the same readings,
    // whatever comes in meanwhile.
    let snapshot = db.snapshot();
    highest.merge("attic", ordered(999))?;
    for pair in snapshot.iter(&highest) {
        let (sensor, high) = pair?;
        let low = snapshot.get(&lowest, &sensor)?.ok_or("both are always written")?;
        let (high, low) = (reading(&high)?, reading(&low)?);
        println!("{:<8} {:>5.1} to {:>5.1}", String::from_utf8_lossy(&sensor), low, high);
        assert!(low <= high);
    }
    let attic = snapshot.get(&highest, "attic")?.ok_or("it was written")?;
    assert_eq!(reading(&attic)?, 30.7);
    let attic = highest.get("attic")?.ok_or("it was written")?;
    assert_eq!(reading(&attic)?, 99.9);

    drop((snapshot, highest, lowest));
    db.close()?;
    Ok(())
}

/// `Max` and `Min` compare byte strings from the front. So numbers are written with the most
/// significant byte first, and with the sign turned round, so that negative ones come before the
/// others.
fn ordered(tenths: i32) -> [u8; 4] {
    (tenths.cast_unsigned() ^ 1 << 31).to_be_bytes()
}

/// The reading that [`ordered`] wrote.
fn reading(bytes: &[u8]) -> Result<f64, Box<dyn Error>> {
    let tenths = (u32::from_be_bytes(bytes.try_into()?) ^ 1 << 31).cast_signed();
    Ok(f64::from(tenths) / 10.0)
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-max-gauge-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
