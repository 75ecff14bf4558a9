//! Which process this is. Only the thread that forks goes on in the child: the engine's threads are
//! gone there, its locks may be held for ever, and its files are those of the parent. A handle
//! therefore belongs to the process that made it. The queues in which threads wait are common to all
//! databases: where one was open, the child can use none.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How many forks lie between the process that loaded the module and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Databases that are open in this process.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// This process was forked from one with an open database.
static IS_USELESS: AtomicBool = AtomicBool::new(false);

/// An open database, with threads of its own, until it is dropped.
pub struct Running(());

impl Running {
    pub fn begin() -> Running {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether no database can be opened: this process was forked beside an open one.
pub fn is_useless() -> bool {
    IS_USELESS.load(Ordering::Relaxed)
}

/// The number of this process among its ancestors. Two processes that share a handle have different
/// ones. A load of an atomic, where the process id would be a system call.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Counts forks from now on.
pub fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the function is called in the child of a fork, where only calls that are safe in a
        // signal handler are allowed; those of atomics are. It lives as long as the module,
        // which Python never unloads.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        // Without memory for the registration the module is not loaded: handles would be used in
        // children without a word.
        assert_eq!(refused, 0, "no memory to watch for forks");
    });
}

extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    if RUNNING.load(Ordering::Relaxed) > 0 {
        IS_USELESS.store(true, Ordering::Relaxed);
    }
}
