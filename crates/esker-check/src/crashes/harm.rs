//! The ways in which a run is harmed, each of which can be tried again at other moments of a
//! shorter script.

use super::found::Found;
use super::leftovers::undisturbed;
use crate::Checked;
use crate::faults::{Course, Failing};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Step};
use crate::powerloss::session::{Ground, Session, run};
use crate::powerloss::{Examination, Loss, Totals, aftermath, die_after, some_inside, with_operands};
use crate::random::Random;
use crate::shrink::{nearby, nearest_first};
use crate::state::database_state;
use esker::Options;
use esker::env::mem::{CrashMode, MemEnv};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// What was looked for; nothing if that fails, or panics.
fn unless_it_fails<T: Default>(look: impl FnOnce() -> Checked<T>) -> T {
    catch_unwind(AssertUnwindSafe(look)).ok().and_then(Checked::ok).unwrap_or_default()
}

/// The moment at which something dies.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// After so many calls.
    pub calls: u64,
    /// In the middle of the last of them, as this number says.
    pub inside: Option<u64>,
    /// With files that are mapped.
    pub mapped: bool,
}

impl Death {
    /// Runs the steps until it; what is left, and what was promised.
    pub fn run(self, course: Course<'_>) -> Checked<(MemEnv, Progress)> {
        let env = MemEnv::new();
        if self.mapped {
            env.map_files();
        }
        die_after(&env, self.calls, self.inside);
        let mut progress = Progress::default();
        let outcome = run(course.steps, &Ground::new(course.options, env.clone()), &mut progress, &mut |_| {});
        match outcome {
            Err(error) if !env.is_dead() => Err(format!("the script fails by itself: {error}")),
            _ => Ok((env, progress)),
        }
    }
}

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Nothing; the script does it by itself.
    Undisturbed,
    /// Something dies, and what is found is looked at in one way.
    Death(Death, Found),
    /// A call fails, or the disk is full.
    Failing(Failing),
}

/// How often recovery is interrupted in turn.
const DEPTH: usize = 2;

/// A death during the recovery from another one, or after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// After so many calls of the process that recovers.
    pub calls: u64,
    /// In the middle of the next of them, as this number says.
    pub inside: Option<u64>,
    pub loss: Loss,
}

/// The deaths behind the first one, each during the recovery from the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nested {
    pub first: Cut,
    pub second: Option<Cut>,
}

impl Nested {
    pub fn of(cuts: &[Cut]) -> Option<Nested> {
        let (&first, more) = cuts.split_first()?;
        Some(Nested { first, second: more.first().copied() })
    }

    fn cuts(self) -> Vec<Cut> {
        std::iter::once(self.first).chain(self.second).collect()
    }
}

/// What a death has left, and what of that is promised.
pub struct Remains {
    image: MemEnv,
    loss: Loss,
    pub progress: Progress,
}

impl Remains {
    fn of(loss: Loss, (env, progress): (&MemEnv, &Progress)) -> Remains {
        Remains { image: loss.image(env), loss, progress: progress.clone() }
    }
}

/// The recovery from a death, with what is done after it.
struct Recovery<'a> {
    image: &'a MemEnv,
    options: &'a Options,
    progress: Progress,
    steps: Vec<Step>,
}

impl<'a> Recovery<'a> {
    /// Recovers once to see what is found: a recovery that is cut must not lose it.
    fn of(remains: &'a Remains, options: &'a Options, random: &mut Random) -> Checked<Recovery<'a>> {
        let Remains { image, loss, progress } = remains;
        let mut before = progress.clone();
        let env = image.kill();
        let ground = Ground::new(options, env.clone()).keeping(progress.kept);
        let session =
            Session::open(&ground, &mut before).map_err(|error| format!("the image does not open: {error}"))?;
        let state = database_state(session.db(), &NAMES)?;
        let operands = with_operands(&env, options, before.now, &state)?;
        let found = before.find_all(session.db(), &operands, loss.least(&before))?;
        drop(session);
        let recovered = before.recovered(&found, state, matches!(loss, Loss::Machine(..)));
        let progress = progress.behind_recovery(recovered);
        Ok(Recovery { image, options, progress, steps: aftermath(random) })
    }

    /// How many calls it makes if nothing cuts it.
    fn calls(&self) -> Checked<u64> {
        let env = self.image.kill();
        let before = env.mutations();
        self.run_on(&env)?;
        Ok(env.mutations() - before)
    }

    /// What is left when it is cut.
    fn cut(&self, Cut { calls, inside, loss }: Cut) -> Checked<Remains> {
        let env = self.image.kill();
        die_after(&env, env.mutations() + calls, inside);
        let progress = self.run_on(&env)?;
        Ok(Remains::of(loss, (&env, &progress)))
    }

    fn run_on(&self, env: &MemEnv) -> Checked<Progress> {
        let mut progress = self.progress.clone();
        let ground = Ground::new(self.options, env.clone()).keeping(progress.kept);
        match run(&self.steps, &ground, &mut progress, &mut |_| {}) {
            Err(error) if !env.is_dead() => Err(format!("the second recovery fails by itself: {error}")),
            _ => Ok(progress),
        }
    }

    /// A cut of it by chance.
    fn some_cut(&self, random: &mut Random) -> Checked<Cut> {
        // The squared choice prefers the calls of the recovery itself.
        let limit = random.below(self.calls()? as usize + 1);
        let calls = random.below(limit + 1) as u64;
        Ok(Cut { calls, loss: Loss::random(random), inside: some_inside(random) })
    }
}

/// What failed behind these cuts, in words.
fn behind(cuts: &[Cut], what: String) -> String {
    cuts.iter().rev().fold(what, |what, cut| format!("then recovered, dead after {} calls of that: {what}", cut.calls))
}

/// One way, with a seed for everything else in it.
#[derive(Clone, Copy, Debug)]
pub struct Harm {
    pub how: How,
    /// The recoveries that are cut; without, the seed says which ones are.
    pub nested: Option<Nested>,
    pub seed: u64,
}

/// How often a shorter script is tried at most, where no recovery is cut.
const MOMENTS: u64 = 200;

/// The moments of the first death that are tried where recoveries are cut.
const OUTER_MOMENTS: u64 = 100;

/// The moments of a cut that are tried with the most likely death before it.
const CUT_MOMENTS: usize = 60;

impl Harm {
    pub fn new(how: How, random: &mut Random) -> Harm {
        Harm { how, nested: None, seed: random.next() }
    }

    /// Runs the steps with it; whether something failed.
    pub fn check(self, course: Course<'_>, nested_percent: usize, totals: &Totals) -> Checked<bool> {
        let examination = Examination { options: course.options, totals, nested_percent };
        match self.how {
            How::Undisturbed => {
                undisturbed(course, &MemEnv::new(), &mut Progress::default(), &mut |_, _| {}).map(|()| false)
            }
            How::Death(death, _) => {
                let (env, progress) = death.run(course)?;
                self.examine((&env, &progress), course, &examination)
                    .map(|()| false)
                    .map_err(|what| format!("after {} calls: {what}", death.calls))
            }
            How::Failing(failing) => course.check(failing, &examination, &mut Random::new(self.seed)),
        }
    }

    /// What a death has left, looked at in that way; of other harms there is nothing to look at.
    pub fn examine(self, left: (&MemEnv, &Progress), course: Course<'_>, examination: &Examination<'_>) -> Checked<()> {
        let How::Death(_, found) = self.how else { return Ok(()) };
        let Examination { options, totals, nested_percent } = *examination;
        // The recoveries that die are those of this harm, so that they can be named.
        let alone = Examination { options, totals, nested_percent: 0 };
        let nested_image = |remains: &Remains, depth: usize| {
            totals.nested_images.fetch_add(1, Ordering::Relaxed);
            alone.examine(&remains.image, remains.loss, &remains.progress, &mut self.stream(depth), 0)
        };
        match (found, self.nested) {
            (Found::Lost(loss), Some(_)) => {
                let cuts = self.cuts();
                self.cut_all(Remains::of(loss, left), options)
                    .and_then(|remains| nested_image(&remains, cuts.len()))
                    .map_err(|what| format!("{loss:?}: {}", behind(&cuts, what)))
            }
            _ => {
                found.examine(left, course, &alone, &mut self.stream(0))?;
                let Found::Lost(loss) = found else { return Ok(()) };
                if !self.choices(0).percent(nested_percent) {
                    return Ok(());
                }
                let mut cuts = Vec::new();
                self.walk(Remains::of(loss, left), (options, nested_percent), &mut cuts, nested_image)
                    .map_err(|what| format!("{loss:?}: {}", behind(&cuts, what)))
            }
        }
    }

    /// Notes the cuts that the seed says where recoveries die this often, in percent; those up to
    /// a failure.
    pub fn draw(self, course: Course<'_>, nested_percent: usize, cuts: &mut Vec<Cut>) -> Checked<()> {
        let Some(remains) = (Harm { nested: None, ..self }).remains(course)? else { return Ok(()) };
        self.walk(remains, (course.options, nested_percent), cuts, |_, _| Ok(()))
    }

    /// What is left of a run by its last death, for the next process to recover.
    pub fn remains(self, course: Course<'_>) -> Checked<Option<Remains>> {
        let How::Death(death, Found::Lost(loss)) = self.how else { return Ok(None) };
        let (env, progress) = death.run(course)?;
        self.cut_all(Remains::of(loss, (&env, &progress)), course.options).map(Some)
    }

    /// How many recoveries are cut by name.
    pub fn depth(self) -> usize {
        self.cuts().len()
    }

    fn cuts(self) -> Vec<Cut> {
        self.nested.map(Nested::cuts).unwrap_or_default()
    }

    /// What everything behind the death of that depth is drawn from. The steps that a recovery that
    /// is cut goes on with are those that one that is not cut goes on with.
    fn stream(self, depth: usize) -> Random {
        Random::derived(self.seed, &vec![1; depth])
    }

    /// What says whether and where the recovery from the death of that depth is cut.
    fn choices(self, depth: usize) -> Random {
        Random::derived(self.seed, &[2, depth as u64])
    }

    /// Makes all cuts of this harm.
    fn cut_all(self, mut remains: Remains, options: &Options) -> Checked<Remains> {
        for (depth, cut) in self.cuts().into_iter().enumerate() {
            let next = Recovery::of(&remains, options, &mut self.stream(depth))?.cut(cut)?;
            remains = next;
        }
        Ok(remains)
    }

    /// Makes the cuts that the seed says. Each is noted before it is made; what it has left is
    /// shown to `visit`, with its depth.
    fn walk(
        self,
        mut remains: Remains,
        (options, nested_percent): (&Options, usize),
        cuts: &mut Vec<Cut>,
        visit: impl Fn(&Remains, usize) -> Checked<()>,
    ) -> Checked<()> {
        for depth in 0..DEPTH {
            let mut choices = self.choices(depth);
            if !choices.percent(nested_percent) {
                break;
            }
            remains = {
                let recovery = Recovery::of(&remains, options, &mut self.stream(depth))?;
                let cut = recovery.some_cut(&mut choices)?;
                cuts.push(cut);
                recovery.cut(cut)?
            };
            visit(&remains, depth + 1)?;
        }
        Ok(())
    }

    /// The same at every moment of these steps, or at many of them; those that are most like it
    /// first.
    pub fn elsewhere(self, course: Course<'_>) -> Vec<Harm> {
        let others: Vec<Harm> = match self.how {
            How::Undisturbed => vec![self],
            How::Death(death, found) => {
                let env = MemEnv::new();
                // One that fails by itself is another failure.
                if run(course.steps, &Ground::new(course.options, env.clone()), &mut Progress::default(), &mut |_| {})
                    .is_err()
                {
                    return Vec::new();
                }
                let most = if self.nested.is_some() { OUTER_MOMENTS } else { MOMENTS };
                let moments = nearby(death.calls, env.mutations() + 1, most).into_iter();
                let at = |calls| Harm { how: How::Death(Death { calls, ..death }, found), ..self };
                let cut = |(place, harm): (usize, Harm)| harm.cut_elsewhere(course, self.fewer(CUT_MOMENTS, place));
                nearest_first(moments.map(at).enumerate().map(cut).collect())
            }
            How::Failing(failing) => {
                let others = course.elsewhere(failing, MOMENTS).unwrap_or_default();
                others.into_iter().map(|failing| Harm { how: How::Failing(failing), ..self }).collect()
            }
        };
        others.into_iter().flat_map(Harm::like).collect()
    }

    /// How many of so many moments of a cut are tried where the death before it is at that place
    /// of its own list. Some always are: a recovery of less makes fewer calls.
    fn fewer(self, most: usize, place: usize) -> usize {
        let least = if self.depth() > 1 { 3 } else { 6 };
        (most / (place + 1)).max(least)
    }

    /// The same with the recoveries cut at other moments. None where something fails before the
    /// last cut, which is another failure.
    fn cut_elsewhere(self, course: Course<'_>, most: usize) -> Vec<Harm> {
        if self.nested.is_none() {
            return vec![self];
        }
        let others = || {
            let Some(remains) = (Harm { nested: None, ..self }).remains(course)? else { return Ok(vec![self]) };
            self.cut_behind((&[], &self.cuts()), &remains, course.options, most)
        };
        unless_it_fails(others)
    }

    /// The same behind the cuts that are made, with the others at other moments.
    fn cut_behind(
        self,
        (made, others): (&[Cut], &[Cut]),
        remains: &Remains,
        options: &Options,
        most: usize,
    ) -> Checked<Vec<Harm>> {
        let Some((&cut, others)) = others.split_first() else {
            return Ok(vec![Harm { nested: Nested::of(made), ..self }]);
        };
        let recovery = Recovery::of(remains, options, &mut self.stream(made.len()))?;
        let moments = nearby(cut.calls, recovery.calls()? + 1, most as u64);
        let lists = moments.into_iter().take(most).enumerate().map(|(place, calls)| {
            let cut = Cut { calls, ..cut };
            let made = [made, &[cut]].concat();
            if others.is_empty() {
                return vec![Harm { nested: Nested::of(&made), ..self }];
            }
            let further = || {
                let remains = recovery.cut(cut)?;
                self.cut_behind((&made, others), &remains, options, self.fewer(most, place))
            };
            unless_it_fails(further)
        });
        Ok(nearest_first(lists.collect()))
    }

    /// What a random loss takes depends on all that is pending: another seed may do to a shorter
    /// script what this one did to the whole.
    fn like(self) -> Vec<Harm> {
        let is_random = match self.how {
            How::Death(_, found) => {
                found.is_random() || self.cuts().into_iter().any(|cut| Found::Lost(cut.loss).is_random())
            }
            _ => false,
        };
        let seeds = if is_random { 3 } else { 1 };
        (0..seeds).map(|more| self.varied(more)).collect()
    }

    /// The same with other seeds.
    fn varied(self, more: u64) -> Harm {
        let how = match self.how {
            How::Death(death, found) => How::Death(death, found.varied(more)),
            other => other,
        };
        let vary = |cut: Cut| match cut.loss {
            Loss::Machine(mode, seed) => Cut { loss: Loss::Machine(mode, seed.wrapping_add(more)), ..cut },
            _ => cut,
        };
        let cuts: Vec<Cut> = self.cuts().into_iter().map(vary).collect();
        Harm { how, nested: Nested::of(&cuts), seed: self.seed.wrapping_add(more) }
    }
}

/// The harms of a point at which something dies.
pub fn of_one_death(death: Death, random: &mut Random) -> Vec<Harm> {
    let mut all = Vec::new();
    let unit = [512, 4096][random.below(2)];
    all.push(Found::Torn(unit, random.next()));
    let mut losses = vec![Loss::Process, Loss::Machine(CrashMode::LoseAll, 0)];
    losses.extend((0..4).map(|_| Loss::random(random)));
    all.extend(losses.iter().map(|&loss| Found::Lost(loss)));
    // One of each of the rarer ones, of any of the losses.
    let mut some = || losses[random.below(losses.len())];
    all.extend([Found::ReadOnly(some()), Found::RecoveryFails(some())]);
    let (other, earlier) = (some(), some());
    let milliseconds = [1, 400, 40_000_000][random.below(3)] * [1, -1][random.below(2)];
    all.push(Found::OtherClock(other, milliseconds));
    all.push(Found::EarlierClock(earlier, [1, 400, 4_000_000][random.below(3)]));
    all.into_iter().map(|found| Harm::new(How::Death(death, found), random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::ALL_BYTES;
    use crate::model::{Change, FAILING, Write};
    use crate::powerloss::script::FRAGILE;
    use crate::powerloss::{option_variants, put};
    use crate::simulated::MEMORY_PATH;
    use crate::state::Durability;
    use esker::{ChangeRetention, Db};
    use std::path::PathBuf;
    use std::sync::Arc;

    fn contents(env: &MemEnv) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        env.files().into_iter().map(|path| (path.clone(), env.file_bytes(&path))).collect()
    }

    /// What a failure is repeated with: a cut that is named leaves what the drawn one left.
    #[test]
    fn cuts_that_are_named_leave_what_the_drawn_ones_left() {
        let (_, options) = &option_variants()[0];
        let steps = [Step::Batch(vec![put("key", "value")], Durability::Sync), Step::Flush];
        let course = Course { steps: &steps, options, threaded: false };
        for seed in 0..30 {
            let death = Death { calls: seed, inside: None, mapped: false };
            let harm = Harm { how: How::Death(death, Found::Lost(Loss::Process)), nested: None, seed };
            let (mut cuts, left) = (Vec::new(), std::cell::RefCell::new(Vec::new()));
            let note = |remains: &Remains, _| {
                left.borrow_mut().push((contents(&remains.image), remains.progress.acknowledged));
                Ok(())
            };
            let first = harm.remains(course).unwrap().unwrap();
            harm.walk(first, (options, 100), &mut cuts, note).unwrap();
            assert_eq!(cuts.len(), DEPTH, "seed {seed}");
            for (count, drawn) in (1..).zip(left.into_inner()) {
                let named = Harm { nested: Nested::of(&cuts[..count]), ..harm };
                let Remains { image, progress, .. } = named.remains(course).unwrap().unwrap();
                assert!((contents(&image), progress.acknowledged) == drawn, "seed {seed}, {named:?}");
            }
            let mut again = Vec::new();
            harm.draw(course, 100, &mut again).unwrap();
            assert_eq!(again, cuts, "seed {seed}");
        }
    }

    /// If what a script keeps were given up by the process that finds it, this would fail.
    #[test]
    fn recoveries_keep_changes_for_as_long_as_the_last_open_did() {
        let (_, options) = &option_variants()[0];
        let keep = Step::Keep(Some(ChangeRetention::Bytes(ALL_BYTES)));
        let steps = [keep, Step::Single(put("key", "value"), Durability::Sync)];
        let course = Course { steps: &steps, options, threaded: false };
        let death = Death { calls: u64::MAX, inside: None, mapped: false };
        let harm = Harm { how: How::Death(death, Found::Lost(Loss::Process)), nested: None, seed: 0 };
        let remains = harm.remains(course).unwrap().unwrap();
        let recovery = Recovery::of(&remains, options, &mut harm.stream(0)).unwrap();
        let env = remains.image.kill();
        recovery.run_on(&env).unwrap();
        let options = options.clone().env(Arc::new(env)).keep_changes(ChangeRetention::AsBefore);
        assert!(Db::open(MEMORY_PATH, options).unwrap().changes(1).is_ok());
    }

    /// Seen: a merge that was lost was taken for recovered, as the key fails with and without it,
    /// and the next recovery was to find it.
    #[test]
    fn a_merge_that_was_lost_behind_one_that_fails_is_not_taken_for_recovered() {
        let (_, options) = &option_variants()[0];
        let merge = |operand: &[u8], durability| {
            Step::Single(Write::new(FRAGILE, "key", Change::Merge(operand.to_vec())), durability)
        };
        let steps = [merge(&[FAILING], Durability::Sync), merge(b"longer", Durability::Async)];
        let course = Course { steps: &steps, options, threaded: false };
        let death = |calls| Death { calls, inside: None, mapped: false };
        // The commits that were attempted, those that are promised, and those that are found.
        let counts = |calls| {
            let how = How::Death(death(calls), Found::Lost(Loss::Machine(CrashMode::LoseAll, 0)));
            let harm = Harm { how, nested: None, seed: 0 };
            let remains = harm.remains(course).unwrap().unwrap();
            let recovery = Recovery::of(&remains, options, &mut harm.stream(0)).unwrap();
            (remains.progress.attempted(), remains.progress.synced, recovery.progress.attempted())
        };
        let (env, _) = death(u64::MAX).run(course).unwrap();
        let all: Vec<_> = (0..=env.mutations()).map(counts).collect();
        assert!(all.contains(&(2, 1, 1)), "{all:?}");
    }

    /// If a cut in the middle of a call were one before it, or none were drawn, this would fail.
    #[test]
    fn recoveries_are_cut_in_the_middle_of_stores_too() {
        let (_, options) = &option_variants()[0];
        let steps = [Step::Batch(vec![put("key", "value")], Durability::Sync)];
        let course = Course { steps: &steps, options, threaded: false };
        // Behind the end of the script.
        let death = Death { calls: u64::MAX, inside: None, mapped: false };
        let harm = Harm { how: How::Death(death, Found::Lost(Loss::Process)), nested: None, seed: 0 };
        let remains = harm.remains(course).unwrap().unwrap();
        let recovery = Recovery::of(&remains, options, &mut harm.stream(0)).unwrap();
        let left = |calls, inside| contents(&recovery.cut(Cut { calls, inside, loss: Loss::Process }).unwrap().image);
        let calls = recovery.calls().unwrap();
        assert!((0..calls).any(|calls| left(calls, Some(7)) != left(calls, None)), "{calls} calls");
        let drawn: Vec<Cut> = (0..50).map(|seed| recovery.some_cut(&mut Random::new(seed)).unwrap()).collect();
        let inside = drawn.iter().filter(|cut| cut.inside.is_some()).count();
        assert!((5..=45).contains(&inside), "{inside} of {drawn:?}");
    }

    #[test]
    fn other_seeds_are_tried_where_a_named_cut_loses_by_chance() {
        let cut = |loss| Cut { calls: 3, inside: None, loss };
        let death = Death { calls: 5, inside: None, mapped: false };
        let how = How::Death(death, Found::Lost(Loss::Process));
        let of = |loss| Harm { how, nested: Nested::of(&[cut(Loss::Process), cut(loss)]), seed: 9 };
        let losses = |harm: Harm| -> Vec<Loss> { harm.like().iter().map(|like| like.cuts()[1].loss).collect() };
        assert_eq!(losses(of(Loss::Process)), [Loss::Process]);
        let by_chance = |seed| Loss::Machine(CrashMode::Random, seed);
        assert_eq!(losses(of(by_chance(7))), [by_chance(7), by_chance(8), by_chance(9)]);
    }
}
