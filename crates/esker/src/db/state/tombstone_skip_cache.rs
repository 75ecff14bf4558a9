//! The tombstone skip cache: ranges of keys in which scans found only deleted entries.
//!
//! A queue, which takes the first key and deletes it again and again, leaves a tombstone behind
//! each time, and every seek to the first key skips all of them until they are compacted away. A
//! scan that has skipped many dead entries is remembered here, and the next one from there begins
//! behind them.
//!
//! Writes go on meanwhile, so a dead range is remembered in two steps:
//! 1. It is *watched*: every write from number `watched_from + 1` on that shows a key of it cuts it
//!    off there. This begins under the writer lock.
//! 2. It is *passed*, when a scan whose reader registered at `watched_from` or later has found
//!    nothing in it. What that reader does not see, and no write has touched since, no later reader
//!    sees either: deletes are for ever, and nothing else counts here. (What has expired does not:
//!    a clock may step back.)
//!
//! Readers register under the writer lock, and a write cuts before it releases that lock: so a
//! reader knows of every cut that it must know of.
//!
//! Nothing of this is kept on the device, and nothing has to be: without it scans are slower.

use crate::base::key::Sequence;
use crate::base::key_order::KeyOrder;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A scan is remembered once it has skipped so many dead entries.
pub const LEAST_PASSED: u64 = if cfg!(test) { 4 } else { 64 };
/// Dead ranges remembered for a keyspace: the heads of so many queues.
const MOST_RANGES: usize = 8;

/// Of the keys from `start` on and before `passed_end` a reader at `passed_at` or later sees none;
/// those before `end` are watched.
#[derive(Debug)]
struct DeadRange {
    start: Vec<u8>,
    passed_end: Vec<u8>,
    passed_at: Sequence,
    end: Vec<u8>,
    watched_from: Sequence,
}

/// Of one keyspace. See the module's comment.
#[derive(Debug, Default)]
pub struct TombstoneSkipCache {
    /// Whether there is any. Set under the writer lock.
    watches: AtomicBool,
    /// Oldest first; they may overlap. A leaf among the locks.
    ranges: Mutex<Vec<DeadRange>>,
    /// Of the keys. Nothing is remembered in one that is not to be trusted: no comparator is called
    /// with the lock held, and no seek goes anywhere on its word.
    order: KeyOrder,
}

impl TombstoneSkipCache {
    /// For keys in this order.
    pub fn new(order: &KeyOrder) -> TombstoneSkipCache {
        TombstoneSkipCache { order: order.clone(), ..TombstoneSkipCache::default() }
    }

    /// Whether `key` is at or behind `start` and before `end`.
    fn is_between(&self, start: &[u8], key: &[u8], end: &[u8]) -> bool {
        !self.order.less(key, start) && self.order.less(key, end)
    }

    /// Where a reader at `sequence` that seeks the first key at or after `key` may begin instead.
    #[inline]
    pub fn behind(&self, key: &[u8], sequence: Sequence) -> Option<Vec<u8>> {
        if !self.watches.load(Ordering::Relaxed) {
            return None;
        }
        let ranges = self.ranges.lock();
        let holds =
            |range: &&DeadRange| self.is_between(&range.start, key, &range.passed_end) && range.passed_at <= sequence;
        ranges.iter().find(holds).map(|range| range.passed_end.clone())
    }

    /// Notes that a write shows `key` from now on. Under the writer lock.
    #[inline]
    pub fn note_shown(&self, key: &[u8]) {
        if self.watches.load(Ordering::Relaxed) {
            self.cut(key);
        }
    }

    fn cut(&self, key: &[u8]) {
        let mut ranges = self.ranges.lock();
        for range in ranges.iter_mut() {
            if self.is_between(&range.start, key, &range.end) {
                range.end = key.to_vec();
                if self.order.less(key, &range.passed_end) {
                    range.passed_end.clone_from(&range.end);
                }
            }
        }
        ranges.retain(|range| self.order.less(&range.start, &range.end));
        if ranges.is_empty() {
            self.watches.store(false, Ordering::Relaxed);
        }
    }

    /// Forgets everything: keys were written that were not noted here. Under the writer lock.
    pub fn clear(&self) {
        self.ranges.lock().clear();
        self.watches.store(false, Ordering::Relaxed);
    }

    /// Notes that a reader at `sequence` saw no key from `from` on and before `to`. Under the
    /// writer lock; `last_sequence` is the last write's.
    pub fn note_passed(&self, from: &[u8], to: &[u8], sequence: Sequence, last_sequence: Sequence) {
        let order = &self.order;
        if !order.is_trusted() || !order.less(from, to) {
            return;
        }
        let mut ranges = self.ranges.lock();
        let goes_on = |range: &&mut DeadRange| !order.less(from, &range.start) && !order.less(&range.passed_end, from);
        let Some(range) = ranges.iter_mut().find(goes_on) else {
            if ranges.len() == MOST_RANGES {
                ranges.remove(0);
            }
            ranges.push(DeadRange {
                start: from.to_vec(),
                passed_end: from.to_vec(),
                passed_at: 0,
                end: to.to_vec(),
                watched_from: last_sequence,
            });
            self.watches.store(true, Ordering::Relaxed);
            return;
        };
        let seen_end = order.min(to, &range.end);
        if sequence >= range.watched_from && order.less(&range.passed_end, seen_end) {
            range.passed_end = seen_end.to_vec();
            range.passed_at = range.passed_at.max(sequence);
        }
        // Not before all of it is passed: readers that overlap would put that off again and again.
        if range.passed_end == range.end && order.less(&range.end, to) {
            range.end = to.to_vec();
            range.watched_from = last_sequence;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::mem::MemEnv;
    use crate::{Db, Keyspace, KeyspaceOptions, ManualClock, Options, Ttl, WriteOptions, merge};
    use std::collections::BTreeMap;
    use std::ops::Bound;
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    fn behind(passed: &TombstoneSkipCache, key: &str, sequence: Sequence) -> Option<String> {
        passed.behind(key.as_bytes(), sequence).map(|end| String::from_utf8(end).unwrap())
    }

    #[test]
    fn a_range_is_passed_when_it_was_seen_twice() {
        let passed = TombstoneSkipCache::default();
        passed.note_passed(b"b", b"m", 10, 15);
        assert_eq!(behind(&passed, "b", 20), None, "a write between 10 and 15 may have shown something");
        passed.note_passed(b"b", b"m", 14, 16);
        assert_eq!(behind(&passed, "b", 20), None, "this reader does not see write 15");
        passed.note_passed(b"b", b"p", 17, 18);
        assert_eq!(behind(&passed, "b", 17).as_deref(), Some("m"));
        assert_eq!(behind(&passed, "lll", 20).as_deref(), Some("m"));
        assert_eq!((behind(&passed, "m", 20), behind(&passed, "a", 20)), (None, None));
        assert_eq!(behind(&passed, "b", 16), None, "an older reader may see what was deleted since");
        passed.note_passed(b"b", b"p", 18, 19);
        assert_eq!(behind(&passed, "b", 18).as_deref(), Some("p"));
    }

    #[test]
    fn a_write_cuts() {
        let passed = TombstoneSkipCache::default();
        passed.note_passed(b"b", b"p", 1, 1);
        passed.note_shown(b"k");
        passed.note_passed(b"b", b"p", 1, 2);
        assert_eq!(behind(&passed, "b", 9).as_deref(), Some("k"), "what lies before it is as it was");
        passed.note_passed(b"b", b"p", 1, 3);
        assert_eq!(behind(&passed, "b", 9).as_deref(), Some("k"), "this reader does not see the write");
        passed.note_shown(b"c");
        assert_eq!(behind(&passed, "b", 9).as_deref(), Some("c"));
        passed.note_shown(b"a");
        passed.note_shown(b"q");
        assert_eq!(behind(&passed, "b", 9).as_deref(), Some("c"));
        passed.note_shown(b"b");
        assert_eq!(behind(&passed, "b", 9), None);
        assert!(!passed.watches.load(Ordering::Relaxed));
    }

    #[test]
    fn no_more_than_a_few_are_remembered() {
        let passed = TombstoneSkipCache::default();
        for number in 0..100u8 {
            let (from, to) = ([number, 1], [number, 9]);
            passed.note_passed(&from, &to, 1, 1);
            passed.note_passed(&from, &to, 1, 1);
            assert_eq!(passed.behind(&from, 1).as_deref(), Some(&to[..]));
        }
        assert_eq!(passed.ranges.lock().len(), MOST_RANGES);
        passed.clear();
        assert_eq!(passed.behind(&[99, 1], 1), None);
    }

    fn open() -> (Db, Keyspace) {
        let db = Db::open("/db", Options::default().env(Arc::new(MemEnv::default()))).unwrap();
        let operator = merge::built_in("stringappend:2c").unwrap();
        let queue = db.keyspace("queue", KeyspaceOptions::default().shared_merge_operator(operator)).unwrap();
        (db, queue)
    }

    fn key(number: u64) -> Vec<u8> {
        format!("{number:08}").into_bytes()
    }

    fn first(queue: &Keyspace) -> Option<Vec<u8>> {
        queue.iter().next().map(|entry| entry.unwrap().0.to_vec())
    }

    #[test]
    fn the_head_of_a_queue_is_found_in_a_few_steps() {
        const TAKEN: u64 = 20_000;
        let (db, queue) = open();
        for number in 0..TAKEN + 10 {
            queue.put(key(number), "v").unwrap();
            if number >= 10 {
                let head = first(&queue).unwrap();
                assert_eq!(head, key(number - 10));
                queue.delete(&head).unwrap();
            }
        }
        let skipped = db.stats().skipped_entries;
        assert!(skipped < 30 * TAKEN, "{skipped} entries were passed for {TAKEN} heads");
    }

    /// A queue with so many taken that its head is remembered.
    fn with_taken(queue: &Keyspace) {
        for number in 0..100 {
            queue.put(key(1000 + number), "v").unwrap();
        }
        for number in 0..90 {
            queue.delete(key(1000 + number)).unwrap();
        }
        (0..4).for_each(|_| assert_eq!(first(queue), Some(key(1090))));
    }

    #[test]
    fn whatever_is_written_before_the_head_is_seen_at_once() {
        type Write = fn(&Db, &Keyspace, &[u8]);
        let writes: [Write; 6] = [
            |_, queue, key| queue.merge(key, "v").unwrap(),
            |_, queue, key| queue.put(key, vec![7; 100_000]).unwrap(),
            |_, queue, key| queue.put(key, "v").unwrap(),
            |db, queue, key| {
                let mut batch = db.batch();
                batch.put(queue, key, "v").unwrap();
                batch.commit().unwrap();
            },
            |_, queue, key| queue.put_with(key, "12345678", &WriteOptions::new().disable_wal(true)).unwrap(),
            |_, queue, key| assert_eq!(queue.ingest([(key, "v")]).unwrap().entries, 1),
        ];
        for write in writes {
            let (db, queue) = open();
            with_taken(&queue);
            for number in [1050, 1020, 1089, 1000, 7] {
                write(&db, &queue, &key(number));
                assert_eq!(first(&queue), Some(key(number.min(1090))));
                assert_eq!(
                    queue.range(key(1001)..).next().unwrap().unwrap().0.to_vec(),
                    key(if number > 1000 { number } else { 1090 })
                );
                queue.delete(key(number)).unwrap();
                (0..3).for_each(|_| assert_eq!(first(&queue), Some(key(1090))));
            }
        }
    }

    #[test]
    fn a_snapshot_sees_what_was_there() {
        let (db, queue) = open();
        for number in 0..100 {
            queue.put(key(number), "v").unwrap();
        }
        let snapshot = db.snapshot();
        for number in 0..99 {
            queue.delete(key(number)).unwrap();
        }
        (0..4).for_each(|_| assert_eq!(first(&queue), Some(key(99))));
        let seen = snapshot.iter(&queue).next().unwrap().unwrap();
        assert_eq!(seen.0.to_vec(), key(0));
        assert_eq!(snapshot.iter(&queue).count(), 100);
    }

    #[test]
    fn what_has_expired_is_seen_again_if_the_clock_steps_back() {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let options = Options::default().env(Arc::new(MemEnv::default())).clock(Arc::clone(&clock) as Arc<_>);
        // A thread could take what has expired for a pause's work, and away.
        let db = Db::open("/db", options.background_threads(0)).unwrap();
        let ttl = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
        let queue = db.keyspace("queue", ttl).unwrap();
        for number in 0..20 {
            queue.put_until(key(number), "v", UNIX_EPOCH + Duration::from_millis(1_001_000)).unwrap();
        }
        queue.put(key(20), "v").unwrap();
        clock.set(1_001_500);
        (0..4).for_each(|_| assert_eq!(first(&queue), Some(key(20))));
        clock.set(1_000_500);
        assert_eq!(first(&queue), Some(key(0)));
    }

    #[test]
    fn where_nothing_is_left_the_last_key_may_come_again() {
        let (_db, queue) = open();
        for round in 0..4 {
            for number in 0..10 {
                queue.put(key(number), "v").unwrap();
            }
            for number in 0..10 {
                queue.delete(key(number)).unwrap();
            }
            (0..4).for_each(|_| assert_eq!(first(&queue), None));
            let mut cursor = queue.cursor().unwrap();
            cursor.seek_to_first().unwrap();
            queue.put(key(5 + round), "v").unwrap();
            // This one does not see it, the next one does.
            cursor.seek_to_first().unwrap();
            assert!(!cursor.valid());
            assert_eq!(first(&queue), Some(key(5 + round)));
            queue.delete(key(5 + round)).unwrap();
        }
    }

    #[test]
    fn random_writes_and_scans_agree_with_a_map() {
        let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_122u64);
        println!("ESKER_SEED={seed}");
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (db, queue) = open();
        let mut map = BTreeMap::new();
        let mut older = (db.snapshot(), map.clone());
        for step in 0..40_000 {
            if step % 700 == 0 {
                older = (db.snapshot(), map.clone());
            }
            match random(20) {
                0..=3 => {
                    let new = key(random(200));
                    queue.put(&new, "v").unwrap();
                    map.insert(new, ());
                }
                4..=9 => {
                    // Deletes in a row, so that there is something to pass.
                    let from = random(200);
                    for number in from..from + random(12) {
                        queue.delete(key(number)).unwrap();
                        map.remove(&key(number));
                    }
                }
                10 if random(50) == 0 => db.flush().unwrap(),
                _ => {
                    let from = key(random(200));
                    let from = if random(2) == 0 { Bound::Included(from) } else { Bound::Excluded(from) };
                    let range: (Bound<Vec<u8>>, Bound<Vec<u8>>) = (from, Bound::Unbounded);
                    let is_older = random(3) == 0;
                    let mut scan =
                        if is_older { older.0.range(&queue, range.clone()) } else { queue.range(range.clone()) };
                    let found = scan.next().map(|entry| entry.unwrap().0.to_vec());
                    let expected = if is_older { &older.1 } else { &map };
                    let expected = expected.range(range).next().map(|(key, ())| key);
                    assert_eq!(found.as_ref(), expected, "ESKER_SEED={seed}, step {step}");
                }
            }
            if step % 100 == 0 {
                assert!(
                    queue.iter().map(|entry| entry.unwrap().0.to_vec()).eq(map.keys().cloned()),
                    "ESKER_SEED={seed}, step {step}"
                );
            }
        }
    }

    /// Each thread puts keys among those that were deleted, and sees what it has put.
    #[test]
    fn threads_see_what_they_have_written() {
        let (_db, queue) = open();
        with_taken(&queue);
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let queue = &queue;
                scope.spawn(move || {
                    for round in 0..4000 {
                        let own = [key(1000 + round * 31 % 90), vec![thread as u8]].concat();
                        queue.put(&own, "v").unwrap();
                        assert!(first(queue).unwrap() <= own, "a key that is there was passed over");
                        queue.delete(&own).unwrap();
                    }
                });
            }
        });
        assert_eq!(queue.iter().count(), 10);
    }
}
