//! Following a database that another process writes: its manifest and its log are read as they
//! grow, without its doing.
//!
//! 1. Read the manifest, if it has changed. Everything that is in tables by it is in the log too,
//!    or was written without one.
//! 2. Read on in the log to its end, into memtables. Now the follower has all writes that were
//!    acknowledged before step 1, and none that the tables have is missing.
//! 3. If the manifest had changed: open its tables. They take the place of the ones before, and of
//!    the memtables that they hold, in one step for all keyspaces. A memtable that they hold in
//!    part is made again from the log, which still has the rest.
//!
//! A writer removes tables and releases log segments only behind an edit of the manifest. Where one
//! is gone before it was opened, the manifest has changed again, and the steps are repeated. If the
//! segment in which the follower stands is gone, everything is read anew, as at the beginning.
//!
//! Snapshots hold what all keyspaces have when they are made (`Inner::register_snapshot`): the
//! writer's compactions keep nothing for them. Tables and blob files that were removed are read on
//! through their handles.

use crate::base::batch::{AnyOperation, Operation};
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind, NEVER, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::db::lifecycle::directory::segment_maker;
use crate::db::lifecycle::follower_progress::{FollowerLag, FollowerProgress};
use crate::db::lifecycle::keyspaces;
use crate::db::lifecycle::open::{FoundState, read_beside_writer, read_everything};
use crate::db::lifecycle::recovery::{Recovering, decode, open_tables};
use crate::db::lifecycle::settings;
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::memory::{self, new_memtable};
use crate::db::state::read_state::ReadState;
use crate::db::write::batch_size::{add_reservation_bytes, reservation_bytes};
use crate::error::{Error, Result};
use crate::memtable::{Memtable, MemtableWriter, WriteContext};
use crate::merge_operator::UINT64_ADD;
use crate::options::Options;
use crate::version::edit::{KeyspaceRecord, ManifestState};
use crate::version::manifest::{InForce, read_current, stamp};
use crate::version::runs::Version;
use crate::wal::format::record_bytes;
use crate::wal::segment::Position;
use crate::wal::segment::SegmentMaker;
use crate::wal::tail::{End, LogTail, Taken};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A memtable of a follower is this part of a write buffer: of one that tables hold in part, so
/// much of the log is read again.
const MEMTABLE_PART: usize = 8;
/// What a memtable that is made again may take beyond the other one at first, and how often that is
/// doubled.
const SPARE_BYTES: usize = 64 << 10;
const MOST_DOUBLINGS: usize = 12;
/// How often a change by the writer may come in between, and how long to wait after the first few.
const ATTEMPTS: usize = 50;
/// A follower that is more log segments than this behind the first that the writer needs reads
/// everything anew: tables instead of log.
const MOST_BEHIND: u64 = 4;
const PATIENCE: Duration = Duration::from_millis(2);

/// What a follower knows of the files.
pub struct Following {
    /// The manifest that `state` was read from.
    stamp: Option<(u64, u64)>,
    /// Its number. Other settings come with another number.
    manifest: u64,
    /// What is installed.
    state: ManifestState,
    tail: LogTail,
    /// Of each keyspace, where in the log its memtables begin: that of the active one first, then
    /// those of the immutable ones, newest first.
    begins: BTreeMap<u64, VecDeque<Position>>,
    /// What reads without a snapshot may still be in: their blob files stay open.
    replaced: Vec<Weak<ReadState>>,
    /// Memtables that tables have taken the place of. Giving all their memory back to the system
    /// takes milliseconds, for which new writes would wait: one goes with each call that comes to
    /// the end.
    retired: Vec<Arc<Memtable>>,
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

/// Opens a database for following.
pub fn open(directory: &Path, options: Options) -> Result<(Inner, Following)> {
    let (mut inner, FoundState { state, manifest, stamp, log_end, .. }) = read_beside_writer(directory, options)?;
    inner.follows = true;
    let tail = tail_at(&inner, log_end)?.ok_or_else(|| changed_too_fast(&inner))?;
    let floor = Position { segment: state.log_floor, offset: 0 };
    let begins = |keyspace: Arc<KeyspaceInner>| (keyspace.id, begins_at(&keyspace.read_state.load(), floor));
    let begins = inner.all_keyspaces().into_iter().map(begins).collect();
    Ok((inner, Following { stamp, manifest, state, tail, begins, replaced: Vec::new(), retired: Vec::new() }))
}

fn begins_at(read_state: &ReadState, position: Position) -> VecDeque<Position> {
    read_state.memtables().map(|_| position).collect()
}

fn maker(inner: &Inner) -> SegmentMaker {
    SegmentMaker { read_only: true, ..segment_maker(&inner.directory, &inner.options) }
}

fn tail_at(inner: &Inner, position: Position) -> Result<Option<LogTail>> {
    LogTail::at(maker(inner), position)
}

fn changed_too_fast(inner: &Inner) -> Error {
    let directory = inner.directory.display();
    Error::Stalled {
        reason: format!("the writer of {directory} changes its files faster than they can be read; try again"),
    }
}

/// Reads what the writer has written since. On an error the follower has what it had before, or
/// some more, and may try again.
pub fn catch_up(inner: &Inner, following: &mut Following) -> Result<FollowerProgress> {
    inner.refuse_in_callback()?;
    // No snapshot is made in between: what it would see is no state that the database had.
    let _alone = inner.keyspace_changes.lock();
    let mut progress = FollowerProgress::default();
    for attempt in 0..ATTEMPTS {
        if attempt > 3 {
            std::thread::sleep(PATIENCE);
        }
        let env = &*inner.options.env;
        // None while another manifest takes its place.
        let look = || stamp(env, &inner.directory).unwrap_or_default();
        let current = look();
        let next = if current.is_some() && current == following.stamp {
            None
        } else {
            // It may just be replaced.
            match read_current(env, &inner.directory) {
                Ok(Some(next)) => Some(next),
                Ok(None) | Err(Error::Io { .. } | Error::Corruption { .. }) if attempt + 1 < ATTEMPTS => continue,
                Ok(None) => {
                    return Err(Error::NotFound { what: format!("database in {}", inner.directory.display()) });
                }
                Err(error) => return Err(error),
            }
        };
        if let Some(next) = &next {
            let mut pairs =
                next.state.keyspaces.iter().filter_map(|(id, now)| Some((following.state.keyspaces.get(id)?, now)));
            if pairs.any(|(before, now)| settings::needs_folding(before, now)) {
                read_anew(inner, following)?;
                continue;
            }
            create_keyspaces(inner, following, &next.state)?;
        }
        match read_log(inner, following, next.as_ref(), &mut progress)? {
            End::Reached => {}
            End::NotYet => {
                following.stamp = None;
                continue;
            }
            End::Lost => {
                let before = (following.tail.position(), following.stamp);
                read_anew(inner, following)?;
                if before == (following.tail.position(), following.stamp) {
                    // The log ends here for an open, too.
                    return Ok(FollowerProgress { sequence: last_sequence(inner), ..progress });
                }
                continue;
            }
        }
        if let Some(InForce { number, state, .. }) = next {
            match install(inner, following, state) {
                Ok(()) => (following.manifest, following.stamp) = (number, current),
                // What was missing is needed no more.
                Err(_) if look() != current => continue,
                Err(error) => return Err(error),
            }
        }
        // Otherwise the log may have writes that came behind a load, which only the manifest has.
        if current.is_some() && look() == current {
            release_one(inner, following);
            return Ok(FollowerProgress { sequence: last_sequence(inner), at_end: true, ..progress });
        }
    }
    Err(changed_too_fast(inner))
}

fn release_one(inner: &Inner, following: &mut Following) {
    if following.retired.pop().is_some() && following.retired.is_empty() {
        memory::rebalance(inner);
    }
}

fn last_sequence(inner: &Inner) -> Sequence {
    inner.last_sequence.load(Ordering::Acquire)
}

/// How far the follower is behind. None if the log from there on is gone.
pub fn lag(inner: &Inner, following: &Following) -> Result<Option<FollowerLag>> {
    // A tail of its own: that of the follower does not move.
    let tail = tail_at(inner, following.tail.position())?;
    Ok(tail.map(|tail| FollowerLag::read(tail, last_sequence(inner))).transpose()?.flatten())
}

/// Makes the keyspaces that are new by the manifest known, empty.
fn create_keyspaces(inner: &Inner, following: &mut Following, next: &ManifestState) -> Result<()> {
    take_over_names(inner, following, next);
    take_over_settings(inner, &mut following.state, next);
    for (&id, record) in &next.keyspaces {
        if following.state.keyspaces.contains_key(&id) {
            continue;
        }
        // One of the same name was dropped before.
        if let Some(old) = keyspaces::find(inner, &record.name) {
            drop_keyspace(inner, &mut inner.writer.lock(), &mut following.replaced, old.id);
        }
        // Its tables come with the manifest.
        let record = KeyspaceRecord { tables: BTreeMap::new(), flushed: 0, ..record.clone() };
        let order = inner.options.key_order(&record.name, &record.comparator)?;
        let (active, writer) = new_memtable(&order, &inner.options, 0, 0, &inner.memory);
        add_keyspace(inner, id, (&record, order), ReadState::of_memtable(active), writer);
        following.begins.insert(id, VecDeque::from([following.tail.position()]));
        following.state.keyspaces.insert(id, record);
    }
    following.state.next_keyspace = following.state.next_keyspace.max(next.next_keyspace);
    Ok(())
}

/// Takes over what was changed of keyspaces that are known.
fn take_over_settings(inner: &Inner, state: &mut ManifestState, next: &ManifestState) {
    for (id, record) in &next.keyspaces {
        if let Some(known) = state.keyspaces.get_mut(id)
            && let Some(keyspace) = keyspaces::find(inner, &record.name).filter(|found| found.id == *id)
        {
            settings::take_over(inner, &mut inner.writer.lock(), &keyspace, known, record);
            (known.ttl, known.operator) = (record.ttl, record.operator.clone());
        }
    }
}

/// Takes over the names of keyspaces that are known.
fn take_over_names(inner: &Inner, following: &mut Following, next: &ManifestState) {
    let mut renamed: Vec<(Arc<KeyspaceInner>, Arc<str>)> = Vec::new();
    for (id, record) in &next.keyspaces {
        if let Some(known) = following.state.keyspaces.get_mut(id).filter(|known| known.name != record.name)
            && let Some(keyspace) = keyspaces::find(inner, &known.name).filter(|found| found.id == *id)
        {
            known.name.clone_from(&record.name);
            renamed.push((keyspace, record.name.as_str().into()));
        }
    }
    for (_, name) in &renamed {
        // One of the same name was dropped before.
        if let Some(old) = keyspaces::find(inner, name).filter(|old| !next.keyspaces.contains_key(&old.id)) {
            drop_keyspace(inner, &mut inner.writer.lock(), &mut following.replaced, old.id);
        }
    }
    inner.rename_keyspaces(&renamed);
}

fn add_keyspace(
    inner: &Inner,
    id: u64,
    (record, order): (&KeyspaceRecord, KeyOrder),
    read_state: ReadState,
    writer: MemtableWriter,
) {
    let (operator, ttl) = (keyspaces::stored_operator(record), record.ttl);
    let (name, operator_name) = (record.name.clone(), record.operator.clone());
    let keyspace = Arc::new(KeyspaceInner::new(id, name, order, operator_name, ttl, operator.clone(), read_state));
    keyspace.compaction.set_style(record.style);
    keyspaces::add(inner, &keyspace, writer, operator);
}

/// Step 2. `next`: the manifest as it was read before, if it has changed; a keyspace that it does
/// not know has been created since.
fn read_log(
    inner: &Inner,
    following: &mut Following,
    next: Option<&InForce>,
    progress: &mut FollowerProgress,
) -> Result<End> {
    let mut looked_behind = None;
    let Following { manifest, state, tail, begins, .. } = following;
    let (number, newest) = next.map_or((*manifest, &*state), |next| (next.number, &next.state));
    // All of that is in tables, also where the log is kept for readers of changes.
    if tail.position().segment + MOST_BEHIND < newest.log_floor {
        return Ok(End::Lost);
    }
    tail.read(None, &mut |record, position| {
        let operations = decode(&record)?;
        let is_known = |id: u64| state.keyspaces.contains_key(&id) || newest.was_dropped(id) || state.was_dropped(id);
        let fits = |operation: &AnyOperation<'_>| {
            state.keyspaces.get(&operation.keyspace()).is_none_or(|known| suits(known, operation))
        };
        if !operations.iter().all(|operation| is_known(operation.keyspace()) && fits(operation)) {
            return Ok(Taken::NotYet);
        }
        // Merges of other settings look the same. Those that were there before the manifest was
        // looked at are of its settings, unless tables had them before that was made. Once for each
        // read of the file.
        let read = Some((record.segment, record.read_at));
        if looked_behind != read && operations.iter().any(is_merge) {
            if !is_in_force(inner, number) {
                return Ok(Taken::NotYet);
            }
            looked_behind = read;
        }
        let mut numbered = operations.iter().zip(record.sequence..);
        if number != *manifest && numbered.any(|(operation, sequence)| is_of_others(state, newest, operation, sequence))
        {
            return Ok(Taken::Lost);
        }
        if !values_are_there(inner, state, &operations, record.sequence)? {
            return Ok(Taken::Lost);
        }
        apply_record(inner, state, begins, (record.sequence, &operations), position);
        operations.iter().for_each(|operation| inner.watchers.note(operation));
        progress.batches += 1;
        progress.log_bytes += record_bytes(record.payload.len());
        Ok(Taken::Yes)
    })
}

/// Applies what of a record is in no table. `first`: the number of its first operation.
fn apply_record(
    inner: &Inner,
    state: &ManifestState,
    begins: &mut BTreeMap<u64, VecDeque<Position>>,
    (first, operations): (Sequence, &[AnyOperation<'_>]),
    position: Position,
) {
    let is_new = |(operation, sequence): &(&AnyOperation<'_>, Sequence)| {
        state.keyspaces.get(&operation.keyspace()).is_some_and(|known| *sequence > known.flushed)
    };
    let new = || operations.iter().zip(first..).filter(is_new);
    let mut needs = Vec::new();
    new().for_each(|(it, _)| add_reservation_bytes(&mut needs, it.keyspace(), bytes_in_memory(it)));
    let mut writer = inner.writer.lock();
    // For all of it: in two memtables, a range that it replaces would be empty for a moment.
    for &(id, bytes) in &needs {
        make_room(inner, &mut writer, id, bytes, || begins.entry(id).or_default().push_front(position));
    }
    let (newest_snapshot, finished) = (inner.snapshots.newest(), first - 1);
    let mut reserved: usize = needs.iter().map(|(_, bytes)| bytes).sum();
    for (operation, sequence) in new() {
        reserved -= bytes_in_memory(operation);
        apply(&mut writer, operation, sequence, (newest_snapshot, finished), reserved);
    }
    writer.last_sequence = writer.last_sequence.max(finished + operations.len() as u64);
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
}

/// Whether a keyspace with these settings can have such an operation; otherwise they have been
/// changed since.
fn suits(record: &KeyspaceRecord, operation: &AnyOperation<'_>) -> bool {
    let has_expiry = matches!(operation, AnyOperation::Key(operation) if operation.expiry_ms != NEVER);
    (!has_expiry || record.ttl != 0) && (!is_merge(operation) || record.operator.is_some())
}

fn is_merge(operation: &AnyOperation<'_>) -> bool {
    matches!(operation, AnyOperation::Key(operation) if matches!(operation.kind, Kind::Merge | Kind::MergeFirst))
}

/// Whether the manifest of that number is in force: as long as it is, all settings are the same.
fn is_in_force(inner: &Inner, number: u64) -> bool {
    stamp(&*inner.options.env, &inner.directory).is_ok_and(|now| now.is_some_and(|(now, _)| now == number))
}

/// Whether it may be a merge of settings that came and went: operands are in tables, combined,
/// before their settings are changed. `state`: what is installed. `next`: the manifest that has
/// taken the place of that, or of several.
fn is_of_others(state: &ManifestState, next: &ManifestState, operation: &AnyOperation<'_>, sequence: Sequence) -> bool {
    let id = operation.keyspace();
    let is_flushed = |state: &ManifestState| state.keyspaces.get(&id).is_some_and(|known| sequence <= known.flushed);
    is_merge(operation) && !is_flushed(state) && (is_flushed(next) || next.was_dropped(id))
}

/// Whether the large values that the operations refer to are there; those that are in tables
/// already need not be. Opened, they can be read from here on.
fn values_are_there(
    inner: &Inner,
    state: &ManifestState,
    operations: &[AnyOperation<'_>],
    first: Sequence,
) -> Result<bool> {
    for (operation, sequence) in operations.iter().zip(first..) {
        let AnyOperation::Key(operation) = operation else { continue };
        let is_needed = state.keyspaces.get(&operation.keyspace).is_some_and(|keyspace| sequence > keyspace.flushed);
        if operation.kind != Kind::PutBlob || !is_needed {
            continue;
        }
        let Some(reference) = BlobReference::decode(operation.value) else { return Ok(false) };
        // As a recovery does: the log ends before a value that is not there as it was written.
        let opened = inner.blobs.open_file(reference.file, reference.end().unwrap_or(u64::MAX));
        match opened.and_then(|file| file.read(&reference)) {
            Ok(_) => {}
            Err(Error::Corruption { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The bytes that an operation takes in the arena of a memtable, at most.
fn bytes_in_memory(operation: &AnyOperation<'_>) -> usize {
    match operation {
        AnyOperation::Key(operation) => reservation_bytes(operation),
        AnyOperation::Range(_) => 0,
    }
}

/// Rotates the memtable of the keyspace, if it is full or lacks room for so many bytes.
fn make_room(inner: &Inner, writer: &mut Writer, id: u64, bytes: usize, rotated: impl FnOnce()) {
    let Some(Some(target)) = writer.keyspaces.get_mut(id as usize) else { return };
    let is_small = target.memtable.memtable().bytes() < inner.options.write_buffer_bytes / MEMTABLE_PART;
    if target.memtable.has_room(bytes) && (is_small || target.memtable.memtable().is_empty()) {
        return;
    }
    let was_empty = target.memtable.memtable().is_empty();
    let next = new_memtable(&target.keyspace.order, &inner.options, bytes, target.memtable.keys(), &inner.memory);
    target.keyspace.read_state.rotate_memtable(&mut target.memtable, next);
    if !was_empty {
        rotated();
    }
}

/// `reserved`: arena bytes of later operations of the batch.
fn apply(
    writer: &mut Writer,
    operation: &AnyOperation<'_>,
    sequence: Sequence,
    (newest_snapshot, finished): (Sequence, Sequence),
    reserved: usize,
) {
    let Some(Some(target)) = writer.keyspaces.get_mut(operation.keyspace() as usize) else { return };
    match operation {
        AnyOperation::Key(operation) => {
            if operation.kind != Kind::Delete {
                target.keyspace.tombstone_skip_cache.note_shown(operation.key);
            }
            let operator = target.operator.as_deref();
            let context = WriteContext { newest_snapshot, operator, adds_uint64: target.adds_uint64, reserved };
            target.memtable.apply(hash(operation.key), entry(operation, sequence), context);
        }
        AnyOperation::Range(range) => {
            target.memtable.delete_range(range.start, range.end, sequence, newest_snapshot, finished);
        }
    }
}

fn entry<'a>(operation: &Operation<'a>, sequence: Sequence) -> Entry<'a> {
    let Operation { key, kind, expiry_ms, value, .. } = *operation;
    Entry { key, sequence, kind, expiry_ms, value }
}

/// What a keyspace becomes.
struct Next {
    keyspace: Arc<KeyspaceInner>,
    version: Arc<Version>,
    /// None: the active memtable goes on.
    active: Option<(Arc<Memtable>, MemtableWriter)>,
    /// Newest first.
    immutable: Vec<Arc<Memtable>>,
    begins: VecDeque<Position>,
}

/// Step 3. Fails if the writer has removed something meanwhile, without having changed anything.
fn install(inner: &Inner, following: &mut Following, next: ManifestState) -> Result<()> {
    let mut all = Vec::new();
    for (&id, record) in &next.keyspaces {
        let is_same = following.state.keyspaces.get(&id).is_some_and(|known| known == record);
        let Some(keyspace) = keyspaces::find(inner, &record.name).filter(|it| it.id == id && !is_same) else {
            continue;
        };
        all.push(prepare(inner, following, keyspace, record, next.log_floor)?);
    }
    let gone: Vec<u64> =
        following.state.keyspaces.keys().filter(|id| !next.keyspaces.contains_key(id)).copied().collect();
    // Those of one change at most are kept.
    following.retired.clear();
    {
        let mut writer = inner.writer.lock();
        for Next { keyspace, version, active, immutable, begins } in all {
            let before = keyspace.read_state.load_full();
            following.replaced.push(Arc::downgrade(&before));
            let active = match (active, writer.keyspaces.get_mut(keyspace.id as usize)) {
                (Some((active, memtable)), Some(Some(target))) => {
                    target.memtable = memtable;
                    active
                }
                _ => Arc::clone(&before.active),
            };
            let merge_epoch = Arc::clone(&before.merge_epoch);
            keyspace.read_state.follow(active, immutable, version, merge_epoch);
            retire(inner, &mut following.retired, &before, &keyspace.read_state.load());
            keyspace.tombstone_skip_cache.clear();
            following.begins.insert(keyspace.id, begins);
        }
        gone.iter().for_each(|&id| drop_keyspace(inner, &mut writer, &mut following.replaced, id));
        writer.last_sequence = writer.last_sequence.max(next.last_sequence);
        inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    }
    inner.watchers.note_all();
    following.begins.retain(|id, _| next.keyspaces.contains_key(id));
    following.state = next;
    following.replaced.retain(|read_state| read_state.strong_count() > 0);
    forget_blobs(inner, &following.replaced);
    memory::rebalance(inner);
    Ok(())
}

/// Keeps the memtables that `now` has no more, for one to be released after another.
fn retire(inner: &Inner, retired: &mut Vec<Arc<Memtable>>, before: &ReadState, now: &ReadState) {
    let is_gone = |old: &&Arc<Memtable>| !old.is_empty() && !now.memtables().any(|kept| Arc::ptr_eq(kept, old));
    for memtable in before.memtables().filter(is_gone) {
        inner.write_buffer_manager.note_flushed(memtable);
        retired.push(Arc::clone(memtable));
    }
}

/// Opens the tables of a keyspace, and leaves of its memtables what is not in them.
fn prepare(
    inner: &Inner,
    following: &Following,
    keyspace: Arc<KeyspaceInner>,
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
            Some(remake(inner, &keyspace, memtable, begin, record.flushed, log_floor)?)
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
    Ok(Next { keyspace, version: Arc::new(version), active, immutable, begins })
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

/// Ends a keyspace that the writer has dropped. Snapshots hold what they see of it. `replaced`: as
/// in [`Following`].
fn drop_keyspace(inner: &Inner, writer: &mut Writer, replaced: &mut Vec<Weak<ReadState>>, id: u64) {
    let Some(taken) = writer.keyspaces.get_mut(id as usize).and_then(Option::take) else { return };
    replaced.push(Arc::downgrade(&taken.keyspace.read_state.load()));
    let (empty, _) = new_memtable(&taken.keyspace.order, &inner.options, 0, 0, &inner.memory);
    inner.dropped.note_name(id, &taken.keyspace.name());
    taken.keyspace.read_state.begin_drop(writer.last_sequence, empty);
    taken.keyspace.read_state.finish_drop();
    taken.keyspace.read_state.release_dropped();
    inner.forget_keyspace(&taken.keyspace);
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

/// Reads everything, as at the beginning: the log segment in which the follower stands is gone.
fn read_anew(inner: &Inner, following: &mut Following) -> Result<()> {
    let resources = (&inner.cache, &*inner.memory, &inner.blobs);
    let (recovering, found) = read_everything(&inner.directory, &inner.options, resources)?;
    let FoundState { state, manifest, stamp, log_end, .. } = found;
    if state.last_sequence < inner.last_sequence.load(Ordering::Acquire) {
        let what = format!(
            "the database ends at write {}, and the follower has write {}: another one has taken its place; open it anew",
            state.last_sequence,
            inner.last_sequence.load(Ordering::Acquire)
        );
        return Err(Error::corruption(&inner.directory, 0, what));
    }
    following.tail = tail_at(inner, log_end)?.ok_or_else(|| changed_too_fast(inner))?;
    let floor = Position { segment: state.log_floor, offset: 0 };
    let gone: Vec<u64> =
        following.state.keyspaces.keys().filter(|id| !state.keyspaces.contains_key(id)).copied().collect();
    following.begins.clear();
    take_over_names(inner, following, &state);
    let mut new = Vec::new();
    let mut writer = inner.writer.lock();
    for (id, recovered) in recovering {
        let Recovering { record, version, memtable, writer: memtable_writer, immutable, order, .. } = recovered;
        let read_state = ReadState { immutable: immutable.into(), version, ..ReadState::of_memtable(memtable) };
        following.begins.insert(id, begins_at(&read_state, floor));
        let Some(Some(target)) = writer.keyspaces.get_mut(id as usize) else {
            new.push((id, (record, order), read_state, memtable_writer));
            continue;
        };
        target.memtable = memtable_writer;
        following.replaced.push(Arc::downgrade(&target.keyspace.read_state.load()));
        let ReadState { active, immutable, version, .. } = read_state;
        let keyspace = Arc::clone(&target.keyspace);
        let before = following.state.keyspaces.get(&id).unwrap_or(&record);
        let merge_epoch = settings::take_over(inner, &mut writer, &keyspace, before, &record);
        keyspace.read_state.follow(active, immutable, version, merge_epoch);
        keyspace.tombstone_skip_cache.clear();
    }
    gone.iter().for_each(|&id| drop_keyspace(inner, &mut writer, &mut following.replaced, id));
    writer.last_sequence = state.last_sequence;
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    drop(writer);
    for (id, (record, order), read_state, memtable) in new {
        add_keyspace(inner, id, (&record, order), read_state, memtable);
    }
    inner.watchers.note_all();
    (following.state, following.manifest, following.stamp) = (state, manifest, stamp);
    Ok(())
}
