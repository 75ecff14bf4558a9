//! Maintenance, copies, reopening, the end of a process, and the clock.

use super::Driver;
use super::open::Opened;
use super::read::compare_all;
use crate::Checked;
use crate::generator::{Operation, Tick};
use crate::simulated::Place;
use esker::{CheckpointMode, Db, Error, Options};
use std::path::PathBuf;

impl Driver {
    pub(super) fn options(&self) -> Options {
        let options = self.place.attach(self.set.options()).clock(self.clock.clone());
        match self.feeds.retention {
            Some(retention) => options.keep_changes(retention),
            None => options,
        }
    }

    pub(super) fn open(&mut self) -> Checked<()> {
        let db = Db::open(self.place.path(), self.options()).map_err(|error| format!("open failed: {error}"))?;
        self.opened = Some(Opened::new(db, &self.world, self.openings)?);
        self.openings += 1;
        self.feeds.note_opened(self.events());
        Ok(())
    }

    fn drop_readers(&mut self) {
        self.cursors = Default::default();
        self.iterators = Default::default();
        self.snapshots = Default::default();
        // Their handles go with the database.
        self.world.model.forget_dropped();
    }

    pub(super) fn maintain(&mut self, operation: &Operation) -> Checked<()> {
        let failed = |error: Error| format!("{operation:?} failed: {error}");
        let opened = self.opened()?;
        match operation {
            Operation::Flush => opened.db.flush().map_err(failed)?,
            Operation::Compact => opened.db.compact().map_err(failed)?,
            Operation::CompactKeyspace(keyspace) => opened.keyspaces[*keyspace].compact().map_err(failed)?,
            Operation::CompactRange(keyspace, low, high) => {
                opened.keyspaces[*keyspace].compact_range((low.clone(), high.clone())).map_err(failed)?;
            }
            Operation::ApproximateSize(keyspace, low, high) => {
                let size = opened.keyspaces[*keyspace].approximate_size((low.clone(), high.clone()));
                let size = size.map_err(failed)?;
                // No run writes nearly as much.
                if size > 1 << 36 {
                    return Err(format!("{operation:?} yields {size}"));
                }
            }
            Operation::WaitIdle => opened.db.wait_idle().map_err(failed)?,
            Operation::Verify => opened.db.verify().map(|_| ()).map_err(failed)?,
            Operation::Checkpoint => return self.checkpoint(),
            Operation::ReadBeside => return self.read_beside(),
            Operation::CompareAll => return compare_all(opened, &self.world),
            Operation::Reopen(supplied) => {
                self.drop_readers();
                if let Some(Opened { db, keyspaces }) = self.opened.take() {
                    drop(keyspaces);
                    db.close().map_err(failed)?;
                }
                self.feeds.check_closed()?;
                self.feeds.end_process();
                self.unlogged = false;
                self.world.supplied = *supplied;
                self.open()?;
                return compare_all(self.opened()?, &self.world);
            }
            Operation::DropAndReopen | Operation::Kill => return self.die(matches!(operation, Operation::Kill)),
            _ => {}
        }
        if matches!(operation, Operation::Flush | Operation::Compact) {
            self.unlogged = false;
            self.feeds.note_durable(self.events());
        }
        Ok(())
    }

    /// What was written without log is only where it should be after a flush.
    pub(super) fn flush_unlogged(&mut self) -> Checked<()> {
        if self.unlogged {
            self.opened()?.db.flush().map_err(|error| format!("flush failed: {error}"))?;
            self.unlogged = false;
        }
        Ok(())
    }

    fn die(&mut self, kill: bool) -> Checked<()> {
        self.flush_unlogged()?;
        let place = match &self.place {
            // The next process finds the files as they are now; the old handles go on using theirs
            // until dropped.
            Place::Memory(env) if kill => Place::Memory(env.kill()),
            place => place.clone(),
        };
        if kill && matches!(place, Place::Memory(_)) {
            // Its files are those of before.
            self.feeds.followed = None;
        }
        self.drop_readers();
        self.feeds.end_process();
        self.opened = None;
        self.place = place;
        self.open()?;
        compare_all(self.opened()?, &self.world)
    }

    fn read_beside(&mut self) -> Checked<()> {
        self.flush_unlogged()?;
        let db = loop {
            match Db::open_read_only(self.place.path(), self.options()) {
                // Its background threads are at work. Nothing is written meanwhile, so that this
                // ends; a run that does not is found by its time.
                Err(Error::Stalled { .. }) => {}
                opened => break opened.map_err(|error| format!("it does not open beside the writer: {error}"))?,
            }
        };
        let beside = Opened::new(db, &self.world, self.openings - 1)?;
        compare_all(&beside, &self.world).map_err(|what| format!("beside the writer: {what}"))?;
        self.read_changes_beside(&beside.db).map_err(|what| format!("beside the writer: {what}"))
    }

    fn checkpoint(&mut self) -> Checked<()> {
        self.checkpoints += 1;
        let path = match &self.place {
            Place::Memory(_) => PathBuf::from(format!("/checkpoint-{}", self.checkpoints)),
            Place::Disk(path) => path.with_extension(format!("checkpoint-{}", self.checkpoints)),
        };
        let mode = [CheckpointMode::Link, CheckpointMode::Copy][self.checkpoints % 2];
        self.opened()?.db.checkpoint_with(&path, mode).map_err(|error| format!("checkpoint failed: {error}"))?;
        let db = Db::open(&path, self.options()).map_err(|error| format!("the checkpoint does not open: {error}"))?;
        let copy = Opened::new(db, &self.world, self.openings - 1)?;
        compare_all(&copy, &self.world).map_err(|what| format!("the checkpoint differs: {what}"))?;
        // It keeps no changes from before.
        if let Ok(mut changes) = copy.db.changes(0)
            && let Some(found) = changes.next()
        {
            return Err(format!("the checkpoint has changes: {found:?}"));
        }
        drop(copy);
        if let Place::Disk(_) = &self.place {
            std::fs::remove_dir_all(&path).map_err(|error| format!("cannot remove the checkpoint: {error}"))?;
        }
        Ok(())
    }

    pub(super) fn tick(&mut self, tick: Tick) {
        let Some(then) = tick.target(&self.world.model) else { return };
        self.clock.set(then);
        self.world.model.set_now(then);
        self.latest_ms = self.latest_ms.max(then);
        self.world.back = then < self.latest_ms;
        self.feeds.clock.note(self.events(), then);
    }
}
