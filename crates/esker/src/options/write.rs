//! The options of a write.

use std::time::Duration;

/// Options of one write.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// use esker::WriteOptions;
/// names.put_with("ada", "1815", &WriteOptions::new().sync(true))?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub(crate) sync: bool,
    pub(crate) disable_wal: bool,
    pub(crate) ttl: Option<Duration>,
}

impl WriteOptions {
    /// The defaults: logged, not synced. An acknowledged write then survives the death of the
    /// process, not of the machine.
    ///
    /// ```
    /// assert_eq!(esker::WriteOptions::new(), esker::WriteOptions::default());
    /// ```
    pub fn new() -> WriteOptions {
        WriteOptions::default()
    }

    /// Return only when the write, and everything acknowledged before it, is on the device: it
    /// survives power loss. Default: false. Costs one device flush, shared by all threads that wait
    /// at the same time.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put_with("ada", "1815", &esker::WriteOptions::new().sync(true))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sync(mut self, yes: bool) -> WriteOptions {
        self.sync = yes;
        self
    }

    /// Leave the write-ahead log out: everything since the last flush is lost if the process dies.
    /// Default: false. Together with `sync` it is refused.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put_with("ada", "1815", &esker::WriteOptions::new().disable_wal(true))?;
    /// db.flush()?; // until then, in memory only
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn disable_wal(mut self, yes: bool) -> WriteOptions {
        self.disable_wal = yes;
        self
    }

    /// How long the value lives, from this write on, in a keyspace created with
    /// [`KeyspaceOptions::ttl`](crate::KeyspaceOptions::ttl); anywhere else, and with a delete, it
    /// is refused, as is zero. Default: the keyspace's default for a put; a merge keeps what the
    /// key has. Rounded up to whole milliseconds.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
    /// let minute = esker::WriteOptions::new().ttl(std::time::Duration::from_secs(60));
    /// sessions.put_with("ada", "", &minute)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> WriteOptions {
        self.ttl = Some(ttl);
        self
    }
}
