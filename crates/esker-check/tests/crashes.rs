//! Random scripts over the whole interface, with power or process lost at random calls.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different. So much is done in
//! any case that a slow machine shows something too.

use esker_check::crashes::Crashes;
use esker_check::settings::Settings;

#[test]
fn random_scripts_survive_random_losses() {
    let settings = Settings::from_environment(5, 30).at_least(100);
    println!("seed {}", settings.seed);
    match Crashes::new(settings).run() {
        Ok(done) => println!("crashes: {done} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}
