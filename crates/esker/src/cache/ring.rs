//! The CLOCK ring: which slots hold something, in the order in which the hand passes them.

use super::slots::{Slots, Weigh};
use std::sync::{Arc, Weak};

/// The occupied slots of all tables. A place whose value was evicted stays as a hole for the next
/// newcomer, so that it enters just behind the hand and is reached last.
pub(super) struct Ring<T: Weigh> {
    places: Vec<Option<Place<T>>>,
    holes: Vec<usize>,
    hand: usize,
}

/// An occupied slot. The table may be gone; its slots are then empty and the place is dead.
struct Place<T: Weigh> {
    slots: Weak<Slots<T>>,
    index: usize,
}

impl<T: Weigh> Ring<T> {
    pub(super) fn new() -> Ring<T> {
        Ring { places: Vec::new(), holes: Vec::new(), hand: 0 }
    }

    /// Places, dead ones included.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.holes.len()
    }

    /// Adds a slot that was just filled.
    pub(super) fn push(&mut self, slots: &Arc<Slots<T>>, index: usize) {
        let place = Some(Place { slots: Arc::downgrade(slots), index });
        match self.holes.pop() {
            Some(hole) => self.places[hole] = place,
            None => self.places.push(place),
        }
    }

    /// Empties one slot; false if there is none. Slots requested since the hand last passed get
    /// another turn, but only one: readers can set flags as fast as the hand clears them.
    pub(super) fn evict(&mut self) -> bool {
        let turn = self.places.len();
        for step in 0..=2 * turn {
            if self.len() == 0 {
                return false;
            }
            let at = self.hand;
            self.hand = if at + 1 >= turn { 0 } else { at + 1 };
            let Some(place) = &self.places[at] else { continue };
            let freed = match place.slots.upgrade() {
                Some(slots) => match slots.reclaim(place.index, step < turn) {
                    Some(freed) => freed,
                    None => continue,
                },
                None => 0,
            };
            self.places[at] = None;
            self.holes.push(at);
            if freed > 0 {
                return true;
            }
        }
        false
    }

    /// Forgets dead places and holes.
    pub(super) fn sweep(&mut self) {
        self.places.retain(|place| place.as_ref().is_some_and(|place| place.slots.strong_count() > 0));
        self.holes.clear();
        self.hand = 0;
    }
}
