//! `esker repair`: what it says, and what is there afterwards.
#![allow(clippy::unwrap_used)]

use crate::common::{self, Sandbox, failed, fails, files, lines, ok, ok_with_input, run};
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

/// Seen: "deleted keys show again and merge operands count twice", with exit code 0.
#[test]
fn a_repair_that_may_have_brought_wrong_values_is_no_success() {
    let sandbox = Sandbox::new("maybewrong");
    let db = &sandbox.text("db");
    ok_with_input(&["load", "--db", db], lines("k", 300).as_bytes());
    ok(&["compact", "--db", db]);
    let intact = sandbox.path("intact");
    common::copy_directory(Path::new(db), &intact);
    let manifests = |db: &str| {
        let all = files(Path::new(db)).into_keys();
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("MANIFEST")).collect::<Vec<_>>()
    };
    for (what, damage) in [
        ("no manifest", (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path)),
        ("a flipped byte", |path| {
            let mut content = fs::read(path).unwrap();
            content[60] ^= 1;
            fs::write(path, content).unwrap();
        }),
    ] {
        common::copy_directory(&intact, Path::new(db));
        manifests(db).iter().for_each(|path| damage(path));
        if what == "no manifest" {
            fs::remove_file(Path::new(db).join("CURRENT")).unwrap();
        }
        let arguments = ["repair", "--db", db, "--json"];
        let output = run(&arguments);
        let line = failed(1, &arguments, &output);
        assert!(line.contains("values may be wrong"), "{what}: {line}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["lost_entries"], &report["may_be_wrong"]), (&false.into(), &true.into()), "{report}");
        assert!(report["warnings"].as_array().unwrap().len() == 1, "{what}: {report}");
        assert_eq!(ok(&["dump", "--db", db]), lines("k", 300));
    }
}

/// Seen: "the damaged files are in lost", where an undamaged table was as well.
#[test]
fn files_that_are_not_used_are_not_called_damaged() {
    let sandbox = Sandbox::new("notdamaged");
    let db = &sandbox.text("db");
    ok_with_input(&["load", "--db", db], lines("k", 300).as_bytes());
    ok(&["compact", "--db", db]);
    for path in files(Path::new(db)).keys() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            fs::remove_file(path).unwrap();
        }
    }
    let report = String::from_utf8(run(&["repair", "--db", db]).stdout).unwrap();
    assert!(
        report.contains("files that are not used any more are in ") && !report.contains("damaged files"),
        "{report}"
    );
}
