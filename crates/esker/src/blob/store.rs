//! All blob files of a database, and the appends of its writers.
//!
//! Threads: any thread appends, reads and syncs. Locks: `current`, then `files`; `syncing` is taken
//! with none of them held; `job_file`, `damaged` and `would_shrink` with no other of them. All are
//! leaves for callers, who may hold any lock of the database; a file operation is done under
//! `current` only where a new file begins.
//!
//! A file is removed when nothing refers to it: no table, no memtable, and no holder of its handle
//! (a write on its way from the blob file to the memtable, or a background job). The check runs in
//! this order: first [`BlobStore::unheld`], then what tables and memtables refer to.

use super::file::BlobFile;
use super::format::{Values, file_name};
use crate::base::blob_reference::BlobReference;
use crate::base::compression::Codec;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::Compression;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's comment.
#[derive(Debug)]
pub struct BlobStore {
    env: Arc<dyn Env>,
    directory: PathBuf,
    /// A file that would get longer by the next value is followed by another.
    file_bytes: u64,
    compression: Compression,
    files: RwLock<BTreeMap<u64, Arc<BlobFile>>>,
    /// The file that writers append to.
    current: Mutex<Option<Arc<BlobFile>>>,
    /// The file that the next job appends to.
    job_file: Mutex<Option<Arc<BlobFile>>>,
    /// Appends done, and how many of them are known to be durable.
    appended: AtomicU64,
    durable: AtomicU64,
    /// Bytes of values appended, by jobs as well.
    written_bytes: AtomicU64,
    /// Whether a sync failed. Held by the one thread that syncs: of two concurrent syncs, one might
    /// not be told of a failure.
    syncing: Mutex<bool>,
    /// Files in which a job found a damaged value.
    damaged: Mutex<BTreeMap<u64, Damage>>,
    /// Files sampled: whether compressing their values would pay, and how long they were then.
    would_shrink: Mutex<BTreeMap<u64, (bool, u64)>>,
}

/// A value that a job found damaged.
#[derive(Debug)]
struct Damage {
    offset: u64,
    what: String,
    /// A caller requested that the file be tried again.
    again: bool,
}

/// A value just appended. As long as this lives, its file stays.
#[derive(Clone, Debug)]
pub struct Appended {
    pub reference: BlobReference,
    /// Bytes of values that had been written before, by all.
    pub written_before: u64,
    _file: Arc<BlobFile>,
}

impl BlobStore {
    /// A store that knows no file yet. `compression`: of the values that jobs write.
    pub fn new(env: Arc<dyn Env>, directory: PathBuf, file_bytes: u64, compression: Compression) -> BlobStore {
        BlobStore {
            env,
            directory,
            file_bytes,
            compression,
            files: RwLock::default(),
            current: Mutex::default(),
            job_file: Mutex::default(),
            appended: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            syncing: Mutex::new(false),
            damaged: Mutex::default(),
            would_shrink: Mutex::default(),
        }
    }

    /// Makes an existing file known. If it is known already and was shorter than `at_least` then,
    /// it is opened again: another process may be appending to it.
    ///
    /// # Errors
    /// `Corruption` if it is missing or is no blob file of that number; `Unsupported`; `Io`.
    pub fn open_file(&self, number: u64, at_least: u64) -> Result<Arc<BlobFile>> {
        if let Some(found) = self.find(number).filter(|file| file.bytes() >= at_least) {
            return Ok(found);
        }
        let file = Arc::new(BlobFile::open(&*self.env, &self.directory, number)?);
        let shorter = self.files.write().insert(number, Arc::clone(&file));
        drop(shorter);
        Ok(file)
    }

    /// Makes a file known that is open, also of another directory: nothing is appended to it here.
    pub fn know(&self, file: Arc<BlobFile>) {
        let other = self.files.write().insert(file.number(), file);
        drop(other);
    }

    /// Whether a blob file of this number is known.
    pub fn has(&self, number: u64) -> bool {
        self.files.read().contains_key(&number)
    }

    fn find(&self, number: u64) -> Option<Arc<BlobFile>> {
        self.files.read().get(&number).cloned()
    }

    /// A new file, known from here on. Its name is not durable yet: for a job, whose tables make it
    /// durable with their own.
    pub(super) fn create_file(&self, number: u64, values: Values) -> Result<Arc<BlobFile>> {
        let file = Arc::new(BlobFile::create(&*self.env, &self.directory, number, values)?);
        self.know(Arc::clone(&file));
        Ok(file)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Counts these bytes; how many there were before.
    pub(super) fn note_written(&self, bytes: usize) -> u64 {
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed)
    }

    /// Bytes of values written since the store was made, copies included.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Appends a value for a write. Its bytes survive the process when this returns, and the
    /// machine once [`BlobStore::sync`] did. `next_number` gives out file numbers.
    ///
    /// # Errors
    /// `Io`: nothing refers to what may have been written, and the store goes on. From the sync of
    /// the directory the error may be that names are lost.
    pub fn append(&self, value: &[u8], next_number: &dyn Fn() -> u64) -> Result<Appended> {
        let (file, place) = self.reserve(value.len(), next_number)?;
        let reference = file.write(place, value, false)?;
        let written_before = self.note_written(value.len());
        file.logged.store(true, Ordering::Relaxed);
        // The mark before the count: a thread that sees the count sees the mark.
        file.unsynced.store(true, Ordering::Release);
        self.appended.fetch_add(1, Ordering::Release);
        Ok(Appended { reference, written_before, _file: file })
    }

    fn reserve(&self, length: usize, next_number: &dyn Fn() -> u64) -> Result<(Arc<BlobFile>, u64)> {
        let mut current = self.current.lock();
        if let Some(file) = &*current
            && let Some(place) = file.reserve(length, self.file_bytes)
        {
            return Ok((Arc::clone(file), place));
        }
        let file = self.begin_file(next_number())?;
        *current = Some(Arc::clone(&file));
        let place =
            file.reserve(length, u64::MAX).ok_or_else(|| Error::invalid("an empty blob file takes any value"))?;
        Ok((file, place))
    }

    /// A new file for writes. Its name is durable before a log record refers to it: so a file that
    /// is missing when the log is replayed was removed, and is no end of a log that a power loss
    /// cut short, whatever the manifest has lost since.
    fn begin_file(&self, number: u64) -> Result<Arc<BlobFile>> {
        let file = Arc::new(BlobFile::create(&*self.env, &self.directory, number, Values::AsWritten)?);
        // Every attempt that fails would leave a file.
        self.env.sync_dir(&self.directory).inspect_err(|_| drop(self.env.remove(file.path())))?;
        self.know(Arc::clone(&file));
        Ok(file)
    }

    /// The next append begins another file, of a write and of a job.
    pub fn roll(&self) {
        *self.current.lock() = None;
        *self.job_file.lock() = None;
    }

    /// Nothing more is appended to these files.
    pub fn end_growth(&self, numbers: &BTreeSet<u64>) {
        for slot in [&self.current, &self.job_file] {
            slot.lock().take_if(|file| numbers.contains(&file.number()));
        }
    }

    /// Nothing more is appended by jobs to their file, unless it `is_used`.
    pub fn end_job_file_unless(&self, is_used: impl Fn(u64) -> bool) {
        self.job_file.lock().take_if(|file| !is_used(file.number()));
    }

    /// The file that the last job has left for the next, if its values are stored so.
    pub(super) fn take_job_file(&self, values: Values) -> Option<Arc<BlobFile>> {
        self.job_file.lock().take_if(|file| file.values == values)
    }

    /// Leaves a file for the next job. All that is in it is durable; its name is when a job has
    /// made the names of its tables durable.
    pub(super) fn leave_job_file(&self, file: &Arc<BlobFile>) {
        *self.job_file.lock() = Some(Arc::clone(file));
    }

    /// Makes every value appended before the call durable. Costs two loads if there is none. After
    /// a failure every later call fails: the state of the device is unknown then, and asking again
    /// would not tell.
    ///
    /// # Errors
    /// `Io`, and `ReadOnly` after an earlier failure.
    pub fn sync(&self) -> Result<()> {
        if self.appended.load(Ordering::Acquire) == self.durable.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut failed = self.syncing.lock();
        if *failed {
            return Err(Error::ReadOnly { why: "an earlier sync of a blob file failed".into() });
        }
        let goal = self.appended.load(Ordering::Acquire);
        if goal == self.durable.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Until it has not: a panic of the environment, too, leaves open what is durable.
        *failed = true;
        self.sync_files()?;
        self.durable.store(goal, Ordering::Release);
        *failed = false;
        Ok(())
    }

    fn sync_files(&self) -> Result<()> {
        let unsynced = |file: &&Arc<BlobFile>| file.unsynced.load(Ordering::Acquire);
        let files: Vec<Arc<BlobFile>> = self.files.read().values().filter(unsynced).cloned().collect();
        for file in files {
            // Before the sync: a write that sets the mark again may have come too late for it.
            file.unsynced.swap(false, Ordering::AcqRel);
            file.sync()?;
        }
        Ok(())
    }

    /// Whether the directory has no file of this number.
    pub fn is_missing(&self, number: u64) -> Result<bool> {
        Ok(!self.env.exists(&self.directory.join(file_name(number)))?)
    }

    /// The value that `reference` stands for.
    ///
    /// # Errors
    /// `Corruption` names the blob file and the offset; `Io`.
    pub fn read(&self, reference: &BlobReference) -> Result<Vec<u8>> {
        match self.find(reference.file) {
            Some(file) => file.read(reference),
            None => {
                let path = self.directory.join(file_name(reference.file));
                Err(Error::corruption(path, reference.offset, "the blob file is missing"))
            }
        }
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.read().is_empty()
    }

    /// The lengths of all files, by number.
    pub fn lengths(&self) -> BTreeMap<u64, u64> {
        self.files.read().iter().map(|(&number, file)| (number, file.bytes())).collect()
    }

    /// Values that writes have appended.
    pub fn appends(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// The files without a holder of their handle: no write to come refers to them, only what
    /// tables and memtables refer to already.
    pub fn unheld(&self) -> Vec<u64> {
        // For writing: no thread takes a handle meanwhile.
        let files = self.files.write();
        files.iter().filter(|(_, file)| Arc::strong_count(file) == 1).map(|(&number, _)| number).collect()
    }

    /// Notes that a log record will refer to the file, to which a job may have appended the value.
    pub fn note_logged(&self, number: u64) {
        self.find(number).iter().for_each(|file| file.logged.store(true, Ordering::Relaxed));
    }

    /// Whether a log record may refer to the file. Call under the writer lock, or after it was held
    /// since the last write.
    pub fn is_logged(&self, number: u64) -> bool {
        self.find(number).is_none_or(|file| file.logged.load(Ordering::Relaxed))
    }

    /// Forgets a file; the caller removes it. Reads under way go on.
    pub fn forget(&self, number: u64) -> Option<PathBuf> {
        self.would_shrink.lock().remove(&number);
        self.damaged.lock().remove(&number);
        // It goes without the lock that it was found under: it is the environment's.
        let file = self.files.write().remove(&number)?;
        Some(file.path().to_path_buf())
    }

    /// The value that `reference` stands for, for a job. If it is damaged, that is noted, so that
    /// jobs do not try again and again to empty the file.
    ///
    /// # Errors
    /// As [`BlobStore::read`].
    pub fn read_for_job(&self, reference: &BlobReference) -> Result<Vec<u8>> {
        self.read(reference).inspect_err(|error| self.note_damage(reference.file, error))
    }

    /// Notes what a job found wrong with the file, if the error is that it is damaged.
    pub fn note_damage(&self, number: u64, error: &Error) {
        if let Error::Corruption { offset, what, .. } = error {
            let damage = Damage { offset: *offset, what: what.clone(), again: false };
            self.damaged.lock().insert(number, damage);
        }
    }

    /// Files noted as damaged, which jobs leave alone.
    pub fn left_alone(&self) -> BTreeSet<u64> {
        let damaged = self.damaged.lock();
        damaged.iter().filter(|(_, damage)| !damage.again).map(|(&number, _)| number).collect()
    }

    /// Whether this is an error in a file that jobs leave alone.
    pub fn leaves_alone(&self, error: &Error) -> bool {
        let Error::Corruption { path, .. } = error else { return false };
        self.left_alone().into_iter().any(|number| self.directory.join(file_name(number)) == *path)
    }

    /// The next job that has to do with a damaged file tries again to read it.
    pub fn try_damaged_again(&self) {
        self.damaged.lock().values_mut().for_each(|damage| damage.again = true);
    }

    /// What is wrong with one of these files, if jobs have found something since.
    pub fn damage_met(&self, is_meant: impl Fn(u64) -> bool) -> Option<Error> {
        self.first_damage(|number, damage| !damage.again && is_meant(number))
    }

    /// Where jobs have found damage, by file.
    pub fn damaged(&self) -> BTreeMap<u64, u64> {
        self.damaged.lock().iter().map(|(&number, damage)| (number, damage.offset)).collect()
    }

    /// Forgets the damage at these places: all that is referred to there is intact.
    pub fn forget_damage(&self, places: &BTreeMap<u64, u64>) {
        self.damaged.lock().retain(|number, damage| places.get(number) != Some(&damage.offset));
    }

    /// What is wrong with one of the files, if something is as far as jobs know.
    pub fn damage(&self) -> Option<Error> {
        self.first_damage(|_, _| true)
    }

    fn first_damage(&self, is_meant: impl Fn(u64, &Damage) -> bool) -> Option<Error> {
        let damaged = self.damaged.lock();
        let (&number, Damage { offset, what, .. }) =
            damaged.iter().find(|(number, damage)| is_meant(**number, damage))?;
        Some(Error::corruption(self.directory.join(file_name(number)), *offset, what.clone()))
    }

    /// How jobs compress values, if they do.
    pub fn codec(&self) -> Option<Codec> {
        self.compression.codec()
    }

    /// Whether jobs compress values.
    pub fn compresses(&self) -> bool {
        self.codec().is_some()
    }

    /// The file, if its values could be compressed and a sample has not shown that it does not pay,
    /// with whether one has shown that it does.
    fn shrinkable(&self, number: u64) -> Option<(Arc<BlobFile>, bool)> {
        let file = self.find(number).filter(|file| self.compresses() && file.values == Values::AsWritten)?;
        let known = self.would_shrink.lock().get(&number).copied();
        // What was found out about half of a file says nothing about the whole.
        match known.filter(|&(_, bytes)| file.bytes() / 2 <= bytes) {
            Some((false, _)) => None,
            known => Some((file, known.is_some())),
        }
    }

    /// Whether compressing the file's values may pay.
    pub fn may_shrink(&self, number: u64) -> bool {
        self.shrinkable(number).is_some()
    }

    /// Whether a sample of the file's values has shown that compressing them pays.
    pub fn is_known_to_shrink(&self, number: u64) -> bool {
        self.shrinkable(number).is_some_and(|(_, known)| known)
    }

    /// Whether compressing the file's values pays, as far as a sample of them tells. If they cannot
    /// be read, they stay as they are.
    pub fn would_shrink(&self, number: u64) -> bool {
        match self.shrinkable(number) {
            None => false,
            Some((_, true)) => true,
            Some((file, false)) => {
                let shrinks = self.codec().is_some_and(|codec| file.would_shrink(codec).unwrap_or(false));
                self.would_shrink.lock().insert(number, (shrinks, file.bytes()));
                shrinks
            }
        }
    }

    /// Notes that the file's values are not to be compressed.
    pub fn leave_as_it_is(&self, number: u64) {
        self.would_shrink.lock().insert(number, (false, u64::MAX));
    }
}
