//! Plants violations in small made-up workspaces: each rule must find its own, at its line, and
//! nothing else.

use crate::report::Violation;
use crate::workspace::Workspace;
use crate::{code, documents, filters, graph, lexer, links, pitfalls, prose, public, size, text, versions};

/// A workspace of one engine crate with these files below `crates/esker/src`.
fn engine(files: &[(&str, &str)]) -> Workspace {
    let mut texts: Vec<(String, String)> =
        files.iter().map(|(path, text)| (format!("crates/esker/src/{path}"), (*text).to_owned())).collect();
    texts.push(("crates/esker/Cargo.toml".to_owned(), "[package]\n".to_owned()));
    Workspace::new(texts.into_iter().collect())
}

/// Checks that exactly these places were found, each with a text that contains the given one.
fn expect(found: &[Violation], expected: &[(&str, usize, &str)]) {
    let fits = found.len() == expected.len()
        && expected.iter().all(|(path, line, what)| {
            let file = format!("crates/esker/src/{path}");
            found
                .iter()
                .any(|violation| violation.file == file && violation.line == *line && violation.what.contains(what))
        });
    assert!(fits, "expected {expected:#?}, found {found:#?}");
}

#[test]
fn an_import_from_above() {
    let workspace = engine(&[
        ("lib.rs", "mod base;\nmod table;\nmod wal;\npub use table::Table;\n"),
        ("base/mod.rs", "pub mod key;\n"),
        ("base/key.rs", "// use crate::table::Table;\nfn f() {\n    crate::table::Table::new();\n}\n"),
        ("table.rs", "use crate::base::key;\npub struct Table;\n"),
        (
            "wal.rs",
            "use crate::{\n    Table,\n    base::key,\n};\n#[cfg(test)]\nmod tests {\n    use crate::table;\n}\n",
        ),
    ]);
    expect(
        &graph::layers(&workspace, &[]),
        &[
            ("base/key.rs", 3, "module `base` (0) imports from `table` (3)"),
            ("wal.rs", 2, "`wal` (3) imports from `table`"),
        ],
    );
    let allowed = [("crates/esker/src/base/key.rs", "table"), ("crates/esker/src/wal.rs", "table")];
    expect(&graph::layers(&workspace, &allowed), &[]);
    expect(&graph::needless(&workspace, &allowed), &[]);
    let needless = graph::needless(&workspace, &[("crates/esker/src/wal.rs", "base::key")]);
    expect(&needless, &[("wal.rs", 1, "not needed")]);
}

#[test]
fn an_import_from_above_within_db() {
    let workspace = engine(&[
        ("lib.rs", "mod db;\nmod handle;\n"),
        ("handle.rs", "use crate::db::read::get;\n"),
        ("db/mod.rs", "pub mod read;\npub mod state;\npub mod cellar;\n"),
        ("db/cellar.rs", ""),
        ("db/read/mod.rs", "pub mod get;\n"),
        ("db/read/get.rs", "use crate::db::state::inner;\n"),
        ("db/state/mod.rs", "pub mod inner;\n"),
        ("db/state/inner.rs", "#[cfg(test)]\nuse crate::db::read;\nuse crate::db::read::get;\n"),
    ]);
    expect(
        &graph::layers(&workspace, &[]),
        &[
            ("db/cellar.rs", 1, "`db::cellar` has no number"),
            ("db/state/inner.rs", 3, "`state` (0) imports from `read` (2)"),
        ],
    );
}

#[test]
fn a_room_without_a_number() {
    let workspace = engine(&[("lib.rs", "mod attic;\n"), ("attic.rs", "")]);
    expect(&graph::layers(&workspace, &[]), &[("attic.rs", 1, "no number")]);
}

#[test]
fn a_re_export_does_not_hide_an_import() {
    let workspace = engine(&[
        ("lib.rs", "mod options;\nmod table;\n"),
        ("options.rs", "pub use crate::table::Compression;\n"),
        ("table/mod.rs", "mod compress;\npub use compress::Compression;\n"),
        ("table/compress.rs", "pub enum Compression { None }\n"),
    ]);
    expect(&graph::layers(&workspace, &[]), &[("options.rs", 1, "imports from `table`")]);
}

#[test]
fn cycles_of_files_and_folders() {
    let workspace = engine(&[
        ("lib.rs", "mod db;\n"),
        ("db/mod.rs", "mod read;\nmod write;\npub mod scan;\npub use read::Read;\n"),
        ("db/read.rs", "use super::write::Write;\npub struct Read;\n"),
        ("db/write.rs", "pub struct Write;\nfn f(_: super::Read) {}\n"),
        ("db/scan.rs", "use super::Read;\nmod inner;\npub struct Scan;\nfn f(_: inner::Inner) {}\n"),
        ("db/scan/inner.rs", "use super::Scan;\npub struct Inner;\n"),
    ]);
    expect(
        &graph::cycles(&workspace, &[]),
        &[("db/write.rs", 2, "read -> write"), ("db/scan/inner.rs", 1, "(the parent itself) -> inner")],
    );
}

#[test]
fn a_facade_is_no_cycle() {
    let workspace = engine(&[
        ("lib.rs", "mod env;\npub use env::OsEnv;\n"),
        ("env/mod.rs", "mod os;\npub use os::OsEnv;\npub trait Env {}\n"),
        ("env/os.rs", "use super::Env;\npub struct OsEnv;\nimpl Env for OsEnv {}\n"),
    ]);
    expect(&graph::cycles(&workspace, &[]), &[]);
    expect(&graph::layers(&workspace, &[]), &[]);
}

#[test]
fn long_files_and_functions() {
    let body = "    work();\n".repeat(size::FUNCTION_LINES);
    let comments = "    // why\n\n".repeat(size::FILE_LINES);
    let long = format!("fn short() {{\n{comments}}}\nfn long() {{\n{body}}}\n");
    let first = 3 + 2 * size::FILE_LINES;
    let file = "crates/esker/src/lib.rs";
    let workspace = engine(&[("lib.rs", &long)]);
    expect(&size::lengths(&workspace, &[]), &[("lib.rs", first, "function `long` has 72 lines")]);
    expect(&size::lengths(&workspace, &[(file, "long", 72)]), &[]);
    expect(&size::lengths(&workspace, &[(file, "long", 71)]), &[("lib.rs", first, "more than 71")]);
    expect(
        &size::lengths(&workspace, &[(file, "long", 72), (file, "short", 80)]),
        &[("lib.rs", 1, "`short` is not needed")],
    );
    let test = format!("#[cfg(test)]\nmod tests {{\n    fn long() {{\n{body}    }}\n}}\n");
    expect(&size::lengths(&engine(&[("lib.rs", &test)]), &[]), &[]);
    let items = "const A: &str = \"text\";\n".repeat(size::FILE_LINES + 1);
    expect(&size::lengths(&engine(&[("lib.rs", &items)]), &[]), &[("lib.rs", 1, "file has 601 lines")]);
}

#[test]
fn long_directories() {
    let tests = "#[cfg(test)]\nmod tests {\n    fn long() {}\n}\n";
    let workspace = engine(&[("lib.rs", "mod a;\n// why\n"), ("a.rs", &format!("fn a() {{\n}}\n{tests}"))]);
    let directory = "crates/esker/src/";
    expect(&size::directories(&workspace, &[(directory, 3)]), &[]);
    let found = size::directories(&workspace, &[(directory, 2), ("crates/gone/", 2)]);
    let found: Vec<String> = found.iter().map(|violation| violation.to_string()).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("has 3 lines of code") && found[1].contains("has 0 lines of code"), "{found:?}");
}

#[test]
fn unsafe_code() {
    let argued =
        "// SAFETY: it is there.\nlet a =\n    unsafe { b() };\n// SAFETY: as above.\nunsafe impl Send for A {}\n";
    let bare = "fn f() {\n    // SAFETY: of something else.\n    let a = 1;\n    unsafe { b(a) }\n}\n";
    let workspace = engine(&[("lib.rs", "mod argued;\nmod bare;\n"), ("argued.rs", argued), ("bare.rs", bare)]);
    let (argued, bare) = ("crates/esker/src/argued.rs", "crates/esker/src/bare.rs");
    expect(&code::unsafe_code(&workspace, &[argued, bare]), &[("bare.rs", 4, "without a SAFETY comment")]);
    expect(
        &code::unsafe_code(&workspace, &[bare, "crates/esker/src/lib.rs"]),
        &[
            ("argued.rs", 3, "not declared"),
            ("bare.rs", 4, "without a SAFETY comment"),
            ("lib.rs", 1, "remove it from the list"),
        ],
    );
}

#[test]
fn tests_that_sleep() {
    let code =
        "fn f() {\n    sleep(a);\n}\n#[cfg(test)]\nmod tests {\n    fn t() {\n        thread::sleep(a);\n    }\n}\n";
    let workspace = engine(&[("lib.rs", code)]);
    expect(&code::sleeping_tests(&workspace, &[]), &[("lib.rs", 7, "a test sleeps")]);
    expect(&code::sleeping_tests(&workspace, &["crates/esker/src/lib.rs"]), &[]);
    let needless = engine(&[("lib.rs", "fn f() {\n    sleep(a);\n}\n")]);
    expect(&code::sleeping_tests(&needless, &["crates/esker/src/lib.rs"]), &[("lib.rs", 1, "remove it from the list")]);
}

#[test]
fn tests_of_every_crate_that_sleep_or_look_at_the_time() {
    let code = "#[test]\nfn t() {\n    sleep(a);\n    b.elapsed();\n}\n";
    let texts = [("crates/b/Cargo.toml", "[package]\n"), ("crates/b/tests/t.rs", code)];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    for (found, line) in [(code::sleeping_tests(&workspace, &[]), 3), (code::timed_tests(&workspace, &[]), 4)] {
        assert!(matches!(&found[..], [one] if one.line == line && one.file == "crates/b/tests/t.rs"), "{found:?}");
    }
}

#[test]
fn tests_that_look_at_the_time() {
    let looks = [
        "assert!(begun.elapsed() < LIMIT);",
        "let took = begun.elapsed().as_millis();",
        "while Instant::now() < end {}",
        "while std::time::Instant::now() <= end {}",
        "while end > Instant::now() {}",
        "while end >= std::time::Instant::now() {}",
        "let left = end.saturating_duration_since(Instant::now());",
        "let took = Instant::now().duration_since(begun);",
        "let took = std::time::Instant::now() - begun;",
    ];
    let others = [
        "let mut now = Instant::now();",
        "let end = std::time::Instant::now() + LIMIT;",
        "let clock = Clock::new(Instant::now(), 1);",
        "let seed = UNIX_EPOCH.elapsed().unwrap();",
        "// begun.elapsed() < LIMIT",
    ];
    let body = |lines: &[&str]| format!("    {}\n", lines.join("\n    "));
    let timed = format!("fn f() {{\n{}}}\n#[test]\nfn t() {{\n{}}}\n", body(&looks), body(&looks));
    let untimed = format!("#[test]\nfn t() {{\n{}}}\n", body(&others));
    let workspace = engine(&[("lib.rs", &timed), ("main.rs", &untimed)]);
    let first = looks.len() + 5;
    let expected: Vec<_> = (first..first + looks.len()).map(|line| ("lib.rs", line, "how much time")).collect();
    expect(&code::timed_tests(&workspace, &[]), &expected);
    expect(&code::timed_tests(&workspace, &["crates/esker/src/lib.rs"]), &[]);
    let needless = ["crates/esker/src/lib.rs", "crates/esker/src/main.rs"];
    expect(&code::timed_tests(&workspace, &needless), &[("main.rs", 1, "remove it from the list")]);
}

#[test]
fn tests_that_wait_for_a_limited_time() {
    let limited = [
        "assert!(done.recv_timeout(Duration::from_millis(300)).is_err());",
        "let _ = done.recv_timeout(self.patience);",
        "let (guard, _) = changed.wait_timeout(guard, SHORT).unwrap();",
        "drop(changed.wait_timeout_while(guard, Duration::from_secs(3), |it| *it));",
        "changed.wait_for(&mut guard, SHORT);",
        "std::thread::park_timeout(SHORT);",
        "assert!(lock.try_lock_for(SHORT).is_none());",
        "stream.set_read_timeout(Some(PATIENCE)).unwrap();",
        "stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();",
        "assert!(timeout(SHORT, done).await.is_err());",
        "drop(tokio::time::timeout(Duration::from_secs(60), done).await);",
    ];
    let others = [
        "done.recv_timeout(FOR_EVER).unwrap();",
        "done.recv_timeout(std::time::Duration::from_secs(300)).unwrap();",
        "drop(changed.wait_timeout_while(guard, FOR_EVER, |it| *it));",
        "done.recv().unwrap();",
        "stream.set_read_timeout(Some(FOR_EVER)).unwrap();",
        "stream.set_read_timeout(None).unwrap();",
        "timeout(Duration::from_secs(300), done).await.unwrap();",
        "fn timeout(seconds: u64) {}",
        "use tokio::time::timeout;",
        "common::wait_for(\"the writes\", || true);",
        "cluster.wait_for(\"a leader\", |cluster| cluster.is_led());",
        "// done.recv_timeout(SHORT)",
    ];
    let body = |lines: &[&str]| format!("    {}\n", lines.join("\n    "));
    let short = format!("fn f() {{\n{}}}\n#[test]\nfn t() {{\n{}}}\n", body(&limited), body(&limited));
    let patient = format!("#[test]\nfn t() {{\n{}}}\n", body(&others));
    let workspace = engine(&[("lib.rs", &short), ("main.rs", &patient)]);
    let first = limited.len() + 5;
    let expected: Vec<_> = (first..first + limited.len()).map(|line| ("lib.rs", line, "a limited time")).collect();
    expect(&code::impatient_tests(&workspace, &[]), &expected);
    expect(&code::impatient_tests(&workspace, &["crates/esker/src/lib.rs"]), &[]);
    let needless = ["crates/esker/src/lib.rs", "crates/esker/src/main.rs"];
    expect(&code::impatient_tests(&workspace, &needless), &[("main.rs", 1, "remove it from the list")]);
}

#[test]
fn code_that_gives_up() {
    let lines = "fn f() {\n    a().unwrap();\n    todo!();\n    let s = \"b.unwrap() todo!()\"; // c.unwrap()\n    dbg!(s);\n}\n";
    let test = "#[test]\nfn t() {\n    a().unwrap();\n}\n";
    let workspace = engine(&[("lib.rs", lines), ("main.rs", test)]);
    expect(
        &code::giving_up(&workspace),
        &[("lib.rs", 2, "`unwrap()`"), ("lib.rs", 3, "`todo!`"), ("lib.rs", 5, "`dbg!`")],
    );
}

#[test]
fn text() {
    let path = format!("// see /{}/a\n", "root");
    let workspace = engine(&[("lib.rs", "// a caf\u{e9}\n"), ("main.rs", &path), ("page.md", "a\n\u{2014}\n")]);
    expect(&text::ascii(&workspace), &[("lib.rs", 1, "\\u{e9}"), ("page.md", 2, "\\u{2014}")]);
    expect(&text::machine_paths(&workspace), &[("main.rs", 1, "one machine")]);
}

#[test]
fn comments_that_are_too_wide() {
    let wide = "x".repeat(97);
    let text = format!(
        "// {wide}\n//! {wide}\nlet a = 1; // {wide}\n//! ```\n//! {wide}\n//! ```\n/// | {wide} |\n    // {wide}\n"
    );
    let workspace = engine(&[("lib.rs", &text)]);
    expect(&prose::wide_comments(&workspace), &[("lib.rs", 2, "101 columns"), ("lib.rs", 8, "104 columns")]);
}

#[test]
fn private_words() {
    let text = "//! Entries in THE order; in the order of keys.\n//!\n//! ```\n//! whoever\n//! ```\n\
        fn f() {} // whoever\n/// A memtable is put\n/// aside, `frozen` and not `whoever\n/// asked for` it.\n\
        /// | Whoever |\n\n// Whoever waits.\nlet a = \"\n// frozen\n\";\n";
    let workspace = engine(&[("lib.rs", text)]);
    let expected =
        [("lib.rs", 1, "internal key order"), ("lib.rs", 7, "rotated"), ("lib.rs", 12, "name the component")];
    expect(&prose::dialect(&workspace), &expected);
    let pages = |path: &str| {
        let page = "# Traps\n\nThe log lets\ngo of it.\n".to_owned();
        let found = prose::dialect(&Workspace::new([(path.to_owned(), page)].into()));
        found.iter().map(|violation| violation.to_string()).collect::<Vec<_>>()
    };
    let expected = [
        "doc/format/wal.md:3: \"lets go of\" is a private word; the field says: releases",
        "doc/format/wal.md:1: \"Traps\" is a private word; the field says: Pitfalls",
    ];
    assert_eq!(pages("doc/format/wal.md"), expected);
    assert_eq!(pages("doc/a.md").len(), 2);
    assert_eq!(pages("doc/decisions/0001.md").len(), 0);
}

#[test]
fn files_that_nobody_compiles() {
    let workspace = engine(&[
        ("lib.rs", "// mod left;\nmod a;\n#[cfg(test)]\n#[path = \"checks.rs\"]\nmod tests;\n"),
        ("a/mod.rs", "mod b;\n"),
        ("a/b.rs", ""),
        ("checks.rs", "fn t() { a().unwrap(); }\n"),
        ("left.rs", ""),
        ("b.rs", ""),
        ("bin/tool.rs", ""),
    ]);
    expect(&text::dead_files(&workspace), &[("left.rs", 1, "no `mod`"), ("b.rs", 1, "no `mod`")]);
    // The file of a test module is a test.
    expect(&code::giving_up(&workspace), &[]);
}

#[test]
fn literals_and_comments_are_not_code() {
    let text = "a'b' /* c /* d */ e */ \"f\\\"g\" r#\"h\"i\"# 'x j' // k\nl<'m>('\\'', b\"n\")\n";
    let code: String =
        lexer::separate(text).code.iter().map(|byte| *byte as char).filter(char::is_ascii_alphabetic).collect();
    // A prefix of a byte string is left; it is no name that a rule looks for.
    assert_eq!(code, "axjlmb");
}

#[test]
fn an_example_that_is_not_the_documentation_s() {
    let library = "//! ```\n//! # fn main() {\n//! use a::B;\n//!\n//! b();\n//! # }\n//! ```\n";
    let same = "# A\n\n```rust\nuse a::B;\n\nb();\n```\n";
    let texts = |readme: &str| {
        let texts = [("README.md", readme), ("crates/esker/src/lib.rs", library)];
        Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into())
    };
    assert_eq!(documents::example(&texts(same)), []);
    let found = documents::example(&texts(&same.replace("b();", "c();")));
    assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [6]);
    assert_eq!(documents::example(&texts("# A\n")).len(), 1);
}

#[test]
fn a_readme_with_another_oldest_rust() {
    let with = |line: &str, rust: &str| {
        let readme = format!("# A\n\n{line}\n");
        let manifest = "[workspace.package]\nrust-version = \"1.9\"\nlicense = \"X\"\n";
        let picture = |value: &str| format!("<text>{value}</text>");
        let texts = [
            ("README.md", readme),
            ("Cargo.toml", manifest.to_owned()),
            ("doc/badges/licence.svg", picture("X")),
            ("doc/badges/oldest-rust.svg", picture(rust)),
        ];
        documents::badges(&Workspace::new(texts.map(|(path, text)| (path.to_owned(), text)).into())).len()
    };
    let right = "[![Licence: X](doc/badges/licence.svg)](LICENSE) ![Oldest Rust: 1.9](doc/badges/oldest-rust.svg)";
    assert_eq!((with(right, "1.9"), with(&right.replace("1.9", "1.8"), "1.9"), with("", "1.9")), (0, 1, 1));
    assert_eq!(with(right, "1.8"), 1);
}

#[test]
fn decisions_about_code_that_is_gone() {
    let right = "# 1. A\n\nStatus: in force. Code: `a/b.rs` (`c`),\n`crates/x/src/d.rs`.\n\nOnce `e/f.rs`.\n";
    let paths = ["crates/esker/src/a/b.rs", "crates/x/src/d.rs"];
    let with = |page: &str, paths: &[&str]| {
        let mut texts: std::collections::BTreeMap<String, String> =
            paths.iter().map(|path| ((*path).to_owned(), String::new())).collect();
        texts.insert("doc/decisions/0001-a.md".to_owned(), page.to_owned());
        let mut workspace = Workspace::new(texts);
        workspace.files.extend(paths.iter().map(|path| (*path).to_owned()));
        documents::decisions(&workspace).iter().map(|violation| violation.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(with(right, &paths), [""; 0]);
    assert_eq!(with(right, &paths[..1]), ["doc/decisions/0001-a.md:4: there is no file crates/x/src/d.rs"]);
    assert_eq!(with("# 1. A\n\n## Context\n", &[]).len(), 1);
}

#[test]
fn a_dependency_without_a_reason() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nesker.workspace = true\nserde = \"1\"\n\n[dev-dependencies]\nb = { path = \"b\" }\n";
    let texts = [("crates/a/Cargo.toml", manifest), ("CONTRIBUTING.md", "* `serde`: reads.\n")];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    let found = documents::dependencies(&workspace);
    assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [8], "{found:?}");
}

#[test]
fn a_dependency_that_is_too_old() {
    let locks = |version: &str, of_fuzz_targets: &str| {
        let text = |version: &str| format!("[[package]]\nname = \"a\"\nversion = \"{version}\"\n");
        let texts = [("Cargo.lock", text(version)), ("fuzz/Cargo.lock", text(of_fuzz_targets))];
        Workspace::new(texts.map(|(path, text)| (path.to_owned(), text)).into())
    };
    let rule = |name| [(name, [1, 9, 5], "it races")];
    for (version, name, line) in [("1.9.4", "a", 3), ("1.10.0-rc.1", "a", 3), ("1.9.5", "b", 1)] {
        let found = versions::too_old(&locks(version, "1.9.5"), &rule(name));
        assert!(matches!(&found[..], [one] if one.file == "Cargo.lock" && one.line == line), "{version}: {found:?}");
    }
    for version in ["1.9.5", "1.10.0", "2.0.0"] {
        assert!(versions::too_old(&locks(version, version), &rule("a")).is_empty(), "{version}");
    }
    let found = versions::too_old(&locks("1.9.5", "1.9.4"), &rule("a"));
    assert!(matches!(&found[..], [one] if one.file == "fuzz/Cargo.lock" && one.line == 3), "{found:?}");
    let mut without = locks("1.9.5", "1.9.5");
    without.texts.remove("fuzz/Cargo.lock");
    let found = versions::too_old(&without, &rule("a"));
    assert!(matches!(&found[..], [one] if one.file == "fuzz/Cargo.lock" && one.line == 1), "{found:?}");
}

#[test]
fn a_public_item_without_an_example() {
    let library = "mod base;\npub mod env;\nmod handle;\npub use base::{key::Key, open};\npub use handle::Db;\n";
    let environment = "/// ```\n/// ```\npub trait Env {\n    /// A.\n    fn list(&self) -> crate::Result<()>;\n}\n";
    let key = "/// ```\n/// ```\n#[derive(Debug)]\npub struct Key;\nimpl Key {\n    /// A.\n    pub fn len(&self) -> usize { 0 }\n    \
               pub(crate) fn inner(&self) {}\n    fn private(&self) {}\n}\nimpl Drop for Key {\n    fn drop(&mut self) {}\n}\npub struct Unseen;\n";
    let handle = "/// ```\n/// ```\npub struct Db;\n";
    let more = "impl Db {\n    /// # Errors\n    /// ```\n    /// ```\n    pub fn a(&self) -> Result<()> { f() }\n    /// ```\n    /// ```\n    \
                pub fn b(&self) -> std::result::Result<(), ()> { f() }\n    /// ```\n    /// ```\n    pub fn c(&self) -> Vec<Result<()>> { f() }\n}\n";
    let workspace = engine(&[
        ("lib.rs", library),
        ("env/mod.rs", environment),
        ("base/mod.rs", "pub mod key;\n/// A.\npub fn open() {}\npub fn close() {}\n"),
        ("base/key.rs", key),
        ("handle/mod.rs", "mod database;\nmod more;\npub use database::Db;\n"),
        ("handle/database.rs", handle),
        ("handle/more.rs", more),
    ]);
    expect(
        &public::undocumented(&workspace),
        &[
            ("env/mod.rs", 5, "`list` is public and has no example"),
            ("env/mod.rs", 5, "`list` can fail"),
            ("base/mod.rs", 3, "`open` is public and has no example"),
            ("base/key.rs", 7, "`len` is public and has no example"),
            ("handle/more.rs", 8, "`b` can fail"),
        ],
    );
    let texts = [
        ("Cargo.toml", "[package]\n"),
        ("src/lib.rs", "mod place;\npub use place::Target;\n"),
        ("src/place.rs", "/// A.\npub struct Target;\n"),
    ];
    let texts = texts.map(|(path, text)| (format!("crates/esker-backup/{path}"), text.to_owned()));
    let found = public::undocumented(&Workspace::new(texts.into_iter().collect()));
    assert!(
        matches!(&found[..], [one] if one.file == "crates/esker-backup/src/place.rs" && one.line == 2),
        "{found:?}"
    );
}

#[test]
fn a_link_that_leads_nowhere() {
    let page = "# A page\n\n## Twice\n\n## Twice\n\n[one](b.md) [two](../README.md#the-readme) [three](#twice-1)\n\
                [gone](c.md) [no heading](b.md#nothing) [a picture\nover two lines](none.svg)\n\
                `[code](x.md)` [web](https://example.org/x) [out](../../x)\n```\n# [no](y.md)\n```\n[not there](#no)\n";
    let texts = [("doc/a.md", page), ("doc/b.md", "# B\n"), ("README.md", "# The `README`!\n[a](doc/a.md#a-page)\n")];
    let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let found = links::broken(&Workspace::new(texts.into_iter().collect()));
    let found: Vec<(&str, usize, &str)> =
        found.iter().map(|found| (&*found.file, found.line, found.what.split('"').nth(1).unwrap_or(""))).collect();
    let expected = [(8, "c.md"), (8, "b.md#nothing"), (9, "none.svg"), (10, "../../x"), (14, "#no")];
    assert_eq!(found, expected.map(|(line, target)| ("doc/a.md", line, target)));
}

#[test]
fn a_page_that_the_book_has_not() {
    let texts = [
        ("doc/SUMMARY.md", "- [A](a.md)\n- [B](book/b.md)\n"),
        ("doc/a.md", ""),
        ("doc/book/b.md", ""),
        ("doc/c.md", ""),
    ];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    let found = links::missing_in_book(&workspace);
    assert_eq!(found.iter().map(|found| &*found.file).collect::<Vec<_>>(), ["doc/c.md"]);
}

#[test]
fn a_filter_of_tests_that_finds_none() {
    let texts = [
        ("Makefile", "all:\n\techo\nSOME_TESTS ?= db:: db::gone:: wal::reader:: base::\n"),
        ("crates/esker/Cargo.toml", "[package]\n"),
        ("crates/esker/src/lib.rs", "mod base;\nmod db;\nmod wal;\n"),
        ("crates/esker/src/base.rs", ""),
        ("crates/esker/src/db.rs", "#[cfg(test)]\nmod tests {\n}\n"),
        ("crates/esker/src/wal.rs", "mod reader;\n"),
        ("crates/esker/src/wal/reader.rs", "#[cfg(test)]\nmod tests;\n"),
        ("crates/esker/src/wal/reader/tests.rs", ""),
    ];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    assert_eq!(filters::count(&workspace), 4);
    let found = filters::idle(&workspace);
    let found: Vec<(usize, &str)> = found.iter().map(|found| (found.line, &*found.what)).collect();
    let expected = ["db::gone::", "base::"].map(|filter| format!("no module of tests is called {filter}"));
    assert_eq!(found, [(3, &*expected[0]), (3, &*expected[1])]);
}

#[test]
fn a_pitfall_without_its_test() {
    let semantics = "# A\n\n## Reading\n\n* b\n\n## Writing\n\n* c\n\n## Non-goals\n";
    let table = "## Pitfalls, and what shows them\n\n| Section | Pitfall | Tests |\n| --- | --- | --- |\n\
        | Reading | a key | `reading::keys`, `base::tests::bytes` |\n| | another | `reading::no_more` |\n\
        | | none | |\n| Meaning | c | `base::bytes` |\n\n## Else\n\n| a | b | `c` |\n";
    let texts = [
        ("doc/semantics.md", semantics),
        ("doc/testing.md", table),
        ("crates/esker/Cargo.toml", ""),
        ("crates/esker/src/lib.rs", "mod base;\n"),
        ("crates/esker/src/base.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn bytes() {}\n}\n"),
        ("crates/esker/tests/operations/main.rs", "mod reading;\n"),
        ("crates/esker/tests/operations/reading.rs", "#[test]\nfn keys() {}\n\nfn no_more() {}\n"),
    ];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    assert_eq!(pitfalls::count(&workspace), 4);
    let found: Vec<_> = pitfalls::unshown(&workspace).iter().map(|violation| violation.to_string()).collect();
    let expected = [
        "doc/testing.md:6: there is no test reading::no_more",
        "doc/testing.md:7: the row names no test",
        "doc/semantics.md:7: Writing has no row in the table of doc/testing.md",
        "doc/testing.md:8: doc/semantics.md has no section Meaning",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_hole_without_its_test() {
    let page = "# Holes\n\n`words` | `in prose`\n\n| Hole | Tests |\n| --- | --- |\n\
        | One | `log::torn`, `env::tests::torn` of every byte |\n| Two (`a`) | `log::torn_...` |\n\
        | Three | none |\n| Four | `esker-check::losses::random` and [a decision](a.md) |\n| Five | `losses::random` |\n";
    let texts = [
        ("doc/testing/holes.md", page),
        ("crates/esker/Cargo.toml", ""),
        ("crates/esker/src/lib.rs", "mod env;\n"),
        ("crates/esker/src/env.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn torn() {}\n}\n"),
        ("crates/esker/tests/operations/main.rs", "mod log;\n"),
        ("crates/esker/tests/operations/log.rs", "#[test]\nfn torn() {}\n"),
        ("crates/esker-check/Cargo.toml", ""),
        ("crates/esker-check/tests/losses.rs", "#[test]\nfn random() {}\n"),
    ];
    let workspace = Workspace::new(texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    assert_eq!(pitfalls::count_holes(&workspace), 5);
    let found: Vec<_> = pitfalls::unshown_holes(&workspace).iter().map(|violation| violation.to_string()).collect();
    let expected = [
        "doc/testing/holes.md:8: there is no test log::torn_...",
        "doc/testing/holes.md:9: the row names no test",
        "doc/testing/holes.md:11: there is no test losses::random",
    ];
    assert_eq!(found, expected);
}
