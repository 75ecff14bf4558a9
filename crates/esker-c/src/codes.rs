//! The codes that calls return, and the other numbers of the interface.

/// What a call came to: `ESKER_OK`, or what was wrong. `esker_last_error_message` says more.
pub type esker_code = i32;

/// The call has done what it is for.
pub const ESKER_OK: esker_code = 0;
/// The operating system refused an operation on a file.
pub const ESKER_IO: esker_code = 1;
/// Stored bytes do not have the form they were written in.
pub const ESKER_CORRUPTION: esker_code = 2;
/// A callback made a call of its own database that it may not make.
pub const ESKER_IN_CALLBACK: esker_code = 3;
/// An argument is one that the call cannot take. Nothing was written.
pub const ESKER_INVALID_ARGUMENT: esker_code = 4;
/// Another handle, in this process or another, has the database open for writing.
pub const ESKER_LOCKED: esker_code = 5;
/// The keyspace was dropped.
pub const ESKER_KEYSPACE_DROPPED: esker_code = 6;
/// The keyspace was created with a merge operator that was not supplied at this open.
pub const ESKER_MISSING_MERGE_OPERATOR: esker_code = 7;
/// A merge operator could not combine an existing value with its operands.
pub const ESKER_MERGE_FAILED: esker_code = 8;
/// Another writer wrote what the transaction has read or writes. Run it again.
pub const ESKER_CONFLICT: esker_code = 9;
/// A read beside a writer met one that changes the files too fast.
pub const ESKER_STALLED: esker_code = 10;
/// A write that is not to wait met stalled writes. Nothing was written.
pub const ESKER_WRITE_STALLED: esker_code = 11;
/// The handle accepts no writes: it was opened so, closed, or the log or manifest failed.
pub const ESKER_READ_ONLY: esker_code = 12;
/// The files have a newer format than this library.
pub const ESKER_UNSUPPORTED: esker_code = 13;
/// The files are compressed in a way that this library was built without.
pub const ESKER_UNSUPPORTED_COMPRESSION: esker_code = 14;
/// There is no database or keyspace of that name.
pub const ESKER_NOT_FOUND: esker_code = 15;
/// The keyspace was created with a comparator that was not supplied at this open.
pub const ESKER_MISSING_COMPARATOR: esker_code = 16;
/// A database that is not to be there is.
pub const ESKER_ALREADY_EXISTS: esker_code = 17;
/// The changes that were to be read are not kept any more. Begin anew with a snapshot.
pub const ESKER_GONE: esker_code = 18;
/// An error of the engine that this version of the interface has no code for.
pub const ESKER_OTHER: esker_code = 99;
/// A handle was closed or destroyed before.
pub const ESKER_CLOSED_HANDLE: esker_code = 100;
/// A handle is NULL, of another type, or none.
pub const ESKER_WRONG_HANDLE: esker_code = 101;
/// Another call uses the batch, cursor, iterator, transaction or reader of changes at this moment.
pub const ESKER_BUSY_HANDLE: esker_code = 102;
/// The process is a fork of one that used a database before: only `exec` helps.
pub const ESKER_FORKED: esker_code = 103;
/// The library panicked: a defect of it. The call may have been done in part.
pub const ESKER_PANIC: esker_code = 104;
/// There is no memory, or there are too many handles.
pub const ESKER_OUT_OF_MEMORY: esker_code = 105;
/// A buffer of the caller is too short; the length that it needs was returned.
pub const ESKER_BUFFER_TOO_SHORT: esker_code = 106;

/// The name of a code.
pub(crate) fn name(code: esker_code) -> &'static std::ffi::CStr {
    match code {
        ESKER_OK => c"ESKER_OK",
        ESKER_IO => c"ESKER_IO",
        ESKER_CORRUPTION => c"ESKER_CORRUPTION",
        ESKER_IN_CALLBACK => c"ESKER_IN_CALLBACK",
        ESKER_INVALID_ARGUMENT => c"ESKER_INVALID_ARGUMENT",
        ESKER_LOCKED => c"ESKER_LOCKED",
        ESKER_KEYSPACE_DROPPED => c"ESKER_KEYSPACE_DROPPED",
        ESKER_MISSING_MERGE_OPERATOR => c"ESKER_MISSING_MERGE_OPERATOR",
        ESKER_MERGE_FAILED => c"ESKER_MERGE_FAILED",
        ESKER_CONFLICT => c"ESKER_CONFLICT",
        ESKER_STALLED => c"ESKER_STALLED",
        ESKER_WRITE_STALLED => c"ESKER_WRITE_STALLED",
        ESKER_READ_ONLY => c"ESKER_READ_ONLY",
        ESKER_UNSUPPORTED => c"ESKER_UNSUPPORTED",
        ESKER_UNSUPPORTED_COMPRESSION => c"ESKER_UNSUPPORTED_COMPRESSION",
        ESKER_NOT_FOUND => c"ESKER_NOT_FOUND",
        ESKER_MISSING_COMPARATOR => c"ESKER_MISSING_COMPARATOR",
        ESKER_ALREADY_EXISTS => c"ESKER_ALREADY_EXISTS",
        ESKER_GONE => c"ESKER_GONE",
        ESKER_CLOSED_HANDLE => c"ESKER_CLOSED_HANDLE",
        ESKER_WRONG_HANDLE => c"ESKER_WRONG_HANDLE",
        ESKER_BUSY_HANDLE => c"ESKER_BUSY_HANDLE",
        ESKER_FORKED => c"ESKER_FORKED",
        ESKER_PANIC => c"ESKER_PANIC",
        ESKER_OUT_OF_MEMORY => c"ESKER_OUT_OF_MEMORY",
        ESKER_BUFFER_TOO_SHORT => c"ESKER_BUFFER_TOO_SHORT",
        _ => c"ESKER_OTHER",
    }
}

/// Tables are not compressed.
pub const ESKER_COMPRESSION_NONE: i32 = 0;
/// LZ4.
pub const ESKER_COMPRESSION_LZ4: i32 = 1;
/// Zstandard, if the library was built with it.
pub const ESKER_COMPRESSION_ZSTD: i32 = 2;

/// The log is written through a mapping.
pub const ESKER_WAL_MAPPED: i32 = 0;
/// The log is written with `write`.
pub const ESKER_WAL_PLAIN: i32 = 1;

/// Tables are read through a mapping where they fit in memory.
pub const ESKER_READ_AUTO: i32 = 0;
/// Tables are read through a mapping.
pub const ESKER_READ_MMAP: i32 = 1;
/// Tables are read with `pread`.
pub const ESKER_READ_PREAD: i32 = 2;
/// Tables are read through a mapping, and every read is checked.
pub const ESKER_READ_MMAP_CHECKED: i32 = 3;

/// A few overlapping runs above one sorted run.
pub const ESKER_COMPACTION_LAZY_LEVELING: i32 = 0;
/// Levels, each of one sorted run.
pub const ESKER_COMPACTION_LEVELED: i32 = 1;
/// Runs of similar size.
pub const ESKER_COMPACTION_TIERED: i32 = 2;
/// The oldest tables are dropped: `esker_keyspace_options_set_fifo`.
pub const ESKER_COMPACTION_FIFO: i32 = 3;

/// A compaction filter keeps the value.
pub const ESKER_FILTER_KEEP: i32 = 0;
/// A compaction filter removes the key.
pub const ESKER_FILTER_REMOVE: i32 = 1;
/// A compaction filter replaces the value by that of its output.
pub const ESKER_FILTER_REPLACE: i32 = 2;

/// An operation that this version of the interface has no number for.
pub const ESKER_CHANGE_OTHER: i32 = 0;
/// The key has this value from here on. Also a change of its expiry.
pub const ESKER_CHANGE_PUT: i32 = 1;
/// The key has no value from here on.
pub const ESKER_CHANGE_DELETE: i32 = 2;
/// The operand was combined with what the key had.
pub const ESKER_CHANGE_MERGE: i32 = 3;
/// The keys of a range have no value from here on.
pub const ESKER_CHANGE_DELETE_RANGE: i32 = 4;
/// Pairs were loaded (`esker_keyspace_ingest`), which are not listed: read the keyspace.
pub const ESKER_CHANGE_LOAD: i32 = 5;
/// The keyspace was dropped.
pub const ESKER_CHANGE_DROP_KEYSPACE: i32 = 6;
/// The keyspace was renamed, or has another merge operator or time to live from here on.
pub const ESKER_CHANGE_ALTER_KEYSPACE: i32 = 7;

/// The time of expiry of a key that never expires.
pub const ESKER_NEVER: u64 = u64::MAX;

/// The version of the interface: the major part of the name of the shared library.
pub const ESKER_ABI_VERSION: u32 = 0;
