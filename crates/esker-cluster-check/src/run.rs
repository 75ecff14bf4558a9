//! The command: one run for each seed, and the sums of all.

use crate::cluster::Cluster;
use crate::history::{History, Verdict};
use crate::load::Load;
use crate::machine::Abilities;
use crate::node::{Site, logs};
use crate::schedule::{Counts, Faults};
use clap::Parser;
use esker_fault_schedule::{Head, Schedule};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Check clusters of real processes under faults
#[derive(Parser)]
struct Arguments {
    /// The program `esker`, built with the feature `serve`
    #[arg(long, default_value = "target/release/esker")]
    esker: PathBuf,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// How many nodes; else three, and five for a seed divisible by four
    #[arg(long)]
    nodes: Option<usize>,
    /// The faults of this file, and its number of nodes, instead of those that the seed draws
    #[arg(long)]
    schedule: Option<PathBuf>,
    /// How many faults there are in a run
    #[arg(long, default_value_t = 10)]
    faults: usize,
    /// Where disks, clocks and logs go
    #[arg(long, default_value = "target/cluster-check")]
    directory: PathBuf,
    /// Keep the directory of each run, with its schedule and logs, also where nothing was found
    #[arg(long)]
    keep: bool,
    /// A number below 250 that no other run on the machine has at the same time
    #[arg(long, default_value_t = 0)]
    slot: u8,
    /// Without namespaces, and so without faults of the network
    #[arg(long)]
    loopback: bool,
    /// Further arguments of `esker serve`
    #[arg(last = true)]
    serve: Vec<String>,
}

/// The file in the directory of a run with its faults.
const SCHEDULE: &str = "schedule.jsonl";

/// How many uses there are at least for each fault that end, and how many of them within another
/// one. A cluster that refuses everything violates nothing.
const LEAST_USES: u64 = 10;
const LEAST_OVERLAPS: u64 = 1;
/// The name of their count.
const OVERLAPS: &str = "uses within another one";

/// What a run has shown.
struct Shown {
    counts: Counts,
    violations: Vec<String>,
}

impl Arguments {
    fn nodes(&self, seed: u64, schedule: Option<&Schedule>) -> usize {
        let of_schedule = schedule.and_then(|schedule| usize::try_from(schedule.head.nodes).ok());
        of_schedule.or(self.nodes).unwrap_or(if seed.is_multiple_of(4) { 5 } else { 3 })
    }

    fn site(&self, abilities: Abilities, directory: PathBuf) -> Site {
        Site {
            esker: self.esker.clone(),
            directory,
            slot: self.slot,
            has_network: abilities.network,
            has_mounts: abilities.mounts,
            has_clocks: abilities.clocks,
            arguments: self.serve.clone(),
        }
    }

    /// The schedule, if there is to be one.
    fn schedule(&self) -> Result<Option<Schedule>, String> {
        let Some(path) = &self.schedule else { return Ok(None) };
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Schedule::parse(&text).map(Some).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn run(&self, seed: u64, abilities: Abilities) -> Result<Shown, String> {
        let directory = self.directory.join(format!("{}-{seed}", self.slot));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let directory = directory.canonicalize().map_err(|error| error.to_string())?;
        let site = self.site(abilities, directory.clone());
        let outcome = self.run_at(&site, seed, abilities);
        match &outcome {
            Ok(shown) if shown.violations.is_empty() && !self.keep => {
                let _ = fs::remove_dir_all(&directory);
                return outcome;
            }
            Ok(shown) if shown.violations.is_empty() => {}
            _ => println!("{}", logs(&directory)),
        }
        println!("seed {seed}: the schedule of its faults is {}", directory.join(SCHEDULE).display());
        outcome
    }

    fn run_at(&self, site: &Site, seed: u64, abilities: Abilities) -> Result<Shown, String> {
        let schedule = self.schedule()?;
        let nodes = self.nodes(seed, schedule.as_ref());
        let mut record = File::create(site.directory.join(SCHEDULE)).map_err(|error| error.to_string())?;
        writeln!(record, "{}", Head { nodes: nodes as u64, seed }.line()?).map_err(|error| error.to_string())?;
        let mut cluster = Cluster::start(site, nodes, seed)?;
        let mut load = Load::start(seed, cluster.addresses());
        let mut faults = Faults::new(&mut cluster, &load, (abilities, seed), record);
        match &schedule {
            Some(schedule) => faults.replay(schedule)?,
            None => (0..self.faults).try_for_each(|_| faults.next())?,
        }
        let mut counts = faults.end()?;
        let histories = load.finish()?;
        let mut violations = judge(&histories, &mut counts);
        let totals = load.totals();
        let (ended, overlaps) = (totals.done.load(Ordering::Relaxed), counts[OVERLAPS]);
        let faults = schedule.as_ref().map_or(self.faults, |schedule| schedule.faults.len()) as u64;
        violations.extend(too_little(faults, ended, overlaps));
        let mut add = |what, count| *counts.entry(what).or_default() += count;
        add("clusters", 1);
        add(if nodes == 5 { "clusters of five" } else { "clusters of three" }, u64::from(matches!(nodes, 3 | 5)));
        add("uses that ended", ended);
        add("uses of which nothing is known", totals.unknown.load(Ordering::Relaxed));
        add("uses that were refused", totals.refused.load(Ordering::Relaxed));
        let packets = cluster.packets();
        add("packets", packets.all);
        add("packets lost", packets.lost);
        add("packets delayed", packets.delayed);
        if let Err(why) = cluster.agree(histories.iter().map(|history| (history.key(), history.object()))) {
            violations.push(why);
        }
        if let Err(why) = cluster.compare() {
            violations.push(why);
        }
        Ok(Shown { counts, violations })
    }
}

/// What is wrong if so little was done that it shows nothing.
fn too_little(faults: u64, ended: u64, overlaps: u64) -> Option<String> {
    let shows = ended >= faults * LEAST_USES && overlaps >= faults * LEAST_OVERLAPS;
    let done = || format!("{ended} uses ended, {overlaps} of them within another one");
    (!shows).then(|| format!("{}: that shows nothing for {faults} faults", done()))
}

/// Checks the histories, and counts; what is wrong.
fn judge(histories: &[Arc<History>], counts: &mut Counts) -> Vec<String> {
    let (mut violations, mut undecided) = (Vec::new(), 0);
    let mut add = |what, count| *counts.entry(what).or_default() += count;
    add(OVERLAPS, 0);
    for history in histories {
        add("histories", 1);
        add(OVERLAPS, history.overlaps());
        match history.check() {
            Verdict::Linearizable => add("linearizable histories", 1),
            Verdict::Undecided => undecided += 1,
            Verdict::Violated(what) => violations.push(what),
        }
    }
    add("undecided histories", undecided);
    if undecided * 10 > histories.len() as u64 {
        violations.push(format!("{undecided} of {} histories are undecided", histories.len()));
    }
    violations
}

/// Runs the command.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = fs::create_dir_all(&arguments.directory) {
        eprintln!("{}: {error}", arguments.directory.display());
        return ExitCode::FAILURE;
    }
    let mut abilities = Abilities::find(&arguments.directory);
    abilities.network &= !arguments.loopback;
    let (mut all, mut failed) = (Counts::new(), Vec::new());
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.seeds) {
        match arguments.run(seed, abilities) {
            Ok(Shown { counts, violations }) => {
                println!("seed {seed}: {} violations; {counts:?}", violations.len());
                for violation in &violations {
                    println!("seed {seed}: {violation}");
                }
                if !violations.is_empty() {
                    failed.push(seed);
                }
                for (what, count) in counts {
                    *all.entry(what).or_default() += count;
                }
            }
            Err(why) => {
                println!("seed {seed}: {why}");
                failed.push(seed);
            }
        }
    }
    for (what, count) in &all {
        println!("count: {count} {what}");
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("these seeds failed: {failed:?}; repeat one with --seed N");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::{Found, Object, Use};

    #[test]
    fn a_run_in_which_little_was_done_is_no_good_one() {
        assert_eq!(too_little(10, 100, 10), None);
        assert!(too_little(10, 99, 10).is_some() && too_little(10, 100, 9).is_some());
    }

    #[test]
    fn violations_are_told_and_histories_counted() {
        let history = |value| {
            let history = History::new("counter".into(), Object::Counter(0));
            let call = history.begin(1, Use::Add(1));
            history.end(call, Found::Value(Some(value)));
            Arc::new(history)
        };
        let mut counts = Counts::new();
        let violations = judge(&[history(1), history(2)], &mut counts);
        assert!(violations.len() == 1 && violations[0].contains("Value(Some(2))"), "{violations:?}");
        let expected = [("histories", 2), ("linearizable histories", 1), ("undecided histories", 0), (OVERLAPS, 0)];
        assert_eq!(counts, Counts::from(expected));
    }
}
