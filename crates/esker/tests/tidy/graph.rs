//! The rules about imports: the engine's layers hold, and no crate has a cycle of modules.

use crate::imports::{Edge, edges};
use crate::report::Violation;
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// The engine's modules. A file imports only from a smaller number, or from its own module.
const MODULES: [(&str, u32); 22] = [
    ("error", 0),
    ("base", 0),
    ("env", 1),
    ("iter", 1),
    ("cache", 1),
    // What the options hold.
    ("merge_operator", 1),
    ("compaction_filter", 1),
    ("event_listener", 1),
    ("filter_policy", 1),
    ("options", 2),
    ("memtable", 3),
    ("wal", 3),
    ("table", 3),
    ("blob", 3),
    ("version", 4),
    ("job", 5),
    ("db", 6),
    ("handle", 7),
    ("typed", 8),
    ("merge", 8),
    // Text alone.
    ("guide", 8),
    // For the microbenchmarks only.
    ("internals", 8),
];

/// The modules within `db`, by the same rule.
const DB_MODULES: [(&str, u32); 10] = [
    ("state", 0),
    ("files", 1),
    ("write_controller", 1),
    ("read", 2),
    ("background", 3),
    ("write", 4),
    ("transaction", 5),
    ("lifecycle", 6),
    ("changes", 7),
    ("maintenance", 7),
];

/// The number of the root module itself, `lib.rs`.
const ROOT_NUMBER: u32 = 8;

/// The root of the engine.
pub const ENGINE: &str = "crates/esker/src/lib.rs";

/// An import that breaks a rule and is to go away: the importing file, and the module it should not
/// need.
pub type Allowed<'a> = (&'a str, &'a str);

/// Whether an import is one of these.
fn is_allowed(workspace: &Workspace, edge: &Edge, allowed: &[Allowed<'_>]) -> bool {
    let (from, to) = (&workspace.modules[edge.from], &workspace.modules[edge.to]);
    allowed.iter().any(|(file, module)| *file == from.file && *module == to.path.join("::"))
}

/// Exceptions without which nothing would be found.
pub fn needless(workspace: &Workspace, allowed: &[Allowed<'_>]) -> Vec<Violation> {
    let count = |allowed: &[Allowed<'_>]| layers(workspace, allowed).len() + cycles(workspace, allowed).len();
    let with_all = count(allowed);
    let is_needless = |index: &usize| {
        let mut others = allowed.to_vec();
        others.remove(*index);
        count(&others) <= with_all
    };
    let needless = (0..allowed.len()).filter(is_needless).map(|index| allowed[index]);
    needless
        .map(|(file, module)| {
            Violation::new(file, 1, format!("the exception for `{module}` is not needed any more; remove it"))
        })
        .collect()
}

/// Every import that goes up, or sideways into another module.
pub fn layers(workspace: &Workspace, allowed: &[Allowed<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for module in workspace.modules.iter().filter(|module| module.root == ENGINE && !module.test) {
        let numbered = match module.path.as_slice() {
            [part] => number(&MODULES, part),
            [parent, part] if parent == "db" => number(&DB_MODULES, part),
            _ => continue,
        };
        if numbered.is_none() {
            let what = format!("module `{}` has no number in tidy's table of modules", module.path.join("::"));
            found.push(Violation::new(&module.file, 1, what));
        }
    }
    for edge in edges(workspace, ENGINE).iter().filter(|edge| !is_allowed(workspace, edge, allowed)) {
        let (from, to) = (&workspace.modules[edge.from], &workspace.modules[edge.to]);
        if let Some(what) = goes_up(&from.path, &to.path) {
            found.push(Violation::new(&from.file, edge.line, what));
        }
    }
    found
}

/// What is wrong with an import from one module of the engine by another, if anything is.
fn goes_up(from: &[String], to: &[String]) -> Option<String> {
    let within_db = |path: &[String]| path.len() > 1 && path[0] == "db";
    let (modules, depth): (&[(&str, u32)], usize) = match within_db(from) && within_db(to) {
        true => (&DB_MODULES, 1),
        false => (&MODULES, 0),
    };
    let (from, to) = (from.get(depth), to.get(depth));
    if from == to {
        return None;
    }
    let number_of = |part: Option<&String>| part.map_or(Some(ROOT_NUMBER), |part| number(modules, part));
    let (above, below) = (number_of(from)?, number_of(to)?);
    // `base` and `error` are one module: an error names positions, and everything fails with an
    // error.
    let is_base = depth == 0 && above == 0;
    if below < above || (below == above && (is_base || above == ROOT_NUMBER)) {
        return None;
    }
    let name = |part: Option<&String>| part.map_or_else(|| "lib.rs".to_owned(), |part| format!("`{part}`"));
    Some(format!("module {} ({above}) imports from {} ({below})", name(from), name(to)))
}

fn number(modules: &[(&str, u32)], part: &str) -> Option<u32> {
    modules.iter().find(|(name, _)| *name == part).map(|(_, number)| *number)
}

/// Every cycle of imports, in every crate. Modules are compared with their siblings and their
/// parent, each together with all below it: so neither two files nor two folders need each other.
pub fn cycles(workspace: &Workspace, allowed: &[Allowed<'_>]) -> Vec<Violation> {
    let roots: BTreeSet<&str> =
        workspace.modules.iter().filter(|module| !module.test).map(|module| module.root.as_str()).collect();
    let mut found = Vec::new();
    for root in roots {
        let mut edges = edges(workspace, root);
        edges.retain(|edge| !is_allowed(workspace, edge, allowed));
        let parents: BTreeSet<&[String]> = workspace
            .modules
            .iter()
            .filter(|module| module.root == root)
            .map(|module| module.path.as_slice())
            .collect();
        for parent in parents {
            found.extend(cycles_below(workspace, parent, &edges));
        }
    }
    found
}

/// Where one group needs another.
type Groups<'a> = BTreeMap<String, BTreeMap<String, (&'a str, usize)>>;

fn cycles_below(workspace: &Workspace, parent: &[String], edges: &[Edge]) -> Vec<Violation> {
    // The name of the child that a module belongs to; empty for the parent's own file.
    let group = |module: usize| {
        let path = &workspace.modules[module].path;
        path.starts_with(parent).then(|| path.get(parent.len()).cloned().unwrap_or_default())
    };
    let mut groups: Groups<'_> = BTreeMap::new();
    for Edge { from, to, line } in edges {
        let (Some(needing), Some(needed)) = (group(*from), group(*to)) else { continue };
        if needing != needed {
            let place = (workspace.modules[*from].file.as_str(), *line);
            groups.entry(needing).or_default().entry(needed).or_insert(place);
        }
    }
    let mut found = Vec::new();
    let mut finished = BTreeSet::new();
    for start in groups.keys() {
        walk(&groups, start, &mut Vec::new(), &mut finished, parent, &mut found);
    }
    found
}

/// Depth first: meeting a group that is still on the way here is a cycle.
fn walk<'a>(
    groups: &'a Groups<'a>,
    group: &'a str,
    way: &mut Vec<&'a str>,
    finished: &mut BTreeSet<&'a str>,
    parent: &[String],
    found: &mut Vec<Violation>,
) {
    if finished.contains(group) {
        return;
    }
    way.push(group);
    for (needed, (file, line)) in groups.get(group).into_iter().flatten() {
        if let Some(start) = way.iter().position(|earlier| earlier == needed) {
            let shown = |name: &str| if name.is_empty() { "(the parent itself)".to_owned() } else { name.to_owned() };
            // Each step with the first import that needs it.
            let mut names = vec![shown(way[start])];
            for (index, step) in way.iter().enumerate().skip(start) {
                let next = way.get(index + 1).copied().unwrap_or(needed);
                let place = groups.get(*step).and_then(|needs| needs.get(next));
                let (file, line) = place.copied().unwrap_or((file, *line));
                names.push(format!("{} ({file}:{line})", shown(next)));
            }
            let parent = if parent.is_empty() { "the crate".to_owned() } else { format!("`{}`", parent.join("::")) };
            let what = format!("cycle of modules in {parent}: {}", names.join(" -> "));
            found.push(Violation::new(file, *line, what));
        } else {
            walk(groups, needed, way, finished, parent, found);
        }
    }
    way.pop();
    finished.insert(group);
}
