//! The payload of a log record: the operations of one atomic write, in order.
//!
//! ```text
//! batch         := operation*
//! operation     := key_operation | range_delete
//! key_operation := tag u8, keyspace varint, [expiry u64 le], key_length varint, key, [value_length varint, value]
//! tag           := kind (low 4 bits: 0 delete, 1 put, 2 merge, 3 merge onto nothing, 4 put of a large value), 0x80 set when an expiry follows
//! range_delete  := 5 u8, keyspace varint, start_length varint, start, end_length varint, end
//! ```
//! Deletes carry no value. The expiry is an absolute time in milliseconds since the Unix epoch. A
//! range goes from `start`, included, to `end`, excluded; an empty `end` is behind every key. It
//! takes one sequence number, like any operation. 5 is no kind of an entry: tables keep range
//! tombstones apart.
//!
//! A batch that is not committed yet may also change expiries. The commit replaces each such
//! operation by copies of what the key holds (`db/write/merge_expiry.rs`), so that none is ever in
//! a log:
//!
//! ```text
//! expiry_change := 6 u8, keyspace varint, expiry u64 le, key_length varint, key
//! ```

use crate::base::coding::{Cursor, DecodeError, put_bytes, put_varint};
use crate::base::key::{Kind, NEVER};
use crate::base::key_order::KeyOrder;

const HAS_EXPIRY: u8 = 0x80;
const RANGE_DELETE: u8 = 5;
const EXPIRY_CHANGE: u8 = 6;

/// One operation of a batch that concerns one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The keyspace's number.
    pub keyspace: u64,
    /// What to do.
    pub kind: Kind,
    /// When it expires; [`NEVER`] if it does not.
    pub expiry_ms: u64,
    /// The key.
    pub key: &'a [u8],
    /// The value or operand; empty for a delete.
    pub value: &'a [u8],
}

/// One operation of a batch that deletes a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeDelete<'a> {
    /// The keyspace's number.
    pub keyspace: u64,
    /// The first key.
    pub start: &'a [u8],
    /// The first key behind the range, which is greater than `start`; empty if there is none.
    pub end: &'a [u8],
}

impl RangeDelete<'_> {
    /// Whether it deletes this key, in the order of its keyspace.
    pub fn covers(&self, order: &KeyOrder, keyspace: u64, key: &[u8]) -> bool {
        keyspace == self.keyspace && !order.less(key, self.start) && order.is_before_end(key, self.end)
    }

    /// Whether a range of keys in this order can be it.
    pub fn is_possible(&self, order: &KeyOrder) -> bool {
        order.is_before_end(self.start, self.end)
    }
}

/// One operation of a batch that gives the value of a key another expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryChange<'a> {
    /// The keyspace's number.
    pub keyspace: u64,
    /// The new expiry; [`NEVER`] if the value is not to expire.
    pub expiry_ms: u64,
    /// The key.
    pub key: &'a [u8],
}

/// One operation of a batch that is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved<'a> {
    Logged(AnyOperation<'a>),
    Expiry(ExpiryChange<'a>),
}

/// One operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyOperation<'a> {
    Key(Operation<'a>),
    Range(RangeDelete<'a>),
}

impl AnyOperation<'_> {
    /// The keyspace's number.
    pub fn keyspace(&self) -> u64 {
        match self {
            AnyOperation::Key(operation) => operation.keyspace,
            AnyOperation::Range(operation) => operation.keyspace,
        }
    }
}

/// Appends a range delete to a batch.
pub fn encode_range(buffer: &mut Vec<u8>, operation: &RangeDelete<'_>) {
    buffer.push(RANGE_DELETE);
    put_varint(buffer, operation.keyspace);
    put_bytes(buffer, operation.start);
    put_bytes(buffer, operation.end);
}

/// Appends a change of an expiry to a batch. Returns where the expiry is.
pub fn encode_expiry_change(buffer: &mut Vec<u8>, operation: &ExpiryChange<'_>) -> usize {
    buffer.push(EXPIRY_CHANGE);
    put_varint(buffer, operation.keyspace);
    let expiry_at = buffer.len();
    buffer.extend_from_slice(&operation.expiry_ms.to_le_bytes());
    put_bytes(buffer, operation.key);
    expiry_at
}

/// Appends `operation` to a batch. Returns where its expiry is, if it has one.
pub fn encode(buffer: &mut Vec<u8>, operation: &Operation<'_>) -> usize {
    let expiry_flag = if operation.expiry_ms == NEVER { 0 } else { HAS_EXPIRY };
    buffer.push(operation.kind as u8 | expiry_flag);
    put_varint(buffer, operation.keyspace);
    let expiry_at = buffer.len();
    if operation.expiry_ms != NEVER {
        buffer.extend_from_slice(&operation.expiry_ms.to_le_bytes());
    }
    put_bytes(buffer, operation.key);
    if operation.kind != Kind::Delete {
        put_bytes(buffer, operation.value);
    }
    expiry_at
}

/// Sets the expiry at that place of a batch.
pub fn set_expiry(buffer: &mut [u8], expiry_at: usize, expiry_ms: u64) {
    if let Some(field) = buffer.get_mut(expiry_at..expiry_at + 8) {
        field.copy_from_slice(&expiry_ms.to_le_bytes());
    }
}

/// The operations of a batch, in order. Stops after the first error.
#[derive(Debug, Clone)]
pub struct Operations<'a> {
    cursor: Cursor<'a>,
    failed: bool,
}

impl<'a> Operations<'a> {
    /// Reads the operations in `payload`.
    pub fn new(payload: &'a [u8]) -> Operations<'a> {
        Operations { cursor: Cursor::new(payload), failed: false }
    }

    fn read(&mut self) -> Result<AnyOperation<'a>, DecodeError> {
        let tag = self.cursor.byte("an operation")?;
        if tag == RANGE_DELETE {
            return self.read_range().map(AnyOperation::Range);
        }
        let kind = Kind::from_byte(tag & !HAS_EXPIRY).ok_or(self.cursor.expected("a known operation"))?;
        let keyspace = self.cursor.varint("a keyspace number")?;
        let expiry_ms = if tag & HAS_EXPIRY == 0 { NEVER } else { self.cursor.u64("an expiry")? };
        let key = self.cursor.bytes("a key")?;
        let value = if kind == Kind::Delete { &[][..] } else { self.cursor.bytes("a value")? };
        Ok(AnyOperation::Key(Operation { keyspace, kind, expiry_ms, key, value }))
    }

    /// Whether no operation follows.
    pub fn is_at_end(&self) -> bool {
        self.failed || self.cursor.is_empty()
    }

    /// The next operation of a batch that is not committed yet.
    pub fn next_unresolved(&mut self) -> Option<Result<Unresolved<'a>, DecodeError>> {
        let mut ahead = self.cursor.clone();
        if self.failed || !matches!(ahead.byte("an operation"), Ok(EXPIRY_CHANGE)) {
            return self.next().map(|operation| operation.map(Unresolved::Logged));
        }
        self.cursor = ahead;
        let change = self.read_expiry_change();
        self.failed = change.is_err();
        Some(change.map(Unresolved::Expiry))
    }

    fn read_expiry_change(&mut self) -> Result<ExpiryChange<'a>, DecodeError> {
        let keyspace = self.cursor.varint("a keyspace number")?;
        let expiry_ms = self.cursor.u64("an expiry")?;
        Ok(ExpiryChange { keyspace, expiry_ms, key: self.cursor.bytes("a key")? })
    }

    fn read_range(&mut self) -> Result<RangeDelete<'a>, DecodeError> {
        let keyspace = self.cursor.varint("a keyspace number")?;
        let start = self.cursor.bytes("the start of a range")?;
        let end = self.cursor.bytes("the end of a range")?;
        // Which is greater depends on the keyspace: see `RangeDelete::is_possible`.
        if start == end && !end.is_empty() {
            return Err(self.cursor.expected("a range with an end behind its start"));
        }
        Ok(RangeDelete { keyspace, start, end })
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<AnyOperation<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.cursor.is_empty() {
            return None;
        }
        let operation = self.read();
        self.failed = operation.is_err();
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip_and_damage_is_an_error() {
        let operations = [
            Operation { keyspace: 1, kind: Kind::Put, expiry_ms: NEVER, key: b"", value: b"v" },
            Operation { keyspace: 300, kind: Kind::Merge, expiry_ms: 7, key: b"k", value: b"" },
            Operation { keyspace: 2, kind: Kind::Delete, expiry_ms: NEVER, key: &[9; 300], value: b"" },
        ];
        let mut buffer = Vec::new();
        for operation in &operations {
            encode(&mut buffer, operation);
        }
        let range = RangeDelete { keyspace: 3, start: b"a", end: b"" };
        encode_range(&mut buffer, &range);
        let operations: Vec<_> =
            operations.into_iter().map(AnyOperation::Key).chain([AnyOperation::Range(range)]).collect();
        let read: Vec<_> = Operations::new(&buffer).map(|o| o.expect("intact")).collect();
        assert_eq!(read, operations);
        for length in 0..buffer.len() {
            // A cut at an operation's end is a shorter batch; the log's checksum is what vouches
            // for the length.
            assert!(Operations::new(&buffer[..length]).filter(Result::is_err).count() <= 1);
        }
        let change = ExpiryChange { keyspace: 4, expiry_ms: 9, key: b"k" };
        let mut unresolved = buffer.clone();
        let expiry_at = encode_expiry_change(&mut unresolved, &change);
        assert_eq!(unresolved[expiry_at], 9);
        let mut reader = Operations::new(&unresolved);
        let read: Vec<_> = std::iter::from_fn(|| reader.next_unresolved()).map(|o| o.expect("intact")).collect();
        let expected = operations.iter().copied().map(Unresolved::Logged).chain([Unresolved::Expiry(change)]);
        assert_eq!(read, expected.collect::<Vec<_>>());
        assert!(Operations::new(&unresolved).any(|operation| operation.is_err()), "no log has one");
        let mut empty = Vec::new();
        encode_range(&mut empty, &RangeDelete { start: b"b", end: b"b", ..range });
        assert!(Operations::new(&empty).all(|operation| operation.is_err()));
        let inverted = RangeDelete { start: b"b", end: b"a", ..range };
        assert!(!inverted.is_possible(&KeyOrder::Bytewise) && range.is_possible(&KeyOrder::Bytewise));
    }
}
