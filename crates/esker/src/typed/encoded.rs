//! Memory for encodings: each thread keeps some, so that a call allocates nothing.

use super::key::EncodeKey;
use super::value::EncodeValue;
use crate::error::Result;
use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Memory beyond this is given back after the call.
const KEEP_BYTES: usize = 64 << 10;

fn with_buffer<T>(kept: &'static LocalKey<Cell<Vec<u8>>>, then: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    // The buffer is taken out of its place, since a codec or a merge operator that is called
    // meanwhile may use another typed keyspace. A thread that is ending has no buffer any more.
    let mut buffer = kept.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let result = then(&mut buffer);
    if buffer.capacity() <= KEEP_BYTES {
        let _ = kept.try_with(|kept| kept.set(buffer));
    }
    result
}

/// Calls `then` with the encoding of the key.
pub(super) fn with_key<K, T>(key: &impl EncodeKey<K>, then: impl FnOnce(&[u8]) -> T) -> T {
    with_buffer(&KEY, |buffer| {
        key.encode_key(buffer);
        then(buffer)
    })
}

/// Calls `then` with the encodings of the key and the value.
pub(super) fn with_pair<K, V, T>(
    key: &impl EncodeKey<K>,
    value: &impl EncodeValue<V>,
    then: impl FnOnce(&[u8], &[u8]) -> Result<T>,
) -> Result<T> {
    with_key(key, |key| with_buffer(&VALUE, |buffer| then(key, value.encode_value(buffer)?)))
}
