//! Operations on the change feed: how long changes are kept, readers that are held, a follower's,
//! and watches.

use crate::feed::{ALL_BYTES, LEAST_KEPT_BYTES};
use crate::random::Random;
use esker::ChangeRetention;
use std::time::Duration;

/// Where a reader of changes begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest that is kept.
    Oldest,
    /// Behind the last write.
    Present,
    /// With the number that this one comes to among those that there are.
    Number(u64),
}

/// What a run does with changes.
#[derive(Clone, Debug)]
pub enum FeedOperation {
    /// Says how long changes are kept, from the next opening on.
    Keep(Option<ChangeRetention>),
    /// Reads all that are kept.
    ReadAll,
    /// Reads from a number on, which this one comes to; some are too small and some too large.
    ReadFrom(u64),
    /// Keeps a reader; `true`: of what is durable.
    Open(usize, Start, bool),
    /// It reads so many batches.
    ReadOn(usize, usize),
    /// It is asked whether there is more.
    Wait(usize),
    /// Drops it.
    Drop(usize),
    /// A follower, which is opened if there is none, catches up, and its reader reads so many
    /// batches.
    Follow(usize),
    /// Its reader reads so many without that.
    FollowerReadOn(usize),
    /// Drops the follower.
    DropFollower,
    /// Keeps a watch of the keys of a keyspace that begin with these bytes.
    Watch(usize, usize, Vec<u8>),
    /// It is asked whether there was a write.
    AskWatch(usize),
    /// Drops it.
    DropWatch(usize),
    /// Makes the log durable.
    Sync,
    /// Compares what a power failure would leave, which this number chooses.
    LosePower(u64),
}

impl FeedOperation {
    /// Those of the same kind that do less.
    pub fn simpler(&self) -> Vec<FeedOperation> {
        let fewer = |count: usize| [1, count / 2].into_iter().filter(move |&fewer| fewer < count);
        match self {
            FeedOperation::Keep(Some(retention)) if *retention != ALL => vec![FeedOperation::Keep(Some(ALL))],
            FeedOperation::Open(slot, start, true) => vec![FeedOperation::Open(*slot, *start, false)],
            FeedOperation::ReadOn(slot, count) => fewer(*count).map(|n| FeedOperation::ReadOn(*slot, n)).collect(),
            FeedOperation::Follow(count) => fewer(*count).map(FeedOperation::Follow).collect(),
            FeedOperation::FollowerReadOn(count) => fewer(*count).map(FeedOperation::FollowerReadOn).collect(),
            FeedOperation::Watch(slot, keyspace, prefix) if !prefix.is_empty() => {
                vec![FeedOperation::Watch(*slot, *keyspace, Vec::new())]
            }
            _ => Vec::new(),
        }
    }
}

/// Fewer, so that most are asked.
const WATCH_SLOTS: usize = 2;

/// All of them are kept.
const ALL: ChangeRetention = ChangeRetention::Bytes(ALL_BYTES);

/// For how long to keep changes.
pub fn retention(random: &mut Random) -> Option<ChangeRetention> {
    Some(match random.below(20) {
        0..=6 => ALL,
        7..=10 => ChangeRetention::Bytes(LEAST_KEPT_BYTES),
        11 => ChangeRetention::Bytes(0),
        12..=13 => ChangeRetention::Bytes(64 << 10),
        14..=16 => ChangeRetention::Time(Duration::from_millis(random.between(0, 300) as u64)),
        17..=18 => ChangeRetention::AsBefore,
        _ => return None,
    })
}

/// What to do with changes. A watch is of that keyspace and of keys that begin as this one.
pub fn choose(random: &mut Random, slot: usize, keyspace: usize, mut key: Vec<u8>) -> FeedOperation {
    match random.below(100) {
        0..=1 => FeedOperation::Keep(retention(random)),
        2..=4 => FeedOperation::ReadAll,
        5..=9 => FeedOperation::ReadFrom(random.next()),
        10..=19 => {
            let start = match random.below(4) {
                0 => Start::Oldest,
                1 => Start::Present,
                _ => Start::Number(random.next()),
            };
            FeedOperation::Open(slot, start, random.percent(30))
        }
        20..=45 => FeedOperation::ReadOn(slot, batches(random)),
        46..=53 => FeedOperation::Wait(slot),
        54 => FeedOperation::Drop(slot),
        55..=65 => FeedOperation::Follow(batches(random)),
        66..=69 => FeedOperation::FollowerReadOn(batches(random)),
        70 => FeedOperation::DropFollower,
        71..=79 => {
            let shorter = random.below(key.len().min(8) + 1);
            key.truncate(shorter);
            FeedOperation::Watch(slot % WATCH_SLOTS, keyspace, key)
        }
        80..=93 => FeedOperation::AskWatch(slot % WATCH_SLOTS),
        94 => FeedOperation::DropWatch(slot % WATCH_SLOTS),
        95..=98 => FeedOperation::Sync,
        _ => FeedOperation::LosePower(random.next()),
    }
}

/// How many batches to read: mostly all.
fn batches(random: &mut Random) -> usize {
    match random.below(10) {
        0 => 0,
        1..=3 => random.between(1, 5),
        4 => random.between(5, 100),
        _ => usize::MAX,
    }
}
