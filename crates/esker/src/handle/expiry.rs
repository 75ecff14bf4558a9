//! The expiry of a value changed without the value: of a key, in a batch, in a transaction.

use super::batch::Batch;
use super::keyspace::{Keyspace, check, check_life, life_of};
use super::transaction::Transaction;
use crate::base::batch::{ExpiryChange, encode_expiry_change};
use crate::base::expiry::{Life, expiry_at};
use crate::base::key::{Kind, NEVER};
use crate::db::write::batch_size::start_record;
use crate::db::write::commit::{Unconditional, commit_merges_if};
use crate::db::write::merge_expiry::bytes_to_copy;
use crate::error::Result;
use crate::options::WriteOptions;
use std::time::{Duration, SystemTime};

/// The lifetime that ends at that time.
fn until(expires_at: SystemTime) -> Life {
    Life::UntilMs(expiry_at(expires_at))
}

/// Changes of an expiry. Each is one atomic write that keeps the value: what the key holds is
/// written again with another expiry, the reference of a large value instead of the value. Where
/// the key has no value, nothing is written.
impl Keyspace {
    fn change_expiry(&self, key: &[u8], life: Life) -> Result<bool> {
        let key = &*self.stored(key);
        check(&self.inner, Kind::Delete, key, &[])?;
        check_life(&self.inner, life)?;
        let inner = &self.shared.inner;
        inner.refuse_in_callback()?;
        inner.error_state.check()?;
        let (bytes, is_whole) = inner.look_between_writes(|| bytes_to_copy(inner, &self.inner, key));
        let bytes = bytes?;
        if bytes.is_none() && is_whole {
            return Ok(false);
        }
        let ttl = self.inner.ttl();
        let now_ms = inner.now_ms(&self.inner);
        let mut record = Vec::new();
        start_record(&mut record);
        let expiry_ms = ttl.expiry_ms(life, now_ms);
        encode_expiry_change(&mut record, &ExpiryChange { keyspace: self.inner.id, expiry_ms, key });
        let needs = [(self.inner.id, bytes.unwrap_or(0))];
        commit_merges_if(inner, &record, now_ms, &needs, &WriteOptions::new(), &mut Unconditional)
    }

    /// Has the value of `key` live for `ttl` from now on, however long it had. False if it has
    /// none, which is then not written either.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` also for a time of zero, or in a keyspace without
    /// time to live.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// use std::time::Duration;
    /// sessions.put("7", "ada")?;
    /// assert!(sessions.touch("7", Duration::from_secs(1800))?);
    /// assert!(!sessions.touch("8", Duration::from_secs(1800))?, "there is no such session");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool> {
        self.change_expiry(key.as_ref(), life_of(Some(ttl))?)
    }

    /// As [`Keyspace::touch`], until the time `expires_at`; one that has passed hides the value at
    /// once.
    ///
    /// # Errors
    /// As [`Keyspace::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// use std::time::SystemTime;
    /// sessions.put("7", "ada")?;
    /// assert!(sessions.expire_at("7", SystemTime::UNIX_EPOCH)?);
    /// assert!(sessions.get("7")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&self, key: impl AsRef<[u8]>, expires_at: SystemTime) -> Result<bool> {
        self.change_expiry(key.as_ref(), until(expires_at))
    }

    /// Has the value of `key` live until it is overwritten or deleted. False if it has none.
    ///
    /// # Errors
    /// As [`Keyspace::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// use esker::{Expiry, WriteOptions};
    /// sessions.put_with("7", "ada", &WriteOptions::new().ttl(std::time::Duration::from_secs(60)))?;
    /// assert!(sessions.persist("7")?);
    /// assert_eq!(sessions.expires_at("7")?, Some(Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.change_expiry(key.as_ref(), Life::UntilMs(NEVER))
    }
}

/// Changes of an expiry: of the value that the key has when the batch takes effect, after the
/// operations added before. Each looks the key up when it is added, so that the commit finds it in
/// memory.
impl Batch {
    /// Adds that the value of `key` lives for `ttl` from the commit on, as [`Keyspace::touch`].
    ///
    /// # Errors
    /// As [`Keyspace::touch`], or if the keyspace belongs to another database. The commit may fail
    /// as reads do.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("7", "ada")?;
    /// let mut batch = db.batch();
    /// batch.touch(&sessions, "7", std::time::Duration::from_secs(1800))?;
    /// batch.commit()?;
    /// assert!(matches!(sessions.expires_at("7")?, Some(esker::Expiry::At(_))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), life_of(Some(ttl))?)
    }

    /// Adds that the value of `key` lives until `expires_at`, as [`Keyspace::expire_at`].
    ///
    /// # Errors
    /// As [`Batch::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("7", "ada")?;
    /// let mut batch = db.batch();
    /// batch.expire_at(&sessions, "7", std::time::SystemTime::UNIX_EPOCH)?;
    /// batch.commit()?;
    /// assert!(sessions.get("7")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, expires_at: SystemTime) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), until(expires_at))
    }

    /// Adds that the value of `key` no longer expires, as [`Keyspace::persist`].
    ///
    /// # Errors
    /// As [`Batch::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let mut batch = db.batch();
    /// batch.put_with_ttl(&sessions, "7", "ada", std::time::Duration::from_secs(60))?;
    /// batch.persist(&sessions, "7")?;
    /// batch.commit()?;
    /// assert_eq!(sessions.expires_at("7")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), Life::UntilMs(NEVER))
    }
}

/// Changes of an expiry. They are writes to the key: a write of another writer to it is a conflict.
impl Transaction {
    /// Has the value of `key` live for `ttl` from the commit on, as [`Keyspace::touch`]. A value
    /// that expires before the commit stays expired, and that is no conflict.
    ///
    /// # Errors
    /// As [`Batch::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("7", "ada")?;
    /// let mut transaction = db.transaction();
    /// if transaction.get(&sessions, "7")?.is_some() {
    ///     transaction.touch(&sessions, "7", std::time::Duration::from_secs(1800))?;
    /// }
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn touch(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), life_of(Some(ttl))?)
    }

    /// Has the value of `key` live until `expires_at`, as [`Keyspace::expire_at`]. If that has
    /// passed, the transaction no longer sees the value.
    ///
    /// # Errors
    /// As [`Batch::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("7", "ada")?;
    /// let mut transaction = db.transaction();
    /// transaction.expire_at(&sessions, "7", std::time::SystemTime::UNIX_EPOCH)?;
    /// assert!(transaction.get(&sessions, "7")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expire_at(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, expires_at: SystemTime) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), until(expires_at))
    }

    /// Has the value of `key` no longer expire, as [`Keyspace::persist`].
    ///
    /// # Errors
    /// As [`Batch::touch`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// sessions.put("7", "ada")?;
    /// let mut transaction = db.transaction();
    /// transaction.persist(&sessions, "7")?;
    /// transaction.commit()?;
    /// assert_eq!(sessions.expires_at("7")?, Some(esker::Expiry::Never));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn persist(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.change_expiry(keyspace, key.as_ref(), Life::UntilMs(NEVER))
    }
}
