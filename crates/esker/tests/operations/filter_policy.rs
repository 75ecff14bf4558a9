//! Filters of the program's own: which tables a get searches.

use crate::common::*;
use esker::{Comparator, Db, FilterPolicy, KeyspaceOptions, Options};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Keeps the keys that it is shown, and answers as it is told.
#[derive(Default)]
struct Told {
    denies: AtomicBool,
    panics: AtomicBool,
    asked: AtomicU64,
    shown: Mutex<Vec<Vec<Vec<u8>>>>,
}

struct Policy(&'static str, Arc<Told>);

impl FilterPolicy for Policy {
    fn name(&self) -> &str {
        self.0
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        assert!(!self.1.panics.load(SeqCst), "a policy that panics");
        self.1.shown.lock().unwrap().push(keys.iter().map(|key| key.to_vec()).collect());
        Some(format!("{} keys", keys.len()).into_bytes())
    }

    fn key_may_match(&self, _: &[u8], filter: &[u8]) -> bool {
        self.1.asked.fetch_add(1, SeqCst);
        assert!(!self.1.panics.load(SeqCst), "a policy that panics");
        assert!(filter.ends_with(b" keys"));
        !self.1.denies.load(SeqCst)
    }
}

fn with(machine: &Machine, name: &'static str, told: &Arc<Told>) -> Options {
    machine.options().filter_policy(Arc::new(Policy(name, Arc::clone(told))))
}

#[test]
fn a_key_that_it_denies_is_not_found_in_tables() {
    let (machine, told) = (Machine::new(), Arc::<Told>::default());
    let db = Db::open(DIRECTORY, with(&machine, "told", &told)).unwrap();
    let k = keyspace(&db, "k");
    for key in ["b", "a", "c"] {
        k.put(key, "1").unwrap();
        k.put(key, "2").unwrap();
    }
    let snapshot = db.snapshot();
    told.denies.store(true, SeqCst);
    // In memory it has no say.
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"2"[..]));
    db.flush().unwrap();
    assert_eq!(told.shown.lock().unwrap().as_slice(), [["a", "b", "c"].map(|key| key.as_bytes().to_vec())]);
    assert_eq!(k.get("a").unwrap(), None);
    assert_eq!(snapshot.get(&k, "a").unwrap(), None);
    assert!(k.multi_get(["a", "b"]).into_iter().all(|value| value.unwrap().is_none()));
    assert_eq!(k.iter().count(), 3);
    k.put("a", "3").unwrap();
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"3"[..]));
    told.denies.store(false, SeqCst);
    assert_eq!(k.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(told.asked.load(SeqCst) > 0);
    db.verify().unwrap();
}

#[test]
fn a_filter_is_used_by_the_policy_that_made_it() {
    let (machine, told) = (Machine::new(), Arc::<Told>::default());
    told.denies.store(true, SeqCst);
    let found = |options: Options| {
        let db = Db::open(DIRECTORY, options).unwrap();
        let found = keyspace(&db, "k").get("a").unwrap().is_some();
        db.close().unwrap();
        found
    };
    let db = Db::open(DIRECTORY, with(&machine, "told", &told)).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert!(found(machine.options()));
    assert!(!found(with(&machine, "told", &told)));
    assert!(found(with(&machine, "another", &told)));
    // Without it the table is written anew, without its filter.
    let db = Db::open(DIRECTORY, machine.options()).unwrap();
    keyspace(&db, "k").put("b", "1").unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    assert!(found(with(&machine, "told", &told)));
}

#[test]
fn one_that_panics_costs_a_search() {
    let (machine, told) = (Machine::new(), Arc::<Told>::default());
    let db = Db::open(DIRECTORY, with(&machine, "told", &told)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    db.flush().unwrap();
    told.panics.store(true, SeqCst);
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    k.put("b", "1").unwrap();
    db.compact().unwrap();
    told.panics.store(false, SeqCst);
    told.denies.store(true, SeqCst);
    // The table has no filter.
    assert_eq!(k.get("b").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Shorter keys first.
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "by length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[test]
fn it_knows_keys_as_the_program_does() {
    let (machine, told) = (Machine::new(), Arc::<Told>::default());
    let db = Db::open(DIRECTORY, with(&machine, "told", &told).comparator(Arc::new(ByLength))).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().comparator(ByLength)).unwrap();
    for key in ["aaa", "b", "cc", ""] {
        k.put(key, key).unwrap();
    }
    db.flush().unwrap();
    let expected = ["", "b", "cc", "aaa"].map(|key| key.as_bytes().to_vec());
    assert_eq!(told.shown.lock().unwrap().as_slice(), [expected]);
    assert_eq!(k.get("cc").unwrap().as_deref(), Some(&b"cc"[..]));
    told.denies.store(true, SeqCst);
    assert_eq!(k.get("cc").unwrap(), None);
}
