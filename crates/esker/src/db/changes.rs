//! What was written, in order: batches are read from the log, also from segments that recovery
//! needs no more (`wal/archive.rs`); loads, drops of keyspaces and changes of their settings, which
//! the log has not, are listed in the manifest.
//!
//! 1. The bound is the last write. It is taken under the writer lock, under which loads are
//!    installed, and keyspaces dropped or altered where changes are kept: everything up to the
//!    bound is finished, and in the manifest if it belongs there.
//! 2. The manifest is read: from where on changes are kept, keyspaces, loads, drops and other
//!    settings.
//! 3. The log is read on, up to the bound.
//!
//! Another process may have written what it has yet to sync. Of its manifest, a reader of what is
//! durable relies on records with another one behind, and on the first one once the manifest before
//! is gone (`version/manifest.rs`); and on what precedes a record of the log.
//!
//! A reader holds nothing: the writer does not wait for it, and gives up what is old enough. A
//! reader that is overtaken finds the manifest changed first (`background/forget_changes.rs`).

mod batch;
mod change;
mod listed;

use crate::base::key::Sequence;
use crate::db::lifecycle::directory::{blob_store, segments_to_read};
use crate::db::lifecycle::recovery::decode;
use crate::db::state::inner::Inner;
use crate::error::{Error, Result};
use crate::version::edit::UnloggedChange;
use crate::wal::format::record_bytes;
use crate::wal::segment::{Position, SegmentMaker};
use crate::wal::tail::{End, LogTail, Taken};
use batch::{BlobStoreOfChanges, batch};
pub use change::{Change, ChangeBatch, ChangeOperation, KeyspaceSettings};
use listed::Listed;
use std::collections::VecDeque;

/// Bytes of batches that are read ahead.
const READ_AHEAD_BYTES: usize = 256 << 10;
/// How often the files may change under a reader in one call.
const ATTEMPTS: usize = 5;

/// A reader of changes. See the module's comment.
pub struct ChangeReader {
    /// The number of the first change that has not been read.
    next: Sequence,
    /// The same for a reader that begins later, maybe after a crash: not beyond numbers that no
    /// change has, and that a crash may give to other writes.
    go_on_from: Sequence,
    only_durable: bool,
    /// The number of the last manifest of another process that is known to be in force for good.
    switched: u64,
    ready: VecDeque<ChangeBatch>,
    maker: SegmentMaker,
    /// None before the first read, and where the segment is gone in which it was.
    tail: Option<LogTail>,
    /// Knows only files that changes refer to.
    values: BlobStoreOfChanges,
}

/// What the keyspace was after the write `sequence`, if that is known.
pub fn settings_at(inner: &Inner, keyspace: u64, sequence: Sequence) -> Result<Option<KeyspaceSettings>> {
    inner.refuse_in_callback()?;
    let listed = Listed::read(inner)?;
    Ok(listed.keyspaces.get(&keyspace).and_then(|listing| listing.at(sequence)).cloned())
}

/// Where reading has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Enough is ready.
    Full,
    /// Before a record that is not known to be durable, with the write of this number first.
    Volatile(Sequence),
    /// Before a record beyond the bound.
    Bound,
}

impl ChangeReader {
    /// A reader of the changes from the write `from` on; 0: of all that are kept.
    pub fn begin(inner: &Inner, from: Sequence) -> Result<ChangeReader> {
        inner.refuse_in_callback()?;
        let listed = Listed::read(inner)?;
        let (oldest, recovered) = (listed.changes_from, listed.recovered.keys().next_back().map_or(0, |last| last + 1));
        let last = inner.lock_writer().last_sequence;
        let next = if from == 0 { oldest } else { from };
        if next < oldest {
            return Err(Error::Gone { oldest });
        }
        // A follower may be behind what its writer has given up.
        if next > oldest.max(recovered).max(last + 1) {
            return Err(Error::invalid(format!(
                "the database ends at write {last}, before {next}: it lost writes in a power failure, or another one \
                 has taken its place; begin anew with a snapshot"
            )));
        }
        let maker = segments_to_read(&inner.directory, &inner.options);
        let store = blob_store(&inner.directory, &inner.options);
        let values = BlobStoreOfChanges::new(store);
        let mut switched = 0;
        // Where another process has just begun to keep changes, a power loss may take that back,
        // and writes before.
        let is_unsure = from == 0 && listed.on_device(inner, &mut switched)?.is_none();
        let go_on_from = if is_unsure { 0 } else { next };
        let (only_durable, ready, tail) = (false, VecDeque::new(), None);
        Ok(ChangeReader { next, go_on_from, only_durable, switched, ready, maker, tail, values })
    }

    /// Yields only what a power failure cannot take back.
    pub fn only_durable(&mut self) {
        // That may be beyond what was read ahead, which is not passed any more.
        self.go_on_from = self.position();
        // What was read ahead need not be durable: it is read again.
        if let Some(first) = self.ready.front().and_then(|batch| batch.changes.first()) {
            self.next = first.sequence;
        }
        self.ready.clear();
        (self.tail, self.only_durable) = (None, true);
    }

    /// Whether it does.
    pub fn is_only_durable(&self) -> bool {
        self.only_durable
    }

    /// The number of the next change to be returned, or a smaller one above those before it.
    pub fn position(&self) -> Sequence {
        let first = self.ready.front().and_then(|batch| batch.changes.first());
        // Numbers in front of what is read ahead may be in memory only.
        first.map_or(self.go_on_from, |change| change.sequence.min(self.go_on_from))
    }

    /// The next batch; none if there is no more for now.
    pub fn next(&mut self, inner: &Inner) -> Result<Option<ChangeBatch>> {
        inner.refuse_in_callback()?;
        if self.ready.is_empty() {
            self.read_on(inner)?;
        }
        let batch = self.ready.pop_front();
        self.go_on_from = batch.as_ref().map_or(0, ChangeBatch::next_sequence).max(self.go_on_from);
        Ok(batch)
    }

    fn read_on(&mut self, inner: &Inner) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let (bound, end) = written(inner);
            if self.next > bound {
                return if self.go_on_from < self.next { self.settle(inner) } else { Ok(()) };
            }
            let listed = Listed::read(inner)?;
            // Otherwise nothing is durable that the manifest calls so, in the log neither: a power
            // loss may take an open that has put what a failed sync had lost into tables.
            let on_device = listed.on_device(inner, &mut self.switched)?;
            if self.only_durable && on_device.is_none() {
                return Ok(());
            }
            if self.next < listed.changes_from {
                return Err(Error::Gone { oldest: listed.changes_from });
            }
            let was_there = self.tail.is_some();
            match self.read_up_to(inner, (bound, end), on_device, &listed) {
                Ok(true) => return Ok(()),
                // The segment was released, or the writer has begun anew.
                Ok(false) => self.tail = None,
                // So it may be where the tail stood before; and what is ready comes first.
                Err(_) if was_there || !self.ready.is_empty() => self.tail = None,
                Err(error) => {
                    // What was read of the log was released meanwhile, or is damaged.
                    self.tail = None;
                    return Err(Listed::read(inner)?.reason(self.next, error));
                }
            }
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        let what = format!("the log has a hole before write {}, whose changes it should have", self.next);
        Err(Listed::read(inner)?.reason(self.next, Error::corruption(&inner.directory, 0, what)))
    }

    /// Reads changes up to `bound`, which the log has before `end`, or as many as are read ahead.
    /// `on_device`: a reader of what is durable leaves unread what is listed behind that, and
    /// behind all records that were read.
    /// False if the log does not go on where it was read.
    fn read_up_to(
        &mut self,
        inner: &Inner,
        (bound, end): (Sequence, Position),
        on_device: Option<Sequence>,
        listed: &Listed,
    ) -> Result<bool> {
        let ChangeReader { next, only_durable, ready, maker, tail, values, .. } = self;
        let most = on_device.filter(|_| *only_durable).unwrap_or(Sequence::MAX);
        if tail.is_none() {
            *tail = LogTail::from(maker.clone(), *next, listed.oldest_segment(*next), listed.log_floor)?;
        }
        let Some(tail) = tail else { return Ok(false) };
        // Nothing up to the bound is in a later segment.
        let newest = inner.log.as_ref().map(|log| log.active_segment());
        let (mut stop, mut bytes) = (None, 0);
        let read = tail.read(newest, &mut |record, position| {
            let operations = decode(&record)?;
            let last = record.sequence + operations.len() as u64 - 1;
            if last < *next {
                return Ok(Taken::Yes);
            }
            let record_end = position.offset + record_bytes(record.payload.len());
            let is_durable = listed.durable >= Position { offset: record_end, ..position };
            stop = match () {
                () if record.sequence > bound => Some(Stop::Bound),
                () if *only_durable && !is_durable => Some(Stop::Volatile(record.sequence)),
                () if bytes >= READ_AHEAD_BYTES => Some(Stop::Full),
                () => None,
            };
            if stop.is_some() {
                return Ok(Taken::NotYet);
            }
            // First, as it may fail: then nothing was passed.
            let batch = batch(listed, values, &record, &operations, *next)?;
            pass_unlogged(listed, next, record.sequence, ready)?;
            bytes += batch.bytes();
            ready.push_back(batch);
            *next = last + 1;
            Ok(Taken::Yes)
        })?;
        match (read, stop) {
            (End::Lost, _) => return Ok(false),
            // What is missing up to the bound is in no log only if all of the log was read. A
            // follower may know of writes by the manifest alone, and stand before the damage.
            (_, None) if tail.position() < end.max(listed.durable) => return Err(tail.damage()),
            (_, Some(Stop::Full)) => {}
            // What the manifest lists before it is durable.
            (_, Some(Stop::Volatile(first))) => pass_unlogged(listed, next, first, ready)?,
            // All of the log up to the bound was there before the bound was taken.
            (_, Some(Stop::Bound) | None) => pass_unlogged(listed, next, bound.min(most) + 1, ready)?,
        }
        if let Some(on_device) = on_device {
            self.pass_durable(listed.last_sequence.min(on_device));
        }
        Ok(true)
    }

    /// There is nothing to read, but what was passed may be in tables by now, and what was unknown
    /// at the beginning be known. Other handles than the writer's pass only what a manifest or the
    /// log has.
    fn settle(&mut self, inner: &Inner) -> Result<()> {
        let last = inner.manifest.lock().as_ref().map(|manifest| manifest.state().last_sequence);
        let last = match last {
            Some(last) => Some(last),
            None => {
                let listed = Listed::read(inner)?;
                listed.on_device(inner, &mut self.switched)?.map(|most| listed.last_sequence.min(most))
            }
        };
        if let Some(last) = last {
            self.pass_durable(last);
        }
        Ok(())
    }

    /// A reader that begins later need not see again what was passed, but for numbers that are in
    /// memory only.
    fn pass_durable(&mut self, last: Sequence) {
        self.go_on_from = self.next.min(last + 1).max(self.go_on_from);
    }
}

/// The last write, and the end of the log that has those up to it.
fn written(inner: &Inner) -> (Sequence, Position) {
    let writer = inner.lock_writer();
    (writer.last_sequence, inner.log.as_ref().map_or(writer.read_to, |log| log.end()))
}

/// Goes on to the write `to`, past changes of whole keyspaces and writes that are in no log.
fn pass_unlogged(listed: &Listed, next: &mut Sequence, to: Sequence, ready: &mut VecDeque<ChangeBatch>) -> Result<()> {
    for (&sequence, change) in listed.unlogged.range(*next..to.max(*next)) {
        let (id, operation) = match change {
            UnloggedChange::Load { keyspace } => (*keyspace, ChangeOperation::Load),
            UnloggedChange::Drop { keyspace, .. } => (*keyspace, ChangeOperation::DropKeyspace),
            UnloggedChange::Alter { keyspace, before } => (*keyspace, listed.alteration(sequence, *keyspace, before)),
        };
        ready.push_back(ChangeBatch { changes: vec![listed.change(sequence, id, operation)?] });
        // Also where the one behind it fails: none is told twice.
        *next = sequence + 1;
    }
    *next = to.max(*next);
    Ok(())
}
