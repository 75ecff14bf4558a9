//! Keys and values between JavaScript and the engine.

use crate::failure::Failure;
use crate::work::Answer;
use esker::{Expiry, Slice};
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either, JsValue, ToNapiValue, Uint8ArraySlice, Unknown};
use std::ops::Bound;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes from here on are handed to JavaScript without a copy.
const LARGE: usize = 64 << 10;

/// Milliseconds from here on are not whole numbers in JavaScript.
const MOST_MILLISECONDS: f64 = 9_007_199_254_740_992.0;

/// A key or a value as it is passed: a string, or a `Buffer` or `Uint8Array`.
pub type Input<'a> = Either<String, Uint8ArraySlice<'a>>;

/// The bytes of a key or a value: those of the UTF-8 form of a string.
pub fn bytes(input: Input<'_>) -> Vec<u8> {
    match input {
        Either::A(text) => text.into_bytes(),
        Either::B(array) => array.to_vec(),
    }
}

/// A bound of a range; none where there is no key.
pub fn bound(input: Option<Input<'_>>, exclusive: bool) -> Bound<Vec<u8>> {
    match input.map(bytes) {
        None => Bound::Unbounded,
        Some(key) if exclusive => Bound::Excluded(key),
        Some(key) => Bound::Included(key),
    }
}

/// A time to live that was passed in milliseconds.
pub fn duration(milliseconds: f64) -> Result<Duration, Failure> {
    if milliseconds.fract() == 0.0 && (1.0..MOST_MILLISECONDS).contains(&milliseconds) {
        return Ok(Duration::from_millis(milliseconds as u64));
    }
    Err(Failure::invalid(format!("a time to live is a positive whole number of milliseconds, not {milliseconds}")))
}

/// A time that was passed in milliseconds since 1970; none for infinite, which is never.
pub fn moment(milliseconds: f64) -> Result<Option<SystemTime>, Failure> {
    if milliseconds == f64::INFINITY {
        return Ok(None);
    }
    let is_whole = milliseconds.fract() == 0.0 && (0.0..MOST_MILLISECONDS).contains(&milliseconds);
    let at = if is_whole { UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds as u64)) } else { None };
    let what = "a time is a whole number of milliseconds since 1970, or Infinity, and not";
    Ok(Some(at.ok_or_else(|| Failure::invalid(format!("{what} {milliseconds}")))?))
}

/// When a value expires, in milliseconds of the wall clock: infinite if never.
pub fn milliseconds(expiry: Expiry) -> f64 {
    match expiry {
        Expiry::At(time) => time.duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_millis() as f64),
        _ => f64::INFINITY,
    }
}

/// What keys or values become in JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A string. Bytes that are not UTF-8 become U+FFFD.
    Utf8,
    /// A `Buffer`.
    Buffer,
    /// A `Uint8Array`.
    View,
}

impl From<u32> for Format {
    fn from(number: u32) -> Format {
        match number {
            0 => Format::Utf8,
            1 => Format::Buffer,
            _ => Format::View,
        }
    }
}

impl Format {
    /// The JavaScript value of these bytes.
    pub fn copy<'env>(self, env: &'env Env, bytes: &[u8]) -> napi::Result<Unknown<'env>> {
        Ok(match self {
            Format::Utf8 if bytes.is_ascii() => env.create_string_latin1(bytes)?.to_unknown(),
            Format::Utf8 => env.create_string(String::from_utf8_lossy(bytes))?.to_unknown(),
            Format::Buffer => BufferSlice::copy_from(env, bytes)?.to_unknown(),
            Format::View => Uint8ArraySlice::copy_from(env, bytes)?.to_unknown(),
        })
    }

    /// The JavaScript value of these bytes, which it takes where they are many.
    fn give<'env>(self, env: &'env Env, bytes: Vec<u8>) -> napi::Result<Unknown<'env>> {
        Ok(match self {
            Format::Buffer if bytes.len() >= LARGE => BufferSlice::from_data(env, bytes)?.to_unknown(),
            Format::View if bytes.len() >= LARGE => Uint8ArraySlice::from_data(env, bytes)?.to_unknown(),
            _ => self.copy(env, &bytes)?,
        })
    }
}

/// A value, or none.
pub struct Found {
    /// The bytes of the value, if there is one.
    pub value: Option<Vec<u8>>,
    /// What it becomes.
    pub format: Format,
}

impl Found {
    /// A copy of what the engine returned: its bytes may be those of a mapped file.
    pub fn new(value: Option<Slice>, format: Format) -> Found {
        Found { value: value.map(|value| value.to_vec()), format }
    }
}

/// A key with its value.
pub struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
    key_format: Format,
    value_format: Format,
}

impl Entry {
    /// A copy of what the engine returned.
    pub fn new((key, value): (Slice, Slice), key_format: Format, value_format: Format) -> Entry {
        Entry { key: key.to_vec(), value: value.to_vec(), key_format, value_format }
    }

    /// The bytes of the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The bytes of both.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// An array of the two.
impl Answer for Entry {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let mut array = env.create_array(2)?;
        array.set(0, self.key_format.give(env, self.key)?)?;
        array.set(1, self.value_format.give(env, self.value)?)?;
        Ok(array.to_unknown())
    }
}

impl Answer for Found {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        match self.value {
            Some(value) => self.format.give(env, value),
            None => ().into_unknown(env),
        }
    }
}

/// One value, or none, for each key.
pub struct FoundMany {
    /// The bytes of the values.
    pub values: Vec<Option<Vec<u8>>>,
    /// What they become.
    pub format: Format,
}

impl Answer for FoundMany {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let mut array = env.create_array(self.values.len() as u32)?;
        for (index, value) in self.values.into_iter().enumerate() {
            let value = Found { value, format: self.format }.into_js(env)?;
            array.set(index as u32, value)?;
        }
        Ok(array.to_unknown())
    }
}
