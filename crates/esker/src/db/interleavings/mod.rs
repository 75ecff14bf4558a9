//! What threads do, tried in every order: `make interleavings`.
//!
//! Loom runs a model again and again, each time with another order of the accesses to what threads
//! share (`base/sync.rs`), and with another of the values that the orderings of the accesses allow
//! a load to return. All orders with at most [`PREEMPTIONS`] threads stopped in the middle are
//! tried (`LOOM_MAX_PREEMPTIONS` for more), or as many as `ESKER_SCHEDULES` says.
//!
//! The code of the engine is what runs, unless a model says that it mirrors some. Each test lists
//! at its head the mistakes that were planted in the engine to see it fail.

mod between_writes;
mod cache;
mod counters;
mod log;
mod memtable;
mod read_states;
mod tombstones;

use crate::base::key::{Entry, Kind, NEVER, Sequence, hash};
use crate::base::sync::raw;
use crate::memtable::{Memtable, MemtableWriter, WriteContext};
use crate::merge_operator::UInt64Add;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most faults of this kind need one or two.
const PREEMPTIONS: usize = 2;

/// Tries a model, and says how many schedules that were. `preemptions`: fewer for the longer ones.
fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.checkpoint_interval = 1000;
    builder.max_branches = builder.max_branches.max(20_000);
    let most = std::env::var("ESKER_SCHEDULES").ok().map(|most| most.parse().expect("a number of schedules"));
    builder.max_permutations = most.or(builder.max_permutations);
    let schedules = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&schedules);
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        model();
        raw::forget();
    });
    let complete = if builder.max_permutations.is_none_or(|most| schedules.load(Relaxed) + 1 < most as u64) {
        "all"
    } else {
        "the first"
    };
    let bound = builder.preemption_bound.unwrap_or_default();
    println!(
        "interleavings: {name}: {complete} {} schedules with at most {bound} preemptions",
        schedules.load(Relaxed)
    );
}

fn small_memtable() -> (Arc<Memtable>, MemtableWriter) {
    Memtable::create(512, 0, &Arc::default())
}

/// Applies a write. `newest_snapshot`: what a snapshot may still read.
fn write(
    writer: &mut MemtableWriter,
    kind: Kind,
    key: &[u8],
    sequence: Sequence,
    value: &[u8],
    newest_snapshot: Sequence,
) {
    let context = WriteContext { newest_snapshot, operator: Some(&UInt64Add), adds_uint64: true, reserved: 0 };
    writer.apply(hash(key), Entry { key, sequence, kind, expiry_ms: NEVER, value }, context);
}

/// The newest value of `key` at or before `sequence`, its kind, and its own sequence number.
fn read(memtable: &Memtable, key: &[u8], sequence: Sequence) -> Option<(Sequence, Kind, Vec<u8>)> {
    let mut found = None;
    let _ = memtable.get(key, hash(key), sequence, &mut |entry| {
        found = Some((entry.sequence, entry.kind, entry.value.to_vec()));
        ControlFlow::Break(())
    });
    found
}

/// What the operands of `key` at or before `sequence` come to.
fn sum(memtable: &Memtable, key: &[u8], sequence: Sequence) -> u64 {
    let mut sum = 0;
    let _ = memtable.get(key, hash(key), sequence, &mut |entry| {
        sum += u64::from_le_bytes(entry.value.try_into().expect("eight bytes"));
        if entry.kind == Kind::Put { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    sum
}
