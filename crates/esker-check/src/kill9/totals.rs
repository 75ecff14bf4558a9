//! What is counted.

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Kills.
    pub kills: u64,
    /// Kills before the child had acknowledged anything: while starting or recovering.
    pub early_kills: u64,
    /// Acknowledged commits, all found again.
    pub acknowledged: u64,
    /// Commits found that had not been acknowledged yet.
    pub unacknowledged: u64,
    /// Of the commits found, those that were transactions.
    pub transactions: u64,
    /// Loads found, commits and others.
    pub loads: u64,
    /// Calls made behind a commit, before it was acknowledged.
    pub steps: u64,
    /// Of these, changes of an expiry.
    pub expiries: u64,
    /// Of these, first pairs taken.
    pub popped: u64,
    /// Of these, keyspaces cleared.
    pub cleared: u64,
    /// Of these, keyspaces dropped.
    pub drops: u64,
    /// Names and settings of keyspaces that were changed.
    pub settings: u64,
    /// Databases.
    pub databases: u64,
    /// How often a follower caught up.
    pub followed: u64,
    /// How often a living child was too fast for one.
    pub outrun: u64,
    /// Kills behind which a keyspace had its other name.
    pub renamed: u64,
    /// Of the acknowledged commits, those in databases that keep their changes.
    pub with_changes: u64,
    /// Batches found in the changes.
    pub told: u64,
    /// How often changes had been given up before they were read.
    pub gone: u64,
}
