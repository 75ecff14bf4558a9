//! An environment that fails, or is slow, on request. It wraps any other one and counts every call
//! by class; a [`Rule`] makes the n-th call of a class fail or wait, once or from then on.
//!
//! To test that a program survives a failure at any point, run it with a rule for call 0, then 1,
//! and so on, until a run ends without the rule having fired:
//!
//! ```
//! use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
//! use std::io::ErrorKind;
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! fn program(env: &dyn Env) -> esker::Result<()> {
//!     env.create(Path::new("note"))?.append(b"remember")
//! }
//!
//! let mut runs = 0;
//! loop {
//!     let env = FaultEnv::new(Arc::new(MemEnv::default()));
//!     env.add(Rule::new(Class::AnyMutating, runs, Action::Fail(ErrorKind::StorageFull)));
//!     let result = program(&env);
//!     if env.fired() == 0 {
//!         assert!(result.is_ok());
//!         break;
//!     }
//!     assert!(result.is_err());
//!     runs += 1;
//! }
//! assert_eq!(runs, 2);
//! ```

use super::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile, note_mapping_fault};
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A kind of call. Every call has one of the single classes; the last two stand for several.
///
/// ```
/// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
/// # use std::{io::ErrorKind, path::Path, sync::Arc};
/// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
/// env.sync_dir(Path::new("")).ok();
/// assert_eq!((env.calls(Class::SyncDir), env.calls(Class::AnyMutating)), (1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// [`Env::list`] and [`Env::exists`].
    Look,
    /// [`Env::open`], and [`Env::open_log`] of an existing file.
    Open,
    /// `read_at` of any file, and [`ReadFile::check_mapping`] of one whose mapping was handed out.
    Read,
    /// [`Env::create`], [`Env::create_growing`], [`Env::create_dir_all`], and [`Env::open_log`] of
    /// a new file.
    Create,
    /// [`WriteFile::append`] and [`GrowingFile::write`].
    Append,
    /// `sync` and `sync_range` of any file.
    Sync,
    /// [`Env::sync_dir`].
    SyncDir,
    /// [`Env::rename`].
    Rename,
    /// [`Env::remove`].
    Remove,
    /// [`Env::hard_link`].
    Link,
    /// [`LogFile::write`].
    LogWrite,
    /// [`LogFile::store`].
    LogStore,
    /// [`Env::lock`].
    Lock,
    /// Every class except listing, opening and reading.
    AnyMutating,
    /// Every class.
    Any,
}

impl Class {
    /// How many single classes there are; they come first.
    const SINGLE: usize = Class::Lock as usize + 1;

    fn includes(self, single: Class) -> bool {
        match self {
            Class::Any => true,
            Class::AnyMutating => !matches!(single, Class::Look | Class::Open | Class::Read),
            _ => self == single,
        }
    }

    fn operation(self) -> &'static str {
        match self {
            Class::Look => "look at",
            Class::Open => "open",
            Class::Read => "read",
            Class::Create => "create",
            Class::Append => "append to",
            Class::Sync => "sync",
            Class::SyncDir => "sync the directory",
            Class::Rename => "rename",
            Class::Remove => "remove",
            Class::Link => "link to",
            Class::LogWrite | Class::LogStore => "write to",
            Class::Lock => "lock",
            Class::AnyMutating | Class::Any => "use",
        }
    }
}

/// What happens to a call that a rule picked.
///
/// ```
/// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
/// # use std::{io::ErrorKind, path::Path, sync::Arc};
/// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
/// env.add(Rule::new(Class::Append, 0, Action::Partial { kind: ErrorKind::StorageFull, bytes: 2 }));
/// let mut file = env.create(Path::new("note"))?;
/// assert!(file.append(b"four").is_err());
/// drop(file);
/// assert_eq!(env.open(Path::new("note"))?.len(), 2);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It fails and has no effect. `ErrorKind::Other` stands for a device error.
    Fail(ErrorKind),
    /// An append or log write puts only the first `bytes` bytes in place, then fails; other calls
    /// fail without effect.
    Partial {
        /// The kind of the error.
        kind: ErrorKind,
        /// How many bytes arrive.
        bytes: usize,
    },
    /// It takes full effect, and yet fails. A handle that it would have returned is dropped.
    FailAfter(ErrorKind),
    /// It reports success without having done anything: the way to show that a test notices a
    /// missing sync. Calls that return something are made as usual.
    Ignore,
    /// It panics, without effect: what an environment that is not the engine's own may do.
    Panic,
    /// It is made after so long, or as soon as the rules are removed ([`FaultEnv::clear`]): a slow
    /// disk, or one that hangs.
    Delay(Duration),
}

/// Which calls fail, and how.
///
/// ```
/// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
/// # use std::{io::ErrorKind, path::Path, sync::Arc};
/// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
/// // Every sync of a table fails, from the third one on.
/// env.add(Rule::new(Class::Sync, 2, Action::Fail(ErrorKind::Other)).on_names_with(".table").from_then_on());
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    class: Class,
    name: Option<String>,
    /// Matching calls that pass before the first one that is picked.
    nth: u64,
    forever: bool,
    action: Action,
    matched: u64,
}

impl Rule {
    /// Picks one call: number `nth` of the class, counted from 0 at the moment when the rule is
    /// added.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Look, 0, Action::Fail(ErrorKind::Other)));
    /// assert!(env.exists(Path::new("a")).is_err());
    /// assert!(env.exists(Path::new("a")).is_ok());
    /// ```
    pub fn new(class: Class, nth: u64, action: Action) -> Rule {
        Rule { class, name: None, nth, forever: false, action, matched: 0 }
    }

    /// Only calls on paths whose last name contains `part` match. For a rename or link that is
    /// either of the two names.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Look, 0, Action::Fail(ErrorKind::Other)).on_names_with("b"));
    /// assert!(env.exists(Path::new("a")).is_ok());
    /// assert!(env.exists(Path::new("b")).is_err());
    /// ```
    pub fn on_names_with(mut self, part: impl Into<String>) -> Rule {
        self.name = Some(part.into());
        self
    }

    /// Picks every later matching call too.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Look, 1, Action::Fail(ErrorKind::Other)).from_then_on());
    /// let fail: Vec<bool> = (0..3).map(|_| env.exists(Path::new("a")).is_err()).collect();
    /// assert_eq!(fail, [false, true, true]);
    /// ```
    pub fn from_then_on(mut self) -> Rule {
        self.forever = true;
        self
    }

    fn matches(&self, class: Class, paths: &[&Path]) -> bool {
        let Some(part) = &self.name else { return self.class.includes(class) };
        let named = |path: &&Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part));
        self.class.includes(class) && paths.iter().any(named)
    }

    /// Counts a matching call; true if it is picked.
    fn picks(&mut self) -> bool {
        let number = self.matched;
        self.matched += 1;
        if self.forever { number >= self.nth } else { number == self.nth }
    }
}

/// A wrapper that fails calls by rule. Clones share the rules and the counts.
///
/// A file is mapped through it where the inner environment maps it. Bytes are then read without a
/// call; the check behind that is one, and can fail. From then on every check of that handle fails,
/// as [`ReadFile::check_mapping`] says, and what is wanted is read by `read_at`. With
/// [`crate::ReadMode::Pread`] no table is mapped.
///
/// ```
/// use esker::env::{fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
/// let env = FaultEnv::new(std::sync::Arc::new(MemEnv::new()));
/// let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(env.clone())))?;
/// let names = db.keyspace("names", Default::default())?;
/// env.add(Rule::new(Class::Sync, 0, Action::Fail(std::io::ErrorKind::Other)));
/// assert!(names.put_with("ada", "", &esker::WriteOptions::new().sync(true)).is_err());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultEnv {
    inner: Arc<dyn Env>,
    control: Arc<Control>,
}

#[derive(Debug, Default)]
struct Control {
    state: Mutex<ControlState>,
    cleared: Condvar,
}

#[derive(Debug, Default)]
struct ControlState {
    rules: Vec<Rule>,
    calls: [u64; Class::SINGLE],
    fired: u64,
    /// How often the rules were removed.
    clears: u64,
}

impl Control {
    /// Counts a call and returns what a rule wants done with it; a delay is over when this returns.
    /// Every rule counts; the first that picks it wins.
    fn decide(&self, class: Class, paths: &[&Path]) -> Option<Action> {
        let mut state = self.state.lock();
        if let Some(count) = state.calls.get_mut(class as usize) {
            *count += 1;
        }
        let mut action = None;
        for rule in state.rules.iter_mut().filter(|rule| rule.matches(class, paths)) {
            if rule.picks() {
                action = action.or(Some(rule.action));
            }
        }
        state.fired += u64::from(action.is_some());
        let Some(Action::Delay(most)) = action else { return action };
        let (clears, until) = (state.clears, Instant::now().checked_add(most));
        while state.clears == clears {
            let Some(until) = until else {
                self.cleared.wait(&mut state);
                continue;
            };
            if self.cleared.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        None
    }

    /// Makes a call that returns a value, unless a rule picks it.
    fn call<T>(&self, class: Class, paths: &[&Path], call: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.decide(class, paths) {
            None | Some(Action::Ignore | Action::Delay(_)) => call(),
            Some(Action::Panic) => panic_in(class),
            Some(Action::Fail(kind) | Action::Partial { kind, .. }) => Err(injected(class, paths, kind)),
            Some(Action::FailAfter(kind)) => {
                call()?;
                Err(injected(class, paths, kind))
            }
        }
    }

    /// Makes a call that returns nothing, unless a rule picks it.
    fn act(&self, class: Class, paths: &[&Path], call: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.decide(class, paths) {
            None | Some(Action::Delay(_)) => call(),
            Some(Action::Ignore) => Ok(()),
            Some(Action::Panic) => panic_in(class),
            Some(Action::Fail(kind) | Action::Partial { kind, .. }) => Err(injected(class, paths, kind)),
            Some(Action::FailAfter(kind)) => {
                call()?;
                Err(injected(class, paths, kind))
            }
        }
    }

    /// Makes a call that takes bytes, or as much of it as a rule leaves.
    fn transfer(&self, class: Class, path: &Path, bytes: &[u8], call: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let (kind, arriving) = match self.decide(class, &[path]) {
            None | Some(Action::Delay(_)) => return call(bytes),
            Some(Action::Ignore) => return Ok(()),
            Some(Action::Panic) => panic_in(class),
            Some(Action::Fail(kind)) => return Err(injected(class, &[path], kind)),
            Some(Action::Partial { kind, bytes: count }) => (kind, &bytes[..count.min(bytes.len())]),
            Some(Action::FailAfter(kind)) => (kind, bytes),
        };
        call(arriving)?;
        Err(injected(class, &[path], kind))
    }
}

fn injected(class: Class, paths: &[&Path], kind: ErrorKind) -> Error {
    let path = paths.first().copied().unwrap_or(Path::new(""));
    Error::io(class.operation(), path, io::Error::new(kind, "injected failure"))
}

/// Panics, without the message that goes to standard error: it was requested.
fn panic_in(class: Class) -> ! {
    std::panic::resume_unwind(Box::new(format!("injected panic: {}", class.operation())))
}

impl FaultEnv {
    /// Wraps an environment; without rules every call goes through.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// assert!(!env.exists(Path::new("a"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new(inner: Arc<dyn Env>) -> FaultEnv {
        FaultEnv { inner, control: Arc::default() }
    }

    /// Adds a rule. If several pick the same call, the one added first decides.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::PermissionDenied)));
    /// assert!(env.create(Path::new("note")).is_err());
    /// ```
    pub fn add(&self, rule: Rule) {
        self.control.state.lock().rules.push(rule);
    }

    /// Removes all rules, and ends all delays; the counts stay.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::PermissionDenied)));
    /// env.clear();
    /// assert!(env.create(Path::new("note")).is_ok());
    /// ```
    pub fn clear(&self) {
        let mut state = self.control.state.lock();
        state.rules.clear();
        state.clears += 1;
        drop(state);
        self.control.cleared.notify_all();
    }

    /// How many calls of a class were made, failed ones included.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.exists(Path::new("a"))?;
    /// assert_eq!((env.calls(Class::Look), env.calls(Class::Any)), (1, 1));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn calls(&self, class: Class) -> u64 {
        let state = self.control.state.lock();
        SINGLE_CLASSES
            .iter()
            .filter(|single| class.includes(**single))
            .map(|single| state.calls[*single as usize])
            .sum()
    }

    /// How many calls were picked by a rule.
    ///
    /// ```
    /// # use esker::env::{Env, fault::{Action, Class, FaultEnv, Rule}, mem::MemEnv};
    /// # use std::{io::ErrorKind, path::Path, sync::Arc};
    /// # let env = FaultEnv::new(Arc::new(MemEnv::new()));
    /// env.add(Rule::new(Class::Look, 0, Action::Fail(ErrorKind::Other)));
    /// env.exists(Path::new("a")).ok();
    /// env.exists(Path::new("a")).ok();
    /// assert_eq!(env.fired(), 1);
    /// ```
    pub fn fired(&self) -> u64 {
        self.control.state.lock().fired
    }
}

const SINGLE_CLASSES: [Class; Class::SINGLE] = [
    Class::Look,
    Class::Open,
    Class::Read,
    Class::Create,
    Class::Append,
    Class::Sync,
    Class::SyncDir,
    Class::Rename,
    Class::Remove,
    Class::Link,
    Class::LogWrite,
    Class::LogStore,
    Class::Lock,
];

impl Env for FaultEnv {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.control.act(Class::Create, &[directory], || self.inner.create_dir_all(directory))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.control.call(Class::Look, &[directory], || self.inner.list(directory))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.control.call(Class::Look, &[path], || self.inner.exists(path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let inner = self.control.call(Class::Open, &[path], || self.inner.open(path))?;
        let (path, control) = (path.to_path_buf(), self.control.clone());
        Ok(Arc::new(FaultReadFile { inner, path, control, is_mapped: AtomicBool::new(false), lost: OnceLock::new() }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let inner = self.control.call(Class::Create, &[path], || self.inner.create(path))?;
        Ok(Box::new(FaultWriteFile { inner, path: path.to_path_buf(), control: self.control.clone() }))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        let inner = self.control.call(Class::Create, &[path], || self.inner.create_growing(path))?;
        Ok(Arc::new(FaultGrowingFile { inner, path: path.to_path_buf(), control: self.control.clone() }))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        let class = if create_bytes.is_some() { Class::Create } else { Class::Open };
        let inner = self.control.call(class, &[path], || self.inner.open_log(path, create_bytes, mapped))?;
        Ok(Arc::new(FaultLogFile { inner, path: path.to_path_buf(), control: self.control.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.control.act(Class::Rename, &[from, to], || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.control.act(Class::Remove, &[path], || self.inner.remove(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.control.act(Class::Link, &[from, to], || self.inner.hard_link(from, to))
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.control.act(Class::SyncDir, &[directory], || self.inner.sync_dir(directory))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.control.call(Class::Lock, &[path], || self.inner.lock(path))
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn calls_no_database(&self) -> bool {
        self.inner.calls_no_database()
    }
}

#[derive(Debug)]
struct FaultReadFile {
    inner: Arc<dyn ReadFile>,
    path: PathBuf,
    control: Arc<Control>,
    /// Whether the mapping was handed out.
    is_mapped: AtomicBool,
    /// How the first check failed of those that did.
    lost: OnceLock<ErrorKind>,
}

impl ReadFile for FaultReadFile {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.control.call(Class::Read, &[&self.path], || self.inner.read_at(offset, buffer))
    }

    fn mapping(&self) -> Option<&[u8]> {
        let mapping = self.inner.mapping()?;
        // Readers ask for a fault only once there was one in the process. Here any check may be the
        // one that fails; and how many checks there are must not depend on what else the process
        // has done.
        if !self.is_mapped.load(Ordering::Acquire) {
            note_mapping_fault();
            self.is_mapped.store(true, Ordering::Release);
        }
        Some(mapping)
    }

    fn check_mapping(&self) -> Result<()> {
        // Whether anybody asks so of a file that is not mapped depends on the rest of the process.
        if !self.is_mapped.load(Ordering::Acquire) {
            return self.inner.check_mapping();
        }
        let checked = self.control.call(Class::Read, &[&self.path], || self.inner.check_mapping());
        if let Err(Error::Io { source, .. }) = &checked {
            self.lost.get_or_init(|| source.kind());
        }
        match self.lost.get() {
            Some(&kind) if checked.is_ok() => Err(injected(Class::Read, &[&self.path], kind)),
            _ => checked,
        }
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.inner.will_read(offset, bytes);
    }
}

#[derive(Debug)]
struct FaultWriteFile {
    inner: Box<dyn WriteFile>,
    path: PathBuf,
    control: Arc<Control>,
}

impl WriteFile for FaultWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let FaultWriteFile { inner, path, control } = self;
        control.transfer(Class::Append, path, bytes, |bytes| inner.append(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        let FaultWriteFile { inner, path, control } = self;
        control.act(Class::Sync, &[path], || inner.sync())
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }
}

#[derive(Debug)]
struct FaultGrowingFile {
    inner: Arc<dyn GrowingFile>,
    path: PathBuf,
    control: Arc<Control>,
}

impl GrowingFile for FaultGrowingFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let call = |bytes: &[u8]| self.inner.write(offset, bytes);
        self.control.transfer(Class::Append, &self.path, bytes, call)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.control.call(Class::Read, &[&self.path], || self.inner.read_at(offset, buffer))
    }

    fn sync(&self) -> Result<()> {
        self.control.act(Class::Sync, &[&self.path], || self.inner.sync())
    }
}

#[derive(Debug)]
struct FaultLogFile {
    inner: Arc<dyn LogFile>,
    path: PathBuf,
    control: Arc<Control>,
}

impl LogFile for FaultLogFile {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let call = |bytes: &[u8]| self.inner.store(offset, bytes);
        self.control.transfer(Class::LogStore, &self.path, bytes, call)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let call = |bytes: &[u8]| self.inner.write(offset, bytes);
        self.control.transfer(Class::LogWrite, &self.path, bytes, call)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.control.call(Class::Read, &[&self.path], || self.inner.read_at(offset, buffer))
    }

    fn sync(&self) -> Result<()> {
        self.control.act(Class::Sync, &[&self.path], || self.inner.sync())
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        self.control.act(Class::Sync, &[&self.path], || self.inner.sync_range(from, to))
    }

    fn prefault(&self, from: u64, to: u64) {
        self.inner.prefault(from, to);
    }

    fn fill_new(&self, from: u64) {
        self.inner.fill_new(from);
    }

    fn release_memory(&self, from: u64, to: u64) {
        self.inner.release_memory(from, to);
    }
}

#[cfg(test)]
mod tests;
