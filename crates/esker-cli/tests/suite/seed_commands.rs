//! The command lines of the published read-modify-write benchmark, as they stand in its text but
//! for the name of the program: every flag is accepted, those that mean nothing any more with one
//! line each, and what is printed has the form of what was published.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use crate::common::Sandbox;
use esker_bench::flags::Given;
use esker_bench::flags::config::Config;
use std::process::{Command, Output};

/// The text has `time ./db_bench` in the place of `esker bench`.
const UPDATE: &str = "bpl=10485760;overlap=10;mcz=2;del=300000000;levels=6;ctrig=4; delay=8; stop=12; mbc=20; r=50000000; t=10; vs=8; bs=65536; si=1000000; esker bench --benchmarks=updaterandom --disable_seek_compaction=1 --mmap_read=0 --statistics=1 --histogram=1 --num=$r --threads=$t --value_size=$vs --block_size=$bs --db=/data/sdb/ --disable_wal=1 --stats_interval=$si --max_background_compactions=$mbc --level0_file_num_compaction_trigger=$ctrig --level0_slowdown_writes_trigger=$delay --level0_stop_writes_trigger=$stop --num_levels=$levels --delete_obsolete_files_period_micros=$del --min_level_to_compress=$mcz --max_grandparent_overlap_factor=$overlap --stats_per_interval=1 --max_bytes_for_level_base=$bpl --use_existing_db=0";

const MERGE: &str = "bpl=10485760;overlap=10;mcz=2;del=300000000;levels=6;ctrig=4; delay=8; stop=12; mbc=20; r=50000000; t=10; vs=8; bs=65536; si=1000000; esker bench --benchmarks=mergerandom --merge_operator=uint64add --disable_seek_compaction=1 --mmap_read=0 --statistics=1 --histogram=1 --num=$r --threads=$t --value_size=$vs --block_size=$bs --db=/data/sdb --disable_wal=1 --stats_interval=$si --max_background_compactions=$mbc --level0_file_num_compaction_trigger=$ctrig --level0_slowdown_writes_trigger=$delay --level0_stop_writes_trigger=$stop --num_levels=$levels --delete_obsolete_files_period_micros=$del --min_level_to_compress=$mcz --max_grandparent_overlap_factor=$overlap --stats_per_interval=1 --max_bytes_for_level_base=$bpl --use_existing_db=0";

/// Flags that newer programs dropped or renamed.
const OBSOLETE: [&str; 4] = [
    "disable_seek_compaction",
    "max_background_compactions",
    "delete_obsolete_files_period_micros",
    "max_grandparent_overlap_factor",
];

/// Counters of the scaled runs: the published number times their scale.
const SCALE: &str = "0.0002";
const NUM: u64 = 10_000;

/// Runs the line in a shell that finds `esker` on its path, with only the directory and the size
/// changed.
fn shell(line: &str, sandbox: &Sandbox) -> Output {
    let directory = std::path::Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    // The last of two values of a flag counts.
    let line = format!("{line} --db={} --scale={SCALE}", sandbox.text("db"));
    Command::new("sh").args(["-c", &line]).env("PATH", path).output().unwrap()
}

fn check(line: &str) -> String {
    let sandbox = Sandbox::new("seed");
    let output = shell(line, &sandbox);
    let (out, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{out}{error}");
    let warnings: Vec<&str> = error.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), OBSOLETE.len(), "{warnings:#?}");
    for name in OBSOLETE {
        let about = warnings.iter().filter(|warning| warning.starts_with(&format!("warning: --{name} ")));
        assert_eq!(about.count(), 1, "{name}: {warnings:#?}");
    }
    assert!(out.contains(&format!("Entries:    {NUM}\n")), "{out}");
    // What --histogram and --statistics ask for.
    assert!(out.contains("Microseconds per op:\nCount: 100000 ") && out.contains("Counters:"), "{out}");
    out
}

/// The number after `name` in the row.
fn number(row: &str, name: &str) -> u64 {
    let rest = row.split_once(name).unwrap_or_else(|| panic!("no {name} in {row}")).1;
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn the_update_runs_as_published() {
    let out = check(UPDATE);
    let row = out.lines().find(|line| line.starts_with("updaterandom : ")).unwrap();
    assert!(row.contains(" micros/op;") && row.contains(&format!("( updates:{NUM} found:")), "{row}");
    assert!(row.contains("(10 threads, 100000 ops, "), "{row}");
    // One thread finds what it wrote itself and whatever the others were quick enough to write.
    let found = number(row, "found:");
    assert!((NUM * 36 / 100..=NUM).contains(&found), "{row}");
}

#[test]
fn the_merge_runs_as_published() {
    let out = check(MERGE);
    let row = out.lines().find(|line| line.starts_with("mergerandom  : ")).unwrap();
    assert!(row.contains(" micros/op;") && row.contains(&format!("( updates:{NUM})")), "{row}");
    assert!(!row.contains("found"), "{row}");
}

/// What the shell makes of the line, without a shell: its variables and words are plain.
fn arguments(line: &str) -> Vec<String> {
    let (assignments, flags) = line.split_once("esker bench ").unwrap();
    let assignments: Vec<(&str, &str)> =
        assignments.split(';').filter_map(|assignment| assignment.trim().split_once('=')).collect();
    let value = |flag: &str| match flag.split_once("=$") {
        Some((name, variable)) => {
            let (_, value) = assignments.iter().find(|(known, _)| *known == variable).unwrap();
            format!("{name}={value}")
        }
        None => flag.to_string(),
    };
    flags.split(' ').map(value).collect()
}

#[test]
fn the_parser_takes_every_flag_at_its_published_value() {
    for (line, benchmark, flags) in [(UPDATE, "updaterandom", 23), (MERGE, "mergerandom", 24)] {
        let arguments = arguments(line);
        assert_eq!(arguments.len(), flags);
        let given = Given::parse(&arguments).unwrap();
        assert_eq!(given.warnings.len(), OBSOLETE.len());
        for argument in &arguments {
            let (name, value) = argument.trim_start_matches("--").split_once('=').unwrap();
            assert_eq!(given.get(name), Some(value), "{name}");
        }
        let config = Config::new(&given).unwrap();
        assert_eq!(config.benchmarks, [benchmark]);
        assert_eq!((config.num, config.threads, config.value_size), (50_000_000, 10, 8));
        assert_eq!((config.options.block_bytes, config.options.disable_wal), (65_536, true));
        assert_eq!(config.db, std::path::Path::new("/data/sdb"));
    }
}
