//! What the manifest lists of changes: where the log has them, and those that are in no log.

use super::change::{Change, ChangeOperation, KeyspaceSettings};
use crate::base::comparator::BYTEWISE;
use crate::base::expiry::Ttl;
use crate::base::key::Sequence;
use crate::db::state::inner::Inner;
use crate::error::{Error, Result};
use crate::version::edit::{ManifestState, Settings, UnloggedChange};
use crate::version::manifest::{InForce, is_switched, read_current};
use crate::wal::segment::Position;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the manifest says.
pub struct Listed {
    pub changes_from: Sequence,
    /// The oldest segment that has some of them.
    segment: u64,
    /// The first segment that a recovery reads.
    pub log_floor: u64,
    /// The changes up to these writes may be lost; later ones are in these segments and those
    /// behind.
    pub recovered: BTreeMap<Sequence, u64>,
    pub unlogged: BTreeMap<Sequence, UnloggedChange>,
    pub keyspaces: BTreeMap<u64, Listing>,
    pub durable: Position,
    /// No write up to this one has a number that is given again, as far as the manifest is durable.
    pub last_sequence: Sequence,
    /// Of another process: the number of its manifest, and what that vouches for.
    followed: Option<(u64, Option<Sequence>)>,
}

/// A keyspace that exists, or was dropped.
pub struct Listing {
    comparator: Arc<str>,
    /// Ascending, each up to the write with this number, which is not among them.
    settings: Vec<(Sequence, KeyspaceSettings)>,
}

impl Listing {
    pub fn at(&self, sequence: Sequence) -> Option<&KeyspaceSettings> {
        self.settings.iter().find(|(end, _)| *end > sequence).map(|(_, settings)| settings)
    }

    /// Its keys are stored with a mark (`base/key_order.rs`).
    pub fn is_marked(&self) -> bool {
        *self.comparator != *BYTEWISE
    }
}

fn settings(comparator: &Arc<str>, Settings { name, operator, ttl }: &Settings) -> KeyspaceSettings {
    KeyspaceSettings {
        name: name.as_str().into(),
        comparator: Arc::clone(comparator),
        merge_operator: operator.as_deref().map(Arc::from),
        ttl: Ttl::from_stored(*ttl),
    }
}

/// All keyspaces of which there may be changes.
fn list(state: &ManifestState) -> BTreeMap<u64, Listing> {
    let mut keyspaces = BTreeMap::new();
    let mut add = |id: u64, comparator: &str, last: &Settings| {
        let comparator: Arc<str> = comparator.into();
        let settings = vec![(Sequence::MAX, settings(&comparator, last))];
        keyspaces.insert(id, Listing { comparator, settings });
    };
    for (&id, record) in &state.keyspaces {
        add(id, &record.comparator, &record.settings());
    }
    for change in state.unlogged.values() {
        if let UnloggedChange::Drop { keyspace, comparator, settings } = change {
            add(*keyspace, comparator, settings);
        }
    }
    for (&sequence, change) in &state.unlogged {
        if let UnloggedChange::Alter { keyspace, before } = change
            && let Some(Listing { comparator, settings: all }) = keyspaces.get_mut(keyspace)
        {
            all.insert(all.len() - 1, (sequence, settings(comparator, before)));
        }
    }
    keyspaces
}

impl Listed {
    pub fn read(inner: &Inner) -> Result<Listed> {
        if let Some(manifest) = &*inner.manifest.lock() {
            return Listed::of(inner, manifest.state());
        }
        // That of another process may just be replaced.
        let read = || read_current(&*inner.options.env, &inner.directory);
        let current = read().or_else(|_| read())?;
        let missing = || Error::NotFound { what: format!("a database in {}", inner.directory.display()) };
        let InForce { number, state, vouched, .. } = current.ok_or_else(missing)?;
        Ok(Listed { followed: Some((number, vouched)), ..Listed::of(inner, &state)? })
    }

    fn of(inner: &Inner, state: &ManifestState) -> Result<Listed> {
        if state.changes_from == 0 {
            return Err(Error::invalid(
                "the database keeps no changes; open it for writing with Options::keep_changes",
            ));
        }
        let synced = inner.log.as_ref().map_or(Position::default(), |log| log.durable());
        Ok(Listed {
            changes_from: state.changes_from,
            segment: state.changes_segment,
            log_floor: state.log_floor,
            recovered: state.changes_recovered.clone(),
            unlogged: state.unlogged.clone(),
            keyspaces: list(state),
            durable: synced.max(state.log_synced.into()),
            last_sequence: state.last_sequence,
            followed: None,
        })
    }

    /// The write up to which what is listed is on the device; `None` if that is known of nothing.
    /// `switched`: see [`ChangeReader::switched`].
    pub fn on_device(&self, inner: &Inner, switched: &mut u64) -> Result<Option<Sequence>> {
        match self.followed {
            None => Ok(Some(Sequence::MAX)),
            Some((_, Some(vouched))) => Ok(Some(vouched)),
            Some((number, None)) => {
                if *switched != number && is_switched(&*inner.options.env, &inner.directory, number)? {
                    *switched = number;
                }
                Ok((*switched == number).then_some(self.last_sequence))
            }
        }
    }

    /// The oldest segment in which the changes from there on are: before one that a recovery began
    /// there may be a hole.
    pub fn oldest_segment(&self, next: Sequence) -> u64 {
        self.recovered.range(..next).next_back().map_or(self.segment, |(_, &behind)| behind)
    }

    /// Why there is no change from there on, where reading failed with `error`: it was given up
    /// meanwhile, or what a recovery relied on was lost.
    pub fn reason(&self, next: Sequence, error: Error) -> Error {
        let recovered = self.recovered.range(next..).next();
        match (error, recovered) {
            _ if next < self.changes_from => Error::Gone { oldest: self.changes_from },
            (Error::Corruption { .. }, Some((last, _))) => Error::Gone { oldest: last + 1 },
            (error, _) => error,
        }
    }

    /// The change behind which the settings of the keyspace are no more those of `before`.
    pub fn alteration(&self, sequence: Sequence, keyspace: u64, before: &Settings) -> ChangeOperation {
        let after = self.keyspaces.get(&keyspace).and_then(|listing| listing.at(sequence));
        let (merge_operator, ttl) = after.map(|after| (after.merge_operator.clone(), after.ttl)).unwrap_or_default();
        ChangeOperation::AlterKeyspace { former_name: before.name.as_str().into(), merge_operator, ttl }
    }

    pub fn change(&self, sequence: Sequence, keyspace_id: u64, operation: ChangeOperation) -> Result<Change> {
        // One that is not listed was dropped before changes were kept: nothing of it is in them.
        let settings = self.keyspaces.get(&keyspace_id).and_then(|listing| listing.at(sequence));
        let name = settings.map(|settings| Arc::clone(&settings.name));
        let keyspace = name.ok_or_else(|| Error::KeyspaceDropped { keyspace: format!("number {keyspace_id}") })?;
        Ok(Change { sequence, keyspace, keyspace_id, operation })
    }
}
