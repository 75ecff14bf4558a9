//! The rule about documentation: every public item has an example that compiles, and says how it
//! fails.
//!
//! Public is what `lib.rs` re-exports or holds in a `pub mod`: types, traits and functions, their
//! `pub` methods and constants, and the methods of traits. Fields and variants are explained by the
//! example of their type. That there is a comment at all is for the compiler to say.

use crate::report::Violation;
use crate::source::Source;
use crate::workspace::Workspace;

/// The crates whose whole interface is explained by examples.
const ROOTS: [&str; 4] =
    ["crates/esker/src/", "crates/esker-backup/src/", "crates/esker-metrics/src/", "crates/esker-opentelemetry/src/"];

/// A name that users of a crate can write, and the path from the root of the crate below which
/// it is declared.
type Export = (String, String);

/// Every public item without an example, and every one that can fail and does not say how.
pub fn undocumented(workspace: &Workspace) -> Vec<Violation> {
    ROOTS.iter().flat_map(|root| undocumented_in(workspace, root)).collect()
}

fn undocumented_in(workspace: &Workspace, root: &str) -> Vec<Violation> {
    let exports = exports(workspace, root);
    let mut found = Vec::new();
    for source in workspace.sources.values().filter(|source| !workspace.is_test_file(&source.path)) {
        let Some(inside) = source.path.strip_prefix(root) else { continue };
        for index in 0..source.tokens.len() {
            for item in items(source, index, &|name, is_declaration| {
                exports.iter().any(|(export, below)| {
                    // Methods may be in another file of the module.
                    let below = if is_declaration { below } else { below.split('/').next().unwrap_or(below) };
                    export == name && inside.starts_with(below)
                })
            }) {
                check(source, item, &mut found);
            }
        }
    }
    found
}

/// How many public items there are.
pub fn count(workspace: &Workspace) -> usize {
    ROOTS.iter().map(|root| exports(workspace, root).len()).sum()
}

fn check(source: &Source, item: usize, found: &mut Vec<Violation>) {
    let line = source.tokens[item].line;
    let text = comment_above(source, line);
    let mut words = (item..).take_while(|at| matches!(source.word(*at), "pub" | "const" | "async" | "unsafe" | "fn"));
    let is_function = words.find(|at| source.word(*at) == "fn");
    let name = is_function.map_or_else(|| source.word(item + 2), |at| source.word(at + 1));
    if !text.contains("```") {
        found.push(Violation::new(&source.path, line, format!("`{name}` is public and has no example")));
    }
    if is_function.is_some_and(|at| returns_result(source, at)) && !text.contains("# Errors") {
        found.push(Violation::new(&source.path, line, format!("`{name}` can fail and does not say how (`# Errors`)")));
    }
}

/// The documentation above a line, attributes left out.
fn comment_above(source: &Source, line: usize) -> String {
    let lines: Vec<&str> = source.text.lines().collect();
    let above = lines[..line - 1].iter().rev().map(|line| line.trim_start());
    above.take_while(|line| line.starts_with("///") || line.starts_with("#[")).collect::<Vec<_>>().join("\n")
}

/// Whether the function declared at `index` returns a `Result`.
fn returns_result(source: &Source, index: usize) -> bool {
    let mut at = index;
    while !matches!(source.word(at), "{" | ";" | "") {
        if source.word(at) == "(" {
            at = source.closing(at);
        } else if source.reads(at, &["-", ">"]) {
            // Up to the last name of the path.
            at += 2;
            while source.word(at + 1) == "::" {
                at += 2;
            }
            return source.word(at) == "Result";
        }
        at += 1;
    }
    false
}

/// The public items that begin at token `index`: a declaration, or all that is public in an `impl`
/// or a `trait`.
fn items(source: &Source, index: usize, is_public: &dyn Fn(&str, bool) -> bool) -> Vec<usize> {
    if source.tokens[index].test {
        return Vec::new();
    }
    match source.word(index) {
        "pub" if matches!(source.word(index + 1), "struct" | "enum" | "trait" | "type" | "fn") => {
            let (what, name) = (source.word(index + 1), source.word(index + 2));
            let at_top = source.text[..source.tokens[index].offset].ends_with('\n');
            if !at_top || !is_public(name, true) {
                return Vec::new();
            }
            let methods = if what == "trait" { members(source, index, &["fn"]) } else { Vec::new() };
            [index].into_iter().chain(methods).collect()
        }
        "impl" => {
            let name = if source.word(index + 1) == "<" { index + 4 } else { index + 1 };
            let is_inherent = !(index..body(source, index)).any(|at| source.word(at) == "for");
            if !is_inherent || !is_public(source.word(name), false) {
                return Vec::new();
            }
            members(source, index, &["pub"])
        }
        _ => Vec::new(),
    }
}

/// The opening brace of what begins at `index`.
fn body(source: &Source, index: usize) -> usize {
    (index..source.tokens.len()).find(|at| source.word(*at) == "{").unwrap_or(index)
}

/// The functions and constants directly inside what begins at `index`, from the token that makes
/// them public.
fn members(source: &Source, index: usize, begins: &[&str]) -> Vec<usize> {
    let open = body(source, index);
    let end = source.closing(open);
    let mut found = Vec::new();
    let mut at = open + 1;
    while at < end {
        match source.word(at) {
            "(" | "[" | "{" => at = source.closing(at),
            word if begins.contains(&word) && source.word(at + 1) != "(" => found.push(at),
            _ => {}
        }
        at += 1;
    }
    found
}

/// What `lib.rs` exports, by name or as a whole module.
fn exports(workspace: &Workspace, root: &str) -> Vec<Export> {
    let mut found = Vec::new();
    let mut modules = vec![(format!("{root}lib.rs"), String::new())];
    while let Some((file, path)) = modules.pop() {
        let Some(source) = workspace.sources.get(&file) else { continue };
        for index in 0..source.tokens.len() {
            if source.tokens[index].test || source.word(index) != "pub" {
                continue;
            }
            match source.word(index + 1) {
                // What the documentation hides is not meant for users.
                "mod" if index >= 3 && source.word(index - 3) == "hidden" => {}
                "mod" if source.word(index + 3) == ";" => {
                    let below = join(&path, source.word(index + 2));
                    modules.push((format!("{root}{below}.rs"), below.clone()));
                    modules.push((format!("{root}{below}/mod.rs"), below));
                }
                "use" => found.extend(used(source, index + 2, &path)),
                "struct" | "enum" | "trait" | "type" | "fn" => {
                    found.push((source.word(index + 2).to_owned(), path.clone()));
                }
                _ => {}
            }
        }
    }
    found
}

/// The names of the `use` whose path begins at `index`.
fn used(source: &Source, index: usize, module: &str) -> Vec<Export> {
    // The path of the brackets around, innermost last, and that of the name at hand.
    let mut around = vec![module.to_owned()];
    let mut below = module.to_owned();
    let mut names = Vec::new();
    let mut at = index;
    while !matches!(source.word(at), ";" | "") {
        match source.word(at) {
            "crate" => below.clear(),
            "::" => {}
            "{" => around.push(below.clone()),
            "}" => drop(around.pop()),
            "," => below = around.last().cloned().unwrap_or_default(),
            word if source.word(at + 1) == "::" => below = join(&below, word),
            word => names.push((word.to_owned(), below.clone())),
        }
        at += 1;
    }
    names
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
