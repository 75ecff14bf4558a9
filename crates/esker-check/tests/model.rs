//! Random operations on every option set, each answer compared with the reference model.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different. Without them so many
//! runs are made, however long that takes: 2.5 million operations in all.

use esker_check::campaign::Campaign;
use esker_check::settings::Settings;
use std::path::Path;
use std::time::Duration;

/// Runs with or without steps of the clock back, which make so many operations at least.
fn campaign(clock_back: bool, runs: u64, least: u64) {
    let mut settings = Settings::from_environment(1, 60);
    println!("seed {}", settings.seed);
    let timed = std::env::var_os("ESKER_CHECK_SECONDS").is_some();
    if !timed {
        settings.budget = Duration::MAX;
    }
    let mut campaign = Campaign::new(settings, Path::new(env!("CARGO_TARGET_TMPDIR")));
    campaign.features.clock_back = clock_back;
    if !timed {
        campaign.runs = runs;
    }
    match campaign.run() {
        Ok(totals) => {
            for set in &totals.option_sets {
                println!("  {set}");
            }
            println!("{} operations in {:.0} s", totals.operations, settings.elapsed_seconds());
            assert!(timed || totals.operations >= least, "{} operations are too few", totals.operations);
            let (feed, features) = (totals.feed(), totals.features());
            println!("{feed}\n{features}");
            assert!(timed || features.least() > 0, "no operation was about one of the features: {features}");
            let least =
                [feed.of_followers, feed.resumed, feed.numbers, feed.gone, feed.woken, feed.unwoken, feed.losses];
            assert!(timed || least.iter().all(|&count| count > 0), "something was not met: {feed}");
        }
        Err(what) => panic!("{what}"),
    }
}

#[test]
fn engine_answers_as_the_model_does() {
    campaign(false, 1200, 2_000_000);
}

#[test]
fn a_clock_that_steps_back_harms_nothing_for_good() {
    campaign(true, 300, 500_000);
}
