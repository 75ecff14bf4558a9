//! The table: doc/format/table.md.

use crate::blob::Reference;
use crate::block::{Entry, entries};
use crate::bytes::{Input, Read, checksum, decompressed, ensure};
use crate::operation::Kind;
use crate::order::Order;
use crate::properties::{Keyspace, Properties};
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// All that a table says.
#[derive(Debug)]
pub struct Table {
    pub entries: Vec<Entry>,
    pub properties: Properties,
    /// Which compressions its blocks have.
    pub compressions: [bool; 3],
    pub has_filter: bool,
    /// The flags that a block has, and those that one has not.
    pub flags: (u8, u8),
}

const FOOTER_BYTES: usize = 64;
const TRAILER_BYTES: usize = 5;

/// A file, as the number that its checksums are made with and its bytes.
struct File<'a> {
    number: u64,
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    /// The content of the block at that place, with its trailer, and its compression.
    fn block(&self, offset: usize, bytes: usize) -> Read<(&'a [u8], u8)> {
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes.len() && bytes >= TRAILER_BYTES);
        let block = &self.bytes[offset..end.ok_or_else(|| format!("{bytes} bytes at {offset}"))?];
        let (covered, sum) = block.split_at(bytes - 4);
        let sum = Input::new(sum).u32()?;
        ensure!(checksum(covered, self.number, offset as u64) == sum, "checksum of the block at {offset}");
        Ok((&covered[..covered.len() - 1], covered[covered.len() - 1]))
    }

    fn plain_block(&self, handle: (u64, u64)) -> Read<&'a [u8]> {
        let (content, compression) = self.block(handle.0 as usize, handle.1 as usize)?;
        ensure!(compression == 0, "the block at {} has compression {compression}", handle.0);
        Ok(content)
    }
}

/// Reads the table of that number, whose keys are in that order.
pub fn read(number: u64, bytes: &[u8], order: Order) -> Read<Table> {
    let footer_at = bytes.len().checked_sub(FOOTER_BYTES).ok_or("too short for a table")?;
    let mut footer = Input::new(&bytes[footer_at..]);
    let index = (footer.u64()?, footer.u64()?);
    let filter = (footer.u64()?, footer.u64()?);
    let properties = (footer.u64()?, footer.u64()?);
    ensure!(footer.u32()? == 1, "version");
    ensure!(footer.u32()? == checksum(&bytes[footer_at..footer_at + 52], number, footer_at as u64), "footer");
    ensure!(footer.take(8)? == b"eskerSST", "magic number");

    // One behind the other, without a gap.
    let file = File { number, bytes };
    let filter_at = if filter == (0, 0) { index.0 } else { filter.0 };
    ensure!(filter == (0, 0) || filter.0 + filter.1 == index.0, "a gap behind the filter");
    ensure!(index.0 + index.1 == properties.0, "a gap behind the index");
    ensure!(properties.0 + properties.1 == footer_at as u64, "a gap behind the properties");

    let properties = Properties::read(file.plain_block(properties)?)?;
    let mut table = Table {
        entries: Vec::new(),
        properties,
        compressions: [false; 3],
        has_filter: filter != (0, 0),
        flags: (0, 0),
    };
    let blocks_end = data_blocks(&file, file.plain_block(index)?, &mut table)?;
    ensure!(blocks_end as u64 == filter_at, "a gap behind the data blocks, at {blocks_end}");
    check_order(&table, order)?;
    check_properties(&table)?;
    if filter != (0, 0) {
        check_filter(file.plain_block(filter)?, &table.entries)?;
    }
    Ok(table)
}

/// The keyspace that a table says it belongs to.
pub fn owner(number: u64, bytes: &[u8]) -> Read<Keyspace> {
    let handle_at = bytes.len().checked_sub(FOOTER_BYTES).ok_or("too short for a table")? + 32;
    let mut footer = Input::new(&bytes[handle_at..]);
    let properties = File { number, bytes }.plain_block((footer.u64()?, footer.u64()?))?;
    Properties::read(properties)?.keyspace.ok_or_else(|| format!("table {number} has no section 128"))
}

/// Reads the data blocks that the index names, and says where they end.
fn data_blocks(file: &File<'_>, index: &[u8], table: &mut Table) -> Read<usize> {
    let mut index = Input::new(index);
    let (blocks, common) = (index.varint()?, index.string()?);
    let mut offset = 0;
    for _ in 0..blocks {
        let last_key = [common, index.string()?].concat();
        let (sequence, stored_bytes) = (index.varint()?, index.size()?);
        let (content, compression) = file.block(offset, stored_bytes)?;
        let raw = match compression {
            0 => content.to_vec(),
            _ => decompressed(content, compression)?,
        };
        ensure!(compression == 0 || content.len() <= raw.len() - raw.len() / 8, "compression that saves nothing");
        let found = entries(&raw).map_err(|what| format!("the block at {offset}: {what}"))?;
        table.flags = (table.flags.0 | raw[16], table.flags.1 | !raw[16]);
        table.compressions[usize::from(compression)] = true;
        let last = found.last().ok_or("an empty block")?;
        ensure!(last.key == last_key && last.sequence == sequence, "the index is wrong about the block at {offset}");
        table.entries.extend(found);
        offset += stored_bytes;
    }
    index.end("the index")?;
    Ok(offset)
}

fn check_order(table: &Table, order: Order) -> Read<()> {
    for pair in table.entries.windows(2) {
        let keys = order.compare(&pair[0].key, &pair[1].key);
        let is_ascending = keys.is_lt() || (keys.is_eq() && pair[0].sequence > pair[1].sequence);
        ensure!(is_ascending, "out of order: {pair:?}");
    }
    let tombstones = &table.properties.tombstones;
    for (index, tombstone) in tombstones.iter().enumerate() {
        let next = tombstones.get(index + 1);
        let is_last = next.is_none();
        ensure!(tombstone.end.is_empty() || order.compare(&tombstone.start, &tombstone.end).is_lt(), "empty range");
        ensure!(is_last || !tombstone.end.is_empty(), "a range without end before another one");
        let is_apart = next.is_none_or(|next| order.compare(&tombstone.end, &next.start).is_le());
        ensure!(is_apart, "ranges overlap: {tombstones:?}");
    }
    Ok(())
}

/// Counts what the properties count.
fn check_properties(table: &Table) -> Read<()> {
    let (stated, entries) = (&table.properties, &table.entries);
    let of_kind = |kind: Kind| entries.iter().filter(|entry| entry.kind == kind).count() as u64;
    let sequences = || entries.iter().map(|entry| entry.sequence);
    let expiries = || entries.iter().map(|entry| entry.expiry).filter(|&expiry| expiry != 0);
    let mut blobs = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.kind == Kind::PutBlob) {
        let reference = Reference::read(&entry.value)?;
        *blobs.entry(reference.file).or_default() += reference.file_bytes();
    }
    let counted = Properties {
        entries: entries.len() as u64,
        deletes: of_kind(Kind::Delete),
        merges: of_kind(Kind::Merge),
        first_key: entries.first().map(|entry| entry.key.clone()).unwrap_or_default(),
        last_key: entries.last().map(|entry| entry.key.clone()).unwrap_or_default(),
        sequences: (sequences().min().unwrap_or(0), sequences().max().unwrap_or(0)),
        expiring: expiries().count() as u64,
        expiries: (expiries().min().unwrap_or(0), expiries().max().unwrap_or(0)),
        key_bytes: entries.iter().map(|entry| entry.key.len() as u64).sum(),
        value_bytes: entries.iter().map(|entry| entry.value.len() as u64).sum(),
        blobs,
        has_zstd: table.compressions[2],
        ..stated.clone()
    };
    ensure!(counted == *stated, "properties {stated:?}, and counted {counted:?}");
    Ok(())
}

/// Makes the filter anew of the keys: every bit of it has a reason.
fn check_filter(content: &[u8], entries: &[Entry]) -> Read<()> {
    let (&probes, stated) = content.split_last().ok_or("an empty filter")?;
    ensure!(probes <= 7 && stated.len() % 64 == 0 && !stated.is_empty(), "a filter with {probes} probes");
    let lines = stated.len() as u64 / 64;
    let mut made = vec![0; stated.len()];
    for entry in entries {
        let hash = XxHash3_64::oneshot(&entry.key);
        let line = (((hash >> 32) * lines) >> 32) as usize;
        let mut bits = (hash ^ (hash >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for _ in 0..probes {
            let bit = (bits & 511) as usize;
            made[line * 64 + bit / 8] |= 1 << (bit % 8);
            bits >>= 9;
        }
    }
    ensure!(made == stated, "the filter is not that of the keys");
    Ok(())
}
