//! The written scripts, each for one mechanism; all short sequences of steps; and what is done
//! after a recovery.

use super::script::{EXPIRING, HOUR_MS, KEYSPACES, NOW_MS, Script, Step, usual_key};
use crate::generator::Expected;
use crate::model::{Change, Life, Operator, Ttl, Write};
use crate::random::Random;
use crate::state::Durability;
use esker::{CheckpointMode, CompactionStyle};
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

/// Those that drop keyspaces.
fn drop_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
        script(
            "drop-keyspace",
            vec![
                mixed(1, Async),
                Step::Flush,
                mixed(2, Async),
                Step::Hold(0, 1),
                Step::DropKeyspace(1),
                mixed(3, Async),
                Step::Look(0, 2),
                Step::Flush,
                Step::DropKeyspace(2),
                Step::Create(2),
                Step::Look(0, 2),
                mixed(4, Async),
                Step::Compact,
                Step::Single(add("n", 7), Sync),
                Step::DropKeyspace(1),
                Step::Create(1),
                Step::DropAndReopen,
                mixed(5, Async),
            ],
        ),
        script(
            "drop-keyspace-unsynced",
            vec![
                Step::Create(2),
                Step::Single(put("x", "1"), Async),
                Step::DropKeyspace(2),
                Step::Single(put("x", "2"), Async),
            ],
        ),
        script("drop-keyspace-large-values", {
            let to = |number: u64| Write::new(2, format!("k{number}"), Change::Put(Random::new(number).bytes(700)));
            let batch = |number: u64| Step::Batch(vec![to(number), put("x", &number.to_string())], Async);
            vec![
                batch(1),
                Step::Flush,
                batch(2),
                Step::DropKeyspace(2),
                Step::Create(2),
                batch(3),
                Step::Flush,
                batch(4),
            ]
        }),
    ]
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
    ]
    .into_iter()
    .chain(maintenance_scripts())
    .chain(later_scripts())
    .chain(bulk_scripts())
    .chain(drop_scripts())
    .collect()
}

/// Scripts for compactions, the log, openings and copies.
fn maintenance_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
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

/// A value that compresses.
fn even(number: usize, bytes: usize) -> Step {
    let value = format!("{number:04}").repeat(bytes / 4);
    Step::Batch(vec![put(&format!("large{number}"), &value)], Durability::Sync)
}

fn any() -> Bound<Vec<u8>> {
    Bound::Unbounded
}

/// Scripts for what the others leave out, each sync of which is to be left out once.
pub fn more_scripts() -> Vec<Script> {
    use Durability::{Async, Sync, Unlogged};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
        script(
            "repair",
            vec![mixed(1, Sync), Step::Flush, mixed(2, Sync), mixed(3, Async), Step::Repair, mixed(4, Sync)],
        ),
        script(
            "repair-large-values",
            vec![large(1, 900, Sync), Step::Flush, large(2, 900, Sync), Step::Repair, Step::Repair, large(3, 90, Sync)],
        ),
        script(
            "transactions",
            vec![
                Step::Transaction(vec![put("x", "1"), add("n", 1)], Async),
                Step::Transaction(vec![put("x", "2"), append("s", "a")], Sync),
                Step::Flush,
                Step::Transaction(vec![delete("x"), add("n", 2)], Sync),
                Step::Transaction(vec![put("y", &"large".repeat(99))], Sync),
            ],
        ),
        script(
            "compact-range",
            vec![
                mixed(1, Sync),
                Step::Flush,
                mixed(5, Sync),
                Step::CompactRange(0, any(), Bound::Excluded(b"k2".to_vec())),
                mixed(2, Sync),
                Step::CompactRange(1, any(), any()),
                Step::CompactRange(2, Bound::Included(b"k1".to_vec()), any()),
            ],
        ),
        script(
            "unlogged",
            vec![
                mixed(1, Unlogged),
                Step::Flush,
                mixed(2, Unlogged),
                large(1, 300, Unlogged),
                Step::Flush,
                mixed(3, Sync),
                Step::Flush,
                mixed(4, Unlogged),
                Step::Compact,
            ],
        ),
    ]
    .into_iter()
    .chain(more_bulk_scripts())
    .chain(more_call_scripts())
    .chain(changes_scripts())
    .collect()
}

/// Every change of a name and of settings, each behind a write that is not durable yet.
fn altered() -> Vec<Step> {
    use Durability::{Async, Sync};
    vec![
        mixed(1, Async),
        Step::Rename(0),
        Step::Single(put("x", "1"), Async),
        Step::Ttl(0, Ttl::On(None)),
        Step::Single(put("x", "2"), Async),
        Step::Operator(0, Operator::Max),
        Step::Style(1, CompactionStyle::Leveled),
        mixed(2, Async),
        // Its operands are combined first.
        Step::Operator(1, Operator::Max),
        mixed(3, Sync),
        Step::DropAndReopen,
        Step::Rename(0),
        mixed(4, Async),
    ]
}

/// Those of them that change settings, sync what others have written, and remove a database.
fn more_call_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    let ask = |key: &str, value: &str, expected: Expected, how| Step::Ask(put(key, value), expected, how);
    vec![
        script("settings", altered()),
        script(
            "declined",
            vec![
                Step::Single(put("x", "1"), Async),
                ask("x", "2", Expected::Absent, Sync),
                Step::Single(put("y", "3"), Async),
                Step::Sync,
                Step::Single(put("y", "4"), Async),
                ask("y", "5", Expected::Other, Sync),
                ask("z", "6", Expected::Absent, Async),
            ],
        ),
        // Apart: a program that goes on after failures keeps no account of transactions held open.
        script(
            "nothing-to-commit",
            vec![
                Step::Single(put("x", "1"), Async),
                Step::Begin(0, Vec::new()),
                Step::Commit(0, Sync),
                Step::Single(put("x", "2"), Async),
            ],
        ),
        script("destroy", vec![mixed(1, Sync), Step::Flush, mixed(2, Async), Step::Destroy, mixed(3, Sync)]),
    ]
}

/// More than half a segment of the log where changes are kept, so that the next one takes another.
fn filling(number: usize) -> Step {
    let mut random = Random::new(number as u64);
    let to = |key: usize| Write::new(0, format!("k{key}"), Change::Put(random.bytes(350)));
    Step::Batch((0..3).map(to).collect(), Durability::Async)
}

/// Scripts about changes, which are run where these are kept: see [`super::runs_under`].
fn changes_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    let (first, second) = ((1..=8).map(filling), (9..=12).map(filling));
    let given_up = [Step::Rename(0)].into_iter().chain(first).chain([Step::Flush]).chain(second);
    vec![
        script("changes-settings", altered()),
        // With a rename, so that a failing call ends the program. A test in `faults/fault.rs` shows
        // that a full disk, which keeps changes from being given up, is no error of a flush.
        script(
            "changes-given-up",
            given_up.chain([Step::Flush, Step::DropAndReopen, mixed(13, Sync), Step::Flush]).collect(),
        ),
        // What the next process finds without its having been synced.
        script(
            "changes-recovered",
            vec![
                mixed(1, Async),
                large(1, 500, Async),
                Step::DropAndReopen,
                mixed(2, Async),
                Step::DropAndReopen,
                mixed(3, Sync),
            ],
        ),
    ]
}

/// Those of them that move much.
fn more_bulk_scripts() -> Vec<Script> {
    use Durability::{Async, Sync};
    let script = |name: &str, steps: Vec<Step>| Script { name: name.to_string(), steps };
    vec![
        script(
            "large-values-at-rest",
            vec![
                even(1, 600),
                even(2, 900),
                Step::Flush,
                Step::Compact,
                even(1, 400),
                even(3, 700),
                Step::Compact,
                even(2, 500),
                Step::Single(delete("large3"), Sync),
                Step::Compact,
                Step::WaitIdle,
            ],
        ),
        script("large-values-collected", {
            let written = (1..=6).map(|number| large(number, 400, Async));
            let dead = (1..=5).map(|number| Step::Single(delete(&format!("large{number}")), Sync));
            let tidied = [Step::Flush, Step::Compact, Step::WaitIdle, large(7, 300, Sync), Step::Compact];
            written.chain([Step::Flush, Step::Compact]).chain(dead).chain(tidied).collect()
        }),
        script(
            "checkpoints",
            vec![
                large(1, 500, Sync),
                Step::Flush,
                mixed(1, Sync),
                Step::Checkpoint(1, CheckpointMode::Copy),
                Step::Checkpoint(2, CheckpointMode::Link),
                large(2, 500, Sync),
                Step::Checkpoint(3, CheckpointMode::Link),
            ],
        ),
        script("ingest-first", vec![Step::Ingest(0, pairs(&[("k1", "loaded")])), Step::Single(put("k1", "2"), Sync)]),
        script(
            "ingest-behind-unsynced",
            vec![mixed(1, Async), large(1, 300, Async), Step::Ingest(1, pairs(&[("n", "12345678")])), mixed(2, Sync)],
        ),
        script(
            "flush-long",
            vec![large(1, 6000, Sync), large(2, 9000, Sync), Step::Flush, large(3, 9000, Async), Step::Flush],
        ),
        script("flush-of-one-of-two", {
            let to = |keyspace: usize, key: &str| write(keyspace, key, Change::Put(vec![b'v'; 3000]));
            let both =
                |number: usize| Step::Batch(vec![to(0, &format!("k{number}")), put("x", "1"), append("s", "y")], Async);
            (0..30).map(both).collect()
        }),
    ]
}

/// Steps that are cut short, and those of the next process, which may find its predecessor's names
/// and bytes though they are not durable.
pub fn second_lives() -> Vec<(&'static str, Vec<Step>, Vec<Step>)> {
    use Durability::{Async, Sync};
    let copy = |mode| vec![Step::Checkpoint(1, mode), Step::Single(put("y", "2"), Sync)];
    let begun = |more: Vec<Step>| [vec![mixed(1, Sync), Step::Flush, mixed(2, Sync)], more].concat();
    vec![
        ("then-open", vec![Step::Create(0), mixed(1, Async)], vec![Step::Single(put("y", "2"), Sync)]),
        ("then-flush", begun(vec![Step::Flush]), vec![mixed(3, Sync), Step::Flush, Step::Reopen, mixed(4, Sync)]),
        ("then-open-large", vec![large(1, 500, Async), large(2, 500, Sync)], vec![large(3, 90, Sync)]),
        ("then-open-again", begun(vec![Step::DropAndReopen, mixed(5, Sync)]), vec![mixed(3, Sync), mixed(4, Sync)]),
        ("then-repair", begun(vec![Step::Repair]), vec![mixed(3, Sync)]),
        ("then-link", vec![large(1, 500, Sync), Step::Checkpoint(1, CheckpointMode::Link)], copy(CheckpointMode::Link)),
        ("then-copy", vec![large(1, 500, Sync), Step::Checkpoint(1, CheckpointMode::Copy)], copy(CheckpointMode::Copy)),
    ]
}

/// What a database is damaged after, and what is done when it was repaired.
pub fn damaged_lives() -> (Vec<Step>, Vec<Step>) {
    use Durability::Sync;
    let first = vec![
        mixed(1, Sync),
        large(1, 2000, Sync),
        Step::Flush,
        mixed(2, Sync),
        Step::Flush,
        mixed(3, Sync),
        Step::Single(delete("k1"), Sync),
        large(2, 500, Sync),
    ];
    (first, vec![mixed(4, Sync)])
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

/// What depends on whether keys of generated scripts have expired, or were given back, in each
/// keyspace where that can be.
fn expiring(number: usize) -> Step {
    let key = usual_key(number % 6);
    let write = |keyspace: usize, change: Change| Write::new(keyspace, key.clone(), change);
    let can_expire = |keyspace: &usize| KEYSPACES[*keyspace].2 != Ttl::Off;
    let writes = (0..KEYSPACES.len()).filter(can_expire).map(|keyspace| match KEYSPACES[keyspace].1 {
        Operator::None => write(keyspace, Change::Expire),
        _ => write(keyspace, Change::Merge(1_u64.to_le_bytes().to_vec())),
    });
    Step::Batch(writes.collect(), Durability::Async)
}

/// What is done after every recovery, to see that the database still works.
pub fn aftermath(random: &mut Random) -> Vec<Step> {
    let number = random.below(1000);
    let mut steps = vec![mixed(number, Durability::Async), mixed(number + 1, Durability::Sync)];
    steps.push(match random.below(6) {
        0 => Step::Flush,
        1 => Step::Compact,
        2 => Step::Reopen,
        3 => large(number, 3000, Durability::Async),
        4 => expiring(number),
        _ => Step::Single(add("k1", 5), Durability::Sync),
    });
    steps.push(mixed(number + 2, Durability::Async));
    steps
}
