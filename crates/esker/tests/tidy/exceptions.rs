//! What the rules allow by name. The lists only get shorter: an entry that is not needed any more
//! is a violation.

use crate::{graph, size, versions};

/// The only files with `unsafe` code, each for one reason.
pub const UNSAFE: [&str; 66] = [
    // Functions for C to call, and calls of the functions that C passes.
    "crates/esker-c/src/batch.rs",
    "crates/esker-c/src/callbacks.rs",
    "crates/esker-c/src/caller.rs",
    "crates/esker-c/src/change_batch.rs",
    "crates/esker-c/src/changes.rs",
    "crates/esker-c/src/conditional.rs",
    "crates/esker-c/src/cursor.rs",
    "crates/esker-c/src/database.rs",
    "crates/esker-c/src/errors.rs",
    "crates/esker-c/src/expiry.rs",
    "crates/esker-c/src/follower.rs",
    "crates/esker-c/src/iterator.rs",
    "crates/esker-c/src/keyspace.rs",
    "crates/esker-c/src/keyspace_options.rs",
    "crates/esker-c/src/maintenance.rs",
    "crates/esker-c/src/operator.rs",
    "crates/esker-c/src/options.rs",
    "crates/esker-c/src/output.rs",
    "crates/esker-c/src/read.rs",
    "crates/esker-c/src/snapshot.rs",
    "crates/esker-c/src/transaction.rs",
    "crates/esker-c/src/watch.rs",
    "crates/esker-c/src/write.rs",
    "crates/esker-c/src/write_options.rs",
    "crates/esker-ffi/src/fork.rs",
    "crates/esker-ffi/src/memory.rs",
    "crates/esker-ffi/src/standard_error.rs",
    "crates/esker-leveldb/src/caller.rs",
    "crates/esker-leveldb/src/comparator.rs",
    "crates/esker-leveldb/src/data.rs",
    "crates/esker-leveldb/src/database.rs",
    "crates/esker-leveldb/src/environment.rs",
    "crates/esker-leveldb/src/filter_policy.rs",
    "crates/esker-leveldb/src/iterator.rs",
    "crates/esker-leveldb/src/options.rs",
    "crates/esker-leveldb/src/order.rs",
    "crates/esker-leveldb/src/policy.rs",
    "crates/esker-leveldb/src/property.rs",
    "crates/esker-leveldb/src/snapshot.rs",
    "crates/esker-leveldb/src/write_batch.rs",
    // Calls into C libraries, and from them.
    "crates/esker-engines/src/counting.rs",
    "crates/esker-engines/src/dynamic.rs",
    "crates/esker-engines/src/kyoto/ffi.rs",
    "crates/esker-engines/src/kyoto/mod.rs",
    "crates/esker-engines/src/leveldb/client.rs",
    "crates/esker-engines/src/leveldb/mod.rs",
    "crates/esker-engines/src/lmdb.rs",
    "crates/esker-engines/src/rocksdb/blocks.rs",
    "crates/esker-engines/src/rocksdb/database.rs",
    "crates/esker-engines/src/rocksdb/ffi.rs",
    "crates/esker-engines/src/rocksdb/merge_callbacks.rs",
    "crates/esker-engines/src/rocksdb/mod.rs",
    "crates/esker-engines/src/rocksdb/plan.rs",
    "crates/esker-engines/src/sqlite.rs",
    // The control of a file system that cuts it off.
    "crates/esker-check/src/realdisk/shutdown.rs",
    // Mapped files.
    "crates/esker/src/env/os/map.rs",
    // The handler of the signal that an access to a mapped file ends in when the page is
    // unavailable.
    "crates/esker/src/env/os/guard.rs",
    // Raw memory, kept for reuse; and what is written once into it and read without a lock.
    "crates/esker/src/base/memory.rs",
    "crates/esker/src/memtable/arena.rs",
    "crates/esker/src/memtable/index.rs",
    // Words in raw memory as atomics, and the same for the model checker, which keeps them beside
    // it.
    "crates/esker/src/base/sync/real.rs",
    "crates/esker/src/base/sync/tried.rs",
    // A hint to the processor.
    "crates/esker/src/base/prefetch.rs",
    // The buffers of Python objects, structures for consumers of Arrow, and the notice of a fork.
    "python/src/arrow.rs",
    "python/src/buffer.rs",
    "python/src/fork.rs",
];

/// The only files with tests that sleep. None of these pauses decides whether the test passes on a
/// slow machine.
pub const SLEEPING_TESTS: [&str; 18] = [
    // Simulated time, which passes when nothing else can happen.
    "crates/esker-raft/src/tests/world.rs",
    // `wait_until`, and loops like it: looking again after a while.
    "crates/esker-bench/src/watch.rs",
    "crates/esker-bench/tests/suite/bench_core.rs",
    "crates/esker-bench/tests/suite/browser/client.rs",
    "crates/esker-cli/tests/suite/common/mod.rs",
    "crates/esker-server/src/server/cluster_tests.rs",
    "crates/esker-server/tests/suite/support/mod.rs",
    "crates/esker/tests/history/common.rs",
    "crates/esker/tests/operations/common.rs",
    "crates/esker/tests/memory_budget.rs",
    // Something happens in the middle of something else, as a rule; either order is right.
    "crates/esker-bench/tests/suite/children.rs",
    // A writer that pauses now and then leaves others time: on a slow machine they take longer to
    // come to something, and are waited for.
    "crates/esker/tests/history/readers.rs",
    // At least so long was waited, or something took.
    "crates/esker-bench/src/expiries.rs",
    "crates/esker-bench/tests/suite/workloads/altered.rs",
    "crates/esker-bench/tests/suite/workloads/recovery.rs",
    "crates/esker-opentelemetry/tests/observed.rs",
    "crates/esker/src/base/stall_stats.rs",
    "crates/esker/src/db/write_controller/delay.rs",
];

/// The only files with tests that look at how much time has passed. On a slow machine none of these
/// looks makes a test fail.
pub const TIMED_TESTS: [&str; 17] = [
    // Simulated time: what the clocks of simulated nodes show.
    "crates/esker-raft/src/tests/world.rs",
    // The limit only turns a wait for ever into a failure: 300 s.
    "crates/esker-bench/src/process.rs",
    "crates/esker-bench/src/watch.rs",
    "crates/esker-bench/tests/suite/browser/client.rs",
    // It measures, and nothing depends on what it finds.
    "crates/esker-raft/examples/group_commit.rs",
    "crates/esker/benches/conditional.rs",
    "crates/esker/benches/features.rs",
    "crates/esker/benches/operators.rs",
    "crates/esker/src/env/os/tests.rs",
    "crates/esker/tests/history/common.rs",
    "crates/esker/tests/memory_budget.rs",
    "crates/esker/tests/operations/common.rs",
    // So long at least, and until something was seen; 300 s at most.
    "crates/esker/tests/history/readers.rs",
    // At least so long was waited, or something took.
    "crates/esker-bench/tests/suite/workloads/altered.rs",
    "crates/esker/tests/operations/styles.rs",
    // Printed only.
    "crates/esker/src/table/tests/speed.rs",
    "crates/esker/tests/operations/large_values/gibibyte.rs",
];

/// The only files with tests that wait for a limited time which is not written as `FOR_EVER` or
/// 300 s. On a slow machine none of these limits makes a test fail, or check nothing.
pub const IMPATIENT_TESTS: [&str; 6] = [
    // Simulated time, which passes when nothing else can happen.
    "crates/esker-raft/src/tests/cluster/clients.rs",
    "crates/esker-raft/src/tests/cluster/network.rs",
    "crates/esker-raft/src/tests/cluster/replicas.rs",
    // What is left of 300 s.
    "crates/esker-bench/tests/suite/browser/client.rs",
    // The lock is tried for no time at all.
    "crates/esker/src/db/state/counted_lock.rs",
    // The limit is its users': `FOR_EVER`, 300 s, or none where nothing is interrupted.
    "crates/esker/tests/operations/interrupting.rs",
];

/// Imports that break the layers or close a cycle, each with the move that ends it.
pub const IMPORTS: [graph::Allowed<'static>; 0] = [];

/// Files (with an empty function) and functions that are longer than the rule, with the length they
/// had when listed.
pub const LONG: [size::Allowed<'static>; 0] = [];

/// Dependencies that were wrong once. These stay: somebody may ask for an older version again.
pub const LEAST: [versions::Least<'static>; 1] =
    [("arc-swap", [1, 9, 5], "a load may return what another pointer holds, once an address is used again")];
