//! Settings of a keyspace that exists, and its name.
//!
//! The manifest has the new setting before anything is written under it, so that a recovery knows
//! what it replays. Then, under the writer lock, the keyspace has it, and no thread that has not
//! seen that changes values in place any more. Where changes are kept, the new setting has a place
//! in the order of writes, and the writer lock is held until it is durable, as at a drop
//! (`drop_keyspace.rs`).
//!
//! What was prepared before, a batch for example, has no expiry: a put never expires then, and a
//! merge is resolved at its commit (`write/commit.rs`). Its operands are checked and combined by
//! the operator that is in force at the commit.
//!
//! Operands that are stored would be taken for others under another operator, in tables and in the
//! log, which has each one apart even where the memtable has combined them. So they are folded
//! before it is replaced: the keyspace is flushed and compacted with the operator that it has, and
//! the settings are changed under the writer lock, once no table has an operand, and nothing that a
//! replay of the log would apply is a merge. The same goes for a time to live where there are
//! operands, which need something to be combined with then. What reads that began before still find
//! is combined as before (`state/merge_settings.rs`).

use crate::base::expiry::Ttl;
use crate::base::key::{Kind, Sequence};
use crate::db::background::rotate::rotate_in_epoch;
use crate::db::background::{commit_version_edit, compaction, flush, run};
use crate::db::lifecycle::keyspaces::{self, Named};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::merge_settings::MergeEpoch;
use crate::error::{Error, Result};
use crate::iter::Cursor as _;
use crate::merge_operator::{MergeOperator, UINT64_ADD};
use crate::table::Table;
use crate::version::edit::KeyspaceRecord;
use parking_lot::MutexGuard;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a keyspace is flushed or compacted in one call, because other threads have merged
/// meanwhile.
const MOST_FOLDS: usize = 10;

/// See [`crate::Keyspace::set_ttl`].
pub fn set_ttl(inner: &Inner, keyspace: &KeyspaceInner, ttl: Ttl) -> Result<()> {
    inner.refuse_in_callback()?;
    let stored = ttl.to_stored()?;
    let change = |record: &mut KeyspaceRecord| record.ttl = stored;
    folded(inner, keyspace, |folding| {
        let before = keyspace.ttl();
        if before == Ttl::from_stored(stored) {
            return Ok(Some(()));
        }
        if !ttl.is_enabled() {
            return Err(Error::invalid(format!(
                "entries of keyspace {:?} may have an expiry already; use Ttl::Enabled without a default instead",
                keyspace.name()
            )));
        }
        if before.is_enabled() || !keyspace.has_operator() {
            let mut writer = make_durable(inner, keyspace, None, change)?;
            apply_ttl(inner, &mut writer, keyspace, stored);
            return Ok(Some(()));
        }
        let Some(writer) = folding.lock_without_operands(inner, keyspace)? else { return Ok(None) };
        let mut writer = make_durable(inner, keyspace, Some(writer), change)?;
        let epoch = begin_epoch(&mut writer, keyspace);
        apply_ttl(inner, &mut writer, keyspace, stored);
        rotate_in_epoch(inner, &mut writer, keyspace.id, epoch);
        folding.rotated = true;
        Ok(Some(()))
    })
}

/// The rules for merges are about to be changed, with [`rotate_in_epoch`] behind.
fn begin_epoch(writer: &mut Writer, keyspace: &KeyspaceInner) -> MergeEpoch {
    if !writer.altered_merges.contains(&keyspace.id) {
        writer.altered_merges.push(keyspace.id);
    }
    keyspace.keep_merge_settings()
}

fn apply_ttl(inner: &Inner, writer: &mut Writer, keyspace: &KeyspaceInner, stored: u64) {
    writer.entries_may_expire = true;
    keyspace.set_ttl(stored);
    inner.thread_gate.wait_for_all();
}

/// See [`crate::Keyspace::set_merge_operator`].
pub fn set_merge_operator(inner: &Inner, keyspace: &KeyspaceInner, operator: Arc<dyn MergeOperator>) -> Result<()> {
    inner.refuse_in_callback()?;
    let named = Named::new(operator, inner)?;
    named.check()?;
    let operator = named.for_keys(&keyspace.order);
    let change = |record: &mut KeyspaceRecord| record.operator = Some(named.name.clone());
    let apply = |writer: &mut Writer| apply_operator(inner, writer, keyspace, &named.name, Some(Arc::clone(&operator)));
    folded(inner, keyspace, |folding| {
        if keyspace.has_operator_named(&named.name) {
            if keyspace.operator().is_none() {
                folding.rotated = keyspaces::attach(inner, keyspace, &named)?;
            }
            return Ok(Some(()));
        }
        if !keyspace.has_operator() {
            apply(&mut *make_durable(inner, keyspace, None, change)?);
            return Ok(Some(()));
        }
        let Some(writer) = folding.lock_without_operands(inner, keyspace)? else { return Ok(None) };
        let mut writer = make_durable(inner, keyspace, Some(writer), change)?;
        let epoch = begin_epoch(&mut writer, keyspace);
        apply(&mut writer);
        rotate_in_epoch(inner, &mut writer, keyspace.id, epoch);
        folding.rotated = true;
        Ok(Some(()))
    })
}

fn apply_operator(
    inner: &Inner,
    writer: &mut Writer,
    keyspace: &KeyspaceInner,
    name: &str,
    operator: Option<Arc<dyn MergeOperator>>,
) {
    // The operator first: who sees the name checks operands by it.
    keyspace.replace_operator(operator.clone());
    keyspace.set_operator_name(name);
    if let Some(Some(target)) = writer.keyspaces.get_mut(keyspace.id as usize) {
        target.operator = operator;
        target.adds_uint64 = name == UINT64_ADD;
    }
    inner.thread_gate.wait_for_all();
}

/// See [`crate::Keyspace::rename`].
pub fn rename(inner: &Inner, keyspace: &Arc<KeyspaceInner>, name: &str) -> Result<()> {
    inner.refuse_in_callback()?;
    keyspaces::check_name(name)?;
    let _changes = inner.keyspace_changes.lock();
    check_writable(inner)?;
    keyspace.check_exists()?;
    if *keyspace.name() == *name {
        return Ok(());
    }
    if keyspaces::find(inner, name).is_some() {
        return Err(Error::AlreadyExists { what: format!("keyspace {name:?}") });
    }
    let writer = make_durable(inner, keyspace, None, |record| name.clone_into(&mut record.name))?;
    inner.rename_keyspaces(&[(Arc::clone(keyspace), name.into())]);
    drop(writer);
    Ok(())
}

fn check_writable(inner: &Inner) -> Result<()> {
    inner.error_state.check()?;
    if inner.log.is_none() {
        return Err(Error::ReadOnly { why: "it was opened read-only".into() });
    }
    Ok(())
}

/// Makes other settings durable, and returns with the writer lock, which was `held` or is taken
/// then, or before where changes are kept.
fn make_durable<'i>(
    inner: &'i Inner,
    keyspace: &KeyspaceInner,
    held: Option<MutexGuard<'i, Writer>>,
    alter: impl FnOnce(&mut KeyspaceRecord),
) -> Result<MutexGuard<'i, Writer>> {
    if !inner.keeps_changes() {
        commit_version_edit::alter_keyspace(inner, keyspace.id, None, alter)?;
        return Ok(held.unwrap_or_else(|| inner.lock_writer()));
    }
    let mut writer = held.unwrap_or_else(|| inner.lock_writer());
    inner.error_state.check()?;
    // Those before it are durable with it: none is missing below it. Where it fails, the number is
    // that of the next write: nobody has seen it.
    let place: Sequence = writer.first_of(1)?;
    inner.sync_log()?;
    commit_version_edit::alter_keyspace(inner, keyspace.id, Some(place), alter)?;
    writer.last_sequence = place;
    inner.last_sequence.store(place, Ordering::Release);
    inner.watchers.note_keyspace(keyspace.id);
    Ok(writer)
}

/// Calls `change`, and again after each flush or compaction of the keyspace, as long as it says
/// that there are operands.
fn folded(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    mut change: impl FnMut(&mut Folding) -> Result<Option<()>>,
) -> Result<()> {
    let mut folding = Folding::default();
    let mut folds = 0;
    loop {
        {
            // Jobs go by the settings from their beginning to their end.
            let _jobs = inner.jobs.lock();
            let _changes = inner.keyspace_changes.lock();
            keyspace.check_exists()?;
            if change(&mut folding)?.is_some() {
                break;
            }
        }
        if folding.found == Found::Unknown {
            let found = folding.look_at_tables(keyspace)?;
            folding.was_looked_at = true;
            if !found {
                continue;
            }
        }
        if folds == MOST_FOLDS {
            return Err(has_operands(keyspace));
        }
        folds += 1;
        if folding.found == Found::InMemory {
            flush::flush_now(inner)?;
        } else {
            compaction::compact_now(inner, Some(keyspace.id))?;
            // It may have taken long: little is to be left to a flush under the writer lock.
            flush::flush_now(inner)?;
        }
        folding.was_flushed = true;
    }
    if folding.rotated {
        // What was rotated holds memory and log until it is flushed. The change is made, whatever
        // becomes of the work that is due now.
        let _ = run::work_was_added(inner);
    }
    Ok(())
}

fn has_operands(keyspace: &KeyspaceInner) -> Error {
    Error::invalid(format!(
        "keyspace {:?} has merge operands that cannot be folded: a snapshot, an iterator or a transaction sees what is \
         below them, the operator failed or was not supplied, other threads merge, or the style is FIFO; end these, or \
         copy the keyspace into a new one",
        keyspace.name()
    ))
}

/// Where there are operands.
#[derive(Clone, Copy, Default, PartialEq)]
enum Found {
    /// Tables are to be read first, without a lock.
    #[default]
    Unknown,
    InTables,
    /// Or in the log, and combined in a memtable.
    InMemory,
}

/// What is known of the operands of a keyspace.
#[derive(Default)]
struct Folding {
    found: Found,
    /// Tables that have none.
    without: BTreeSet<PathBuf>,
    /// The tables have just been read, but for those that have come meanwhile.
    was_looked_at: bool,
    /// What was in memtables at the beginning is in tables.
    was_flushed: bool,
    /// A memtable waits for its flush.
    rotated: bool,
}

impl Folding {
    /// The writer lock, if neither a read nor a recovery that begins from now on finds a merge
    /// operand in the keyspace. The caller holds the job lock.
    fn lock_without_operands<'i>(
        &mut self,
        inner: &'i Inner,
        keyspace: &KeyspaceInner,
    ) -> Result<Option<MutexGuard<'i, Writer>>> {
        check_writable(inner)?;
        let was_looked_at = std::mem::take(&mut self.was_looked_at);
        if keyspace.ttl().is_enabled() && !was_looked_at {
            // It may take as long as reading all of them does: no flush would end meanwhile.
            let read_state = keyspace.read_state.load();
            if read_state.version.tables().any(|(_, table)| !self.without.contains(table.path())) {
                self.found = Found::Unknown;
                return Ok(None);
            }
        }
        if self.look_at_tables(keyspace)? {
            return Ok(None);
        }
        let mut writer = inner.lock_writer();
        inner.error_state.check()?;
        if !keyspace.read_state.load().memtables().any(|memtable| memtable.has_merges()) {
            return Ok(Some(writer));
        }
        self.found = Found::InMemory;
        if !self.was_flushed {
            return Ok(None);
        }
        // Others merge: there is little in memory, and no more comes in between.
        flush::flush_locked(inner, &mut writer)?;
        Ok(if self.look_at_tables(keyspace)? { None } else { Some(writer) })
    }

    /// Whether there are operands in tables. Reads only those that are not known.
    fn look_at_tables(&mut self, keyspace: &KeyspaceInner) -> Result<bool> {
        let expires = keyspace.ttl().is_enabled();
        let version = Arc::clone(&keyspace.read_state.load().version);
        for (_, table) in version.tables() {
            if !self.without.contains(table.path()) {
                if has_operand(&table, expires)? {
                    self.found = Found::InTables;
                    return Ok(true);
                }
                self.without.insert(table.path().to_path_buf());
            }
        }
        Ok(false)
    }
}

/// Whether the table has merge operands. It counts those only that start from something.
fn has_operand(table: &Arc<Table>, expires: bool) -> Result<bool> {
    if table.summary().merges > 0 || !expires {
        return Ok(table.summary().merges > 0);
    }
    let mut cursor = table.cursor(false);
    cursor.seek_to_first()?;
    while cursor.valid() {
        if cursor.entry().kind == Kind::MergeFirst {
            return Ok(true);
        }
        cursor.next()?;
    }
    Ok(false)
}

/// Whether the settings `now` change the meaning of a follower's memtables or open tables. The
/// follower then reads everything again under the new settings.
pub fn needs_folding(before: &KeyspaceRecord, now: &KeyspaceRecord) -> bool {
    before.operator.is_some() && (before.operator != now.operator || before.ttl == 0 && now.ttl != 0)
}

/// Takes over what the writer that is followed has changed from `before`. The epoch of what
/// is read with them.
pub fn take_over(
    inner: &Inner,
    writer: &mut Writer,
    keyspace: &KeyspaceInner,
    before: &KeyspaceRecord,
    now: &KeyspaceRecord,
) -> MergeEpoch {
    let mut merge_epoch = Arc::clone(&keyspace.read_state.load().merge_epoch);
    if needs_folding(before, now) {
        merge_epoch = keyspace.keep_merge_settings();
    }
    if before.ttl != now.ttl {
        apply_ttl(inner, writer, keyspace, now.ttl);
    }
    if let Some(name) = now.operator.as_deref().filter(|_| before.operator != now.operator) {
        apply_operator(inner, writer, keyspace, name, keyspaces::stored_operator(now));
    }
    merge_epoch
}
