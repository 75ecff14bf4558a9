//! The child: it does what the numbers say until it is killed.

use super::commits::{
    ALTERED, COUNTER, Commit, How, KEYSPACES, NAMES, PASSING, RENAMED, Settings, Step, VALUES, options, taken,
};
use super::present::counter;
use crate::Checked;
use crate::asked::{Question, Reply};
use crate::model::{Answer, Bytes, Change, Write};
use crate::operators::supply;
use crate::orders::{in_order, order_of};
use crate::random::Random;
use crate::state::{Durability, keyspace_options, lives, write_batch, write_one};
use crate::transaction::write_within;
use esker::{CompareAndSwap, Db, Error, Keyspace, Transaction, WriteOptions};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The child: writes until killed, and reports on standard output. `salt` varies what is not a
/// commit.
pub fn child(path: &Path, seed: u64, salt: u64) -> Checked<()> {
    // Not through `Stdout`, which buffers: every report must be with the system before the next
    // commit begins.
    let output = std::io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let mut output = File::from(output);
    let mut random = Random::derived(seed, &[u64::MAX, salt]);
    let mut writer = or_exit(Writer::open(path, seed));
    loop {
        let number = or_exit(writer.commit());
        or_exit(writer.step());
        output.write_all(&number.to_le_bytes()).map_err(|error| format!("no reader: {error}"))?;
        writer = writer.disturb(&mut random);
    }
}

/// Ends the child where something is wrong, and drops nothing before: a database waits for its
/// background work then, and a kill in that time would hide what is wrong. The commit at which it
/// was found may be missing, and nobody would look again.
fn or_exit<T>(outcome: Checked<T>) -> T {
    outcome.unwrap_or_else(|what| {
        eprintln!("{what}");
        std::process::exit(1)
    })
}

fn failed(error: Error) -> String {
    format!("the child failed: {error}")
}

/// A database that is written by the numbers.
pub(super) struct Writer {
    db: Db,
    keyspaces: Vec<Keyspace>,
    path: PathBuf,
    seed: u64,
    settings: Settings,
    /// Of the last commit.
    number: u64,
}

impl Writer {
    /// Opens the database, and makes it ready for the next commit.
    pub(super) fn open(path: &Path, seed: u64) -> Checked<Writer> {
        let db = Db::open(path, options(seed)).map_err(failed)?;
        let number = counter(&db)?;
        let settings = Settings::of(seed, number + 1);
        let keyspaces = (0..KEYSPACES.len()).map(|index| open_keyspace(&db, index, &settings));
        let keyspaces = keyspaces.collect::<esker::Result<Vec<_>>>().map_err(failed)?;
        let writer = Writer { db, keyspaces, path: path.to_owned(), seed, settings, number };
        writer.settle()?;
        Ok(writer)
    }

    fn reopen(self, closes: bool) -> Writer {
        let Writer { db, keyspaces, path, seed, .. } = self;
        drop(keyspaces);
        if closes {
            or_exit(db.close().map_err(failed));
        } else {
            drop(db);
        }
        or_exit(Writer::open(&path, seed))
    }

    /// The database.
    #[cfg(test)]
    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// Gives the keyspaces the settings of the next commit.
    pub(super) fn prepare(&mut self) -> Checked<()> {
        let settings = Settings::of(self.seed, self.number + 1);
        if settings == self.settings {
            return Ok(());
        }
        self.settings = settings;
        self.settle()
    }

    fn settle(&self) -> Checked<()> {
        let (passing, altered) = (&self.keyspaces[PASSING], &self.keyspaces[ALTERED]);
        if *passing.name() != *self.settings.passing {
            passing.rename(self.settings.passing).map_err(failed)?;
        }
        let (operator, ttl) = self.settings.altered;
        let operator = supply(operator).filter(|it| altered.merge_operator().as_deref() != Some(it.name()));
        if let Some(operator) = operator {
            altered.set_shared_merge_operator(operator).map_err(failed)?;
        }
        if altered.ttl() != lives(ttl) {
            altered.set_ttl(lives(ttl)).map_err(failed)?;
        }
        Ok(())
    }

    /// Makes the next commit, and yields its number.
    pub(super) fn commit(&mut self) -> Checked<u64> {
        self.prepare()?;
        let number = self.number + 1;
        let commit = Commit::new(self.seed, number);
        let outcome = match commit.how {
            How::Batch => write_batch(&self.db, &self.keyspaces, &commit.writes, commit.durability.options()),
            How::Swap => self.swap(&commit),
            How::Transaction => self.transact(&commit),
            How::Load => load(&self.keyspaces[VALUES], &commit.writes),
        };
        outcome.map_err(|error| format!("commit {number} failed: {error}"))?;
        self.number = number;
        Ok(number)
    }

    fn swap(&self, commit: &Commit) -> esker::Result<()> {
        let (before, after) = ((commit.number - 1).to_le_bytes(), commit.number.to_le_bytes());
        let (values, options) = (&self.keyspaces[VALUES], commit.durability.options());
        match values.compare_and_swap_with(COUNTER, Some(&before[..]), Some(&after[..]), &options)? {
            CompareAndSwap::Swapped => Ok(()),
            CompareAndSwap::Unequal { current: found } => Err(Error::invalid(format!("the number is {found:?}"))),
        }
    }

    fn transact(&self, commit: &Commit) -> esker::Result<()> {
        let options = commit.durability.options();
        let body = |transaction: &mut Transaction| self.fill(transaction, commit);
        if commit.number % 16 == 4 {
            // Nobody else writes: there is no conflict.
            return self.db.transact_with(1, &options, body);
        }
        let mut transaction = self.db.transaction();
        body(&mut transaction)?;
        transaction.commit_with(&options)
    }

    fn fill(&self, transaction: &mut Transaction, commit: &Commit) -> esker::Result<()> {
        let before = transaction.get(&self.keyspaces[VALUES], COUNTER)?;
        if before.as_deref() != Some(&(commit.number - 1).to_le_bytes()[..]) {
            return Err(Error::invalid(format!("a transaction finds the number {before:?}")));
        }
        if let Some(from) = commit.takes
            && let Some((key, value)) = transaction.pop_first(&self.keyspaces[from])?
        {
            write_within(transaction, &self.keyspaces[VALUES], &taken(&key, &value))?;
        }
        commit.writes.iter().try_for_each(|write| write_within(transaction, &self.keyspaces[write.keyspace], write))
    }

    /// Makes the call behind the last commit.
    pub(super) fn step(&mut self) -> Checked<()> {
        let number = self.number;
        let durability = if number.is_multiple_of(32) { Durability::Sync } else { Durability::Async };
        let options = durability.options();
        let outcome = match Step::new(self.seed, number) {
            Step::Nothing => Ok(()),
            Step::Drop => self.drop_and_create(),
            Step::Clear(keyspace) => self.keyspaces[keyspace].clear(),
            Step::Load(keyspace, writes) => load(&self.keyspaces[keyspace], &writes),
            Step::Single(write) => write_one(&self.keyspaces[write.keyspace], &write, options),
            Step::Ask(question) => self.ask(&question, &options),
        };
        outcome.map_err(|error| format!("the call behind commit {number} failed: {error}"))
    }

    fn drop_and_create(&mut self) -> esker::Result<()> {
        let name = self.keyspaces[PASSING].name();
        self.db.drop_keyspace(&name)?;
        let (_, operator, ttl) = KEYSPACES[PASSING];
        self.keyspaces[PASSING] = self.db.keyspace(&name, keyspace_options(operator, ttl))?;
        Ok(())
    }

    /// Puts a question, which must be answered as a read before it says.
    fn ask(&self, question: &Question, options: &WriteOptions) -> esker::Result<()> {
        let right = self.right(question)?;
        let reply = question.put(&self.keyspaces[question.keyspace()], options)?;
        if reply == right {
            return Ok(());
        }
        Err(Error::invalid(format!("{question:?} is answered {reply:?}, expected {right:?}")))
    }

    fn right(&self, question: &Question) -> esker::Result<Reply> {
        let keyspace = &self.keyspaces[question.keyspace()];
        match question {
            Question::PopFirst(_) => Ok(keyspace.first()?.map(|(key, value)| (key.to_vec(), value.to_vec()))),
            Question::Key(write, call) => {
                let before: Answer = Ok(keyspace.get(&write.key)?.map(|value| Bytes::from(&value[..])));
                let (operator, _) = self.settings.of_keyspace(write.keyspace);
                let (right, _) = call.right(&before, operator);
                Ok(right.ok().flatten().map(|value| (write.key.clone(), value.to_vec())))
            }
        }
    }

    /// Now and then something that changes no contents; only in a child.
    fn disturb(self, random: &mut Random) -> Writer {
        match random.below(400) {
            0 => or_exit(self.db.flush().map_err(failed)),
            1 if random.percent(30) => or_exit(self.db.compact().map_err(failed)),
            2 => return self.reopen(random.percent(70)),
            _ => {}
        }
        self
    }
}

fn open_keyspace(db: &Db, index: usize, settings: &Settings) -> esker::Result<Keyspace> {
    let name = match index {
        PASSING if db.existing_keyspace(RENAMED).is_ok() => RENAMED,
        PASSING if db.existing_keyspace(NAMES[PASSING]).is_err() => settings.passing,
        _ => NAMES[index],
    };
    // Its settings may still be those of the commit before.
    if index == ALTERED
        && let Ok(found) = db.existing_keyspace(name)
    {
        return Ok(found);
    }
    let (operator, ttl) = settings.of_keyspace(index);
    db.keyspace(name, in_order(keyspace_options(operator, ttl), order_of(NAMES[index])))
}

fn pair(write: &Write) -> Option<(&[u8], &[u8])> {
    match &write.change {
        Change::Put(value) => Some((write.key.as_slice(), value.as_slice())),
        _ => None,
    }
}

fn load(keyspace: &Keyspace, writes: &[Write]) -> esker::Result<()> {
    let report = keyspace.ingest(writes.iter().filter_map(pair))?;
    if report.entries == writes.len() as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!("{report:?} of {} pairs", writes.len())))
}
