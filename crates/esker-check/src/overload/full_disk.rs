//! A disk that fills and is freed again: what is written until then stays, what cannot be written
//! is refused with the reason, and writes go on.
//!
//! The disk is a small file system in memory, in a mount namespace of its own. In every other round
//! the database fills it itself; in the others somebody else does. Something of somebody else's is
//! removed, and writes must be accepted again: by the same handle, unless the manifest met the full
//! disk, which makes it read-only and says so.

use super::acknowledged::Writer;
use super::share::{Share, eventually, failed};
use crate::Checked;
use crate::random::Random;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, WalMode};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const DISK_MIB: u32 = 24;
/// What somebody else has there in the rounds in which the database fills the rest: once it is
/// gone, a merge of everything fits.
const BALLAST_BYTES: usize = 14 << 20;
const VALUE_BYTES: usize = 500;
/// How long a full disk is written to after its first error.
const FULL: Duration = Duration::from_millis(150);
/// Writes that must succeed once there is room.
const WRITES_AFTER: u64 = 2000;

/// The command that starts a program where it may mount, if there is one here: as root, or as the
/// root of a user namespace.
pub(super) fn namespace() -> Option<Command> {
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let unshare = |way: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(way).args(["--propagation", "private", "--"]);
        command
    };
    let works = |way: &&&[&str]| {
        let output = unshare(way).args(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    ways.iter().find(works).map(|way| unshare(way))
}

fn mount(directory: &Path) -> Checked<()> {
    let size = format!("size={DISK_MIB}m");
    let output = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("a small file system cannot be mounted: {other:?}")),
    }
}

/// A file of somebody else's.
struct Ballast(PathBuf);

impl Ballast {
    /// Grows the file by `bytes`, or by as many as the disk has room for.
    fn grow(&self, bytes: usize) -> Checked<()> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let mut file = File::options().append(true).create(true).open(&self.0).map_err(failed)?;
        for _ in 0..bytes.div_ceil(4096) {
            match file.write_all(&[1; 4096]) {
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                outcome => outcome.map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Gives back so many bytes, if it has them.
    fn shrink(&self, bytes: u64) -> Checked<()> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let file = File::options().write(true).open(&self.0).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        file.set_len(length.saturating_sub(bytes)).map_err(failed)
    }

    fn remove(&self) -> Checked<()> {
        std::fs::remove_file(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))
    }
}

/// An error says that the disk is full, also where it says that an earlier one did.
fn says_so(error: &Error) -> bool {
    match error {
        Error::ReadOnly { why } => why.contains("No space left") || why.contains("storage full"),
        other => other.is_disk_full(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    rounds: u64,
    refused: u64,
    read_only: u64,
    opened_full: u64,
    acknowledged: u64,
}

/// A round: a database, and its writers of which only one writes.
struct Round<'a> {
    directory: &'a Path,
    options: Options,
    writer: Writer,
    totals: &'a mut Totals,
}

impl Round<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("db")
    }

    fn open(&self) -> esker::Result<(Db, Keyspace)> {
        let db = Db::open(self.path(), self.options.clone())?;
        let keyspace = db.keyspace("k", KeyspaceOptions::default())?;
        Ok((db, keyspace))
    }

    /// A write, and now and then a flush. It may fail only because the disk is full.
    fn try_write(&mut self, db: &Db, keyspace: &Keyspace) -> Checked<bool> {
        let outcome = self
            .writer
            .step(keyspace)
            .and_then(|()| if self.writer.acknowledged.is_multiple_of(3000) { db.flush() } else { Ok(()) });
        match outcome {
            Ok(()) => Ok(true),
            Err(error) if says_so(&error) => {
                self.totals.refused += 1;
                Ok(false)
            }
            Err(error) => Err(format!("not an error of a full disk: {error} ({error:?})")),
        }
    }

    /// Writes until the disk is full, and then for a while.
    fn fill(&mut self, db: &Db, keyspace: &Keyspace) -> Checked<()> {
        let mut full_since = None;
        while full_since.is_none_or(|since: Instant| since.elapsed() < FULL) {
            if !self.try_write(db, keyspace)? {
                full_since.get_or_insert_with(Instant::now);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn run(&mut self, random: &mut Random, ballast: &Ballast, by_others: bool) -> Checked<()> {
        let (mut db, mut keyspace) = self.open().map_err(failed("open"))?;
        if by_others {
            for _ in 0..random.between(1, 6000) {
                self.writer.step(&keyspace).map_err(failed("a write"))?;
            }
            ballast.grow(usize::MAX >> 1)?;
        } else {
            ballast.grow(BALLAST_BYTES)?;
        }
        self.fill(&db, &keyspace)?;
        self.writer.check_all(&keyspace).map_err(|what| format!("while the disk is full: {what}"))?;
        if random.percent(50) {
            // The process ends while the disk is full.
            drop((keyspace, db));
            let reading = Db::open_read_only(self.path(), self.options.clone()).map_err(failed("a read-only open"))?;
            let there = reading.existing_keyspace("k").map_err(failed("the keyspace"))?;
            self.writer.check_all(&there).map_err(|what| format!("opened read-only on the full disk: {what}"))?;
            drop((there, reading));
            // From nothing to what another segment of the log and some tables take.
            ballast.shrink(random.below(6 << 20) as u64)?;
            match self.open() {
                Ok((db, keyspace)) => {
                    self.totals.opened_full += 1;
                    self.writer.check_all(&keyspace).map_err(|what| format!("opened on the full disk: {what}"))?;
                    drop((keyspace, db));
                }
                Err(error) if says_so(&error) => {}
                Err(error) => return Err(format!("an open on a full disk: {error} ({error:?})")),
            }
            ballast.remove()?;
            (db, keyspace) = self.open().map_err(failed("open with room again"))?;
        } else {
            ballast.remove()?;
        }
        if !db.health().writable {
            self.totals.read_only += 1;
            drop((keyspace, db));
            (db, keyspace) = self.open().map_err(failed("open with room again"))?;
        }
        self.go_on(&db, &keyspace)?;
        drop((keyspace, db));
        let (db, keyspace) = self.open().map_err(failed("open"))?;
        self.writer.check_all(&keyspace).map_err(|what| format!("in the end: {what}"))?;
        db.verify().map_err(failed("verification"))?;
        Ok(())
    }

    /// There is room: what background work notices after a while.
    fn go_on(&mut self, db: &Db, keyspace: &Keyspace) -> Checked<()> {
        let target = self.writer.acknowledged + WRITES_AFTER;
        eventually(|| {
            while self.writer.acknowledged < target {
                self.writer.step(keyspace).map_err(|error| format!("no write though there is room: {error}"))?;
            }
            db.flush().map_err(|error| format!("no flush though there is room: {error}"))
        })?;
        eventually(|| match db.health() {
            health if health.problem.is_none() && health.writable => Ok(()),
            health => Err(format!("there is room, but {health:?}")),
        })?;
        self.writer.check_all(keyspace).map_err(|what| format!("with room again: {what}"))?;
        Ok(())
    }
}

pub(super) fn run(share: &Share) -> Checked<String> {
    mount(&share.directory)?;
    let ballast = Ballast(share.directory.join("ballast"));
    let started = Instant::now();
    let mut totals = Totals::default();
    while totals.rounds < 2 || started.elapsed() < share.time {
        let mut random = Random::derived(share.seed, &[totals.rounds]);
        let by_others = totals.rounds % 2 == 0;
        // Room for what is there, twice, and the log; or without end.
        let slots = if by_others { 6000 } else { u64::MAX };
        let options = Options::default()
            .write_buffer_bytes(256 << random.below(3) << 10)
            .target_file_bytes(512 << 10)
            .wal_segment_bytes(1 << 20)
            .wal_mode(if random.percent(70) { WalMode::Mapped } else { WalMode::Plain })
            .background_threads(random.below(2));
        let writer = Writer::new(share.seed, totals.rounds, slots, VALUE_BYTES);
        let mut round = Round { directory: &share.directory, options, writer, totals: &mut totals };
        let outcome = round.run(&mut random, &ballast, by_others);
        let (path, written) = (round.path(), round.writer.acknowledged);
        outcome.map_err(|what| format!("round {}, after {written} writes: {what}", totals.rounds))?;
        totals.acknowledged += written;
        totals.rounds += 1;
        std::fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if totals.refused == 0 {
        return Err("no write was ever refused: the disk was not full".to_string());
    }
    let Totals { rounds, refused, read_only, opened_full, acknowledged } = totals;
    Ok(format!(
        "the disk full {rounds} times, {acknowledged} writes acknowledged, all there; {refused} refused, saying so; {read_only} handles \
         read-only, {opened_full} opens while it was full or nearly"
    ))
}
