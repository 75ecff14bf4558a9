//! Following a database that another process writes: its manifest and its log are read as they
//! grow, without its doing.
//!
//! 1. Read the manifest, if it has changed.
//! 2. Read on in the log to its end. If the manifest is the same still, this is one state that the
//!    database had: all writes that were acknowledged before step 1 are there, and none comes
//!    behind a load, a drop or settings that are not. If it is not, begin again.
//! 3. If the manifest had changed: open its tables. They take the place of the ones before, and of
//!    the memtables that they hold, in one step for all keyspaces. A memtable that they hold in
//!    part is made again from the log, which still has the rest.
//! 4. Apply what was read of the log to memtables, but for what the tables hold.
//!
//! Nothing changes before all of it is read and opened: after an error the follower has the state
//! that it had before, or one that was read anew. What was read of the log is kept for the next
//! attempt, unless that is what failed.
//!
//! A writer removes tables and releases log segments only behind an edit of the manifest. Where one
//! is gone before it was opened, the manifest has changed again, and the steps are repeated. If the
//! segment in which the follower stands is gone, everything is read anew, as at the beginning.
//!
//! Snapshots hold what all keyspaces have when they are made (`Inner::register_snapshot`): the
//! writer's compactions keep nothing for them. Tables and blob files that were removed are read on
//! through their handles.
//!
//! | file | what it holds |
//! |---|---|
//! | `following` | what a follower knows of the files |
//! | `log` | steps 2 and 4 |
//! | `tables` | step 3 |
//! | `keyspaces` | what the manifest says of keyspaces |

mod following;
mod keyspaces;
mod log;
mod tables;

pub use crate::db::lifecycle::follow::following::Following;

use crate::base::key::Sequence;
use crate::base::key_order::KeyOrder;
use crate::db::lifecycle::follow::following::{begins_at, changed_too_fast, tail_at};
use crate::db::lifecycle::follow::keyspaces::{
    add_keyspace, create_keyspaces, drop_keyspace, new_orders, take_over_names,
};
use crate::db::lifecycle::follow::log::{News, apply_news, read_log};
use crate::db::lifecycle::follow::tables::{Next, install, prepare, release_replaced};
use crate::db::lifecycle::follower_progress::{FollowerLag, FollowerProgress};
use crate::db::lifecycle::open::{FoundState, read_beside_writer, read_everything};
use crate::db::lifecycle::recovery::Recovering;
use crate::db::lifecycle::settings;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::memory;
use crate::db::state::read_state::ReadState;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::version::edit::ManifestState;
use crate::version::manifest::{InForce, is_switched, read_current, stamp};
use crate::wal::segment::Position;
use crate::wal::tail::End;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a change by the writer may come in between, and how long to wait after the first few.
const ATTEMPTS: usize = 50;
const PATIENCE: Duration = Duration::from_millis(2);

type Prepared = (Vec<Next>, InForce, Option<(u64, u64)>, BTreeMap<u64, KeyOrder>);

/// Opens a database for following.
pub fn open(directory: &Path, options: Options) -> Result<(Inner, Following)> {
    let (mut inner, FoundState { state, manifest, stamp, log_end, .. }) = read_beside_writer(directory, options)?;
    inner.follows = true;
    let tail = tail_at(&inner, log_end)?.ok_or_else(|| changed_too_fast(&inner))?;
    let floor = Position { segment: state.log_floor, offset: 0 };
    let begins = |keyspace: Arc<KeyspaceInner>| (keyspace.id, begins_at(&keyspace.read_state.load(), floor));
    let begins = inner.all_keyspaces().into_iter().map(begins).collect();
    let (replaced, retired) = (Vec::new(), Vec::new());
    Ok((inner, Following { stamp, manifest, switched: 0, state, tail, news: None, begins, replaced, retired }))
}

/// Reads what the writer has written since. On an error the follower has one state of the database,
/// that of before or a newer one, and may try again.
pub fn catch_up(inner: &Inner, following: &mut Following) -> Result<FollowerProgress> {
    inner.refuse_in_callback()?;
    // No snapshot is made in between: what it would see is no state that the database had.
    let _alone = inner.keyspace_changes.lock();
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
        let (newest, orders) = match &next {
            Some(next) if needs_folding(&following.state, &next.state) => {
                read_anew(inner, following)?;
                continue;
            }
            Some(next) => (&next.state, new_orders(inner, &following.state, &next.state)?),
            None => (&following.state, BTreeMap::new()),
        };
        let mut news = following.news.take().unwrap_or_else(|| News::behind(&following.tail));
        match read_log(inner, &mut news, newest, &orders)? {
            End::Reached => {}
            End::NotYet => {
                (following.stamp, following.news) = (None, Some(news));
                continue;
            }
            End::Lost => {
                let before = (news.position(), following.stamp);
                read_anew(inner, following)?;
                if before == (following.tail.position(), following.stamp) {
                    // The log ends here for an open, too.
                    return Ok(FollowerProgress { sequence: last_sequence(inner), ..FollowerProgress::default() });
                }
                continue;
            }
        }
        // Otherwise the log may have writes that came behind a load, which only the manifest has.
        // No manifest is another one each time.
        let is_same = || current.is_some() && look() == current;
        if !is_same() {
            following.news = Some(news);
            continue;
        }
        let prepared = match next.as_ref().map(|next| prepare(inner, following, &next.state)).transpose() {
            Ok(prepared) => prepared.zip(next),
            Err(error) => {
                following.news = Some(news);
                if is_same() {
                    return Err(error);
                }
                // What was missing is needed no more.
                continue;
            }
        };
        let prepared = prepared.map(|(tables, next)| (tables, next, current, orders));
        return Ok(take_over(inner, following, prepared, news));
    }
    Err(changed_too_fast(inner))
}

/// Makes what was read and opened visible. `prepared`: if the manifest had changed, the tables and
/// the orders of new keyspaces by it, and its stamp.
fn take_over(inner: &Inner, following: &mut Following, prepared: Option<Prepared>, mut news: News) -> FollowerProgress {
    let is_changed = prepared.is_some();
    if let Some((tables, InForce { number, state, .. }, stamp, orders)) = prepared {
        create_keyspaces(inner, following, &state, orders);
        install(inner, following, tables, state);
        (following.manifest, following.stamp) = (number, stamp);
    }
    let progress = apply_news(inner, &following.state, &mut following.begins, &mut news);
    following.tail = news.into_tail();
    if is_changed {
        inner.watchers.note_all();
        release_replaced(inner, following);
    }
    release_one(inner, following);
    note_switched(inner, following);
    FollowerProgress { sequence: last_sequence(inner), at_end: true, ..progress }
}

/// Whether merges that were read before have another meaning by the settings of `next`.
fn needs_folding(installed: &ManifestState, next: &ManifestState) -> bool {
    let mut pairs = next.keyspaces.iter().filter_map(|(id, now)| Some((installed.keyspaces.get(id)?, now)));
    pairs.any(|(before, now)| settings::needs_folding(before, now))
}

fn release_one(inner: &Inner, following: &mut Following) {
    if following.retired.pop().is_some() && following.retired.is_empty() {
        memory::rebalance(inner);
    }
}

/// Wakes those who wait for what is durable once the switch to the manifest is: none of its bytes
/// changes with that.
fn note_switched(inner: &Inner, following: &mut Following) {
    let Following { manifest, switched, state, .. } = following;
    let is_unknown = *switched != *manifest && state.changes_from > 0;
    if is_unknown && is_switched(&*inner.options.env, &inner.directory, *manifest).unwrap_or(false) {
        *switched = *manifest;
        inner.watchers.note_sync();
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

/// Reads everything, as at the beginning: the log segment in which the follower stands is gone.
fn read_anew(inner: &Inner, following: &mut Following) -> Result<()> {
    let resources = (&inner.cache, &*inner.memory, &inner.blobs);
    let (recovering, found) = read_everything(&inner.directory, &inner.options, resources)?;
    let FoundState { state, manifest, stamp, log_end, needed_end, .. } = found;
    if state.last_sequence < inner.last_sequence.load(Ordering::Acquire) {
        let what = format!(
            "the database ends at write {}, and the follower has write {}: another one has taken its place; open it anew",
            state.last_sequence,
            inner.last_sequence.load(Ordering::Acquire)
        );
        return Err(Error::corruption(&inner.directory, 0, what));
    }
    following.tail = tail_at(inner, log_end)?.ok_or_else(|| changed_too_fast(inner))?;
    following.news = None;
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
    (writer.last_sequence, writer.read_to) = (state.last_sequence, needed_end);
    inner.last_sequence.store(writer.last_sequence, Ordering::Release);
    drop(writer);
    for (id, (record, order), read_state, memtable) in new {
        add_keyspace(inner, id, (&record, order), read_state, memtable);
    }
    inner.watchers.note_all();
    (following.state, following.manifest, following.stamp) = (state, manifest, stamp);
    Ok(())
}
