//! Keyspaces that were dropped, for as long as a snapshot sees them, and the names of the last.

use crate::base::key::Sequence;
use crate::base::sync::Mutex;
use crate::db::state::snapshots::SnapshotList;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many names are kept, for the errors of handles and batches that come late.
const KEPT_NAMES: usize = 1000;

/// See the module's comment. `K`: a keyspace.
#[derive(Debug)]
pub struct DroppedKeyspaces<K> {
    /// Those that a snapshot may see, each with the place of its drop in the order of writes.
    seen: Mutex<Vec<(Sequence, Arc<K>)>>,
    /// The names of the last ones, by number.
    names: Mutex<VecDeque<(u64, String)>>,
}

impl<K> Default for DroppedKeyspaces<K> {
    fn default() -> DroppedKeyspaces<K> {
        DroppedKeyspaces { seen: Mutex::default(), names: Mutex::default() }
    }
}

impl<K> DroppedKeyspaces<K> {
    /// Notes the name of a keyspace that is being dropped.
    pub fn note_name(&self, id: u64, name: &str) {
        let mut names = self.names.lock();
        if names.len() == KEPT_NAMES {
            names.pop_front();
        }
        names.push_back((id, name.to_owned()));
    }

    /// The name of a keyspace that was dropped, if it was one of the last.
    pub fn name(&self, id: u64) -> Option<String> {
        self.names.lock().iter().rev().find(|(other, _)| *other == id).map(|(_, name)| name.clone())
    }

    /// Takes a keyspace whose drop, at `sequence`, is durable.
    pub fn add(&self, sequence: Sequence, keyspace: Arc<K>) {
        self.seen.lock().push((sequence, keyspace));
    }

    /// Whether a snapshot may see any.
    pub fn are_seen(&self) -> bool {
        !self.seen.lock().is_empty()
    }

    /// Takes out those that no snapshot sees any more. A snapshot that is registered later is not
    /// below the drop.
    pub fn take_unseen(&self, snapshots: &SnapshotList) -> Vec<Arc<K>> {
        let mut seen = self.seen.lock();
        if seen.is_empty() {
            return Vec::new();
        }
        let oldest = snapshots.all().first().copied();
        let is_unseen = |sequence: Sequence| oldest.is_none_or(|oldest| oldest >= sequence);
        seen.extract_if(.., |(sequence, _)| is_unseen(*sequence)).map(|(_, keyspace)| keyspace).collect()
    }
}
