//! Which module needs which: every `use` and every path in code, followed through re-exports to the
//! module that defines the item.
//!
//! A re-export of a module's own descendant (`pub use child::Item`) is a facade: it makes no edge,
//! and who imports the item from the facade depends on the child. Every other re-export counts as
//! an import of its own, and who imports through it depends on both. Code that is compiled only for
//! tests is left out.

use crate::source::Source;
use crate::workspace::{Module, Workspace};
use std::collections::{BTreeMap, BTreeSet};

/// One module needs another.
pub struct Edge {
    /// The index of the module that imports.
    pub from: usize,
    /// The index of the module that defines.
    pub to: usize,
    /// The line of the import in the file of `from`.
    pub line: usize,
}

/// An item that a `use` brings into a module.
struct Import {
    module: usize,
    segments: Vec<String>,
    /// The name it has here; `*` for all.
    name: String,
    line: usize,
    /// Whether it is made visible to others.
    public: bool,
}

/// What names mean in each module of one crate.
struct Names<'a> {
    modules: &'a [Module],
    children: BTreeMap<(usize, String), usize>,
    parents: BTreeMap<usize, usize>,
    aliases: BTreeMap<(usize, String), Vec<String>>,
    globs: BTreeMap<usize, Vec<Vec<String>>>,
    defined: BTreeMap<usize, BTreeSet<String>>,
}

/// All edges between the modules of the crate with this root file.
pub fn edges(workspace: &Workspace, root: &str) -> Vec<Edge> {
    let modules = &workspace.modules;
    let mut names = Names::new(modules, root);
    let (mut imports, mut paths) = (Vec::new(), Vec::new());
    for (index, module) in modules.iter().enumerate() {
        let is_compiled = module.root == root && !module.inline && !module.test;
        if let Some(source) = workspace.sources.get(&module.file).filter(|_| is_compiled) {
            names.scan(index, source, &mut imports, &mut paths);
        }
    }
    let mut edges = Vec::new();
    for (module, segments, line) in &paths {
        names.connect(*module, segments, *line, &mut edges);
    }
    for import in &imports {
        if import.public && names.is_facade(import.module, &import.segments) {
            // The facade's own code may use the name as well: then it does depend on the child.
            let source = workspace.sources.get(&modules[import.module].file);
            if import.name == "*" || !source.is_some_and(|source| uses_name(source, &import.name)) {
                continue;
            }
        }
        names.connect(import.module, &import.segments, import.line, &mut edges);
    }
    edges
}

/// Whether a name occurs in code outside `use` and `mod`.
fn uses_name(source: &Source, name: &str) -> bool {
    let mut in_declaration = false;
    source.tokens.iter().any(|token| {
        match token.text.as_str() {
            "use" | "mod" => in_declaration = true,
            ";" => in_declaration = false,
            _ => {}
        }
        !in_declaration && !token.test && token.text == name
    })
}

impl<'a> Names<'a> {
    fn new(modules: &'a [Module], root: &str) -> Names<'a> {
        let mut names = Names {
            modules,
            children: BTreeMap::new(),
            parents: BTreeMap::new(),
            aliases: BTreeMap::new(),
            globs: BTreeMap::new(),
            defined: BTreeMap::new(),
        };
        let of_crate = |index: &usize| modules[*index].root == root;
        let by_path: BTreeMap<&[String], usize> =
            (0..modules.len()).filter(of_crate).map(|index| (modules[index].path.as_slice(), index)).collect();
        for (path, index) in &by_path {
            let Some((name, parent)) = path.split_last() else { continue };
            if let Some(parent) = by_path.get(parent) {
                names.children.insert((*parent, name.clone()), *index);
                names.parents.insert(*index, *parent);
            }
        }
        names
    }

    /// Collects imports, paths in code and definitions of one file, and of the inline modules
    /// inside it.
    fn scan(
        &mut self,
        file: usize,
        source: &Source,
        imports: &mut Vec<Import>,
        paths: &mut Vec<(usize, Vec<String>, usize)>,
    ) {
        let mut around: Vec<(usize, usize)> = vec![(file, usize::MAX)];
        let mut index = 0;
        while index < source.tokens.len() {
            while around.len() > 1 && around.last().is_some_and(|(_, end)| index > *end) {
                around.pop();
            }
            let module = around.last().map_or(file, |(module, _)| *module);
            let token = &source.tokens[index];
            if token.test {
                index += 1;
                continue;
            }
            match token.text.as_str() {
                "mod" if source.word(index + 2) == "{" => {
                    if let Some(child) = self.children.get(&(module, source.word(index + 1).to_owned())) {
                        around.push((*child, source.closing(index + 2)));
                    }
                }
                "use" if source.word(index + 1) != "<" => {
                    let start = imports.len();
                    let end = use_tree(source, index + 1, &[], &mut |segments, name, line| {
                        let public = matches!(source.word(index.wrapping_sub(1)), "pub" | ")");
                        imports.push(Import { module, segments, name, line, public });
                    });
                    for import in &imports[start..] {
                        self.remember(import);
                    }
                    index = end;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "macro_rules" => {
                    let skip = usize::from(matches!(source.word(index + 1), "!" | "mut"));
                    self.defined.entry(module).or_default().insert(source.word(index + 1 + skip).to_owned());
                }
                word if source.word(index + 1) == "::" && source.word(index.wrapping_sub(1)) != "::" => {
                    let relative = matches!(word, "crate" | "self" | "super");
                    if relative && source.reads(index.wrapping_sub(3), &["pub", "(", "in"]) {
                        // A visibility, not an import.
                    } else if relative || self.children.contains_key(&(module, word.to_owned())) {
                        paths.push((module, path_at(source, index), token.line));
                    }
                }
                _ => {}
            }
            index += 1;
        }
    }

    fn remember(&mut self, import: &Import) {
        if import.name == "*" {
            let mut target = import.segments.clone();
            target.pop();
            self.globs.entry(import.module).or_default().push(target);
        } else {
            self.aliases.insert((import.module, import.name.clone()), import.segments.clone());
        }
    }

    fn connect(&self, from: usize, segments: &[String], line: usize, edges: &mut Vec<Edge>) {
        for to in self.resolve(from, segments, 0) {
            if to != from && self.file_module(to) != self.file_module(from) {
                edges.push(Edge { from: self.file_module(from), to: self.file_module(to), line });
            }
        }
    }

    /// The module of the file that an inline module is written in.
    fn file_module(&self, mut module: usize) -> usize {
        while self.modules[module].inline {
            match self.parents.get(&module) {
                Some(parent) => module = *parent,
                None => break,
            }
        }
        module
    }

    /// Whether an import names something inside the importing module's own descendants.
    fn is_facade(&self, module: usize, segments: &[String]) -> bool {
        let reached = self.resolve(module, segments, 0);
        let path = &self.modules[module].path;
        !reached.is_empty() && reached.iter().all(|to| self.modules[*to].path.starts_with(path))
    }

    /// The modules that `segments`, written in `from`, lead to: the definition, and re-exports
    /// elsewhere on the way.
    fn resolve(&self, from: usize, segments: &[String], depth: usize) -> Vec<usize> {
        // Imports may be circular, as two globs of each other are.
        if depth > 12 {
            return Vec::new();
        }
        let mut current = from;
        let mut at = 0;
        match segments.first().map(String::as_str) {
            Some("crate") => {
                while let Some(parent) = self.parents.get(&current) {
                    current = *parent;
                }
                at = 1;
            }
            Some("self") => at = 1,
            Some("super") => {}
            Some(first) if self.children.contains_key(&(from, first.to_owned())) => {}
            Some(first) if depth > 0 || segments.len() > 1 => {
                // Something imported into this module under another name, or another crate.
                let alias = self.aliases.get(&(from, first.to_owned())).filter(|target| target.as_slice() != segments);
                let Some(target) = alias else { return Vec::new() };
                let target: Vec<String> = target.iter().chain(&segments[1..]).cloned().collect();
                return self.resolve(from, &target, depth + 1);
            }
            _ => return Vec::new(),
        }
        while let Some(name) = segments.get(at) {
            if name == "super" {
                let Some(parent) = self.parents.get(&current) else { return Vec::new() };
                current = *parent;
            } else if let Some(child) = self.children.get(&(current, name.clone())) {
                current = *child;
            } else {
                return self.resolve_item(current, &segments[at..], depth);
            }
            at += 1;
        }
        vec![current]
    }

    /// As `resolve`, for names in `module` of which the first is not a module of its own.
    fn resolve_item(&self, module: usize, segments: &[String], depth: usize) -> Vec<usize> {
        let follow = |target: &[String], rest: &[String]| {
            let target: Vec<String> = target.iter().chain(rest).cloned().collect();
            let mut reached = self.resolve(module, &target, depth + 1);
            let path = &self.modules[module].path;
            if reached.iter().any(|to| !self.modules[*to].path.starts_with(path)) {
                reached.push(module);
            }
            reached
        };
        let name = &segments[0];
        let is_defined = |module: &usize| self.defined.get(module).is_some_and(|names| names.contains(name));
        if is_defined(&module) || name == "*" {
            return vec![module];
        }
        if let Some(target) = self.aliases.get(&(module, name.clone())) {
            let reached = follow(target, &segments[1..]);
            return if reached.is_empty() { vec![module] } else { reached };
        }
        for glob in self.globs.get(&module).into_iter().flatten() {
            let reached = follow(glob, segments);
            if reached.iter().any(is_defined) {
                return reached;
            }
        }
        vec![module]
    }
}

/// The words of a path in code from the token at `index` on.
fn path_at(source: &Source, index: usize) -> Vec<String> {
    let mut segments = vec![source.word(index).to_owned()];
    let mut at = index + 1;
    while source.word(at) == "::"
        && source.word(at + 1).starts_with(|first: char| first == '_' || first.is_alphabetic())
    {
        segments.push(source.word(at + 1).to_owned());
        at += 2;
    }
    segments
}

/// Reads a tree of imports at `index`, reports each leaf with its name and line, and returns the
/// index behind it.
fn use_tree(
    source: &Source,
    index: usize,
    prefix: &[String],
    report: &mut dyn FnMut(Vec<String>, String, usize),
) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = index;
    let line = source.tokens.get(index).map_or(0, |token| token.line);
    while at < source.tokens.len() {
        match source.word(at) {
            "::" => at += 1,
            "{" => {
                let end = source.closing(at);
                at += 1;
                while at < end {
                    at = use_tree(source, at, &segments, report);
                    at += usize::from(source.word(at) == ",");
                }
                return end + 1;
            }
            "as" => {
                let name = source.word(at + 1).to_owned();
                report(segments, name, line);
                return at + 2;
            }
            "," | ";" | "}" => break,
            word => {
                segments.push(word.to_owned());
                at += 1;
            }
        }
    }
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    if let Some(name) = segments.last().cloned() {
        report(segments, name, line);
    }
    at
}
