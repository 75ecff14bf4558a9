//! The changes that an engine tells of, compared with the journal of a model: every commit once, in
//! order, with its operations, and what applies them has what the model has.

use crate::Checked;
use crate::model::{After, Change, Event, Face, Journal, Kept, Order, Span, Told, Ttl, Write};
use crate::operators::supply;
use crate::state::{lives, shown};
use esker::{ChangeBatch, ChangeOperation, Changes, Db, Error, Expiry, Slice};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

type Contents = BTreeMap<Arc<[u8]>, Kept>;

/// How many bytes of log at least are kept for readers of changes in each option set that keeps
/// them.
pub const LEAST_KEPT_BYTES: u64 = 4 << 10;
/// What stands for all of them.
pub const ALL_BYTES: u64 = 1 << 40;

/// For how long they are kept in the option set that says it so.
pub const KEPT_TIME: Duration = Duration::from_millis(1234);

/// Everything that a reader of changes is told by a database.
pub struct All {
    /// From the oldest on.
    pub batches: Vec<ChangeBatch>,
    /// Whether there were older ones that were given up.
    some_are_gone: bool,
    /// Where changes are kept for [`KEPT_TIME`]: what the clock shows.
    kept_by_time: Option<u64>,
}

/// What a database may have lost of the changes that it has kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LostChanges {
    /// Nothing.
    None,
    /// It has been recovered, and some of the bytes for which older ones were given up may have
    /// been lost.
    Newest,
    /// A sync had failed before: any of those that a recovery relied on.
    Any,
}

/// What a database tells at that time; none if it keeps no changes.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer.
pub fn told(db: &Db, now: u64, lost: LostChanges) -> Checked<esker::Result<Option<All>>> {
    let mut some_are_gone = match db.changes(1) {
        Ok(_) => false,
        Err(Error::Gone { oldest }) if oldest > 1 => true,
        Err(Error::InvalidArgument { .. }) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let options = db.explain().to_string();
    let keeps_all = options.contains(&format!("{ALL_BYTES} bytes"));
    let is_by_time = options.contains(&format!("{KEPT_TIME:?}"));
    let kept = db.stats().kept_wal_bytes;
    // Only the writer has a log, and says how much of it is kept.
    let is_less_kept = lost == LostChanges::None && !is_by_time && db.health().writable && kept < LEAST_KEPT_BYTES;
    if some_are_gone && (keeps_all || is_less_kept) && lost != LostChanges::Any {
        return Err(format!("changes were given up, and {kept} bytes of them are kept (all: {keeps_all})"));
    }
    let mut batches = db.changes(0).and_then(|changes| changes.collect());
    let mut kept_by_time = is_by_time.then_some(now);
    if lost == LostChanges::Any {
        kept_by_time = None;
        while let Err(Error::Gone { oldest }) = batches {
            some_are_gone = true;
            batches = db.changes(oldest).and_then(|changes| changes.collect());
        }
    }
    Ok(batches.map(|batches| Some(All { batches, some_are_gone, kept_by_time })))
}

impl All {
    /// "Keeps at least the changes of this last period": whether these events may be gone.
    fn may_be_gone(&self, journal: &Journal, gone: &[usize]) -> Checked<()> {
        let (Some(now), Some(&last)) = (self.kept_by_time, gone.last()) else { return Ok(()) };
        let then = journal.events[last].now;
        if u128::from(now.saturating_sub(then)) >= KEPT_TIME.as_millis() {
            return Ok(());
        }
        Err(format!("a change of {then} was given up at {now}, and changes are kept for {KEPT_TIME:?}"))
    }

    /// Whether these are the first so many events of the journal, or the last of those.
    pub fn check(&self, journal: &Journal, end: usize) -> Checked<FeedReader> {
        let told = journal.told_from(0, end);
        let mut reader = FeedReader::default();
        if self.some_are_gone && told.len() >= self.batches.len() {
            let first = told.get(told.len() - self.batches.len()).copied().unwrap_or(end);
            self.may_be_gone(journal, &told[..told.len() - self.batches.len()])?;
            reader.skip_to(journal, first);
        }
        self.batches.iter().try_for_each(|batch| reader.take(journal, end, batch))?;
        reader.finish(journal, end)?;
        Ok(reader)
    }
}

/// Lets a reader go on, up to the end of the journal. Results as for [`told`].
pub fn read_on(reader: &mut FeedReader, journal: &Journal, changes: &mut Changes) -> Checked<esker::Result<()>> {
    let end = journal.events.len();
    for batch in changes {
        match batch {
            Ok(batch) => reader.take(journal, end, &batch)?,
            Err(error) => return Ok(Err(error)),
        }
    }
    reader.finish(journal, end).map(Ok)
}

/// What applies the changes and nothing else.
#[derive(Clone, Debug, Default)]
pub struct FeedReader {
    /// The events that are behind it.
    cursor: usize,
    /// What the keyspaces hold, by the number of their life.
    contents: BTreeMap<usize, Contents>,
    /// The number that the engine gives each of them.
    numbers: BTreeMap<usize, u64>,
    /// The number to begin from next.
    next: u64,
}

fn milliseconds(expiry: &Expiry) -> u64 {
    match expiry {
        Expiry::At(at) => at.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64),
        Expiry::Never => crate::model::NEVER,
    }
}

impl FeedReader {
    /// The number from which to read on.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The event that it is told of next, or one before that which nobody is told of.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// One to which everything before that event is known.
    pub fn at(journal: &Journal, event: usize) -> FeedReader {
        let mut reader = FeedReader::default();
        reader.skip_to(journal, event);
        reader
    }

    /// Goes on from where the database was opened: the events up to that one are known from the
    /// database itself.
    pub fn skip_to(&mut self, journal: &Journal, event: usize) {
        while self.cursor < event {
            self.adopt(&journal.events[self.cursor]);
        }
    }

    /// Passes what is told to nobody.
    fn pass_untold(&mut self, journal: &Journal, end: usize) {
        while self.cursor < end && !journal.events[self.cursor].told.is_told() {
            self.adopt(&journal.events[self.cursor]);
        }
    }

    /// Takes over from the model what the keyspaces of an event hold.
    fn adopt(&mut self, event: &Event) {
        for (index, after) in &event.after {
            let own = self.contents.entry(event.faces[index].life).or_default();
            match after {
                After::Whole(all) => own.clone_from(all),
                After::Keys(keys) => keys.iter().for_each(|(key, kept)| match kept {
                    Some(kept) => _ = own.insert(Arc::clone(key), kept.clone()),
                    None => _ = own.remove(key),
                }),
            }
        }
        self.cursor += 1;
    }

    /// Takes the next batch, which must tell of the next event.
    pub fn take(&mut self, journal: &Journal, end: usize, batch: &ChangeBatch) -> Checked<()> {
        self.pass_untold(journal, end);
        if self.cursor >= end {
            return Err(format!("a reader of changes is told of what nobody has done: {batch:?}"));
        }
        let event = &journal.events[self.cursor];
        self.take_event(event, batch).map_err(|what| {
            format!("a reader of changes is told {batch:?}, where event {} is {:?}: {what}", self.cursor, event.told)
        })?;
        self.cursor += 1;
        Ok(())
    }

    /// Whether everything was told.
    pub fn finish(&mut self, journal: &Journal, end: usize) -> Checked<()> {
        self.pass_untold(journal, end);
        match journal.events[..end].get(self.cursor) {
            None => Ok(()),
            Some(event) => {
                Err(format!("a reader of changes is not told of event {} of {end}: {:?}", self.cursor, event.told))
            }
        }
    }

    fn take_event(&mut self, event: &Event, batch: &ChangeBatch) -> Checked<()> {
        let mut operations = Vec::new();
        for change in &batch.changes {
            if change.sequence < self.next {
                return Err(format!("number {} comes behind {}", change.sequence, self.next));
            }
            self.next = change.sequence + 1;
            let face = event.faces.iter().find(|(_, face)| face.name == change.keyspace);
            let (&index, face) = face.ok_or_else(|| format!("{:?} is no keyspace of it", change.keyspace))?;
            let number = *self.numbers.entry(face.life).or_insert(change.keyspace_id);
            let others = self.numbers.iter().any(|(life, id)| *life != face.life && *id == change.keyspace_id);
            if number != change.keyspace_id || others {
                return Err(format!("the keyspace is number {}, and was {number}", change.keyspace_id));
            }
            self.apply(face, &change.operation)?;
            operations.push((index, &change.operation));
        }
        match (&event.told, &operations[..]) {
            (Told::Batch(writes), _) => check_operations(event, writes, &operations)?,
            (Told::Transaction(writes), _) => check_places(writes, &operations)?,
            (Told::Load, [(_, ChangeOperation::Load)]) | (Told::Drop, [(_, ChangeOperation::DropKeyspace)]) => {
                self.adopt(event);
                self.cursor -= 1;
            }
            (Told::Alter(former), [(index, operation)]) => check_alteration(&event.faces[index], former, operation)?,
            _ => return Err("it is something else".to_string()),
        }
        event.after.iter().try_for_each(|(index, after)| self.compare(&event.faces[index], after, event.now))
    }

    fn apply(&mut self, face: &Face, operation: &ChangeOperation) -> Checked<()> {
        let own = self.contents.entry(face.life).or_default();
        match operation {
            ChangeOperation::Put { key, value, expiry } => {
                own.insert(key[..].into(), Kept::Value(value[..].into(), milliseconds(expiry)));
            }
            ChangeOperation::Delete { key } => _ = own.remove(&key[..]),
            ChangeOperation::Merge { key, operand, expiry, is_first } => {
                let existing = own.remove(&key[..]).filter(|_| !is_first);
                let merged = match &existing {
                    Some(Kept::Fails(_)) => None,
                    Some(Kept::Value(value, _)) => face.operator.combine(Some(value), operand).ok(),
                    None => face.operator.combine(None, operand).ok(),
                };
                let kept = match merged {
                    None => Kept::Fails(milliseconds(expiry)),
                    Some(Some(value)) => Kept::Value(value.into(), milliseconds(expiry)),
                    Some(None) => return Ok(()),
                };
                own.insert(key[..].into(), kept);
            }
            ChangeOperation::DeleteRange { start, end } => {
                let of = |bound: &Bound<Slice>| bound.as_ref().map(|key| key.to_vec());
                let span = Span::Range(of(start), of(end));
                own.retain(|key, _| !face.order.contains(&span, key));
            }
            ChangeOperation::Load | ChangeOperation::DropKeyspace | ChangeOperation::AlterKeyspace { .. } => {}
            other => return Err(format!("{other:?} is not known")),
        }
        Ok(())
    }

    fn compare(&self, face: &Face, after: &After, now: u64) -> Checked<()> {
        let nothing = Contents::new();
        let own = self.contents.get(&face.life).unwrap_or(&nothing);
        let live = |kept: &&Kept| kept.is_live(now);
        let same = |key: &Arc<[u8]>, expected: Option<&Kept>| {
            let found = own.get(key).filter(live);
            if found == expected.filter(live) {
                return Ok(());
            }
            let what = format!("what applies it has {found:?} at {}/{}, expected {expected:?}", face.name, shown(key));
            Err(what)
        };
        match after {
            After::Keys(keys) => keys.iter().try_for_each(|(key, kept)| same(key, kept.as_ref())),
            After::Whole(all) => all.keys().chain(own.keys()).try_for_each(|key| same(key, all.get(key))),
        }
    }
}

fn check_alteration(face: &Face, former: &Arc<str>, operation: &ChangeOperation) -> Checked<()> {
    let ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl } = operation else {
        return Err("it is something else".to_string());
    };
    let operator = supply(face.operator).map(|operator| operator.name().to_owned());
    if former_name != former || merge_operator.as_deref() != operator.as_deref() || *ttl != lives(face.ttl) {
        return Err(format!("expected {face:?}, before that {former:?}"));
    }
    Ok(())
}

/// Where nothing expires, each write is an operation; where something does, operations may be added
/// that write again what a key has, to keys of the batch.
fn check_operations(event: &Event, writes: &[Write], found: &[(usize, &ChangeOperation)]) -> Checked<()> {
    let is_exact = |index: &usize| event.faces[index].ttl == Ttl::Off;
    let mut operations = found.iter().filter(|(index, _)| is_exact(index));
    for write in writes.iter().filter(|write| is_exact(&write.keyspace)) {
        let next = operations.next();
        if !next.is_some_and(|(index, operation)| {
            *index == write.keyspace && is_operation(write, event.faces[index].order, operation)
        }) {
            return Err(format!("{write:?} is {next:?}"));
        }
    }
    if let Some(more) = operations.next() {
        return Err(format!("nobody has done {more:?}"));
    }
    check_places(writes, found)
}

/// Whether the operation is that write, where nothing expires. Of a range it compares the start
/// alone.
pub(crate) fn is_operation(write: &Write, order: Order, operation: &ChangeOperation) -> bool {
    match (&write.change, operation) {
        (Change::Put(value), ChangeOperation::Put { key, value: found, expiry }) => {
            key[..] == write.key[..] && found[..] == value[..] && *expiry == Expiry::Never
        }
        (Change::Delete, ChangeOperation::Delete { key }) => key[..] == write.key[..],
        (Change::Merge(operand), ChangeOperation::Merge { key, operand: found, expiry, is_first }) => {
            key[..] == write.key[..] && found[..] == operand[..] && *expiry == Expiry::Never && !is_first
        }
        // The keys that are there tell whether the bounds are right.
        (Change::DeleteRange(low, _), ChangeOperation::DeleteRange { start, .. }) => match (low, start) {
            (Bound::Unbounded, start) => *start == Bound::Unbounded,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(start) | Bound::Excluded(start)) => {
                order != Order::Bytewise || start.starts_with(low)
            }
            (Bound::Included(low) | Bound::Excluded(low), Bound::Unbounded) => low.is_empty(),
        },
        (Change::DeletePrefix(_), ChangeOperation::DeleteRange { .. }) => true,
        _ => false,
    }
}

/// Only keys of the writes are concerned.
pub(crate) fn check_places(writes: &[Write], found: &[(usize, &ChangeOperation)]) -> Checked<()> {
    let places: BTreeSet<(usize, &[u8])> =
        writes.iter().filter(|write| !write.change.is_range()).map(|write| (write.keyspace, &write.key[..])).collect();
    for (index, operation) in found {
        let key = match operation {
            ChangeOperation::Put { key, .. } | ChangeOperation::Delete { key } | ChangeOperation::Merge { key, .. } => {
                key
            }
            ChangeOperation::DeleteRange { .. }
                if writes.iter().any(|write| write.keyspace == *index && write.change.is_range()) =>
            {
                continue;
            }
            other => return Err(format!("nobody has done {other:?}")),
        };
        if !places.contains(&(*index, &key[..])) {
            return Err(format!("nobody has written {}", shown(key)));
        }
    }
    Ok(())
}
