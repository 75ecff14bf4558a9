//! Whether the campaigns reach every public function of a handle: a new one that no campaign calls
//! must be named here, with the reason.
//!
//! A call is told by its name and, where several handles have it, by what it is called on. That it
//! is compared with anything is for the campaign to say.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a campaign does not call, and why.
type Reasons = &'static [(&'static str, &'static [&'static str])];

const SAYS_ONLY: &str = "says something of a handle, and touches no data";
const SHORT: &str = "the same as its form with more arguments";
const OTHER: &str = "the model calls it";

const CRASHES: Reasons = &[
    (
        SAYS_ONLY,
        &[
            "Batch::is_empty",
            "Batch::len",
            "Db::properties",
            "Db::property",
            "Db::record",
            "Follower::lag",
            "Keyspace::comparator",
            "Keyspace::compare_keys",
            "Keyspace::id",
            "Keyspace::runs",
            "Snapshot::sequence",
            "Transaction::is_empty",
            "Transaction::len",
            "Transaction::sequence",
        ],
    ),
    (
        SHORT,
        &[
            "Batch::commit",
            "Db::checkpoint",
            "Db::transact",
            "Db::verify_with",
            "Keyspace::set_merge_operator",
            "Transaction::commit",
        ],
    ),
    (
        OTHER,
        &[
            "Changes::keyspace_settings",
            "Changes::only_durable",
            "Changes::wait",
            "Keyspace::watch",
            "Transaction::get_into",
            "Transaction::pop_first",
            "Transaction::prefix",
            "Transaction::range",
            "Watch::wait",
        ],
    ),
];

const MODEL: Reasons = &[
    (
        SAYS_ONLY,
        &[
            "Batch::is_empty",
            "Batch::len",
            "Db::path",
            "Db::properties",
            "Db::property",
            "Db::record",
            "Follower::lag",
            "Keyspace::comparator",
            "Keyspace::compaction_style",
            "Keyspace::compare_keys",
            "Keyspace::id",
            "Keyspace::merge_operator",
            "Keyspace::runs",
            "Snapshot::sequence",
            "Transaction::is_empty",
            "Transaction::len",
            "Transaction::sequence",
        ],
    ),
    (SHORT, &["Batch::commit", "Db::checkpoint", "Db::transact", "Db::verify_with", "Keyspace::set_merge_operator"]),
    (
        "the crash scripts call it",
        &[
            "Cursor::keys_only",
            "Cursor::within",
            "Db::destroy",
            "Db::explain",
            "Db::repair",
            "Db::transact_with",
            "Db::verify_directory",
            "Keyspace::approximate_count",
            "Transaction::commit_with",
            "Transaction::multi_get",
        ],
    ),
];

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    std::fs::read_dir(path).unwrap().flat_map(|entry| sources(&entry.unwrap().path())).collect()
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Every public function of a handle.
fn public() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../esker/src/handle")) {
        let mut of = None;
        for line in std::fs::read_to_string(file).unwrap().lines() {
            if !line.starts_with([' ', '/', '}']) && !line.is_empty() {
                // An `impl` of a trait has no functions of its own.
                of = line.strip_prefix("impl ").filter(|_| !line.contains(" for ")).map(word);
            }
            if let (Some(of), Some(name)) = (&of, line.strip_prefix("    pub fn ")) {
                found.insert(format!("{of}::{}", word(name)));
            }
        }
    }
    assert!(found.len() > 150, "{found:?}");
    found
}

/// Whether a text without spaces calls the function.
fn calls(text: &str, function: &str) -> bool {
    let (of, name) = function.split_once("::").unwrap();
    let before: &[&str] = match of {
        "Snapshot" => &["snapshot."],
        "Transaction" => &["transaction."],
        "Batch" => &["batch."],
        "Db" => &["db.", "db().", "Db::"],
        "Changes" => &["changes.", "Changes::"],
        _ => &[".", "::"],
    };
    before.iter().any(|before| ["(", "::<"].iter().any(|behind| text.contains(&format!("{before}{name}{behind}"))))
}

/// Whether the sources of a campaign call every function but those with a reason, and none of
/// those.
fn check(campaign: &str, files: &[&str], reasons: Reasons) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all = files.iter().flat_map(|file| sources(&root.join(file)));
    let text: String = all.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let text: String = text.split_whitespace().collect();
    let missing: BTreeSet<_> = public().into_iter().filter(|function| !calls(&text, function)).collect();
    let given = reasons.iter().flat_map(|(_, functions)| functions.iter().map(ToString::to_string));
    let excused: BTreeSet<String> = given.collect();
    let silent: Vec<_> = missing.difference(&excused).collect();
    assert!(silent.is_empty(), "{campaign} do not call {silent:?}, and nothing says why");
    let needless: Vec<_> = excused.difference(&missing).collect();
    assert!(needless.is_empty(), "{campaign} call {needless:?}, or there is no such function");
}

#[test]
fn the_crash_scripts_reach_every_call_or_say_why_not() {
    let files = ["powerloss", "crashes", "crashes.rs", "faults", "state.rs", "asked.rs", "feed.rs"];
    check("the crash scripts", &files, CRASHES);
}

#[test]
fn the_model_reaches_every_call_or_says_why_not() {
    check("the runs of the model", &["driver", "transaction.rs", "state.rs", "asked.rs", "feed.rs"], MODEL);
}
