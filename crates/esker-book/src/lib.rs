//! The examples of the book, `doc/book`: blocks of code, and what they print.
//!
//! A block is what stands between fences. What a program prints stands in the next block `text`;
//! blocks `sh`, which say how it is built and started, may come between. The tests of this crate
//! compile and run the blocks `rust`; those of `esker-c` the blocks `c`, those of `esker-cli` the
//! blocks `console`, and those of the packages for Python, Node and Go theirs.
//! `scripts/first-steps` runs blocks `sh`. `coverage.rs` says what runs which block of all
//! documents.

#[cfg(test)]
mod coverage;

use std::io;
use std::path::{Path, PathBuf};

/// A page of the book.
#[derive(Debug)]
pub struct Page {
    /// The name of its file, without the ending.
    pub name: String,
    /// Its blocks of code, in their order.
    pub blocks: Vec<Block>,
}

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// What stands behind the fence: `rust`, `c`, `console`.
    pub language: String,
    /// The line of the page that it begins in, from 1.
    pub line: usize,
    /// The code.
    pub text: String,
    /// What it prints, if the page says so.
    pub prints: Option<String>,
}

/// The directory of the book.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/book")
}

/// The documents outside of the book whose blocks `rust` are bodies of programs, by their path from
/// the repository: those of the crates, `crates/NAME/README.md`, and the page of the metrics.
///
/// # Errors
///
/// The error of the system where a directory or a document cannot be read.
pub fn bodies() -> io::Result<Vec<(String, Vec<Block>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec!["doc/metrics.md".to_owned()];
    for entry in std::fs::read_dir(root.join("crates"))? {
        let path = format!("crates/{}/README.md", entry?.file_name().to_string_lossy());
        if root.join(&path).exists() {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: String| Ok((path.clone(), blocks(&std::fs::read_to_string(root.join(&path))?)));
    paths.into_iter().map(read).collect()
}

/// All pages of the book, by name.
///
/// # Errors
///
/// The error of the system where the directory or a page cannot be read.
pub fn pages() -> io::Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(directory())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            pages.push(Page { name, blocks: blocks(&std::fs::read_to_string(&path)?) });
        }
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pages)
}

/// The blocks of code in a text.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let language = language.trim().to_owned();
                open = Some(Block { language, line: index + 2, text: String::new(), prints: None });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    for index in 0..blocks.len() {
        let next = blocks[index + 1..].iter().find(|block| block.language != "sh");
        let printed = next.filter(|block| block.language == "text").map(|block| block.text.clone());
        if !matches!(blocks[index].language.as_str(), "sh" | "text") {
            blocks[index].prints = printed;
        }
    }
    blocks
}

/// Whether a program prints what a page shows: the same lines, where `...` in a line stands for any
/// text, and a line of `...` for any number of lines.
pub fn fits(printed: &str, shown: &str) -> bool {
    let printed: Vec<&str> = printed.lines().collect();
    let shown: Vec<&str> = shown.lines().collect();
    lines_fit(&printed, &shown)
}

fn lines_fit(printed: &[&str], shown: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| lines_fit(&printed[skipped..], rest)),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| line_fits(first, line) && lines_fit(others, rest))
        }
    }
}

fn line_fits(printed: &str, shown: &str) -> bool {
    match shown.split_once("...") {
        None => printed == shown,
        Some((start, rest)) => printed.strip_prefix(start).is_some_and(|behind| {
            let ends = behind.char_indices().map(|(at, _)| at).chain([behind.len()]);
            ends.into_iter().any(|end| line_fits(&behind[end..], rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, blocks, fits};

    #[test]
    fn a_block_prints_the_text_behind_it() {
        let page = "# A\n\n```rust\nfn main() {}\n```\n\n```sh\ncargo run\n```\n```text\n1\n2\n```\n\
                    ```c\nint x;\n```\n```rust\nlast\n```\n```text\n3\n```\n```text\n4\n```\n";
        let block = |language: &str, line, text: &str, prints: Option<&str>| Block {
            language: language.to_owned(),
            line,
            text: text.to_owned(),
            prints: prints.map(str::to_owned),
        };
        assert_eq!(
            blocks(page),
            [
                block("rust", 4, "fn main() {}\n", Some("1\n2\n")),
                block("sh", 8, "cargo run\n", None),
                block("text", 11, "1\n2\n", None),
                block("c", 15, "int x;\n", None),
                block("rust", 18, "last\n", Some("3\n")),
                block("text", 21, "3\n", None),
                block("text", 24, "4\n", None),
            ]
        );
    }

    #[test]
    fn dots_stand_for_any_text_and_any_lines() {
        for (printed, shown) in [
            ("", ""),
            ("a\nb\n", "a\nb\n"),
            ("loaded 2 records from 30 B in 0.01 s\n", "loaded 2 records from ... in ... s\n"),
            ("a\n1\n2\nb\n", "a\n...\nb\n"),
            ("a\nb\n", "...\na\n...\nb\n...\n"),
            ("\u{e9}a\n", "...a\n"),
        ] {
            assert!(fits(printed, shown), "{printed:?} {shown:?}");
        }
        for (printed, shown) in [
            ("a\n", ""),
            ("", "a\n"),
            ("a\nb\n", "a\n"),
            ("ab\n", "a\n"),
            ("a\nc\n", "a\n...\nb\n"),
            ("xa\n", "b...a\n"),
        ] {
            assert!(!fits(printed, shown), "{printed:?} {shown:?}");
        }
    }
}
