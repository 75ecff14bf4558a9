//! The log record of a write being encoded, and the memtable bytes that the write will need.

use crate::base::batch::{Operation, RangeDelete};
use crate::base::range_tombstone::tombstone_bytes;
use crate::memtable::entry_bytes;
use crate::wal::format::RECORD_HEADER_BYTES;

/// Bytes that one keyspace needs for a write. All of them count against the memory budget, and must
/// be free in the arena: those of a range delete as well, though its tombstone is kept apart. That
/// only ends a memtable a little earlier.
pub type ArenaReservation = (u64, usize);

/// The arena bytes of one operation.
#[inline]
pub fn reservation_bytes(operation: &Operation<'_>) -> usize {
    entry_bytes(operation.key.len(), operation.value.len(), operation.expiry_ms)
}

/// Adds what an operation needs.
pub fn add_reservation(needs: &mut Vec<ArenaReservation>, operation: &Operation<'_>) {
    add_reservation_bytes(needs, operation.keyspace, reservation_bytes(operation));
}

/// The bytes of one range delete. Where snapshots, or readers beside its batch, need older
/// tombstones over the same keys, it takes more, which is charged once it is known (`commit.rs`).
pub fn range_reservation_bytes(range: &RangeDelete<'_>) -> usize {
    tombstone_bytes(range.start.len(), range.end.len())
}

/// Adds what a range delete needs.
pub fn add_range_reservation(needs: &mut Vec<ArenaReservation>, range: &RangeDelete<'_>) {
    add_reservation_bytes(needs, range.keyspace, range_reservation_bytes(range));
}

/// Adds bytes that the keyspace needs.
pub fn add_reservation_bytes(needs: &mut Vec<ArenaReservation>, keyspace: u64, need: usize) {
    match needs.iter_mut().find(|(other, _)| *other == keyspace) {
        Some((_, bytes)) => *bytes += need,
        None => needs.push((keyspace, need)),
    }
}

/// An empty record: space for the header, and the operations to come.
pub fn start_record(record: &mut Vec<u8>) {
    record.clear();
    record.resize(RECORD_HEADER_BYTES, 0);
}
