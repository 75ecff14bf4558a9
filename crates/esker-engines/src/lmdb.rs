//! LMDB through heed, which builds it in.
//!
//! Settings. Class `OperatingSystem`: `NO_SYNC` without `WRITE_MAP`: a commit hands its pages to
//! write(2), so it survives the process, not the machine (`write_map=1` adds `WRITE_MAP`: the same
//! class, pages are written by storing into the map). Class `Device`: no flags, every commit is
//! synced. A synced write on a database opened without `sync` commits and then syncs by hand. The
//! map is four times the expected data, at least 1 GiB, in a sparse file; LMDB has no cache of its
//! own, it uses the page cache of the system.
//!
//! One transaction per write; a read transaction is kept per session and renewed when anything has
//! been committed since, as a program with many reads does. Merge is get and put in one write
//! transaction. Keys of more than 511 bytes, and empty ones, are refused by LMDB.

use super::merge::{MergeOperator, no_operator};
use super::settings::{Settings, make_directory, switch};
use super::{
    Capabilities, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit, Opened,
    Operation, Result, Session, WriteMode,
};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoRange, RoRevRange, RoTxn, RwTxn, WithoutTls};
use self_cell::self_cell;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The registry row of LMDB.
pub const KIND: EngineKind = EngineKind {
    name: "lmdb",
    title: "LMDB",
    capabilities: Capabilities::ORDERED,
    memory: MemorySplit::cache_only("no cache of its own: it maps the file, and the system's page cache comes on top"),
    open,
    probe: |_| Ok(version()),
};

/// Its name.
pub(crate) const NAME: &str = KIND.name;

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{} (bundled with heed)", version.major, version.minor, version.patch)
}

/// The line for a person of what LMDB refused.
pub fn failed(error: heed::Error) -> EngineError {
    match error {
        heed::Error::Mdb(heed::MdbError::MapFull) => {
            EngineError(format!("{NAME}: the map is full: raise the expected size of the data"))
        }
        error => EngineError(format!("{NAME}: {error}")),
    }
}

fn open(directory: &Path, options: &EngineOptions, _library: Option<&Path>) -> Result<Opened> {
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let page = 1 << 12;
    let map = options.expected_data_bytes.saturating_mul(4).max(1 << 30).div_ceil(page).saturating_mul(page);
    let map_size =
        usize::try_from(map).map_err(|_| EngineError(format!("{NAME}: a map of {map} bytes does not fit")))?;
    let write_map = switch(options, "write_map")?.unwrap_or(false);
    let mut flags = EnvFlags::empty();
    flags.set(EnvFlags::NO_SYNC, !options.sync);
    flags.set(EnvFlags::WRITE_MAP, write_map);
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(map_size).max_readers(256);
    // SAFETY: NO_SYNC and WRITE_MAP endanger the data when the machine or the program fails, not
    // this process's memory. Nothing else opens or changes the database's files: the directory
    // belongs to this run.
    let env = unsafe {
        opening.flags(flags);
        opening.open(directory).map_err(failed)?
    };
    let database = create_database(&env)?;
    let description = settings(options, operator, map, write_map).describe(&KIND, version());
    let engine = Lmdb { env, database, commits: AtomicU64::new(0), always_synced: options.sync, operator };
    Ok(Opened::new(engine, description))
}

/// Opens a database that another program has made, the directory or the file, and changes nothing
/// in it.
pub fn open_for_reading(path: &Path) -> Result<Env<WithoutTls>> {
    let mut flags = EnvFlags::READ_ONLY;
    flags.set(EnvFlags::NO_SUB_DIR, path.is_file());
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    // One named database is read; others are opened to see whether they are one.
    opening.max_dbs(1001);
    // SAFETY: it is only read, and LMDB's own lock keeps it whole beside a program that writes to
    // it. A program that changes the file without LMDB would have to be told not to, as with any
    // mapped file: the command says that the source must not be changed meanwhile.
    unsafe {
        opening.flags(flags);
        opening.open(path).map_err(failed)
    }
}

fn create_database(env: &Env<WithoutTls>) -> Result<Database<'static, Bytes, Bytes>> {
    let txn = env.write_txn().map_err(failed)?;
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        opener.create_database::<Bytes, Bytes>(txn, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    match created.map_err(failed)? {
        CommitOrAbort::Commit(database) => Ok(database),
        CommitOrAbort::Abort(()) => Err(EngineError(format!("{NAME}: the database was not created"))),
    }
}

fn settings(options: &EngineOptions, operator: Option<MergeOperator>, map: u64, write_map: bool) -> Settings {
    let (durability, how) = match (options.sync, write_map) {
        (true, _) => (Durability::Device, "every commit synced (no flags)"),
        (false, false) => (Durability::OperatingSystem, "MDB_NOSYNC: a commit hands its pages to write(2)"),
        (false, true) => {
            (Durability::OperatingSystem, "MDB_NOSYNC with MDB_WRITEMAP: a commit stores into the shared map")
        }
    };
    let memory = "page cache of the system, no limit of its own".to_string();
    let mut settings = Settings::new(durability, how, memory, "none");
    settings.add("map_size", map);
    settings.add("write_map", u8::from(write_map));
    settings.add("page_size", "4096 (of the system)");
    settings.add_merge(operator, "get + put in a transaction");
    settings
}

struct Lmdb {
    env: Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
    /// Counts commits; raised before a write is acknowledged, so a reader that sees no change has
    /// missed nothing.
    commits: AtomicU64,
    always_synced: bool,
    operator: Option<MergeOperator>,
}

impl Engine for Lmdb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession { engine: self, reader: None, scratch: Vec::new() }))
    }

    fn property(&self, name: &str) -> Option<String> {
        if name != "stats" {
            return None;
        }
        let txn = self.env.read_txn().ok()?;
        let stat = self.database.stat(&txn).ok()?;
        Some(format!(
            "entries {} depth {} branch_pages {} leaf_pages {} overflow_pages {}",
            stat.entries, stat.depth, stat.branch_pages, stat.leaf_pages, stat.overflow_pages
        ))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let synced = if self.always_synced { Ok(()) } else { self.env.force_sync().map_err(failed) };
        self.env.prepare_for_closing().wait();
        synced
    }
}

struct LmdbSession<'e> {
    engine: &'e Lmdb,
    /// A read transaction, and the number of commits it has seen.
    reader: Option<(u64, RoTxn<'e, WithoutTls>)>,
    scratch: Vec<u8>,
}

impl LmdbSession<'_> {
    /// Runs `work` in a write transaction and commits.
    fn transact(
        &mut self,
        mode: WriteMode,
        work: impl FnOnce(&Lmdb, &mut RwTxn<'_>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        // An old read transaction would keep freed pages from being used again.
        self.reader = None;
        let engine = self.engine;
        let mut txn = engine.env.write_txn().map_err(failed)?;
        work(engine, &mut txn, &mut self.scratch)?;
        txn.commit().map_err(failed)?;
        engine.commits.fetch_add(1, Ordering::SeqCst);
        if mode.sync && !engine.always_synced {
            engine.env.force_sync().map_err(failed)?;
        }
        Ok(())
    }
}

impl Lmdb {
    fn merge(&self, txn: &mut RwTxn<'_>, key: &[u8], operand: &[u8], scratch: &mut Vec<u8>) -> Result<()> {
        let operator = self.operator.ok_or_else(|| no_operator(NAME))?;
        let found = match self.database.get(txn, key).map_err(failed)? {
            None => false,
            Some(existing) => {
                scratch.clear();
                scratch.extend_from_slice(existing);
                true
            }
        };
        operator.apply(scratch, found, operand)?;
        self.database.put(txn, key, scratch).map_err(failed)
    }
}

impl Session for LmdbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.transact(mode, |engine, txn, _| engine.database.put(txn, key, value).map_err(failed))
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.transact(mode, |engine, txn, _| engine.database.delete(txn, key).map(|_| ()).map_err(failed))
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        self.transact(mode, |engine, txn, scratch| {
            batch.iter().try_for_each(|operation| match *operation {
                Operation::Put(key, value) => engine.database.put(txn, key, value).map_err(failed),
                Operation::Delete(key) => engine.database.delete(txn, key).map(|_| ()).map_err(failed),
                Operation::Merge(key, operand) => engine.merge(txn, key, operand, scratch),
            })
        })
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.transact(mode, |engine, txn, scratch| engine.merge(txn, key, operand, scratch))
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let engine = self.engine;
        let commits = engine.commits.load(Ordering::SeqCst);
        let (_, txn) = match self.reader.take() {
            Some(reader) if reader.0 == commits => self.reader.insert(reader),
            old => {
                // The old one goes first: its slot is then the new one's.
                drop(old);
                self.reader.insert((commits, engine.env.read_txn().map_err(failed)?))
            }
        };
        let Some(found) = engine.database.get(txn, key).map_err(failed)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Ok(Box::new(iterate(&self.engine.env, self.engine.database)?))
    }
}

/// The cursor in one of its directions.
enum Range<'t> {
    Forward(RoRange<'t, Bytes, Bytes>),
    Backward(RoRevRange<'t, Bytes, Bytes>),
}

/// A cursor and the entry it is on, both inside the map: no byte is copied.
#[derive(Default)]
struct Steps<'t> {
    range: Option<Range<'t>>,
    current: Option<(&'t [u8], &'t [u8])>,
}

self_cell!(
    /// A read transaction and the cursor that walks in it.
    struct Scan {
        owner: RoTxn<'static, WithoutTls>,
        #[covariant]
        dependent: Steps,
    }
);

/// A scan of a database as it is now.
pub(crate) struct LmdbIteration {
    database: Database<'static, Bytes, Bytes>,
    scan: Scan,
}

/// See [`LmdbIteration`].
pub(crate) fn iterate(env: &Env<WithoutTls>, database: Database<'static, Bytes, Bytes>) -> Result<LmdbIteration> {
    let txn = env.clone().static_read_txn().map_err(failed)?;
    Ok(LmdbIteration { database, scan: Scan::new(txn, |_| Steps::default()) })
}

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

impl LmdbIteration {
    fn forward(&mut self, bounds: &Bounds<'_>) -> Result<bool> {
        let database = self.database;
        self.scan.with_dependent_mut(|txn, steps| {
            steps.range = Some(Range::Forward(database.range(txn, bounds).map_err(failed)?));
            steps.step()
        })
    }

    fn backward(&mut self, bounds: &Bounds<'_>) -> Result<bool> {
        let database = self.database;
        self.scan.with_dependent_mut(|txn, steps| {
            steps.range = Some(Range::Backward(database.rev_range(txn, bounds).map_err(failed)?));
            steps.step()
        })
    }
}

impl Steps<'_> {
    fn step(&mut self) -> Result<bool> {
        let entry = match &mut self.range {
            None => None,
            Some(Range::Forward(range)) => range.next(),
            Some(Range::Backward(range)) => range.next(),
        };
        self.current = entry.transpose().map_err(failed)?;
        if self.current.is_none() {
            self.range = None;
        }
        Ok(self.current.is_some())
    }
}

impl Iteration for LmdbIteration {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.forward(&(Bound::Unbounded, Bound::Unbounded))
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.backward(&(Bound::Unbounded, Bound::Unbounded))
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.forward(&(Bound::Included(key), Bound::Unbounded))
    }

    fn next(&mut self) -> Result<bool> {
        if matches!(self.scan.borrow_dependent().range, Some(Range::Backward(_))) {
            // Turning round is rare; the copy frees the cursor to be replaced.
            let here = self.key().to_vec();
            return self.forward(&(Bound::Excluded(here.as_slice()), Bound::Unbounded));
        }
        self.scan.with_dependent_mut(|_, steps| steps.step())
    }

    fn prev(&mut self) -> Result<bool> {
        if matches!(self.scan.borrow_dependent().range, Some(Range::Forward(_))) {
            let here = self.key().to_vec();
            return self.backward(&(Bound::Unbounded, Bound::Excluded(here.as_slice())));
        }
        self.scan.with_dependent_mut(|_, steps| steps.step())
    }

    fn key(&self) -> &[u8] {
        self.scan.borrow_dependent().current.map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> &[u8] {
        self.scan.borrow_dependent().current.map_or(&[], |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Place, open as import};

    #[test]
    fn named_databases_are_imported_by_their_names() {
        let scratch = tempfile::tempdir().unwrap();
        let mut opening = EnvOpenOptions::new().read_txn_without_tls();
        // SAFETY: nothing else has the new directory.
        let env = unsafe { opening.max_dbs(4).open(scratch.path()) }.unwrap();
        for name in ["one", "two"] {
            let txn = env.write_txn().unwrap();
            let created = env.create_databases_and_commit(txn, |opener, txn| {
                let database = opener.create_database::<Bytes, Bytes>(txn, Some(name))?;
                database.put(txn, b"key", name.as_bytes())?;
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(database))
            });
            assert!(created.is_ok());
        }
        env.prepare_for_closing().wait();
        let place = |table: Option<&str>| Place {
            path: scratch.path().to_path_buf(),
            table: table.map(str::to_owned),
            ..Place::default()
        };
        for wrong in [None, Some("three")] {
            let error = import("lmdb", &place(wrong)).err().expect("an error").0;
            assert!(error.contains("there are: one, two"), "{error}");
        }
        let mut found = Vec::new();
        let mut source = import("lmdb", &place(Some("two"))).unwrap();
        source
            .read(None, &mut |key, value| {
                found.push((key.to_vec(), value.to_vec()));
                true
            })
            .unwrap();
        assert_eq!(found, [(b"key".to_vec(), b"two".to_vec())]);
    }
}
