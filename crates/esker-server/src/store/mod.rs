//! Where the data of clients lies in the keyspaces of a database, and how commands reach it.

mod context;
mod encoding;
mod entry;
mod glob;
mod keyspaces;
mod random;
mod thresholds;

pub use context::{Blocked, Context, Effects, Failure, Open, Outcome, WRONG_TYPE};
pub use encoding::{
    item_key, key_place, member_of, prefix_of_members, prefix_of_scores, score_key, score_of, sortable,
};
pub use entry::{Body, Collection, Entry, Kind};
pub use glob::matches_glob;
pub use keyspaces::{Keyspaces, OpenError};
pub use random::Random;
pub use thresholds::Thresholds;
