//! What the parent knows of a database: the contents after a number of commits, and what may have
//! been done beyond the last one that was reported.
//!
//! A life of the child is a sequence of durable steps: the settings for the next commit, the
//! commit, the call behind it, the report. A kill ends it between two of them, or within one, which
//! is then done or not. So there are two cases, which the number of commits found tells apart. If
//! the last one was reported, the settings for the next one may have been made, and nothing else.
//! If it was not, no setting has been made since, and the call behind it was made or not.

use super::commits::{ALTERED, Commit, How, KEYSPACES, NAMES, NOW, PASSING, Settings, Step, VALUES};
use super::present::Present;
use super::told::{Batch, Told};
use super::totals::Totals;
use crate::Checked;
use crate::asked::{Call, Question};
use crate::model::{Change, Model, Write};
use crate::orders::order_of;
use crate::state::{State, difference, model_state};

/// What readers of the changes are to be told since the last time.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    pub(super) events: Vec<Told>,
    /// Nothing tells whether the last of them happened, but the changes.
    pub(super) may_lack_last: bool,
}

/// What was known before a call that may not have been made.
struct Before {
    model: Model,
    /// How many events there were.
    events: usize,
    drops: bool,
}

/// What the parent knows.
#[derive(Clone)]
pub(super) struct History {
    seed: u64,
    model: Model,
    commits: u64,
    present: Present,
}

impl History {
    /// Of a database that is not there yet.
    pub(super) fn new(seed: u64) -> History {
        let mut model = Model::with_ttl(&KEYSPACES.map(|(_, operator, ttl)| (operator, ttl)));
        NAMES.iter().enumerate().for_each(|(keyspace, name)| model.set_order(keyspace, order_of(name)));
        model.set_now(NOW);
        History { seed, model, commits: 0, present: Present::default() }
    }

    /// How many commits there are.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Goes on to `count` commits, of which `least` are known to be there, with all that was done
    /// behind them. `found`, `state`: what the database has.
    pub(super) fn go_on(
        &mut self,
        (least, count): (u64, u64),
        (found, state): (Present, &State),
        totals: &mut Totals,
    ) -> Checked<Due> {
        let mut due = Due::default();
        let mut before = None;
        for number in self.commits + 1..=count {
            self.settle(Present::at(&Settings::of(self.seed, number)), &mut due.events, totals);
            self.commit(number, &mut due.events, totals);
            let step = Step::new(self.seed, number);
            if number > least && !matches!(step, Step::Nothing) {
                let drops = matches!(step, Step::Drop);
                before = Some(Before { model: self.model.clone(), events: due.events.len(), drops });
            }
            self.step(&step, &mut due.events, totals);
        }
        self.commits = count;
        if count <= least {
            self.find_settings(found, &mut due.events, totals);
        } else if let Some(before) = before {
            self.find_step(before, found, state, &mut due);
        }
        if found != self.present {
            return Err(format!("after {count} commits: there is {found:?}, expected {:?}", self.present));
        }
        match difference(&model_state(&self.model, self.model.present()), state) {
            Some(what) => Err(format!("after {count} commits: {what}")),
            None => {
                self.model.forget_unseen(&[]);
                Ok(due)
            }
        }
    }

    /// The keyspaces get other names and settings; those that are missing are created with them,
    /// which nobody is told of.
    fn settle(&mut self, next: Present, events: &mut Vec<Told>, totals: &mut Totals) {
        let known = events.len();
        if let (Some(former), Some(name)) = (self.present.passing, next.passing)
            && former != name
        {
            let (_, operator, ttl) = KEYSPACES[PASSING];
            events.push(Told::Alter { former, name, settings: (operator, ttl) });
        }
        if let Some(now) = next.altered {
            if self.present.altered.is_some_and(|before| before != now) {
                events.push(Told::Alter { former: NAMES[ALTERED], name: NAMES[ALTERED], settings: now });
            }
            self.model.alter(ALTERED, now);
        }
        self.present = next;
        totals.settings += (events.len() - known) as u64;
    }

    fn commit(&mut self, number: u64, events: &mut Vec<Told>, totals: &mut Totals) {
        let commit = Commit::new(self.seed, number);
        let writes = commit.effect(&self.model);
        let batch = self.apply(writes);
        totals.transactions += u64::from(commit.how == How::Transaction);
        totals.loads += u64::from(commit.how == How::Load);
        events.push(if commit.how == How::Load { Told::Load(NAMES[VALUES]) } else { Told::Batch(batch) });
    }

    /// Applies writes that take effect together, one after the other: a change of an expiry writes
    /// nothing where there is no value.
    fn apply(&mut self, mut writes: Vec<Write>) -> Batch {
        let expires = std::array::from_fn(|keyspace| self.model.has_ttl(keyspace));
        writes.retain(|write| {
            let found = self.model.get(write.keyspace, &write.key, self.model.present());
            self.model.commit(std::slice::from_ref(write));
            write.change != Change::Expire || matches!(found, Ok(Some(_)))
        });
        Batch { writes, names: self.present.names(), expires }
    }

    fn step(&mut self, step: &Step, events: &mut Vec<Told>, totals: &mut Totals) {
        let writes = step.effect(&self.model);
        let batch = self.apply(writes);
        let is_written = !batch.writes.is_empty();
        match step {
            Step::Nothing => return,
            Step::Drop => {
                events.extend(self.present.passing.map(Told::Drop));
                let settings = self.model.settings(PASSING);
                self.model.drop_keyspace(PASSING, settings);
                self.model.forget_dropped();
                totals.drops += 1;
            }
            Step::Load(keyspace, _) => {
                events.push(Told::Load(self.present.names()[*keyspace]));
                totals.loads += 1;
            }
            Step::Clear(_) | Step::Single(_) | Step::Ask(_) => {
                events.extend(is_written.then_some(Told::Batch(batch)));
                totals.cleared += u64::from(matches!(step, Step::Clear(_)));
                totals.popped += u64::from(is_written && matches!(step, Step::Ask(Question::PopFirst(_))));
                let is_expiry = matches!(step, Step::Ask(Question::Key(_, Call::Expire(_))));
                totals.expiries += u64::from(is_written && is_expiry);
            }
        }
        totals.steps += 1;
    }

    /// Behind the last report there may be what the next commit needs, each part of it.
    fn find_settings(&mut self, found: Present, events: &mut Vec<Told>, totals: &mut Totals) {
        let next = Present::at(&Settings::of(self.seed, self.commits + 1));
        let passing = if found.passing == next.passing { next.passing } else { self.present.passing };
        let altered = if found.altered == next.altered { next.altered } else { self.present.altered };
        self.settle(Present { passing, altered }, events, totals);
    }

    /// Nobody has heard whether the call behind the last commit was made.
    fn find_step(&mut self, before: Before, found: Present, state: &State, due: &mut Due) {
        if before.drops && found.passing.is_none() {
            // Dropped, and not created again.
            self.present.passing = None;
            return;
        }
        let is = |model: &Model| model_state(model, model.present()) == *state;
        if !is(&before.model) {
            return;
        }
        if is(&self.model) {
            // It changed nothing.
            due.may_lack_last = due.events.len() > before.events;
        } else {
            self.model = before.model;
            due.events.truncate(before.events);
        }
    }
}
