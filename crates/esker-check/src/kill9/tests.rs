//! What the parent knows, beside a child in the same process that is not killed: it must accept
//! what the numbers say, and nothing less.

use super::commits::{
    ALTERED, CHANGE_EVERY, Commit, How, NAMES, RATES, Settings, Step, VALUES, keeps_changes, options,
};
use super::history::{Due, History};
use super::present::{Present, counter};
use super::told::compare;
use super::totals::Totals;
use super::writer::Writer;
use super::{Expected, check_end};
use crate::Checked;
use crate::asked::{Call, Question};
use crate::simulated::ScratchDirectory;
use crate::state::database_state;
use esker::{Change, ChangeBatch, ChangeOperation, Db, Error, Slice};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::slice::from_ref;

/// A place for a database.
struct Place {
    _scratch: ScratchDirectory,
    path: PathBuf,
}

fn place() -> Place {
    let scratch = ScratchDirectory::new(&std::env::temp_dir(), "kill9-tests").unwrap();
    let path = scratch.path().join("db");
    Place { _scratch: scratch, path }
}

/// Makes commits up to that one, each with the call behind it.
fn write(writer: &mut Writer, last: u64) {
    while writer.commit().unwrap() < last {
        writer.step().unwrap();
    }
    writer.step().unwrap();
}

/// What the parent says of what it finds, if the commits up to `least` were reported.
fn go_on(history: &mut History, db: &Db, least: u64, totals: &mut Totals) -> Checked<Due> {
    let present = Present::of(db)?;
    let state = database_state(db, &present.names())?;
    history.go_on((least, counter(db)?), (present, &state), totals)
}

/// The same, without going on.
fn look(history: &History, db: &Db, least: u64) -> Checked<Due> {
    go_on(&mut history.clone(), db, least, &mut Totals::default())
}

fn changes(db: &Db) -> Vec<ChangeBatch> {
    db.changes(1).unwrap().collect::<esker::Result<Vec<_>>>().unwrap()
}

fn kind(step: &Step) -> Option<&'static str> {
    Some(match step {
        Step::Nothing => return None,
        Step::Drop => "drop",
        Step::Clear(_) => "clear",
        Step::Load(..) => "load",
        Step::Single(_) => "single write",
        Step::Ask(Question::PopFirst(_)) => "pop_first",
        Step::Ask(Question::Key(_, Call::Expire(_))) => "change of an expiry",
        Step::Ask(Question::Key(..)) => "question",
    })
}

const KINDS: usize = 7;

#[test]
fn what_is_written_by_the_numbers_is_what_is_expected() {
    const LAST: u64 = 700;
    for seed in 4..8 {
        let place = place();
        let mut writer = Writer::open(&place.path, seed).unwrap();
        write(&mut writer, LAST);
        drop(writer);
        let db = Db::open(&place.path, options(seed)).unwrap();
        let mut totals = Totals::default();
        let due = go_on(&mut History::new(seed), &db, LAST, &mut totals).unwrap();
        if keeps_changes(seed) {
            compare(&due.events, due.may_lack_last, &changes(&db), false).unwrap();
        }
        assert_eq!(totals.settings, LAST / CHANGE_EVERY, "seed {seed}");
        assert!(totals.transactions > 80 && totals.loads >= 7, "seed {seed}: {totals:?}");
        assert!(totals.drops > 0 && totals.popped > 0 && totals.expiries > 0, "seed {seed}: {totals:?}");
    }
}

#[test]
fn a_call_that_was_not_made_is_noticed_if_its_commit_was_reported() {
    const SEED: u64 = 5;
    let place = place();
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    let (mut history, mut noticed) = (History::new(SEED), BTreeSet::new());
    while noticed.len() < KINDS {
        let number = writer.commit().unwrap();
        assert!(number < 10_000, "only {noticed:?} of seed {SEED} are noticed");
        let step = Step::new(SEED, number);
        let Some(kind) = kind(&step).filter(|kind| !noticed.contains(kind)) else {
            writer.step().unwrap();
            continue;
        };
        let what = format!("seed {SEED}, commit {number}: {step:?}");
        look(&history, writer.db(), number - 1).expect(&what);
        // Some calls change nothing: of a key that is not there, say.
        if look(&history, writer.db(), number).is_err() {
            noticed.insert(kind);
        }
        writer.step().unwrap();
        look(&history, writer.db(), number - 1).expect(&what);
        go_on(&mut history, writer.db(), number, &mut Totals::default()).expect(&what);
    }
}

#[test]
fn settings_are_those_of_the_last_report_or_those_for_the_next_commit() {
    const SEED: u64 = 5;
    let place = place();
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    let history = History::new(SEED);
    for change in 1..=3 {
        let last = change * CHANGE_EVERY - 1;
        write(&mut writer, last);
        let before = Present::of(writer.db()).unwrap();
        look(&history, writer.db(), last).unwrap();
        writer.prepare().unwrap();
        assert_ne!(Present::of(writer.db()).unwrap(), before);
        look(&history, writer.db(), last).unwrap();
        let early = look(&history, writer.db(), last - 1);
        assert!(early.is_err(), "settings for {} before {last} was reported", last + 1);
        write(&mut writer, last + 1);
        look(&history, writer.db(), last + 1).unwrap();
        let present = Present::of(writer.db()).unwrap();
        let state = database_state(writer.db(), &present.names()).unwrap();
        let lost = history.clone().go_on((last + 1, last + 1), (before, &state), &mut Totals::default());
        assert!(lost.is_err(), "settings that were lost");
    }
}

#[test]
fn changes_that_are_missing_doubled_or_in_another_order_are_noticed() {
    const SEED: u64 = 6;
    let place = place();
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    write(&mut writer, 300);
    let due = look(&History::new(SEED), writer.db(), 300).unwrap().events;
    let found = changes(writer.db());
    compare(&due, false, &found, false).unwrap();
    for index in 0..found.len() {
        let mut others = found.clone();
        let batch = others.remove(index);
        assert!(compare(&due, false, &others, false).is_err(), "{index} is missing");
        // Where older ones are gone, the first may be.
        assert_eq!(compare(&due, false, &others, true).is_ok(), index == 0, "{index} is missing");
        others.insert(index + usize::from(index + 1 < found.len()), batch.clone());
        assert_eq!(compare(&due, false, &others, false).is_ok(), index + 1 == found.len(), "{index} is late");
        let mut more = found.clone();
        more.insert(index, batch);
        assert!(compare(&due, false, &more, false).is_err(), "{index} is there twice");
        compare(&due, false, &found[index..], true).unwrap();
    }
    let but_last = &found[..found.len() - 1];
    assert!(compare(&due, true, but_last, false).is_ok() && compare(&due, true, &found, false).is_ok());
    assert!(compare(&due, true, &found[..found.len() - 2], false).is_err());
    assert!(compare(&due, false, &[], true).is_err(), "all are gone");
}

/// The change with something else in it, each with what that is.
fn others(change: &Change) -> Vec<(&'static str, Change)> {
    let with = |what, operation| {
        let mut other = change.clone();
        other.operation = operation;
        (what, other)
    };
    let more = |bytes: &Slice| Slice::from([&bytes[..], &b"x"[..]].concat());
    let mut moved = change.clone();
    moved.keyspace = if *change.keyspace == *NAMES[VALUES] { "counters".into() } else { NAMES[VALUES].into() };
    let mut others = vec![("keyspace", moved)];
    match change.operation.clone() {
        ChangeOperation::Put { key, value, expiry } => {
            let (other_key, other_value) = (more(&key), more(&value));
            others.push(with("key", ChangeOperation::Put { key: other_key, value, expiry }));
            others.push(with("value", ChangeOperation::Put { key, value: other_value, expiry }));
        }
        ChangeOperation::Delete { key } => others.push(with("key", ChangeOperation::Delete { key: more(&key) })),
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            let (other_key, other_operand) = (more(&key), more(&operand));
            let merge = |key, operand| ChangeOperation::Merge { key, operand, expiry, is_first };
            others.push(with("key", merge(other_key, operand)));
            others.push(with("operand", merge(key, other_operand)));
        }
        ChangeOperation::DeleteRange { start, end } => {
            let other = || Bound::Included(Slice::from("another"));
            others.push(with("start", ChangeOperation::DeleteRange { start: other(), end }));
            others.push(with("end", ChangeOperation::DeleteRange { start, end: other() }));
        }
        _ => {}
    }
    others
}

#[test]
fn changes_with_another_key_value_bound_or_keyspace_are_noticed() {
    const SEED: u64 = 6;
    let place = place();
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    write(&mut writer, 300);
    let due = look(&History::new(SEED), writer.db(), 300).unwrap().events;
    let found = changes(writer.db());
    assert_eq!(due.len(), found.len());
    let mut noticed = BTreeSet::new();
    for (due, found) in due.iter().zip(&found) {
        for (index, change) in found.changes.iter().enumerate() {
            // There it is the keys that are compared.
            let can_expire = [NAMES[RATES], NAMES[ALTERED]].contains(&&*change.keyspace);
            for (what, other) in others(change) {
                if can_expire && what != "key" && what != "keyspace" {
                    continue;
                }
                let mut batch = found.clone();
                batch.changes[index] = other;
                let outcome = compare(from_ref(due), false, from_ref(&batch), false);
                assert!(outcome.is_err(), "seed {SEED}: another {what} of {change:?}");
                noticed.insert(what);
            }
        }
    }
    assert_eq!(noticed, BTreeSet::from(["end", "key", "keyspace", "operand", "start", "value"]));
}

#[test]
fn changes_that_were_given_up_are_counted() {
    const SEED: u64 = 6;
    let place = place();
    // Before changes are kept: something that leaves nothing behind.
    let db = Db::open(&place.path, options(SEED - 2)).unwrap();
    let values = db.keyspace(NAMES[VALUES], Default::default()).unwrap();
    values.put("key", "").unwrap();
    values.delete("key").unwrap();
    drop((values, db));
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    assert!(matches!(writer.db().changes(1), Err(Error::Gone { .. })));
    let (mut expected, mut totals) = (Expected::new(place.path.clone(), SEED), Totals::default());
    for last in [30, 60] {
        write(&mut writer, last);
        let due = go_on(&mut expected.history, writer.db(), last, &mut totals).unwrap();
        expected.read_changes(writer.db(), &due, &mut totals).unwrap();
        assert_eq!(totals.gone, 1, "behind commit {last}");
        assert!(totals.told >= last, "behind commit {last}: {totals:?}");
    }
}

#[test]
fn a_follower_that_does_not_open_is_an_error_if_there_are_commits_and_no_child() {
    const SEED: u64 = 5;
    let place = place();
    let mut expected = Expected::new(place.path.join("missing"), SEED);
    assert_eq!(expected.catch_up(false), Ok(false), "there may be no database yet");
    let mut writer = Writer::open(&place.path, SEED).unwrap();
    write(&mut writer, 1);
    go_on(&mut expected.history, writer.db(), 1, &mut Totals::default()).unwrap();
    assert_eq!(expected.catch_up(true), Ok(false), "the child may just change its files");
    assert!(expected.catch_up(false).is_err());
    expected.path.clone_from(&place.path);
    assert_eq!(expected.catch_up(false), Ok(false), "it opens");
    assert_eq!(expected.catch_up(false), Ok(true));
}

#[test]
fn a_child_must_not_end_before_it_is_killed_nor_print_anything() {
    // As `wait` yields them: the number of a signal, or an exit code above that.
    let [killed, success, failure, abort] = [9, 0, 1 << 8, 6].map(ExitStatus::from_raw);
    assert_eq!(check_end(killed, ""), Ok(()));
    for (status, printed) in [(success, ""), (failure, "wrong"), (abort, ""), (killed, "wrong")] {
        let what = check_end(status, printed).unwrap_err();
        assert!(what.contains(printed), "{status}: {what}");
    }
}

#[test]
fn every_kind_of_commit_and_of_call_comes_up() {
    for seed in 0..6 {
        let numbers = || 1..=4000u64;
        let has = |how: How| numbers().any(|number| Commit::new(seed, number).how == how);
        assert!([How::Batch, How::Swap, How::Transaction, How::Load].into_iter().all(has), "seed {seed}");
        let kinds: BTreeSet<&str> = numbers().filter_map(|number| kind(&Step::new(seed, number))).collect();
        assert_eq!(kinds.len(), KINDS, "seed {seed}: {kinds:?}");
        for number in numbers() {
            let (before, now) = (Settings::of(seed, number - 1), Settings::of(seed, number));
            let parts =
                [before.passing != now.passing, before.altered.0 != now.altered.0, before.altered.1 != now.altered.1];
            let changed = parts.into_iter().filter(|is_other| *is_other).count();
            assert_eq!(changed, usize::from(number.is_multiple_of(CHANGE_EVERY)), "seed {seed}, commit {number}");
        }
    }
}
