//! What is stored of a comparator, and what an open makes of it.

use super::{By, ByLength};
use crate::common::{DIRECTORY, Machine};
use esker::{
    CompactionFilter, Comparator, Db, Decision, Error, KeyspaceOptions, MergeError, MergeOperator, Options,
    ReverseBytewise, merge::UInt64Add,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn by_length() -> KeyspaceOptions {
    KeyspaceOptions::default().comparator(ByLength)
}

/// Something in the log, and something in a table.
fn written(machine: &Machine) -> Options {
    let options = machine.options().comparator(Arc::new(ByLength));
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let words = db.keyspace("words", by_length()).unwrap();
    words.put("aa", "").unwrap();
    db.flush().unwrap();
    words.put("b", "").unwrap();
    options
}

#[test]
fn every_open_without_the_comparator_names_it_and_its_keyspace() {
    let machine = Machine::new();
    let options = written(&machine);
    let is_missing = |error: Error| match &error {
        Error::MissingComparator { keyspace, comparator } => {
            let text = error.to_string();
            keyspace == "words" && comparator == "test.by-length" && text.contains("Options::comparator")
        }
        _ => false,
    };
    assert!(is_missing(Db::open(DIRECTORY, machine.options()).unwrap_err()));
    assert!(is_missing(Db::open_read_only(DIRECTORY, machine.options()).unwrap_err()));
    assert!(is_missing(Db::open_follower(DIRECTORY, machine.options()).unwrap_err()));
    assert!(is_missing(Db::repair(DIRECTORY, machine.options()).unwrap_err()));
    // One of another name is no help.
    let other = machine.options().comparator(Arc::new(By("test.other", |a: &[u8], b: &[u8]| a.cmp(b))));
    assert!(is_missing(Db::open(DIRECTORY, other).unwrap_err()));
    // Nothing was harmed.
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    assert_eq!(db.existing_keyspace("words").unwrap().first().unwrap().unwrap().0, "b");
    drop(db);
    assert!(Db::repair(DIRECTORY, options).unwrap().healthy);
}

#[test]
fn a_keyspace_is_not_opened_with_another_order() {
    let machine = Machine::new();
    let options = written(&machine);
    let db = Db::open(DIRECTORY, options).unwrap();
    let words = db.keyspace("words", KeyspaceOptions::default()).unwrap();
    assert_eq!(words.comparator(), "test.by-length");
    assert_eq!(db.keyspace("words", by_length()).unwrap().count(..).unwrap(), 2);
    let error = db.keyspace("words", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{text}");
    assert!(text.contains("test.by-length") && text.contains("reverse-bytewise"), "{text}");
    db.keyspace("plain", KeyspaceOptions::default()).unwrap();
    let text = db.keyspace("plain", by_length()).unwrap_err().to_string();
    assert!(text.contains("test.by-length") && text.contains("\"bytewise\""), "{text}");
    let figures = db.stats().keyspaces;
    assert_eq!((figures[0].comparator.as_str(), figures[1].comparator.as_str()), ("bytewise", "test.by-length"));
    assert!(db.stats().to_string().contains("comparator test.by-length"));
    assert_eq!(db.property("esker.keyspace.words.comparator").as_deref(), Some("test.by-length"));
}

#[test]
fn names_that_cannot_be_are_refused() {
    struct Panics;
    impl Comparator for Panics {
        fn name(&self) -> &str {
            panic!("injected")
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.cmp(b)
        }
    }
    let machine = Machine::new();
    let db = machine.open();
    let refused = |options: KeyspaceOptions| match db.keyspace("new", options) {
        Err(Error::InvalidArgument { what }) => what,
        other => panic!("{other:?}"),
    };
    let named = |name| KeyspaceOptions::default().comparator(By(name, |a: &[u8], b: &[u8]| a.cmp(b)));
    for name in ["bytewise", "reverse-bytewise"] {
        assert!(refused(named(name)).contains("built-in"), "{name}");
    }
    assert!(refused(named("")).contains("1 to 255 bytes"));
    assert!(refused(named("a\nb")).contains("control characters"));
    assert!(refused(KeyspaceOptions::default().comparator(Panics)).contains("panicked"));
    assert!(machine.options().comparator(Arc::new(Panics)).validate().is_err());
    assert!(machine.options().comparator(Arc::new(By("bytewise", |a: &[u8], b: &[u8]| a.cmp(b)))).validate().is_err());
    assert!(machine.options().comparator(Arc::new(ReverseBytewise)).validate().is_ok());
    assert!(db.keyspaces().is_empty());
}

#[test]
fn the_reverse_order_needs_nothing_at_an_open_and_old_databases_stay_as_they_are() {
    let machine = Machine::new();
    let version = || {
        let current = machine.env.file_bytes(&Path::new(DIRECTORY).join("CURRENT")).unwrap();
        let name = String::from_utf8(current).unwrap().split(' ').next().unwrap().to_owned();
        machine.env.file_bytes(&Path::new(DIRECTORY).join(name)).unwrap()[8]
    };
    let db = machine.open();
    db.keyspace("plain", KeyspaceOptions::default()).unwrap();
    assert_eq!(version(), 3, "what earlier builds read");
    let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
    assert_eq!(version(), 4, "what they must refuse");
    latest.put("a", "").unwrap();
    latest.put("b", "").unwrap();
    drop((db, latest));
    let db = machine.open();
    assert_eq!(db.existing_keyspace("latest").unwrap().first().unwrap().unwrap().0, "b");
    db.drop_keyspace("latest").unwrap();
    assert_eq!(version(), 3);
}

/// The key of each call that a callback gets.
struct Keys(Arc<AtomicU64>);

impl Keys {
    fn note(&self, key: &[u8]) {
        assert_eq!(key, b"key", "without a mark");
        self.0.fetch_add(1, Relaxed);
    }
}

impl MergeOperator for Keys {
    fn name(&self) -> &str {
        "test.keys"
    }

    fn full_merge(&self, key: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        self.note(key);
        if operands.contains(&&b"fail"[..]) { Err(MergeError("told to".into())) } else { Ok(Some(operands.concat())) }
    }

    fn partial_merge(&self, key: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        self.note(key);
        None
    }
}

impl CompactionFilter for Keys {
    fn name(&self) -> &str {
        "test.keys"
    }

    fn decide(&self, key: &[u8], _: &[u8]) -> Decision {
        self.note(key);
        Decision::Keep
    }
}

#[test]
fn callbacks_and_errors_have_the_keys_of_the_program() {
    let machine = Machine::new();
    let db = machine.open();
    let (merged, filtered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let options = by_length().merge_operator(Keys(Arc::clone(&merged))).compaction_filter(Keys(Arc::clone(&filtered)));
    let words = db.keyspace("words", options).unwrap();
    words.merge("key", "a").unwrap();
    words.merge("key", "b").unwrap();
    assert_eq!(words.get("key").unwrap().unwrap(), "ab");
    assert_eq!(words.first().unwrap().unwrap().1, "ab");
    db.compact().unwrap();
    words.put("key", "c").unwrap();
    db.compact().unwrap();
    assert!(merged.load(Relaxed) > 0 && filtered.load(Relaxed) > 0);
    words.merge("key", "fail").unwrap();
    let text = words.get("key").unwrap_err().to_string();
    assert!(text.contains("key key of"), "{text}");
    let sums = db.keyspace("sums", by_length().merge_operator(UInt64Add)).unwrap();
    let text = sums.merge("key", "x").unwrap_err().to_string();
    assert!(text.contains("key key of"), "{text}");
    let mut transaction = db.transaction();
    transaction.put(&words, "other", "").unwrap();
    words.put("other", "").unwrap();
    let text = transaction.commit().unwrap_err().to_string();
    assert!(text.contains("key other of"), "{text}");
}

#[test]
fn a_repair_keeps_the_order_with_and_without_a_manifest() {
    for loses_manifest in [false, true] {
        let machine = Machine::new();
        let options = machine.options().comparator(Arc::new(ByLength));
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        let words = db.keyspace("words", by_length()).unwrap();
        let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
        for number in 0..500 {
            words.put(number.to_string(), "in a table").unwrap();
            latest.put(number.to_string(), "in a table").unwrap();
        }
        db.flush().unwrap();
        words.delete_range("10".."50").unwrap();
        words.put("7", "in the log").unwrap();
        drop((db, words, latest));
        let directory = Path::new(DIRECTORY);
        let names = esker::env::Env::list(&*machine.env, directory).unwrap();
        let mut damaged: Vec<&String> = names.iter().filter(|name| name.ends_with(".table")).collect();
        if loses_manifest {
            damaged = names.iter().filter(|name| name.starts_with("MANIFEST")).collect();
        }
        for name in &damaged {
            let path = directory.join(name);
            let mut bytes = machine.env.file_bytes(&path).unwrap();
            bytes[20] ^= 1;
            machine.env.set_file_bytes(&path, bytes);
        }
        let report = Db::repair(DIRECTORY, options.clone()).unwrap();
        assert!(!report.healthy && report.files.len() >= damaged.len().min(1), "{report:?}");
        let shown = report.to_string();
        assert!(!shown.contains("\\x01"), "keys as the program knows them: {shown}");
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        db.verify().unwrap();
        let words = db.existing_keyspace("words").unwrap();
        assert_eq!(words.comparator(), "test.by-length");
        let keys: Vec<Vec<u8>> = words.iter().keys().map(|key| key.unwrap().to_vec()).collect();
        assert!(keys.windows(2).all(|pair| ByLength.compare(&pair[0], &pair[1]).is_lt()));
        assert_eq!(words.get("7").unwrap().unwrap(), "in the log");
        let latest = db.existing_keyspace("latest").unwrap();
        assert_eq!(latest.comparator(), "reverse-bytewise");
        if loses_manifest {
            assert_eq!((words.count(..).unwrap(), latest.count(..).unwrap()), (460, 500));
        }
        assert!(latest.count(..).unwrap() > 300 && words.count(..).unwrap() > 300);
    }
}

#[test]
fn two_comparators_of_one_name_are_refused() {
    let machine = Machine::new();
    let options = machine.options().comparator(Arc::new(ByLength)).comparator(Arc::new(ByLength));
    let refused = Db::open(DIRECTORY, options.clone()).map(drop);
    assert!(matches!(&refused, Err(Error::InvalidArgument { what }) if what.contains("test.by-length")), "{refused:?}");
    assert!(matches!(Db::repair(DIRECTORY, options), Err(Error::InvalidArgument { .. })));
}

/// Of a keyspace that only the log has, a repair does not know the order: a range that is none by
/// its bytes is no damage.
#[test]
fn a_range_of_a_keyspace_whose_order_is_lost_ends_no_log() {
    let machine = Machine::new();
    let db = machine.open();
    let plain = db.keyspace("plain", KeyspaceOptions::default()).unwrap();
    let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise)).unwrap();
    plain.put("table", "1").unwrap();
    db.flush().unwrap();
    let mut batch = db.batch();
    batch.put(&plain, "before", "1").unwrap();
    batch.delete_range(&latest, "z".."a").unwrap();
    batch.put(&plain, "behind", "1").unwrap();
    batch.commit().unwrap();
    plain.put("later", "1").unwrap();
    drop((plain, latest, db));
    let mut files = machine.env.files().into_iter();
    let manifest = files.rfind(|path| path.to_str().unwrap().contains("MANIFEST")).unwrap();
    esker::env::Env::remove(&*machine.env, &manifest).unwrap();
    Db::repair(DIRECTORY, machine.options()).unwrap();
    let db = machine.open();
    let plain = db.existing_keyspace("plain").unwrap();
    for key in ["table", "before", "behind", "later"] {
        assert!(plain.contains_key(key).unwrap(), "{key}");
    }
}
