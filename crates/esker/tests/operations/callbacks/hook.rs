//! A database of which any callback can be made to make any call.

use crate::calling_env::Telling;
use crate::common::{DIRECTORY, Machine, START_MS, keyspace};
use esker::env::Env;
use esker::env::fault::FaultEnv;
use esker::{
    Clock, CompactionCompleted, CompactionFilter, Comparator, Db, Decision, EventListener, FilterPolicy,
    FlushCompleted, IngestCompleted, Keyspace, KeyspaceOptions, LatencyHistogram, MergeError, MergeOperator, Metric,
    Options, Recorder, Result, TableCreated, Ttl,
};
use std::cmp::Ordering;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any machine takes: the limit only turns a wait for ever into a failure.
pub const FOR_EVER: Duration = Duration::from_secs(300);

/// The database that a callback is of, and how it was opened.
pub struct Own {
    pub db: Db,
    pub options: Options,
}

impl Deref for Own {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

/// A call that a callback is to make, once.
pub type Call = Box<dyn FnOnce(&Own) -> Result<()> + Send>;

/// Which callback makes which call.
struct Armed {
    callback: &'static str,
    /// In which thread, if not in the first one that calls the callback.
    thread: Option<&'static str>,
    call: Call,
    own: Own,
}

impl Armed {
    fn is_for(&self, callback: &str) -> bool {
        self.callback == callback && self.thread.is_none_or(|thread| thread == name_of_this_thread())
    }
}

/// The callbacks of a database, each known by its trait and its name. One of them makes a call.
#[derive(Default)]
pub struct Hook {
    armed: Mutex<Option<Armed>>,
    /// What became of it, and in which thread.
    pub result: Mutex<Option<(Result<()>, String)>>,
    /// Whether threads of the database that are about to create a file wait, until the callback is
    /// called.
    is_held_up: Mutex<bool>,
    goes_on: Condvar,
    /// Stalls that the listener was told of.
    pub stalls_begun: AtomicU64,
}

pub fn name_of_this_thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

impl Hook {
    pub fn arm(&self, callback: &'static str, call: Call, own: Own) {
        self.arm_in(None, callback, call, own);
    }

    /// As [`Hook::arm`], for the thread of that name alone.
    pub fn arm_in(&self, thread: Option<&'static str>, callback: &'static str, call: Call, own: Own) {
        *self.armed.lock().unwrap() = Some(Armed { callback, thread, call, own });
    }

    pub fn called(&self, callback: &'static str) {
        let armed = self.armed.lock().unwrap().take_if(|armed| armed.is_for(callback));
        if let Some(Armed { call, own, .. }) = armed {
            self.let_go();
            let result = call(&own);
            drop(own);
            *self.result.lock().unwrap() = Some((result, name_of_this_thread()));
        }
    }

    pub fn was_called(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }

    pub fn has_returned(&self) -> bool {
        self.result.lock().unwrap().is_some()
    }

    pub fn hold_up(&self) {
        *self.is_held_up.lock().unwrap() = true;
    }

    pub fn let_go(&self) {
        *self.is_held_up.lock().unwrap() = false;
        self.goes_on.notify_all();
    }

    fn told(&self, name: &'static str) {
        if name == "Env::create" && name_of_this_thread() == "esker-background" {
            let held_up = self.is_held_up.lock().unwrap();
            drop(self.goes_on.wait_timeout_while(held_up, FOR_EVER, |held_up| *held_up).unwrap());
        }
        self.called(name);
    }
}

/// All callbacks of one hook.
#[derive(Clone)]
pub struct Calls(pub Arc<Hook>);

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Calls")
    }
}

impl MergeOperator for Calls {
    fn name(&self) -> &str {
        self.0.called("MergeOperator::name");
        "calls"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        self.0.called("MergeOperator::full_merge");
        Ok(Some([&[existing.unwrap_or_default()], operands].concat().concat()))
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.0.called("MergeOperator::partial_merge");
        (key != b"apart").then(|| [older, newer].concat())
    }

    fn may_delete(&self) -> bool {
        self.0.called("MergeOperator::may_delete");
        true
    }

    fn check_operand(&self, _: &[u8]) -> std::result::Result<(), MergeError> {
        self.0.called("MergeOperator::check_operand");
        Ok(())
    }
}

impl CompactionFilter for Calls {
    fn name(&self) -> &str {
        self.0.called("CompactionFilter::name");
        "calls"
    }

    fn decide(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.called("CompactionFilter::decide");
        Decision::Keep
    }
}

impl FilterPolicy for Calls {
    fn name(&self) -> &str {
        self.0.called("FilterPolicy::name");
        "calls"
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        self.0.called("FilterPolicy::create_filter");
        Some(vec![0; keys.len().min(8)])
    }

    fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool {
        self.0.called("FilterPolicy::key_may_match");
        true
    }
}

impl Comparator for Calls {
    fn name(&self) -> &str {
        self.0.called("Comparator::name");
        "calls"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.called("Comparator::compare");
        a.cmp(b)
    }
}

impl Clock for Calls {
    fn now_ms(&self) -> u64 {
        self.0.called("Clock::now_ms");
        START_MS
    }
}

impl EventListener for Calls {
    fn flush_completed(&self, _: &FlushCompleted) {
        self.0.called("EventListener::flush_completed");
    }
    fn compaction_completed(&self, _: &CompactionCompleted) {
        self.0.called("EventListener::compaction_completed");
    }
    fn ingest_completed(&self, _: &IngestCompleted) {
        self.0.called("EventListener::ingest_completed");
    }
    fn table_created(&self, _: &TableCreated) {
        self.0.called("EventListener::table_created");
    }
    fn table_removed(&self, _: &Path) {
        self.0.called("EventListener::table_removed");
    }
    fn stall_began(&self, _: &str, _: &str) {
        self.0.stalls_begun.fetch_add(1, Relaxed);
        self.0.called("EventListener::stall_began");
    }
    fn stall_ended(&self, _: &str, _: Duration) {
        self.0.called("EventListener::stall_ended");
    }
    fn background_error(&self, _: &str) {
        self.0.called("EventListener::background_error");
    }
    fn recovered(&self) {
        self.0.called("EventListener::recovered");
    }
    fn became_read_only(&self, _: &str) {
        self.0.called("EventListener::became_read_only");
    }
    fn missed(&self, _: u64) {
        self.0.called("EventListener::missed");
    }
}

impl Recorder for Calls {
    fn counter(&mut self, _: &'static Metric, _: Option<&str>, _: u64) {
        self.0.called("Recorder::counter");
    }
    fn gauge(&mut self, _: &'static Metric, _: Option<&str>, _: u64) {
        self.0.called("Recorder::gauge");
    }
    fn histogram(&mut self, _: &'static Metric, _: &LatencyHistogram) {
        self.0.called("Recorder::histogram");
    }
}

pub fn merging(calls: &Calls) -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(calls.clone()).compaction_filter(calls.clone())
}

pub fn ordered(calls: &Calls) -> KeyspaceOptions {
    KeyspaceOptions::default().comparator(calls.clone())
}

/// A database with all callbacks of one hook.
pub struct Site {
    pub hook: Arc<Hook>,
    pub faults: FaultEnv,
    pub options: Options,
    pub db: Db,
    /// A keyspace with a merge operator and a filter.
    pub k: Keyspace,
    /// A keyspace with a comparator.
    pub o: Keyspace,
}

impl Site {
    /// With faults there are no mappings.
    pub fn open(threads: usize, has_faults: bool) -> Site {
        let hook = Arc::new(Hook::default());
        let calls = Calls(Arc::clone(&hook));
        let machine = Machine::new();
        let faults = FaultEnv::new(machine.env.clone());
        let called: Arc<dyn Env> = if has_faults { Arc::new(faults.clone()) } else { machine.env.clone() };
        let of_env = Arc::clone(&hook);
        let env = Telling { told: Arc::new(move |name| of_env.told(name)), called };
        let options = machine.options().clock(Arc::new(calls.clone())).event_listener(Arc::new(calls.clone()));
        let options = options.filter_policy(Arc::new(calls.clone()));
        let options = options.comparator(Arc::new(calls.clone()));
        let options = options.env(Arc::new(env)).background_threads(threads).min_blob_size(1 << 10);
        let options = options.keep_changes(esker::ChangeRetention::Bytes(1 << 20));
        // Measured calls are made in another place than the others: both are tried.
        let options = options.latency_histograms(threads > 0);
        let db = Db::open(DIRECTORY, options.clone()).unwrap();
        keyspace(&db, "plain").put("ada", "1815").unwrap();
        let t = merging(&calls).ttl(Ttl::Enabled { default: None });
        let both = [("k", merging(&calls)), ("t", t)].map(|(name, options)| db.keyspace(name, options).unwrap());
        let o = db.keyspace("o", ordered(&calls)).unwrap();
        for in_tables in [true, false] {
            ["a", "b", "c"].iter().for_each(|key| o.put(key, "").unwrap());
            for k in &both {
                k.put("base", "b").unwrap();
                k.merge("together", "1").unwrap();
                k.merge("apart", "1").unwrap();
                k.merge("apart", "2").unwrap();
            }
            if in_tables {
                db.flush().unwrap();
            }
        }
        let [k, _] = both;
        Site { hook, faults, options, db, k, o }
    }

    pub fn own(&self) -> Own {
        Own { db: self.db.clone(), options: self.options.clone() }
    }
}
