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
            // The second database keeps its changes.
            assert!(totals.databases < 2 || totals.told > 0, "nothing was read in the changes");
            assert!(totals.kills < 200 || totals.renamed > 0, "no keyspace had its other name");
        }
        Err(what) => panic!("{what}"),
    }
}
