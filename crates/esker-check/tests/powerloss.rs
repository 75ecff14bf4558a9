//! Power loss and process death at every call of the scripts and after every step of all short
//! sequences.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different. So much is done in
//! any case that a slow machine shows something too. Of the scripts that is every n-th call first,
//! from a start that the seed says; `esker-check powerloss` with enough time takes all.

use esker_check::powerloss::PowerLoss;
use esker_check::settings::Settings;

#[test]
fn every_call_of_the_scripts() {
    let settings = Settings::from_environment(1, 65).at_least(500);
    println!("seed {}", settings.seed);
    let mut campaign = PowerLoss::new(settings);
    campaign.threads = 1;
    match campaign.every_call() {
        Ok(totals) => println!("scripts: {totals} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}

#[test]
fn every_sequence_of_three_steps() {
    let settings = Settings::from_environment(2, 45).at_least(500);
    println!("seed {}", settings.seed);
    let mut campaign = PowerLoss::new(settings);
    campaign.seeds = 2;
    campaign.nested_percent = 10;
    campaign.threads = 1;
    match campaign.every_sequence(3) {
        Ok(totals) => println!("sequences: {totals} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}
