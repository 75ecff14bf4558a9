//! Random scripts over the whole interface, with power or process lost at random calls of them,
//! also inside a store.

mod cases;
mod found;
mod harm;
mod leftovers;

use crate::Checked;
use crate::campaign::panic_text;
use crate::faults::{self, Course};
use crate::feed::{ALL_BYTES, KEPT_TIME, LEAST_KEPT_BYTES};
use crate::operators::silence_panics_on_purpose;
use crate::powerloss::generated::{Limits, generated, simpler};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{Script, Step};
use crate::powerloss::{Examination, Totals, blob_files, option_variants, some_inside};
use crate::random::Random;
use crate::settings::Settings;
use crate::shrink::{shrink, simplify};
use cases::Cases;
use esker::env::mem::MemEnv;
use esker::{ChangeRetention, Compression, Options, ReadMode};
use harm::{Death, Harm, How, Nested, of_one_death};
use leftovers::undisturbed;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Failing calls of each run, beside a full disk.
const FAILING_CALLS: usize = 2;

/// Recoveries that die in turn, in percent of the images.
const NESTED_PERCENT: usize = 30;

/// How many background threads there are at most in the runs that have some.
const MOST_THREADS: usize = 3;

/// The stream of a seed that says how many: scripts of kept seeds are what they were.
const THREADS: u64 = 7;

/// The options under which the scripts run: those of the written ones, and others.
fn variants() -> Vec<(&'static str, Options)> {
    let mut variants = option_variants();
    let (_, base) = variants[0].clone();
    variants.extend([
        ("uncached", base.clone().read_mode(ReadMode::Pread).block_cache_bytes(0).filter_bits_per_key(0)),
        ("at-rest", base.clone().min_blob_size(60).compression(Compression::Lz4).upper_compression(Compression::Lz4)),
        ("small-buffer", base.clone().write_buffer_bytes(2 << 10)),
        // Each run draws how many threads it has.
        ("background", base.clone().write_buffer_bytes(2 << 10).background_threads(1)),
        ("changes", base.clone().keep_changes(ChangeRetention::Bytes(ALL_BYTES))),
        (
            "changes-given-up",
            base.clone()
                .wal_segment_bytes(2 << 10)
                .min_blob_size(60)
                .keep_changes(ChangeRetention::Bytes(LEAST_KEPT_BYTES)),
        ),
        ("changes-by-time", base.clone().wal_segment_bytes(2 << 10).keep_changes(ChangeRetention::Time(KEPT_TIME))),
        // The least that is taken.
        ("little-memory", base.clone().memory_budget_bytes(1 << 20)),
        // As by default, space is held back for opens on a full disk.
        ("held-back", base.clone().wal_segment_bytes(512 << 10)),
    ]);
    if Compression::Zstd.is_available() {
        let zstd = base.min_blob_size(60).write_buffer_bytes(2 << 10).compression(Compression::Zstd);
        variants.push(("zstd", zstd.upper_compression(Compression::Zstd)));
    }
    variants
}

/// A campaign of random scripts.
#[derive(Clone, Debug)]
pub struct Crashes {
    /// Seed and time.
    pub settings: Settings,
    /// The first run.
    pub first_run: u64,
    /// The most runs.
    pub runs: u64,
    /// Moments of each run at which something dies.
    pub points: usize,
    /// What the scripts may do.
    pub limits: Limits,
    /// Only under options whose name contains this.
    pub only: String,
    /// Runs at the same time.
    pub threads: usize,
}

/// A step in words, a long one cut.
fn line(step: &Step) -> String {
    let words = format!("  {step:?}");
    // All of it is ASCII, as bytes are shown as numbers.
    words.get(..600).map_or(words.clone(), |beginning| format!("{beginning}..."))
}

/// What was checked.
#[derive(Debug, Default)]
pub struct Done {
    /// Runs, each from a seed of its own.
    pub runs: AtomicU64,
    /// Operations that the model made.
    pub operations: AtomicU64,
    /// Moments and images.
    pub totals: Totals,
    /// Runs with a failing call.
    pub faults: faults::Totals,
    cases: Cases,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(f, "{} seeds, {} model operations, {}", count(&self.runs), count(&self.operations), self.totals)?;
        write!(f, "; a failing call in {} runs, {} hit; ", count(&self.faults.runs), count(&self.faults.hit))?;
        write!(f, "{}", self.cases)
    }
}

impl Crashes {
    /// The usual figures.
    pub fn new(settings: Settings) -> Crashes {
        Crashes {
            settings,
            first_run: 0,
            runs: u64::MAX,
            points: 6,
            limits: Limits { altered_repair: true, ..Limits::USUAL },
            only: String::new(),
            threads: 2,
        }
    }

    /// Runs it; the error holds the command that repeats the failure and the shortest script that
    /// was found.
    pub fn run(&self) -> Checked<Done> {
        let variants: Vec<_> = variants().into_iter().filter(|(name, _)| name.contains(&self.only)).collect();
        if variants.is_empty() {
            return Err(format!("no options are called {:?}", self.only));
        }
        silence_panics_on_purpose();
        let done = Done::default();
        let next = AtomicU64::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let stopped =
                    failure.lock().is_ok_and(|failure: std::sync::MutexGuard<'_, Option<String>>| failure.is_some());
                if number >= self.runs || self.settings.enough(number) || stopped {
                    return;
                }
                let checked = self.one_run(self.first_run + number, &variants, &done);
                done.runs.fetch_add(1, Ordering::Relaxed);
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    failure.get_or_insert(what);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(done),
            Ok(Some(what)) => Err(format!("{what}\nchecked before: {done}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    fn one_run(&self, number: u64, variants: &[(&str, Options)], done: &Done) -> Checked<()> {
        let seed = Random::derived(self.settings.seed, &[number]).next();
        let (name, options) = &variants[(number % variants.len() as u64) as usize];
        let threaded = *name == "background";
        let threads = if threaded { Random::derived(seed, &[THREADS]).between(1, MOST_THREADS) } else { 0 };
        let options = &options.clone().background_threads(threads);
        let unlogged = self.limits.unlogged && seed.is_multiple_of(2);
        // What threads take, or give up of changes, is not there from one look to the next.
        let (fading, retentions) = (self.limits.fading && !threaded, self.limits.retentions && !threaded);
        let limits = Limits { unlogged, fading, retentions, ..self.limits };
        let Script { steps, .. } = generated(seed, limits);
        done.cases.note(&steps, threads);
        let course = Course { steps: &steps, options, threaded };
        let Err(failure) = self.check(course, seed, done) else { return Ok(()) };
        let Failure { what, harm } = *failure;
        let (harm, nested_percent) = again(course, harm);
        let shortest = shortest(course, harm, budget(harm), repeated(nested_percent));
        Err(format!(
            "run {number}, options {name}, {threads} background threads: {what}\nrepeat with: cargo run -p esker-check \
             -- crashes --seed {} --first-run {number} --runs 1 --points {} --only {:?}{}\n{}",
            self.settings.seed,
            self.points,
            self.only,
            if self.limits.repair { "" } else { " --without repair" },
            shortest.told(steps.len(), nested_percent)
        ))
    }

    /// The script undisturbed, then with deaths, then with failures.
    fn check(&self, course: Course<'_>, seed: u64, done: &Done) -> Result<(), Box<Failure>> {
        let mut random = Random::derived(seed, &[1]);
        let undisturbed = Harm::new(How::Undisturbed, &mut random);
        let moments = guarded(undisturbed, || Moments::of(course, done))?;
        let calls = moments.calls;
        let every = calls <= self.points as u64;
        let points = if every { calls + 1 } else { self.points as u64 };
        for number in 0..points {
            let calls = if every { number } else { moments.one(&mut random) };
            self.check_point(course, calls, &mut random, done)?;
            done.totals.points.fetch_add(1, Ordering::Relaxed);
        }
        done.totals.points_due.fetch_add(points, Ordering::Relaxed);
        for failing in guarded(undisturbed, || course.some(FAILING_CALLS, &mut random))? {
            let harm = Harm::new(How::Failing(failing), &mut random);
            let hit = guarded(harm, || harm.check(course, NESTED_PERCENT, &done.totals))?;
            done.faults.runs.fetch_add(1, Ordering::Relaxed);
            done.faults.hit.fetch_add(u64::from(hit), Ordering::Relaxed);
        }
        Ok(())
    }

    /// One death, and everything that may be found after it.
    fn check_point(
        &self,
        course: Course<'_>,
        calls: u64,
        random: &mut Random,
        done: &Done,
    ) -> Result<(), Box<Failure>> {
        let mapped = random.percent(50);
        let death = Death { calls, inside: some_inside(random), mapped };
        let harms = of_one_death(death, random);
        let (env, progress) = guarded(harms[0], || death.run(course))?;
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        let check = Examination { options: course.options, totals: &done.totals, nested_percent: NESTED_PERCENT };
        for harm in harms {
            guarded(harm, || {
                let checked = harm.examine((&env, &progress), course, &check);
                checked.map_err(|what| format!("after {calls} calls: {what}"))
            })?;
        }
        Ok(())
    }
}

/// The moments of a script at which something can die.
struct Moments {
    /// Its calls.
    calls: u64,
    /// The calls that had been made when a step had just promised that more is durable.
    promises: Vec<u64>,
    /// The calls of each step that has collected large values.
    collections: Vec<Range<u64>>,
}

/// So many moments in a hundred lie within collections of large values, where there are some.
const COLLECTIONS_PERCENT: usize = 20;

impl Moments {
    /// Those of a run that nothing disturbs.
    fn of(course: Course<'_>, done: &Done) -> Checked<Moments> {
        let env = MemEnv::new();
        let mut progress = Progress::default();
        let (mut promised, mut promises) = (0, Vec::new());
        let (mut begun, mut blobs, mut collections) = (0, BTreeSet::new(), Vec::new());
        undisturbed(course, &env, &mut progress, &mut |step, progress| {
            if progress.synced > promised {
                promises.push(env.mutations());
            }
            promised = progress.synced;
            // Where a database is opened, or a keyspace dropped, nothing is copied.
            let may_collect = step.is_some_and(|step| !step.opens() && !matches!(step, Step::DropKeyspace(_)));
            let (calls, left) = (env.mutations(), blob_files(&env));
            if may_collect && !blobs.is_subset(&left) {
                collections.push(begun..calls);
            }
            (begun, blobs) = (calls, left);
        })?;
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        Ok(Moments { calls: env.mutations(), promises, collections })
    }

    /// One of them. Few of all calls collect large values, so that some are chosen for that. Of the
    /// others a third are those behind a promise: one that is not kept shows until something else
    /// makes the same things durable, which often is the next step.
    fn one(&self, random: &mut Random) -> u64 {
        if !self.collections.is_empty() && random.percent(COLLECTIONS_PERCENT) {
            let calls = &self.collections[random.below(self.collections.len())];
            return calls.start + random.below((calls.end - calls.start) as usize) as u64;
        }
        if !self.promises.is_empty() && random.percent(33) {
            return self.promises[random.below(self.promises.len())];
        }
        random.below(self.calls as usize) as u64
    }
}

/// A check that failed, and the harm that it failed with.
struct Failure {
    what: String,
    harm: Harm,
}

/// The check; a panic is a failure too.
fn guarded<T>(harm: Harm, check: impl FnOnce() -> Checked<T>) -> Result<T, Box<Failure>> {
    let checked = catch_unwind(AssertUnwindSafe(check));
    let checked = checked.unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
    checked.map_err(|what| Box::new(Failure { what, harm }))
}

/// The check of shorter scripts, with recoveries that die in turn this often where the harm names
/// none.
fn repeated(nested_percent: usize) -> impl Fn(Course<'_>, Harm) -> Checked<()> {
    move |course: Course<'_>, harm: Harm| harm.check(course, nested_percent, &Totals::default()).map(|_| ())
}

/// With what the same check fails again: the harm, and how often recoveries that it does not name
/// die in turn. Those are many: they are left out unless the failure needs them.
fn again(course: Course<'_>, harm: Harm) -> (Harm, usize) {
    match named(course, harm, repeated(0)) {
        Some(harm) => (harm, 0),
        None => (harm, NESTED_PERCENT),
    }
}

/// The harm with as few as possible of the cut recoveries that its seed says, by name; none if the
/// check passes with all of them.
fn named(course: Course<'_>, harm: Harm, check: impl Fn(Course<'_>, Harm) -> Checked<()>) -> Option<Harm> {
    let mut cuts = Vec::new();
    // Those before a failure, or a panic, are noted all the same.
    _ = guarded(harm, || harm.draw(course, NESTED_PERCENT, &mut cuts));
    let mut harms = (0..=cuts.len()).map(|count| Harm { nested: Nested::of(&cuts[..count]), ..harm });
    harms.find(|&harm| guarded(harm, || check(course, harm)).is_err())
}

/// How long each of the two ways to a shorter script may take. Every cut multiplies the moments
/// that a script is tried at.
fn budget(harm: Harm) -> Duration {
    Duration::from_secs(if harm.depth() > 0 { 90 } else { 30 })
}

/// The shortest script found, and what is needed to see it fail.
struct Shortest {
    steps: Vec<Step>,
    harm: Harm,
    /// What the last failure said.
    words: String,
}

impl Shortest {
    /// In words, with all that `Harm::check` takes to fail again: the steps, the harm with its
    /// moments and its seed, and how many percent of the other recoveries die.
    fn told(&self, whole: usize, nested_percent: usize) -> String {
        let lines: Vec<String> = self.steps.iter().map(line).collect();
        format!(
            "shortest script found ({} of {whole} steps; {}):\n{}\nwith {:?}, and {nested_percent} % of the recoveries \
             dying where it names none",
            self.steps.len(),
            self.words,
            lines.join("\n"),
            self.harm
        )
    }
}

/// The shortest script found that fails with the same harm, at whatever moments.
fn shortest(
    course: Course<'_>,
    harm: Harm,
    budget: Duration,
    check: impl Fn(Course<'_>, Harm) -> Checked<()>,
) -> Shortest {
    // The harm to the last script that failed: most likely the next one fails at the like moments.
    let last = Cell::new(harm);
    let words = RefCell::new("passes when repeated".to_string());
    let fails = |steps: &[Step]| {
        let course = Course { steps, ..course };
        let once = |harm: Harm| guarded(harm, || check(course, harm)).err().map(|failure| *failure);
        let others = guarded(last.get(), || Ok(last.get().elsewhere(course))).unwrap_or_default();
        let Some(Failure { what, harm }) = others.into_iter().find_map(once) else {
            return false;
        };
        last.set(harm);
        words.replace(what);
        true
    };
    // If no shorter one fails, the words are those of the whole.
    fails(course.steps);
    let shorter = shrink(course.steps, budget, fails);
    let steps = simplify(&shorter, budget, simpler, fails);
    Shortest { steps, harm: last.get(), words: words.into_inner() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Ttl;
    use crate::powerloss::session::{Ground, observed, run};
    use crate::powerloss::{Loss, put};
    use crate::state::Durability;
    use found::Found;
    use harm::Cut;

    /// The planted mistake: a batch is lost by a process that dies in one of its calls. Six random
    /// moments of a shorter script seldom meet one.
    fn misses_the_batch(course: Course<'_>, harm: Harm) -> Checked<()> {
        let How::Death(death, _) = harm.how else { return Ok(()) };
        let (_, progress) = death.run(course)?;
        let place = (0, b"planted".to_vec());
        let [before, after] = [&progress.states[progress.acknowledged], progress.newest()];
        if after.contains_key(&place) && !before.contains_key(&place) { Err("missed".to_string()) } else { Ok(()) }
    }

    #[test]
    fn a_failure_of_few_moments_shrinks_to_the_step_it_needs() {
        let (_, options) = &variants()[0];
        for seed in 0..4 {
            let limits = Limits { repair: false, ..Limits::USUAL };
            let mut steps = generated(seed, limits).steps;
            steps.insert(steps.len() / 2, Step::Batch(vec![put("planted", "1"), put("more", "2")], Durability::Sync));
            let course = Course { steps: &steps, options, threaded: false };
            let at = |calls| {
                let how = How::Death(Death { calls, inside: None, mapped: false }, Found::Lost(Loss::Process));
                Harm { how, nested: None, seed: 0 }
            };
            let harm = (0..).map(at).find(|&harm| misses_the_batch(course, harm).is_err()).unwrap();
            let Shortest { steps, words, .. } = shortest(course, harm, Duration::MAX, misses_the_batch);
            assert_eq!(words, "missed");
            assert_eq!(steps, [Step::Batch(vec![put("planted", "")], Durability::Sync)], "seed {seed}");
        }
    }

    /// The planted mistake: as above, and the process that recovers, or the one after that, dies in
    /// a commit of its own. No seed says at which moments, and nothing fails without them.
    fn misses_in_a_later_life(course: Course<'_>, harm: Harm) -> Checked<()> {
        if harm.nested.is_none() || misses_the_batch(course, harm).is_ok() {
            return Ok(());
        }
        let Some(remains) = harm.remains(course)? else { return Ok(()) };
        let progress = &remains.progress;
        if progress.attempted() > progress.acknowledged { Err("missed later".to_string()) } else { Ok(()) }
    }

    /// The scripts of the campaign that have these numbers.
    fn scripts(seeds: Range<u64>) -> impl Iterator<Item = (u64, Vec<Step>)> {
        let Crashes { limits, .. } = Crashes::new(Settings::new(0, Duration::ZERO));
        seeds.map(move |seed| {
            let limits = Limits { unlogged: seed.is_multiple_of(2), ..limits };
            (seed, generated(seed, limits).steps)
        })
    }

    /// How often scripts collect large values under these options, and how many of so many moments
    /// a script, chosen as the campaign does, lie within that.
    fn collections(options: &Options, points: usize) -> (usize, usize) {
        let (mut all, mut within) = (0, 0);
        for (seed, steps) in scripts(0..100) {
            let course = Course { steps: &steps, options, threaded: false };
            let moments = Moments::of(course, &Done::default()).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            let random = &mut Random::derived(seed, &[1]);
            let is_within = |calls: u64| moments.collections.iter().any(|range| range.contains(&calls));
            all += moments.collections.len();
            within += (0..points).filter(|_| is_within(moments.one(random))).count();
        }
        (all, within)
    }

    /// Where values are not compressed, a blob file goes because of garbage alone; where they are,
    /// also because of copies that are smaller. Without the steps for it, or the moments, too few
    /// would be found. About a third of what is to be expected.
    #[test]
    fn large_values_are_collected_while_scripts_run_and_things_die_within_that() {
        silence_panics_on_purpose();
        let mut chosen = variants();
        // Where changes are kept, they keep blob files for long.
        chosen.retain(|(name, _)| ["large-values", "at-rest", "zstd"].contains(name));
        assert!(chosen.len() >= 2);
        let (_, plain) = chosen[0].clone();
        chosen.push(("uncompressed", plain.compression(Compression::None).upper_compression(Compression::None)));
        for (name, options) in &chosen {
            let (all, within) = collections(options, 6);
            println!("{name}: {all} collections in 100 scripts, {within} of 600 moments within them");
            assert!(all >= 12 && within >= 15, "{name}: {all} collections, {within} moments");
        }
    }

    /// A step that was taken for another one would be looked at in its place.
    #[test]
    fn every_step_is_observed_as_often_as_it_is_said_and_the_end_once() {
        silence_panics_on_purpose();
        let (_, options) = &variants()[0];
        for (seed, steps) in scripts(0..40) {
            let mut times = 0;
            run(&steps, &Ground::new(options, MemEnv::new()), &mut Progress::default(), &mut |_| times += 1)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(times, observed(&steps).count() + 1, "seed {seed}");
        }
    }

    const SEED: u64 = 0xfedc_ba98_7654_3210;

    /// A process that dies after so many calls, then those that recover after it.
    fn processes_die(calls: u64, later: &[u64]) -> Harm {
        let death = Death { calls, inside: None, mapped: false };
        let cuts: Vec<Cut> = later.iter().map(|&calls| Cut { calls, inside: None, loss: Loss::Process }).collect();
        Harm { how: How::Death(death, Found::Lost(Loss::Process)), nested: Nested::of(&cuts), seed: SEED }
    }

    /// The first harm that misses the planted batch in a later life, with so many cuts.
    fn first_that_misses_later(course: Course<'_>, cuts: usize) -> Harm {
        let misses = |&calls: &u64| misses_the_batch(course, processes_die(calls, &[])).is_err();
        let calls = (0..).find(misses).unwrap();
        // A recovery before the last one makes no commit of its own.
        let before = vec![1; cuts - 1];
        let with = |last| processes_die(calls, &[&before[..], &[last]].concat());
        (0..1000).map(with).find(|&harm| misses_in_a_later_life(course, harm).is_err()).unwrap()
    }

    /// The numbers behind every such name in a text.
    fn numbers(text: &str, name: &str) -> Vec<u64> {
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        text.split(name).skip(1).map(|rest| digits(rest).parse().unwrap()).collect()
    }

    /// Shrinks what misses the batch in a later life; what is printed must repeat it.
    fn shrunk_later(steps: &[Step], cuts: usize) -> Vec<Step> {
        let (_, options) = &variants()[0];
        let course = Course { steps, options, threaded: false };
        let harm = first_that_misses_later(course, cuts);
        let found = shortest(course, harm, Duration::MAX, misses_in_a_later_life);
        assert_eq!(found.words, "missed later");
        let printed = found.told(steps.len(), 0);
        let moments = numbers(&printed, "calls: ");
        assert_eq!((moments.len(), numbers(&printed, "seed: ")), (1 + cuts, vec![SEED]), "{printed}");
        let repeated = processes_die(moments[0], &moments[1..]);
        let shorter = Course { steps: &found.steps, ..course };
        assert!(misses_in_a_later_life(shorter, repeated).is_err(), "{printed}");
        found.steps
    }

    /// Whether these are at most so many steps, with the planted write alone among them.
    fn is_short(steps: &[Step], most: usize) -> bool {
        let plants = |step: &Step| matches!(step, Step::Batch(writes, _) if writes[..] == [put("planted", "")]);
        steps.len() <= most && steps.iter().any(plants)
    }

    #[test]
    fn a_failure_of_a_recovery_that_dies_at_few_moments_shrinks_and_is_repeated_from_what_is_printed() {
        for seed in 0..2 {
            let limits = Limits { batch: 20, value: 100, repair: false, ..Limits::USUAL };
            let mut steps = generated(seed, limits).steps;
            steps.truncate(8);
            steps.insert(steps.len() / 2, Step::Batch(vec![put("planted", "1"), put("more", "2")], Durability::Sync));
            let shortest = shrunk_later(&steps, 1);
            assert!(is_short(&shortest, 3), "seed {seed}: {shortest:?}");
        }
    }

    #[test]
    fn a_failure_of_two_recoveries_that_die_in_turn_shrinks_and_is_repeated_from_what_is_printed() {
        let steps = [
            Step::Single(put("before", "1"), Durability::Async),
            Step::Batch(vec![put("planted", "1"), put("more", "2")], Durability::Sync),
            Step::Compact,
        ];
        let shortest = shrunk_later(&steps, 2);
        assert!(is_short(&shortest, 1), "{shortest:?}");
    }

    /// What the campaign finds has no names at first: its seed says which recoveries die.
    #[test]
    fn a_failure_that_a_drawn_cut_meets_is_named_and_fails_again() {
        let (_, options) = &variants()[0];
        let steps = [Step::Batch(vec![put("planted", "1")], Durability::Sync)];
        let course = Course { steps: &steps, options, threaded: false };
        let misses = |&calls: &u64| misses_the_batch(course, processes_die(calls, &[])).is_err();
        let calls = (0..).find(misses).unwrap();
        let drawn = |seed| named(course, Harm { seed, ..processes_die(calls, &[]) }, misses_in_a_later_life);
        let harm = (0..5000).find_map(drawn).expect("no seed draws a cut in a commit");
        assert!(harm.depth() > 0 && misses_in_a_later_life(course, harm).is_err(), "{harm:?}");
        let without = Harm { nested: None, ..harm };
        assert!(named(course, without, |_, _| Ok(())).is_none(), "nothing fails, and yet {harm:?} is named");
        // What fails without a cut is named without one.
        assert!(named(course, without, misses_the_batch).is_some_and(|harm| harm.nested.is_none()));
    }

    /// Seen: a recovery that found a change of settings that only the process had outlived, and
    /// died, was to find it again after a power loss, in what readers of changes are told.
    #[test]
    fn a_change_that_was_not_acknowledged_may_go_after_it_was_found_once() {
        let all = variants();
        let (_, options) = all.iter().find(|(name, _)| *name == "changes-given-up").unwrap();
        let calls_of = |steps: &[Step]| {
            let env = MemEnv::new();
            run(steps, &Ground::new(options, env.clone()), &mut Progress::default(), &mut |_| {}).unwrap();
            env.mutations()
        };
        let steps = [Step::Ttl(1, Ttl::On(Some(3_600_000)))];
        let course = Course { steps: &steps, options, threaded: false };
        // Without the change a session closes earlier.
        for calls in calls_of(&[])..=calls_of(&steps) {
            for seed in 0..40 {
                let death = Death { calls, inside: None, mapped: false };
                let harm = Harm { how: How::Death(death, Found::Lost(Loss::Process)), nested: None, seed };
                harm.check(course, 100, &Totals::default()).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            }
        }
    }
}
