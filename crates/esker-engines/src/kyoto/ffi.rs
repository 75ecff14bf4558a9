//! The part of Kyoto Cabinet's C interface (`kclangc.h`) that the adapter uses.

use crate::dynamic::{LibrarySpec, c_api};
use crate::leveldb::ffi::opaque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

opaque! {
    /// `KCDB`
    Db,
    /// `KCCUR`
    Cursor,
}

/// Open for writing.
pub const OPEN_WRITER: u32 = 1 << 1;
/// Create the file if it is missing.
pub const OPEN_CREATE: u32 = 1 << 2;
/// Synchronise after every update.
pub const OPEN_AUTO_SYNC: u32 = 1 << 5;
/// The error code for "no record".
pub const NO_RECORD: c_int = 7;

/// Called with a record; answers a new value and its size, or one of the two constants.
pub type VisitFull = unsafe extern "C" fn(
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    new_len: *mut usize,
    context: *mut c_void,
) -> *const c_char;

/// Called for a key that has no record.
pub type VisitEmpty = unsafe extern "C" fn(
    key: *const c_char,
    key_len: usize,
    new_len: *mut usize,
    context: *mut c_void,
) -> *const c_char;

/// A callback that the adapter does not use (`KCFILEPROC`).
pub type FileCallback = Option<unsafe extern "C" fn()>;

c_api! {
    /// The functions of the library, and two constants that callbacks answer.
    pub struct Api {
        fn kcdbnew() -> *mut Db;
        fn kcdbdel(db: *mut Db);
        fn kcdbopen(db: *mut Db, path: *const c_char, mode: u32) -> i32;
        fn kcdbclose(db: *mut Db) -> i32;
        fn kcdbecode(db: *mut Db) -> i32;
        fn kcdbemsg(db: *mut Db) -> *const c_char;
        fn kcdbaccept(db: *mut Db, key: *const c_char, key_len: usize, full: VisitFull, empty: VisitEmpty, context: *mut c_void, writable: i32) -> i32;
        fn kcdbset(db: *mut Db, key: *const c_char, key_len: usize, value: *const c_char, value_len: usize) -> i32;
        fn kcdbremove(db: *mut Db, key: *const c_char, key_len: usize) -> i32;
        fn kcdbsync(db: *mut Db, hard: i32, callback: FileCallback, context: *mut c_void) -> i32;
        fn kcdbbegintran(db: *mut Db, hard: i32) -> i32;
        fn kcdbendtran(db: *mut Db, commit: i32) -> i32;
        fn kcdbstatus(db: *mut Db) -> *mut c_char;
        fn kcdbcursor(db: *mut Db) -> *mut Cursor;
        fn kccurdel(cursor: *mut Cursor);
        fn kccuraccept(cursor: *mut Cursor, full: VisitFull, context: *mut c_void, writable: i32, step: i32) -> i32;
        fn kccurjump(cursor: *mut Cursor) -> i32;
        fn kccurjumpkey(cursor: *mut Cursor, key: *const c_char, key_len: usize) -> i32;
        fn kccurjumpback(cursor: *mut Cursor) -> i32;
        fn kccurjumpbackkey(cursor: *mut Cursor, key: *const c_char, key_len: usize) -> i32;
        fn kccurstep(cursor: *mut Cursor) -> i32;
        fn kccurstepback(cursor: *mut Cursor) -> i32;
        fn kccurecode(cursor: *mut Cursor) -> i32;
        fn kccuremsg(cursor: *mut Cursor) -> *const c_char;
        fn kcfree(pointer: *mut c_void);
    } optional {
    } data {
        KCVISNOP;
        KCVERSION;
    }
}

/// Where the library is found.
pub static LIBRARY: LibrarySpec<Api> = LibrarySpec {
    engine: "kyoto",
    names: &["libkyotocabinet.so.16", "libkyotocabinet.so", "libkyotocabinet.dylib"],
    cached: &["libkyotocabinet.so.16", "libkyotocabinet.so"],
    install: "the Debian package libkyotocabinet16v5",
    loaded: Mutex::new(Vec::new()),
};
