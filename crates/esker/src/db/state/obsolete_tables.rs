//! Tables that are in no version any more, and whose files are removed when no reader holds them.
//!
//! A reader holds a table by a read state, a cursor or a value, all of which count in its
//! references. A reader that loaded the old read state still holds it, and no other reader can
//! reach it: a table whose only reference is the one in here stays unread. Its file is removed by
//! `remover.rs`.
//!
//! The interleavings are tried by `db/interleavings/read_states.rs`.

use crate::base::sync::Mutex;
use crate::table::Table;
use std::sync::Arc;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct ObsoleteTables(Mutex<Vec<Arc<Table>>>);

impl ObsoleteTables {
    /// Takes tables that are in no read state any more, or never were.
    pub fn add(&self, tables: impl IntoIterator<Item = Arc<Table>>) {
        self.0.lock().extend(tables);
    }

    /// Takes out the tables that no reader holds, whose files can be removed.
    pub fn take_unread(&self) -> Vec<Arc<Table>> {
        // Versions and cursors hold the others. None can come back: the table is in no version that
        // a reader could load.
        self.0.lock().extract_if(.., |table| Arc::strong_count(table) == 1).collect()
    }

    /// Those that are still read.
    pub fn for_each(&self, visit: impl FnMut(&Arc<Table>)) {
        self.0.lock().iter().for_each(visit);
    }
}
