//! Power loss, or the death of the process, at every mutating call of short scripts; recovery
//! interrupted in turn.
//!
//! The engine runs without threads on the simulated environment, so the n-th mutating call is the
//! same one in every run. For every n a run is made whose environment dies there. From what is
//! left, images are taken of what the next process may find. Each image must open, hold exactly the
//! commits up to some number that is not below the promised one, pass the engine's own
//! verification, take further writes, and survive the same treatment again.

pub mod asking;
pub mod fading;
pub mod generated;
pub mod progress;
pub mod script;
pub mod session;
pub mod sieve;
pub mod standing;
pub mod survey;
mod sweep;
mod window;
mod written;

use crate::Checked;
use crate::campaign::panic_text;
use crate::feed::LEAST_KEPT_BYTES;
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use crate::state::{State, database_state, difference, read_gets};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{ChangeRetention, Compression, Db, Options, WalMode};
use progress::Progress;
use script::{NAMES, Script, Step};
use session::{Ground, Session, checkpoint_path, run, with_mended_operators, with_operators};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use survey::survey;
pub(crate) use sweep::Sweep;
pub use written::{add, aftermath, damaged_lives, more_scripts, put, scripts, second_lives, sequences};

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Machine(CrashMode, u64),
    Process,
    /// The process, with everything that files may buffer until they are synced.
    ProcessAndBuffers,
}

impl Loss {
    pub(crate) fn image(self, env: &MemEnv) -> MemEnv {
        match self {
            Loss::Machine(mode, seed) => env.crash(&mode, seed),
            Loss::Process => env.kill(),
            Loss::ProcessAndBuffers => env.kill_losing_buffers(),
        }
    }

    fn is_machine(self) -> bool {
        matches!(self, Loss::Machine(..))
    }

    /// The least number of commits that must be there.
    pub(crate) fn least(self, progress: &Progress) -> usize {
        if self.is_machine() { progress.synced } else { progress.acknowledged }
    }

    pub(crate) fn random(random: &mut Random) -> Loss {
        match random.below(8) {
            0 => Loss::Process,
            1 => Loss::ProcessAndBuffers,
            2..=3 => Loss::Machine(CrashMode::FIXED[random.below(4)], 0),
            _ => Loss::Machine(CrashMode::Random, random.next()),
        }
    }
}

/// How many of a hundred deaths are in the middle of a call.
const INSIDE_PERCENT: usize = 40;

/// A number that says what the call has done in the middle of which something dies; none where it
/// dies between two calls.
pub(crate) fn some_inside(random: &mut Random) -> Option<u64> {
    random.percent(INSIDE_PERCENT).then(|| random.next())
}

/// Lets everything die after so many calls, or in the middle of the next one, as a number says.
pub(crate) fn die_after(env: &MemEnv, calls: u64, inside: Option<u64>) {
    match inside {
        Some(seed) => env.crash_inside(calls, seed),
        None => env.crash_after(calls),
    }
}

/// The files of the database that hold large values.
pub(crate) fn blob_files(env: &MemEnv) -> BTreeSet<PathBuf> {
    let is_one = |path: &PathBuf| {
        path.parent() == Some(Path::new(MEMORY_PATH)) && path.extension().is_some_and(|extension| extension == "blob")
    };
    env.files().into_iter().filter(is_one).collect()
}

/// The options that every script is run under.
pub fn option_variants() -> Vec<(&'static str, Options)> {
    let base = || {
        Options::default()
            .background_threads(0)
            .write_buffer_bytes(64 << 10)
            .block_bytes(256)
            .target_file_bytes(2 << 10)
            .wal_segment_bytes(8 << 10)
    };
    vec![
        ("mapped", base()),
        ("plain", base().wal_mode(WalMode::Plain).compression(Compression::None)),
        ("tiny", base().write_buffer_bytes(1).wal_segment_bytes(1).target_file_bytes(1)),
        ("large-values", base().min_blob_size(20)),
    ]
}

/// The options under which changes are kept, and the beginning of the names of the written scripts
/// that are about that.
const CHANGES: &str = "changes";

/// The options that the written scripts are run under: the usual ones, and some under which changes
/// are kept, and given up after a few writes.
pub fn written_variants() -> Vec<(&'static str, Options)> {
    let mut variants = option_variants();
    let (_, base) = variants[0].clone();
    let retention = ChangeRetention::Bytes(LEAST_KEPT_BYTES);
    variants.push((CHANGES, base.wal_segment_bytes(2 << 10).min_blob_size(400).keep_changes(retention)));
    variants
}

/// Whether a written script is run under those options: the ones about changes where these are
/// kept, all others elsewhere.
pub(crate) fn runs_under(script: &str, variant: &str) -> bool {
    script.starts_with(CHANGES) == (variant == CHANGES)
}

/// A number for a script, from its name alone: the same whatever other scripts run.
pub(crate) fn number_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// What was checked.
#[derive(Debug, Default)]
pub struct Totals {
    /// Moments at which something died.
    pub points: AtomicU64,
    /// Moments that were due.
    pub points_due: AtomicU64,
    /// Images of the disk after a power loss, opened and compared.
    pub power_images: AtomicU64,
    /// Images after the death of the process only.
    pub process_images: AtomicU64,
    /// Those of both kinds that were taken while recovering, or after recovering, from another
    /// image.
    pub nested_images: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} of {} points, {} power-loss images and {} process-death images (of these {} nested)",
            count(&self.points),
            count(&self.points_due),
            count(&self.power_images),
            count(&self.process_images),
            count(&self.nested_images)
        )
    }
}

/// A moment of a script: after that many mutating calls, or, without number, after every step.
#[derive(Clone, Debug)]
struct Point {
    script: usize,
    variant: usize,
    calls: Option<u64>,
}

/// A campaign of power losses.
#[derive(Clone, Debug)]
pub struct PowerLoss {
    /// Seed and time.
    pub settings: Settings,
    /// Random images per point, beside the four fixed ones and those of a killed process.
    pub seeds: usize,
    /// How often recovery is interrupted in turn.
    pub depth: usize,
    /// Interrupted recoveries per image and depth, in percent of one.
    pub nested_percent: usize,
    /// Only scripts whose name contains this.
    pub only: String,
    /// Points worked on at the same time.
    pub threads: usize,
}

impl PowerLoss {
    /// The usual figures.
    pub fn new(settings: Settings) -> PowerLoss {
        PowerLoss { settings, seeds: 8, depth: 2, nested_percent: 30, only: String::new(), threads: 2 }
    }

    /// Every mutating call of every written script.
    pub fn every_call(&self) -> Checked<Totals> {
        let scripts = self.chosen(scripts().into_iter().chain(more_scripts()).collect());
        let variants = written_variants();
        let mut sweep = Sweep::new();
        for (script, Script { name, steps }) in scripts.iter().enumerate() {
            let own = variants.iter().enumerate().filter(|(_, (variant, _))| runs_under(name, variant));
            for (variant, (variant_name, options)) in own {
                let env = MemEnv::new();
                let mut progress = Progress::default();
                run(steps, &Ground::new(options, env.clone()), &mut progress, &mut |_| {})
                    .map_err(|error| format!("script {name} fails by itself under {variant_name}: {error}"))?;
                let mut random = Random::derived(self.settings.seed, &[number_of(name), number_of(variant_name)]);
                // Behind the last call the script is over.
                sweep.add(env.mutations() + 1, &mut random, |calls| Point { script, variant, calls: Some(calls) });
            }
        }
        let points = sweep.shuffled(&mut Random::derived(self.settings.seed, &[0]));
        self.work(&scripts, &variants, &points)
    }

    /// All sequences of that many steps: after every step, and at as many random calls.
    pub fn every_sequence(&self, length: u32) -> Checked<Totals> {
        let scripts = self.chosen(sequences(length).collect());
        let variants: Vec<_> = option_variants().into_iter().take(2).collect();
        let mut points = Vec::new();
        for (script, Script { name, .. }) in scripts.iter().enumerate() {
            let mut random = Random::derived(self.settings.seed, &[u64::from(length), number_of(name)]);
            let variant = random.below(variants.len());
            points.push(Point { script, variant, calls: None });
            // A few dozen calls are the usual length of such a script; beyond the end nothing dies,
            // which is cheap.
            points.extend((0..2).map(|_| Point { script, variant, calls: Some(random.below(60) as u64) }));
        }
        // Shuffled, so that a run that ends early has still seen a bit of everything.
        Random::derived(self.settings.seed, &[0]).shuffle(&mut points);
        self.work(&scripts, &variants, &points)
    }

    fn chosen(&self, scripts: Vec<Script>) -> Vec<Script> {
        scripts.into_iter().filter(|script| script.name.contains(&self.only)).collect()
    }

    fn work(&self, scripts: &[Script], variants: &[(&str, Options)], points: &[Point]) -> Checked<Totals> {
        let totals = Totals::default();
        totals.points_due.store(points.len() as u64, Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(point) = points.get(number) else { return };
                if self.settings.enough(number as u64) || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    return;
                }
                let (name, variant) = (&scripts[point.script].name, variants[point.variant].0);
                let checked = catch_unwind(AssertUnwindSafe(|| {
                    self.check_point(&scripts[point.script], &variants[point.variant].1, point, &totals)
                }));
                let checked = checked.unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    let moment = point.calls.map_or("every step".to_string(), |calls| format!("{calls} calls"));
                    let steps = &scripts[point.script].steps;
                    failure.get_or_insert(format!(
                        "script {name}, options {variant}, after {moment}: {what}\nsteps: {steps:?}\nrepeat with: cargo \
                         run -p esker-check -- powerloss --seed {} --only {name} --seeds {}",
                        self.settings.seed, self.seeds
                    ));
                }
                totals.points.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(totals),
            Ok(Some(what)) => Err(format!("{what}\nchecked before: {totals}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    fn check_point(&self, script: &Script, options: &Options, point: &Point, totals: &Totals) -> Checked<()> {
        let steps = &script.steps;
        let mut random = Random::derived(
            self.settings.seed,
            &[number_of(&script.name), point.variant as u64, point.calls.map_or(u64::MAX, |calls| calls)],
        );
        let env = MemEnv::new();
        let ground = Ground::new(options, env.clone());
        let mut progress = Progress::default();
        let losses = self.losses(&mut random);
        let check = Examination { options, totals, nested_percent: self.nested_percent };
        let Some(calls) = point.calls else {
            // Images are taken while the session is open, as they would be found after a death
            // between two calls.
            let mut images = Vec::new();
            run(steps, &ground, &mut progress, &mut |progress| {
                images.extend(losses.iter().map(|&loss| (loss, loss.image(&env), progress.clone())));
            })
            .map_err(|error| format!("the script fails by itself: {error}"))?;
            for (loss, image, progress) in images {
                check.examine(&image, loss, &progress, &mut random, self.depth)?;
            }
            return Ok(());
        };
        env.crash_after(calls);
        if let Err(error) = run(steps, &ground, &mut progress, &mut |_| {})
            && !env.is_dead()
        {
            return Err(format!("the script fails by itself: {error}"));
        }
        for loss in losses {
            check.examine(&loss.image(&env), loss, &progress, &mut random, self.depth)?;
        }
        Ok(())
    }

    fn losses(&self, random: &mut Random) -> Vec<Loss> {
        let fixed = CrashMode::FIXED.iter().map(|&mode| Loss::Machine(mode, 0));
        let seeded = (0..self.seeds).map(|_| Loss::Machine(CrashMode::Random, random.next()));
        fixed.chain(seeded).chain([Loss::Process, Loss::ProcessAndBuffers]).collect()
    }
}

/// How images are examined.
pub(crate) struct Examination<'a> {
    pub(crate) options: &'a Options,
    pub(crate) totals: &'a Totals,
    pub(crate) nested_percent: usize,
}

impl Examination<'_> {
    pub(crate) fn examine(
        &self,
        image: &MemEnv,
        loss: Loss,
        progress: &Progress,
        random: &mut Random,
        depth: usize,
    ) -> Checked<()> {
        let counter = if loss.is_machine() { &self.totals.power_images } else { &self.totals.process_images };
        counter.fetch_add(1, Ordering::Relaxed);
        self.examine_one(image, loss, progress, random, depth).map_err(|what| format!("{loss:?}: {what}"))
    }

    fn examine_one(
        &self,
        image: &MemEnv,
        loss: Loss,
        progress: &Progress,
        random: &mut Random,
        depth: usize,
    ) -> Checked<()> {
        let env = image.kill();
        // Mostly as the last process did, and in one image of five as the first one, which in most
        // option sets kept none.
        let kept = progress.kept.filter(|_| !random.percent(20));
        let ground = Ground::new(self.options, env.clone()).keeping(kept);
        let mut before = progress.clone();
        let session =
            Session::open(&ground, &mut before).map_err(|error| format!("the image does not open: {error}"))?;
        let state = database_state(session.db(), &NAMES)?;
        let operands = with_operands(&env, self.options, before.now, &state)?;
        let found = before.find_all(session.db(), &operands, loss.least(&before))?;
        read_gets(session.db(), &NAMES, &state, &before.places())?.map_err(|error| format!("a get failed: {error}"))?;
        survey(session.db(), &state, &before.places())?.map_err(|error| format!("a read failed: {error}"))?;
        session.db().verify().map_err(|error| format!("verification failed: {error}"))?;
        follow(session.db(), &ground.options_at(before.now), &state)?;
        drop(session);
        check_operands(&env, self.options, &before, found.count)?;
        check_checkpoints(&env, self.options, progress)?;

        // Life goes on, and one more opening finds all of it.
        let steps = aftermath(random);
        let mut after = before.recovered(&found, state, loss.is_machine());
        let recovered = progress.behind_recovery(after.clone());
        (after.damaged, after.destroying) = (false, false);
        run(&steps, &ground, &mut after, &mut |_| {}).map_err(|error| format!("afterwards: {error}"))?;
        let session = Session::open(&ground, &mut after).map_err(|error| format!("the second opening: {error}"))?;
        let state = database_state(session.db(), &NAMES)?;
        after.find(&state, after.attempted()).map_err(|what| format!("after writing more: {what}"))?;
        drop(session);

        if depth == 0 || !random.percent(self.nested_percent) {
            return Ok(());
        }
        self.interrupt(image, &recovered, &steps, env.mutations(), random, depth)
    }

    /// Recovers and goes on again, but dies on the way.
    fn interrupt(
        &self,
        image: &MemEnv,
        recovered: &Progress,
        steps: &[Step],
        calls: u64,
        random: &mut Random,
        depth: usize,
    ) -> Checked<()> {
        let env = image.kill();
        // The squared choice prefers the calls of the recovery itself.
        let limit = random.below(calls as usize + 1);
        let after = env.mutations() + random.below(limit + 1) as u64;
        let (loss, inside) = (Loss::random(random), some_inside(random));
        die_after(&env, after, inside);
        let mut progress = recovered.clone();
        let ground = Ground::new(self.options, env.clone()).keeping(progress.kept);
        if let Err(error) = run(steps, &ground, &mut progress, &mut |_| {})
            && !env.is_dead()
        {
            return Err(format!("the second recovery fails by itself: {error}"));
        }
        self.totals.nested_images.fetch_add(1, Ordering::Relaxed);
        self.examine(&loss.image(&env), loss, &progress, random, depth - 1)
            .map_err(|what| format!("then recovered, dead after {after} calls (inside: {inside:?}): {what}"))
    }
}

/// A follower of a database that was just recovered holds what that holds, and has nothing to catch
/// up.
fn follow(db: &Db, options: &Options, state: &State) -> Checked<()> {
    let failed = |error: esker::Error| format!("a follower fails: {error}");
    let follower = Db::open_follower(db.path(), options.clone()).map_err(failed)?;
    for _ in 0..2 {
        let found = database_state(&with_operators(follower.db().clone()).map_err(failed)?, &NAMES)?;
        if let Some(what) = difference(state, &found) {
            return Err(format!("a follower is wrong: {what}"));
        }
        follower.catch_up().map_err(failed)?;
    }
    Ok(())
}

/// A checkpoint that was reported as made opens and holds what the database held then.
pub(crate) fn check_checkpoints(env: &MemEnv, options: &Options, progress: &Progress) -> Checked<()> {
    let check = |number: usize, differs: &dyn Fn(&State) -> Option<String>| {
        let on_env = Ground::new(options, env.clone()).options_at(progress.now);
        let db = Db::open(checkpoint_path(number), on_env)
            .and_then(with_operators)
            .map_err(|error| format!("checkpoint {number}: {error}"))?;
        match differs(&database_state(&db, &NAMES)?) {
            Some(what) => Err(format!("checkpoint {number}: {what}")),
            None => Ok(()),
        }
    };
    for &(number, count) in &progress.checkpoints {
        check(number, &|found| progress.differs_after(count, found))?;
    }
    // The commits that led to these are not known any more.
    for (number, expected) in &progress.former_checkpoints {
        check(*number, &|found| progress.differs(expected, found))?;
    }
    Ok(())
}

/// A copy of a database in which an operator of the same name that does not fail combines operands.
fn mended_copy(env: &MemEnv, options: &Options, now: u64) -> Checked<Db> {
    let ground = Ground::new(options, env.kill());
    let opened = Db::open(MEMORY_PATH, ground.options_at(now)).and_then(with_mended_operators);
    opened.map_err(|error| format!("with an operator that does not fail: {error}"))
}

/// What was found, with the operands that cannot be combined: keys that only fail do not tell which
/// commits are there otherwise.
pub(crate) fn with_operands(env: &MemEnv, options: &Options, now: u64, found: &State) -> Checked<State> {
    if !found.values().any(|held| held.fails) {
        return Ok(found.clone());
    }
    let mended = database_state(&mended_copy(env, options, now)?, &NAMES)?;
    Ok(fading::with_operands(found, &mended))
}

/// Where operands cannot be combined, "the operands are kept": in a copy, another operator combines
/// them, before and after a compaction.
fn check_operands(env: &MemEnv, options: &Options, progress: &Progress, count: usize) -> Checked<()> {
    let failing = progress.states[count].iter().filter(|(_, held)| held.fails);
    let failing: State = failing.map(|(place, held)| (place.clone(), held.clone())).collect();
    if failing.is_empty() {
        return Ok(());
    }
    let db = mended_copy(env, options, progress.now)?;
    let mended = fading::mended(&failing);
    for _ in 0..2 {
        let mut found = database_state(&db, &NAMES)?;
        found.retain(|place, _| mended.contains_key(place));
        if let Some(what) = difference(&mended, &found) {
            return Err(format!("with an operator that does not fail: {what}"));
        }
        db.compact().map_err(|error| format!("with an operator that does not fail: {error}"))?;
    }
    Ok(())
}
