//! The shell, from a pipe.
#![allow(clippy::unwrap_used)]

use crate::common::{Sandbox, failed, fails, ok, ok_with_input, run_with_input};

#[test]
fn commands_run_one_after_the_other() {
    let sandbox = Sandbox::new("shell");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "a", "1"]);
    ok(&["merge", "--db", db, "--keyspace", "hits", "--merge-operator", "uint64add", "/", "5"]);
    let script = b"# a comment\n\nput user:1 \"Ada Lovelace\"\nput user:2 \\x00\\xff\nput \"\" empty\nget user:1\ncount\n\
        scan user:\nscan user: 1\ncount user:\ndelete user:1\ncount user:\nuse hits\nget /\nmerge / -2\nget /\nput /b 7\n\
        scan\nkeyspaces\nuse default\nget a\r\nquit\nget nothing\n";
    let output = ok_with_input(&["shell", "--db", db], script);
    assert_eq!(
        output,
        "Ada Lovelace\n4\nuser:1\tAda Lovelace\nuser:2\t\\x00\\xff\nuser:1\tAda Lovelace\n2\n1\n5\n3\n/\t3\n/b\t7\n\
         default\nhits\n1\n"
    );
    assert_eq!(ok(&["get", "--db", db, "user:2"]), "\\x00\\xff\n");
    assert_eq!(ok(&["get", "--db", db, ""]), "empty\n");
    let stats = ok_with_input(&["shell", "--db", db, "--read-only"], b"stats\nhelp\n");
    assert!(stats.contains("default") && stats.contains("count [PREFIX]"), "{stats}");
}

#[test]
fn other_forms_of_keys_and_values() {
    let sandbox = Sandbox::new("shell-forms");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "a", "1"]);
    assert_eq!(ok_with_input(&["shell", "--db", db, "--hex"], b"put 62 0001\nscan\n"), "61\t31\n62\t0001\n");
    let stats = ok_with_input(&["shell", "--db", db, "--json"], b"stats\n");
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["keyspaces"][0]["name"], "default");
    let json = ok_with_input(&["shell", "--db", db, "--json"], b"get a\nscan \"\" 1\ncount\n");
    assert_eq!(json, "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"a\",\"value\":\"1\"}\n{\"count\":2}\n");
}

#[test]
fn the_first_command_that_fails_ends_a_script_and_names_its_line() {
    let sandbox = Sandbox::new("shell-failures");
    let db = &sandbox.text("db");
    assert!(fails(1, &["shell", "--db", db]).contains("does not exist"));
    ok(&["put", "--db", db, "a", "1"]);
    for (script, expected) in [
        ("frobnicate\n", "line 1: there is no command \"frobnicate\"; see `help`"),
        ("get a b\n", "line 1: `get` takes other words: `get KEY [--show-ttl]`; see `help`"),
        ("\nget b\n", "line 2: not found: b"),
        ("put \"a\n", "line 1: a quote is not closed"),
        ("get \\q\n", "unknown escape"),
        ("merge a 1\n", "has no merge operator; give it one with `esker keyspaces set"),
        ("use nowhere\n", "there is no keyspace \"nowhere\"; `keyspaces create \"nowhere\"` makes it"),
        ("put a 1 --ttl 10m\n", "keyspace \"default\" is without time to live; "),
        ("keyspaces drop default\n", "give --yes"),
        ("keyspaces set default --ttl 1h\n", "'--ttl'"),
        ("keyspaces rename\n", "see `keyspaces --help`"),
        ("scan a many\n", "\"many\" is no number"),
    ] {
        let arguments = ["shell", "--db", db];
        let script = format!("{script}put reached 1\n");
        let line = failed(1, &arguments, &run_with_input(&arguments, script.as_bytes()));
        assert!(line.contains(expected), "{script}: {line}");
    }
    let arguments = ["shell", "--db", db, "--read-only"];
    let line = failed(1, &arguments, &run_with_input(&arguments, b"put b 1\n"));
    assert!(line.contains("read-only"), "{line}");
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "1\n");
}

/// Seen: a put dropped the time to live of its key, and no word could give or show one; and no
/// keyspace could be made.
#[test]
fn keyspaces_are_made_and_changed_and_entries_get_times_to_live() {
    let sandbox = Sandbox::new("shell-keyspaces");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "a", "1"]);
    let script = b"keyspaces create sessions --default-ttl none\nuse sessions\nput s:1 Ada --ttl 30m\nput s:2 Bob\n\
        get s:1 --show-ttl\nscan --show-ttl\nscan s: 1 --show-ttl\nscan s: --show-ttl\nget s:1\n\
        keyspaces rename sessions visits\ncount\nkeyspaces create hits --merge-operator uint64add\nuse hits\n\
        merge / 5\nget /\nkeyspaces clear hits --yes\ncount\nkeyspaces drop hits --yes\nkeyspaces\n";
    let output = ok_with_input(&["shell", "--db", db], script);
    let told: Vec<String> = output.lines().map(|line| line.replace("29m 59s", "30m")).collect();
    assert_eq!(
        told,
        [
            "Ada\t30m",
            "s:1\tAda\t30m",
            "s:2\tBob\tnever",
            "s:1\tAda\t30m",
            "s:1\tAda\t30m",
            "s:2\tBob\tnever",
            "Ada",
            "2",
            "5",
            "0",
            "default",
            "visits"
        ]
    );
    let output = run_with_input(&["shell", "--db", db, "--keyspace", "visits"], b"put s:2 Eve\nput s:1 Eve\n");
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("esker: s:1 had a time to live, and has none now; "), "{told}");
    let help = ok_with_input(&["shell", "--db", db], b"help\nkeyspaces create --help\n");
    assert!(help.contains("put KEY VALUE [--ttl TIME]") && help.contains("--default-ttl"), "{help}");
    assert!(help.lines().all(|line| line.len() <= 100), "{help}");
}
