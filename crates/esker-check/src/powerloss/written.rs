//! The written scripts, each for one mechanism; all short sequences of steps; and what is done after a recovery.

use super::script::{EXPIRING, HOUR_MS, NOW_MS, Script, Step};
use crate::model::{Change, Life, Write};
use crate::random::Random;
use crate::state::Durability;
use esker::CheckpointMode;
use std::ops::Bound;

fn write(keyspace: usize, key: &str, change: Change) -> Write {
    Write::new(keyspace, key, change)
}

/// A put of a text.
pub fn put(key: &str, value: &str) -> Write {
    write(0, key, Change::Put(value.into()))
}

fn delete(key: &str) -> Write {
    write(0, key, Change::Delete)
}

/// An increment.
pub fn add(key: &str, number: u64) -> Write {
    write(1, key, Change::Merge(number.to_le_bytes().to_vec()))
}

fn append(key: &str, text: &str) -> Write {
    write(2, key, Change::Merge(text.into()))
}

/// A put where entries expire.
fn lasting(key: &str, value: &str, life: Life) -> Write {
    write(EXPIRING, key, Change::Put(value.into())).living(life)
}

/// A merge there.
fn lasting_append(key: &str, text: &str, life: Life) -> Write {
    write(EXPIRING, key, Change::Merge(text.into())).living(life)
}

/// From one key to before another.
fn delete_range(keyspace: usize, low: &str, high: &str) -> Write {
    Write::delete_range(keyspace, Bound::Included(low.into()), Bound::Excluded(high.into()))
}

/// A batch over all keyspaces, unlike that of any other number.
fn mixed(number: usize, durability: Durability) -> Step {
    let key = format!("k{}", number % 4);
    let writes =
        vec![put(&key, &format!("value {number}")), add(&key, number as u64), append(&key, &number.to_string())];
    Step::Batch(writes, durability)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    pairs.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn large(number: usize, bytes: usize, durability: Durability) -> Step {
    let mut random = Random::new(number as u64);
    let key = format!("large{number}").into_bytes();
    Step::Batch(vec![Write::new(0, key, Change::Put(random.bytes(bytes)))], durability)
}

/// The written scripts, each for one mechanism.
pub fn scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
        script("create", vec![Step::Create(0), Step::Create(1), Step::Create(2)]),
        script("put", vec![Step::Single(put("x", "1"), Async), Step::Single(put("y", "2"), Async)]),
        script(
            "put-sync",
            vec![
                Step::Single(put("x", "1"), Sync),
                Step::Single(put("x", "2"), Async),
                Step::Single(put("y", "3"), Sync),
                Step::Single(delete("x"), Async),
            ],
        ),
        script(
            "batches",
            vec![mixed(1, Async), mixed(2, Sync), mixed(3, Async), mixed(4, Async), mixed(5, Sync), mixed(6, Async)],
        ),
        script(
            "merges",
            vec![
                Step::Single(add("n", 1), Async),
                Step::Single(add("n", 2), Sync),
                Step::Flush,
                Step::Single(add("n", 3), Async),
                Step::Single(append("s", "x"), Async),
                Step::Flush,
                Step::Single(append("s", "y"), Sync),
                Step::Compact,
                Step::Single(add("n", 4), Async),
            ],
        ),
        script(
            "delete",
            vec![
                mixed(1, Sync),
                Step::Flush,
                Step::Single(delete("k1"), Sync),
                Step::Flush,
                Step::Batch(vec![delete("k1"), put("k2", "again")], Async),
                Step::Compact,
                Step::Single(delete("k2"), Async),
            ],
        ),
        script(
            "flush",
            vec![mixed(1, Async), Step::Flush, mixed(2, Async), mixed(3, Sync), Step::Flush, mixed(4, Async)],
        ),
        script(
            "compact",
            vec![
                mixed(1, Async),
                Step::Flush,
                mixed(2, Async),
                Step::Flush,
                mixed(3, Sync),
                Step::Compact,
                mixed(4, Async),
                Step::Compact,
            ],
        ),
        script("log-roll", {
            let durability = |number| if number % 3 == 0 { Sync } else { Async };
            (1..=9).map(|number| large(number, 700 * number, durability(number))).collect()
        }),
        script(
            "reopen",
            vec![
                mixed(1, Async),
                Step::Reopen,
                mixed(2, Async),
                Step::DropAndReopen,
                mixed(3, Sync),
                Step::Reopen,
                Step::Reopen,
                mixed(4, Async),
            ],
        ),
        script(
            "checkpoint",
            vec![
                mixed(1, Async),
                Step::Checkpoint(1, CheckpointMode::Link),
                mixed(2, Sync),
                Step::Flush,
                mixed(3, Async),
                Step::Checkpoint(2, CheckpointMode::Copy),
            ],
        ),
    ]
    .into_iter()
    .chain(later_scripts())
    .chain(bulk_scripts())
    .collect()
}

/// Scripts for keyspaces that come later, and for expiry.
fn later_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    let past = Life::Until(NOW_MS - 1);
    vec![
        script(
            "late-keyspaces",
            vec![
                Step::Single(put("x", "1"), Sync),
                Step::Create(1),
                Step::Single(add("n", 1), Async),
                Step::Flush,
                Step::Create(2),
                Step::Single(append("s", "x"), Sync),
                Step::DropAndReopen,
                mixed(7, Async),
            ],
        ),
        script(
            "expiry",
            vec![
                Step::Single(lasting("x", "1", Life::For(HOUR_MS / 2)), Sync),
                Step::Single(lasting("x", "gone", past), Async),
                Step::Batch(vec![lasting("y", "2", Life::Usual), lasting("z", "gone", past)], Sync),
                Step::Flush,
                Step::Single(lasting("z", "3", Life::For(5)), Async),
                Step::Compact,
                Step::DropAndReopen,
                Step::Single(lasting("x", "4", Life::Until(NOW_MS + 1)), Async),
            ],
        ),
        script(
            "expiry-merges",
            vec![
                Step::Single(lasting_append("s", "a", Life::For(50)), Sync),
                Step::Single(lasting_append("s", "b", Life::Usual), Async),
                Step::Flush,
                Step::Single(lasting_append("s", "c", Life::For(100)), Async),
                Step::Batch(vec![lasting("t", "gone", past), lasting_append("t", "d", Life::Usual)], Sync),
                Step::Flush,
                Step::Single(lasting_append("s", "e", Life::For(10)), Async),
                Step::Compact,
                Step::Single(lasting_append("t", "f", Life::Usual), Sync),
            ],
        ),
    ]
}

/// Scripts for range deletes and large values.
fn bulk_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
        script(
            "delete-range",
            vec![
                mixed(1, Async),
                mixed(2, Sync),
                Step::Flush,
                mixed(3, Async),
                Step::Batch(vec![delete_range(0, "k1", "k3"), put("k2", "after"), delete_range(2, "", "k2")], Sync),
                Step::Single(delete_range(1, "k2", "z"), Async),
                Step::Flush,
                mixed(5, Async),
                Step::Single(delete_range(0, "k0", "k2"), Sync),
                Step::Compact,
                mixed(6, Async),
            ],
        ),
        script(
            "ingest",
            vec![
                mixed(1, Async),
                Step::Ingest(0, pairs(&[("k1", "loaded"), ("x", "1")])),
                mixed(2, Async),
                Step::Flush,
                Step::Ingest(2, pairs(&[("k2", "loaded")])),
                Step::Ingest(0, pairs(&[("x", "2"), ("y", "3")])),
                Step::Compact,
                Step::Single(delete("x"), Sync),
                Step::DropAndReopen,
                Step::Ingest(0, pairs(&[("z", "4")])),
            ],
        ),
        script(
            "ingest-large-values",
            vec![
                Step::Single(put("large1", &"u".repeat(300)), Async),
                Step::Ingest(0, pairs(&[("large1", &"v".repeat(700)), ("large2", &"w".repeat(50))])),
                Step::Single(put("large2", &"x".repeat(90)), Async),
                Step::Checkpoint(1, CheckpointMode::Copy),
                Step::Compact,
                Step::Ingest(0, pairs(&[("large3", &"y".repeat(400))])),
            ],
        ),
        script(
            "large-values",
            vec![
                large(1, 100, Async),
                large(2, 3000, Sync),
                Step::Flush,
                Step::Batch(vec![put("large1", "small now"), put("large3", &"v".repeat(700))], Async),
                Step::Single(put("large2", &"w".repeat(300)), Sync),
                Step::Compact,
                Step::Single(delete("large3"), Async),
                Step::Checkpoint(1, CheckpointMode::Copy),
                Step::Compact,
                Step::DropAndReopen,
                large(4, 500, Async),
            ],
        ),
    ]
}

/// The nine steps of which [`sequences`] makes every sequence.
fn alphabet() -> [Step; 9] {
    use Durability::{Async, Sync};
    [
        Step::Single(put("x", "1"), Async),
        Step::Single(put("x", "2"), Sync),
        Step::Single(delete("x"), Async),
        Step::Single(add("n", 1), Async),
        Step::Batch(vec![put("y", "3"), add("n", 2)], Async),
        Step::Flush,
        Step::Compact,
        Step::Reopen,
        Step::DropAndReopen,
    ]
}

/// All sequences of that length over nine steps.
pub fn sequences(length: u32) -> impl Iterator<Item = Script> {
    let alphabet = alphabet();
    (0..9usize.pow(length)).map(move |number| {
        let digits = (0..length).map(|place| number / 9usize.pow(place) % 9);
        Script { name: format!("sequence-{number}"), steps: digits.map(|digit| alphabet[digit].clone()).collect() }
    })
}

/// What is done after every recovery, to see that the database still works.
pub fn aftermath(random: &mut Random) -> Vec<Step> {
    let number = random.below(1000);
    let mut steps = vec![mixed(number, Durability::Async), mixed(number + 1, Durability::Sync)];
    steps.push(match random.below(5) {
        0 => Step::Flush,
        1 => Step::Compact,
        2 => Step::Reopen,
        3 => large(number, 3000, Durability::Async),
        _ => Step::Single(add("k1", 5), Durability::Sync),
    });
    steps.push(mixed(number + 2, Durability::Async));
    steps
}
