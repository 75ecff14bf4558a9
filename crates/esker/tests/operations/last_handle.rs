//! The last handle of a database goes in one of its callbacks: in a merge, in the thread that does
//! the work or in one of those that it is divided among, and in the one that calls listeners.

use crate::callbacks::{FOR_EVER, name_of_this_thread, outcome};
use crate::calling_env::Telling;
use crate::common::{DIRECTORY, wait_until};
use esker::env::mem::MemEnv;
use esker::{
    CompactionFilter, Db, Decision, Error, EventListener, FlushCompleted, Keyspace, KeyspaceOptions, MergeError,
    MergeOperator, Options,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

/// A callback that waits, once it is told to and called in that thread, for the last handle, and
/// drops it.
#[derive(Debug)]
struct Drops {
    thread: &'static str,
    waits: AtomicBool,
    has_begun: AtomicBool,
    handle: Mutex<mpsc::Receiver<Db>>,
    dropped: Mutex<mpsc::Sender<()>>,
}

impl Drops {
    fn called(&self) {
        if name_of_this_thread() == self.thread && self.waits.swap(false, SeqCst) {
            self.has_begun.store(true, SeqCst);
            drop(self.handle.lock().unwrap().recv_timeout(FOR_EVER).expect("the handle"));
            self.dropped.lock().unwrap().send(()).unwrap();
        }
    }
}

/// The operator, the filter, the environment or the listener.
#[derive(Clone, Debug)]
struct Callback(Arc<Drops>);

impl MergeOperator for Callback {
    fn name(&self) -> &str {
        "drops"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        self.0.called();
        Ok(Some([existing.unwrap_or_default(), &operands.concat()].concat()))
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl CompactionFilter for Callback {
    fn name(&self) -> &str {
        "drops"
    }

    fn decide(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.called();
        Decision::Keep
    }
}

impl EventListener for Callback {
    fn flush_completed(&self, _: &FlushCompleted) {
        self.0.called();
    }
}

/// What calls back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Operator,
    Filter,
    Env,
    Listener,
}

const KEYS: u64 = 120;

/// Each key gets a value, or one operand more.
fn write(k: &Keyspace, kind: Kind, round: usize) {
    // Other lengths: tables begin at other keys, so that a merge of few of them can be divided as
    // well.
    let bytes = vec![round as u8; 300 + 50 * (round % 3)];
    for number in 0..KEYS {
        match kind {
            Kind::Operator => k.merge(number.to_be_bytes(), &bytes).unwrap(),
            _ => k.put(number.to_be_bytes(), &bytes).unwrap(),
        }
    }
}

/// Two rounds of tables over the same keys, which the database merges by itself. Should that merge
/// not be divided, there are more. A flush cannot meet a callback that waits: no merge begins
/// before there are two runs, the second of which is that of the flush.
fn until_it_is_called(db: &Db, k: &Keyspace, kind: Kind, drops: &Drops) -> usize {
    for round in 1..=100 {
        write(k, kind, round);
        if !drops.has_begun.load(SeqCst) {
            db.flush().unwrap();
        }
        let runs = || db.stats().keyspaces[0].runs.len();
        wait_until("the callback is called or all is merged", || drops.has_begun.load(SeqCst) || runs() < 2);
        if drops.has_begun.load(SeqCst) {
            return round;
        }
    }
    panic!("a hundred merges, and none called back in {}", drops.thread);
}

fn drop_in(kind: Kind, thread: &'static str, background_threads: usize) {
    let env = Arc::new(MemEnv::new());
    let options = || {
        let options = Options::default().env(env.clone()).background_threads(background_threads);
        options.target_file_bytes(4 << 10).block_bytes(256)
    };
    let ((give, handle), (dropped, is_dropped)) = (mpsc::channel(), mpsc::channel());
    let (waits, has_begun) = (AtomicBool::new(false), AtomicBool::new(false));
    let drops = Drops { thread, waits, has_begun, handle: Mutex::new(handle), dropped: Mutex::new(dropped) };
    let callback = Callback(Arc::new(drops));
    let of_keyspace = || match kind {
        Kind::Operator => KeyspaceOptions::default().merge_operator(callback.clone()),
        Kind::Filter => KeyspaceOptions::default().compaction_filter(callback.clone()),
        Kind::Env | Kind::Listener => KeyspaceOptions::default(),
    };
    let of_database = match kind {
        Kind::Listener => options().event_listener(Arc::new(callback.clone())),
        Kind::Env => {
            let (own, called) = (callback.clone(), env.clone() as _);
            options().env(Arc::new(Telling { told: Arc::new(move |_| own.0.called()), called }))
        }
        _ => options(),
    };
    let db = Db::open(DIRECTORY, of_database).unwrap();
    let k = db.keyspace("k", of_keyspace()).unwrap();
    callback.0.waits.store(true, SeqCst);
    let rounds = until_it_is_called(&db, &k, kind, &callback.0);
    drop(k);
    give.send(db).unwrap();
    assert_eq!(is_dropped.recv_timeout(FOR_EVER), Ok(()), "it was dropped");
    let is_free = || !matches!(Db::open(DIRECTORY, options()), Err(Error::Locked { .. }));
    wait_until("the directory is free", is_free);
    // The threads have the database, and that has the environment and the callbacks.
    wait_until("the threads have ended", || Arc::strong_count(&env) == 1 && Arc::strong_count(&callback.0) == 1);
    let db = Db::open(DIRECTORY, options()).unwrap();
    let k = db.keyspace("k", of_keyspace()).unwrap();
    let last = k.get((KEYS - 1).to_be_bytes()).unwrap().unwrap();
    let of_rounds: usize = (1..=rounds).map(|round| 300 + 50 * (round % 3)).sum();
    assert_eq!(last.len(), if kind == Kind::Operator { of_rounds } else { 300 + 50 * (rounds % 3) });
    db.verify().unwrap();
}

/// Trap: a thread of a merge waits for the background thread to end, which waits for the threads of
/// its merge; or for itself; and the directory stays locked.
#[test]
fn the_last_handle_may_go_in_any_thread_of_the_database() {
    for (kind, thread, threads) in [
        (Kind::Operator, "esker-compaction", 2),
        (Kind::Filter, "esker-compaction", 2),
        (Kind::Filter, "esker-compaction", 4),
        (Kind::Filter, "esker-background", 1),
        (Kind::Env, "esker-compaction", 2),
        (Kind::Listener, "esker-events", 1),
        (Kind::Listener, "esker-events", 2),
        (Kind::Listener, "esker-events", 0),
    ] {
        let dropped = outcome(move || drop_in(kind, thread, threads));
        assert_eq!(dropped, Ok(()), "{kind:?} in {thread}, {threads} threads");
    }
}
