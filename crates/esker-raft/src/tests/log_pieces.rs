//! What is applied is read in pieces: after a start that may be most of a log, which need not fit
//! into memory.

use super::history::options;
use super::world::{apply, blank, entry, log_id, run, small_on};
use crate::log_store::READ_BYTES;
use crate::{Apply, Context, Entry, Error, Executor, LogStore, Rejection, Request, StateMachine, TypeConfig};
use esker::env::Env;
use esker::env::mem::MemEnv;
use esker::{Db, Options};
use futures_util::{StreamExt, TryStreamExt};
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{EntryPayload, RaftLogReader};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fifth of what is read at a time: a piece has four entries.
const PAYLOAD_BYTES: usize = READ_BYTES / 5 + 1;

fn log_on(env: &Arc<dyn Env>) -> LogStore {
    let db = Db::open("log", Options::default().env(Arc::clone(env))).unwrap();
    LogStore::open(&db, 1, Executor::InPlace).unwrap()
}

fn large(index: u64) -> Entry {
    entry(1, index, 0, Request::Apply(vec![7; PAYLOAD_BYTES]))
}

fn payload_bytes(entry: &Entry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(crate::Command { request: Request::Apply(payload), .. }) => payload.len(),
        _ => 0,
    }
}

/// Counts down by what it applies.
struct Counting(Arc<AtomicUsize>);

impl Apply for Counting {
    type Keyspaces = ();

    fn open(&self, _db: &Db) -> esker::Result<()> {
        Ok(())
    }

    fn apply(&self, _context: &mut Context<'_, ()>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
        self.0.fetch_sub(payload.len(), Ordering::Relaxed);
        Ok(Vec::new())
    }
}

#[test]
fn no_more_than_a_piece_of_what_is_applied_is_held() {
    run(async {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let mut log = log_on(&env);
        log.blocking_append((0..32).map(large)).await.unwrap();
        let held = Arc::new(AtomicUsize::new(0));
        let mut machine =
            StateMachine::open("state", Counting(Arc::clone(&held)), options(env.clone(), small_on(&env))).unwrap();
        let mut most = 0;
        let entries = log.entries_stream(0..32).await.inspect_ok(|entry| {
            let bytes = payload_bytes(entry);
            most = most.max(held.fetch_add(bytes, Ordering::Relaxed) + bytes);
        });
        let entries = Box::pin(entries.map_ok(|entry| (entry, None)));
        RaftStateMachine::<TypeConfig>::apply(&mut machine, entries).await.unwrap();
        assert_eq!(machine.database().applied().0, Some(log_id(1, 31)));
        assert_eq!(held.load(Ordering::Relaxed), 0);
        assert!((PAYLOAD_BYTES..=READ_BYTES).contains(&most), "{most} bytes were held, a piece has {READ_BYTES}");
    });
}

async fn streamed(log: &mut LogStore, range: std::ops::Range<u64>) -> io::Result<Vec<Entry>> {
    log.entries_stream(range).await.try_collect().await
}

/// The pieces together are what one read of all returns, also of entries longer than a piece.
#[test]
fn pieces_are_the_range() {
    run(async {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let mut log = log_on(&env);
        let longer = entry(1, 9, 0, Request::Apply(vec![8; READ_BYTES + 1]));
        let small = (10..40).map(|index| entry(1, index, 0, apply(Vec::new())));
        let entries: Vec<Entry> = (0..9).map(large).chain([longer]).chain(small).chain([blank(1, 40)]).collect();
        log.blocking_append(entries.clone()).await.unwrap();
        for (start, end) in [(0, 41), (0, 0), (3, 4), (2, 17), (9, 10), (8, 1_000), (40, 41), (50, 60)] {
            let found = streamed(&mut log, start..end).await.unwrap();
            assert_eq!(found, log.try_get_log_entries(start..end).await.unwrap(), "{start}..{end}");
        }
        // What was purged before is not missed; what goes under way is.
        log.purge(log_id(1, 1)).await.unwrap();
        assert_eq!(streamed(&mut log, 0..41).await.unwrap(), entries[2..]);
        let mut other = log.clone();
        let mut rest = Box::pin(log.entries_stream(0..41).await);
        assert_eq!(rest.next().await.unwrap().unwrap().index(), 2);
        other.purge(log_id(1, 8)).await.unwrap();
        let error = rest.try_collect::<Vec<_>>().await.unwrap_err();
        let error = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        assert!(matches!(error, Some(Error::Hole { missing: 6 })), "{error:?}");
    });
}
