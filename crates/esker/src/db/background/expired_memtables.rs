//! Memtables of an idle database whose expiring entries have all expired: they are rotated, and
//! their flush gives the bytes back.

use crate::db::background::rotate::rotate;
use crate::db::state::inner::{Inner, KeyspaceInner};

/// When the keyspace's active memtable is due; none if nothing in it expires.
pub fn due_ms(keyspace: &KeyspaceInner) -> Option<u64> {
    if !keyspace.ttl().is_enabled() {
        return None;
    }
    Some(keyspace.read_state.load().active.last_expiry_ms()).filter(|&expiry_ms| expiry_ms > 0)
}

/// Rotates every active memtable that is due.
pub fn rotate_due(inner: &Inner) {
    for keyspace in inner.all_keyspaces() {
        if due_ms(&keyspace).is_some_and(|due_ms| inner.now_ms(&keyspace) >= due_ms) {
            rotate(inner, &mut inner.writer.lock(), keyspace.id, 0);
        }
    }
}
