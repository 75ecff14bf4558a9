//! Any lies, several at a time: numbers that a number of a file format is replaced with, and bytes
//! that are changed at random, in the payload of everything that has a checksum.

use super::trying::{Directories, Trial, kind, laid_over, options};
use super::writing::{
    BATCH, BEHIND_LINK, CHANGES_FROM, Files, KEYSPACE, LARGE, TableParts, add_table, blob, checksum, counted, entry,
    first_edit, keyspace_edit, lz4_bomb, manifest, properties, put, reference, section, segment, sound_database,
    value_of, varint, varints, zstd_bomb,
};
use esker::env::mem::MemEnv;
use esker::internals::Random;
use std::cell::Cell;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

const DATABASES: u64 = 600;
/// A reader tries again what does not open, because there may be a writer: most of the time nothing
/// is done.
const THREADS: u64 = 8;
/// The fields of an edit have the tags from 1 to this one.
const TAGS: u64 = 18;
/// How a table's block is compressed.
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
/// More than a bomb of zstd makes here, which is 128 KiB of each block.
const MOST_ZSTD_BLOCKS: usize = 16;
/// At the edges of what some field or other can hold.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    20,
    127,
    255,
    1 << 16,
    (1 << 31) - 1,
    u32::MAX as u64,
    1 << 32,
    1 << 48,
    (1 << 56) - 1,
    1 << 56,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// What is drawn here.
trait Draws {
    fn number(&mut self, right: u64, odds: usize) -> u64;
    fn numbers(&mut self, right: &[u64], odds: usize) -> Vec<u64>;
    fn bytes(&mut self, right: Vec<u8>, odds: usize) -> Vec<u8>;
    fn block(&mut self, right: Vec<u8>) -> Vec<u8>;
}

impl Draws for Random {
    /// Now and then another number.
    fn number(&mut self, right: u64, odds: usize) -> u64 {
        if self.index(odds) == 0 { NUMBERS[self.index(NUMBERS.len())] } else { right }
    }

    fn numbers(&mut self, right: &[u64], odds: usize) -> Vec<u64> {
        right.iter().map(|&number| self.number(number, odds)).collect()
    }

    /// Now and then a changed byte, or another end.
    fn bytes(&mut self, mut right: Vec<u8>, odds: usize) -> Vec<u8> {
        if self.index(odds) == 0 && !right.is_empty() {
            let at = self.index(right.len());
            match self.index(4) {
                0 => right.truncate(at),
                1 => right[at] = 255,
                2 => right[at] ^= 1 << self.index(8),
                _ => right.extend(varint(NUMBERS[self.index(NUMBERS.len())])),
            }
        }
        right
    }

    /// Now and then another word of 32 bits in the header of a block.
    fn block(&mut self, right: Vec<u8>) -> Vec<u8> {
        let mut block = self.bytes(right, 8);
        if self.index(8) == 0 && block.len() > 36 {
            let (word, number) = (self.index(9), NUMBERS[self.index(NUMBERS.len())] as u32);
            block[4 * word..][..4].copy_from_slice(&number.to_le_bytes());
        }
        block
    }
}

/// Something compressed that says or makes too much, and how it is compressed.
fn bomb(random: &mut Random) -> (Vec<u8>, u8) {
    let claimed = NUMBERS[random.index(NUMBERS.len())] as u32;
    if random.index(2) == 0 {
        return (lz4_bomb(claimed, random.index(300)), LZ4);
    }
    let blocks = random.index(MOST_ZSTD_BLOCKS);
    // Now and then what it makes.
    let claimed = if random.index(3) == 0 { (blocks as u32) << 17 } else { claimed };
    (zstd_bomb(claimed, blocks), ZSTD)
}

fn table(random: &mut Random, number: u64, keys: [&str; 4]) -> Vec<u8> {
    const BLOB_SUM: u64 = 41;
    let stored = value_of(b"large");
    let [file, offset, length, sum] =
        [(number + 10, 8), (40, 6), (stored.len() as u64, 6), (checksum(number + 10, 40, &stored).into(), BLOB_SUM)]
            .map(|(right, odds)| random.number(right, odds as usize));
    let large = reference(file, offset, length as u32, sum as u32);
    let [a, b, c, d] = keys.map(|key| entry(key, random.number(10 * number, 30)));
    let blocks = [vec![a, b], vec![c, d, (b"zz".to_vec(), 11, LARGE, large)]];
    let mut parts = TableParts::new(number, &blocks);
    for (content, compression) in &mut parts.blocks {
        *content = random.block(content.clone());
        if random.index(30) == 0 {
            (*content, *compression) = bomb(random);
        }
    }
    for (key, sequence) in &mut parts.lasts {
        *key = random.bytes(key.clone(), 20);
        *sequence = random.number(*sequence, 20);
    }
    let all: Vec<_> = blocks.iter().flatten().collect();
    let tombstones = [counted(b"m"), counted(b"n"), varints(&random.numbers(&[2, 300, 5], 12))].concat();
    let tombstones = section(7, &random.bytes(tombstones, 10));
    let blobs = section(8, &varints(&random.numbers(&[number + 10, 24], 15)));
    parts.properties = random.bytes([properties(&all), tombstones, blobs].concat(), 8);
    parts.filter = (random.index(3) == 0).then(|| random.bytes(vec![255; 65], 2)).map(|mut filter| {
        if let Some(probes) = filter.last_mut() {
            *probes = 1 + random.index(9) as u8;
        }
        filter
    });
    if random.index(20) == 0 {
        let right = [[200, 50], [0, 0], [300, 50]];
        parts.handles = Some(right.map(|handle| handle.map(|word| random.number(word, 2))));
    }
    parts.build()
}

/// A field of an edit with this tag, half of whose numbers are lies.
fn field(random: &mut Random, tag: u64) -> Vec<u8> {
    const LATER: u64 = CHANGES_FROM + 1;
    let right: &[u64] = match tag {
        1 => &[100],
        2 => &[LATER],
        3 => &[1],
        4 => &[4],
        6 => &[KEYSPACE, 30, 22, 100],
        7 => &[KEYSPACE, 20],
        9 => &[KEYSPACE, 1, 0],
        11 => &[2],
        12 => &[5],
        8 | 10 => &[1, BEHIND_LINK],
        13 | 18 => &[CHANGES_FROM, 1],
        14..=17 => &[LATER, KEYSPACE],
        _ => &[KEYSPACE, 500],
    };
    let numbers = random.numbers(right, 2);
    let [name, bytewise, operator] = ["former", "bytewise", "max"].map(|name| counted(name.as_bytes()));
    let ttl = varint(random.number(0, 2));
    let names = match tag {
        4 => [name, bytewise, counted(b""), ttl].concat(),
        15 => [name, bytewise].concat(),
        16 => [name, operator, ttl].concat(),
        17 => [name, bytewise, operator, ttl].concat(),
        _ => Vec::new(),
    };
    [varint(tag), varints(&numbers), names].concat()
}

fn database(random: &mut Random) -> Files {
    let tables = [(20, ["a", "b", "c", "d"]), (21, ["b", "c", "e", "f"])];
    let tables = tables.map(|(number, keys)| (number, table(random, number, keys)));
    let mut edits = vec![keyspace_edit(random.number(2, 20), "other")];
    for (number, bytes) in &tables {
        let right = [6, KEYSPACE, 50 - number, *number, bytes.len() as u64];
        let numbers = [&right[..1], &random.numbers(&right[1..], 25)].concat();
        edits.push(if random.index(2) == 0 {
            varints(&numbers)
        } else {
            add_table(KEYSPACE, 50 - number, *number, bytes)
        });
    }
    for tag in 1..=TAGS {
        if random.index(16) == 0 {
            edits.push(field(random, tag));
        }
    }
    let edits: Vec<Vec<u8>> = edits.into_iter().map(|edit| random.bytes(edit, 25)).collect();
    let mut files = manifest(&[first_edit(&edits[..2]), edits[2..].concat()]);
    for (number, bytes) in tables {
        let blob_number = number + 10;
        let is_compressed = random.index(10) == 0;
        let (stored, compression) = if is_compressed { bomb(random) } else { (value_of(b"large"), LZ4) };
        // The version says how values are compressed.
        let version = u32::from(compression) + 1;
        files.insert(format!("{blob_number:06}.blob"), blob(blob_number, version, &stored, is_compressed));
        files.insert(format!("{number:06}.table"), bytes);
    }
    let batch = |random: &mut Random, keys: [&str; 2]| {
        let mut payload: Vec<u8> =
            keys.iter().flat_map(|key| put(random.number(KEYSPACE, 20), key.as_bytes())).collect();
        payload.extend([varints(&[5, KEYSPACE]), counted(b"x"), counted(b"y")].concat());
        random.bytes(payload, 6)
    };
    let records = [(BATCH, 1001, ["b", "g"]), (BATCH, 1010, ["h", "b"])].map(|(kind, sequence, keys)| {
        (random.number(kind, 30) & 255, random.number(sequence, 12) >> 8, batch(random, keys))
    });
    let end = BEHIND_LINK + records.iter().map(|record| 24 + record.2.len().next_multiple_of(8) as u64).sum::<u64>();
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &records));
    let link = random.numbers(&[1, end, 64], 10);
    let last = (BATCH, 1020, batch(random, ["b", "i"]));
    files.insert("000002.wal".into(), segment(random.number(2, 15), [link[0], link[1], link[2]], &[last]));
    files
}

/// The files below this directory, by their paths in it.
fn files_in(env: &MemEnv, directory: &Path) -> Files {
    let named = |path: PathBuf| {
        let name = path.strip_prefix(directory).ok()?.to_str()?.to_owned();
        Some((name, env.file_bytes(&path)?))
    };
    env.files().into_iter().filter_map(named).collect()
}

/// Tries everything on the database of this seed; how many attempts succeeded, and how many did
/// not.
fn try_database(seed: u64) -> (u32, u32) {
    let files = database(&mut Random::new(seed));
    let env = MemEnv::new();
    let put = |directory: &Path, files: &Files| {
        files.iter().for_each(|(name, bytes)| env.set_file_bytes(&directory.join(name), bytes.clone()));
    };
    let [read, followed, opened, repaired] = ["/read", "/followed", "/opened", "/repaired"].map(Path::new);
    [read, opened, repaired].into_iter().for_each(|directory| put(directory, &files));
    put(followed, &sound_database());
    let (answers, errors) = (Cell::new(0), Cell::new(0));
    let say = |_: &str, result: esker::Result<()>| match result {
        Ok(()) => answers.set(answers.get() + 1),
        Err(error) => {
            let _ = kind(&error);
            errors.set(errors.get() + 1);
        }
    };
    let bytes: usize = files.values().map(Vec::len).sum();
    let options = options(Arc::new(env.clone()));
    let trial = Trial { options, root: Path::new("/"), most: 256 * bytes as u64, knows_values: false };
    let replace = || put(followed, &files);
    trial.run(&Directories { read, followed, replace: &replace, opened, repaired }, &say);
    assert!(files_in(&env, read) == files, "a reader wrote something");
    assert!(files_in(&env, followed) == laid_over(&files), "a follower wrote something");
    (answers.get(), errors.get())
}

/// Tries those of these seeds; how many attempts succeeded, how many did not, and with which seeds
/// one panicked.
fn try_databases(seeds: impl Iterator<Item = u64>) -> (u32, u32, Vec<u64>) {
    let (mut answers, mut errors, mut panicked) = (0, 0, Vec::new());
    for seed in seeds {
        match catch_unwind(|| try_database(seed)) {
            Ok(outcome) => (answers, errors) = (answers + outcome.0, errors + outcome.1),
            Err(_) => {
                println!("a panic above: seed {seed}");
                panicked.push(seed);
            }
        }
    }
    (answers, errors, panicked)
}

/// Whatever the lies, no call panics, and no error says that something else than the files is
/// wrong.
#[test]
fn any_lies_at_once_are_an_error_or_an_answer() {
    let (mut answers, mut errors, mut panicked) = (0, 0, Vec::new());
    thread::scope(|scope| {
        let parts: Vec<_> = (0..THREADS)
            .map(|part| scope.spawn(move || try_databases((part..DATABASES).step_by(THREADS as usize))))
            .collect();
        for part in parts {
            let outcome = part.join().unwrap();
            (answers, errors) = (answers + outcome.0, errors + outcome.1);
            panicked.extend(outcome.2);
        }
    });
    assert!(panicked.is_empty(), "panics with the seeds {panicked:?}");
    assert!(answers > 500 && errors > 500, "{answers} answers, {errors} errors: the lies are all of one kind");
}
