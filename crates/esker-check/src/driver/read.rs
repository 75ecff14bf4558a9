//! Reads by key and by span, each answer compared with the model's.

use super::open::Opened;
use super::scan::{OpenCursor, OpenIterator};
use super::world::{Trust, World};
use crate::Checked;
use crate::answer::{compare_answer, compare_entry, compare_expiry, compare_known};
use crate::model::{At, Span};
use crate::state::shown;
use esker::{Error, Iter, Slice, Snapshot};
use std::ops::Bound;

/// Reads one keyspace, now or by a snapshot.
pub(super) struct Reader<'d> {
    pub opened: &'d Opened,
    pub world: &'d World,
    pub keyspace: usize,
    pub snapshot: Option<&'d Snapshot>,
    /// What the reader sees.
    pub at: At,
}

impl Reader<'_> {
    fn trust(&self) -> Trust {
        self.world.trust(self.keyspace, self.snapshot.is_some())
    }

    fn handle(&self) -> &esker::Keyspace {
        &self.opened.keyspaces[self.keyspace]
    }

    pub fn get(&self, key: &[u8]) -> Checked<()> {
        let mut value = b"of another key".to_vec();
        let found = match (self.snapshot, key.len() % 2) {
            (Some(snapshot), 0) => snapshot.get(self.handle(), key),
            (None, 0) => self.handle().get(key),
            (Some(snapshot), _) => {
                snapshot.get_into(self.handle(), key, &mut value).map(|found| found.then(|| Slice::from(value)))
            }
            (None, _) => self.handle().get_into(key, &mut value).map(|found| found.then(|| Slice::from(value))),
        };
        self.compare(key, found)
    }

    pub fn multi_get(&self, keys: &[Vec<u8>]) -> Checked<()> {
        let answers = match self.snapshot {
            Some(snapshot) => {
                snapshot.multi_get(self.handle(), keys).map_err(|error| format!("all of it failed: {error}"))?
            }
            None => self.handle().multi_get(keys),
        };
        if answers.len() != keys.len() {
            return Err(format!("{} answers for {} keys", answers.len(), keys.len()));
        }
        for (key, found) in keys.iter().zip(answers) {
            self.compare(key, found).map_err(|what| format!("at {}: {what}", shown(key)))?;
        }
        Ok(())
    }

    fn compare(&self, key: &[u8], found: esker::Result<Option<Slice>>) -> Checked<()> {
        let model = &self.world.model;
        match (self.trust(), &found) {
            (Trust::Nothing, Ok(_) | Err(Error::MergeFailed { .. })) => Ok(()),
            (Trust::Unmerged, Err(Error::MissingMergeOperator { .. }))
                if model.is_merged(self.keyspace, key, self.at) =>
            {
                Ok(())
            }
            _ => compare_answer(&model.get(self.keyspace, key, self.at), found),
        }
    }

    pub fn contains_key(&self, key: &[u8]) -> Checked<()> {
        let found = match self.snapshot {
            Some(snapshot) => snapshot.contains_key(self.handle(), key),
            None => self.handle().contains_key(key),
        };
        let model = &self.world.model;
        let expected = model.get(self.keyspace, key, self.at).map(|value| value.is_some());
        match (self.trust(), found) {
            (Trust::Nothing, Ok(_) | Err(Error::MergeFailed { .. })) => Ok(()),
            (Trust::Unmerged, Err(Error::MissingMergeOperator { .. }))
                if model.is_merged(self.keyspace, key, self.at) =>
            {
                Ok(())
            }
            (_, found) => compare_known(&expected, found),
        }
    }

    /// The first pair, or the last.
    pub fn end(&self, first: bool) -> Checked<()> {
        let found = match (self.snapshot, first) {
            (Some(snapshot), true) => snapshot.first(self.handle()),
            (Some(snapshot), false) => snapshot.last(self.handle()),
            (None, true) => self.handle().first(),
            (None, false) => self.handle().last(),
        };
        if self.trust() != Trust::All {
            return Ok(());
        }
        compare_entry(&self.world.model.end(self.keyspace, first, self.at), found.transpose())
    }

    pub fn count(&self, span: &Span) -> Checked<()> {
        let bounds = self.world.model.order(self.keyspace).bounds(span);
        let found = match self.snapshot {
            Some(snapshot) => snapshot.count(self.handle(), bounds),
            None => self.handle().count(bounds),
        };
        if self.trust() != Trust::All {
            return Ok(());
        }
        compare_known(&self.world.model.count(self.keyspace, span, self.at), found)
    }

    pub fn expires_at(&self, key: &[u8]) -> Checked<()> {
        let found = match self.snapshot {
            Some(snapshot) => snapshot.expires_at(self.handle(), key),
            None => self.handle().expires_at(key),
        };
        let model = &self.world.model;
        let expected = model.expires_at(self.keyspace, key, self.at);
        match (self.trust(), &found) {
            (Trust::Nothing, Ok(_)) => Ok(()),
            (Trust::Nothing, Err(Error::MergeFailed { .. })) if expected.is_some() => Ok(()),
            _ => compare_expiry(expected, model.get(self.keyspace, key, self.at).is_err(), &found),
        }
    }

    fn iterator(&self, span: &Span) -> Iter {
        let handle = self.handle();
        match (self.snapshot, span) {
            (None, Span::All) => handle.iter(),
            (None, Span::Prefix(prefix)) => handle.prefix(prefix),
            (None, Span::Range(low, high)) => handle.range((low.clone(), high.clone())),
            (Some(snapshot), Span::All) => snapshot.iter(handle),
            (Some(snapshot), Span::Prefix(prefix)) => snapshot.prefix(handle, prefix),
            (Some(snapshot), Span::Range(low, high)) => snapshot.range(handle, (low.clone(), high.clone())),
        }
    }

    /// An iterator beside what it must yield, if that is known.
    pub fn open_iterator(&self, span: &Span) -> Option<OpenIterator> {
        if self.trust() != Trust::All {
            return None;
        }
        let entries = self.world.model.scan(self.keyspace, span, self.at);
        Some(OpenIterator::new(self.iterator(span), entries))
    }

    /// A cursor beside what it must walk over, if that is known.
    pub fn open_cursor(&self) -> Checked<Option<OpenCursor>> {
        if self.trust() != Trust::All {
            return Ok(None);
        }
        let cursor = match self.snapshot {
            Some(snapshot) => snapshot.cursor(self.handle()),
            None => self.handle().cursor(),
        };
        let cursor = cursor.map_err(|error| format!("no cursor: {error}"))?;
        let entries = self.world.model.scan(self.keyspace, &Span::All, self.at);
        Ok(Some(OpenCursor::new(cursor, entries, self.world.model.order(self.keyspace))))
    }

    /// Takes from the ends, then the rest from the front.
    pub fn scan(&self, span: &Span, ends: &[bool]) -> Checked<()> {
        let Some(mut open) = self.open_iterator(span) else { return self.wary_scan(span) };
        if open.step(ends)? {
            open.drain()?;
        }
        self.scan_keys(span, ends.len().is_multiple_of(2))
    }

    /// The keys alone, in either direction, up to one whose merge must fail.
    fn scan_keys(&self, span: &Span, forward: bool) -> Checked<()> {
        let mut expected = self.world.model.scan(self.keyspace, span, self.at);
        let keys = self.iterator(span).keys();
        let mut keys: Box<dyn Iterator<Item = esker::Result<Slice>>> = match forward {
            true => Box::new(keys),
            false => {
                expected.reverse();
                Box::new(keys.rev())
            }
        };
        for (key, value) in &expected {
            match (keys.next(), value) {
                (Some(Err(Error::MergeFailed { .. })), Err(_)) => return Ok(()),
                (Some(Ok(found)), Ok(_)) if found[..] == key[..] => {}
                (found, _) => return Err(format!("the key is {found:?}, expected {}", shown(key))),
            }
        }
        match keys.next() {
            None => Ok(()),
            found => Err(format!("the keys go on with {found:?}")),
        }
    }

    /// Scans forward; begins again behind every key whose merge must fail.
    pub fn scan_past_failures(&self, span: &Span) -> Checked<()> {
        let mut rest = span.clone();
        loop {
            let Some(mut open) = self.open_iterator(&rest) else { return self.wary_scan(&rest) };
            match open.drain()? {
                Some(failed) => rest = Span::Range(Bound::Excluded(failed.to_vec()), Bound::Unbounded),
                None => return Ok(()),
            }
        }
    }

    /// Scans where not all answers can be known.
    fn wary_scan(&self, span: &Span) -> Checked<()> {
        let model = &self.world.model;
        let order = model.order(self.keyspace);
        let mut last: Option<Slice> = None;
        let mut count = 0;
        for entry in self.iterator(span) {
            let (key, value) = match (entry, self.trust()) {
                (Ok(entry), _) => entry,
                (Err(Error::MergeFailed { .. }), Trust::Nothing) => return Ok(()),
                (Err(Error::MissingMergeOperator { .. }), Trust::Unmerged) => {
                    let rest = |key: &[u8]| {
                        let is_behind = last.as_deref().is_none_or(|last| order.compare(last, key).is_lt());
                        order.contains(span, key) && is_behind
                    };
                    let keys = model.known_keys(self.keyspace);
                    let merged = keys.iter().any(|key| rest(key) && model.is_merged(self.keyspace, key, self.at));
                    return if merged { Ok(()) } else { Err("the operator is not needed here".to_string()) };
                }
                (Err(error), _) => return Err(format!("the scan failed: {error}")),
            };
            if !order.contains(span, &key) || last.as_deref().is_some_and(|last| order.compare(last, &key).is_ge()) {
                return Err(format!("the scan yields {} out of order", shown(&key)));
            }
            if self.trust() == Trust::Unmerged {
                let expected = model.get(self.keyspace, &key, self.at);
                compare_answer(&expected, Ok(Some(value))).map_err(|what| format!("at {}: {what}", shown(&key)))?;
            }
            last = Some(key);
            count += 1;
        }
        let expected = model.scan(self.keyspace, span, self.at).len();
        if self.trust() == Trust::Unmerged && count != expected {
            return Err(format!("the scan yields {count} entries, expected {expected}"));
        }
        Ok(())
    }
}

/// Compares every key of every keyspace with the model, by scans and by gets.
pub(super) fn compare_all(opened: &Opened, world: &World) -> Checked<()> {
    for (keyspace, role) in world.cast.iter().enumerate() {
        let reader = Reader { opened, world, keyspace, snapshot: None, at: world.model.present() };
        reader.scan_past_failures(&Span::All).map_err(|what| format!("scan of all of {}: {what}", role.name))?;
        for key in world.model.known_keys(keyspace) {
            reader.get(&key).map_err(|what| format!("get {} of {}: {what}", shown(&key), role.name))?;
        }
    }
    Ok(())
}
