//! Callbacks that are called where there is no database yet, or only once very much has happened.

use super::calls::{self, Begun, is_right};
use super::hook::{FOR_EVER, Own, Site, name_of_this_thread};
use super::outcome;
use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, keyspace, wait_until};
use esker::env::mem::MemEnv;
use esker::internals::background_round;
use esker::{ChangeRetention, Clock, Db, Error, Keyspace, Options, Result, Snapshot, WriteOptions};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

/// Trap: as any event, but told from another place.
#[test]
fn every_call_works_where_a_listener_hears_that_it_has_missed_something() {
    let site = Site::open(0, false);
    let (go_on, goes_on) = mpsc::channel();
    let wait = move |_: &_| {
        goes_on.recv_timeout(FOR_EVER).expect("it goes on");
        Ok(())
    };
    site.hook.arm("EventListener::table_created", Box::new(wait), site.own());
    let k = keyspace(&site.db, "plain");
    // Two events each, and those of merges.
    for number in 0..2500u32 {
        k.ingest([(number.to_be_bytes(), "1")]).unwrap();
    }
    wait_until("the listener waits", || site.hook.was_called());
    let calls = calls::all().filter(|call| call.begun == Begun::Nothing && call.name != "Db::close");
    let all = move |own: &Own| {
        for call in calls {
            let result = (call.begin)(&own.db)(own);
            assert!(is_right(&call, true, false, &result), "{}: {result:?}", call.name);
        }
        Ok(())
    };
    site.hook.arm("EventListener::missed", Box::new(all), site.own());
    go_on.send(()).unwrap();
    wait_until("all calls are made", || site.hook.was_called() && site.hook.has_returned());
}

/// An environment hears what a long scan of mapped tables will read, in both directions, and no
/// short one; what it does with the database meanwhile works or is refused.
#[test]
fn scans_say_what_they_will_read() {
    let env = MemEnv::new();
    env.map_files();
    let (told, own) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::<Db>::new()));
    let (count, database) = (Arc::clone(&told), Arc::clone(&own));
    let tell = move |call| {
        if call == "ReadFile::will_read" {
            count.fetch_add(1, SeqCst);
            let k = database.get().unwrap().existing_keyspace("plain").unwrap();
            for result in
                [k.get([0; 4]).map(drop), k.put("new", "1"), k.iter().next().map_or(Ok(()), |pair| pair.map(drop))]
            {
                assert!(matches!(result, Ok(()) | Err(Error::InCallback { .. })), "{result:?}");
            }
        }
    };
    let env = Telling { told: Arc::new(tell), called: Arc::new(env) as _ };
    let db = Db::open(DIRECTORY, Options::default().env(Arc::new(env))).unwrap();
    assert!(own.set(db.clone()).is_ok());
    let k = keyspace(&db, "plain");
    for number in 0..2000u32 {
        k.put(number.to_be_bytes(), [number as u8; 200]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(k.iter().take(10).count(), 10);
    assert_eq!(told.load(SeqCst), 0);
    assert!(k.iter().count() >= 2000);
    let forward = told.swap(0, SeqCst);
    assert!(k.iter().rev().count() >= 2000);
    let backward = told.load(SeqCst);
    // Some 400 KiB, compressed.
    assert!((1..20).contains(&forward) && (1..20).contains(&backward), "{forward} and {backward}");
}

/// Looks at all of a keyspace, once, when the background thread reads the time.
#[derive(Debug, Default)]
struct Looks {
    at: Mutex<Option<(Snapshot, Keyspace)>>,
    seen: AtomicUsize,
}

impl Clock for Looks {
    fn now_ms(&self) -> u64 {
        let at = self.at.lock().unwrap().take_if(|_| name_of_this_thread() == "esker-background");
        if let Some((snapshot, k)) = at {
            self.seen.store(snapshot.iter(&k).map(Result::unwrap).count(), SeqCst);
        }
        START_MS
    }
}

/// Trap: the background thread, about to sleep, reads the time with the lock held by which it is
/// woken; and a scan wakes it to merge the runs of a memtable.
#[test]
fn a_clock_may_scan_when_the_background_thread_is_about_to_sleep() {
    let ended = outcome(|| {
        let looks = Arc::new(Looks::default());
        let options = Options::default().env(Arc::new(MemEnv::new())).clock(looks.clone()).background_threads(1);
        // Memory that other databases have left would be reason enough to stay awake. A database
        // with a budget does not see it.
        let options = options.memory_budget_bytes(64 << 20).keep_changes(ChangeRetention::Bytes(1 << 20));
        let db = Db::open(DIRECTORY, options).unwrap();
        let k = keyspace(&db, "k");
        // Each scan sorts what has come since the last one into a run. Two of this length are too
        // long for a scan to merge.
        for first in [0, 9000u32] {
            assert_eq!(k.iter().count(), first as usize);
            let mut batch = db.batch();
            (first..first + 9000).for_each(|number| batch.put(&k, number.to_be_bytes(), "").unwrap());
            batch.commit_with(&WriteOptions::new().disable_wal(true)).unwrap();
        }
        *looks.at.lock().unwrap() = Some((db.snapshot(), k.clone()));
        background_round(&db, Duration::from_millis(200));
        assert_eq!(looks.seen.load(SeqCst), 18_000);
    });
    assert_eq!(ended, Ok(()));
}

type Use = fn(&Options) -> Result<()>;

/// What else can be done with a directory.
const USES: [(&str, Use); 3] = [
    ("open", |options| Db::open(DIRECTORY, options.clone()).map(drop)),
    ("open_read_only", |options| Db::open_read_only(DIRECTORY, options.clone()).map(drop)),
    ("repair", |options| Db::repair(DIRECTORY, options.clone()).map(drop)),
];

/// Whether the opening made so many calls of its environment, the last of which used the directory.
fn opened_while_being_opened(nth: usize, (name, used): (&'static str, Use)) -> bool {
    let machine = Machine::new();
    let db = machine.open();
    let k = keyspace(&db, "plain");
    k.put("bob", "1923").unwrap();
    db.flush().unwrap();
    k.put("ada", "1815").unwrap();
    drop((k, db));
    let (calls, own) = (AtomicUsize::new(0), Arc::new(OnceLock::<Options>::new()));
    let result = Arc::new(Mutex::new(None));
    let (for_env, kept) = (Arc::clone(&own), Arc::clone(&result));
    let told = move |call| {
        if let Some(options) = for_env.get()
            && calls.fetch_add(1, SeqCst) == nth
        {
            let result = used(options);
            *kept.lock().unwrap() = Some((call, result));
        }
    };
    let options = machine.options().env(Arc::new(Telling { told: Arc::new(told), called: machine.env.clone() as _ }));
    assert!(own.set(options.clone()).is_ok());
    let db = Db::open(DIRECTORY, options).unwrap();
    let k = keyspace(&db, "plain");
    assert_eq!(["ada", "bob"].map(|key| k.get(key).unwrap().unwrap().to_vec()), [*b"1815", *b"1923"]);
    db.verify().unwrap();
    drop((k, db));
    let result = result.lock().unwrap().take();
    match &result {
        None | Some((_, Ok(()) | Err(Error::Locked { .. }))) => {}
        Some((call, Err(error))) => panic!("{name} in {call}, call {nth} of an opening: {error}"),
    }
    result.is_some()
}

/// Trap: the opening goes on with what it found before somebody else had the directory.
#[test]
fn an_environment_may_use_the_directory_that_is_being_opened() {
    for used in USES {
        let calls = (0..).take_while(|&nth| opened_while_being_opened(nth, used)).count();
        assert!(calls > 50, "{calls}");
    }
}
