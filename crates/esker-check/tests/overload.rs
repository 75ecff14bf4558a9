//! Every scenario of overload in a small size; `esker-check overload` runs them for minutes.
//!
//! `ESKER_CHECK_SEED` and `ESKER_CHECK_SECONDS` make it different and longer.
#![cfg(target_os = "linux")]

use esker_check::overload::Overload;
use esker_check::settings::Settings;
use std::path::{Path, PathBuf};

#[test]
fn it_goes_on_or_says_why_not_and_loses_nothing() {
    let settings = Settings::from_environment(3, 2);
    let memory = Path::new("/dev/shm");
    let campaign = Overload {
        settings,
        program: PathBuf::from(env!("CARGO_BIN_EXE_esker-check")),
        // What a device takes for its syncs is most of the time, and shows nothing here.
        directory: if memory.is_dir() { memory.to_path_buf() } else { PathBuf::from(env!("CARGO_TARGET_TMPDIR")) },
        device: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        only: String::new(),
        readers: 300,
        keyspaces: 60,
    };
    match campaign.run(&mut |name, line| println!("{name}: {line}")) {
        Ok(totals) => assert_eq!(totals.scenarios + totals.skipped, 7, "{totals:?}"),
        Err(what) => panic!("seed {}: {what}", settings.seed),
    }
}
