//! The changes that an engine tells of, compared with the journal of a model: every commit once, in
//! order, with its operations, and what applies them has what the model has.

mod retained;

use crate::Checked;
use crate::model::{After, Change, Event, Face, Journal, Kept, Order, Span, Told, Ttl, Write};
use crate::operators::supply;
use crate::state::{lives, shown};
use esker::{ChangeBatch, ChangeOperation, Changes, Db, Error, Expiry, Slice};
pub use retained::{ALL_BYTES, ClockReadings, KEPT_TIME, LEAST_KEPT_BYTES, RETENTIONS, Retained, retention_in};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

type Contents = BTreeMap<Arc<[u8]>, Kept>;

/// Everything that a reader of changes is told by a database.
pub struct All {
    /// From the oldest on. Before each of these but the first, changes are gone.
    parts: Vec<Vec<ChangeBatch>>,
    /// Whether there were older ones that were given up.
    some_are_gone: bool,
    /// For how long changes were kept.
    retained: Retained,
    /// How many bytes of them are left, if that is known.
    left: Option<u64>,
    /// What the clock has shown; none where any of them may be gone.
    clock: Option<ClockReadings>,
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

/// What a database tells that has kept changes so, and whose clock has shown that; none if it keeps
/// none.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer.
pub fn told(
    db: &Db,
    (retained, clock): (&Retained, &ClockReadings),
    lost: LostChanges,
) -> Checked<esker::Result<Option<All>>> {
    let some_are_gone = match db.changes(1) {
        Ok(_) => false,
        Err(Error::Gone { oldest }) if oldest > 1 => true,
        Err(Error::InvalidArgument { .. }) => return retained.check_whether(false).map(|()| Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    retained.check_whether(true)?;
    // Only the writer has a log, and says how much of it is kept.
    let is_known = lost == LostChanges::None && db.health().writable;
    let left = is_known.then(|| db.stats().kept_wal_bytes);
    let any_may_be_lost = lost == LostChanges::Any;
    if some_are_gone && !any_may_be_lost && !retained.may_give_up(left) {
        return Err(format!("changes were given up, with {left:?} bytes left: {retained:?}"));
    }
    let (retained, clock) = (retained.clone(), (!any_may_be_lost).then(|| clock.clone()));
    let parts = parts(db, any_may_be_lost)?;
    Ok(parts.map(|parts| Some(All { parts, some_are_gone, retained, left, clock })))
}

/// The batches from a write on, up to the first error, which comes with them.
pub fn read_from(db: &Db, from: u64) -> (Vec<ChangeBatch>, esker::Result<()>) {
    let mut batches = Vec::new();
    let read = db.changes(from).and_then(|changes| {
        for batch in changes {
            batches.push(batch?);
        }
        Ok(())
    });
    (batches, read)
}

/// All batches; where any may be lost, each time on behind those that are gone. Results as for
/// [`told`].
fn parts(db: &Db, any_may_be_lost: bool) -> Checked<esker::Result<Vec<Vec<ChangeBatch>>>> {
    let (mut parts, mut from) = (Vec::new(), 0);
    loop {
        let (batches, read) = read_from(db, from);
        let behind = batches.last().map_or(from, ChangeBatch::next_sequence);
        parts.push(batches);
        match read {
            Ok(()) => return Ok(Ok(parts)),
            Err(Error::Gone { oldest }) if any_may_be_lost && oldest <= behind => {
                return Err(format!("a reader of changes that was told of all before {behind} is sent to {oldest}"));
            }
            Err(Error::Gone { oldest }) if any_may_be_lost => from = oldest,
            Err(error) => return Ok(Err(error)),
        }
    }
}

impl All {
    /// How many batches these are.
    pub fn count(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Whether these are the first so many events of the journal since changes are kept, or the
    /// last of those; where changes are gone between some of them, those are the only ones that are
    /// missing.
    pub fn check(&self, journal: &Journal, end: usize) -> Checked<FeedReader> {
        let begun = self.retained.begun().min(end);
        // What went may have had no number in the log.
        let some_are_gone = self.some_are_gone || self.retained.may_have_begun_anew();
        if let ([whole], true, Some(clock)) = (&self.parts[..], some_are_gone, &self.clock) {
            let told = journal.told_from(begun, end);
            let gone = &told[..told.len().saturating_sub(whole.len())];
            self.retained.check_gone(gone, (journal, clock), self.left)?;
        }
        let reader = FeedReader::at(journal, begun);
        take_parts(&reader, (journal, end), (&self.parts[..], some_are_gone), &mut Vec::new())
    }
}

/// Readers that the parts behind them do not fit, each with how many of those there are.
type Failed = Vec<(usize, FeedReader)>;

/// What has taken these parts in turn, each of which goes on from some later event, but for the
/// first where none before it are gone, and the last of which goes on to the end. The same batch
/// can be that of several events, so that each is tried.
///
/// What has failed once is not tried again. Of equal batches there are more ways to choose the
/// events than can be tried, but those that choose the same last one leave the same reader, but for
/// what has expired and for which keyspace of a name was meant. So there are about as many readers
/// as parts times events, and each tries every later event once.
fn take_parts(
    reader: &FeedReader,
    (journal, end): (&Journal, usize),
    (parts, some_are_gone): (&[Vec<ChangeBatch>], bool),
    failed: &mut Failed,
) -> Checked<FeedReader> {
    let Some((part, later)) = parts.split_first() else {
        let mut reader = reader.clone();
        return reader.finish(journal, end).map(|()| reader);
    };
    if failed.iter().any(|(left, other)| *left == parts.len() && other == reader) {
        return Err("the same has failed before".to_string());
    }
    let told = journal.told_from(reader.cursor, end);
    let most = if some_are_gone { told.len().saturating_sub(part.len()) } else { 0 };
    let least = if later.is_empty() { most } else { 0 };
    let mut wrong = String::new();
    for skipped in least..=most {
        let mut reader = reader.clone();
        if some_are_gone {
            reader.skip_to(journal, told.get(skipped).copied().unwrap_or(end));
        }
        let taken = part.iter().try_for_each(|batch| reader.take(journal, end, batch));
        match taken.and_then(|()| take_parts(&reader, (journal, end), (later, true), failed)) {
            Ok(reader) => return Ok(reader),
            Err(what) => wrong = what,
        }
    }
    failed.push((parts.len(), reader.clone()));
    Err(wrong)
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
#[derive(Clone, Debug, Default, PartialEq)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Operator};
    use esker::env::mem::MemEnv;
    use esker::{ChangeRetention, Options};

    /// A journal of puts of these values to one key, a second apart, and what a database tells of
    /// the same.
    fn written(values: &[&str]) -> (Journal, Vec<ChangeBatch>) {
        let options = Options::default().env(Arc::new(MemEnv::new())).keep_changes(ChangeRetention::Bytes(ALL_BYTES));
        let db = Db::open("data", options).unwrap();
        let keyspace = db.keyspace("a", Default::default()).unwrap();
        let mut model = Model::new(&[Operator::None]);
        model.keep_journal(Journal::new(&["a"]));
        for (value, second) in values.iter().zip(1..) {
            keyspace.put("key", value).unwrap();
            model.set_now(second * 1000);
            model.commit(&[Write::new(0, "key", Change::Put((*value).into()))]);
        }
        let batches = db.changes(0).unwrap().collect::<esker::Result<Vec<_>>>().unwrap();
        (model.journal().unwrap().clone(), batches)
    }

    /// Parts that begin with one of the batches and end before another.
    fn parts_of(batches: &[ChangeBatch], bounds: &[(usize, usize)]) -> Vec<Vec<ChangeBatch>> {
        bounds.iter().map(|&(first, end)| batches[first..end].to_vec()).collect()
    }

    /// These parts, where any changes may be gone.
    fn all(parts: Vec<Vec<ChangeBatch>>, some_are_gone: bool) -> All {
        All { parts, some_are_gone, retained: Retained::default(), left: None, clock: None }
    }

    /// If nobody were to be told of what came before changes were kept, or of what came behind,
    /// this would fail.
    #[test]
    fn what_was_before_changes_were_kept_anew_nobody_is_told() {
        let (journal, batches) = written(&["1", "2", "3", "4", "5", "6"]);
        let told = |first: usize, is_cut: bool, some_are_gone: bool| {
            let mut told = all(vec![batches[first..].to_vec()], some_are_gone);
            let all = Some(ChangeRetention::Bytes(ALL_BYTES));
            told.retained.begin_open(all, 0);
            told.retained.end_open(all, 0);
            told.retained.begin_open(None, 2);
            if !is_cut {
                told.retained.end_open(None, 2);
            }
            told.retained.begin_open(all, 4);
            told.retained.end_open(all, 4);
            All { clock: Some(ClockReadings::default()), ..told }.check(&journal, 6).is_ok()
        };
        assert!(told(4, false, true) && told(4, false, false), "there may have been no number before");
        for first in [0, 1, 3, 5] {
            assert!(!told(first, false, true), "{first}");
        }
        assert!(told(4, true, true) && told(4, true, false) && told(1, true, true) && told(0, true, false));
        assert!(!told(5, true, true));
    }

    /// If what is told before changes that are gone were not compared, or could begin anywhere,
    /// this would fail.
    #[test]
    fn what_is_told_before_and_between_changes_that_are_gone_is_compared() {
        let (journal, batches) = written(&["1", "2", "3", "4", "5", "6"]);
        let fits =
            |some_are_gone: bool, parts: Vec<Vec<ChangeBatch>>| all(parts, some_are_gone).check(&journal, 6).is_ok();
        let told = |some_are_gone: bool, bounds: &[(usize, usize)]| fits(some_are_gone, parts_of(&batches, bounds));
        assert!(told(false, &[(0, 6)]) && told(false, &[(0, 2), (4, 6)]) && told(false, &[(0, 1), (2, 3), (5, 6)]));
        assert!(
            told(false, &[(0, 0), (4, 6)]) && told(false, &[(0, 2), (6, 6)]),
            "from the beginning, or up to the end"
        );
        assert!(told(true, &[(4, 6)]) && told(true, &[(1, 2), (4, 6)]));
        assert!(!told(false, &[(1, 2), (4, 6)]), "nothing before the first part is gone");
        assert!(!told(false, &[(0, 2), (4, 5)]) && !told(false, &[(0, 5)]), "the last one is missing");
        assert!(!told(false, &[(2, 3), (0, 1), (5, 6)]) && !told(true, &[(2, 3), (1, 2), (5, 6)]), "it goes back");
        let holed = vec![vec![batches[0].clone(), batches[2].clone()], batches[4..].to_vec()];
        assert!(!fits(false, holed.clone()) && !fits(true, holed), "a hole of which nothing was said");
        let (_, others) = written(&["1", "other", "3"]);
        let mixed = vec![others[..2].to_vec(), batches[4..].to_vec()];
        assert!(!fits(false, mixed.clone()) && !fits(true, mixed), "nobody has written the other one");
    }

    /// The first event that looks like a batch may not be the one of which it tells.
    #[test]
    fn a_batch_that_looks_like_that_of_an_earlier_event_is_that_of_a_later_one() {
        let (journal, batches) = written(&["1", "same", "2", "same", "3", "4"]);
        let parts = vec![batches[..1].to_vec(), batches[3..5].to_vec(), batches[5..].to_vec()];
        assert!(all(parts, false).check(&journal, 6).is_ok());
        let parts = vec![batches[..1].to_vec(), batches[3..5].to_vec()];
        assert!(all(parts, false).check(&journal, 6).is_err());
    }

    /// Without an account of what has failed there would be a reader for each of 125,970 choices.
    #[test]
    fn equal_batches_in_many_parts_are_not_tried_in_every_choice_of_events() {
        let (events, count) = (20, 8);
        let (journal, batches) = written(&["same"; 20]);
        let (_, others) = written(&["other"]);
        let mut parts: Vec<Vec<ChangeBatch>> = batches[..count].iter().map(|batch| vec![batch.clone()]).collect();
        parts.push(others);
        let mut failed = Failed::new();
        let taken = take_parts(&FeedReader::default(), (&journal, events), (&parts[..], true), &mut failed);
        assert!(taken.is_err(), "nobody has written the last");
        assert!((1..=parts.len() * (events + 1)).contains(&failed.len()), "{}", failed.len());
        parts.pop();
        parts.push(batches[events - 1..].to_vec());
        assert!(take_parts(&FeedReader::default(), (&journal, events), (&parts[..], true), &mut Failed::new()).is_ok());
    }

    /// If a clock that went back made everything old enough, or the latest time were compared, this
    /// would fail.
    #[test]
    fn changes_are_given_up_when_the_clock_has_risen_for_as_long_as_they_are_kept() {
        let (journal, batches) = written(&["1", "2"]);
        let may_be_gone = |times: &[u64]| {
            let mut clock = ClockReadings::default();
            clock.note(0, 1000);
            // Behind the first event, which is the one that is gone, and before the second.
            times.iter().for_each(|&now| clock.note(1, now));
            let retention = Some(ChangeRetention::Time(KEPT_TIME));
            let mut told = all(vec![batches[1..].to_vec()], true);
            told.retained.begin_open(retention, 0);
            told.retained.end_open(retention, 0);
            All { clock: Some(clock), ..told }.check(&journal, 2).is_ok()
        };
        let kept = KEPT_TIME.as_millis() as u64;
        assert!(may_be_gone(&[1000 + kept]) && !may_be_gone(&[999 + kept]) && !may_be_gone(&[]));
        assert!(!may_be_gone(&[500, 1500]), "it has gone back, and risen by a second");
        assert!(may_be_gone(&[500, 500 + kept]), "its segment can have ended when the clock had gone back");
        assert!(may_be_gone(&[1000 + kept, 10]), "it was given up before the clock went back");
    }
}
