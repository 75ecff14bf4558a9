//! Which place in the engine each sync comes from: an environment in memory that writes down the
//! callers of every sync.
//!
//! A place is told by the stack at the moment of the call. That is slow, so it is done in one run
//! of a script only; a call is the same in every other run, under its number. The compiler may
//! leave out a function whose last act is the call, or name it after the one that it became a part
//! of: then the place is that one's.

use esker::Result;
use esker::env::fault::Class;
use esker::env::mem::MemEnv;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use std::backtrace::Backtrace;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A place in the engine that syncs, and what it does so for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// File and function, and whether it is contents or names that are synced: `wal/writer.rs:start
    /// contents`.
    pub at: String,
    /// File and function of the nearest caller in another file, of those that know what for. Of a
    /// sync of the whole log: for whom.
    pub by: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.at, self.by)
    }
}

/// A sync: the how manieth of its class, how many mutating calls came before it, and where it comes
/// from.
#[derive(Clone, Debug)]
pub struct Heard {
    /// `Sync` or `SyncDir`.
    pub class: Class,
    /// From 0 in each class.
    pub nth: u64,
    /// Mutating calls before.
    pub calls: u64,
    /// Where from.
    pub site: Site,
}

/// An environment in memory that writes down every sync. Clones share everything.
#[derive(Clone, Debug)]
pub struct SiteEnv {
    memory: MemEnv,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl SiteEnv {
    /// Around that environment.
    pub fn new(memory: MemEnv) -> SiteEnv {
        SiteEnv { memory, heard: Arc::default() }
    }

    /// What was heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, class: Class, what: &str) {
        let site = site(what, &Backtrace::force_capture().to_string());
        let calls = self.memory.mutations();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = heard.iter().filter(|other| other.class == class).count() as u64;
        heard.push(Heard { class, nth, calls, site });
    }
}

/// Files whose functions sync on behalf of others.
const PASSING: [&str; 5] = [
    "blob/store.rs",
    "blob/writer.rs",
    "db/maintenance/checked_copy.rs",
    "db/background/commit_version_edit.rs",
    "job/output.rs",
];

/// What syncs the whole log for others, each of which promises something else: the place is told by
/// its caller.
const LOG_SYNC: &str = "db/state/inner.rs:sync_log";

/// The files of the interface whose calls sync the log by themselves: what they do then.
const WRITING_NOTHING: [(&str, &str); 2] = [
    ("handle/batch.rs", "a batch that writes nothing"),
    ("handle/conditional.rs", "a conditional write that declines"),
];

/// The engine's functions in a stack, the innermost first, each with its file; without the
/// environment.
fn frames(stack: &str) -> impl Iterator<Item = (String, String)> {
    let lines: Vec<&str> = stack.lines().collect();
    let pairs: Vec<(String, String)> = lines.windows(2).filter_map(|pair| frame(pair[0], pair[1])).collect();
    pairs.into_iter()
}

fn frame(function: &str, place: &str) -> Option<(String, String)> {
    let (_, file) = place.trim().strip_prefix("at ")?.split_once("crates/esker/src/")?;
    let file = file.split(':').next()?;
    let (_, function) = function.trim().split_once(": ")?;
    // What an engine's function is generic for may be the engine's too, and tells more. What a
    // script hands over tells nothing.
    let function = if function.contains("esker_check::") { &without_generics(function) } else { function };
    let mut name = function.rsplit("::").find(|part| !part.starts_with('{')).unwrap_or_default();
    if name.ends_with('>') && !name.contains('<') {
        // The end of what a generic function is for.
        let path = function.split('<').next().unwrap_or_default();
        name = path.rsplit("::").find(|part| !part.starts_with('{')).unwrap_or_default();
    }
    let name = name.split('<').next().unwrap_or_default();
    // A closure that became a part of another function says no more than that; the frame outside is
    // the function's.
    let is_counted = !file.starts_with("env/") && !name.is_empty();
    // Nor does what measures a call.
    let is_counted = is_counted && name != "timed";
    is_counted.then(|| (file.to_string(), name.to_string()))
}

/// A path without what stands in angle brackets: the types that a generic function is for, and
/// those of an implementation.
fn without_generics(function: &str) -> String {
    let (mut depth, mut before, mut path) = (0u32, ' ', String::new());
    for character in function.chars() {
        match character {
            '<' => depth += 1,
            // Not of an arrow.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => path.push(character),
            _ => {}
        }
        before = character;
    }
    path
}

fn site(what: &str, stack: &str) -> Site {
    let (calls, engine): (Vec<_>, Vec<_>) = frames(stack).partition(|(file, _)| file.starts_with("handle/"));
    let mut engine = engine.into_iter();
    let (file, function) = engine.next().unwrap_or_default();
    let mut callers = engine.filter(|(other, _)| *other != file && !PASSING.contains(&other.as_str()));
    let mut by = caller(callers.next(), &calls);
    if by == LOG_SYNC {
        let outside = callers.find(|(other, _)| !LOG_SYNC.starts_with(other.as_str()));
        by = format!("sync_log for {}", caller(outside, &calls));
    }
    Site { at: format!("{file}:{function} {what}"), by }
}

/// A function of the engine, or where there is none, what is known of the call of the interface.
fn caller(engine: Option<(String, String)>, calls: &[(String, String)]) -> String {
    let Some((file, function)) = engine else {
        let known = calls.iter().find_map(|(file, _)| WRITING_NOTHING.iter().find(|(other, _)| other == file));
        return known.map_or("a call of the interface", |known| known.1).to_string();
    };
    format!("{file}:{function}")
}

impl Env for SiteEnv {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.memory.create_dir_all(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.memory.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.memory.exists(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.memory.open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(SiteFile { file: self.memory.create(path)?, env: self.clone() }))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        Ok(Arc::new(SiteFile { file: self.memory.create_growing(path)?, env: self.clone() }))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(SiteFile { file: self.memory.open_log(path, create_bytes, mapped)?, env: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.memory.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.memory.hard_link(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        // Of two calls in one function, one is for a directory inside.
        let what = if directory.ends_with("lost") { "names in lost" } else { "names" };
        self.note(Class::SyncDir, what);
        self.memory.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.memory.lock(path)
    }

    fn random(&self) -> u64 {
        self.memory.random()
    }

    fn calls_no_database(&self) -> bool {
        self.memory.calls_no_database()
    }
}

/// A file, and who is told of its syncs.
#[derive(Debug)]
struct SiteFile<F> {
    file: F,
    env: SiteEnv,
}

impl WriteFile for SiteFile<Box<dyn WriteFile>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.env.note(Class::Sync, "contents");
        self.file.sync()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl GrowingFile for SiteFile<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.env.note(Class::Sync, "contents");
        self.file.sync()
    }
}

impl LogFile for SiteFile<Arc<dyn LogFile>> {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.store(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.env.note(Class::Sync, "contents");
        self.file.sync()
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        self.env.note(Class::Sync, "range");
        self.file.sync_range(from, to)
    }

    fn prefault(&self, from: u64, to: u64) {
        self.file.prefault(from, to);
    }

    fn fill_new(&self, from: u64) {
        self.file.fill_new(from);
    }

    fn release_memory(&self, from: u64, to: u64) {
        self.file.release_memory(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of these functions, each in its file, the innermost first, and of one of a test.
    fn by(frames: &[(&str, &str)]) -> String {
        let line = |(number, (file, function)): (usize, &(&str, &str))| {
            format!("{number:4}: {function}\n             at /project/crates/esker/src/{file}:1:2\n")
        };
        let stack: String = frames.iter().enumerate().map(line).collect();
        site("range", &format!("{stack}  99: run\n             at /project/crates/esker-check/src/lib.rs:1:2\n")).by
    }

    /// If every sync of the whole log were one place, a proof of one of them would stand for all.
    #[test]
    fn a_sync_of_the_whole_log_is_told_by_who_needs_it() {
        let inside = [
            ("wal/log_sync.rs", "sync_stretches"),
            ("wal/log_sync.rs", "esker::wal::log_sync::LogSync::sync_to"),
            ("db/state/inner.rs", "timed<u8, esker::db::state::inner::{impl#5}::sync_log::{closure_env#0}>"),
            ("db/state/inner.rs", "esker::db::state::inner::Inner::sync_log"),
        ];
        let told = |outside: &[(&str, &str)]| by(&[&inside[..], outside].concat());
        let dropped = [("db/lifecycle/drop_keyspace.rs", "make_durable"), ("handle/database.rs", "drop_keyspace")];
        assert_eq!(told(&dropped), "sync_log for db/lifecycle/drop_keyspace.rs:make_durable");
        let declined = [("handle/conditional.rs", "write_on_value<u8>"), ("handle/typed.rs", "take")];
        assert_eq!(told(&declined), "sync_log for a conditional write that declines");
        let empty = [("handle/batch.rs", "commit_and_clear_if<u8>"), ("handle/transaction.rs", "commit_with")];
        assert_eq!(told(&empty), "sync_log for a batch that writes nothing");
        assert_eq!(told(&[("handle/maintenance.rs", "sync")]), "sync_log for a call of the interface");
    }

    /// Seen: a function of the test, which the engine's was generic for, in the place of the
    /// engine's.
    #[test]
    fn a_generic_function_is_told_by_its_own_name() {
        let load = "write<&[u8], esker_check::session::{impl#0}::perform::{closure_env#3}, fn(&u8) -> bool>";
        for of_an_implementation in ["", "<esker::db::Load<u8> as core::iter::Iterator>::"] {
            let load = format!("{of_an_implementation}{load}");
            assert_eq!(
                by(&[("job/output.rs", "finish"), ("db/maintenance/ingest.rs", &load)]),
                "db/maintenance/ingest.rs:write"
            );
        }
    }

    #[test]
    fn another_sync_is_told_by_the_nearest_caller_in_another_file_that_knows_what_for() {
        let create = [
            ("version/manifest.rs", "prepare"),
            ("db/background/commit_version_edit.rs", "renew_with<u8>"),
            ("db/lifecycle/keyspaces.rs", "create"),
            ("handle/database.rs", "keyspace"),
        ];
        assert_eq!(by(&create), "db/lifecycle/keyspaces.rs:create");
        let destroy = [("db/lifecycle/destroy.rs", "destroy"), ("handle/destroy.rs", "destroy")];
        assert_eq!(by(&destroy), "a call of the interface");
        let batch = [("wal/log_sync.rs", "sync_stretches"), ("db/write/commit.rs", "commit_locked<u8>")];
        let called = [&batch[..], &[("handle/batch.rs", "perform")]].concat();
        assert_eq!(by(&called), "db/write/commit.rs:commit_locked");
    }
}
