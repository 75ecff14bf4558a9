//! The keys of the server's keyspaces.
//!
//! ```text
//! The logical database N has two keyspaces, and all have one more:
//!
//! keyspace "N"           key   := place user-key          the keys of clients
//!                        value := see `entry.rs`          with the time to live of the engine
//! keyspace "N.elements"  key   := generation element      what collections hold
//!   element := 'm' place member                           value: a hash's value of the field, nothing
//!                                                         in a set, the score (8) in a sorted set
//!            | 's' score member                           of a sorted set, by score; value: nothing
//!            | 'i' index                                  of a list; value: the element
//! keyspace "system"      key   := "format"                value: the version of this format, "1"
//!                               | "seed"                  value: the seed of places (8)
//!                               | "generation"            value: the next generation (8)
//!                               | "expiry"                value: the latest expiry that was ever set (8), in
//!                                                         a cluster only
//!                               | "swapped"               value: N of each logical database (4 each)
//!                               | 'x' expiry(8) generation(8)
//!                                                         a collection that expires; value: N (4) key
//! place      := the upper 48 bits of XXH3 with the seed of the database, big-endian, never 0
//! generation := 8 bytes, big-endian: one for each collection ever made, never used again
//! score      := 8 bytes: the bits of the number, so changed that their order is that of numbers
//! index      := 8 bytes, big-endian: a signed number with its sign bit flipped
//! ```
//!
//! A scan follows the places, so that its cursor is a number that means the same after any number
//! of writes: a key that is there throughout is yielded, once. 48 bits are exact in every client
//! that keeps numbers as doubles.

use twox_hash::XxHash3_64;

/// The bytes of a place.
pub const PLACE_BYTES: usize = 6;
/// The longest key of a client: the engine's limit less the place.
pub const KEY_BYTES_MAX: usize = (1 << 20) - PLACE_BYTES;
/// The longest field or member: the engine's limit less generation, kind and score.
pub const ELEMENT_BYTES_MAX: usize = (1 << 20) - 8 - 1 - 8;

const MEMBER: u8 = b'm';
const SCORE: u8 = b's';
const ITEM: u8 = b'i';

/// Where in the order of scans these bytes are.
pub fn member_place(seed: u64, bytes: &[u8]) -> u64 {
    (XxHash3_64::oneshot_with_seed(seed, bytes) >> 16).max(1)
}

/// The stored key of a client's key.
pub fn key_of(seed: u64, key: &[u8]) -> Vec<u8> {
    let mut stored = key_place(member_place(seed, key));
    stored.extend_from_slice(key);
    stored
}

/// The least stored key at a place.
pub fn key_place(place: u64) -> Vec<u8> {
    place.to_be_bytes()[2..].to_vec()
}

/// The place and the client's key in a stored key.
pub fn member_of(stored: &[u8]) -> Option<(u64, &[u8])> {
    let (place, member) = stored.split_at_checked(PLACE_BYTES)?;
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(place);
    Some((u64::from_be_bytes(bytes), member))
}

fn element(generation: u64, kind: u8, capacity: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + capacity);
    key.extend_from_slice(&generation.to_be_bytes());
    key.push(kind);
    key
}

/// The key of a field of a hash or of a member of a set or a sorted set.
pub fn member_key(seed: u64, generation: u64, member: &[u8]) -> Vec<u8> {
    let mut key = element(generation, MEMBER, PLACE_BYTES + member.len());
    key.extend_from_slice(&member_place(seed, member).to_be_bytes()[2..]);
    key.extend_from_slice(member);
    key
}

/// What the keys of all fields or members begin with.
pub fn prefix_of_members(generation: u64) -> Vec<u8> {
    element(generation, MEMBER, PLACE_BYTES)
}

/// What the keys of all members by score begin with.
pub fn prefix_of_scores(generation: u64) -> Vec<u8> {
    element(generation, SCORE, 8)
}

/// What the keys of all elements of a list begin with.
pub fn prefix_of_items(generation: u64) -> Vec<u8> {
    element(generation, ITEM, 8)
}

/// The number as bytes whose order is that of numbers. Both zeros are the same.
pub fn sortable(score: f64) -> [u8; 8] {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    let changed = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    changed.to_be_bytes()
}

/// The key of a member of a sorted set by its score.
pub fn score_key(generation: u64, score: f64, member: &[u8]) -> Vec<u8> {
    let mut key = element(generation, SCORE, 8 + member.len());
    key.extend_from_slice(&sortable(score));
    key.extend_from_slice(member);
    key
}

/// The score and the member in the key of a member by its score.
pub fn score_of(key: &[u8]) -> Option<(f64, &[u8])> {
    let (score, member) = key.get(9..)?.split_at_checked(8)?;
    let changed = u64::from_be_bytes(score.try_into().ok()?);
    let bits = if changed >> 63 == 1 { changed & !(1 << 63) } else { !changed };
    Some((f64::from_bits(bits), member))
}

/// The key of an element of a list.
pub fn item_key(generation: u64, index: i64) -> Vec<u8> {
    let mut key = element(generation, ITEM, 8);
    key.extend_from_slice(&((index as u64) ^ (1 << 63)).to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_ordered_as_numbers() {
        let scores =
            [f64::NEG_INFINITY, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.0, 1e300, f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(score_key(1, pair[0], b"z") < score_key(1, pair[1], b"a"), "{pair:?}");
        }
        for score in scores {
            assert_eq!(score_of(&score_key(7, score, b"ada")), Some((score, &b"ada"[..])));
        }
        assert_eq!(sortable(-0.0), sortable(0.0));
    }

    #[test]
    fn items_are_ordered_as_their_indexes() {
        for pair in [i64::MIN, -1, 0, 1, i64::MAX].windows(2) {
            assert!(item_key(1, pair[0]) < item_key(1, pair[1]));
        }
    }

    #[test]
    fn keys_and_places_come_back() {
        let stored = key_of(9, b"ada");
        assert_eq!(member_of(&stored), Some((member_place(9, b"ada"), &b"ada"[..])));
        assert_eq!(member_of(b"short"), None);
        assert!(key_place(member_place(9, b"ada")) <= stored);
    }
}
