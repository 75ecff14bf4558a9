//! Everything a user or a disk can do wrong: one line on standard error, the right exit code, never
//! a panic, and nothing else harmed.
#![allow(clippy::unwrap_used)]

use crate::common::{
    self, Sandbox, failed, fails, files, lines, ok, ok_with_input, run, run_with_input, spawn_piped, wait_for,
};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

#[test]
fn command_lines_that_make_no_sense() {
    let sandbox = Sandbox::new("usage");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "k", "v"]);
    for (arguments, expected) in [
        (&["scna"][..], "'scan'"),
        (&["scan", "--db", db, "--prefxi", "a"], "'--prefix'"),
        (&["put", "--db", db, "k", "v", "--bogus"], "--bogus"),
        (&["put", "--db", db, "k"], "<VALUE>"),
        (&["put", "--db", db, "k", "v", "w"], "'w'"),
        (&["get", "k"], "--db"),
        (&["scan", "--db", db, "--limit", "-1"], "--limit"),
        (&["scan", "--db", db, "--limit", "lots"], "lots"),
        (&["scan", "--db", db, "--limit", "99999999999999999999"], "--limit"),
        (&["load", "--db", db, "--batch", "0"], "--batch"),
        (&["load", "--db", db, "--batch", "-7"], "--batch"),
        (&["get", "--db", db, "--as", "u65", "k"], "u64"),
        (&["get", "--db", db, "--hex", "abc"], "hexadecimal"),
        (&["get", "--db", db, "--hex", "zz"], "hexadecimal"),
        (&["get", "--db", db, "bad\\escape"], "escape"),
        (&["put", "--db", db, "--merge-operator", "plus", "k", "v"], "uint64add"),
        (&["merge", "--db", db, "--merge-operator", "stringappend:\\q", "k", "v"], "escape"),
        (&["put", "--db", db, "--as", "u64", "k", "1.5"], "1.5"),
        (&["put", "--db", "", "k", "v"], "--db"),
        (&["dump", "--db", db, "--all-keyspaces"], "--json"),
        (&["--db", db], "--db"),
    ] {
        let line = fails(2, arguments);
        assert!(line.contains(expected), "{arguments:?}: {line}");
    }
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(ok(&["scan", "--db", db]), "k\tv\n");
}

#[test]
#[cfg(unix)]
fn arguments_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new("utf8");
    let db = &sandbox.text("db");
    let bad = OsStr::from_bytes(b"\xff\xfe");
    assert!(common::command(&["put", "--db", db]).arg(bad).arg(bad).output().unwrap().status.success());
    assert_eq!(ok(&["scan", "--db", db]), "\\xff\\xfe\t\\xff\\xfe\n");
    for command in ["bench", "study", "scan"] {
        let output = common::command(&[command]).arg(bad).output().unwrap();
        assert_eq!(failed(2, &[command], &output).lines().count(), 1);
    }
}

const READS: [&[&str]; 6] = [&["get", "k"], &["scan"], &["dump"], &["stats"], &["verify"], &["keyspaces"]];
const WRITES: [&[&str]; 5] =
    [&["put", "k", "v"], &["delete", "k"], &["merge", "--merge-operator", "max", "k", "v"], &["compact"], &["load"]];

fn with_db<'a>(words: &[&'a str], db: &'a str) -> Vec<&'a str> {
    [&words[..1], &["--db", db], &words[1..]].concat()
}

#[test]
fn a_directory_that_is_not_there() {
    let sandbox = Sandbox::new("missing");
    let db = &sandbox.text("nowhere");
    for words in READS.into_iter().chain([&["delete", "k"][..], &["compact"], &["checkpoint", "x"]]) {
        let line = fails(1, &with_db(words, db));
        assert!(line.contains("does not exist"), "{line}");
    }
    assert!(!sandbox.path("nowhere").exists());
    fs::create_dir(sandbox.path("empty")).unwrap();
    for words in READS {
        fails(1, &with_db(words, &sandbox.text("empty")));
    }
    assert!(files(&sandbox.path("empty")).is_empty());
}

#[test]
fn a_keyspace_or_file_that_is_not_there() {
    let sandbox = Sandbox::new("keyspace");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "k", "v"]);
    for words in [&["get", "k"][..], &["scan"], &["dump"], &["delete", "k"], &["compact"]] {
        let mut arguments = with_db(words, db);
        arguments.extend(["--keyspace", "nosuch"]);
        assert!(fails(1, &arguments).contains("nosuch"));
    }
    assert!(!ok(&["keyspaces", "--db", db]).contains("nosuch"));
    assert!(fails(1, &["load", "--db", db, &sandbox.text("nosuch.tsv")]).contains("nosuch.tsv"));
    fails(1, &["load", "--db", db, db]);
    fails(1, &["dump", "--db", db, "--output", &sandbox.text("no/such/directory")]);
    fails(1, &["get", "--db", db, "--as", "u64", "k"]);
}

#[test]
fn the_directory_of_another_program() {
    let sandbox = Sandbox::new("foreign");
    let directory = sandbox.path("documents");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("letter.txt"), "dear").unwrap();
    fs::write(directory.join("000001.log"), "a log of something else").unwrap();
    let before = files(&directory);
    for words in READS.into_iter().chain(WRITES) {
        fails(1, &with_db(words, directory.to_str().unwrap()));
        assert_eq!(files(&directory), before, "{words:?}");
    }
}

#[test]
fn a_directory_that_cannot_be_written() {
    let sandbox = Sandbox::new("unwritable");
    let file = sandbox.path("file");
    fs::write(&file, "not a directory").unwrap();
    let below = sandbox.text("file/db");
    for db in [below.as_str(), file.to_str().unwrap(), "/proc/esker-test"] {
        for words in READS.into_iter().chain(WRITES) {
            fails(1, &with_db(words, db));
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"not a directory");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "k", "v"]);
    fails(1, &["checkpoint", "--db", db, &below]);
    if Path::new("/dev/full").exists() {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = common::command(&["scan", "--db", db]).stdout(full).output().unwrap();
        assert!(failed(1, &["scan"], &output).contains("standard output"));
        fails(1, &["dump", "--db", db, "--output", "/dev/full"]);
    }
    assert_eq!(ok(&["scan", "--db", db]), "k\tv\n");
}

#[test]
fn keys_and_values_beyond_the_limits() {
    let sandbox = Sandbox::new("limits");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "k", "v"]);
    let arguments = ["load", "--db", db];
    let input = format!("a\t1\n{}\t2\n", "x".repeat((1 << 20) + 1));
    let line = failed(1, &arguments, &run_with_input(&arguments, input.as_bytes()));
    assert!(line.contains("line 2 of"), "{line}");
    assert_eq!(ok(&["scan", "--db", db]), "k\tv\n");
}

#[test]
fn a_second_process_is_told_who_is_first() {
    let sandbox = Sandbox::new("lock");
    let db = &sandbox.text("db");
    let mut writer = spawn_piped(&["load", "--db", db, "--batch", "1"]);
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(b"a\t1\n").unwrap();
    wait_for("the first record", || run(&["get", "--db", db, "a"]).status.success().then_some(()));
    for words in WRITES {
        let line = fails(1, &with_db(words, db));
        assert!(line.contains(&writer.id().to_string()), "{line}");
    }
    stdin.write_all(b"b\t2\n").unwrap();
    drop(stdin);
    assert!(writer.wait_with_output().unwrap().status.success());
    assert_eq!(ok(&["scan", "--db", db]), "a\t1\nb\t2\n");
    ok(&["put", "--db", db, "c", "3"]);
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mount(directory: &Path, mebibytes: u32) -> Option<SmallDisk<'_>> {
        fs::create_dir_all(directory).unwrap();
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory).output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(directory)),
            other => {
                println!("skipped: a small file system cannot be mounted here: {other:?}");
                None
            }
        }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

/// About `bytes` bytes of lines that no codec shrinks much.
fn incompressible_lines(bytes: usize) -> String {
    let mut text = String::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut number = 0;
    while text.len() < bytes {
        text.push_str(&format!("n{number:07}\t"));
        for _ in 0..512 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push(char::from(
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 58) as usize],
            ));
        }
        text.push('\n');
        number += 1;
    }
    text
}

#[test]
fn a_full_disk_while_loading() {
    for mebibytes in [4, 48, 160] {
        let sandbox = Sandbox::new("full");
        let mount = sandbox.path("disk");
        let Some(_disk) = SmallDisk::mount(&mount, mebibytes) else { return };
        let db = &sandbox.text("disk/db");
        let input = incompressible_lines((mebibytes as usize * 3 / 2) << 20);
        let arguments = ["load", "--db", db];
        let line = failed(1, &arguments, &run_with_input(&arguments, input.as_bytes()));
        assert!(line.contains("space"), "{line}");
        // What the message calls written is readable, in full, on the disk that is still full.
        let Some(written) = line.split("lines 1 to ").nth(1).and_then(|rest| rest.split(' ').next()) else {
            continue;
        };
        let written: usize = written.parse().unwrap();
        let found = ok(&["scan", "--db", db]);
        let expected: Vec<&str> = input.lines().take(written).collect();
        let present: Vec<&str> = found.lines().take(written).collect();
        assert!(present == expected, "of {written} lines reported as written, {} differ", {
            expected.iter().zip(&present).filter(|(one, other)| one != other).count()
        });
        assert!(ok(&["verify", "--db", db]).starts_with("no damage"));
    }
}

#[test]
fn a_disk_that_others_have_filled() {
    let sandbox = Sandbox::new("filled");
    let mount = sandbox.path("disk");
    let Some(_disk) = SmallDisk::mount(&mount, 256) else { return };
    let db = &sandbox.text("disk/db");
    ok_with_input(&["load", "--db", db], lines("k", 1000).as_bytes());
    let before = ok(&["scan", "--db", db]);
    let mut filler = fs::File::create(mount.join("filler")).unwrap();
    while filler.write_all(&[1; 1 << 16]).is_ok() {}
    drop(filler);
    assert_eq!(ok(&["scan", "--db", db]), before);
    assert!(ok(&["verify", "--db", db]).starts_with("no damage"));
    let arguments = ["load", "--db", db];
    // Room that the log has reserved may still take something; this is more than that.
    let output = run_with_input(&arguments, incompressible_lines(200 << 20).as_bytes());
    assert!(failed(1, &arguments, &output).contains("space"));
    assert!(ok(&["scan", "--db", db, "--prefix", "k"]) == before, "data changed on a full disk");
    fs::remove_file(mount.join("filler")).unwrap();
    ok(&["put", "--db", db, "zzz", "room again"]);
    assert_eq!(ok(&["get", "--db", db, "zzz"]), "room again\n");
    assert!(ok(&["scan", "--db", db, "--prefix", "k"]) == before, "data changed on a full disk");
}
