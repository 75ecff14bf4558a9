//! Transactions: the read set, the write set, and conflict detection at commit.
//!
//! | file | what it holds |
//! |---|---|
//! | `write_set` | what a transaction would write, and its reads of keys |
//! | `range_set` | the ranges it would delete |
//! | `read_set` | what it has read |
//! | `read_keys` | the keys of it that were looked up |
//! | `scan` | its scans |
//! | `conflict` | whether it may be committed |

pub mod conflict;
pub mod range_set;
pub mod read_keys;
pub mod read_set;
pub mod scan;
pub mod write_set;
