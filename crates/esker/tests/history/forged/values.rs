//! Large values, and places beyond 4 GiB.

use super::trying::{Outcomes, outcomes};
use super::writing::{
    Files, HOLE_BYTES, KEYSPACE, LARGE, TableParts, add_table, blob, checksum, entry, first_edit, lz4_bomb, manifest,
    properties, reference, section, segment, value_of, varints, zstd_lies, zstd_stored,
};
use crate::common::Scratch;
use esker::{Compression, Db, Options, ReadMode};
use std::fs;
use std::os::unix::fs::FileExt;

const TABLE: u64 = 20;
const BLOB: u64 = 21;
const COMPRESSED: u32 = 1 << 31;

/// A table with one large value and its reference, and a small one.
fn table(value: &[u8], file: u64, bytes: u64) -> Vec<u8> {
    let entries = vec![entry("a", 11), (b"large".to_vec(), 12, LARGE, value.to_vec())];
    let mut parts = TableParts::new(TABLE, std::slice::from_ref(&entries));
    let all: Vec<_> = entries.iter().collect();
    parts.properties = [properties(&all), section(8, &varints(&[file, bytes]))].concat();
    parts.build()
}

fn tried(name: &str, value: &[u8], file: u64, blob: Vec<u8>) -> Outcomes {
    // What the reference says, as long as it is one: only what is wrong with it is to be found.
    let stored = value.get(16..20).map_or(0, |word| u32::from_le_bytes(word.try_into().unwrap()) & !COMPRESSED);
    let table = table(value, file, (8 + u64::from(stored)).next_multiple_of(8));
    let mut files: Files = manifest(&[first_edit(&[add_table(KEYSPACE, 30, TABLE, &table)])]);
    files.insert(format!("{TABLE:06}.table"), table);
    files.insert(format!("{BLOB:06}.blob"), blob);
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &[]));
    outcomes(&format!("value-{name}"), &files)
}

fn sound() -> (Vec<u8>, Vec<u8>, u32) {
    let stored = value_of(b"large");
    let sum = checksum(BLOB, 40, &stored);
    (blob(BLOB, 1, &stored, false), stored, sum)
}

/// What the forger writes is what the engine reads.
#[test]
fn a_large_value_that_was_forged_without_a_lie_is_read() {
    let (file, stored, sum) = sound();
    let found = tried("sound", &reference(BLOB, 40, stored.len() as u32, sum), BLOB, file);
    assert!(found.values().all(|outcome| outcome == "ok"), "{found:#?}");
}

/// References past the end, to other kinds of files, of lengths that are not there.
#[test]
fn references_that_lead_nowhere_are_refused() {
    let (file, stored, sum) = sound();
    let bytes = stored.len() as u32;
    let wrong = [
        ("past-the-end", reference(BLOB, file.len() as u64, bytes, sum), BLOB),
        ("far-past-the-end", reference(BLOB, 1 << 40, bytes, sum), BLOB),
        ("wraps", reference(BLOB, u64::MAX - 3, bytes, sum), BLOB),
        ("2-gib", reference(BLOB, 40, COMPRESSED - 1, sum), BLOB),
        ("2-gib-compressed", reference(BLOB, 40, u32::MAX, sum), BLOB),
        ("into-the-header", reference(BLOB, 0, bytes, sum), BLOB),
        ("no-file", reference(BLOB + 1, 40, bytes, sum), BLOB + 1),
        ("file-at-its-largest", reference(u64::MAX, 40, bytes, sum), u64::MAX),
        ("a-table", reference(TABLE, 40, bytes, sum), TABLE),
        ("too-short", reference(BLOB, 40, bytes, sum)[..23].to_vec(), BLOB),
        ("not-in-the-properties", reference(BLOB, 40, bytes, sum), BLOB + 1),
    ];
    for (name, value, named) in wrong {
        let found = tried(name, &value, named, file.clone());
        let told = |what: &str| found.get(what).is_some_and(|outcome| outcome.starts_with("Corruption"));
        assert!(told("open") || told("verify"), "{name}: {found:#?}");
        assert_eq!(found["repair"], "ok", "{name}: {found:#?}");
    }
}

/// Values that claim to become more than they can.
#[test]
fn values_that_unpack_to_too_much_are_refused() {
    for (name, stored) in [
        ("4-gib-of-40-bytes", [u32::MAX.to_le_bytes().to_vec(), vec![0x10; 36]].concat()),
        ("1-gib-of-40-bytes", [(1u32 << 30).to_le_bytes().to_vec(), vec![0x10; 36]].concat()),
        ("less-than-it-makes", lz4_bomb(100, 4000)),
        ("more-than-it-makes", lz4_bomb(900_000, 4000)),
    ] {
        let sum = checksum(BLOB, 41, &stored);
        let value = reference(BLOB, 40, stored.len() as u32 | COMPRESSED, sum);
        let found = tried(name, &value, BLOB, blob(BLOB, 2, &stored, true));
        assert!(found["verify"].starts_with("Corruption"), "{name}: {found:#?}");
        assert!(found["get and scan"].starts_with("Corruption"), "{name}: {found:#?}");
    }
}

/// A large value that is stored in a file of zstd's.
fn tried_with_zstd(name: &str, stored: &[u8]) -> Outcomes {
    let value = reference(BLOB, 40, stored.len() as u32 | COMPRESSED, checksum(BLOB, 41, stored));
    tried(&format!("zstd-{name}"), &value, BLOB, blob(BLOB, 3, stored, true))
}

/// What the forger compresses is what the engine decompresses. A build without zstd opens no such
/// file.
#[test]
fn a_large_value_that_was_forged_with_zstd_and_without_a_lie_is_read() {
    let found = tried_with_zstd("sound", &zstd_stored(&value_of(b"large")));
    let is_read = found.values().all(|outcome| outcome == "ok");
    let is_refused = found["open"].starts_with("UnsupportedCompression");
    assert!(if Compression::Zstd.is_available() { is_read } else { is_refused }, "{found:#?}");
}

#[test]
fn values_that_zstd_unpacks_to_too_much_are_refused() {
    for (name, stored) in zstd_lies() {
        let found = tried_with_zstd(name, &stored);
        if Compression::Zstd.is_available() {
            assert!(found["verify"].starts_with("Corruption"), "{name}: {found:#?}");
            assert!(found["get and scan"].starts_with("Corruption"), "{name}: {found:#?}");
        } else {
            assert!(found["open"].starts_with("UnsupportedCompression"), "{name}: {found:#?}");
        }
    }
}

/// Writes `end` behind a hole.
fn write_behind_hole(path: &std::path::Path, offset: u64, end: &[u8]) {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
    file.write_all_at(end, offset).unwrap();
}

/// No place in a file is cut to 32 bits: a table whose last block lies behind 5 GiB of others, and
/// a large value as far into its file. Files of holes: almost nothing is on the device.
#[test]
fn places_beyond_4_gib_are_places() {
    let holes: Vec<String> = (0..330).map(|at| format!("hole{at:03}")).collect();
    let hole_bytes = holes.len() as u64 * HOLE_BYTES;
    assert!(hole_bytes > 5 << 30);
    let far = 40 + hole_bytes;
    let stored = value_of(b"large");
    let sum = checksum(BLOB, far, &stored);
    let value = reference(BLOB, far, stored.len() as u32, sum);
    let entries = vec![(b"large".to_vec(), 12, LARGE, value), entry("z", 13)];
    let mut parts = TableParts::new(TABLE, std::slice::from_ref(&entries));
    let all: Vec<_> = entries.iter().collect();
    let start = [section(1, &varints(&[2 + holes.len() as u64, 0, 0])), section(2, b"hole")].concat();
    let rest = &properties(&all)[section(1, &varints(&[2, 0, 0])).len() + section(2, b"large").len()..];
    parts.properties =
        [&start[..], rest, &section(8, &varints(&[BLOB, (8 + stored.len() as u64).next_multiple_of(8)]))].concat();
    let end = parts.build_behind(&holes);
    let length = hole_bytes + end.len() as u64;
    for mode in [ReadMode::Mmap, ReadMode::MmapChecked, ReadMode::Pread] {
        let scratch = Scratch::new("beyond-4-gib");
        fs::create_dir_all(scratch.path()).unwrap();
        let table = varints(&[6, KEYSPACE, 30, TABLE, length]);
        for (name, bytes) in manifest(&[first_edit(&[table])]) {
            fs::write(scratch.path().join(name), bytes).unwrap();
        }
        fs::write(scratch.path().join("000001.wal"), segment(1, [0, 0, 0], &[])).unwrap();
        write_behind_hole(&scratch.path().join(format!("{TABLE:06}.table")), hole_bytes, &end);
        let blob_path = scratch.path().join(format!("{BLOB:06}.blob"));
        fs::write(&blob_path, blob(BLOB, 1, &[], false)).unwrap();
        let header = [sum.to_le_bytes(), (stored.len() as u32).to_le_bytes()].concat();
        write_behind_hole(&blob_path, far - 8, &[header, stored.clone()].concat());
        let db = Db::open(scratch.path(), Options::default().background_threads(0).read_mode(mode)).unwrap();
        let k = db.existing_keyspace("k").unwrap();
        for key in [&b"large"[..], b"z"] {
            assert_eq!(k.get(key).unwrap().as_deref(), Some(&value_of(key)[..]), "{mode:?}");
        }
        // Only forwards: backwards a scan looks for older versions of `large`, in the hole.
        let found: Vec<_> = k.range("large"..).map(|item| item.unwrap().0.to_vec()).collect();
        assert_eq!(found, [&b"large"[..], b"z"], "{mode:?}");
        assert_eq!(k.iter().next_back().unwrap().unwrap().0, b"z"[..]);
        assert!(k.approximate_size(..).unwrap() > 5 << 30);
        assert_eq!(db.stats().table_bytes, length);
        // The holes are no blocks, and a read of one is an error with its place.
        let place = 300 * HOLE_BYTES;
        match k.get("hole300") {
            Err(esker::Error::Corruption { offset, .. }) => assert_eq!(offset, place),
            other => panic!("{other:?}"),
        }
    }
}
