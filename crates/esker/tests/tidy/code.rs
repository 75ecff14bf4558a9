//! The rules about what code may contain: `unsafe` where it is declared and argued, and nothing
//! that gives up.

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
    /// The type of a function, a function for C to call, whose contract is that of the C interface,
    /// or the attribute that gives it its name there.
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
    // The name that C calls it by.
    if source.reads(next, &["(", "no_mangle", ")"]) {
        return Unsafe::Foreign;
    }
    match source.word(next) {
        "fn" if foreign || source.word(next + 1) == "(" => Unsafe::Foreign,
        "fn" | "trait" => Unsafe::Contract,
        _ => Unsafe::Work,
    }
}

/// Whether the comment directly above the statement or item of a token, or on its line, has one of
/// these marks.
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

/// Every pause of a test outside the declared files. What a test waits for is a condition, or the
/// machine's speed decides about it.
pub fn sleeping_tests(workspace: &Workspace, declared: &[&str]) -> Vec<Violation> {
    let is_call = |source: &Source, index: usize| index == 0 || source.word(index - 1) != "fn";
    let sleeps = |source: &Source, index: usize| source.reads(index, &["sleep", "("]) && is_call(source, index);
    let what = "a test sleeps; wait for a condition, as `wait_until` does";
    in_tests(workspace, declared, sleeps, what, "declared for tests that sleep, but none does; remove it from the list")
}

/// Every look of a test outside the declared files at how much time has passed. What takes long on
/// one machine does not on another.
pub fn timed_tests(workspace: &Workspace, declared: &[&str]) -> Vec<Violation> {
    let what = "a test looks at how much time has passed; step a clock, or wait for a condition";
    let needless = "declared for tests that look at how much time has passed, but none does; remove it from the list";
    in_tests(workspace, declared, looks_at_time, what, needless)
}

/// Whether a stopwatch is read here, or the time of now compared with another. A time to begin
/// from, for a clock that is stepped, or to end at is none of these.
fn looks_at_time(source: &Source, index: usize) -> bool {
    let before = |steps: usize| index.checked_sub(steps).map_or("", |index| source.word(index));
    if source.reads(index, &["elapsed", "("]) {
        // The time of the calendar, for a seed.
        return before(2) != "UNIX_EPOCH";
    }
    if !source.reads(index, &["Instant", "::", "now", "(", ")"]) {
        return false;
    }
    let path = if before(1) == "::" { 4 } else { 0 };
    let is_subtracted = before(path + 1) == "(" && before(path + 2).ends_with("duration_since");
    let is_right = match (before(path + 2), before(path + 1)) {
        (_, "<" | ">" | "-") | ("<" | ">" | "=" | "!", "=") => true,
        _ => is_subtracted,
    };
    is_right
        || matches!((source.word(index + 5), source.word(index + 6)), ("<" | ">" | "-" | ".", _) | ("=" | "!", "="))
}

/// Every wait of a test, outside the declared files, that ends though what it waits for has not
/// come: where the machine is slow the test then fails, or goes on and checks nothing. That nothing
/// comes is shown by something later that has come.
pub fn impatient_tests(workspace: &Workspace, declared: &[&str]) -> Vec<Violation> {
    let what = "a test waits for a limited time; wait for a condition, or `FOR_EVER`";
    let needless = "declared for tests that wait for a limited time, but none does; remove it from the list";
    in_tests(workspace, declared, is_limited_wait, what, needless)
}

/// Whether a wait with a limit begins here. One of 300 s, by which a wait for ever becomes a
/// failure, is none.
fn is_limited_wait(source: &Source, index: usize) -> bool {
    if source.word(index + 1) != "(" {
        return false;
    }
    let before = index.checked_sub(1).map_or("", |index| source.word(index));
    let is_method = matches!(before, "." | "::");
    let is_wait = match source.word(index) {
        "recv_timeout" | "wait_timeout" | "wait_timeout_while" | "park_timeout" | "try_lock_for" => is_method,
        // Of a socket; without a limit its reads wait for ever.
        "set_read_timeout" => is_method && source.word(index + 2) != "None",
        // That of tokio, which is called by its name alone, too.
        "timeout" => before != "fn",
        // That of a condition variable. Others have such a method, too.
        "wait_for" => is_method && source.reads(index + 2, &["&", "mut"]),
        _ => false,
    };
    let is_for_ever = |at: usize| source.word(at) == "FOR_EVER" || source.reads(at, &["from_secs", "(", "300", ")"]);
    is_wait && !(index + 1..source.closing(index + 1)).any(is_for_ever)
}

/// Every place in tests that is one of these, outside the declared files; and every declared file
/// without one.
fn in_tests(
    workspace: &Workspace,
    declared: &[&str],
    is_one: impl Fn(&Source, usize) -> bool,
    what: &str,
    needless: &str,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let places = |source: &Source| -> Vec<usize> {
        let is_test = workspace.is_test_file(&source.path);
        let tokens = source.tokens.iter().enumerate().filter(|(_, token)| is_test || token.test);
        tokens.filter(|(index, _)| is_one(source, *index)).map(|(_, token)| token.line).collect()
    };
    for source in workspace.sources.values().filter(|source| !declared.contains(&source.path.as_str())) {
        found.extend(places(source).into_iter().map(|line| Violation::new(&source.path, line, what)));
    }
    for path in declared {
        if workspace.sources.get(*path).is_none_or(|source| places(source).is_empty()) {
            found.push(Violation::new(path, 1, needless));
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
