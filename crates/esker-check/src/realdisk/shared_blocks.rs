//! A full disk under blocks that two databases share.
//!
//! `cp --reflink` of the directory of a live database gives the copy the same blocks. The next
//! store into a mapped segment of the log needs a block of its own, and on a full disk there is
//! none: the system sends SIGBUS. It must become the error of that write (decision 33), and take
//! nothing that was acknowledged. A process of its own tries it, which a signal would end.

use super::filesystem::{Disk, SHARING, command, text};
use crate::Checked;
use crate::random::Random;
use esker::{Db, Error, Keyspace, Options, WalMode, WriteOptions};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// For messages and `--only`.
pub(super) const NAME: &str = SHARING.name;

/// Puts before the copy, half of them flushed; those behind leave room in a segment of the log.
const PUTS_BEFORE: u64 = 800;
/// Every log segment and memtable there is takes less than that.
const MOST_PUTS: u64 = 100_000;
/// Puts to a full disk after the first error, and to one that has room again.
const PUTS_AFTER: u64 = 200;
const VALUE_BYTES: usize = 500;
/// One in so many puts is synced.
const PUTS_PER_SYNC: u64 = 64;
const KEYSPACE: &str = "k";

/// Whether it must be tried here: in CI, where the rights and the program for it are there.
pub(super) fn is_due() -> bool {
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    is_ci && rustix::process::geteuid().is_root() && SHARING.is_installed()
}

/// Tries it on a new file system in `scratch`; what came of it, in words.
pub(super) fn run(program: &Path, scratch: &Path, seed: u64) -> Checked<String> {
    if !SHARING.is_installed() {
        return Ok("skipped: needs mkfs.xfs".to_string());
    }
    let disk = match Disk::new(SHARING, scratch) {
        Ok(disk) => disk,
        Err(what) if is_due() => return Err(what),
        Err(what) => return Ok(format!("skipped: {what}")),
    };
    let output = Command::new(program)
        .arg("realdisk-full-child")
        .arg(disk.root())
        .arg(seed.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    Err(format!("the process ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// The process that fills the disk: with a mapped log, then with one that is written.
pub(super) fn child(root: &Path, seed: u64) -> Checked<String> {
    let modes = [WalMode::Mapped, WalMode::Plain].into_iter();
    let lines = modes.map(|mode| round(root, seed, mode)).collect::<Checked<Vec<String>>>()?;
    Ok(lines.join("; "))
}

fn round(root: &Path, seed: u64, mode: WalMode) -> Checked<String> {
    let (path, copied, kept) = (root.join("original"), root.join("copy"), root.join("kept"));
    let known = Known { name: "the original", path, mode, seed, shared: u64::MAX, acknowledged: 0 };
    let mut original = Side::open(known)?;
    original.begin()?;
    // One that is never opened: the open of the other removes the log files that it finds.
    for copy in [&copied, &kept] {
        command("cp", &["--reflink=always", "-r", text(&original.known.path)?, text(copy)?])?;
    }
    let shared = original.known.acknowledged;
    let mut copy = Side::open(Known { name: "the copy", path: copied, shared, ..original.known.clone() })?;
    copy.check()?;

    let ballast = root.join("ballast");
    fill(&ballast).map_err(|error| format!("{}: {error}", ballast.display()))?;
    let taken = [original.put_until_refused()?, copy.put_until_refused()?];
    if mode == WalMode::Mapped && original.db.health().writable {
        return Err("every store into a shared block succeeded: the disk was not full, or the blocks not shared".into());
    }
    for side in [&mut original, &mut copy] {
        side.put_to_a_full_disk()?;
        side.check().map_err(|what| format!("on the full disk: {what}"))?;
    }
    let read_only = [&original, &copy].into_iter().filter(|side| !side.db.health().writable).count();
    empty(&ballast).map_err(|error| format!("{}: {error}", ballast.display()))?;

    for side in [original, copy] {
        let path = side.known.path.clone();
        side.reopen()?.go_on()?;
        std::fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    std::fs::remove_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let [of_original, of_copy] = taken;
    Ok(format!(
        "log {mode:?}: {of_original} puts to the original and {of_copy} to the copy until the full disk was an \
         error, {read_only} of 2 handles read-only, everything acknowledged there"
    ))
}

/// Takes every block that is available.
fn fill(path: &Path) -> std::io::Result<()> {
    let mut end = 0;
    loop {
        let before = end;
        let file = File::options().create(true).append(true).open(path)?;
        for bytes in [16 << 20, 1 << 20, 64 << 10, 4 << 10] {
            while fallocate(&file, FallocateFlags::empty(), end, bytes).is_ok() {
                end += bytes;
            }
        }
        // What the file system holds back for this file it gives up when that is closed.
        file.sync_all()?;
        if end == before {
            return Ok(());
        }
    }
}

/// Gives them back. A removal alone may do so only after a while.
fn empty(path: &Path) -> std::io::Result<()> {
    File::create(path)?.sync_all()?;
    std::fs::remove_file(path)
}

/// An error says that the disk is full, also where it says that an earlier one did, or that a
/// store was lost: XFS had room again for the write that looks for the cause.
fn says_so(error: &Error) -> bool {
    let what = error.to_string();
    error.is_disk_full() || ["No space left", "storage full", "the disk was full"].iter().any(|it| what.contains(it))
}

/// What one database must hold.
#[derive(Clone, Debug)]
struct Known {
    name: &'static str,
    path: PathBuf,
    mode: WalMode,
    seed: u64,
    /// Puts up to this number have the values of the original.
    shared: u64,
    /// So many puts were acknowledged; each has its number as its key.
    acknowledged: u64,
}

impl Known {
    fn value(&self, number: u64) -> Vec<u8> {
        Random::derived(self.seed, &[u64::from(number > self.shared), number]).bytes(VALUE_BYTES)
    }

    fn failed(&self, call: &str, error: &Error) -> String {
        format!("{}: {call} failed after {} puts: {error} ({error:?})", self.name, self.acknowledged)
    }
}

/// One of the two databases, open.
struct Side {
    known: Known,
    db: Db,
    keyspace: Keyspace,
}

impl Side {
    fn open(known: Known) -> Checked<Side> {
        let options = Options::default()
            .wal_mode(known.mode)
            .write_buffer_bytes(1 << 20)
            .wal_segment_bytes(1 << 20)
            .background_threads(1);
        let db = Db::open(&known.path, options).map_err(|error| known.failed("open", &error))?;
        let keyspace = db.keyspace(KEYSPACE, Default::default()).map_err(|error| known.failed("keyspace", &error))?;
        Ok(Side { known, db, keyspace })
    }

    /// The same in a handle of its own.
    fn reopen(self) -> Checked<Side> {
        let Side { known, db, keyspace } = self;
        drop((keyspace, db));
        let side = Side::open(known)?;
        side.check().map_err(|what| format!("opened again: {what}"))?;
        Ok(side)
    }

    /// The next put; after a failure the same one again.
    fn put(&mut self) -> esker::Result<()> {
        let number = self.known.acknowledged + 1;
        let options = WriteOptions::new().sync(number.is_multiple_of(PUTS_PER_SYNC));
        self.keyspace.put_with(number.to_be_bytes(), self.known.value(number), &options)?;
        self.known.acknowledged = number;
        Ok(())
    }

    /// Puts that must succeed.
    fn put_all(&mut self, count: u64) -> Checked<()> {
        (0..count).try_for_each(|_| self.put().map_err(|error| self.known.failed("a put", &error)))
    }

    /// Tables, a log with more than those hold, and nothing that is still under way.
    fn begin(&mut self) -> Checked<()> {
        self.put_all(PUTS_BEFORE / 2)?;
        self.db.flush().map_err(|error| self.known.failed("a flush", &error))?;
        self.put_all(PUTS_BEFORE / 2)?;
        self.db.wait_idle().map_err(|error| self.known.failed("the rest of the work", &error))
    }

    /// How many puts succeed on the full disk before one is refused with the reason.
    fn put_until_refused(&mut self) -> Checked<u64> {
        for count in 0..MOST_PUTS {
            match self.put() {
                Ok(()) => {}
                Err(error) if says_so(&error) => return Ok(count),
                Err(error) => return Err(self.known.failed("a put to a full disk", &error)),
            }
        }
        Err(format!("{}: no put was refused: the disk was not full", self.known.name))
    }

    /// "The handle takes no more writes" if the log or the manifest met the full disk (C5); else
    /// they go on if there is room by chance.
    fn put_to_a_full_disk(&mut self) -> Checked<()> {
        for _ in 0..PUTS_AFTER {
            let was_writable = self.db.health().writable;
            match self.put() {
                Ok(()) if was_writable => {}
                Err(error) if says_so(&error) => {}
                Ok(()) => return Err(format!("{}: a read-only handle took a put", self.known.name)),
                Err(error) => return Err(self.known.failed("a later put to a full disk", &error)),
            }
        }
        Ok(())
    }

    /// Everything acknowledged is there; the put that was refused last may be.
    fn check(&self) -> Checked<()> {
        let Known { name, acknowledged, .. } = self.known;
        for number in 1..=acknowledged + 1 {
            let found = self.keyspace.get(number.to_be_bytes()).map_err(|error| self.known.failed("a get", &error))?;
            let is_right = match &found {
                Some(value) => value[..] == self.known.value(number)[..],
                None => number > acknowledged,
            };
            if !is_right {
                let what = if found.is_some() { "has another value" } else { "is not there" };
                return Err(format!("{name}: put {number} of {acknowledged} {what}"));
            }
        }
        let count = self.keyspace.iter().try_fold(0, |count, entry| entry.map(|_| count + 1));
        match count.map_err(|error| self.known.failed("a scan", &error))? {
            found if found == acknowledged || found == acknowledged + 1 => Ok(()),
            found => Err(format!("{name}: {found} keys are there after {acknowledged} puts")),
        }
    }

    /// There is room.
    fn go_on(mut self) -> Checked<()> {
        self.put_all(PUTS_AFTER)?;
        self.db.flush().map_err(|error| self.known.failed("a flush with room again", &error))?;
        let side = self.reopen()?;
        side.db.verify().map(drop).map_err(|error| side.known.failed("verification", &error))
    }
}
