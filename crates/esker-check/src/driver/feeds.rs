//! What a run knows of changes: since when and for how long they are kept, what was told of which
//! event, and readers that go on.

use crate::Checked;
use crate::feed::{ALL_BYTES, ClockReadings, FeedReader};
use crate::generator::SLOTS;
use crate::model::{Journal, Order, Span, Told, Write};
use esker::{ChangeBatch, ChangeRetention, Changes, Error, Follower, Watch};
use std::collections::BTreeMap;

/// What was read of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounts {
    /// Batches that readers were told of.
    pub batches: u64,
    /// Of these by followers.
    pub of_followers: u64,
    /// Of these by readers that go on in another process than the one they began in.
    pub resumed: u64,
    /// Readings from a number on.
    pub numbers: u64,
    /// Readers that were told that their changes are gone.
    pub gone: u64,
    /// Waits and watches that had to report a write, and did.
    pub woken: u64,
    /// Those that had to report none.
    pub unwoken: u64,
    /// Images of power failures.
    pub losses: u64,
}

impl FeedCounts {
    /// Notes an answer that was right.
    pub(super) fn note_wait(&mut self, expected: Expected) {
        self.woken += u64::from(expected == Expected::Yes);
        self.unwoken += u64::from(expected == Expected::No);
    }
}

impl std::ops::AddAssign for FeedCounts {
    fn add_assign(&mut self, more: FeedCounts) {
        self.batches += more.batches;
        self.of_followers += more.of_followers;
        self.resumed += more.resumed;
        self.numbers += more.numbers;
        self.gone += more.gone;
        self.woken += more.woken;
        self.unwoken += more.unwoken;
        self.losses += more.losses;
    }
}

impl std::fmt::Display for FeedCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FeedCounts { batches, of_followers, resumed, numbers, gone, woken, unwoken, losses } = self;
        write!(
            f,
            "changes: {batches} batches read, {of_followers} of them by followers, {resumed} by readers that go on after \
             an open; {numbers} readings from a number, {gone} readers overtaken; {woken} waits ended by a write, {unwoken} \
             by none; {losses} power failures"
        )
    }
}

/// What was told of each event, the same to every reader, of any handle and process.
#[derive(Default)]
pub(super) struct Known(BTreeMap<usize, ChangeBatch>);

impl Known {
    /// Every reader that is told of an event is told the same, with the same numbers.
    pub fn note(&mut self, event: usize, batch: &ChangeBatch) -> Checked<()> {
        if let Some(before) = self.0.get(&event) {
            return if before == batch {
                Ok(())
            } else {
                Err(format!("event {event} is {batch:?}, and was {before:?}"))
            };
        }
        let first = batch.changes.first().map_or(0, |change| change.sequence);
        let before = self.0.range(..event).next_back().map_or(0, |(_, before)| before.next_sequence());
        let behind = self.0.range(event..).next().and_then(|(_, behind)| behind.changes.first());
        if first < before || behind.is_some_and(|behind| behind.sequence < batch.next_sequence()) {
            return Err(format!("the numbers of event {event} are among those of others: {batch:?}"));
        }
        self.0.insert(event, batch.clone());
        Ok(())
    }

    /// The events from that one on of which something was told, and what.
    pub fn from(&self, event: usize) -> impl DoubleEndedIterator<Item = (usize, &ChangeBatch)> {
        self.0.range(event..).map(|(event, batch)| (*event, batch))
    }
}

/// A reader that goes on.
pub(super) struct Held {
    /// None from the end of a process until it is used again.
    pub changes: Option<Changes>,
    pub reader: FeedReader,
    pub only_durable: bool,
    /// The number that the last process began with.
    pub begun: u64,
    /// Where that went on from at its end.
    left_at: u64,
    /// Whether another process has begun it.
    pub is_resumed: bool,
    /// The events, and the calls that sync, up to the last wait that ended with a write.
    pub waited: Option<(usize, u64)>,
}

impl Held {
    pub fn new(changes: Changes, reader: FeedReader, only_durable: bool) -> Held {
        let changes = if only_durable { changes.only_durable() } else { changes };
        let begun = changes.position();
        Held { changes: Some(changes), reader, only_durable, begun, left_at: begun, is_resumed: false, waited: None }
    }

    /// The number that it goes on from, also in another process.
    pub fn position(&self) -> u64 {
        self.changes.as_ref().map_or(self.left_at, Changes::position)
    }

    /// It goes on in another process.
    fn end_process(&mut self) {
        self.left_at = self.position();
        (self.changes, self.waited, self.is_resumed) = (None, None, true);
    }

    /// Goes on with a reader that begins from its position.
    pub fn resume(&mut self, changes: Changes) {
        self.begun = changes.position();
        self.changes = Some(if self.only_durable { changes.only_durable() } else { changes });
    }

    /// Reads so many batches of the events before `end`. Whether there are no more for now.
    ///
    /// The inner error is what the engine answered instead; the outer one is a wrong answer.
    pub fn read(
        &mut self,
        journal: &Journal,
        (known, counts): (&mut Known, &mut FeedCounts),
        end: usize,
        count: usize,
    ) -> Checked<esker::Result<bool>> {
        let Some(changes) = &mut self.changes else { return Ok(Ok(false)) };
        for _ in 0..count {
            let position = Changes::position(changes);
            let batch = match changes.next() {
                None => return Ok(Ok(true)),
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Ok(Err(error)),
            };
            self.reader.take(journal, end, &batch)?;
            known.note(self.reader.cursor() - 1, &batch)?;
            counts.batches += 1;
            counts.resumed += u64::from(self.is_resumed);
            let first = batch.changes.first().map_or(0, |change| change.sequence);
            if position > first || Changes::position(changes) < batch.next_sequence() {
                let after = Changes::position(changes);
                return Err(format!("a reader is at {position} before {batch:?}, and then at {after}"));
            }
        }
        Ok(Ok(false))
    }
}

/// A follower of the database, with a reader of its changes.
pub(super) struct Followed {
    pub follower: Follower,
    /// The events that it has.
    pub end: usize,
    pub held: Option<Held>,
}

/// A watch, and what it is of.
pub(super) struct Watched {
    pub watch: Watch,
    /// The number of the keyspace's life in the journal.
    pub life: usize,
    pub order: Order,
    pub prefix: Vec<u8>,
    /// The events that it has reported, or that came before it.
    pub reported: usize,
}

/// Whether something must be told, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expected {
    No,
    Either,
    Yes,
}

impl Expected {
    /// Whether the answer is one that is right.
    pub fn allows(self, answer: bool) -> bool {
        match self {
            Expected::No => !answer,
            Expected::Either => true,
            Expected::Yes => answer,
        }
    }
}

impl Watched {
    /// Whether it must report a write.
    pub fn expected(&self, journal: &Journal) -> Expected {
        let of_event = |event: &crate::model::Event| {
            let Some((index, _)) = event.faces.iter().find(|(_, face)| face.life == self.life) else {
                return Expected::No;
            };
            match &event.told {
                Told::Nothing => Expected::No,
                // Of settings it need not say anything.
                Told::Alter(_) => Expected::Either,
                Told::Load | Told::Drop => Expected::Yes,
                Told::Batch(writes) | Told::Transaction(writes) | Told::Unlogged(writes) => {
                    let own = writes.iter().filter(|write| write.keyspace == *index);
                    own.map(|write| self.concerns(write)).max().unwrap_or(Expected::No)
                }
            }
        };
        journal.events[self.reported..].iter().map(of_event).max().unwrap_or(Expected::No)
    }

    fn concerns(&self, write: &Write) -> Expected {
        if !write.change.is_range() {
            return if write.key.starts_with(&self.prefix) { Expected::Yes } else { Expected::No };
        }
        let is_met =
            self.order.has_prefixes() && self.order.meets(&write.touched(), &Span::Prefix(self.prefix.clone()));
        match self.order {
            _ if is_met && self.order == Order::Bytewise => Expected::Yes,
            Order::Bytewise => Expected::No,
            // There may be a key in both.
            _ => Expected::Either,
        }
    }
}

/// See the module's comment.
pub(super) struct Feeds {
    /// For how long the next opening keeps changes.
    pub retention: Option<ChangeRetention>,
    /// Changes of the events from this one on are kept, or were and have been given up.
    pub begun: Option<usize>,
    /// For how long, by each opening since then, and before which event the next one came: later
    /// ones were never kept so.
    retentions: Vec<(ChangeRetention, usize)>,
    /// The largest number that reading was ever found to begin with since then.
    oldest: u64,
    /// What the clock has shown.
    pub clock: ClockReadings,
    /// What was told since then.
    pub known: Known,
    pub held: [Option<Held>; SLOTS],
    pub watches: [Option<Watched>; SLOTS],
    pub followed: Option<Followed>,
    /// So many events are durable, or more.
    pub durable: usize,
    /// The first number that was not yielded as durable.
    pub durable_end: u64,
    /// Calls that sync.
    pub syncs: u64,
    pub counts: FeedCounts,
}

impl Feeds {
    pub fn new() -> Feeds {
        Feeds {
            retention: None,
            begun: None,
            retentions: Vec::new(),
            oldest: 0,
            clock: ClockReadings::default(),
            known: Known::default(),
            held: Default::default(),
            watches: Default::default(),
            followed: None,
            durable: 0,
            durable_end: 0,
            syncs: 0,
            counts: FeedCounts::default(),
        }
    }

    /// Notes that the database was opened, behind so many events.
    pub fn note_opened(&mut self, events: usize) {
        self.note_durable(events);
        match (self.retention, self.begun) {
            (Some(ChangeRetention::AsBefore), None) => {}
            (Some(retention), None) => {
                let retentions = vec![(retention, usize::MAX)];
                *self = Feeds { begun: Some(events), retentions, ..std::mem::replace(self, Feeds::new()) };
                (self.oldest, self.known) = (0, Known::default());
            }
            (Some(retention), Some(_)) => {
                self.retentions.iter_mut().for_each(|(_, end)| *end = events.min(*end));
                self.retentions.push((retention, usize::MAX));
            }
            (None, _) => self.begun = None,
        }
    }

    /// Notes that everything so far is durable.
    pub fn note_durable(&mut self, events: usize) {
        self.durable = events;
        self.syncs += 1;
    }

    /// Notes with which number reading begins.
    pub fn note_oldest(&mut self, oldest: u64) -> Checked<()> {
        if oldest < self.oldest {
            return Err(format!("the oldest change has number {oldest}, and had {}", self.oldest));
        }
        self.oldest = oldest;
        Ok(())
    }

    /// Whether the changes of this event, the last that was given up, may have been: `then` is the
    /// time of it.
    pub fn may_be_gone(&self, event: usize, then: u64, kept_bytes: u64) -> Checked<()> {
        let passed = self.clock.most_passed(event, then);
        let allows = |retention: &ChangeRetention| match retention {
            ChangeRetention::Bytes(bytes) => *bytes < ALL_BYTES && kept_bytes >= *bytes,
            ChangeRetention::Time(time) => u128::from(passed) >= time.as_millis(),
            _ => false,
        };
        if self.retentions.iter().any(|(retention, end)| event < *end && allows(retention)) {
            return Ok(());
        }
        Err(format!(
            "a change of {then}, event {event}, was given up, {passed} ms later at most, with {kept_bytes} bytes kept, \
             under {:?}",
            self.retentions
        ))
    }

    /// Whether any changes may have been given up.
    pub fn gives_up(&self) -> bool {
        !self.retentions.iter().all(|(retention, _)| keeps_all(retention))
    }

    /// Whether the next opening may give up any.
    pub fn will_give_up(&self) -> bool {
        self.gives_up() || !self.retention.as_ref().is_some_and(keeps_all)
    }

    /// What the end of a process leaves of readers: where they go on.
    pub fn end_process(&mut self) {
        self.held.iter_mut().flatten().for_each(Held::end_process);
        self.watches = Default::default();
    }

    /// Whether every wait on the database, which was closed, says so.
    pub fn check_closed(&mut self) -> Checked<()> {
        let watched = self.watches.iter().flatten().map(|watched| watched.watch.wait(std::time::Duration::ZERO));
        let held = self.held.iter_mut().flatten().filter_map(|held| held.changes.as_mut());
        for answer in watched.chain(held.map(|changes| changes.wait(std::time::Duration::ZERO))) {
            if !matches!(answer, Err(Error::ReadOnly { .. })) {
                return Err(format!("a wait on a database that was closed yields {answer:?}"));
            }
        }
        Ok(())
    }
}

fn keeps_all(retention: &ChangeRetention) -> bool {
    matches!(retention, ChangeRetention::Bytes(ALL_BYTES) | ChangeRetention::AsBefore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_event_is_told_once_with_numbers_of_its_own() -> esker::Result<()> {
        let env = std::sync::Arc::new(esker::env::mem::MemEnv::new());
        let options = esker::Options::default().env(env).keep_changes(ChangeRetention::Bytes(ALL_BYTES));
        let db = esker::Db::open("data", options)?;
        let names = db.keyspace("names", Default::default())?;
        names.put("ada", "1815")?;
        names.put("bob", "1923")?;
        let batches = db.changes(0)?.collect::<esker::Result<Vec<_>>>()?;
        let mut known = Known::default();
        assert!(known.note(1, &batches[0]).is_ok() && known.note(3, &batches[1]).is_ok());
        assert!(known.note(1, &batches[0]).is_ok(), "the same again");
        assert!(known.note(1, &batches[1]).is_err(), "another one");
        assert!(known.note(2, &batches[0]).is_err(), "the numbers of another event");
        assert!(known.note(4, &batches[0]).is_err(), "numbers of before");
        Ok(())
    }

    #[test]
    fn only_what_an_opening_allowed_may_be_gone() {
        let mut feeds = Feeds::new();
        let open = |feeds: &mut Feeds, retention, events| {
            feeds.retention = Some(retention);
            feeds.note_opened(events);
        };
        open(&mut feeds, ChangeRetention::Bytes(ALL_BYTES), 0);
        assert!(feeds.may_be_gone(0, 0, u64::MAX).is_err() && !feeds.gives_up());
        open(&mut feeds, ChangeRetention::Bytes(4096), 1);
        assert!(feeds.may_be_gone(1, 0, 4096).is_ok() && feeds.gives_up());
        assert!(feeds.may_be_gone(1, 0, 4095).is_err(), "too few bytes are left");
        open(&mut feeds, ChangeRetention::AsBefore, 2);
        assert!(feeds.may_be_gone(1, 0, 4096).is_ok());
        assert!(feeds.may_be_gone(2, 0, 4096).is_err(), "it was never kept for so short a time");
        open(&mut feeds, ChangeRetention::Time(Duration::from_millis(10)), 3);
        feeds.clock.note(4, 1000);
        assert!(feeds.may_be_gone(3, 990, 0).is_ok());
        assert!(feeds.may_be_gone(3, 991, 0).is_err(), "too young");
        feeds.clock.note(4, 500);
        feeds.clock.note(4, 509);
        assert!(feeds.may_be_gone(3, 991, 0).is_err(), "the clock went back, and has risen too little since");
        assert!(feeds.note_oldest(7).is_ok() && feeds.note_oldest(6).is_err(), "what is gone does not come back");
    }
}
