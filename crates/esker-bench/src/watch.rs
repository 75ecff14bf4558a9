//! Watches how much a database takes on the device, and how much memory the process does that is no
//! file's, while a benchmark runs.

use crate::directory::BenchDirectory;
use crate::process::anonymous_memory_bytes;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the directory is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// A look at a directory of very many files may take at most this part of the time.
const SHARE: u32 = 50;

/// What was seen at once, or the most of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes on the device.
    pub disk_bytes: u64,
    /// Bytes resident that are no file's; 0 if the kernel does not say.
    pub anonymous_bytes: u64,
}

impl Seen {
    fn now(directory: &BenchDirectory) -> Seen {
        Seen { disk_bytes: directory.disk_bytes(), anonymous_bytes: anonymous_memory_bytes() }
    }

    fn most(self, other: Seen) -> Seen {
        Seen {
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
            anonymous_bytes: self.anonymous_bytes.max(other.anonymous_bytes),
        }
    }
}

/// A thread that looks at both about every 100 ms.
pub struct Watch {
    directory: BenchDirectory,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The most that the thread has seen so far.
    peak: Arc<Mutex<Seen>>,
}

impl Watch {
    /// Starts watching. Without a thread (there may be too many already) only the end is looked at.
    pub fn start(directory: &BenchDirectory) -> Watch {
        let (stop, stopped) = mpsc::channel::<()>();
        let (watched, peak) = (directory.clone(), Arc::<Mutex<Seen>>::default());
        let seen = Arc::clone(&peak);
        let work = move || {
            let mut pause = INTERVAL;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let begin = Instant::now();
                let now = Seen::now(&watched);
                pause = INTERVAL.max(begin.elapsed() * SHARE);
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                *seen = seen.most(now);
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(work).ok();
        Watch { directory: directory.clone(), stop: Some(stop), thread, peak }
    }

    fn peak(&self) -> Seen {
        *self.peak.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread: what there is now, and the most seen.
    pub fn finish(mut self) -> (Seen, Seen) {
        drop(self.stop.take());
        let now = Seen::now(&self.directory);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        (now, self.peak().most(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_between_beginning_and_end_is_seen() {
        let base = tempfile::tempdir().unwrap();
        let directory = BenchDirectory::claim(&base.path().join("x"), false).unwrap();
        let watch = Watch::start(&directory);
        let file = directory.path().join("file");
        let memory = vec![1u8; 64 << 20];
        std::fs::write(&file, &memory[..1 << 20]).unwrap();
        let begun = Instant::now();
        let seen = |peak: Seen| peak.disk_bytes >= 1 << 20 && peak.anonymous_bytes >= 64 << 20;
        while !seen(watch.peak()) && begun.elapsed() < Duration::from_secs(300) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(&file).unwrap();
        drop(std::hint::black_box(memory));
        let (now, peak) = watch.finish();
        assert!(peak.disk_bytes >= 1 << 20 && now.disk_bytes < 1 << 20, "{now:?} {peak:?}");
        // Other tests of this process have memory of their own.
        assert!(peak.anonymous_bytes >= 64 << 20, "{now:?} {peak:?}");
    }
}
