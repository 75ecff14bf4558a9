//! What the callbacks of a follower may do with the follower that calls them.

use super::hook::{Calls, Own, Site};
use super::outcome;
use crate::common::DIRECTORY;
use esker::{Db, Error, Follower, Keyspace, KeyspaceOptions, Result};
use std::path::Path;
use std::sync::Arc;

type Use = fn(&Follower) -> Result<()>;

/// What a callback does, and whether that is refused.
const USES: [(&str, bool, Use); 5] = [
    ("catch_up", true, |follower| follower.catch_up().map(drop)),
    ("lag", true, |follower| follower.lag().map(drop)),
    ("a checkpoint", true, |follower| follower.db().checkpoint("/copy")),
    ("a snapshot", true, |follower| follower.db().snapshot().get(&followed(follower, "plain"), "ada").map(drop)),
    ("a get", false, |follower| followed(follower, "plain").get("ada").map(|value| assert!(value.is_some()))),
];

type Make = fn(&Follower);

/// How the follower is made to call the callback. The writer has just written.
const WAYS: [(&str, &str, Make); 15] = [
    ("get", "MergeOperator::full_merge", |follower| assert!(followed(follower, "k").get("apart").unwrap().is_some())),
    ("get", "FilterPolicy::key_may_match", |follower| {
        assert!(followed(follower, "k").get("apart").unwrap().is_some());
    }),
    ("get", "Clock::now_ms", |follower| assert!(followed(follower, "t").get("base").unwrap().is_some())),
    ("iter", "Comparator::compare", |follower| {
        assert_eq!(followed(follower, "o").iter().map(Result::unwrap).count(), 3);
    }),
    // With the locks that a catching up takes.
    ("snapshot", "Clock::now_ms", |follower| drop(follower.db().snapshot())),
    ("catch_up", "MergeOperator::full_merge", catch_up),
    ("catch_up", "MergeOperator::partial_merge", catch_up),
    ("catch_up", "Comparator::compare", catch_up),
    ("catch_up", "Env::exists", catch_up),
    ("catch_up", "Env::list", catch_up),
    ("catch_up", "Env::open", catch_up),
    ("catch_up", "ReadFile::read_at", catch_up),
    ("catch_up", "ReadFile dropped", catch_up),
    ("lag", "Env::list", lag),
    ("lag", "ReadFile::read_at", lag),
];

fn followed(follower: &Follower, name: &str) -> Keyspace {
    follower.db().existing_keyspace(name).unwrap()
}

fn catch_up(follower: &Follower) {
    assert!(follower.catch_up().unwrap().at_end);
}

fn lag(follower: &Follower) {
    assert!(follower.lag().unwrap().is_some());
}

/// A follower with the callbacks of the site, which is its writer.
fn follow(site: &Site) -> Arc<Follower> {
    let follower = Db::open_follower(DIRECTORY, site.options.clone()).unwrap();
    for name in ["k", "t"] {
        let options = KeyspaceOptions::default().merge_operator(Calls(Arc::clone(&site.hook)));
        follower.db().keyspace(name, options).unwrap();
    }
    Arc::new(follower)
}

/// Writes what a catching up combines and compares.
fn write(site: &Site) {
    let mut batch = site.db.batch();
    batch.put(&site.k, "base", "b").unwrap();
    for operand in ["2", "3"] {
        batch.merge(&site.k, "base", operand).unwrap();
        batch.merge(&site.k, "together", operand).unwrap();
    }
    batch.delete_range(&site.o, "x".."y").unwrap();
    batch.delete_range(&site.o, "v".."w").unwrap();
    batch.commit().unwrap();
}

/// Makes the follower call the callback, which uses it; then sees that it is as good as before.
fn run(callback: &'static str, make: Make, is_refused: bool, used: Use) {
    let site = Site::open(0, false);
    let follower = follow(&site);
    write(&site);
    let calling = Arc::clone(&follower);
    site.hook.arm(callback, Box::new(move |_: &Own| used(&calling)), site.own());
    make(&follower);
    let (result, _) = site.hook.result.lock().unwrap().take().expect("it was called");
    match result {
        Ok(()) => assert!(!is_refused, "it is not refused"),
        Err(Error::InCallback { database }) => assert!(is_refused && database == Path::new(DIRECTORY)),
        Err(error) => panic!("{error}"),
    }
    catch_up(&follower);
    let value = |k: &Keyspace, key| String::from_utf8(k.get(key).unwrap().unwrap().to_vec()).unwrap();
    for key in ["base", "together", "apart"] {
        assert_eq!(value(&followed(&follower, "k"), key), value(&site.k, key));
    }
}

/// Trap: a follower is caught up from what its catching up calls, with its lock held.
#[test]
fn callbacks_of_a_follower_are_refused_at_once_what_would_wait_for_it() {
    for (way, callback, make) in WAYS {
        for (name, is_refused, used) in USES {
            let ended = outcome(move || run(callback, make, is_refused, used));
            assert_eq!(ended, Ok(()), "{name} from {callback} in {way}");
        }
    }
}
