//! Collapsing chains of merge operands.
//!
//! A memtable combines an operand with the newest entry of its key. Where that cannot be done (a
//! snapshot lies between, the operator declines, the value is long) operands are kept apart. The
//! write that makes them many looks up what the key holds, as a get would, and puts the value in
//! the place of its operand: one read for every [`LONG_CHAIN`] merges, in the thread that writes,
//! without a lock on anything but the choice of the operand and the replacement. The log keeps the
//! operands as they were written.
//!
//! [`LONG_CHAIN`]: crate::merge_operator::chain::LONG_CHAIN

use crate::base::key::{Kind, MAX_SEQUENCE, Sequence, hash};
use crate::db::background::rotate::rotate;
use crate::db::background::run;
use crate::db::read::get;
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::snapshots::ReadPoint;
use crate::db::write_controller::condition::stop_cause;
use crate::db::write_controller::wait_limit::TURN;
use parking_lot::MutexGuard;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A key whose newest entry in memory ends a long chain.
pub struct LongChain {
    pub keyspace: Arc<KeyspaceInner>,
    pub key: Vec<u8>,
}

/// The number of the operand that the key's chain ends with now, if it ends with one. Under the
/// writer lock: a write that is folded into an entry changes its value and its number, and a thread
/// that sees the number without the lock may still read the value before.
fn newest_operand(inner: &Inner, LongChain { keyspace, key }: &LongChain, may_wait: bool) -> Option<Sequence> {
    let mut newest = None;
    let _writer = lock(inner, may_wait)?;
    let _ = keyspace.read_state.load().active.get(key, hash(key), MAX_SEQUENCE, &mut |entry| {
        newest = (entry.kind == Kind::Merge).then_some(entry.sequence);
        ControlFlow::Break(())
    });
    newest
}

/// The writer lock. A writer may hold it while it waits for a segment of the log: one that is not
/// to wait leaves the chain to the write that makes it long the next time.
fn lock(inner: &Inner, may_wait: bool) -> Option<MutexGuard<'_, Writer>> {
    if may_wait { Some(inner.lock_writer()) } else { inner.writer.try_lock_for(TURN) }
}

/// Combines each, unless it cannot be read or was written again in the meantime. Call without a
/// lock. Without `may_wait`, not if the writer lock is held for longer than writes take.
#[cold]
pub fn collapse(inner: &Inner, chains: &[LongChain], may_wait: bool) {
    for chain in chains {
        let LongChain { keyspace, key } = chain;
        // Not what the write has put there: the rest of its batch, or another write, may have gone
        // on.
        let Some(sequence) = newest_operand(inner, chain, may_wait) else { continue };
        // What fails here fails at every read of the key, and is reported there.
        let point = ReadPoint { sequence, now_ms: inner.now_ms(keyspace), pins: None };
        let Ok(value) = get::get(inner, keyspace, key, point) else { continue };
        let Some(mut writer) = lock(inner, may_wait) else { continue };
        let newest_snapshot = inner.snapshots.newest();
        let Some(Some(target)) = writer.keyspaces.get_mut(keyspace.id as usize) else { continue };
        let had_room = target.memtable.replace_chain(hash(key), key, sequence, value.as_deref(), newest_snapshot);
        // A full memtable would take many more operands before it had no room for one of them.
        if !had_room && stop_cause(inner, keyspace).is_none() {
            rotate(inner, &mut writer, keyspace.id, 0);
            drop(writer);
            // What fails here is tried again, and reported, by the next flush.
            let _ = run::work_was_added(inner);
        }
    }
}
