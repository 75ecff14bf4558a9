//! What the rules allow by name. The lists only get shorter: an entry that is not needed any more is a violation.

use crate::{graph, size};

/// The only files with `unsafe` code, each for one reason.
pub const UNSAFE: [&str; 16] = [
    // Calls into C libraries.
    "crates/esker-bench/src/engine/dynamic.rs",
    "crates/esker-bench/src/engine/kyoto/ffi.rs",
    "crates/esker-bench/src/engine/kyoto/mod.rs",
    "crates/esker-bench/src/engine/leveldb/mod.rs",
    "crates/esker-bench/src/engine/lmdb.rs",
    "crates/esker-bench/src/engine/rocksdb/ffi.rs",
    "crates/esker-bench/src/engine/rocksdb/merge_callbacks.rs",
    "crates/esker-bench/src/engine/rocksdb/mod.rs",
    "crates/esker-bench/src/engine/rocksdb/plan.rs",
    "crates/esker-bench/src/engine/rocksdb/session.rs",
    "crates/esker-bench/src/engine/sqlite.rs",
    // Mapped files.
    "crates/esker/src/env/os/map.rs",
    // Raw memory, kept for reuse; and what is written once into it and read without a lock.
    "crates/esker/src/base/memory.rs",
    "crates/esker/src/memtable/arena.rs",
    "crates/esker/src/memtable/index.rs",
    // A hint to the processor.
    "crates/esker/src/table/prefetch.rs",
];

/// Imports that break the layers or close a cycle, each with the move that ends it.
pub const IMPORTS: [graph::Allowed<'static>; 15] = [
    // `Compression` belongs into `options.rs`; `table` imports it from there.
    ("crates/esker/src/options.rs", "table::compress"),
    // `Slots` and `Weigh` into a file of their own.
    ("crates/esker/src/cache/ring.rs", "cache"),
    // `freeze` out of `write.rs`, into a file of its own.
    ("crates/esker/src/db/background.rs", "db::write"),
    // `Counters` into a file of their own.
    ("crates/esker/src/db/inner.rs", "db::stats"),
    // `Shared` and `SyncFailure` into `state.rs`.
    ("crates/esker/src/env/mem/handle.rs", "env::mem"),
    ("crates/esker/src/env/mem/state.rs", "env::mem"),
    // `os/mod.rs` takes the mappings from `map.rs` itself.
    ("crates/esker/src/env/os/unix.rs", "env::os::map"),
    // `Shared` into a file of its own.
    ("crates/esker/src/handle/batch.rs", "handle::database"),
    ("crates/esker/src/handle/keyspace.rs", "handle::database"),
    ("crates/esker/src/handle/snapshot.rs", "handle::database"),
    // `Memtable` out of `mod.rs`; the order takes the arena, and `Memtable::cursors` moves to `cursor.rs`.
    ("crates/esker/src/memtable/cursor.rs", "memtable"),
    ("crates/esker/src/memtable/order.rs", "memtable"),
    // `Table::cursor` moves to `cursor.rs`; `MappedFile` and `Verified` into a file of their own.
    ("crates/esker/src/table/reader.rs", "table::cursor"),
    ("crates/esker/src/table/reader.rs", "table::source"),
    // What both need moves into a file of its own.
    ("crates/esker-bench/src/engine/rocksdb/session.rs", "engine::rocksdb"),
];

/// Files (with an empty function) and functions that are longer than the rule, with the length they had when listed.
pub const LONG: [size::Allowed<'static>; 1] = [
    // A list of scripts, one after the other.
    ("crates/esker-check/src/powerloss/script.rs", "scripts", 105),
];
