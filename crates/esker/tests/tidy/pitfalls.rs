//! The rule about the table of pitfalls: `doc/testing.md` names, for each thing in
//! `doc/semantics.md` that a program could take for granted, the tests that show it. They must be
//! there, and each section must have some.

use crate::report::Violation;
use crate::workspace::Workspace;
use std::collections::BTreeSet;

const TESTING: &str = "doc/testing.md";
const SEMANTICS: &str = "doc/semantics.md";
const HEADING: &str = "## Pitfalls, and what shows them";
/// The crate of whose tests the names are.
const CRATE: &str = "crates/esker/";
/// What is meant by a name that has no program in front.
const USUAL: &str = "operations::";
/// The section of `doc/semantics.md` that says what there is not.
const WITHOUT_PITFALLS: &str = "Non-goals";

/// A row: its line, its section, and the names of its tests.
struct Row<'a> {
    line: usize,
    section: &'a str,
    tests: Vec<&'a str>,
}

/// Every name that is no test, every row without one, and every section without row.
pub fn unshown(workspace: &Workspace) -> Vec<Violation> {
    let (rows, tests) = (rows(workspace), tests(workspace));
    let mut found = Vec::new();
    for row in &rows {
        if row.tests.is_empty() {
            found.push(Violation::new(TESTING, row.line, "the row names no test".to_owned()));
        }
        for name in &row.tests {
            if !tests.contains(*name) && !tests.contains(&format!("{USUAL}{name}")) {
                found.push(Violation::new(TESTING, row.line, format!("there is no test {name}")));
            }
        }
    }
    let semantics = workspace.texts.get(SEMANTICS).into_iter().flat_map(|text| text.lines().zip(1..));
    let headings: Vec<(&str, usize)> = semantics
        .filter_map(|(line, number)| Some((line.strip_prefix("## ")?, number)))
        .filter(|(section, _)| *section != WITHOUT_PITFALLS)
        .collect();
    for (section, line) in &headings {
        if !rows.iter().any(|row| row.section == *section) {
            found.push(Violation::new(SEMANTICS, *line, format!("{section} has no row in the table of {TESTING}")));
        }
    }
    for row in &rows {
        if !headings.iter().any(|(section, _)| *section == row.section) {
            let what = format!("{SEMANTICS} has no section {}", row.section);
            found.push(Violation::new(TESTING, row.line, what));
        }
    }
    found
}

/// How many rows there are.
pub fn count(workspace: &Workspace) -> usize {
    rows(workspace).len()
}

/// The rows below the heading, up to the next one. A section stands in its first row only.
fn rows(workspace: &Workspace) -> Vec<Row<'_>> {
    let lines = workspace.texts.get(TESTING).into_iter().flat_map(|text| text.lines().zip(1..));
    let below = lines.skip_while(|(line, _)| *line != HEADING).skip(1);
    let mut section = "";
    let mut rows = Vec::new();
    for (text, line) in below.take_while(|(line, _)| !line.starts_with("## ")) {
        let cells: Vec<&str> = text.split(" | ").collect();
        let (Some(first), Some(last), 3) = (cells.first(), cells.last(), cells.len()) else { continue };
        let first = first.trim_start_matches('|').trim();
        if first.starts_with("---") || first == "Section" {
            continue;
        }
        section = if first.is_empty() { section } else { first };
        let tests = last.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).collect();
        rows.push(Row { line, section, tests });
    }
    rows
}

/// The tests of the crate, by all names that they may have: a file with a module for its tests may
/// name them with and without it.
fn tests(workspace: &Workspace) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for module in workspace.modules.iter().filter(|module| module.root.starts_with(CRATE)) {
        let Some(source) = workspace.sources.get(&module.file) else { continue };
        let program = module.root.strip_prefix(CRATE).and_then(|root| root.strip_prefix("tests/"));
        let program = program.and_then(|name| name.split(['/', '.']).next());
        let path: Vec<&str> = program.into_iter().chain(module.path.iter().map(String::as_str)).collect();
        for at in 0..source.tokens.len() {
            if source.reads(at, &["#", "[", "test", "]"]) {
                let function = (at..source.tokens.len()).find(|at| source.word(*at) == "fn");
                let name = function.map_or("", |at| source.word(at + 1));
                found.insert([&path[..], &[name]].concat().join("::"));
            }
        }
    }
    found
}
