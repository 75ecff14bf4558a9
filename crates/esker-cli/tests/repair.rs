//! `esker repair`: what it says, and what is there afterwards.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Sandbox, failed, fails, files, lines, ok, ok_with_input, run};
use std::fs;
use std::path::Path;

#[test]
fn a_damaged_table_is_repaired_and_the_loss_is_told() {
    let sandbox = Sandbox::new("repair");
    let db = &sandbox.text("db");
    ok_with_input(&["load", "--db", db], lines("k", 3000).as_bytes());
    ok(&["compact", "--db", db]);
    assert_eq!(ok(&["repair", "--db", db]), "nothing is wrong; nothing was changed\n");
    let healthy: serde_json::Value = serde_json::from_str(&ok(&["repair", "--db", db, "--json"])).unwrap();
    assert_eq!(healthy["healthy"], true);

    let all = files(Path::new(db));
    let (table, content) = all.iter().find(|(path, _)| path.extension().is_some_and(|end| end == "table")).unwrap();
    let mut damaged = content.clone();
    damaged[content.len() / 2] ^= 1;
    fs::write(table, &damaged).unwrap();
    assert!(fails(1, &["verify", "--db", db]).contains("esker repair"));

    // As it was given at first.
    let output = run(&["repair", db]);
    let line = failed(1, &["repair"], &output);
    assert!(line.contains("entries are lost"), "{line}");
    let report = String::from_utf8(output.stdout).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    assert!(report.contains(name) && report.contains("lost between k") && report.contains("note: "), "{report}");
    assert!(ok(&["verify", "--db", db]).starts_with("no damage"));
    let kept = ok(&["dump", "--db", db]);
    assert!(kept.lines().count() > 2000 && kept.lines().all(|line| lines("k", 3000).contains(line)), "{report}");
    assert_eq!(fs::read(Path::new(db).join("lost").join(name)).unwrap(), damaged);
}

#[test]
fn what_is_no_database_is_refused() {
    let sandbox = Sandbox::new("norepair");
    assert!(fails(1, &["repair", &sandbox.text("nothing")]).contains("does not exist"));
    fs::create_dir(sandbox.path("empty")).unwrap();
    assert!(fails(1, &["repair", &sandbox.text("empty")]).contains("empty does not exist"));
    assert!(fails(2, &["repair"]).contains("DIR"));
    let help = ok(&["repair", "--help"]);
    assert!(help.contains("Examples:") && help.lines().all(|line| line.len() <= 120), "{help}");
}

#[test]
fn two_directories_are_one_too_many() {
    let sandbox = Sandbox::new("tworepairs");
    let (one, other) = (&sandbox.text("one"), &sandbox.text("other"));
    assert!(fails(2, &["repair", "--db", one, other]).contains("name one with --db"));
    assert!(fails(2, &["repair"]).contains("--db"));
}

/// Seen: exit code 0 after a loss, and "0 entries kept" of a file that has none.
#[test]
fn a_repair_that_loses_nothing_is_a_success() {
    let sandbox = Sandbox::new("nothinglost");
    let db = &sandbox.text("db");
    ok_with_input(&["load", "--db", db], lines("k", 300).as_bytes());
    fs::remove_file(Path::new(db).join("CURRENT")).unwrap();
    let report = ok(&["repair", "--db", db]);
    assert!(report.contains("CURRENT: the file is missing\n") && !report.contains("0 entries kept"), "{report}");
    assert_eq!(ok(&["dump", "--db", db]), lines("k", 300));
    fs::remove_file(Path::new(db).join("CURRENT")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&ok(&["repair", "--db", db, "--json"])).unwrap();
    assert_eq!(report["lost_entries"], false);
}
