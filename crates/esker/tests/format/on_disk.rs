//! Databases on a real file system, with a background thread: closed, dropped, copied, repaired.

use crate::compare::{answers, assert_same};
use crate::directory::{Database, Left, on_disk};
use crate::machine::chosen;
use crate::random::seeds;
use crate::script::Script;
use esker::{CheckpointMode, Clock, Db, ManualClock, Options, WalMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-format-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

struct Place {
    options: Options,
    clock: Arc<ManualClock>,
}

impl Place {
    /// Decodes a directory, and compares it with what the engine says of it.
    fn compare(&self, directory: &Path, left: Left) {
        let files = on_disk(directory);
        let contents = Database::read(&files, left).and_then(|database| database.contents(self.clock.now_ms()));
        let contents = contents.unwrap_or_else(|what| panic!("{}: {what}", directory.display()));
        let db = Db::open_read_only(directory, self.options.clone()).unwrap();
        assert_same(&contents, &answers(&db));
    }
}

#[test]
fn what_is_on_a_disk_is_as_the_pages_say() {
    let scratch = Scratch::new();
    for seed in seeds(4) {
        println!("ESKER_SEED={seed}");
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let mode = if seed % 2 == 0 { WalMode::Mapped } else { WalMode::Plain };
        let options = chosen(Options::default().clock(clock.clone()), seed).wal_mode(mode);
        let place = Place { options, clock };
        let directory = scratch.0.join(format!("{seed}"));
        let mut script = Script::new(seed, place.clock.clone());
        for life in 0..2 {
            let db = Db::open(&directory, place.options.clone()).unwrap();
            script.run(&db, 150).unwrap();
            for mode in [CheckpointMode::Link, CheckpointMode::Copy] {
                let copy = scratch.0.join(format!("{seed} {life} {mode:?}"));
                db.checkpoint_with(&copy, mode).unwrap();
                place.compare(&copy, Left::InOrder);
            }
            script.run(&db, 150).unwrap();
            if life == 0 {
                drop(db);
            } else {
                db.close().unwrap();
            }
            place.compare(&directory, Left::InOrder);
        }
        std::fs::write(directory.join("CURRENT"), "none").unwrap();
        Db::repair(&directory, place.options.clone()).unwrap();
        place.compare(&directory, Left::Anyhow);
        Db::open(&directory, place.options.clone()).unwrap().close().unwrap();
        place.compare(&directory, Left::Recovered);
    }
}
