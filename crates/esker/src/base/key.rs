//! Entries and the internal key order: user key ascending, then sequence number descending, so that
//! of several versions of one key the newest comes first.

/// The position of a write in the one total order of all writes of a database. Starts at 1; 0 means
/// "older than anything a reader can ask for" and is what compaction gives to entries that no
/// snapshot needs to tell apart.
pub type Sequence = u64;

/// The largest sequence number: 56 bits, so that it shares a word with the kind.
pub const MAX_SEQUENCE: Sequence = (1 << 56) - 1;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1 << 20;

/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 30;

/// An expiry that never comes.
pub const NEVER: u64 = 0;

/// What an entry does to its key.
///
/// The numbers are part of the log and table formats and must never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The key has no value from here on.
    Delete = 0,
    /// The key has this value from here on.
    Put = 1,
    /// The operand is combined with whatever is older.
    Merge = 2,
    /// The operand is combined with nothing: whatever is older is hidden. A merge that found its
    /// key absent or expired.
    MergeFirst = 3,
    /// As `Put`, but the bytes are a reference to the value, which is in a blob file.
    PutBlob = 4,
}

impl Kind {
    /// The kind with this number in a file, if there is one.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Delete),
            1 => Some(Kind::Put),
            2 => Some(Kind::Merge),
            3 => Some(Kind::MergeFirst),
            4 => Some(Kind::PutBlob),
            _ => None,
        }
    }
}

/// One version of one key, borrowed from wherever it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The user's key.
    pub key: &'a [u8],
    /// The write that made this version.
    pub sequence: Sequence,
    /// What the version does.
    pub kind: Kind,
    /// When the version expires, in milliseconds since the Unix epoch; [`NEVER`] if it does not.
    pub expiry_ms: u64,
    /// The value, or the operand of a merge; empty for a delete.
    pub value: &'a [u8],
}

/// Internal key order in the bytewise order, for tests.
#[cfg(test)]
pub fn compare(a_key: &[u8], a_sequence: Sequence, b_key: &[u8], b_sequence: Sequence) -> std::cmp::Ordering {
    a_key.cmp(b_key).then_with(|| b_sequence.cmp(&a_sequence))
}

/// The eight bytes of `key` that follow its first `skip` bytes, as a big-endian number, padded with
/// zeroes. For keys that share their first `skip` bytes, `head(a) < head(b)` implies `a < b`; equal
/// heads decide nothing.
#[inline]
pub fn head(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0u8; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Whether `a` and `b` are the same: for the usual short keys without a call.
#[inline]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    fn ends_agree<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        // Two words that may overlap are all of it.
        let first = (a.first_chunk::<N>(), b.first_chunk::<N>());
        let last = (a.last_chunk::<N>(), b.last_chunk::<N>());
        (first.0 == first.1) & (last.0 == last.1)
    }
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        8..=16 => ends_agree::<8>(a, b),
        4..=7 => ends_agree::<4>(a, b),
        2..=3 => ends_agree::<2>(a, b),
        0..=1 => a.first() == b.first(),
        _ => a == b,
    }
}

/// Whether `a` comes before `b`: for the usual short keys without a call.
#[inline]
pub fn less(a: &[u8], b: &[u8]) -> bool {
    if a.len() == b.len()
        && a.len() <= 16
        && let (Some(a_first), Some(b_first)) = (a.first_chunk::<8>(), b.first_chunk::<8>())
        && let (Some(a_last), Some(b_last)) = (a.last_chunk::<8>(), b.last_chunk::<8>())
    {
        // Two words that may overlap: what both have decides nothing in the second.
        let words = |first: &[u8; 8], last: &[u8; 8]| (u64::from_be_bytes(*first), u64::from_be_bytes(*last));
        return words(a_first, a_last) < words(b_first, b_last);
    }
    a < b
}

/// What follows `prefix` in `key`, if it begins with that.
#[inline]
pub fn rest_after<'a>(key: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = key.split_at_checked(prefix.len())?;
    same(first, prefix).then_some(rest)
}

/// How many leading bytes `a` and `b` share.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The hash of a user key, as the memtable index and the table filters use it. Part of the table
/// format.
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn newer_versions_come_first_and_heads_agree_with_the_order() {
        let order = |a, b| super::super::key_order::KeyOrder::Bytewise.compare_versions(a, b);
        assert_eq!(order((b"a", 2), (b"a", 1)), Ordering::Less);
        assert_eq!(order((b"a", 1), (b"b", 9)), Ordering::Less);
        assert!(head(b"xxab", 2) < head(b"xxac", 2));
        assert_eq!(head(b"xx", 2), 0);
        assert_eq!(head(b"xx\0", 2), 0);
        assert_eq!(head(b"", 5), 0);
        assert_eq!(common_prefix(b"abc", b"abd"), 2);
    }

    #[test]
    fn keys_are_the_same_only_in_every_byte() {
        for length in 0..40 {
            let key: Vec<u8> = (0..length).collect();
            assert!(same(&key, &key.clone()) && !less(&key, &key.clone()));
            assert!(less(&key, &[key.as_slice(), b"x"].concat()) && !less(&[key.as_slice(), b"x"].concat(), &key));
            assert!(!same(&key, &[key.as_slice(), b"x"].concat()));
            assert_eq!(rest_after(&[key.as_slice(), b"x"].concat(), &key), Some(&b"x"[..]));
            for changed in 0..key.len() {
                let mut other = key.clone();
                other[changed] ^= 0x80;
                assert!(!same(&key, &other), "byte {changed} of {length}");
                assert_eq!(rest_after(&key, &other), None);
                assert_eq!((less(&key, &other), less(&other, &key)), (key < other, other < key));
            }
        }
    }
}
