//! The rules about tables that name tests, which must be there: `doc/testing.md` names, for each
//! thing in `doc/semantics.md` that a program could take for granted, those that show it, and each
//! section must have some; `doc/testing/holes.md` names, for each hole that was found from outside,
//! those that would show it again.

use crate::report::Violation;
use crate::workspace::Workspace;
use std::collections::BTreeSet;

const TESTING: &str = "doc/testing.md";
const HOLES: &str = "doc/testing/holes.md";
const SEMANTICS: &str = "doc/semantics.md";
const HEADING: &str = "## Pitfalls, and what shows them";
/// The crate of whose tests the names are. Those of another one have its name in front.
const CRATE: &str = "esker";
/// What is meant by a name that has no program in front.
const USUAL: &str = "operations::";
/// The section of `doc/semantics.md` that says what there is not.
const WITHOUT_PITFALLS: &str = "Non-goals";

/// A row: its line, its first cell or the section that goes on, and the names of its tests.
struct Row<'a> {
    line: usize,
    section: &'a str,
    tests: Vec<&'a str>,
}

/// Every name that is no test, every row without one, and every section without row.
pub fn unshown(workspace: &Workspace) -> Vec<Violation> {
    let rows = rows(workspace);
    let mut found = without_tests(workspace, TESTING, &rows);
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

/// Every name in the table of holes that is no test, and every hole without one.
pub fn unshown_holes(workspace: &Workspace) -> Vec<Violation> {
    without_tests(workspace, HOLES, &holes(workspace))
}

/// How many holes there are.
pub fn count_holes(workspace: &Workspace) -> usize {
    holes(workspace).len()
}

/// Every name in these rows of a page that is no test, and every row without one.
fn without_tests(workspace: &Workspace, page: &str, rows: &[Row<'_>]) -> Vec<Violation> {
    let tests = tests(workspace);
    let mut found = Vec::new();
    for row in rows {
        if row.tests.is_empty() {
            found.push(Violation::new(page, row.line, "the row names no test"));
        }
        for name in &row.tests {
            if !tests.contains(*name) && !tests.contains(&format!("{USUAL}{name}")) {
                found.push(Violation::new(page, row.line, format!("there is no test {name}")));
            }
        }
    }
    found
}

/// The rows below the heading, up to the next one. A section stands in its first row only.
fn rows(workspace: &Workspace) -> Vec<Row<'_>> {
    let lines = lines(workspace, TESTING).skip_while(|(line, _)| *line != HEADING).skip(1);
    table(lines.take_while(|(line, _)| !line.starts_with("## ")), "Section", 3)
}

/// The rows of the table of holes.
fn holes(workspace: &Workspace) -> Vec<Row<'_>> {
    table(lines(workspace, HOLES), "Hole", 2)
}

/// The lines of a page, each with its number.
fn lines<'a>(workspace: &'a Workspace, page: &str) -> impl Iterator<Item = (&'a str, usize)> + use<'a> {
    workspace.texts.get(page).into_iter().flat_map(|text| text.lines().zip(1..))
}

/// The rows among these lines that have so many cells, without the head, which begins with `head`.
/// An empty first cell means that of the row above.
fn table<'a>(lines: impl Iterator<Item = (&'a str, usize)>, head: &str, cell_count: usize) -> Vec<Row<'a>> {
    let mut section = "";
    let mut rows = Vec::new();
    for (text, line) in lines.filter(|(text, _)| text.starts_with('|')) {
        let cells: Vec<&str> = text.split(" | ").collect();
        let [first, .., last] = cells[..] else { continue };
        let first = first.trim_start_matches('|').trim();
        if cells.len() != cell_count || first.starts_with("---") || first == head {
            continue;
        }
        section = if first.is_empty() { section } else { first };
        let tests = last.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).collect();
        rows.push(Row { line, section, tests });
    }
    rows
}

/// The tests of all crates, by all names that they may have: a file with a module for its tests may
/// name them with and without it.
fn tests(workspace: &Workspace) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for module in &workspace.modules {
        let place = module.root.strip_prefix("crates/").and_then(|root| root.split_once('/'));
        let (Some((name, root)), Some(source)) = (place, workspace.sources.get(&module.file)) else { continue };
        let other = (name != CRATE).then_some(name);
        let program = root.strip_prefix("tests/").and_then(|name| name.split(['/', '.']).next());
        let names = other.into_iter().chain(program);
        let path: Vec<&str> = names.chain(module.path.iter().map(String::as_str)).collect();
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
