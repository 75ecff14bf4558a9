//! An open database, as all its Python handles share it.

use crate::call::call;
use crate::errors;
use crate::fork::Running;
use crate::interrupt;
use crate::owned::Owned;
use esker::{Db, Keyspace};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// An open database.
pub struct Open {
    db: Owned<Db>,
    closed: AtomicBool,
    /// Whether a thread is closing it. Locked with the interpreter released.
    closing: Mutex<bool>,
    /// That thread has ended that.
    no_longer_closing: Condvar,
    /// Until it is closed. Behind the handle, which is dropped first.
    running: Mutex<Option<Running>>,
    /// As the program has given it.
    pub path: PathBuf,
    /// Whether it was opened for reading only, so that it can make no keyspace.
    is_reader: bool,
}

/// The databases that are open, for the end of the interpreter. Locked while attached, for as long
/// as it takes to look at the list.
static ALL: Mutex<Vec<Weak<Open>>> = Mutex::new(Vec::new());

impl Open {
    pub fn new(db: Db, path: PathBuf) -> Arc<Open> {
        Open::with(db, path, false)
    }

    /// One for reading only: a follower's too.
    pub fn reader(db: Db, path: PathBuf) -> Arc<Open> {
        Open::with(db, path, true)
    }

    fn with(db: Db, path: PathBuf, is_reader: bool) -> Arc<Open> {
        let running = Mutex::new(Some(Running::begin()));
        let (closed, closing) = (AtomicBool::new(false), Mutex::new(false));
        let no_longer_closing = Condvar::new();
        let open = Arc::new(Open { db: Owned::new(db), closed, closing, no_longer_closing, running, path, is_reader });
        let mut all = ALL.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&open));
        open
    }

    /// The database, unless it was closed or belongs to another process.
    #[inline]
    pub fn db(&self, py: Python<'_>) -> PyResult<&Db> {
        self.check(py)?;
        Ok(&self.db)
    }

    /// Whether the database may be used. Each call of a handle asks first.
    #[inline]
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(errors::closed(py, "the database"));
        }
        Ok(())
    }

    /// Whether this is the process that has opened the database.
    #[inline]
    pub fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Err(errors::forked(py)) } else { Ok(()) }
    }

    /// Whether the database belongs to a process that this one was forked from. No lock may be
    /// waited for there: threads that held one are gone.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.db.is_inherited()
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What Python shows of an object of this class.
    pub fn shown_as(&self, class: &str) -> String {
        let closed = if self.is_closed() { " (closed)" } else { "" };
        format!("<esker.{class} {:?}{closed}>", self.path)
    }

    /// Closes the database; a second time does nothing, but wait for another thread that is closing
    /// it. Calls of other threads that are under way end as they would have, or are refused by the
    /// engine.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.db.is_inherited() {
            // There is nothing of this process to close, and nothing to complain about in a `with`.
            self.closed.store(true, Ordering::Release);
            return Ok(());
        }
        let db = Db::clone(&self.db);
        let is_in_callback = interrupt::is_in_callback();
        let (result, interrupt) = interrupt::interruptible(py, || {
            if !self.begin_close(is_in_callback) {
                return Ok(());
            }
            let result = db.close();
            if matches!(result, Err(esker::Error::InCallback { .. })) {
                self.closed.store(false, Ordering::Release);
            } else {
                *self.running.lock() = None;
            }
            *self.closing.lock() = false;
            self.no_longer_closing.notify_all();
            result
        });
        match interrupt {
            Some(interrupt) => Err(interrupt),
            None => result.map_err(|error| errors::raise(py, error)),
        }
    }

    /// Whether this call closes the database. If it is another one that does, waits for it, except
    /// in a callback, which the other may be waiting for.
    fn begin_close(&self, is_in_callback: bool) -> bool {
        let mut closing = self.closing.lock();
        while *closing && !is_in_callback {
            self.no_longer_closing.wait(&mut closing);
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        *closing = true;
        true
    }
}

/// Closes every database of this process that is still open, and calls no merge operator any more.
/// Called at exit, while threads can still run; later, a thread of the engine that waits for the
/// interpreter would wait for ever, and whoever drops its database would wait for it.
///
/// The first error is raised when all are closed.
#[pyfunction]
pub fn _close_all(py: Python<'_>) -> PyResult<()> {
    let all: Vec<Arc<Open>> = ALL.lock().drain(..).filter_map(|open| open.upgrade()).collect();
    let closed: Vec<PyResult<()>> =
        all.iter().filter(|open| !open.db.is_inherited()).map(|open| open.close(py)).collect();
    crate::merge::end();
    closed.into_iter().collect()
}

/// A keyspace of an open database. One that is missing is opened at the first use, so that the
/// default keyspace of a database is made by the first call that needs it.
pub struct KeyspaceHandle {
    pub open: Arc<Open>,
    /// What it was opened by, or is to be.
    first_name: String,
    opened: OnceLock<Owned<Keyspace>>,
}

impl KeyspaceHandle {
    /// A keyspace that is open already.
    pub fn opened(open: Arc<Open>, keyspace: Keyspace) -> Arc<KeyspaceHandle> {
        let first_name = keyspace.name().to_string();
        Arc::new(KeyspaceHandle { open, first_name, opened: OnceLock::from(Owned::new(keyspace)) })
    }

    /// A keyspace to be opened, or made, with the options that it has, or the default ones.
    pub fn unopened(open: Arc<Open>, name: &str) -> Arc<KeyspaceHandle> {
        Arc::new(KeyspaceHandle { open, first_name: name.to_owned(), opened: OnceLock::new() })
    }

    /// From now on it is this keyspace, whatever its name, unless it is open already.
    pub fn bind(&self, keyspace: Keyspace) {
        self.opened.get_or_init(|| Owned::new(keyspace));
    }

    /// Its present name. In a process that was forked from the one of the database, the first one:
    /// the lock of the present one may be held there for ever.
    pub fn name(&self) -> String {
        match self.opened.get() {
            Some(keyspace) if !self.open.is_inherited() => keyspace.name().to_string(),
            _ => self.first_name.clone(),
        }
    }

    /// The keyspace, to be used now.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> PyResult<&Keyspace> {
        self.open.check(py)?;
        match self.opened.get() {
            Some(keyspace) => Ok(keyspace),
            None => self.open_now(py),
        }
    }

    #[cold]
    fn open_now(&self, py: Python<'_>) -> PyResult<&Keyspace> {
        let db = self.open.db(py)?;
        let keyspace = call(py, || match db.existing_keyspace(&self.first_name) {
            Err(esker::Error::NotFound { .. }) if !self.open.is_reader => {
                db.keyspace(&self.first_name, esker::KeyspaceOptions::default())
            }
            found => found,
        });
        let keyspace = keyspace?;
        // Another thread may have been first; both have the same keyspace.
        Ok(self.opened.get_or_init(|| Owned::new(keyspace)))
    }
}
