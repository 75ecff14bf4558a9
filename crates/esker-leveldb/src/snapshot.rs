//! Snapshots.

use crate::objects::*;
use crate::status::told;
use std::ptr;

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(db: *mut leveldb_t) -> *const leveldb_snapshot_t {
    told("leveldb_create_snapshot", || {
        Ok(leveldb_snapshot_t::make(SnapshotObject(leveldb_t::get(db)?.0.db.snapshot()))?.cast_const())
    })
    .unwrap_or(ptr::null())
}

/// See LevelDB's header. Reads with options that still name the snapshot fail.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_release_snapshot(db: *mut leveldb_t, snapshot: *const leveldb_snapshot_t) {
    let _ = db;
    told("leveldb_release_snapshot", || leveldb_snapshot_t::close(snapshot));
}
