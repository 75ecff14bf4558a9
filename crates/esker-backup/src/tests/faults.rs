//! Every call of a create, a prune, a restore and a verification goes wrong in every way.

use super::store::{Plan, Planned};
use super::world::{World, contents, is_planned, planned, quick, read, two_backups};
use crate::verify::verify;
use crate::{Error, Prune, Transfers};
use object_store::memory::InMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// All plans for the call with this number.
fn plans(at: u64) -> [Plan; 5] {
    [Plan::FailAt(at), Plan::FailFrom(at), Plan::AnswerLostAt(at), Plan::AnswerLostFrom(at), Plan::HangFrom(at)]
}

#[test]
fn a_create_that_fails_or_ends_at_any_call_leaves_no_half_backup() {
    let world = World::new();
    let mut at = 0;
    loop {
        let mut is_beyond = true;
        for plan in plans(at) {
            let inner = two_backups(&world);
            let (store, cancel) = planned(&inner, plan);
            let outcome = world.create(&store, 3, &quick().cancel(&cancel));
            is_beyond &= store.calls() <= at;
            let existing = world.existing(&*inner);
            match outcome {
                Ok(number) => assert_eq!(existing.get(&number), Some(&3), "{plan:?}"),
                Err(error) => {
                    assert!(is_planned(&error), "{plan:?}: {error}");
                    assert!(store.calls() > at, "{plan:?}: nothing went wrong, and it failed: {error}");
                }
            }
            assert_eq!((existing.get(&1), existing.get(&2)), (Some(&1), Some(&2)), "{plan:?}");
            assert!(existing.values().all(|version| *version <= 3) && existing.len() <= 3, "{plan:?}: {existing:?}");
            world.check_whole(&*inner);
            // What was copied is used by the next one, and nothing is left over.
            world.create(&*inner, 3, &quick()).unwrap();
            world.check_whole(&*inner);
            world.check_clean(&inner);
            world.check_whole(&*inner);
        }
        if is_beyond {
            break;
        }
        at += 1;
    }
    assert!(at > 10, "a create makes more calls than {at}");
}

#[test]
fn a_create_goes_on_after_any_one_failure_if_it_may_try_again() {
    let world = World::new();
    for lost in [false, true] {
        for at in 0.. {
            let inner = two_backups(&world);
            let plan = if lost { Plan::AnswerLostAt(at) } else { Plan::FailAt(at) };
            let (store, _) = planned(&inner, plan);
            let transfers = quick().retries(1, Duration::ZERO);
            let number = world.create(&store, 3, &transfers).unwrap();
            let existing = world.existing(&*inner);
            assert_eq!(existing.get(&number), Some(&3), "{plan:?}");
            assert_eq!(existing.len(), 3, "{plan:?}");
            world.check_whole(&*inner);
            world.check_clean(&inner);
            if store.calls() <= at {
                break;
            }
        }
    }
}

#[test]
fn what_a_create_had_copied_is_not_copied_again() {
    let world = World::new();
    let inner = Arc::new(InMemory::new());
    let transfers = quick().parallel(1).part_bytes(1 << 20);
    // Calls: the mark, twice, the intent, log, intents, objects, and then the copies of five files.
    let (store, _) = planned(&inner, Plan::FailFrom(9));
    assert!(world.create(&store, 1, &transfers).is_err());
    let files = world.files(1);
    let created = world.on(&*inner, &transfers, async |store| {
        crate::create::create(store, files, &super::world::about(1)).await.unwrap()
    });
    assert_eq!(created.copied.0, 5 - 3);
    world.check_whole(&*inner);
    world.check_clean(&inner);
    world.check_whole(&*inner);
}

#[test]
fn a_prune_that_fails_or_ends_at_any_call_leaves_whole_backups() {
    let world = World::new();
    let policy = Prune::default().keep_last(1).grace(Duration::ZERO);
    let mut at = 0;
    loop {
        let mut is_beyond = true;
        for plan in plans(at) {
            let inner = two_backups(&world);
            // One that was cut short has left something as well.
            let (store, _) = planned(&inner, Plan::FailFrom(9));
            assert!(world.create(&store, 9, &quick()).is_err());
            let (store, cancel) = planned(&inner, plan);
            let outcome = world.prune(&store, &policy, &quick().cancel(&cancel));
            is_beyond &= store.calls() <= at;
            let existing = world.existing(&*inner);
            match outcome {
                Ok(report) => {
                    assert_eq!((report.backups, report.kept), (vec![1], vec![2]), "{plan:?}");
                    assert!(!existing.contains_key(&1), "{plan:?}");
                }
                Err(error) => assert!(is_planned(&error) && store.calls() > at, "{plan:?}: {error}"),
            }
            assert_eq!(existing.get(&2), Some(&2), "{plan:?}");
            world.check_whole(&*inner);
            world.prune(&*inner, &policy, &quick()).unwrap();
            assert_eq!(world.existing(&*inner).len(), 1);
            world.check_whole(&*inner);
            world.check_clean(&inner);
            world.create(&*inner, 4, &quick()).unwrap();
            world.check_whole(&*inner);
        }
        if is_beyond {
            break;
        }
        at += 1;
    }
    assert!(at > 10, "a prune makes more calls than {at}");
}

#[test]
fn a_restore_that_fails_or_ends_at_any_call_leaves_no_database() {
    let world = World::new();
    let inner = two_backups(&world);
    for at in 0.. {
        let mut is_beyond = true;
        for plan in plans(at) {
            let (store, cancel) = planned(&inner, plan);
            let directory = world.new_directory();
            let transfers = quick().cancel(&cancel);
            let outcome = world.on(&store, &transfers, async |store| {
                crate::restore::restore(store, Some(1), u64::MAX, &directory).await.map(|(number, _)| number)
            });
            is_beyond &= store.calls() <= at;
            match outcome {
                Ok(number) => assert_eq!((number, read(&directory)), (1, contents(1)), "{plan:?}"),
                Err(error) => {
                    assert!(is_planned(&error), "{plan:?}: {error}");
                    assert!(!directory.join("CURRENT").exists(), "{plan:?}");
                    world.restore(&*inner, Some(1), &directory).unwrap();
                    assert_eq!(read(&directory), contents(1), "{plan:?}");
                }
            }
        }
        if is_beyond {
            break;
        }
    }
}

#[test]
fn a_restore_is_no_database_before_its_last_file() {
    let world = World::new();
    let inner = two_backups(&world);
    let directory = world.new_directory();
    let (seen, calls) = (directory.clone(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&calls);
    let look = move |_: &InMemory| {
        assert!(!seen.join("CURRENT").exists(), "a crash would leave a database without some of its files");
        counted.fetch_add(u64::from(seen.join("CHECKPOINT").exists()), Relaxed);
    };
    let store = Planned::shuffled(inner, Plan::Fine, 1, Box::new(look));
    world.restore(&store, Some(1), &directory).unwrap();
    assert_eq!(calls.load(Relaxed), 5, "each file is read while the directory is marked");
    assert!(directory.join("CURRENT").exists() && !directory.join("CHECKPOINT").exists());
}

#[test]
fn a_restore_that_was_cut_short_is_begun_anew_and_other_files_are_left_alone() {
    let world = World::new();
    let inner = two_backups(&world);
    let directory = world.new_directory();
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("CHECKPOINT"), "an unfinished restore of a backup\n").unwrap();
    std::fs::write(directory.join("000001.table"), "half").unwrap();
    let db = esker::Db::open(&directory, esker::Options::default());
    assert!(matches!(db, Err(esker::Error::InvalidArgument { .. })), "the engine takes it for a database");
    world.restore(&*inner, Some(1), &directory).unwrap();
    assert_eq!(read(&directory), contents(1));
    // A database, the checkpoint of another, something else.
    for (mark, text) in [("CURRENT", ""), ("CHECKPOINT", "an unfinished copy\n"), ("CHECKPOINT", ""), ("x", "")] {
        let directory = world.new_directory();
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join(mark), text).unwrap();
        std::fs::write(directory.join("precious"), "mine").unwrap();
        let before = read(&directory);
        let refused = world.restore(&*inner, Some(1), &directory);
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{mark}");
        assert_eq!(read(&directory), before);
    }
}

#[test]
fn a_verification_that_fails_finds_no_damage() {
    let world = World::new();
    let inner = two_backups(&world);
    for at in 0.. {
        let mut is_beyond = true;
        for plan in plans(at) {
            let (store, cancel) = planned(&inner, plan);
            let outcome = world.on(&store, &quick().cancel(&cancel), async |store| verify(store, None).await);
            is_beyond &= store.calls() <= at;
            match outcome {
                Ok(report) => assert_eq!((report.backups, report.damage), (vec![1, 2], vec![]), "{plan:?}"),
                Err(error) => assert!(is_planned(&error), "{plan:?}: {error}"),
            }
        }
        if is_beyond {
            break;
        }
    }
}

#[test]
fn a_store_that_overwrites_what_it_is_not_to_is_refused() {
    let world = World::new();
    let inner = Arc::new(InMemory::new());
    for plan in [Plan::Overwrite, Plan::Unconditional] {
        let (store, _) = planned(&inner, plan);
        let refused = world.create(&store, 1, &quick());
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{plan:?}: {refused:?}");
    }
    assert_eq!(world.existing(&*inner).len(), 0);
    world.check_clean(&inner);
}

#[test]
fn an_error_of_a_store_says_what_to_do() {
    let text = |why: &str| {
        let source = object_store::Error::Generic { store: "S3", source: why.into() };
        Error::Store { operation: "write", object: "a".into(), source }.to_string()
    };
    let token = "Error performing PUT http://169.254.169.254/latest/api/token in 2ms";
    assert!(text(token).contains("AWS_ACCESS_KEY_ID"), "{}", text(token));
    let plain = "Error performing PUT http://127.0.0.1:9/a in 5ms - HTTP error: builder error";
    assert!(text(plain).contains("AWS_ALLOW_HTTP=true"), "{}", text(plain));
    assert!(text("503 SlowDown").ends_with("503 SlowDown; check the target, then run it again"), "{}", text("503"));
    let xml = "403: <?xml version=\"1.0\"?>\n<Error><Code>Wrong</Code><Message>No.</Message><Id>7</Id></Error> at last";
    assert!(text(xml).contains("403: Wrong: No. at last; check"), "{}", text(xml));
    for damaged in
        ["<?xml <Code>a</Code>", "</Error><Error><Message>m</Message><Code>", "<Code></Code><Message></Message>"]
    {
        assert!(text(damaged).contains(damaged), "{}", text(damaged));
    }
}

#[test]
fn a_cancelled_call_does_nothing() {
    let world = World::new();
    let inner = two_backups(&world);
    let cancel = crate::Cancel::default();
    cancel.cancel();
    let transfers = Transfers::default().cancel(&cancel);
    assert!(matches!(world.create(&*inner, 3, &transfers), Err(Error::Cancelled)));
    assert!(matches!(world.prune(&*inner, &Prune::default().keep_last(0), &transfers), Err(Error::Cancelled)));
    assert_eq!(world.existing(&*inner).len(), 2);
}
