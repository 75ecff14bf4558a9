//! Forks: a child has the memory of its parent and none of its threads, so that no handle of the
//! parent is usable there.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static FORKS: AtomicUsize = AtomicUsize::new(0);
static WATCH: Once = Once::new();

/// The number of forks between the process in which the library was first used and this one.
///
/// ```
/// assert_eq!(esker_ffi::fork::depth(), 0);
/// ```
#[inline]
pub fn depth() -> usize {
    FORKS.load(Relaxed)
}

/// Makes [`depth`] count from now on. Costs next to nothing when called again.
///
/// ```
/// esker_ffi::fork::watch();
/// ```
#[inline]
pub fn watch() {
    WATCH.call_once(|| {
        // SAFETY: the handler adds to an atomic, which is async-signal-safe, and stays as long as
        // this code is loaded. Without memory for its entry, forks are not seen.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Relaxed);
}
