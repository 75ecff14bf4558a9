//! Random operations on every option set, each answer compared with the reference model.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different.

use esker_check::campaign::Campaign;
use esker_check::settings::Settings;
use std::path::Path;

#[test]
fn engine_answers_as_the_model_does() {
    let settings = Settings::from_environment(1, 60);
    println!("seed {}", settings.seed);
    let mut campaign = Campaign::new(settings, Path::new(env!("CARGO_TARGET_TMPDIR")));
    if std::env::var_os("ESKER_CHECK_SECONDS").is_none() {
        campaign.runs = 600;
    }
    match campaign.run() {
        Ok(totals) => println!("{totals:?} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}
