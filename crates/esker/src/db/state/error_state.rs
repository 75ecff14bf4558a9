//! Whether the database can be written, and what is wrong if not.

use crate::db::state::events::{Event, Events};
use crate::env::directory_syncs::names_are_lost;
use crate::error::{Error, Result};
use crate::wal::log_sync::LogSync;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The health of a database.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let health = db.health();
/// if let Some(reason) = &health.stall_reason {
///     println!("writes wait: {reason}");
/// }
/// assert!(health.writable);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Writes are accepted.
    pub writable: bool,
    /// What went wrong last in the log, the manifest, or in background work, or the damage that a
    /// job found in a table or a blob file, if it still matters. That a handle was opened read-only
    /// or closed is no problem.
    pub problem: Option<String>,
    /// Why writes are delayed or stopped at the moment, if they are.
    pub stall_reason: Option<String>,
    /// Reads that failed because a merge operator did.
    pub failed_merges: u64,
}

/// A failure of background work that is tried again.
#[derive(Debug, Clone, PartialEq)]
struct BackgroundFailure {
    text: String,
    path: PathBuf,
    disk_full: bool,
}

impl BackgroundFailure {
    fn new(error: &Error) -> BackgroundFailure {
        let path = match error {
            Error::Io { path, .. } | Error::Corruption { path, .. } => path.clone(),
            _ => PathBuf::new(),
        };
        BackgroundFailure { text: error.to_string(), path, disk_full: error.is_disk_full() }
    }

    /// The error for those that would wait.
    fn told(&self) -> Result<()> {
        let kind = if self.disk_full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
        Err(Error::io("flush to", &self.path, io::Error::new(kind, self.text.clone())))
    }
}

/// Failures of background work that last.
#[derive(Debug, Default)]
struct BackgroundFailures {
    /// The last flush failed, or the log segment that is prepared with it.
    of_flush: Option<BackgroundFailure>,
    /// The last round failed, and not for that.
    of_round: Option<BackgroundFailure>,
}

impl BackgroundFailures {
    fn first(&self) -> Option<&BackgroundFailure> {
        self.of_flush.as_ref().or(self.of_round.as_ref())
    }
}

/// See [`ErrorState::unfinished`].
#[derive(Debug)]
pub struct Unfinished<'a>(&'a ErrorState);

impl Unfinished<'_> {
    /// The work is done.
    #[inline]
    pub fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.refuse_after_panic("a panic interrupted a write");
    }
}

/// Why writes are refused.
#[derive(Debug, Clone)]
enum Refusal {
    /// The handle was opened read-only, or closed.
    Intended(String),
    Failed(String),
}

impl Refusal {
    fn text(&self) -> &str {
        let (Refusal::Intended(text) | Refusal::Failed(text)) = self;
        text
    }
}

/// What the handle knows about its own health.
#[derive(Debug, Default)]
pub struct ErrorState {
    /// Set once, never cleared: only opening again helps.
    poisoned: AtomicBool,
    why: Mutex<Option<Refusal>>,
    background: Mutex<BackgroundFailures>,
    /// Files that a job found damaged, each with the place and what is wrong there.
    damaged: Mutex<BTreeMap<PathBuf, (u64, String)>>,
    failed_merges: AtomicU64,
    events: Events,
}

impl ErrorState {
    /// In good health. Failures are reported to `events`. If a sync of the `log` fails, or a panic
    /// interrupts one, all later writes are refused, whatever the sync was for: what is on the
    /// device is unknown.
    pub fn new(events: Events, log: Option<&Arc<LogSync>>) -> Arc<ErrorState> {
        let error_state = Arc::new(ErrorState { events, ..ErrorState::default() });
        if let Some(log) = log {
            let told = Arc::clone(&error_state);
            log.on_failure(Box::new(move |why: &str| told.refuse(why)));
        }
        error_state
    }

    /// The error for a write, if there must not be any more.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) { Err(self.read_only()) } else { Ok(()) }
    }

    #[cold]
    fn read_only(&self) -> Error {
        Error::ReadOnly { why: self.why.lock().as_ref().map(Refusal::text).unwrap_or_default().to_owned() }
    }

    /// Refuses all later writes: the log or the manifest failed, and what is on the device is
    /// unknown. Returns the error.
    pub fn poison(&self, error: Error) -> Error {
        self.refuse_after(&error);
        error
    }

    /// Refuses all later writes if the error says that names of files were given up: whatever made
    /// one of them, and whatever makes another, cannot be relied on. Returns the error.
    pub fn note_failure(&self, error: Error) -> Error {
        if names_are_lost(&error) { self.poison(error) } else { error }
    }

    fn refuse_after(&self, error: &Error) {
        let mut why = self.why.lock();
        if why.is_none() {
            let reason = format!("an earlier write failed ({error})");
            self.events.note(|| Event::ReadOnly(reason.clone()));
            *why = Some(Refusal::Failed(reason));
        }
        drop(why);
        self.poisoned.store(true, Ordering::Release);
    }

    /// Poisons when dropped, unless [`Unfinished::finish`] was called: for work that must not be
    /// left half done by a panic.
    pub fn unfinished(&self) -> Unfinished<'_> {
        Unfinished(self)
    }

    /// Refuses all writes because of a panic.
    pub fn refuse_after_panic(&self, why: &str) {
        self.refuse(why);
    }

    /// Refuses all writes for a reason that is a failure. The first such reason stays: a later one
    /// may be due to it, as a panic of background work to one in a sync.
    fn refuse(&self, why: &str) {
        let mut reason = self.why.lock();
        if !matches!(*reason, Some(Refusal::Failed(_))) {
            self.events.note(|| Event::ReadOnly(why.to_owned()));
            *reason = Some(Refusal::Failed(why.to_owned()));
        }
        drop(reason);
        self.poisoned.store(true, Ordering::Release);
    }

    /// Refuses all writes for a reason that is no failure. A failure before it stays the reason.
    pub fn refuse_writes(&self, why: &str) {
        self.why.lock().get_or_insert_with(|| Refusal::Intended(why.to_owned()));
        self.poisoned.store(true, Ordering::Release);
    }

    /// Notes a failure of a round of background work, which is tried again.
    pub fn note_background_failure(&self, error: &Error) {
        if names_are_lost(error) {
            return self.refuse_after(error);
        }
        let failure = BackgroundFailure::new(error);
        self.change_failures(|failures| {
            // That of a flush is noted already, and is over when a flush succeeds.
            if failures.of_flush.as_ref() != Some(&failure) {
                failures.of_round = Some(failure);
            }
        });
    }

    /// Notes whether the last flush failed: it is tried again, maybe while a compaction goes on
    /// that may make room.
    pub fn note_flush(&self, failed: Option<&Error>) {
        match failed.filter(|error| names_are_lost(error)) {
            Some(error) => self.refuse_after(error),
            None => self.change_failures(|failures| failures.of_flush = failed.map(BackgroundFailure::new)),
        }
    }

    /// Notes that a round of background work succeeded; the flushes in it have noted that they did.
    pub fn recovered(&self) {
        self.change_failures(|failures| failures.of_round = None);
    }

    /// Changes what is noted, and tells of the first failure and of the end of the last.
    fn change_failures(&self, change: impl FnOnce(&mut BackgroundFailures)) {
        let mut failures = self.background.lock();
        let had_one = failures.first().is_some();
        change(&mut failures);
        match failures.first() {
            Some(failure) if !had_one => self.events.note(|| Event::BackgroundError(failure.text.clone())),
            None if had_one => self.events.note(|| Event::Recovered),
            _ => {}
        }
    }

    /// The error for a caller that would have to wait for background work which keeps failing.
    pub fn check_background(&self) -> Result<()> {
        self.background.lock().first().map_or(Ok(()), BackgroundFailure::told)
    }

    /// The same for one that waits for a flush, or for a segment of the log: a compaction that
    /// fails does not keep those from being done.
    pub fn check_flush(&self) -> Result<()> {
        self.background.lock().of_flush.as_ref().map_or(Ok(()), BackgroundFailure::told)
    }

    /// Notes what a job found damaged, if that is what the error says: the file stays, and
    /// background jobs leave it alone.
    pub fn note_damage(&self, error: &Error) {
        if let Error::Corruption { path, offset, what } = error {
            self.damaged.lock().insert(path.clone(), (*offset, what.clone()));
        }
    }

    /// The error of the job that found the file damaged, if one did and none has read all of it
    /// since.
    pub fn damage_of(&self, path: &Path) -> Option<Error> {
        let damaged = self.damaged.lock();
        damaged.get(path).map(|(offset, what)| Error::corruption(path, *offset, what.clone()))
    }

    /// Notes that all of the file was read and is intact, or that it is none of the database's any
    /// more.
    pub fn forget_damage(&self, path: &Path) {
        self.damaged.lock().remove(path);
    }

    /// Counts a read that failed in a merge operator.
    pub fn merge_failed(&self) {
        self.failed_merges.fetch_add(1, Ordering::Relaxed);
    }

    /// For people. `damaged_blob`: the damage that a job found in a blob file.
    pub fn report(&self, stall_reason: Option<String>, damaged_blob: Option<Error>) -> Health {
        let why = match &*self.why.lock() {
            Some(Refusal::Failed(text)) => Some(text.clone()),
            Some(Refusal::Intended(_)) | None => None,
        };
        let background = self.background.lock().first().map(|failure| failure.text.clone());
        let damaged = self.damaged.lock().keys().next().cloned();
        let damage = damaged.and_then(|path| self.damage_of(&path)).or(damaged_blob).map(|error| error.to_string());
        Health {
            writable: !self.poisoned.load(Ordering::Acquire),
            problem: why.or(background).or(damage),
            stall_reason,
            failed_merges: self.failed_merges.load(Ordering::Relaxed),
        }
    }
}
