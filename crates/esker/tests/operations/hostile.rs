//! Directories that somebody prepared: links that lead out of them, pipes, directories under the
//! engine's names, files of absurd lengths, names that are almost the engine's. Each is used in a
//! process that may take little memory.
#![cfg(unix)]

use esker::{ChangeRetention, Compression, Db, Keyspace, KeyspaceOptions, Options};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Where the child process finds the directory of the database, and whether it does everything that
/// there is to do.
const CHILD: &str = "ESKER_OPERATIONS_HOSTILE";
const EVERYTHING: &str = "ESKER_OPERATIONS_HOSTILE_EVERYTHING";
/// What a small database takes beside its files, as in `history::forged`.
#[cfg(target_os = "linux")]
const FOOTPRINT_BYTES: u64 = 192 << 20;
/// The pairs that [`use_all`] leaves behind.
const PAIRS: usize = 42;
/// What is in the files of others.
const PRECIOUS: &str = "precious";

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
        .write_buffer_bytes(1 << 20)
        .block_cache_bytes(4 << 20)
        .wal_segment_bytes(8 << 10)
        .min_blob_size(1000)
        .compression(Compression::None)
        // All of it is kept.
        .keep_changes(ChangeRetention::Bytes(1 << 20))
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

/// Reading, following, verifying, opening, using and repairing may fail, but they end, and take
/// little memory.
fn survives(path: &Path) {
    in_little_memory(path, false);
}

/// What became of everything that can be done with the database, in this order: `read`, `follow`,
/// `verify directory`, `use`, `repair`, `use again`, `destroy`; `ok`, or the error. A database that
/// can be used is damaged before the repair.
fn outcomes(path: &Path) -> BTreeMap<String, String> {
    let text = in_little_memory(path, true);
    let outcome =
        |line: &str| line.split_once("outcome ")?.1.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(outcome).collect()
}

/// Works on the database in a child process, which must succeed; what it has printed. An allocation
/// beyond the limit ends it.
fn in_little_memory(path: &Path, everything: bool) -> String {
    let mut command = Command::new(std::env::current_exe().expect("the tests are a program"));
    command.args(["hostile::in_a_child_process", "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, path);
    if everything {
        command.env(EVERYTHING, "1");
    }
    let child = command.output().expect("the tests can be run");
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{}: {}\n{text}", path.display(), child.status);
    text
}

#[test]
fn in_a_child_process() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        limit_the_process(&path);
        if std::env::var_os(EVERYTHING).is_some() {
            do_everything(&path);
        } else {
            try_the_most(&path);
        }
        let _ = done.send(());
    });
    ended.recv_timeout(Duration::from_secs(300)).expect("it ended, and did not panic");
}

/// The limit of `history::forged`, on addresses: what the process has before, what of the files is
/// on the device twice, one block or value of the largest size that they can make, and what a small
/// database takes in any case.
#[cfg(target_os = "linux")]
fn limit_the_process(path: &Path) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let files = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there").path());
    let bytes: u64 = files.map(|file| fs::metadata(file).map_or(0, |metadata| metadata.blocks() * 512)).sum();
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let field = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("it is always there");
    let kib: u64 = field.trim().trim_end_matches(" kB").parse().expect("a number");
    let addresses = (kib << 10) + FOOTPRINT_BYTES + bytes * (2 + 255);
    setrlimit(Resource::As, Rlimit { current: Some(addresses), ..getrlimit(Resource::As) }).expect("it gets lower");
}

/// Elsewhere nothing tells what the process has before.
#[cfg(not(target_os = "linux"))]
fn limit_the_process(_path: &Path) {}

fn try_the_most(path: &Path) {
    read_only(path, &|_, _| ());
    let _ = use_all(path);
    let _ = Db::repair(path, options());
    let _ = use_all(path);
}

fn do_everything(path: &Path) {
    let copy = path.with_file_name("copy");
    let say = |what: &str, result: esker::Result<()>| match result {
        Ok(()) => println!("outcome {what}: ok"),
        Err(error) => println!("outcome {what}: {error:?}"),
    };
    read_only(path, &say);
    let used = Db::open(path, options()).and_then(|db| use_in_every_way(&db, &copy));
    let works = used.is_ok();
    say("use", used);
    if works {
        damage(path);
    }
    say("repair", Db::repair(path, options()).map(drop));
    say("use again", Db::open(path, options()).and_then(|db| use_in_every_way(&db, &copy)));
    say("destroy", Db::destroy(path, options()));
}

/// Everything that writes nothing.
fn read_only(path: &Path, say: &dyn Fn(&str, esker::Result<()>)) {
    let before = stamps(path);
    say("read", read(path));
    say("follow", follow(path));
    say("verify directory", Db::verify_directory(path, options(), &mut |_| ()).map(drop));
    assert_eq!(stamps(path), before, "something was written in {}", path.display());
}

/// Of each file its length and when it was written. Links are not followed.
fn stamps(path: &Path) -> BTreeMap<OsString, (u64, i64, i64)> {
    let entries = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there"));
    let stamped = entries.map(|entry| {
        let metadata = fs::symlink_metadata(entry.path()).expect("it is there");
        (entry.file_name(), (metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    });
    stamped.collect()
}

fn read(path: &Path) -> esker::Result<()> {
    let db = Db::open_read_only(path, options())?;
    read_all(&db.existing_keyspace("k")?)?;
    read_changes(&db)
}

fn follow(path: &Path) -> esker::Result<()> {
    let follower = Db::open_follower(path, options())?;
    follower.catch_up()?;
    follower.lag()?;
    read_all(&follower.db().existing_keyspace("k")?)?;
    read_changes(follower.db())
}

/// From the first one to the end.
fn read_changes(db: &Db) -> esker::Result<()> {
    db.changes(0)?.try_for_each(|batch| batch.map(drop))
}

fn read_all(keyspace: &Keyspace) -> esker::Result<()> {
    assert_eq!(keyspace.get([7u8])?.as_deref(), Some(&[2u8; 300][..]));
    let pairs = keyspace.iter().collect::<esker::Result<Vec<_>>>()?;
    assert_eq!(pairs.len(), PAIRS);
    Ok(())
}

/// Leaves the pairs as they are.
fn use_in_every_way(db: &Db, copy: &Path) -> esker::Result<()> {
    let keyspace = db.existing_keyspace("k")?;
    read_all(&keyspace)?;
    keyspace.put([7u8], [2u8; 300])?;
    keyspace.put("large", [2u8; 5000])?;
    db.flush()?;
    db.verify()?;
    db.compact()?;
    let _ = fs::remove_dir_all(copy);
    db.checkpoint(copy)?;
    read_all(&Db::open(copy, options())?.existing_keyspace("k")?)?;
    read_changes(db)?;
    read_all(&keyspace)
}

/// Of the manifest nothing is left: a repair looks at all files then.
fn damage(path: &Path) {
    for entry in fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there")) {
        let number = entry.file_name().to_str().and_then(|name| name.strip_prefix("MANIFEST-")).map(str::len);
        // The engine's own, and not one like it.
        if number == Some(6) && entry.path().is_file() {
            fs::remove_file(entry.path()).expect("a file");
        }
    }
    fs::write(path.join("CURRENT"), "damaged").expect("a file");
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

/// What is in a directory, without what a repair has moved away, and of a directory in it the file
/// that was put there.
fn contents(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let held = |path: PathBuf| if path.is_dir() { path.join(PRECIOUS) } else { path };
    let entries = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there"));
    let others = entries.filter(|entry| entry.file_name() != "lost");
    others.map(|entry| (entry.file_name(), fs::read(held(entry.path())).expect("a file"))).collect()
}

/// Puts files of others in the directory. A file system that refuses one of the names has no such
/// file.
fn plant(path: &Path, names: &[OsString]) -> BTreeMap<OsString, Vec<u8>> {
    let planted = names.iter().filter(|name| {
        let written = fs::write(path.join(name), PRECIOUS);
        assert!(written.is_ok() || !cfg!(target_os = "linux"), "{name:?}: {written:?}");
        written.is_ok()
    });
    planted.map(|name| (name.clone(), PRECIOUS.into())).collect()
}

/// Does everything with the database, all of which succeeds, and leaves what was planted there, and
/// what is outside.
fn assert_harmless(name: &str, scratch: &Scratch, planted: &BTreeMap<OsString, Vec<u8>>) {
    let victim = scratch.outside("victim");
    fs::write(&victim, PRECIOUS).expect("a file");
    let before = scratch.all_outside();
    let found = outcomes(&scratch.database());
    assert_eq!(found.len(), 7, "{name}: {found:#?}");
    assert!(found.values().all(|outcome| outcome == "ok"), "{name}: {found:#?}");
    assert_eq!(&contents(&scratch.database()), planted, "{name}: a file of others was changed, or one of ours stays");
    assert!(scratch.all_outside() == before, "{name}: something was written outside");
    let mut beside: Vec<_> = fs::read_dir(&scratch.0).expect("it is there").map(|e| e.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["copy", "db", "made", "outside"], "{name}: something was made beside the database");
}

/// No UTF-8, the longest that there are, lines that break, numbers that no file has: names that the
/// engine gives to no file, though they are like those that it gives.
fn names_of_others() -> Vec<OsString> {
    let longest = |digit: &str, ending: &str| digit.repeat(255 - ending.len()) + ending;
    let no_text: [&[u8]; 4] = [b"\xff\xfe.wal", b"000001\xff.table", b"\x80", b"MANIFEST-\xc3"];
    let text = [
        "\n",
        "000001\n.wal",
        "000001.wal\n",
        "CURRENT\n",
        "MANIFEST-000001\n",
        "LOCK\nCURRENT",
        "+00001.wal",
        "-00001.table",
        "0x0001.blob",
        "000001.WAL",
        "000001.wal ",
        " CURRENT",
        ".wal",
        ".table",
        ".blob",
        "MANIFEST-",
        "REPAIR.1",
        "\u{ff10}\u{ff10}\u{ff10}\u{ff10}\u{ff10}\u{ff11}.wal",
        // From 2^56 on, and from 2^64 on, there are no numbers.
        "72057594037927936.wal",
        "72057594037927936.table",
        "MANIFEST-72057594037927936",
        "18446744073709551616.blob",
    ];
    let long = [longest("x", ".wal"), longest("9", ".wal"), longest("9", ".table"), longest("9", ".blob")];
    let no_text = no_text.into_iter().map(|name| OsString::from_vec(name.to_vec()));
    no_text.chain(text.into_iter().map(OsString::from)).chain(long.into_iter().map(OsString::from)).collect()
}

#[test]
fn files_of_others_with_odd_names_stay_and_stop_nothing() {
    let scratch = Scratch::new("odd-names");
    let path = made(&scratch);
    let planted = plant(&path, &names_of_others());
    assert_harmless("odd names", &scratch, &planted);
}

#[test]
fn directories_under_the_engines_names_keep_what_is_in_them() {
    let scratch = Scratch::new("odd-directories");
    let path = made(&scratch);
    let mut planted = BTreeMap::new();
    for name in ["000900.wal", "000900.table", "000900.blob", "MANIFEST-000900", "0000001.wal", "notes"] {
        fs::create_dir(path.join(name)).expect("a directory");
        fs::write(path.join(name).join(PRECIOUS), PRECIOUS).expect("a file");
        planted.insert(OsString::from(name), PRECIOUS.into());
    }
    assert_harmless("directories", &scratch, &planted);
}

/// A number has at least six digits, and may have more: such a file is taken for one of the
/// engine's, under another name than the engine would give it.
#[test]
fn a_number_with_too_many_zeroes_stops_nothing() {
    let longest = "0".repeat(250) + "1.wal";
    for name in ["0000001.wal", "0000900.wal", "0000900.table", "0000900.blob", "MANIFEST-0000900", &longest] {
        // Before an open, which removes such files as left over, and after one.
        for damaged in [false, true] {
            let scratch = Scratch::new("too-many-zeroes");
            let path = made(&scratch);
            plant(&path, &[OsString::from(name)]);
            if damaged {
                damage(&path);
            }
            fs::write(scratch.outside("victim"), PRECIOUS).expect("a file");
            let before = scratch.all_outside();
            let found = outcomes(&path);
            for what in ["repair", "use again", "destroy"] {
                assert_eq!(found[what], "ok", "{name}, damaged: {damaged}: {found:#?}");
            }
            assert!(damaged || found["use"] == "ok", "{name}: {found:#?}");
            assert!(scratch.all_outside() == before, "{name}: something was written outside");
            let left = contents(&path);
            assert!(left.keys().all(|left| left == name), "{name}, damaged: {damaged}: {left:?}");
        }
    }
}

/// Counted on from, such a number would be that of the next manifest, which no open takes for one.
#[test]
fn a_blob_file_with_an_impossible_number_stops_nothing() {
    for number in [1 << 56, (1 << 63) + 1, u64::MAX] {
        let scratch = Scratch::new(&format!("impossible-blob-{number}"));
        let path = made(&scratch);
        let planted = plant(&path, &[OsString::from(format!("{number}.blob"))]);
        assert_harmless(&number.to_string(), &scratch, &planted);
    }
}

/// A line of `CURRENT`, with the checksum that belongs to it.
fn line(name: &str) -> String {
    // As in `doc/format/manifest.md`, seeded with nothing.
    let sum = twox_hash::XxHash3_64::oneshot(name.as_bytes()).wrapping_mul(0x9E37_79B1_85EB_CA87) >> 32;
    format!("{name} {sum:08x}\n")
}

/// `CURRENT` is what everybody says it is, and nobody follows it out of the directory.
fn assert_current_refused(name: &str, scratch: &Scratch) {
    let before = scratch.all_outside();
    let found = outcomes(&scratch.database());
    assert!(found["use"].starts_with("Corruption") && found["use"].contains("/db/CURRENT\""), "{name}: {found:#?}");
    let typed = |outcome: &str| outcome.starts_with("Corruption") || outcome.starts_with("NotFound");
    assert!(typed(&found["read"]), "{name}: {found:#?}");
    for what in ["repair", "use again", "destroy"] {
        assert_eq!(found[what], "ok", "{name}: {found:#?}");
    }
    assert!(scratch.all_outside() == before, "{name}: something was written outside");
    assert!(contents(&scratch.database()).is_empty(), "{name}");
}

#[test]
fn a_current_that_names_what_is_no_manifest_of_the_directory_is_refused() {
    let elsewhere = std::env::temp_dir().join(format!("esker-hostile-current-{}", std::process::id()));
    let absolute = elsewhere.join("outside").join("MANIFEST-000001");
    let absolute = absolute.to_str().expect("a temporary directory in UTF-8");
    let names = [
        "",
        ".",
        "../outside/MANIFEST-000001",
        "./MANIFEST-000001",
        "MANIFEST-../outside/MANIFEST-000001",
        "MANIFEST-000001/../../outside/MANIFEST-000001",
        "MANIFEST-+00001",
        "MANIFEST-72057594037927936",
        "MANIFEST-99999999999999999999",
        "000001.wal",
        "LOCK",
        absolute,
    ];
    for name in names {
        let scratch = Scratch::new("current");
        let path = made(&scratch);
        // One that would do, if it were followed.
        let manifest = names_beginning(&path, "MANIFEST-").pop().expect("there is one");
        fs::copy(path.join(&manifest), scratch.outside("MANIFEST-000001")).expect("a file");
        fs::write(path.join("CURRENT"), line(name)).expect("a file");
        assert_current_refused(name, &scratch);
    }
    // What makes the others hostile is right: one with the name of the manifest is taken.
    let scratch = Scratch::new("current-sound");
    let path = made(&scratch);
    let manifest = names_beginning(&path, "MANIFEST-").pop().expect("there is one");
    fs::write(path.join("CURRENT"), line(&manifest)).expect("a file");
    assert_harmless("sound", &scratch, &BTreeMap::new());
}

fn names_beginning(path: &Path, beginning: &str) -> Vec<String> {
    names(path).into_iter().filter(|name| name.starts_with(beginning)).collect()
}

/// To a file of another program, and to none, which must not be made.
#[test]
fn a_current_that_is_a_link_out_of_the_directory_is_refused() {
    for name in ["victim", "absent"] {
        let scratch = Scratch::new("current-link");
        let path = made(&scratch);
        fs::write(scratch.outside("victim"), PRECIOUS).expect("a file");
        fs::remove_file(path.join("CURRENT")).expect("it was made");
        symlink(scratch.outside(name), path.join("CURRENT")).expect("links are supported");
        assert_current_refused(name, &scratch);
    }
}
