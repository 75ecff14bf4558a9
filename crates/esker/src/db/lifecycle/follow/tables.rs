//! Installing the tables of a manifest that is followed, in the place of the memtables that they
//! hold.

use crate::base::batch::AnyOperation;
use crate::base::key::{Sequence, hash};
use crate::db::lifecycle::follow::following::{Following, changed_too_fast, tail_at};
use crate::db::lifecycle::follow::keyspaces::drop_keyspace;
use crate::db::lifecycle::follow::log::entry;
use crate::db::lifecycle::keyspaces;
use crate::db::lifecycle::recovery::{decode, open_tables};
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::memory::{self, new_memtable};
use crate::db::state::read_state::ReadState;
use crate::db::write::batch_size::reservation_bytes;
use crate::error::Result;
use crate::memtable::{Memtable, MemtableWriter, WriteContext};
use crate::merge_operator::UINT64_ADD;
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::version::runs::Version;
use crate::wal::segment::Position;
use crate::wal::tail::{End, Taken};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

/// What a memtable that is made again may take beyond the other one at first, and how often that is
/// doubled.
const SPARE_BYTES: usize = 64 << 10;
const MOST_DOUBLINGS: usize = 12;

/// What a keyspace becomes.
pub struct Next {
    id: u64,
    version: Arc<Version>,
    /// None: the active memtable goes on.
    active: Option<(Arc<Memtable>, MemtableWriter)>,
    /// Newest first.
    immutable: Vec<Arc<Memtable>>,
    begins: VecDeque<Position>,
}

/// Step 3: opens the tables of `next`, and changes nothing. Fails if the writer has removed
/// something meanwhile.
pub fn prepare(inner: &Inner, following: &Following, next: &ManifestState) -> Result<Vec<Next>> {
    let mut all = Vec::new();
    for (&id, record) in &next.keyspaces {
        let known = following.state.keyspaces.get(&id);
        if known == Some(record) {
            continue;
        }
        let keyspace = known.and_then(|known| keyspaces::find(inner, &known.name)).filter(|it| it.id == id);
        all.push(match keyspace {
            Some(keyspace) => prepare_known(inner, following, &keyspace, record, next.log_floor)?,
            None => prepare_new(inner, following, id, record)?,
        });
    }
    Ok(all)
}

/// Has what was prepared take the place of what there is. The number of the last write stays as it
/// is until the log was applied: readers take all up to that for complete.
pub fn install(inner: &Inner, following: &mut Following, all: Vec<Next>, next: ManifestState) {
    let gone: Vec<u64> =
        following.state.keyspaces.keys().filter(|id| !next.keyspaces.contains_key(id)).copied().collect();
    // Those of one change at most are kept.
    following.retired.clear();
    {
        let mut writer = inner.writer.lock();
        for Next { id, version, active, immutable, begins } in all {
            let Some(Some(target)) = writer.keyspaces.get_mut(id as usize) else { continue };
            let keyspace = Arc::clone(&target.keyspace);
            let before = keyspace.read_state.load_full();
            following.replaced.push(Arc::downgrade(&before));
            let active = match active {
                Some((active, memtable)) => {
                    target.memtable = memtable;
                    active
                }
                None => Arc::clone(&before.active),
            };
            let merge_epoch = Arc::clone(&before.merge_epoch);
            keyspace.read_state.follow(active, immutable, version, merge_epoch);
            retire(inner, &mut following.retired, &before, &keyspace.read_state.load());
            keyspace.tombstone_skip_cache.clear();
            following.begins.insert(id, begins);
        }
        gone.iter().for_each(|&id| drop_keyspace(inner, &mut writer, &mut following.replaced, id));
    }
    following.begins.retain(|id, _| next.keyspaces.contains_key(id));
    following.state = next;
}

/// Releases what the state before needed.
pub fn release_replaced(inner: &Inner, following: &mut Following) {
    following.replaced.retain(|read_state| read_state.strong_count() > 0);
    forget_blobs(inner, &following.replaced);
    memory::rebalance(inner);
}

/// Keeps the memtables that `now` has no more, for one to be released after another.
fn retire(inner: &Inner, retired: &mut Vec<Arc<Memtable>>, before: &ReadState, now: &ReadState) {
    let is_gone = |old: &&Arc<Memtable>| !old.is_empty() && !now.memtables().any(|kept| Arc::ptr_eq(kept, old));
    for memtable in before.memtables().filter(is_gone) {
        inner.write_buffer_manager.note_flushed(memtable);
        retired.push(Arc::clone(memtable));
    }
}

/// A keyspace that was created since.
fn prepare_new(inner: &Inner, following: &Following, id: u64, record: &KeyspaceRecord) -> Result<Next> {
    let known = Version::default();
    let version = open_tables(&inner.directory, &inner.options, record, &inner.cache, &inner.blobs, Some(&known))?;
    let begins = VecDeque::from([following.tail.position()]);
    Ok(Next { id, version: Arc::new(version), active: None, immutable: Vec::new(), begins })
}

/// Opens the tables of a keyspace, and leaves of its memtables what is not in them.
fn prepare_known(
    inner: &Inner,
    following: &Following,
    keyspace: &KeyspaceInner,
    record: &KeyspaceRecord,
    log_floor: u64,
) -> Result<Next> {
    let read_state = keyspace.read_state.load_full();
    let (directory, options) = (&inner.directory, &inner.options);
    let version = open_tables(directory, options, record, &inner.cache, &inner.blobs, Some(&read_state.version))?;
    let mut places = following.begins.get(&keyspace.id).cloned().unwrap_or_default().into_iter();
    let (mut active, mut immutable, mut begins) = (None, Vec::new(), VecDeque::new());
    for (at, memtable) in read_state.memtables().enumerate() {
        let begin = places.next().unwrap_or_default();
        let is_flushed = memtable.is_empty() || memtable.last_sequence() <= record.flushed;
        let remade = if is_flushed {
            (at == 0).then(|| new_memtable(&keyspace.order, &inner.options, 0, 0, &inner.memory))
        } else if memtable.first_sequence() <= record.flushed {
            Some(remake(inner, keyspace, memtable, begin, record.flushed, log_floor)?)
        } else {
            None
        };
        if is_flushed && at > 0 {
            continue;
        }
        let begin = if is_flushed { following.tail.position() } else { begin };
        begins.push_back(begin);
        match (at, remade) {
            (0, remade) => active = remade,
            (_, Some((memtable, _))) => immutable.push(memtable),
            (_, None) => immutable.push(Arc::clone(memtable)),
        }
    }
    Ok(Next { id: keyspace.id, version: Arc::new(version), active, immutable, begins })
}

/// What of a memtable came after `flushed`, read from the log again. Snapshots hold the other one.
/// Fails if the log does not have it any more: then it is in tables of a newer manifest.
fn remake(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    memtable: &Arc<Memtable>,
    begin: Position,
    flushed: Sequence,
    log_floor: u64,
) -> Result<(Arc<Memtable>, MemtableWriter)> {
    let begin = begin.max(Position { segment: log_floor, offset: 0 });
    // The bytes of the other memtable suffice, unless it combined operands with flushed values.
    let mut bytes = memtable.end() + SPARE_BYTES;
    for _ in 0..MOST_DOUBLINGS {
        if let Some(remade) = remake_within(inner, keyspace, memtable, begin, flushed, bytes)? {
            return Ok(remade);
        }
        bytes *= 2;
    }
    Err(changed_too_fast(inner))
}

/// None if it needs more than `bytes`.
fn remake_within(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    memtable: &Arc<Memtable>,
    begin: Position,
    flushed: Sequence,
    bytes: usize,
) -> Result<Option<(Arc<Memtable>, MemtableWriter)>> {
    let mut tail = tail_at(inner, begin)?.ok_or_else(|| changed_too_fast(inner))?;
    let (last, operator) = (memtable.last_sequence(), keyspace.operator());
    let adds_uint64 = keyspace.has_operator_named(UINT64_ADD);
    let (remade, mut writer) = new_memtable(&keyspace.order, &inner.options, bytes, 0, &inner.memory);
    let (mut reached, mut is_full) = (flushed, false);
    let end = tail.read(None, &mut |record, _| {
        if reached >= last {
            return Ok(Taken::NotYet);
        }
        for (operation, sequence) in decode(&record)?.iter().zip(record.sequence..) {
            reached = reached.max(sequence);
            if operation.keyspace() != keyspace.id || sequence <= flushed || sequence > last {
                continue;
            }
            match operation {
                AnyOperation::Key(operation) => {
                    if !writer.has_room(reservation_bytes(operation)) {
                        is_full = true;
                        return Ok(Taken::NotYet);
                    }
                    let context =
                        WriteContext { newest_snapshot: 0, operator: operator.as_deref(), adds_uint64, reserved: 0 };
                    writer.apply(hash(operation.key), entry(operation, sequence), context);
                }
                AnyOperation::Range(range) => writer.delete_range(range.start, range.end, sequence, 0, sequence - 1),
            }
        }
        Ok(Taken::Yes)
    })?;
    match end {
        _ if is_full => Ok(None),
        End::Lost => Err(changed_too_fast(inner)),
        _ if reached < last => Err(changed_too_fast(inner)),
        _ => Ok(Some((remade, writer))),
    }
}

/// Closes blob files that nothing refers to which a reader can still come to.
fn forget_blobs(inner: &Inner, replaced: &[Weak<ReadState>]) {
    let mut used = BTreeSet::new();
    let mut note = |read_state: &ReadState| {
        read_state.memtables().for_each(|memtable| used.extend(memtable.blob_files()));
        read_state.version.tables().for_each(|(_, table)| used.extend(table.summary().blobs.keys()));
    };
    inner.all_keyspaces().iter().for_each(|keyspace| note(&keyspace.read_state.load()));
    inner.snapshots.for_each_pinned(&mut note);
    replaced.iter().filter_map(Weak::upgrade).for_each(|read_state| note(&read_state));
    for number in inner.blobs.lengths().into_keys().filter(|number| !used.contains(number)) {
        inner.blobs.forget(number);
    }
}
