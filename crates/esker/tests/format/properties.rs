//! The properties block of a table: doc/format/table.md.

use crate::bytes::{Input, Read, ensure};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    pub entries: u64,
    pub deletes: u64,
    pub merges: u64,
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    /// The smallest and the largest.
    pub sequences: (u64, u64),
    pub expiring: u64,
    /// The first and the last.
    pub expiries: (u64, u64),
    pub key_bytes: u64,
    pub value_bytes: u64,
    pub tombstones: Vec<Tombstone>,
    /// Bytes of values in each blob file.
    pub blobs: BTreeMap<u64, u64>,
    pub has_zstd: bool,
    pub keyspace: Option<Keyspace>,
    /// The name of a filter policy, and its filter.
    pub policy: Option<(String, Vec<u8>)>,
}

/// A deleted range, with the numbers of its deletions, newest first. Bounds are as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub sequences: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    pub id: u64,
    pub name: String,
    pub operator: String,
    pub ttl: u64,
    pub flushed: u64,
    pub comparator: String,
}

impl Properties {
    pub fn read(content: &[u8]) -> Read<Properties> {
        let (mut input, mut properties, mut ids) = (Input::new(content), Properties::default(), Vec::new());
        while !input.is_empty() {
            let id = input.varint()?;
            ensure!(ids.last().is_none_or(|&last| last < id), "section {id} behind {ids:?}");
            let mut payload = Input::new(input.string()?);
            properties.section(id, &mut payload)?;
            payload.end(&format!("section {id}"))?;
            ids.push(id);
        }
        ensure!(ids.starts_with(&[1, 2, 3, 4, 5, 6]), "sections {ids:?}");
        Ok(properties)
    }

    fn section(&mut self, id: u64, input: &mut Input<'_>) -> Read<()> {
        match id {
            1 => (self.entries, self.deletes, self.merges) = (input.varint()?, input.varint()?, input.varint()?),
            2 => self.first_key = rest(input)?,
            3 => self.last_key = rest(input)?,
            4 => self.sequences = (input.varint()?, input.varint()?),
            5 => (self.expiring, self.expiries) = (input.varint()?, (input.varint()?, input.varint()?)),
            6 => (self.key_bytes, self.value_bytes) = (input.varint()?, input.varint()?),
            7 => self.tombstones = tombstones(input)?,
            8 => {
                while !input.is_empty() {
                    let file = input.varint()?;
                    ensure!(self.blobs.last_key_value().is_none_or(|(&last, _)| last < file), "blob files descend");
                    self.blobs.insert(file, input.varint()?);
                }
                ensure!(!self.blobs.is_empty(), "section 8 is empty");
            }
            9 => {
                ensure!(input.varint()? == 2, "section 9");
                self.has_zstd = true;
            }
            128 => self.keyspace = Some(keyspace(input)?),
            129 => self.policy = Some((input.text()?, input.string()?.to_vec())),
            other => return Err(format!("section {other}")),
        }
        Ok(())
    }
}

fn rest(input: &mut Input<'_>) -> Read<Vec<u8>> {
    let mut bytes = Vec::new();
    while !input.is_empty() {
        bytes.push(input.u8()?);
    }
    Ok(bytes)
}

fn keyspace(input: &mut Input<'_>) -> Read<Keyspace> {
    let (id, name, operator) = (input.varint()?, input.text()?, input.text()?);
    let (ttl, flushed) = (input.varint()?, input.varint()?);
    let comparator = if input.is_empty() { "bytewise".into() } else { input.text()? };
    Ok(Keyspace { id, name, operator, ttl, flushed, comparator })
}

fn tombstones(input: &mut Input<'_>) -> Read<Vec<Tombstone>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let (start, end) = (input.string()?.to_vec(), input.string()?.to_vec());
        let count = input.varint()?;
        ensure!(count > 0, "a range without a deletion");
        let mut sequences = vec![input.varint()?];
        for _ in 1..count {
            let older = sequences[sequences.len() - 1].checked_sub(input.varint()?);
            sequences.push(older.ok_or("a deletion with a number below 0")?);
        }
        ensure!(sequences.is_sorted_by(|newer, older| newer > older), "deletions {sequences:?}");
        found.push(Tombstone { start, end, sequences });
    }
    ensure!(!found.is_empty(), "section 7 is empty");
    Ok(found)
}
