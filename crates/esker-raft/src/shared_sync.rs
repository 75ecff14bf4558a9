//! One sync of the log for all appends that wait for one.

use crate::executor::Executor;
use crate::types::TypeConfig;
use esker::Db;
use openraft::storage::IOFlushed;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The appends of one log that are written and not yet durable.
///
/// One sync runs at a time. Appends that are written during it wait together for the next one, so
/// the number of syncs is that of the rounds, whatever the number of appends.
pub(crate) struct SharedSync {
    db: Db,
    executor: Executor,
    queue: Mutex<Queue>,
    syncs: AtomicU64,
    #[cfg(test)]
    pub planted: crate::planted::Planted,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<IOFlushed<TypeConfig>>,
    is_running: bool,
}

impl SharedSync {
    pub fn new(db: Db, executor: Executor) -> SharedSync {
        SharedSync {
            db,
            executor,
            queue: Mutex::default(),
            syncs: AtomicU64::new(0),
            #[cfg(test)]
            planted: crate::planted::Planted::default(),
        }
    }

    /// Calls back when everything that was written before is durable, or when it cannot become so.
    pub fn then(self: &Arc<SharedSync>, callback: IOFlushed<TypeConfig>) {
        #[cfg(test)]
        if self.planted.acknowledges_before_the_sync() {
            callback.io_completed(Ok(()));
            return;
        }
        let is_first = {
            let mut queue = self.queue.lock();
            queue.waiting.push(callback);
            !std::mem::replace(&mut queue.is_running, true)
        };
        if is_first {
            let this = Arc::clone(self);
            self.executor.start(move || this.run());
        }
    }

    /// Syncs until nothing waits.
    fn run(&self) {
        loop {
            let group = {
                let mut queue = self.queue.lock();
                queue.is_running = !queue.waiting.is_empty();
                std::mem::take(&mut queue.waiting)
            };
            if group.is_empty() {
                return;
            }
            self.syncs.fetch_add(1, Ordering::Relaxed);
            let failure = self.db.sync().err().map(|error| error.to_string());
            for callback in group {
                callback.io_completed(failure.as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone()))));
            }
        }
    }

    /// How often it has synced.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}
