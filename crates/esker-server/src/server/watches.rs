//! Keys that connections watch for their next EXEC.

use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The keys that a connection watches.
#[derive(Debug, Default)]
pub struct Watch {
    is_touched: Arc<AtomicBool>,
    /// Each with its logical database, and whether it existed.
    pub keys: HashMap<(usize, Bytes), bool>,
}

impl Watch {
    /// Whether a watched key was written since.
    pub fn is_touched(&self) -> bool {
        self.is_touched.load(Ordering::Relaxed)
    }
}

/// A connection that watches a key.
#[derive(Debug)]
struct Watcher {
    is_touched: Arc<AtomicBool>,
    /// Whether the key existed when it was first watched.
    existed: bool,
}

/// All watched keys, with their logical databases.
#[derive(Debug, Default)]
pub struct Watches(HashMap<(usize, Bytes), Vec<Watcher>>);

impl Watches {
    /// Adds a key to those of a connection.
    pub fn add(&mut self, watch: &mut Watch, database: usize, key: &Bytes, exists: bool) {
        // The key outlives the buffer that it came in.
        let place = (database, Bytes::copy_from_slice(key));
        if watch.keys.contains_key(&place) {
            return;
        }
        let watcher = Watcher { is_touched: Arc::clone(&watch.is_touched), existed: exists };
        self.0.entry(place.clone()).or_default().push(watcher);
        watch.keys.insert(place, exists);
    }

    /// Forgets what a connection watches.
    pub fn remove(&mut self, watch: Watch) {
        for place in watch.keys.into_keys() {
            if let Some(watchers) = self.0.get_mut(&place) {
                watchers.retain(|watcher| !Arc::ptr_eq(&watcher.is_touched, &watch.is_touched));
                if watchers.is_empty() {
                    self.0.remove(&place);
                }
            }
        }
    }

    /// Tells those that watch the key that it was written.
    pub fn touch(&self, key: &(usize, Bytes)) {
        for watcher in self.0.get(key).into_iter().flatten() {
            watcher.is_touched.store(true, Ordering::Relaxed);
        }
    }

    /// Tells those that watch keys of a database that was emptied or swapped. A key that was not
    /// there has not changed, unless the swap has brought one: EXEC looks for that.
    pub fn touch_all(&self, database: usize) {
        for (_, watchers) in self.0.iter().filter(|((other, _), _)| *other == database) {
            for watcher in watchers.iter().filter(|watcher| watcher.existed) {
                watcher.is_touched.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Whether nobody watches anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
