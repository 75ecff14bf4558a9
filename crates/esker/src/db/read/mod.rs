//! The read path: one key, and a range.
//!
//! | file | what it holds |
//! |---|---|
//! | `get` | one key |
//! | `scan` | a range |
//! | `memtable_sort` | when the entries of a memtable are sorted |
//! | `blob_value` | large values: moved to blob files when written, loaded when read |

pub mod blob_value;
pub mod get;
pub mod memtable_sort;
pub mod scan;
