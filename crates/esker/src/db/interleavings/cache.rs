//! Readers beside inserts, evictions and the end of a table: what is found in a slot belongs there,
//! and what is counted is what is kept.
//!
//! Planted and seen: `Cache::insert` without its look at what is present, or without making room;
//! `Slots` dropped without emptying them.

use super::*;
use crate::cache::{Cache, Slots, Weigh};
use loom::thread;

/// A block that knows whose it is.
struct Block(usize);

const WEIGHT: usize = 10;

impl Weigh for Block {
    fn weight(&self) -> usize {
        WEIGHT
    }
}

/// What a reader does: looks, and puts it there if it is not.
fn get(cache: &Cache<Block>, slots: &Arc<Slots<Block>>, index: usize) {
    let found = slots.lookup(index).and_then(crate::cache::Hit::into_inner);
    let block = found.unwrap_or_else(|| cache.insert(slots, index, Arc::new(Block(index))));
    assert_eq!(block.0, index);
}

fn kept(slots: &Slots<Block>, count: usize) -> usize {
    (0..count).filter(|&index| slots.peek(index).is_some_and(|hit| hit.is_some())).count()
}

#[test]
fn two_that_miss_the_same_block_keep_one() {
    explore("the same block", PREEMPTIONS, || {
        let cache = Arc::new(Cache::new(3 * WEIGHT));
        let slots = cache.slots(2);
        let (other, others) = (Arc::clone(&cache), Arc::clone(&slots));
        let thread = thread::spawn(move || get(&other, &others, 0));
        get(&cache, &slots, 0);
        thread.join().unwrap();
        assert_eq!((cache.usage_bytes(), kept(&slots, 2)), (WEIGHT, 1));
    });
}

#[test]
fn evictions_beside_readers_stay_within_the_budget() {
    explore("evictions", PREEMPTIONS, || {
        let cache = Arc::new(Cache::new(WEIGHT));
        let slots = cache.slots(2);
        let (other, others) = (Arc::clone(&cache), Arc::clone(&slots));
        let thread = thread::spawn(move || {
            get(&other, &others, 0);
            get(&other, &others, 1);
        });
        get(&cache, &slots, 1);
        get(&cache, &slots, 0);
        thread.join().unwrap();
        assert_eq!(cache.usage_bytes(), WEIGHT * kept(&slots, 2));
        assert!(cache.usage_bytes() <= WEIGHT);
    });
}

#[test]
fn a_table_that_goes_takes_its_blocks_along() {
    explore("the end of a table", PREEMPTIONS, || {
        let cache = Arc::new(Cache::new(WEIGHT));
        let (slots, stay) = (cache.slots(1), cache.slots(1));
        get(&cache, &slots, 0);
        let (other, others) = (Arc::clone(&cache), Arc::clone(&stay));
        // Evicts the other table's block, if that is still there.
        let thread = thread::spawn(move || get(&other, &others, 0));
        drop(slots);
        thread.join().unwrap();
        assert_eq!(cache.usage_bytes(), WEIGHT * kept(&stay, 1));
    });
}
