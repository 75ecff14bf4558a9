//! Databases of other engines, written by the engines themselves, and imported: whole, in pieces,
//! and killed on the way; and what is no such database.
#![allow(clippy::unwrap_used)]

use crate::common::sources::{ENGINES, pair, write};
use crate::common::{self, Sandbox, command, fails, ok};
use std::path::Path;
use std::process::Stdio;

fn check(db: &str, keyspace: &str, pairs: u32) {
    let db = esker::Db::open_read_only(db, Default::default()).unwrap();
    let keyspace = db.existing_keyspace(keyspace).unwrap();
    assert_eq!(keyspace.count(..).unwrap(), u64::from(pairs));
    for number in 0..pairs {
        let (key, value) = pair(number);
        assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert!(!db.keyspaces().iter().any(|name| name == "import progress"), "it goes with the last marker");
}

fn each_engine(what: &str, pairs: u32, run: impl Fn(&Sandbox, &str, &str)) {
    let mut tried = 0;
    for (name, _) in ENGINES {
        let sandbox = Sandbox::new(&format!("import-{what}-{name}"));
        if let Some(source) = write(name, &sandbox.path("source"), pairs) {
            println!("{name}");
            run(&sandbox, name, source.to_str().unwrap());
            tried += 1;
        }
    }
    assert!(tried >= 4, "LMDB, SQLite, redb and fjall are always here");
}

#[test]
fn every_engine_is_imported_whole() {
    each_engine("whole", 3500, |sandbox, name, source| {
        let db = &sandbox.text("db");
        let arguments = ["import", "--db", db, "--keyspace", "copy", "--from", name, source];
        let line = ok(&arguments);
        assert!(line.starts_with("imported 3500 pairs, ") && line.contains("both sides have the hash "), "{line}");
        check(db, "copy", 3500);
        // Again: it holds something now, and nothing comes beside it.
        assert!(fails(1, &arguments).contains("holds something already"));
        assert!(!ok(&["keyspaces", "--db", db]).contains("import progress"));
        let json = ok(&["import", "--db", db, "--json", "--from", name, source]);
        assert!(json.starts_with(r#"{"pairs":3500,"bytes":"#) && json.contains(r#""complete":true"#), "{json}");
        check(db, "default", 3500);
    });
}

#[test]
fn an_import_in_pieces_goes_on_where_it_was() {
    each_engine("pieces", 3500, |sandbox, name, source| {
        let db = &sandbox.text("db");
        let piece = ["import", "--db", db, "--limit", "1200", "--from", name, source];
        assert_eq!(ok(&piece), "imported 1200 pairs so far; run the same command again to go on\n");
        assert_eq!(ok(&piece), "imported 2400 pairs so far; run the same command again to go on\n");
        let other = sandbox.path("other");
        let other = write(name, &other, 10).unwrap();
        let line = fails(1, &["import", "--db", db, "--from", name, other.to_str().unwrap()]);
        assert!(line.contains("the beginning of an import from"), "{line}");
        assert!(ok(&piece).starts_with("imported 3500 pairs, "));
        check(db, "default", 3500);
    });
}

#[test]
fn an_import_that_is_killed_goes_on_where_it_was() {
    let sandbox = Sandbox::new("import-killed");
    let source = write("redb", &sandbox.path("source"), 300_000).unwrap();
    let db = &sandbox.text("db");
    let arguments = ["import", "--db", db, "--from", "redb", source.to_str().unwrap()];
    // How far the marker says that it is; none before it has begun, and after its end.
    let pairs = || {
        let db = esker::Db::open_read_only(db, esker::Options::default().create_if_missing(false)).ok()?;
        let marker = db.existing_keyspace("import progress").ok()?.get("default").ok()??;
        serde_json::from_slice::<serde_json::Value>(&marker).unwrap()["pairs"].as_u64()
    };
    let mut killed = 0;
    for _ in 0..3 {
        let before = pairs();
        let mut child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Once it has gone on a little; or it is complete, and no harm done.
        while pairs() == before && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            break;
        }
        killed += 1;
    }
    println!("killed {killed} times");
    if killed == 3 {
        assert!(ok(&arguments).starts_with("imported 300000 pairs, "));
    }
    check(db, "default", 300_000);
}

#[test]
fn a_copy_that_differs_from_its_source_is_an_error() {
    let sandbox = Sandbox::new("import-differs");
    let source = write("redb", &sandbox.path("source"), 3000).unwrap();
    let db = &sandbox.text("db");
    let arguments = ["import", "--db", db, "--limit", "2000", "--from", "redb", source.to_str().unwrap()];
    ok(&arguments);
    for change in [&["put", "--db", db, "a", "1"][..], &["delete", "--db", db, "a"]] {
        let line = ok(change);
        assert_eq!(line, "");
        if change[0] == "put" {
            let line = fails(1, &arguments);
            assert!(line.contains("the copy is not the source: 3001 pairs"), "{line}");
        }
    }
    // As it should be: the marker was kept, and only the verification runs again.
    assert!(ok(&arguments).starts_with("imported 3000 pairs, "));
    check(db, "default", 3000);
}

#[test]
fn a_keyspace_in_reverse_order_is_compared_pair_by_pair_too() {
    let sandbox = Sandbox::new("import-reverse");
    let source = write("redb", &sandbox.path("source"), 3500).unwrap();
    let (db, source) = (&sandbox.text("db"), source.to_str().unwrap());
    ok(&["keyspaces", "create", "--db", db, "latest", "--comparator", "reverse-bytewise"]);
    let piece = ["import", "--db", db, "--keyspace", "latest", "--limit", "2000", "--json", "--from", "redb", source];
    assert!(ok(&piece).contains(r#""complete":false"#));
    // Seen: everything was copied, and then said to differ from the source.
    let copied = ok(&piece);
    assert!(copied.contains(r#"{"pairs":3500,"#) && copied.contains(r#""complete":true"#), "{copied}");
    check(db, "latest", 3500);
    assert_eq!(ok(&["scan", "--db", db, "--keyspace", "latest", "--count"]), "3500\n");
    // The same hash as in the other order.
    let hash = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["hash"].clone();
    assert_eq!(hash(&copied), hash(&ok(&["import", "--db", db, "--json", "--from", "redb", source])));
}

#[test]
fn a_copy_in_reverse_order_that_differs_from_its_source_is_an_error() {
    let sandbox = Sandbox::new("import-reverse-differs");
    let source = write("redb", &sandbox.path("source"), 3000).unwrap();
    let (db, source) = (&sandbox.text("db"), source.to_str().unwrap());
    ok(&["keyspaces", "create", "--db", db, "latest", "--comparator", "reverse-bytewise"]);
    let arguments = ["import", "--db", db, "--keyspace", "latest", "--limit", "2000", "--from", "redb", source];
    ok(&arguments);
    ok(&["put", "--db", db, "--keyspace", "latest", "a", "1"]);
    let line = fails(1, &arguments);
    assert!(line.contains("the copy is not the source: 3001 pairs"), "{line}");
    ok(&["delete", "--db", db, "--keyspace", "latest", "a"]);
    assert!(ok(&arguments).starts_with("imported 3000 pairs, "));
}

#[test]
fn what_is_no_database_of_the_engine_is_refused_and_nothing_is_created() {
    let sandbox = Sandbox::new("import-wrong");
    let db = &sandbox.text("db");
    let empty = sandbox.path("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let text = sandbox.path("text");
    std::fs::write(&text, "no database at all, and long enough to be taken for a header of one".repeat(100)).unwrap();
    let before = common::files(&empty);
    for (name, _) in ENGINES {
        for path in [&empty, &text, &sandbox.path("missing")] {
            let line = fails(1, &["import", "--db", db, "--from", name, path.to_str().unwrap()]);
            assert!(line.starts_with(&format!("esker: {name}: ")) && line.contains("; "), "{line}");
        }
    }
    assert_eq!(common::files(&empty), before);
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    assert!(!Path::new(db).exists());
    if let Some(rocksdb) = write("rocksdb", &sandbox.path("rocksdb"), 10) {
        let line = fails(1, &["import", "--db", db, "--from", "leveldb", rocksdb.to_str().unwrap()]);
        assert!(line.contains("--from rocksdb"), "{line}");
    }
    if let Some(leveldb) = write("leveldb", &sandbox.path("leveldb"), 10) {
        let line = fails(1, &["import", "--db", db, "--from", "rocksdb", leveldb.to_str().unwrap()]);
        assert!(line.contains("no rocksdb database"), "{line}");
        let line = fails(1, &["import", "--db", db, "--from", "leveldb", "--table", "t", leveldb.to_str().unwrap()]);
        assert!(line.contains("no tables"), "{line}");
    }
    // Seen: the advice was an option of the benchmarks.
    let (existing, library) = (sandbox.path("existing"), sandbox.text("nosuch.so"));
    std::fs::create_dir_all(&existing).unwrap();
    std::fs::write(existing.join("CURRENT"), "").unwrap();
    let existing = existing.to_str().unwrap();
    let line = fails(1, &["import", "--db", db, "--from", "leveldb", "--library", &library, existing]);
    assert!(line.contains("--library PATH") && !line.contains("--lib "), "{line}");
    assert!(fails(2, &["import", "--db", db, "--from", "kyoto", "x"]).contains("kyoto"));
    // Seen: it was taken, and mixed with what the imports note there.
    let redb = write("redb", &sandbox.path("markers"), 10).unwrap();
    let progress = ["import", "--db", db, "--keyspace", "import progress", "--from", "redb", redb.to_str().unwrap()];
    assert!(fails(2, &progress).contains("says how far imports are"));
    let redb = write("redb", &sandbox.path("redb"), 10).unwrap();
    let line = fails(1, &["import", "--db", db, "--from", "redb", "--table", "nosuch", redb.to_str().unwrap()]);
    assert!(line.contains("there is no table \"nosuch\"; there are: test"), "{line}");
    assert!(!Path::new(db).exists());
}
