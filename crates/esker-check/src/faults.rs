//! One failing call, or all calls from some point on, at every index of small scripts.
//!
//! The program under test goes on after an error, as programs do. A commit that returned an error may have happened or
//! not, so a set of possible states is kept; every read must yield an error or belong to one of them. Afterwards the
//! database is opened without faults: what was acknowledged must be there.

use crate::Checked;
use crate::campaign::panic_text;
use crate::model::Write;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, NOW_MS, Script, Step, count, loaded, model_of};
use crate::powerloss::session::{Ground, Session, checkpoint_path, with_operators};
use crate::powerloss::{add, option_variants, put, scripts};
use crate::random::Random;
use crate::settings::Settings;
use crate::state::{Durability, Place, State, database_state, model_state, read_state};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use esker::{Db, Error, Options};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const CLASSES: [Class; 13] = [
    Class::Look,
    Class::Open,
    Class::Read,
    Class::Create,
    Class::Append,
    Class::Sync,
    Class::SyncDir,
    Class::Rename,
    Class::Remove,
    Class::Link,
    Class::LogWrite,
    Class::LogStore,
    Class::Lock,
];

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Rule {
        class: Class,
        action: Action,
        forever: bool,
        /// Only on files whose name contains this.
        names: Option<&'static str>,
    },
    /// A sync that fails once; the pages are dropped, or reach the disk after all.
    Sync(SyncFailure),
    /// The same of a directory.
    SyncDir(SyncFailure),
}

impl Fault {
    fn arm(self, nth: u64, faulty: &FaultEnv, memory: &MemEnv) {
        match self {
            Fault::Rule { class, action, forever, names } => {
                let mut rule = Rule::new(class, nth, action);
                if let Some(part) = names {
                    rule = rule.on_names_with(part);
                }
                faulty.add(if forever { rule.from_then_on() } else { rule });
            }
            Fault::Sync(failure) => memory.fail_sync(nth, failure),
            Fault::SyncDir(failure) => memory.fail_sync_dir(nth, failure),
        }
    }

    fn class(self) -> Class {
        match self {
            Fault::Rule { class, .. } => class,
            Fault::Sync(_) => Class::Sync,
            Fault::SyncDir(_) => Class::SyncDir,
        }
    }

    /// Whether only a record of the log or the manifest can be hit, so that the handle must refuse writes afterwards. Log
    /// files are also written and synced while the next one is prepared, which may fail without harm: that is not counted.
    fn poisons(self) -> bool {
        match self {
            Fault::Rule { class: Class::LogStore, .. } => true,
            Fault::Rule { names, .. } => names == Some("MANIFEST"),
            Fault::Sync(_) | Fault::SyncDir(_) => false,
        }
    }
}

fn faults() -> Vec<Fault> {
    let actions = [
        Action::Fail(ErrorKind::Other),
        Action::Fail(ErrorKind::StorageFull),
        Action::Partial { kind: ErrorKind::StorageFull, bytes: 5 },
        Action::FailAfter(ErrorKind::Other),
    ];
    let failures =
        [SyncFailure::DropPending, SyncFailure::KeepPending, SyncFailure::KeepSome(1), SyncFailure::KeepSome(2)];
    let mut faults: Vec<Fault> = failures.into_iter().flat_map(|how| [Fault::Sync(how), Fault::SyncDir(how)]).collect();
    for class in CLASSES {
        for action in actions {
            let partial = matches!(action, Action::Partial { .. });
            if partial && !matches!(class, Class::Append | Class::LogWrite | Class::LogStore) {
                continue;
            }
            let names = None;
            faults.extend([false, true].map(|forever| Fault::Rule { class, action, forever, names }));
        }
    }
    for (class, names) in [(Class::Append, "MANIFEST"), (Class::Sync, "MANIFEST"), (Class::Sync, ".wal")] {
        for action in [Action::Fail(ErrorKind::Other), Action::FailAfter(ErrorKind::StorageFull)] {
            faults.push(Fault::Rule { class, action, forever: false, names: Some(names) });
        }
    }
    faults
}

/// What was checked.
#[derive(Debug, Default)]
pub struct Totals {
    /// Runs with a fault.
    pub runs: AtomicU64,
    /// Runs that were due.
    pub runs_due: AtomicU64,
    /// Runs in which the fault happened.
    pub hit: AtomicU64,
    /// Runs in which a write was refused because the handle had become read-only.
    pub became_read_only: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (runs, due) = (count(&self.runs), count(&self.runs_due));
        let (hit, refused) = (count(&self.hit), count(&self.became_read_only));
        write!(f, "{runs} of {due} runs, {hit} of them hit by their fault, {refused} then refused writes")
    }
}

/// A campaign of failing calls.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Seed and time.
    pub settings: Settings,
    /// Only scripts whose name contains this.
    pub only: String,
    /// Runs at the same time.
    pub threads: usize,
}

struct Job {
    script: usize,
    variant: usize,
    fault: Fault,
    nth: u64,
}

impl Faults {
    /// Every call of every script, in every way.
    pub fn every_call(&self) -> Checked<Totals> {
        let scripts: Vec<Script> = scripts().into_iter().filter(|script| script.name.contains(&self.only)).collect();
        let variants = option_variants();
        let mut jobs = Vec::new();
        for (script, Script { steps, .. }) in scripts.iter().enumerate() {
            for (variant, (_, options)) in variants.iter().enumerate() {
                let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
                let mut program = Program::new(Ground::new(options, faulty.clone()), None);
                program.run(steps)?;
                drop(program);
                for fault in faults() {
                    let calls = faulty.calls(fault.class());
                    jobs.extend((0..calls).map(|nth| Job { script, variant, fault, nth }));
                }
            }
        }
        Random::derived(self.settings.seed, &[1]).shuffle(&mut jobs);
        self.work(&scripts, &variants, &jobs)
    }

    fn work(&self, scripts: &[Script], variants: &[(&str, Options)], jobs: &[Job]) -> Checked<Totals> {
        let totals = Totals::default();
        totals.runs_due.store(jobs.len() as u64, Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.settings.over() || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    return;
                }
                let (script, variant) = (&scripts[job.script], &variants[job.variant]);
                let run = AssertUnwindSafe(|| run_job(job, &script.steps, &variant.1, &totals));
                let checked =
                    catch_unwind(run).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
                totals.runs.fetch_add(1, Ordering::Relaxed);
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    failure.get_or_insert(format!(
                        "script {}, options {}, {:?} at call {} of its kind: {what}\nsteps: {:?}\nrepeat with: cargo run \
                         -p esker-check -- faults --seed {} --only {}",
                        script.name, variant.0, job.fault, job.nth, script.steps, self.settings.seed, script.name
                    ));
                }
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
}

/// Runs these steps with one fault at one call, all as the random numbers say.
pub(crate) fn any_call_fails(steps: &[Step], options: &Options, random: &mut Random, totals: &Totals) -> Checked<()> {
    let faulty = FaultEnv::new(Arc::new(MemEnv::new()));
    let mut program = Program::new(Ground::new(options, faulty.clone()), None);
    program.demand_success = true;
    program.run(steps)?;
    drop(program);
    let all = faults();
    let fault = all[random.below(all.len())];
    let nth = random.below(faulty.calls(fault.class()) as usize) as u64;
    totals.runs.fetch_add(1, Ordering::Relaxed);
    run_job(&Job { script: 0, variant: 0, fault, nth }, steps, options, totals)
        .map_err(|what| format!("{fault:?} at call {nth} of its kind: {what}"))
}

fn run_job(job: &Job, steps: &[Step], options: &Options, totals: &Totals) -> Checked<()> {
    let memory = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    job.fault.arm(job.nth, &faulty, &memory);
    let poison = job.fault.poisons().then(|| faulty.clone());
    let mut program = Program::new(Ground::new(options, faulty.clone()), poison);
    program.run(steps)?;
    let refused = program.refused_ever;
    let possible = program.finish();
    if faulty.fired() > 0 || matches!(job.fault, Fault::Sync(_) | Fault::SyncDir(_)) {
        totals.hit.fetch_add(1, Ordering::Relaxed);
    }
    totals.became_read_only.fetch_add(u64::from(refused), Ordering::Relaxed);

    check_reopened(&memory.kill(), options, &possible, possible.history.len() - 1)
        .map_err(|what| format!("reopened without faults: {what}"))?;
    for (mode, seed) in [(CrashMode::LoseAll, 0), (CrashMode::Random, job.nth)] {
        check_reopened(&memory.crash(&mode, seed), options, &possible, possible.synced)
            .map_err(|what| format!("reopened after a power loss ({mode:?}, {seed}): {what}"))?;
    }
    Ok(())
}

fn check_reopened(env: &MemEnv, options: &Options, possible: &Possible, least: usize) -> Checked<()> {
    let ground = Ground::new(options, env.clone());
    let mut progress = Progress::unknown(0, possible.now, possible.damaged);
    let session = Session::open(&ground, &mut progress).map_err(|error| format!("open failed: {error}"))?;
    let state = database_state(session.db(), &NAMES)?;
    possible.check(&state, least)?;
    session.db().verify(&mut |_, _| {}).map_err(|error| format!("verification failed: {error}"))?;
    let mut after = Program::new(ground, None);
    after.possible = Possible::from_state(state, possible.now);
    after.session = Some(session);
    after.demand_success = true;
    after.run(&[
        Step::Batch(vec![put("after", "1"), add("after", 1)], Durability::Sync),
        Step::Flush,
        Step::Single(put("after", "2"), Durability::Async),
        Step::DropAndReopen,
    ])
}

/// The states that the database may be in.
struct Possible {
    /// After every attempted commit. A failed one leaves the states with it and those without it.
    history: Vec<BTreeSet<State>>,
    /// The index in `history` from which on a power loss may have stopped.
    synced: usize,
    /// What the clock shows.
    now: u64,
    /// Whether the file that names the manifest may be missing.
    damaged: bool,
}

impl Possible {
    fn from_state(state: State, now: u64) -> Possible {
        Possible { history: vec![BTreeSet::from([state])], synced: 0, now, damaged: false }
    }

    /// Moves the clock: what has expired is in no state any more.
    fn tick(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        let live = |mut state: State| {
            state.retain(|_, held| held.expiry > self.now);
            state
        };
        for states in &mut self.history {
            *states = std::mem::take(states).into_iter().map(live).collect();
        }
    }

    fn now(&self) -> &BTreeSet<State> {
        // The history is never empty: it starts with one entry and only grows.
        &self.history[self.history.len() - 1]
    }

    fn commit(&mut self, writes: &[Write], outcome: &esker::Result<()>, sync: bool) {
        let now = self.now().clone();
        let with = now.iter().map(|state| apply(state, writes, self.now));
        let next = match outcome {
            Ok(()) => with.collect(),
            Err(Error::ReadOnly { .. } | Error::InvalidArgument { .. }) => return,
            Err(_) => with.chain(now.iter().cloned()).collect(),
        };
        self.history.push(next);
        if sync && outcome.is_ok() {
            self.synced = self.history.len() - 1;
        }
    }

    fn check(&self, state: &State, least: usize) -> Checked<()> {
        if self.history[least..].iter().any(|states| states.contains(state)) {
            return Ok(());
        }
        let near = self.now().iter().next_back().cloned().unwrap_or_default();
        let what = crate::state::difference(&near, state).unwrap_or_default();
        Err(format!("the contents are none of the possible ones; against one of them: {what}"))
    }
}

fn apply(state: &State, writes: &[Write], now: u64) -> State {
    let mut model = model_of(state, now);
    let at = model.commit(writes);
    model_state(&model, at)
}

/// A program that goes on whatever happens.
struct Program {
    ground: Ground,
    session: Option<Session>,
    possible: Possible,
    commits: u64,
    /// Set in runs whose fault can only hit the log or the manifest.
    poison: Option<FaultEnv>,
    /// Whether this handle has refused a write.
    refused: bool,
    /// Whether any handle has.
    refused_ever: bool,
    demand_success: bool,
}

impl Program {
    fn new(ground: Ground, poison: Option<FaultEnv>) -> Program {
        Program {
            ground,
            session: None,
            possible: Possible::from_state(State::new(), NOW_MS),
            commits: 0,
            poison,
            refused: false,
            refused_ever: false,
            demand_success: false,
        }
    }

    fn run(&mut self, steps: &[Step]) -> Checked<()> {
        for step in steps {
            if self.session.is_none() && !self.open() {
                return Ok(());
            }
            let outcome = match step {
                Step::Reopen | Step::DropAndReopen | Step::Repair => {
                    let mut outcome = self.close(*step == Step::Reopen);
                    if *step == Step::Repair {
                        self.possible.damaged = true;
                        outcome = self.ground.lose_current();
                    }
                    if !self.open() {
                        return self.end(outcome);
                    }
                    outcome
                }
                _ => self.perform(step)?,
            };
            if let (true, Err(error)) = (self.demand_success, &outcome) {
                return Err(format!("{step:?} failed: {error}"));
            }
            self.check_reads()?;
        }
        let outcome = self.close(true);
        self.end(outcome)
    }

    fn end(&self, outcome: esker::Result<()>) -> Checked<()> {
        match outcome {
            Err(error) if self.demand_success => Err(format!("the end failed: {error}")),
            _ => Ok(()),
        }
    }

    /// The progress that a session keeps assumes that everything succeeds; only its notice of what was tried counts here.
    fn progress(&self) -> Progress {
        let Possible { now, damaged, .. } = self.possible;
        Progress::unknown(self.commits, now, damaged)
    }

    /// Tries twice, as a program would that was told of an error.
    fn open(&mut self) -> bool {
        self.refused = false;
        for _ in 0..2 {
            let mut progress = self.progress();
            if let Ok(session) = Session::open(&self.ground, &mut progress) {
                self.possible.damaged = false;
                self.session = Some(session);
                return true;
            }
        }
        false
    }

    fn close(&mut self, clean: bool) -> esker::Result<()> {
        if let (Some(session), true) = (self.session.take(), clean) {
            session.close()?;
            self.possible.synced = self.possible.history.len() - 1;
        }
        Ok(())
    }

    fn perform(&mut self, step: &Step) -> Checked<esker::Result<()>> {
        let mut progress = self.progress();
        let Some(session) = &mut self.session else { return Ok(Ok(())) };
        match step {
            // The program compares by itself, after every step.
            Step::Hold(..) | Step::Look(..) | Step::Compare | Step::ReadBeside => return Ok(Ok(())),
            Step::Clock(milliseconds) => self.possible.tick(*milliseconds),
            _ => {}
        }
        let faults_before = self.poison.as_ref().map_or(0, FaultEnv::fired);
        let outcome = session.perform(step, &mut progress);
        let tried = progress.attempted() > 0;
        if let (true, Some((writes, durability))) = (tried, written(step, self.commits)) {
            self.commits += 1;
            self.possible.commit(&writes, &outcome, durability == Durability::Sync);
            self.check_refusal(&outcome)?;
        }
        // A checkpoint writes a log and a manifest of its own, which do no harm here.
        if !matches!(step, Step::Checkpoint(..)) {
            self.check_poison(faults_before)?;
        }
        match (step, &outcome) {
            (Step::Flush | Step::Compact, Ok(())) => self.possible.synced = self.possible.history.len() - 1,
            (Step::Checkpoint(number, _), Ok(())) => self.check_checkpoint(*number)?,
            _ => {}
        }
        Ok(outcome)
    }

    /// Once refused, always refused, until opened again.
    fn check_refusal(&mut self, outcome: &esker::Result<()>) -> Checked<()> {
        let refused = matches!(outcome, Err(Error::ReadOnly { .. }));
        if self.refused && !refused {
            return Err(format!("a read-only handle did not refuse a write: {outcome:?}"));
        }
        self.refused |= refused;
        self.refused_ever |= refused;
        Ok(())
    }

    /// After a failure of the log or the manifest the handle says that it takes no more writes, and will be held to it.
    fn check_poison(&mut self, faults_before: u64) -> Checked<()> {
        let Some(session) = &self.session else { return Ok(()) };
        if self.poison.as_ref().is_some_and(|fault| fault.fired() > faults_before) {
            if session.db().health().writable {
                return Err("the log or the manifest failed, and the handle still calls itself writable".to_string());
            }
            self.refused = true;
        }
        Ok(())
    }

    fn check_reads(&self) -> Checked<()> {
        let Some(session) = &self.session else { return Ok(()) };
        match read_state(session.db(), &NAMES)? {
            Ok(state) if self.possible.now().contains(&state) => {}
            Ok(state) => {
                let last = self.possible.history.len() - 1;
                return self.possible.check(&state, last).map_err(|what| format!("a scan is wrong: {what}"));
            }
            Err(error) if self.demand_success => return Err(format!("a scan failed: {error}")),
            Err(_) => {}
        }
        // What was there once may not come back.
        let states = self.possible.history.iter().flatten();
        let keys: BTreeSet<&Place> = states.flat_map(|state| state.keys()).collect();
        for place in keys {
            let Ok(keyspace) = session.db().existing_keyspace(NAMES[place.0]) else { continue };
            let Ok(found) = keyspace.get(&place.1) else { continue };
            let right = |state: &State| state.get(place).map(|held| &held.value[..]) == found.as_deref();
            if !self.possible.now().iter().any(right) {
                return Err(format!("get {} is wrong: {found:?}", crate::state::shown(&place.1)));
            }
        }
        Ok(())
    }

    /// What was reported as copied must be a whole copy; reading it may meet the fault.
    fn check_checkpoint(&self, number: usize) -> Checked<()> {
        let opened = Db::open(checkpoint_path(number), self.ground.options_at(self.possible.now));
        let Ok(db) = opened.and_then(with_operators) else {
            return Ok(());
        };
        match read_state(&db, &NAMES)? {
            Ok(state) if !self.possible.now().contains(&state) => Err(format!("checkpoint {number} is wrong")),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Possible {
        self.possible
    }
}

/// What a step writes, exactly as the session writes it.
fn written(step: &Step, commits: u64) -> Option<(Vec<Write>, Durability)> {
    match step {
        Step::Batch(writes, durability) | Step::Transaction(writes, durability) => {
            Some((writes.iter().cloned().chain([count(commits + 1)]).collect(), *durability))
        }
        Step::Single(write, durability) => Some((vec![write.clone()], *durability)),
        Step::Ingest(keyspace, pairs) => Some((loaded(*keyspace, pairs), Durability::Sync)),
        _ => None,
    }
}
