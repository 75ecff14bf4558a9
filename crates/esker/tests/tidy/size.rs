//! The rules about length, counted in lines of code: without comments, blank lines and tests.

use crate::report::Violation;
use crate::source::Source;
use crate::workspace::Workspace;
use std::collections::BTreeSet;

/// The most lines of a file.
pub const FILE_LINES: usize = 600;
/// The most lines of a function, from its name to its closing brace.
pub const FUNCTION_LINES: usize = 70;
/// The most lines of a directory, its tests not counted.
pub const DIRECTORY_LINES: [(&str, usize); 2] =
    [("crates/esker-bench/src/", 15_000), ("crates/esker-engines/src/", 5_000)];

/// Longer than the rule: file, function (empty for the file as a whole) and the length it must not
/// exceed.
pub type Allowed<'a> = (&'a str, &'a str, usize);

/// Files and functions that are too long, and entries of the list that are not needed any more.
pub fn lengths(workspace: &Workspace, allowed: &[Allowed<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut needed = BTreeSet::new();
    for source in workspace.sources.values().filter(|source| !workspace.is_test_file(&source.path)) {
        let whole = source.count_code(1..source.code_lines.len() + 1);
        let mut parts = vec![(String::new(), 1, whole, FILE_LINES)];
        parts.extend(functions(source).into_iter().map(|(name, line, length)| (name, line, length, FUNCTION_LINES)));
        for (name, line, length, limit) in parts {
            if length <= limit {
                continue;
            }
            let exception = allowed.iter().find(|(file, function, _)| *file == source.path && *function == name);
            needed.extend(exception.map(|(file, function, _)| (*file, *function)));
            let most = exception.map_or(limit, |(_, _, most)| *most);
            if length > most {
                let thing = if name.is_empty() { "file".to_owned() } else { format!("function `{name}`") };
                found.push(Violation::new(
                    &source.path,
                    line,
                    format!("{thing} has {length} lines of code, more than {most}"),
                ));
            }
        }
    }
    for (file, function, _) in allowed.iter().filter(|(file, function, _)| !needed.contains(&(*file, *function))) {
        found.push(Violation::new(
            file,
            1,
            format!("the exception for `{function}` is not needed any more; remove it"),
        ));
    }
    found
}

/// Directories with more lines than the rule.
pub fn directories(workspace: &Workspace, limits: &[(&str, usize)]) -> Vec<Violation> {
    let lines = |directory: &str| -> usize {
        let sources = workspace.sources.values().filter(|source| source.path.starts_with(directory));
        let own = sources.filter(|source| !workspace.is_test_file(&source.path));
        own.map(|source| source.count_code(1..source.code_lines.len() + 1)).sum()
    };
    let over = limits.iter().map(|(directory, most)| (*directory, lines(directory), *most));
    over.filter(|(_, length, most)| length > most || *length == 0)
        .map(|(directory, length, most)| {
            Violation::new(directory, 1, format!("the directory has {length} lines of code; the rule is 1 to {most}"))
        })
        .collect()
}

/// Name, line and length of each function that has a body and is not for tests.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        let is_function = token.text == "fn" && !token.test && !matches!(source.word(index + 1), "(" | "");
        if !is_function {
            continue;
        }
        let Some(open) = body(source, index) else { continue };
        let last = source.tokens[source.closing(open)].line;
        found.push((source.word(index + 1).to_owned(), token.line, source.count_code(token.line..last + 1)));
    }
    found
}

/// The opening brace of the function declared at `index`, if it has a body.
fn body(source: &Source, index: usize) -> Option<usize> {
    let mut at = index;
    while at < source.tokens.len() {
        match source.word(at) {
            "(" | "[" => at = source.closing(at),
            "{" => return Some(at),
            ";" => return None,
            _ => {}
        }
        at += 1;
    }
    None
}
