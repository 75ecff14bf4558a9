//! What a dump carries, and what a load takes: settings, expiries, and files of other programs.
#![allow(clippy::unwrap_used)]

use crate::common::{self, Sandbox, failed, fails, files, ok, ok_with_input, run, run_with_input};
use std::time::{SystemTime, UNIX_EPOCH};

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Keyspaces with every kind of setting, and entries that expire and that do not.
fn specimen(db: &str) {
    let with = |keyspace: &'static str, rest: &[&str]| {
        ok(&[&["put", "--db", db, "--keyspace", keyspace][..], rest].concat());
    };
    with("plain", &["k", "v"]);
    with("sessions", &["--ttl", "2h", "short", "1"]);
    with("sessions", &["for ever", "2"]);
    with("usual", &["--default-ttl", "1h30m", "a", "3"]);
    with("usual", &["--ttl", "7d", "b", "4"]);
    ok(&["merge", "--db", db, "--keyspace", "count", "--merge-operator", "uint64add", "--ttl", "1d", "n", "5"]);
}

/// Seen: expiring keys became immortal, and a program that names the time to live could not open
/// the copy.
#[test]
fn expiries_and_settings_come_back() {
    let sandbox = Sandbox::new("ttl-dump");
    let source = &sandbox.text("source");
    specimen(source);
    for flags in [&["--json"][..], &["--json", "--hex"]] {
        let copy = &sandbox.text(&format!("copy{}", flags.len()));
        let dump = |db: &str| ok(&[&["dump", "--db", db, "--all-keyspaces"][..], flags].concat());
        ok_with_input(&[&["load", "--db", copy][..], flags].concat(), dump(source).as_bytes());
        assert_eq!(dump(copy), dump(source));
        assert!(!ok(&["keyspaces", "--db", copy]).contains("default"), "an empty keyspace that nobody asked for");
    }
    for (number, keyspace) in ["plain", "sessions", "usual", "count"].into_iter().enumerate() {
        for (flags, form) in [(&[][..], "text"), (&["--hex"], "hex"), (&["--json"], "json")] {
            let copy = &sandbox.text(&format!("one-{number}-{form}"));
            let dump = |db: &str| ok(&[&["dump", "--db", db, "--keyspace", keyspace][..], flags].concat());
            ok_with_input(
                &[&["load", "--db", copy, "--keyspace", keyspace][..], flags].concat(),
                dump(source).as_bytes(),
            );
            assert_eq!(dump(copy), dump(source), "{keyspace}, {form}");
            let list = |db: &str| {
                let lines = ok(&["keyspaces", "--db", db]);
                let line = lines.lines().find(|line| line.starts_with(keyspace)).unwrap().to_owned();
                line.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
            };
            assert_eq!(list(copy), list(source));
        }
    }
    assert_eq!(ok(&["dump", "--db", source, "--keyspace", "plain"]), "k\tv\n");
    assert_eq!(
        ok(&["dump", "--db", source, "--keyspace", "sessions"]).lines().take(2).collect::<Vec<_>>(),
        ["\\keyspace\tttl=on", "for ever\t2"]
    );
    // A keyspace that is there keeps what it was created with.
    let other = &sandbox.text("other");
    ok(&["put", "--db", other, "--keyspace", "usual", "x", "y"]);
    let arguments = ["load", "--db", other, "--keyspace", "usual"];
    let dump = ok(&["dump", "--db", source, "--keyspace", "usual"]);
    let line = failed(1, &arguments, &run_with_input(&arguments, dump.as_bytes()));
    assert!(line.contains("line 1 of standard input") && line.contains("ttl"), "{line}");
}

#[test]
fn an_expiry_that_has_passed_stays_passed() {
    let sandbox = Sandbox::new("passed");
    let db = &sandbox.text("db");
    let (past, future) = (now_ms() - 1000, now_ms() + 3_600_000);
    let input = format!("\\keyspace\tttl=60000\na\t1\t{past}\nb\t2\t{future}\nc\t3\tnever\nd\t4\n");
    ok_with_input(&["load", "--db", db], input.as_bytes());
    assert_eq!(ok(&["scan", "--db", db, "--keys-only"]), "b\nc\nd\n");
    let shown = ok(&["scan", "--db", db, "--show-ttl"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("b\t2\t59m") && lines[2].starts_with("d\t4\t5"), "{shown}");
    assert_eq!(lines[1], "c\t3\tnever");
    for (line, said) in [("a\t1\tsoon", "soon"), ("a\t1\t2\t3", "two tabs"), ("\\keyspace\tcolour=red", "colour")] {
        let arguments = ["load", "--db", db];
        let told = failed(1, &arguments, &run_with_input(&arguments, line.as_bytes()));
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn times_to_live() {
    let sandbox = Sandbox::new("ttl");
    let db = &sandbox.text("db");
    ok(&["put", "--db", db, "--keyspace", "s", "--ttl", "10m", "k", "v"]);
    ok(&["put", "--db", db, "--keyspace", "s", "l", "w"]);
    let shown = ok(&["get", "--db", db, "--keyspace", "s", "--show-ttl", "k"]);
    assert!(shown.starts_with("v\t9m 5") || shown.starts_with("v\t10m"), "{shown}");
    assert_eq!(ok(&["get", "--db", db, "--keyspace", "s", "--show-ttl", "l"]), "w\tnever\n");
    let json: serde_json::Value =
        serde_json::from_str(&ok(&["get", "--db", db, "--keyspace", "s", "--show-ttl", "--json", "k"])).unwrap();
    assert!(json["expires_at"].as_u64().unwrap() > now_ms() + 500_000, "{json}");
    ok(&["put", "--db", db, "--keyspace", "s", "--ttl", "1ms", "gone", "v"]);
    common::wait_for("the expiry", || {
        (run(&["get", "--db", db, "--keyspace", "s", "gone"]).status.code() == Some(1)).then_some(())
    });
    let input = b"a\t1\nb\t2\n";
    ok_with_input(&["load", "--db", db, "--keyspace", "loaded", "--ttl", "1h"], input);
    assert!(ok(&["scan", "--db", db, "--keyspace", "loaded", "--show-ttl"]).contains("a\t1\t59m"));
    // Where nothing expires, a time is refused, and a wrong one is no time.
    ok(&["put", "--db", db, "k", "v"]);
    assert!(fails(1, &["put", "--db", db, "--ttl", "1h", "k", "v"]).contains("time to live"));
    assert!(fails(2, &["put", "--db", db, "--ttl", "10", "k", "v"]).contains("10m"));
    assert!(fails(2, &["put", "--db", db, "--ttl", "0s", "k", "v"]).contains("zero"));
    let keyspaces = ok(&["keyspaces", "--db", db]);
    assert!(keyspaces.lines().any(|line| line.starts_with("s ") && line.contains(" on ")), "{keyspaces}");
    let stats: serde_json::Value = serde_json::from_str(&ok(&["keyspaces", "--db", db, "--json"])).unwrap();
    assert_eq!(
        (&stats["keyspaces"][0]["ttl"], &stats["keyspaces"][1]["ttl"]),
        (&"null".parse().unwrap(), &"on".into())
    );
}

/// Dumps that earlier versions wrote.
#[test]
fn older_dumps_load() {
    let sandbox = Sandbox::new("older");
    let db = &sandbox.text("db");
    let json = concat!(
        "{\"keyspace\":\"default\",\"merge_operator\":null}\n",
        "{\"keyspace\":\"default\",\"key\":\"ma\\\\xc3\\\\xb1ana\",\"value\":\"\\\\x09\"}\n",
        "{\"keyspace\":\"hits\",\"merge_operator\":\"uint64add\"}\n",
    );
    ok_with_input(&["load", "--db", db, "--json"], json.as_bytes());
    ok_with_input(&["load", "--db", db], b"\\xe6\\x97\\xa5\tx\n");
    assert_eq!(ok(&["scan", "--db", db]), "ma\u{f1}ana\t\\x09\n\u{65e5}\tx\n");
    assert!(ok(&["keyspaces", "--db", db]).contains("uint64add"));
}

#[test]
fn raw_lines_and_csv() {
    let sandbox = Sandbox::new("raw");
    let db = &sandbox.text("db");
    let input = b"C:\\new\tD:\\x\ty\r\n\xff\t\n";
    let arguments = ["load", "--db", db];
    let line = failed(1, &arguments, &run_with_input(&arguments, input));
    assert!(line.contains("--raw"), "{line}");
    ok_with_input(&["load", "--db", db, "--raw"], input);
    assert_eq!(ok(&["scan", "--db", db]), "C:\\\\new\tD:\\\\x\\x09y\n\\xff\t\n");

    let csv = "id,name,\"born, in\"\r\n1,\"Ada \"\"L\"\" \\\",London\r\n2,\"two\nlines\",\u{6771}\u{4eac}\r\n";
    for (number, (flags, expected)) in [
        (&[][..], "1\tAda \"L\" \\\\\n2\ttwo\\x0alines\n"),
        (&["--key", "born, in", "--value", "id"], "London\t1\n\u{6771}\u{4eac}\t2\n"),
        (&["--key", "3", "--value", "1"], "London\t1\n\u{6771}\u{4eac}\t2\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let db = &sandbox.text(&format!("csv{number}"));
        ok_with_input(&[&["load", "--db", db, "--csv"][..], flags].concat(), csv.as_bytes());
        assert_eq!(ok(&["scan", "--db", db]), expected);
    }
    let arguments = ["load", "--db", db, "--csv", "--key", "nosuch"];
    let line = failed(1, &arguments, &run_with_input(&arguments, csv.as_bytes()));
    assert!(line.contains("\"nosuch\"") && line.contains("id, name, born, in"), "{line}");
    let arguments = ["load", "--db", db, "--csv", "--batch", "1"];
    let line = failed(1, &arguments, &run_with_input(&arguments, b"a,b\n1,2\n3\n"));
    assert!(line.contains("line 3 of") && line.contains("only 1 fields"), "{line}");
    // Seen: loaded as `a`.
    let line = failed(1, &arguments, &run_with_input(&arguments, b"a,b\n1,2\n3,4,5\n"));
    assert!(line.contains("line 3 of") && line.contains("has 3 fields, and the first one 2"), "{line}");
    // Seen: the first of them was taken.
    let arguments = ["load", "--db", db, "--csv", "--key", "a", "--value", "b"];
    let line = failed(1, &arguments, &run_with_input(&arguments, b"a,b,b\n1,2,3\n"));
    assert!(line.contains("more than one column \"b\""), "{line}");
    ok_with_input(&["load", "--db", db, "--csv", "--key", "a", "--value", "3"], b"a,b,b\n1,2,3\n");
    assert_eq!(ok(&["get", "--db", db, "1"]), "3\n");
    fails(2, &["load", "--db", db, "--csv", "--json"]);
    fails(2, &["load", "--db", db, "--key", "id"]);
}

/// Seen: "5" was stored as one byte, and a scan of numbers ended with an error.
#[test]
fn numbers_are_loaded_as_numbers() {
    let sandbox = Sandbox::new("load-numbers");
    let db = &sandbox.text("db");
    let add = ["--merge-operator", "uint64add", "--as", "u64"];
    ok_with_input(&[&["load", "--db", db, "--csv"][..], &add].concat(), b"page,hits\na,5\nb,70\n");
    ok_with_input(&[&["load", "--db", db][..], &add].concat(), b"c\t9\n");
    ok(&["merge", "--db", db, "a", "1"]);
    assert_eq!(ok(&["scan", "--db", db, "--as", "u64"]), "a\t6\nb\t70\nc\t9\n");
    let arguments = ["load", "--db", db, "--csv", "--as", "i64"];
    ok_with_input(&arguments, b"k,v\nd,-3\n");
    assert_eq!(ok(&["get", "--db", db, "--as", "i64", "d"]), "-3\n");
    let line = failed(1, &arguments, &run_with_input(&arguments, b"k,v\ne,many\n"));
    assert!(line.contains("line 2 of") && line.contains("\"many\" is not a whole number"), "{line}");
    fails(2, &["load", "--db", db, "--json", "--as", "u64"]);
}

/// A copy in another order would be another keyspace.
#[test]
fn the_order_of_a_keyspace_comes_back_and_one_of_another_program_is_named() {
    let sandbox = Sandbox::new("order");
    let db = &sandbox.text("source");
    let lines = concat!(
        "{\"keyspace\":\"latest\",\"comparator\":\"reverse-bytewise\"}\n",
        "{\"keyspace\":\"latest\",\"key\":\"b\",\"value\":\"1\"}\n",
        "{\"keyspace\":\"latest\",\"key\":\"c\",\"value\":\"2\"}\n",
        "{\"keyspace\":\"latest\",\"key\":\"a\",\"value\":\"3\"}\n",
    );
    ok_with_input(&["load", "--db", db, "--json"], lines.as_bytes());
    assert_eq!(ok(&["scan", "--db", db, "--keyspace", "latest"]), "c\t2\nb\t1\na\t3\n");
    let scan = |rest: &[&str]| ok(&[&["scan", "--db", db, "--keyspace", "latest", "--keys-only"][..], rest].concat());
    assert_eq!(scan(&["--reverse"]), "a\nb\nc\n");
    assert_eq!(scan(&["--from", "b"]), "b\na\n");
    assert_eq!(scan(&["--from", "c", "--to", "a"]), "c\nb\n");
    assert_eq!(scan(&["--prefix", "b"]), "b\n");
    assert!(fails(2, &["scan", "--db", db, "--keyspace", "latest", "--prefix", "b", "--to", "a"]).contains("prefix"));
    assert!(ok(&["keyspaces", "--db", db]).contains("latest    reverse-bytewise"));
    assert!(ok(&["keyspaces", "--db", db, "--json"]).contains("\"comparator\":\"reverse-bytewise\""));
    for (flags, form) in [(&[][..], "text"), (&["--json"], "json")] {
        let copy = &sandbox.text(form);
        let dump = |db: &str| ok(&[&["dump", "--db", db, "--keyspace", "latest"][..], flags].concat());
        ok_with_input(&[&["load", "--db", copy, "--keyspace", "latest"][..], flags].concat(), dump(db).as_bytes());
        assert_eq!(dump(copy), dump(db));
        assert_eq!(ok(&["scan", "--db", copy, "--keyspace", "latest"]), "c\t2\nb\t1\na\t3\n");
    }
    let unknown = "{\"keyspace\":\"x\",\"comparator\":\"their.own\"}\n";
    let failure = run_with_input(&["load", "--db", &sandbox.text("unknown"), "--json"], unknown.as_bytes());
    assert!(String::from_utf8_lossy(&failure.stderr).contains("their.own"), "{failure:?}");

    struct Own;
    impl esker::Comparator for Own {
        fn name(&self) -> &str {
            "their.own"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            b.len().cmp(&a.len()).then_with(|| a.cmp(b))
        }
    }
    let theirs = &sandbox.text("theirs");
    let opened = esker::Db::open(theirs, esker::Options::default().comparator(std::sync::Arc::new(Own))).unwrap();
    opened.keyspace("names", esker::KeyspaceOptions::default().comparator(Own)).unwrap();
    opened.close().unwrap();
    for command in ["keyspaces", "stats", "verify", "repair"] {
        let failure = fails(1, &[command, "--db", theirs]);
        assert!(failure.contains("\"names\"") && failure.contains("\"their.own\""), "{command}: {failure}");
    }
}

/// Seen: the mark, which some programs begin text with, was a part of the first key, and a file
/// with JSON was refused.
#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key() {
    let sandbox = Sandbox::new("byte-order-mark");
    let db = &sandbox.text("db");
    for (flags, text, shown) in [
        (&[][..], "a\t1\nb\t2\n", "a\t1\nb\t2\n"),
        (&["--hex"], "61\t31\n", "a\t1\n"),
        (&["--json"], "{\"key\":\"a\",\"value\":\"1\"}\n", "a\t1\n"),
        (&["--csv"], "k,v\na,1\n", "a\t1\n"),
        (&["--csv", "--key", "k", "--value", "v"], "\"k\",v\na,1\n", "a\t1\n"),
        // Here every byte stands for itself; and a key may begin so in any other line.
        (&["--raw"], "a\t1\n", "\\xef\\xbb\\xbfa\t1\n"),
        (&[], "a\t1\n\u{feff}b\t2\n", "a\t1\n\\xef\\xbb\\xbfb\t2\n"),
    ] {
        let keyspace = &flags.join("").replace("--", "x");
        let keyspace = &format!("{keyspace}{}", text.len());
        let load = [&["load", "--db", db, "--keyspace", keyspace][..], flags].concat();
        ok_with_input(&load, format!("\u{feff}{text}").as_bytes());
        assert_eq!(ok(&["dump", "--db", db, "--keyspace", keyspace]), shown, "{flags:?}");
    }
}

/// Seen: all lines behind the quote were the value of one key, and the load succeeded.
#[test]
fn a_quote_that_is_not_closed_does_not_swallow_the_rest() {
    let sandbox = Sandbox::new("open-quote");
    let db = &sandbox.text("db");
    let load = ["load", "--db", db, "--csv", "--batch", "1"];
    for (text, line) in [
        ("k,v\na,1\nb,\"2\nc,3\n", "line 3 of standard input: a quote is not closed"),
        ("k,v\na,1\nb,\"2\nc,3", "line 3 of standard input: a quote is not closed"),
        ("k,v\na,1\n\"b,2\n", "line 3 of standard input: a quote is not closed"),
        ("k,v\na,1\nb,\"2", "line 3 of standard input: a quote is not closed"),
        ("k,\"v\na,1\n", "line 1 of standard input: a quote is not closed"),
    ] {
        let told = failed(1, &load, &run_with_input(&load, text.as_bytes()));
        assert!(told.contains(line), "{text:?}: {told}");
    }
    assert_eq!(ok(&["scan", "--db", db]), "a\t1\n");
    // What is closed, or no quote around a field, is taken as before; so is an empty file refused.
    for text in ["k,v\na,\"1\"\nb,5\" pipe\n", "k,v\na,\"1\"\nb,5\" pipe", "k,v\r\na,1\r\n\r\nb,5\" pipe\r\n\r\n"] {
        let db = &sandbox.text(&format!("db{}", text.len()));
        ok_with_input(&["load", "--db", db, "--csv"], text.as_bytes());
        assert_eq!(ok(&["scan", "--db", db]), "a\t1\nb\t5\" pipe\n", "{text:?}");
    }
    for text in ["", "\n", "\u{feff}"] {
        let told = failed(1, &load, &run_with_input(&load, text.as_bytes()));
        assert!(told.contains("there is no column number 1 among none"), "{text:?}: {told}");
    }
    ok_with_input(&load, b"k,v\n");
}

/// Seen: `put --as u64 -3` and a negative number in a column stored 18446744073709551613; JSON with
/// a negative number, which `scan --as i64 --json` prints, was refused.
#[test]
fn negative_numbers_are_values_only_with_a_sign() {
    let sandbox = Sandbox::new("negative");
    let db = &sandbox.text("db");
    let told = fails(2, &["put", "--db", db, "--as", "u64", "n", "-3"]);
    assert!(told.contains("value \"-3\" is below 0") && told.contains("i64"), "{told}");
    let load = ["load", "--db", db, "--csv", "--as", "u64"];
    let told = failed(1, &load, &run_with_input(&load, b"k,v\na,1\nb,-3\n"));
    assert!(told.contains("line 3") && told.contains("value \"-3\" is below 0"), "{told}");
    let shell = ["shell", "--db", db, "--keyspace", "sum"];
    // Adding one subtracts, as before.
    ok(&["merge", "--db", db, "--keyspace", "sum", "--merge-operator", "uint64add", "n", "5"]);
    ok(&["merge", "--db", db, "--keyspace", "sum", "n", "-3"]);
    ok_with_input(&shell, b"merge n -1\n");
    assert_eq!(ok_with_input(&shell, b"get n\n"), "1\n");
    let told = failed(1, &shell, &run_with_input(&shell, b"put n -1\n"));
    assert!(told.contains("below 0"), "{told}");

    let signed = ["--keyspace", "signed", "--merge-operator", "int64add"];
    ok(&[&["put", "--db", db, "--as", "i64"][..], &signed, &["n", "-3"]].concat());
    ok(&[&["put", "--db", db, "--as", "i64"][..], &signed, &["least", "-9223372036854775808"]].concat());
    let shown = ok(&["scan", "--db", db, "--keyspace", "signed", "--as", "i64", "--json"]);
    assert_eq!(shown, "{\"key\":\"least\",\"value\":-9223372036854775808}\n{\"key\":\"n\",\"value\":-3}\n");
    let copy = &sandbox.text("copy");
    ok_with_input(&[&["load", "--db", copy, "--json"][..], &signed].concat(), shown.as_bytes());
    assert_eq!(ok(&["scan", "--db", copy, "--keyspace", "signed", "--as", "i64", "--json"]), shown);
    let load = [&["load", "--db", copy, "--json"][..], &signed].concat();
    for number in ["1.5", "-9223372036854775809", "18446744073709551616"] {
        let line = format!("{{\"key\":\"n\",\"value\":{number}}}\n");
        let told = failed(1, &load, &run_with_input(&load, line.as_bytes()));
        assert!(told.contains("is not a whole number of 64 bits"), "{told}");
    }
}

/// Seen: a scan that shows no values read every large one, and failed on one that is damaged.
#[test]
fn a_scan_of_keys_reads_no_large_value() {
    let sandbox = Sandbox::new("keys-only");
    let db = &sandbox.text("db");
    for key in ["a", "b"] {
        ok_with_input(&["put", "--db", db, key, "-"], &[b'x'; 100_000]);
    }
    ok(&["put", "--db", db, "c", "small"]);
    // An open reads the large values that only the log has.
    ok(&["compact", "--db", db]);
    for (path, mut content) in files(&sandbox.path("db")) {
        if path.extension().is_some_and(|extension| extension == "blob") {
            let middle = content.len() / 2;
            content[100..middle * 2 - 100].fill(0x55);
            std::fs::write(&path, content).unwrap();
        }
    }
    fails(1, &["scan", "--db", db]);
    assert_eq!(ok(&["scan", "--db", db, "--count"]), "3\n");
    assert_eq!(ok(&["scan", "--db", db, "--count", "--reverse", "--limit", "2"]), "2\n");
    assert_eq!(ok(&["scan", "--db", db, "--keys-only"]), "a\nb\nc\n");
    assert_eq!(ok(&["scan", "--db", db, "--keys-only", "--reverse", "--json"]).lines().next(), Some("{\"key\":\"c\"}"));
}
