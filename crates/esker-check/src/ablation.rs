//! Leaves out one sync at a time and looks whether the power-loss check notices.
//!
//! A sync whose absence nothing notices is either superfluous, or the scripts never need it: both
//! are worth knowing. This is also the proof that the power-loss check can see. The report is by
//! the place in the engine that syncs, since each needs a proof or a reason of its own.

use crate::Checked;
use crate::campaign::panic_text;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Script, Step};
use crate::powerloss::session::{Ground, Session, checkpoint_path, run};
use crate::powerloss::{damaged_lives, more_scripts, runs_under, scripts, second_lives, written_variants};
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use crate::state::database_state;
use crate::sync_sites::{Heard, Site, SiteEnv};
use esker::env::Env;
use esker::env::fault::{Action, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Options};
use std::collections::BTreeMap;
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

/// Counts by the place that syncs, and by its caller.
pub type Report = BTreeMap<(String, String), Count>;

/// What a script runs on: options, what is on the disk, and what is known about that.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Script, options, and what came before.
    pub name: String,
    steps: Vec<Step>,
    options: Options,
    start: MemEnv,
    progress: Progress,
}

/// Leaves out every sync of every script whose name contains `only`, as far as the time allows:
/// first one of every place, then another of each, and so on.
pub fn run_all(settings: Settings, only: &str) -> Checked<Report> {
    let scenes = scenes(only)?;
    let mut report = Report::new();
    for (scene, heard) in trials(&scenes, settings.seed)? {
        if settings.over() {
            break;
        }
        let count = report.entry((heard.site.at.clone(), heard.site.by.clone())).or_default();
        count.left_out += 1;
        count.noticed += u64::from(scene.notices(&heard)?);
    }
    Ok(report)
}

/// Every sync of these scenes: some one of every place, then another of each, and so on.
pub fn trials(scenes: &[Scene], seed: u64) -> Checked<Vec<(&Scene, Heard)>> {
    let mut found: Vec<(&Scene, Heard)> = Vec::new();
    for scene in scenes {
        found.extend(scene.syncs()?.into_iter().map(|heard| (scene, heard)));
    }
    Random::derived(seed, &[0]).shuffle(&mut found);
    let mut ranks: BTreeMap<Site, usize> = BTreeMap::new();
    let mut trials = Vec::new();
    for (scene, heard) in found {
        let rank = ranks.entry(heard.site.clone()).or_default();
        trials.push((*rank, scene, heard));
        *rank += 1;
    }
    trials.sort_by_key(|(rank, ..)| *rank);
    Ok(trials.into_iter().map(|(_, scene, heard)| (scene, heard)).collect())
}

/// Whether leaving out a sync of this place is noticed: that one in that scene, or, if the calls
/// are other ones by now, one in a scene like it.
pub fn is_proved(at: &str, by: &str, (name, nth): (&str, u64)) -> Checked<bool> {
    let group = name.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    for only in [name, &group] {
        for scene in scenes(only)? {
            let mut syncs = scene.syncs()?;
            syncs.retain(|heard| heard.site.at == at && heard.site.by == by);
            syncs.sort_by_key(|heard| heard.nth != nth);
            for heard in &syncs {
                if scene.notices(heard)? {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// The scenes whose name contains `only`.
pub fn scenes(only: &str) -> Checked<Vec<Scene>> {
    let mut found = Vec::new();
    for (variant, options) in written_variants() {
        let all = scripts().into_iter().chain(more_scripts());
        for Script { name, steps } in all.filter(|script| runs_under(&script.name, variant)) {
            let name = format!("{name}/{variant}");
            if name.contains(only) {
                let (start, progress) = (MemEnv::new(), Progress::default());
                found.push(Scene { name, steps, options: options.clone(), start, progress });
            }
        }
        for (name, first, second) in second_lives().into_iter().filter(|(name, ..)| runs_under(name, variant)) {
            let name = format!("{name}/{variant}");
            if name.contains(only) || only.starts_with(&name) {
                second_scenes((&name, only), &first, &second, &options, &mut found)?;
            }
        }
        let name = format!("damaged-then-repair/{variant}");
        if name.contains(only) && runs_under(&name, variant) {
            damaged_scenes(&name, &options, &mut found)?;
        }
    }
    Ok(found)
}

/// The second steps after the first ones were cut short at each of their calls: by the death of the
/// process, and by a power loss.
fn second_scenes(
    (name, only): (&str, &str),
    first: &[Step],
    second: &[Step],
    options: &Options,
    found: &mut Vec<Scene>,
) -> Checked<()> {
    let fresh = Scene {
        name: name.to_string(),
        steps: first.to_vec(),
        options: options.clone(),
        start: MemEnv::new(),
        progress: Progress::default(),
    };
    for calls in 0.. {
        let cut = Cut::after(&fresh, calls, None);
        if cut.is_over {
            break;
        }
        for (loss, start) in [("killed", cut.memory.kill()), ("off", cut.memory.crash(&CrashMode::Random, calls))] {
            let name = format!("{name}/{loss} after {calls}");
            if !name.contains(only) {
                continue;
            }
            let ground = Ground::new(options, start.kill());
            let mut before = cut.progress.clone();
            let opened = Session::open(&ground, &mut before).map_err(|error| format!("{name}: {error}"))?;
            let state = database_state(opened.db(), &NAMES)?;
            let least = if loss == "off" { before.synced } else { before.acknowledged };
            let recovered = before.find_all(opened.db(), &state, least).map_err(|what| format!("{name}: {what}"))?;
            drop(opened);
            let progress = cut.progress.recovered(&recovered, state, loss == "off");
            let scene = Scene { name, steps: second.to_vec(), options: options.clone(), start, progress };
            // A copy that was completed cannot be made again.
            if Cut::after(&scene, u64::MAX, None).is_over {
                found.push(scene);
            }
        }
    }
    Ok(())
}

/// Repairs of a database that has lost the name of its manifest, with a flipped bit in one of its
/// files. What the repair makes of it, it must also make after any number of attempts that were cut
/// short.
fn damaged_scenes(name: &str, options: &Options, found: &mut Vec<Scene>) -> Checked<()> {
    let (start, progress) = (MemEnv::new(), Progress::default());
    let (first, second) = damaged_lives();
    let fresh = Scene { name: name.to_string(), steps: first, options: options.clone(), start, progress };
    let cut = Cut::after(&fresh, u64::MAX, None);
    for (number, path) in cut.memory.files().iter().enumerate() {
        let length = cut.memory.file_bytes(path).unwrap_or_default().len() as u64;
        for (place, lost) in [(length / 3, true), (length / 2, false)] {
            let start = cut.memory.crash(&CrashMode::KeepAll, 0);
            start.flip_bit(path, place, 0);
            let ground = Ground::new(options, start.kill());
            let mut progress = cut.progress.clone();
            progress.damaged = true;
            if lost {
                start.remove(&Path::new(MEMORY_PATH).join("CURRENT")).map_err(|error| error.to_string())?;
            }
            let start = start.crash(&CrashMode::KeepAll, 0);
            // Some damage is beyond what a repair does.
            let Ok(session) = Session::open(&ground, &mut progress) else { continue };
            let Ok(state) = database_state(session.db(), &NAMES) else { continue };
            let mut progress = cut.progress.recovered(&cut.progress.supposed(0), state, true);
            progress.damaged = true;
            let name = format!("{name}/file {number} at {place}");
            let (steps, options) = (second.clone(), options.clone());
            found.push(Scene { name, steps, options, start, progress });
        }
    }
    Ok(())
}

/// So many calls after the sync that is left out, more losses are tried than later: what it orders
/// is mostly what comes next.
const SOON: u64 = 16;

/// What a power loss can leave of what was not synced.
fn losses(calls_since: u64) -> impl Iterator<Item = (CrashMode, u64)> {
    let random = (0..if calls_since < SOON { 64 } else { 3 }).map(|seed| (CrashMode::Random, seed));
    [(CrashMode::LoseAll, 0), (CrashMode::OnlyMetadata, 0), (CrashMode::KeepAll, 0), (CrashMode::OnlyData, 0)]
        .into_iter()
        .chain(random)
}

impl Scene {
    /// Every sync of the script as it is.
    pub fn syncs(&self) -> Checked<Vec<Heard>> {
        let env = SiteEnv::new(self.start.kill());
        run(&self.steps, &Ground::new(&self.options, env.clone()), &mut self.progress.clone(), &mut |_| {})
            .map_err(|error| format!("script {} fails by itself: {error}", self.name))?;
        Ok(env.heard())
    }

    /// Whether some power loss shows that this sync was left out.
    ///
    /// # Errors
    /// What is wrong with the sync too: a mistake of the engine, or of this check.
    pub fn notices(&self, heard: &Heard) -> Checked<bool> {
        let rule = Rule::new(heard.class, heard.nth, Action::Ignore);
        for since in 0.. {
            let calls = heard.calls + since;
            let cut = Cut::after(self, calls, Some(rule.clone()));
            // One call more: the sync itself.
            let whole = Cut::after(self, calls + 1, None);
            for (mode, seed) in losses(since) {
                let seed = seed + 64 * calls;
                let outcome = |cut: &Cut, check: Check| cut.examine(check, &self.options, &mode, seed);
                if outcome(&cut, reopened).is_err() {
                    let what = |error| format!("{}, {mode:?} {seed} after {calls} calls: {error}", self.name);
                    return outcome(&whole, reopened).map_err(what).map(|()| true);
                }
                // What even the whole engine does not always bring back here says nothing.
                let is_sound = |check: Check| {
                    let right = |(mode, seed)| whole.examine(check, &self.options, &mode, seed + 64 * calls).is_ok();
                    losses(since).all(right)
                };
                let is_worse = |check: Check| outcome(&cut, check).is_err() && is_sound(check);
                let is_fixed = mode == CrashMode::LoseAll;
                if is_worse(repaired) || is_worse(kept) || is_worse(copied) || (is_fixed && is_worse(rotted)) {
                    return Ok(true);
                }
            }
            if cut.is_over {
                break;
            }
        }
        Ok(false)
    }
}

/// An image, what was there when the power went, and what was promised.
type Check = fn(&MemEnv, &Cut, &Options) -> Checked<()>;

/// A script that was cut off at a call.
struct Cut {
    memory: MemEnv,
    progress: Progress,
    is_over: bool,
}

impl Cut {
    fn after(scene: &Scene, calls: u64, rule: Option<Rule>) -> Cut {
        let memory = scene.start.kill();
        memory.crash_after(calls);
        let faulty = FaultEnv::new(Arc::new(memory.clone()));
        rule.into_iter().for_each(|rule| faulty.add(rule));
        let mut progress = scene.progress.clone();
        let ground = Ground::new(&scene.options, faulty);
        let is_over = run(&scene.steps, &ground, &mut progress, &mut |_| {}).is_ok();
        Cut { memory, progress, is_over }
    }

    fn examine(&self, check: Check, options: &Options, mode: &CrashMode, seed: u64) -> Checked<()> {
        let check = AssertUnwindSafe(|| check(&self.memory.crash(mode, seed), self, options));
        catch_unwind(check).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))))
    }
}

/// The image as the next open finds it, and its checkpoints.
fn reopened(image: &MemEnv, cut: &Cut, options: &Options) -> Checked<()> {
    check(image, options, &cut.progress)?;
    crate::powerloss::check_checkpoints(image, options, &cut.progress)
}

/// The same without any manifest: what a repair makes of tables and log alone.
fn repaired(image: &MemEnv, cut: &Cut, options: &Options) -> Checked<()> {
    let is_pointer = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        path.parent() == Some(Path::new(MEMORY_PATH)) && (name == "CURRENT" || name.starts_with("MANIFEST-"))
    };
    for path in image.files().iter().filter(|path| is_pointer(path)) {
        image.remove(path).map_err(|error| error.to_string())?;
    }
    let mut progress = cut.progress.clone();
    progress.damaged = true;
    check(image, options, &progress)
}

/// What was in the directory `lost` is still there, or where it came from.
fn kept(image: &MemEnv, cut: &Cut, _: &Options) -> Checked<()> {
    let lost = Path::new(MEMORY_PATH).join("lost");
    for path in cut.memory.files().iter().filter(|path| path.starts_with(&lost)) {
        let name = path.file_name().unwrap_or_default();
        let bytes = cut.memory.file_bytes(path);
        let places = [path.clone(), Path::new(MEMORY_PATH).join(name)];
        if !places.iter().any(|place| image.file_bytes(place) == bytes) {
            return Err(format!("{} is gone", path.display()));
        }
    }
    Ok(())
}

/// A copy that was begun is made anew by the next attempt, and before that a repair does not take
/// it for a database; one that was completed can be repaired.
fn copied(image: &MemEnv, cut: &Cut, options: &Options) -> Checked<()> {
    let progress = &cut.progress;
    for number in 1..=3 {
        let path = checkpoint_path(number);
        let current = Path::new(&path).join("CURRENT");
        let names = image.list(Path::new(&path)).unwrap_or_default();
        let reported = progress.checkpoints.iter().find(|(other, _)| *other == number);
        if names.is_empty() {
            continue;
        }
        let copy = image.kill();
        if reported.is_some() {
            copy.remove(&current).map_err(|error| error.to_string())?;
        }
        let ground = Ground::new(options, copy);
        match (Db::repair(&path, ground.options_at(progress.now)), reported) {
            (Err(error), Some(_)) => return Err(error.to_string()),
            (Err(_), None) => {}
            (Ok(_), _) => {
                let db = Db::open(&path, ground.options_at(progress.now)).map_err(|error| error.to_string())?;
                let state = database_state(&db, &NAMES)?;
                progress.find(&state, reported.map_or(progress.synced, |(_, count)| *count))?;
            }
        }
        if reported.is_none() && !names.iter().any(|name| name == "CURRENT") {
            let ground = Ground::new(options, image.kill());
            let session = Session::open(&ground, &mut progress.clone()).map_err(|error| error.to_string())?;
            session.db().checkpoint(&path).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The end of the log goes later, the mark of a close with it: that is noticed where the manifest
/// vouches for what was there.
fn rotted(image: &MemEnv, cut: &Cut, options: &Options) -> Checked<()> {
    for path in image.files().iter().filter(|path| path.extension().is_some_and(|end| end == "wal")) {
        let bytes = image.file_bytes(path).unwrap_or_default();
        let Some(last) = bytes.iter().rposition(|&byte| byte != 0) else { continue };
        for place in [24, 96].into_iter().filter_map(|back| last.checked_sub(back)) {
            let rotten = image.kill();
            rotten.misdirect(path, place as u64, &vec![0; last + 1 - place]);
            let ground = Ground::new(options, rotten);
            if let Ok(session) = Session::open(&ground, &mut cut.progress.clone()) {
                cut.progress.find(&database_state(session.db(), &NAMES)?, cut.progress.listed)?;
            }
        }
    }
    Ok(())
}

/// What a power loss has left of the contents, and of names, settings and changes. What a repair
/// makes of those without a manifest is not known.
fn check(image: &MemEnv, options: &Options, progress: &Progress) -> Checked<()> {
    let ground = Ground::new(options, image.clone());
    let mut before = progress.clone();
    let session = Session::open(&ground, &mut before).map_err(|error| error.to_string())?;
    let state = database_state(session.db(), &NAMES)?;
    if before.feed_is_known {
        before.find_all(session.db(), &state, before.synced).map(drop)
    } else {
        before.find(&state, before.synced).map(drop)
    }
}
