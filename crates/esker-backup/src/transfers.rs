//! How bytes are moved: how many objects at once, how fast, how often tried; who is told, and who
//! may end it.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Ends calls that are under way, from any thread or a signal handler's.
///
/// ```
/// let cancel = esker_backup::Cancel::default();
/// let transfers = esker_backup::Transfers::default().cancel(&cancel);
/// # let _ = transfers;
/// cancel.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes every call that was given this flag end with [`Error::Cancelled`](crate::Error),
    /// within a tenth of a second or the time of one local read. It stays so.
    ///
    /// ```
    /// let cancel = esker_backup::Cancel::default();
    /// let from_elsewhere = cancel.clone();
    /// std::thread::spawn(move || from_elsewhere.cancel());
    /// ```
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether [`Cancel::cancel`] was called.
    ///
    /// ```
    /// let cancel = esker_backup::Cancel::default();
    /// assert!(!cancel.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// What a call is doing.
///
/// ```
/// use esker_backup::Phase;
/// let name = |phase| match phase {
///     Phase::Hashing => "reading",
///     Phase::Uploading => "copying",
///     _ => "working",
/// };
/// assert_eq!(name(Phase::Uploading), "copying");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Files of the database are read, to know which of them the target has.
    Hashing,
    /// Files that the target lacks are copied to it.
    Uploading,
    /// Objects are read back and checked.
    Verifying,
    /// Objects are read, checked and written to a directory.
    Restoring,
}

/// How far a call is.
///
/// ```
/// let transfers = esker_backup::Transfers::default().progress(|progress| {
///     let percent = 100 * progress.done / progress.total.max(1);
///     eprintln!("{:?}: {percent} %", progress.phase);
/// });
/// # let _ = transfers;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// Bytes of this phase that are done. A file that is tried again counts once.
    pub done: u64,
    /// Bytes of this phase.
    pub total: u64,
}

type Tell = Arc<dyn Fn(Progress) + Send + Sync>;

/// How bytes are moved. Eight objects at a time, as fast as it goes, each call tried four times,
/// unless set otherwise.
///
/// ```
/// use esker_backup::Transfers;
/// use std::num::NonZeroU64;
///
/// let transfers = Transfers::default()
///     .parallel(4)
///     .bytes_per_second(NonZeroU64::new(50_000_000))
///     .progress(|progress| eprintln!("{:?}: {} bytes", progress.phase, progress.done));
/// # let _ = transfers;
/// ```
#[derive(Clone)]
pub struct Transfers {
    pub(crate) parallel: usize,
    pub(crate) rate: Option<NonZeroU64>,
    pub(crate) retries: u32,
    pub(crate) retry_delay: Duration,
    pub(crate) part_bytes: usize,
    pub(crate) tell: Option<Tell>,
    pub(crate) cancel: Cancel,
}

impl Default for Transfers {
    fn default() -> Transfers {
        Transfers {
            parallel: 8,
            rate: None,
            retries: 3,
            retry_delay: Duration::from_millis(200),
            part_bytes: 8 << 20,
            tell: None,
            cancel: Cancel::default(),
        }
    }
}

impl Transfers {
    /// How many objects are moved at the same time; at least one. Each takes memory for one part of
    /// an upload, 8 MiB.
    ///
    /// ```
    /// let transfers = esker_backup::Transfers::default().parallel(2);
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn parallel(mut self, objects: usize) -> Transfers {
        self.parallel = objects.max(1);
        self
    }

    /// The bytes that all transfers of a call together move in a second, to and from the store;
    /// `None`, the default, is no limit.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// let transfers = esker_backup::Transfers::default().bytes_per_second(NonZeroU64::new(50_000_000));
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn bytes_per_second(mut self, rate: Option<NonZeroU64>) -> Transfers {
        self.rate = rate;
        self
    }

    /// How often a call of the store that failed is made again, and the delay before the first
    /// retry, which doubles with each one more and is at most 30 seconds. Errors that another
    /// attempt does not change, as of permissions, are not retried. Clients of clouds make retries
    /// of their own besides.
    ///
    /// ```
    /// use std::time::Duration;
    /// let transfers = esker_backup::Transfers::default().retries(10, Duration::from_secs(1));
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn retries(mut self, retries: u32, delay: Duration) -> Transfers {
        self.retries = retries;
        self.retry_delay = delay;
        self
    }

    /// The bytes of one part of an upload; a file that is not longer is one call. At least 5 MiB
    /// for S3, which refuses smaller parts. Longer files get longer parts, so that there are at
    /// most 9000.
    ///
    /// ```
    /// let transfers = esker_backup::Transfers::default().part_bytes(64 << 20);
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn part_bytes(mut self, bytes: usize) -> Transfers {
        self.part_bytes = bytes.max(1);
        self
    }

    /// Is called with the progress, from another thread than the caller's, which waits for it.
    ///
    /// ```
    /// let transfers = esker_backup::Transfers::default().progress(|progress| {
    ///     eprintln!("{} of {} bytes", progress.done, progress.total);
    /// });
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Transfers {
        self.tell = Some(Arc::new(tell));
        self
    }

    /// The flag that ends calls.
    ///
    /// ```
    /// let cancel = esker_backup::Cancel::default();
    /// let transfers = esker_backup::Transfers::default().cancel(&cancel);
    /// # let _ = transfers;
    /// ```
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Transfers {
        self.cancel = cancel.clone();
        self
    }
}

impl fmt::Debug for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfers")
            .field("parallel", &self.parallel)
            .field("rate", &self.rate)
            .field("retries", &self.retries)
            .field("retry_delay", &self.retry_delay)
            .finish_non_exhaustive()
    }
}
