//! The shared part of the handles of one database.

use crate::db::lifecycle::follow::Following;
use crate::db::state::inner::Inner;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// What all handles of one open database share. The last one to go stops the background thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inner: Arc<Inner>,
    /// The state of a follower: the files of its writer that it knows.
    pub(super) following: Option<Arc<Mutex<Following>>>,
    /// The background thread, if there is one.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread that calls the event listener, if there is one.
    pub(super) teller: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    pub(super) fn new(inner: Arc<Inner>) -> Shared {
        Shared { inner, following: None, thread: Mutex::new(None), teller: Mutex::new(None) }
    }

    pub(super) fn of_follower(inner: Arc<Inner>, following: &Arc<Mutex<Following>>) -> Shared {
        let mut shared = Shared::new(inner);
        shared.following = Some(Arc::clone(following));
        shared
    }

    /// Stops the background thread and releases the lock on the directory.
    pub(super) fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        let is_this = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        let thread = self.thread.lock().take();
        // A callback may have had the last handle. The background thread may be waiting for it, or
        // be this one.
        let in_callback = self.inner.number.is_calling() || thread.as_ref().is_some_and(is_this);
        let mut signals = self.inner.signals.lock();
        signals.shutting_down = true;
        signals.abandoned = in_callback;
        let ends_by_itself = in_callback && thread.is_some() && !signals.ended;
        drop(signals);
        self.inner.work_arrived.notify_all();
        self.inner.work_done.notify_all();
        if ends_by_itself {
            return;
        }
        if let Some(thread) = thread
            && !in_callback
        {
            let _ = thread.join();
        }
        // Only now: until here the thread may have been writing.
        self.inner.release();
        if let Some(thread) = self.teller.lock().take()
            // A listener may have had the last handle.
            && !(in_callback || is_this(&thread))
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
