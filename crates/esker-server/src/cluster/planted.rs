//! Faults that tests plant, to see that they are noticed. Outside of tests there is none.

use esker_raft::Request;
#[cfg(test)]
use std::collections::BTreeSet;
#[cfg(test)]
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A fault.
#[cfg_attr(not(test), allow(dead_code, reason = "only tests plant one"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A leader answers reads without asking a majority whether it still is the leader.
    DeposedReads = 1,
    /// A replica goes by its own clock.
    LocalClock = 2,
    /// A payload is applied twice.
    AppliedTwice = 3,
    /// A write is answered before a majority has it.
    EarlyAnswer = 4,
    /// A request that is repeated has no session.
    NoSessions = 5,
    /// A write that is uncertain stays so.
    Unsettled = 6,
}

/// The faults of one node, and of its lines to others.
#[derive(Debug, Default)]
pub struct Planted {
    #[cfg(test)]
    fault: AtomicU8,
    #[cfg(test)]
    skew_ms: AtomicU64,
    #[cfg(test)]
    cut: parking_lot::Mutex<BTreeSet<String>>,
    #[cfg(test)]
    lost_answers: AtomicU64,
    #[cfg(test)]
    held: parking_lot::Mutex<Option<Vec<Request>>>,
}

#[cfg(not(test))]
impl Planted {
    /// Whether the node has that fault.
    pub fn has(&self, _fault: Fault) -> bool {
        false
    }

    /// By how much its clock is ahead.
    pub fn skew_ms(&self) -> u64 {
        0
    }

    /// Whether nothing goes to that address.
    pub fn is_cut(&self, _address: &str) -> bool {
        false
    }

    /// Whether the answer to a message is lost.
    pub fn loses_answer(&self) -> bool {
        false
    }

    /// Whether the request comes later.
    pub fn holds(&self, _request: &Request) -> bool {
        false
    }
}

#[cfg(test)]
impl Planted {
    pub fn has(&self, fault: Fault) -> bool {
        self.fault.load(Ordering::Relaxed) == fault as u8
    }

    pub fn skew_ms(&self) -> u64 {
        self.skew_ms.load(Ordering::Relaxed)
    }

    pub fn is_cut(&self, address: &str) -> bool {
        self.cut.lock().contains(address)
    }

    pub fn loses_answer(&self) -> bool {
        self.lost_answers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Keeps a request of a session, if such are held.
    pub fn holds(&self, request: &Request) -> bool {
        match (&mut *self.held.lock(), request) {
            (Some(held), Request::ApplyOnce { .. }) => {
                held.push(request.clone());
                true
            }
            _ => false,
        }
    }

    /// Holds requests that come for the log from now on.
    pub fn hold(&self) {
        *self.held.lock() = Some(Vec::new());
    }

    /// Holds no more; those that were held.
    pub fn release(&self) -> Vec<Request> {
        self.held.lock().take().unwrap_or_default()
    }

    /// Gives the node that fault, and a clock that is ahead.
    pub fn set(&self, fault: Fault, skew_ms: u64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
        self.fault.store(fault as u8, Ordering::Relaxed);
    }

    /// Cuts the lines to these addresses, and no others.
    pub fn cut(&self, addresses: impl IntoIterator<Item = String>) {
        *self.cut.lock() = addresses.into_iter().collect();
    }

    /// Loses the answers to the next proposals.
    pub fn lose_answers(&self, count: u64) {
        self.lost_answers.store(count, Ordering::Relaxed);
    }
}
