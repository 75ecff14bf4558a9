//! What a key of a client holds.
//!
//! ```text
//! value      := kind expiry? body
//! kind       := 1 byte: 0 string, 1 list, 2 set, 3 sorted set, 4 hash; bit 7: there is an expiry
//! expiry     := 8 bytes, little-endian: milliseconds since the epoch, also kept by the engine
//! body       := the string
//!             | generation(8) count(8) first(8)       little-endian; `first` is the index of the
//!                                                     first element of a list, else 0
//! ```

use esker::Slice;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A hash.
    Hash,
}

impl Kind {
    /// All of them, by their numbers in the format.
    const ALL: [Kind; 5] = [Kind::String, Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash];

    /// The name that TYPE yields.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Hash => "hash",
        }
    }
}

/// The place and the number of the elements of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Of which type.
    pub kind: Kind,
    /// What the keys of its elements begin with.
    pub generation: u64,
    /// How many elements there are; at least one, as soon as it is stored.
    pub count: u64,
    /// The index of the first element of a list.
    pub first: i64,
}

/// A value of a key.
#[derive(Clone, Debug)]
pub enum Body {
    /// The stored value that holds a string, and where in it the string begins.
    String(Slice, usize),
    /// A collection.
    Collection(Collection),
}

/// What is stored at a key.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it expires, in milliseconds since the epoch.
    pub expiry_ms: Option<u64>,
    /// Its value.
    pub body: Body,
}

const EXPIRES: u8 = 0x80;

impl Entry {
    /// The entry in a stored value; `None` if the value is damaged.
    pub fn decode(stored: Slice) -> Option<Entry> {
        let (&head, _) = stored.split_first()?;
        let kind = *Kind::ALL.get(usize::from(head & !EXPIRES))?;
        let (expiry_ms, start) = if head & EXPIRES == 0 {
            (None, 1)
        } else {
            (Some(u64::from_le_bytes(stored.get(1..9)?.try_into().ok()?)), 9)
        };
        if kind == Kind::String {
            return Some(Entry { expiry_ms, body: Body::String(stored, start) });
        }
        let word = |index: usize| -> Option<[u8; 8]> {
            let from = start + index * 8;
            stored.get(from..from + 8)?.try_into().ok()
        };
        let collection = Collection {
            kind,
            generation: u64::from_le_bytes(word(0)?),
            count: u64::from_le_bytes(word(1)?),
            first: i64::from_le_bytes(word(2)?),
        };
        Some(Entry { expiry_ms, body: Body::Collection(collection) })
    }

    /// Whether it has not expired. The engine hides what has expired when a transaction begins; a
    /// command goes by its own time.
    pub fn is_visible(&self, now_ms: u64) -> bool {
        self.expiry_ms.is_none_or(|expiry_ms| now_ms < expiry_ms)
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::String(..) => Kind::String,
            Body::Collection(collection) => collection.kind,
        }
    }

    /// The string, if it is one.
    pub fn string(&self) -> Option<&[u8]> {
        match &self.body {
            Body::String(stored, start) => stored.get(*start..),
            Body::Collection(_) => None,
        }
    }

    /// The stored value of a string.
    pub fn encode_string(expiry_ms: Option<u64>, parts: &[&[u8]]) -> Vec<u8> {
        let mut stored = head(Kind::String, expiry_ms, parts.iter().map(|part| part.len()).sum());
        for part in parts {
            stored.extend_from_slice(part);
        }
        stored
    }

    /// The stored value of a collection.
    pub fn encode_collection(expiry_ms: Option<u64>, collection: &Collection) -> Vec<u8> {
        let mut stored = head(collection.kind, expiry_ms, 24);
        stored.extend_from_slice(&collection.generation.to_le_bytes());
        stored.extend_from_slice(&collection.count.to_le_bytes());
        stored.extend_from_slice(&collection.first.to_le_bytes());
        stored
    }
}

fn head(kind: Kind, expiry_ms: Option<u64>, body: usize) -> Vec<u8> {
    let mut stored = Vec::with_capacity(9 + body);
    let number = Kind::ALL.iter().position(|&other| other == kind).map_or(0, |number| number as u8);
    stored.push(number | if expiry_ms.is_some() { EXPIRES } else { 0 });
    if let Some(expiry_ms) = expiry_ms {
        stored.extend_from_slice(&expiry_ms.to_le_bytes());
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        for expiry_ms in [None, Some(77)] {
            let string = Entry::decode(Slice::from(Entry::encode_string(expiry_ms, &[b"a", b"da"]))).unwrap();
            assert_eq!(
                (string.expiry_ms, string.string(), string.kind()),
                (expiry_ms, Some(&b"ada"[..]), Kind::String)
            );
            let collection = Collection { kind: Kind::Hash, generation: 3, count: 4, first: -5 };
            let stored = Slice::from(Entry::encode_collection(expiry_ms, &collection));
            let entry = Entry::decode(stored).unwrap();
            assert_eq!(entry.expiry_ms, expiry_ms);
            assert!(matches!(entry.body, Body::Collection(found) if found == collection));
        }
        for damaged in [&b""[..], b"\x05", b"\x80abc", b"\x01short"] {
            assert!(Entry::decode(Slice::from(damaged.to_vec())).is_none());
        }
    }
}
