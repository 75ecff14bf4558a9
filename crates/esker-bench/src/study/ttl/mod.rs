//! `esker study ttl`: does what expires really go? Two scenarios that a course gives its students,
//! without the defects of the course's own test program, and what a time to live costs.
//!
//! Expiry is Esker's own: of the engines here none else hides an expired key at every read
//! (RocksDB's `DBWithTTL` returns it until a compaction has run), so nothing stands beside it.

mod cost;
mod scenario;
mod time;

use crate::directory::BenchDirectory;
use crate::exit::{EXIT_FAILED, EXIT_USAGE, exit_code};
use crate::flags::config::default_directory;
use crate::host;
use crate::interrupt::Interrupt;
use crate::output::{LineFile, complain, say};
use crate::record::Host;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use time::Time;

/// Shown below the options.
pub const EXAMPLES: &str = include_str!("../../../data/help/ttl.txt").trim_ascii_end();

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Data to load, in MiB, as values of 2048 bytes
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    pub data_mib: u64,
    /// Time to live in seconds; loading has to be quicker
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub ttl: u64,
    /// Step a simulated clock instead of waiting
    #[arg(long)]
    pub simulated_clock: bool,
    /// Leave out what measures time and space
    #[arg(long)]
    pub skip_cost: bool,
    /// Entries of the cost measurement
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub num: u64,
    /// Repetitions of the cost measurement
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: u32,
    /// Directory for the databases
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// File for one JSON object per check and per row
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

/// One line of the study's record file.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Machine { host: &'a Host, data_mib: u64, ttl_s: u64, simulated_clock: bool },
    Check(&'a scenario::Check),
    Cost(&'a cost::Row),
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments, out: &mut dyn Write, interrupt: Interrupt) -> i32 {
    if arguments.data_mib == 0 || arguments.ttl == 0 || arguments.repeat == 0 || arguments.num < 1000 {
        let problem = "--data-mib, --ttl and --repeat must be at least 1, and --num at least 1000";
        return complain("study ttl", problem, EXIT_USAGE);
    }
    match run(arguments, out, &interrupt) {
        Ok(all_held) => exit_code(interrupt.is_requested(), !all_held),
        Err(problem) => complain("study ttl", &problem, EXIT_FAILED),
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write, interrupt: &Interrupt) -> Result<bool, String> {
    let base = arguments.db.clone().unwrap_or_else(default_directory).join("ttl");
    let directory = BenchDirectory::claim(&base, false)?;
    let host = host::describe(directory.path());
    let mut file = LineFile::create(arguments.records.as_deref())?;
    let (data_mib, ttl_s, simulated_clock) = (arguments.data_mib, arguments.ttl, arguments.simulated_clock);
    file.json(&Line::Machine { host: &host, data_mib, ttl_s, simulated_clock })?;
    let clock = if simulated_clock { "simulated" } else { "real" };
    say(out, &format!("{data_mib} MiB in values of 2048 bytes, time to live {ttl_s} s, {clock} clock"));
    let time = Time::new(simulated_clock, interrupt.clone());
    let mut all_held = true;
    for check in scenario::run(directory.path(), arguments.data_mib, arguments.ttl, &time)? {
        let verdict = if check.held { "held" } else { "NOT HELD" };
        say(out, &format!("{:<11} {:<60} {verdict:<9} {}", check.scenario, check.what, check.found));
        all_held &= check.held;
        file.json(&Line::Check(&check))?;
    }
    if !arguments.skip_cost && !interrupt.is_requested() {
        let rows = cost::run(directory.path(), arguments.num, arguments.repeat, interrupt)?;
        say(out, &format!("\n{}", cost::table(&rows)));
        for row in &rows {
            file.json(&Line::Cost(row))?;
        }
    }
    std::fs::remove_dir_all(directory.path()).map_err(|error| format!("cannot remove {}: {error}", base.display()))?;
    Ok(all_held)
}
