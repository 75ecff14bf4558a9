//! Manifests.

use super::trying::{Outcomes, outcomes};
use super::writing::{
    CHANGES_FROM, Files, KEYSPACE, TableParts, add_table, counted, entry, first_edit, keyspace_edit, manifest,
    properties, reference, section, segment, varint, varints,
};
use std::thread;

const NUMBER: u64 = 20;

fn table(number: u64, keys: &[&str]) -> Vec<u8> {
    let entries = keys.iter().zip(11..).map(|(key, sequence)| entry(key, sequence)).collect();
    TableParts::new(number, &[entries]).build()
}

/// A database with these edits behind the first one, and these tables under their numbers.
fn tried(name: &str, more: &[Vec<u8>], tables: &[(u64, Vec<u8>)]) -> Outcomes {
    let mut files: Files = manifest(&[first_edit(more)]);
    for (number, table) in tables {
        files.insert(format!("{number:06}.table"), table.clone());
    }
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &[]));
    outcomes(&format!("manifest-{name}"), &files)
}

fn assert_refused(name: &str, more: &[Vec<u8>], tables: &[(u64, Vec<u8>)]) {
    let found = tried(name, more, tables);
    for what in ["read", "open"] {
        assert!(found[what].starts_with("Corruption"), "{name}, {what}: {found:#?}");
    }
    assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
}

/// One table in two keyspaces, twice in one, or in a keyspace that is not there.
#[test]
fn a_table_belongs_to_one_keyspace_once() {
    let file = table(NUMBER, &["a", "b"]);
    let add = |keyspace, run| add_table(keyspace, run, NUMBER, &file);
    let tables = [(NUMBER, file.clone())];
    assert_refused("table-in-two-keyspaces", &[keyspace_edit(2, "other"), add(1, 30), add(2, 30)], &tables);
    assert_refused("table-twice", &[add(1, 30), add(1, 31)], &tables);
    assert_refused("table-of-no-keyspace", &[add(9, 30)], &tables);
    assert_refused("table-removed-before-it-came", &[varints(&[7, KEYSPACE, NUMBER])], &[]);
}

/// Tables of a run overlap; or are a run that is another table's number.
#[test]
fn tables_of_a_run_that_overlap_are_noticed() {
    let (first, second) = (table(20, &["a", "c"]), table(21, &["b", "d"]));
    let edits = [add_table(KEYSPACE, 30, 20, &first), add_table(KEYSPACE, 30, 21, &second)];
    assert_refused("tables-overlap", &edits, &[(20, first), (21, second)]);
}

/// A table that says that it is its own blob file, or that another table is.
#[test]
fn a_table_is_not_its_own_blob_file() {
    for blob in [NUMBER, NUMBER + 1] {
        let entries = vec![(b"large".to_vec(), 11, super::writing::LARGE, reference(blob, 40, 30, 7))];
        let mut parts = TableParts::new(NUMBER, std::slice::from_ref(&entries));
        let all: Vec<_> = entries.iter().collect();
        parts.properties = [properties(&all), section(8, &varints(&[blob, 40]))].concat();
        let (file, other) = (parts.build(), table(NUMBER + 1, &["z"]));
        let edits = [add_table(KEYSPACE, 31, NUMBER, &file), add_table(KEYSPACE, 30, NUMBER + 1, &other)];
        let found = tried(&format!("blob-is-table-{blob}"), &edits, &[(NUMBER, file), (NUMBER + 1, other)]);
        assert!(found["read"].starts_with("Corruption"), "{found:#?}");
        assert!(found["open"].starts_with("Corruption") || found["verify"].starts_with("Corruption"), "{found:#?}");
        assert_eq!(found["repair"], "ok", "{found:#?}");
    }
}

/// Fields whose numbers are these, as far as one number is at issue, by name.
fn fields_with(largest: u64, table_bytes: u64) -> Vec<(&'static str, Vec<u8>)> {
    let [name, bytewise, operator] = ["former", "bytewise", "max"].map(|name| counted(name.as_bytes()));
    let altered = |numbers: &[u64], ttl: u64| [varints(numbers), name.clone(), operator.clone(), varint(ttl)].concat();
    let dropped = |numbers: &[u64]| [varints(numbers), name.clone(), bytewise.clone()].concat();
    let dropped_with_settings = |numbers: &[u64], ttl: u64| [dropped(numbers), operator.clone(), varint(ttl)].concat();
    vec![
        ("next-file", varints(&[1, largest])),
        ("last-sequence", varints(&[2, largest])),
        ("log-floor", varints(&[3, largest])),
        ("keyspace", keyspace_edit(largest, "far")),
        ("flushed", varints(&[5, KEYSPACE, largest])),
        ("run", varints(&[6, KEYSPACE, largest, NUMBER, table_bytes])),
        ("table", varints(&[6, KEYSPACE, 30, largest, table_bytes])),
        ("table-bytes", varints(&[6, KEYSPACE, 30, NUMBER, largest])),
        ("removed", varints(&[7, KEYSPACE, largest])),
        ("closed", varints(&[8, largest, largest])),
        ("closed-at", varints(&[8, 1, largest])),
        ("style", varints(&[9, KEYSPACE, largest, largest])),
        ("style-parameter", varints(&[9, KEYSPACE, 3, largest])),
        ("log-synced", varints(&[10, largest, largest])),
        ("log-synced-at", varints(&[10, 1, largest])),
        ("keyspace-dropped", varints(&[11, largest])),
        ("next-keyspace", varints(&[12, largest])),
        ("changes-from", varints(&[13, largest, 1])),
        ("changes-segment", varints(&[13, CHANGES_FROM, largest])),
        ("loaded", varints(&[14, largest, KEYSPACE])),
        ("loaded-keyspace", varints(&[14, CHANGES_FROM, largest])),
        ("dropped", dropped(&[15, largest, KEYSPACE])),
        ("dropped-keyspace", dropped(&[15, CHANGES_FROM, largest])),
        ("altered", altered(&[16, largest, KEYSPACE], 0)),
        ("altered-keyspace", altered(&[16, CHANGES_FROM, largest], 0)),
        ("altered-ttl", altered(&[16, CHANGES_FROM, KEYSPACE], largest)),
        ("dropped-with-settings", dropped_with_settings(&[17, largest, KEYSPACE], 0)),
        ("dropped-ttl", dropped_with_settings(&[17, CHANGES_FROM, 2], largest)),
        ("recovered", varints(&[18, largest, 1])),
        ("recovered-segment", varints(&[18, CHANGES_FROM, largest])),
        ("unknown", varints(&[largest, largest])),
    ]
}

/// Numbers that any value is right for.
const UNBOUNDED: [&str; 3] = ["style-parameter", "altered-ttl", "dropped-ttl"];

fn assert_does_not_wrap(which: &str, largest: u64) {
    let file = table(NUMBER, &["a", "b"]);
    for (name, edit) in fields_with(largest, file.len() as u64) {
        let found = tried(&format!("{name}-{which}"), &[edit], &[(NUMBER, file.clone())]);
        let typed = |outcome: &String| {
            let kinds = ["ok", "Corruption", "InvalidArgument", "Unsupported", "KeyspaceDropped", "Gone"];
            kinds.iter().any(|kind| outcome.starts_with(kind))
        };
        assert!(found.values().all(typed), "{name}: {found:#?}");
        if largest == u64::MAX && !UNBOUNDED.contains(&name) {
            assert!(found["open"].starts_with("Corruption"), "{name}: {found:#?}");
        }
        assert_eq!(found["repair"], "ok", "{name}: {found:#?}");
        assert_eq!(found["after repair"], "ok", "{name}: {found:#?}");
    }
}

/// Every number at its largest, and at the largest that is possible. Most of the time nothing is
/// done: a reader tries again what does not open.
#[test]
fn numbers_at_their_largest_do_not_wrap() {
    thread::scope(|scope| {
        for (which, largest) in [("over", u64::MAX), ("first-over", 1 << 56), ("last", (1 << 56) - 1)] {
            scope.spawn(move || assert_does_not_wrap(which, largest));
        }
    });
}

/// Two keyspaces of one name, names that no caller may use, and many keyspaces.
#[test]
fn keyspaces_that_nobody_could_have_created() {
    let long = "n".repeat(1 << 20);
    for (name, edits) in [
        ("one-name-twice", vec![keyspace_edit(2, "k")]),
        ("one-number-twice", vec![keyspace_edit(1, "other")]),
        ("no-name", vec![keyspace_edit(2, "")]),
        ("control-characters", vec![keyspace_edit(2, "\u{7}\n\u{0}")]),
        ("a-name-of-1-mib", vec![keyspace_edit(2, &long)]),
        ("keyspace-0", vec![keyspace_edit(0, "zero")]),
    ] {
        let found = tried(name, &edits, &[]);
        assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
    }
    let many: Vec<Vec<u8>> = (2..60).map(|id| keyspace_edit(id, &format!("k{id}"))).collect();
    let found = tried("many", &many, &[]);
    assert!(found.values().all(|outcome| outcome == "ok"), "{found:#?}");
}
