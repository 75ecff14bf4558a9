//! The state machine under restarts, power losses and errors: what it holds is the state after
//! some number of entries, the same as on a replica to which nothing happened, and it goes on from
//! there to the same state and the same replies.

use super::history::{Expected, key_value, options};
use super::world::{apply, entry, images, put, random, seed, small};
use crate::planted::without_holding_expiry;
use crate::{KeyValue, KeyValueCommand, Request, StateMachine};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Compression, Options};
use rand::RngExt;
use std::io::ErrorKind;
use std::sync::Arc;

fn open(env: &MemEnv) -> crate::Result<StateMachine<KeyValue>> {
    open_on(Arc::new(env.clone()))
}

fn open_on(env: Arc<dyn Env>) -> crate::Result<StateMachine<KeyValue>> {
    StateMachine::open("state", key_value(), options(env, small()))
}

/// What a replica does beside applying, after the entry of that number.
fn maintain(machine: &StateMachine<KeyValue>, number: usize, length: usize) -> crate::Result<()> {
    match number {
        number if number % 9 == 4 => machine.database().db().flush()?,
        number if number % 5 == 2 => machine.database().db().wait_idle()?,
        number if number % 13 == 7 => machine.database().db().compact()?,
        number if number % 31 == 20 && number < length - 5 => drop(machine.build()?),
        _ => {}
    }
    Ok(())
}

#[test]
fn a_machine_opened_again_after_every_entry_is_the_same() {
    let expected = Expected::of(seed(11), 200);
    let env = MemEnv::new();
    let mut machine = open(&env).unwrap();
    for (number, entry) in expected.entries.iter().enumerate() {
        assert_eq!(machine.apply(entry).unwrap(), expected.replies[number], "entry {number}");
        maintain(&machine, number, 200).unwrap();
        expected.check(&open(&env.kill()).unwrap().database(), number + 1, number + 1).unwrap();
        drop(machine);
        machine = open(&env).unwrap();
        expected.check(&machine.database(), number + 1, number + 1).unwrap();
    }
}

#[test]
fn replicas_of_different_shapes_come_to_the_same_state() {
    let seed = seed(12);
    let expected = Expected::of(seed, 600);
    let shapes = [
        small(),
        small().write_buffer_bytes(1).wal_segment_bytes(1).target_file_bytes(1),
        Options::default().background_threads(1).write_buffer_bytes(1 << 10).compression(Compression::None),
        small().min_blob_size(20),
    ];
    for (shape, database) in shapes.into_iter().enumerate() {
        let mut random = random(seed ^ shape as u64);
        let env = Arc::new(MemEnv::new());
        let open = || StateMachine::open("state", key_value(), options(env.clone(), database.clone())).unwrap();
        let mut machine = open();
        for (number, entry) in expected.entries.iter().enumerate() {
            assert_eq!(machine.apply(entry).unwrap(), expected.replies[number], "shape {shape}, entry {number}");
            match random.random_range(0..12) {
                0 => machine.database().db().flush().unwrap(),
                1 => machine.database().db().compact().unwrap(),
                2 if random.random_range(0..8) == 0 => {
                    drop(machine);
                    machine = open();
                }
                _ => {}
            }
        }
        expected.check(&machine.database(), 600, 600).unwrap_or_else(|what| panic!("shape {shape}: {what}"));
    }
}

/// Applies entries until something fails; how many were begun.
fn run_until_it_fails(expected: &Expected, machine: crate::Result<StateMachine<KeyValue>>) -> usize {
    let Ok(machine) = machine else { return 0 };
    for (number, entry) in expected.entries.iter().enumerate() {
        let done = machine.apply(entry).and_then(|_| maintain(&machine, number, expected.entries.len()));
        if done.is_err() {
            return number + 1;
        }
    }
    expected.entries.len()
}

/// Opens what is left, checks it, and goes on to the end.
fn check_and_go_on(expected: &Expected, image: &MemEnv, begun: usize) -> Result<(), String> {
    let machine = open(image).map_err(|error| format!("it does not open: {error}"))?;
    let applied = expected.check(&machine.database(), 0, begun)?;
    if let Some(snapshot) = machine.snapshot() {
        let last = snapshot.manifest().last_log_id().map_or(0, |id| id.index() + 1);
        if last > applied as u64 {
            return Err(format!("the snapshot is of {last} entries, the state of {applied}"));
        }
    }
    expected.go_on(&machine, applied)
}

#[test]
fn a_power_loss_at_any_call_leaves_a_state_that_goes_on_as_the_others() {
    let seed = seed(13);
    let expected = Expected::of(seed, 48);
    let env = MemEnv::new();
    run_until_it_fails(&expected, open(&env));
    let (calls, mut checked) = (env.mutations(), 0);
    for call in 0..calls {
        let env = MemEnv::new();
        env.crash_after(call);
        let begun = run_until_it_fails(&expected, open(&env));
        for image in images(&env, seed ^ call) {
            checked += 1;
            let found = check_and_go_on(&expected, &image, begun);
            found.unwrap_or_else(|what| panic!("power loss at call {call} of {calls}, in entry {begun}: {what}"));
        }
    }
    println!("{checked} images");
    assert!(checked > 1000, "{checked} images");
}

/// A lease that is durable, two entries that are not, of which the second lets it expire, and an
/// idle database that gives its space back; then the power is lost.
fn lose_power_after_an_expiry() -> Result<(), String> {
    let condition = KeyValueCommand::new().expect("leases", "a", None).then(put("leases", "a", "other", None));
    let expected = Expected::of_entries(vec![
        entry(1, 0, 1_000, apply(vec![put("leases", "a", "mine", Some(100))])),
        entry(1, 1, 1_050, Request::Apply(condition.to_bytes().unwrap())),
        entry(1, 2, 1_200, apply(vec![put("names", "x", "", None)])),
    ]);
    let env = MemEnv::new();
    let machine = open(&env).unwrap();
    for (number, entry) in expected.entries.iter().enumerate() {
        machine.apply(entry).unwrap();
        if number == 0 {
            machine.database().db().flush().unwrap();
        }
    }
    machine.database().db().wait_idle().unwrap();
    check_and_go_on(&expected, &env.crash(&CrashMode::LoseAll, 0), 3)
}

#[test]
fn what_a_durable_entry_has_not_seen_expired_is_still_there_after_a_power_loss() {
    lose_power_after_an_expiry().unwrap();
}

#[test]
fn expired_entries_that_go_before_the_state_is_durable_are_noticed() {
    let noticed = without_holding_expiry(lose_power_after_an_expiry).unwrap_err();
    assert_eq!(noticed, "the state after 1 entries is another one");
}

#[test]
fn an_error_of_any_call_leaves_a_state_that_goes_on_as_the_others() {
    let expected = Expected::of(seed(14), 40);
    let actions =
        [Action::Fail(ErrorKind::Other), Action::FailAfter(ErrorKind::Other), Action::Fail(ErrorKind::StorageFull)];
    let mut runs = 0;
    for action in actions {
        for call in 0.. {
            let disk = MemEnv::new();
            let faulty = FaultEnv::new(Arc::new(disk.clone()));
            faulty.add(Rule::new(Class::Any, call, action));
            let begun = run_until_it_fails(&expected, open_on(Arc::new(faulty.clone())));
            if faulty.fired() == 0 {
                break;
            }
            runs += 1;
            for image in [disk.kill(), disk.crash(&CrashMode::LoseAll, 0)] {
                let found = check_and_go_on(&expected, &image, begun);
                found.unwrap_or_else(|what| panic!("{action:?} at call {call}, in entry {begun}: {what}"));
            }
        }
    }
    println!("{runs} runs with an error");
    assert!(runs > 500, "{runs} runs");
}
