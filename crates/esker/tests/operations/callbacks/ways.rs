//! How a database is made to call each callback, which is at work in the call itself or in the
//! background.

use super::hook::{Calls, Site, merging, ordered};
use crate::common::{DIRECTORY, keyspace, wait_until};
use esker::env::fault::{Action, Class, Rule};
use esker::{CheckpointMode, Db, Error, Keyspace, Result, WriteOptions};
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;

/// How the database is made to call the callback.
#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    pub callback: &'static str,
    pub make: fn(&Site),
    /// Whether calls are refused. They are not where no lock is held.
    pub refuses: bool,
    /// Whether a disk fails: calls may tell of that, too.
    pub has_faults: bool,
    /// Whether it needs a background thread.
    pub in_background: bool,
    /// The thread in which the call is made, if it is not to be the first that calls the callback.
    pub thread: Option<&'static str>,
    /// Whether the callback is called although somebody reads what was there before.
    pub beside_readers: bool,
    /// Whether the database is closed by it.
    pub closes: bool,
}

const fn way(name: &'static str, callback: &'static str, make: fn(&Site)) -> Way {
    let (refuses, has_faults, in_background, beside_readers, closes) = (true, false, false, true, false);
    Way { name, callback, make, refuses, has_faults, in_background, thread: None, beside_readers, closes }
}

impl Way {
    /// Nothing is refused.
    const fn free(self) -> Way {
        Way { refuses: false, ..self }
    }

    const fn faulty(self) -> Way {
        Way { has_faults: true, ..self }
    }

    const fn background(self) -> Way {
        Way { in_background: true, ..self }
    }

    /// The call is made in the background thread, and in no other one.
    const fn only_in_background(self) -> Way {
        Way { in_background: true, thread: Some("esker-background"), ..self }
    }

    const fn without_readers(self) -> Way {
        Way { beside_readers: false, ..self }
    }

    const fn closing(self) -> Way {
        Way { closes: true, ..self }
    }
}

/// What was under way when a callback that may do everything closed the database.
fn unless_closed<T>(result: Result<T>) {
    match result {
        Ok(_) | Err(Error::ReadOnly { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn expiring(site: &Site) -> Keyspace {
    keyspace(&site.db, "t")
}

/// Several memtables, each of several tables.
fn many(k: &Keyspace) {
    for number in 0..2000u64 {
        k.put((number % 200).to_be_bytes(), [number as u8; 400]).unwrap();
    }
}

/// Several segments of the log.
fn puts(site: &Site) {
    (0..1000u32).for_each(|n| site.k.put(n.to_be_bytes(), [7; 200]).unwrap());
}

/// The background thread compacts all keyspaces. It has nothing to flush: that is done here.
fn compact_in_background(site: &Site) {
    site.db.flush().unwrap();
    site.db.wait_idle().unwrap();
}

fn record(site: &Site) {
    site.db.record(&mut Calls(site.hook.clone()));
}

fn large(k: &Keyspace) {
    k.put("large", [7; 5000]).unwrap();
}

fn synced() -> WriteOptions {
    WriteOptions::new().sync(true)
}

/// Until the background thread, which waits before it writes a table, is what writers wait for.
fn stall(site: &Site) {
    site.hook.hold_up();
    for number in 0..10_000u32 {
        if site.hook.was_called() {
            return;
        }
        unless_closed(site.k.put(number.to_be_bytes(), [7; 400]));
    }
}

fn fail_tables(site: &Site) {
    let rule = Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull));
    site.faults.add(rule.on_names_with(".table").from_then_on());
    site.k.put("more", "1").unwrap();
    assert!(site.db.flush().is_err());
}

/// Files are checked for faults under their mappings from the first one in the process on.
#[cfg(unix)]
fn fault_under_a_mapping() {
    use crate::common::Scratch;
    use esker::env::{Env, os::OsEnv};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let scratch = Scratch::new();
        let path = scratch.path().join("mapped");
        std::fs::write(&path, [7; 1 << 16]).unwrap();
        let file = OsEnv::new().open(&path).unwrap();
        let mapping = file.mapping().unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(std::hint::black_box(mapping).iter().map(|byte| u64::from(*byte)).sum::<u64>(), 0);
        assert!(file.check_mapping().is_err());
    });
}

/// Callbacks but those of the environment.
pub const WAYS: &[Way] = &[
    way("merge", "MergeOperator::check_operand", |s| s.k.merge("base", "2").unwrap()),
    way("merge", "MergeOperator::partial_merge", |s| s.k.merge("together", "2").unwrap()).without_readers(),
    way("merge", "MergeOperator::full_merge", |s| s.k.merge("base", "2").unwrap()).without_readers(),
    way("get", "MergeOperator::full_merge", |s| assert!(s.k.get("apart").unwrap().is_some())),
    way("multi_get", "MergeOperator::full_merge", |s| {
        assert!(s.k.multi_get(["apart"]).pop().unwrap().unwrap().is_some());
    }),
    way("iter", "MergeOperator::full_merge", |s| assert_eq!(s.k.iter().map(Result::unwrap).count(), 3)),
    way("transaction", "MergeOperator::full_merge", |s| {
        let mut transaction = s.db.transaction();
        assert!(transaction.get(&s.k, "apart").unwrap().is_some());
        transaction.merge(&s.k, "apart", "3").unwrap();
        transaction.commit().unwrap();
    }),
    way("long chain", "MergeOperator::full_merge", |s| (0..200).for_each(|_| s.k.merge("apart", "3").unwrap())),
    way("flush", "MergeOperator::full_merge", |s| {
        s.k.put("more", "1").unwrap();
        let snapshot = s.db.snapshot();
        // Not combined with what the snapshot sees.
        s.k.merge("more", "2").unwrap();
        drop(snapshot);
        s.db.flush().unwrap();
    }),
    way("compact", "MergeOperator::full_merge", |s| s.db.compact().unwrap()),
    way("background", "MergeOperator::full_merge", |s| many(&s.k)),
    // Asked before any lock is taken.
    way("keyspace", "MergeOperator::name", |s| {
        unless_closed(s.db.keyspace("k", merging(&Calls(s.hook.clone()))));
    })
    .free(),
    way("compact", "CompactionFilter::decide", |s| s.db.compact().unwrap()).without_readers(),
    way("background", "CompactionFilter::decide", |s| many(&s.k)),
    way("flush", "FilterPolicy::create_filter", |s| {
        s.k.put("more", "1").unwrap();
        s.db.flush().unwrap();
    }),
    way("compact", "FilterPolicy::name", |s| s.db.compact().unwrap()),
    way("memtables", "FilterPolicy::create_filter", |s| many(&s.k)),
    way("get", "FilterPolicy::key_may_match", |s| assert!(s.k.get("apart").unwrap().is_some())),
    // Sorts the memtable with a lock held, searches tables, merges.
    way("iter", "Comparator::compare", |s| assert_eq!(s.o.iter().map(Result::unwrap).count(), 3)),
    way("get", "Comparator::compare", |s| {
        s.db.flush().unwrap();
        s.db.compact().unwrap();
        assert!(s.o.get("b").unwrap().is_some());
    }),
    // With the writer lock, in the memtable's list of range tombstones.
    way("delete_range", "Comparator::compare", |s| {
        let mut batch = s.db.batch();
        batch.delete_range(&s.o, "x".."y").unwrap();
        batch.delete_range(&s.o, "v".."w").unwrap();
        batch.commit().unwrap();
    }),
    way("transaction", "Comparator::compare", |s| {
        let mut transaction = s.db.transaction();
        transaction.put(&s.o, "d", "").unwrap();
        assert_eq!(transaction.iter(&s.o).count(), 4);
        transaction.commit().unwrap();
    }),
    way("flush", "Comparator::compare", |s| s.db.flush().unwrap()),
    way("compact", "Comparator::compare", |s| s.db.compact().unwrap()),
    way("ingest", "Comparator::compare", |s| {
        assert_eq!(s.o.ingest([("x", "1"), ("y", "2")]).unwrap().entries, 2);
    }),
    way("many puts", "Comparator::compare", |s| many(&s.o)),
    way("flush in the background", "Comparator::compare", |s| many(&s.o)).only_in_background(),
    way("compaction in the background", "Comparator::compare", compact_in_background).only_in_background(),
    // Asked before any lock is taken.
    way("keyspace", "Comparator::name", |s| {
        unless_closed(s.db.keyspace("o", ordered(&Calls(s.hook.clone()))));
    })
    .free(),
    way("get", "Clock::now_ms", |s| assert!(expiring(s).get("base").unwrap().is_some())),
    way("put", "Clock::now_ms", |s| expiring(s).put("base", "b").unwrap()),
    way("merge", "Clock::now_ms", |s| expiring(s).merge("apart", "3").unwrap()),
    way("merge", "MergeOperator::may_delete", |s| expiring(s).merge("apart", "3").unwrap()),
    way("snapshot", "Clock::now_ms", |s| drop(s.db.snapshot())),
    way("flush", "Clock::now_ms", |s| s.db.flush().unwrap()),
    way("compact", "Clock::now_ms", |s| s.db.compact().unwrap()),
    way("flush in the background", "Clock::now_ms", |s| many(&expiring(s))).only_in_background(),
    // Asked what has expired.
    way("compaction in the background", "Clock::now_ms", compact_in_background).only_in_background(),
    way("iter", "Clock::now_ms", |s| assert_eq!(expiring(s).iter().count(), 3)),
    way("expires_at", "Clock::now_ms", |s| assert!(expiring(s).expires_at("base").unwrap().is_some())),
    way("transaction", "Clock::now_ms", |s| {
        let mut transaction = s.db.transaction();
        transaction.put(&expiring(s), "base", "b").unwrap();
        transaction.commit().unwrap();
    }),
    // The database may have been closed when only the first of the keyspaces was flushed, of which
    // the listener hears at once.
    way("flush", "EventListener::flush_completed", |s| unless_closed(s.db.flush())).free(),
    way("flush", "EventListener::table_created", |s| unless_closed(s.db.flush())).free(),
    way("compact", "EventListener::compaction_completed", |s| unless_closed(s.db.compact())).free(),
    way("compact", "EventListener::table_removed", |s| unless_closed(s.db.compact())).free(),
    way("ingest", "EventListener::ingest_completed", |s| unless_closed(s.k.ingest([("x", "1"), ("y", "2")]))).free(),
    way("stall", "EventListener::stall_began", stall).free().background(),
    way("stall", "EventListener::stall_ended", |s| {
        s.hook.hold_up();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..2000u32).for_each(|n| unless_closed(s.k.put(n.to_be_bytes(), [7; 400])));
            });
            // `Stats::stalls` counts waits for a log segment too, of which no listener hears.
            wait_until("a writer waits", || s.hook.stalls_begun.load(Relaxed) > 0);
            s.hook.let_go();
        });
    })
    .free()
    .background(),
    way("flush", "EventListener::background_error", fail_tables).free().faulty().background(),
    way("flush", "EventListener::recovered", |s| {
        fail_tables(s);
        // The flush that has failed is that of the call.
        wait_until("the background thread fails as well", || s.db.health().problem.is_some());
        s.faults.clear();
        // Wakes that thread, which would try again later.
        unless_closed(s.k.ingest([("x", "1"), ("y", "2")]));
    })
    .free()
    .faulty()
    .background(),
    way("synced put", "EventListener::became_read_only", |s| {
        let rule = Rule::new(Class::Sync, 0, Action::Fail(ErrorKind::Other));
        s.faults.add(rule.on_names_with(".wal").from_then_on());
        assert!(s.k.put_with("base", "b", &synced()).is_err());
    })
    .free()
    .faulty(),
    // What a call is given by the program.
    way("ingest", "pairs", |s| {
        let pairs = ["x", "y", "z"].into_iter().inspect(|key| {
            if *key == "y" {
                s.hook.called("pairs");
            }
        });
        unless_closed(s.k.ingest(pairs.map(|key| (key, "1"))));
    })
    .free(),
    way("verify", "progress", |s| drop(s.db.verify_with(&mut |_| s.hook.called("progress")))).free(),
    way("verify_directory", "tell", |s| {
        drop(Db::verify_directory(DIRECTORY, s.options.clone(), &mut |_| s.hook.called("tell")));
    })
    .free(),
    way("record", "Recorder::counter", record).free(),
    way("record", "Recorder::gauge", record).free(),
    // Given only where calls are measured.
    way("record", "Recorder::histogram", record).free().background(),
    way("multi_get", "keys", |s| {
        let keys = ["base", "together"].into_iter().inspect(|_| s.hook.called("keys"));
        assert_eq!(s.k.multi_get(keys).into_iter().filter(Result::is_ok).count(), 2);
    })
    .free(),
    way("transact", "body", |s| {
        unless_closed(s.db.transact(3, |transaction| {
            transaction.get(&s.k, "base")?;
            s.hook.called("body");
            transaction.put(&s.k, "base", "b")
        }));
    })
    .free(),
];

/// Those of the environment.
pub const ENV_WAYS: &[Way] = &[
    way("put", "LogFile::store", |s| s.k.put("base", "b").unwrap()),
    way("synced put", "LogFile::write", |s| s.k.put_with("base", [7; 900], &synced()).unwrap()),
    way("synced put", "LogFile::sync_range", |s| s.k.put_with("base", "b", &synced()).unwrap()),
    way("puts", "Env::open_log", puts),
    way("puts", "Env::random", puts),
    way("puts", "LogFile::len", puts),
    way("puts", "LogFile::sync", puts),
    way("puts", "LogFile::fill_new", puts),
    way("puts", "LogFile::release_memory", puts),
    way("puts", "LogFile::prefault", puts).background(),
    way("put", "Env::create_growing", |s| large(&s.k)),
    way("put", "GrowingFile::write", |s| large(&s.k)),
    way("synced put", "GrowingFile::sync", |s| s.k.put_with("large", [7; 5000], &synced()).unwrap()),
    way("get", "GrowingFile::read_at", |s| {
        large(&s.k);
        assert_eq!(s.k.get("large").unwrap().unwrap().len(), 5000);
    }),
    way("get", "ReadFile::read_at", |s| assert!(keyspace(&s.db, "plain").get("ada").unwrap().is_some()))
        .without_readers(),
    #[cfg(unix)]
    way("get", "ReadFile::check_mapping", |s| {
        fault_under_a_mapping();
        assert!(s.k.get("apart").unwrap().is_some());
    }),
    way("iter", "ReadFile::read_at", |s| assert_eq!(s.k.iter().count(), 3)),
    way("verify", "ReadFile::read_at", |s| assert!(s.db.verify().unwrap().tables > 0)),
    way("flush", "Env::create", |s| s.db.flush().unwrap()),
    way("flush", "WriteFile::append", |s| s.db.flush().unwrap()),
    way("flush", "WriteFile::sync", |s| s.db.flush().unwrap()),
    way("flush", "WriteFile::flush", |s| s.db.flush().unwrap()),
    way("flush", "WriteFile::len", |s| s.db.flush().unwrap()),
    way("flush", "Env::sync_dir", |s| s.db.flush().unwrap()),
    way("flush", "Env::open", |s| s.db.flush().unwrap()),
    way("flush", "ReadFile::mapping", |s| s.db.flush().unwrap()),
    way("flush", "ReadFile::len", |s| s.db.flush().unwrap()),
    way("flush", "LogFile::sync_range", |s| s.db.flush().unwrap()),
    way("compact", "ReadFile::read_at", |s| s.db.compact().unwrap()),
    way("compact", "Env::remove", |s| s.db.compact().unwrap()),
    way("keyspace", "WriteFile::append", |s| drop(keyspace(&s.db, "new"))),
    way("keyspace", "WriteFile::sync", |s| drop(keyspace(&s.db, "new"))),
    way("ingest", "Env::create", |s| assert_eq!(s.k.ingest([("x", "1"), ("y", "2")]).unwrap().entries, 2)),
    way("checkpoint", "Env::create_dir_all", |s| s.db.checkpoint("/made").unwrap()),
    way("checkpoint", "Env::list", |s| s.db.checkpoint("/made").unwrap()),
    way("checkpoint", "Env::exists", |s| s.db.checkpoint("/made").unwrap()),
    way("checkpoint", "Env::hard_link", |s| s.db.checkpoint("/made").unwrap()),
    way("checkpoint", "Env::rename", |s| s.db.checkpoint("/made").unwrap()),
    way("checkpoint", "ReadFile::read_at", |s| s.db.checkpoint_with("/made", CheckpointMode::Copy).unwrap()),
    // Of another opening, which holds nothing yet.
    way("open", "Env::lock", |s| match Db::open(DIRECTORY, s.options.clone()) {
        Err(Error::Locked { .. }) => {}
        other => other.unwrap().close().unwrap(),
    })
    .free(),
    way("puts", "LogFile dropped", |s| {
        puts(s);
        // Spare segments go when there is nothing else to do, which is now.
        s.db.wait_idle().unwrap();
    })
    .background(),
    way("flush", "WriteFile dropped", |s| s.db.flush().unwrap()),
    way("compact", "ReadFile dropped", |s| s.db.compact().unwrap()),
    way("close", "Lock dropped", |s| s.db.clone().close().unwrap()).closing(),
    way("compact", "GrowingFile dropped", |s| {
        large(&s.k);
        s.k.delete("large").unwrap();
        s.db.compact().unwrap();
    }),
];
