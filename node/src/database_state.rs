//! What the calls of one database share: the engine's handles while it is open, and how many calls
//! are under way.

use crate::failure::Failure;
use crate::options::Opened;
use esker::{Db, Follower, Keyspace};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// An open database.
///
/// A call is counted from when JavaScript makes it until it has left the engine, so that a close
/// waits for it. The pool begins calls in the order in which they were made: what a close waits for
/// is always at work, or done.
pub struct OpenDatabase {
    /// The engine's database.
    pub db: Db,
    /// The keyspace of all keys.
    pub keyspace: Keyspace,
    /// What catches up with the writer, if the database was opened so.
    follower: Option<Follower>,
    calls: Mutex<Calls>,
    idle: Condvar,
}

#[derive(Default)]
struct Calls {
    under_way: usize,
    closed: bool,
}

/// A call that is under way.
pub struct Call(Arc<OpenDatabase>);

impl OpenDatabase {
    /// With no call under way.
    pub fn new(Opened { db, keyspace, follower }: Opened) -> OpenDatabase {
        OpenDatabase { db, keyspace, follower, calls: Mutex::default(), idle: Condvar::new() }
    }

    /// What catches up with the writer.
    ///
    /// # Errors
    /// If the database was not opened so.
    pub fn follower(&self) -> Result<&Follower, Failure> {
        let none = || Failure::invalid("the database follows no writer; open it with the option follower");
        self.follower.as_ref().ok_or_else(none)
    }

    /// Begins a call, unless the database is closed.
    pub fn begin(self: &Arc<Self>) -> Result<Call, Failure> {
        let mut calls = self.calls.lock();
        if calls.closed {
            return Err(Failure::not_open());
        }
        calls.under_way += 1;
        Ok(Call(Arc::clone(self)))
    }

    /// The failure of a wait or a read of changes: that the database is closed, where it is.
    pub fn ended(&self, error: esker::Error) -> Failure {
        if self.calls.lock().closed { Failure::not_open() } else { error.into() }
    }

    /// Refuses calls from here on.
    fn refuse_calls(&self) {
        self.calls.lock().closed = true;
    }

    /// Waits for the calls under way, and closes the database.
    pub fn close(&self) -> Result<(), Failure> {
        let mut calls = self.calls.lock();
        while calls.under_way > 0 {
            self.idle.wait(&mut calls);
        }
        drop(calls);
        Ok(self.db.clone().close()?)
    }
}

impl std::ops::Deref for Call {
    type Target = OpenDatabase;

    fn deref(&self) -> &OpenDatabase {
        &self.0
    }
}

impl Call {
    /// The database, for what outlives the call.
    pub fn database(&self) -> Arc<OpenDatabase> {
        Arc::clone(&self.0)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = self.0.calls.lock();
        calls.under_way -= 1;
        if calls.under_way == 0 {
            self.0.idle.notify_all();
        }
    }
}

/// A database of JavaScript, open or not.
#[derive(Default)]
pub struct DatabaseState(Mutex<Option<Arc<OpenDatabase>>>);

impl DatabaseState {
    /// Begins a call, if the database is open.
    pub fn begin(&self) -> Result<Call, Failure> {
        self.0.lock().as_ref().ok_or_else(Failure::not_open)?.begin()
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Makes it open.
    pub fn opened(&self, database: OpenDatabase) {
        *self.0.lock() = Some(Arc::new(database));
    }

    /// Makes it closed for new calls, and returns what is to be closed, if it was open.
    pub fn closing(&self) -> Option<Arc<OpenDatabase>> {
        let database = self.0.lock().take()?;
        database.refuse_calls();
        Some(database)
    }
}
