//! The workspace as the compiler sees it: files, and the modules that are reached from the roots of
//! the crates.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// A module: a file, or an inline `mod` inside one.
pub struct Module {
    /// The path of the root file of its crate.
    pub root: String,
    /// The names from the root of the crate to here.
    pub path: Vec<String>,
    /// The path of the file that holds it.
    pub file: String,
    /// Whether it is written inside the file of its parent.
    pub inline: bool,
    /// Whether it is compiled for tests only.
    pub test: bool,
}

/// All text files of a workspace and the modules among them.
#[derive(Default)]
pub struct Workspace {
    /// Every text file by path.
    pub texts: BTreeMap<String, String>,
    /// The paths of all files and directories, those that are no text included.
    pub files: BTreeSet<String>,
    /// The Rust files among them by path.
    pub sources: BTreeMap<String, Source>,
    /// The modules, parents before children.
    pub modules: Vec<Module>,
}

impl Workspace {
    /// Reads the workspace in `directory`.
    pub fn read(directory: &Path) -> io::Result<Workspace> {
        let mut texts = BTreeMap::new();
        let mut files = BTreeSet::new();
        collect(directory, "", &mut texts, &mut files)?;
        let mut workspace = Workspace::new(texts);
        workspace.files = files;
        Ok(workspace)
    }

    /// A workspace of these files, paths and texts.
    pub fn new(texts: BTreeMap<String, String>) -> Workspace {
        let rust = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
        let sources = rust.map(|(path, text)| (path.clone(), Source::new(path, text))).collect();
        let files = texts.keys().cloned().collect();
        let mut workspace = Workspace { texts, files, sources, modules: Vec::new() };
        let roots: Vec<String> = workspace.sources.keys().filter(|path| workspace.is_root(path)).cloned().collect();
        for root in roots {
            let test = ["/tests/", "/benches/", "/examples/"].iter().any(|part| root.contains(part));
            let module = Module { root: root.clone(), path: Vec::new(), file: root, inline: false, test };
            workspace.add(module);
        }
        workspace
    }

    /// Whether all code of a file is for tests: it is reached as a test module only, or not at all.
    pub fn is_test_file(&self, path: &str) -> bool {
        self.modules.iter().filter(|module| module.file == path).all(|module| module.test)
    }

    /// Whether Cargo compiles this file as the root of a crate.
    fn is_root(&self, path: &str) -> bool {
        let Some((package, inside)) = self.package_of(path) else { return false };
        let parts: Vec<&str> = inside.split('/').collect();
        let by_convention = matches!(
            parts.as_slice(),
            ["build.rs"]
                | ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"]
                | ["tests" | "benches" | "examples", _]
                | ["tests" | "benches" | "examples", _, "main.rs"]
        );
        let manifest = self.texts.get(&join(&package, "Cargo.toml")).map_or("", String::as_str);
        by_convention || manifest.contains(&format!("path = \"{inside}\""))
    }

    /// The directory of the nearest manifest above a file, and the path of the file from there.
    fn package_of(&self, path: &str) -> Option<(String, String)> {
        let mut directory = path;
        while let Some((parent, _)) = directory.rsplit_once('/') {
            if self.texts.contains_key(&join(parent, "Cargo.toml")) {
                return Some((parent.to_owned(), path[parent.len() + 1..].to_owned()));
            }
            directory = parent;
        }
        None
    }

    /// Adds a module that is a file, then all below it.
    fn add(&mut self, module: Module) {
        let Some(source) = self.sources.get(&module.file) else { return };
        let declared = declarations(source);
        let is_root = module.path.is_empty();
        let (file, root, path, test) = (module.file.clone(), module.root.clone(), module.path.clone(), module.test);
        self.modules.push(module);
        for declaration in declared {
            let mut path = path.clone();
            path.extend(declaration.path.iter().cloned());
            let test = test || declaration.test;
            let (target, inline) = match declaration.inline {
                true => (Some(file.clone()), true),
                false => (self.file_of(&file, is_root, &declaration), false),
            };
            let Some(target) = target else { continue };
            let module = Module { root: root.clone(), path, file: target, inline, test };
            if inline {
                self.modules.push(module);
            } else {
                self.add(module);
            }
        }
    }

    /// The file that `mod name;` in `file` stands for.
    fn file_of(&self, file: &str, is_root: bool, declaration: &Declaration) -> Option<String> {
        let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
        if let Some(given) = &declaration.given {
            return Some(join(directory, given)).filter(|path| self.sources.contains_key(path));
        }
        let mut base = directory.to_owned();
        if !is_root && name != "mod.rs" {
            base = join(&base, name.trim_end_matches(".rs"));
        }
        let inside = declaration.path.join("/");
        let candidates = [join(&base, &format!("{inside}.rs")), join(&base, &format!("{inside}/mod.rs"))];
        candidates.into_iter().find(|path| self.sources.contains_key(path))
    }
}

/// A `mod` in a file.
struct Declaration {
    path: Vec<String>,
    inline: bool,
    test: bool,
    /// The value of a `path` attribute.
    given: Option<String>,
}

fn declarations(source: &Source) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut around: Vec<(String, usize)> = Vec::new();
    for index in 0..source.tokens.len() {
        around.retain(|(_, end)| index <= *end);
        let is_declaration = source.word(index) == "mod" && matches!(source.word(index + 2), ";" | "{");
        if !is_declaration {
            continue;
        }
        let name = source.word(index + 1).to_owned();
        let inline = source.word(index + 2) == "{";
        let mut path: Vec<String> = around.iter().map(|(name, _)| name.clone()).collect();
        path.push(name.clone());
        found.push(Declaration { path, inline, test: source.tokens[index].test, given: path_attribute(source, index) });
        if inline {
            around.push((name, source.closing(index + 2)));
        }
    }
    found
}

/// The value of `#[path = "..."]` directly above the token at `index`, which literals being masked
/// must be read from the text.
fn path_attribute(source: &Source, index: usize) -> Option<String> {
    // # [ path = " " ] mod, perhaps with `pub` or other attributes between.
    let from = index.saturating_sub(24);
    let start = (from..index).rev().find(|start| source.reads(*start, &["#", "[", "path", "=", "\"", "\"", "]"]))?;
    if (start + 7..index).any(|between| matches!(source.word(between), ";" | "{" | "}")) {
        return None;
    }
    let (open, close) = (source.tokens[start + 4].offset, source.tokens[start + 5].offset);
    source.text.get(open + 1..close).map(str::to_owned)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Reads every text file below `directory` that people write, and the names of all files; generated
/// and foreign directories are left out.
fn collect(
    directory: &Path,
    prefix: &str,
    texts: &mut BTreeMap<String, String>,
    files: &mut BTreeSet<String>,
) -> io::Result<()> {
    const LEFT_OUT: [&str; 6] = ["target", ".git", "bench-out", "corpus", "artifacts", "node_modules"];
    /// Directories whose files are only named.
    const NAMED: [&str; 1] = ["results"];
    const ENDINGS: [&str; 12] =
        [".rs", ".toml", ".lock", ".md", ".css", ".js", ".mjs", ".ts", ".sh", ".py", ".yml", ".svg"];
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = join(prefix, &name);
        if entry.file_type()?.is_dir() {
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let mut no_texts = BTreeMap::new();
            let texts = if NAMED.contains(&name.as_str()) { &mut no_texts } else { &mut *texts };
            collect(&entry.path(), &path, texts, files)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) || !name.contains('.') {
            // What is not UTF-8 is not ASCII either, and is found by that rule.
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            texts.insert(path.clone(), text);
        }
        files.insert(path);
    }
    Ok(())
}
