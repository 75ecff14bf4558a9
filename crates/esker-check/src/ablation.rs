//! Leaves out one sync at a time and looks whether the power-loss check notices.
//!
//! A sync whose absence nothing notices is either superfluous, or the scripts never need it: both are worth knowing. This is
//! also the proof that the power-loss check can see.

use crate::Checked;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Step};
use crate::powerloss::session::{Ground, Session, run};
use crate::powerloss::{option_variants, scripts};
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use crate::state::database_state;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Error, Options};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Syncs left out, and those of them whose absence was noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many were left out.
    pub left_out: u64,
    /// How many of these mattered.
    pub noticed: u64,
}

/// Counts by what was synced (a file name without its digits, or the word directory) and by the step that did it.
pub type Report = BTreeMap<(String, String), Count>;

/// Leaves out every sync of every script whose name contains `only`, as far as the time allows.
pub fn run_all(settings: Settings, only: &str) -> Checked<Report> {
    let mut report = Report::new();
    for script in scripts().iter().filter(|script| script.name.contains(only)) {
        // The third variant differs from the first in sizes only.
        for (_, options) in option_variants().iter().filter(|(name, _)| *name != "tiny") {
            let baseline = FaultEnv::new(Arc::new(MemEnv::new()));
            let phases = phases(&script.steps, options, &baseline)
                .map_err(|error| format!("script {} fails by itself: {error}", script.name))?;
            for class in [Class::Sync, Class::SyncDir] {
                for nth in 0..baseline.calls(class) {
                    if settings.over() {
                        return Ok(report);
                    }
                    let target = target(&script.steps, options, class, nth);
                    let count = report.entry((target, phase_of(&phases, class, nth))).or_default();
                    count.left_out += 1;
                    count.noticed += u64::from(is_noticed(&script.steps, options, class, nth));
                }
            }
        }
    }
    Ok(report)
}

/// A part of a script, and how many syncs of files and of directories there were when it was over.
struct Phase {
    name: String,
    syncs: u64,
    directory_syncs: u64,
}

/// Runs a script as it is.
fn phases(steps: &[Step], options: &Options, env: &FaultEnv) -> esker::Result<Vec<Phase>> {
    let note = |name: String, env: &FaultEnv| Phase {
        name,
        syncs: env.calls(Class::Sync),
        directory_syncs: env.calls(Class::SyncDir),
    };
    let opened = FaultEnv::new(Arc::new(MemEnv::new()));
    drop(Session::open(&Ground::new(options, opened.clone()), &mut Progress::default())?);
    let mut found = vec![note("open".to_string(), &opened)];
    // A step that closes and opens is two phases; the last one closes.
    let name = |step: &Step| format!("{step:?}").chars().take_while(char::is_ascii_alphanumeric).collect::<String>();
    let names = steps.iter().flat_map(|step| match step {
        Step::Reopen => vec!["close".to_string(), "open".to_string()],
        other => vec![name(other).to_lowercase()],
    });
    let mut names = names.chain(["close".to_string()]);
    run(steps, &Ground::new(options, env.clone()), &mut Progress::default(), &mut |_| {
        found.extend(names.next().map(|name| note(name, env)));
    })?;
    Ok(found)
}

/// The name of the phase in which the n-th sync happens.
fn phase_of(phases: &[Phase], class: Class, nth: u64) -> String {
    let count = |phase: &&Phase| if class == Class::Sync { phase.syncs } else { phase.directory_syncs };
    phases.iter().find(|phase| count(phase) > nth).map_or_else(|| "end".to_string(), |phase| phase.name.clone())
}

fn attempt(steps: &[Step], options: &Options, env: &FaultEnv, progress: &mut Progress) -> esker::Result<()> {
    run(steps, &Ground::new(options, env.clone()), progress, &mut |_| {})
}

/// What the n-th sync syncs: learned by making it fail, because the error names it.
fn target(steps: &[Step], options: &Options, class: Class, nth: u64) -> String {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    env.add(Rule::new(class, nth, Action::Fail(ErrorKind::Other)));
    let outcome = attempt(steps, options, &env, &mut Progress::default());
    match outcome {
        _ if class == Class::SyncDir => "directory".to_string(),
        Err(Error::Io { path, .. }) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.chars().filter(|character| !character.is_ascii_digit()).collect()
        }
        Err(_) | Ok(()) => "not named by an error".to_string(),
    }
}

/// So many calls after the sync that is left out, more losses are tried than later: what it orders is mostly what comes next.
const SOON: u64 = 16;

/// What a power loss can leave of what was not synced.
fn losses(calls_since: u64) -> impl Iterator<Item = (CrashMode, u64)> {
    let random = (0..if calls_since < SOON { 64 } else { 3 }).map(|seed| (CrashMode::Random, seed));
    [(CrashMode::LoseAll, 0), (CrashMode::OnlyMetadata, 0)].into_iter().chain(random)
}

fn is_noticed(steps: &[Step], options: &Options, class: Class, nth: u64) -> bool {
    let (mut calls, mut calls_since) = (0, 0);
    loop {
        let cut = Cut::after(steps, options, calls, Some(Rule::new(class, nth, Action::Ignore)));
        if cut.fired {
            // One call more: the sync itself. What even the whole engine does not bring back here says nothing.
            let whole = Cut::after(steps, options, calls + 1, None);
            let is_lost = |(mode, seed): (CrashMode, u64)| {
                let is_right = |cut: &Cut, check: Check| cut.is_right(check, options, &mode, seed + 64 * calls);
                !is_right(&cut, reopened) || (!is_right(&cut, repaired) && is_right(&whole, repaired))
            };
            if losses(calls_since).any(is_lost) {
                return true;
            }
            calls_since += 1;
        }
        if cut.is_over {
            return false;
        }
        calls += 1;
    }
}

type Check = fn(&MemEnv, &Options, &Progress) -> Checked<()>;

/// A script that was cut off at a call.
struct Cut {
    memory: MemEnv,
    progress: Progress,
    fired: bool,
    is_over: bool,
}

impl Cut {
    fn after(steps: &[Step], options: &Options, calls: u64, rule: Option<Rule>) -> Cut {
        let memory = MemEnv::new();
        memory.crash_after(calls);
        let faulty = FaultEnv::new(Arc::new(memory.clone()));
        rule.into_iter().for_each(|rule| faulty.add(rule));
        let mut progress = Progress::default();
        let is_over = attempt(steps, options, &faulty, &mut progress).is_ok();
        Cut { memory, progress, fired: faulty.fired() > 0, is_over }
    }

    fn is_right(&self, check: Check, options: &Options, mode: &CrashMode, seed: u64) -> bool {
        let check = AssertUnwindSafe(|| check(&self.memory.crash(mode, seed), options, &self.progress));
        matches!(catch_unwind(check), Ok(Ok(())))
    }
}

/// The image as the next open finds it, and its checkpoints.
fn reopened(image: &MemEnv, options: &Options, progress: &Progress) -> Checked<()> {
    check(image, options, progress)?;
    crate::powerloss::check_checkpoints(image, options, progress)
}

/// The same without any manifest: what a repair makes of tables and log alone.
fn repaired(image: &MemEnv, options: &Options, progress: &Progress) -> Checked<()> {
    let is_pointer = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        path.parent() == Some(Path::new(MEMORY_PATH)) && (name == "CURRENT" || name.starts_with("MANIFEST-"))
    };
    for path in image.files().iter().filter(|path| is_pointer(path)) {
        image.remove(path).map_err(|error| error.to_string())?;
    }
    let mut progress = progress.clone();
    progress.damaged = true;
    check(image, options, &progress)
}

fn check(image: &MemEnv, options: &Options, progress: &Progress) -> Checked<()> {
    let ground = Ground::new(options, image.clone());
    let session = Session::open(&ground, &mut progress.clone()).map_err(|error| error.to_string())?;
    let state = database_state(session.db(), &NAMES)?;
    progress.find(&state, progress.synced).map(|_| ())
}
