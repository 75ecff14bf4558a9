//! The log beyond openraft's suite: opened again after every step, after a power loss at every call
//! of the disk, and after an error of every call.
//!
//! Every operation of the log is one write, but for a long append, so that what is found must be
//! the log after some number of operations: all that were acknowledged as durable, and none that
//! was not begun.

use super::history::{key_value, options};
use super::world::{blank, entry, images, log_id, membership, random, run, seed, small_on, value};
use crate::{Entry, Error, Executor, LeaderId, LogId, LogStore, Request, StateMachine, TypeConfig, Vote};
use esker::Db;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::{RaftLogReader, StorageHelper};
use rand::RngExt;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The node whose log it is; others are voted for, too.
const NODE: u64 = 3;

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    vote: Option<Vote>,
    committed: Option<LogId>,
    purged: Option<LogId>,
    entries: BTreeMap<u64, Entry>,
}

#[derive(Clone, Debug)]
enum Step {
    Vote(Vote),
    Append(Vec<Entry>),
    Committed(LogId),
    Truncate(Option<LogId>),
    Purge(LogId),
}

impl Step {
    /// Whether it is durable when it has returned, with all before it.
    fn is_durable(&self) -> bool {
        matches!(self, Step::Vote(_) | Step::Append(_))
    }

    fn change(&self, model: &mut Model) {
        match self {
            Step::Vote(vote) => model.vote = Some(*vote),
            Step::Append(entries) => {
                model.entries.extend(entries.iter().map(|entry| (entry.index(), entry.clone())));
            }
            Step::Committed(id) => model.committed = Some(*id),
            Step::Truncate(last) => model.entries.retain(|index, _| last.is_some_and(|last| *index <= last.index())),
            Step::Purge(id) => {
                model.entries.retain(|index, _| *index > id.index());
                model.purged = Some(*id);
            }
        }
    }

    async fn run(&self, log: &mut LogStore) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        match self.clone() {
            Step::Vote(vote) => log.save_vote(&vote).await.map_err(|error| text(&error)),
            Step::Append(entries) => log.blocking_append(entries).await.map_err(|error| text(&error)),
            Step::Committed(id) => log.save_committed(Some(id)).await.map_err(|error| text(&error)),
            Step::Truncate(last) => log.truncate_after(last).await.map_err(|error| text(&error)),
            Step::Purge(id) => log.purge(id).await.map_err(|error| text(&error)),
        }
    }
}

/// Steps as a replica makes them, and the log after each number of them.
fn script(seed: u64, length: usize) -> (Vec<Step>, Vec<Model>) {
    let mut random = random(seed);
    let (mut steps, mut models) = (Vec::new(), vec![Model::default()]);
    let mut term = 1;
    while steps.len() < length {
        let model = models.last().unwrap();
        let last = model.entries.keys().last().copied().or(model.purged.map(|id| id.index()));
        let next = last.map_or(0, |last| last + 1);
        let step = match random.random_range(0..10) {
            0 | 1 => {
                term += 1;
                let (voted, node) = (random.random_range(0..2) == 0, random.random_range(1..4));
                Step::Vote(if voted { Vote::new(term, node) } else { Vote::new_committed(term, node) })
            }
            2 if !model.entries.is_empty() => {
                let index = *model.entries.keys().nth(random.random_range(0..model.entries.len())).unwrap();
                Step::Committed(model.entries[&index].log_id())
            }
            3 if model.entries.len() > 4 => {
                let index = *model.entries.keys().nth(random.random_range(2..model.entries.len())).unwrap();
                term += 1;
                Step::Truncate(Some(model.entries[&index].log_id()))
            }
            4 if model.entries.len() > 8 => {
                let index = *model.entries.keys().nth(random.random_range(0..4)).unwrap();
                Step::Purge(model.entries[&index].log_id())
            }
            // Past the end, as after a snapshot was installed.
            5 if random.random_range(0..6) == 0 => Step::Purge(log_id(term, next + 5)),
            6 if random.random_range(0..6) == 0 && model.purged.is_none() => Step::Truncate(None),
            _ => {
                let entries = (next..next + random.random_range(1..5)).map(|index| match random.random_range(0..6) {
                    0 => blank(term, index),
                    1 => membership(term, index, &[1, 2, 3]),
                    _ => entry(term, index, index * 10, Request::Apply(value(&mut random))),
                });
                Step::Append(entries.collect())
            }
        };
        let mut model = model.clone();
        step.change(&mut model);
        models.push(model);
        steps.push(step);
    }
    (steps, models)
}

/// What the next open shows of a log: the replica leads no more.
fn opened_again(model: &Model) -> Model {
    let demoted = |vote: Vote| match *vote.leader_id() {
        LeaderId { term, node_id: NODE } => Vote::new(term, NODE),
        _ => vote,
    };
    Model { vote: model.vote.map(demoted), ..model.clone() }
}

fn open(env: Arc<dyn Env>) -> crate::Result<LogStore> {
    LogStore::open(&Db::open("log", small_on(&env))?, NODE, Executor::InPlace)
}

/// What the log holds, as openraft reads it.
async fn contents(log: &mut LogStore) -> std::io::Result<Model> {
    let entries = log.try_get_log_entries(..).await?;
    let state = log.get_log_state().await?;
    let model = Model {
        vote: log.read_vote().await?,
        committed: log.read_committed().await?,
        purged: state.last_purged_log_id,
        entries: entries.into_iter().map(|entry| (entry.index(), entry)).collect(),
    };
    let last = model.entries.values().last().map(|entry| entry.log_id()).or(model.purged);
    assert_eq!(state.last_log_id, last);
    Ok(model)
}

/// The log on that disk is one of `models[least..=most]`; says which.
async fn check(env: MemEnv, models: &[Model], least: usize, most: usize) -> Result<usize, String> {
    let mut log = open(Arc::new(env)).map_err(|error| format!("it does not open: {error}"))?;
    let found = contents(&mut log).await.map_err(|error| format!("it cannot be read: {error}"))?;
    let place = (least..=most).find(|&place| opened_again(&models[place]) == found);
    place.ok_or_else(|| format!("after {least} to {most} steps, of which the first are durable, it holds {found:#?}"))
}

#[test]
fn a_log_opened_again_after_every_step_is_the_same() {
    let (steps, models) = script(seed(1), 120);
    run(async {
        let env = MemEnv::new();
        let mut log = open(Arc::new(env.clone())).unwrap();
        for (number, step) in steps.iter().enumerate() {
            step.run(&mut log).await.unwrap();
            let mut expected = models[number + 1].clone();
            if !matches!(step, Step::Vote(_)) {
                expected = opened_again(&expected);
            }
            assert_eq!(contents(&mut log).await.unwrap(), expected, "step {number}: {step:?}");
            // The process is killed; the next one goes on.
            let killed = env.kill();
            check(killed, &models, number + 1, number + 1).await.unwrap();
            drop(log);
            log = open(Arc::new(env.clone())).unwrap();
            let expected = opened_again(&models[number + 1]);
            assert_eq!(contents(&mut log).await.unwrap(), expected, "opened again after step {number}");
        }
    });
}

/// Runs the script until something fails, and says how many steps were begun, and up to which
/// one they are durable.
async fn run_until_it_fails(steps: &[Step], log: crate::Result<LogStore>) -> (usize, usize) {
    let Ok(mut log) = log else { return (0, 0) };
    let (mut begun, mut durable) = (0, 0);
    for step in steps {
        begun += 1;
        if step.run(&mut log).await.is_err() {
            break;
        }
        if step.is_durable() {
            durable = begun;
        }
    }
    (begun, durable)
}

/// Cuts the power at every call of the disk, and checks what may be left. How many images were
/// checked, or what was wrong with one.
async fn lose_power_everywhere(
    seed: u64,
    steps: &[Step],
    models: &[Model],
    plant: impl Fn(&LogStore),
) -> Result<u64, String> {
    let env = MemEnv::new();
    let log = open(Arc::new(env.clone()));
    plant(log.as_ref().unwrap());
    run_until_it_fails(steps, log).await;
    let (calls, mut checked) = (env.mutations(), 0);
    for call in 0..calls {
        let env = MemEnv::new();
        env.crash_after(call);
        let log = open(Arc::new(env.clone()));
        if let Ok(log) = &log {
            plant(log);
        }
        let (begun, durable) = run_until_it_fails(steps, log).await;
        for image in images(&env, seed ^ call) {
            checked += 1;
            let found = check(image, models, durable, begun).await;
            found.map_err(|what| format!("power loss at call {call} of {calls}, in step {begun}: {what}"))?;
        }
    }
    Ok(checked)
}

#[test]
fn a_power_loss_at_any_call_loses_nothing_durable() {
    let seed = seed(2);
    let (steps, models) = script(seed, 60);
    let checked = run(lose_power_everywhere(seed, &steps, &models, |_| {})).unwrap();
    println!("{checked} images");
    assert!(checked > 500, "{checked} images");
}

#[test]
fn a_vote_without_its_sync_is_noticed() {
    let (steps, models) = script(seed(2), 60);
    let plant = |log: &LogStore| log.planted().lost_votes.store(true, Ordering::Relaxed);
    let noticed = run(lose_power_everywhere(2, &steps, &models, plant)).unwrap_err();
    assert!(noticed.contains("power loss"), "{noticed}");
}

#[test]
fn an_acknowledgement_before_the_sync_is_noticed() {
    let (steps, models) = script(seed(2), 60);
    let plant = |log: &LogStore| log.planted().early_acknowledgement.store(true, Ordering::Relaxed);
    let noticed = run(lose_power_everywhere(2, &steps, &models, plant)).unwrap_err();
    assert!(noticed.contains("power loss"), "{noticed}");
}

#[test]
fn an_error_of_any_call_loses_nothing_durable() {
    let (steps, models) = script(seed(3), 40);
    let actions = [
        Action::Fail(ErrorKind::Other),
        Action::Fail(ErrorKind::StorageFull),
        Action::FailAfter(ErrorKind::Other),
        Action::Partial { kind: ErrorKind::Other, bytes: 5 },
    ];
    let (mut runs, mut failed) = (0, 0);
    for (action, forever) in actions.into_iter().flat_map(|action| [(action, false), (action, true)]) {
        for call in 0.. {
            let disk = MemEnv::new();
            let faulty = FaultEnv::new(Arc::new(disk.clone()));
            let rule = Rule::new(Class::Any, call, action);
            faulty.add(if forever { rule.from_then_on() } else { rule });
            let (begun, durable) = run(async { run_until_it_fails(&steps, open(Arc::new(faulty.clone()))).await });
            if faulty.fired() == 0 {
                break;
            }
            runs += 1;
            failed += u64::from(begun < steps.len());
            for image in [disk.kill(), disk.crash(&CrashMode::LoseAll, 0), disk.crash(&CrashMode::Random, call)] {
                let found = run(check(image, &models, durable, begun));
                found.unwrap_or_else(|what| panic!("{action:?} at call {call}, in step {begun}: {what}"));
            }
        }
    }
    println!("{runs} runs with an error, {failed} ended by it");
    assert!(runs > 500 && failed > 100, "{runs} runs, {failed} failed");
}

#[test]
fn appends_that_wait_share_a_sync() {
    run(async {
        let mut log = open(Arc::new(MemEnv::new())).unwrap();
        let mut waiting = Vec::new();
        for index in 0..64 {
            let (sender, receiver) = <TypeConfig as openraft::type_config::TypeConfigExt>::oneshot();
            log.append([blank(1, index)], openraft::storage::IOFlushed::signal(sender)).await.unwrap();
            waiting.push(receiver);
        }
        for receiver in waiting {
            receiver.await.unwrap().unwrap();
        }
        let stats = log.stats();
        assert_eq!((stats.appends, stats.entries_appended, stats.syncs), (64, 64, 1));
    });
}

#[test]
fn a_long_append_is_written_in_batches_and_a_power_loss_leaves_its_beginning() {
    let seed = seed(4);
    let entries: Vec<_> =
        (0..12).map(|index| entry(1, index, 0, Request::Apply(vec![7; 100 + 20 * index as usize]))).collect();
    let append = |env: &MemEnv| {
        let env: Arc<dyn Env> = Arc::new(env.clone());
        run(async {
            // The longest entries are longer than a batch.
            let db = Db::open("log", small_on(&env)).map_err(|error| error.to_string())?;
            let opened = LogStore::open_with(&db, NODE, Executor::InPlace, 300);
            let mut log = opened.map_err(|error| error.to_string())?;
            log.blocking_append(entries.clone()).await.map_err(|error| error.to_string())?;
            Ok::<_, String>(log.stats())
        })
    };
    let whole = MemEnv::new();
    let stats = append(&whole).unwrap();
    assert_eq!((stats.appends, stats.entries_appended, stats.syncs), (1, 12, 1));
    let mut lengths = std::collections::BTreeSet::new();
    for call in 0..=whole.mutations() {
        let env = MemEnv::new();
        env.crash_after(call);
        let is_durable = append(&env).is_ok();
        for image in images(&env, seed ^ call).into_iter().chain([env.kill()]) {
            let found = run(async { contents(&mut open(Arc::new(image)).unwrap()).await.unwrap() });
            let found: Vec<_> = found.entries.into_values().collect();
            assert_eq!(found, entries[..found.len()], "power loss at call {call}");
            assert!(!is_durable || found.len() == 12, "power loss at call {call}: {} entries", found.len());
            lengths.insert(found.len());
        }
    }
    println!("after a power loss it has these many entries: {lengths:?}");
    assert!(lengths.len() > 4 && lengths.contains(&0) && lengths.contains(&12), "{lengths:?}");
}

#[test]
fn a_hole_is_an_error_and_reads_are_limited_by_bytes() {
    run(async {
        let mut log = open(Arc::new(MemEnv::new())).unwrap();
        log.blocking_append((0..4).map(|index| blank(1, index))).await.unwrap();
        log.blocking_append([blank(1, 6)]).await.unwrap();
        let error = log.try_get_log_entries(0..10).await.unwrap_err();
        assert!(error.to_string().contains("lacks entry 4"), "{error}");
        // Also where the range begins in it, which a log that was never purged could hide.
        for start in [4, 5] {
            let error = log.try_get_log_entries(start..10).await.unwrap_err();
            assert!(error.to_string().contains(&format!("lacks entry {start}")), "{error}");
        }
        assert_eq!(log.try_get_log_entries(6..10).await.unwrap().len(), 1);
        assert_eq!(log.try_get_log_entries(1..3).await.unwrap().len(), 2);
        assert!(log.try_get_log_entries(3..3).await.unwrap().is_empty());
        let large = |index| entry(1, index, 0, Request::Apply(vec![7; 3 << 20]));
        log.truncate_after(Some(log_id(1, 0))).await.unwrap();
        log.blocking_append((1..4).map(large)).await.unwrap();
        assert_eq!(log.limited_get_log_entries(1, 4).await.unwrap().len(), 1);
        assert_eq!(log.try_get_log_entries(1..4).await.unwrap().len(), 3);
    });
}

#[test]
fn a_log_may_begin_at_any_index() {
    run(async {
        let mut log = open(Arc::new(MemEnv::new())).unwrap();
        log.blocking_append((5..8).map(|index| blank(1, index))).await.unwrap();
        for start in [0, 4, 5] {
            assert_eq!(log.try_get_log_entries(start..10).await.unwrap().len(), 3, "from {start}");
        }
    });
}

#[test]
fn the_log_of_another_node_is_refused() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = Db::open("log", small_on(&env)).unwrap();
    LogStore::open(&db, 1, Executor::InPlace).unwrap();
    let refused = LogStore::open(&db, 2, Executor::InPlace).err();
    assert!(matches!(refused, Some(Error::InvalidArgument { .. })), "{refused:?}");
    LogStore::open(&db, 1, Executor::InPlace).unwrap();
}

#[test]
fn a_log_gives_up_what_the_state_contradicts() {
    run(async {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = Db::open("log", small_on(&env)).unwrap();
        let mut log = LogStore::open(&db, NODE, Executor::InPlace).unwrap();
        log.blocking_append((0..6).map(|index| blank(1, index))).await.unwrap();
        // The state is behind, or has the last entry: nothing is wrong.
        for applied in [log_id(1, 2), log_id(1, 5)] {
            assert!(!log.give_way_to(applied).unwrap());
            assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(log_id(1, 5)), "{applied:?}");
        }
        // Entry 3 was committed in another term: no entry behind it ever was.
        assert!(log.give_way_to(log_id(2, 3)).unwrap());
        assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(log_id(1, 2)));
        drop(log);
        let mut log = LogStore::open(&db, NODE, Executor::InPlace).unwrap();
        assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 3);
    });
}

#[test]
fn a_state_that_is_ahead_of_the_log_gets_a_snapshot() {
    run(async {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = Db::open("log", small_on(&env)).unwrap();
        let mut log = LogStore::open(&db, NODE, Executor::InPlace).unwrap();
        let machine = StateMachine::open("state", key_value(), options(env.clone(), small_on(&env))).unwrap();
        machine.reconcile(&log).unwrap();
        log.blocking_append((0..6).map(|index| blank(1, index))).await.unwrap();
        for index in 0..6 {
            machine.apply(&blank(1, index)).unwrap();
        }
        machine.reconcile(&log).unwrap();
        assert!(machine.snapshot().is_none(), "the log has all that the state has");
        for entry in [blank(2, 6), blank(2, 7)] {
            machine.apply(&entry).unwrap();
        }
        machine.reconcile(&log).unwrap();
        let meta = machine.snapshot().unwrap().manifest().meta().unwrap();
        assert_eq!(meta.last_log_id, Some(log_id(2, 7)));
        assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(log_id(1, 5)));
    });
}

/// What the new leader's entries were, a power loss on this replica has taken from its log, and not
/// from its state. The entry that they had replaced is back: its term is later than theirs, so the
/// log seems to be ahead.
#[test]
fn a_log_gives_up_an_entry_of_a_later_term_that_the_state_contradicts() {
    run(async {
        for applied in 5..9 {
            let env: Arc<dyn Env> = Arc::new(MemEnv::new());
            let db = Db::open("log", small_on(&env)).unwrap();
            let mut log = LogStore::open(&db, NODE, Executor::InPlace).unwrap();
            let mut machine = StateMachine::open("state", key_value(), options(env.clone(), small_on(&env))).unwrap();
            // It led in term 3, alone. The leader of term 4 has entries of term 2.
            log.blocking_append((0..5).map(|index| blank(1, index)).chain([blank(3, 5)])).await.unwrap();
            for index in 0..=applied {
                machine.apply(&blank(if index < 5 { 1 } else { 2 }, index)).unwrap();
            }
            machine.reconcile(&log).unwrap();
            let last = Some(log_id(2, applied));
            let meta = machine.snapshot().unwrap().manifest().meta().unwrap();
            assert_eq!(meta.last_log_id, last);
            let begun = StorageHelper::new(&mut log, &mut machine).with_id(NODE).get_initial_state().await.unwrap();
            assert_eq!(begun.local_committed(), last.as_ref(), "{applied}");
            let state = log.get_log_state().await.unwrap();
            assert_eq!((state.last_purged_log_id, state.last_log_id), (last, last), "{applied}");
            // The leader goes on behind what the state has.
            log.blocking_append([blank(2, applied + 1)]).await.unwrap();
            assert_eq!(log.try_get_log_entries(..).await.unwrap(), [blank(2, applied + 1)]);
        }
    });
}

/// A log with a hole where the state is stays as it is: that is damage, which reads report.
#[test]
fn a_log_that_begins_behind_the_state_is_left_as_it_is() {
    run(async {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = Db::open("log", small_on(&env)).unwrap();
        let mut log = LogStore::open(&db, NODE, Executor::InPlace).unwrap();
        log.blocking_append((6..9).map(|index| blank(1, index))).await.unwrap();
        assert!(!log.contradicts(log_id(1, 3)).unwrap());
        assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 3);
        // Purged up to behind the state, as a snapshot is there that the state is to be brought to.
        log.purge(log_id(1, 7)).await.unwrap();
        assert!(!log.contradicts(log_id(1, 6)).unwrap() && !log.contradicts(log_id(1, 8)).unwrap());
        assert!(log.contradicts(log_id(2, 8)).unwrap() && log.contradicts(log_id(1, 9)).unwrap());
    });
}
