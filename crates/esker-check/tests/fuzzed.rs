//! A short run of every fuzz target, on what the fuzzer found worth keeping and on changes of it.
//! `make fuzz` runs the fuzzer itself.
//!
//! `ESKER_CHECK_SECONDS` (for each target) and `ESKER_CHECK_SEED` make it longer and different.

// What is read of the command is a part of it, and some is of a feature of it.
#![allow(dead_code, unexpected_cfgs)]

#[path = "../../esker-cli/src/duration.rs"]
mod duration;
#[path = "../../esker-cli/src/failure.rs"]
mod failure;
#[path = "../../esker-cli/src/record.rs"]
mod record;
#[path = "../../esker-cli/src/round_trips.rs"]
mod round_trips;
#[path = "../../esker-cli/src/settings.rs"]
mod settings;
#[path = "../../esker-cli/src/text.rs"]
mod text;

use esker_check::fuzzed::{Target, corpus, targets};
use esker_check::settings::Settings;
use std::path::Path;

/// Every file of `fuzz/fuzz_targets`.
fn all() -> Vec<Target> {
    targets().into_iter().chain([("line", round_trips::check as fn(&[u8]))]).collect()
}

/// On two processors at a time.
#[test]
fn each_odd_decoder_or_engine_takes_any_bytes() {
    take_any_bytes(all().into_iter().step_by(2));
}

#[test]
fn each_even_decoder_or_engine_takes_any_bytes() {
    take_any_bytes(all().into_iter().skip(1).step_by(2));
}

#[test]
fn no_target_of_the_fuzzer_is_left_out() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut there: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    there.sort();
    let mut run: Vec<&str> = all().iter().map(|target| target.0).collect();
    run.sort_unstable();
    assert_eq!(there, run);
}

#[test]
fn no_option_is_left_out_of_those_that_are_drawn() {
    let target = include_str!("../src/fuzzed/options.rs");
    let setters = include_str!("../../esker/src/options/mod.rs").lines();
    let setters = setters.filter_map(|line| line.trim().strip_prefix("pub fn ")?.split_once("(mut self"));
    let mut count = 0;
    for (setter, _) in setters {
        assert!(target.contains(&format!(".{setter}(")), "{setter}");
        count += 1;
    }
    assert!(count > 20, "only {count} setters were found");
}

fn take_any_bytes(targets: impl Iterator<Item = Target>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in targets {
        let settings = Settings::from_environment(5, 2);
        let entries = corpus::entries(&directory, target.0).unwrap_or_else(|what| panic!("{what}"));
        let count = corpus::run(settings, target, &entries, 0).unwrap_or_else(|what| panic!("{what}"));
        println!("{}: {count} inputs, {} of them kept, seed {}", target.0, entries.len(), settings.seed);
    }
}

/// A target that goes wrong is reported with what repeats it.
#[test]
fn a_panic_is_a_finding() {
    fn never_nine(bytes: &[u8]) {
        assert!(!bytes.contains(&9), "nine");
    }
    let settings = Settings::from_environment(5, 0);
    let found = corpus::run(settings, ("never_nine", never_nine), &[vec![1, 2, 3]], 1 << 16);
    assert!(found.is_err_and(|what| what.contains("never_nine, seed") && what.contains('9')));
}
