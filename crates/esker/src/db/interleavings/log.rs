//! Group sync and the hand-over of segments: a writer whose sync returns finds its record on the
//! device, and all before it; no thread waits for ever.
//!
//! Planted and seen: `sync_to` noting the end as it is after the sync instead of what was chosen
//! before; only the active segment synced; `Syncing` not telling those that wait; `take_prepared`
//! not waiting for the thread that prepares; the old segment retired after its successor becomes
//! active, in two steps. The bytes of files are not among what is tried: a file shows what was
//! written to it at once.

use super::*;
use crate::base::sync::{Mutex, yield_now};
use crate::env::Env;
use crate::env::mem::{CrashMode, MemEnv};
use crate::error::Result;
use crate::wal::format::RECORD_HEADER_BYTES;
use crate::wal::log_sync::LogSync;
use crate::wal::reader::{Visited, replay};
use crate::wal::segment::Position;
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::{Inherited, LogWriter};
use loom::thread;
use std::path::Path;

const DIRECTORY: &str = "/db";
/// Two records fill a segment.
const SEGMENT_BYTES: u64 = 4096;
const PAYLOAD_BYTES: usize = 1700;

fn maker(env: &MemEnv) -> SegmentMaker {
    SegmentMaker {
        env: Arc::new(env.clone()),
        directory: Path::new(DIRECTORY).to_path_buf(),
        mapped: true,
        in_foreground: false,
        read_only: false,
        unfinished: None,
        smallest_bytes: SEGMENT_BYTES,
        largest_bytes: SEGMENT_BYTES,
    }
}

/// The log as the database has it: the writer under its lock, the rest shared.
struct Log {
    env: MemEnv,
    writer: Mutex<(LogWriter, Sequence)>,
    shared: Arc<LogSync>,
}

impl Log {
    fn new() -> Arc<Log> {
        let env = MemEnv::new();
        env.create_dir_all(Path::new(DIRECTORY)).unwrap();
        env.sync_dir(Path::new("/")).unwrap();
        let writer = LogWriter::start(maker(&env), Inherited::default()).unwrap();
        let shared = Arc::clone(writer.shared());
        // While records are being synced others go on.
        shared.sync_before(Box::new(|| {
            yield_now();
            Ok(())
        }));
        Arc::new(Log { env, writer: Mutex::new((writer, 0)), shared })
    }

    fn append(&self) -> (Sequence, Position) {
        let mut writer = self.writer.lock();
        let (log, last) = &mut *writer;
        let mut record = vec![0; RECORD_HEADER_BYTES + PAYLOAD_BYTES];
        let position = log.append(&mut record, *last + 1, *last, true).unwrap();
        *last += 1;
        (*last, position)
    }

    /// The last write of the log as a power loss would leave it now.
    fn durable(&self) -> Sequence {
        let env = self.env.crash(&CrashMode::LoseAll, 1);
        let mut last = 0;
        let mut visit = |record: crate::wal::reader::Record<'_>| {
            assert_eq!(record.sequence, last + 1, "a hole");
            last = record.sequence;
            Ok(Visited::Last(record.sequence))
        };
        replay(&maker(&env), 0, Position::default(), &mut visit).unwrap();
        last
    }

    fn append_and_sync(&self) -> Result<()> {
        let (sequence, position) = self.append();
        self.shared.sync_to(position)?;
        assert!(self.durable() >= sequence);
        assert!(self.shared.durable() >= position);
        Ok(())
    }
}

#[test]
fn what_is_synced_is_on_the_device() {
    explore("group sync", PREEMPTIONS, || {
        let log = Log::new();
        let threads = [0; 2].map(|_| {
            let log = Arc::clone(&log);
            thread::spawn(move || log.append_and_sync().unwrap())
        });
        log.append_and_sync().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(log.durable(), 3);
    });
}

#[test]
fn segments_are_handed_over_beside_syncs() {
    explore("hand-over", PREEMPTIONS, || {
        let log = Log::new();
        log.append();
        let other = Arc::clone(&log);
        let preparing = thread::spawn(move || {
            other.shared.prepare_next().unwrap();
            while other.shared.prefault_step() {}
        });
        let other = Arc::clone(&log);
        let syncing = thread::spawn(move || other.shared.sync_all().unwrap());
        log.append();
        // In the next segment.
        log.append_and_sync().unwrap();
        log.append();
        preparing.join().unwrap();
        syncing.join().unwrap();
        // And in the one after.
        log.append_and_sync().unwrap();
        assert_eq!(log.durable(), 5);
        assert!(log.shared.segments() >= 3);
    });
}
