//! The log record of a write being encoded, and the memtable bytes that the write will need.

use crate::base::batch::Operation;
use crate::memtable::entry_bytes;
use crate::wal::format::RECORD_HEADER_BYTES;

/// Arena bytes that one keyspace needs for a write.
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

/// Adds arena bytes that the keyspace needs: 0 for a range delete, which is kept elsewhere.
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
