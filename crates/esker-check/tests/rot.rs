//! Damage to stored files, while a database is closed and while it is open: so much on any machine,
//! and more for as long as there is time.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different.

use esker_check::rot::{Rot, Totals};
use esker_check::settings::Settings;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Databases that are damaged however long that takes, and how much is done to each.
const RUNS: u64 = 60;
const HARMS: u64 = 200;
/// Of so many harms of the fixed ones more than these are flips, whatever the seed.
const LEAST_FLIPS: u64 = 6000;

fn harmed(rot: &Rot) -> Totals {
    let totals = rot.run().unwrap_or_else(|what| panic!("{what}"));
    println!("rot: {totals} in {:.0} s", rot.settings.elapsed_seconds());
    assert_eq!((totals.wrong.load(Relaxed), totals.wrong_flips.load(Relaxed)), (0, 0));
    totals
}

#[test]
fn no_damage_gives_a_wrong_answer() {
    let settings = Settings::from_environment(4, 20);
    println!("seed {}", settings.seed);
    let without_end = Settings::new(settings.seed, Duration::MAX);
    let least = harmed(&Rot { runs: RUNS, flips: HARMS, ..Rot::new(without_end) });
    let done = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    assert_eq!((done(&least.databases), done(&least.harms)), (RUNS, done(&least.harms_due)));
    let flips = done(&least.closed) + done(&least.open);
    assert!(flips > LEAST_FLIPS, "{least}");
    assert!(done(&least.open) > LEAST_FLIPS / 3 && done(&least.sectors) > 300 && done(&least.files) > 50, "{least}");
    // Where everything is an error, or nothing is, the damage was not where it should be.
    assert!(done(&least.errors) > flips / 10 && done(&least.allowed) > flips / 10, "{least}");
    if !settings.over() {
        harmed(&Rot { first_run: RUNS, ..Rot::new(settings) });
    }
}
