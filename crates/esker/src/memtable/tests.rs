use super::*;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::iter::Cursor;
use crate::merge_operator::UInt64Add;
use std::ops::ControlFlow;
use std::sync::Arc;

fn write(writer: &mut MemtableWriter, sequence: Sequence, kind: Kind, key: &[u8], value: &[u8], snapshot: Sequence) {
    let entry = Entry { key, sequence, kind, expiry_ms: NEVER, value };
    let context =
        WriteContext { newest_snapshot: snapshot, operator: Some(&UInt64Add), adds_uint64: true, reserved: 0 };
    writer.apply(hash(key), entry, context);
}

fn versions(memtable: &Memtable, key: &[u8], at: Sequence) -> Vec<(Sequence, Kind, Vec<u8>)> {
    let mut found = Vec::new();
    let _ = memtable.get(key, hash(key), at, &mut |entry| {
        found.push((entry.sequence, entry.kind, entry.value.to_vec()));
        ControlFlow::Continue(())
    });
    found
}

fn scan(memtable: &Arc<Memtable>) -> Vec<(Vec<u8>, Sequence)> {
    let mut cursor = memtable.sealed_cursor();
    cursor.seek_to_first().expect("memory");
    let mut found = Vec::new();
    while cursor.valid() {
        found.push((cursor.entry().key.to_vec(), cursor.entry().sequence));
        cursor.next().expect("memory");
    }
    found
}

#[test]
#[should_panic(expected = "another arena's")]
fn nobody_appends_to_a_foreign_arena() {
    let pool = Arc::default();
    let arena = |_| arena::Arena::new(4096, &pool);
    let ([(_, mut appender), (arena, _)], entry) =
        ([0, 1].map(arena), Entry { key: b"k", sequence: 1, kind: Kind::Put, expiry_ms: NEVER, value: b"v" });
    arena.append(&mut appender, &entry, 0, 0);
}

#[test]
fn counters_fold_in_place_unless_a_snapshot_needs_the_old_value() {
    let (memtable, mut writer) = Memtable::create(4096, 0, &Arc::default());
    let one = 1u64.to_le_bytes();
    for sequence in 1..=3 {
        write(&mut writer, sequence, Kind::Merge, b"k", &one, 0);
    }
    assert_eq!(versions(&memtable, b"k", MAX_SEQUENCE), [(3, Kind::Merge, 3u64.to_le_bytes().to_vec())]);
    write(&mut writer, 4, Kind::Merge, b"k", &one, 3);
    assert_eq!(versions(&memtable, b"k", MAX_SEQUENCE).len(), 2);
    assert_eq!(versions(&memtable, b"k", 3), [(3, Kind::Merge, 3u64.to_le_bytes().to_vec())]);
    assert_eq!(scan(&memtable), [(b"k".to_vec(), 4), (b"k".to_vec(), 3)]);
}

#[test]
fn superseded_entries_die_and_are_not_scanned() {
    let (memtable, mut writer) = Memtable::create(4096, 0, &Arc::default());
    write(&mut writer, 1, Kind::Put, b"a", b"old value", 0);
    write(&mut writer, 2, Kind::Put, b"b", b"", 0);
    write(&mut writer, 3, Kind::Put, b"a", b"new", 0);
    write(&mut writer, 4, Kind::Delete, b"b", b"", 0);
    assert_eq!(scan(&memtable), [(b"a".to_vec(), 3), (b"b".to_vec(), 4)]);
    assert_eq!(memtable.live(), 2);
    // A merge onto a delete starts from nothing and becomes a put.
    write(&mut writer, 5, Kind::Merge, b"b", &7u64.to_le_bytes(), 0);
    assert_eq!(versions(&memtable, b"b", MAX_SEQUENCE), [(5, Kind::Put, 7u64.to_le_bytes().to_vec())]);
}

#[test]
fn random_writes_are_found_and_ordered_while_growing() {
    let (memtable, mut writer) = Memtable::create(4 << 20, 0, &Arc::default());
    let mut model = std::collections::BTreeMap::new();
    let mut state = 1u64;
    for sequence in 1..=if cfg!(miri) { 100 } else { 20_000u64 } {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let key = format!("common/{:05}", (state >> 33) % 5000).into_bytes();
        let value = vec![sequence as u8; (state >> 20) as usize % 20];
        write(&mut writer, sequence, Kind::Put, &key, &value, 0);
        model.insert(key, (sequence, value));
        if sequence % 1000 == 0 {
            let mut total = 0;
            memtable.cursors(|_| total += 1);
            assert!(total < 20, "a logarithm of runs, not {total}");
        }
    }
    for (key, (sequence, value)) in &model {
        let newest = &versions(&memtable, key, MAX_SEQUENCE)[0];
        assert_eq!(newest.2, *value);
        assert!(newest.0 == *sequence);
    }
    let scanned: Vec<_> = scan(&memtable);
    let expected: Vec<_> = model.iter().map(|(key, (sequence, _))| (key.clone(), *sequence)).collect();
    assert_eq!(scanned, expected);
    let mut cursor = memtable.sealed_cursor();
    cursor.seek(b"common/02500", MAX_SEQUENCE).expect("memory");
    let expected = model.range(b"common/02500".to_vec()..).next().expect("there is one");
    assert_eq!(cursor.entry().key, expected.0);
    cursor.seek(b"a", MAX_SEQUENCE).expect("memory");
    assert_eq!(cursor.entry().key, model.keys().next().expect("first"));
    cursor.seek(b"d", MAX_SEQUENCE).expect("memory");
    assert!(!cursor.valid());
}

#[test]
fn readers_run_beside_the_writer() {
    let (memtable, mut writer) = Memtable::create(1 << 20, 0, &Arc::default());
    let rounds = if cfg!(miri) { 50 } else { 20_000u64 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while last < rounds {
                for (_, _, value) in versions(&memtable, b"counter", MAX_SEQUENCE) {
                    let now = u64::from_le_bytes(value.try_into().expect("eight bytes"));
                    assert!(now >= last);
                    last = now;
                }
                if last % 7 == 0 {
                    memtable.cursors(drop);
                }
            }
        });
        for sequence in 1..=rounds {
            write(&mut writer, sequence, Kind::Merge, b"counter", &1u64.to_le_bytes(), 0);
            let key = (sequence % 1000).to_string();
            write(&mut writer, sequence, Kind::Put, key.as_bytes(), b"0123456", 0);
        }
    });
}
