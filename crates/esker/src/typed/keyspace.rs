//! A keyspace whose keys and values have types.

use super::encoded::{with_key, with_pair};
use super::iterator::{TypedIter, decode_pair};
use super::key::{EncodeKey, KeyCodec, KeyPrefix};
use super::range::TypedRange;
use super::value::{EncodeValue, ValueCodec};
use crate::base::slice::Slice;
use crate::error::Result;
use crate::handle::{Db, Keyspace};
use crate::options::{KeyspaceOptions, WriteOptions};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A keyspace whose keys are `K` and whose values are `V`. Cheap to clone, usable from any thread.
///
/// The types are not stored: what is there is read as these types, and where it is no encoding of
/// them the call fails with `Decode`. Keys are ordered as the values of their type are. A key is
/// given as a `K`, as a reference to one, or in a borrowed form: `"ada"` for a `String`, `("ada",
/// 7)` for a `(String, u32)`; values likewise. Encoding and decoding cost a copy of the key and the
/// value.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::TypedKeyspace;
/// let born: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "born", Default::default())?;
/// born.put("ada", 1815)?;
/// assert_eq!(born.get("ada")?, Some(1815));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct TypedKeyspace<K, V> {
    keyspace: Keyspace,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedKeyspace<K, V> {
    fn clone(&self) -> Self {
        TypedKeyspace::new(self.keyspace.clone())
    }
}

impl<K, V> fmt::Debug for TypedKeyspace<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedKeyspace").field(&self.keyspace).finish()
    }
}

impl<K, V> TypedKeyspace<K, V> {
    /// The keyspace, read and written as these types.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let keyspace = db.keyspace("born", Default::default())?;
    /// let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::new(keyspace);
    /// born.put("ada", 1815)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new(keyspace: Keyspace) -> TypedKeyspace<K, V> {
        TypedKeyspace { keyspace, types: PhantomData }
    }

    /// Opens the keyspace, or creates it: see [`Db::keyspace`].
    ///
    /// # Errors
    /// As [`Db::keyspace`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::TypedKeyspace;
    /// let born: TypedKeyspace<String, u32> = TypedKeyspace::open(&db, "born", Default::default())?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open(db: &Db, name: &str, options: KeyspaceOptions) -> Result<TypedKeyspace<K, V>> {
        Ok(TypedKeyspace::new(db.keyspace(name, options)?))
    }

    /// The keyspace, for what has no typed form.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.keyspace().get("ada")?.as_deref(), Some(&[0x17, 7, 0, 0][..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    pub(super) fn decode_value(&self, key: &[u8], value: Slice) -> Result<V>
    where
        V: ValueCodec,
    {
        V::decode_value(value).map_err(|error| error.of_value::<V>(&self.keyspace.name(), key))
    }

    pub(super) fn decode_found(&self, key: &[u8], value: Option<Slice>) -> Result<Option<V>>
    where
        V: ValueCodec,
    {
        value.map(|value| self.decode_value(key, value)).transpose()
    }
}

/// The encoding of a prefix.
pub(super) fn encode_prefix<K>(prefix: &impl KeyPrefix<K>) -> Vec<u8> {
    let mut bytes = Vec::new();
    prefix.encode_prefix(&mut bytes);
    bytes
}

impl<K: KeyCodec, V: ValueCodec> TypedKeyspace<K, V> {
    /// Sets the value of `key`: see [`Keyspace::put`].
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the value has no encoding.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// born.put(String::from("bob"), &1923)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put(&self, key: impl EncodeKey<K>, value: impl EncodeValue<V>) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new())
    }

    /// As [`TypedKeyspace::put`], with options.
    ///
    /// # Errors
    /// As [`TypedKeyspace::put`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put_with("ada", 1815, &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with(&self, key: impl EncodeKey<K>, value: impl EncodeValue<V>, options: &WriteOptions) -> Result<()> {
        with_pair(&key, &value, |key, value| self.keyspace.put_with(key, value, options))
    }

    /// As [`TypedKeyspace::put`], to live for `ttl`.
    ///
    /// # Errors
    /// As [`Keyspace::put_with_ttl`]; `InvalidArgument` also if the value has no encoding.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// use esker::{KeyspaceOptions, Ttl, TypedKeyspace};
    /// let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    /// let sessions: TypedKeyspace<u64, String> = TypedKeyspace::open(&db, "sessions", expiring)?;
    /// sessions.put_with_ttl(7, "ada", std::time::Duration::from_secs(60))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with_ttl(&self, key: impl EncodeKey<K>, value: impl EncodeValue<V>, ttl: Duration) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new().ttl(ttl))
    }

    /// Sets the value of `key` if it has none, and returns the value that was there: see
    /// [`Keyspace::put_if_absent`].
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also if the value has no encoding. `Decode` if the
    /// value that was there is no `V`; nothing was written then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// assert_eq!(born.put_if_absent("ada", 1815)?, None);
    /// assert_eq!(born.put_if_absent("ada", 1816)?, Some(1815));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_if_absent(&self, key: impl EncodeKey<K>, value: impl EncodeValue<V>) -> Result<Option<V>> {
        self.put_if_absent_with(key, value, &WriteOptions::new())
    }

    /// The value of `key`: see [`Keyspace::get`].
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `Decode` if what is there is no `V`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.get("ada")?, Some(1815));
    /// assert_eq!(born.get("bob")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl EncodeKey<K>) -> Result<Option<V>> {
        with_key(&key, |key| self.decode_found(key, self.keyspace.get(key)?))
    }

    /// Whether `key` has a value: see [`Keyspace::contains_key`]. The value is not decoded.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// assert!(!born.contains_key("ada")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl EncodeKey<K>) -> Result<bool> {
        with_key(&key, |key| self.keyspace.contains_key(key))
    }

    /// Removes `key`: see [`Keyspace::delete`].
    ///
    /// # Errors
    /// As [`Keyspace::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// born.delete("ada")?;
    /// assert_eq!(born.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete(&self, key: impl EncodeKey<K>) -> Result<()> {
        self.delete_with(key, &WriteOptions::new())
    }

    /// As [`TypedKeyspace::delete`], with options.
    ///
    /// # Errors
    /// As [`Keyspace::delete`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.delete_with("ada", &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_with(&self, key: impl EncodeKey<K>, options: &WriteOptions) -> Result<()> {
        with_key(&key, |key| self.keyspace.delete_with(key, options))
    }

    /// Removes `key` and returns its value: see [`Keyspace::take`].
    ///
    /// # Errors
    /// As [`Keyspace::take`]; `Decode` if the value was no `V`: it is gone then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.take("ada")?, Some(1815));
    /// assert_eq!(born.take("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn take(&self, key: impl EncodeKey<K>) -> Result<Option<V>> {
        self.take_with(key, &WriteOptions::new())
    }

    /// Removes every key in `range`: see [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::delete_range`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// born.delete_range("a".."b")?;
    /// assert_eq!(born.get("ada")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_range(&self, range: impl TypedRange<K>) -> Result<()> {
        self.keyspace.delete_range(range.encode_bounds())
    }

    /// Removes every key that begins with `prefix`: see [`TypedKeyspace::prefix`].
    ///
    /// # Errors
    /// As [`Keyspace::delete_prefix`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let logins: esker::TypedKeyspace<(String, u32), String> = esker::TypedKeyspace::open(&db, "logins", Default::default())?;
    /// logins.put(("ada", 7), "10.0.0.1")?;
    /// logins.delete_prefix(("ada",))?;
    /// assert_eq!(logins.get(("ada", 7))?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn delete_prefix(&self, prefix: impl KeyPrefix<K>) -> Result<()> {
        self.keyspace.delete_prefix(encode_prefix(&prefix))
    }

    /// The least key, with its value: see [`Keyspace::first`].
    ///
    /// # Errors
    /// As [`Keyspace::first`]; `Decode`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.first()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.keyspace.first()?.map(|pair| decode_pair(&self.keyspace, pair)).transpose()
    }

    /// The greatest key, with its value: see [`Keyspace::last`].
    ///
    /// # Errors
    /// As [`Keyspace::last`]; `Decode`.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.last()?, Some(("ada".to_owned(), 1815)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.keyspace.last()?.map(|pair| decode_pair(&self.keyspace, pair)).transpose()
    }

    /// The number of keys in `range`: see [`Keyspace::count`]. Nothing is decoded.
    ///
    /// # Errors
    /// As [`Keyspace::count`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.count("a".."b")?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count(&self, range: impl TypedRange<K>) -> Result<u64> {
        self.keyspace.count(range.encode_bounds())
    }

    /// All keys with their values, ascending, as they are now; `.rev()` for descending.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let born: esker::TypedKeyspace<String, u32> = esker::TypedKeyspace::open(&db, "born", Default::default())?;
    /// # born.put("ada", 1815)?;
    /// for pair in born.iter() {
    ///     let (name, year) = pair?;
    ///     println!("{name} {year}");
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> TypedIter<K, V> {
        TypedIter::new(&self.keyspace, self.keyspace.iter())
    }

    /// The keys in `range` with their values, ascending, as they are now.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let logins: esker::TypedKeyspace<(String, u32), String> = esker::TypedKeyspace::open(&db, "logins", Default::default())?;
    /// logins.put(("ada", 7), "10.0.0.1")?;
    /// logins.put(("ada", 300), "10.0.0.2")?;
    /// assert_eq!(logins.range(("ada", 8)..=("ada", 300)).count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range(&self, range: impl TypedRange<K>) -> TypedIter<K, V> {
        TypedIter::new(&self.keyspace, self.keyspace.range(range.encode_bounds()))
    }

    /// The keys that begin with `prefix` with their values, ascending, as they are now: of tuples,
    /// those with these leading elements (a single one is `(x,)`); of strings, those that begin
    /// with these characters. In the order of a comparator that is not built in, refused as
    /// [`Keyspace::prefix`] is.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let logins: esker::TypedKeyspace<(String, u32), String> = esker::TypedKeyspace::open(&db, "logins", Default::default())?;
    /// logins.put(("ada", 7), "10.0.0.1")?;
    /// logins.put(("ada's", 300), "10.0.0.2")?;
    /// assert_eq!(logins.prefix(("ada",)).count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> TypedIter<K, V> {
        TypedIter::new(&self.keyspace, self.keyspace.prefix(encode_prefix(&prefix)))
    }
}

/// As [`TypedKeyspace::iter`].
impl<K: KeyCodec, V: ValueCodec> IntoIterator for &TypedKeyspace<K, V> {
    type Item = Result<(K, V)>;
    type IntoIter = TypedIter<K, V>;

    fn into_iter(self) -> TypedIter<K, V> {
        self.iter()
    }
}
