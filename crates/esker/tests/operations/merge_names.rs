//! The operator's name is kept with the keyspace.

use crate::merge_support::{Scratch, inline, moody, text};
use esker::merge::{BitOr, BytesXor, Int64Add, UInt64Add};
use esker::{Db, Error, KeyspaceOptions, MergeError, MergeOperator, merge};
use std::collections::BTreeSet;
use std::path::Path;

/// Trap: a tool that only knows the name adds up something else, or nothing.
#[test]
fn built_in_operators_attach_by_name() {
    let scratch = Scratch::new("built-in");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let open = |name: &str, options: KeyspaceOptions| db.keyspace(name, options).unwrap();
    let signed = open("int64add", KeyspaceOptions::default().merge_operator(Int64Add));
    let flipped = open("bytesxor", KeyspaceOptions::default().merge_operator(BytesXor));
    let set = open("bitor", KeyspaceOptions::default().merge_operator(BitOr));
    for n in [i64::MAX, 1, -3] {
        signed.merge("k", n.to_le_bytes()).unwrap();
    }
    for bytes in [&[0b11u8][..], &[0b01, 0xf0]] {
        flipped.merge("k", bytes).unwrap();
        set.merge("k", bytes).unwrap();
    }
    drop((signed, flipped, set, db));
    let read = |db: &Db| {
        let value = |name: &str| db.existing_keyspace(name).unwrap().get("k").unwrap().unwrap().to_vec();
        assert_eq!(value("int64add"), (i64::MAX - 3).to_le_bytes());
        assert_eq!(value("bytesxor"), [0b10, 0xf0]);
        assert_eq!(value("bitor"), [0b11, 0xf0]);
    };
    read(&Db::open_read_only(scratch.path(), inline()).unwrap());
    let db = Db::open(scratch.path(), inline()).unwrap();
    read(&db);
    db.compact().unwrap();
    read(&db);
    for keyspace in db.stats().keyspaces {
        assert_eq!(keyspace.merge_operator.as_deref(), Some(&*keyspace.name));
    }
}

/// Trap: an operator is mistaken for another of the same shape. Both names are told, at every later
/// open, and nothing changes.
#[test]
fn another_operator_is_refused_after_a_reopen_too() {
    let scratch = Scratch::new("another");
    let db = Db::open(scratch.path(), inline()).unwrap();
    db.keyspace("k", KeyspaceOptions::default().merge_operator(Int64Add)).unwrap();
    drop(db);
    let db = Db::open(scratch.path(), inline()).unwrap();
    for _ in 0..2 {
        let error = db.keyspace("k", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap_err().to_string();
        assert!(error.contains("\"int64add\"") && error.contains("\"uint64add\""), "{error}");
    }
    let k = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    k.merge("a", 5i64.to_le_bytes()).unwrap();
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&5i64.to_le_bytes()[..]));
}

/// Trap: a keyspace whose operator is missing is unreadable as a whole. Only merged keys are, and
/// only until it is supplied.
#[test]
fn without_its_operator_only_merged_keys_are_unreadable() {
    let scratch = Scratch::new("missing");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let k = moody(&db, true);
    k.put("plain", "p").unwrap();
    k.put("table", "t").unwrap();
    k.merge("settled", "s").unwrap();
    db.compact().unwrap();
    k.merge("log", "1").unwrap();
    k.merge("table", "2").unwrap();
    drop((k, db));
    let readable = |db: &Db| {
        let k = db.existing_keyspace("k").unwrap();
        for (key, value) in [("plain", "p"), ("settled", "s")] {
            assert_eq!(text(k.get(key).unwrap()).as_deref(), Some(value));
        }
        for key in ["log", "table"] {
            match k.get(key) {
                Err(Error::MissingMergeOperator { operator, .. }) => assert_eq!(operator, "moody"),
                other => panic!("{key}: {other:?}"),
            }
        }
        let errors = |items: Vec<esker::Result<_>>| items.iter().map(|item| item.is_err()).collect::<Vec<_>>();
        assert_eq!(errors(k.iter().collect()), [true, false, false, true]);
        assert_eq!(errors(k.iter().rev().collect()), [true, false, false, true]);
        assert_eq!(db.health().failed_merges, 0);
    };
    readable(&Db::open_read_only(scratch.path(), inline()).unwrap());
    let db = Db::open(scratch.path(), inline()).unwrap();
    readable(&db);
    // Merging goes on unseen, and flushes and compactions keep what they cannot combine.
    db.existing_keyspace("k").unwrap().merge("log", "2").unwrap();
    db.compact().unwrap();
    readable(&db);
    let k = moody(&db, true);
    assert_eq!(text(k.get("log").unwrap()).as_deref(), Some("12"));
    assert_eq!(text(k.get("table").unwrap()).as_deref(), Some("t2"));
    assert_eq!(k.iter().filter(|item| item.is_ok()).count(), 4);
    // Handles from before have it too.
    assert_eq!(text(db.existing_keyspace("k").unwrap().get("log").unwrap()).as_deref(), Some("12"));
}

/// An operator whose name is a matter of mood.
struct Named(fn() -> &'static str);

impl MergeOperator for Named {
    fn name(&self) -> &str {
        (self.0)()
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        Err(MergeError("always".into()))
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn restless() -> &'static str {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    if CALLS.fetch_add(1, Ordering::Relaxed) == 0 { "first" } else { panic!("never again") }
}

/// Trap: a name that panics while the database is locked, that no tool can show, or that is another
/// one every time.
#[test]
fn names_that_cannot_be_kept_are_refused() {
    let scratch = Scratch::new("names");
    let db = Db::open(scratch.path(), inline()).unwrap();
    let open = |name| db.keyspace("k", KeyspaceOptions::default().merge_operator(Named(name)));
    for name in [|| panic!("on purpose"), || "", || "two\nlines"] as [fn() -> &'static str; 3] {
        let result = open(name);
        assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
    }
    assert!(db.keyspaces().is_empty());
    // The name counts that was given first; what was kept is what errors tell.
    let k = open(restless).unwrap();
    assert!(open(restless).is_err());
    k.merge("a", "1").unwrap();
    match k.get("a") {
        Err(Error::MergeFailed { operator, .. }) => assert_eq!(operator, "first"),
        other => panic!("{other:?}"),
    }
    db.keyspace("still writable", KeyspaceOptions::default()).unwrap().put("a", "b").unwrap();
}

type Name = fn() -> &'static str;

/// The built-in operators, each with a name that it can have.
const BUILT_IN: [(&str, Name); 8] = [
    ("UInt64Add", || "uint64add"),
    ("Int64Add", || "int64add"),
    ("Max", || "max"),
    ("Min", || "min"),
    ("Put", || "put"),
    ("BytesXor", || "bytesxor"),
    ("BitOr", || "bitor"),
    ("StringAppend", || "stringappend:2c20"),
];

/// The words that come behind `before` in a file of the sources, from `begin` on to the next `end`.
fn words_in_source(path: &str, (begin, end): (&str, &str), before: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (_, behind) = text.split_once(begin).unwrap();
    let (part, _) = behind.split_once(end).unwrap();
    let word = |text: &str| text.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned();
    part.split(before).skip(1).map(word).collect()
}

/// Trap: a new built-in operator that the test of the reserved names does not know, or that no open
/// attaches.
#[test]
fn every_built_in_operator_is_in_the_list() {
    let listed: BTreeSet<String> = BUILT_IN.iter().map(|(operator, _)| (*operator).to_owned()).collect();
    let attached = words_in_source("src/merge_operator/built_in.rs", ("pub fn built_in(", "\n}"), "Arc::new(");
    assert_eq!(attached, listed, "what `built_in` attaches");
    let mut exported = words_in_source("src/lib.rs", ("pub mod merge {", "}"), ",");
    exported.extend(words_in_source("src/lib.rs", ("pub mod merge {", "}"), "{"));
    // What else is there: types of the test of the laws, functions.
    exported.retain(|name| !["LawViolation", "Outcome"].contains(&&**name) && name.starts_with(char::is_uppercase));
    assert_eq!(exported, listed, "what `esker::merge` has");
}

/// Pitfall: the next open finds the built-in operator of that name attached, and other values.
#[test]
fn names_of_built_in_operators_are_reserved() {
    let scratch = Scratch::new("reserved");
    let db = Db::open(scratch.path(), inline()).unwrap();
    for (keyspace, name) in BUILT_IN {
        match db.keyspace(keyspace, KeyspaceOptions::default().merge_operator(Named(name))) {
            Err(Error::InvalidArgument { what }) => assert!(what.contains(name()), "{what}"),
            other => panic!("{}: {other:?}", name()),
        }
        // One of the same name and kind is welcome, shared or not, and the other is not taken for
        // it at a later open either.
        let own = merge::built_in(name()).unwrap();
        db.keyspace(keyspace, KeyspaceOptions::default().shared_merge_operator(own)).unwrap();
        assert!(db.keyspace(keyspace, KeyspaceOptions::default().merge_operator(Named(name))).is_err());
    }
    db.keyspace("list", KeyspaceOptions::default().merge_operator(merge::StringAppend::new("; "))).unwrap();
    // What no built-in operator is called is free.
    db.keyspace("free", KeyspaceOptions::default().merge_operator(Named(|| "stringappend:zz"))).unwrap();
}
