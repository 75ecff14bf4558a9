//! Values that look like records of the log, put through the interface: any program may do that
//! which knows the format. They stay behind the records of a segment that is used again, and that
//! is where an open after a crash searches.

use super::counting::CountingEnv;
use super::writing::{BATCH, LINK};
use crate::common::{keyspace, simulated};
use esker::env::Env;
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Options};
use std::path::Path;

const DIRECTORY: &str = "/db";
/// The type of a closing record.
const CLOSE: u64 = 3;
/// Longer than what an open reads of a segment at a time.
const SEGMENT_BYTES: u64 = 1 << 20;
const VALUE_BYTES: usize = 8 << 10;
/// The payload that the headers claim: from the middle of the segment it still fits.
const CLAIMED_BYTES: u64 = SEGMENT_BYTES / 2;
/// Up to where the headers say that the segment was synced: behind the records that are there when
/// the process is killed, so that each would vouch for what is missing.
const SYNCED_AT: u64 = SEGMENT_BYTES / 4;
/// With a key of so many bytes the value begins at a multiple of 8, as records do.
const KEY_BYTES: usize = 3;
/// Between two looks at the segments: together shorter than [`SYNCED_AT`].
const PUTS: usize = 16;
/// Between two flushes: more than a segment takes.
const PUTS_OF_FLUSH: usize = 12 * PUTS;
/// An open reads the records once, with what the windows overlap, and searches behind the last of
/// them once.
const MOST_READS: u64 = 4;
const SEEDS: u64 = 16;

fn options(env: impl Env + 'static) -> Options {
    simulated(env).wal_segment_bytes(SEGMENT_BYTES).write_buffer_bytes(4 << 20)
}

/// The header of a record of this type that any place in the first half of a segment could have,
/// but for its checksum and its check. A closing record has no payload.
fn header(kind: u64) -> Vec<u8> {
    let payload_bytes = if kind == CLOSE { 0 } else { CLAIMED_BYTES };
    [payload_bytes << 32, u64::from(u32::MAX) << 8 | kind, SYNCED_AT].map(u64::to_le_bytes).concat()
}

fn value(kind: u64) -> Vec<u8> {
    header(kind).into_iter().cycle().take(VALUE_BYTES).collect()
}

/// Where records could begin, how many such headers lie in the segment.
fn look_alikes(segment: &[u8], kind: u64) -> usize {
    let header = header(kind);
    let behind = &segment[SYNCED_AT as usize..];
    (0..behind.len()).step_by(8).filter(|&at| behind[at..].starts_with(&header)).count()
}

/// The files of the log.
fn segments(env: &MemEnv) -> Vec<(u64, Vec<u8>)> {
    let paths = env.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "wal"));
    let file_of = |path: &Path| path.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap();
    paths.map(|path| (file_of(&path), env.file_bytes(&path).unwrap())).collect()
}

/// Whether the newest segment is in a file of an earlier one, with such headers behind its records.
fn is_prepared(env: &MemEnv, kind: u64) -> bool {
    let number_of = |segment: &[u8]| u64::from_le_bytes(segment[16..24].try_into().unwrap());
    let (file, newest) = segments(env).into_iter().max_by_key(|(_, segment)| number_of(segment)).unwrap();
    number_of(&newest) != file && look_alikes(&newest, kind) > 1000
}

/// Writes such values until a segment full of them is used again, and gives what is found after the
/// death of the process, and after losses of power then.
fn images(kind: u64) -> Vec<(String, MemEnv)> {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, options(env.clone())).unwrap();
    let k = keyspace(&db, "k");
    let mut puts = 0;
    while !is_prepared(&env, kind) {
        assert!(puts < 1000 * PUTS, "no segment is used again");
        for _ in 0..PUTS {
            k.put(format!("{:0KEY_BYTES$}", puts % 1000), value(kind)).unwrap();
            puts += 1;
        }
        if puts % PUTS_OF_FLUSH == 0 {
            db.flush().unwrap();
        }
    }
    k.put("end", "of the log").unwrap();
    let lost_power = (0..SEEDS).map(|seed| (format!("power loss, seed {seed}"), env.crash(&CrashMode::Random, seed)));
    std::iter::once(("kill".to_owned(), env.kill())).chain(lost_power).collect()
}

/// A search that took such values for records would compute a checksum over half of the segment for
/// each of them, and read it.
#[test]
fn stored_values_that_look_like_records_are_read_a_few_times_by_an_open() {
    for kind in [BATCH, LINK, CLOSE] {
        for (death, image) in images(kind) {
            let log_bytes: u64 = segments(&image).iter().map(|(_, segment)| segment.len() as u64).sum();
            let env = CountingEnv::new(&image);
            let db =
                Db::open(DIRECTORY, options(env.clone())).unwrap_or_else(|error| panic!("{kind}, {death}: {error}"));
            let read = env.bytes_read(".wal");
            assert!(
                read > 0 && read <= MOST_READS * log_bytes,
                "{kind}, {death}: {read} bytes of a log of {log_bytes}"
            );
            let k = keyspace(&db, "k");
            let mut values = 0;
            for pair in k.iter() {
                let (key, found) = pair.unwrap();
                assert!(key == b"end"[..] || found == value(kind)[..], "{kind}, {death}: a wrong value of {key:?}");
                values += 1;
            }
            assert!(values > 0, "{kind}, {death}");
            if death == "kill" {
                assert_eq!(k.get("end").unwrap().as_deref(), Some(&b"of the log"[..]), "{kind}");
            }
        }
    }
}
