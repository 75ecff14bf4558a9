//! The commands of the book: the blocks `console` of each page, line by line, in one empty
//! directory for each page; what they print is what the page shows.
//!
//! A command whose shown output ends with a line `esker: ...` fails; every other one succeeds.
//!
//! So are the lines of the blocks `sh` about benchmarks, with fewer entries. `scripts/first-steps`
//! runs all other blocks `sh`: they install.
#![allow(clippy::unwrap_used)]

use crate::common::Sandbox;
#[cfg(feature = "import")]
use crate::common::sources;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command, and what the page shows behind it.
struct Step<'b> {
    line: &'b str,
    shown: String,
}

fn steps(block: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for text in block.lines() {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(line), _) => steps.push(Step { line, shown: String::new() }),
            (None, Some(step)) => step.shown.extend([text, "\n"]),
            (None, None) => panic!("a block `console` begins with `$ `, not with {text:?}"),
        }
    }
    steps
}

/// Which part of the command that not every build has a line needs.
fn missing(line: &str) -> Option<&'static str> {
    let needs = |word: &str| line.starts_with(&format!("esker {word} "));
    let backup = needs("backup") && !cfg!(feature = "backup");
    let import = needs("import") && !cfg!(feature = "import");
    if backup { Some("backup") } else { import.then_some("import") }
}

/// Makes what the imports of the book read, where the page has one. False: its engine is not here.
#[cfg(feature = "import")]
fn prepare(page: &str, directory: &Path) -> bool {
    let Some(engine) = page.strip_prefix("moving-from-") else { return true };
    let old = directory.join("old");
    let Some(written) = sources::write(engine, &old, 3500) else { return false };
    let file = match engine {
        "sqlite" => "app.sqlite3",
        "redb" => "old.redb",
        _ => return written == old,
    };
    std::fs::rename(written, directory.join(file)).unwrap();
    true
}

#[cfg(not(feature = "import"))]
fn prepare(_page: &str, _directory: &Path) -> bool {
    true
}

/// Runs a line in a shell that finds the built command first.
fn run(line: &str, directory: &Path) -> (bool, String) {
    let command = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", command.display()))
        .env_remove("ESKER_DB")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    // A slow machine may see progress first.
    let told = String::from_utf8_lossy(&output.stderr);
    let told = told.lines().filter(|line| !line.ends_with(" a second"));
    printed.extend(told.flat_map(|line| [line, "\n"]));
    (output.status.success(), printed)
}

/// The lines of the blocks `sh` of the page about benchmarks, each with the same line made small:
/// with the built command, without the other engines that it would install, and for few entries.
#[cfg(feature = "bench")]
const MEASUREMENTS: [(&str, &str); 2] = [
    (
        "make bench",
        "MAKEFLAGS= make --no-print-directory -C \"$ROOT\" bench CARGO=true PEERS=true TARGET=\"$PWD\" OUT=\"$PWD/bench-out\" \
         BENCH_SIZE='--quick --engines esker --num 1000 --rows fillseq' && test -s bench-out/scoreboard.html",
    ),
    (
        "esker bench --engine=esker,leveldb --benchmarks=fillrandom,readrandom --num=1000000",
        "esker bench --engine=esker,leveldb --benchmarks=fillrandom,readrandom --num=1000",
    ),
];

#[cfg(feature = "bench")]
#[test]
fn the_measurements_of_the_book_run() {
    let pages = esker_book::pages().unwrap();
    let page = pages.iter().find(|page| page.name == "benchmark-method").unwrap();
    let lines: Vec<_> =
        page.blocks.iter().filter(|block| block.language == "sh").flat_map(|block| block.text.lines()).collect();
    assert_eq!(lines, MEASUREMENTS.map(|(line, _)| line), "the lines of the page, and their small forms");
    let sandbox = Sandbox::new("book-measurements");
    let directory = sandbox.path("");
    std::fs::create_dir(directory.join("release")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_esker"), directory.join("release/esker")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (line, small) in MEASUREMENTS {
        if line.contains("leveldb") && !sources::is_here("leveldb") {
            println!("{line}: not run: LevelDB is not here");
            continue;
        }
        let (succeeded, printed) = run(&format!("ROOT='{}'; {small}", root.display()), &directory);
        assert!(succeeded && printed.contains("fill"), "{line}: {printed}");
    }
}

#[test]
fn the_commands_of_the_book_print_what_it_shows() {
    let (mut count, mut left_out) = (0, 0);
    for page in esker_book::pages().unwrap() {
        let blocks: Vec<_> = page.blocks.iter().filter(|block| block.language == "console").collect();
        if blocks.is_empty() {
            continue;
        }
        let sandbox = Sandbox::new(&format!("book-{}", page.name));
        let directory = sandbox.path("");
        let is_prepared = prepare(&page.name, &directory);
        'blocks: for block in blocks {
            for (index, step) in steps(&block.text).iter().enumerate() {
                let place =
                    format!("doc/book/{}.md, line {}, command {}: {}", page.name, block.line, index + 1, step.line);
                if let Some(part) = missing(step.line).or((!is_prepared).then_some("engine")) {
                    println!("{place}: not run: this build has no {part}");
                    left_out += 1;
                    break 'blocks;
                }
                let (succeeded, printed) = run(step.line, &directory);
                assert!(
                    esker_book::fits(&printed, &step.shown),
                    "{place}\nprints\n{printed}and the page shows\n{}",
                    step.shown
                );
                let fails = step.shown.lines().last().is_some_and(|line| line.starts_with("esker: "));
                assert_eq!(succeeded, !fails, "{place}");
                count += 1;
            }
        }
    }
    println!("{count} commands; {left_out} pages are left out from a command on");
    assert!(count > 25, "only {count} commands were found in the book");
}
