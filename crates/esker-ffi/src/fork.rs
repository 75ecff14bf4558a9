//! Forks: a child has the memory of its parent and none of its threads. Locks that these held stay
//! held there, and queues in which they waited stay as they were. So nothing of the engine can be
//! used, not even for another database, until the child becomes another program by `exec`.

use std::fmt;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

/// This process is a fork of one that used a database before.
///
/// ```
/// assert!(esker_ffi::fork::Forked.to_string().contains("fork"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forked;

impl fmt::Display for Forked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this process is a fork of one that used a database before; call exec first, or fork before the first open",
        )
    }
}

impl std::error::Error for Forked {}

/// Every call of an interface makes this one, which takes no lock, before it touches an object or a
/// file.
///
/// # Errors
/// In a process that is a fork of one that called [`watch`].
///
/// ```
/// assert_eq!(esker_ffi::fork::check(), Ok(()));
/// ```
#[inline]
pub fn check() -> Result<(), Forked> {
    if IS_CHILD.load(Relaxed) {
        return Err(Forked);
    }
    Ok(())
}

/// From now on [`check`] fails in children. Every call that opens a database, or works on the files
/// of one, begins with this one: what was made before, as options, has no threads, and children can
/// go on with it.
///
/// ```
/// esker_ffi::fork::watch();
/// assert_eq!(esker_ffi::fork::check(), Ok(()));
/// ```
pub fn watch() {
    WATCH.call_once(|| {
        // SAFETY: the handler stores to an atomic, which is async-signal-safe, and stays as long as
        // this code is loaded. Without memory for its entry, forks are not seen.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

unsafe extern "C" fn in_child() {
    IS_CHILD.store(true, Relaxed);
}
