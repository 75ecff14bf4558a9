//! Maintenance of an open database: flush, compaction, checkpoints, verification, statistics.

use super::database::Db;
use crate::db::background::{compaction, flush, run};
use crate::db::maintenance::checkpoint::{self, CheckpointMode};
use crate::db::maintenance::metrics::{self, Recorder};
use crate::db::maintenance::stats::{Stats, collect};
use crate::db::maintenance::verify::{self, VerifyEvent, VerifyReport};
use crate::db::maintenance::{follower_checkpoint, properties, verify_directory};
use crate::db::state::error_state::Health;
use crate::db::write_controller::condition;
use crate::error::Result;
use crate::options::{Explanation, Options};
use std::path::Path;

impl Db {
    /// Writes everything acknowledged so far into tables.
    ///
    /// # Errors
    /// `Io` if that fails; the writes stay in the log and in memory then.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// assert_eq!(db.stats().table_files, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        flush::flush_now(&self.shared.inner)
    }

    /// Flushes, then compacts every keyspace into one sorted run, dropping what no reader can see,
    /// and gives back unused log files. Rewrites the whole database at worst. Large values are
    /// compressed where that pays. With [`crate::CompactionStyle::Fifo`] nothing is compacted.
    ///
    /// # Errors
    /// As [`Db::flush`]. `Corruption` ends it at a damaged table; a damaged large value is named
    /// when all else is done.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// names.delete("ada")?;
    /// db.compact()?;
    /// assert_eq!(db.stats().table_files, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        compaction::compact_now(&self.shared.inner, None)
    }

    /// Waits until the background work of an idle database is done: flushes, compactions, and
    /// compression of the large values written before the call.
    ///
    /// # Errors
    /// What the background work failed with.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.wait_idle()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<()> {
        run::wait_idle(&self.shared.inner)
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// `Io` if the device refuses; the handle is read-only from then on.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// for name in ["ada", "bob", "eve"] {
    ///     names.put(name, "")?;
    /// }
    /// db.sync()?; // from here on all three survive a power loss
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.shared.inner.error_state.check()?;
        self.shared.inner.sync_log()
    }

    /// Writes a copy of the whole database, as of now, that opens as a database of its own. Writing
    /// goes on meanwhile. Tables are hard links where the file system allows, so that the copy
    /// takes little time and space.
    ///
    /// A linked file is the same file as in this database, under a second name. Never change or
    /// truncate it in place: this database reads it, in part through mappings, and what is
    /// truncated it cannot read any more. Deleting the copy, or opening it as a database, does no
    /// harm. For a copy with files of its own there is [`Db::checkpoint_with`].
    ///
    /// On the handle of a [`Follower`](crate::Follower) it is a copy of what a database holds that
    /// another process writes, without its doing; see [`Db::checkpoint_with`].
    ///
    /// # Errors
    /// `InvalidArgument` if `directory` exists and is not empty, or is in the database's own; `Io`;
    /// `ReadOnly` on a handle opened read-only; `Stalled` on that of a follower.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.checkpoint("backup")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with(directory, CheckpointMode::Link)
    }

    /// As [`Db::checkpoint`], with files of its own on request: with [`CheckpointMode::Copy`], what
    /// happens to the files of the copy, or to where they lie on the device, does not happen to
    /// those of this database, nor the other way round.
    ///
    /// Everything that is copied is checked: tables block by block, as they are read, and each
    /// large value when it is in the copy. All of it is on the device before the directory counts
    /// as a database. Writes, flushes and compactions go on meanwhile; files that these replace are
    /// removed when the copy is done.
    ///
    /// On the handle of a [`Follower`](crate::Follower) the call catches up first. It holds every
    /// write that was acknowledged before it, but for writes without log that are not flushed, and
    /// also those that the writer has not synced. Nothing is written to the directory of the
    /// database, and the writer does not wait, whatever it does meanwhile. Blob files are copied
    /// with either mode: the writer may go on appending to them.
    ///
    /// # Errors
    /// `InvalidArgument` if `directory` exists and is not empty, or is in the database's own; `Io`;
    /// `ReadOnly` on a handle opened read-only; on that of a follower `Stalled` if the writer
    /// changes its files faster than they can be opened, and what
    /// [`Follower::catch_up`](crate::Follower::catch_up) returns.
    /// `Corruption` names a damaged file of this database, as [`Db::health`] then does, and the
    /// place in it. After an error there is no copy.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::CheckpointMode;
    /// names.put("ada", "1815")?;
    /// match db.checkpoint_with("backup", CheckpointMode::Copy) {
    ///     Err(esker::Error::Corruption { path, offset, .. }) => println!("{} is damaged at {offset}", path.display()),
    ///     other => other?,
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint_with(&self, directory: impl AsRef<Path>, mode: CheckpointMode) -> Result<()> {
        let (inner, target) = (&self.shared.inner, directory.as_ref());
        match &self.shared.following {
            None => checkpoint::checkpoint(inner, target, mode),
            Some(following) => follower_checkpoint::checkpoint(inner, following, target, mode),
        }
    }

    /// Reads every table and every large value, and checks everything that can be checked. Damage
    /// does not end it: all is read, and [`Db::verify_with`] tells of each.
    ///
    /// # Errors
    /// `Corruption` names the first damaged file and the place in it; `Io` a file that cannot be
    /// read.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// assert_eq!(db.verify()?.tables, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(&mut |_| {})
    }

    /// As [`Db::verify`]; `tell` is called with the progress, and with all damage as it is found.
    ///
    /// # Errors
    /// As [`Db::verify`], after all has been read.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// use esker::VerifyEvent;
    /// names.put("ada", "1815")?;
    /// db.flush()?;
    /// db.verify_with(&mut |event| match event {
    ///     VerifyEvent::Damage(error) => println!("{error}"),
    ///     VerifyEvent::Progress { done, total } => println!("{done} of {total} bytes"),
    ///     _ => {}
    /// })?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify_with(&self, tell: &mut dyn FnMut(VerifyEvent<'_>)) -> Result<VerifyReport> {
        verify::verify(&self.shared.inner, tell)
    }

    /// As [`Db::verify_with`], for the database in the directory `path`, which need not open. Takes
    /// no lock and writes nothing; a writer may be at work in the same directory.
    ///
    /// If the database opens for reading, it is checked as by [`Db::verify_with`]. Otherwise each
    /// part is checked on its own: the manifest, each table that it names, the log, and each large
    /// value that tables and log refer to. `tell` is called with every damaged place, and with
    /// every unreadable file. Parts that are reached through damaged ones only are not checked: the
    /// blocks of a table after the first damaged one, if its index is damaged too, and the records
    /// of a manifest after a damaged first one. If the manifest is damaged, tables that it does not
    /// name are checked as well.
    ///
    /// Takes the memory of an open of the database. If the open fails, takes the memory of the
    /// index of one table, or of one record of the log, at a time.
    ///
    /// # Errors
    /// As [`Db::verify`], after all has been read: the first of what `tell` was given. `NotFound`
    /// if there is no database; `MissingComparator`; `Stalled` beside a writer that is too fast.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # esker::Db::open("data", options.clone())?.close()?;
    /// use esker::{Db, VerifyEvent};
    /// let mut damaged = Vec::new();
    /// let result = Db::verify_directory("data", options, &mut |event| {
    ///     if let VerifyEvent::Damage(error) = event {
    ///         damaged.push(error.to_string());
    ///     }
    /// });
    /// assert_eq!(result.is_ok(), damaged.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify_directory(
        path: impl AsRef<Path>,
        options: Options,
        tell: &mut dyn FnMut(VerifyEvent<'_>),
    ) -> Result<VerifyReport> {
        verify_directory::verify_directory(path.as_ref(), &options, tell)
    }

    /// The statistics of this moment. Cheap.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// names.put("ada", "1815")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.last_sequence, 1);
    /// println!("{stats}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        collect(&self.shared.inner)
    }

    /// Every option with its present value, its origin, and its trade-off.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-explain-{}", std::process::id()));
    /// use esker::{Db, Options};
    /// let db = Db::open(&directory, Options::default().memory_budget_bytes(64 << 20))?;
    /// assert!(db.explain().to_string().contains("write_buffer_bytes = 16 MiB (from the memory budget)"));
    /// # drop(db);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self) -> Explanation {
        self.shared.inner.options.explain()
    }

    /// Whether the database can be written, and what is wrong if not.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let health = db.health();
    /// assert!(health.writable && health.problem.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn health(&self) -> Health {
        let inner = &self.shared.inner;
        inner.error_state.report(condition::reason(inner), inner.blobs.damage())
    }

    /// The values of [`Db::stats`] and [`Db::health`] under names that do not change, as text:
    /// `esker.memtable.bytes`, and for each keyspace `esker.keyspace.NAME.runs` and others. Counts
    /// are in decimal, sizes in bytes, times in microseconds. Costs what the two cost.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// for (name, value) in db.properties() {
    ///     println!("{name} {value}");
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn properties(&self) -> Vec<(String, String)> {
        let inner = &self.shared.inner;
        let latencies = |timed| inner.latencies.get().map(|latencies| latencies.of(timed));
        properties::properties(&self.stats(), &self.health(), latencies)
    }

    /// The property of that name, one of those that [`Db::properties`] lists; `None` if there is
    /// none. Costs as much as all of them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let directory = std::env::temp_dir().join(format!("esker-doc-property-{}", std::process::id()));
    /// # let db = esker::Db::open(&directory, Default::default())?;
    /// db.keyspace("names", Default::default())?.put("ada", "")?;
    /// assert_eq!(db.property("esker.keyspace.names.memtable_entries").as_deref(), Some("1"));
    /// assert_eq!(db.property("esker.no.such.figure"), None);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn property(&self, name: &str) -> Option<String> {
        self.properties().into_iter().find_map(|(found, value)| (found == name).then_some(value))
    }

    /// Hands every metric of [`METRICS`](crate::METRICS) with its present value to `recorder`, in
    /// that order: for exporters, which call it each time they are asked. No lock is held
    /// meanwhile. Costs what [`Db::stats`] costs, and a few microseconds for each histogram.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let mut text = esker::PrometheusText::new();
    /// db.record(&mut text);
    /// print!("{text}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn record(&self, recorder: &mut dyn Recorder) {
        let inner = &self.shared.inner;
        let latencies = |timed| inner.latencies.get().map(|latencies| latencies.of(timed));
        metrics::record(&self.stats(), &self.health(), latencies, recorder);
    }
}
