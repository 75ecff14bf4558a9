//! The Rust programs of the book and of other documents, each run in an empty directory by a
//! process of its own, so that `data` is where it looks for it; what it prints is what the page
//! shows.
//!
//! `cargo test -p esker-book --test snippets WORD` runs those whose path has the word in it.

use std::path::Path;
use std::process::{Command, ExitCode};

/// A program of a document.
struct Snippet {
    /// The document.
    file: &'static str,
    /// Its line on the page.
    line: usize,
    /// What it prints; nothing is shown where it prints nothing.
    prints: Option<&'static str>,
    /// Runs it.
    run: fn() -> Result<(), Box<dyn std::error::Error>>,
}

include!(concat!(env!("OUT_DIR"), "/snippets.rs"));

/// The argument that makes this program one of the snippets, by its number.
const RUN: &str = "--run-snippet";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == RUN) {
        let snippet =
            arguments.get(1).and_then(|number| number.parse::<usize>().ok()).and_then(|number| SNIPPETS.get(number));
        return match snippet.map(|snippet| (snippet.run)()) {
            Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(error)) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
            None => ExitCode::FAILURE,
        };
    }
    if SNIPPETS.len() < 10 {
        println!("only {} programs were found in the documents", SNIPPETS.len());
        return ExitCode::FAILURE;
    }
    let word = arguments.iter().find(|argument| !argument.starts_with('-')).map_or("", String::as_str);
    let (mut count, mut failed) = (0, 0);
    for (number, snippet) in SNIPPETS.iter().enumerate().filter(|(_, snippet)| snippet.file.contains(word)) {
        count += 1;
        match check(number, snippet) {
            Ok(()) => println!("{}, line {}: ok", snippet.file, snippet.line),
            Err(what) => {
                println!("{}, line {}: FAILED: {what}", snippet.file, snippet.line);
                failed += 1;
            }
        }
    }
    println!("{count} programs of documents, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(number: usize, snippet: &Snippet) -> Result<(), String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("book-{}-{number}", std::process::id()));
    let outcome = in_directory(&directory, number, snippet);
    std::fs::remove_dir_all(&directory).ok();
    outcome
}

fn in_directory(directory: &Path, number: usize, snippet: &Snippet) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    std::fs::remove_dir_all(directory).ok();
    std::fs::create_dir_all(directory).map_err(text)?;
    let mut program = Command::new(std::env::current_exe().map_err(text)?);
    let output = program.args([RUN, &number.to_string()]).current_dir(directory).output().map_err(text)?;
    let (printed, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}: {told}", output.status));
    }
    let shown = snippet.prints.unwrap_or("");
    match esker_book::fits(&printed, shown) {
        true => Ok(()),
        false => Err(format!("it prints\n{printed}and the page shows\n{shown}")),
    }
}
