//! How often runs had what few of them have.

use crate::model::Ttl;
use crate::powerloss::script::{KEYSPACES, Step};
use crate::state::Durability;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's comment.
#[derive(Debug, Default)]
pub struct Cases {
    refused_loads: AtomicU64,
    retentions: AtomicU64,
    unlogged: AtomicU64,
    /// Runs with two background threads, and with three.
    threads: [AtomicU64; 2],
}

/// How many writes of a step without log expire.
fn unlogged(step: &Step) -> usize {
    let expires = |keyspace: usize| KEYSPACES[keyspace].2 != Ttl::Off;
    match step.durability() {
        Some(Durability::Unlogged) => step.writes().iter().filter(|write| expires(write.keyspace)).count(),
        _ => 0,
    }
}

impl Cases {
    /// Notes a run with so many background threads.
    pub fn note(&self, steps: &[Step], threads: usize) {
        let of = |is_one: fn(&&Step) -> bool| steps.iter().filter(is_one).count();
        let add = |counter: &AtomicU64, count: usize| {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        };
        add(&self.refused_loads, of(|step| matches!(step, Step::RefusedIngest(..))));
        add(&self.retentions, of(|step| matches!(step, Step::Keep(_))));
        add(&self.unlogged, steps.iter().map(unlogged).sum());
        if let Some(counter) = threads.checked_sub(2).and_then(|more| self.threads.get(more)) {
            add(counter, 1);
        }
    }
}

impl std::fmt::Display for Cases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "in the scripts {} loads to be refused, {} opens with another retention of changes, and {} writes without \
             log that expire; {} runs with two background threads, and {} with three",
            count(&self.refused_loads),
            count(&self.retentions),
            count(&self.unlogged),
            count(&self.threads[0]),
            count(&self.threads[1])
        )
    }
}
