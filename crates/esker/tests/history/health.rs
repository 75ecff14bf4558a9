//! A handle that takes no more writes.

use crate::common::{Scratch, keyspace};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::os::OsEnv;
use esker::internals::background_round;
use esker::{Db, Error, Options};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Seen: a new table every half second, and in the end a database that would not open. Trigger: a
/// manifest record that reached the device though its sync failed: background work went on, and
/// removed what the manifest in memory did not name. Cost: tables that the manifest on the device
/// named.
#[test]
fn a_poisoned_handle_does_no_more_background_work() {
    let scratch = Scratch::new("poisoned");
    let fault = FaultEnv::new(Arc::new(OsEnv::new()));
    let db = Db::open(scratch.path(), Options::default().env(Arc::new(fault.clone()))).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.wait_idle().unwrap();
    fault.add(Rule::new(Class::Sync, 0, Action::FailAfter(ErrorKind::Other)).on_names_with("MANIFEST"));
    assert!(db.flush().is_err());
    assert!(!db.health().writable && db.health().problem.is_some());
    let before = scratch.contents();
    fault.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table").from_then_on());
    let fired = fault.fired();
    // Soon after the failure, and in the pauses that follow.
    for pause in [0, 10, 10] {
        background_round(&db, Duration::from_secs(pause));
    }
    assert_eq!(fault.fired(), fired, "it would make a table");
    for refused in [k.put("b", "2"), db.flush(), db.compact(), db.sync(), db.wait_idle()] {
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    }
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(scratch.contents() == before, "files changed: {:?}", scratch.names_ending(""));
    drop((k, db));
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    assert_eq!(keyspace(&db, "k").get("a").unwrap().as_deref(), Some(&b"1"[..]));
}
