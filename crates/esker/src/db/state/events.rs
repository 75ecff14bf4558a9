//! Delivery of events to the listener: a queue, and the thread that empties it.
//!
//! Events are noted with locks of the engine held, even the writer lock; so noting one only stores
//! it. The thread calls the listener with no lock held.

use crate::event_listener::{CompactionCompleted, EventListener, FlushCompleted, IngestCompleted, TableCreated};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Events that may wait for the listener.
const MOST_WAITING: usize = 4096;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    Flush(FlushCompleted),
    Compaction(CompactionCompleted),
    Ingest(IngestCompleted),
    Created(TableCreated),
    Removed(PathBuf),
    StallBegan { keyspace: String, reason: String },
    StallEnded { keyspace: String, waited: Duration },
    BackgroundError(String),
    Recovered,
    ReadOnly(String),
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Event>,
    missed: u64,
    ended: bool,
}

struct Listening {
    listener: Arc<dyn EventListener>,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

/// The events of a database; without a listener nothing is ever made of them. The lock of the queue
/// is a leaf.
#[derive(Clone, Default)]
pub struct Events(Option<Arc<Listening>>);

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("listening", &self.0.is_some()).finish()
    }
}

impl Events {
    pub fn new(listener: Option<Arc<dyn EventListener>>) -> Events {
        let listening = |listener| Listening { listener, queue: Mutex::default(), arrived: Condvar::new() };
        Events(listener.map(|listener| Arc::new(listening(listener))))
    }

    /// Whether there is a listener.
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Notes what `event` makes, if there is a listener. Any lock may be held.
    #[inline]
    pub fn note(&self, event: impl FnOnce() -> Event) {
        if let Some(listening) = &self.0 {
            listening.note(event());
        }
    }

    /// Hands out events until [`Events::end`]: the body of the thread. The queue is empty when this
    /// returns.
    pub fn deliver(&self) {
        if let Some(listening) = &self.0 {
            listening.deliver();
        }
    }

    /// There will be no more events.
    pub fn end(&self) {
        if let Some(listening) = &self.0 {
            listening.queue.lock().ended = true;
            listening.arrived.notify_all();
        }
    }
}

impl Listening {
    fn note(&self, event: Event) {
        let mut queue = self.queue.lock();
        if queue.waiting.len() < MOST_WAITING {
            queue.waiting.push_back(event);
        } else {
            queue.missed += 1;
        }
        drop(queue);
        self.arrived.notify_one();
    }

    fn deliver(&self) {
        loop {
            let mut queue = self.queue.lock();
            while queue.waiting.is_empty() && queue.missed == 0 && !queue.ended {
                self.arrived.wait(&mut queue);
            }
            let event = queue.waiting.pop_front();
            // What was left out came after everything that waits.
            let missed = if event.is_none() { std::mem::take(&mut queue.missed) } else { 0 };
            drop(queue);
            if event.is_none() && missed == 0 {
                return;
            }
            let _ = catch_unwind(AssertUnwindSafe(|| match &event {
                Some(event) => self.tell(event),
                None => self.listener.missed(missed),
            }));
        }
    }

    fn tell(&self, event: &Event) {
        let listener = &self.listener;
        match event {
            Event::Flush(event) => listener.flush_completed(event),
            Event::Compaction(event) => listener.compaction_completed(event),
            Event::Ingest(event) => listener.ingest_completed(event),
            Event::Created(event) => listener.table_created(event),
            Event::Removed(path) => listener.table_removed(path),
            Event::StallBegan { keyspace, reason } => listener.stall_began(keyspace, reason),
            Event::StallEnded { keyspace, waited } => listener.stall_ended(keyspace, *waited),
            Event::BackgroundError(error) => listener.background_error(error),
            Event::Recovered => listener.recovered(),
            Event::ReadOnly(reason) => listener.became_read_only(reason),
        }
    }
}
