//! Whether the lists are complete: every public function of a handle is a call, and every function
//! of a trait of callbacks is a way.

use super::calls::{self, Listed};
use super::ways::{ENV_WAYS, WAYS};
use std::collections::BTreeSet;
use std::path::Path;

/// The functions of the traits that the database calls differently, or never.
const NO_WAYS: &[(&str, &str)] = &[
    ("Env::calls_no_database", "asked before there is a database"),
    ("ReadFile::is_empty", "never called"),
    ("WriteFile::is_empty", "never called"),
    ("LogFile::is_empty", "never called"),
    ("LogFile::read_at", "called by an opening: callbacks/apart.rs"),
    ("ReadFile::will_read", "called by a long scan of a mapped table: callbacks/apart.rs"),
    #[cfg(not(unix))]
    ("ReadFile::check_mapping", "called once a page of a mapping could not be had: a fault of the system's own"),
    ("CompactionFilter::name", "asked when the options are shown"),
    ("MergeOperator::operator_type", "of the engine"),
    ("EventListener::missed", "called once thousands of events wait: callbacks/apart.rs"),
];

/// What begins with these words inside what is declared at the beginning of a line with one of
/// those.
fn functions(path: &str, outer: &[&str], begin: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    let mut of = None;
    let mut found = Vec::new();
    for line in text.lines() {
        if !line.starts_with([' ', '/', '}']) && !line.is_empty() {
            // An `impl` of a trait has no functions of its own.
            of = outer.iter().find_map(|outer| line.strip_prefix(outer)).filter(|_| !line.contains(" for ")).map(word);
        }
        if let (Some(of), Some(name)) = (&of, line.strip_prefix(begin)) {
            found.push(format!("{of}::{}", word(name)));
        }
    }
    found
}

/// The function that a call is of.
fn function(call: &Listed) -> &'static str {
    call.name.split([' ', ',']).next().unwrap()
}

#[test]
fn every_public_function_of_a_handle_is_a_call_in_the_lists() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handle");
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let public: BTreeSet<_> =
        files.flat_map(|file| functions(&format!("src/handle/{file}"), &["impl "], "    pub fn ")).collect();
    assert!(public.len() > 90, "{public:?}");
    let listed: BTreeSet<_> = calls::all().map(|call| function(&call).to_owned()).collect();
    let missing: Vec<_> = public.difference(&listed).collect();
    assert!(missing.is_empty(), "no call of {missing:?} is listed in callbacks/calls.rs");
}

/// A name says what is tried.
#[test]
fn every_call_in_the_lists_is_of_its_function() {
    for call in calls::all() {
        let (_, name) = function(&call).split_once("::").unwrap();
        let text: String = call.text.split_whitespace().collect();
        let is_called = [".", "::"]
            .iter()
            .any(|before| ["(", "::<"].iter().any(|behind| text.contains(&format!("{before}{name}{behind}"))));
        assert!(is_called, "{} is not in {}", call.name, call.text);
    }
}

#[test]
fn every_function_of_a_callback_is_a_way_in_the_lists() {
    let traits = [
        "src/env/log_file.rs",
        "src/env/mod.rs",
        "src/env/read_file.rs",
        "src/env/write_file.rs",
        "src/event_listener.rs",
        "src/merge_operator/mod.rs",
        "src/compaction_filter.rs",
        "src/filter_policy.rs",
        "src/base/clock.rs",
        "src/base/comparator.rs",
        "src/db/maintenance/metrics.rs",
    ];
    let of = |file: &&str| functions(file, &["pub trait "], "    fn ");
    let called: BTreeSet<_> = traits.iter().flat_map(of).collect();
    assert!(called.len() > 50, "{called:?}");
    let mut listed: BTreeSet<_> = WAYS.iter().chain(ENV_WAYS).map(|way| way.callback.to_owned()).collect();
    for &(exception, why) in NO_WAYS {
        assert!(called.contains(exception) && listed.insert(exception.to_owned()), "needless: {exception}, {why}");
    }
    let missing: Vec<_> = called.difference(&listed).collect();
    assert!(missing.is_empty(), "no way to call {missing:?} is listed in callbacks/ways.rs");
}
