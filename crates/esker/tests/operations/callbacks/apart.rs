//! Callbacks that are called where there is no database yet, or only once very much has happened.

use super::calls::{self, is_right};
use super::hook::{FOR_EVER, Own, Site};
use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, keyspace, wait_until};
use esker::env::mem::MemEnv;
use esker::{Db, Error, Options, Result};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

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
    let calls = calls::all().filter(|call| !call.has_begun && call.name != "Db::close");
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
