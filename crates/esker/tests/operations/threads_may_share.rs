//! What may go to another thread, and what several may use at once.

use esker::{
    Batch, ChangeBatch, Changes, Cursor, Db, Error, Follower, Iter, Keys, Keyspace, KeyspaceOptions, Options, Slice,
    Snapshot, Stats, Transaction, TransactionIter, Watch, WriteOptions,
};

fn may_go<T: Send>() {}
fn may_be_shared<T: Send + Sync + 'static>() {}

#[test]
fn handles_are_shared_and_what_they_begin_may_go() {
    may_be_shared::<Db>();
    may_be_shared::<Keyspace>();
    may_be_shared::<Snapshot>();
    may_be_shared::<Follower>();
    may_be_shared::<Watch>();
    may_be_shared::<Options>();
    may_be_shared::<KeyspaceOptions>();
    may_be_shared::<WriteOptions>();
    may_be_shared::<Error>();
    may_be_shared::<Slice>();
    may_be_shared::<Stats>();
    may_be_shared::<ChangeBatch>();
    may_go::<Batch>();
    may_go::<Transaction>();
    may_go::<Iter>();
    may_go::<Keys>();
    may_go::<Cursor>();
    may_go::<Changes>();
    may_go::<TransactionIter<'static>>();
}
