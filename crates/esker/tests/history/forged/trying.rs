//! Everything that can be asked of a database, in a process that may take so much memory and no
//! more.
//!
//! The limit is on addresses: what the process has before, the files twice (they are mapped, and
//! repaired into new ones), one block or value of the largest size that the files can make
//! ([`Files`] are small, and LZ4 makes at most 255 bytes of one; zstd makes 32,768, and what is
//! forged with it needs no more than the rest), and what a small database takes in any case. An
//! allocation beyond it ends the process. Work is counted: bytes read, and steps of scans. The
//! limit on processor time only turns an endless loop into a failure.

use super::writing::{Files, KEYSPACE, sound_database, value_of};
use esker::env::Env;
use esker::env::fault::{Class, FaultEnv};
use esker::env::os::OsEnv;
use esker::{
    ChangeOperation, ChangeRetention, Compression, Db, Error, Follower, Keyspace, KeyspaceOptions, Options, ReadMode,
    Result, VerifyEvent,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Where the child process finds its directory, and how long the files were.
const CHILD: &str = "ESKER_HISTORY_FORGED";
/// What a small database takes: memtables, log segments, a block cache, one buffer for each.
const FOOTPRINT_BYTES: u64 = 192 << 20;
/// The files are read by each of the attempts, checked, copied and merged.
const MOST_READS: u64 = 300;
const PROCESSOR_SECONDS: u64 = 300;

/// What became of each attempt: `ok`, or the kind of the error and its text.
pub type Outcomes = BTreeMap<String, String>;

/// A small database without threads.
pub fn options(env: Arc<dyn Env>) -> Options {
    Options::default()
        .env(env)
        .background_threads(0)
        .write_buffer_bytes(1 << 20)
        .block_cache_bytes(4 << 20)
        .wal_segment_bytes(64 << 10)
        .compression(Compression::None)
}

/// The directories of a database, each with the same files: what one attempt makes of them is not
/// what the next one finds.
pub struct Directories<'t> {
    /// For those that write nothing.
    pub read: &'t Path,
    /// That of [`sound_database`], until `replace` puts the files into its place.
    pub followed: &'t Path,
    pub replace: &'t dyn Fn(),
    pub opened: &'t Path,
    pub repaired: &'t Path,
}

/// What is asked, and how the answers are judged.
pub struct Trial<'t> {
    pub options: Options,
    /// Where copies go.
    pub root: &'t Path,
    /// Steps of scans that are left.
    pub most: u64,
    /// Values must be those that were written under their keys: what is a lie is not a value
    /// itself.
    pub knows_values: bool,
}

/// Tries all of it on a database of these files, in a child process. Panics unless each attempt
/// ends as it may, and nothing is written outside of the database.
pub fn outcomes(name: &str, files: &Files) -> Outcomes {
    let root = std::env::temp_dir().join(format!("esker-forged-{name}-{}", std::process::id()));
    fs::remove_dir_all(&root).ok();
    for directory in ["read", "opened", "repaired"] {
        write_files(&root.join(directory), files);
    }
    write_files(&root.join("followed"), &sound_database());
    fs::write(root.join("neighbour"), "precious").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["forged::trying::in_a_child_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, &root)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{name}: {}\n{text}", child.status);
    let mut left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    left.retain(|entry| entry != "copy" && entry != "copy-of-repaired");
    assert_eq!(left, ["followed", "neighbour", "opened", "read", "repaired"], "{name}: something was written outside");
    assert_eq!(fs::read(root.join("neighbour")).unwrap(), b"precious", "{name}");
    assert!(read_files(&root.join("read")) == *files, "{name}: a reader wrote something");
    assert!(read_files(&root.join("followed")) == laid_over(files), "{name}: a follower wrote something");
    fs::remove_dir_all(&root).unwrap();
    let outcome =
        |line: &str| line.split_once("outcome ")?.1.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(outcome).collect()
}

fn write_files(directory: &Path, files: &Files) {
    fs::create_dir_all(directory).unwrap();
    for (file, bytes) in files {
        fs::write(directory.join(file), bytes).unwrap();
    }
}

fn read_files(directory: &Path) -> Files {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// What a directory has after `files` were put into the place of those of [`sound_database`].
pub fn laid_over(files: &Files) -> Files {
    let mut all = sound_database();
    all.extend(files.clone());
    all
}

#[test]
fn in_a_child_process() {
    let Some(root) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let [read, followed, opened, repaired] = ["read", "followed", "opened", "repaired"].map(|name| root.join(name));
    let bytes: u64 = fs::read_dir(&read).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    limit_the_process(bytes);
    let env = FaultEnv::new(Arc::new(OsEnv::new()));
    let say = |what: &str, result: Result<()>| match result {
        Ok(()) => println!("outcome {what}: ok"),
        Err(error) => println!("outcome {what}: {}", kind(&error)),
    };
    // Not mapped: every read is a call that is counted.
    let options = options(Arc::new(env.clone())).read_mode(ReadMode::Pread);
    let trial = Trial { options, root: &root, most: bytes * 256 + 1000, knows_values: true };
    // Into the files that the follower has open.
    let replace = || {
        for entry in fs::read_dir(&read).unwrap().map(|entry| entry.unwrap()) {
            fs::write(followed.join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
        }
    };
    let directories =
        Directories { read: &read, followed: &followed, replace: &replace, opened: &opened, repaired: &repaired };
    trial.run(&directories, &say);
    let reads = env.calls(Class::Read);
    assert!(reads <= MOST_READS * (10 + bytes / 4096), "{reads} reads of {bytes} bytes");
}

/// What kind of error it is, and its text: only what a caller can act on. Names file and place
/// where there is one.
pub fn kind(error: &Error) -> String {
    let kind = match error {
        Error::Corruption { .. } => "Corruption",
        Error::Unsupported { .. } => "Unsupported",
        Error::UnsupportedCompression { .. } => "UnsupportedCompression",
        Error::InvalidArgument { .. } => "InvalidArgument",
        Error::MissingComparator { .. } => "MissingComparator",
        Error::MissingMergeOperator { .. } => "MissingMergeOperator",
        Error::NotFound { .. } => "NotFound",
        // Of a reader of changes, by what the manifest lists.
        Error::Gone { .. } => "Gone",
        Error::KeyspaceDropped { .. } => "KeyspaceDropped",
        other => panic!("a forged file is no reason for {other:?}"),
    };
    format!("{kind}: {error}")
}

fn limit_the_process(bytes: u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: u64 = field.trim().trim_end_matches(" kB").parse().unwrap();
    let addresses = (kib << 10) + FOOTPRINT_BYTES + bytes * (2 + 255);
    setrlimit(Resource::As, Rlimit { current: Some(addresses), ..getrlimit(Resource::As) }).unwrap();
    setrlimit(Resource::Cpu, Rlimit { current: Some(PROCESSOR_SECONDS), ..getrlimit(Resource::Cpu) }).unwrap();
}

fn keyspaces(db: &Db) -> Vec<Keyspace> {
    let open = |name: &String| db.keyspace(name, KeyspaceOptions::default()).ok();
    db.keyspaces().iter().take(50).filter_map(open).collect()
}

impl Trial<'_> {
    /// Reads, follows and verifies the database in one directory, follows one that becomes it, uses
    /// that in a third, and repairs and uses a fourth.
    pub fn run(mut self, directories: &Directories<'_>, say: &dyn Fn(&str, Result<()>)) {
        let Directories { read, opened, repaired, .. } = *directories;
        let found = Db::open_read_only(read, self.options.clone());
        let opens = found.is_ok();
        if let Ok(db) = &found {
            say("changes", self.read_changes(db));
        }
        let answers = found.and_then(|db| self.read_all(&db));
        let is_whole = matches!(answers, Ok(()) | Err(Error::MissingMergeOperator { .. }));
        say("read", answers);
        self.follow(directories, opens, say);
        say("verify directory", self.verify(read, is_whole));
        let keeping = self.options.clone().keep_changes(ChangeRetention::AsBefore);
        let found = Db::open(opened, keeping);
        say("open", found.and_then(|db| self.use_all(&db, "copy", say)));
        say("repair", Db::repair(repaired, self.options.clone()).map(drop));
        let found = Db::open(repaired, self.options.clone());
        say("after repair", found.and_then(|db| self.use_all(&db, "copy-of-repaired", &|_, _| ())));
    }

    /// A follower opens what a reader does (`opens`), and finds no more where nobody writes. One
    /// that was there before these files came takes over what it can.
    fn follow(&mut self, directories: &Directories<'_>, opens: bool, say: &dyn Fn(&str, Result<()>)) {
        let Directories { read, followed, replace, .. } = *directories;
        let follower = Db::open_follower(read, self.options.clone());
        assert_eq!(follower.is_ok(), opens, "unlike a reader, a follower has {:?}", follower.as_ref().err());
        let follow = |follower: Follower| {
            let progress = follower.catch_up()?;
            assert_eq!(progress.batches, 0, "batches that no open finds: {progress:?}");
            self.read_behind(&follower)
        };
        say("follow", follower.and_then(follow));
        let follower = Db::open_follower(followed, self.options.clone()).unwrap();
        replace();
        // What no reader opens, a follower may have taken in part.
        let knows_values = self.knows_values;
        self.knows_values &= opens;
        let caught_up = match follower.catch_up() {
            // It takes what makes no sense for files that are being changed.
            Err(Error::Stalled { .. }) if !self.knows_values => Ok(()),
            other => other.map(drop),
        };
        // It can be read on.
        let read = self.read_behind(&follower);
        say("catch up", caught_up.and(read));
        self.knows_values = knows_values;
    }

    /// Reads what a follower has, and how far it is behind.
    fn read_behind(&mut self, follower: &Follower) -> Result<()> {
        follower.lag()?;
        self.read_all(follower.db())?;
        self.read_changes(follower.db())
    }

    /// Verifies the directory. What that calls healthy can be read as a whole.
    fn verify(&self, directory: &Path, is_whole: bool) -> Result<()> {
        let mut damage = Vec::new();
        let verified = Db::verify_directory(directory, self.options.clone(), &mut |event| {
            if let VerifyEvent::Damage(error) = event {
                damage.push(kind(error));
            }
        });
        assert!(verified.is_err() || damage.is_empty(), "what is damaged was verified: {damage:#?}");
        assert!(verified.is_err() || is_whole, "what cannot be read was verified");
        verified.map(drop)
    }

    /// Reads all changes that are kept, and again those that are durable, up to the first that
    /// cannot be read.
    fn read_changes(&mut self, db: &Db) -> Result<()> {
        for only_durable in [false, true] {
            let changes = db.changes(0)?;
            let mut changes = if only_durable { changes.only_durable() } else { changes };
            let mut last = 0;
            for batch in &mut changes {
                for change in batch?.changes {
                    self.most = self.most.checked_sub(1).expect("there are more changes than there can be writes");
                    assert!(change.sequence > last, "change {} follows {last}", change.sequence);
                    last = change.sequence;
                    if let ChangeOperation::Put { key, value, .. } = &change.operation {
                        self.check(key, value);
                    }
                }
            }
            for id in [KEYSPACE, KEYSPACE + 1, u64::MAX] {
                changes.keyspace_settings(id, last)?;
            }
        }
        Ok(())
    }

    fn check(&self, key: &[u8], value: &[u8]) {
        assert!(!self.knows_values || value == value_of(key), "a wrong value of {key:?}: {value:?}");
    }

    /// Gets of keys that may be there, and scans both ways. What is found must be what was written
    /// under that key.
    fn read_all(&mut self, db: &Db) -> Result<()> {
        let mut results = Vec::new();
        for keyspace in keyspaces(db) {
            for key in ["", "a", "b", "bb", "c", "d", "e", "f", "large", "m", "x", "z", "zz"] {
                let found = keyspace.get(key);
                results.push(found.map(|found| found.iter().for_each(|value| self.check(key.as_bytes(), value))));
            }
            for backwards in [false, true] {
                let mut scan = keyspace.iter();
                let mut failures = 0;
                while let Some(item) = if backwards { scan.next_back() } else { scan.next() } {
                    self.most = self.most.checked_sub(1).expect("a scan has more steps than there can be entries");
                    match item {
                        Ok((key, value)) => self.check(&key, &value),
                        // Scans go on behind a value that cannot be read; behind a broken block
                        // they end.
                        Err(error) => {
                            results.push(Err(error));
                            failures += 1;
                            assert!(failures < 1000, "the same error again and again");
                        }
                    }
                }
            }
        }
        results.into_iter().collect()
    }

    fn use_all(&mut self, db: &Db, copy: &str, say: &dyn Fn(&str, Result<()>)) -> Result<()> {
        say("get and scan", self.read_all(db));
        say("verify", db.verify().map(drop));
        let copy = self.root.join(copy);
        let copied = db.checkpoint(&copy);
        if copied.is_ok() {
            // What it makes can be opened and read, as far as the original can.
            say("copy", Db::open(&copy, self.options.clone()).and_then(|db| self.read_all(&db)));
        }
        say("checkpoint", copied);
        let writes = keyspaces(db).into_iter().map(|keyspace| keyspace.put("b", value_of(b"b")));
        say("write", writes.fold(Ok(()), Result::and));
        say("compact", db.compact());
        say("read again", self.read_all(db));
        say("changes of the writer", self.read_changes(db));
        Ok(())
    }
}
