//! The states that a database may be in while calls fail.

use crate::Checked;
use crate::asked::{Question, Reply};
use crate::model::Write;
use crate::powerloss::script::{Step, model_of};
use crate::state::{Durability, State, model_state};
use esker::Error;
use std::collections::BTreeSet;

/// The states that the database may be in.
pub struct Possible {
    /// After every attempted commit. A failed one leaves the states with it and those without it.
    pub history: Vec<BTreeSet<State>>,
    /// The index in `history` from which on a power loss may have stopped.
    pub synced: usize,
    /// What the clock shows.
    pub now: u64,
    /// Whether the file that names the manifest may be missing.
    pub damaged: bool,
}

impl Possible {
    pub fn from_state(state: State, now: u64) -> Possible {
        Possible { history: vec![BTreeSet::from([state])], synced: 0, now, damaged: false }
    }

    /// Moves the clock: what has expired is in no state any more.
    pub fn tick(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        let live = |mut state: State| {
            state.retain(|_, held| held.expiry > self.now);
            state
        };
        for states in &mut self.history {
            *states = std::mem::take(states).into_iter().map(live).collect();
        }
    }

    pub fn now(&self) -> &BTreeSet<State> {
        // The history is never empty: it starts with one entry and only grows.
        &self.history[self.history.len() - 1]
    }

    pub fn commit(&mut self, writes: &[Write], outcome: &esker::Result<()>, sync: bool) {
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

    /// What a step asks, by one of the states; none if it asks nothing.
    pub fn question(&self, step: &Step) -> Option<(Question, Durability)> {
        let (question, requested) = match step {
            Step::PopFirst(keyspace) => (Question::PopFirst(*keyspace), Durability::Async),
            Step::Ask(write, expected, durability) => {
                let state = self.now().iter().next_back()?;
                (Question::of(write, *expected, &model_of(state, self.now))?, *durability)
            }
            _ => return None,
        };
        let durability = question.durability(requested);
        Some((question, durability))
    }

    /// Notes an answer; whether it says that something was written. A failed one leaves the states
    /// with the write and those without it.
    pub fn answer(&mut self, question: &Question, answer: &esker::Result<Reply>, sync: bool) -> Checked<bool> {
        if matches!(answer, Err(Error::ReadOnly { .. } | Error::InvalidArgument { .. })) {
            return Ok(false);
        }
        let mut next = BTreeSet::new();
        let mut wrote = false;
        for state in self.now() {
            let model = model_of(state, self.now);
            let Ok((expected, written)) = question.right(&model) else { continue };
            match answer {
                Ok(found) if *found != expected => continue,
                Ok(_) => {}
                Err(_) => _ = next.insert(state.clone()),
            }
            wrote |= written.is_some();
            next.insert(written.map_or(state.clone(), |write| apply(state, &[write], self.now)));
        }
        if next.is_empty() {
            return Err(format!("{question:?} is answered {answer:?}, as no state that was possible says"));
        }
        self.history.push(next);
        if sync && wrote && answer.is_ok() {
            self.synced = self.history.len() - 1;
        }
        Ok(wrote)
    }

    pub fn check(&self, state: &State, least: usize) -> Checked<()> {
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
