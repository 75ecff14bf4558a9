//! The rules about links: each leads to a file and to a heading that are there, and the book has
//! every page below `doc`.

use crate::report::Violation;
use crate::workspace::Workspace;
use std::collections::BTreeMap;

/// The table of contents of the book, `doc/book/book.toml`.
const SUMMARY: &str = "doc/SUMMARY.md";

/// Every link of a document to a file that is not there, or to a heading that its page has not.
pub fn broken(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in documents(workspace) {
        for (line, target) in links(text) {
            found.extend(problem(workspace, path, &target).map(|what| Violation::new(path, line, what)));
        }
    }
    found
}

/// Every page below `doc` that the book has not.
pub fn missing_in_book(workspace: &Workspace) -> Vec<Violation> {
    let Some(summary) = workspace.texts.get(SUMMARY) else {
        return vec![Violation::new(SUMMARY, 1, "the book has no table of contents")];
    };
    let linked: Vec<String> = links(summary).into_iter().filter_map(|(_, target)| resolve(SUMMARY, &target)).collect();
    let pages = workspace.files.iter().filter(|path| path.starts_with("doc/") && path.ends_with(".md"));
    let missing = pages.filter(|path| *path != SUMMARY && !linked.contains(path));
    missing.map(|path| Violation::new(path, 1, format!("the page is not in {SUMMARY}"))).collect()
}

/// How many links there are between files.
pub fn count(workspace: &Workspace) -> usize {
    documents(workspace).map(|(_, text)| links(text).len()).sum()
}

fn documents(workspace: &Workspace) -> impl Iterator<Item = (&String, &String)> {
    workspace.texts.iter().filter(|(path, _)| path.ends_with(".md") && !path.contains("/third_party/"))
}

fn problem(workspace: &Workspace, from: &str, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = match file {
        "" => from.to_owned(),
        _ => match resolve(from, file) {
            Some(path) => path,
            None => return Some(format!("the link {target:?} leaves the repository")),
        },
    };
    if !path.is_empty() && !workspace.files.contains(&path) {
        return Some(format!("the link {target:?} leads to {path}, which is not there"));
    }
    let anchor = anchor?;
    let headings = anchors(workspace.texts.get(&path)?);
    let is_there = headings.iter().any(|heading| heading == anchor);
    (!is_there).then(|| format!("the link {target:?} leads to a heading that {path} has not"))
}

/// The path from the root of the workspace that a relative link in a file leads to.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    let file = target.split('#').next().unwrap_or(target);
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The targets of the links in a text that are no addresses of the web, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let prose = without_code(text);
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let target = prose[at + 2..].split([')', ' ', '\n']).next().unwrap_or("");
        let is_address = target.contains("://") || target.starts_with("mailto:");
        if !target.is_empty() && !is_address {
            found.push((prose[..at].matches('\n').count() + 1, target.to_owned()));
        }
    }
    found
}

/// The anchors of the headings of a text, as forges and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title.trim());
        let count = seen.entry(anchor.clone()).or_default();
        found.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|character| character.is_alphanumeric() || "-_ ".contains(*character));
    kept.map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() }).collect()
}

/// The text with spaces in the place of blocks of code and of what stands between backticks.
fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let (mut in_block, mut in_span) = (false, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        // A span goes on in the next line, but not beyond its paragraph.
        in_span &= !line.trim().is_empty();
        for character in line.chars() {
            let is_code = in_block || is_fence || in_span || character == '`';
            in_span ^= character == '`' && !in_block && !is_fence;
            prose.push(if is_code && character != '\n' { ' ' } else { character });
        }
    }
    prose
}
