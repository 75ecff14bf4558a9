//! Every block of code of the documents is run by a test, shows what one prints, or is named here
//! with the reason why not.

use crate::{Block, blocks};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What runs the blocks of one language on some pages.
struct Runner {
    /// The file that runs them, and a part of it that names the page or the language.
    file: (&'static str, &'static str),
    /// The pages: a path from the repository, in which one `*` stands for any text.
    pages: &'static str,
    language: &'static str,
    /// Only the first block of a page is run.
    is_first_only: bool,
    /// What a program prints is compared with the block `text` behind it.
    compares: bool,
}

const fn each(file: &'static str, named: &'static str, pages: &'static str, language: &'static str) -> Runner {
    Runner { file: (file, named), pages, language, is_first_only: false, compares: false }
}

const fn first(file: &'static str, named: &'static str, pages: &'static str, language: &'static str) -> Runner {
    Runner { is_first_only: true, ..each(file, named, pages, language) }
}

const fn compared(file: &'static str, named: &'static str, pages: &'static str, language: &'static str) -> Runner {
    Runner { compares: true, ..each(file, named, pages, language) }
}

const SNIPPETS: &str = "crates/esker-book/build.rs";
const BODIES: &str = "crates/esker-book/src/lib.rs";
const COMMANDS: &str = "crates/esker-cli/tests/suite/book.rs";
const PROGRAMS: &str = "crates/esker-c/tests/programs.rs";
const INSTALLED: &str = "crates/esker-c/tests/installed.rs";
const STEPS: &str = "scripts/first-steps";
const PYTHON: &str = "python/tests/test_documentation.py";
const NODE: &str = "node/test/package.js";
const GO: &str = "go/example_test.go";

const RUNNERS: [Runner; 34] = [
    compared(SNIPPETS, "book::pages()", "doc/book/*", "rust"),
    each(BODIES, "/README.md", "crates/*/README.md", "rust"),
    each(BODIES, "doc/metrics.md", "doc/metrics.md", "rust"),
    first("crates/esker/tests/tidy/documents.rs", "```rust", "README.md", "rust"),
    first("crates/esker-book/src/coverage.rs", "fn the_dependency_of_the_readme_is_there", "README.md", "toml"),
    each(COMMANDS, "\"console\"", "doc/book/*", "console"),
    each(COMMANDS, "\"benchmark-method\"", "doc/book/benchmark-method.md", "sh"),
    compared(PROGRAMS, "block.language == \"c\"", "doc/book/*", "c"),
    first(PROGRAMS, "doc/c.md", "doc/c.md", "c"),
    first(INSTALLED, "block(\"cmake\")", "doc/c.md", "cmake"),
    compared(PYTHON, "\"doc/book/start-python.md\"", "doc/book/start-python.md", "python"),
    each(PYTHON, "\"doc/python.md\"", "doc/python.md", "python"),
    each(PYTHON, "\"python/README.md\"", "python/README.md", "python"),
    compared(NODE, "'../doc/book/start-node.md'", "doc/book/start-node.md", "js"),
    each(NODE, "'../doc/node.md'", "doc/node.md", "js"),
    each(NODE, "'README.md'", "node/README.md", "js"),
    Runner { is_first_only: true, ..compared(GO, "doc/book/start-go.md", "doc/book/start-go.md", "go") },
    first(GO, "doc/go.md", "doc/go.md", "go"),
    each(STEPS, "\"start-rust\"", "doc/book/start-rust.md", "sh"),
    each(STEPS, "\"start-c\"", "doc/book/start-c.md", "sh"),
    each(STEPS, "\"start-python\"", "doc/book/start-python.md", "sh"),
    each(STEPS, "\"start-node\"", "doc/book/start-node.md", "sh"),
    each(STEPS, "\"start-go\"", "doc/book/start-go.md", "sh"),
    each(STEPS, "\"start-command\"", "doc/book/start-command.md", "sh"),
    each(STEPS, "\"start-server\"", "doc/book/start-server.md", "sh"),
    compared(STEPS, "\"start-server\"", "doc/book/start-server.md", "python"),
    compared(STEPS, "\"start-server\"", "doc/book/start-server.md", "js"),
    compared(STEPS, "\"start-server\"", "doc/book/start-server.md", "go"),
    each(STEPS, "\"moving-from-leveldb\"", "doc/book/moving-from-leveldb.md", "sh"),
    first("crates/esker/src/blob/tests.rs", "doc/format/blob.md", "doc/format/blob.md", "hex"),
    first("crates/esker/src/table/tests/page.rs", "doc/format/table.md", "doc/format/table.md", "hex"),
    first("crates/esker/src/wal/example_test.rs", "doc/format/wal.md", "doc/format/wal.md", "hex"),
    first("crates/esker/src/version/example_test.rs", "doc/format/manifest.md", "doc/format/manifest.md", "hex"),
    first("crates/esker/src/version/example_test.rs", "```current", "doc/format/manifest.md", "current"),
];

/// A block that nothing runs.
struct Exempt {
    pages: &'static str,
    language: &'static str,
    /// How it begins.
    begins: &'static str,
    /// How many there are; none: any number.
    count: Option<usize>,
    reason: &'static str,
}

const EXEMPT: [Exempt; 3] = [
    Exempt {
        pages: "doc/backup.md",
        language: "text",
        begins: "esker-backup  ",
        count: Some(1),
        reason: "a list of files",
    },
    Exempt { pages: "doc/raft.md", language: "text", begins: "LOCK  ", count: Some(1), reason: "a list of files" },
    Exempt {
        pages: "doc/results/*",
        language: "text",
        begins: "",
        count: None,
        reason: "what a measurement has printed",
    },
];

/// Blocks that are indented instead, which nothing runs: how many a document has, and what they
/// are. A new one gets fences.
const INDENTED: [(&str, usize, &str); 17] = [
    ("README.md", 3, COMMAND_LINES),
    ("doc/backup.md", 1, COMMAND_LINES),
    ("doc/benchmarking.md", 1, COMMAND_LINES),
    ("doc/c.md", 1, COMMAND_LINES),
    ("doc/format/blob.md", 1, DRAWING),
    ("doc/format/directory.md", 2, DRAWING),
    ("doc/format/manifest.md", 2, DRAWING),
    ("doc/format/table.md", 6, DRAWING),
    ("doc/format/typed.md", 1, DRAWING),
    ("doc/format/wal.md", 2, DRAWING),
    ("doc/go.md", 2, "command lines, which `scripts/go-tests` has; an import of `go/cosmosdb`"),
    ("doc/leveldb.md", 2, COMMAND_LINES),
    ("doc/server.md", 5, COMMAND_LINES),
    ("doc/studies.md", 2, COMMAND_LINES),
    ("doc/testing-clusters.md", 5, COMMAND_LINES),
    ("doc/testing.md", 2, COMMAND_LINES),
    ("node/README.md", 1, "command lines, which `scripts/node-tests` has"),
];
const COMMAND_LINES: &str = "command lines with what they do: no script";
const DRAWING: &str = "drawings of bytes, and grammars";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fits(path: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => path == pattern,
        Some((start, end)) => path.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

/// Whether a runner takes a block of a page, by its index.
fn takes(runner: &Runner, path: &str, blocks: &[Block], index: usize) -> bool {
    let language = &blocks[index].language;
    let is_first = || !blocks[..index].iter().any(|block| block.language == *language);
    fits(path, runner.pages) && runner.language == language && (!runner.is_first_only || is_first())
}

/// Whether a block is what the program before it prints, and that is compared.
fn is_compared(path: &str, blocks: &[Block], index: usize) -> bool {
    let takes = |at: usize| RUNNERS.iter().any(|runner| runner.compares && takes(runner, path, blocks, at));
    let before = blocks[..index].iter().rposition(|block| block.language != "sh");
    blocks[index].language == "text" && before.is_some_and(takes)
}

#[derive(Default)]
struct Counts {
    run: usize,
    shown: usize,
    exempt: BTreeMap<&'static str, usize>,
}

/// Counts the blocks of a page, and says which are neither run nor exempt.
fn look(path: &str, text: &str, counts: &mut Counts) -> Vec<String> {
    let mut found = Vec::new();
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    if fences % 2 != 0 {
        found.push(format!("{path}: a block does not end"));
    }
    for (index, line) in text.lines().enumerate() {
        let is_fence = ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
        if is_fence && !line.starts_with("```") {
            found.push(format!("{path}:{}: a fence is three backquotes at the beginning of a line", index + 1));
        }
    }
    let blocks = blocks(text);
    for (index, block) in blocks.iter().enumerate() {
        let is_exempt = |exempt: &&Exempt| {
            fits(path, exempt.pages) && exempt.language == block.language && block.text.starts_with(exempt.begins)
        };
        if RUNNERS.iter().any(|runner| takes(runner, path, &blocks, index)) {
            counts.run += 1;
        } else if is_compared(path, &blocks, index) {
            counts.shown += 1;
        } else if let Some(exempt) = EXEMPT.iter().find(is_exempt) {
            *counts.exempt.entry(exempt.pages).or_default() += 1;
        } else {
            found.push(format!("{path}:{}: nothing runs this block `{}`", block.line, block.language));
        }
    }
    found
}

/// How many blocks of a document are indented: by four spaces, behind an empty line, and in no
/// list.
fn indented(text: &str) -> usize {
    let (mut count, mut in_fences, mut in_list, mut in_block, mut is_behind_empty) = (0, false, false, false, true);
    for line in text.lines() {
        let words = line.trim_start();
        in_fences ^= words.starts_with("```");
        let is_item = ["* ", "- "].iter().any(|mark| words.starts_with(mark))
            || words.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        in_list = !in_fences
            && (is_item && !line.starts_with("    ") || in_list && (words.is_empty() || line.starts_with(' ')));
        let is_code = line.starts_with("    ") && !in_fences && !in_list;
        count += usize::from(is_code && !in_block && is_behind_empty);
        in_block = is_code || in_block && words.is_empty();
        is_behind_empty = words.is_empty();
    }
    count
}

/// All documents, by their path from the repository.
fn documents() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for pattern in ["", "doc/**", "crates/*", "go", "node", "packaging", "python"] {
        let (directory, depth) = match pattern.split_once("/*") {
            None => (pattern, 0),
            Some((directory, "")) => (directory, 1),
            Some((directory, _)) => (directory, usize::MAX),
        };
        below(directory, depth, &mut found);
    }
    found
}

fn below(directory: &str, depth: usize, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(root().join(directory)).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let inner = if directory.is_empty() { name.into_owned() } else { format!("{directory}/{name}") };
        if depth > 0 && path.is_dir() {
            below(&inner, depth - 1, found);
        } else if inner.ends_with(".md") {
            found.insert(inner, std::fs::read_to_string(&path).expect("the document can be read"));
        }
    }
}

#[test]
fn every_block_is_run_or_has_a_reason() {
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    let documents = documents();
    for (path, text) in &documents {
        found.extend(look(path, text, &mut counts));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Nobody follows the records of decisions and of measurements.
    let is_record = |path: &str| ["doc/decisions/", "doc/results/"].iter().any(|records| path.starts_with(records));
    for (path, text) in documents.iter().filter(|(path, _)| !is_record(path)) {
        let expected = INDENTED.iter().find(|(listed, ..)| path == listed).map_or(0, |(_, count, _)| *count);
        assert_eq!(indented(text), expected, "{path}: blocks that are indented; a new one gets fences");
    }
    let exempt: usize = counts.exempt.values().sum();
    println!("{} blocks are run, {} show what those print, {exempt} are exempt:", counts.run, counts.shown);
    for Exempt { pages, count, reason, .. } in EXEMPT {
        let counted = counts.exempt.get(pages).copied().unwrap_or(0);
        println!("  {pages}: {counted}, {reason}");
        assert!(
            counted > 0 && count.is_none_or(|count| count == counted),
            "{pages} has {counted} blocks, not {count:?}"
        );
    }
    let indented: usize = INDENTED.iter().map(|(_, count, _)| count).sum();
    println!("  indented blocks: {indented}, of {} documents", INDENTED.len());
    for (path, count, reason) in INDENTED {
        assert!(count > 0 && documents.contains_key(path), "{path}: {count}, {reason}");
    }
    assert!(counts.run > 80 && counts.shown > 15, "{} {}", counts.run, counts.shown);
}

#[test]
fn every_runner_has_something_to_run() {
    let documents = documents();
    for runner in RUNNERS {
        let Runner { file: (file, named), pages, language, .. } = runner;
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(named), "{file} does not name {named:?}");
        let has_one = documents.iter().any(|(path, text)| {
            let blocks = blocks(text);
            (0..blocks.len()).any(|index| takes(&runner, path, &blocks, index))
        });
        assert!(has_one, "{file} runs no block `{language}` of {pages}");
    }
    let steps = "scripts/first-steps --quick";
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the file can be read");
    assert!(makefile.contains(steps), "CI does not call {steps}");
}

#[test]
fn what_nothing_runs_is_found() {
    let found = |path: &str, text: &str| look(path, text, &mut Counts::default());
    let rust = "```rust\nfn main() {}\n```\n";
    let text = "```text\n1\n```\n";
    for (path, page) in [
        ("doc/book/a.md", format!("{rust}{text}")),
        ("doc/book/a.md", format!("{rust}{rust}")),
        ("doc/book/start-c.md", format!("```c\n```\n```sh\ncc\n```\n{text}")),
        ("doc/backup.md", "```text\nesker-backup   nothing\n```\n".to_owned()),
        ("README.md", rust.to_owned()),
    ] {
        assert_eq!(found(path, &page), [""; 0], "{path} {page}");
    }
    let nothing =
        |path: &str, line: usize, language: &str| format!("{path}:{line}: nothing runs this block `{language}`");
    for (path, page, line, language) in [
        ("doc/book/a.md", format!("{rust}{text}{text}"), 8, "text"),
        ("doc/book/a.md", text.to_owned(), 2, "text"),
        ("doc/book/a.md", "```sh\nls\n```\n".to_owned(), 2, "sh"),
        ("doc/book/a.md", "```\nls\n```\n".to_owned(), 2, ""),
        ("doc/book/a.md", "```rust,ignore\nfn main() {}\n```\n".to_owned(), 2, "rust,ignore"),
        ("doc/a.md", rust.to_owned(), 2, "rust"),
        ("doc/backup.md", text.to_owned(), 2, "text"),
        ("doc/c.md", "```c\n```\n```c\n```\n".to_owned(), 4, "c"),
        ("README.md", format!("{rust}{rust}"), 5, "rust"),
    ] {
        assert_eq!(found(path, &page), [nothing(path, line, language)], "{path} {page}");
    }
    for page in ["~~~\nls\n~~~\n", "* a\n  ```sh\n  ls\n  ```\n"] {
        assert_eq!(found("doc/a.md", page).len(), 2, "{page}");
    }
    for (text, count) in [
        ("a\n\n    b\n\n    c\n", 1),
        ("    a\n\nb\n\n    c\n", 2),
        ("* a\n\n    b\n", 0),
        ("a\n    b\n", 0),
        ("```c\n\n    b\n```\n", 0),
    ] {
        assert_eq!(indented(text), count, "{text}");
    }
    assert_eq!(found("doc/book/a.md", "```rust\nfn main() {}\n"), ["doc/book/a.md: a block does not end"]);
}

/// The manifest in the README is for a crate beside a clone.
#[test]
fn the_dependency_of_the_readme_is_there() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the file can be read");
    let manifest = blocks(&readme).into_iter().find(|block| block.language == "toml").expect("a manifest");
    let path =
        manifest.text.split("path = \"../esker/").nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
    let crate_of_it = std::fs::read_to_string(root().join(path).join("Cargo.toml")).expect("a crate");
    assert!(crate_of_it.contains("\nname = \"esker\"\n"), "{path}");
}
