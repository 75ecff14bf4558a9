//! Flipped bits of stored files, while a database is closed and while it is open.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different.

use esker_check::rot::Rot;
use esker_check::settings::Settings;

#[test]
fn no_flip_gives_a_wrong_answer() {
    let settings = Settings::from_environment(4, 20);
    println!("seed {}", settings.seed);
    match Rot::new(settings).run() {
        Ok(totals) => println!("rot: {totals} in {:.0} s", settings.elapsed_seconds()),
        Err(what) => panic!("{what}"),
    }
}
