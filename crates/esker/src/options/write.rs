//! The options of a write.

use std::time::Duration;

/// What a write does that meets stalled writes: a memtable ahead of its target rate, flushes or
/// compactions too far behind, memtables at their share of the memory budget, or a log segment that
/// is not ready. See `doc/semantics.md`, Writing.
///
/// ```
/// use esker::{Error, StallPolicy, WriteOptions};
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// match names.put_with("ada", "1815", &WriteOptions::new().stall(StallPolicy::Fail)) {
///     Err(Error::WriteStalled { cause, .. }) => println!("nothing was written: {cause}; {}", cause.hint()),
///     other => other?,
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallPolicy {
    /// It waits for as long as it takes.
    #[default]
    Wait,
    /// It fails at once with [`Error::WriteStalled`](crate::Error::WriteStalled), and nothing was
    /// written.
    Fail,
    /// It waits for at most so long, all waits of the call taken together, and fails then as with
    /// `Fail`.
    For(Duration),
}

/// Options of one write.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// use esker::WriteOptions;
/// names.put_with("ada", "1815", &WriteOptions::new().sync(true))?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "each setting returns the changed options"]
pub struct WriteOptions {
    pub(crate) sync: bool,
    pub(crate) disable_wal: bool,
    pub(crate) ttl: Option<Duration>,
    pub(crate) stall: StallPolicy,
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

    /// Leave the write-ahead log out: everything since the last flush is lost if the process dies,
    /// or drops its last handle without [`Db::close`](crate::Db::close). Default: false. Together
    /// with `sync` it is refused.
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

    /// How long the value lives, from this write on, in a keyspace whose entries can expire
    /// ([`KeyspaceOptions::ttl`](crate::KeyspaceOptions::ttl)); anywhere else, and with a delete,
    /// it is refused, as is zero. Default: the keyspace's default for a put; a merge keeps what
    /// the key has. Rounded up to whole milliseconds.
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

    /// Whether the write waits where writes are stalled, fails, or waits for a limited time.
    /// Default: `Wait`.
    ///
    /// * A write that fails for it has written nothing, and can be made again: the error is
    ///   retryable. A batch keeps its operations ([`Batch::commit_and_clear`]); a transaction is
    ///   run again.
    /// * The time that the device takes is no stall: neither for a sync, nor for a value that is
    ///   written to a blob file or read for a condition.
    /// * The turn behind other writes is none either, as long as each only takes the time of a
    ///   write; a write that is not to wait gives it up after 10 ms.
    /// * With `background_threads(0)` writes do the work themselves: nothing is stalled.
    ///
    /// [`Batch::commit_and_clear`]: crate::Batch::commit_and_clear
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::{StallPolicy, WriteOptions};
    /// let soon = WriteOptions::new().stall(StallPolicy::For(std::time::Duration::from_millis(20)));
    /// names.put_with("ada", "1815", &soon)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn stall(mut self, policy: StallPolicy) -> WriteOptions {
        self.stall = policy;
        self
    }
}
