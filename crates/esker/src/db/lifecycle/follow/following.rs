//! What a follower knows of the files that another process writes.

use crate::db::lifecycle::directory::segments_to_read;
use crate::db::lifecycle::follow::log::News;
use crate::db::state::inner::Inner;
use crate::db::state::read_state::ReadState;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::version::edit::ManifestState;
use crate::wal::segment::Position;
use crate::wal::tail::LogTail;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// What a follower knows of the files.
pub struct Following {
    /// The manifest that `state` was read from.
    pub(super) stamp: Option<(u64, u64)>,
    /// Its number. Other settings come with another number.
    pub(super) manifest: u64,
    /// The number of the last one of which it is known that the switch to it is on the device.
    pub(super) switched: u64,
    /// What is installed.
    pub(super) state: ManifestState,
    pub(super) tail: LogTail,
    /// What attempts have read of the log behind that which did not come to the end: the next one
    /// goes on, else one that has much to read beside a writer that changes its files would never.
    pub(super) news: Option<News>,
    /// Of each keyspace, where in the log its memtables begin: that of the active one first, then
    /// those of the immutable ones, newest first.
    pub(super) begins: BTreeMap<u64, VecDeque<Position>>,
    /// What reads without a snapshot may still be in: their blob files stay open.
    pub(super) replaced: Vec<Weak<ReadState>>,
    /// Memtables that tables have taken the place of. Giving all their memory back to the system
    /// takes milliseconds, for which new writes would wait: one goes with each call that comes to
    /// the end.
    pub(super) retired: Vec<Arc<Memtable>>,
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").field("manifest", &self.stamp).finish_non_exhaustive()
    }
}

impl Following {
    /// What the manifest said that is installed.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }
}

pub fn tail_at(inner: &Inner, position: Position) -> Result<Option<LogTail>> {
    LogTail::at(segments_to_read(&inner.directory, &inner.options), position)
}

pub fn begins_at(read_state: &ReadState, position: Position) -> VecDeque<Position> {
    read_state.memtables().map(|_| position).collect()
}

pub fn changed_too_fast(inner: &Inner) -> Error {
    let directory = inner.directory.display();
    Error::Stalled {
        reason: format!("the writer of {directory} changes its files faster than they can be read; try again"),
    }
}
