//! Faults that tests plant, to see that they are noticed. Compiled for tests only.

#[cfg(test)]
use std::sync::atomic::{AtomicU8, Ordering};

/// A fault.
#[cfg_attr(not(test), allow(dead_code, reason = "only tests plant one"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A leader answers reads without asking a majority whether it still is the leader.
    DeposedReads = 1,
    /// A replica expires by its own clock.
    LocalClock = 2,
    /// A payload is applied twice.
    AppliedTwice = 3,
    /// A write is answered before a majority has it.
    EarlyAnswer = 4,
    /// A request that is repeated has no session.
    NoSessions = 5,
}

/// The fault of one node. There is none outside of tests.
#[derive(Debug, Default)]
pub struct Planted {
    #[cfg(test)]
    fault: AtomicU8,
}

impl Planted {
    /// Whether the node has that fault.
    #[cfg(test)]
    pub fn has(&self, fault: Fault) -> bool {
        self.fault.load(Ordering::Relaxed) == fault as u8
    }

    /// Whether the node has that fault.
    #[cfg(not(test))]
    pub fn has(&self, _fault: Fault) -> bool {
        false
    }

    /// Gives the node that fault.
    #[cfg(test)]
    pub fn set(&self, fault: Option<Fault>) {
        self.fault.store(fault.map_or(0, |fault| fault as u8), Ordering::Relaxed);
    }
}
