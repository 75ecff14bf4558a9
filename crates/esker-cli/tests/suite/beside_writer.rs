//! Copies of a database that another process has open, while that writes, and after it was killed.
#![allow(clippy::unwrap_used)]

use crate::common::{self, Sandbox, command, fails, ok, run};
#[cfg(feature = "backup")]
use crate::common::{lines, ok_with_input, spawn_piped};
use esker::{Db, KeyspaceOptions, Options};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Everything small, so that files come and go.
fn options() -> Options {
    Options::default().write_buffer_bytes(256 << 10).wal_segment_bytes(64 << 10).min_blob_size(2000)
}

/// What this process has written of rounds, each in one batch into two keyspaces.
struct Rounds {
    db: Db,
    acknowledged: AtomicU64,
    ended: AtomicBool,
}

impl Rounds {
    fn new(directory: &str) -> Rounds {
        let db = Db::open(directory, options()).unwrap();
        for name in ["left", "right"] {
            db.keyspace(name, KeyspaceOptions::default()).unwrap().put("round", "0").unwrap();
        }
        Rounds { db, acknowledged: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    fn write(&self) {
        let both = ["left", "right"].map(|name| self.db.existing_keyspace(name).unwrap());
        for round in (1..).take_while(|_| !self.ended.load(Ordering::Relaxed)) {
            let mut batch = self.db.batch();
            for keyspace in &both {
                batch.put(keyspace, "round", format!("{round}")).unwrap();
                batch.put(keyspace, format!("{:03}", round % 500), vec![1; 100 + round as usize % 3000]).unwrap();
            }
            batch.commit().unwrap();
            self.acknowledged.store(round, Ordering::Release);
            if round % 700 == 0 {
                self.db.keyspace("other", KeyspaceOptions::default()).unwrap().put("a", "1").unwrap();
                self.db.compact().unwrap();
                self.db.drop_keyspace("other").unwrap();
            }
        }
    }

    /// Makes copies in other processes while this one writes.
    fn beside(&self, copies: impl FnOnce()) {
        std::thread::scope(|threads| {
            threads.spawn(|| self.write());
            // Also if it panics: the scope waits for the writer.
            let end = EndOf(&self.ended);
            copies();
            drop(end);
        });
    }
}

struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The copy is whole, and has what was acknowledged before.
fn check(copy: &str, at_least: u64) {
    assert!(ok(&["verify", "--db", copy]).starts_with("no damage"));
    let db = Db::open(copy, options()).unwrap();
    let [left, right] = ["left", "right"].map(|name| {
        let pairs = db.existing_keyspace(name).unwrap();
        pairs.iter().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect::<Vec<_>>()
    });
    assert!(left == right, "half a batch");
    let round = left.iter().find(|(key, _)| key == b"round").map(|(_, value)| String::from_utf8_lossy(value));
    let round: u64 = round.unwrap().parse().unwrap();
    assert!(round >= at_least, "round {at_least} was acknowledged before, the copy has {round}");
}

#[test]
fn checkpoints_are_made_beside_a_program_that_writes() {
    let sandbox = Sandbox::new("live-checkpoint");
    let db = &sandbox.text("db");
    let rounds = Rounds::new(db);
    rounds.beside(|| {
        for number in 0..8 {
            let copy = &sandbox.text(&format!("copy{number}"));
            let before = rounds.acknowledged.load(Ordering::Acquire);
            let (own, json) = (number % 2 == 1, number % 3 == 2);
            let mut arguments = vec!["checkpoint", "--db", db, copy];
            arguments.extend(own.then_some("--copy"));
            arguments.extend(json.then_some("--json"));
            let said = ok(&arguments);
            let process = std::process::id();
            match json {
                true => assert!(said.contains(&format!("\"beside_process\":{process}")), "{said}"),
                false => {
                    let line = format!("read beside process {process}, which has the database open");
                    assert_eq!(said, format!("checkpoint of {db} in {copy}\n{line}\n"));
                }
            }
            check(copy, before);
        }
    });
    rounds.db.verify().unwrap();
    assert!(fails(1, &["checkpoint", "--db", db, &sandbox.text("db/inside")]).contains("in the directory of"));
    assert!(!sandbox.path("db/inside").exists());
    drop(rounds);
    let said = ok(&["checkpoint", "--db", db, &sandbox.text("alone")]);
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_writer_that_is_killed_leaves_what_can_be_copied_before_and_after() {
    let sandbox = Sandbox::new("live-kill");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "first", ""]);
    for round in 0..4 {
        let expected = format!("{}\n", 1 + 200 * (round + 1));
        let mut writer = command(&["shell", "--db", db]);
        let mut writer =
            writer.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
        let mut input = writer.stdin.take().unwrap();
        for number in 0..200 {
            writeln!(input, "put {round}/{number:03} {}", "x".repeat(number + 1)).unwrap();
        }
        input.flush().unwrap();
        common::wait_for("the writes", || {
            let count = run(&["scan", "--db", db, "--count"]);
            (String::from_utf8_lossy(&count.stdout) == expected).then_some(())
        });
        // The shell waits for more, with the database open.
        let during = &sandbox.text(&format!("during{round}"));
        let said = ok(&["checkpoint", "--db", db, during]);
        assert!(said.contains(&format!("read beside process {}", writer.id())), "{said}");
        writer.kill().unwrap();
        writer.wait().unwrap();
        drop(input);
        for copy in [during, db] {
            assert_eq!(ok(&["scan", "--db", copy, "--count"]), expected);
            assert!(ok(&["verify", "--db", copy]).starts_with("no damage"));
        }
    }
}

/// How many bytes a backup has copied.
#[cfg(feature = "backup")]
fn copied(arguments: &[&str]) -> u64 {
    let said = ok(arguments);
    let line: serde_json::Value = serde_json::from_str(&said).unwrap();
    line["copied_bytes"].as_u64().unwrap()
}

#[test]
#[cfg(feature = "backup")]
fn a_backup_of_an_unchanged_database_copies_next_to_nothing() {
    let sandbox = Sandbox::new("unchanged");
    let (db, target) = (&sandbox.text("db"), &sandbox.text("backups"));
    ok_with_input(&["load", "--db", db], lines("key", 1000).as_bytes());
    let create = ["backup", "create", "--db", db, "--json", target.as_str()];
    let copies = [(); 3].map(|()| copied(&create));
    assert!(copies[0] > 4000 && copies[1..].iter().all(|copied| *copied < 1000), "{copies:?}");
    // Beside a program that has it open, and writes that are in no table yet.
    let opened = Db::open(db, options()).unwrap();
    opened.existing_keyspace("default").unwrap().put("large", vec![1; 100_000]).unwrap();
    let copies = [(); 3].map(|()| copied(&create));
    assert!(copies[0] > 0 && copies[1..].iter().all(|copied| *copied < 1000), "{copies:?}");
}

#[test]
#[cfg(feature = "backup")]
fn backups_are_made_beside_a_program_that_writes_and_beside_each_other() {
    let sandbox = Sandbox::new("live-backup");
    let db = &sandbox.text("db");
    let rounds = Rounds::new(db);
    let mut made = Vec::new();
    rounds.beside(|| {
        for number in 0..3 {
            let before = rounds.acknowledged.load(Ordering::Acquire);
            // They use one directory beside the database.
            let targets = ["one", "two"].map(|target| sandbox.text(target));
            let children = targets.each_ref().map(|target| spawn_piped(&["backup", "create", "--db", db, target]));
            for child in children {
                let output = child.wait_with_output().unwrap();
                let said = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
                let line = format!("\nread beside process {}, which has the database open\n", std::process::id());
                assert!(said.starts_with(&format!("backup {}: ", number + 1)) && said.ends_with(&line), "{said}");
            }
            made.push(before);
        }
    });
    assert!(!sandbox.path("db.backup-source").exists());
    for target in ["one", "two"] {
        assert!(ok(&["backup", "verify", &sandbox.text(target)]).starts_with("no damage: 3 backups"));
        for (number, before) in made.iter().enumerate() {
            let (number, restored) = ((number + 1).to_string(), &sandbox.text(&format!("{target}-{number}")));
            ok(&["backup", "restore", "--backup", &number, &sandbox.text(target), restored]);
            check(restored, *before);
        }
    }
}
