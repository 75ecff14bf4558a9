//! Any lies, several at a time: numbers that a number of a file format is replaced with, and bytes
//! that are changed at random, in the payload of everything that has a checksum.

use super::trying::{Trial, kind, options};
use super::writing::{
    BATCH, BEHIND_LINK, Files, KEYSPACE, LARGE, TableParts, add_table, blob, checksum, counted, entry, first_edit,
    keyspace_edit, lz4_bomb, manifest, properties, put, reference, section, segment, value_of, varint, varints,
};
use esker::env::mem::MemEnv;
use esker::internals::Random;
use std::cell::Cell;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

const DATABASES: u64 = 600;
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
            *content = lz4_bomb(NUMBERS[random.index(NUMBERS.len())] as u32, random.index(300));
            *compression = 1;
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
    for tag in [1, 2, 3, 5, 8, 9, 10] {
        if random.index(8) == 0 {
            edits.push(varints(&[&[tag], &random.numbers(&[1, 2], 2)[..if tag < 5 { 1 } else { 2 }]].concat()));
        }
    }
    let edits: Vec<Vec<u8>> = edits.into_iter().map(|edit| random.bytes(edit, 25)).collect();
    let mut files = manifest(&[first_edit(&edits[..2]), edits[2..].concat()]);
    for (number, bytes) in tables {
        let blob_number = number + 10;
        let is_compressed = random.index(10) == 0;
        let stored = if is_compressed { lz4_bomb(NUMBERS[random.index(16)] as u32, 9) } else { value_of(b"large") };
        files.insert(format!("{blob_number:06}.blob"), blob(blob_number, 2, &stored, is_compressed));
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

/// Tries everything on the database of this seed; how many attempts succeeded, and how many did
/// not.
fn try_database(seed: u64) -> (u32, u32) {
    let files = database(&mut Random::new(seed));
    let env = MemEnv::new();
    let [read, opened, repaired] = ["/read", "/opened", "/repaired"].map(Path::new);
    for directory in [read, opened, repaired] {
        files.iter().for_each(|(name, bytes)| env.set_file_bytes(&directory.join(name), bytes.clone()));
    }
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
    trial.run(read, opened, repaired, &say);
    (answers.get(), errors.get())
}

/// Whatever the lies, no call panics, and no error says that something else than the files is
/// wrong.
#[test]
fn any_lies_at_once_are_an_error_or_an_answer() {
    let (mut answers, mut errors, mut panicked) = (0, 0, Vec::new());
    for seed in 0..DATABASES {
        match catch_unwind(|| try_database(seed)) {
            Ok(outcome) => (answers, errors) = (answers + outcome.0, errors + outcome.1),
            Err(_) => {
                println!("behind the panic above: seed {seed}");
                panicked.push(seed);
            }
        }
    }
    assert!(panicked.is_empty(), "panics with the seeds {panicked:?}");
    assert!(answers > 500 && errors > 500, "{answers} answers, {errors} errors: the lies are all of one kind");
}
