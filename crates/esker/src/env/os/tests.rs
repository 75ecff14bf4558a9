#![allow(clippy::unwrap_used)]

use super::*;
use std::sync::atomic::AtomicU64;

/// A directory of its own for each test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("esker-env-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn appended_bytes_of_every_size_arrive_in_order() {
    let scratch = Scratch::new();
    let path = scratch.path("table");
    let mut file = OsEnv.create(&path).unwrap();
    assert!(file.is_empty());
    let mut expected = Vec::new();
    for size in [1, 100, 0, 4096, APPEND_BUFFER - 1, 1, APPEND_BUFFER, 3, APPEND_BUFFER + 1, 70_000, 200_000, 5] {
        let bytes = pattern(size);
        file.append(&bytes).unwrap();
        expected.extend_from_slice(&bytes);
        assert_eq!(file.len(), expected.len() as u64);
    }
    file.sync().unwrap();
    assert_eq!(fs::read(&path).unwrap(), expected);
    file.append(b"tail").unwrap();
    file.sync().unwrap();
    expected.extend_from_slice(b"tail");
    drop(file);

    let file = OsEnv.open(&path).unwrap();
    assert_eq!(file.len(), expected.len() as u64);
    let mut buffer = vec![0; 1000];
    file.read_at(300_000, &mut buffer).unwrap();
    assert_eq!(buffer, expected[300_000..301_000]);
    assert_eq!(file.mapping().unwrap(), expected);
    assert_eq!(file.mapping().unwrap().as_ptr(), file.mapping().unwrap().as_ptr());
    OsEnv.create(&path).unwrap().sync().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn dropping_discards_what_was_only_buffered() {
    let scratch = Scratch::new();
    let path = scratch.path("table");
    let mut file = OsEnv.create(&path).unwrap();
    file.append(b"synced").unwrap();
    file.sync().unwrap();
    file.append(b"buffered").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"synced");
}

#[test]
fn reading_past_the_end_is_corruption_with_place() {
    let scratch = Scratch::new();
    let path = scratch.path("table");
    fs::write(&path, b"0123456789").unwrap();
    let file = OsEnv.open(&path).unwrap();
    let mut buffer = [0; 4];
    file.read_at(6, &mut buffer).unwrap();
    assert_eq!(&buffer, b"6789");
    for offset in [7, 10, 1000, u64::MAX >> 1] {
        match file.read_at(offset, &mut buffer) {
            Err(Error::Corruption { path: at, offset: found, .. }) => assert_eq!((at, found), (path.clone(), offset)),
            // The system refuses offsets that no file can have.
            Err(Error::Io { .. }) if offset > 1 << 40 => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(file.read_at(u64::MAX, &mut buffer).is_err());
    file.read_at(10, &mut []).unwrap();
}

#[test]
fn an_empty_or_shrunken_file_has_no_mapping() {
    let scratch = Scratch::new();
    fs::write(scratch.path("empty"), b"").unwrap();
    let empty = OsEnv.open(&scratch.path("empty")).unwrap();
    assert!(empty.is_empty() && empty.mapping().is_none());
    fs::write(scratch.path("shrunken"), pattern(10_000)).unwrap();
    let shrunken = OsEnv.open(&scratch.path("shrunken")).unwrap();
    fs::write(scratch.path("shrunken"), b"short").unwrap();
    assert!(shrunken.mapping().is_none());
}

#[test]
fn a_removed_file_stays_readable_while_open() {
    let scratch = Scratch::new();
    let path = scratch.path("table");
    fs::write(&path, b"content").unwrap();
    let file = OsEnv.open(&path).unwrap();
    OsEnv.remove(&path).unwrap();
    assert!(!OsEnv.exists(&path).unwrap());
    assert_eq!(file.mapping().unwrap(), b"content");
    let mut buffer = [0; 7];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"content");
}

#[test]
fn names_are_listed_renamed_linked_and_removed() {
    let scratch = Scratch::new();
    let nested = scratch.path("a/b/c");
    OsEnv.create_dir_all(&nested).unwrap();
    OsEnv.create_dir_all(&nested).unwrap();
    assert!(OsEnv.exists(&nested).unwrap());
    fs::write(scratch.path("one"), b"1").unwrap();
    fs::write(scratch.path("two"), b"2").unwrap();
    OsEnv.rename(&scratch.path("one"), &scratch.path("two")).unwrap();
    OsEnv.hard_link(&scratch.path("two"), &scratch.path("three")).unwrap();
    assert!(OsEnv.hard_link(&scratch.path("two"), &scratch.path("three")).is_err());
    let mut names = OsEnv.list(&scratch.0).unwrap();
    names.sort();
    assert_eq!(names, ["three", "two"]);
    OsEnv.remove(&scratch.path("two")).unwrap();
    assert_eq!(fs::read(scratch.path("three")).unwrap(), b"1");
    OsEnv.sync_dir(&scratch.0).unwrap();
    OsEnv.sync_dir(Path::new("")).unwrap();
    let missing = OsEnv.open(&scratch.path("missing")).unwrap_err();
    assert!(matches!(missing, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
    assert!(OsEnv.list(&scratch.path("missing")).is_err());
    assert!(OsEnv.remove(&scratch.path("missing")).is_err());
    assert!(OsEnv.sync_dir(&scratch.path("missing")).is_err());
}

fn exercise_log(mapped: bool) {
    const LEN: usize = 3 * 1024 * 1024 + 4096 + 17;
    let scratch = Scratch::new();
    let path = scratch.path("log");
    let log = OsEnv.open_log(&path, Some(LEN as u64), mapped).unwrap();
    assert_eq!(log.len(), LEN as u64);
    assert_eq!(fs::read(&path).unwrap(), vec![0; LEN]);
    let mut expected = vec![0; LEN];
    let pieces = [(0, 10), (10, 4090), (4095, 3), (LEN - 5, 5), (1 << 20, 100_000), (LEN, 0)];
    for (turn, (offset, len)) in pieces.into_iter().enumerate() {
        let bytes = pattern(len);
        expected[offset..offset + len].copy_from_slice(&bytes);
        if turn % 2 == 0 {
            log.store(offset as u64, &bytes).unwrap()
        } else {
            log.write(offset as u64, &bytes).unwrap()
        }
        // Both ways see each other, and so does every other reader of the file.
        let mut buffer = vec![0; len];
        log.read_at(offset as u64, &mut buffer).unwrap();
        assert_eq!(buffer, bytes);
        assert_eq!(fs::read(&path).unwrap(), expected);
    }
    log.sync().unwrap();
    for offset in [LEN as u64 - 4, LEN as u64, LEN as u64 + 1, u64::MAX - 1, u64::MAX] {
        assert!(matches!(log.store(offset, b"12345"), Err(Error::InvalidArgument { .. })));
        assert!(matches!(log.write(offset, b"12345"), Err(Error::InvalidArgument { .. })));
    }
    assert!(matches!(log.read_at(LEN as u64 - 4, &mut [0; 5]), Err(Error::Corruption { .. })));
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), expected);

    let log = OsEnv.open_log(&path, None, mapped).unwrap();
    log.store(5, b"again").unwrap();
    expected[5..10].copy_from_slice(b"again");
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn a_mapped_log_keeps_stores_and_writes() {
    exercise_log(true);
}

#[test]
fn an_unmapped_log_keeps_stores_and_writes() {
    exercise_log(false);
}

/// What is stored survives its page being taken out of the mapping, also while stores go on, and
/// whatever the range.
#[test]
fn ranged_syncs_leave_every_byte_where_it_is() {
    const LEN: u64 = 1 << 20;
    const RECORD: usize = 136;
    for mapped in [true, false] {
        let scratch = Scratch::new();
        let path = scratch.path("log");
        let log = OsEnv.open_log(&path, Some(LEN), mapped).unwrap();
        log.sync().unwrap();
        log.prefault(0, LEN);
        log.prefault(LEN - 1, u64::MAX);
        let written = std::sync::atomic::AtomicU64::new(0);
        let record = |at: u64| [(at / RECORD as u64 % 251) as u8 + 1; RECORD];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut synced = 0;
                while synced + (RECORD as u64) < LEN {
                    let end = written.load(Ordering::Acquire);
                    log.sync_range(synced, end).unwrap();
                    synced = end;
                }
            });
            for at in (0..LEN - RECORD as u64).step_by(RECORD) {
                log.store(at, &record(at)).unwrap();
                written.store(at + RECORD as u64, Ordering::Release);
            }
            written.store(LEN, Ordering::Release);
        });
        for (from, to) in [(5, 5), (9, 3), (LEN, LEN), (0, u64::MAX), (u64::MAX, u64::MAX), (4095, 4097)] {
            log.sync_range(from, to).unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        assert!((0..LEN - RECORD as u64).step_by(RECORD).all(|at| bytes[at as usize..][..RECORD] == record(at)));
    }
}

#[cfg(unix)]
#[test]
fn a_store_touches_nothing_but_its_bytes_and_the_rest_of_their_last_word() {
    let scratch = Scratch::new();
    let path = scratch.path("log");
    fs::write(&path, vec![9; 8192]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let Some(map) = LogMap::new(&file, 8192) else { return };
    for len in 0..40u64 {
        let bytes = pattern(len as usize);
        assert!(map.store(64 * len, &bytes));
        let mut expected = vec![9; 64];
        expected[..bytes.len().next_multiple_of(8)].fill(0);
        expected[..bytes.len()].copy_from_slice(&bytes);
        assert_eq!(fs::read(&path).unwrap()[64 * len as usize..][..64], expected);
    }
    let before = fs::read(&path).unwrap();
    assert!(
        !map.store(4, &[1; 8]) && !map.store(8184, &[1; 9]) && !map.store(8192, &[1]) && !map.store(u64::MAX, &[1])
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_new_log_leaves_other_links_to_the_old_one_alone() {
    let scratch = Scratch::new();
    fs::write(scratch.path("log"), b"old").unwrap();
    OsEnv.hard_link(&scratch.path("log"), &scratch.path("kept")).unwrap();
    OsEnv.open_log(&scratch.path("log"), Some(8), true).unwrap();
    assert_eq!(fs::read(scratch.path("kept")).unwrap(), b"old");
    assert_eq!(fs::read(scratch.path("log")).unwrap(), [0; 8]);
    let empty = OsEnv.open_log(&scratch.path("empty"), Some(0), true).unwrap();
    assert!(empty.is_empty());
    assert!(empty.store(0, b"x").is_err());
    assert!(OsEnv.open_log(&scratch.path("missing"), None, true).is_err());
}

#[cfg(unix)]
#[test]
fn a_sparse_log_is_not_mapped() {
    let scratch = Scratch::new();
    let path = scratch.path("log");
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert!(LogMap::new(&file, 1 << 20).is_none());
    let log = OsEnv.open_log(&path, None, true).unwrap();
    log.store(1000, b"works").unwrap();
    assert_eq!(&fs::read(&path).unwrap()[1000..1005], b"works");
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_is_lost_is_an_error_and_so_is_all_after_it() {
    const LEN: u64 = 64 << 10;
    for synced_whole in [true, false] {
        let scratch = Scratch::new();
        let path = scratch.path("log");
        let log = OsEnv.open_log(&path, Some(LEN), true).unwrap();
        log.sync().unwrap();
        log.store(0, b"first").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        let is_lost = |stored| match stored {
            Err(Error::Io { operation: "write to", path: at, .. }) => assert_eq!(at, path),
            other => panic!("{other:?}"),
        };
        is_lost(log.store(40_000, b"second"));
        // The cause of the failure is looked for without making the file longer.
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        // The page stays lost, whatever becomes of the file.
        file.set_len(LEN).unwrap();
        is_lost(log.store(40_000, b"third"));
        assert_eq!(&fs::read(&path).unwrap()[40_000..40_005], b"third");
        assert!(if synced_whole { log.sync() } else { log.sync_range(0, LEN) }.is_err());
        let mut buffer = [0; 5];
        log.read_at(40_000, &mut buffer).unwrap();
        assert_eq!(&buffer, b"third");
    }
}

/// As after `cp --reflink` of a live database: a segment that was mapped with all its blocks has
/// lost one, and the disk has none left.
#[cfg(target_os = "linux")]
#[test]
fn a_store_that_needs_a_block_of_a_full_disk_says_so() {
    use rustix::fs::{FallocateFlags, fallocate};
    use std::process::Command;
    const LEN: u64 = 256 << 10;
    /// Unmounts when dropped.
    struct SmallDisk(PathBuf);
    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).output();
        }
    }
    let scratch = Scratch::new();
    let disk = scratch.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&disk).output();
    if !mounted.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a small file system cannot be mounted here: {mounted:?}");
        return;
    }
    let _unmounts = SmallDisk(disk.clone());
    let path = disk.join("log");
    let log = OsEnv.open_log(&path, Some(LEN), true).unwrap();
    log.sync().unwrap();
    log.store(0, b"first").unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, LEN / 2, LEN / 4).unwrap();
    let mut rest = File::create(disk.join("rest")).unwrap();
    while rest.write_all(&[1; 4096]).is_ok() {}
    // Where there is a block, as before; where there is none, the error that a write has.
    log.store(8, b"second").unwrap();
    log.sync_range(0, 4096).unwrap();
    let error = log.store(LEN / 2 + 8, b"third").unwrap_err();
    assert!(error.is_disk_full(), "{error:?}");
    assert!(log.sync().is_err() && log.sync_range(0, 4096).is_err());
    assert_eq!(&fs::read(&path).unwrap()[..14], b"first\0\0\0second");
}

#[cfg(target_os = "linux")]
#[test]
fn a_mapping_that_has_failed_says_so_and_the_file_is_read_all_the_same() {
    let scratch = Scratch::new();
    let path = scratch.path("table");
    fs::write(&path, pattern(64 << 10)).unwrap();
    let file = OsEnv.open(&path).unwrap();
    file.check_mapping().unwrap();
    let mapping = file.mapping().unwrap();
    assert_eq!(mapping, pattern(64 << 10));
    File::options().write(true).open(&path).unwrap().set_len(16 << 10).unwrap();
    file.check_mapping().unwrap();
    assert!(std::hint::black_box(mapping)[32 << 10..].iter().all(|&byte| byte == 0));
    match file.check_mapping() {
        Err(Error::Io { operation: "read", path: at, .. }) => assert_eq!(at, path),
        other => panic!("{other:?}"),
    }
    assert!(file.check_mapping().is_err());
    let mut buffer = vec![0; 16 << 10];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(buffer, pattern(64 << 10)[..16 << 10]);
    assert!(file.read_at(16 << 10, &mut buffer).is_err());
    // Another one of the same file is another matter.
    assert_eq!(OsEnv.open(&path).unwrap().mapping().unwrap(), &pattern(64 << 10)[..16 << 10]);
}

#[cfg(unix)]
#[test]
fn a_log_that_does_not_fit_leaves_no_file() {
    let scratch = Scratch::new();
    let path = scratch.path("log");
    // No file system has this much room; which error it gives differs.
    assert!(OsEnv.open_log(&path, Some(1 << 62), true).is_err());
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_apart_and_stops_the_file() {
    let Ok(file) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let mut file = OsWriteFile { path: PathBuf::from("/dev/full"), file, buffer: Vec::new(), len: 0, failed: false };
    file.append(b"buffered").unwrap();
    assert!(file.sync().unwrap_err().is_disk_full());
    assert!(!file.sync().unwrap_err().is_disk_full());
    assert!(file.append(b"more").is_err());
    let file = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    assert!(allocate(&file, 100).is_err());
}

#[test]
fn stores_from_several_threads_all_arrive() {
    let scratch = Scratch::new();
    let log = OsEnv.open_log(&scratch.path("log"), Some(1 << 16), true).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let log = &log;
            scope.spawn(move || {
                for i in 0..256 {
                    log.store((i * 4 + thread) * 64, &[thread as u8 + 1; 64]).unwrap();
                }
            });
        }
    });
    let bytes = fs::read(scratch.path("log")).unwrap();
    assert!(bytes.chunks(64).enumerate().all(|(i, chunk)| chunk == [(i % 4) as u8 + 1; 64]));
}

#[test]
fn a_lock_excludes_other_handles_and_names_its_holder() {
    let scratch = Scratch::new();
    let path = scratch.path("LOCK");
    fs::write(&path, b"4294967295 and more than a pid").unwrap();
    let lock = OsEnv.lock(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    for _ in 0..2 {
        match OsEnv.lock(&path) {
            Err(Error::Locked { path: at, holder }) => {
                assert_eq!((at, holder), (path.clone(), Some(std::process::id())))
            }
            other => panic!("{other:?}"),
        }
    }
    drop(lock);
    drop(OsEnv.lock(&path).unwrap());
    assert!(path.exists());
    OsEnv.lock(&path).unwrap();
    assert!(matches!(OsEnv.lock(&scratch.path("missing/LOCK")), Err(Error::Io { .. })));
}

#[test]
fn a_lock_of_another_process_is_seen_and_dies_with_it() {
    let scratch = Scratch::new();
    let path = scratch.path("LOCK");
    // flock(1) is part of every usual Linux; elsewhere there is nothing to show here. The child
    // ends with its input.
    let child = std::process::Command::new("flock")
        .args([path.as_os_str(), "-c".as_ref(), "echo held; read line".as_ref()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return };
    let mut told = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut told).unwrap();
    let conflict = OsEnv.lock(&path);
    let held = matches!(conflict, Err(Error::Locked { holder: None, .. }));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(held, "{conflict:?}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while OsEnv.lock(&path).is_err() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

/// What a process that starts another one looks like between `fork` and `exec`: the lock file is
/// open twice.
#[cfg(unix)]
#[test]
fn a_lock_given_back_is_free_although_a_process_is_about_to_start() {
    let scratch = Scratch::new();
    let path = scratch.path("LOCK");
    let mut lock = system::Locked::try_new(&path).unwrap().unwrap();
    let inherited = lock.file().try_clone().unwrap();
    assert!(system::Locked::try_new(&path).unwrap().is_none());
    drop(lock);
    assert!(system::Locked::try_new(&path).unwrap().is_some());
    drop(inherited);
}

#[test]
fn the_plain_path_reads_writes_and_locks() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    plain::reserve(&file, 100).unwrap();
    assert!(plain::LogMap::new(&file, 100).is_none());
    let file = plain::Positioned::new(file);
    file.write_all_at(b"hello", 3).unwrap();
    file.sync_data().unwrap();
    let mut buffer = [9; 8];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 8);
    assert_eq!(&buffer, b"\0\0\0hello");
    assert_eq!(file.read_at(&mut buffer, 8).unwrap(), 0);
    assert!(plain::ReadMap::new(&file, 8).is_none());
    plain::sync_directory(&scratch.0).unwrap();

    let lock = plain::Locked::try_new(&path).unwrap();
    assert!(lock.is_some());
    assert!(plain::Locked::try_new(&path).unwrap().is_none());
    drop(lock);
    assert!(plain::Locked::try_new(&path).unwrap().is_some());
}
