//! Sources of an import that have several tables, or columns and keys of other types.
#![allow(clippy::unwrap_used)]

use esker_engines::import::{Place, open};
use std::path::Path;

fn place(path: &Path, table: Option<&str>) -> Place {
    Place { path: path.to_path_buf(), table: table.map(str::to_owned), ..Place::default() }
}

fn error(engine: &str, place: &Place) -> String {
    open(engine, place).err().expect("an error").0
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn read(engine: &str, place: &Place, after: Option<&[u8]>) -> Pairs {
    let mut pairs = Pairs::new();
    open(engine, place)
        .unwrap()
        .read(after, &mut |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    pairs
}

fn pairs(all: &[(&str, &str)]) -> Pairs {
    all.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

#[test]
fn sqlite_takes_the_columns_as_their_bytes_in_the_order_of_these() {
    let scratch = tempfile::tempdir().unwrap();
    let path = &scratch.path().join("app.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE \"us\"\"ers\" (id, name, body BLOB); CREATE TABLE other (a);
             INSERT INTO \"us\"\"ers\" VALUES (10, 'ada', x'00ff'), (9, 'bob', 'text'), ('x', 'eve', 7)",
        )
        .unwrap();
    assert!(error("sqlite", &place(path, None)).contains("there are: us\"ers, other"));
    assert!(error("sqlite", &place(path, Some("other"))).contains("no two columns"));
    let users = place(path, Some("us\"ers"));
    assert_eq!(read("sqlite", &users, None), pairs(&[("10", "ada"), ("9", "bob"), ("x", "eve")]));
    assert_eq!(read("sqlite", &users, Some(b"10")), pairs(&[("9", "bob"), ("x", "eve")]));
    assert_eq!(open("sqlite", &users).unwrap().pairs(), Some(3));
    let columns = |key: &str, value: &str| Place { columns: Some((key.into(), value.into())), ..users.clone() };
    let by_name = read("sqlite", &columns("name", "body"), Some(b"ada"));
    assert_eq!(by_name, pairs(&[("bob", "text"), ("eve", "7")]));
    assert_eq!(read("sqlite", &columns("name", "body"), None)[0].1, b"\0\xff");
    assert!(error("sqlite", &columns("name", "nosuch")).contains("there are: id, name, body"));
    connection.execute_batch("INSERT INTO \"us\"\"ers\" VALUES (NULL, 'nobody', 1)").unwrap();
    for after in [None, Some(&b"9"[..])] {
        let outcome = open("sqlite", &users).unwrap().read(after, &mut |_, _| true);
        assert!(outcome.unwrap_err().0.contains("NULL"), "{after:?}");
    }
}

#[test]
fn redb_has_tables_of_bytes_and_others_are_refused_by_their_types() {
    let scratch = tempfile::tempdir().unwrap();
    let path = &scratch.path().join("app.redb");
    let database = redb::Database::create(path).unwrap();
    let bytes: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("bytes");
    let numbers: redb::TableDefinition<'_, u64, &str> = redb::TableDefinition::new("numbers");
    let txn = database.begin_write().unwrap();
    txn.open_table(bytes).unwrap().insert(&b"a"[..], &b"1"[..]).unwrap();
    txn.open_table(bytes).unwrap().insert(&b"b"[..], &b""[..]).unwrap();
    txn.open_table(numbers).unwrap().insert(7, "seven").unwrap();
    txn.commit().unwrap();
    drop(database);
    assert!(error("redb", &place(path, None)).contains("there are: bytes, numbers"));
    assert!(error("redb", &place(path, Some("numbers"))).contains("only tables of byte slices"));
    assert_eq!(read("redb", &place(path, Some("bytes")), None), pairs(&[("a", "1"), ("b", "")]));
    assert_eq!(read("redb", &place(path, Some("bytes")), Some(b"a")), pairs(&[("b", "")]));
}

#[test]
fn fjall_has_keyspaces_and_a_missing_one_is_not_created() {
    let scratch = tempfile::tempdir().unwrap();
    let path = &scratch.path().join("fjall");
    {
        let database = fjall::Database::builder(path).open().unwrap();
        for name in ["one", "two"] {
            let keyspace = database.keyspace(name, fjall::KeyspaceCreateOptions::default).unwrap();
            keyspace.insert("key", name).unwrap();
        }
    }
    assert!(error("fjall", &place(path, None)).contains("there are: one, two"));
    assert!(error("fjall", &place(path, Some("three"))).contains("there are: one, two"));
    assert_eq!(read("fjall", &place(path, Some("two")), None), pairs(&[("key", "two")]));
    assert!(error("fjall", &place(path, None)).contains("there are: one, two"), "none was created");
}

#[test]
fn lmdb_has_named_databases_beside_an_unnamed_one() {
    let scratch = tempfile::tempdir().unwrap();
    let source = esker_engines::registry::find("lmdb").unwrap();
    let engine = (source.open)(scratch.path(), &Default::default(), None).unwrap();
    {
        let mut session = engine.session().unwrap();
        for (key, value) in [("a", "1"), ("b", "2")] {
            session.put(key.as_bytes(), value.as_bytes(), Default::default()).unwrap();
        }
        // As long as the record of a named database, and none.
        session.put(b"c", &[7; 48], Default::default()).unwrap();
    }
    engine.close().unwrap();
    assert_eq!(read("lmdb", &place(scratch.path(), None), Some(b"a"))[0], pairs(&[("b", "2")])[0]);
    assert_eq!(open("lmdb", &place(scratch.path(), None)).unwrap().pairs(), Some(3));
    assert!(error("lmdb", &place(scratch.path(), Some("t"))).contains("no named database"));
    assert_eq!(read("lmdb", &place(&scratch.path().join("data.mdb"), None), None).len(), 3);
}
