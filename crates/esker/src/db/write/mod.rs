//! The write path.
//!
//! | file | what it holds |
//! |---|---|
//! | `batch_size` | what a record of the log needs of each memtable |
//! | `make_room` | the writer lock, taken when there is room |
//! | `lock_within` | the same for writes that are not to wait |
//! | `commit` | one lock around log and memtable |
//! | `conditional` | a condition on the value that a write replaces |
//! | `in_place_write` | writes of eight bytes without that lock |
//! | `merge_expiry` | merges into keyspaces with time to live: their base is decided when they are written |
//! | `collapse_operands` | chains of merge operands are collapsed |

pub mod batch_size;
pub mod collapse_operands;
pub mod commit;
pub mod conditional;
pub mod in_place_write;
pub mod lock_within;
pub mod make_room;
pub mod merge_expiry;
