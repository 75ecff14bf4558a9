//! Scans that hand out typed pairs and keys.

use super::key::KeyCodec;
use super::value::ValueCodec;
use crate::base::slice::Slice;
use crate::error::Result;
use crate::handle::{Iter, Keys, Keyspace};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// Typed pairs of one moment, in the order of their keys, from either end.
///
/// An item is an error where a key or value cannot be read or is no encoding of its type. After one
/// that cannot be decoded the scan goes on behind it; after other errors as [`Iter`] does.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
/// # born.put("ada", 1815)?;
/// for pair in born.iter().rev() {
///     let (name, year) = pair?;
///     println!("{name} {year}");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct TypedIter<K, V, I = Iter> {
    pairs: I,
    /// Named in errors.
    keyspace: Keyspace,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V, I: fmt::Debug> fmt::Debug for TypedIter<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedIter").field(&self.pairs).finish()
    }
}

impl<K, V, I> TypedIter<K, V, I> {
    pub(super) fn new(keyspace: &Keyspace, pairs: I) -> TypedIter<K, V, I> {
        TypedIter { pairs, keyspace: keyspace.clone(), types: PhantomData }
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedIter<K, V> {
    /// The same keys, those that are left, without their values: see [`Iter::keys`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// # born.put("ada", 1815)?;
    /// let names: esker::Result<Vec<String>> = born.iter().keys().collect();
    /// assert_eq!(names?, ["ada"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keys(self) -> TypedKeys<K> {
        TypedKeys { keys: self.pairs.keys(), keyspace: self.keyspace, types: PhantomData }
    }
}

/// The pair, decoded.
pub(super) fn decode_pair<K: KeyCodec, V: ValueCodec>(
    keyspace: &Keyspace,
    (key, value): (Slice, Slice),
) -> Result<(K, V)> {
    let decoded = K::decode_key(&key).map_err(|error| error.of_key::<K>(&keyspace.name(), &key))?;
    let value = V::decode_value(value).map_err(|error| error.of_value::<V>(&keyspace.name(), &key))?;
    Ok((decoded, value))
}

impl<K: KeyCodec, V: ValueCodec, I: Iterator<Item = Result<(Slice, Slice)>>> Iterator for TypedIter<K, V, I> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = self.pairs.next()?;
        Some(pair.and_then(|pair| decode_pair(&self.keyspace, pair)))
    }
}

impl<K, V, I> DoubleEndedIterator for TypedIter<K, V, I>
where
    K: KeyCodec,
    V: ValueCodec,
    I: DoubleEndedIterator<Item = Result<(Slice, Slice)>>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        let pair = self.pairs.next_back()?;
        Some(pair.and_then(|pair| decode_pair(&self.keyspace, pair)))
    }
}

impl<K, V, I> FusedIterator for TypedIter<K, V, I>
where
    K: KeyCodec,
    V: ValueCodec,
    I: FusedIterator<Item = Result<(Slice, Slice)>>,
{
}

/// Typed keys of one moment, in their order, from either end: made by [`TypedIter::keys`]. Errors
/// are as there.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
/// # born.put("ada", 1815)?;
/// let mut names = born.range("a"..).keys();
/// assert_eq!(names.next_back().transpose()?.as_deref(), Some("ada"));
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct TypedKeys<K> {
    keys: Keys,
    keyspace: Keyspace,
    types: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for TypedKeys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedKeys").field("keys", &self.keys).field("keyspace", &self.keyspace).finish()
    }
}

impl<K: KeyCodec> TypedKeys<K> {
    fn decode(&self, key: Result<Slice>) -> Result<K> {
        let key = key?;
        K::decode_key(&key).map_err(|error| error.of_key::<K>(&self.keyspace.name(), &key))
    }
}

impl<K: KeyCodec> Iterator for TypedKeys<K> {
    type Item = Result<K>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.next()?;
        Some(self.decode(key))
    }
}

impl<K: KeyCodec> DoubleEndedIterator for TypedKeys<K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let key = self.keys.next_back()?;
        Some(self.decode(key))
    }
}

impl<K: KeyCodec> FusedIterator for TypedKeys<K> {}
