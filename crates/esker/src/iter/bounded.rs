//! A cursor over a part of another: the keys at or after a start and before an end.

use crate::base::key::{Entry, MAX_SEQUENCE, Sequence};
use crate::base::key_order::KeyOrder;
use crate::error::Result;
use crate::iter::Cursor;

/// A [`Cursor`] that ends where its range of keys does. Going forward only costs a comparison for
/// each step.
#[derive(Debug)]
pub struct Bounded<'a, C> {
    inner: C,
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
    order: &'a KeyOrder,
    inside: bool,
}

impl<'a, C: Cursor> Bounded<'a, C> {
    /// The part of `inner` from `start`, included, to `end`, excluded. It starts invalid.
    pub fn new(inner: C, start: Option<&'a [u8]>, end: Option<&'a [u8]>, order: &'a KeyOrder) -> Bounded<'a, C> {
        Bounded { inner, start, end, order, inside: false }
    }

    #[inline]
    fn look(&mut self) {
        self.inside = self.inner.valid() && {
            let key = self.inner.entry().key;
            self.start.is_none_or(|start| !self.order.less(key, start))
                && self.end.is_none_or(|end| self.order.less(key, end))
        };
    }
}

impl<C: Cursor> Cursor for Bounded<'_, C> {
    fn seek_to_first(&mut self) -> Result<()> {
        match self.start {
            Some(start) => self.inner.seek(start, MAX_SEQUENCE)?,
            None => self.inner.seek_to_first()?,
        }
        self.look();
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.end {
            Some(end) => {
                self.inner.seek(end, MAX_SEQUENCE)?;
                if self.inner.valid() { self.inner.prev()? } else { self.inner.seek_to_last()? }
            }
            None => self.inner.seek_to_last()?,
        }
        self.look();
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        match self.start {
            Some(start) if self.order.less(key, start) => self.inner.seek(start, MAX_SEQUENCE)?,
            _ => self.inner.seek(key, sequence)?,
        }
        self.look();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.inner.next()?;
        self.look();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.inner.prev()?;
        self.look();
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.inside
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.inner.entry()
    }
}
