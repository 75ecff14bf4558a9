//! What the simulated machine holds: files with their durable bytes and pending changes,
//! directories likewise.

use super::content::{Content, PAGE};
use super::earlier::{Earlier, SECTOR, padded};
use crate::base::random::Random;
use crate::error::{Error, Result};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A change to a file that is not durable yet.
#[derive(Clone)]
pub(super) enum Change {
    /// Bytes put at an offset; an append also moves the end of the file.
    Write { offset: usize, bytes: Arc<[u8]>, append: bool },
    /// The length was set.
    Resize(usize),
}

impl Change {
    pub(super) fn apply(&self, content: &mut Content) {
        match self {
            Change::Write { offset, bytes, .. } => content.write(*offset, bytes),
            Change::Resize(len) => content.resize(*len),
        }
    }

    /// The parts of a write that a dying writer leaves: a prefix, or some of its words.
    fn parts(&self, seed: u64) -> Vec<Change> {
        let Change::Write { offset, bytes, append } = self else { return Vec::new() };
        let mut random = Random::derived(seed, *offset as u64);
        let part = |start: usize, end: usize| Change::Write {
            offset: offset + start,
            bytes: bytes[start..end].into(),
            append: *append,
        };
        let words = bytes.len().div_ceil(8);
        if *append || random.index(2) == 0 {
            let end = (random.index(words + 1) * 8).min(bytes.len());
            return if end == 0 { Vec::new() } else { vec![part(0, end)] };
        }
        let kept_of_eight = random.index(8);
        let kept = (0..words).filter(|_| random.index(8) < kept_of_eight);
        kept.map(|word| part(word * 8, (word * 8 + 8).min(bytes.len()))).collect()
    }

    /// Where it puts bytes.
    fn written(&self) -> Range<usize> {
        match self {
            Change::Write { offset, bytes, .. } => *offset..*offset + bytes.len(),
            Change::Resize(_) => 0..0,
        }
    }

    /// Only what a change does to the length; what it adds reads as zeroes.
    pub(super) fn apply_length(&self, content: &mut Content) {
        match self {
            Change::Write { offset, bytes, .. } => content.resize(content.len().max(offset + bytes.len())),
            Change::Resize(len) => content.resize(*len),
        }
    }
}

/// The bytes of a file.
///
/// Invariant: unless a failed sync dropped changes, `visible` is `durable` with all of `pending`
/// applied in order.
#[derive(Clone, Default)]
pub(super) struct FileData {
    /// What reads see: the page cache.
    pub(super) visible: Content,
    /// What a power loss cannot take away.
    pub(super) durable: Content,
    pub(super) pending: Vec<Change>,
    /// For a file made for appending, the length at its last sync: what lies beyond may still be in
    /// the process.
    pub(super) flushed: Option<usize>,
    /// What was durable before that; `None` where it is not recorded.
    pub(super) earlier: Option<Arc<Earlier>>,
}

impl FileData {
    pub(super) fn settled(content: Content) -> FileData {
        FileData { visible: content.clone(), durable: content, ..FileData::default() }
    }

    /// The durable bytes, if earlier contents are recorded.
    fn before(&self) -> Option<Content> {
        self.earlier.as_ref().map(|_| self.durable.clone())
    }

    fn note_earlier(&mut self, before: Option<Content>, written: &[Range<usize>]) {
        if let (Some(before), Some(earlier)) = (before, &mut self.earlier) {
            Arc::make_mut(earlier).note(&before, written);
        }
    }

    /// The earlier contents that a disk keeps after a power loss that left `content`.
    pub(super) fn earlier_under(&self, content: &Content) -> Option<Arc<Earlier>> {
        let mut earlier = self.earlier.clone()?;
        let differs = |range: &Range<usize>| {
            padded(content, range.start, range.len()) != padded(&self.durable, range.start, range.len())
        };
        let sectors = self.pending.iter().flat_map(|change| {
            let written = change.written();
            let end = written.end.div_ceil(SECTOR);
            (written.start / SECTOR..end).map(|sector| sector * SECTOR..(sector + 1) * SECTOR)
        });
        let written: Vec<Range<usize>> = sectors.filter(differs).collect();
        if !written.is_empty() {
            Arc::make_mut(&mut earlier).note(&self.durable, &written);
        }
        Some(earlier)
    }

    /// Puts back what the sector or page around `at` held before it was last written; whether that
    /// changes anything.
    pub(super) fn lose_write(&mut self, at: usize, unit: usize) -> bool {
        let start = at / unit * unit;
        let there = self.visible.len().saturating_sub(start).min(unit);
        let is_pending = self.pending.iter().any(|change| {
            let written = change.written();
            written.start < start + unit && start < written.end
        });
        let earlier = || self.earlier.as_ref()?.unit(start, unit);
        let old = if is_pending { Some(padded(&self.durable, start, unit)) } else { earlier() };
        let Some(mut old) = old.filter(|old| old[..there] != padded(&self.visible, start, there)) else { return false };
        old.truncate(there);
        self.put_everywhere(start, &old);
        true
    }

    /// Replaces bytes wherever they are held.
    fn put_everywhere(&mut self, start: usize, bytes: &[u8]) {
        for content in [&mut self.visible, &mut self.durable] {
            let there = content.len().saturating_sub(start).min(bytes.len());
            content.write(start, &bytes[..there]);
        }
        for change in &mut self.pending {
            let Change::Write { offset, bytes: pending, .. } = change else { continue };
            let [from, to] = [start.max(*offset), (start + bytes.len()).min(*offset + pending.len())];
            if from < to {
                let mut damaged = pending.to_vec();
                damaged[from - *offset..to - *offset].copy_from_slice(&bytes[from - start..to - start]);
                *pending = damaged.into();
            }
        }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.visible);
        self.pending.push(change);
    }

    /// Inverts bits of one byte wherever it is held; false if there is no such byte.
    pub(super) fn flip(&mut self, at: usize, bits: u8) -> bool {
        let mut byte = [0];
        for content in [&mut self.visible, &mut self.durable] {
            if content.read(at, &mut byte) {
                content.write(at, &[byte[0] ^ bits]);
            }
        }
        for change in &mut self.pending {
            if let Change::Write { offset, bytes, .. } = change
                && (*offset..*offset + bytes.len()).contains(&at)
            {
                let mut damaged = bytes.to_vec();
                damaged[at - *offset] ^= bits;
                *bytes = damaged.into();
            }
        }
        at < self.visible.len()
    }

    /// Moves the pending changes to the durable image, and nothing else: what a failed sync dropped
    /// stays lost.
    pub(super) fn sync(&mut self) {
        let (before, pending) = (self.before(), std::mem::take(&mut self.pending));
        pending.iter().for_each(|change| change.apply(&mut self.durable));
        if before.is_some() {
            self.note_earlier(before, &pending.iter().map(Change::written).collect::<Vec<_>>());
        }
        self.mark_flushed();
    }

    /// Moves those bytes of the pending writes that lie in `range` to the durable image. The others
    /// stay pending, in their order.
    pub(super) fn sync_range(&mut self, range: &Range<usize>) {
        let (before, mut written) = (self.before(), Vec::new());
        let mut pending = Vec::new();
        for change in std::mem::take(&mut self.pending) {
            let Change::Write { offset, bytes, append } = &change else {
                pending.push(change);
                continue;
            };
            // The places in `bytes` where the range begins and ends.
            let [begin, end] = [range.start, range.end].map(|at| at.saturating_sub(*offset).min(bytes.len()));
            if begin >= end {
                pending.push(change);
                continue;
            }
            self.durable.write(offset + begin, &bytes[begin..end]);
            written.push(offset + begin..offset + end);
            for (at, rest) in [(*offset, &bytes[..begin]), (offset + end, &bytes[end..])] {
                if !rest.is_empty() {
                    pending.push(Change::Write { offset: at, bytes: rest.into(), append: *append });
                }
            }
        }
        self.pending = pending;
        self.note_earlier(before, &written);
    }

    /// Does what many systems do after a failed sync: the changes stay visible, but no later sync
    /// writes them.
    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
        self.mark_flushed();
    }

    /// A sync that fails when it has written some of the pages.
    pub(super) fn keep_some(&mut self, seed: u64) {
        let mut random = Random::derived(seed, 1);
        let (before, mut written) = (self.before(), Vec::new());
        for change in std::mem::take(&mut self.pending) {
            let Change::Write { offset, bytes, .. } = &change else {
                change.apply(&mut self.durable);
                continue;
            };
            let mut start = 0;
            while start < bytes.len() {
                let end = (start + PAGE - (offset + start) % PAGE).min(bytes.len());
                if random.index(2) == 0 {
                    self.durable.write(offset + start, &bytes[start..end]);
                    written.push(offset + start..offset + end);
                }
                start = end;
            }
        }
        self.note_earlier(before, &written);
        self.mark_flushed();
    }

    fn mark_flushed(&mut self) {
        if self.flushed.is_some() {
            self.flushed = Some(self.visible.len());
        }
    }
}

/// A file, whatever its names. The number is given in order of creation, so that seeded choices
/// repeat.
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) data: Mutex<FileData>,
    /// Counts damaged bytes, so that a mapping can tell whether it is up to date.
    pub(super) damages: AtomicU64,
}

impl Inode {
    pub(super) fn new(number: u64, data: FileData) -> Arc<Inode> {
        Arc::new(Inode { number, data: Mutex::new(data), damages: AtomicU64::new(0) })
    }
}

/// What a name stands for. The contents of a directory are found by its path.
#[derive(Clone)]
pub(super) enum Entry {
    File(Arc<Inode>),
    Directory,
}

/// A change to the names of one directory that is not durable yet.
#[derive(Clone)]
pub(super) enum NameChange {
    Set(String, Entry),
    Remove(String),
    /// Within one directory a rename is one step; across two it is a `Set` there and a `Remove`
    /// here.
    Rename {
        from: String,
        to: String,
        entry: Entry,
    },
}

pub(super) type Names = BTreeMap<String, Entry>;

impl NameChange {
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Set(name, entry) => {
                names.insert(name.clone(), entry.clone());
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
            NameChange::Rename { from, to, entry } => {
                names.remove(from);
                names.insert(to.clone(), entry.clone());
            }
        }
    }
}

/// The names in a directory. Invariant: unless a failed sync dropped changes, `visible` is
/// `durable` with all of `pending` applied in order.
#[derive(Clone, Default)]
pub(super) struct Directory {
    pub(super) visible: Names,
    pub(super) durable: Names,
    pub(super) pending: Vec<NameChange>,
}

impl Directory {
    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.visible);
        self.pending.push(change);
    }

    /// Moves the pending names to the disk, and nothing else: what a failed sync dropped stays
    /// lost.
    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// What a sync that fails leaves of the pending names. Those of sub-directories stay: a
    /// directory that is there cannot be made anew.
    pub(super) fn fail_sync(&mut self, failure: SyncFailure) {
        let kept = match failure {
            SyncFailure::DropPending => 0,
            SyncFailure::KeepPending => self.pending.len(),
            SyncFailure::KeepSome(seed) => Random::derived(seed, 0).index(self.pending.len() + 1),
        };
        let mut number = 0;
        self.pending.retain(|change| {
            number += 1;
            number <= kept || matches!(change, NameChange::Set(_, Entry::Directory))
        });
        self.sync();
    }
}

/// How a sync of a file fails.
///
/// ```
/// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// env.fail_sync(0, SyncFailure::KeepPending);
/// let mut file = env.create(Path::new("note"))?;
/// file.append(b"ada")?;
/// assert!(file.sync().is_err()); // reported, and durable all the same
/// env.sync_dir(Path::new(""))?;
/// assert_eq!(env.crash(&CrashMode::LoseAll, 0).file_bytes(Path::new("note")), Some(b"ada".to_vec()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncFailure {
    /// The pending changes are dropped but stay visible until the next crash, and the next sync
    /// succeeds without them: what Linux does after a write error.
    DropPending,
    /// The error is reported although everything became durable.
    KeepPending,
    /// Some pages, or of a directory some first changes, became durable, as the seed says; the
    /// others are dropped.
    KeepSome(u64),
}

/// Everything behind the one lock that orders all mutating calls. An inode's own lock is taken
/// after it.
pub(super) struct State {
    /// By normal path; a directory comes after its parents. The two roots, `/` and the empty path,
    /// always exist.
    pub(super) directories: BTreeMap<PathBuf, Directory>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) next_inode: u64,
    pub(super) mutations: u64,
    pub(super) power_loss_at: Option<u64>,
    /// Which part of the call that dies still happens, as a seed.
    pub(super) torn_call: Option<u64>,
    pub(super) capacity: Option<u64>,
    /// Whether files that are opened can be mapped.
    pub(super) mapped: bool,
    /// Whether files that are made remember what their sectors held before.
    pub(super) remembers: bool,
    /// How many successful syncs come before the one that fails, and how it fails.
    pub(super) failing_sync: Option<(u64, SyncFailure)>,
    /// The same for syncs of directories.
    pub(super) failing_sync_dir: Option<(u64, SyncFailure)>,
}

impl Default for State {
    fn default() -> State {
        let roots = [PathBuf::new(), PathBuf::from("/")];
        State {
            directories: roots.into_iter().map(|root| (root, Directory::default())).collect(),
            locks: BTreeSet::new(),
            next_inode: 0,
            mutations: 0,
            power_loss_at: None,
            torn_call: None,
            capacity: None,
            mapped: false,
            remembers: false,
            failing_sync: None,
            failing_sync_dir: None,
        }
    }
}

impl State {
    pub(super) fn new_inode(&mut self, mut data: FileData) -> Arc<Inode> {
        data.earlier = self.remembers.then(Arc::default);
        let number = self.next_inode;
        self.next_inode += 1;
        Inode::new(number, data)
    }

    /// The directory that would hold `path`, and the name in it.
    pub(super) fn parent(&mut self, operation: &'static str, path: &Path) -> Result<(&mut Directory, String)> {
        let (directory, name) = split(operation, path)?;
        match self.directories.get_mut(&directory) {
            Some(directory) => Ok((directory, name)),
            None => Err(not_found(operation, path)),
        }
    }

    /// The file of that name, if there is one.
    pub(super) fn find(&mut self, operation: &'static str, path: &Path) -> Result<Option<Arc<Inode>>> {
        let (directory, name) = self.parent(operation, path)?;
        match directory.visible.get(&name) {
            Some(Entry::File(inode)) => Ok(Some(inode.clone())),
            Some(Entry::Directory) => Err(Error::io(operation, path, io::ErrorKind::IsADirectory.into())),
            None => Ok(None),
        }
    }

    pub(super) fn existing(&mut self, operation: &'static str, path: &Path) -> Result<Arc<Inode>> {
        self.find(operation, path)?.ok_or_else(|| not_found(operation, path))
    }

    pub(super) fn create_directory(&mut self, directory: &Path) -> Result<()> {
        const OPERATION: &str = "create the directory";
        let normal = normal(directory);
        let mut missing: Vec<&Path> =
            normal.ancestors().take_while(|ancestor| !self.directories.contains_key(*ancestor)).collect();
        while let Some(next) = missing.pop() {
            if self.find(OPERATION, next)?.is_some() {
                return Err(Error::io(OPERATION, directory, io::ErrorKind::AlreadyExists.into()));
            }
            let (parent, name) = self.parent(OPERATION, next)?;
            parent.change(NameChange::Set(name, Entry::Directory));
            self.directories.insert(next.to_path_buf(), Directory::default());
        }
        Ok(())
    }

    /// How many bytes the disk still takes. Only files that have a name count.
    pub(super) fn room(&self) -> u64 {
        let Some(capacity) = self.capacity else { return u64::MAX };
        let mut seen = HashSet::new();
        let mut used = 0u64;
        for entry in self.directories.values().flat_map(|directory| directory.visible.values()) {
            if let Entry::File(inode) = entry
                && seen.insert(inode.number)
            {
                used += inode.data.lock().visible.len() as u64;
            }
        }
        capacity.saturating_sub(used)
    }
}

/// What all clones of an environment and its open files share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Set by the first mutating call that the power loss prevented; from then on nothing works.
    pub(super) dead: AtomicBool,
}

impl Shared {
    pub(super) fn new(state: State) -> Shared {
        Shared { state: Mutex::new(state), dead: AtomicBool::new(false) }
    }

    pub(super) fn check_alive(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.dead.load(Ordering::Acquire) {
            return Err(Error::io(operation, path, io::Error::other("simulated power loss")));
        }
        Ok(())
    }

    /// Counts a mutating call and admits it, or loses the power. The guard orders the call among
    /// all others.
    pub(super) fn begin(&self, operation: &'static str, path: &Path) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        if state.power_loss_at.is_some_and(|at| state.mutations >= at) {
            self.dead.store(true, Ordering::Release);
        }
        self.check_alive(operation, path)?;
        state.mutations += 1;
        Ok(state)
    }

    /// The same for a call that is to make this change: the one that dies may have made a part of
    /// it.
    pub(super) fn begin_write(
        &self,
        operation: &'static str,
        path: &Path,
        inode: &Inode,
        change: &Change,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        let is_dead = self.dead.load(Ordering::Acquire);
        let dies = !is_dead && state.power_loss_at.is_some_and(|at| state.mutations >= at);
        if let Some(seed) = state.torn_call.take_if(|_| dies) {
            let mut data = inode.data.lock();
            change.parts(seed).into_iter().for_each(|part| data.change(part));
        }
        drop(state);
        self.begin(operation, path)
    }

    pub(super) fn sync(&self, inode: &Inode, path: &Path) -> Result<()> {
        self.sync_as(inode, path, FileData::sync)
    }

    pub(super) fn sync_range(&self, inode: &Inode, path: &Path, range: Range<usize>) -> Result<()> {
        self.sync_as(inode, path, |data| data.sync_range(&range))
    }

    fn sync_as(&self, inode: &Inode, path: &Path, sync: impl FnOnce(&mut FileData)) -> Result<()> {
        let mut state = self.begin("sync", path)?;
        let mut data = inode.data.lock();
        let Some(failure) = due(&mut state.failing_sync) else {
            sync(&mut data);
            return Ok(());
        };
        match failure {
            SyncFailure::DropPending => data.drop_pending(),
            SyncFailure::KeepPending => sync(&mut data),
            SyncFailure::KeepSome(seed) => data.keep_some(seed),
        }
        Err(failed_sync("sync", path))
    }
}

/// The failure if it is due now, else one success less to wait for.
pub(super) fn due(failing: &mut Option<(u64, SyncFailure)>) -> Option<SyncFailure> {
    match failing {
        Some((0, _)) => failing.take().map(|(_, failure)| failure),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    }
}

pub(super) fn failed_sync(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, io::Error::other("simulated failure of a sync"))
}

pub(super) fn not_found(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, io::ErrorKind::NotFound.into())
}

pub(super) fn disk_full(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, io::ErrorKind::StorageFull.into())
}

/// The path without `.` and `..`, so that one file has one path.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The normal path of the parent, and the last name.
pub(super) fn split(operation: &'static str, path: &Path) -> Result<(PathBuf, String)> {
    let normal = normal(path);
    let name = normal.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    match (normal.parent(), name) {
        (Some(parent), Some(name)) => Ok((parent.to_path_buf(), name)),
        _ => Err(Error::io(operation, path, io::ErrorKind::InvalidInput.into())),
    }
}
