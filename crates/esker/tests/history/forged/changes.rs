//! Changes: a log, and what a manifest lists of them. Read by a reader of the database, by the
//! writer, and by followers, one of which was there before the files were.

use super::trying::{Outcomes, options, outcomes};
use super::writing::{
    BATCH, BEHIND_LINK, CHANGES_FROM, Files, KEYSPACE, counted, first_edit, keyspace_edit, manifest, put, segment,
    sound_database, varint, varints,
};
use esker::env::mem::MemEnv;
use esker::{ChangeRetention, Db};
use std::path::Path;
use std::sync::Arc;

type Record = (u64, u64, Vec<u8>);

fn batch(sequence: u64, keys: &[&str]) -> Record {
    (BATCH, sequence, keys.iter().flat_map(|key| put(KEYSPACE, key.as_bytes())).collect())
}

fn text(name: &str) -> Vec<u8> {
    counted(name.as_bytes())
}

fn loaded(sequence: u64, keyspace: u64) -> Vec<u8> {
    varints(&[14, sequence, keyspace])
}

/// That the keyspace had another name until there.
fn altered(sequence: u64, keyspace: u64, former: &str) -> Vec<u8> {
    [varints(&[16, sequence, keyspace]), text(former), text(""), varint(0)].concat()
}

fn dropped(sequence: u64, keyspace: u64, name: &str) -> Vec<u8> {
    [varints(&[15, sequence, keyspace]), text(name), text("bytewise")].concat()
}

/// A database with these edits and the writes 1001, of `a`, and 1003 and 1004, of `b` and `c`, in a
/// segment each. The last write is 1010.
fn database(more: &[Vec<u8>]) -> Files {
    let edits = [vec![varints(&[2, 1010])], more.to_vec()].concat();
    let mut files = manifest(&[first_edit(&edits)]);
    let first = [batch(CHANGES_FROM, &["a"])];
    let end = BEHIND_LINK + (24 + first[0].2.len() as u64).next_multiple_of(8);
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &first));
    files.insert("000002.wal".into(), segment(2, [1, end, 64], &[batch(1003, &["b", "c"])]));
    files
}

fn tried(name: &str, more: &[Vec<u8>]) -> Outcomes {
    outcomes(&format!("changes-{name}"), &database(more))
}

/// The changes that are kept, with the names that their keyspaces had.
fn listed(db: &Db) -> Vec<(u64, String)> {
    let batches = db.changes(0).unwrap().map(|batch| batch.unwrap().changes);
    batches.flatten().map(|change| (change.sequence, change.keyspace.to_string())).collect()
}

fn pairs(db: &Db) -> usize {
    db.existing_keyspace("k").unwrap().iter().map(Result::unwrap).count()
}

/// What the forger writes is what the engine reads, as a reader, as a follower, as one that was
/// there before, and as the writer.
#[test]
fn changes_that_were_forged_without_a_lie_are_all_read() {
    let files = database(&[
        varints(&[12, 3]),
        altered(1002, KEYSPACE, "former"),
        loaded(1005, KEYSPACE),
        dropped(1006, 2, "gone"),
    ]);
    let env = MemEnv::new();
    let [data, followed] = ["/data", "/followed"].map(Path::new);
    let lay = |directory: &Path, files: &Files| {
        files.iter().for_each(|(name, bytes)| env.set_file_bytes(&directory.join(name), bytes.clone()));
    };
    let options = options(Arc::new(env.clone()));
    lay(data, &files);
    lay(followed, &sound_database());
    let before = Db::open_follower(followed, options.clone()).unwrap();
    assert_eq!((listed(before.db()), pairs(before.db())), (Vec::new(), 0));
    lay(followed, &files);
    assert!(before.catch_up().unwrap().at_end);
    let expected = [(1001, "former"), (1002, "k"), (1003, "k"), (1004, "k"), (1005, "k"), (1006, "gone")]
        .map(|(sequence, name): (u64, &str)| (sequence, name.to_owned()));
    let check = |who: &str, db: &Db| {
        assert_eq!(listed(db), expected, "{who}");
        assert_eq!(pairs(db), 3, "{who}");
    };
    check("the follower of before", before.db());
    check("a reader", &Db::open_read_only(data, options.clone()).unwrap());
    check("a follower", Db::open_follower(data, options.clone()).unwrap().db());
    check("the writer", &Db::open(data, options.keep_changes(ChangeRetention::AsBefore)).unwrap());
}

/// Loads, drops and other settings of keyspaces that are not there, that are, or that were not yet;
/// changes that begin in the middle of a batch, behind the log, or in a segment that is not there.
#[test]
fn lists_of_changes_that_lie_are_an_error_or_an_answer() {
    let very_many = (0..5000).map(|number| loaded(CHANGES_FROM + number, KEYSPACE)).collect::<Vec<_>>().concat();
    for (name, edits) in [
        ("load-of-no-keyspace", vec![loaded(1002, 9)]),
        ("drop-of-what-is-there", vec![dropped(1002, KEYSPACE, "k")]),
        ("drop-under-the-name-of-another", vec![varints(&[12, 3]), dropped(1002, 2, "k")]),
        ("drop-again-and-again", vec![dropped(1002, 2, "a"), dropped(1005, 2, "b"), dropped(1006, 2, "c")]),
        ("alteration-of-no-keyspace", vec![altered(1002, 9, "x")]),
        ("alteration-by-a-batch", vec![altered(1003, KEYSPACE, "x"), altered(1004, KEYSPACE, "y")]),
        ("alteration-without-a-name", vec![altered(1002, KEYSPACE, "")]),
        ("behind-the-last-write", vec![loaded(1011, KEYSPACE), loaded(5000, KEYSPACE)]),
        ("more-than-are-listed", vec![very_many]),
        ("from-the-middle-of-a-batch", vec![varints(&[13, 1004, 1])]),
        ("from-behind-the-log", vec![varints(&[13, 1009, 1])]),
        ("from-behind-the-last-write", vec![varints(&[13, 5000, 1])]),
        ("from-a-segment-that-is-not-there", vec![varints(&[13, CHANGES_FROM, 77])]),
        ("recovered-in-a-segment-that-is-not-there", vec![varints(&[18, CHANGES_FROM, 77])]),
        ("recovered-behind-the-last-write", vec![varints(&[18, 5000, 1])]),
        ("in-a-keyspace-that-came-later", vec![keyspace_edit(2, "later"), loaded(1002, 2)]),
    ] {
        let found = tried(name, &edits);
        let typed = |outcome: &String| {
            let kinds = ["ok", "Corruption", "InvalidArgument", "KeyspaceDropped", "Gone"];
            kinds.iter().any(|kind| outcome.starts_with(kind))
        };
        assert!(found.values().all(typed), "{name}: {found:#?}");
        // No answer but that of a reader of changes depends on what is listed for those.
        for what in ["read", "verify directory", "open", "get and scan", "repair", "after repair"] {
            assert_eq!(found[what], "ok", "{name}, {what}: {found:#?}");
        }
    }
    let found = tried("of-no-keyspace", &[loaded(1002, 9)]);
    assert!(found["changes"].starts_with("KeyspaceDropped"), "{found:#?}");
}

/// What is listed in front of a lie is read once, and then the lie is an error: a reader that would
/// begin again would never come to an end.
#[test]
fn a_change_in_front_of_one_that_lies_is_read_once() {
    let found = tried("in-front-of-a-lie", &[loaded(1005, KEYSPACE), loaded(1006, 9)]);
    assert!(found["changes"].starts_with("KeyspaceDropped"), "{found:#?}");
}
