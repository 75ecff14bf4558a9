//! A failing call at every index of the scripts, once and from then on.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different. So much is done in
//! any case that a slow machine shows something too. Here that is every n-th call, from a start
//! that the seed says, as far as the time goes; `esker-check faults` with enough time takes all.

use esker_check::faults::Faults;
use esker_check::settings::Settings;

#[test]
fn every_call_fails_once_and_for_ever() {
    let settings = Settings::from_environment(3, 60).at_least(4000);
    println!("seed {}", settings.seed);
    match (Faults { settings, only: String::new(), threads: 2 }).every_call() {
        Ok(totals) => println!("faults: {totals} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}
