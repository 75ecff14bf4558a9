//! What a database holds at a time: the newest version of each key, after range deletes, merges
//! and expiry.

use crate::block::Entry;
use crate::bytes::{Read, ensure};
use crate::directory::Database;
use crate::manifest::Keyspace;
use crate::merge::merged;
use crate::operation::{Kind, Operation};
use crate::order::Order;
use std::collections::BTreeMap;

/// The value and the expiry of each key.
pub type Pairs = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// A keyspace: its settings, and the value and the expiry of each key that has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    pub id: u64,
    pub comparator: String,
    pub operator: String,
    pub ttl: u64,
    pub style: (u64, u64),
    pub pairs: Pairs,
}

/// All versions of the keys of a keyspace, as they are stored.
#[derive(Default)]
struct Versions {
    entries: BTreeMap<Vec<u8>, Vec<Entry>>,
    /// Start, end and number of each range that was deleted.
    ranges: Vec<(Vec<u8>, Vec<u8>, u64)>,
}

impl Database {
    /// All keyspaces by their names.
    pub fn contents(&self, now_ms: u64) -> Read<BTreeMap<String, Contents>> {
        let mut versions: BTreeMap<u64, Versions> = BTreeMap::new();
        for (&id, keyspace) in &self.manifest.keyspaces {
            versions.insert(id, self.in_tables(keyspace));
        }
        self.add_log(&mut versions)?;
        let mut all = BTreeMap::new();
        for (&id, keyspace) in &self.manifest.keyspaces {
            let pairs = self.pairs(keyspace, versions.remove(&id).unwrap_or_default(), now_ms)?;
            let contents = Contents {
                id,
                comparator: keyspace.comparator.clone(),
                operator: keyspace.operator.clone(),
                ttl: keyspace.ttl,
                style: keyspace.style,
                pairs,
            };
            ensure!(all.insert(keyspace.name.clone(), contents).is_none(), "two keyspaces are named {}", keyspace.name);
        }
        Ok(all)
    }

    fn in_tables(&self, keyspace: &Keyspace) -> Versions {
        let mut versions = Versions::default();
        for number in keyspace.tables.keys() {
            let table = &self.tables[number];
            for entry in &table.entries {
                versions.entries.entry(entry.key.clone()).or_default().push(entry.clone());
            }
            for tombstone in &table.properties.tombstones {
                let newest = tombstone.sequences[0];
                versions.ranges.push((tombstone.start.clone(), tombstone.end.clone(), newest));
            }
        }
        versions
    }

    /// Adds what the log has and the tables have not.
    fn add_log(&self, versions: &mut BTreeMap<u64, Versions>) -> Read<()> {
        for batch in &self.log.batches {
            for (sequence, operation) in (batch.sequence..).zip(&batch.operations) {
                let id = operation.keyspace();
                let Some(keyspace) = self.manifest.keyspaces.get(&id) else {
                    ensure!(id < self.manifest.next_keyspace, "a write to keyspace {id}, which never was");
                    continue;
                };
                if sequence <= keyspace.flushed {
                    continue;
                }
                let versions = versions.entry(id).or_default();
                match operation.clone() {
                    Operation::Write { kind, key, expiry, value, .. } => {
                        let entry = Entry { key: key.clone(), sequence, kind, expiry, value };
                        versions.entries.entry(key).or_default().push(entry);
                    }
                    Operation::DeleteRange { start, end, .. } => versions.ranges.push((start, end, sequence)),
                }
            }
        }
        Ok(())
    }

    fn pairs(&self, keyspace: &Keyspace, versions: Versions, now_ms: u64) -> Read<Pairs> {
        let order = Order::named(&keyspace.comparator)?;
        let mut pairs = BTreeMap::new();
        for (key, mut entries) in versions.entries {
            let over = versions.ranges.iter().filter(|(start, end, _)| order.covers(start, end, &key));
            let deleted = over.map(|&(_, _, sequence)| sequence).max();
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.sequence));
            let twice = entries.windows(2).find(|pair| pair[0].sequence == pair[1].sequence);
            ensure!(twice.is_none(), "two versions with one number: {twice:?}");
            let visible: Vec<_> = entries.into_iter().take_while(|entry| Some(entry.sequence) > deleted).collect();
            if let Some(found) = self.resolve(keyspace, &visible, now_ms)? {
                pairs.insert(order.key(&key)?, found);
            }
        }
        Ok(pairs)
    }

    /// The value and the expiry of a key with these versions, newest first.
    fn resolve(&self, keyspace: &Keyspace, versions: &[Entry], now_ms: u64) -> Read<Option<(Vec<u8>, u64)>> {
        let Some(newest) = versions.first() else { return Ok(None) };
        if newest.expiry != 0 && newest.expiry <= now_ms {
            return Ok(None);
        }
        let chain = versions.iter().position(|entry| entry.kind != Kind::Merge).unwrap_or(versions.len());
        let mut operands: Vec<_> = versions[..chain].iter().rev().map(|entry| entry.value.clone()).collect();
        let base = match versions.get(chain) {
            Some(Entry { kind: Kind::MergeOntoNothing, value, .. }) => {
                operands.insert(0, value.clone());
                None
            }
            Some(Entry { kind: Kind::Put, value, .. }) => Some(value.clone()),
            Some(Entry { kind: Kind::PutBlob, value, .. }) => Some(self.value(value)?),
            // Where values expire, an operand is on top of a value; this one's is gone.
            _ if keyspace.ttl != 0 => return Ok(None),
            _ => None,
        };
        if operands.is_empty() {
            return Ok(base.map(|value| (value, newest.expiry)));
        }
        Ok(Some((merged(&keyspace.operator, base, &operands)?, newest.expiry)))
    }
}
