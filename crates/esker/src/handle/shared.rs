//! What the handles of one database have in common.

use crate::db::inner::Inner;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// What all handles of one open database share. The last one to go stops the background thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inner: Arc<Inner>,
    /// The background thread, if there is one.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread that calls the event listener, if there is one.
    pub(super) teller: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    pub(super) fn new(inner: Arc<Inner>) -> Shared {
        Shared { inner, thread: Mutex::new(None), teller: Mutex::new(None) }
    }

    /// Stops the background thread and releases the lock on the directory.
    pub(super) fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        self.inner.signals.lock().shutting_down = true;
        self.inner.work_arrived.notify_all();
        self.inner.work_done.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
        // Only now: until here the thread may have been writing.
        self.inner.lock.lock().take();
        self.inner.events.end();
        if let Some(thread) = self.teller.lock().take()
            // A listener may have had the last handle.
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop();
    }
}
