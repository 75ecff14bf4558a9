//! Readers beside a memtable that is rotated and flushed, beside a compaction and the remover of
//! the tables it has replaced, and beside two threads that install at once (`read_state.rs`,
//! `obsolete_tables.rs`): a reader always finds the key, a snapshot the same value, later reads
//! never older ones, and no file is removed while a reader holds its table.
//!
//! And beside the drop of the keyspace (`dropped_keyspaces.rs`): a snapshot of before sees what it
//! saw, others the value or that it was dropped, and from then on that; when no snapshot sees it,
//! no file is left; if the drop is taken back, everything is there.
//!
//! Planted and seen: `install_flush` in two steps; `ReadStateCell::change` loading before it locks;
//! `rotate_memtable` forgetting what waits already; `take_unread` counting one reference too few;
//! `oldest_unflushed` looking at the read states first; `SnapshotList::register` not noting the
//! newest. Of drops: `finish_drop` not saying that it is final; `ReadStateCell::change` losing what
//! is installed while a drop may be taken back; `take_unseen` taking what the newest snapshot
//! before sees; `take_back_drop` without tables; `Dropped::at` showing it to a snapshot of after;
//! `ReadState::stored` being empty for the flush that began beside a drop.
//!
//! The jobs are the engine's, on an environment in memory whose files are mapped, so that the block
//! cache takes no part (`cache.rs` tries that). What a job does in which order is written down here
//! again: `Keyspace::flush` and `Keyspace::merge` do what `flush.rs` and `compaction.rs` do without
//! manifest and log.

use super::*;
use crate::base::clock::ManualClock;
use crate::base::key::MAX_SEQUENCE;
use crate::base::key_order::KeyOrder;
use crate::base::sync::{self, Mutex};
use crate::blob::BlobStore;
use crate::db::read::get::{Base, Sources, look_up};
use crate::db::state::dropped_keyspaces::DroppedKeyspaces;
use crate::db::state::obsolete_tables::ObsoleteTables;
use crate::db::state::read_state::{ReadState, ReadStateCell, oldest_unflushed};
use crate::db::state::read_stats::ReadStats;
use crate::db::state::snapshots::{SnapshotGuard, SnapshotList};
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::job::blob_values::{BlobValues, Copy};
use crate::job::compact::compact;
use crate::job::flush::flush;
use crate::job::output::OutputOptions;
use crate::job::output_splitter::OutputSplitter;
use crate::job::version_gc::Rules;
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableKeyspace, TableOptions};
use loom::thread;
use std::path::Path;
use std::sync::atomic::Ordering::Release;

const DIRECTORY: &str = "/db";
const KEY: &[u8] = b"k";
/// By age. None has eight bytes: those would be changed in place.
const VALUES: [&[u8]; 3] = [b"old", b"newer", b"the newest"];
/// Words of a thread that writes tables.
const STACK: usize = 1 << 15;

/// As much of a keyspace as takes part.
struct Keyspace {
    writer: Mutex<Writer>,
    read_states: ReadStateCell,
    last_sequence: sync::AtomicU64,
    snapshots: Arc<SnapshotList>,
    read_stats: ReadStats,
    obsolete: ObsoleteTables,
    dropped: DroppedKeyspaces<()>,
    /// Whether the manifest has the keyspace.
    listed: Mutex<bool>,
    env: MemEnv,
    next_file: AtomicU64,
    files_touched: sync::AtomicU64,
}

/// What a reader finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Value(usize),
    /// No value.
    Nothing,
    /// That the keyspace was dropped.
    Dropped,
}

struct Writer {
    memtable: MemtableWriter,
    last_sequence: Sequence,
}

impl Keyspace {
    fn new() -> Arc<Keyspace> {
        let env = MemEnv::new();
        env.map_files();
        env.create_dir_all(Path::new(DIRECTORY)).unwrap();
        let (active, memtable) = small_memtable();
        Arc::new(Keyspace {
            writer: Mutex::new(Writer { memtable, last_sequence: 0 }),
            read_states: ReadStateCell::new(ReadState::of_memtable(active)),
            last_sequence: sync::AtomicU64::new(0),
            snapshots: Arc::default(),
            read_stats: ReadStats::default(),
            obsolete: ObsoleteTables::default(),
            dropped: DroppedKeyspaces::default(),
            listed: Mutex::new(true),
            env,
            next_file: AtomicU64::new(1),
            files_touched: sync::AtomicU64::new(0),
        })
    }

    /// Writes the next of the values, as `commit_locked` does.
    fn put(&self) -> Sequence {
        self.write(|sequence| (Kind::Put, VALUES[sequence as usize - 1]))
    }

    fn delete(&self) -> Sequence {
        self.write(|_| (Kind::Delete, b""))
    }

    fn write(&self, what: impl FnOnce(Sequence) -> (Kind, &'static [u8])) -> Sequence {
        let mut writer = self.writer.lock();
        writer.last_sequence += 1;
        let sequence = writer.last_sequence;
        let (kind, value) = what(sequence);
        write(&mut writer.memtable, kind, KEY, sequence, value, self.snapshots.newest());
        self.last_sequence.store(sequence, Release);
        sequence
    }

    /// As `Inner::register_snapshot`.
    fn snapshot(&self) -> SnapshotGuard {
        self.snapshots.register(self.writer.lock().last_sequence, Some(&ManualClock::new(1)))
    }

    /// Which of the values a reader finds. All the time the files are there that it may look into.
    fn get(&self, sequence: Sequence) -> usize {
        let Found::Value(value) = self.find(sequence) else { panic!("no value") };
        value
    }

    /// The same where there may be none.
    fn find(&self, sequence: Sequence) -> Found {
        let loaded = self.read_states.load();
        let Some(read_state) = loaded.at(sequence) else { return Found::Dropped };
        let sources = Sources { read_state, last_sequence: &self.last_sequence, read_stats: &self.read_stats };
        let found = look_up(sources, KEY, sequence, 0).unwrap();
        for (_, table) in read_state.version.tables() {
            self.touch_files();
            assert!(self.env.exists(table.path()).unwrap(), "a table was removed while it was read");
        }
        match found.base {
            Base::Value(value) => Found::Value(VALUES.iter().position(|known| **known == *value).expect("one of them")),
            _ => Found::Nothing,
        }
    }

    /// The first step of a drop, as `take_away`.
    fn begin_drop(&self) -> Sequence {
        let mut writer = self.writer.lock();
        writer.last_sequence += 1;
        let sequence = writer.last_sequence;
        self.last_sequence.store(sequence, Release);
        self.read_states.begin_drop(sequence, small_memtable().0);
        sequence
    }

    /// All of one, as `drop_keyspace`.
    fn drop_keyspace(&self) {
        let sequence = self.begin_drop();
        *self.listed.lock() = false;
        let before = self.read_states.finish_drop().expect("a drop has begun");
        self.obsolete.add(before.version.tables().map(|(_, table)| table));
        drop(before);
        self.dropped.add(sequence, Arc::new(()));
        self.sweep();
    }

    /// One that fails.
    fn begin_and_take_back_drop(&self) {
        self.begin_drop();
        let _writer = self.writer.lock();
        self.read_states.take_back_drop();
    }

    fn rotate(&self) -> Arc<Memtable> {
        let mut writer = self.writer.lock();
        let old = Arc::clone(writer.memtable.memtable());
        self.read_states.rotate_memtable(&mut writer.memtable, small_memtable());
        old
    }

    fn next_file(&self) -> u64 {
        self.next_file.fetch_add(1, Relaxed)
    }

    /// What a job writes with.
    fn with_output<T>(&self, job: impl FnOnce(&OutputOptions<'_>) -> T) -> T {
        let blobs = BlobStore::new(Arc::new(self.env.clone()), DIRECTORY.into(), 1 << 20, Compression::None);
        job(&OutputOptions {
            env: &self.env,
            directory: DIRECTORY.into(),
            table: TableOptions::default(),
            order: KeyOrder::Bytewise,
            filter_policy: None,
            keyspace: TableKeyspace::default(),
            flushed: 0,
            target_file_bytes: 1 << 20,
            cache: Arc::new(BlockCache::new(0)),
            read_mode: ReadMode::Mmap,
            next_file: &|| self.next_file(),
            large: BlobValues { store: &blobs, threshold: usize::MAX, copy: Copy::From(&|_| false), one_by_one: true },
        })
    }

    /// As `flush_one`.
    fn flush(&self, memtable: &Arc<Memtable>) {
        let version = Arc::clone(&self.read_states.load().stored().version);
        let readers = self.snapshots.readers(None);
        let rules = Rules { snapshots: &readers.sequences, bottom: version.runs.is_empty(), ..Rules::default() };
        let flushed = self.with_output(|output| flush(memtable, rules, output, &mut || ())).unwrap();
        let is_committed = *self.listed.lock();
        if !is_committed || !self.read_states.install_flush(memtable, self.next_file(), &flushed.tables) {
            self.retire(flushed.tables);
        }
    }

    /// As `retire_tables`.
    fn retire(&self, tables: Vec<Arc<Table>>) {
        self.obsolete.add(tables);
        self.sweep();
    }

    /// As `merge`, of all runs.
    fn merge(&self) {
        let version = Arc::clone(&self.read_states.load().version);
        let removed: Vec<Arc<Table>> = version.tables().map(|(_, table)| table).collect();
        if removed.is_empty() {
            return;
        }
        let readers = self.snapshots.readers(None);
        let rules = Rules { snapshots: &readers.sequences, bottom: true, ..Rules::default() };
        let runs = &version.runs;
        let merged = self.with_output(|output| {
            compact(runs, rules, output, &OutputSplitter::default(), &[], u64::MAX, &mut |_| Ok(())).unwrap()
        });
        let numbers: Vec<u64> = removed.iter().map(|table| table.summary().file_number).collect();
        let is_committed = *self.listed.lock();
        let is_installed = is_committed && self.read_states.replace_tables(&numbers, runs[0].id, &merged.tables);
        drop(version);
        self.retire(if is_installed { removed } else { merged.tables });
    }

    fn sweep(&self) {
        self.touch_files();
        for _ in self.dropped.take_unseen(&self.snapshots) {
            self.read_states.release_dropped();
        }
        for table in self.obsolete.take_unread() {
            let path = table.path().to_path_buf();
            drop(table);
            self.touch_files();
            self.env.remove(&path).unwrap();
        }
    }

    /// Tells loom that files are looked at or removed: it would see no reason to try another order.
    fn touch_files(&self) {
        self.files_touched.fetch_add(1, Relaxed);
    }

    fn files(&self) -> usize {
        self.env.list(Path::new(DIRECTORY)).unwrap().len()
    }
}

/// A thread with the stack that a job needs.
fn spawn(keyspace: &Arc<Keyspace>, job: impl FnOnce(&Keyspace) + Send + 'static) -> thread::JoinHandle<()> {
    let keyspace = Arc::clone(keyspace);
    thread::Builder::new().stack_size(STACK).spawn(move || job(&keyspace)).unwrap()
}

/// A keyspace with so many values, each in a run of its own.
fn with_runs(count: usize) -> Arc<Keyspace> {
    let keyspace = Keyspace::new();
    let setting_up = spawn(&keyspace, move |keyspace| {
        for _ in 0..count {
            keyspace.put();
            keyspace.flush(&keyspace.rotate());
        }
    });
    setting_up.join().unwrap();
    keyspace
}

#[test]
fn a_get_beside_a_flush_finds_what_is_there() {
    explore("a get beside a flush", PREEMPTIONS, || {
        let keyspace = Keyspace::new();
        keyspace.put();
        let flushing = spawn(&keyspace, |keyspace| keyspace.flush(&keyspace.rotate()));
        assert_eq!([keyspace.get(MAX_SEQUENCE), keyspace.get(MAX_SEQUENCE)], [0, 0]);
        flushing.join().unwrap();
        assert_eq!(keyspace.get(MAX_SEQUENCE), 0);
        let read_state = keyspace.read_states.load();
        assert_eq!(
            (read_state.immutable.len(), read_state.version.runs.len(), read_state.active.is_empty()),
            (0, 1, true)
        );
    });
}

#[test]
fn a_writer_beside_a_rotation_loses_nothing() {
    explore("a writer beside a rotate", PREEMPTIONS, || {
        let keyspace = Keyspace::new();
        keyspace.put();
        keyspace.rotate();
        let writing = spawn(&keyspace, |keyspace| {
            let sequence = keyspace.put();
            assert!(keyspace.get(MAX_SEQUENCE) + 1 >= sequence as usize, "it was acknowledged");
        });
        let freezing = spawn(&keyspace, |keyspace| drop(keyspace.rotate()));
        let first = keyspace.get(MAX_SEQUENCE);
        assert!(keyspace.get(MAX_SEQUENCE) >= first, "it had been seen");
        writing.join().unwrap();
        freezing.join().unwrap();
        assert_eq!([keyspace.get(1), keyspace.get(MAX_SEQUENCE)], [0, 1]);
    });
}

#[test]
fn a_snapshot_beside_a_writer_and_a_flush_keeps_its_value() {
    explore("a snapshot beside a writer and a flush", PREEMPTIONS, || {
        let keyspace = Keyspace::new();
        keyspace.put();
        let writing = spawn(&keyspace, |keyspace| _ = keyspace.put());
        let flushing = spawn(&keyspace, |keyspace| keyspace.flush(&keyspace.rotate()));
        let snapshot = keyspace.snapshot();
        let seen = keyspace.get(snapshot.sequence());
        assert_eq!(seen + 1, snapshot.sequence() as usize);
        writing.join().unwrap();
        flushing.join().unwrap();
        assert_eq!(keyspace.get(snapshot.sequence()), seen);
        assert_eq!(keyspace.get(MAX_SEQUENCE), 1);
    });
}

#[test]
fn a_merge_and_the_remover_of_its_inputs_leave_readers_what_they_have() {
    explore("readers beside a merge and the remover", PREEMPTIONS, || {
        let keyspace = with_runs(1);
        let snapshot = keyspace.snapshot();
        let setting_up = spawn(&keyspace, |keyspace| {
            keyspace.put();
            keyspace.flush(&keyspace.rotate());
        });
        setting_up.join().unwrap();
        let merging = spawn(&keyspace, Keyspace::merge);
        let sweeping = spawn(&keyspace, Keyspace::sweep);
        assert_eq!(keyspace.get(snapshot.sequence()), 0);
        drop(snapshot);
        assert_eq!(keyspace.get(MAX_SEQUENCE), 1);
        merging.join().unwrap();
        sweeping.join().unwrap();
        assert_eq!(keyspace.get(MAX_SEQUENCE), 1);
        // The reader that loaded the read state before the compaction has released it.
        keyspace.sweep();
        assert_eq!(keyspace.files(), 1);
    });
}

#[test]
fn what_two_install_at_once_is_all_there() {
    explore("two installers", PREEMPTIONS, || {
        let keyspace = with_runs(2);
        keyspace.put();
        let merging = spawn(&keyspace, Keyspace::merge);
        let flushing = spawn(&keyspace, |keyspace| keyspace.flush(&keyspace.rotate()));
        assert_eq!(keyspace.get(MAX_SEQUENCE), 2);
        merging.join().unwrap();
        flushing.join().unwrap();
        assert_eq!(keyspace.get(MAX_SEQUENCE), 2);
        keyspace.sweep();
        let read_state = keyspace.read_states.load();
        let tables = read_state.version.tables().count();
        // The compaction may have come after the flush.
        assert!(read_state.immutable.is_empty() && (1..=2).contains(&tables) && keyspace.files() == tables);
    });
}

/// What the log releases at a flush is in tables with it, whatever is written and rotated
/// meanwhile.
#[test]
fn the_log_keeps_what_a_flush_leaves_out() {
    explore("the floor of the log", PREEMPTIONS, || {
        let keyspace = Keyspace::new();
        keyspace.put();
        let first = keyspace.rotate();
        let writing = spawn(&keyspace, |keyspace| {
            // As for a batch that needs more room than the empty memtable has.
            keyspace.rotate();
            keyspace.put();
            keyspace.rotate();
            keyspace.put();
        });
        let read_states = std::iter::once_with(|| keyspace.read_states.load_full());
        let floor = oldest_unflushed(&keyspace.last_sequence, read_states, std::slice::from_ref(&first));
        assert_eq!(floor, 2);
        writing.join().unwrap();
    });
}

#[test]
fn a_drop_leaves_snapshots_what_they_see_and_then_no_file() {
    explore("a drop beside readers and the remover", PREEMPTIONS, || {
        let keyspace = with_runs(1);
        let snapshot = keyspace.snapshot();
        let dropping = spawn(&keyspace, Keyspace::drop_keyspace);
        let sweeping = spawn(&keyspace, Keyspace::sweep);
        assert_eq!(keyspace.find(snapshot.sequence()), Found::Value(0));
        let first = keyspace.find(MAX_SEQUENCE);
        assert!([Found::Value(0), Found::Dropped].contains(&first), "{first:?}");
        assert_eq!(keyspace.find(snapshot.sequence()), Found::Value(0));
        let second = keyspace.find(MAX_SEQUENCE);
        assert!(second == first || second == Found::Dropped, "it came back");
        dropping.join().unwrap();
        assert_eq!(keyspace.find(snapshot.sequence()), Found::Value(0));
        let late = keyspace.snapshot();
        assert_eq!([keyspace.find(late.sequence()), keyspace.find(MAX_SEQUENCE)], [Found::Dropped; 2]);
        drop((snapshot, late));
        sweeping.join().unwrap();
        keyspace.sweep();
        assert_eq!(keyspace.files(), 0);
    });
}

#[test]
fn a_snapshot_that_ends_beside_a_drop_ends_with_its_files() {
    explore("a snapshot that ends beside a drop", PREEMPTIONS, || {
        let keyspace = with_runs(1);
        let dropping = spawn(&keyspace, Keyspace::drop_keyspace);
        let snapshot = keyspace.snapshot();
        let first = keyspace.find(snapshot.sequence());
        let sweeping = spawn(&keyspace, Keyspace::sweep);
        assert_eq!(keyspace.find(snapshot.sequence()), first, "a snapshot sees one state");
        let held = keyspace.read_states.load_full();
        drop(snapshot);
        // What a reader has loaded, as an iterator has, stays.
        for (_, table) in held.at(0).iter().flat_map(|before| before.version.tables()) {
            keyspace.touch_files();
            assert!(keyspace.env.exists(table.path()).unwrap(), "a table was removed while it was read");
        }
        drop(held);
        dropping.join().unwrap();
        sweeping.join().unwrap();
        keyspace.sweep();
        assert_eq!((keyspace.files(), keyspace.find(MAX_SEQUENCE)), (0, Found::Dropped));
    });
}

#[test]
fn a_drop_beside_a_flush_and_a_merge_leaves_nothing_of_theirs() {
    for merges in [false, true] {
        let name = if merges { "a drop beside a merge" } else { "a drop beside a flush" };
        explore(name, PREEMPTIONS, move || {
            let keyspace = with_runs(if merges { 2 } else { 1 });
            keyspace.put();
            let memtable = keyspace.rotate();
            let snapshot = keyspace.snapshot();
            let seen = keyspace.find(snapshot.sequence());
            let dropping = spawn(&keyspace, Keyspace::drop_keyspace);
            let working =
                spawn(&keyspace, move |keyspace| if merges { keyspace.merge() } else { keyspace.flush(&memtable) });
            assert_eq!(keyspace.find(snapshot.sequence()), seen);
            working.join().unwrap();
            dropping.join().unwrap();
            assert_eq!(keyspace.find(snapshot.sequence()), seen);
            drop(snapshot);
            keyspace.sweep();
            assert_eq!((keyspace.files(), keyspace.find(MAX_SEQUENCE)), (0, Found::Dropped));
        });
    }
}

/// The flush may begin before the drop and end in the middle of it, or the other way round.
#[test]
fn a_drop_that_is_taken_back_leaves_everything() {
    explore("a drop that is taken back, beside a flush", PREEMPTIONS, || {
        let keyspace = with_runs(1);
        keyspace.delete();
        let memtable = keyspace.rotate();
        let snapshot = keyspace.snapshot();
        let failing = spawn(&keyspace, Keyspace::begin_and_take_back_drop);
        let flushing = spawn(&keyspace, move |keyspace| keyspace.flush(&memtable));
        assert_eq!(keyspace.find(snapshot.sequence()), Found::Nothing);
        let found = keyspace.find(MAX_SEQUENCE);
        assert!([Found::Nothing, Found::Dropped].contains(&found), "{found:?}");
        failing.join().unwrap();
        flushing.join().unwrap();
        assert_eq!([keyspace.find(snapshot.sequence()), keyspace.find(MAX_SEQUENCE)], [Found::Nothing; 2]);
        let read_state = keyspace.read_states.load();
        assert_eq!((read_state.immutable.len(), read_state.version.runs.len()), (0, 2));
        drop((snapshot, read_state));
        spawn(&keyspace, Keyspace::merge).join().unwrap();
        assert_eq!((keyspace.find(1), keyspace.find(MAX_SEQUENCE)), (Found::Nothing, Found::Nothing));
    });
}

/// A crash must find all of it, as long as the drop is not durable.
#[test]
fn the_log_keeps_what_a_drop_may_bring_back() {
    explore("the floor of the log beside a drop", PREEMPTIONS, || {
        let keyspace = Keyspace::new();
        keyspace.put();
        keyspace.rotate();
        keyspace.put();
        let failing = spawn(&keyspace, Keyspace::begin_and_take_back_drop);
        let read_states = std::iter::once_with(|| keyspace.read_states.load_full());
        assert_eq!(oldest_unflushed(&keyspace.last_sequence, read_states, &[]), 1);
        failing.join().unwrap();
    });
}
