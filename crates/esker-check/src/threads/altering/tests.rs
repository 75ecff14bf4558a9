use super::*;
use esker::env::mem::MemEnv;
use esker::{ManualClock, Options};
use std::sync::Arc;

struct World {
    db: Db,
    altered: Keyspace,
    altering: Altering,
}

/// What the thread leaves behind so many generations.
fn world(generations: u64) -> World {
    let clock = Arc::new(ManualClock::new(NOW));
    let db = Db::open("/db", Options::default().env(Arc::new(MemEnv::new())).clock(clock)).unwrap();
    let altered = open(&db).unwrap();
    let world = World { db, altered, altering: Altering::default() };
    (1..=generations).for_each(|generation| world.make(generation));
    world
}

impl World {
    /// Steps 1 and 2.
    fn begin(&self, generation: u64) {
        self.altering.begun.store(generation, Ordering::Release);
        self.altered.rename(name(generation)).unwrap();
        assert!(set_ttl(&self.altered, generation).unwrap().is_none());
    }

    fn make(&self, generation: u64) {
        self.begin(generation);
        self.altering.load(&self.db, &self.altered, generation).unwrap();
    }

    fn check(&self, least: &Least) -> Checked<()> {
        let seen = self.altering.check(&self.altered, &self.db.snapshot(), least)?;
        check_settings(&self.db, &self.altered, &seen, least)
    }

    fn least(&self) -> Least {
        self.altering.least(false)
    }
}

const NOTHING: Least = Least { renamed: 0, set: 0, loaded: 0, finished: 0, lost_power: false };

#[test]
fn each_moment_of_a_generation_is_accepted_and_no_other() {
    for last in [0, 1, FIRST_LIVES - 1, FIRST_LIVES, 9] {
        let (world, next) = (world(last), last + 1);
        world.check(&world.least()).unwrap();
        world.altering.begun.store(next, Ordering::Release);
        world.altered.rename(name(next)).unwrap();
        world.check(&world.least()).unwrap();
        assert!(set_ttl(&world.altered, next).unwrap().is_none());
        world.check(&world.least()).unwrap();
        world.altered.put(KEYS[CLAIMED], (CLAIM | next).to_le_bytes()).unwrap();
        world.check(&world.least()).unwrap();
        world.altered.put(KEYS[1], next.to_le_bytes()).unwrap();
        assert!(world.check(&NOTHING).is_err(), "a part of a load");
        world.altered.ingest(KEYS.map(|key| (key, next.to_le_bytes()))).unwrap();
        world.check(&world.least()).unwrap();
        world.altered.put(BEHIND, next.to_le_bytes()).unwrap();
        assert!(world.check(&NOTHING).is_err(), "a part of a batch");
        world.altered.merge(COUNT, 1u64.to_le_bytes()).unwrap();
        world.check(&world.least()).unwrap();
        world.altered.merge(COUNT, 1u64.to_le_bytes()).unwrap();
        assert!(world.check(&NOTHING).is_err(), "an operand twice");
    }
}

#[test]
fn what_was_done_must_be_there() {
    let world = world(6);
    let least = world.least();
    for more in [
        Least { loaded: 7, ..least },
        Least { finished: 7, ..least },
        Least { renamed: 7, ..least },
        Least { set: 7, ..least },
    ] {
        assert!(world.check(&more).is_err(), "{more:?}");
    }
    world.altering.begun.store(5, Ordering::Release);
    assert!(world.check(&least).is_err(), "a load that nobody has begun");
}

#[test]
fn the_name_and_the_time_to_live_are_those_of_the_generation() {
    let world = world(6);
    // The time to live is set behind the name.
    world.altered.set_ttl(ttl(7)).unwrap();
    assert!(world.check(&NOTHING).is_err());
    world.altered.rename(name(7)).unwrap();
    world.check(&NOTHING).unwrap();
    world.altered.set_ttl(ttl(8)).unwrap();
    assert!(world.check(&NOTHING).is_err());
    // A claim comes behind both.
    world.altered.set_ttl(ttl(7)).unwrap();
    world.altered.put(KEYS[CLAIMED], (CLAIM | 7).to_le_bytes()).unwrap();
    world.check(&NOTHING).unwrap();
    world.altered.rename(name(6)).unwrap();
    assert!(world.check(&NOTHING).is_err());
}

#[test]
fn an_entry_that_was_written_under_another_time_to_live_is_noticed() {
    for (under, generation) in [(6, 7), (8, 7), (1, FIRST_LIVES)] {
        let world = world(generation - 1);
        world.begin(generation);
        if life(under).is_some() {
            world.altered.set_ttl(ttl(under)).unwrap();
            world.altered.put(KEYS[CLAIMED], (CLAIM | generation).to_le_bytes()).unwrap();
        } else {
            world.altered.put_until(KEYS[CLAIMED], (CLAIM | generation).to_le_bytes(), time(NOW + 1)).unwrap();
        }
        let snapshot = world.db.snapshot();
        assert!(world.altering.check(&world.altered, &snapshot, &NOTHING).is_err(), "{under} for {generation}");
    }
}

#[test]
fn a_first_time_to_live_that_is_refused_too_often_is_reported() {
    let world = world(1);
    let snapshot = world.db.snapshot();
    (2..FIRST_LIVES).for_each(|generation| world.make(generation));
    let (going, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
    let set = |stop, most_refusals| set_ttl_again(&world.altered, FIRST_LIVES, stop, most_refusals);
    let refused = set(&going, 2).unwrap_err();
    assert!(refused.contains("refused 2 times") && refused.contains("cannot be folded"), "{refused}");
    assert_eq!(set(&stopped, 2), Ok(false));
    drop(snapshot);
    assert_eq!(set(&stopped, 2), Ok(true));
}

#[test]
fn another_operator_keeps_the_count() {
    let world = world(3);
    for _ in 0..3 {
        assert!(replace_operator(&world.altered).unwrap());
        world.check(&world.least()).unwrap();
        assert!(world.altered.merge_operator().is_some_and(|operator| operator.ends_with("add")));
    }
}

#[test]
fn changes_of_a_generation_that_are_missing_or_doubled_are_noticed() {
    let env = Arc::new(MemEnv::new());
    let retention = esker::ChangeRetention::Bytes(1 << 20);
    let db = Db::open("/db", Options::default().env(env).keep_changes(retention)).unwrap();
    let altered = open(&db).unwrap();
    let world = World { db, altered, altering: Altering::default() };
    (1..=6).for_each(|generation| world.make(generation));
    let batches: Vec<Vec<Change>> = world.db.changes(0).unwrap().map(|batch| batch.unwrap().changes).collect();
    let told_of = |batches: &[Vec<Change>]| {
        let mut told = Told::default();
        batches.iter().try_for_each(|changes| told.take(changes)).map(|()| told)
    };
    let all = |batches: &[Vec<Change>]| told_of(batches).map(drop);
    all(&batches).unwrap();
    assert_eq!(told_of(&batches).unwrap().check_end(6), Ok(()));
    assert!(told_of(&batches).unwrap().check_end(7).is_err(), "a generation is missing");
    let without_last = &batches[..batches.len() - 1];
    assert!(told_of(without_last).unwrap().check_end(6).is_err(), "the end of the last one is missing");
    let is_alteration = |changes: &Vec<Change>| {
        matches!(changes[..], [Change { operation: ChangeOperation::AlterKeyspace { .. }, .. }])
    };
    let others: Vec<Vec<Change>> = batches.into_iter().filter(|changes| !is_alteration(changes)).collect();
    assert_eq!(others.len(), 18);
    for place in 1..others.len() - 1 {
        let mut fewer = others.clone();
        let batch = fewer.remove(place);
        assert!(all(&fewer).is_err(), "{batch:?} is missing");
        let mut more = others.clone();
        more.insert(place, batch);
        assert!(all(&more).is_err(), "{place} is there twice");
    }
}
