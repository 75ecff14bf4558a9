//! The calls that are made of a store: each one with retries, within the rate, and ended by the
//! flag that cancels.

use crate::error::{Error, Result};
use crate::transfers::{Phase, Progress, Transfers};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, sleep_until};

/// How long a cancelled call may go on.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);
/// The longest delay before a retry.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// A target's store, for one call of the program.
pub struct Store<'a> {
    inner: &'a dyn ObjectStore,
    prefix: &'a ObjectPath,
    pub transfers: &'a Transfers,
    /// When the rate allows the next bytes.
    free_at: Cell<Option<Instant>>,
}

/// An object as a listing shows it.
pub struct Listed {
    /// The last part of its name.
    pub file_name: String,
    /// Its length.
    pub size: u64,
    /// When it was written, by the clock of the store.
    pub written: SystemTime,
}

impl<'a> Store<'a> {
    /// The store below this prefix.
    pub fn new(inner: &'a dyn ObjectStore, prefix: &'a ObjectPath, transfers: &'a Transfers) -> Store<'a> {
        Store { inner, prefix, transfers, free_at: Cell::new(None) }
    }

    /// The store itself, for transfers of many calls.
    pub fn inner(&self) -> &'a dyn ObjectStore {
        self.inner
    }

    /// The name of an object in the store.
    pub fn path(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Fails once the call is cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.transfers.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// What the future comes to, unless the call is cancelled first.
    pub async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let cancelled = pin!(async {
            while !self.transfers.cancel.is_cancelled() {
                sleep(CANCEL_INTERVAL).await;
            }
        });
        match select(cancelled, pin!(future)).await {
            Either::Left(_) => Err(Error::Cancelled),
            Either::Right((value, _)) => Ok(value),
        }
    }

    /// Returns when the rate allows so many more bytes.
    pub async fn pace(&self, bytes: usize) -> Result<()> {
        let Some(rate) = self.transfers.rate else { return Ok(()) };
        let start = self.free_at.get().unwrap_or_else(Instant::now).max(Instant::now());
        // The longest time that a clock can be moved by is beyond any use, and no reason to panic.
        let seconds = (bytes as f64 / rate.get() as f64).min(1e8);
        self.free_at.set(Some(start + Duration::from_secs_f64(seconds)));
        self.unless_cancelled(sleep_until(start)).await
    }

    /// Runs `attempt` until it succeeds, fails for good, or has been tried often enough.
    pub async fn retry<T, F: Future<Output = Result<T>>>(&self, attempt: impl Fn() -> F) -> Result<T> {
        let mut delay = self.transfers.retry_delay.min(MAX_DELAY);
        for _ in 0..self.transfers.retries {
            match self.unless_cancelled(attempt()).await? {
                Err(Error::Store { source, .. }) if is_transient(&source) => {}
                outcome => return outcome,
            }
            self.unless_cancelled(sleep(delay)).await?;
            delay = (delay * 2).min(MAX_DELAY);
        }
        self.unless_cancelled(attempt()).await?
    }

    /// Puts an object that must not be there. Returns whether it was not. After a retry it may be
    /// the object of the attempt before: the caller compares.
    pub async fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let outcome = self.put_mode(name, bytes, PutMode::Create).await;
        match outcome {
            Err(Error::Store { source: object_store::Error::AlreadyExists { .. }, .. }) => Ok(false),
            Err(Error::Store { source: object_store::Error::NotImplemented { .. }, .. }) => Err(Error::invalid(
                "the store does not put objects only if there is none, or its client is told not to (as by \
                 AWS_CONDITIONAL_PUT); use another one, or let it",
            )),
            outcome => outcome.map(|()| true),
        }
    }

    /// Puts an object, whether one is there or not.
    pub async fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_mode(name, bytes, PutMode::Overwrite).await
    }

    async fn put_mode(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<()> {
        let path = self.path(name);
        let payload = Bytes::copy_from_slice(bytes);
        self.retry(|| async {
            let options = PutOptions::from(mode.clone());
            let put = self.inner.put_opts(&path, PutPayload::from_bytes(payload.clone()), options).await;
            put.map(|_| ()).map_err(|source| failed("write", &path, source))
        })
        .await
    }

    /// The bytes of a small object.
    pub async fn get(&self, name: &str) -> Result<Bytes> {
        let path = self.path(name);
        self.retry(|| async {
            let bytes = async { self.inner.get(&path).await?.bytes().await };
            bytes.await.map_err(|source| failed("read", &path, source))
        })
        .await
    }

    /// All objects directly below `directory`.
    pub async fn list(&self, directory: &str) -> Result<Vec<Listed>> {
        let path = self.path(directory);
        let parts = path.parts().count() + 1;
        self.retry(|| async {
            let mut stream = self.inner.list(Some(&path));
            let mut listed = Vec::new();
            while let Some(meta) = stream.next().await {
                let meta: ObjectMeta = meta.map_err(|source| failed("list", &path, source))?;
                if let Some(name) = meta.location.filename().filter(|_| meta.location.parts().count() == parts) {
                    let (file_name, written) = (name.to_owned(), meta.last_modified.into());
                    listed.push(Listed { file_name, size: meta.size, written });
                }
            }
            Ok(listed)
        })
        .await
    }

    /// Deletes an object, which need not be there.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        self.retry(|| async {
            match self.inner.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(source) => Err(failed("delete", &path, source)),
            }
        })
        .await
    }
}

/// The error of a call of the store.
pub fn failed(operation: &'static str, path: &ObjectPath, source: object_store::Error) -> Error {
    Error::Store { operation, object: path.to_string(), source }
}

/// Whether another attempt may succeed.
fn is_transient(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::Generic { .. } | object_store::Error::JoinError { .. })
}

/// How far a phase is, counted by any thread.
pub struct Meter {
    phase: Phase,
    done: AtomicU64,
    total: u64,
    transfers: Transfers,
}

impl Meter {
    /// A phase of so many bytes, at its beginning.
    pub fn new(phase: Phase, total: u64, transfers: &Transfers) -> Meter {
        let meter = Meter { phase, done: AtomicU64::new(0), total, transfers: transfers.clone() };
        meter.add(0);
        meter
    }

    /// Counts bytes that are done.
    pub fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Relaxed) + bytes;
        if let Some(tell) = &self.transfers.tell {
            tell(Progress { phase: self.phase, done, total: self.total });
        }
    }

    /// Takes back what an attempt that failed had counted.
    pub fn take_back(&self, bytes: u64) {
        self.done.fetch_sub(bytes, Relaxed);
    }

    /// Whether the call is cancelled: for threads that only read files.
    pub fn is_cancelled(&self) -> bool {
        self.transfers.cancel.is_cancelled()
    }
}
