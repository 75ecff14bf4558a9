//! Orders of keys, and keys as they are stored: the end of doc/format/table.md.

use std::cmp::Ordering;

/// The order of the keys of a keyspace, by the name of its comparator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Bytewise,
    ReverseBytewise,
    /// The shortest first: a comparator of the program.
    ShortestFirst,
}

/// The name of the comparator of this test.
pub const SHORTEST_FIRST: &str = "shortest-first";

pub fn shortest_first(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl Order {
    pub fn named(name: &str) -> Result<Order, String> {
        match name {
            "bytewise" => Ok(Order::Bytewise),
            "reverse-bytewise" => Ok(Order::ReverseBytewise),
            SHORTEST_FIRST => Ok(Order::ShortestFirst),
            other => Err(format!("comparator {other}")),
        }
    }

    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let unmarked = match self {
            Order::Bytewise => return a.cmp(b),
            Order::ReverseBytewise => |a: &[u8], b: &[u8]| b.cmp(a),
            Order::ShortestFirst => shortest_first,
        };
        match (a.split_last(), b.split_last()) {
            (Some((a_mark, a)), Some((b_mark, b))) => unmarked(a, b).then(a_mark.cmp(b_mark)),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    /// The key of a stored one.
    pub fn key(self, stored: &[u8]) -> Result<Vec<u8>, String> {
        match (self, stored) {
            (Order::Bytewise, key) | (_, [key @ .., 1]) => Ok(key.to_vec()),
            (_, other) => Err(format!("a stored key {other:?}")),
        }
    }

    /// Whether a range has a key, where an empty end is behind every key.
    pub fn covers(self, start: &[u8], end: &[u8], key: &[u8]) -> bool {
        self.compare(start, key).is_le() && (end.is_empty() || self.compare(key, end).is_lt())
    }
}
