//! A few cuts of real file systems; `esker-check realdisk` cuts for minutes, and all kinds.
//!
//! `ESKER_CHECK_SEED` and `ESKER_CHECK_SECONDS` make it different and longer.
#![cfg(target_os = "linux")]

use esker_check::settings::Settings;
use std::io::Write;
use std::process::Command;

/// Of databases, and as many under syncs of the environment.
const CUTS: &str = "40";

/// Runs a part of the campaign; what it said.
fn run(kind: &str, arguments: &[&str]) -> String {
    let mut campaign = Command::new(env!("CARGO_BIN_EXE_esker-check"));
    campaign.args(["realdisk", "--only", kind, "--dir", env!("CARGO_TARGET_TMPDIR")]).args(arguments);
    let output = campaign.output().expect("the program was built with this test");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Not by `print`, which is heard of tests that fail only: it says whether anything was done.
    let said = if said.is_empty() { format!("realdisk: skipped: needs the program that makes {kind}\n") } else { said };
    let _ = write!(std::io::stderr(), "{said}");
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_full_disk_under_blocks_that_two_databases_share_is_an_error_and_takes_nothing() {
    let settings = Settings::from_environment(9, 60);
    let said = run("reflink", &["--seed", &settings.seed.to_string()]);
    assert!(said.contains("skipped") || said.contains("everything acknowledged there"), "{said}");
}

#[test]
fn what_was_promised_is_there_after_real_file_systems_were_cut_off() {
    let settings = Settings::from_environment(9, 60);
    let (seed, seconds) = (settings.seed.to_string(), settings.budget.as_secs().to_string());
    for kind in ["ext4-ordered", "ext4-overlay", "xfs"] {
        run(kind, &["--seed", &seed, "--seconds", &seconds, "--cuts", CUTS]);
    }
}
