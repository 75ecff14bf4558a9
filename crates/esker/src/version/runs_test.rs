//! Runs of tables, and cursors over them.

use super::cursor::AnyCursor;
use super::runs::{Run, Version};
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER};
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::iter::{Cursor, LAST_STAGE, PlainSearch};
use crate::options::ReadMode;
use crate::table::{BlockCache, Table, TableBuilder, TableOptions};
use std::path::PathBuf;
use std::sync::Arc;

/// A table of these keys, each a put.
fn table(number: u64, keys: &[&str]) -> Arc<Table> {
    let (env, path) = (MemEnv::new(), PathBuf::from("table"));
    let file = env.create(&path).expect("no fault is set");
    let mut builder = TableBuilder::new(file, path.clone(), number, TableOptions::default());
    for key in keys {
        let entry = Entry { key: key.as_bytes(), sequence: 1, kind: Kind::Put, expiry_ms: NEVER, value: b"v" };
        builder.add(entry).expect("keys in order");
    }
    builder.finish().expect("no fault is set");
    let file = env.open(&path).expect("it was made");
    Table::open(file, path, number, Arc::new(BlockCache::new(1 << 20)), ReadMode::Pread).expect("a good table")
}

#[test]
fn tables_go_into_the_deepest_run_that_they_do_not_overlap() {
    let version = Version::from_tables([(5, table(5, &["a"])), (3, table(3, &["b"])), (2, table(2, &["m", "z"]))]);
    let run = |keys: &[&str], above| version.deepest_free_run(&[table(9, keys)], above);
    assert_eq!(run(&["c", "d"], None), Some(2));
    assert_eq!(run(&["n"], None), Some(3));
    assert_eq!(run(&["b"], None), Some(5));
    assert_eq!(run(&["a"], None), None);
    // A compaction reads the runs up to this one.
    assert_eq!(run(&["c"], Some(2)), Some(3));
    assert_eq!(run(&["c"], Some(3)), Some(5));
    assert_eq!(run(&["c"], Some(5)), None);
}

/// A cursor over one table has no use for the run. Over several, the table that a seek will read is
/// open when its parts are prefetched.
#[test]
fn a_cursor_over_a_run_passes_on_what_its_tables_say() {
    let [first, second] = [table(1, &["a", "b", "c"]), table(2, &["m", "n", "o"])];
    let one = Arc::new(Run::new(1, vec![Arc::clone(&first)]));
    assert!(matches!(AnyCursor::over(&one, true), AnyCursor::Table(_)));
    let two = Arc::new(Run::new(1, vec![first, second]));
    let mut cursor = AnyCursor::over(&two, true);
    for stage in 0..=LAST_STAGE {
        cursor.prepare(b"n", stage);
        assert!(matches!(&cursor, AnyCursor::Tables(tables) if tables.open_table() == Some(1)), "stage {stage}");
    }
    cursor.seek(b"n", MAX_SEQUENCE).expect("a good table");
    assert_eq!(cursor.key(), b"n");
    assert!(cursor.is_first_of_key());
    assert_eq!(cursor.plain_run(PlainSearch { sequence: 1, backward: false, until: None }), 1);
    assert_eq!(cursor.plain_run(PlainSearch { sequence: 0, backward: false, until: None }), 0);
}
