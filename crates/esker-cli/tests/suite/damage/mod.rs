//! Damaged databases: every kind of file truncated, with flipped bits, missing, or of a newer
//! format version.

#![allow(clippy::unwrap_used)]

use crate::common::{Sandbox, copy_directory, files, lines, ok, ok_with_input, orderly_line, run};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Current,
    Manifest,
    Wal,
    Table,
}

const KINDS: [Kind; 4] = [Kind::Current, Kind::Manifest, Kind::Wal, Kind::Table];

/// Told by the content where the format has a magic number, else by the name.
fn kind_of(path: &Path, content: &[u8]) -> Option<Kind> {
    let name = path.file_name()?.to_str()?.to_ascii_uppercase();
    if name == "CURRENT" {
        Some(Kind::Current)
    } else if name.contains("MANIFEST") {
        Some(Kind::Manifest)
    } else if content.starts_with(b"ESKERWAL") {
        Some(Kind::Wal)
    } else if content.ends_with(b"eskerSST") {
        Some(Kind::Table)
    } else {
        None
    }
}

/// A database with a table (keys `k...`) and records that are only in the log (keys `w...`, in the
/// order of commits).
struct Specimen {
    sandbox: Sandbox,
    db: String,
    dump: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Specimen {
    fn new(name: &str) -> Specimen {
        let sandbox = Sandbox::new(name);
        let db = sandbox.text("db");
        ok_with_input(&["load", "--db", &db], lines("k", 3000).as_bytes());
        ok(&["compact", "--db", &db]);
        ok_with_input(&["load", "--db", &db, "--batch", "10"], lines("w", 300).as_bytes());
        let dump = ok(&["dump", "--db", &db]);
        assert_eq!(dump, lines("k", 3000) + &lines("w", 300));
        let files = files(Path::new(&db));
        Specimen { sandbox, db, dump, files }
    }

    fn of(&self, kind: Kind) -> Vec<(&PathBuf, &Vec<u8>)> {
        let found: Vec<_> = self.files.iter().filter(|(path, content)| kind_of(path, content) == Some(kind)).collect();
        let names: Vec<_> = self.files.keys().collect();
        assert!(!found.is_empty(), "no {kind:?} among {names:?}; does kind_of still know the formats?");
        found
    }

    /// Runs reads on the damaged database and checks each answer; whether one of them noticed.
    #[track_caller]
    fn noticed(&self, kind: Kind, what: &str) -> bool {
        let mut noticed = false;
        let db = self.db.as_str();
        for arguments in [&["verify", "--db", db][..], &["dump", "--db", db], &["get", "--db", db, "k01500"]] {
            let output = run(arguments);
            let stdout = String::from_utf8(output.stdout.clone()).unwrap();
            if !output.status.success() {
                let line = orderly_line(arguments, &output);
                assert_eq!(output.status.code(), Some(1), "{what}: {line}");
                assert!(!line.contains("not found: k01500"), "{what}: a key was lost silently");
                // What was printed before the damage was met is right.
                assert!(arguments[0] != "dump" || self.dump.starts_with(&stdout), "{what}: wrong data");
                noticed = true;
            } else if arguments[0] == "dump" && kind == Kind::Wal {
                // A log may end early, never with a hole.
                let right = self.dump.starts_with(&stdout) && stdout.starts_with(&lines("k", 3000));
                assert!(right, "{what}: not a prefix of the commits");
            } else if arguments[0] == "dump" {
                assert!(stdout == self.dump, "{what}: wrong data");
            }
        }
        noticed
    }

    /// Nothing but the damaged file differs from the original.
    #[track_caller]
    fn others_intact(&self, damaged: &Path) {
        let mut now = files(Path::new(&self.db));
        let mut before = self.files.clone();
        assert!(now.keys().eq(before.keys()), "files came or went");
        now.remove(damaged);
        before.remove(damaged);
        assert!(now == before, "reading changed a file");
    }

    /// A write to a copy of the damaged database fails in order or succeeds; reads after it stay in
    /// order.
    fn write_to_copy(&self) {
        let copy = self.sandbox.path("copy");
        copy_directory(Path::new(&self.db), &copy);
        let copy = copy.to_str().unwrap();
        for arguments in [&["put", "--db", copy, "z", "1"][..], &["compact", "--db", copy], &["scan", "--db", copy]] {
            let output = run(arguments);
            if !output.status.success() {
                orderly_line(arguments, &output);
            }
        }
    }
}

/// The part of a file that holds something: logs are allocated ahead.
fn used(content: &[u8]) -> usize {
    content.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn truncated_files() {
    let specimen = Specimen::new("truncated");
    for kind in KINDS {
        for (path, content) in specimen.of(kind) {
            for length in [0, 1, used(content) / 2, used(content).saturating_sub(1)] {
                fs::File::options().write(true).open(path).unwrap().set_len(length as u64).unwrap();
                let what = format!("{} cut to {length} of {} bytes", path.display(), content.len());
                let noticed = specimen.noticed(kind, &what);
                assert!(noticed || kind != Kind::Table, "{what}: not noticed");
                if length == used(content) / 2 {
                    specimen.others_intact(path);
                    specimen.write_to_copy();
                }
                fs::write(path, content).unwrap();
            }
        }
    }
    assert_eq!(ok(&["dump", "--db", &specimen.db]), specimen.dump);
}

#[test]
fn flipped_bits() {
    let specimen = Specimen::new("flipped");
    for kind in KINDS {
        let mut noticed = 0;
        for (path, content) in specimen.of(kind) {
            let length = used(content);
            let spread = (0..24).map(|part| length * part / 24);
            let positions: Vec<usize> = spread.chain([1, 9, length.saturating_sub(9), length - 1]).collect();
            let file = fs::File::options().write(true).open(path).unwrap();
            for (number, &position) in positions.iter().enumerate() {
                let byte = content[position] ^ (1 << (number % 8));
                file.write_all_at(&[byte], position as u64).unwrap();
                let what = format!("{} with a bit flipped at {position}", path.display());
                let found = specimen.noticed(kind, &what);
                assert!(found || kind != Kind::Table, "{what}: not noticed");
                noticed += u32::from(found);
                if number % 10 == 3 {
                    specimen.others_intact(path);
                    specimen.write_to_copy();
                }
                file.write_all_at(&[content[position]], position as u64).unwrap();
            }
        }
        assert!(noticed > 0 || kind == Kind::Wal, "no flipped bit of any {kind:?} was noticed");
    }
    assert_eq!(ok(&["dump", "--db", &specimen.db]), specimen.dump);
}

#[test]
fn missing_files() {
    let specimen = Specimen::new("missing-file");
    for kind in KINDS {
        let mut noticed = false;
        for (path, content) in specimen.of(kind) {
            fs::remove_file(path).unwrap();
            noticed |= specimen.noticed(kind, &format!("without {}", path.display()));
            specimen.write_to_copy();
            fs::write(path, content).unwrap();
        }
        assert!(noticed, "a missing {kind:?} was not noticed");
    }
    // Spare logs may be missing. The one in use is the fullest, and was synced when it was closed.
    let (log, content) = specimen.of(Kind::Wal).into_iter().max_by_key(|(_, content)| used(content)).unwrap();
    fs::remove_file(log).unwrap();
    let copy = specimen.sandbox.text("copy");
    copy_directory(Path::new(&specimen.db), Path::new(&copy));
    let (db, copy) = (specimen.db.as_str(), copy.as_str());
    for arguments in [
        &["verify", "--db", db][..],
        &["dump", "--db", db],
        &["get", "--db", db, "k01500"],
        &["put", "--db", copy, "z", "1"],
    ] {
        let output = run(arguments);
        let line = orderly_line(arguments, &output);
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
    fs::write(log, content).unwrap();
    assert_eq!(ok(&["dump", "--db", &specimen.db]), specimen.dump);
}

/// How a kind of file says its format version: where, and how it is sealed again after the change.
/// The checksums are the engine's, written down a second time on purpose: a change of the format
/// must not go unnoticed.
struct VersionField {
    kind: Kind,
    offset: fn(&[u8]) -> usize,
    seal: fn(&Path, &mut [u8]),
}

const VERSION_FIELDS: &[VersionField] = &[
    VersionField { kind: Kind::Table, offset: |content| content.len() - 16, seal: seal_table },
    VersionField { kind: Kind::Wal, offset: |_| 8, seal: seal_wal },
    VersionField { kind: Kind::Manifest, offset: |_| 8, seal: seal_manifest },
];

fn checksum(file: u64, offset: u64, bytes: &[u8]) -> u32 {
    let place = file.wrapping_mul(0x9E37_79B1_85EB_CA87) ^ offset.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    ((XxHash3_64::oneshot(bytes) ^ place).wrapping_mul(0x9E37_79B1_85EB_CA87) >> 32) as u32
}

fn seal_table(path: &Path, content: &mut [u8]) {
    let digits: String = path.file_name().unwrap().to_str().unwrap().chars().filter(char::is_ascii_digit).collect();
    let footer = content.len() - 64;
    let sum = checksum(digits.parse().unwrap(), footer as u64, &content[footer..footer + 52]);
    content[footer + 52..footer + 56].copy_from_slice(&sum.to_le_bytes());
}

fn seal_wal(_: &Path, content: &mut [u8]) {
    let sum = checksum(0, 0, &content[..60]);
    content[60..64].copy_from_slice(&sum.to_le_bytes());
}

fn seal_manifest(_: &Path, content: &mut [u8]) {
    let sum = checksum(0, 0, &content[..20]);
    content[20..24].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn newer_format_versions() {
    let specimen = Specimen::new("newer");
    let db = specimen.db.as_str();
    for field in VERSION_FIELDS {
        // Spare logs and replaced manifests may lie about unread: the fullest, and of those the
        // newest, is in use.
        let (path, original) = specimen.of(field.kind).into_iter().max_by_key(|(_, content)| used(content)).unwrap();
        let mut content = original.clone();
        (field.seal)(path, &mut content);
        assert!(content == *original, "{}: this test seals otherwise than the engine", path.display());
        let offset = (field.offset)(&content);
        content[offset..offset + 4].copy_from_slice(&9_u32.to_le_bytes());
        (field.seal)(path, &mut content);
        fs::write(path, &content).unwrap();
        for arguments in [&["verify", "--db", db][..], &["dump", "--db", db]] {
            let line = orderly_line(arguments, &run(arguments));
            assert!(line.contains("version 9") && line.contains("newer"), "{arguments:?}: {line}");
        }
        specimen.others_intact(path);

        let copy = specimen.sandbox.path("newer");
        copy_directory(Path::new(db), &copy);
        let arguments = ["put", "--db", copy.to_str().unwrap(), "a", "b"];
        let output = run(&arguments);
        if field.kind == Kind::Table && output.status.success() {
            // A put need not read tables; whatever it writes beside them, they stay.
            assert!(fs::read(copy.join(path.file_name().unwrap())).unwrap() == content);
        } else {
            let line = orderly_line(&arguments, &output);
            assert!(line.contains("version 9") && line.contains("newer"), "{line}");
        }
        fs::write(path, original).unwrap();
        assert_eq!(ok(&["dump", "--db", db]), specimen.dump);
    }
}

/// Seen: the first damage was shown, and nothing of the other.
#[test]
fn verify_shows_all_damage() {
    let specimen = Specimen::new("all-damage");
    let (table, content) = specimen.of(Kind::Table)[0];
    let mut damaged = content.clone();
    for at in [10, content.len() / 3] {
        damaged[at] ^= 1;
    }
    fs::write(table, damaged).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    let output = run(&["verify", "--db", &specimen.db]);
    let line = orderly_line(&["verify"], &output);
    assert!(line.contains("2 places are damaged") && output.status.code() == Some(1), "{line}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().count() == 2 && shown.lines().all(|line| line.contains(name)), "{shown}");
    let output = run(&["verify", "--db", &specimen.db, "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((shown["ok"].as_bool(), shown["damage"].as_array().unwrap().len()), (Some(false), 2), "{shown}");
    assert!(shown["damage"][0]["file"].as_str().is_some_and(|file| file.ends_with(name)), "{shown}");
    assert!(shown["damage"][0]["problem"].is_string(), "{shown}");
    assert!(shown["damage"][1]["offset"].as_u64() > shown["damage"][0]["offset"].as_u64(), "{shown}");
}

/// Seen: with a damaged log and a damaged table only the log was named, nothing was printed with
/// --json, and the message said to run `esker verify`.
#[test]
fn verify_shows_all_damage_of_a_database_that_does_not_open() {
    let specimen = Specimen::new("closed-damage");
    let flipped = |path: &PathBuf, content: &Vec<u8>, at: usize| {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        fs::write(path, damaged).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let list = |what: &str| {
        let arguments = ["verify", "--db", &specimen.db, "--json"];
        let output = run(&arguments);
        let line = orderly_line(&arguments, &output);
        assert!(output.status.code() == Some(1) && !line.contains("run `esker verify`"), "{what}: {line}");
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown["ok"], false, "{what}: {shown}");
        let list = shown["damage"].as_array().unwrap().clone();
        assert!(list.iter().all(|place| place["offset"].is_u64() && place["problem"].is_string()), "{what}: {shown}");
        let text = run(&["verify", "--db", &specimen.db]);
        assert_eq!(
            (text.status.code(), String::from_utf8(text.stdout).unwrap().lines().count()),
            (Some(1), list.len())
        );
        list.iter().map(|place| place["file"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The log in use is the fullest.
    let (log, records) = specimen.of(Kind::Wal).into_iter().max_by_key(|(_, content)| used(content)).unwrap();
    let (table, content) = specimen.of(Kind::Table)[0];
    let damaged_log = flipped(log, records, used(records) / 2);
    let damaged_table = flipped(table, content, 10);
    let found = list("log and table");
    assert!(found.contains(&damaged_log) && found.contains(&damaged_table), "{found:?}");
    fs::write(log, records).unwrap();
    flipped(table, content, content.len() - 2);
    assert_eq!(list("the footer of a table"), [damaged_table.as_str()]);
    fs::write(table, content).unwrap();
    let (manifest, edits) = specimen.of(Kind::Manifest)[0];
    let damaged_manifest = flipped(manifest, edits, 2);
    let found = list("the manifest");
    assert!(found.contains(&damaged_manifest), "{found:?}");
    flipped(table, content, 10);
    let found = list("manifest and table");
    assert!(found.contains(&damaged_manifest) && found.contains(&damaged_table), "{found:?}");
}
