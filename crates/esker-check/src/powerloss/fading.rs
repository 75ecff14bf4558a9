//! What compaction takes, or may have taken, so that a database shows it or does not: what had
//! expired by a clock that has gone back since, the oldest tables where the style is FIFO, and what
//! a compaction filter removes or replaces.

use super::script::{SIFTED, WINDOW};
use super::sieve::decision;
use crate::state::{Held, Place, State, disagreement};
use esker::Decision;

/// What bears on which entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// What the clock shows: what has expired by it is not there.
    pub now: u64,
    /// The latest that a clock has shown: what had expired by then may have been given back.
    pub latest: u64,
}

/// Whether a reader may find nothing of what a key holds. Of the window any table can have gone, as
/// far as one entry tells; `window.rs` compares it with the others.
fn may_be_missing(keyspace: usize, held: &Held, times: Times) -> bool {
    let may_be_taken = match keyspace {
        WINDOW => true,
        SIFTED => decision(&held.value) == Decision::Remove,
        _ => false,
    };
    may_be_taken || held.expiry <= times.latest
}

/// Whether a reader may find this of what a key holds; nothing, if there is nothing. Of operands
/// that cannot be combined a reader sees no value: one that is given is what another operator makes
/// of them.
fn may_show(keyspace: usize, held: &Held, found: Option<&Held>, times: Times) -> bool {
    let Some(found) = found else { return may_be_missing(keyspace, held, times) };
    let is_value = found.value == held.value
        || keyspace == SIFTED && decision(&held.value) == Decision::Replace(found.value.clone());
    let is_hidden = found.fails && found.value.is_empty();
    held.expiry > times.now && found.expiry == held.expiry && found.fails == held.fails && (is_hidden || is_value)
}

/// The first place at which a reader finds what it must not.
fn first_wrong<'s>(expected: &'s State, found: &'s State, times: Times) -> Option<&'s Place> {
    let is_wrong = |(place, held): &(&Place, &Held)| !may_show(place.0, held, found.get(*place), times);
    let extra = || found.keys().find(|place| !expected.contains_key(*place));
    expected.iter().find(is_wrong).map(|(place, _)| place).or_else(extra)
}

/// Whether a reader may find this of a database that holds what is expected.
pub fn agrees(expected: &State, found: &State, times: Times) -> bool {
    first_wrong(expected, found, times).is_none()
}

/// The first difference if it may not, in words.
pub fn difference(expected: &State, found: &State, times: Times) -> Option<String> {
    let place = first_wrong(expected, found, times)?;
    Some(disagreement(place, expected.get(place), found.get(place)))
}

/// What a database holds in which this was found: with what it may show again, as it is written.
pub fn held_behind(expected: &State, found: &State, times: Times) -> State {
    let mut whole = found.clone();
    let right = expected.iter().filter(|(place, held)| may_show(place.0, held, found.get(*place), times));
    whole.extend(right.map(|(place, held)| (place.clone(), held.clone())));
    whole
}

/// What was found, with what an operator that does not fail makes of operands. Which of them are
/// there, nothing else tells.
pub fn with_operands(found: &State, mended: &State) -> State {
    let mut whole = found.clone();
    for (place, held) in whole.iter_mut().filter(|(_, held)| held.fails) {
        held.value = mended.get(place).map_or_else(Vec::new, |held| held.value.clone());
    }
    whole
}

/// The same with an operator that does not fail: all operands are there to be combined.
pub fn mended(state: &State) -> State {
    let held = |(place, held): (&Place, &Held)| (place.clone(), Held { fails: false, ..held.clone() });
    state.iter().map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Life, NEVER, Write};
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::{EXPIRING, NAMES, NOW_MS, Step};
    use crate::powerloss::session::{Ground, Session, run};
    use crate::powerloss::{option_variants, put};
    use crate::random::Random;
    use crate::state::{Durability, database_state};
    use esker::env::mem::MemEnv;

    const TIMES: Times = Times { now: 50, latest: 100 };

    /// Whether a key of a keyspace that holds this may be found as that.
    fn may(keyspace: usize, held: Held, found: Option<Held>) -> bool {
        let state = |held: Option<Held>| -> State {
            let entry = held.map(|held| ((keyspace, b"key".to_vec()), held));
            entry.into_iter().collect()
        };
        agrees(&state(Some(held)), &state(found), TIMES)
    }

    fn held(value: &[u8], expiry: u64) -> Held {
        Held::value(value.to_vec(), expiry)
    }

    /// A looser comparison, or a stricter one, fails here.
    #[test]
    fn what_may_be_missing_is_what_compaction_may_have_taken() {
        let lasting = held(b"value", NEVER);
        assert!(may(0, lasting.clone(), Some(lasting.clone())));
        assert!(!may(0, lasting.clone(), None) && !may(0, lasting.clone(), Some(held(b"other", NEVER))));
        for (expiry, may_stay, may_go) in [(50, false, true), (51, true, true), (100, true, true), (101, true, false)] {
            let expiring = held(b"value", expiry);
            assert_eq!(may(EXPIRING, expiring.clone(), Some(expiring.clone())), may_stay, "{expiry}");
            assert_eq!(may(EXPIRING, expiring.clone(), None), may_go, "{expiry}");
            assert!(!may(EXPIRING, expiring, Some(held(b"value", 200))), "{expiry}");
        }
        assert!(may(WINDOW, lasting.clone(), None) && !may(WINDOW, lasting, Some(held(b"older", NEVER))));
        assert!(!agrees(&State::new(), &State::from([((0, Vec::new()), held(b"", NEVER))]), TIMES), "out of nothing");
    }

    #[test]
    fn what_the_filter_may_have_made_of_a_value_is_the_value_or_what_it_decides() {
        let [removed, replaced, kept] = [4_u8, 5, 6].map(|first| vec![first, b'a', b'b', b'c']);
        assert_eq!(decision(&removed), Decision::Remove);
        assert_eq!(decision(&replaced), Decision::Replace(vec![6, b'a']));
        assert_eq!(decision(&[6, b'a']), Decision::Keep, "what it makes it keeps");
        assert_eq!((decision(&kept), decision(&[])), (Decision::Keep, Decision::Keep));
        let shows = |keyspace, found: &[u8]| may(keyspace, held(&replaced, NEVER), Some(held(found, NEVER)));
        assert!(shows(SIFTED, &replaced) && shows(SIFTED, &[6, b'a']));
        assert!(!shows(SIFTED, &[6]) && !shows(WINDOW, &[6, b'a']));
    }

    #[test]
    fn of_what_the_filter_sees_only_what_it_removes_may_be_missing() {
        let missing = |value: &[u8]| may(SIFTED, held(value, NEVER), None);
        assert!(missing(&[4, b'a']) && missing(&[0]));
        let kept: [&[u8]; 5] = [&[5, b'a', b'b', b'c'], &[6, b'a'], &[3], &[255], &[]];
        for value in kept {
            assert!(!missing(value), "{value:?}");
        }
    }

    #[test]
    fn operands_that_fail_are_a_merge_that_fails_whatever_an_operator_without_a_defect_makes_of_them() {
        let fails = |value: &[u8]| Held { fails: true, ..held(value, NEVER) };
        assert!(may(0, fails(b"mended"), Some(fails(b""))));
        assert!(!may(0, fails(b"mended"), Some(held(b"mended", NEVER))) && !may(0, fails(b"mended"), None));
        // Trap: one more operand, which was not acknowledged, was taken for recovered.
        assert!(may(0, fails(b"mended"), Some(fails(b"mended"))) && !may(0, fails(b"mended"), Some(fails(b"other"))));
        assert!(!may(0, held(b"", NEVER), Some(fails(b""))));
        let state = State::from([((0, b"key".to_vec()), fails(b"mended"))]);
        assert_eq!(mended(&state), State::from([((0, b"key".to_vec()), held(b"mended", NEVER))]));
    }

    /// Runs the steps, compares everything behind them, and yields what is found then.
    fn found_after(steps: &[Step]) -> State {
        let (_, options) = option_variants().swap_remove(0);
        let ground = Ground::new(&options, MemEnv::new());
        let mut progress = Progress::default();
        run(&[steps, &[Step::Compare, Step::ReadBeside]].concat(), &ground, &mut progress, &mut |_| {}).unwrap();
        let session = Session::open(&ground, &mut progress).unwrap();
        database_state(session.db(), &NAMES).unwrap()
    }

    fn single(keyspace: usize, key: &str, value: Vec<u8>) -> Step {
        Step::Single(Write::new(keyspace, key, Change::Put(value)), Durability::Sync)
    }

    fn value_of(state: &State, keyspace: usize, key: &str) -> Option<Vec<u8>> {
        let place: Place = (keyspace, key.as_bytes().to_vec());
        state.get(&place).map(|held| held.value.clone())
    }

    /// If the window were as wide as everything, or a filter not supplied, nothing would be taken
    /// here; if the oracle took no account of that, the run would fail.
    #[test]
    fn the_filter_and_the_window_take_values_and_scripts_go_on() {
        // Values that do not compress.
        let large = |seed: u64| Random::new(seed).bytes(1500);
        let sifted = |key: &str, first: u8| single(SIFTED, key, vec![first, b'a', b'b']);
        let steps = [
            single(WINDOW, "oldest", large(1)),
            Step::Flush,
            single(WINDOW, "middle", large(2)),
            Step::Flush,
            single(WINDOW, "newest", large(3)),
            sifted("removed", 4),
            sifted("replaced", 5),
            sifted("kept", 6),
            Step::Hold(0, 0),
            Step::Compact,
            Step::Look(0, 3),
            Step::Compare,
            Step::DropAndReopen,
            single(WINDOW, "last", vec![1]),
            Step::WaitIdle,
        ];
        let found = found_after(&steps);
        assert_eq!(value_of(&found, WINDOW, "oldest"), None);
        assert_eq!(value_of(&found, WINDOW, "last"), Some(vec![1]));
        // A snapshot saw them at the first compaction.
        let sifted = found_after(&[&steps[..], &[Step::Compact]].concat());
        let values = ["removed", "replaced", "kept"].map(|key| value_of(&sifted, SIFTED, key));
        assert_eq!(values, [None, Some(vec![6, b'a']), Some(vec![6, b'a', b'b'])]);
    }

    fn lasting(key: &str, value: &str, life: Life) -> Step {
        let write = Write::new(EXPIRING, key, Change::Put(value.into())).living(life);
        Step::Single(write, Durability::Async)
    }

    fn append(key: &str, operand: &str) -> Step {
        Step::Single(Write::new(EXPIRING, key, Change::Merge(operand.into())), Durability::Async)
    }

    #[test]
    fn what_has_expired_is_seen_again_by_a_clock_that_goes_back_until_it_is_given_back() {
        let there = [lasting("k", "old", Life::Until(NOW_MS + 50)), Step::Clock(100), Step::ClockBack(80)];
        let found = found_after(&[&there[..], &[append("k", "new")]].concat());
        assert_eq!(value_of(&found, EXPIRING, "k"), Some(b"old,new".to_vec()));
        let given_back = [
            lasting("k", "old", Life::Until(NOW_MS + 50)),
            Step::Flush,
            Step::Clock(100),
            Step::Compact,
            Step::ClockBack(80),
            Step::Compare,
            append("k", "new"),
        ];
        let found = found_after(&given_back);
        assert_eq!(value_of(&found, EXPIRING, "k"), Some(b"new".to_vec()), "it starts from nothing");
    }

    /// Compares a database that has lost a key behind these steps, of which the oracle knows
    /// nothing.
    fn compare_without(steps: &[Step], keyspace: usize, key: &str) {
        let (_, options) = option_variants().swap_remove(0);
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(&options, MemEnv::new()), &mut progress).unwrap();
        steps.iter().for_each(|step| session.perform(step, &mut progress).unwrap());
        session.keyspace(keyspace, &mut progress).unwrap().delete(key).unwrap();
        _ = session.perform(&Step::Compare, &mut progress);
    }

    /// The looser rule: anything of the window may be missing.
    #[test]
    #[should_panic(expected = "is nothing, expected")]
    fn a_write_that_the_window_loses_before_an_older_table_is_noticed() {
        let large = |key: &str, seed: u64| single(WINDOW, key, Random::new(seed).bytes(1200));
        compare_without(&[large("older", 1), Step::Flush, large("newer", 2), large("more", 3)], WINDOW, "newer");
    }

    #[test]
    #[should_panic(expected = "is nothing, expected")]
    fn a_write_that_the_window_loses_while_it_has_little_is_noticed() {
        compare_without(&[single(WINDOW, "first", vec![1]), single(WINDOW, "second", vec![2])], WINDOW, "first");
    }

    /// The looser rule: anything that a filter sees may be missing.
    #[test]
    #[should_panic(expected = "is nothing, expected")]
    fn a_value_that_the_filter_keeps_and_the_database_loses_is_noticed() {
        compare_without(&[single(SIFTED, "kept", vec![6, b'a'])], SIFTED, "kept");
    }

    /// A session whose database has lost a key that lives by every clock.
    #[test]
    #[should_panic(expected = "after the clock went back")]
    fn a_living_entry_that_goes_with_the_clock_is_noticed() {
        let (_, options) = option_variants().swap_remove(0);
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(&options, MemEnv::new()), &mut progress).unwrap();
        let step = Step::Single(put("k", "value"), Durability::Async);
        session.perform(&step, &mut progress).unwrap();
        // Of this the oracle knows nothing.
        session.keyspace(0, &mut progress).unwrap().delete("k").unwrap();
        _ = session.perform(&Step::ClockBack(10), &mut progress);
    }
}
