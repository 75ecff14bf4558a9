//! Who waits for keys to be filled, on this node.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

/// A key with its logical database.
pub type Place = (usize, Bytes);

/// Those that wait for keys. Every replica applies every entry, so each one notices what is filled.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    by_key: HashMap<Place, BTreeMap<u64, Arc<Notify>>>,
}

/// One that waits, until it is dropped.
#[derive(Debug)]
pub struct Waiter {
    notices: Arc<Notices>,
    number: u64,
    keys: Vec<Place>,
    notify: Arc<Notify>,
}

impl Notices {
    /// Waits for one of the keys from now on.
    pub fn wait_for(self: &Arc<Notices>, keys: Vec<Place>) -> Waiter {
        let notify = Arc::new(Notify::new());
        let mut waiting = self.0.lock();
        waiting.next += 1;
        let number = waiting.next;
        for key in &keys {
            waiting.by_key.entry(key.clone()).or_default().insert(number, Arc::clone(&notify));
        }
        drop(waiting);
        Waiter { notices: Arc::clone(self), number, keys, notify }
    }

    /// The keys were filled, and the logical databases were swapped.
    pub fn tell(&self, filled: &[Place], replaced: &[usize]) {
        if filled.is_empty() && replaced.is_empty() {
            return;
        }
        let waiting = self.0.lock();
        for key in filled {
            waiting.by_key.get(key).into_iter().flat_map(BTreeMap::values).for_each(|notify| notify.notify_one());
        }
        for (_, waiters) in waiting.by_key.iter().filter(|((database, _), _)| replaced.contains(database)) {
            waiters.values().for_each(|notify| notify.notify_one());
        }
    }

    /// Anything may have been filled, as when the state came with a snapshot.
    pub fn tell_all(&self) {
        self.0.lock().by_key.values().flat_map(BTreeMap::values).for_each(|notify| notify.notify_one());
    }
}

impl Waiter {
    /// Returns when one of the keys was filled since the last time.
    pub async fn filled(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.notices.0.lock();
        for key in &self.keys {
            if let Some(waiters) = waiting.by_key.get_mut(key) {
                waiters.remove(&self.number);
                if waiters.is_empty() {
                    waiting.by_key.remove(key);
                }
            }
        }
    }
}
