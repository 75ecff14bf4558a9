//! The data block of a table: doc/format/table.md.

use crate::bytes::{Input, Read, ensure};
use crate::operation::Kind;

/// One version of a key. The key is as it is stored.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: Vec<u8>,
    pub sequence: u64,
    pub kind: Kind,
    pub expiry: u64,
    pub value: Vec<u8>,
}

/// The entries of a block whose content is decompressed.
pub fn entries(content: &[u8]) -> Read<Vec<Entry>> {
    let mut input = Input::new(content);
    let count = input.u32()? as usize;
    let (prefix_bytes, key_bytes, value_bytes) = (input.u32()?, input.u32()? as usize, input.u32()? as usize);
    let flags = input.u8()?;
    let kind = input.u8()?;
    input.zeroes(2)?;
    let (sequence, expiry) = (input.u64()?, input.u64()?);
    ensure!(count > 0 && flags & 0x80 == 0, "a block of {count} entries with flags {flags}");
    ensure!(flags & 8 != 0 || flags & 16 == 0, "flag 16 without sequences");

    let offset_width = if flags & 4 == 0 { 2 } else { 4 };
    let prefix = input.take(prefix_bytes as usize)?;
    let keys = input.take(key_bytes)?;
    let key_ends = ends(&mut input, flags & 1 != 0, offset_width, count, key_bytes)?;
    let sequence_width = if flags & 16 == 0 { 4 } else { 8 };
    let added = column(&mut input, flags & 8 != 0, sequence_width, count)?;
    let kinds = column(&mut input, flags & 32 != 0, 1, count)?;
    let expiries = column(&mut input, flags & 64 != 0, 8, count)?;
    let value_ends = ends(&mut input, flags & 2 != 0, offset_width, count, value_bytes)?;
    let values = input.take(value_bytes)?;
    input.end("the block")?;
    ensure!(kinds.is_none() || kind == 0, "kind {kind} beside a column");
    ensure!(expiries.is_none() || expiry == 0, "expiry {expiry} beside a column");
    ensure!(added.as_ref().is_none_or(|added| added.contains(&0)), "the header's sequence is not the smallest");

    let mut found = Vec::with_capacity(count);
    for index in 0..count {
        let numbered = |column: &Option<Vec<u64>>, constant: u64| column.as_ref().map_or(constant, |all| all[index]);
        found.push(Entry {
            key: [prefix, &keys[key_ends[index]..key_ends[index + 1]]].concat(),
            sequence: sequence + added.as_ref().map_or(0, |added| added[index]),
            kind: Kind::of(numbered(&kinds, u64::from(kind)) as u8)?,
            expiry: numbered(&expiries, expiry),
            value: values[value_ends[index]..value_ends[index + 1]].to_vec(),
        });
    }
    Ok(found)
}

/// A column of numbers, if it is there.
fn column(input: &mut Input<'_>, is_there: bool, width: usize, count: usize) -> Read<Option<Vec<u64>>> {
    is_there.then(|| (0..count).map(|_| input.wide(width)).collect()).transpose()
}

/// Where each of the strings begins, and where the last one ends.
fn ends(input: &mut Input<'_>, is_there: bool, width: usize, count: usize, bytes: usize) -> Read<Vec<usize>> {
    let ends: Vec<usize> = match column(input, is_there, width, count + 1)? {
        Some(offsets) => offsets.into_iter().map(|offset| offset as usize).collect(),
        None => {
            ensure!(bytes.is_multiple_of(count), "{bytes} bytes in {count} of one width");
            (0..=count).map(|index| index * (bytes / count)).collect()
        }
    };
    ensure!(ends[0] == 0 && ends[count] == bytes && ends.is_sorted(), "offsets {ends:?} of {bytes} bytes");
    Ok(ends)
}
