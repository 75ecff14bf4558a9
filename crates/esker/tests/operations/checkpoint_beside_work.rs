//! A checkpoint that has to copy whole files holds up nobody meanwhile, and copies what was there
//! when it began.

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use esker::{Db, Error, Result};
use std::path::Path;
use std::sync::{Arc, Mutex};

const COPY: &str = "copy";

type Work = Box<dyn FnOnce() + Send>;

/// An environment without links that does some work before the first table of the copy is written.
#[derive(Clone)]
struct Interrupting {
    inner: MemEnv,
    work: Arc<Mutex<Option<Work>>>,
}

impl std::fmt::Debug for Interrupting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Env for Interrupting {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        if path.starts_with(COPY) && path.extension().is_some_and(|ending| ending == "table") {
            let work = self.work.lock().unwrap().take();
            // In another thread: an environment's own calls must not do that.
            work.into_iter().for_each(|work| std::thread::spawn(work).join().unwrap());
        }
        self.inner.create(path)
    }
    fn hard_link(&self, from: &Path, _to: &Path) -> Result<()> {
        Err(Error::io("link", from, std::io::ErrorKind::Unsupported.into()))
    }
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.inner.create_dir_all(directory)
    }
    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.inner.list(directory)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
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

#[test]
fn writes_flushes_and_merges_go_on_while_it_copies() {
    let env = MemEnv::new();
    let interrupting = Interrupting { inner: env.clone(), work: Arc::default() };
    let options = || simulated(&env).min_blob_size(1000);
    let db = Db::open(DIRECTORY, options().env(Arc::new(interrupting.clone()))).unwrap();
    let names = keyspace(&db, "names");
    for round in 0..3u32 {
        for number in 0..200u32 {
            names.put(number.to_be_bytes(), (round * number).to_be_bytes()).unwrap();
        }
        names.put("large", vec![round as u8; 5000]).unwrap();
        db.flush().unwrap();
    }
    let expected = all(&names);
    let tables: Vec<String> = files(&env).into_keys().filter(|name| name.ends_with(".table")).collect();
    let (for_work, in_work) = (db.clone(), names.clone());
    *interrupting.work.lock().unwrap() = Some(Box::new(move || {
        in_work.put("large", vec![9; 5000]).unwrap();
        in_work.delete_range(..).unwrap();
        for_work.compact().unwrap();
        in_work.put("after", "the checkpoint began").unwrap();
        for_work.flush().unwrap();
    }));
    db.checkpoint(COPY).unwrap();
    assert!(interrupting.work.lock().unwrap().is_none());
    // What it copied had gone by then.
    assert!(tables.iter().all(|name| !files(&env).contains_key(name)));
    let copy = Db::open(COPY, options()).unwrap();
    copy.verify().unwrap();
    assert_eq!(all(&keyspace(&copy, "names")), expected);
    assert_eq!(names.iter().count(), 1);
}

/// Seen: a checkpoint that has to copy succeeded over a damaged file, and the damage was found when
/// the copy was opened. Trigger: no hard links, and a flipped bit anywhere in what is copied. Cost:
/// a backup that is none.
#[test]
fn a_checkpoint_that_copies_refuses_what_has_rotted() {
    let env = MemEnv::new();
    let interrupting = Interrupting { inner: env.clone(), work: Arc::default() };
    let options = simulated(&env).min_blob_size(1000);
    let db = Db::open(DIRECTORY, options.clone().env(Arc::new(interrupting))).unwrap();
    let names = keyspace(&db, "names");
    for number in 0..50u32 {
        names.put(number.to_be_bytes(), number.to_string()).unwrap();
    }
    (0..3u8).for_each(|number| names.put([number], vec![number; 2000]).unwrap());
    db.flush().unwrap();
    let before = files(&env);
    let stored = before.iter().filter(|(name, _)| name.ends_with(".table") || name.ends_with(".blob"));
    let mut flips = 0;
    for (name, bytes) in stored {
        let path = Path::new(DIRECTORY).join(name);
        // In a blob file: a byte of each value, behind the header.
        let places: Vec<usize> =
            if name.ends_with(".table") { (0..bytes.len()).step_by(3).collect() } else { vec![41, 2100, 6000] };
        for at in places {
            assert!(env.flip_bit(&path, at as u64, (at % 8) as u8));
            match db.checkpoint(COPY) {
                Err(Error::Corruption { path: named, offset, .. }) => {
                    assert!(named == path && offset <= bytes.len() as u64)
                }
                other => panic!("byte {at} of {name}: {other:?}"),
            }
            let problem = db.health().problem.unwrap_or_default();
            assert!(problem.contains(name), "byte {at} of {name}: health says {problem:?}");
            assert!(!env.files().iter().any(|path| path.starts_with(COPY)), "{:?}", env.files());
            assert!(env.flip_bit(&path, at as u64, (at % 8) as u8));
            flips += 1;
            db.verify().unwrap();
            assert_eq!(db.health().problem, None);
        }
    }
    assert!(flips > 100, "{flips} flips");
    assert_eq!(files(&env), before, "the inputs are as they were");
    db.checkpoint(COPY).unwrap();
    assert_eq!(all(&keyspace(&Db::open(COPY, options).unwrap(), "names")), all(&names));
}
