use super::*;

struct Thing(usize);

impl Weigh for Thing {
    fn weight(&self) -> usize {
        self.0
    }
}

fn thing(weight: usize) -> Arc<Thing> {
    Arc::new(Thing(weight))
}

/// Keeps `value` in slot `index` if the cache admits it, and returns what the slot holds from now
/// on, or would.
fn offer<T: Weigh>(cache: &Cache<T>, slots: &Arc<Slots<T>>, index: usize, value: Arc<T>) -> Arc<T> {
    if cache.admits(value.weight()) { cache.insert(slots, index, value) } else { value }
}

#[test]
fn the_budget_holds_and_usage_is_exact() {
    let cache = Cache::new(1000);
    let slots = cache.slots(500);
    for index in 0..500 {
        offer(&cache, &slots, index, thing(1 + index % 97));
        assert!(cache.usage_bytes() <= 1000);
        let held: usize = (0..500).filter_map(|i| slots.lookup(i)).map(|hit| hit.as_ref().map_or(0, |t| t.0)).sum();
        assert_eq!(held, cache.usage_bytes());
    }
    assert!(cache.usage_bytes() > 900);
}

#[test]
fn a_budget_of_zero_keeps_nothing() {
    let cache = Cache::new(0);
    let slots = cache.slots(4);
    offer(&cache, &slots, 1, thing(1));
    assert!(slots.lookup(1).is_none());
    assert!(slots.slots.get().is_none());
    assert_eq!((cache.hits(), cache.misses(), cache.usage_bytes()), (0, 1, 0));
}

#[test]
fn too_heavy_and_out_of_range_are_not_kept() {
    let cache = Cache::new(10);
    let slots = cache.slots(4);
    offer(&cache, &slots, 1, thing(11));
    offer(&cache, &slots, 4, thing(1));
    assert_eq!(cache.usage_bytes(), 0);
}

#[test]
fn the_first_value_of_a_slot_stays() {
    let cache = Cache::new(10);
    let slots = cache.slots(4);
    let first = offer(&cache, &slots, 1, thing(2));
    let second = offer(&cache, &slots, 1, thing(3));
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(cache.usage_bytes(), 2);
}

#[test]
fn a_scan_does_not_push_out_what_is_in_use() {
    let cache = Cache::new(100);
    let (hot, cold) = (cache.slots(10), cache.slots(10_000));
    for index in 0..10 {
        offer(&cache, &hot, index, thing(5));
    }
    for index in 0..10_000 {
        offer(&cache, &cold, index, thing(5));
        assert!(hot.lookup(index % 10).is_some(), "hot block lost at step {index}");
    }
}

#[test]
fn a_full_cache_keeps_one_in_eight_and_what_is_asked_for_again() {
    let cache = Cache::new(100);
    let slots = cache.slots(10_000);
    let is_kept = |index: usize| {
        let was_there = slots.lookup(index).is_some();
        if !was_there {
            offer(&cache, &slots, index, thing(1));
        }
        was_there || slots.lookup(index).is_some()
    };
    assert!((0..100).all(&is_kept), "there was room");
    let kept = (100..10_000).filter(|&index| is_kept(index)).count();
    assert!((1100..1400).contains(&kept), "{kept} of 9900");
    // One that always comes at the same place among others that never come again gets in as soon as
    // any: whatever their number, eight as well.
    for others in [1, 7, 8, 15, 143, 609] {
        let cache = Cache::new(100);
        let slots = cache.slots(100_000);
        (0..100).for_each(|index| drop(offer(&cache, &slots, index, thing(1))));
        let mut fresh = 100..100_000;
        let gets_in = (0..100).any(|_| {
            fresh.by_ref().take(others).for_each(|index| drop(offer(&cache, &slots, index, thing(1))));
            offer(&cache, &slots, 99_999, thing(1));
            slots.lookup(99_999).is_some()
        });
        assert!(gets_in, "passed over a hundred times, with {others} others in between");
    }
}

#[test]
fn dropped_tables_free_their_blocks_and_leave_the_ring() {
    let cache = Cache::new(1 << 20);
    for _ in 0..100 {
        let slots = cache.slots(50);
        for index in 0..50 {
            offer(&cache, &slots, index, thing(7));
        }
        assert_eq!(cache.usage_bytes(), 350);
        drop(slots);
        assert_eq!(cache.usage_bytes(), 0);
    }
    assert!(cache.ring.lock().len() <= 200);
}

#[test]
fn many_threads_agree_on_the_usage() {
    let cache = Cache::new(5_000);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..50 {
                    let slots = cache.slots(100);
                    for step in 0..400 {
                        let index = (step * 31 + round * 7 + thread) % 100;
                        if slots.lookup(index).is_none() {
                            offer(cache, &slots, index, thing(20 + index));
                        }
                        assert!(cache.usage_bytes() <= 5_000);
                    }
                }
            });
        }
    });
    assert_eq!(cache.usage_bytes(), 0);
}

#[test]
fn what_is_admitted_is_kept() {
    for pinned in [false, true] {
        let cache = if pinned { Cache::counting_pinned(1000) } else { Cache::new(1000) };
        let slots = cache.slots(10_000);
        let keep = |index: usize, weight: usize| {
            let admitted = cache.admits(weight);
            if admitted {
                let charge = cache.charge(weight);
                cache.insert(&slots, index, thing(weight));
                // A value holds its charge for as long as it lives; these live until they are
                // evicted.
                std::mem::forget(charge);
            }
            admitted
        };
        assert!(!cache.admits(1001), "heavier than all of the budget");
        assert!((0..10).all(|index| keep(index, 100)), "there was room");
        assert_eq!(cache.usage_bytes(), 1000);
        let admitted = (0..8000).filter(|_| cache.admits(100)).count();
        assert!((850..1150).contains(&admitted), "{admitted} of 8000 at a full cache");
        cache.insert(&slots, 10, thing(1001));
        assert_eq!(cache.usage_bytes(), 1000, "what never fits puts nothing out");
    }
}

/// A value with memory, as a block has it.
struct Piece(Vec<u8>, Option<Charge>);

impl Weigh for Piece {
    fn weight(&self) -> usize {
        self.0.capacity()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(charge) = self.1.take() {
            charge.end(std::mem::take(&mut self.0));
        }
    }
}

fn piece(cache: &Cache<Piece>, bytes: usize) -> Arc<Piece> {
    let memory = cache.memory(bytes);
    let charge = cache.charge(memory.capacity());
    Arc::new(Piece(memory, Some(charge)))
}

/// As a table does it: admitted first, then made.
fn fill_one(cache: &Cache<Piece>, slots: &Arc<Slots<Piece>>, index: usize, bytes: usize) {
    if cache.admits(bytes) {
        cache.insert(slots, index, piece(cache, bytes));
    }
}

#[test]
fn memory_of_what_leaves_is_used_again_within_the_budget() {
    const BUDGET: usize = 100 << 10;
    for pinned in [false, true] {
        let cache = if pinned { Cache::counting_pinned(BUDGET) } else { Cache::new(BUDGET) };
        let fill = |slots: &Arc<Slots<Piece>>| {
            for index in 0..1000 {
                fill_one(&cache, slots, index, 4000 + index % 90);
                assert!(cache.usage_bytes() + cache.pooled_bytes() <= BUDGET);
            }
        };
        let slots = cache.slots(1000);
        fill(&slots);
        let full = cache.usage_bytes();
        assert!(full > BUDGET - (10 << 10), "{full}");
        drop(slots);
        assert_eq!((cache.usage_bytes(), cache.charged_bytes()), (0, 0));
        assert!(
            cache.pooled_bytes() > BUDGET - (10 << 10),
            "a closed table leaves its memory: {}",
            cache.pooled_bytes()
        );
        let slots = cache.slots(1000);
        fill_one(&cache, &slots, 0, 4000);
        assert!(cache.pooled_bytes() <= full - 4000, "it was used again");
        fill(&slots);
        // Held by a reader when it leaves: its memory comes when the reader goes.
        let held = piece(&cache, 4000);
        cache.set_budget(0);
        assert_eq!((cache.usage_bytes(), cache.pooled_bytes()), (0, 0));
        cache.set_budget(BUDGET);
        drop(held);
        assert_eq!(cache.pooled_bytes(), 4096);
    }
}
