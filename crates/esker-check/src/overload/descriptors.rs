//! Descriptors run out: calls succeed or say so, nothing acknowledged is lost, and with more of
//! them it goes on.

use super::acknowledged::Writer;
use super::machine::limit;
use super::share::{Share, eventually, failed};
use crate::Checked;
use crate::random::Random;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, WalMode};
use rustix::process::Resource;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Descriptors of the process while there are few. Every table is one.
const FEW: u64 = 48;
/// The most that are left when nearly all are taken by others.
const MOST_LEFT: usize = 24;
const VALUE_BYTES: usize = 1000;

fn options(random: &mut Random, many_tables: bool) -> Options {
    Options::default()
        .write_buffer_bytes(64 << 10)
        .target_file_bytes(16 << 10)
        .wal_segment_bytes(1 << 20)
        .min_blob_size(if !many_tables && random.percent(30) { 200 } else { 32 << 10 })
        .wal_mode(if random.percent(70) { WalMode::Mapped } else { WalMode::Plain })
        .background_threads(random.below(2))
}

/// An error says that there are no descriptors, also where it says that an earlier one did.
fn says_so(error: &Error) -> bool {
    const WORDS: &str = "Too many open files";
    match error {
        Error::Io { source, .. } => source.to_string().contains(WORDS),
        Error::ReadOnly { why } => why.contains(WORDS),
        _ => false,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    rounds: u64,
    refused: u64,
    read_only: u64,
    acknowledged: u64,
    tables: u64,
}

impl Totals {
    /// Passes on a success, and counts a failure that a lack of descriptors explains. Any other
    /// failure is a finding.
    fn judge<T>(&mut self, call: &str, outcome: esker::Result<T>) -> Checked<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if says_so(&error) => {
                self.refused += 1;
                Ok(None)
            }
            Err(error) => Err(format!("{call}, without descriptors: {error} ({error:?})")),
        }
    }
}

/// Files that take all descriptors but a few, until dropped.
struct Hog {
    _files: Vec<File>,
}

impl Hog {
    fn leaving(few: usize) -> Checked<Hog> {
        let mut files = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            files.push(file);
        }
        if files.len() < few {
            return Err(format!("{} descriptors were left, not {few}", files.len()));
        }
        files.truncate(files.len() - few);
        Ok(Hog { _files: files })
    }
}

struct Round<'a> {
    path: PathBuf,
    options: Options,
    writer: Writer,
    totals: &'a mut Totals,
}

type Open = (Db, Keyspace);

impl Round<'_> {
    fn open(&self) -> esker::Result<Open> {
        let db = Db::open(&self.path, self.options.clone())?;
        let keyspace = db.keyspace("k", KeyspaceOptions::default())?;
        Ok((db, keyspace))
    }

    /// Writes until so many failed, or so many were made.
    fn write(&mut self, open: &Open, writes: u64) -> Checked<()> {
        let mut failures = 0;
        for _ in 0..writes {
            let outcome = self.writer.step(&open.1);
            failures += u64::from(self.totals.judge("a write", outcome)?.is_none());
            if failures == 20 {
                break;
            }
        }
        Ok(())
    }

    /// Reads some: each is right or an error that says so.
    fn read(&mut self, open: &Open, random: &mut Random) -> Checked<()> {
        let present = self.writer.present();
        for _ in 0..50.min(self.writer.acknowledged) {
            let number = random.between(*present.start() as usize, *present.end() as usize) as u64;
            let found = open.1.get(self.writer.key(number));
            if let Some(found) = self.totals.judge("a get", found)? {
                self.writer.check_get(number, found.as_deref())?;
            }
        }
        let pairs: esker::Result<Vec<_>> = open.1.prefix(self.writer.prefix()).collect();
        if let Some(pairs) = self.totals.judge("a scan", pairs)? {
            self.writer.check(pairs.into_iter().map(Ok))?;
        }
        Ok(())
    }

    /// Enough descriptors: goes on, by the same handle if it is not read-only, and everything is
    /// there.
    fn go_on(&mut self, open: Option<Open>) -> Checked<Open> {
        let open = match open {
            Some(open) if open.0.health().writable => open,
            other => {
                self.totals.read_only += u64::from(other.is_some());
                drop(other);
                self.open().map_err(failed("open with descriptors"))?
            }
        };
        let target = self.writer.acknowledged + 500;
        eventually(|| {
            while self.writer.acknowledged < target {
                self.writer.step(&open.1).map_err(|error| format!("no write with descriptors: {error}"))?;
            }
            open.0.flush().map_err(|error| format!("no flush with descriptors: {error}"))?;
            open.0.compact().map_err(|error| format!("no merge with descriptors: {error}"))
        })?;
        self.writer.check_all(&open.1).map_err(|what| format!("with descriptors again: {what}"))?;
        Ok(open)
    }

    fn check_reopened(&mut self) -> Checked<()> {
        let (db, keyspace) = self.open().map_err(failed("open"))?;
        self.writer.check_all(&keyspace).map_err(|what| format!("after another open: {what}"))?;
        db.verify().map_err(failed("verification"))?;
        Ok(())
    }

    /// A limit below the number of tables.
    fn few(&mut self, random: &mut Random) -> Checked<()> {
        limit(Resource::Nofile, Some(FEW))?;
        let open = self.open().map_err(failed("open of an empty database"))?;
        self.write(&open, 6000)?;
        self.read(&open, random)?;
        limit(Resource::Nofile, None)?;
        let open = self.go_on(Some(open))?;
        let target = self.writer.acknowledged + 6000;
        while self.writer.acknowledged < target {
            self.writer.step(&open.1).map_err(failed("a write"))?;
        }
        open.0.flush().map_err(failed("a flush"))?;
        open.0.wait_idle().map_err(failed("waiting"))?;
        self.totals.tables = self.totals.tables.max(open.0.stats().table_files);
        drop(open);
        limit(Resource::Nofile, Some(FEW))?;
        let opened = self.open();
        if let Some(open) = self.totals.judge("an open", opened)? {
            self.read(&open, random)?;
        }
        limit(Resource::Nofile, None)?;
        self.check_reopened()
    }

    /// Nearly all taken by others, at a moment of an open database and before an open.
    fn taken(&mut self, random: &mut Random, left: usize) -> Checked<()> {
        limit(Resource::Nofile, Some(1024))?;
        let mut open = self.open().map_err(failed("open"))?;
        self.write(&open, random.between(1, 2000) as u64)?;
        let hog = Hog::leaving(left)?;
        for step in 0..random.between(1, 12) {
            let call = random.below(8);
            let outcome = match call {
                0..=2 => {
                    self.write(&open, random.between(1, 800) as u64)?;
                    continue;
                }
                3 => {
                    self.read(&open, random)?;
                    continue;
                }
                4 => open.0.flush(),
                5 => open.0.compact(),
                6 => open.0.checkpoint(self.path.with_file_name(format!("copy-{}-{step}", self.totals.rounds))),
                _ => open.0.sync(),
            };
            self.totals.judge(["a flush", "a merge", "a checkpoint", "a sync"][call - 4], outcome)?;
        }
        if random.percent(50) {
            drop(hog);
            open = self.go_on(Some(open))?;
            drop(open);
        } else {
            drop(open);
            let opened = self.open();
            let open = self.totals.judge("an open", opened)?;
            if let Some(open) = &open {
                self.read(open, random)?;
            }
            drop(hog);
            drop(self.go_on(open)?);
        }
        self.check_reopened()
    }
}

fn clear(directory: &Path) -> Checked<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::remove_dir_all(directory).and_then(|()| std::fs::create_dir(directory)).map_err(failed)
}

pub(super) fn run(share: &Share) -> Checked<String> {
    let started = Instant::now();
    let mut totals = Totals::default();
    while totals.rounds < 4 || started.elapsed() < share.time {
        let mut random = Random::derived(share.seed, &[totals.rounds]);
        let (number, options) = (totals.rounds, options(&mut random, totals.rounds % 4 == 0));
        let writer = Writer::new(share.seed, number, 8000, VALUE_BYTES);
        let mut round = Round { path: share.directory.join("db"), options, writer, totals: &mut totals };
        let left = random.below(MOST_LEFT + 1);
        let outcome = if number % 4 == 0 { round.few(&mut random) } else { round.taken(&mut random, left) };
        // What is to be said needs no descriptor, but what follows may.
        limit(Resource::Nofile, None)?;
        let written = round.writer.acknowledged;
        outcome.map_err(|what| {
            let kind = if number % 4 == 0 { format!("limit of {FEW}") } else { format!("{left} descriptors left") };
            format!("round {number}, {kind}, after {written} writes, {:?}: {what}", round.options)
        })?;
        totals.acknowledged += written;
        totals.rounds += 1;
        clear(&share.directory)?;
    }
    if totals.refused == 0 || totals.tables <= FEW {
        return Err(format!("there were descriptors enough: {totals:?}"));
    }
    let Totals { rounds, refused, read_only, acknowledged, tables } = totals;
    Ok(format!(
        "without descriptors {rounds} times, {acknowledged} writes acknowledged, all there; {refused} calls refused, saying so; {read_only} \
         handles read-only; up to {tables} tables"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Error, Totals};

    #[test]
    fn another_error_than_that_of_missing_descriptors_is_a_finding() {
        let mut totals = Totals::default();
        let io = |number| Error::io("open", "7.table", std::io::Error::from_raw_os_error(number));
        assert_eq!(totals.judge::<()>("a get", Err(io(24))), Ok(None));
        assert_eq!(totals.judge("a get", Ok(7)), Ok(Some(7)));
        assert!(totals.judge::<()>("a get", Err(io(2))).is_err());
        assert!(totals.judge::<()>("a get", Err(Error::corruption("7.table", 0, "cut short"))).is_err());
        assert_eq!(totals.refused, 1);
    }
}
