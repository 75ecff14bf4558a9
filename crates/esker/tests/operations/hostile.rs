//! Directories that somebody prepared: links that lead out of them, pipes, directories under the
//! engine's names, files of absurd lengths.
#![cfg(unix)]

use esker::{Compression, Db, KeyspaceOptions, Options};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// A directory of its own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("outside")).expect("a temporary directory");
        Scratch(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("db")
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.0.join("outside").join(name)
    }

    /// Everything that is outside of the database.
    fn all_outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(self.0.join("outside")).expect("it was made");
        files
            .map(|file| file.expect("it is there").path())
            .map(|path| (path.clone(), fs::read(path).expect("a file")))
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options() -> Options {
    Options::default()
        .background_threads(0)
        .wal_segment_bytes(8 << 10)
        .min_blob_size(1000)
        .compression(Compression::None)
}

/// Everything that makes files and removes them.
fn use_all(path: &Path) -> esker::Result<()> {
    let db = Db::open(path, options())?;
    let keyspace = db.keyspace("k", KeyspaceOptions::default())?;
    for round in 0..3u8 {
        for key in 0..40u8 {
            keyspace.put([key], vec![round; 300])?;
        }
        keyspace.put("large", vec![round; 5000])?;
        db.flush()?;
        keyspace.put("logged", [round])?;
    }
    keyspace.compact()?;
    db.close()
}

/// A closed database whose log still has something in it, and at least one file of every kind.
fn make(path: &Path) {
    use_all(path).expect("nothing is hostile yet");
    let db = Db::open(path, options()).expect("it was closed");
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).expect("it exists");
    keyspace.put("logged", "again").expect("it can be written");
    // Not closed: the log has to be replayed.
    std::mem::forget((db, keyspace));
}

/// Opening, using and repairing may fail, but they end.
fn survives(path: &Path) {
    let (done, ended) = mpsc::channel();
    let path = path.to_path_buf();
    std::thread::spawn(move || {
        let _ = Db::open_read_only(&path, options()).map(drop);
        let _ = use_all(&path);
        let _ = Db::repair(&path, options());
        let _ = use_all(&path);
        let _ = done.send(());
    });
    ended.recv_timeout(Duration::from_secs(300)).expect("it ended, and did not panic");
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there").file_name());
    entries.map(|name| name.into_string().expect("the engine's names")).collect()
}

/// In a child process: there the database was not closed, and its lock is gone.
fn made(scratch: &Scratch) -> PathBuf {
    let (path, source) = (scratch.database(), scratch.0.join("made"));
    make(&source);
    fs::create_dir_all(&path).expect("a temporary directory");
    for name in names(&source) {
        fs::copy(source.join(&name), path.join(&name)).expect("a file");
    }
    path
}

/// Each file in turn is outside, and a link leads there.
#[test]
fn what_a_link_leads_to_is_not_written() {
    let all = names(&made(&Scratch::new("names")));
    assert!(all.len() >= 6, "{all:?}");
    for name in all {
        let scratch = Scratch::new(&format!("link-{name}"));
        let path = made(&scratch);
        fs::rename(path.join(&name), scratch.outside(&name)).expect("one file system");
        symlink(scratch.outside(&name), path.join(&name)).expect("links are supported");
        let before = scratch.all_outside();
        survives(&path);
        assert!(scratch.all_outside() == before, "something was written through the link {name}");
    }
}

/// The names of files that are to be made lead outside.
#[test]
fn nothing_is_made_through_a_link() {
    for kind in ["table", "wal", "blob", "manifest", "CURRENT.tmp", "LOCK", "lost", "CHECKPOINT"] {
        let scratch = Scratch::new(&format!("make-{kind}"));
        let path = made(&scratch);
        let victim = scratch.outside("victim");
        fs::write(&victim, "precious").expect("a file");
        let planted: Vec<String> = match kind {
            "table" | "wal" | "blob" => (1..60).map(|number| format!("{number:06}.{kind}")).collect(),
            "manifest" => (1..60).map(|number| format!("MANIFEST-{number:06}")).collect(),
            other => vec![other.to_string()],
        };
        let target = if kind == "lost" { scratch.0.join("outside") } else { victim };
        for name in planted {
            if kind == "LOCK" {
                fs::remove_file(path.join(&name)).expect("it is there");
            }
            let _ = symlink(&target, path.join(name));
        }
        if kind == "lost" {
            // A repair has something to put away.
            fs::write(path.join("000999.table"), "no table").expect("a file");
            fs::write(path.join("CURRENT"), "damaged").expect("a file");
        }
        let before = scratch.all_outside();
        survives(&path);
        assert!(scratch.all_outside() == before, "{kind}: something was written through a link");
    }
}

/// A pipe has no other end, and would be waited for.
#[test]
fn pipes_and_directories_under_the_engines_names_hold_nobody_up() {
    for kind in [
        "000001.wal",
        "000900.wal",
        "000900.table",
        "000900.blob",
        "CURRENT",
        "CURRENT.tmp",
        "LOCK",
        "lost",
        "MANIFEST-000900",
    ] {
        for pipe in [true, false] {
            let scratch = Scratch::new(&format!("pipe-{pipe}-{kind}"));
            let path = made(&scratch).join(kind);
            let _ = fs::remove_file(&path);
            if pipe {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
                    .expect("pipes are supported");
                assert!(fs::symlink_metadata(&path).expect("it was made").file_type().is_fifo());
            } else {
                fs::create_dir(&path).expect("a directory");
            }
            survives(&scratch.database());
        }
    }
}

/// A file of a tebibyte, nothing of which is on the device: it is not read into memory.
#[test]
fn giants_are_refused_before_memory_is_taken_for_them() {
    let all = names(&made(&Scratch::new("giant-names")));
    for name in all.iter().map(String::as_str).chain(["000900.wal", "000900.table", "000900.blob", "MANIFEST-000900"]) {
        let scratch = Scratch::new(&format!("giant-{name}"));
        let path = made(&scratch);
        let file =
            fs::OpenOptions::new().write(true).create(true).truncate(false).open(path.join(name)).expect("a file");
        if file.set_len(1 << 40).is_ok() {
            survives(&path);
        }
    }
}
