//! The hash of a whole state, by ranges of keys.

use crate::error::Result;
use crate::range_hash::RangeHash;
use esker::{Db, Expiry, Snapshot, Ttl};
use std::time::SystemTime;
use twox_hash::XxHash3_128;

/// The keys of a range: enough that the hashes of a large state are a short list, and few enough
/// that a range tells where to look.
const KEYS: u64 = 65_536;

/// The hashes of everything that the snapshot sees, but for the keyspace `besides`.
pub(crate) fn hash(db: &Db, snapshot: &Snapshot, besides: &str) -> Result<Vec<RangeHash>> {
    let mut names = db.keyspaces();
    names.sort();
    let mut hashes = Vec::new();
    for name in names.iter().filter(|name| *name != besides) {
        let keyspace = db.existing_keyspace(name)?;
        let expires = matches!(keyspace.ttl(), Ttl::Enabled { .. });
        let mut range: Option<(RangeHash, XxHash3_128)> = None;
        let mut cursor = snapshot.cursor(&keyspace)?;
        cursor.seek_to_first()?;
        while cursor.valid() {
            let key = cursor.key();
            let (found, hasher) = range.get_or_insert_with(|| {
                let (first, last) = (key.to_vec(), Vec::new());
                (RangeHash { keyspace: name.clone(), first, last, keys: 0, hash: 0 }, XxHash3_128::new())
            });
            for part in [key, cursor.value()] {
                hasher.write(&(part.len() as u64).to_le_bytes());
                hasher.write(part);
            }
            if expires {
                hasher.write(&expiry_ms(snapshot.expires_at(&keyspace, key)?).to_le_bytes());
            }
            found.keys += 1;
            found.last.clear();
            found.last.extend_from_slice(key);
            if found.keys == KEYS {
                hashes.extend(range.take().map(end));
            }
            cursor.next()?;
        }
        hashes.extend(range.take().map(end));
    }
    Ok(hashes)
}

fn end((mut range, hasher): (RangeHash, XxHash3_128)) -> RangeHash {
    range.hash = hasher.finish_128();
    range
}

/// An expiry as a number: 0 if there is none.
fn expiry_ms(expiry: Option<Expiry>) -> u64 {
    match expiry {
        Some(Expiry::At(time)) => {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}
