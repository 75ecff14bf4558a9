//! Writers of every file format, made from the format pages and not from the engine: they write
//! what no engine would, under checksums that are right.

use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

pub const MANIFEST: u64 = 3;
/// The version that knows every field of an edit.
const MANIFEST_VERSION: u32 = 6;
/// The write from which on a forged database keeps changes: the first one behind its tables.
pub const CHANGES_FROM: u64 = 1001;
/// The keyspace of most forged databases.
pub const KEYSPACE: u64 = 1;
/// The length of forged log segments.
pub const SEGMENT_BYTES: u64 = 64 << 10;

pub fn checksum(file: u64, offset: u64, bytes: &[u8]) -> u32 {
    let place = file.wrapping_mul(0x9E37_79B1_85EB_CA87) ^ offset.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    ((XxHash3_64::oneshot(bytes) ^ place).wrapping_mul(0x9E37_79B1_85EB_CA87) >> 32) as u32
}

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

pub fn varints(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|&value| varint(value)).collect()
}

/// Bytes behind their length.
pub fn counted(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// What every forged put stores under `key`.
pub fn value_of(key: &[u8]) -> Vec<u8> {
    [b"value of ", key].concat()
}

// The manifest.

/// The manifest and `CURRENT`. Behind each edit stands its voucher, so that no end is torn.
pub fn manifest(edits: &[Vec<u8>]) -> Files {
    let mut bytes = [&b"ESKERMAN"[..], &MANIFEST_VERSION.to_le_bytes(), &MANIFEST.to_le_bytes()].concat();
    let sum = checksum(0, 0, &bytes);
    bytes.extend(sum.to_le_bytes());
    for edit in edits {
        manifest_record(&mut bytes, edit);
    }
    let name = format!("MANIFEST-{MANIFEST:06}");
    let line = format!("{name} {:08x}\n", checksum(0, 0, name.as_bytes()));
    Files::from([(name, bytes), ("CURRENT".to_owned(), line.into_bytes())])
}

fn manifest_record(bytes: &mut Vec<u8>, edit: &[u8]) {
    let offset = bytes.len() as u64;
    let covered = [&(edit.len() as u32).to_le_bytes()[..], edit].concat();
    bytes.extend(checksum(MANIFEST, offset, &covered).to_le_bytes());
    bytes.extend(covered);
}

pub fn keyspace_edit(id: u64, name: &str) -> Vec<u8> {
    let names = [counted(name.as_bytes()), counted(b"bytewise"), counted(b"")].concat();
    [varints(&[4, id]), names, varint(0)].concat()
}

/// Next file 100, last sequence 1000, the log from segment 1 on, which has the changes from the
/// next write on, one keyspace `k` with its writes up to 500 in tables; then `more`.
pub fn first_edit(more: &[Vec<u8>]) -> Vec<u8> {
    let start = varints(&[1, 100, 2, CHANGES_FROM - 1, 3, 1, 10, 0, 0, 13, CHANGES_FROM, 1]);
    [start, keyspace_edit(KEYSPACE, "k"), varints(&[5, KEYSPACE, 500]), more.concat()].concat()
}

/// A database without a lie, whose log is empty: what a follower has opened before its files become
/// those of another one.
pub fn sound_database() -> Files {
    let mut files = manifest(&[first_edit(&[])]);
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &[]));
    files
}

/// That a forged table belongs to the keyspace.
pub fn add_table(keyspace: u64, run: u64, number: u64, file: &[u8]) -> Vec<u8> {
    varints(&[6, keyspace, run, number, file.len() as u64])
}

// The log.

pub const BATCH: u64 = 1;
pub const LINK: u64 = 2;

/// A segment with this link and these records: type, sequence, payload.
pub fn segment(number: u64, link: [u64; 3], records: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    segment_of(number, SEGMENT_BYTES, SEGMENT_BYTES as usize, link, records)
}

/// As above, with the length that the header claims and the one that the file has.
pub fn segment_of(
    number: u64,
    claimed: u64,
    length: usize,
    link: [u64; 3],
    records: &[(u64, u64, Vec<u8>)],
) -> Vec<u8> {
    const SALT: u64 = 0xfeed;
    let mut bytes = [&b"ESKERWAL"[..], &2u32.to_le_bytes(), &[0; 4], &number.to_le_bytes()].concat();
    bytes.extend(claimed.to_le_bytes());
    bytes.extend(SALT.to_le_bytes());
    bytes.resize(60, 0);
    let sum = checksum(0, 0, &bytes);
    bytes.extend(sum.to_le_bytes());
    let link = (LINK, 0, link.iter().flat_map(|word| word.to_le_bytes()).collect());
    for (kind, sequence, payload) in std::iter::once(&link).chain(records) {
        let offset = bytes.len() as u64;
        let synced = offset.min(64);
        let mut header = (payload.len() as u32).to_le_bytes().to_vec();
        header.extend((sequence << 8 | kind).to_le_bytes());
        let check = u64::from(checksum(SALT, offset, &[&header[..], &synced.to_le_bytes()].concat()) >> 8);
        header.extend((check << 40 | synced).to_le_bytes());
        let covered = [&header, payload.as_slice()].concat();
        bytes.extend(checksum(number, offset, &covered).to_le_bytes());
        bytes.extend(covered);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes.resize(length.max(bytes.len()), 0);
    bytes
}

/// Where the log ends in a segment without records.
pub const BEHIND_LINK: u64 = 112;

pub fn put(keyspace: u64, key: &[u8]) -> Vec<u8> {
    [vec![1], varint(keyspace), counted(key), counted(&value_of(key))].concat()
}

// Tables.

pub const PUT: u8 = 1;
pub const LARGE: u8 = 4;

/// An entry of a block: key, sequence, kind, value.
pub type Entry = (Vec<u8>, u64, u8, Vec<u8>);

/// A put of the value that belongs to the key.
pub fn entry(key: &str, sequence: u64) -> Entry {
    (key.as_bytes().to_vec(), sequence, PUT, value_of(key.as_bytes()))
}

/// The content of a data block: every column there, in the order given.
pub fn block(entries: &[Entry]) -> Vec<u8> {
    let sum = |lengths: &mut dyn Iterator<Item = usize>| lengths.sum::<usize>() as u32;
    let key_bytes = sum(&mut entries.iter().map(|entry| entry.0.len()));
    let value_bytes = sum(&mut entries.iter().map(|entry| entry.3.len()));
    let oldest = entries.iter().map(|entry| entry.1).min().unwrap_or(0);
    let mut out = block_header(entries.len() as u32, 0, key_bytes, value_bytes, 1 | 2 | 4 | 8 | 16 | 32, 0, oldest);
    let offsets = |out: &mut Vec<u8>, lengths: &mut dyn Iterator<Item = usize>| {
        let mut end = 0;
        out.extend(0u32.to_le_bytes());
        for length in lengths {
            end += length as u32;
            out.extend(end.to_le_bytes());
        }
    };
    entries.iter().for_each(|entry| out.extend(&entry.0));
    offsets(&mut out, &mut entries.iter().map(|entry| entry.0.len()));
    entries.iter().for_each(|entry| out.extend((entry.1 - oldest).to_le_bytes()));
    entries.iter().for_each(|entry| out.push(entry.2));
    offsets(&mut out, &mut entries.iter().map(|entry| entry.3.len()));
    entries.iter().for_each(|entry| out.extend(&entry.3));
    out
}

/// The 36 bytes in front of a block's columns.
pub fn block_header(count: u32, prefix: u32, keys: u32, values: u32, flags: u8, kind: u8, sequence: u64) -> Vec<u8> {
    let mut out: Vec<u8> = [count, prefix, keys, values].iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend([flags, kind, 0, 0]);
    out.extend(sequence.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out
}

/// A table in parts, each of which can be replaced by a lie.
#[derive(Clone)]
pub struct TableParts {
    pub number: u64,
    /// Contents of data blocks, with their kind of compression.
    pub blocks: Vec<(Vec<u8>, u8)>,
    /// Last key and sequence of each block, as the index has them.
    pub lasts: Vec<(Vec<u8>, u64)>,
    /// In place of the index that belongs to the blocks.
    pub index: Option<Vec<u8>>,
    pub filter: Option<Vec<u8>>,
    pub properties: Vec<u8>,
    /// In place of the footer's handles: index, filter, properties.
    pub handles: Option<[[u64; 2]; 3]>,
}

impl TableParts {
    /// A table that is as it should be.
    pub fn new(number: u64, blocks: &[Vec<Entry>]) -> TableParts {
        let all: Vec<&Entry> = blocks.iter().flatten().collect();
        let last = |block: &Vec<Entry>| block.last().map_or((Vec::new(), 0), |last| (last.0.clone(), last.1));
        TableParts {
            number,
            blocks: blocks.iter().map(|entries| (block(entries), 0)).collect(),
            lasts: blocks.iter().map(last).collect(),
            index: None,
            filter: None,
            properties: properties(&all),
            handles: None,
        }
    }

    /// The bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        self.build_behind(&[])
    }

    /// The bytes of the file behind a hole of so many blocks, of which only last keys are known: of
    /// [`HOLE_BYTES`] each.
    pub fn build_behind(&self, holes: &[String]) -> Vec<u8> {
        let base = holes.len() as u64 * HOLE_BYTES;
        let mut file = Vec::new();
        let mut index = [varint((holes.len() + self.blocks.len()) as u64), counted(b"")].concat();
        for key in holes {
            index.extend([counted(key.as_bytes()), varints(&[1, HOLE_BYTES])].concat());
        }
        let mut seal = |content: &[u8], compression| {
            let offset = base + file.len() as u64;
            let covered = [content, &[compression]].concat();
            file.extend(&covered);
            file.extend(checksum(self.number, offset, &covered).to_le_bytes());
            [offset, covered.len() as u64 + 4]
        };
        for ((content, compression), (key, sequence)) in self.blocks.iter().zip(&self.lasts) {
            let [_, bytes] = seal(content, *compression);
            index.extend([counted(key), varints(&[*sequence, bytes])].concat());
        }
        let filter = self.filter.as_ref().map_or([0, 0], |filter| seal(filter, 0));
        let handles = [seal(self.index.as_ref().unwrap_or(&index), 0), filter, seal(&self.properties, 0)];
        let at = base + file.len() as u64;
        let handles = self.handles.unwrap_or(handles);
        let mut footer: Vec<u8> = handles.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        footer.extend(1u32.to_le_bytes());
        let sum = checksum(self.number, at, &footer);
        file.extend(footer);
        file.extend(sum.to_le_bytes());
        file.extend(b"eskerSST");
        file
    }
}

/// The length of a block in a hole.
pub const HOLE_BYTES: u64 = 16 << 20;

/// A section of the properties block.
pub fn section(id: u64, payload: &[u8]) -> Vec<u8> {
    [varint(id), counted(payload)].concat()
}

/// What entries say about themselves.
pub fn properties(entries: &[&Entry]) -> Vec<u8> {
    let key = |entry: Option<&&Entry>| entry.map_or(Vec::new(), |entry| entry.0.clone());
    let sequences = || entries.iter().map(|entry| entry.1);
    let bytes = |part: fn(&Entry) -> usize| entries.iter().map(|entry| part(entry) as u64).sum::<u64>();
    [
        section(1, &varints(&[entries.len() as u64, 0, 0])),
        section(2, &key(entries.first())),
        section(3, &key(entries.last())),
        section(4, &varints(&[sequences().min().unwrap_or(0), sequences().max().unwrap_or(0)])),
        section(5, &varints(&[0, 0, 0])),
        section(6, &varints(&[bytes(|entry| entry.0.len()), bytes(|entry| entry.3.len())])),
    ]
    .concat()
}

// LZ4, zstd and blob files.

/// `raw_bytes` as claimed, then an LZ4 block of one literal repeated `repeats` times 255 and five
/// literals more.
pub fn lz4_bomb(claimed: u32, repeats: usize) -> Vec<u8> {
    let mut out = claimed.to_le_bytes().to_vec();
    out.extend([0x1f, b'x', 1, 0]);
    out.extend(std::iter::repeat_n(255, repeats));
    out.extend([0, 0x50]);
    out.extend(b"xxxxx");
    out
}

/// The kinds of blocks of a zstd frame: as they are, and one byte, repeated.
const ZSTD_STORED: u32 = 0;
const ZSTD_REPEATED: u32 = 1;
/// The most bytes that one of them makes. A repeated byte makes them of four.
const ZSTD_BLOCK_BYTES: u32 = 128 << 10;
/// Behind the magic number of a frame: it does not say how long its content is, and its window is
/// one block.
const ZSTD_HEADER: [u8; 2] = [0, 0x38];

/// A zstd frame with this header and these blocks: kind, size, content.
fn zstd_frame(header: &[u8], blocks: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut out = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    out.extend(header);
    for (at, (kind, size, content)) in blocks.iter().enumerate() {
        let is_last = u32::from(at + 1 == blocks.len());
        out.extend(&(is_last | kind << 1 | size << 3).to_le_bytes()[..3]);
        out.extend(*content);
    }
    out
}

/// `content` in a zstd frame, without a lie: as it is, but for its last byte, which is repeated
/// once.
pub fn zstd_stored(content: &[u8]) -> Vec<u8> {
    let (rest, last) = content.split_at(content.len() - 1);
    let blocks = [(ZSTD_STORED, rest.len() as u32, rest), (ZSTD_REPEATED, 1, last)];
    claiming(content.len() as u32, &zstd_frame(&ZSTD_HEADER, &blocks))
}

/// As [`lz4_bomb`]: `claimed`, then a zstd frame of so many blocks of one repeated byte.
pub fn zstd_bomb(claimed: u32, blocks: usize) -> Vec<u8> {
    let blocks = vec![(ZSTD_REPEATED, ZSTD_BLOCK_BYTES, &b"x"[..]); blocks];
    claiming(claimed, &zstd_frame(&ZSTD_HEADER, &blocks))
}

fn claiming(claimed: u32, frame: &[u8]) -> Vec<u8> {
    [&claimed.to_le_bytes()[..], frame].concat()
}

/// What is compressed with zstd and claims too much, by name. None needs more memory than a small
/// database takes beside its files.
pub fn zstd_lies() -> Vec<(&'static str, Vec<u8>)> {
    let framed = |header: &[u8], kind: u32, size: u32| {
        claiming(ZSTD_BLOCK_BYTES, &zstd_frame(header, &[(kind, size, &b"x"[..])]))
    };
    let repeated = |header: &[u8]| framed(header, ZSTD_REPEATED, ZSTD_BLOCK_BYTES);
    let content_of_4_eib = [&[0xe0_u8][..], &(1_u64 << 62).to_le_bytes()].concat();
    let skipped_frame = [0x184d_2a50, u32::MAX].map(u32::to_le_bytes).concat();
    // Of 1024 bytes a frame makes so much, and no more.
    let most = 256 * ZSTD_BLOCK_BYTES;
    vec![
        ("4-gib-of-40-bytes", claiming(u32::MAX, &[0x10; 36])),
        ("1-gib-of-40-bytes", claiming(1 << 30, &[0x10; 36])),
        ("as-much-as-a-frame-makes", claiming(most, &[0x10; 1024])),
        ("more-than-a-frame-makes", claiming(most + 1, &[0x10; 1024])),
        ("less-than-it-makes", zstd_bomb(100, 64)),
        ("more-than-it-makes", zstd_bomb(900_000, 4)),
        ("content-of-4-eib", repeated(&content_of_4_eib)),
        ("window-of-3-tib", repeated(&[0, 0xff])),
        ("unknown-dictionary", repeated(&[1, 0x38, 7])),
        ("unknown-kind-of-block", framed(&ZSTD_HEADER, 3, 1)),
        ("block-longer-than-any", framed(&ZSTD_HEADER, ZSTD_REPEATED, (1 << 21) - 1)),
        ("block-that-is-cut-short", framed(&ZSTD_HEADER, ZSTD_STORED, ZSTD_BLOCK_BYTES)),
        ("no-block", claiming(ZSTD_BLOCK_BYTES, &zstd_frame(&ZSTD_HEADER, &[]))),
        ("skips-4-gib", claiming(ZSTD_BLOCK_BYTES, &skipped_frame)),
    ]
}

/// A blob file with one value at offset 40.
pub fn blob(number: u64, version: u32, stored: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut bytes = [&b"eskerBLB"[..], &version.to_le_bytes(), &[0; 4], &number.to_le_bytes(), &[0; 4]].concat();
    let sum = checksum(number, 0, &bytes);
    bytes.extend(sum.to_le_bytes());
    let sum = checksum(number, 40 + u64::from(is_compressed), stored);
    bytes.extend(sum.to_le_bytes());
    bytes.extend((stored.len() as u32 | u32::from(is_compressed) << 31).to_le_bytes());
    bytes.extend(stored);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// What an entry of kind 4 has for a value.
pub fn reference(file: u64, offset: u64, stored: u32, sum: u32) -> Vec<u8> {
    [&file.to_le_bytes()[..], &offset.to_le_bytes(), &stored.to_le_bytes(), &sum.to_le_bytes()].concat()
}
