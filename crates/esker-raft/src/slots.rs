//! The directories below that of a state machine.
//!
//! `slot-0`, `slot-1` and so on each hold a database, a snapshot, or what has arrived of one. The
//! file `STATE` says which is which ([`crate::state_file`]); a slot that it does not name is free,
//! whatever is in it. A slot is emptied before it is used.

use crate::error::{Error, Result};
use esker::env::Env;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes that are copied at a time; no file is ever in memory as a whole.
pub(crate) const COPY_BYTES: usize = 1 << 20;

/// Which slots are in use.
pub(crate) struct Slots {
    env: Arc<dyn Env>,
    root: PathBuf,
    in_use: Mutex<BTreeSet<u32>>,
    /// Set when it is unknown which slots the next open needs.
    keeps_all: AtomicBool,
}

/// A slot that is in use as long as this lives.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    number: u32,
    path: PathBuf,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.in_use.lock().remove(&self.number);
    }
}

impl Slot {
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is one of these.
    pub fn is_of(&self, slots: &Arc<Slots>) -> bool {
        Arc::ptr_eq(&self.slots, slots)
    }
}

impl Slots {
    pub fn new(env: Arc<dyn Env>, root: &Path) -> Arc<Slots> {
        Arc::new(Slots { env, root: root.to_path_buf(), in_use: Mutex::default(), keeps_all: AtomicBool::new(false) })
    }

    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, number: u32) -> PathBuf {
        self.root.join(format!("slot-{number}"))
    }

    /// The slot of that number, which `STATE` names.
    pub fn claim(self: &Arc<Slots>, number: u32) -> Result<Arc<Slot>> {
        if !self.in_use.lock().insert(number) {
            return Err(Error::damaged("STATE", format!("it names slot {number} twice")));
        }
        Ok(Arc::new(Slot { slots: Arc::clone(self), number, path: self.path(number) }))
    }

    /// The first slot that is not in use, empty.
    pub fn allocate(self: &Arc<Slots>) -> Result<Arc<Slot>> {
        for number in 0.. {
            let Some(slot) = self.take(number)? else { continue };
            self.env.create_dir_all(&slot.path)?;
            self.env.sync_dir(&self.root)?;
            self.empty(&slot.path)?;
            return Ok(Arc::new(slot));
        }
        Err(Error::invalid("all slots are in use; release handles of earlier databases"))
    }

    /// The slot of that number, if it is not in use. One whose database some handle still holds
    /// open is in use.
    fn take(self: &Arc<Slots>, number: u32) -> Result<Option<Slot>> {
        if !self.in_use.lock().insert(number) {
            return Ok(None);
        }
        let slot = Slot { slots: Arc::clone(self), number, path: self.path(number) };
        let lock = slot.path.join("LOCK");
        if self.env.exists(&lock)? {
            match self.env.lock(&lock) {
                Err(esker::Error::Locked { .. }) => return Ok(None),
                guard => drop(guard?),
            }
        }
        Ok(Some(slot))
    }

    /// Nothing is removed any more.
    pub fn keep_all(&self) {
        self.keeps_all.store(true, Ordering::Relaxed);
    }

    fn empty(&self, directory: &Path) -> Result<()> {
        if self.keeps_all.load(Ordering::Relaxed) {
            return Err(Error::Stopped { why: "which slots are in use is unknown since a failed write".into() });
        }
        for name in self.env.list(directory)? {
            self.env.remove(&directory.join(name))?;
        }
        Ok(())
    }

    /// Gives back the space of every slot that is not in use.
    pub fn empty_free(self: &Arc<Slots>) -> Result<()> {
        for number in 0.. {
            let path = self.path(number);
            if !self.env.exists(&path)? {
                return Ok(());
            }
            // Taken meanwhile, so that nobody else fills it.
            if let Some(slot) = self.take(number)? {
                self.empty(slot.path())?;
            }
        }
        Ok(())
    }
}

/// Creates a directory, with its parents, so that it is there after a power loss.
pub(crate) fn create_directory(env: &dyn Env, directory: &Path) -> Result<()> {
    let is_named = |path: &&Path| !path.as_os_str().is_empty();
    let mut uncertain = Vec::new();
    for path in directory.ancestors().filter(is_named) {
        // The name of one that exists may not be durable yet.
        uncertain.push(path);
        if env.exists(path)? {
            break;
        }
    }
    for path in uncertain.into_iter().rev() {
        env.create_dir_all(path)?;
        env.sync_dir(path.parent().filter(is_named).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Gives the file a second name, or copies it piece by piece where that does not work; durable but
/// for its name.
pub(crate) fn link_or_copy(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    if env.hard_link(from, to).is_ok() {
        return Ok(());
    }
    copy(env, from, env, to)
}

/// Copies a file piece by piece, also between environments; durable but for its name.
pub(crate) fn copy(from_env: &dyn Env, from: &Path, to_env: &dyn Env, to: &Path) -> Result<()> {
    let source = from_env.open(from)?;
    let mut target = to_env.create(to)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < source.len() {
        let piece =
            &mut buffer[..usize::try_from(source.len() - offset).map_or(COPY_BYTES, |left| left.min(COPY_BYTES))];
        source.read_at(offset, piece)?;
        target.append(piece)?;
        offset += piece.len() as u64;
    }
    Ok(target.sync()?)
}
