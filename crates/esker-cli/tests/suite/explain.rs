//! `esker explain` names every option, its value and where that comes from.
#![allow(clippy::unwrap_used)]

use crate::common::{fails, ok};

#[test]
fn values_follow_from_profile_and_budget() {
    let text = ok(&["explain"]);
    assert!(text.contains("write_buffer_bytes = 64 MiB (default): "), "{text}");
    let text = ok(&["explain", "--profile", "read-heavy", "--memory-budget", "64MiB"]);
    assert!(text.contains("filter_bits_per_key = 14 (profile read-heavy): "), "{text}");
    assert!(text.contains("write_buffer_bytes = 16 MiB (from the memory budget): "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&ok(&["explain", "--profile", "counters", "--json"])).unwrap();
    let options = json.as_array().unwrap();
    let buffer = options.iter().find(|option| option["name"] == "write_buffer_bytes").unwrap();
    assert_eq!((&buffer["value"], &buffer["origin"]), (&"128 MiB".into(), &"profile counters".into()));
    assert!(options.len() <= 25);
}

#[test]
fn what_cannot_be_understood_is_one_line() {
    let line = fails(2, &["explain", "--profile", "fast"]);
    assert!(line.contains("counters, balanced, read-heavy, large-values"), "{line}");
    let line = fails(2, &["explain", "--memory-budget", "64MB"]);
    assert!(line.contains("MiB"), "{line}");
    // Seen: an explanation of a budget with which no database opens.
    let line = fails(2, &["explain", "--memory-budget", "10"]);
    assert!(line.contains("memory_budget_bytes is 10") && line.contains("at least 1048576"), "{line}");
}
