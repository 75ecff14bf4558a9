//! How far a follower is, and how far behind its writer.

use crate::base::key::Sequence;
use crate::db::lifecycle::recovery::decode;
use crate::error::Result;
use crate::wal::format::record_bytes;
use crate::wal::tail::{End, LogTail, Taken};

/// How far a follower is.
///
/// ```
/// # use esker::{Db, Options, env::mem::MemEnv};
/// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
/// # let writer = Db::open("data", options.clone())?;
/// # writer.keyspace("names", Default::default())?;
/// # let follower = Db::open_follower("data", options)?;
/// # writer.existing_keyspace("names")?.put("ada", "1815")?;
/// let progress = follower.catch_up()?;
/// assert_eq!((progress.batches, progress.sequence), (1, writer.snapshot().sequence()));
/// assert!(progress.at_end && progress.log_bytes > 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowerProgress {
    /// The sequence number of the follower's last write. It has every write before that one.
    pub sequence: Sequence,
    /// Batches that this call has read from the log.
    pub batches: u64,
    /// The bytes of log that these batches take, which is how far the follower was behind. Batches
    /// that are read again because their table is new are not counted, nor, if the call had to
    /// read everything anew, those that an open reads.
    pub log_bytes: u64,
    /// Whether the follower reached the end of the log as the writer had written it when this call
    /// last read. Later writes are unknown to it: see [`Follower::lag`](crate::Follower::lag).
    /// False also if the log continues after a place where an open would end, such as damage.
    pub at_end: bool,
}

/// How far a follower is behind its writer.
///
/// ```
/// # use esker::{Db, Options, env::mem::MemEnv};
/// # let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
/// # let writer = Db::open("data", options.clone())?;
/// # let names = writer.keyspace("names", Default::default())?;
/// # let follower = Db::open_follower("data", options)?;
/// names.put("ada", "1815")?;
/// let lag = follower.lag()?.expect("the log is there");
/// assert_eq!((lag.batches, lag.sequence), (1, writer.snapshot().sequence()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowerLag {
    /// Batches in the log that the follower has not read.
    pub batches: u64,
    /// The bytes of log that they take.
    pub log_bytes: u64,
    /// The sequence number of the last write in them; if there are none, of the last write that the
    /// follower has.
    pub sequence: Sequence,
}

impl FollowerLag {
    /// What `tail` still has to read, of a follower whose last write is `sequence`. None if the log
    /// is gone.
    pub(crate) fn read(mut tail: LogTail, sequence: Sequence) -> Result<Option<FollowerLag>> {
        let mut lag = FollowerLag { sequence, ..FollowerLag::default() };
        let end = tail.read(None, &mut |record, _| {
            let writes = decode(&record)?.len() as u64;
            lag.batches += 1;
            lag.log_bytes += record_bytes(record.payload.len());
            lag.sequence = lag.sequence.max(record.sequence + writes.saturating_sub(1));
            Ok(Taken::Yes)
        })?;
        Ok(Some(lag).filter(|_| end != End::Lost))
    }
}
