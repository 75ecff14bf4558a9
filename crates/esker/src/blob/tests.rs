//! Files, appends and syncs of large values.

use super::format::{HEADER_BYTES, Values, check_header, encode_header, file_name, file_number};
use super::{BlobStore, BlobWriter};
use crate::Error;
use crate::base::blob_reference::BlobReference;
use crate::base::random::Random;
use crate::env::Env;
use crate::env::mem::{CrashMode, MemEnv, SyncFailure};
use crate::options::Compression;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn directory() -> MemEnv {
    let env = MemEnv::new();
    env.create_dir_all(Path::new("/db")).expect("no fault is set");
    env.sync_dir(Path::new("/")).expect("no fault is set");
    env
}

fn store(env: &MemEnv, file_bytes: u64) -> BlobStore {
    BlobStore::new(Arc::new(env.clone()), "/db".into(), file_bytes, Compression::None)
}

/// One whose jobs compress.
fn compressing(env: &MemEnv, file_bytes: u64) -> BlobStore {
    BlobStore::new(Arc::new(env.clone()), "/db".into(), file_bytes, Compression::Lz4)
}

/// Opens the file anew and reads the value.
fn read_anew(env: &MemEnv, reference: &BlobReference) -> crate::Result<Vec<u8>> {
    let store = store(env, 1);
    store.open_file(reference.file, 0)?;
    store.read(reference)
}

#[test]
fn names_and_headers_round_trip_and_no_flipped_bit_survives() {
    assert_eq!(file_number(&file_name(17)), Some(17));
    assert_eq!(file_number("x.blob"), None);
    for values in [Values::AsWritten, Values::Lz4] {
        let header = encode_header(17, values);
        let path = Path::new("x");
        assert_eq!(check_header(path, 17, &header).expect("its own header"), values);
        assert!(check_header(path, 18, &header).is_err());
        for bit in 0..header.len() * 8 {
            let mut bytes = header;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(check_header(path, 17, &bytes), Err(Error::Corruption { .. })), "bit {bit}");
        }
    }
}

#[test]
fn values_of_all_lengths_are_read_back_and_a_value_never_splits() {
    let env = directory();
    let store = store(&env, 1000);
    let number = Cell::new(5);
    let next = || number.replace(number.get() + 1);
    let lengths = [0usize, 1, 7, 8, 9, 500, 990, 3000, 1];
    let mut appended = Vec::new();
    for (seed, &length) in lengths.iter().enumerate() {
        let value: Vec<u8> = (0..length).map(|i| (i * 7 + seed) as u8).collect();
        let place = store.append(&value, &next).expect("no fault is set");
        assert_eq!(place.reference.offset % 8, 0);
        appended.push((place.reference, value));
    }
    for (reference, value) in &appended {
        assert_eq!(&store.read(reference).expect("intact"), value);
        assert_eq!(&read_anew(&env, reference).expect("intact"), value);
    }
    assert!(number.get() > 7, "a full file is followed by another");
    let total: u64 = appended.iter().map(|(reference, _)| reference.stored_bytes()).sum();
    assert_eq!(store.lengths().values().sum::<u64>(), total + store.lengths().len() as u64 * HEADER_BYTES);
}

/// Every byte of a value is vouched for, and its reference too.
#[test]
fn damage_names_the_file_and_the_offset() {
    let env = directory();
    let store = store(&env, 1000);
    let reference = store.append(b"a large value", &|| 3).expect("no fault is set").reference;
    let path = Path::new("/db/000003.blob");
    let bytes = env.file_bytes(path).expect("it was made");
    for at in reference.offset as usize..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        env.set_file_bytes(path, damaged);
        match store.read(&reference) {
            Err(Error::Corruption { path: found, offset, .. }) => {
                assert_eq!((&*found, offset), (path, reference.offset))
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    env.set_file_bytes(path, bytes);
    store.read(&reference).expect("intact again");
    let wrong = [
        BlobReference { offset: reference.offset + 8, ..reference },
        BlobReference { length: reference.length + 1, ..reference },
        BlobReference { length: u32::MAX, ..reference },
        BlobReference { offset: u64::MAX - 3, ..reference },
        BlobReference { file: 4, ..reference },
        BlobReference { compressed: true, ..reference },
    ];
    for reference in wrong {
        assert!(matches!(store.read(&reference), Err(Error::Corruption { .. })), "{reference:?}");
    }
}

#[test]
fn names_are_durable_at_once_and_bytes_by_a_sync_which_costs_nothing_the_second_time() {
    let env = directory();
    let store = store(&env, 100);
    let number = Cell::new(1);
    let next = || number.replace(number.get() + 1);
    let values = [vec![1u8; 60], vec![2; 60], vec![3; 10]];
    let references = values.each_ref().map(|value| store.append(value, &next).expect("no fault is set").reference);
    let lost = env.crash(&CrashMode::LoseAll, 0);
    assert!(references.iter().all(|reference| read_anew(&lost, reference).is_err()));
    let reopened = self::store(&lost, 100);
    assert!(references.iter().all(|reference| !reopened.is_missing(reference.file).expect("no fault is set")));
    assert!(reopened.is_missing(number.get()).expect("no fault is set"));
    store.sync().expect("no fault is set");
    let calls = env.mutations();
    store.sync().expect("nothing to do");
    assert_eq!(env.mutations(), calls);
    let safe = env.crash(&CrashMode::LoseAll, 0);
    for (reference, value) in references.iter().zip(&values) {
        assert_eq!(&read_anew(&safe, reference).expect("it was synced"), value);
    }
}

#[test]
fn a_failed_sync_is_never_repeated() {
    let env = directory();
    let store = store(&env, 1000);
    store.append(b"value", &|| 1).expect("no fault is set");
    env.fail_sync(0, SyncFailure::DropPending);
    assert!(matches!(store.sync(), Err(Error::Io { .. })));
    assert!(matches!(store.sync(), Err(Error::ReadOnly { .. })));
}

/// Whatever would refer to it could be durable before its name.
#[test]
fn a_file_whose_name_cannot_be_made_durable_takes_no_value() {
    let env = directory();
    let store = store(&env, 1000);
    env.fail_sync_dir(0, SyncFailure::DropPending);
    assert!(matches!(store.append(b"value", &|| 1), Err(Error::Io { .. })));
    assert!(store.is_empty() && store.is_missing(1).expect("no fault is set"));
    let reference = store.append(b"value", &|| 2).expect("no fault is set").reference;
    assert_eq!((reference.file, store.read(&reference).expect("intact")), (2, b"value".to_vec()));
}

#[test]
fn a_full_disk_fails_the_append_and_nothing_else() {
    let env = directory();
    let store = store(&env, 10_000);
    let first = store.append(&[1; 100], &|| 1).expect("no fault is set").reference;
    env.set_capacity(Some(200));
    assert!(matches!(store.append(&[2; 500], &|| 2), Err(error) if error.is_disk_full()));
    env.set_capacity(None);
    let second = store.append(&[3; 500], &|| 2).expect("there is room again").reference;
    store.sync().expect("the failed write is nobody's");
    let safe = env.crash(&CrashMode::LoseAll, 0);
    assert_eq!(read_anew(&safe, &first).expect("it was synced"), [1; 100]);
    assert_eq!(read_anew(&safe, &second).expect("it was synced"), [3; 500]);
}

#[test]
fn a_file_is_held_by_what_was_appended_and_by_a_job() {
    let env = directory();
    let store = store(&env, 1000);
    let appended = store.append(b"value", &|| 1).expect("no fault is set");
    assert_eq!(store.unheld(), [], "it is appended to");
    store.roll();
    assert_eq!(store.unheld(), []);
    drop(appended);
    assert_eq!(store.unheld(), [1]);
    let mut job = BlobWriter::new(&store, true);
    let reference = job.append(b"other", &|| 2).expect("no fault is set");
    job.sync().expect("no fault is set");
    // As the output of a job does with its tables.
    env.sync_dir(Path::new("/db")).expect("no fault is set");
    assert_eq!(store.unheld(), [1]);
    drop(job);
    assert_eq!(store.unheld(), [1], "the next job may append to it");
    store.roll();
    assert_eq!(store.unheld(), [1, 2]);
    assert_eq!(read_anew(&env.crash(&CrashMode::LoseAll, 0), &reference).expect("it was synced"), b"other");
    assert!(store.forget(1).is_some());
    assert_eq!(store.unheld(), [2]);
}

#[test]
fn a_job_compresses_what_shrinks_and_reads_give_it_back() {
    let env = directory();
    let store = compressing(&env, 10_000);
    let number = Cell::new(1);
    let next = || number.replace(number.get() + 1);
    let mut random = Random::new(7);
    let noise: Vec<u8> = (0..3000).map(|_| random.next() as u8).collect();
    let values = [vec![7u8; 5000], noise, Vec::new(), vec![1], b"abcdefgh".repeat(500)];
    let mut job = BlobWriter::new(&store, true);
    let references: Vec<BlobReference> =
        values.iter().map(|v| job.append(v, &next).expect("no fault is set")).collect();
    job.sync().expect("no fault is set");
    env.sync_dir(Path::new("/db")).expect("no fault is set");
    let compressed: Vec<bool> = references.iter().map(|reference| reference.compressed).collect();
    assert_eq!(compressed, [true, false, false, false, true]);
    assert_eq!(number.get(), 2, "ten thousand bytes of values in one file of less");
    let safe = env.crash(&CrashMode::LoseAll, 0);
    for (reference, value) in references.iter().zip(&values) {
        assert_eq!(&store.read(reference).expect("intact"), value);
        assert_eq!(&read_anew(&safe, reference).expect("it was synced"), value);
        let other = BlobReference { compressed: !reference.compressed, ..*reference };
        assert!(matches!(store.read(&other), Err(Error::Corruption { .. })), "{other:?}");
    }
    assert!(!store.would_shrink(1), "it is compressed");
}

#[test]
fn a_look_tells_what_would_shrink() {
    let env = directory();
    let next = |number: u64| move || number;
    let mut random = Random::new(8);
    let mut noise = || (0..3000).map(|_| random.next() as u8).collect::<Vec<u8>>();
    let store = compressing(&env, 1 << 20);
    (0..40).for_each(|_| drop(store.append(&[7; 3000], &next(1)).expect("no fault is set")));
    assert!(store.may_shrink(1) && store.would_shrink(1));
    store.roll();
    (0..40).for_each(|_| drop(store.append(&noise(), &next(2)).expect("no fault is set")));
    assert!(store.may_shrink(2) && !store.is_known_to_shrink(2), "nobody has looked");
    assert!(!store.would_shrink(2) && !store.may_shrink(2));
    (0..10).for_each(|_| drop(store.append(&[7; 3000], &next(2)).expect("no fault is set")));
    assert!(!store.may_shrink(2), "it has not grown by much");
    (0..200).for_each(|_| drop(store.append(&[7; 3000], &next(2)).expect("no fault is set")));
    assert!(store.may_shrink(2) && store.would_shrink(2) && store.is_known_to_shrink(2), "it has");
    store.roll();
    // A record that was begun and not written ends the walk; a sample needs no more.
    (0..2).for_each(|_| drop(store.append(&[7; 3000], &next(3)).expect("no fault is set")));
    let path = Path::new("/db/000003.blob");
    let bytes = env.file_bytes(path).expect("it was made");
    env.set_file_bytes(path, bytes[..5000].to_vec());
    assert!(store.would_shrink(3), "the first value");
    store.roll();
    (0..2).for_each(|_| drop(store.append(&[7; 3000], &next(4)).expect("no fault is set")));
    let path = Path::new("/db/000004.blob");
    let mut bytes = env.file_bytes(path).expect("it was made");
    bytes[32..40].fill(0);
    env.set_file_bytes(path, bytes);
    assert!(!store.would_shrink(4));
    store.leave_as_it_is(1);
    assert!(!store.may_shrink(1));
    assert!(!store.may_shrink(9), "there is none");
}

#[test]
fn what_is_too_long_to_be_compressed_is_not_copied_for_it() {
    let env = directory();
    let store = compressing(&env, 1 << 30);
    store.append(&vec![7; 20 << 20], &|| 1).expect("no fault is set");
    assert!(!store.would_shrink(1));
    (0..300).for_each(|_| drop(store.append(&[7; 100_000], &|| 1).expect("no fault is set")));
    assert!(store.would_shrink(1), "more than half of the bytes");
}

/// One job goes on where another ended, if no other does, and if all that the other has written is
/// durable.
#[test]
fn jobs_share_files_one_after_the_other() {
    let env = directory();
    let store = compressing(&env, 10_000);
    let number = Cell::new(1);
    let next = || number.replace(number.get() + 1);
    let file_of = |job: &mut BlobWriter<'_>, byte: u8| job.append(&[byte], &next).expect("no fault is set").file;
    let mut first = BlobWriter::new(&store, true);
    let mut beside = BlobWriter::new(&store, true);
    assert_eq!((file_of(&mut first, 1), file_of(&mut beside, 2), file_of(&mut first, 3)), (1, 2, 1));
    first.sync().expect("no fault is set");
    drop(first);
    let mut load = BlobWriter::new(&store, false);
    assert_eq!(file_of(&mut load, 0), 3, "it does not take what was left");
    load.sync().expect("no fault is set");
    drop(load);
    assert_eq!(store.unheld(), [3], "nor does it leave anything");
    assert!(store.forget(3).is_some());
    assert_eq!(store.unheld(), [], "more may come");
    let mut second = BlobWriter::new(&store, true);
    assert_eq!((file_of(&mut second, 4), file_of(&mut beside, 5)), (1, 2));
    env.fail_sync(0, SyncFailure::DropPending);
    assert!(second.sync().is_err());
    drop((second, beside));
    assert_eq!(store.unheld(), [1, 2], "neither has ended well");
    assert_eq!(file_of(&mut BlobWriter::new(&store, true), 6), 4);
    let mut last = BlobWriter::new(&store, true);
    assert_eq!(file_of(&mut last, 7), 5);
    last.sync().expect("no fault is set");
    store.end_growth(&BTreeSet::from([4]));
    assert_eq!(file_of(&mut BlobWriter::new(&store, true), 8), 5);
    let mut last = BlobWriter::new(&store, true);
    assert_eq!(file_of(&mut last, 9), 6);
    last.sync().expect("no fault is set");
    store.end_growth(&BTreeSet::from([6]));
    assert_eq!(file_of(&mut BlobWriter::new(&store, true), 10), 7);
}

/// The worked example of `doc/format/blob.md` is what a store writes.
#[test]
fn the_example_is_a_blob_file() {
    let page = include_str!("../../../../doc/format/blob.md");
    let block = page.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let digits = block.lines().filter_map(|line| line.split('|').next()).flat_map(str::split_whitespace);
    let example: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect();
    let env = directory();
    let store = store(&env, 1 << 20);
    let value = store.append(b"a large value", &|| 7).expect("no fault is set");
    let mut bytes = env.file_bytes(Path::new("/db/000007.blob")).expect("the file");
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(value.reference.encode());
    assert!(example == bytes, "{bytes:02x?}");
}
