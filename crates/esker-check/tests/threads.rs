//! Writers, readers, maintenance and losses at the same time.
//!
//! `ESKER_CHECK_SECONDS` and `ESKER_CHECK_SEED` make it longer and different; the interleaving is
//! up to the machine.

use esker_check::settings::Settings;
use esker_check::threads;

#[test]
fn every_snapshot_and_every_image_is_whole() {
    let settings = Settings::from_environment(5, 10).at_least(40);
    println!("seed {}", settings.seed);
    match threads::run(settings) {
        Ok(totals) => {
            println!("{totals:?}");
            assert!(totals.leases.into_inner() > 0, "nobody had the lease");
            assert!(totals.followed.into_inner() > 0, "the follower was not looked at");
            let (full, refused) = (totals.full_disks.into_inner(), totals.without_room.into_inner());
            assert!(full > 0 && refused > 0, "{full} disks were full, {refused} calls refused");
            assert!(settings.seed.is_multiple_of(2) || totals.told.into_inner() > 0, "nothing was read in the changes");
        }
        Err(what) => panic!("seed {}: {what}", settings.seed),
    }
}
