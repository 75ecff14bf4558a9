//! Who waits for keys to be filled, on this node.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

/// A key with its logical database.
pub type Place = (usize, Bytes);

/// Those that wait for keys. Every replica applies every entry, so each one notices what is filled.
///
/// Each one that is told tries to take something, which is an entry of the log. So only one is told
/// of a key that was filled: that which has waited longest, of those that were not told of it since
/// they last began to try. Until it has tried and found nothing it has to pass on what it was told:
/// if it ends before, it tells the next one, as there may be more.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    by_key: HashMap<Place, BTreeSet<u64>>,
    waiters: HashMap<u64, State>,
}

#[derive(Debug, Default)]
struct State {
    notify: Arc<Notify>,
    /// The keys that it was told of since it began to try.
    told: Vec<Place>,
    /// Places of earlier notices that were not found empty yet.
    tried: Vec<Place>,
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
        let state = State::default();
        let notify = Arc::clone(&state.notify);
        let mut waiting = self.0.lock();
        waiting.next += 1;
        let number = waiting.next;
        for key in &keys {
            waiting.by_key.entry(key.clone()).or_default().insert(number);
        }
        waiting.waiters.insert(number, state);
        drop(waiting);
        Waiter { notices: Arc::clone(self), number, keys, notify }
    }

    /// The keys were filled, and the logical databases were swapped.
    pub fn tell(&self, filled: &[Place], replaced: &[usize]) {
        if filled.is_empty() && replaced.is_empty() {
            return;
        }
        let mut waiting = self.0.lock();
        let Waiting { by_key, waiters, .. } = &mut *waiting;
        for key in filled {
            if let Some(numbers) = by_key.get(key) {
                tell_one(numbers, waiters, key);
            }
        }
        for (key, numbers) in by_key.iter().filter(|((database, _), _)| replaced.contains(database)) {
            tell_one(numbers, waiters, key);
        }
    }

    /// Anything may have been filled, as when the state came with a snapshot.
    pub fn tell_all(&self) {
        let mut waiting = self.0.lock();
        let Waiting { by_key, waiters, .. } = &mut *waiting;
        for (key, numbers) in by_key.iter() {
            tell_one(numbers, waiters, key);
        }
    }
}

/// Tells one of those that wait for the key. Where all were told, they have yet to try.
fn tell_one(numbers: &BTreeSet<u64>, waiters: &mut HashMap<u64, State>, key: &Place) {
    let is_new = |number: &&u64| waiters.get(number).is_some_and(|state| !state.told.contains(key));
    if let Some(state) = numbers.iter().find(is_new).and_then(|number| waiters.get_mut(number)) {
        state.told.push(key.clone());
        state.notify.notify_one();
    }
}

impl Waiter {
    fn with_state(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.notices.0.lock().waiters.get_mut(&self.number) {
            change(state);
        }
    }

    /// It tries to take something.
    pub fn begin(&self) {
        self.with_state(|state| state.tried.append(&mut state.told));
    }

    /// It has tried, and found nothing. Returns when one of the keys was filled since it began.
    pub async fn filled(&self) {
        self.with_state(|state| state.tried.clear());
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.notices.0.lock();
        let Waiting { by_key, waiters, .. } = &mut *waiting;
        let state = waiters.remove(&self.number).unwrap_or_default();
        for key in &self.keys {
            let Some(numbers) = by_key.get_mut(key) else { continue };
            numbers.remove(&self.number);
            if numbers.is_empty() {
                by_key.remove(key);
            } else if state.told.contains(key) || state.tried.contains(key) {
                tell_one(numbers, waiters, key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn place(key: &'static str) -> Place {
        (0, Bytes::from_static(key.as_bytes()))
    }

    /// Whether it would go on waiting; it begins to try if not.
    fn waits(waiter: &Waiter) -> bool {
        let polled = pin!(waiter.filled()).poll(&mut Context::from_waker(Waker::noop()));
        if polled == Poll::Ready(()) {
            waiter.begin();
        }
        polled.is_pending()
    }

    fn told(waiters: &[Waiter]) -> Vec<bool> {
        waiters.iter().map(|waiter| !waits(waiter)).collect()
    }

    fn begun(notices: &Arc<Notices>, keys: &[&[&'static str]]) -> Vec<Waiter> {
        let begin = |keys: &&[&'static str]| {
            let waiter = notices.wait_for(keys.iter().map(|key| place(key)).collect());
            waiter.begin();
            waiter
        };
        keys.iter().map(begin).collect()
    }

    #[test]
    fn one_is_told_of_each_key_and_the_next_when_it_ends() {
        let notices = Arc::new(Notices::default());
        let mut waiters = begun(&notices, &[&["a", "b"], &["b"], &["a"], &["a"]]);
        assert_eq!(told(&waiters), [false; 4]);
        notices.tell(&[place("a")], &[]);
        assert_eq!(told(&waiters), [true, false, false, false]);
        // It takes something, and there may be more of that key.
        drop(waiters.remove(0));
        assert_eq!(told(&waiters), [false, true, false]);
        // One that finds nothing tells nobody, neither when it ends later.
        assert_eq!(told(&waiters), [false; 3]);
        drop(waiters.remove(1));
        assert_eq!(told(&waiters), [false; 2]);
        notices.tell(&[], &[0]);
        assert_eq!(told(&waiters), [true, true]);
    }

    /// What is filled while one tries is not missed, and not if one that was told goes.
    #[test]
    fn nothing_is_missed() {
        let notices = Arc::new(Notices::default());
        let mut waiters = begun(&notices, &[&["a"], &["a"]]);
        notices.tell(&[place("a"), place("a"), place("a")], &[]);
        assert_eq!(told(&waiters), [true, true]);
        notices.tell(&[place("a")], &[]);
        assert_eq!(told(&waiters), [true, false]);
        assert_eq!(told(&waiters), [false, false]);
        notices.tell(&[place("a")], &[]);
        drop(waiters.remove(0));
        assert_eq!(told(&waiters), [true]);
        notices.tell_all();
        assert_eq!(told(&waiters), [true]);
        drop(waiters);
        let waiting = notices.0.lock();
        assert!(waiting.by_key.is_empty() && waiting.waiters.is_empty());
    }
}
