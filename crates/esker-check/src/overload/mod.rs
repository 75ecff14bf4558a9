//! More than there is room, time or memory for: it goes on or says why not, and everything
//! acknowledged is there.
//!
//! Each scenario is a process of its own, which sets its own limits, so that none of them meets
//! another or the campaign.

mod acknowledged;
mod cgroup;
mod descriptors;
mod full_disk;
mod keyspaces;
mod machine;
mod memory;
mod readers;
mod share;
mod slow_disk;
mod writers;

use crate::Checked;
use crate::settings::Settings;
use crate::simulated::ScratchDirectory;
use share::Share;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A scenario that has not ended so long after its load should have is stuck: 10,000 keyspaces take
/// many minutes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What can be run.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    run: fn(&Share) -> Checked<String>,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "writers", run: writers::run },
    Scenario { name: "readers", run: readers::run },
    Scenario { name: "keyspaces", run: keyspaces::run },
    Scenario { name: FULL_DISK, run: full_disk::run },
    Scenario { name: "descriptors", run: descriptors::run },
    Scenario { name: "addresses", run: memory::addresses },
    Scenario { name: PAGES, run: memory::pages },
];
const FULL_DISK: &str = "full-disk";
/// In a control group, which counts the files of a file system in memory as well.
const PAGES: &str = "pages";

/// What is run.
#[derive(Clone, Debug)]
pub struct Overload {
    /// Seed and time, which the scenarios share.
    pub settings: Settings,
    /// The program that the scenarios are run by: `esker-check` itself.
    pub program: PathBuf,
    /// Where the databases go; those of a scenario that failed are left there.
    pub directory: PathBuf,
    /// Where those go whose files must not be memory.
    pub device: PathBuf,
    /// Only scenarios whose name contains this.
    pub only: String,
    /// Snapshots and iterators held at a time.
    pub readers: u64,
    /// Keyspaces of one database.
    pub keyspaces: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Scenarios that went well.
    pub scenarios: u64,
    /// Those that this machine does not allow.
    pub skipped: u64,
}

impl Overload {
    /// Runs the chosen scenarios one after the other, and tells about each.
    pub fn run(&self, tell: &mut dyn FnMut(&str, &str)) -> Checked<Totals> {
        let chosen: Vec<_> = SCENARIOS.iter().filter(|scenario| scenario.name.contains(&self.only)).collect();
        if chosen.is_empty() {
            let names = SCENARIOS.map(|scenario| scenario.name).join(", ");
            return Err(format!("there is no scenario {:?}, only {names}", self.only));
        }
        let mut totals = Totals::default();
        for scenario in &chosen {
            let share = self.settings.budget / chosen.len() as u32;
            let line = self.run_one(scenario.name, share).map_err(|what| {
                let (seed, seconds) = (self.settings.seed, share.as_secs());
                let Overload { readers, keyspaces, .. } = self;
                format!(
                    "{}: {what}\nrun again with: esker-check overload --seed {seed} --seconds {seconds} --only {} --readers {readers} \
                     --keyspaces {keyspaces}",
                    scenario.name, scenario.name
                )
            })?;
            match line.starts_with("skipped: ") {
                true => totals.skipped += 1,
                false => totals.scenarios += 1,
            }
            tell(scenario.name, &line);
        }
        Ok(totals)
    }

    fn run_one(&self, name: &str, time: Duration) -> Checked<String> {
        let mut command = match name {
            FULL_DISK => {
                let Some(mut command) = full_disk::namespace() else {
                    return Ok("skipped: a small file system cannot be mounted here".to_string());
                };
                command.arg(&self.program);
                command
            }
            _ => Command::new(&self.program),
        };
        let failed = |error: std::io::Error| format!("no scratch directory: {error}");
        let parent = if name == PAGES { &self.device } else { &self.directory };
        let mut scratch = ScratchDirectory::new(parent, &format!("overload-{name}")).map_err(failed)?;
        let directory = scratch.path().to_path_buf();
        let (seed, readers, keyspaces) = (self.settings.seed, self.readers, self.keyspaces);
        let share = Share { directory, seed, time, readers, keyspaces };
        // One arena: others set aside addresses that nobody uses.
        command.args(["overload-child", name]).args(share.encode()).env("MALLOC_ARENA_MAX", "1");
        wait_for(command, time + PATIENCE).inspect_err(|_| scratch.keep())
    }
}

/// Runs a process to its end; what it has written, if that was a good one.
fn wait_for(mut command: Command, patience: Duration) -> Checked<String> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    // It writes one line or one message, which a pipe holds.
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if started.elapsed() > patience {
            // Both fail only if it has ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it does not end: killed after {patience:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let [told, complaint] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_string());
    if output.status.success() && !told.is_empty() { Ok(told) } else { Err(format!("{}: {complaint}", output.status)) }
}

/// The process of a scenario; what it has to tell.
pub fn child(arguments: &[String]) -> Checked<String> {
    let [name, share @ ..] = arguments else { return Err("a scenario is missing".to_string()) };
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.ok_or_else(|| format!("there is no scenario {name:?}"))?;
    (scenario.run)(&Share::decode(share)?)
}

#[cfg(test)]
mod tests {
    use super::wait_for;
    use std::process::Command;
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_that_is_ended_complains_or_hangs_is_noticed() {
        let wait = |script| wait_for(shell(script), Duration::from_secs(600));
        assert_eq!(wait("echo well"), Ok("well".to_string()));
        assert!(wait("echo well; kill -9 $$").is_err_and(|what| what.contains("signal: 9")));
        assert!(wait("echo lost >&2; exit 1").is_err_and(|what| what.contains("lost")));
        assert!(wait("true").is_err());
        assert!(wait_for(shell("exec sleep 600"), Duration::from_millis(1)).is_err_and(|what| what.contains("end")));
    }
}
