//! Whether what is said of images is right: what each may have, and what not.

use super::*;
use crate::model::{Life, NEVER};
use crate::powerloss::script::{EXPIRING, KEYSPACES};
use crate::state::Held;
use esker::CompactionStyle;
use std::ops::Bound;

fn put(key: &str) -> Write {
    Write::new(2, key, Change::Put(b"value".to_vec()))
}

/// Seen: a flip in the last record of a log was called a loss, since a delete of an empty range had
/// come behind it.
#[test]
fn what_may_have_written_nothing_vouches_for_nothing() {
    let mut progress = Progress::default();
    let empty = Change::DeleteRange(Bound::Included(b"b".to_vec()), Bound::Excluded(b"a".to_vec()));
    let mut vouched = Vec::new();
    for (write, durability) in [
        (put("a"), Durability::Sync),
        (Write::new(2, "", empty), Durability::Async),
        (Write::new(2, "b", Change::Expire), Durability::Async),
        (put("c"), Durability::Unlogged),
        (put("d"), Durability::Async),
    ] {
        progress.attempt(&[write], durability);
        progress.acknowledge(durability);
        vouched.push(progress.vouched);
    }
    assert_eq!(vouched, [0, 0, 0, 0, 1]);
}

#[test]
fn keys_that_no_state_holds_are_looked_up() {
    let mut progress = Progress::default();
    progress.attempt(&[put("gone at once"), Write::new(2, "gone at once", Change::Delete)], Durability::Async);
    let before = progress.clone();
    progress.attempt(&[put("refused")], Durability::Async);
    progress.take_back(before);
    progress.note_tried(&[put("rolled back")]);
    let recovered = progress.recovered(&progress.supposed(0), State::new(), true);
    progress.restart();
    for (what, progress) in [("recovered", recovered), ("removed and made again", progress)] {
        assert!(progress.states.iter().all(State::is_empty), "{what}");
        for key in ["gone at once", "refused", "rolled back"] {
            let place: Place = (2, key.as_bytes().to_vec());
            assert!(progress.places().contains(&place), "{what}: {key}");
        }
    }
}

#[test]
fn a_few_keys_that_no_write_touched_are_looked_up_in_each_keyspace() {
    let mut progress = Progress::default();
    for number in 0..MOST_KEYS {
        progress.attempt(&[Write::new(2, usual_key(number), Change::Put(Vec::new()))], Durability::Async);
        let strange: Vec<Place> =
            progress.places().into_iter().filter(|place| !progress.tried.contains(place)).collect();
        for keyspace in 0..NAMES.len() {
            let count = strange.iter().filter(|place| place.0 == keyspace).count();
            assert!((1..=4).contains(&count), "{count} in keyspace {keyspace}");
        }
        let tried = || progress.tried.iter().map(|(_, key)| key.as_slice());
        let own = || strange.iter().filter(|place| place.0 == 2).map(|(_, key)| key.as_slice());
        let is_longer = |key: &[u8]| tried().any(|tried| key.strip_suffix(&[0]) == Some(tried));
        let is_shorter = |key: &[u8]| tried().any(|tried| tried.split_last().is_some_and(|(_, rest)| rest == key));
        assert!(own().any(is_longer), "a zero byte behind a key");
        assert!(own().any(is_shorter), "a key without its last byte");
    }
}

/// If a close were taken for a flush, or a flush or another style not noted, this would fail.
#[test]
fn the_window_loses_first_what_was_flushed_first() {
    let large = |key: &str| Write::new(WINDOW, key, Change::Put(vec![1; 1500]));
    let with = |between: fn(&mut Progress)| {
        let mut progress = Progress::default();
        progress.attempt(&[large("older")], Durability::Sync);
        between(&mut progress);
        progress.attempt(&[large("newer")], Durability::Sync);
        progress
    };
    let may_have = |progress: &Progress, left: &str| {
        let mut state = progress.newest().clone();
        state.retain(|(_, key), _| key == left.as_bytes());
        progress.find(&state, progress.attempted()).is_ok()
    };
    let flushed = with(Progress::note_flushed);
    assert!(may_have(&flushed, "newer") && !may_have(&flushed, "older"));
    let recovered = flushed.recovered(&flushed.supposed(2), flushed.newest().clone(), true);
    assert!(may_have(&recovered, "newer") && !may_have(&recovered, "older"));
    let closed = with(Progress::note_closed);
    assert!(may_have(&closed, "newer") && may_have(&closed, "older"), "both are in one memtable then");
    let altered = with(|progress| {
        progress.note_flushed();
        let next = Setting { style: CompactionStyle::Leveled, ..progress.standing.present(WINDOW) };
        drop(progress.attempt_alteration(WINDOW, next));
        progress.note_flushed();
    });
    assert!(may_have(&altered, "newer") && may_have(&altered, "older"), "both can be in any table then");
}

#[test]
fn writes_to_the_same_key_interfere_and_no_others_do() {
    let mut progress = Progress::default();
    let own = [put("a"), Write::delete_range(1, Bound::Unbounded, Bound::Unbounded)];
    progress.attempt(&own, Durability::Async);
    let since = progress.attempted();
    progress.attempt(&[put("b"), Write::new(3, "a", Change::Delete)], Durability::Async);
    assert_eq!(progress.interference(since, &own), Interference::None);
    progress.attempt(&[Write::new(2, "a", Change::Expire)], Durability::Async);
    assert_eq!(progress.interference(since, &own), Interference::Possible);
    let here = progress.attempted();
    progress.attempt(&[Write::new(1, "any", Change::Delete)], Durability::Async);
    assert_eq!(progress.interference(here, &own), Interference::Certain, "within the range");
    assert_eq!(progress.interference(progress.attempted(), &own), Interference::None, "nothing since");
}

/// If a lost commit were counted, what was lost with it would be taken for dropped because of it.
#[test]
fn nothing_of_the_window_goes_because_of_a_commit_that_was_lost() {
    let mut progress = Progress::default();
    let write = |bytes: usize, key: &str| Write::new(WINDOW, key, Change::Put(vec![1; bytes]));
    progress.attempt(&[write(0, "small")], Durability::Async);
    progress.attempt(&[write(1800, "large"), put("elsewhere")], Durability::Async);
    let recovered = progress.find(&State::new(), 0).expect("nothing was durable");
    assert_eq!(recovered, 0);
}

/// If a later write of a keyspace could be there without an earlier one that is in no log either,
/// or a logged one be missing, this would fail.
#[test]
fn what_expires_and_is_in_no_log_is_lost_from_some_flush_on() {
    let sessions = KEYSPACES.iter().position(|(name, ..)| *name == "sessions").unwrap();
    let put =
        |key: &str, value: &str, life: Life| vec![Write::new(sessions, key, Change::Put(value.into())).living(life)];
    let longer = Write::new(sessions, "l", Change::Expire).living(Life::For(5000));
    let mut progress = Progress::default();
    let mut write = |writes: Vec<Write>, durability: Durability, is_flushed: bool| {
        progress.attempt(&writes, durability);
        progress.acknowledge(durability);
        if is_flushed {
            progress.note_flushed();
        }
    };
    write(put("k", "in a table", Life::Usual), Durability::Async, true);
    write(put("k", "in no log", Life::For(1000)), Durability::Unlogged, false);
    write(put("l", "logged", Life::For(1000)), Durability::Async, false);
    write(vec![longer], Durability::Unlogged, false);
    let may_be_found = |held: &[(&str, &str, u64)]| {
        let entry = |(key, value, expiry): &(&str, &str, u64)| {
            ((sessions, key.as_bytes().to_vec()), Held::value(value.as_bytes().to_vec(), *expiry))
        };
        progress.find(&held.iter().map(entry).collect(), progress.acknowledged).is_ok()
    };
    let [old, new] = [("k", "in a table", NEVER), ("k", "in no log", NOW_MS + 1000)];
    let [short, long] = [NOW_MS + 1000, NOW_MS + 5000].map(|expiry| ("l", "logged", expiry));
    assert!(may_be_found(&[old, short]) && may_be_found(&[new, short]) && may_be_found(&[new, long]));
    assert!(!may_be_found(&[old, long]), "a flush takes what came before with it");
    assert!(!may_be_found(&[old]) && !may_be_found(&[new]) && !may_be_found(&[short]), "what is logged stays");
}

/// Seen in a replay of all writes of the keyspace: a merge met what compaction had taken before a
/// clock went back.
#[test]
fn what_is_logged_is_as_it_was_beside_keys_that_are_lost() {
    let write = |key: &str, change: Change, life: Life| vec![Write::new(EXPIRING, key, change).living(life)];
    let mut progress = Progress::default();
    progress.attempt(&write("k", Change::Put("taken".into()), Life::For(10)), Durability::Async);
    progress.tick(20);
    progress.turn_back(15);
    progress.note_what_is_seen(&State::new());
    progress.attempt(&write("k", Change::Merge("merged".into()), Life::For(95)), Durability::Async);
    progress.attempt(&write("own", Change::Put("in no log".into()), Life::Usual), Durability::Unlogged);
    let found = |value: &str| {
        let held = Held::value(value.as_bytes().to_vec(), NOW_MS + 100);
        progress.find(&State::from([((EXPIRING, b"k".to_vec()), held)]), progress.attempted()).is_ok()
    };
    assert!(found("merged"));
    assert!(!found("taken,merged"));
}
