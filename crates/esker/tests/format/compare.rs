//! What `Db` answers, in the form in which the decoder has it.

use crate::state::Contents;
use esker::{CompactionStyle, Db, Expiry, Keyspace, Ttl};
use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

/// Everything in a database, by its own account.
pub fn answers(db: &Db) -> BTreeMap<String, Contents> {
    let names = db.keyspaces();
    names.into_iter().map(|name| (name.clone(), keyspace(&db.existing_keyspace(&name).unwrap()))).collect()
}

/// An expiry as files have it.
pub fn expiry_ms(expiry: Expiry) -> u64 {
    match expiry {
        Expiry::Never => 0,
        Expiry::At(time) => time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64,
    }
}

/// A time to live as the manifest has it.
pub fn ttl_number(ttl: Ttl) -> u64 {
    match ttl {
        Ttl::Disabled => 0,
        Ttl::Enabled { default: None } => 1,
        Ttl::Enabled { default: Some(default) } => 1 + default.as_millis() as u64,
    }
}

fn keyspace(keyspace: &Keyspace) -> Contents {
    let pairs = keyspace.iter().map(|pair| {
        let (key, value) = pair.unwrap();
        let expiry = keyspace.expires_at(&key).unwrap().expect("the scan has found a value");
        assert_eq!(keyspace.get(&key).unwrap().as_deref(), Some(&*value), "a get and a scan disagree");
        (key.to_vec(), (value.to_vec(), expiry_ms(expiry)))
    });
    Contents {
        id: keyspace.id(),
        comparator: keyspace.comparator().to_owned(),
        operator: keyspace.merge_operator().unwrap_or_default(),
        ttl: ttl_number(keyspace.ttl()),
        style: match keyspace.compaction_style() {
            CompactionStyle::LazyLeveling => (0, 0),
            CompactionStyle::Leveled => (1, 0),
            CompactionStyle::Tiered => (2, 0),
            CompactionStyle::Fifo { max_bytes } => (3, max_bytes),
            other => panic!("doc/format does not have {other:?}"),
        },
        pairs: pairs.collect(),
    }
}

/// Fails where the two differ, and says how.
pub fn assert_same(decoded: &BTreeMap<String, Contents>, answered: &BTreeMap<String, Contents>) {
    assert_eq!(decoded.keys().collect::<Vec<_>>(), answered.keys().collect::<Vec<_>>(), "names of keyspaces");
    for (name, decoded) in decoded {
        let answered = &answered[name];
        let keys = decoded.pairs.keys().chain(answered.pairs.keys());
        for key in keys {
            let (ours, theirs) = (decoded.pairs.get(key), answered.pairs.get(key));
            assert_eq!(ours, theirs, "{name}, key {:?}: decoded, and answered", String::from_utf8_lossy(key));
        }
        let without_pairs = |contents: &Contents| Contents { pairs: BTreeMap::new(), ..contents.clone() };
        assert_eq!(without_pairs(decoded), without_pairs(answered), "settings of {name}");
    }
}
