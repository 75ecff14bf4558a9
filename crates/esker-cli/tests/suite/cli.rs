//! Every command of the `esker` binary where nothing goes wrong: text, JSON, hexadecimal, round
//! trips, pipes, exit codes.
#![allow(clippy::unwrap_used)]

use crate::common::{
    Sandbox, command, failed, fails, lines, ok, ok_with_input, run, run_with_input, spawn_piped, wait_for,
};
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn put_get_delete() {
    let sandbox = Sandbox::new("put");
    let db = &sandbox.text("db");
    assert_eq!(ok(&["put", "--db", db, "user:1", "Ada"]), "");
    assert_eq!(ok(&["get", "--db", db, "user:1"]), "Ada\n");
    assert_eq!(ok(&["put", "--db", db, "--sync", "user:1", "Grace"]), "");
    assert_eq!(ok(&["get", "--db", db, "user:1", "--json"]), "{\"key\":\"user:1\",\"value\":\"Grace\"}\n");
    assert_eq!(ok(&["put", "--db", db, "--json", "-1", "-2"]), "{\"written\":1}\n");
    assert_eq!(ok(&["get", "--db", db, "-1"]), "-2\n");
    assert_eq!(ok(&["put", "--db", db, "--", "-x", "--y"]), "");
    assert_eq!(ok(&["get", "--db", db, "--", "-x"]), "--y\n");
    assert_eq!(ok(&["put", "--db", db, "", ""]), "");
    assert_eq!(ok(&["get", "--db", db, ""]), "\n");
    assert_eq!(ok(&["delete", "--db", db, "user:1", "never there"]), "");
    assert_eq!(fails(1, &["get", "--db", db, "user:1"]), "esker: not found: user:1");
    assert_eq!(ok(&["delete", "--db", db, "--json", "-1"]), "{\"deleted\":1}\n");
    assert_eq!(fails(1, &["get", "--db", db, "--json", "-1"]), "esker: not found: -1");
}

#[test]
fn bytes_that_are_not_text() {
    let sandbox = Sandbox::new("bytes");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "--hex", "00ff5c", "0A0b7e"]);
    assert_eq!(ok(&["get", "--db", db, "--hex", "00FF5C"]), "0a0b7e\n");
    assert_eq!(ok(&["get", "--db", db, "\\x00\\xff\\\\"]), "\\x0a\\x0b~\n");
    assert_eq!(ok(&["get", "--db", db, "--hex", "00ff5c", "--raw"]), "\n\u{b}~");
    assert_eq!(ok(&["scan", "--db", db]), "\\x00\\xff\\\\\t\\x0a\\x0b~\n");
    assert_eq!(ok(&["scan", "--db", db, "--hex", "--json"]), "{\"key\":\"00ff5c\",\"value\":\"0a0b7e\"}\n");
    ok(&["put", "--db", db, "\u{e9}", "\\n"]);
    assert_eq!(ok(&["get", "--db", db, "\\xc3\\xa9"]), "\\x0a\n");
    assert_eq!(ok(&["scan", "--db", db, "--prefix", "\u{e9}"]), "\u{e9}\t\\x0a\n");
    // A value that comes on standard input is taken as it is.
    ok_with_input(&["put", "--db", db, "in", "-"], b"a\\b\n\xff");
    assert_eq!(ok(&["get", "--db", db, "in"]), "a\\\\b\\x0a\\xff\n");
    ok(&["put", "--db", db, "in", "\\x2d"]);
    assert_eq!(ok(&["get", "--db", db, "in"]), "-\n");
}

#[test]
fn signed_counters_and_bits() {
    let sandbox = Sandbox::new("signed");
    let db = &sandbox.text("db");
    let key = |keyspace: &'static str| ["--db", db, "--keyspace", keyspace];
    let run =
        |command: &'static str, keyspace, rest: &[&'static str]| ok(&[&[command], &key(keyspace)[..], rest].concat());
    run("merge", "stock", &["--merge-operator", "int64add", "screws", "-9223372036854775808"]);
    run("merge", "stock", &["screws", "-1"]);
    run("merge", "stock", &["screws", "3"]);
    assert_eq!(run("get", "stock", &["--as", "i64", "screws"]), "-9223372036854775805\n");
    assert_eq!(run("scan", "stock", &["--as", "i64"]), "screws\t-9223372036854775805\n");
    run("put", "stock", &["--as", "i64", "nails", "-2"]);
    assert_eq!(run("get", "stock", &["--as", "u64", "nails"]), "18446744073709551614\n");
    let line = fails(2, &[&["merge"], &key("stock")[..], &["screws", "9223372036854775808"]].concat());
    assert!(line.contains("with a sign"), "{line}");
    run("merge", "bits", &["--merge-operator", "bitor", "--hex", "00", "01"]);
    run("merge", "bits", &["--hex", "00", "80ff"]);
    assert_eq!(run("get", "bits", &["--hex", "00"]), "81ff\n");
}

#[test]
fn counters() {
    let sandbox = Sandbox::new("counters");
    let db = &sandbox.text("db");
    let hits = ["--db", db, "--keyspace", "hits"];
    let with = |command: &str, rest: &[&str]| [&[command][..], &hits[..], rest].concat().join("\u{1}");
    let ok = |command: &str, rest: &[&str]| ok(&with(command, rest).split('\u{1}').collect::<Vec<_>>());
    let line = fails(2, &["merge", "--db", db, "--keyspace", "hits", "page", "1"]);
    assert!(line.contains("--merge-operator") && !sandbox.path("db").exists(), "{line}");

    assert_eq!(ok("merge", &["--merge-operator", "uint64add", "page", "5"]), "");
    assert_eq!(ok("merge", &["page", "18446744073709551615"]), "");
    assert_eq!(ok("merge", &["--json", "page", "-1"]), "{\"merged\":1}\n");
    assert_eq!(ok("merge", &["--hex", "70616765", "0001000000000000"]), "");
    assert_eq!(ok("merge", &["--raw", "page", "\\x01\\0\\0\\0\\0\\0\\0\\0"]), "");
    assert_eq!(ok("get", &["--as", "u64", "page"]), "260\n");
    assert_eq!(ok("get", &["page"]), "\\x04\\x01\\x00\\x00\\x00\\x00\\x00\\x00\n");
    assert_eq!(ok("put", &["--as", "u64", "page", "7"]), "");
    assert_eq!(ok("scan", &["--as", "u64"]), "page\t7\n");
    assert_eq!(ok("scan", &["--as", "u64", "--json"]), "{\"key\":\"page\",\"value\":7}\n");

    assert!(fails(2, &["merge", "--db", db, "--keyspace", "hits", "page", "many"]).contains("many"));
    assert!(fails(1, &["merge", "--db", db, "--keyspace", "hits", "--raw", "page", "abc"]).contains("; "));
    let other = fails(1, &["merge", "--db", db, "--keyspace", "hits", "--merge-operator", "max", "page", "1"]);
    assert!(other.contains("uint64add") && other.contains("max"), "{other}");
    assert_eq!(ok("get", &["--as", "u64", "page"]), "7\n");
}

#[test]
fn other_operators() {
    let sandbox = Sandbox::new("operators");
    let db = &sandbox.text("db");
    for (operator, expected) in [("max", "b"), ("min", "a"), ("put", "a")] {
        for operand in ["b", "a"] {
            ok(&["merge", "--db", db, "--keyspace", operator, "--merge-operator", operator, "k", operand]);
        }
        assert_eq!(ok(&["get", "--db", db, "--keyspace", operator, "k"]), format!("{expected}\n"));
    }
    for (keyspace, operator, expected) in [
        ("comma", "stringappend", "one,two"),
        ("nothing", "stringappend:", "onetwo"),
        ("arrow", "stringappend:->", "one->two"),
        ("lines", "stringappend:\\n", "one\\x0atwo"),
    ] {
        let with = |operand| ["merge", "--db", db, "--keyspace", keyspace, "--merge-operator", operator, "k", operand];
        ok(&with("one"));
        ok(&["merge", "--db", db, "--keyspace", keyspace, "k", "two"]);
        assert_eq!(ok(&["get", "--db", db, "--keyspace", keyspace, "k"]), format!("{expected}\n"));
        let mut other = with("three");
        other[6] = "stringappend:;";
        fails(1, &other);
    }
    let copy = &sandbox.text("copy");
    let dump = ok(&["dump", "--db", db, "--json", "--all-keyspaces"]);
    ok_with_input(&["load", "--db", copy, "--json"], dump.as_bytes());
    ok(&["merge", "--db", copy, "--keyspace", "arrow", "--merge-operator", "stringappend:->", "k", "3"]);
    assert_eq!(ok(&["get", "--db", copy, "--keyspace", "arrow", "k"]), "one->two->3\n");
}

#[test]
fn scans() {
    let sandbox = Sandbox::new("scan");
    let db = &sandbox.text("db");
    let input = "a\t1\nb\t2\nb1\t3\nb2\t4\nc\t5\n\\xff\t6\n\\xff\\xff\t7\n";
    ok_with_input(&["load", "--db", db], input.as_bytes());
    let keys = |arguments: &[&str]| {
        let text = ok(&[&["scan", "--db", db, "--keys-only"][..], arguments].concat());
        text.lines().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ok(&["scan", "--db", db]), input);
    assert_eq!(keys(&["--prefix", "b"]), "b b1 b2");
    assert_eq!(keys(&["--prefix", "\\xff"]), "\\xff \\xff\\xff");
    assert_eq!(keys(&["--prefix", "b", "--reverse", "--limit", "2"]), "b2 b1");
    assert_eq!(keys(&["--from", "b", "--to", "c"]), "b b1 b2");
    assert_eq!(keys(&["--from", "b1", "--prefix", "b"]), "b1 b2");
    assert_eq!(keys(&["--from", "a", "--to", "b1", "--prefix", "b"]), "b");
    assert_eq!(keys(&["--prefix", "b", "--from", "c"]), "");
    assert_eq!(keys(&["--from", "b", "--to", "b"]), "");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(keys(&["--from", "c", "--reverse"]), "\\xff\\xff \\xff c");
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "7\n");
    assert_eq!(ok(&["scan", "--db", db, "--count", "--json", "--prefix", "b"]), "{\"count\":3}\n");
    assert_eq!(ok(&["scan", "--db", db, "--keys-only", "--json", "--limit", "1"]), "{\"key\":\"a\"}\n");
    assert_eq!(ok(&["scan", "--db", db, "--limit", "1"]), "a\t1\n");
    fails(2, &["scan", "--db", db, "--from", "c", "--to", "b"]);
}

/// Keys and values with every byte, empty ones among them; deterministic.
fn awkward_lines() -> Vec<u8> {
    let mut json = Vec::new();
    let mut state = 1_u32;
    for number in 0..600_u32 {
        let mut text = String::new();
        for _ in 0..number % 40 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(&format!("{:02x}", state >> 24));
        }
        let value: String = if number % 7 == 0 { String::new() } else { text.chars().rev().collect() };
        json.extend_from_slice(format!("{{\"key\":\"{text}\",\"value\":\"{value}\"}}\n").as_bytes());
    }
    json
}

#[test]
fn a_loaded_dump_is_the_same_database() {
    let sandbox = Sandbox::new("round-trip");
    let source = &sandbox.text("source");
    ok_with_input(&["load", "--db", source, "--json", "--hex"], &awkward_lines());
    let expected = ok(&["dump", "--db", source, "--hex"]);
    assert!(expected.lines().count() > 500);
    for (number, flags) in [&[][..], &["--hex"], &["--json"], &["--json", "--hex"]].into_iter().enumerate() {
        let file = &sandbox.text(&format!("dump{number}"));
        let copy = &sandbox.text(&format!("copy{number}"));
        let told = ok(&[&["dump", "--db", source, "--output", file][..], flags].concat());
        assert!(told.contains("records"), "{told}");
        let told = ok(&[&["load", "--db", copy, file, "--batch", "7"][..], flags].concat());
        assert!(told.contains(&expected.lines().count().to_string()), "{told}");
        assert_eq!(ok(&["dump", "--db", copy, "--hex"]), expected, "{flags:?}");
    }
    assert!(!sandbox.path("dump0.partial").exists());
}

#[test]
fn all_keyspaces_with_their_operators() {
    let sandbox = Sandbox::new("all");
    let (source, copy) = (&sandbox.text("source"), &sandbox.text("copy"));
    ok(&["put", "--db", source, "a", "1"]);
    ok(&["put", "--db", source, "--keyspace", "k \"q\"", "b", "2"]);
    ok(&["merge", "--db", source, "--keyspace", "hits", "--merge-operator", "uint64add", "c", "3"]);
    ok(&["merge", "--db", source, "--keyspace", "empty", "--merge-operator", "max", "d", "4"]);
    ok(&["delete", "--db", source, "--keyspace", "empty", "d"]);
    let dump = ok(&["dump", "--db", source, "--json", "--all-keyspaces"]);
    ok_with_input(&["load", "--db", copy, "--json"], dump.as_bytes());
    assert_eq!(ok(&["dump", "--db", copy, "--json", "--all-keyspaces"]), dump);
    ok(&["merge", "--db", copy, "--keyspace", "hits", "c", "1"]);
    assert_eq!(ok(&["get", "--db", copy, "--keyspace", "hits", "--as", "u64", "c"]), "4\n");
    assert!(ok(&["keyspaces", "--db", copy]).contains("uint64add"));
}

#[test]
fn load_takes_operations() {
    let sandbox = Sandbox::new("operations");
    let db = &sandbox.text("db");
    let input = concat!(
        "{\"key\":\"n\",\"op\":\"merge\",\"value\":40}\r\n",
        "\n",
        "{\"key\":\"n\",\"op\":\"merge\",\"value\":2}\n",
        "{\"key\":\"gone\",\"value\":\"x\"}\n",
        "{\"key\":\"gone\",\"op\":\"delete\"}\n",
        "{\"keyspace\":\"other\",\"key\":\"o\",\"op\":\"put\",\"value\":\"p\"}",
    );
    let told = ok_with_input(&["load", "--db", db, "--json", "--merge-operator", "uint64add"], input.as_bytes());
    assert!(told.contains("\"records\":5"), "{told}");
    assert_eq!(ok(&["scan", "--db", db, "--as", "u64"]), "n\t42\n");
    assert_eq!(ok(&["scan", "--db", db, "--keyspace", "other"]), "o\tp\n");
}

#[test]
fn a_bad_line_says_what_is_written() {
    let sandbox = Sandbox::new("bad-line");
    let db = &sandbox.text("db");
    let mut input = lines("k", 24);
    input.push_str("no tab\n");
    input.push_str(&lines("later", 10));
    let file = &sandbox.text("input.tsv");
    std::fs::write(file, &input).unwrap();
    let arguments = ["load", "--db", db, "--batch", "10", file];
    let line = fails(1, &arguments);
    assert!(line.contains("line 25 of") && line.contains("lines 1 to 20 are written"), "{line}");
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "20\n");
    let arguments = ["load", "--db", db, "--json"];
    let line = failed(1, &arguments, &run_with_input(&arguments, b"{\"key\":\"x\",\"value\":\"y\"}\n{\"key\":3}\n"));
    assert!(line.contains("line 2 of standard input") && line.contains("nothing was written"), "{line}");
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "20\n");
}

#[test]
fn maintenance() {
    let sandbox = Sandbox::new("maintenance");
    let (db, copy) = (&sandbox.text("db"), &sandbox.text("copies/one"));
    ok_with_input(&["load", "--db", db, "-"], lines("k", 3000).as_bytes());
    ok_with_input(&["load", "--db", db], lines("k", 1500).as_bytes());
    assert!(ok(&["verify", "--db", db]).starts_with("no damage"));
    assert!(ok(&["compact", "--db", db]).starts_with("compacted"));
    assert!(ok(&["compact", "--db", db, "--keyspace", "default", "--json"]).contains("table_bytes_after"));
    assert!(ok(&["verify", "--db", db, "--json"]).contains("\"ok\":true"));
    assert!(ok(&["stats", "--db", db]).lines().count() >= 1);
    // Seen: "problem: it was opened read-only", which is how the command opens every database.
    assert!(!ok(&["stats", "--db", db]).contains("problem"));
    let stats: serde_json::Value = serde_json::from_str(&ok(&["stats", "--db", db, "--json"])).unwrap();
    assert!(stats["table_files"].is_u64() && stats["keyspaces"][0]["name"] == "default", "{stats}");
    assert_eq!(stats["keyspaces"][0]["entries"], 3000, "{stats}");
    let list: serde_json::Value = serde_json::from_str(&ok(&["keyspaces", "--db", db, "--json"])).unwrap();
    assert_eq!(list["keyspaces"][0]["merge_operator"], serde_json::Value::Null);
    assert!(ok(&["keyspaces", "--db", db]).contains("3000"));

    ok(&["checkpoint", "--db", db, copy]);
    ok(&["put", "--db", db, "after", "the checkpoint"]);
    assert!(ok(&["verify", "--db", copy]).starts_with("no damage"));
    assert_eq!(ok(&["scan", "--db", copy, "--count"]), "3000\n");
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "3001\n");
    fails(1, &["checkpoint", "--db", db, copy]);
    let json = ok(&["checkpoint", "--db", db, "--json", &sandbox.text("two")]);
    assert!(json.starts_with("{\"checkpoint\":"), "{json}");
    let own = &sandbox.text("three");
    ok(&["checkpoint", "--db", db, "--copy", own]);
    for entry in std::fs::read_dir(own).unwrap() {
        std::fs::OpenOptions::new().write(true).open(entry.unwrap().path()).unwrap().set_len(0).unwrap();
    }
    assert!(ok(&["verify", "--db", db]).starts_with("no damage"));
    damage_a_table(db);
    let own = &sandbox.text("db/../db/inside");
    assert!(fails(1, &["checkpoint", "--db", db, own]).contains("in the directory of the database"));
    assert!(!std::path::Path::new(own).exists());
    let error = fails(1, &["checkpoint", "--db", db, "--copy", &sandbox.text("four")]);
    assert!(error.contains(".table is damaged at offset "), "{error}");
}

fn damage_a_table(db: &str) {
    let mut paths = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let table = paths.find(|path| path.extension().is_some_and(|kind| kind == "table")).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&table, bytes).unwrap();
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let sandbox = Sandbox::new("pipe");
    let db = &sandbox.text("db");
    ok_with_input(&["load", "--db", db], lines("k", 50_000).as_bytes());
    for arguments in [["scan", "--db", db], ["dump", "--db", db]] {
        let mut child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn commands_pipe_into_each_other() {
    let sandbox = Sandbox::new("piped");
    let (source, copy) = (&sandbox.text("source"), &sandbox.text("copy"));
    ok_with_input(&["load", "--db", source], lines("k", 5000).as_bytes());
    let mut dump = command(&["dump", "--db", source]).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = dump.stdout.take().unwrap();
    let output = command(&["load", "--db", copy]).stdin(stdout).output().unwrap();
    assert!(output.status.success() && dump.wait().unwrap().success());
    assert_eq!(ok(&["scan", "--db", copy]), ok(&["scan", "--db", source]));
}

#[test]
fn readers_work_beside_a_writer() {
    let sandbox = Sandbox::new("beside");
    let db = &sandbox.text("db");
    let mut writer = spawn_piped(&["load", "--db", db, "--batch", "1"]);
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(b"a\t1\n").unwrap();
    stdin.flush().unwrap();
    wait_for("the first record", || run(&["get", "--db", db, "a"]).status.success().then_some(()));
    assert_eq!(ok(&["scan", "--db", db]), "a\t1\n");
    assert!(ok(&["keyspaces", "--db", db]).contains("default"));
    stdin.write_all(b"b\t2\n").unwrap();
    drop(stdin);
    assert!(writer.wait_with_output().unwrap().status.success());
    assert_eq!(ok(&["scan", "--db", db]), "a\t1\nb\t2\n");
}

#[test]
fn help_version_and_environment() {
    let sandbox = Sandbox::new("help");
    for name in [
        "put",
        "get",
        "delete",
        "merge",
        "scan",
        "load",
        "dump",
        "stats",
        "compact",
        "verify",
        "checkpoint",
        "keyspaces",
    ] {
        let help = ok(&[name, "--help"]);
        assert!(help.contains("Examples:") && help.contains("--db <DIR>") && help.contains("--json"), "{help}");
        assert_eq!(ok(&["help", name]), help);
        assert!(help.lines().all(|line| line.len() <= 120), "{help}");
    }
    assert!(ok(&["--help"]).contains("Exit codes"));
    assert!(ok(&["--version"]).starts_with("esker "));
    let db = sandbox.text("db");
    let output = command(&["put", "k", "v"]).env("ESKER_DB", &db).output().unwrap();
    assert!(output.status.success());
    assert_eq!(ok(&["get", "--db", &db, "k"]), "v\n");
}

#[test]
#[cfg(not(feature = "backup"))]
fn a_build_without_backups_says_how_to_get_them() {
    for arguments in [&["backup"][..], &["backup", "list", "x"], &["backup", "--help"]] {
        let line = fails(2, arguments);
        assert!(line.contains("--features backup"), "{line}");
    }
}

#[test]
#[cfg(not(feature = "bench"))]
fn a_build_without_benchmarks_says_how_to_get_them() {
    for command in ["bench", "study", "sweep", "report"] {
        let line = fails(2, &[command, "--help"]);
        assert!(line.contains("--features bench"), "{line}");
    }
}
