//! The rules about documents that repeat what the code says: they must go on saying the same.

use crate::report::Violation;
use crate::workspace::Workspace;

const README: &str = "README.md";
const MANIFEST: &str = "Cargo.toml";
const CONTRIBUTING: &str = "CONTRIBUTING.md";
const LIBRARY: &str = "crates/esker/src/lib.rs";

/// Where the example in the README differs from the one that is compiled and run with the
/// documentation of the engine.
pub fn example(workspace: &Workspace) -> Vec<Violation> {
    let text = |path: &str| workspace.texts.get(path).map_or("", String::as_str);
    let documentation: String = text(LIBRARY)
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect();
    let tested = block(&documentation, "```").1;
    let (start, shown) = block(text(README), "```rust");
    let tested: Vec<&str> = tested.lines().filter(|line| *line != "#" && !line.starts_with("# ")).collect();
    let shown: Vec<&str> = shown.lines().collect();
    if tested.is_empty() || shown.is_empty() {
        return vec![Violation::new(README, 1, format!("no example here, or none at the head of {LIBRARY}"))];
    }
    let length = tested.len().max(shown.len());
    let different = (0..length).find(|index| tested.get(*index) != shown.get(*index));
    let what = format!("the example is not the one at the head of {LIBRARY}");
    different.map(|index| Violation::new(README, start + index, what)).into_iter().collect()
}

/// Where the badges at the head of the README, or their pictures, say another licence or another
/// oldest Rust than the manifest.
pub fn badges(workspace: &Workspace) -> Vec<Violation> {
    let text = |path: &str| workspace.texts.get(path).map_or("", String::as_str);
    let value = |key: &str| {
        let value = text(MANIFEST).lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        value.and_then(|value| value.split('"').next()).unwrap_or("?")
    };
    let (licence, rust) = (value("license"), value("rust-version"));
    let expected = format!(
        "[![Licence: {licence}](doc/badges/licence.svg)](LICENSE) ![Oldest Rust: {rust}](doc/badges/oldest-rust.svg)"
    );
    let mut found = Vec::new();
    if text(README).lines().nth(2) != Some(&*expected) {
        found.push(Violation::new(README, 3, format!("the line by {MANIFEST} is {expected:?}")));
    }
    for (path, value) in [("doc/badges/licence.svg", licence), ("doc/badges/oldest-rust.svg", rust)] {
        if !text(path).contains(&format!(">{value}</text>")) {
            found.push(Violation::new(path, 1, format!("by {MANIFEST} the picture says {value:?}")));
        }
    }
    found
}

/// The first block of code that begins with the line `fence`: the number of its first line, and its
/// text.
fn block<'a>(text: &'a str, fence: &str) -> (usize, &'a str) {
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        offset += line.len();
        if line.trim_end() == fence {
            let rest = &text[offset..];
            return (index + 2, rest.split("```").next().unwrap_or(rest));
        }
    }
    (1, "")
}

/// Every dependency on a foreign crate whose reason is not in CONTRIBUTING.
pub fn dependencies(workspace: &Workspace) -> Vec<Violation> {
    let reasons = workspace.texts.get(CONTRIBUTING).map_or("", String::as_str);
    let mut found = Vec::new();
    for (path, text) in workspace.texts.iter().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
        let mut in_dependencies = false;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('[') {
                in_dependencies = line.trim_end().ends_with("dependencies]");
            }
            let name = line.split(['=', '.']).next().unwrap_or("").trim();
            let is_foreign = !name.is_empty() && !name.starts_with(['#', '[', ' ']) && !name.starts_with("esker");
            let is_dependency = in_dependencies && is_foreign && line.starts_with(name) && line.contains('=');
            if is_dependency && !reasons.contains(&format!("`{name}`")) {
                let what = format!("the dependency `{name}` has no reason in {CONTRIBUTING}");
                found.push(Violation::new(path, index + 1, what));
            }
        }
    }
    found
}

/// Records of decisions that do not begin with their status, or name a file of code that is gone.
/// Files are named from the repository, or from the engine's sources.
pub fn decisions(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in workspace.texts.iter().filter(|(path, _)| path.starts_with("doc/decisions/")) {
        let start = text.lines().position(|line| line.starts_with("Status: "));
        let Some(start) = start.filter(|start| *start <= 4) else {
            found.push(Violation::new(path, 1, "the record does not begin with its status".to_owned()));
            continue;
        };
        let status = text.lines().enumerate().skip(start).take_while(|(_, line)| !line.is_empty());
        for (index, line) in status {
            let named = line.split('`').skip(1).step_by(2).filter(|name| name.contains('/') && name.ends_with(".rs"));
            let is_gone = |name: &&str| {
                [(*name).to_owned(), format!("crates/esker/src/{name}")]
                    .iter()
                    .all(|path| !workspace.files.contains(path))
            };
            let gone = named.filter(is_gone);
            found.extend(gone.map(|name| Violation::new(path, index + 1, format!("there is no file {name}"))));
        }
    }
    found
}
