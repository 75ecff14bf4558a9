//! A deterministic environment in memory that can lose its power.
//!
//! Every file has a durable image and an ordered list of pending changes; so has the table of names
//! of every directory. `sync` of a file makes its bytes and its length durable, not its name;
//! `sync_dir` makes the names of a directory durable, including those of its sub-directories;
//! dropping anything makes nothing durable. [`MemEnv::crash`] makes a new environment that holds
//! what a machine might find after a power loss, [`MemEnv::kill`] one that holds what the next
//! process finds when this one was killed.
//!
//! To test that a program survives a power loss at any moment, run it once and note
//! [`MemEnv::mutations`]; then, for every number below, run it on a fresh environment with
//! [`MemEnv::crash_after`], take images with [`MemEnv::crash`], and open each of them.
//!
//! ```
//! use esker::env::{Env, mem::{CrashMode, MemEnv}};
//! use std::path::Path;
//!
//! # fn main() -> esker::Result<()> {
//! let env = MemEnv::default();
//! let mut file = env.create(Path::new("note"))?;
//! file.append(b"remember")?;
//! file.sync()?;
//! // The bytes are durable, the name is not.
//! assert!(!env.crash(&CrashMode::LoseAll, 0).exists(Path::new("note"))?);
//! env.sync_dir(Path::new(""))?;
//! assert_eq!(env.crash(&CrashMode::LoseAll, 0).file_bytes(Path::new("note")), Some(b"remember".to_vec()));
//! # Ok(())
//! # }
//! ```

use super::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use content::{Content, PAGE};
use earlier::SECTOR;
use handle::{Mapping, MemGrowingFile, MemLock, MemLogFile, MemReadFile, MemWriteFile};
use state::{Change, Entry, FileData, Inode, NameChange, Shared, State};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod content;
mod crash;
mod earlier;
mod handle;
mod state;
#[cfg(test)]
mod tests;

pub use crash::CrashMode;
pub use state::SyncFailure;

/// A deterministic file system in memory with a power-loss model; see the module text. Clones share
/// everything.
///
/// Mutating calls are counted: every call that creates, writes, syncs, renames, links, removes or
/// locks, whether it succeeds or not. Files are mapped only after [`MemEnv::map_files`], and
/// appends are visible to readers at once.
///
/// ```
/// use esker::{Db, Options, WriteOptions, env::mem::{CrashMode, MemEnv}};
/// let env = MemEnv::new();
/// let options = |env: MemEnv| Options::default().env(std::sync::Arc::new(env));
/// let names = Db::open("data", options(env.clone()))?.keyspace("names", Default::default())?;
/// names.put_with("ada", "1815", &WriteOptions::new().sync(true))?;
/// let db = Db::open("data", options(env.crash(&CrashMode::Random, 1)))?;
/// assert!(db.existing_keyspace("names")?.get("ada")?.is_some());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct MemEnv {
    shared: Arc<Shared>,
}

impl fmt::Debug for MemEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("MemEnv")
            .field("mutations", &state.mutations)
            .field("directories", &state.directories.len())
            .finish_non_exhaustive()
    }
}

impl MemEnv {
    /// An empty environment: only the directories `/` and the empty path, which stands for the
    /// current one.
    ///
    /// ```
    /// use esker::env::{Env, mem::MemEnv};
    /// assert!(MemEnv::new().list(std::path::Path::new(""))?.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new() -> MemEnv {
        MemEnv::default()
    }

    /// How many mutating calls were made.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?.sync()?;
    /// assert_eq!(env.mutations(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn mutations(&self) -> u64 {
        self.shared.state.lock().mutations
    }

    /// Lets the first `count` mutating calls pass, counted from the beginning. The next one and
    /// everything after it, reads included, fails with an I/O error and has no effect.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.crash_after(1);
    /// let mut file = env.create(Path::new("note"))?;
    /// assert!(file.append(b"ada").is_err() && env.is_dead());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn crash_after(&self, count: u64) {
        self.shared.state.lock().power_loss_at = Some(count);
    }

    /// Like [`MemEnv::crash_after`], but the call that dies has had a part of its effect if it is
    /// one that writes: some of the bytes, in whole words of eight as a processor stores them,
    /// which ones as the seed says.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.crash_inside(1, 7);
    /// let log = env.open_log(Path::new("1.wal"), Some(4096), true)?;
    /// assert!(log.store(0, &[1; 64]).is_err() && env.is_dead());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn crash_inside(&self, count: u64, seed: u64) {
        let mut state = self.shared.state.lock();
        state.power_loss_at = Some(count);
        state.torn_call = Some(seed);
    }

    /// Whether the power is gone.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.crash_after(0);
    /// assert!(!env.is_dead());
    /// env.create(Path::new("note")).ok();
    /// assert!(env.is_dead());
    /// ```
    pub fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::Acquire)
    }

    /// A fresh environment with one possible disk after a power loss now. Equal calls after equal
    /// histories give equal images; only [`CrashMode::Random`] uses the seed. This environment is
    /// left as it is.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// env.sync_dir(Path::new(""))?;
    /// assert!(env.crash(&CrashMode::Random, 7).exists(Path::new("note"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn crash(&self, mode: &CrashMode, seed: u64) -> MemEnv {
        MemEnv::from_state(crash::image(&self.shared.state.lock(), *mode, seed))
    }

    /// A fresh environment as the next process finds it when this one was killed but the machine
    /// ran on: everything is still visible, what was pending is still pending, locks are free.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let lock = env.lock(Path::new("LOCK"))?;
    /// assert!(env.lock(Path::new("LOCK")).is_err());
    /// assert!(env.kill().lock(Path::new("LOCK")).is_ok());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn kill(&self) -> MemEnv {
        self.deep_copy(false)
    }

    /// Like [`MemEnv::kill`], but appended bytes that were not yet synced are lost, as if the
    /// [`WriteFile`] had buffered them, which the contract allows.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// let after = env.kill_losing_buffers();
    /// assert_eq!(after.file_bytes(Path::new("note")).as_deref(), Some(&b""[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn kill_losing_buffers(&self) -> MemEnv {
        self.deep_copy(true)
    }

    /// Lets the sync of a file after the next `successes` ones fail, once.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.fail_sync(0, SyncFailure::DropPending);
    /// let mut file = env.create(Path::new("note"))?;
    /// assert!(file.sync().is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn fail_sync(&self, successes: u64, failure: SyncFailure) {
        self.shared.state.lock().failing_sync = Some((successes, failure));
    }

    /// Lets the sync of a directory after the next `successes` ones fail, once.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.create(Path::new("note"))?;
    /// env.fail_sync_dir(0, SyncFailure::DropPending);
    /// assert!(env.sync_dir(Path::new("")).is_err());
    /// env.sync_dir(Path::new(""))?; // succeeds without the name
    /// assert!(!env.crash(&CrashMode::KeepAll, 0).exists(Path::new("note"))?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn fail_sync_dir(&self, successes: u64, failure: SyncFailure) {
        self.shared.state.lock().failing_sync_dir = Some((successes, failure));
    }

    /// Limits the sum of the lengths of all files, or lifts the limit. Beyond it an append writes
    /// what fits and fails, a log is not created, and no new file can be created once nothing is
    /// left.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.set_capacity(Some(2));
    /// let mut file = env.create(Path::new("note"))?;
    /// assert!(file.append(b"ada").is_err_and(|error| error.is_disk_full()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.state.lock().capacity = bytes;
    }

    /// The visible bytes of a file. Works on a dead environment too, and counts as no call.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// assert_eq!(env.file_bytes(Path::new("note")).as_deref(), Some(&b"ada"[..]));
    /// assert_eq!(env.file_bytes(Path::new("absent")), None);
    /// ```
    pub fn file_bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let inode = self.shared.state.lock().find("read", path).ok()??;
        let data = inode.data.lock();
        Some(data.visible.to_vec())
    }

    /// Gives a file these bytes, durably, name and all; creates it and its directories if need be.
    /// Open handles see them. Nothing happens if the path cannot name a file.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// assert_eq!(env.open(Path::new("note"))?.len(), 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn set_file_bytes(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.shared.state.lock();
        let path = state::normal(path);
        if path.parent().is_none_or(|parent| state.create_directory(parent).is_err()) {
            return;
        }
        let Ok(found) = state.find("write", &path) else { return };
        let inode = found.unwrap_or_else(|| state.new_inode(FileData::default()));
        *inode.data.lock() = FileData::settled(Content::from_bytes(&bytes));
        inode.damages.fetch_add(1, Ordering::Release);
        for below in path.ancestors() {
            let entry = if below == path { Entry::File(inode.clone()) } else { Entry::Directory };
            if let Ok((parent, name)) = state.parent("write", below) {
                if !parent.visible.contains_key(&name) {
                    parent.change(NameChange::Set(name.clone(), entry.clone()));
                }
                // Other pending names of that directory stay pending.
                parent.durable.insert(name, entry);
            }
        }
    }

    /// Inverts one bit of a file, on the disk, in the page cache, and in what is still to be
    /// written: rot that no sync repairs. Open handles and mappings see it. False if the file has
    /// no such byte.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// assert!(env.flip_bit(Path::new("note"), 0, 1) && !env.flip_bit(Path::new("note"), 3, 1));
    /// assert_eq!(env.file_bytes(Path::new("note")).as_deref(), Some(&b"cda"[..]));
    /// ```
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let Ok(Some(inode)) = self.shared.state.lock().find("flip a bit of", path) else { return false };
        let flipped = usize::try_from(offset).is_ok_and(|offset| inode.data.lock().flip(offset, 1 << (bit % 8)));
        inode.damages.fetch_add(u64::from(flipped), Ordering::Release);
        flipped
    }

    /// Lets files that are opened from now on be mapped, here and in what becomes of this
    /// environment by a crash or a kill. A mapping is a copy of the file that [`MemEnv::flip_bit`]
    /// reaches; for files that do not change otherwise.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// env.map_files();
    /// let file = env.open(Path::new("note"))?;
    /// assert_eq!(file.mapping(), Some(&b"ada"[..]));
    /// env.flip_bit(Path::new("note"), 0, 1);
    /// assert_eq!(file.mapping(), Some(&b"cda"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn map_files(&self) {
        self.shared.state.lock().mapped = true;
    }

    /// Puts other bytes over a part of a file, on the disk and in the page cache, as a write that
    /// another place was meant for does. What lies beyond the end of the file is left out. Open
    /// handles and mappings see it.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// env.misdirect(Path::new("note"), 1, b"bob");
    /// assert_eq!(env.file_bytes(Path::new("note")).as_deref(), Some(&b"abo"[..]));
    /// ```
    pub fn misdirect(&self, path: &Path, offset: u64, bytes: &[u8]) {
        let Ok(Some(inode)) = self.shared.state.lock().find("damage", path) else { return };
        let Ok(offset) = usize::try_from(offset) else { return };
        let mut data = inode.data.lock();
        for (at, &byte) in (offset..).zip(bytes) {
            let mut old = [0];
            if !data.visible.read(at, &mut old) {
                break;
            }
            data.flip(at, old[0] ^ byte);
        }
        inode.damages.fetch_add(1, Ordering::Release);
    }

    /// Lets files that are made from now on remember what each sector held before it was last
    /// written, here and in what becomes of this environment by a crash or a kill: for
    /// [`MemEnv::lose_write`].
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// let env = MemEnv::new();
    /// env.remember_sectors();
    /// let mut file = env.create(Path::new("note"))?;
    /// file.append(b"ada")?;
    /// file.sync()?;
    /// assert!(env.lose_write(Path::new("note"), 0, 512));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remember_sectors(&self) {
        self.shared.state.lock().remembers = true;
    }

    /// Puts back what the sector around `offset` held before it was last written, on the disk and
    /// in the page cache, as if the disk had acknowledged that write and lost it. `bytes` is the
    /// length of a sector, 512 or 4096. Open handles and mappings see it. False if nothing changes:
    /// what was there before is the same, or is not known.
    ///
    /// ```
    /// # use esker::env::{Env, mem::MemEnv};
    /// # use std::path::Path;
    /// let env = MemEnv::new();
    /// env.remember_sectors();
    /// let log = env.open_log(Path::new("log"), Some(512), true)?;
    /// for value in [b"old", b"new"] {
    ///     log.write(0, value)?;
    ///     log.sync()?;
    /// }
    /// assert!(env.lose_write(Path::new("log"), 0, 512));
    /// assert!(env.file_bytes(Path::new("log")).is_some_and(|bytes| bytes.starts_with(b"old")));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn lose_write(&self, path: &Path, offset: u64, bytes: u64) -> bool {
        let Ok(Some(inode)) = self.shared.state.lock().find("damage", path) else { return false };
        let unit = if bytes > SECTOR as u64 { PAGE } else { SECTOR };
        let lost = usize::try_from(offset).is_ok_and(|offset| inode.data.lock().lose_write(offset, unit));
        inode.damages.fetch_add(u64::from(lost), Ordering::Release);
        lost
    }

    /// The paths of all files, sorted.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// # env.set_file_bytes(Path::new("note"), b"ada".to_vec());
    /// assert_eq!(env.files(), [Path::new("note")]);
    /// ```
    pub fn files(&self) -> Vec<PathBuf> {
        let state = self.shared.state.lock();
        let mut paths = Vec::new();
        for (path, directory) in &state.directories {
            let files = directory.visible.iter().filter(|(_, entry)| matches!(entry, Entry::File(_)));
            paths.extend(files.map(|(name, _)| path.join(name)));
        }
        paths.sort();
        paths
    }

    fn from_state(state: State) -> MemEnv {
        MemEnv { shared: Arc::new(Shared::new(state)) }
    }

    fn deep_copy(&self, lose_buffers: bool) -> MemEnv {
        let state = self.shared.state.lock();
        let mut files: HashMap<u64, Arc<Inode>> = HashMap::new();
        let mut copy_entry = |entry: &mut Entry| {
            let Entry::File(inode) = entry else { return };
            let copy = files.entry(inode.number).or_insert_with(|| {
                let mut data = inode.data.lock().clone();
                if let Some(flushed) =
                    data.flushed.take().filter(|&flushed| lose_buffers && flushed < data.visible.len())
                {
                    // They never reached the system, so a later power loss cannot bring them out
                    // either.
                    data.visible.resize(flushed);
                    data.pending.clear();
                }
                Inode::new(inode.number, data)
            });
            *entry = Entry::File(copy.clone());
        };
        let mut directories = state.directories.clone();
        for directory in directories.values_mut() {
            directory.visible.values_mut().chain(directory.durable.values_mut()).for_each(&mut copy_entry);
            for change in &mut directory.pending {
                match change {
                    NameChange::Set(_, entry) | NameChange::Rename { entry, .. } => copy_entry(entry),
                    NameChange::Remove(_) => {}
                }
            }
        }
        MemEnv::from_state(State {
            directories,
            next_inode: state.next_inode,
            capacity: state.capacity,
            mapped: state.mapped,
            remembers: state.remembers,
            ..State::default()
        })
    }

    fn log_handle(&self, path: &Path, inode: Arc<Inode>) -> Arc<dyn LogFile> {
        let len = inode.data.lock().visible.len();
        Arc::new(MemLogFile { shared: self.shared.clone(), inode, path: path.to_path_buf(), len })
    }
}

impl MemEnv {
    /// A file without bytes; an existing one is truncated. `flushed` as in [`FileData`].
    fn create_empty(&self, path: &Path, flushed: Option<usize>) -> Result<Arc<Inode>> {
        let mut state = self.shared.begin("create", path)?;
        if let Some(inode) = state.find("create", path)? {
            let mut data = inode.data.lock();
            data.change(Change::Resize(0));
            data.flushed = flushed;
            drop(data);
            return Ok(inode);
        }
        if state.room() == 0 {
            return Err(state::disk_full("create", path));
        }
        let inode = state.new_inode(FileData { flushed, ..FileData::default() });
        let (directory, name) = state.parent("create", path)?;
        directory.change(NameChange::Set(name, Entry::File(inode.clone())));
        Ok(inode)
    }
}

impl Env for MemEnv {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.shared.begin("create the directory", directory)?.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.shared.check_alive("list", directory)?;
        let state = self.shared.state.lock();
        let found = state.directories.get(&state::normal(directory));
        let names = &found.ok_or_else(|| state::not_found("list", directory))?.visible;
        Ok(names.iter().filter(|(_, entry)| matches!(entry, Entry::File(_))).map(|(name, _)| name.clone()).collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.shared.check_alive("look for", path)?;
        let mut state = self.shared.state.lock();
        if state.directories.contains_key(&state::normal(path)) {
            return Ok(true);
        }
        Ok(state.parent("look for", path).is_ok_and(|(directory, name)| directory.visible.contains_key(&name)))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.shared.check_alive("open", path)?;
        let mut state = self.shared.state.lock();
        let inode = state.existing("open", path)?;
        let (len, mapping) = (inode.data.lock().visible.len(), state.mapped.then(Mapping::default));
        Ok(Arc::new(MemReadFile { shared: self.shared.clone(), inode, path: path.to_path_buf(), len, mapping }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let inode = self.create_empty(path, Some(0))?;
        Ok(Box::new(MemWriteFile { shared: self.shared.clone(), inode, path: path.to_path_buf(), len: 0 }))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        // As the real environment does it: a file of that name belongs to another program.
        if self.shared.state.lock().find("create", path)?.is_some() {
            return Err(Error::io("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        let inode = self.create_empty(path, None)?;
        Ok(Arc::new(MemGrowingFile { shared: self.shared.clone(), inode, path: path.to_path_buf() }))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, _mapped: bool) -> Result<Arc<dyn LogFile>> {
        const CREATE: &str = "create the log";
        let Some(bytes) = create_bytes else {
            self.shared.check_alive("open the log", path)?;
            let inode = self.shared.state.lock().existing("open the log", path)?;
            return Ok(self.log_handle(path, inode));
        };
        let mut state = self.shared.begin(CREATE, path)?;
        let existing = state.find(CREATE, path)?;
        if existing.is_some() {
            // As the real environment does it: other links to the old file keep its bytes.
            let (directory, name) = state.parent(CREATE, path)?;
            directory.change(NameChange::Remove(name));
        }
        let len = usize::try_from(bytes).map_err(|_| state::disk_full(CREATE, path))?;
        if bytes > state.room() {
            return Err(state::disk_full(CREATE, path));
        }
        // Neither the length nor the reservation is durable before a sync.
        let mut data = FileData::default();
        data.change(Change::Resize(len));
        let inode = state.new_inode(data);
        let (directory, name) = state.parent(CREATE, path)?;
        directory.change(NameChange::Set(name, Entry::File(inode.clone())));
        Ok(self.log_handle(path, inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        const OPERATION: &str = "rename";
        let mut state = self.shared.begin(OPERATION, from)?;
        let inode = state.existing(OPERATION, from)?;
        if state.find(OPERATION, to)?.is_some_and(|other| Arc::ptr_eq(&other, &inode)) {
            return Ok(());
        }
        let entry = Entry::File(inode);
        let (from_directory, from_name) = state::split(OPERATION, from)?;
        let (to_directory, to_name) = state::split(OPERATION, to)?;
        if from_directory == to_directory {
            let (directory, _) = state.parent(OPERATION, from)?;
            directory.change(NameChange::Rename { from: from_name, to: to_name, entry });
        } else {
            let (directory, _) = state.parent(OPERATION, to)?;
            directory.change(NameChange::Set(to_name, entry));
            let (directory, _) = state.parent(OPERATION, from)?;
            directory.change(NameChange::Remove(from_name));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut state = self.shared.begin("remove", path)?;
        state.existing("remove", path)?;
        let (directory, name) = state.parent("remove", path)?;
        directory.change(NameChange::Remove(name));
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.shared.begin("link to", from)?;
        let inode = state.existing("link to", from)?;
        if state.find("link to", to)?.is_some() {
            return Err(Error::io("link to", to, io::ErrorKind::AlreadyExists.into()));
        }
        let (directory, name) = state.parent("link to", to)?;
        directory.change(NameChange::Set(name, Entry::File(inode)));
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        let mut state = self.shared.begin("sync the directory", directory)?;
        let failure = state::due(&mut state.failing_sync_dir);
        let Some(found) = state.directories.get_mut(&state::normal(directory)) else {
            return Err(state::not_found("sync the directory", directory));
        };
        match failure {
            None => found.sync(),
            Some(failure) => {
                found.fail_sync(failure);
                return Err(state::failed_sync("sync the directory", directory));
            }
        }
        Ok(())
    }

    /// From the number of mutating calls: the same in every run, and another after each of them.
    fn random(&self) -> u64 {
        self.mutations().wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn calls_no_database(&self) -> bool {
        true
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let mut state = self.shared.begin("lock", path)?;
        let key = state::normal(path);
        if state.locks.contains(&key) {
            return Err(Error::Locked { path: path.to_path_buf(), holder: Some(std::process::id()) });
        }
        let inode = match state.find("lock", path)? {
            Some(inode) => inode,
            None => {
                let inode = state.new_inode(FileData::default());
                let (directory, name) = state.parent("lock", path)?;
                directory.change(NameChange::Set(name, Entry::File(inode.clone())));
                inode
            }
        };
        let holder = format!("{}\n", std::process::id());
        let mut data = inode.data.lock();
        data.change(Change::Resize(0));
        data.change(Change::Write { offset: 0, bytes: holder.into_bytes().into(), append: true });
        state.locks.insert(key.clone());
        Ok(Box::new(MemLock { shared: self.shared.clone(), key }))
    }
}
