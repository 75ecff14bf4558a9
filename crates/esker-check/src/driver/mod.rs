//! Runs operations on an engine and on the model, and compares every answer.

mod altering;
mod changes;
mod conditional;
mod dropping;
mod feeds;
mod open;
mod read;
mod scan;
mod upkeep;
mod world;

use crate::Checked;
use crate::answer::compare_entry;
use crate::cast::Role;
use crate::generator::{Operation, SLOTS, Source, TransactionStep};
use crate::model::{At, Change, Life, Model, Write};
use crate::option_sets::OptionSet;
use crate::simulated::Place;
use crate::state::{Durability, write_batch, write_one};
use crate::transaction::{self, Stage};
use esker::{Error, ManualClock, Snapshot, StallPolicy, WriteOptions};
pub use feeds::FeedCounts;
use feeds::Feeds;
use open::Opened;
use scan::{OpenCursor, OpenIterator};
use std::sync::Arc;
use std::time::Duration;
use world::{Trust, World};

/// Where the clock of every run begins.
const START_MS: u64 = 1_700_000_000_000;

/// An engine and the model beside it.
pub struct Driver {
    set: OptionSet,
    place: Place,
    world: World,
    clock: Arc<ManualClock>,
    /// The latest that the clock ever showed.
    latest_ms: u64,
    opened: Option<Opened>,
    openings: usize,
    snapshots: [Option<(Snapshot, At)>; SLOTS],
    cursors: [Option<OpenCursor>; SLOTS],
    iterators: [Option<OpenIterator>; SLOTS],
    feeds: Feeds,
    /// Whether anything written without log has not been flushed yet.
    unlogged: bool,
    checkpoints: usize,
    /// Commits since the model last dropped what nobody can see.
    commits: usize,
    /// Writes tried.
    attempts: usize,
}

impl Driver {
    /// A fresh database with these keyspaces at an empty place.
    pub fn new(set: OptionSet, place: Place, cast: &[Role]) -> Checked<Driver> {
        let keyspaces: Vec<_> = cast.iter().map(|role| (role.operator, role.ttl)).collect();
        let mut model = Model::with_ttl(&keyspaces);
        cast.iter().enumerate().for_each(|(keyspace, role)| model.set_order(keyspace, role.order()));
        let mut driver = Driver {
            set,
            place,
            world: World { cast: cast.to_vec(), model, supplied: true, back: false },
            clock: Arc::new(ManualClock::new(START_MS)),
            latest_ms: START_MS,
            opened: None,
            openings: 0,
            snapshots: Default::default(),
            cursors: Default::default(),
            iterators: Default::default(),
            feeds: Feeds::new(),
            unlogged: false,
            checkpoints: 0,
            commits: 0,
            attempts: 0,
        };
        driver.world.model.set_now(START_MS);
        driver.open()?;
        Ok(driver)
    }

    /// What was read of changes so far.
    pub fn feed_counts(&self) -> FeedCounts {
        self.feeds.counts
    }

    fn opened(&self) -> Checked<&Opened> {
        self.opened.as_ref().ok_or_else(|| "the database is not open".to_string())
    }

    /// Performs one operation on both, and compares.
    pub fn apply(&mut self, operation: &Operation) -> Checked<()> {
        match operation {
            Operation::Write(write, durability) => self.write(std::slice::from_ref(write), *durability, false),
            Operation::Batch(writes, durability) => self.write(writes, *durability, true),
            Operation::OnValue(write, expected, durability) => self.write_on_value(write, *expected, *durability),
            Operation::PopFirst(keyspace) => self.pop_first(*keyspace),
            Operation::Load(keyspace, pairs) => self.load(*keyspace, pairs),
            Operation::Feed(operation) => self.feed(operation),
            Operation::Get(source, key) => self.reader(*source)?.get(key),
            Operation::Contains(source, key) => self.reader(*source)?.contains_key(key),
            Operation::End(source, first) => self.reader(*source)?.end(*first),
            Operation::Count(source, span) => self.reader(*source)?.count(span),
            Operation::MultiGet(source, keys) => self.reader(*source)?.multi_get(keys),
            Operation::ExpiresAt(source, key) => self.reader(*source)?.expires_at(key),
            Operation::Scan(source, span, ends) => self.reader(*source)?.scan(span, ends),
            Operation::TakeSnapshot(_) if self.world.back => Ok(()),
            Operation::TakeSnapshot(slot) => {
                self.snapshots[*slot] = Some((self.opened()?.db.snapshot(), self.world.model.present()));
                Ok(())
            }
            Operation::DropSnapshot(slot) => {
                self.snapshots[*slot] = None;
                Ok(())
            }
            Operation::Transaction(steps, commit) => self.transaction(steps, *commit),
            Operation::DropKeyspace(keyspace, operator, ttl) => self.drop_keyspace(*keyspace, (*operator, *ttl)),
            Operation::UseDropped(keyspace, call, write) => self.use_dropped(*keyspace, *call, write),
            Operation::BatchOnDropped(keyspace, writes) => self.batch_on_dropped(*keyspace, writes),
            Operation::Clear(keyspace) => self.clear(*keyspace),
            Operation::Rename(keyspace) => self.rename(*keyspace),
            Operation::Alter(keyspace, operator, ttl, alone) => self.alter(*keyspace, *operator, *ttl, *alone),
            Operation::Clock(tick) => {
                self.tick(*tick);
                Ok(())
            }
            _ => self.walk(operation),
        }
    }

    /// Cursors and iterators that stay open.
    fn walk(&mut self, operation: &Operation) -> Checked<()> {
        match operation {
            Operation::OpenCursor(slot, source) => {
                self.cursors[*slot] = self.reader(*source)?.open_cursor()?;
            }
            Operation::MoveCursor(slot, moves) => {
                let Some(open) = &mut self.cursors[*slot] else { return Ok(()) };
                if !open.walk(moves)? {
                    self.cursors[*slot] = None;
                }
            }
            Operation::DropCursor(slot) => self.cursors[*slot] = None,
            Operation::OpenIterator(slot, source, span) => {
                self.iterators[*slot] = self.reader(*source)?.open_iterator(span);
            }
            Operation::StepIterator(slot, ends) => {
                let Some(open) = &mut self.iterators[*slot] else { return Ok(()) };
                if !open.step(ends)? {
                    self.iterators[*slot] = None;
                }
            }
            Operation::DropIterator(slot) => self.iterators[*slot] = None,
            _ => return self.maintain(operation),
        }
        Ok(())
    }

    /// The options of the next write. Not all wait where writes are stalled; one that is refused
    /// for it has written nothing.
    fn write_options(&mut self, durability: Durability) -> WriteOptions {
        self.attempts += 1;
        let policy = match self.attempts % 4 {
            1 => StallPolicy::Fail,
            2 => StallPolicy::For(Duration::from_micros(100)),
            _ => StallPolicy::Wait,
        };
        durability.options().stall(policy)
    }

    fn write(&mut self, writes: &[Write], durability: Durability, batch: bool) -> Checked<()> {
        let options = self.write_options(durability);
        let opened = self.opened.as_ref().ok_or("the database is not open")?;
        let writes = self.world.settled(writes);
        let refused = writes.iter().any(|write| self.world.model.refuses(write));
        let outcome = match (batch, &*writes) {
            (false, []) => return Ok(()),
            (false, [write]) => write_one(&opened.keyspaces[write.keyspace], write, options),
            _ => write_batch(&opened.db, &opened.keyspaces, &writes, options),
        };
        match outcome {
            Ok(()) if refused => Err("a write that must be refused was accepted".to_string()),
            Ok(()) => {
                // Some calls take no options.
                let is_plain = |write: &Write| {
                    let is_set = matches!(write.life, Life::Until(_));
                    !is_set && !matches!(write.change, Change::Expire | Change::DeletePrefix(_))
                };
                let takes_options = batch || writes.iter().all(is_plain);
                self.world.model.commit(&writes);
                self.note_commit(if takes_options { durability } else { Durability::Async });
                Ok(())
            }
            Err(Error::WriteStalled { .. }) => Ok(()),
            // A merge without operator may be reported as either.
            Err(Error::InvalidArgument { .. } | Error::MissingMergeOperator { .. }) if refused => Ok(()),
            Err(error) => Err(format!("the write failed: {error}")),
        }
    }

    fn pop_first(&mut self, keyspace: usize) -> Checked<()> {
        if self.world.back || self.world.trust(keyspace, false) != Trust::All {
            return Ok(());
        }
        let model = &mut self.world.model;
        let expected = model.end(keyspace, true, model.present());
        let opened = self.opened.as_ref().ok_or("the database is not open")?;
        compare_entry(&expected, opened.keyspaces[keyspace].pop_first().transpose())?;
        if let Some((key, Ok(_))) = expected {
            model.commit(&[Write::new(keyspace, &key[..], Change::Delete)]);
            self.forget();
        }
        Ok(())
    }

    /// Notes how safe what was just committed is.
    fn note_commit(&mut self, durability: Durability) {
        match durability {
            Durability::Async => {}
            // One that comes to nothing need not sync.
            Durability::Sync => {
                let last = self.world.model.journal().and_then(|journal| journal.events.last());
                if last.is_some_and(|last| last.told.is_told()) {
                    self.feeds.note_durable(self.events());
                }
            }
            Durability::Unlogged => {
                self.note_unlogged();
                self.unlogged = true;
            }
        }
        self.forget();
    }

    /// Keeps the model small.
    fn forget(&mut self) {
        const EVERY: usize = 200;
        self.commits += 1;
        if self.commits.is_multiple_of(EVERY) {
            let mut readers: Vec<u64> = self.snapshots.iter().flatten().map(|(_, at)| at.sequence).collect();
            readers.sort_unstable();
            self.world.model.forget_unseen(&readers);
        }
    }

    fn transaction(&mut self, steps: &[TransactionStep], commit: bool) -> Checked<()> {
        // Without an operator, or with a clock that stepped back, too little is promised about what
        // it reads.
        if self.world.back || (!self.world.supplied && self.world.has_shelved()) {
            return Ok(());
        }
        let opened = self.opened.as_mut().ok_or("the database is not open")?;
        let (cast, opening) = (&self.world.cast, self.openings);
        let options = |keyspace: usize| cast[keyspace].options(opening);
        let Opened { db, keyspaces } = opened;
        let stage = Stage { db, keyspaces, model: &mut self.world.model, options: &options, clock: &self.clock };
        transaction::run(stage, steps, commit)?;
        // The clock may have moved meanwhile, ahead only.
        let now = self.world.model.present().now;
        self.latest_ms = self.latest_ms.max(now);
        self.feeds.clock.note(self.events(), now);
        self.forget();
        Ok(())
    }

    fn reader(&self, source: Source) -> Checked<read::Reader<'_>> {
        let slot = source.snapshot.and_then(|slot| self.snapshots[slot].as_ref());
        let (snapshot, at) = match slot {
            Some((snapshot, at)) => (Some(snapshot), *at),
            None => (None, self.world.model.present()),
        };
        // By the handle of the keyspace that had the name then.
        let keyspace = self.world.model.incarnation(source.keyspace, at.sequence);
        Ok(read::Reader { opened: self.opened()?, world: &self.world, keyspace, snapshot, at })
    }
}
