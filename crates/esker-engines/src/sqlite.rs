//! SQLite, as LevelDB's own comparison set it up.
//!
//! Settings: the page size is always issued and read back (since 3.12 the default is 4096, so "1024
//! is the default" silently became wrong); write-ahead log with a checkpoint every 4096 pages,
//! exclusive locking, `WITHOUT ROWID`, one autocommit transaction per row, batches in BEGIN/END,
//! and a full checkpoint in `finish_writes`. `synchronous` is OFF (the log is handed to write(2):
//! survives the process) or FULL.
//!
//! One connection behind a mutex serves all sessions: exclusive locking admits no second one. A
//! scan holds the mutex until it is dropped, so one thread must not use two sessions at once while
//! one of them scans. Merge is an UPSERT with the operator as an SQL function: one statement, as a
//! program with integer columns would write it.

use super::merge::{MergeOperator, no_operator};
use super::settings::{Settings, make_directory, number, switch};
use super::{
    Capabilities, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit, Opened,
    Operation, Result, Session, WriteMode,
};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement};
use self_cell::self_cell;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The registry row of SQLite.
pub const KIND: EngineKind = EngineKind {
    name: "sqlite",
    title: "SQLite",
    capabilities: Capabilities { compact: true, ..Capabilities::ORDERED },
    memory: MemorySplit::cache_only("no write buffer: all is page cache"),
    open,
    probe: |_| Ok(version()),
};

const NAME: &str = KIND.name;

fn version() -> String {
    format!("{} (bundled with rusqlite)", rusqlite::version())
}

fn failed(error: rusqlite::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

/// Every statement, prepared once.
struct Statements<'c> {
    put: Statement<'c>,
    get: Statement<'c>,
    delete: Statement<'c>,
    merge: Option<Statement<'c>>,
    begin: Statement<'c>,
    end: Statement<'c>,
    rollback: Statement<'c>,
    scans: [Statement<'c>; 5],
}

/// The scans of `Statements::scans`.
#[derive(Clone, Copy)]
enum Scan {
    First = 0,
    From = 1,
    After = 2,
    Last = 3,
    Before = 4,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection, merges: bool) -> rusqlite::Result<Statements<'c>> {
        let scan = |rest: &str| connection.prepare(&format!("SELECT key, value FROM test {rest}"));
        let merge = "INSERT INTO test (key, value) VALUES (?1, ?2) \
                     ON CONFLICT (key) DO UPDATE SET value = merge_operand(value, excluded.value)";
        Ok(Statements {
            put: connection.prepare("REPLACE INTO test (key, value) VALUES (?1, ?2)")?,
            get: connection.prepare("SELECT value FROM test WHERE key = ?1")?,
            delete: connection.prepare("DELETE FROM test WHERE key = ?1")?,
            merge: if merges { Some(connection.prepare(merge)?) } else { None },
            begin: connection.prepare("BEGIN TRANSACTION")?,
            end: connection.prepare("END TRANSACTION")?,
            rollback: connection.prepare("ROLLBACK TRANSACTION")?,
            scans: [
                scan("ORDER BY key")?,
                scan("WHERE key >= ?1 ORDER BY key")?,
                scan("WHERE key > ?1 ORDER BY key")?,
                scan("ORDER BY key DESC")?,
                scan("WHERE key < ?1 ORDER BY key DESC")?,
            ],
        })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> rusqlite::Result<()> {
        execute(&mut self.put, &[key, value])
    }

    fn apply(&mut self, operation: &Operation<'_>) -> Result<()> {
        match *operation {
            Operation::Put(key, value) => self.put(key, value).map_err(failed),
            Operation::Delete(key) => execute(&mut self.delete, &[key]).map_err(failed),
            Operation::Merge(key, operand) => {
                let statement = self.merge.as_mut().ok_or_else(|| no_operator(NAME))?;
                execute(statement, &[key, operand]).map_err(failed)
            }
        }
    }
}

fn execute(statement: &mut Statement<'_>, parameters: &[&[u8]]) -> rusqlite::Result<()> {
    for (index, parameter) in parameters.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, parameter)?;
    }
    statement.raw_execute().map(|_| ())
}

self_cell!(
    /// A connection and the statements that borrow it.
    struct Prepared {
        owner: Connection,
        #[not_covariant]
        dependent: Statements,
    }
);

/// The connection, its statements and what `synchronous` is at the moment.
struct Shared {
    prepared: Prepared,
    synchronous_full: Option<bool>,
}

// SAFETY: `Connection` is `Send`. The statements are not, only because they hold a reference to the
// connection, which another thread could use at the same time. Here connection and statements
// always move together and nobody else has a reference to either: they are reached through `&mut
// Shared` only, that is, under the mutex of `Sqlite`.
unsafe impl Send for Shared {}

impl Shared {
    fn run<T>(&mut self, work: impl FnOnce(&mut Statements<'_>) -> T) -> T {
        self.prepared.with_dependent_mut(|_, statements| work(statements))
    }

    /// Sets `synchronous` if it is not already so; outside of transactions only.
    fn set_mode(&mut self, mode: WriteMode) -> Result<()> {
        if self.synchronous_full == Some(mode.sync) {
            return Ok(());
        }
        let value = if mode.sync { "FULL" } else { "OFF" };
        self.prepared.borrow_owner().pragma_update(None, "synchronous", value).map_err(failed)?;
        self.synchronous_full = Some(mode.sync);
        Ok(())
    }
}

struct Sqlite {
    shared: Mutex<Shared>,
    operator: Option<MergeOperator>,
}

fn open(directory: &Path, options: &EngineOptions, _library: Option<&Path>) -> Result<Opened> {
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let connection = Connection::open(directory.join("dbbench.sqlite3")).map_err(failed)?;
    let description = configure(&connection, options, operator)?.describe(&KIND, version());
    if let Some(operator) = operator {
        define_merge(&connection, operator).map_err(failed)?;
    }
    let prepared = Prepared::try_new(connection, |connection| Statements::prepare(connection, operator.is_some()))
        .map_err(failed)?;
    let mut shared = Shared { prepared, synchronous_full: None };
    shared.set_mode(WriteMode { sync: options.sync, disable_wal: false })?;
    Ok(Opened::new(Sqlite { shared: Mutex::new(shared), operator }, description))
}

/// Issues the pragmas in the order that matters, creates the table, and reads back what came of it.
fn configure(connection: &Connection, options: &EngineOptions, operator: Option<MergeOperator>) -> Result<Settings> {
    let page_size: u32 = number(options, "page_size")?.unwrap_or(4096);
    let pages: Option<u64> = number(options, "num_pages")?;
    let wal = switch(options, "WAL_enabled")?.unwrap_or(true);
    let rowids = switch(options, "use_rowids")?.unwrap_or(false);
    let set = |name: &str, value: &dyn rusqlite::ToSql| connection.pragma_update(None, name, value).map_err(failed);
    set("page_size", &page_size)?;
    match (options.cache_bytes, pages) {
        // A negative size is in KiB.
        (Some(bytes), _) => set("cache_size", &-i64::try_from((bytes / 1024).max(1)).unwrap_or(i64::MAX))?,
        (None, Some(pages)) => set("cache_size", &i64::try_from(pages).unwrap_or(i64::MAX))?,
        (None, None) => {}
    }
    if wal {
        set("journal_mode", &"WAL")?;
        set("wal_autocheckpoint", &4096)?;
    }
    set("locking_mode", &"EXCLUSIVE")?;
    if switch(options, "mmap_read")?.unwrap_or(false) {
        set("mmap_size", &(1i64 << 31))?;
    }
    let suffix = if rowids { "" } else { " WITHOUT ROWID" };
    let create = format!("CREATE TABLE IF NOT EXISTS test (key blob, value blob, PRIMARY KEY(key)){suffix}");
    connection.execute_batch(&create).map_err(failed)?;

    let read = |name: &str| connection.pragma_query_value(None, name, first_column).map_err(failed);
    let (durability, how) = match options.sync {
        true => (Durability::Device, "synchronous=FULL"),
        false => {
            (Durability::OperatingSystem, "synchronous=OFF: the log is handed to write(2) before a statement returns")
        }
    };
    let cache_size = read("cache_size")?;
    let unit = if cache_size.starts_with('-') { "KiB" } else { "pages" };
    let memory = format!("{} {unit} of page cache", cache_size.trim_start_matches('-'));
    let mut settings = Settings::new(durability, how, memory, "none");
    for name in ["page_size", "cache_size", "journal_mode", "wal_autocheckpoint", "locking_mode", "mmap_size"] {
        settings.add(name, read(name).unwrap_or_default());
    }
    settings.add("rowid_table", u8::from(rowids));
    settings.add_merge(operator, "UPSERT with an SQL function");
    Ok(settings)
}

/// What a pragma answers, as text.
fn first_column(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(match row.get_ref(0)? {
        ValueRef::Integer(value) => value.to_string(),
        other => other.as_str().unwrap_or("?").to_string(),
    })
}

/// Makes `merge_operand(existing, operand)` known to SQL.
fn define_merge(connection: &Connection, operator: MergeOperator) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("merge_operand", 2, flags, move |context| {
        let blob =
            |index| context.get_raw(index).as_blob().map_err(|e| rusqlite::Error::UserFunctionError(Box::new(e)));
        let mut value = blob(0)?.to_vec();
        operator.apply(&mut value, true, blob(1)?).map_err(|e| rusqlite::Error::UserFunctionError(Box::new(e)))?;
        Ok(value)
    })
}

impl Sqlite {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic while holding the lock cannot leave the connection half changed: SQLite finishes
        // or fails each statement.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoint(&self) -> Result<()> {
        let shared = self.lock();
        let connection = shared.prepared.borrow_owner();
        connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).map_err(failed)
    }
}

impl Engine for Sqlite {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(SqliteSession { engine: self }))
    }

    fn finish_writes(&self) -> Result<()> {
        self.checkpoint()
    }

    fn compact_all(&self) -> Result<()> {
        self.lock().prepared.borrow_owner().execute_batch("VACUUM").map_err(failed)?;
        self.checkpoint()
    }

    fn property(&self, name: &str) -> Option<String> {
        let pragma = match name {
            "stats" => "page_count",
            "integrity" => "quick_check",
            _ => return None,
        };
        let shared = self.lock();
        let connection = shared.prepared.borrow_owner();
        let text = connection.query_row(&format!("PRAGMA {pragma}"), [], first_column);
        text.ok().map(|text| format!("{pragma} {text}"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.prepared.into_owner().close().map_err(|(_, error)| failed(error))
    }
}

struct SqliteSession<'e> {
    engine: &'e Sqlite,
}

impl SqliteSession<'_> {
    fn apply(&self, operation: &Operation<'_>, mode: WriteMode) -> Result<()> {
        let mut shared = self.engine.lock();
        shared.set_mode(mode)?;
        shared.run(|statements| statements.apply(operation))
    }
}

impl Session for SqliteSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.apply(&Operation::Put(key, value), mode)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.apply(&Operation::Delete(key), mode)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        let mut shared = self.engine.lock();
        shared.set_mode(mode)?;
        shared.run(|statements| {
            execute(&mut statements.begin, &[]).map_err(failed)?;
            let applied = batch
                .iter()
                .try_for_each(|operation| statements.apply(operation))
                .and_then(|()| execute(&mut statements.end, &[]).map_err(failed));
            if applied.is_err() {
                // Some errors have rolled back already; then this one says so, and the first error
                // is the one to report.
                let _ = execute(&mut statements.rollback, &[]);
            }
            applied
        })
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        // The first operand of a key is stored as it is, so it has to be checked here.
        let operator = self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        if operator == MergeOperator::UInt64Add && operand.len() != 8 {
            operator.apply(&mut Vec::new(), false, operand)?;
        }
        self.apply(&Operation::Merge(key, operand), mode)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let looked_up = self.engine.lock().run(|statements| {
            statements.get.raw_bind_parameter(1, key)?;
            let mut rows = statements.get.raw_query();
            let Some(row) = rows.next()? else { return Ok(false) };
            value.clear();
            value.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(true)
        });
        looked_up.map_err(|e: rusqlite::Error| failed(e))
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        let shared = self.engine.lock();
        Ok(Box::new(SqliteIteration { shared, active: None, key: Vec::new(), value: Vec::new(), positioned: false }))
    }
}

/// A scan: one statement, stepped. The row is copied into buffers that are reused.
struct SqliteIteration<'s> {
    shared: MutexGuard<'s, Shared>,
    /// The statement that is being stepped.
    active: Option<Scan>,
    key: Vec<u8>,
    value: Vec<u8>,
    positioned: bool,
}

impl SqliteIteration<'_> {
    /// Ends the statement that is being stepped, which ends SQLite's read transaction.
    fn reset(&mut self) {
        if let Some(active) = self.active.take() {
            // Dropping the rows resets their statement.
            self.shared.run(|statements| drop(statements.scans[active as usize].raw_query()));
        }
    }

    fn start(&mut self, scan: Scan, bound: Option<&[u8]>) -> Result<bool> {
        self.reset();
        if let Some(bound) = bound {
            let bind = |statements: &mut Statements<'_>| statements.scans[scan as usize].raw_bind_parameter(1, bound);
            self.shared.run(bind).map_err(failed)?;
        }
        self.active = Some(scan);
        self.step()
    }

    fn step(&mut self) -> Result<bool> {
        let Some(active) = self.active else { return Ok(false) };
        let SqliteIteration { shared, key, value, .. } = self;
        let stepped = shared.run(|statements| -> rusqlite::Result<bool> {
            let mut rows = statements.scans[active as usize].raw_query();
            let found = match rows.next()? {
                None => false,
                Some(row) => {
                    key.clear();
                    key.extend_from_slice(row.get_ref(0)?.as_blob()?);
                    value.clear();
                    value.extend_from_slice(row.get_ref(1)?.as_blob()?);
                    true
                }
            };
            // Dropping the rows would reset the statement; the next step goes on where this one
            // stopped.
            std::mem::forget(rows);
            Ok(found)
        });
        self.positioned = stepped.map_err(failed)?;
        if !self.positioned {
            self.reset();
        }
        Ok(self.positioned)
    }

    /// Steps in a direction, with a new statement if the present one runs the other way.
    fn walk(&mut self, same: bool, turn: Scan) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        if same {
            return self.step();
        }
        let here = std::mem::take(&mut self.key);
        self.start(turn, Some(&here))
    }
}

impl Drop for SqliteIteration<'_> {
    fn drop(&mut self) {
        self.reset();
    }
}

impl Iteration for SqliteIteration<'_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.start(Scan::First, None)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.start(Scan::Last, None)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Scan::From, Some(key))
    }

    fn next(&mut self) -> Result<bool> {
        let same = matches!(self.active, Some(Scan::First | Scan::From | Scan::After));
        self.walk(same, Scan::After)
    }

    fn prev(&mut self) -> Result<bool> {
        let same = matches!(self.active, Some(Scan::Last | Scan::Before));
        self.walk(same, Scan::Before)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}
