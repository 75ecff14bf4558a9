//! The keyspace of a table: a property that no reader needs, for a repair without a manifest.
//!
//! ```text
//! keyspace := id:varint name:bytes operator:bytes ttl:varint flushed:varint [comparator:bytes]
//! ```
//! `operator` is empty for none; `ttl` is as in the manifest; `comparator` is missing for the
//! bytewise order.

use crate::base::coding::{Cursor, DecodeError, put_bytes, put_varint};
use crate::base::comparator::BYTEWISE;
use crate::base::key::Sequence;

/// What the manifest said about the keyspace of a table when the table was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableKeyspace {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The stored name of its merge operator.
    pub operator: Option<String>,
    /// Its setting of time to live, as in the manifest.
    pub ttl: u64,
    /// Every write of the keyspace up to there was in tables, this one and those of the same job
    /// before it included.
    pub flushed: Sequence,
    /// The stored name of its comparator.
    pub comparator: String,
}

impl Default for TableKeyspace {
    fn default() -> TableKeyspace {
        let (name, comparator) = (String::new(), BYTEWISE.to_owned());
        TableKeyspace { id: 0, name, operator: None, ttl: 0, flushed: 0, comparator }
    }
}

impl TableKeyspace {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id);
        put_bytes(&mut out, self.name.as_bytes());
        put_bytes(&mut out, self.operator.as_deref().unwrap_or_default().as_bytes());
        put_varint(&mut out, self.ttl);
        put_varint(&mut out, self.flushed);
        if self.comparator != BYTEWISE {
            put_bytes(&mut out, self.comparator.as_bytes());
        }
        out
    }

    /// Later versions may put more behind what is known here.
    pub(super) fn decode(payload: &[u8]) -> Result<TableKeyspace, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.varint("a keyspace number")?;
        let name = String::from_utf8_lossy(cursor.bytes("a name")?).into_owned();
        let operator = String::from_utf8_lossy(cursor.bytes("a merge operator")?).into_owned();
        let operator = Some(operator).filter(|name| !name.is_empty());
        let (ttl, flushed) = (cursor.varint("a ttl")?, cursor.varint("a sequence number")?);
        let comparator = match cursor.is_empty() {
            true => BYTEWISE.to_owned(),
            false => String::from_utf8_lossy(cursor.bytes("a comparator")?).into_owned(),
        };
        Ok(TableKeyspace { id, name, operator, ttl, flushed, comparator })
    }
}
