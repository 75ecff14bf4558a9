//! The write path.
//!
//! | file | what it holds |
//! |---|---|
//! | `batch_size` | what a record of the log needs of each memtable |
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
pub mod merge_expiry;
