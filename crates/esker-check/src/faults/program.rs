//! A program that goes on whatever fails, as programs do, and compares every answer with the states
//! that are possible.

use super::fault::{Armed, Before};
use super::held::Held;
use super::possible::Possible;
use crate::Checked;
use crate::model::Write;
use crate::powerloss::asking::kept_durability;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, NOW_MS, Step, count, dropping, loaded};
use crate::powerloss::session::{Ground, Session, checkpoint_path, with_operators};
use crate::simulated::MEMORY_PATH;
use crate::state::{Durability, Place, State, difference, read_state, shown};
use esker::env::mem::MemEnv;
use esker::{Db, Error};
use std::collections::BTreeSet;

/// A program that goes on whatever happens.
pub struct Program {
    ground: Ground,
    /// The disk of the ground, below whatever lets its calls fail.
    memory: MemEnv,
    /// None in runs in which everything must succeed.
    armed: Option<Armed>,
    session: Option<Session>,
    held: Held,
    possible: Possible,
    commits: u64,
    /// Whether this handle has refused a write, or has said that it will.
    refused: bool,
    /// Whether any handle has.
    refused_ever: bool,
}

impl Program {
    /// On an empty disk, with a fault that waits for its call.
    pub fn new(ground: Ground, memory: MemEnv, armed: Option<Armed>) -> Program {
        Program {
            ground,
            memory,
            armed,
            session: None,
            held: Held::default(),
            possible: Possible::from_state(State::new(), NOW_MS),
            commits: 0,
            refused: false,
            refused_ever: false,
        }
    }

    /// Goes on with an open database that holds that, without faults.
    pub fn opened(ground: Ground, memory: MemEnv, session: Session, state: State, now: u64) -> Program {
        let possible = Possible::from_state(state, now);
        Program { session: Some(session), possible, ..Program::new(ground, memory, None) }
    }

    pub fn refused_ever(&self) -> bool {
        self.refused_ever
    }

    /// How often the fault happened.
    pub fn hits(&self) -> u64 {
        self.armed.as_ref().map_or(0, Armed::hits)
    }

    /// Performs the steps; the error is a wrong answer, or a failure that no fault explains.
    pub fn run(&mut self, steps: &[Step]) -> Checked<()> {
        for (number, step) in steps.iter().enumerate() {
            if let Some(armed) = &self.armed {
                armed.begin_step(number);
            }
            if self.session.is_none() && !self.open()? {
                return Ok(());
            }
            let outcome = match step {
                _ if step.opens() => {
                    // Scripts that remove a database are not for this program.
                    let mut outcome = self.close(step.closes());
                    match step {
                        Step::Repair => {
                            self.possible.damaged = true;
                            outcome = self.ground.lose_current();
                        }
                        Step::ReopenWith(number) => self.ground = self.ground.changed(*number),
                        Step::Keep(retention) => self.ground = self.ground.keeping(*retention),
                        _ => {}
                    }
                    if !self.open()? {
                        return self.end(outcome);
                    }
                    outcome
                }
                _ => {
                    let must_succeed = self.must_succeed();
                    let outcome = self.perform(step)?;
                    if let (true, Err(error)) = (must_succeed, &outcome) {
                        return Err(format!("{step:?} failed after the disk was freed: {error}"));
                    }
                    outcome
                }
            };
            if let (None, Err(error)) = (&self.armed, &outcome) {
                return Err(format!("{step:?} failed: {error}"));
            }
            self.check_reads()?;
        }
        let outcome = self.close(true);
        self.end(outcome)
    }

    fn end(&self, outcome: esker::Result<()>) -> Checked<()> {
        match outcome {
            Err(error) if self.armed.is_none() => Err(format!("the end failed: {error}")),
            _ => Ok(()),
        }
    }

    /// The progress that a session keeps assumes that everything succeeds; only its notice of what
    /// was tried counts here.
    fn progress(&self) -> Progress {
        let Possible { now, damaged, .. } = self.possible;
        Progress::unknown(self.commits, now, damaged)
    }

    /// Tries twice, as a program would that was told of an error. Where the fault is over, the
    /// second attempt finds nothing that stands against it.
    fn open(&mut self) -> Checked<bool> {
        self.refused = false;
        let mut last = None;
        for _ in 0..2 {
            let was_over = self.armed.as_ref().is_none_or(Armed::is_over);
            let mut progress = self.progress();
            match Session::open(&self.ground, &mut progress) {
                Ok(session) => {
                    self.possible.damaged = false;
                    self.session = Some(session);
                    return Ok(true);
                }
                Err(error) if was_over => return Err(format!("open failed after the fault was over: {error}")),
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if self.hits() == 0 => Err(format!("open failed without a fault: {error}")),
            _ => Ok(false),
        }
    }

    fn close(&mut self, clean: bool) -> esker::Result<()> {
        self.held = Held::default();
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
            Step::Hold(..) | Step::Look(..) | Step::ReadBeside => return self.read(step),
            Step::Ask(..) | Step::PopFirst(_) => return self.ask(step),
            // The program compares by itself, after every step.
            Step::Compare => return Ok(Ok(())),
            Step::Clock(milliseconds) => self.possible.tick(*milliseconds),
            _ => {}
        }
        let before = self.armed.as_ref().map(Armed::before);
        let outcome = session.perform(step, &mut progress);
        let tried = progress.attempted() > 0;
        if let (true, Some((writes, durability))) = (tried, written(step, self.commits)) {
            self.commits += 1;
            let without = self.possible.now().clone();
            self.possible.commit(&writes, &outcome, durability == Durability::Sync);
            self.check_refusal(&outcome)?;
            self.check_visible(&without, &outcome)?;
        }
        // A checkpoint writes a log and a manifest of its own, which do no harm here.
        if let (false, Some(before)) = (matches!(step, Step::Checkpoint(..)), before) {
            self.check_poison(before, step, &outcome)?;
        }
        match step {
            Step::Flush | Step::Compact if outcome.is_ok() => self.possible.synced = self.possible.history.len() - 1,
            Step::Checkpoint(number, _) => self.check_checkpoint(*number, outcome.is_ok())?,
            _ => {}
        }
        Ok(outcome)
    }

    /// A write that looks at what it replaces. The answer is that of some of the states that were
    /// possible, and from then on it is one of those, with what the answer says was written.
    fn ask(&mut self, step: &Step) -> Checked<esker::Result<()>> {
        let mut progress = self.progress();
        let Some(session) = &mut self.session else { return Ok(Ok(())) };
        let Some((question, durability)) = self.possible.question(step) else { return Ok(Ok(())) };
        let before = self.armed.as_ref().map(Armed::before);
        let keyspace = session.keyspace(question.keyspace(), &mut progress);
        let asked = keyspace.and_then(|keyspace| question.put(&keyspace, &durability.options()));
        let without = self.possible.now().clone();
        let wrote = self.possible.answer(&question, &asked, durability == Durability::Sync)?;
        let outcome = asked.map(drop);
        // What a handle that takes no writes declines to write it may still answer.
        if wrote || outcome.is_err() {
            self.check_refusal(&outcome)?;
        }
        self.check_visible(&without, &outcome)?;
        if let Some(before) = before {
            self.check_poison(before, step, &outcome)?;
        }
        Ok(outcome)
    }

    /// The steps that only read. What they may see is any of the possible states, but the same one
    /// each time.
    fn read(&mut self, step: &Step) -> Checked<esker::Result<()>> {
        let mut progress = self.progress();
        let Some(session) = &mut self.session else { return Ok(Ok(())) };
        let outcome = match step {
            Step::Hold(slot, index) => {
                // The only part of these steps that writes: the keyspace may have to be created.
                let keyspace = match session.keyspace(*index, &mut progress) {
                    Ok(keyspace) => keyspace,
                    Err(error) => return Ok(Err(error)),
                };
                self.held.hold(*slot, session.db(), (&keyspace, *index), self.possible.now());
                Ok(())
            }
            Step::Look(slot, steps) => self.held.look(*slot, session.db(), *steps)?,
            _ => self.read_beside()?,
        };
        if let Err(error) = &outcome {
            self.read_failed(&format!("{step:?}"), error)?;
        }
        Ok(outcome)
    }

    /// The database opened for reading beside the handle. It writes nothing, so that no failed
    /// write may stand in its way.
    fn read_beside(&self) -> Checked<esker::Result<()>> {
        let opened = Db::open_read_only(MEMORY_PATH, self.ground.options_at(self.possible.now));
        let state = match opened.and_then(with_operators) {
            Ok(db) => read_state(&db, &NAMES)?,
            Err(error) => return Ok(Err(error)),
        };
        match state {
            Ok(state) => {
                let last = self.possible.history.len() - 1;
                self.possible.check(&state, last).map_err(|what| format!("read beside the writer: {what}"))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Reads go on in every case (C5, C8): only a fault that reads themselves meet may fail one.
    fn read_failed(&self, what: &str, error: &Error) -> Checked<()> {
        if self.armed.as_ref().is_some_and(Armed::hits_reads) {
            return Ok(());
        }
        Err(format!("{what} failed, though nothing that reads has: {error}"))
    }

    /// "Writes go on when there is space" (C8), unless the handle says that it takes no more.
    fn must_succeed(&self) -> bool {
        let writable = self.session.as_ref().is_some_and(|session| session.db().health().writable);
        writable && self.armed.as_ref().is_some_and(Armed::is_freed)
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

    /// A write that failed and is visible all the same is one whose sync failed (C5): the handle
    /// takes no more.
    fn check_visible(&mut self, without: &BTreeSet<State>, outcome: &esker::Result<()>) -> Checked<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let failed = matches!(outcome, Err(error) if !matches!(error, Error::ReadOnly { .. }));
        if !failed || !session.db().health().writable {
            return Ok(());
        }
        match read_state(session.db(), &NAMES)? {
            Ok(state) if !without.contains(&state) => {
                Err(format!("a write failed ({outcome:?}) and is visible, and the handle still calls itself writable"))
            }
            _ => Ok(()),
        }
    }

    /// After a failure of the log or the manifest the handle says that it takes no more writes, and
    /// will be held to it.
    fn check_poison(&mut self, before: Before, step: &Step, outcome: &esker::Result<()>) -> Checked<()> {
        let (Some(session), Some(armed)) = (&self.session, &self.armed) else { return Ok(()) };
        if armed.must_not_refuse(before) && !session.db().health().writable {
            return Err(format!("a file of the log could not be made ({outcome:?}), and the handle takes no more"));
        }
        let Some(failed) = armed.must_refuse(before, step, outcome, session.db()) else { return Ok(()) };
        if session.db().health().writable {
            return Err(format!("{failed} failed ({outcome:?}), and the handle still calls itself writable"));
        }
        self.refused = true;
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
            Err(error) => self.read_failed("a scan", &error)?,
        }
        // What was there once may not come back.
        let states = self.possible.history.iter().flatten();
        let keys: BTreeSet<&Place> = states.flat_map(|state| state.keys()).collect();
        for place in keys {
            let found = match session.db().existing_keyspace(NAMES[place.0]) {
                Ok(keyspace) => keyspace.get(&place.1),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            };
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    self.read_failed(&format!("get {}", shown(&place.1)), &error)?;
                    continue;
                }
            };
            let right = |state: &State| state.get(place).map(|held| &held.value[..]) == found.as_deref();
            if !self.possible.now().iter().any(right) {
                return Err(format!("get {} is wrong: {found:?}", shown(&place.1)));
            }
        }
        Ok(())
    }

    /// What was reported as copied is a whole copy; what was not is one, or is refused. It is
    /// opened where nothing fails any more.
    fn check_checkpoint(&self, number: usize, reported: bool) -> Checked<()> {
        let env = self.memory.kill();
        env.set_capacity(None);
        let ground = self.ground.moved_to(env);
        let opened = Db::open(checkpoint_path(number), ground.options_at(self.possible.now).create_if_missing(false));
        let state = match opened.and_then(with_operators) {
            Ok(db) => read_state(&db, &NAMES)?,
            Err(error) => Err(error),
        };
        match state {
            Ok(state) if self.possible.now().contains(&state) => Ok(()),
            Ok(state) => {
                let near = self.possible.now().iter().next_back().cloned().unwrap_or_default();
                let what = difference(&near, &state).unwrap_or_default();
                Err(format!("checkpoint {number} (reported as made: {reported}) is wrong: {what}"))
            }
            Err(error) if reported => Err(format!("checkpoint {number} was reported as made: {error}")),
            Err(_) => Ok(()),
        }
    }

    /// The states that it may have left behind.
    pub fn possible(&self) -> &Possible {
        &self.possible
    }
}

/// What a step writes, exactly as the session writes it.
fn written(step: &Step, commits: u64) -> Option<(Vec<Write>, Durability)> {
    match step {
        Step::Batch(writes, durability) | Step::Transaction(writes, durability) => {
            Some((writes.iter().cloned().chain([count(commits + 1)]).collect(), *durability))
        }
        Step::Single(write, durability) | Step::Typed(write, durability) => {
            let is_typed = matches!(step, Step::Typed(..));
            Some((vec![write.clone()], kept_durability(write, *durability, is_typed)))
        }
        Step::Ingest(keyspace, pairs) => Some((loaded(*keyspace, pairs), Durability::Sync)),
        Step::DropKeyspace(keyspace) => Some((dropping(*keyspace), Durability::Sync)),
        _ => None,
    }
}
