//! Properties, sizes and compaction.

use crate::caller::Caller;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::status::told;
use esker::KeyRange;
use esker_ffi::levels::tables_at;
use esker_ffi::memory;
use std::ffi::{c_char, c_int};
use std::fmt::Write;
use std::ops::Bound;
use std::ptr;

fn property(db: &Open, name: &str) -> Option<String> {
    let name = name.strip_prefix("leveldb.")?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        return tables_at(&db.keyspace, level.as_bytes());
    }
    let mut text = String::new();
    match name {
        "stats" => {
            text.push_str("Level  Files Size(MB)\n---------------------\n");
            for (level, run) in db.keyspace.runs().iter().enumerate() {
                let _ = writeln!(text, "{level:3} {:8} {:8.0}", run.tables, run.bytes as f64 / 1_048_576.0);
            }
            let _ = write!(text, "{}", db.db.stats());
        }
        "sstables" => {
            for (level, run) in db.keyspace.runs().iter().enumerate() {
                let (tables, entries, bytes) = (run.tables, run.entries, run.bytes);
                let _ = writeln!(text, "--- level {level} ---\n {tables} tables, {entries} entries, {bytes} bytes");
            }
        }
        "approximate-memory-usage" => {
            let memory = db.db.stats().memory;
            text = (memory.memtable_bytes + memory.cache_bytes).to_string();
        }
        _ => return None,
    }
    Some(text)
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_property_value(db: *mut leveldb_t, propname: *const c_char) -> *mut c_char {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    told("leveldb_property_value", || {
        let db = leveldb_t::get(db)?;
        let name = std::str::from_utf8(caller.text(propname)?).unwrap_or_default();
        Ok(property(&db.0, name).map_or(ptr::null_mut(), |text| memory::copy_text(&text)))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header. Pairs in memory count too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_approximate_sizes(
    db: *mut leveldb_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let ranges = usize::try_from(num_ranges).unwrap_or(0);
    for index in 0..ranges {
        let size = told("leveldb_approximate_sizes", || {
            let key = |keys, lengths| -> Done<&[u8]> {
                caller.bytes(caller.element(keys, index)?, caller.element(lengths, index)?)
            };
            let range = key(range_start_key, range_start_key_len)?..key(range_limit_key, range_limit_key_len)?;
            Ok(leveldb_t::get(db)?.0.keyspace.approximate_size(range)?)
        });
        if sizes.is_null() {
            return;
        }
        caller.set(sizes.wrapping_add(index), size.unwrap_or(0));
    }
}

/// A range with its end, or without one.
struct Closed<'a>(Bound<&'a [u8]>, Bound<&'a [u8]>);

impl KeyRange for Closed<'_> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0, self.1)
    }
}

/// See LevelDB's header. NULL is before the first key, or behind the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_compact_range(
    db: *mut leveldb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    told("leveldb_compact_range", || {
        let bound = |key: *const c_char, length| -> Result<Bound<&[u8]>, Failure> {
            if key.is_null() { Ok(Bound::Unbounded) } else { Ok(Bound::Included(caller.bytes(key, length)?)) }
        };
        let range = Closed(bound(start_key, start_key_len)?, bound(limit_key, limit_key_len)?);
        let db = leveldb_t::get(db)?;
        match (range.0, range.1) {
            (Bound::Unbounded, Bound::Unbounded) => db.0.keyspace.compact()?,
            _ => db.0.keyspace.compact_range(range)?,
        }
        Ok(())
    });
}
