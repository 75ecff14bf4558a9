//! A real process, killed 200 times. `ESKER_CHECK_KILLS` and `ESKER_CHECK_SEED` make it longer and
//! different.

use esker_check::kill9::KillLoop;
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn no_acknowledged_commit_is_lost() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = KillLoop {
        program: PathBuf::from(env!("CARGO_BIN_EXE_esker-check")),
        directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        rounds: number("ESKER_CHECK_KILLS").unwrap_or(200),
        seed: number("ESKER_CHECK_SEED").unwrap_or(5),
        longest_life: 200,
    };
    println!("seed {}", kills.seed);
    match kills.run(Duration::MAX) {
        Ok(totals) => {
            println!("{totals:?}");
            assert!(totals.with_changes == 0 || totals.told > 0, "nothing was read in the changes");
            // A short run, or one on a slow disk, need not come to a commit behind which all of it
            // is there.
            let has_all = totals.kills >= 200 && totals.acknowledged >= 2_000 * totals.databases;
            let counts = [
                ("keyspace had its other name", totals.renamed),
                ("follower was compared", totals.followed),
                ("load was found", totals.loads),
                ("transaction was found", totals.transactions),
                ("first pair was taken", totals.popped),
                ("expiry was changed", totals.expiries),
                ("name or setting was changed", totals.settings),
            ];
            for (what, count) in counts {
                assert!(!has_all || count > 0, "no {what}");
            }
        }
        Err(what) => panic!("{what}"),
    }
}
