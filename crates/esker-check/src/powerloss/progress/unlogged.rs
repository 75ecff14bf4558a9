//! What is left where writes without log are lost.

use super::Progress;
use crate::model::{Order, Span, Write};
use crate::powerloss::fading;
use crate::powerloss::script::{NAMES, WINDOW, model_with, whole_state};
use crate::state::{Place, State};
use std::collections::BTreeSet;

/// What a state has at some of the places.
fn part(state: &State, is_wanted: impl Fn(&Place) -> bool) -> State {
    let own = state.iter().filter(|entry| is_wanted(entry.0));
    own.map(|(place, held)| (place.clone(), held.clone())).collect()
}

/// The keys of a keyspace that some writes without log were to change.
struct Lossy<'a> {
    keyspace: usize,
    order: Order,
    keys: BTreeSet<&'a [u8]>,
    ranges: Vec<Span>,
}

impl<'a> Lossy<'a> {
    fn of(keyspace: usize, order: Order, unlogged: impl Iterator<Item = &'a Write>) -> Lossy<'a> {
        let own = unlogged.filter(|write| write.keyspace == keyspace);
        let (ranges, single): (Vec<&Write>, Vec<&Write>) = own.partition(|write| write.change.is_range());
        let keys = single.into_iter().map(|write| write.key.as_slice()).collect();
        Lossy { keyspace, order, keys, ranges: ranges.into_iter().map(Write::touched).collect() }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.keys.contains(key) || self.ranges.iter().any(|range| self.order.contains(range, key))
    }

    /// What a state has of these keys, or of the others of the keyspace.
    fn part(&self, state: &State, is_lossy: bool) -> State {
        part(state, |(keyspace, key)| *keyspace == self.keyspace && self.has(key) == is_lossy)
    }

    /// The writes that bear on these keys.
    fn writes(&self, all: &[Write]) -> Vec<Write> {
        let bears = |write: &&Write| write.change.is_range() || self.has(&write.key);
        all.iter().filter(|write| write.keyspace == self.keyspace).filter(bears).cloned().collect()
    }
}

impl Progress {
    /// Which numbers of commits a state may hold, from none on: each keyspace holds all commits up
    /// to some flush of its own, and the logged ones behind.
    pub(super) fn right_where_unlogged_are_lost(&self, state: &State, least: usize) -> Vec<bool> {
        let mut allowed: Vec<bool> = (0..self.states.len()).map(|count| count >= least).collect();
        for keyspace in 0..NAMES.len() {
            let found = part(state, |place| place.0 == keyspace);
            let is_elsewhere = |write: &Write| write.keyspace != keyspace;
            let mut unflushed = self.commits[self.flushed..].iter();
            let right = if unflushed.all(|commit| commit.logged || commit.writes.iter().all(is_elsewhere)) {
                self.right_in_turn(keyspace, &found)
            } else {
                self.right_with_losses(keyspace, &found)
            };
            allowed.iter_mut().zip(&right).for_each(|(allowed, right)| *allowed &= right);
        }
        allowed
    }

    /// With which numbers of commits a keyspace may hold this of which all writes are logged. No
    /// replay knows what compaction had taken when they were made.
    fn right_in_turn(&self, keyspace: usize, found: &State) -> Vec<bool> {
        let agrees = |count: usize| {
            fading::agrees(&part(&self.states[count], |place| place.0 == keyspace), found, self.times())
                && (keyspace != WINDOW || self.lost_too_early(count, found).is_none())
        };
        (0..self.states.len()).map(|count| count >= self.flushed && agrees(count)).collect()
    }

    /// The same of one with writes without log. Their keys are as what is logged makes them of what
    /// some flush has written; what happens to one key does not depend on others, so that these are
    /// as they were.
    fn right_with_losses(&self, keyspace: usize, found: &State) -> Vec<bool> {
        let unlogged = self.commits[self.flushed..].iter().filter(|commit| !commit.logged);
        let lossy = Lossy::of(keyspace, self.model.order(keyspace), unlogged.flat_map(|commit| &commit.writes));
        let (found_lossy, found_sure) = (lossy.part(found, true), lossy.part(found, false));
        let present: Vec<_> = (0..NAMES.len()).map(|keyspace| self.model.settings(keyspace)).collect();
        let mut right = vec![false; self.states.len()];
        for flushed in self.flushed..self.states.len() {
            let settings = self.commits.get(flushed).map_or(&present, |commit| &commit.settings);
            let mut replay = model_with(&lossy.part(&self.states[flushed], true), self.now, settings);
            for (count, right) in right.iter_mut().enumerate().skip(flushed) {
                if count > flushed {
                    let commit = &self.commits[count - 1];
                    let own = lossy.writes(&commit.writes);
                    if commit.logged && !own.is_empty() {
                        replay.set_now(commit.now);
                        replay.set_settings(keyspace, commit.settings[keyspace]);
                        replay.commit(&own);
                        replay.set_now(self.now);
                    }
                }
                *right = *right || fading::agrees(&whole_state(&replay), &found_lossy, self.times());
            }
        }
        for (state, right) in self.states.iter().zip(&mut right) {
            *right = *right && fading::agrees(&lossy.part(state, false), &found_sure, self.times());
        }
        right
    }
}
