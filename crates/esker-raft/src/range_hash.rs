//! What a part of the state hashes to, and what is said when two replicas have different hashes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The hash of a range of keys of one keyspace, as of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeHash {
    /// The keyspace.
    pub keyspace: String,
    /// The first key of the range that has a value.
    pub first: Vec<u8>,
    /// The last one.
    pub last: Vec<u8>,
    /// How many keys the range has.
    pub keys: u64,
    /// XXH3, of 128 bits, over the length and the bytes of each key and value, and the expiry.
    pub hash: u128,
}

/// The report of a replica whose state is not that of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The entry after which the states were compared.
    pub index: u64,
    /// The first range that is different, as this replica has it; nothing if it has no such range.
    pub here: Option<RangeHash>,
    /// The same range as the others have it; nothing if they have no such range.
    pub there: Option<RangeHash>,
}

impl Difference {
    /// The first difference between the hashes of two replicas, if there is one.
    pub fn first(index: u64, here: &[RangeHash], there: &[RangeHash]) -> Option<Difference> {
        let ranges = here.len().max(there.len());
        let place = (0..ranges).find(|&place| here.get(place) != there.get(place))?;
        Some(Difference { index, here: here.get(place).cloned(), there: there.get(place).cloned() })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |range: &Option<RangeHash>| match range {
            None => "nothing".to_string(),
            Some(RangeHash { keyspace, first, last, keys, hash }) => {
                let (first, last) = (esker::escape_key(first), esker::escape_key(last));
                format!("{keys} keys from {first} to {last} in {keyspace} with the hash {hash:032x}")
            }
        };
        write!(
            f,
            "this replica's state after entry {} is not that of the others: it has {}, they have {}; it applies nothing \
             more. Keep its directory for the search for the cause, and let the replica join anew with an empty one",
            self.index,
            shown(&self.here),
            shown(&self.there)
        )
    }
}
