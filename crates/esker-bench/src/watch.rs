//! Watches how much a database takes on the device while a benchmark runs.

use crate::directory::BenchDirectory;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the directory is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// A look at a directory of very many files may take at most this part of the time.
const SHARE: u32 = 50;

/// A thread that looks at the directory about every 100 ms.
pub struct DiskWatch {
    directory: BenchDirectory,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<u64>>,
}

impl DiskWatch {
    /// Starts watching. Without a thread (there may be too many already) only the end is looked at.
    pub fn start(directory: &BenchDirectory) -> DiskWatch {
        let (stop, stopped) = mpsc::channel::<()>();
        let watched = directory.clone();
        let work = move || {
            let mut peak = 0;
            let mut pause = INTERVAL;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let begin = Instant::now();
                peak = peak.max(watched.disk_bytes());
                pause = INTERVAL.max(begin.elapsed() * SHARE);
            }
            peak
        };
        let thread = std::thread::Builder::new().name("disk watch".into()).spawn(work).ok();
        DiskWatch { directory: directory.clone(), stop: Some(stop), thread }
    }

    /// Ends the thread: bytes now, and the most seen.
    pub fn finish(mut self) -> (u64, u64) {
        drop(self.stop.take());
        let now = self.directory.disk_bytes();
        let peak = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0);
        (now, peak.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_between_beginning_and_end_is_seen() {
        let base = tempfile::tempdir().unwrap();
        let directory = BenchDirectory::claim(&base.path().join("x"), false).unwrap();
        let watch = DiskWatch::start(&directory);
        let file = directory.path().join("file");
        std::fs::write(&file, vec![1; 1 << 20]).unwrap();
        std::thread::sleep(INTERVAL * 5);
        std::fs::remove_file(&file).unwrap();
        let (now, peak) = watch.finish();
        assert!(peak >= 1 << 20 && now < 1 << 20, "{now} {peak}");
    }
}
