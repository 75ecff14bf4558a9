//! Calls that fail a few times and then succeed, and what is waited for in between, by a clock that
//! only waiting moves.

use super::store::{Plan, Planned};
use super::world::{World, contents, planned, quick, read, two_backups};
use crate::restore::restore;
use crate::verify::verify;
use crate::{Error, Prune, Result, Transfers};
use std::time::Duration;

/// How often a call is made again.
const RETRIES: u32 = 3;

/// What is done with a target that has two backups.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Restore,
    Verify,
    Prune,
}

const OPERATIONS: [Operation; 3] = [Operation::Restore, Operation::Verify, Operation::Prune];

impl Operation {
    /// Runs it; what it says and has done is checked if it succeeds.
    fn run(self, world: &World, store: &Planned, transfers: &Transfers) -> Result<()> {
        match self {
            Operation::Restore => {
                let directory = world.new_directory();
                world.on(store, transfers, async |store| restore(store, Some(1), u64::MAX, &directory).await)?;
                assert_eq!(read(&directory), contents(1));
            }
            Operation::Verify => {
                let report = world.on(store, transfers, async |store| verify(store, None).await)?;
                assert_eq!((report.backups, report.damage), (vec![1, 2], vec![]));
            }
            Operation::Prune => {
                let policy = Prune::default().keep_last(1).grace(Duration::ZERO);
                let report = world.prune(store, &policy, transfers)?;
                assert_eq!((report.backups, report.kept), (vec![1], vec![2]));
            }
        }
        Ok(())
    }
}

/// One call at a time, so that the attempts of each come one behind the other.
fn patient(retries: u32, delay: Duration) -> Transfers {
    quick().parallel(1).retries(retries, delay)
}

#[test]
fn a_call_may_fail_as_often_as_it_is_tried_again_and_no_more() {
    let world = World::new();
    let transfers = patient(RETRIES, Duration::ZERO);
    let failures = u64::from(RETRIES);
    for operation in OPERATIONS {
        for at in 0.. {
            let inner = two_backups(&world);
            let (store, _) = planned(&inner, Plan::FailTimes(at, failures));
            let outcome = operation.run(&world, &store, &transfers);
            assert!(outcome.is_ok(), "{operation:?}, {failures} failures at {at}: {outcome:?}");
            if store.calls() <= at {
                assert!(at > 5, "{operation:?} makes more calls than {at}");
                break;
            }
            let inner = two_backups(&world);
            let (store, _) = planned(&inner, Plan::FailTimes(at, failures + 1));
            let outcome = operation.run(&world, &store, &transfers);
            assert!(
                matches!(outcome, Err(Error::Store { .. })),
                "{operation:?}, {} failures at {at}: {outcome:?}",
                failures + 1
            );
        }
    }
}

/// The put of the record may have succeeded, and the deletes: the attempts behind find that.
#[test]
fn a_prune_whose_answers_are_lost_again_and_again_has_removed_what_it_says() {
    let world = World::new();
    let transfers = patient(RETRIES, Duration::ZERO);
    for at in 0.. {
        let inner = two_backups(&world);
        let (store, _) = planned(&inner, Plan::AnswerLostTimes(at, u64::from(RETRIES)));
        let outcome = Operation::Prune.run(&world, &store, &transfers);
        assert!(outcome.is_ok(), "answers lost at {at}: {outcome:?}");
        assert_eq!(world.existing(&*inner).into_iter().collect::<Vec<_>>(), [(2, 2)], "answers lost at {at}");
        world.check_whole(&*inner);
        world.check_clean(&inner);
        if store.calls() <= at {
            break;
        }
    }
}

#[test]
fn an_error_that_another_attempt_does_not_change_comes_at_once() {
    let world = World::new();
    let inner = two_backups(&world);
    for operation in OPERATIONS {
        let (store, _) = planned(&inner, Plan::DenyFrom(0));
        let outcome = operation.run(&world, &store, &patient(RETRIES, Duration::ZERO));
        assert!(matches!(outcome, Err(Error::Store { .. })), "{operation:?}: {outcome:?}");
        assert_eq!(store.calls(), 1, "{operation:?}");
    }
}

/// The times between the attempts of the call `at` that fails as often as there are delays.
fn delays(operation: Operation, at: u64, first: Duration, retries: u32) -> Vec<Duration> {
    let world = World::with_own_clock();
    let inner = two_backups(&world);
    let (store, _) = planned(&inner, Plan::FailTimes(at, u64::from(retries)));
    operation.run(&world, &store, &patient(retries, first)).unwrap();
    let times = store.times();
    let attempts = &times[at as usize..=at as usize + retries as usize];
    attempts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn the_delay_doubles_with_each_retry_and_is_at_most_half_a_minute() {
    // By seconds: the first delay, and all.
    let plans: [(u64, &[u64]); 3] = [(1, &[1, 2, 4, 8, 16, 30, 30]), (20, &[20, 30, 30]), (90, &[30, 30])];
    // The first call is the listing of the log or of the objects. The third one of a restore and of
    // a verification reads a record or an object.
    for (operation, at) in OPERATIONS.into_iter().flat_map(|operation| [(operation, 0), (operation, 2)]) {
        for (first, expected) in plans {
            let found = delays(operation, at, Duration::from_secs(first), expected.len() as u32);
            // Timers count whole milliseconds.
            let seconds: Vec<u64> = found.iter().map(Duration::as_secs).collect();
            let is_exact = found.iter().all(|delay| delay.subsec_millis() < 100);
            assert!(seconds == expected && is_exact, "{operation:?} at {at}, {first} s first: {found:?}");
        }
    }
}

#[test]
fn a_call_is_tried_four_times_unless_set_otherwise() {
    let world = World::with_own_clock();
    let inner = two_backups(&world);
    for operation in OPERATIONS {
        let (store, _) = planned(&inner, Plan::FailFrom(0));
        let outcome = operation.run(&world, &store, &Transfers::default());
        assert!(matches!(outcome, Err(Error::Store { .. })), "{operation:?}: {outcome:?}");
        assert_eq!(store.calls(), 4, "{operation:?}");
    }
}
