//! The rules about all text: ASCII, nothing of the machine it was written on, and no file that
//! nobody compiles.

use crate::report::Violation;
use crate::workspace::Workspace;

/// Every character that is not ASCII.
pub fn ascii(workspace: &Workspace) -> Vec<Violation> {
    by_line(workspace, |line| {
        line.chars()
            .find(|character| !character.is_ascii())
            .map(|character| format!("not ASCII: {}", character.escape_unicode()))
    })
}

/// Every path that exists on somebody's machine only.
pub fn machine_paths(workspace: &Workspace) -> Vec<Violation> {
    // In two parts, so that this file passes.
    let paths = [("/wo", "rk/"), ("/ro", "ot/"), ("/tm", "p/w-")].map(|(start, end)| format!("{start}{end}"));
    by_line(workspace, |line| {
        let path = paths.iter().find(|path| names_path(line, path))?;
        Some(format!("names a path of one machine ({path})"))
    })
}

/// Whether `path` occurs at the beginning of a path, not inside a longer one.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_ascii_alphanumeric() || "._-~}>".contains(before))
    })
}

fn by_line(workspace: &Workspace, rule: impl Fn(&str) -> Option<String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in &workspace.texts {
        for (index, line) in text.lines().enumerate() {
            found.extend(rule(line).map(|what| Violation::new(path, index + 1, what)));
        }
    }
    found
}

/// Every Rust file that no root of a crate leads to.
pub fn dead_files(workspace: &Workspace) -> Vec<Violation> {
    let dead = workspace.sources.keys().filter(|path| !workspace.modules.iter().any(|module| module.file == **path));
    dead.map(|path| Violation::new(path, 1, "no `mod` leads to this file")).collect()
}
