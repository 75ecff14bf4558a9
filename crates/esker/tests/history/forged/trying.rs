//! Everything that can be asked of a database, in a process that may take so much memory and no
//! more.
//!
//! The limit is on addresses: what the process has before, the files twice (they are mapped, and
//! repaired into new ones), one block or value of the largest size that the files can make
//! ([`Files`] are small, and LZ4 makes at most 255 bytes of one), and what a small database takes
//! in any case. An allocation beyond it ends the process. Work is counted: bytes read, and steps of
//! scans. The limit on processor time only turns an endless loop into a failure.

use super::writing::{Files, value_of};
use esker::env::Env;
use esker::env::fault::{Class, FaultEnv};
use esker::env::os::OsEnv;
use esker::{Compression, Db, Error, Keyspace, KeyspaceOptions, Options, ReadMode, Result};
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
const MOST_READS: u64 = 200;
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
        fs::create_dir_all(root.join(directory)).unwrap();
        for (file, bytes) in files {
            fs::write(root.join(directory).join(file), bytes).unwrap();
        }
    }
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
    assert_eq!(left, ["neighbour", "opened", "read", "repaired"], "{name}: something was written outside");
    assert_eq!(fs::read(root.join("neighbour")).unwrap(), b"precious", "{name}");
    for (file, bytes) in files {
        assert!(fs::read(root.join("read").join(file)).unwrap() == *bytes, "{name}: a reader wrote {file}");
    }
    fs::remove_dir_all(&root).unwrap();
    let outcome =
        |line: &str| line.split_once("outcome ")?.1.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(outcome).collect()
}

#[test]
fn in_a_child_process() {
    let Some(root) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let bytes: u64 =
        fs::read_dir(root.join("read")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    limit_the_process(bytes);
    let env = FaultEnv::new(Arc::new(OsEnv::new()));
    let say = |what: &str, result: Result<()>| match result {
        Ok(()) => println!("outcome {what}: ok"),
        Err(error) => println!("outcome {what}: {}", kind(&error)),
    };
    // Not mapped: every read is a call that is counted.
    let options = options(Arc::new(env.clone())).read_mode(ReadMode::Pread);
    let trial = Trial { options, root: &root, most: bytes * 256 + 1000, knows_values: true };
    trial.run(&root.join("read"), &root.join("opened"), &root.join("repaired"), &say);
    let reads = env.calls(Class::Read);
    assert!(reads <= MOST_READS * (10 + bytes / 4096), "{reads} reads of {bytes} bytes");
}

/// What kind of error it is, and its text: only what a caller can act on. Names file and place
/// where there is one.
pub fn kind(error: &Error) -> String {
    let kind = match error {
        Error::Corruption { .. } => "Corruption",
        Error::Unsupported { .. } => "Unsupported",
        Error::InvalidArgument { .. } => "InvalidArgument",
        Error::MissingComparator { .. } => "MissingComparator",
        Error::MissingMergeOperator { .. } => "MissingMergeOperator",
        Error::NotFound { .. } => "NotFound",
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
    /// Reads the database in one directory, uses that in another, and repairs and uses a third.
    pub fn run(mut self, read: &Path, opened: &Path, repaired: &Path, say: &dyn Fn(&str, Result<()>)) {
        let found = Db::open_read_only(read, self.options.clone());
        say("read", found.and_then(|db| self.read_all(&db)));
        let found = Db::open(opened, self.options.clone());
        say("open", found.and_then(|db| self.use_all(&db, "copy", say)));
        say("repair", Db::repair(repaired, self.options.clone()).map(drop));
        let found = Db::open(repaired, self.options.clone());
        say("after repair", found.and_then(|db| self.use_all(&db, "copy-of-repaired", &|_, _| ())));
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
        Ok(())
    }
}
