//! An environment that does some work in the middle of a call.

use esker::env::mem::MemEnv;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use esker::{Error, Result};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub type Work = Box<dyn FnOnce() + Send>;
/// Work, and of which files it is done before they are looked for.
type BeforeLook = (fn(&Path) -> bool, Work);

/// Does some work, once, before a file is created that `is_it`.
#[derive(Clone)]
pub struct Interrupting {
    inner: MemEnv,
    is_it: fn(&Path) -> bool,
    /// How long the work is waited for, which may itself wait for what it interrupts.
    patience: Duration,
    has_links: bool,
    also_listed: Option<&'static str>,
    listings: Arc<AtomicU64>,
    work: Arc<Mutex<Option<Work>>>,
    before_looks: Arc<Mutex<VecDeque<BeforeLook>>>,
}

impl Interrupting {
    pub fn new(env: &MemEnv, is_it: fn(&Path) -> bool, patience: Duration) -> Interrupting {
        Interrupting {
            inner: env.clone(),
            is_it,
            patience,
            has_links: true,
            also_listed: None,
            listings: Arc::default(),
            work: Arc::default(),
            before_looks: Arc::default(),
        }
    }

    /// Files can only be copied.
    pub fn without_links(self) -> Interrupting {
        Interrupting { has_links: false, ..self }
    }

    /// Directories are listed with a file that is removed before it can be opened: every second
    /// time that one is listed.
    pub fn listing(self, name: &'static str) -> Interrupting {
        Interrupting { also_listed: Some(name), ..self }
    }

    /// Does that then, in another thread, since an environment's own calls must not; and goes on
    /// when it has ended, or patience has.
    pub fn interrupt_with(&self, work: impl FnOnce() + Send + 'static) {
        *self.work.lock().unwrap() = Some(Box::new(work));
    }

    /// Does the first of these, in the same way, before it is looked whether a file is there of
    /// which that holds; then waits for that of the second, and so on.
    pub fn interrupt_looks_with(&self, works: impl IntoIterator<Item = BeforeLook>) {
        self.before_looks.lock().unwrap().extend(works);
    }

    /// Whether all of it has begun.
    pub fn has_interrupted(&self) -> bool {
        self.work.lock().unwrap().is_none() && self.before_looks.lock().unwrap().is_empty()
    }

    fn wait_for(&self, work: Work) {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            work();
            let _ = done.send(());
        });
        let ended = ended.recv_timeout(self.patience);
        assert!(ended != Err(RecvTimeoutError::Disconnected), "the work has panicked");
    }
}

impl std::fmt::Debug for Interrupting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Env for Interrupting {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let work = (self.is_it)(path).then(|| self.work.lock().unwrap().take()).flatten();
        work.into_iter().for_each(|work| self.wait_for(work));
        self.inner.create(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        if self.has_links {
            return self.inner.hard_link(from, to);
        }
        Err(Error::io("link", from, std::io::ErrorKind::Unsupported.into()))
    }
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.inner.create_dir_all(directory)
    }
    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let mut names = self.inner.list(directory)?;
        let is_there = self.listings.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        names.extend(self.also_listed.filter(|_| is_there).map(String::from));
        Ok(names)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        let mut works = self.before_looks.lock().unwrap();
        let is_next = works.front().is_some_and(|(is_it, _)| is_it(path));
        let work = if is_next { works.pop_front() } else { None };
        drop(works);
        work.into_iter().for_each(|(_, work)| self.wait_for(work));
        self.inner.exists(path)
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(path)
    }
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        self.inner.create_growing(path)
    }
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        self.inner.open_log(path, create_bytes, mapped)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }
    fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.inner.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
}
