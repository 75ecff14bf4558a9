//! What is left where writes without log are lost.

use super::Progress;
use crate::model::Write;
use crate::powerloss::fading;
use crate::powerloss::script::{NAMES, WINDOW, model_with, whole_state};
use crate::state::State;

/// What a state has of one keyspace.
fn part(state: &State, keyspace: usize) -> State {
    let own = state.iter().filter(|((index, _), _)| *index == keyspace);
    own.map(|(place, held)| (place.clone(), held.clone())).collect()
}

impl Progress {
    /// The number of commits that a state holds: each keyspace holds all commits up to some flush
    /// of its own, and the logged ones behind.
    pub(super) fn find_unlogged(&self, state: &State, least: usize) -> Option<usize> {
        let mut allowed: Vec<bool> = (0..self.states.len()).map(|count| count >= least).collect();
        for keyspace in 0..NAMES.len() {
            let found = part(state, keyspace);
            let is_elsewhere = |write: &Write| write.keyspace != keyspace;
            let mut unflushed = self.commits[self.flushed..].iter();
            let right = if unflushed.all(|commit| commit.logged || commit.writes.iter().all(is_elsewhere)) {
                self.right_in_turn(keyspace, &found)
            } else {
                self.right_with_losses(keyspace, &found)
            };
            allowed.iter_mut().zip(&right).for_each(|(allowed, right)| *allowed &= right);
        }
        allowed.iter().rposition(|allowed| *allowed)
    }

    /// With which numbers of commits a keyspace may hold this of which all writes are logged. No
    /// replay knows what compaction had taken when they were made.
    fn right_in_turn(&self, keyspace: usize, found: &State) -> Vec<bool> {
        let agrees = |count: usize| {
            fading::agrees(&part(&self.states[count], keyspace), found, self.times())
                && (keyspace != WINDOW || self.lost_too_early(count, found).is_none())
        };
        (0..self.states.len()).map(|count| count >= self.flushed && agrees(count)).collect()
    }

    /// The same of one with writes without log.
    fn right_with_losses(&self, keyspace: usize, found: &State) -> Vec<bool> {
        let present: Vec<_> = (0..NAMES.len()).map(|keyspace| self.model.settings(keyspace)).collect();
        let mut right = vec![false; self.states.len()];
        for flushed in self.flushed..self.states.len() {
            let settings = self.commits.get(flushed).map_or(&present, |commit| &commit.settings);
            let mut replay = model_with(&part(&self.states[flushed], keyspace), self.now, settings);
            for (count, right) in right.iter_mut().enumerate().skip(flushed) {
                if count > flushed {
                    let commit = &self.commits[count - 1];
                    let own: Vec<Write> =
                        commit.writes.iter().filter(|write| write.keyspace == keyspace).cloned().collect();
                    if commit.logged && !own.is_empty() {
                        replay.set_now(commit.now);
                        replay.set_settings(keyspace, commit.settings[keyspace]);
                        replay.commit(&own);
                        replay.set_now(self.now);
                    }
                }
                *right = *right || fading::agrees(&whole_state(&replay), found, self.times());
            }
        }
        right
    }
}
