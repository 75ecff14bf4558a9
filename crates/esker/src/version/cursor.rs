//! One cursor type over every source of entries: dispatch by `match`, so that a merging cursor
//! allocates nothing and calls through no pointer per entry.

use super::runs::Run;
use crate::base::key::{Entry, Sequence};
use crate::base::range_tombstone::RangeTombstones;
use crate::error::Result;
use crate::iter::skipping::{Covers, SkippingCursor};
use crate::iter::{Cursor, PlainSearch};
use crate::memtable::RunCursor;
use crate::table::TableCursor;
use std::sync::Arc;

/// A cursor over a run of tables.
pub struct TablesCursor {
    run: Arc<Run>,
    fill_cache: bool,
    /// The table that `current` is in.
    at: usize,
    current: Option<TableCursor>,
}

impl TablesCursor {
    fn open(&mut self, at: usize) -> Option<&mut TableCursor> {
        if self.current.is_none() || self.at != at {
            let passed_bytes = self.current.as_ref().map_or(0, TableCursor::passed_bytes);
            self.current = self.run.tables.get(at).map(|table| table.cursor(self.fill_cache));
            if let Some(cursor) = &mut self.current {
                cursor.go_on(passed_bytes);
            }
            self.at = at;
        }
        self.current.as_mut()
    }

    /// The first table that is not wholly before `key`.
    fn table_for(&self, key: &[u8]) -> usize {
        self.run.tables.partition_point(|table| table.summary().is_before(key))
    }

    /// Goes on to the tables behind while the cursor is at none of their entries.
    fn settle_forward(&mut self) -> Result<()> {
        while self.current.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let next = self.at + 1;
            match self.open(next) {
                Some(cursor) => cursor.seek_to_first()?,
                None => break,
            }
        }
        Ok(())
    }

    fn settle_backward(&mut self) -> Result<()> {
        while self.current.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let Some(before) = self.at.checked_sub(1) else {
                self.current = None;
                break;
            };
            if let Some(cursor) = self.open(before) {
                cursor.seek_to_last()?;
            }
        }
        Ok(())
    }
}

impl Cursor for TablesCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        if let Some(cursor) = self.open(0) {
            cursor.seek_to_first()?;
        }
        self.settle_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let Some(last) = self.run.tables.len().checked_sub(1) else { return Ok(()) };
        if let Some(cursor) = self.open(last) {
            cursor.seek_to_last()?;
        }
        self.settle_backward()
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let at = self.table_for(key);
        match self.open(at) {
            Some(cursor) => cursor.seek(key, sequence)?,
            None => return Ok(()),
        }
        self.settle_forward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.current {
            cursor.next()?;
            if !cursor.valid() {
                self.settle_forward()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.current {
            cursor.prev()?;
            if !cursor.valid() {
                self.settle_backward()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.current.as_ref().is_some_and(TableCursor::valid)
    }

    fn prepare(&mut self, key: &[u8], stage: usize) {
        let at = if stage == 0 { self.table_for(key) } else { self.at };
        if let Some(cursor) = self.open(at) {
            cursor.prepare(key, stage);
        }
    }

    fn plain_run(&mut self, search: PlainSearch<'_>) -> usize {
        self.current.as_mut().map_or(0, |cursor| cursor.plain_run(search))
    }

    #[inline]
    fn step_plain(&mut self, backward: bool) {
        if let Some(cursor) = &mut self.current {
            cursor.step_plain(backward);
        }
    }

    fn intact(&self) -> Result<()> {
        self.current.as_ref().map_or(Ok(()), Cursor::intact)
    }

    #[inline]
    fn is_first_of_key(&self) -> bool {
        self.current.as_ref().is_some_and(|cursor| cursor.is_first_of_key())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |cursor| cursor.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |cursor| cursor.value())
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.current.as_ref().expect("only asked for at a valid cursor").entry()
    }
}

/// See the module's comment.
#[allow(clippy::large_enum_variant)]
pub enum AnyCursor {
    Memory(RunCursor),
    Table(TableCursor),
    Tables(TablesCursor),
    /// Over a source, without what range tombstones of newer sources hide.
    Skipping(Box<SkippingCursor<AnyCursor>>),
}

impl AnyCursor {
    /// This cursor without what a reader at `sequence` cannot see because of range tombstones in
    /// `newer` sources.
    pub fn behind(self, newer: &[Arc<RangeTombstones>], sequence: Sequence) -> AnyCursor {
        if newer.is_empty() {
            return self;
        }
        AnyCursor::Skipping(Box::new(SkippingCursor::new(self, Covers::new(newer.to_vec(), sequence))))
    }

    /// A cursor over `run`.
    pub fn over(run: &Arc<Run>, fill_cache: bool) -> AnyCursor {
        match run.tables.as_slice() {
            [table] => AnyCursor::Table(table.cursor(fill_cache)),
            _ => AnyCursor::Tables(TablesCursor { run: Arc::clone(run), fill_cache, at: 0, current: None }),
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            AnyCursor::Memory($cursor) => $call,
            AnyCursor::Table($cursor) => $call,
            AnyCursor::Tables($cursor) => $call,
            AnyCursor::Skipping($cursor) => $call,
        }
    };
}

impl Cursor for AnyCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        dispatch!(self, cursor => cursor.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        dispatch!(self, cursor => cursor.seek_to_last())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        dispatch!(self, cursor => cursor.seek(key, sequence))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        dispatch!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        dispatch!(self, cursor => cursor.prev())
    }

    #[inline]
    fn valid(&self) -> bool {
        dispatch!(self, cursor => cursor.valid())
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        dispatch!(self, cursor => cursor.entry())
    }

    fn prepare(&mut self, key: &[u8], stage: usize) {
        dispatch!(self, cursor => cursor.prepare(key, stage))
    }

    fn plain_run(&mut self, search: PlainSearch<'_>) -> usize {
        dispatch!(self, cursor => cursor.plain_run(search))
    }

    #[inline]
    fn step_plain(&mut self, backward: bool) {
        dispatch!(self, cursor => cursor.step_plain(backward))
    }

    fn intact(&self) -> Result<()> {
        dispatch!(self, cursor => cursor.intact())
    }

    #[inline]
    fn is_first_of_key(&self) -> bool {
        dispatch!(self, cursor => cursor.is_first_of_key())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        dispatch!(self, cursor => cursor.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        dispatch!(self, cursor => cursor.value())
    }
}
