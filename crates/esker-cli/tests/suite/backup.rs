//! `esker backup`: text, JSON, damage, exit codes, an interruption.
#![allow(clippy::unwrap_used)]

use crate::common::{self, Sandbox, failed, fails, files, lines, ok, ok_with_input, spawn_piped, wait_for};
use esker::{ChangeRetention, Db, Options};
use std::fs;

/// A database with so many keys, and the target of its backups.
fn database(sandbox: &Sandbox, keys: usize) -> (String, String) {
    let (db, target) = (sandbox.text("db"), sandbox.text("backups"));
    ok_with_input(&["load", "--db", &db], lines("key", keys).as_bytes());
    (db, target)
}

#[test]
fn backups_are_made_listed_verified_restored_and_pruned() {
    let sandbox = Sandbox::new("backup");
    let (db, target) = database(&sandbox, 1000);
    let first = ok(&["backup", "create", "--db", &db, &target]);
    assert!(first.starts_with("backup 1: ") && first.contains(" copied, "), "{first}");
    ok(&["put", "--db", &db, "key00007", "changed"]);
    let second = ok(&["backup", "create", "--db", &db, "--json", "--verify-source", &target]);
    assert!(second.contains("\"backup\":2") && second.contains("\"copied_bytes\":"), "{second}");
    let listed = ok(&["backup", "list", &target]);
    let numbers: Vec<&str> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(numbers, ["1", "2"]);
    assert!(listed.lines().all(|line| line.ends_with("\tdefault")), "{listed}");
    assert_eq!(ok(&["backup", "list", "--json", &target]).lines().count(), 2);
    let url = format!("file://{target}");
    assert!(ok(&["backup", "verify", &url]).starts_with("no damage: 2 backups, "));
    let one = ok(&["backup", "verify", "--backup", "1", "--json", &target]);
    assert!(one.contains("\"backups\":[1]") && one.contains("\"ok\":true"), "{one}");

    let (then, now) = (sandbox.text("then"), sandbox.text("now"));
    let restored = ok(&["backup", "restore", "--backup", "1", &target, &then]);
    assert!(restored.starts_with("backup 1 of 20") && restored.ends_with(&format!(" in {then}\n")), "{restored}");
    assert!(ok(&["backup", "restore", "--json", &target, &now]).contains("\"backup\":2"));
    assert_eq!(ok(&["get", "--db", &then, "key00007"]), "value of 7\n");
    assert_eq!(ok(&["get", "--db", &now, "key00007"]), "changed\n");
    let refused = fails(1, &["backup", "restore", &target, &now]);
    assert!(refused.contains("is not empty; name a new directory"), "{refused}");

    let dry = ok(&["backup", "prune", "--keep-last", "1", "--dry-run", &target]);
    assert!(dry.starts_with("1 backups and ") && dry.contains("would be removed"), "{dry}");
    assert_eq!(ok(&["backup", "list", &target]).lines().count(), 2);
    let young = ok(&["backup", "prune", "--keep-last", "1", "--older-than", "1h", &target]);
    assert!(young.starts_with("0 backups"), "{young}");
    let pruned = ok(&["backup", "prune", "--keep-last", "1", "--json", &target]);
    assert!(pruned.contains("\"removed\":[1]") && pruned.contains("\"kept\":[2]"), "{pruned}");
    assert!(ok(&["backup", "verify", &target]).starts_with("no damage: 1 backups, "));
    // Seen: refused, with the words for times to live. What nothing uses any more may go at once.
    ok(&["backup", "prune", "--keep-last", "1", "--older-than", "0s", "--grace", "0s", &target]);
    let gone = fails(1, &["backup", "verify", "--backup", "1", &target]);
    assert_eq!(gone, "esker: there is no backup 1; list the backups of the target");
}

/// The last write of a database, and the one before it.
fn last_writes(db: &Db) -> (u64, u64) {
    let last = db.snapshot().sequence();
    (last, last - 1)
}

#[test]
fn a_restore_goes_on_to_a_write() {
    let sandbox = Sandbox::new("backup-forward");
    let (db, target) = (sandbox.text("db"), sandbox.text("backups"));
    // A program keeps changes, and the command lets it.
    let keeping = || Options::default().keep_changes(ChangeRetention::Bytes(1 << 30));
    Db::open(&db, keeping()).unwrap().close().unwrap();
    ok(&["put", "--db", &db, "ada", "1815"]);
    ok(&["backup", "create", "--db", &db, &target]);
    ok(&["put", "--db", &db, "bob", "1923"]);
    ok(&["delete", "--db", &db, "ada"]);
    let opened = Db::open(&db, keeping()).unwrap();
    let (last, good) = last_writes(&opened);
    // It reads beside a program that has the database open.
    let (before, after) = (sandbox.text("before"), sandbox.text("after"));
    let to = good.to_string();
    let restored = ok(&["backup", "restore", "--changes-from", &db, "--to-sequence", &to, &target, &before]);
    assert!(restored.starts_with("backup 1 of 20"), "{restored}");
    assert!(restored.ends_with(&format!(", up to write {good} in {before}\n")), "{restored}");
    let restored = ok(&["backup", "restore", "--json", "--changes-from", &db, &target, &after]);
    assert!(restored.contains(&format!("\"restored_sequence\":{last}")), "{restored}");
    assert_eq!(ok(&["get", "--db", &before, "ada"]), "1815\n");
    assert_eq!(ok(&["get", "--db", &before, "bob"]), "1923\n");
    assert_eq!(fails(1, &["get", "--db", &after, "ada"]), "esker: not found: ada");
    assert_eq!(ok(&["get", "--db", &after, "bob"]), "1923\n");
    drop(opened);

    let new = sandbox.text("new");
    let beyond = (last + 1).to_string();
    let line = fails(1, &["backup", "restore", "--changes-from", &db, "--to-sequence", &beyond, &target, &new]);
    assert!(line.contains(&format!("ends at write {last}, before {beyond}")), "{line}");
    let line = fails(1, &["backup", "restore", "--changes-from", &sandbox.text("none"), &target, &new]);
    assert!(line.contains("does not exist"), "{line}");
    let line = fails(1, &["backup", "restore", "--changes-from", &after, &target, &new]);
    assert!(line.contains("keeps no changes") || line.contains("ends at write"), "{line}");
    fails(2, &["backup", "restore", "--to-sequence", &to, &target, &new]);
    assert!(!sandbox.path("new").exists() && !sandbox.path("new.restore-forward").exists());
}

#[test]
fn damage_is_shown_and_never_restored() {
    let sandbox = Sandbox::new("backup-damage");
    let (db, target) = database(&sandbox, 1000);
    ok(&["backup", "create", "--db", &db, &target]);
    let object = files(&sandbox.path("backups/objects")).into_iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let mut bytes = object.1;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&object.0, bytes).unwrap();
    let output = common::run(&["backup", "verify", &target]);
    let line = failed(1, &["backup", "verify", &target], &output);
    assert!(line.contains("1 objects are damaged; "), "{line}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains(object.0.file_name().unwrap().to_str().unwrap()) && shown.contains("(backups [1])"),
        "{shown}"
    );
    assert!(fails(1, &["backup", "restore", &target, &sandbox.text("new")]).contains("is damaged: "));
    assert!(!sandbox.path("new").join("CURRENT").exists());
    // A record.
    let record = sandbox.path("backups/log/0000000001");
    let mut text = fs::read(&record).unwrap();
    *text.last_mut().unwrap() ^= 1;
    fs::write(&record, text).unwrap();
    assert!(fails(1, &["backup", "list", &target]).contains("prune --backup 1"));
    ok(&["backup", "prune", "--backup", "1", "--grace", "1s", &target]);
    assert_eq!(ok(&["backup", "list", &target]), "");
    assert!(files(&sandbox.path("backups/objects")).is_empty());
}

#[test]
fn what_cannot_be_done_is_one_line() {
    let sandbox = Sandbox::new("backup-wrong");
    let (db, target) = database(&sandbox, 10);
    for command in ["list", "verify", "prune"] {
        let line = fails(1, &["backup", command, &target]);
        assert!(line.contains("there is no directory") && line.contains("check the path"), "{line}");
        assert!(!line.contains("list the backups"), "{line}");
        assert!(!sandbox.path("backups").exists(), "{command} made it");
    }
    assert!(fails(1, &["backup", "create", "--db", &sandbox.text("none"), &target]).contains("does not exist"));
    assert!(fails(1, &["backup", "create", "--db", &db, "gopher://x/y"]).contains("gopher"));
    assert!(fails(2, &["backup", "create", "--db", &db]).contains("esker backup"));
    fails(2, &["backup", "create", "--db", &db, "file://elsewhere/new"]);
    // A path and its URL mean the same.
    let url = format!("file://{}", sandbox.text("by%20url"));
    assert!(ok(&["backup", "create", "--db", &db, &url]).starts_with("backup 1: "));
    assert!(sandbox.path("by url/log").exists());
    fails(2, &["backup", "prune", "--older-than", "30", &target]);
    fails(2, &["backup", "create", "--db", &db, "--parallel", "0", &target]);
    assert_eq!(common::run(&["backup"]).status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn an_interruption_leaves_no_half_of_a_backup() {
    let sandbox = Sandbox::new("backup-interrupted");
    let (db, target) = database(&sandbox, 1000);
    ok(&["backup", "create", "--db", &db, &target]);
    ok_with_input(&["load", "--db", &db], lines("more", 3000).as_bytes());
    // At one byte a second it does not end before it is told to.
    let arguments = ["backup", "create", "--db", &db, "--limit-rate", "1", &target];
    let mut child = spawn_piped(&arguments);
    drop(child.stdin.take());
    let intents = || fs::read_dir(sandbox.path("backups/uploads")).map_or(0, Iterator::count);
    wait_for("the intent of the backup", || (intents() > 0).then_some(()));
    let id = child.id().to_string();
    let kill = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    let line = failed(1, &arguments, &output);
    assert!(line.starts_with("esker: cancelled; "), "{line}");
    assert_eq!(ok(&["backup", "list", &target]).lines().count(), 1);
    assert!(ok(&["backup", "verify", &target]).starts_with("no damage: 1 backups, "));
    assert!(!sandbox.path("db.backup-source").exists());
    assert!(ok(&["backup", "create", "--db", &db, &target]).starts_with("backup 2: "));
}

/// Lines whose values no compression makes much shorter.
fn noise(count: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = |_: i32| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char::from(LETTERS[(random >> 58) as usize])
    };
    let mut line = |number: usize| format!("key{number:05}\t{}\n", (0..1000).map(&mut letter).collect::<String>());
    (0..count).map(&mut line).collect()
}

/// The long one takes sixteen seconds on any machine: the rate decides. It reads pieces of a
/// mebibyte, so that it learns of some behind the tenth second, after which a line is due.
#[test]
fn a_long_command_says_how_far_it_is_where_there_is_no_terminal_and_a_short_one_nothing() {
    let sandbox = Sandbox::new("backup-progress");
    let (db, target) = (sandbox.text("db"), sandbox.text("backups"));
    ok_with_input(&["load", "--db", &db], noise(6000).as_bytes());
    let created = ok(&["backup", "create", "--db", &db, "--json", &target]);
    let created: serde_json::Value = serde_json::from_str(&created).unwrap();
    let bytes = created["bytes"].as_u64().unwrap();
    assert!(bytes > 5 << 20, "only {bytes} bytes");
    // This one is over at once, and expects that nothing was written to standard error.
    let short = ok(&["backup", "verify", &target]);
    let size = short.trim_end().rsplit(", ").next().unwrap();
    let rate = (bytes / 16).to_string();
    let output = common::run(&["backup", "verify", "--limit-rate", &rate, &target]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{shown}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), short);
    let total = format!(" of {size}, ");
    let is_progress =
        |line: &str| line.starts_with("verifying: ") && line.contains(&total) && line.ends_with(" a second");
    assert!(!shown.is_empty() && shown.lines().all(is_progress), "{total:?}: {shown:?}");
}

/// Seen: success was reported of a backup in the memory of the command; a target in the directory
/// of the database; one made of another database; and a second database in the target of the first.
#[test]
fn what_must_not_be_a_target_is_refused() {
    let sandbox = Sandbox::new("backup-targets");
    let (db, target) = database(&sandbox, 100);
    for command in [&["create", "--db", &db][..], &["list"], &["verify"]] {
        for memory in ["memory:///", "MEMORY:///x"] {
            let line = fails(2, &[&["backup"][..], command, &[memory]].concat());
            assert!(line.contains("gone when the command ends"), "{line}");
        }
    }
    let inside = format!("{db}/new/inside");
    for name in [inside.clone(), format!("file://{inside}")] {
        let line = fails(1, &["backup", "create", "--db", &db, &name]);
        assert!(line.contains("in the directory of the database"), "{line}");
    }
    assert!(!sandbox.path("db/new").exists());
    let other = sandbox.text("other");
    ok_with_input(&["load", "--db", &other], lines("other", 900).as_bytes());
    let before = files(&sandbox.path("other"));
    let line = fails(1, &["backup", "create", "--db", &db, &other]);
    assert!(line.contains("holds something else than backups"), "{line}");
    assert_eq!(files(&sandbox.path("other")), before);

    ok(&["backup", "create", "--db", &db, &target]);
    let line = fails(1, &["backup", "create", "--db", &other, &target]);
    assert!(line.contains("give --any-database") && !line.contains("Create::"), "{line}");
    ok(&["backup", "create", "--db", &other, "--any-database", &target]);
    let listed = ok(&["backup", "list", "--json", &target]);
    let databases: Vec<serde_json::Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(databases[0]["database"].as_str().unwrap().ends_with("db"), "{listed}");
    assert!(databases[1]["database"].as_str().unwrap().ends_with("other"), "{listed}");
}
