//! The write controller: whether writes go on, are delayed, or stop, and why.
//!
//! Memtables that wait for their flush and runs that wait for their compaction delay writers before
//! they stop them: a delayed writer sleeps in slices of at most 10 ms until the memtable is no
//! longer ahead of its target rate. A writer stops where going on would exceed a limit: immutable
//! memtables, runs, the memory budget, or the next segment of the log.
//!
//! | file | what it holds |
//! |---|---|
//! | `condition` | the decision: open, delayed or stopped, with the cause |
//! | `delay` | the target rate of a memtable, and the sleep of a writer ahead of it |
//! | `stop` | the wait of a writer that a limit stops |
//! | `wait_limit` | how long a write may wait that is not to wait for as long as it takes |
//! | `time_share` | how a flush divides the time of its thread with what writers need from it |

pub mod condition;
pub mod delay;
pub mod stop;
pub mod time_share;
pub mod wait_limit;
