//! Proves the house rules (CONTRIBUTING.md) over the whole workspace. `planted.rs` proves that each
//! rule finds what it is for.

mod code;
mod documents;
mod exceptions;
mod filters;
mod graph;
mod imports;
mod lexer;
mod links;
mod pitfalls;
mod planted;
mod prose;
mod public;
mod report;
mod size;
mod source;
mod text;
mod versions;
mod workspace;

use report::Violation;
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;
use workspace::Workspace;

/// The workspace that this crate belongs to, read once.
fn workspace() -> &'static Workspace {
    static WORKSPACE: OnceLock<Workspace> = OnceLock::new();
    WORKSPACE.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Workspace::read(&root).expect("the sources of the workspace can be read")
    })
}

/// Fails with one line per violation.
fn none(mut violations: Vec<Violation>) {
    violations.sort();
    let mut list = String::new();
    for violation in &violations {
        let _ = writeln!(list, "{violation}");
    }
    assert!(violations.is_empty(), "{} violations\n{list}", violations.len());
}

#[test]
fn the_workspace_is_seen() {
    // A rule over no files holds trivially.
    let workspace = workspace();
    assert!(workspace.sources.len() > 100, "only {} Rust files found", workspace.sources.len());
    let edges = imports::edges(workspace, graph::ENGINE).len();
    assert!(edges > 200, "only {edges} imports found in the engine");
}

#[test]
fn modules_import_only_from_below() {
    none(graph::layers(workspace(), &exceptions::IMPORTS));
}

#[test]
fn modules_have_no_cycle() {
    none(graph::cycles(workspace(), &exceptions::IMPORTS));
}

#[test]
fn exceptions_for_imports_are_needed() {
    none(graph::needless(workspace(), &exceptions::IMPORTS));
}

#[test]
fn files_and_functions_are_short() {
    none(size::lengths(workspace(), &exceptions::LONG));
}

#[test]
fn directories_are_short() {
    none(size::directories(workspace(), &size::DIRECTORY_LINES));
}

#[test]
fn unsafe_code_is_declared_and_argued() {
    none(code::unsafe_code(workspace(), &exceptions::UNSAFE));
}

#[test]
fn tests_wait_for_conditions() {
    none(code::sleeping_tests(workspace(), &exceptions::SLEEPING_TESTS));
}

#[test]
fn tests_do_not_depend_on_speed() {
    none(code::timed_tests(workspace(), &exceptions::TIMED_TESTS));
}

#[test]
fn tests_wait_for_as_long_as_it_takes() {
    none(code::impatient_tests(workspace(), &exceptions::IMPATIENT_TESTS));
}

#[test]
fn nothing_gives_up() {
    none(code::giving_up(workspace()));
}

#[test]
fn text_is_ascii() {
    none(text::ascii(workspace()));
}

#[test]
fn text_names_no_machine() {
    none(text::machine_paths(workspace()));
}

#[test]
fn comments_are_wrapped() {
    none(prose::wide_comments(workspace()));
}

#[test]
fn prose_has_the_words_of_the_field() {
    none(prose::dialect(workspace()));
}

#[test]
fn every_file_is_compiled() {
    none(text::dead_files(workspace()));
}

#[test]
fn the_first_example_is_the_tested_one() {
    none(documents::example(workspace()));
}

#[test]
fn the_readme_has_the_licence_and_the_oldest_rust() {
    none(documents::badges(workspace()));
}

#[test]
fn every_public_item_has_an_example_and_says_how_it_fails() {
    let exports = public::count(workspace());
    assert!(exports > 60, "only {exports} names are exported");
    none(public::undocumented(workspace()));
}

#[test]
fn decisions_name_code_that_is_there() {
    none(documents::decisions(workspace()));
}

#[test]
fn every_dependency_has_a_reason() {
    none(documents::dependencies(workspace()));
}

#[test]
fn no_dependency_is_too_old() {
    none(versions::too_old(workspace(), &exceptions::LEAST));
}

#[test]
fn every_pitfall_is_shown_by_a_test() {
    let pitfalls = pitfalls::count(workspace());
    assert!(pitfalls > 100, "only {pitfalls} were found");
    none(pitfalls::unshown(workspace()));
}

#[test]
fn every_hole_that_was_found_is_shown_by_a_test() {
    let holes = pitfalls::count_holes(workspace());
    assert!(holes > 10, "only {holes} were found");
    none(pitfalls::unshown_holes(workspace()));
}

#[test]
fn every_link_leads_somewhere() {
    let links = links::count(workspace());
    assert!(links > 200, "only {links} links were found");
    none(links::broken(workspace()));
}

#[test]
fn the_book_has_every_page() {
    none(links::missing_in_book(workspace()));
}

#[test]
fn every_filter_of_tests_finds_some() {
    let filters = filters::count(workspace());
    assert!(filters > 8, "only {filters} filters were found");
    none(filters::idle(workspace()));
}
