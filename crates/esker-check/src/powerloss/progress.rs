//! The operations requested and acknowledged so far: which contents a database may hold.

use super::script::{COUNTER, KEYSPACES, NOW_MS, empty_model, model_of};
use crate::Checked;
use crate::model::{Model, Write};
use crate::state::{Durability, Place, State, difference, model_state, shown};
use std::collections::BTreeSet;

/// A commit: what leads from one state to the next.
#[derive(Clone, Debug)]
struct Commit {
    writes: Vec<Write>,
    logged: bool,
    now: u64,
}

/// The operations requested and acknowledged so far.
#[derive(Clone, Debug)]
pub struct Progress {
    model: Model,
    /// The commit counter before the first commit.
    base: u64,
    /// The state after every number of commits, without what has expired since.
    pub states: Vec<State>,
    commits: Vec<Commit>,
    /// What the clock shows.
    pub now: u64,
    /// Commits that returned success: they survive the process.
    pub acknowledged: usize,
    /// Commits covered by a synced write, a flush or a close that returned success: they survive
    /// the machine.
    pub synced: usize,
    /// Those of them that a sync of the log alone makes durable, whatever becomes of the manifest:
    /// covered by a synced write, or by a sync.
    pub log_synced: usize,
    /// Commits of which the manifest or a later record says that the log was synced up to there.
    pub vouched: usize,
    /// Those of which the manifest says so.
    pub listed: usize,
    /// Commits covered by a flush or a close: they survive even if they were not logged.
    pub flushed: usize,
    /// Whether the file that names the manifest may be missing.
    pub damaged: bool,
    /// Checkpoints that returned success, and the number of commits in each.
    pub checkpoints: Vec<(usize, usize)>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            model: empty_model(NOW_MS),
            base: 0,
            states: vec![State::new()],
            commits: Vec::new(),
            now: NOW_MS,
            acknowledged: 0,
            synced: 0,
            log_synced: 0,
            vouched: 0,
            listed: 0,
            flushed: 0,
            damaged: false,
            checkpoints: Vec::new(),
        }
    }
}

impl Progress {
    /// A database of which nothing is known but the time and whether it has to be repaired; its
    /// commits are numbered from `base` on.
    pub fn unknown(base: u64, now: u64, damaged: bool) -> Progress {
        Progress { model: empty_model(now), base, now, damaged, ..Progress::default() }
    }

    /// Goes on from a recovered database that holds `state`, which is what `count` commits lead to,
    /// in a new process.
    ///
    /// After a power loss everything that was recovered was on the disk, so no later loss may take
    /// it. After the death of a process only, what was not synced can still be lost with the
    /// machine, until something later is synced.
    pub fn recovered(&self, count: usize, state: State, all_durable: bool) -> Progress {
        let mut states = self.states[..count].to_vec();
        let model = model_of(&state, self.now);
        states.push(state);
        Progress {
            model,
            // Numbers that the lost commits had are not used again, so that no later state equals a
            // lost one.
            base: self.base + (self.attempted() - count) as u64,
            states,
            commits: self.commits[..count].to_vec(),
            now: self.now,
            acknowledged: count,
            synced: if all_durable { count } else { self.synced.min(count) },
            log_synced: self.log_synced.min(count),
            vouched: self.vouched.min(count),
            listed: self.listed.min(count),
            flushed: if all_durable { count } else { self.flushed.min(count) },
            damaged: self.damaged,
            checkpoints: Vec::new(),
        }
    }

    /// How many commits were attempted.
    pub fn attempted(&self) -> usize {
        self.states.len() - 1
    }

    /// How many operations these commits are made of.
    pub fn operations(&self) -> u64 {
        self.commits.iter().map(|commit| commit.writes.len() as u64).sum()
    }

    /// The number that the commit counter gets with the next commit.
    pub fn next_number(&self) -> u64 {
        self.base + self.attempted() as u64 + 1
    }

    /// The contents after everything that was attempted.
    pub fn newest(&self) -> &State {
        // There is a state after no commit at all, and none is ever taken away.
        &self.states[self.states.len() - 1]
    }

    /// Notes a commit before it is attempted.
    pub fn attempt(&mut self, writes: &[Write], durability: Durability) {
        let at = self.model.commit(writes);
        self.states.push(model_state(&self.model, at));
        let logged = durability != Durability::Unlogged;
        self.commits.push(Commit { writes: writes.to_vec(), logged, now: self.now });
    }

    /// Notes that the last commit returned success.
    pub fn acknowledge(&mut self, durability: Durability) {
        self.acknowledged = self.attempted();
        self.vouched = self.vouched.max(self.synced);
        if durability == Durability::Sync {
            self.note_log_synced();
        }
    }

    /// Notes that the log is on the device.
    pub fn note_log_synced(&mut self) {
        self.synced = self.attempted();
        self.log_synced = self.attempted();
    }

    /// Notes that everything is in tables.
    pub fn note_flushed(&mut self) {
        self.synced = self.attempted();
        self.flushed = self.attempted();
        self.note_listed();
    }

    /// Notes that the manifest was written behind everything so far.
    pub fn note_listed(&mut self) {
        self.vouched = self.attempted();
        self.listed = self.attempted();
    }

    /// Whether the death of the process would lose what was acknowledged.
    pub fn holds_unlogged(&self) -> bool {
        self.commits[self.flushed..].iter().any(|commit| !commit.logged)
    }

    /// Moves the clock: what has expired is in no state any more.
    pub fn tick(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        self.model.set_now(self.now);
        for state in &mut self.states {
            state.retain(|_, held| held.expiry > self.now);
        }
    }

    /// Every key that any of the states holds.
    pub fn places(&self) -> BTreeSet<Place> {
        self.states.iter().flat_map(|state| state.keys().cloned()).collect()
    }

    /// The number of commits that a state holds, if it is one of those allowed.
    pub fn find(&self, state: &State, least: usize) -> Checked<usize> {
        let whole = (least..self.states.len()).rev().find(|&count| self.states[count] == *state);
        let found = whole.or_else(|| if self.holds_unlogged() { self.find_unlogged(state, least) } else { None });
        found.ok_or_else(|| {
            let near = self.newest();
            let counter = |state: &State| state.get(&(COUNTER.0, COUNTER.1.to_vec())).cloned();
            format!(
                "the contents are not those after any of {least}..={} commits (counter {:?}, newest {:?}); against the \
                 newest: {}; against the oldest allowed: {}",
                self.attempted(),
                counter(state).map(|held| shown(&held.value)),
                counter(near).map(|held| shown(&held.value)),
                difference(near, state).unwrap_or_default(),
                difference(&self.states[least.min(self.attempted())], state).unwrap_or_default(),
            )
        })
    }

    /// The same where writes without log are lost: each keyspace holds all commits up to some flush
    /// of its own, and the logged ones behind.
    fn find_unlogged(&self, state: &State, least: usize) -> Option<usize> {
        let mut allowed: Vec<bool> = (0..self.states.len()).map(|count| count >= least).collect();
        for keyspace in 0..KEYSPACES.len() {
            let of_it = |state: &State| -> State {
                let own = state.iter().filter(|((index, _), _)| *index == keyspace);
                own.map(|(place, held)| (place.clone(), held.clone())).collect()
            };
            let found = of_it(state);
            let mut right = vec![false; self.states.len()];
            for flushed in self.flushed..self.states.len() {
                let mut replay = model_of(&of_it(&self.states[flushed]), self.now);
                for (count, right) in right.iter_mut().enumerate().skip(flushed) {
                    if count > flushed {
                        let commit = &self.commits[count - 1];
                        let own: Vec<Write> =
                            commit.writes.iter().filter(|write| write.keyspace == keyspace).cloned().collect();
                        if commit.logged && !own.is_empty() {
                            replay.set_now(commit.now);
                            replay.commit(&own);
                            replay.set_now(self.now);
                        }
                    }
                    *right = *right || model_state(&replay, replay.present()) == found;
                }
            }
            allowed.iter_mut().zip(&right).for_each(|(allowed, right)| *allowed &= right);
        }
        allowed.iter().rposition(|allowed| *allowed)
    }
}
