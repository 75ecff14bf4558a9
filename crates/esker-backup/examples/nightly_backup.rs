//! A service that backs itself up each night, keeps the last backups, and is restored after a loss.
//!
//!     cargo run --package esker-backup --example nightly_backup [DIRECTORY]

use esker::{Counters, Db, Options};
use esker_backup::{Create, Prune, Target, Transfers};
use std::error::Error;
use std::num::NonZeroU64;
use std::path::Path;

/// How many backups stay.
const KEPT: usize = 3;

/// What a timer would call each night, while the service goes on.
fn night(db: &Db, target: &Target) -> Result<u64, Box<dyn Error>> {
    let created = target.create(db, &Create::default().verify_source(true))?;
    let pruned = target.prune(&Prune::default().keep_last(KEPT))?;
    println!(
        "backup {}: {} of {} files copied; backups {:?} removed",
        created.backup.number, created.copied_files, created.backup.files, pruned.backups
    );
    Ok(created.backup.number)
}

/// Everything, in this directory.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(directory.join("data"), Options::default())?;
    let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
    // Another disk, or `Target::url("s3://bucket/hits", ...)`; no faster than 100 MB a second.
    let slowly = Transfers::default().bytes_per_second(NonZeroU64::new(100_000_000));
    let target = Target::new_directory(directory.join("backups"))?.with(slowly);

    let mut numbers = Vec::new();
    for day in 1..=5_u64 {
        for page in 0..1000 {
            hits.add(format!("/page/{page}"), day)?;
        }
        numbers.push(night(&db, &target)?);
    }
    drop(hits);
    db.close()?;

    // The disk is lost; the newest backup that verifies comes back.
    std::fs::remove_dir_all(directory.join("data"))?;
    let report = target.verify(None)?;
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert_eq!(report.backups, numbers[numbers.len() - KEPT..]);
    let restored = target.restore(None, directory.join("data"))?;
    assert_eq!(Some(&restored.number), numbers.last());

    let db = Db::open(directory.join("data"), Options::default())?;
    let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
    assert_eq!(hits.get("/page/7")?, 1 + 2 + 3 + 4 + 5);

    // The day before yesterday, beside it.
    let earlier = numbers[numbers.len() - 3];
    target.restore(Some(earlier), directory.join("earlier"))?;
    let then = Db::open_read_only(directory.join("earlier"), Options::default())?;
    let hits: Counters<String> = Counters::new(then.existing_keyspace("hits")?)?;
    assert_eq!(hits.get("/page/7")?, 1 + 2 + 3);
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-backup-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
