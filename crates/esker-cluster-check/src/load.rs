//! The clients of a cluster: they use objects all the time, each of which has a short history.

use crate::client::{Client, Outcome, text, texts};
use crate::history::History;
use crate::specification::{Found, MEMBERS, Object, Use};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis_protocol::resp2::types::OwnedFrame;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many clients there are.
pub const CLIENTS: usize = 6;
/// How long a client waits for a reply.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// After so many uses that ended an object is left, and others take its place.
const USES: usize = 40;
/// Or after so many of which nothing is known: each doubles what a check tries.
const MOST_OPEN: usize = 6;

/// What the clients have done.
#[derive(Debug, Default)]
pub struct Totals {
    /// Uses that ended.
    pub done: AtomicU64,
    /// Uses of which nothing is known.
    pub unknown: AtomicU64,
    /// Uses that were refused, or did not reach a server.
    pub refused: AtomicU64,
}

struct Shared {
    began: Instant,
    /// The objects in use.
    current: Mutex<Vec<Arc<History>>>,
    all: Mutex<Vec<Arc<History>>>,
    nodes: Mutex<Vec<SocketAddr>>,
    value: AtomicU64,
    is_over: AtomicBool,
    /// How far ahead clocks may have been: leases may have ended that much earlier.
    most_ahead_ms: AtomicU64,
    totals: Totals,
}

/// The clients at work.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The objects of a number: their keys begin with the name of their kind.
fn objects(number: u64) -> Vec<Arc<History>> {
    let all = [
        ("register", Object::Register(None)),
        ("counter", Object::Counter(0)),
        ("set", Object::Set(Default::default())),
        ("lease", Object::Lease(None)),
    ];
    all.into_iter().map(|(kind, object)| Arc::new(History::new(format!("{kind}-{number}"), object))).collect()
}

impl Load {
    /// Starts the clients of a cluster of these nodes.
    pub fn start(seed: u64, nodes: Vec<SocketAddr>) -> Load {
        let first = objects(0);
        let shared = Arc::new(Shared {
            began: Instant::now(),
            current: Mutex::new(first.clone()),
            all: Mutex::new(first),
            nodes: Mutex::new(nodes),
            value: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
            most_ahead_ms: AtomicU64::new(0),
            totals: Totals::default(),
        });
        let threads = (0..CLIENTS).map(|number| {
            let random = StdRng::seed_from_u64(seed ^ ((number as u64 + 1) << 40));
            let mut worker = Worker { number, shared: Arc::clone(&shared), random, connected: None };
            thread::spawn(move || worker.work())
        });
        let threads = threads.collect();
        Load { shared, threads }
    }

    /// Tells the clients which nodes there are.
    pub fn set_nodes(&self, nodes: Vec<SocketAddr>) {
        *locked(&self.shared.nodes) = nodes;
    }

    /// Tells the clients, before it is so, that a clock is so far ahead.
    pub fn expect_ahead_ms(&self, ahead_ms: u64) {
        self.shared.most_ahead_ms.fetch_max(ahead_ms, Ordering::Relaxed);
    }

    /// What was done so far.
    pub fn totals(&self) -> &Totals {
        &self.shared.totals
    }

    /// Ends the clients, and reads every object once more; the histories.
    ///
    /// # Errors
    /// An object cannot be read.
    pub fn finish(&mut self) -> Result<Vec<Arc<History>>, String> {
        self.stop()?;
        let histories = locked(&self.shared.all).clone();
        let random = StdRng::seed_from_u64(0);
        let mut reader = Worker { number: CLIENTS, shared: Arc::clone(&self.shared), random, connected: None };
        for history in &histories {
            reader.read_last(history)?;
        }
        Ok(histories)
    }
}

impl Load {
    fn stop(&mut self) -> Result<(), String> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let ended: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        if ended.iter().any(Result::is_err) { Err("a client panicked".into()) } else { Ok(()) }
    }
}

/// The next cluster has the addresses of this one: a client that went on would use its objects.
impl Drop for Load {
    fn drop(&mut self) {
        // `finish` tells of a panic.
        let _ = self.stop();
    }
}

struct Worker {
    number: usize,
    shared: Arc<Shared>,
    random: StdRng,
    connected: Option<(SocketAddr, Client)>,
}

impl Worker {
    fn work(&mut self) {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(self.random.random_range(5..120)));
            let history = {
                let current = locked(&self.shared.current);
                Arc::clone(&current[self.random.random_range(0..current.len())])
            };
            let what = self.draw(history.object());
            self.make(&history, what);
            let (ended, open) = history.counts();
            if ended >= USES || open >= MOST_OPEN {
                self.replace(&history);
            }
        }
    }

    /// Puts a new object of the kind in the place of one.
    fn replace(&self, history: &Arc<History>) {
        let mut current = locked(&self.shared.current);
        let Some(place) = current.iter().position(|other| Arc::ptr_eq(other, history)) else { return };
        let mut all = locked(&self.shared.all);
        let next = objects(all.len() as u64).swap_remove(place);
        all.push(Arc::clone(&next));
        current[place] = next;
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.shared.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn draw(&mut self, object: &Object) -> Use {
        let is_read = self.random.random_range(0..5) < 2;
        let value = self.shared.value.fetch_add(1, Ordering::Relaxed);
        let member = self.random.random_range(0..MEMBERS);
        match object {
            _ if is_read => Use::Read,
            Object::Register(_) => Use::Write(value),
            Object::Counter(_) => Use::Add(self.random.random_range(1..100)),
            Object::Set(_) if self.random.random_range(0..3) == 0 => Use::Remove(member),
            Object::Set(_) => Use::Insert(member),
            Object::Lease(_) => {
                let ttl_ms = self.random.random_range(50..2_500);
                // Filled in when it begins.
                Use::Grant { value, ttl_ms, not_before_ms: 0 }
            }
        }
    }

    /// The client of some node, mostly of the one that it had before.
    fn client(&mut self) -> Option<&mut Client> {
        let nodes = locked(&self.shared.nodes).clone();
        let is_known = self.connected.as_ref().is_some_and(|(address, _)| nodes.contains(address));
        if !is_known || self.random.random_range(0..8) == 0 {
            let address = *nodes.get(self.random.random_range(0..nodes.len().max(1)))?;
            self.connected = Some((address, Client::new(address, PATIENCE)));
        }
        self.connected.as_mut().map(|(_, client)| client)
    }

    /// Uses an object once; whether it is known what came of it.
    fn make(&mut self, history: &History, what: Use) -> bool {
        let what = match what {
            Use::Grant { value, ttl_ms, .. } => {
                // How far clocks jump until it ends is told before they do.
                let not_before_ms = self.now_ms() + ttl_ms;
                Use::Grant { value, ttl_ms, not_before_ms }
            }
            what => what,
        };
        let arguments = arguments(history.key(), history.object(), &what);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (number, begun_ms) = (self.number, self.now_ms());
        let Some(client) = self.client() else { return false };
        let call = history.begin(number, what.clone());
        let outcome = client.call(&arguments);
        let totals = &self.shared.totals;
        match outcome {
            Outcome::Done(frame) => {
                // A clock that is ahead makes a lease end early, as if it was read later, and those
                // that are behind it make later ones end late.
                let ahead_ms = self.shared.most_ahead_ms.load(Ordering::Relaxed);
                let times = (begun_ms.saturating_sub(ahead_ms), self.now_ms() + ahead_ms);
                match found(history.object(), &what, &frame, times) {
                    Some(found) => {
                        history.end(call, found);
                        totals.done.fetch_add(1, Ordering::Relaxed);
                        return true;
                    }
                    None => history.end(call, Found::Nonsense(format!("{frame:?}"))),
                }
            }
            Outcome::NotDone(_) => {
                history.refuse(call);
                totals.refused.fetch_add(1, Ordering::Relaxed);
                self.connected = None;
            }
            Outcome::Unknown(_) => {
                totals.unknown.fetch_add(1, Ordering::Relaxed);
                self.connected = None;
            }
        }
        false
    }

    /// Reads an object when nothing is wrong any more.
    fn read_last(&mut self, history: &History) -> Result<(), String> {
        const ATTEMPTS: usize = 20;
        for _ in 0..ATTEMPTS {
            if self.make(history, Use::Read) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("{} cannot be read although nothing is wrong any more", history.key()))
    }
}

/// The command that makes a use.
fn arguments(key: &str, object: &Object, what: &Use) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
    match what {
        Use::Read if matches!(object, Object::Set(_)) => words(&["SMEMBERS", key]),
        Use::Read => words(&["GET", key]),
        Use::Write(value) => words(&["SET", key, &value.to_string()]),
        Use::Add(amount) => words(&["INCRBY", key, &amount.to_string()]),
        Use::Insert(member) => words(&["SADD", key, &member.to_string()]),
        Use::Remove(member) => words(&["SREM", key, &member.to_string()]),
        Use::Grant { value, ttl_ms, .. } => words(&["SET", key, &value.to_string(), "PX", &ttl_ms.to_string()]),
    }
}

/// What the reply to a use says; nothing if it is none that there can be.
fn found(object: &Object, what: &Use, frame: &OwnedFrame, (begun_ms, read_ms): (u64, u64)) -> Option<Found> {
    let value = || match frame {
        OwnedFrame::Null => Some(None),
        frame => text(frame)?.parse::<u64>().ok().map(Some),
    };
    match what {
        Use::Write(_) | Use::Grant { .. } => (text(frame)? == "OK").then_some(Found::Done),
        Use::Add(_) => value().map(Found::Value),
        Use::Insert(_) | Use::Remove(_) => value()?.map(|count| Found::Changed(count == 1)),
        Use::Read => match object {
            Object::Set(_) => {
                let members = texts(frame)?.iter().map(|text| text.parse().ok()).collect::<Option<_>>();
                members.map(Found::Members)
            }
            Object::Lease(_) => value().map(|value| Found::Lease { value, begun_ms, read_ms }),
            Object::Register(_) | Object::Counter(_) => value().map(Found::Value),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_of_a_run_that_failed_end_with_it() {
        let load = Load::start(1, Vec::new());
        let shared = Arc::downgrade(&load.shared);
        drop(load);
        assert_eq!(shared.strong_count(), 0, "a client goes on");
    }
}
