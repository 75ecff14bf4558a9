//! Blocks that are found without an index: all of them, and with work in proportion to the file,
//! whatever is in it. Counted are bytes, not time.

use super::support::*;
use crate::base::key::Kind;
use crate::options::ReadMode;
use crate::table::block::HEADER_BYTES;
use crate::table::format::{LZ4, STORED, seal};
use crate::table::unindexed::{LONGEST, Unindexed};
use std::path::Path;

/// How many blocks are found one behind the other, and where the last one ends.
fn found(bytes: Vec<u8>, what: &str) -> (usize, u64) {
    let length = bytes.len() as u64;
    let file = MemoryRead::new(bytes, false);
    let mut search = Unindexed::new(&*file, Path::new("t"), FILE_NUMBER);
    let (mut blocks, mut offset) = (0, 0);
    while let Some((_, length)) = search.block_at(offset).expect("memory does not fail") {
        blocks += 1;
        offset += length as u64;
    }
    // Read up to twice; walked over and summed, for each kind, up to four times; and once as far as
    // is looked ahead for what is no block. Before, 128 KiB of zeroes cost 8 GiB.
    let most = 14 * length + 10 * LONGEST as u64;
    assert!(search.work <= most, "{what}: {} bytes of work for a file of {length}", search.work);
    (blocks, offset)
}

#[test]
fn every_block_is_found_without_the_index() {
    let mut random = Random::new(31);
    for &compression in COMPRESSIONS {
        for block_bytes in [1, 100, 4 << 10, 60 << 10] {
            for shape in shapes(1500, 2) {
                let (bytes, _) = build(&random_entries(shape, &mut random), options(block_bytes, compression));
                let access = Access { read_mode: ReadMode::Pread, cache_bytes: 0 };
                let table = open(bytes.clone(), access).expect("a good table");
                let what = format!("{compression:?}, blocks of {block_bytes}, {shape:?}");
                assert_eq!(found(bytes, &what), (table.index.len(), table.index.data_end()), "{what}");
            }
        }
    }
}

/// The header of a block with one value that makes it so long.
fn header(block_bytes: usize) -> Vec<u8> {
    let mut header = vec![0; HEADER_BYTES];
    header[..4].copy_from_slice(&1u32.to_le_bytes());
    header[12..16].copy_from_slice(&((block_bytes - HEADER_BYTES) as u32).to_le_bytes());
    header[17] = Kind::Put as u8;
    header
}

#[test]
fn hostile_contents_cost_no_more_than_others() {
    const BYTES: usize = 3 << 20;
    let filled = |part: &[u8]| part.iter().copied().cycle().take(BYTES).collect::<Vec<u8>>();
    for byte in [0, 1, 0x0f, 0x10, 0xf0, 0xff] {
        assert_eq!(found(filled(&[byte]), "one byte").0, 0);
    }
    for part in [vec![0, 0, 0, 1], vec![0, 0, 1, 0, 0x10, 7, 1, 0], header(LONGEST - 5), header(LONGEST)] {
        assert_eq!(found(filled(&part), "a short part").0, 0);
    }
    for seed in 0..20 {
        assert_eq!(found(Random::new(seed).text(BYTES as u64), &format!("seed {seed}")).0, 0);
    }
    // Blocks as short as can be, and as long as are found; and behind each what could be the
    // beginning of a longer one.
    for (block_bytes, count) in
        [(HEADER_BYTES, 30_000), (HEADER_BYTES + 1, 30_000), (LONGEST - 5, 20), (LONGEST / 2, 40)]
    {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let start = bytes.len();
            bytes.extend(header(block_bytes));
            bytes.resize(start + block_bytes, 0);
            seal(&mut bytes, start, STORED, FILE_NUMBER, start as u64);
        }
        let end = bytes.len() as u64;
        bytes.extend(header(LONGEST - 5));
        assert_eq!(found(bytes, "blocks"), (count, end), "{block_bytes} bytes each");
    }
    // Compressed: the header is literals, and the value one match as long as it gets.
    for value_bytes in [24, 400, 60_000] {
        let mut bytes = Vec::new();
        for _ in 0..2000 {
            let start = bytes.len();
            bytes.extend(((HEADER_BYTES + value_bytes) as u32).to_le_bytes());
            bytes.extend([0xff, HEADER_BYTES as u8 - 15]);
            bytes.extend(header(HEADER_BYTES + value_bytes));
            bytes.extend([1, 0]);
            let more = value_bytes - 19;
            bytes.resize(bytes.len() + more / 255, 255);
            bytes.extend([(more % 255) as u8, 0]);
            seal(&mut bytes, start, LZ4, FILE_NUMBER, start as u64);
        }
        let end = bytes.len() as u64;
        assert_eq!(found(bytes, "compressed blocks"), (2000, end), "{value_bytes} bytes each");
    }
}
