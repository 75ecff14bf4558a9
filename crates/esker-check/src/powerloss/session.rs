//! An open database that performs steps, and the run of a whole script.

use super::progress::Progress;
use super::script::{KEYSPACES, NAMES, SLOTS, Step, count, dropping, loaded, options_of};
use crate::model::{Change, Life, Operator, Write};
use crate::simulated::MEMORY_PATH;
use crate::state::{
    Durability, Place, difference, existing_keyspaces, read_gets, read_state, shown, snapshot_values, time,
    write_batch, write_one,
};
use esker::env::Env;
use esker::{Db, Iter, Keyspace, ManualClock, Options, Snapshot, Transaction};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// The directory of a numbered checkpoint.
pub fn checkpoint_path(number: usize) -> String {
    format!("/checkpoint-{number}")
}

/// A snapshot and an iterator, and what they must show.
struct Holding {
    snapshot: Snapshot,
    /// The keyspaces of its time.
    keyspaces: Vec<(usize, Keyspace)>,
    seen: BTreeMap<Place, Vec<u8>>,
    iterator: Iter,
    left: VecDeque<(Vec<u8>, Vec<u8>)>,
}

/// Where a script runs: the options, and the environment among them.
#[derive(Clone, Debug)]
pub struct Ground {
    options: Options,
    env: Arc<dyn Env>,
}

impl Ground {
    /// The options on that environment.
    pub fn new(options: &Options, env: impl Env + 'static) -> Ground {
        let env: Arc<dyn Env> = Arc::new(env);
        Ground { options: options.clone().env(env.clone()), env }
    }

    /// The same options on another environment.
    pub fn moved_to(&self, env: impl Env + 'static) -> Ground {
        Ground::new(&self.options, env)
    }

    /// The options with a clock that stands still.
    pub fn options_at(&self, now: u64) -> Options {
        self.options.clone().clock(Arc::new(ManualClock::new(now)))
    }

    /// Removes the file that names the manifest, as an administrator's mistake would.
    pub fn lose_current(&self) -> esker::Result<()> {
        self.env.remove(&Path::new(MEMORY_PATH).join("CURRENT"))
    }
}

/// The database with the merge operators that it does not know by name.
pub fn with_operators(db: Db) -> esker::Result<Db> {
    for (name, operator, ttl) in KEYSPACES.iter().filter(|(_, operator, _)| *operator == Operator::Longest) {
        if db.keyspaces().iter().any(|found| found == name) {
            db.keyspace(name, options_of((name, *operator, *ttl)))?;
        }
    }
    Ok(db)
}

/// An open database with the keyspaces a script has used so far.
pub struct Session {
    db: Db,
    options: Options,
    clock: Arc<ManualClock>,
    keyspaces: [Option<Keyspace>; KEYSPACES.len()],
    held: [Option<Holding>; SLOTS],
}

/// Ends the run: an answer was wrong. The runner of scripts catches panics and reports them with
/// the command that repeats the run.
fn wrong(what: impl std::fmt::Display) -> ! {
    panic!("wrong answer: {what}")
}

impl Session {
    /// Opens or creates, with a clock of its own that shows what the progress says; repairs first
    /// if a script has damaged it.
    pub fn open(ground: &Ground, progress: &mut Progress) -> esker::Result<Session> {
        let clock = Arc::new(ManualClock::new(progress.now));
        let options = ground.options.clone().clock(clock.clone());
        if progress.damaged {
            Db::repair(MEMORY_PATH, options.clone())?;
            progress.damaged = false;
        }
        let db = with_operators(Db::open(MEMORY_PATH, options.clone())?)?;
        Ok(Session { db, options, clock, keyspaces: Default::default(), held: Default::default() })
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Closes it.
    pub fn close(self) -> esker::Result<()> {
        drop((self.keyspaces, self.held));
        self.db.close()
    }

    /// The keyspace of that index, created if it is not there.
    pub fn keyspace(&mut self, index: usize) -> esker::Result<Keyspace> {
        if let Some(keyspace) = &self.keyspaces[index] {
            return Ok(keyspace.clone());
        }
        let (name, operator, ttl) = KEYSPACES[index];
        let keyspace = self.db.keyspace(name, options_of((name, operator, ttl)))?;
        self.keyspaces[index] = Some(keyspace.clone());
        Ok(keyspace)
    }

    /// The keyspaces of these writes, and the writes with their indexes among those.
    fn placed(&mut self, writes: &[Write]) -> esker::Result<(Vec<Keyspace>, Vec<Write>)> {
        let mut indexes: Vec<usize> = writes.iter().map(|write| write.keyspace).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let keyspaces = indexes.iter().map(|&index| self.keyspace(index)).collect::<esker::Result<_>>()?;
        let place = |index| indexes.iter().position(|&other| other == index).unwrap_or_default();
        let moved = writes.iter().map(|write| Write { keyspace: place(write.keyspace), ..write.clone() });
        Ok((keyspaces, moved.collect()))
    }

    /// Performs a step that keeps the database open.
    pub fn perform(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Batch(writes, durability) => {
                let writes = [&writes[..], &[count(progress.next_number())]].concat();
                let (keyspaces, placed) = self.placed(&writes)?;
                progress.attempt(&writes, *durability);
                write_batch(&self.db, &keyspaces, &placed, durability.options())?;
                progress.acknowledge(*durability);
            }
            Step::Transaction(writes, durability) => {
                let writes = [&writes[..], &[count(progress.next_number())]].concat();
                let (keyspaces, placed) = self.placed(&writes)?;
                let mut transaction = self.db.transaction();
                for write in &placed {
                    let keyspace = &keyspaces[write.keyspace];
                    if !write.change.is_range() {
                        transaction.get(keyspace, &write.key)?;
                    }
                    add_to(&mut transaction, keyspace, write)?;
                }
                progress.attempt(&writes, *durability);
                transaction.commit_with(&durability.options())?;
                progress.acknowledge(*durability);
            }
            Step::Single(write, durability) => {
                let keyspace = self.keyspace(write.keyspace)?;
                progress.attempt(std::slice::from_ref(write), *durability);
                write_one(&keyspace, write, durability.options())?;
                progress.acknowledge(*durability);
            }
            Step::Ingest(index, pairs) => {
                let keyspace = self.keyspace(*index)?;
                let sync = Durability::Sync;
                progress.attempt(&loaded(*index, pairs), sync);
                keyspace.ingest(pairs.iter().map(|(key, value)| (key, value)))?;
                progress.acknowledge(sync);
                progress.note_listed();
            }
            Step::DropKeyspace(index) => {
                self.keyspace(*index)?;
                progress.attempt(&dropping(*index), Durability::Sync);
                self.db.drop_keyspace(NAMES[*index])?;
                progress.acknowledge(Durability::Sync);
                progress.note_listed();
                self.keyspaces[*index] = None;
            }
            Step::Clock(milliseconds) => {
                progress.tick(*milliseconds);
                self.clock.set(progress.now);
            }
            Step::Reopen | Step::DropAndReopen | Step::Repair => {}
            _ => return self.maintain(step, progress),
        }
        Ok(())
    }

    fn maintain(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Create(index) => _ = self.keyspace(*index)?,
            Step::Sync => {
                self.db.sync()?;
                progress.note_log_synced();
            }
            Step::Flush => {
                self.db.flush()?;
                progress.note_flushed();
            }
            Step::Compact => {
                self.db.compact()?;
                progress.note_flushed();
            }
            Step::CompactRange(index, low, high) => {
                self.keyspace(*index)?.compact_range((low.clone(), high.clone()))?;
            }
            Step::WaitIdle => self.db.wait_idle()?,
            Step::Checkpoint(number, mode) => {
                self.db.checkpoint_with(checkpoint_path(*number), *mode)?;
                progress.checkpoints.push((*number, progress.attempted()));
            }
            _ => return self.read(step, progress),
        }
        Ok(())
    }

    /// Steps that compare. They are for runs in which every write so far has succeeded.
    fn read(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Hold(slot, index) => {
                let keyspace = self.keyspace(*index)?;
                let own = progress.newest().iter().filter(|((held, _), _)| held == index);
                let left = own.map(|((_, key), held)| (key.clone(), held.value.clone())).collect();
                let holding = Holding {
                    snapshot: self.db.snapshot(),
                    keyspaces: existing_keyspaces(&self.db, &NAMES)?,
                    seen: progress.newest().iter().map(|(place, held)| (place.clone(), held.value.clone())).collect(),
                    iterator: keyspace.iter(),
                    left,
                };
                self.held[*slot] = Some(holding);
            }
            Step::Look(slot, steps) => {
                let Some(mut holding) = self.held[*slot].take() else { return Ok(()) };
                holding.step(*steps)?;
                let seen = snapshot_values((&self.db, &NAMES), &holding.snapshot, &holding.keyspaces)?;
                if seen != holding.seen {
                    wrong(format!(
                        "a snapshot shows {} keys, {} expected, or another value",
                        seen.len(),
                        holding.seen.len()
                    ));
                }
                self.held[*slot] = Some(holding);
            }
            Step::Compare => compare(&self.db, progress)?,
            Step::ReadBeside => {
                self.flush_unlogged(progress)?;
                compare(&with_operators(Db::open_read_only(self.db.path(), self.options.clone())?)?, progress)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What was written without log is only where it should be after a flush.
    pub fn flush_unlogged(&self, progress: &mut Progress) -> esker::Result<()> {
        if progress.holds_unlogged() {
            self.db.flush()?;
            progress.note_flushed();
        }
        Ok(())
    }
}

impl Holding {
    /// From the front and from the back in turns.
    fn step(&mut self, steps: usize) -> esker::Result<()> {
        for number in 0..steps {
            let front = number % 3 != 2;
            let expected = if front { self.left.pop_front() } else { self.left.pop_back() };
            let found = if front { self.iterator.next() } else { self.iterator.next_back() };
            let found = found.transpose()?.map(|(key, value)| (key.to_vec(), value.to_vec()));
            if found != expected {
                let [found, expected] =
                    [found, expected].map(|entry| entry.map(|(key, value)| [shown(&key), shown(&value)].join("=")));
                wrong(format!("a held iterator yields {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }
}

fn add_to(transaction: &mut Transaction, keyspace: &Keyspace, write: &Write) -> esker::Result<()> {
    let key = &write.key;
    match (&write.change, write.life) {
        (Change::Put(value), Life::For(life)) => {
            transaction.put_with_ttl(keyspace, key, value, std::time::Duration::from_millis(life))
        }
        (Change::Put(value), Life::Until(at)) => transaction.put_until(keyspace, key, value, time(at)),
        (Change::Put(value), _) => transaction.put(keyspace, key, value),
        (Change::Delete, _) => transaction.delete(keyspace, key),
        (Change::Merge(operand), _) => transaction.merge(keyspace, key, operand),
        (Change::Expire, Life::For(life)) => transaction.touch(keyspace, key, std::time::Duration::from_millis(life)),
        (Change::Expire, Life::Until(at)) => transaction.expire_at(keyspace, key, time(at)),
        (Change::Expire, _) => transaction.persist(keyspace, key),
        (Change::DeleteRange(low, high), _) => transaction.delete_range(keyspace, (low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), _) => transaction.delete_prefix(keyspace, prefix),
    }
}

/// Everything by scans, then by gets, with the keys that are not there any more.
fn compare(db: &Db, progress: &Progress) -> esker::Result<()> {
    let state = read_state(db, &NAMES).unwrap_or_else(|what| wrong(what))?;
    if let Some(what) = difference(progress.newest(), &state) {
        wrong(what);
    }
    read_gets(db, &NAMES, &state, &progress.places()).unwrap_or_else(|what| wrong(what))
}

/// Runs steps until one fails. `observe` is called after every step.
pub fn run(
    steps: &[Step],
    ground: &Ground,
    progress: &mut Progress,
    observe: &mut dyn FnMut(&Progress),
) -> esker::Result<()> {
    let mut session = Session::open(ground, progress)?;
    for step in steps {
        match step {
            Step::Reopen => {
                session.close()?;
                progress.note_flushed();
                observe(progress);
                session = Session::open(ground, progress)?;
            }
            Step::DropAndReopen => {
                session.flush_unlogged(progress)?;
                drop(session);
                session = Session::open(ground, progress)?;
            }
            Step::Repair => {
                session.flush_unlogged(progress)?;
                drop(session);
                progress.damaged = true;
                ground.lose_current()?;
                session = Session::open(ground, progress)?;
            }
            _ => session.perform(step, progress)?,
        }
        observe(progress);
    }
    session.close()?;
    progress.note_flushed();
    observe(progress);
    Ok(())
}
