//! Short scripts of operations, and what a database may hold while one runs.
//!
//! Every commit also puts its number under one key, so that every state of the model is unlike every other and a
//! recovered database says itself how many commits it holds. Steps of kind [`Step::Single`] go without, because they
//! test the calls outside batches.

use crate::Checked;
use crate::model::{Change, Life, Model, NEVER, Operator, Ttl, Write};
use crate::random::Random;
use crate::state::{Durability, Held, State, keyspace_options, model_state, write_batch, write_one};
use esker::{Db, Keyspace, Options};
use std::ops::Bound;
use std::path::Path;

/// The keyspaces of all scripts.
pub const KEYSPACES: [(&str, Operator, Ttl); 4] = [
    ("a", Operator::None, Ttl::Off),
    ("b", Operator::UInt64Add, Ttl::Off),
    ("c", Operator::StringAppend, Ttl::Off),
    ("d", Operator::StringAppend, Ttl::On(Some(HOUR_MS))),
];

/// Their names.
pub const NAMES: [&str; 4] = [KEYSPACES[0].0, KEYSPACES[1].0, KEYSPACES[2].0, KEYSPACES[3].0];

/// How many of them every batch opens; the others are for the scripts that use them.
const USUAL: usize = 3;

/// The index of the keyspace whose entries expire.
const EXPIRING: usize = 3;

const HOUR_MS: u64 = 3_600_000;

/// Where the clock stands while a script runs: what expires is there to the end, or was never seen.
pub const NOW_MS: u64 = 1_700_000_000_000;

/// An empty model of the keyspaces.
pub fn empty_model() -> Model {
    let mut model = Model::with_ttl(&KEYSPACES.map(|(_, operator, ttl)| (operator, ttl)));
    model.set_now(NOW_MS);
    model
}

/// A model that holds that much and has no history.
pub fn model_of(state: &State) -> Model {
    let mut model = empty_model();
    for ((keyspace, key), Held { value, expiry }) in state {
        let life = if *expiry == NEVER { Life::Usual } else { Life::Until(*expiry) };
        model.commit(&[Write::new(*keyspace, key.clone(), Change::Put(value.clone())).living(life)]);
    }
    model
}

/// The keyspace and key of the commit counter.
pub const COUNTER: (usize, &[u8]) = (0, b"~commits");

/// One step of a script. Keyspaces are created when a step first needs them.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A batch, with the commit counter.
    Batch(Vec<Write>, Durability),
    /// A single write, without.
    Single(Write, Durability),
    /// Creates a keyspace.
    Create(usize),
    /// Flushes.
    Flush,
    /// Compacts.
    Compact,
    /// Closes and opens.
    Reopen,
    /// Drops without closing, and opens.
    DropAndReopen,
    /// Copies to a directory of that number.
    Checkpoint(usize),
}

/// A name and the steps.
#[derive(Clone, Debug)]
pub struct Script {
    /// For messages and commands.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// What was asked for and what was promised so far.
#[derive(Clone, Debug)]
pub struct Progress {
    model: Model,
    /// The commit counter before the first commit.
    base: u64,
    /// The state after every number of commits.
    pub states: Vec<State>,
    /// Commits that returned success: they survive the process.
    pub acknowledged: usize,
    /// Commits covered by a synced write, a flush or a close that returned success: they survive the machine.
    pub synced: usize,
    /// Checkpoints that returned success, and the number of commits in each.
    pub checkpoints: Vec<(usize, usize)>,
}

impl Default for Progress {
    fn default() -> Progress {
        let model = empty_model();
        let states = vec![State::new()];
        Progress { model, base: 0, states, acknowledged: 0, synced: 0, checkpoints: Vec::new() }
    }
}

impl Progress {
    /// An empty database whose commits are numbered from `base` on.
    pub fn numbered(base: u64) -> Progress {
        Progress { base, ..Progress::default() }
    }

    /// Goes on from a recovered database that holds `count` commits, in a new process.
    ///
    /// After a power loss everything that was recovered was on the disk, so no later loss may take it. After the death of
    /// a process only, what was not synced can still be lost with the machine, until something later is synced.
    pub fn recovered(&self, count: usize, all_durable: bool) -> Progress {
        Progress {
            model: model_of(&self.states[count]),
            // Numbers that the lost commits had are not used again, so that no later state equals a lost one.
            base: self.base + (self.attempted() - count) as u64,
            states: self.states[..=count].to_vec(),
            acknowledged: count,
            synced: if all_durable { count } else { self.synced.min(count) },
            checkpoints: Vec::new(),
        }
    }

    /// How many commits were attempted.
    pub fn attempted(&self) -> usize {
        self.states.len() - 1
    }

    /// Notes a commit before it is attempted.
    pub fn attempt(&mut self, writes: &[Write]) {
        let at = self.model.commit(writes);
        self.states.push(model_state(&self.model, at));
    }

    /// The number of commits that a state holds, if it is one of those allowed.
    pub fn find(&self, state: &State, least: usize) -> Checked<usize> {
        let count = (least..self.states.len()).rev().find(|&count| self.states[count] == *state);
        count.ok_or_else(|| {
            let near = self.states.last().unwrap_or(state);
            let counter = |state: &State| state.get(&(COUNTER.0, COUNTER.1.to_vec())).cloned();
            format!(
                "the contents are not those after any of {least}..={} commits (counter {:?}, newest {:?}); against the \
                 newest: {}; against the oldest allowed: {}",
                self.attempted(),
                counter(state).map(|held| crate::state::shown(&held.value)),
                counter(near).map(|held| crate::state::shown(&held.value)),
                crate::state::difference(near, state).unwrap_or_default(),
                crate::state::difference(&self.states[least.min(self.attempted())], state).unwrap_or_default(),
            )
        })
    }
}

/// The directory of a numbered checkpoint.
pub fn checkpoint_path(number: usize) -> String {
    format!("/checkpoint-{number}")
}

/// An open database with the keyspaces a script has used so far.
pub struct Session {
    db: Db,
    keyspaces: [Option<Keyspace>; KEYSPACES.len()],
}

impl Session {
    /// Opens or creates.
    pub fn open(path: &Path, options: &Options) -> esker::Result<Session> {
        Ok(Session { db: Db::open(path, options.clone())?, keyspaces: Default::default() })
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Closes it.
    pub fn close(self) -> esker::Result<()> {
        drop(self.keyspaces);
        self.db.close()
    }

    fn keyspace(&mut self, index: usize) -> esker::Result<Keyspace> {
        if let Some(keyspace) = &self.keyspaces[index] {
            return Ok(keyspace.clone());
        }
        let (name, operator, ttl) = KEYSPACES[index];
        let keyspace = self.db.keyspace(name, keyspace_options(operator, ttl))?;
        self.keyspaces[index] = Some(keyspace.clone());
        Ok(keyspace)
    }

    /// The usual ones, and those up to the last that is needed.
    fn keyspaces_for(&mut self, writes: &[Write]) -> esker::Result<Vec<Keyspace>> {
        let needed = writes.iter().map(|write| write.keyspace + 1).fold(USUAL, usize::max);
        (0..needed).map(|index| self.keyspace(index)).collect()
    }

    /// Performs a step that keeps the database open.
    pub fn perform(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Batch(writes, durability) => {
                let keyspaces = self.keyspaces_for(writes)?;
                let number = progress.base + progress.attempted() as u64 + 1;
                let mut writes = writes.clone();
                let change = Change::Put(number.to_be_bytes().to_vec());
                writes.push(Write::new(COUNTER.0, COUNTER.1, change));
                progress.attempt(&writes);
                write_batch(&self.db, &keyspaces, &writes, *durability)?;
                self.acknowledge(*durability, progress);
            }
            Step::Single(write, durability) => {
                let keyspace = self.keyspace(write.keyspace)?;
                progress.attempt(std::slice::from_ref(write));
                write_one(&keyspace, write, *durability)?;
                self.acknowledge(*durability, progress);
            }
            Step::Create(index) => _ = self.keyspace(*index)?,
            Step::Flush => {
                self.db.flush()?;
                progress.synced = progress.attempted();
            }
            Step::Compact => {
                self.db.compact()?;
                progress.synced = progress.attempted();
            }
            Step::Checkpoint(number) => {
                self.db.checkpoint(checkpoint_path(*number))?;
                progress.checkpoints.push((*number, progress.attempted()));
            }
            Step::Reopen | Step::DropAndReopen => {}
        }
        Ok(())
    }

    fn acknowledge(&self, durability: Durability, progress: &mut Progress) {
        progress.acknowledged = progress.attempted();
        if durability == Durability::Sync {
            progress.synced = progress.attempted();
        }
    }
}

/// Runs steps until one fails. `observe` is called after every step.
pub fn run(
    steps: &[Step],
    path: &Path,
    options: &Options,
    progress: &mut Progress,
    observe: &mut dyn FnMut(&Progress),
) -> esker::Result<()> {
    let mut session = Session::open(path, options)?;
    for step in steps {
        match step {
            Step::Reopen => {
                session.close()?;
                progress.synced = progress.attempted();
                observe(progress);
                session = Session::open(path, options)?;
            }
            Step::DropAndReopen => {
                drop(session);
                session = Session::open(path, options)?;
            }
            _ => session.perform(step, progress)?,
        }
        observe(progress);
    }
    session.close()?;
    progress.synced = progress.attempted();
    observe(progress);
    Ok(())
}

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
                Step::Checkpoint(1),
                mixed(2, Sync),
                Step::Flush,
                mixed(3, Async),
                Step::Checkpoint(2),
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
            "large-values",
            vec![
                large(1, 100, Async),
                large(2, 3000, Sync),
                Step::Flush,
                Step::Batch(vec![put("large1", "small now"), put("large3", &"v".repeat(700))], Async),
                Step::Single(put("large2", &"w".repeat(300)), Sync),
                Step::Compact,
                Step::Single(delete("large3"), Async),
                Step::Checkpoint(1),
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
