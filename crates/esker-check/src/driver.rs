//! Runs operations on an engine and on the model, and compares every answer.

use crate::Checked;
use crate::generator::{KEYSPACES, Move, Operation, SLOTS, Source};
use crate::model::{Answer, Entry, Model, Span, Write};
use crate::option_sets::OptionSet;
use crate::simulated::Place;
use crate::state::{Durability, keyspace_options, shown, write_batch, write_one};
use esker::{Cursor, Db, Error, Iter, Keyspace, Slice, Snapshot};
use std::collections::VecDeque;

/// A cursor beside the entries that it must walk over.
struct OpenCursor {
    cursor: Cursor,
    entries: Vec<Entry>,
    position: Option<usize>,
}

/// A range iterator beside the entries that it has yet to yield.
struct OpenIterator {
    iterator: Iter,
    entries: VecDeque<Entry>,
}

/// An engine and the model beside it.
pub struct Driver {
    set: OptionSet,
    place: Place,
    model: Model,
    db: Option<Db>,
    keyspaces: Vec<Keyspace>,
    snapshots: [Option<(Snapshot, u64)>; SLOTS],
    cursors: [Option<OpenCursor>; SLOTS],
    iterators: [Option<OpenIterator>; SLOTS],
    /// Whether anything written without log has not been flushed yet.
    unlogged: bool,
    checkpoints: usize,
}

impl Driver {
    /// A fresh database at an empty place.
    pub fn new(set: OptionSet, place: Place) -> Checked<Driver> {
        let mut driver = Driver {
            set,
            place,
            model: Model::new(&KEYSPACES.map(|(_, operator)| operator)),
            db: None,
            keyspaces: Vec::new(),
            snapshots: Default::default(),
            cursors: Default::default(),
            iterators: Default::default(),
            unlogged: false,
            checkpoints: 0,
        };
        driver.open()?;
        Ok(driver)
    }

    fn open(&mut self) -> Checked<()> {
        let db = Db::open(self.place.path(), self.place.attach(self.set.options()))
            .map_err(|error| format!("open failed: {error}"))?;
        for (name, operator) in KEYSPACES {
            let keyspace = db
                .keyspace(name, keyspace_options(operator))
                .map_err(|error| format!("keyspace {name} cannot be opened: {error}"))?;
            self.keyspaces.push(keyspace);
        }
        self.db = Some(db);
        Ok(())
    }

    fn drop_handles(&mut self) {
        self.cursors = Default::default();
        self.iterators = Default::default();
        self.snapshots = Default::default();
        self.keyspaces.clear();
    }

    fn db(&self) -> Checked<&Db> {
        self.db.as_ref().ok_or_else(|| "the database is not open".to_string())
    }

    /// Performs one operation on both, and compares.
    pub fn apply(&mut self, operation: &Operation) -> Checked<()> {
        match operation {
            Operation::Write(write, durability) => self.write(std::slice::from_ref(write), *durability, false),
            Operation::Batch(writes, durability) => self.write(writes, *durability, true),
            Operation::Get(source, key) => self.get(*source, key),
            Operation::Scan(source, span, ends) => {
                let mut open = self.open_iterator(*source, span);
                let alive = step_iterator(&mut open, ends)?;
                let rest = vec![true; open.entries.len() + 1];
                if alive { step_iterator(&mut open, &rest).map(|_| ()) } else { Ok(()) }
            }
            Operation::TakeSnapshot(slot) => {
                self.snapshots[*slot] = Some((self.db()?.snapshot(), self.model.sequence()));
                Ok(())
            }
            Operation::DropSnapshot(slot) => {
                self.snapshots[*slot] = None;
                Ok(())
            }
            Operation::OpenCursor(slot, source) => self.open_cursor(*slot, *source),
            Operation::MoveCursor(slot, moves) => self.move_cursor(*slot, moves),
            Operation::DropCursor(slot) => {
                self.cursors[*slot] = None;
                Ok(())
            }
            Operation::OpenIterator(slot, source, span) => {
                self.iterators[*slot] = Some(self.open_iterator(*source, span));
                Ok(())
            }
            Operation::StepIterator(slot, ends) => {
                let Some(open) = &mut self.iterators[*slot] else { return Ok(()) };
                if !step_iterator(open, ends)? {
                    self.iterators[*slot] = None;
                }
                Ok(())
            }
            Operation::DropIterator(slot) => {
                self.iterators[*slot] = None;
                Ok(())
            }
            _ => self.maintain(operation),
        }
    }

    fn maintain(&mut self, operation: &Operation) -> Checked<()> {
        let failed = |error: Error| format!("{operation:?} failed: {error}");
        match operation {
            Operation::Flush => self.db()?.flush().map_err(failed)?,
            Operation::Compact => self.db()?.compact().map_err(failed)?,
            Operation::CompactKeyspace(keyspace) => self.keyspaces[*keyspace].compact().map_err(failed)?,
            Operation::WaitIdle => self.db()?.wait_idle().map_err(failed)?,
            Operation::Verify => self.db()?.verify(&mut |_, _| {}).map(|_| ()).map_err(failed)?,
            Operation::Checkpoint => return self.checkpoint(),
            Operation::CompareAll => return self.compare_all(),
            Operation::Reopen => {
                self.drop_handles();
                if let Some(db) = self.db.take() {
                    db.close().map_err(failed)?;
                }
                self.open()?;
                self.unlogged = false;
                return self.compare_all();
            }
            Operation::DropAndReopen | Operation::Kill => return self.die(matches!(operation, Operation::Kill)),
            _ => {}
        }
        if matches!(operation, Operation::Flush | Operation::Compact) {
            self.unlogged = false;
        }
        Ok(())
    }

    /// Without log, only what was flushed has to survive: so flush first.
    fn die(&mut self, kill: bool) -> Checked<()> {
        if self.unlogged {
            self.db()?.flush().map_err(|error| format!("flush failed: {error}"))?;
            self.unlogged = false;
        }
        let place = match &self.place {
            // The next process finds the files as they are now; the old handles go on using theirs until dropped.
            Place::Memory(env) if kill => Place::Memory(env.kill()),
            place => place.clone(),
        };
        self.drop_handles();
        self.db = None;
        self.place = place;
        self.open()?;
        self.compare_all()
    }

    fn write(&mut self, writes: &[Write], durability: Durability, batch: bool) -> Checked<()> {
        let refused = writes.iter().any(|write| self.model.refuses(write));
        let outcome = match (batch, writes) {
            (false, [write]) => write_one(&self.keyspaces[write.keyspace], write, durability),
            _ => write_batch(self.db()?, &self.keyspaces, writes, durability),
        };
        match outcome {
            Ok(()) if refused => Err("a write that must be refused was accepted".to_string()),
            Ok(()) => {
                self.model.commit(writes);
                self.unlogged |= durability == Durability::Unlogged;
                Ok(())
            }
            // A merge without operator may be reported as either.
            Err(Error::InvalidArgument { .. } | Error::MissingMergeOperator { .. }) if refused => Ok(()),
            Err(error) => Err(format!("the write failed: {error}")),
        }
    }

    fn sequence_of(&self, snapshot: Option<usize>) -> (Option<&Snapshot>, u64) {
        match snapshot.and_then(|slot| self.snapshots[slot].as_ref()) {
            Some((snapshot, sequence)) => (Some(snapshot), *sequence),
            None => (None, self.model.sequence()),
        }
    }

    fn get(&self, source: Source, key: &[u8]) -> Checked<()> {
        let (snapshot, at) = self.sequence_of(source.snapshot);
        let handle = &self.keyspaces[source.keyspace];
        let found = match snapshot {
            Some(snapshot) => snapshot.get(handle, key),
            None => handle.get(key),
        };
        compare_answer(&self.model.get(source.keyspace, key, at), found)
    }

    fn open_iterator(&self, source: Source, span: &Span) -> OpenIterator {
        let (snapshot, at) = self.sequence_of(source.snapshot);
        let handle = &self.keyspaces[source.keyspace];
        let iterator = match (snapshot, span) {
            (None, Span::All) => handle.iter(),
            (None, Span::Prefix(prefix)) => handle.prefix(prefix),
            (None, Span::Range(low, high)) => handle.range::<Vec<u8>>((low.clone(), high.clone())),
            (Some(snapshot), Span::All) => snapshot.iter(handle),
            (Some(snapshot), Span::Prefix(prefix)) => snapshot.prefix(handle, prefix),
            (Some(snapshot), Span::Range(low, high)) => snapshot.range::<Vec<u8>>(handle, (low.clone(), high.clone())),
        };
        OpenIterator { iterator, entries: self.model.scan(source.keyspace, span, at).into() }
    }

    fn open_cursor(&mut self, slot: usize, source: Source) -> Checked<()> {
        let (snapshot, at) = self.sequence_of(source.snapshot);
        let handle = &self.keyspaces[source.keyspace];
        let cursor = match snapshot {
            Some(snapshot) => snapshot.cursor(handle),
            None => handle.cursor(),
        };
        let cursor = cursor.map_err(|error| format!("no cursor: {error}"))?;
        let entries = self.model.scan(source.keyspace, &Span::All, at);
        self.cursors[slot] = Some(OpenCursor { cursor, entries, position: None });
        Ok(())
    }

    fn move_cursor(&mut self, slot: usize, moves: &[Move]) -> Checked<()> {
        let Some(open) = &mut self.cursors[slot] else { return Ok(()) };
        for step in moves {
            if !open.step(step).map_err(|what| format!("at {step:?}: {what}"))? {
                self.cursors[slot] = None;
                return Ok(());
            }
        }
        Ok(())
    }

    fn compare_all(&self) -> Checked<()> {
        for (keyspace, (name, _)) in KEYSPACES.iter().enumerate() {
            let source = Source { keyspace, snapshot: None };
            let mut open = self.open_iterator(source, &Span::All);
            let keys: Vec<Vec<u8>> = open.entries.iter().map(|(key, _)| key.clone()).collect();
            let all = vec![true; open.entries.len() + 1];
            step_iterator(&mut open, &all).map_err(|what| format!("scan of all of {name}: {what}"))?;
            for key in keys {
                self.get(source, &key).map_err(|what| format!("get {} of {name}: {what}", shown(&key)))?;
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Checked<()> {
        self.checkpoints += 1;
        let path = match &self.place {
            Place::Memory(_) => std::path::PathBuf::from(format!("/checkpoint-{}", self.checkpoints)),
            Place::Disk(path) => path.with_extension(format!("checkpoint-{}", self.checkpoints)),
        };
        self.db()?.checkpoint(&path).map_err(|error| format!("checkpoint failed: {error}"))?;
        // The copy is opened as a driver of its own, so it is compared, and closed, like any database.
        let mut copy = Driver {
            set: self.set,
            place: self.place.clone(),
            model: self.model.clone(),
            db: None,
            keyspaces: Vec::new(),
            snapshots: Default::default(),
            cursors: Default::default(),
            iterators: Default::default(),
            unlogged: false,
            checkpoints: 0,
        };
        let options = self.place.attach(self.set.options());
        let db = Db::open(&path, options).map_err(|error| format!("the checkpoint does not open: {error}"))?;
        for (name, operator) in KEYSPACES {
            let keyspace = db.keyspace(name, keyspace_options(operator));
            copy.keyspaces.push(keyspace.map_err(|error| format!("checkpoint lacks {name}: {error}"))?);
        }
        copy.db = Some(db);
        copy.compare_all().map_err(|what| format!("the checkpoint differs: {what}"))?;
        drop(copy);
        if let Place::Disk(_) = &self.place {
            std::fs::remove_dir_all(&path).map_err(|error| format!("cannot remove the checkpoint: {error}"))?;
        }
        Ok(())
    }
}

impl OpenCursor {
    /// Takes one step and compares; false if the cursor met the failure it had to meet, and is of no more use.
    fn step(&mut self, step: &Move) -> Checked<bool> {
        let count = self.entries.len();
        let (outcome, position) = match (step, self.position) {
            (Move::First, _) => (self.cursor.seek_to_first(), (count > 0).then_some(0)),
            (Move::Last, _) => (self.cursor.seek_to_last(), count.checked_sub(1)),
            (Move::Seek(key), _) => {
                let index = self.entries.partition_point(|(other, _)| other < key);
                (self.cursor.seek(key), (index < count).then_some(index))
            }
            (Move::SeekForPrev(key), _) => {
                let index = self.entries.partition_point(|(other, _)| other <= key);
                (self.cursor.seek_for_prev(key), index.checked_sub(1))
            }
            (Move::Next, Some(index)) => (self.cursor.next(), (index + 1 < count).then_some(index + 1)),
            (Move::Prev, Some(index)) => (self.cursor.prev(), index.checked_sub(1)),
            // What a relative step does without a position is not promised.
            (Move::Next | Move::Prev, None) => return Ok(true),
        };
        self.position = position;
        let expected = position.map(|index| &self.entries[index]);
        match (outcome, expected) {
            (Err(Error::MergeFailed { .. }), Some((_, Err(_)))) => Ok(false),
            (Err(error), _) => Err(format!("the step failed: {error}")),
            (Ok(()), Some((key, Err(_)))) => Err(format!("the merge of {} must fail here", shown(key))),
            (Ok(()), None) if self.cursor.valid() => {
                Err(format!("the cursor is at {}, expected at the end", shown(self.cursor.key())))
            }
            (Ok(()), None) => Ok(true),
            (Ok(()), Some((key, Ok(_)))) if !self.cursor.valid() => {
                Err(format!("the cursor is at the end, expected at {}", shown(key)))
            }
            (Ok(()), Some((key, Ok(value)))) => {
                let found = (self.cursor.key(), self.cursor.value());
                if found == (key.as_slice(), value.as_slice()) {
                    return Ok(true);
                }
                let (found_key, found_value) = (shown(found.0), shown(found.1));
                Err(format!("the cursor is at {found_key}={found_value}, expected {}={}", shown(key), shown(value)))
            }
        }
    }
}

/// Takes from both ends and compares; false if the iterator met the failure it had to meet.
fn step_iterator(open: &mut OpenIterator, ends: &[bool]) -> Checked<bool> {
    for &front in ends {
        let (found, expected) = if front {
            (open.iterator.next(), open.entries.pop_front())
        } else {
            (open.iterator.next_back(), open.entries.pop_back())
        };
        let end = if front { "front" } else { "back" };
        match (found, expected) {
            (None, None) => {}
            (Some(Err(Error::MergeFailed { .. })), Some((_, Err(_)))) => return Ok(false),
            (Some(Err(error)), _) => return Err(format!("the scan failed at the {end}: {error}")),
            (Some(Ok((key, value))), Some((expected_key, Ok(expected_value))))
                if key[..] == expected_key[..] && value[..] == expected_value[..] => {}
            (found, expected) => {
                let found = found.and_then(Result::ok).map(|(key, value)| (shown(&key), shown(&value)));
                let expected = expected.map(|(key, value)| (shown(&key), value.map(|value| shown(&value))));
                return Err(format!("the scan yields {found:?} at the {end}, expected {expected:?}"));
            }
        }
    }
    Ok(true)
}

fn compare_answer(expected: &Answer, found: esker::Result<Option<Slice>>) -> Checked<()> {
    match (expected, found) {
        (Ok(None), Ok(None)) | (Err(_), Err(Error::MergeFailed { .. })) => Ok(()),
        (Ok(Some(expected)), Ok(Some(found))) if found[..] == expected[..] => Ok(()),
        (expected, Ok(found)) => {
            let expected = expected.as_ref().map(|value| value.as_ref().map(|value| shown(value)));
            Err(format!("the value is {:?}, expected {expected:?}", found.map(|found| shown(&found))))
        }
        (_, Err(error)) => Err(format!("the read failed: {error}")),
    }
}
