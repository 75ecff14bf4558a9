//! The operations of a batch in the log: doc/format/wal.md.

use crate::bytes::{Input, Read, ensure};

/// What is written about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Delete,
    Put,
    Merge,
    /// A merge of a key that had no value then: what is older does not count.
    MergeOntoNothing,
    PutBlob,
}

impl Kind {
    pub fn of(number: u8) -> Read<Kind> {
        Ok(match number {
            0 => Kind::Delete,
            1 => Kind::Put,
            2 => Kind::Merge,
            3 => Kind::MergeOntoNothing,
            4 => Kind::PutBlob,
            other => return Err(format!("kind {other}")),
        })
    }
}

#[derive(Clone, Debug)]
pub enum Operation {
    Write { keyspace: u64, kind: Kind, key: Vec<u8>, expiry: u64, value: Vec<u8> },
    DeleteRange { keyspace: u64, start: Vec<u8>, end: Vec<u8> },
}

impl Operation {
    pub fn keyspace(&self) -> u64 {
        let (Operation::Write { keyspace, .. } | Operation::DeleteRange { keyspace, .. }) = self;
        *keyspace
    }

    /// The reference of a large value.
    pub fn reference(&self) -> Option<&[u8]> {
        match self {
            Operation::Write { kind: Kind::PutBlob, value, .. } => Some(value),
            _ => None,
        }
    }
}

/// All of a batch.
pub fn operations(payload: &[u8]) -> Read<Vec<Operation>> {
    let (mut input, mut found) = (Input::new(payload), Vec::new());
    while !input.is_empty() {
        let tag = input.u8()?;
        let keyspace = input.varint()?;
        if tag == 5 {
            let (start, end) = (input.string()?.to_vec(), input.string()?.to_vec());
            found.push(Operation::DeleteRange { keyspace, start, end });
            continue;
        }
        let kind = Kind::of(tag & 0x7f)?;
        let expiry = if tag & 0x80 == 0 { 0 } else { input.u64()? };
        ensure!(tag & 0x80 == 0 || (kind != Kind::Delete && expiry != 0), "operation with tag {tag}, expiry {expiry}");
        let key = input.string()?.to_vec();
        let value = if kind == Kind::Delete { Vec::new() } else { input.string()?.to_vec() };
        ensure!(kind != Kind::PutBlob || value.len() == 24, "a reference of {} bytes", value.len());
        found.push(Operation::Write { keyspace, kind, key, expiry, value });
    }
    Ok(found)
}
