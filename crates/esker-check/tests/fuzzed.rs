//! A short run of every fuzz target, on what the fuzzer found worth keeping and on changes of it.
//! `make fuzz` runs the fuzzer itself.
//!
//! `ESKER_CHECK_SECONDS` (for each target) and `ESKER_CHECK_SEED` make it longer and different.

use esker_check::fuzzed::{Target, corpus, targets};
use esker_check::settings::Settings;
use std::path::Path;

/// On two processors at a time.
#[test]
fn each_odd_decoder_or_engine_takes_any_bytes() {
    take_any_bytes(targets().into_iter().step_by(2));
}

#[test]
fn each_even_decoder_or_engine_takes_any_bytes() {
    take_any_bytes(targets().into_iter().skip(1).step_by(2));
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
