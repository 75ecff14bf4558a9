//! `esker keyspaces`: made, changed, renamed, emptied and dropped; and what other commands say of
//! settings.
#![allow(clippy::unwrap_used)]

use crate::common::{Sandbox, failed, fails, ok, ok_with_input, run_with_input};
use serde_json::{Value, json};

/// What is listed of a keyspace; null if it is not there.
fn listed(db: &str, name: &str) -> Value {
    let list: Value = serde_json::from_str(&ok(&["keyspaces", "--db", db, "--json"])).unwrap();
    let mut list = list["keyspaces"].as_array().unwrap().iter();
    list.find(|keyspace| keyspace["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn keyspaces_are_made_changed_renamed_emptied_and_dropped() {
    let sandbox = Sandbox::new("keyspaces");
    let db = &sandbox.text("db");
    let keyspaces = |change: &str, rest: &[&str]| ok(&[&["keyspaces", change, "--db", db], rest].concat());
    assert_eq!(keyspaces("create", &["hits", "--merge-operator", "uint64add", "--compaction-style", "tiered"]), "");
    assert_eq!(keyspaces("create", &["s", "--default-ttl", "30m", "--json"]), "{\"created\":\"s\"}\n");
    keyspaces("create", &["latest", "--comparator", "reverse-bytewise", "--default-ttl", "none"]);
    assert_eq!(listed(db, "hits")["merge_operator"], "uint64add");
    assert_eq!(listed(db, "hits")["ttl"], Value::Null);
    assert_eq!(listed(db, "s")["ttl"], 1_800_000);
    assert_eq!(listed(db, "latest")["ttl"], "on");
    assert_eq!(listed(db, "latest")["comparator"], "reverse-bytewise");
    assert!(fails(1, &["keyspaces", "create", "--db", db, "s"]).contains("already; change it with `keyspaces set`"));

    // Operands are folded by the operator that they were merged with.
    ok(&["merge", "--db", db, "--keyspace", "hits", "/", "5"]);
    ok(&["merge", "--db", db, "--keyspace", "hits", "/", "7"]);
    keyspaces("set", &["hits", "--merge-operator", "max", "--default-ttl", "2h", "--compaction-style", "leveled"]);
    assert_eq!(ok(&["get", "--db", db, "--keyspace", "hits", "--as", "u64", "/"]), "12\n");
    let changed = listed(db, "hits");
    assert_eq!((&changed["merge_operator"], &changed["ttl"]), (&json!("max"), &json!(7_200_000)));
    assert!(ok(&["dump", "--db", db, "--keyspace", "hits"]).contains("compaction_style=leveled"));
    assert_eq!(keyspaces("set", &["s", "--default-ttl", "none", "--json"]), "{\"changed\":\"s\"}\n");
    assert_eq!(listed(db, "s")["ttl"], "on");
    // The options may stand before the command.
    ok(&["keyspaces", "--db", db, "set", "s", "--default-ttl", "1m"]);
    assert_eq!(listed(db, "s")["ttl"], 60_000);

    assert_eq!(keyspaces("rename", &["hits", "visits", "--json"]), "{\"renamed\":\"hits\",\"to\":\"visits\"}\n");
    assert_eq!(ok(&["get", "--db", db, "--keyspace", "visits", "--as", "u64", "/"]), "12\n");
    assert!(fails(1, &["keyspaces", "rename", "--db", db, "visits", "s"]).contains("choose another name"));
    for change in ["clear", "drop"] {
        let line = fails(2, &["keyspaces", change, "--db", db, "visits"]);
        assert!(line.contains("give --yes if that is meant"), "{line}");
    }
    assert_eq!(ok(&["scan", "--db", db, "--keyspace", "visits", "--count"]), "1\n");
    assert_eq!(keyspaces("clear", &["visits", "--yes", "--json"]), "{\"cleared\":\"visits\"}\n");
    assert_eq!(ok(&["scan", "--db", db, "--keyspace", "visits", "--count"]), "0\n");
    assert_eq!(listed(db, "visits")["merge_operator"], "max");
    assert_eq!(keyspaces("drop", &["visits", "--yes", "--json"]), "{\"dropped\":\"visits\"}\n");
    assert_eq!(listed(db, "visits"), Value::Null);
}

#[test]
fn what_cannot_be_done_is_one_line_and_changes_nothing() {
    let sandbox = Sandbox::new("keyspaces-wrong");
    let db = &sandbox.text("db");
    for change in [&["set", "k", "--default-ttl", "1h"][..], &["rename", "k", "l"], &["clear", "k", "--yes"]] {
        assert!(fails(1, &[&["keyspaces", "--db", db], change].concat()).contains("does not exist"));
    }
    assert!(!sandbox.path("db").exists());
    ok(&["put", "--db", db, "k", "v"]);
    for change in [&["set", "no", "--default-ttl", "1h"][..], &["rename", "no", "l"], &["drop", "no", "--yes"]] {
        assert!(fails(1, &[&["keyspaces", "--db", db], change].concat()).contains("no"));
    }
    assert!(fails(2, &["keyspaces", "set", "--db", db, "default"]).contains("nothing to set; give --merge-operator"));
    assert!(fails(2, &["keyspaces", "set", "--db", db, "default", "--default-ttl", "0s"]).contains("zero"));
    assert!(fails(2, &["keyspaces", "create", "--db", db, "f", "--compaction-style", "fifo:0"]).contains("fifo:1"));
    assert!(fails(2, &["keyspaces", "create", "--db", db, "f", "--comparator", "mine"]).contains("reverse-bytewise"));
    assert!(fails(1, &["keyspaces", "create", "--db", db, ""]).contains("keyspace name"));
    assert!(fails(2, &["keyspaces"]).contains("--db"));
    assert_eq!(ok(&["keyspaces", "--db", db]).lines().count(), 2);
}

/// Seen: the advice was a call of the library.
#[test]
fn settings_that_do_not_fit_name_the_command_that_changes_them() {
    let sandbox = Sandbox::new("keyspaces-advice");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "k", "v"]);
    ok(&["put", "--db", db, "--keyspace", "s", "--default-ttl", "1h", "k", "v"]);
    ok(&["put", "--db", db, "--keyspace", "s", "--default-ttl", "60m", "k", "v"]);
    let dump = ok(&["dump", "--db", db, "--keyspace", "s"]);
    let expiry = b"a\t1\t99999999999999\n";
    let mut lines = vec![
        fails(1, &["put", "--db", db, "--ttl", "1h", "k", "v"]),
        fails(1, &["put", "--db", db, "--default-ttl", "1h", "k", "v"]),
        fails(1, &["put", "--db", db, "--keyspace", "s", "--default-ttl", "2h", "k", "v"]),
        fails(1, &["put", "--db", db, "--merge-operator", "max", "k", "v"]),
        fails(1, &["merge", "--db", db, "k", "v"]),
    ];
    let load = ["load", "--db", db];
    lines.push(failed(1, &load, &run_with_input(&load, dump.as_bytes())));
    lines.push(failed(1, &load, &run_with_input(&load, expiry)));
    let with_ttl = ["load", "--db", db, "--ttl", "1h"];
    lines.push(failed(1, &with_ttl, &run_with_input(&with_ttl, b"a\t1\n")));
    let json = ["load", "--db", db, "--json"];
    let merge = b"{\"key\":\"k\",\"op\":\"merge\",\"value\":\"v\"}\n";
    lines.push(failed(1, &json, &run_with_input(&json, merge)));
    for line in lines {
        assert!(line.contains("`esker keyspaces set --"), "{line}");
        assert!(!line.contains("::") && !line.contains("set_ttl"), "{line}");
    }
    // And then it works.
    ok(&["keyspaces", "set", "--db", db, "default", "--default-ttl", "none", "--merge-operator", "max"]);
    ok(&["put", "--db", db, "--ttl", "1h", "k", "v"]);
    ok(&["merge", "--db", db, "k", "w"]);
    ok_with_input(&load, expiry);
    let help = ok(&["merge", "--help"]);
    assert!(!help.contains("never changes") && help.contains("keyspaces set"), "{help}");
}
