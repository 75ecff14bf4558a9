//! The rules about what code may contain: `unsafe` where it is declared and argued, and nothing that gives up.

use crate::report::Violation;
use crate::source::Source;
use crate::workspace::Workspace;

/// Every `unsafe` outside the declared files, or without its argument directly above.
pub fn unsafe_code(workspace: &Workspace, declared: &[&str]) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in workspace.sources.values() {
        let mut places = (0..source.tokens.len()).filter(|index| source.word(*index) == "unsafe").peekable();
        let is_declared = declared.contains(&source.path.as_str());
        if let Some(first) = places.peek().filter(|_| !is_declared) {
            let line = source.tokens[*first].line;
            found.push(Violation::new(&source.path, line, "`unsafe` in a file that is not declared for it"));
        }
        for index in places {
            let argued = match kind(source, index) {
                Unsafe::Foreign => true,
                Unsafe::Work => comment_above(source, index, &["SAFETY:"]),
                Unsafe::Contract => comment_above(source, index, &["SAFETY:", "# Safety"]),
            };
            if !argued {
                let line = source.tokens[index].line;
                found.push(Violation::new(&source.path, line, "`unsafe` without a SAFETY comment directly above"));
            }
        }
    }
    for path in declared {
        let uses =
            workspace.sources.get(*path).is_some_and(|source| source.tokens.iter().any(|token| token.text == "unsafe"));
        if !uses {
            found.push(Violation::new(path, 1, "declared for `unsafe`, but has none; remove it from the list"));
        }
    }
    found
}

enum Unsafe {
    /// The type of a function, or a function for C to call, whose contract is that of the C interface.
    Foreign,
    /// A block or an implementation: someone claims that the rules are kept.
    Work,
    /// A function or a trait: someone states what the rules are.
    Contract,
}

fn kind(source: &Source, index: usize) -> Unsafe {
    let mut next = index + 1;
    let foreign = source.word(next) == "extern";
    if foreign {
        next += 1;
        while source.word(next) == "\"" {
            next += 1;
        }
        if source.word(next) == "{" {
            return Unsafe::Work;
        }
    }
    match source.word(next) {
        "fn" if foreign || source.word(next + 1) == "(" => Unsafe::Foreign,
        "fn" | "trait" => Unsafe::Contract,
        _ => Unsafe::Work,
    }
}

/// Whether the comment directly above the statement or item of a token, or on its line, has one of these marks.
fn comment_above(source: &Source, index: usize, marks: &[&str]) -> bool {
    let marked = |line: usize| marks.iter().any(|mark| source.comment_lines[line].contains(mark));
    let mut line = source.tokens[index].line - 1;
    if marked(line) {
        return true;
    }
    let mut in_comment = false;
    while line > 0 {
        line -= 1;
        let code = source.code_lines[line].trim();
        let is_comment = code.is_empty() && !source.comment_lines[line].trim().is_empty();
        // Attributes, and the beginning of the statement that goes on with the token.
        let goes_on = !code.is_empty() && (code.starts_with('#') || !code.ends_with([';', '{', '}', ',']));
        if marked(line) && (is_comment || goes_on) {
            return true;
        }
        if is_comment {
            in_comment = true;
        } else if in_comment || !goes_on {
            return false;
        }
    }
    false
}

/// Every pause of a test of the engine outside the declared files. What a test waits for is a condition, or the machine's speed decides about it.
pub fn sleeping_tests(workspace: &Workspace, declared: &[&str]) -> Vec<Violation> {
    let mut found = Vec::new();
    let pauses = |source: &Source| -> Vec<usize> {
        if !source.path.starts_with("crates/esker/") && !source.path.starts_with("crates/esker-check/") {
            return Vec::new();
        }
        let is_test = workspace.is_test_file(&source.path);
        let tokens = source.tokens.iter().enumerate().filter(|(_, token)| is_test || token.test);
        tokens.filter(|(index, _)| source.reads(*index, &["sleep", "("])).map(|(_, token)| token.line).collect()
    };
    for source in workspace.sources.values().filter(|source| !declared.contains(&source.path.as_str())) {
        for line in pauses(source) {
            found.push(Violation::new(&source.path, line, "a test sleeps; wait for a condition, as `wait_until` does"));
        }
    }
    for path in declared {
        if workspace.sources.get(*path).is_none_or(|source| pauses(source).is_empty()) {
            found.push(Violation::new(
                path,
                1,
                "declared for tests that sleep, but none does; remove it from the list",
            ));
        }
    }
    found
}

/// Every `unwrap()` outside tests, and unfinished or left-over work anywhere.
pub fn giving_up(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in workspace.sources.values() {
        let is_test = workspace.is_test_file(&source.path);
        for (index, token) in source.tokens.iter().enumerate() {
            let mut report = |what: &str| found.push(Violation::new(&source.path, token.line, what));
            if !is_test && !token.test && source.reads(index, &[".", "unwrap", "(", ")"]) {
                report("`unwrap()` outside tests; return an error, or say in an `expect` why it cannot fail");
            }
            if matches!(token.text.as_str(), "todo" | "unimplemented" | "dbg") && source.word(index + 1) == "!" {
                report(&format!("`{}!` is left in the code", token.text));
            }
        }
    }
    found
}
