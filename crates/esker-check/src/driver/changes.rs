//! Readers of changes, each answer compared with the journal of the model; a follower's too, and
//! watches.

use super::Driver;
use super::feeds::{Expected, Followed, Held, Watched};
use super::open::Opened;
use super::read::compare_all;
use crate::Checked;
use crate::feed::FeedReader;
use crate::generator::{FeedOperation, Start};
use crate::model::{Change, Journal, Told, Write};
use crate::operators::supply;
use crate::simulated::Place;
use crate::state::lives;
use esker::env::mem::CrashMode;
use esker::{ChangeBatch, ChangeOperation, Db, Error};
use std::time::Duration;

/// What reading everything has found.
struct Oldest {
    /// The first event whose changes are kept, or the end.
    event: usize,
    /// The number to begin from.
    number: u64,
}

impl Driver {
    pub(super) fn feed(&mut self, operation: &FeedOperation) -> Checked<()> {
        self.ensure_journal();
        let failed = |what: String| format!("{operation:?}: {what}");
        let outcome = match operation {
            FeedOperation::Keep(retention) => {
                self.feeds.retention = *retention;
                Ok(())
            }
            FeedOperation::ReadAll => self.read_everything(),
            FeedOperation::ReadFrom(number) => self.read_from(*number),
            FeedOperation::Open(slot, start, only_durable) => self.open_changes(*slot, *start, *only_durable),
            FeedOperation::ReadOn(slot, count) => self.read_on(*slot, *count),
            FeedOperation::Wait(slot) => self.wait_for_changes(*slot),
            FeedOperation::Drop(slot) => {
                self.feeds.held[*slot] = None;
                Ok(())
            }
            FeedOperation::Follow(count) => self.follow(*count),
            FeedOperation::FollowerReadOn(count) => self.follower_reads_on(*count),
            FeedOperation::DropFollower => {
                self.feeds.followed = None;
                Ok(())
            }
            FeedOperation::Watch(slot, keyspace, prefix) => self.watch(*slot, *keyspace, prefix),
            FeedOperation::AskWatch(slot) => self.ask_watch(*slot),
            FeedOperation::DropWatch(slot) => {
                self.feeds.watches[*slot] = None;
                Ok(())
            }
            FeedOperation::Sync => self.sync_log(),
            FeedOperation::LosePower(seed) => self.lose_power(*seed),
        };
        outcome.map_err(failed)
    }

    /// A run that does nothing with changes has no journal.
    fn ensure_journal(&mut self) {
        if self.world.model.journal().is_none() {
            let names: Vec<String> = self.world.cast.iter().map(|role| role.present_name()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.world.model.keep_journal(Journal::new(&names));
            self.world.model.note_contents();
        }
    }

    fn journal(&self) -> Checked<&Journal> {
        self.world.model.journal().ok_or_else(|| "there is no journal".to_string())
    }

    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.world.model.journal().map_or(0, |journal| journal.events.len())
    }

    /// Notes that what was just committed is in no log.
    pub(super) fn note_unlogged(&mut self) {
        self.world.model.retell(|told| match told {
            Told::Batch(writes) => Told::Unlogged(writes),
            told => told,
        });
    }

    /// Loads pairs past the log.
    pub(super) fn load(&mut self, keyspace: usize, pairs: &[(Vec<u8>, Vec<u8>)]) -> Checked<()> {
        let put = |(key, value): &(Vec<u8>, Vec<u8>)| Write::new(keyspace, &key[..], Change::Put(value.clone()));
        let writes: Vec<Write> = pairs.iter().map(put).collect();
        let order = self.world.model.order(keyspace);
        let ascends = pairs.windows(2).all(|two| order.compare(&two[0].0, &two[1].0).is_lt());
        let is_refused = !ascends || writes.iter().any(|write| self.world.model.refuses(write));
        if pairs.is_empty() || self.world.back {
            return Ok(());
        }
        let opened = self.opened()?;
        let outcome = opened.keyspaces[keyspace].ingest(pairs.iter().map(|(key, value)| (key, value)));
        match outcome {
            Ok(_) if is_refused => Err("a load that must be refused was accepted".to_string()),
            Ok(report) if report.entries != pairs.len() as u64 => Err(format!("{report:?} of {} pairs", pairs.len())),
            Ok(_) => {
                self.world.model.commit(&writes);
                self.world.model.retell(|_| Told::Load);
                self.forget();
                Ok(())
            }
            Err(Error::InvalidArgument { .. }) if is_refused => Ok(()),
            Err(error) => Err(format!("the load failed: {error}")),
        }
    }

    /// Everything that this handle tells of the events before `end`; none if no changes are kept.
    fn read_all(&mut self, db: &Db, end: usize) -> Checked<Option<Oldest>> {
        // It can be overtaken in between by what happens in the background.
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let Some(begun) = self.feeds.begun else {
                return match db.changes(0) {
                    Err(Error::InvalidArgument { .. }) => Ok(None),
                    other => Err(format!("no changes are kept, and reading them yields {other:?}")),
                };
            };
            let changes = db.changes(0).map_err(|error| format!("reading from the oldest fails: {error}"))?;
            let number = changes.position();
            let batches: Vec<ChangeBatch> = match changes.collect() {
                Ok(batches) => batches,
                Err(Error::Gone { .. }) if self.feeds.gives_up() => continue,
                Err(error) => return Err(format!("reading from the oldest fails: {error}")),
            };
            let event = self.check_all(begun, end, (number, &batches))?;
            // Where the manifest is being replaced in the background, another process cannot know
            // yet where changes begin for good.
            let number = match batches.first().and_then(|batch| batch.changes.first()) {
                _ if number > 0 => number,
                Some(change) => change.sequence,
                // A follower may be behind what was given up.
                None => match db.changes(1) {
                    Err(Error::Gone { oldest }) => oldest,
                    _ => db.snapshot().sequence() + 1,
                },
            };
            return Ok(Some(Oldest { event, number }));
        }
        Err(format!("a reader was overtaken {ATTEMPTS} times"))
    }

    /// The event with which these changes begin, from that number on; 0 where that is unknown.
    fn check_all(&mut self, begun: usize, end: usize, (number, batches): (u64, &[ChangeBatch])) -> Checked<usize> {
        let kept_bytes = self.opened()?.db.stats().kept_wal_bytes;
        let Driver { world, feeds, .. } = self;
        let journal = world.model.journal().ok_or("there is no journal")?;
        let told = journal.told_from(begun, end);
        let gone = told.len().checked_sub(batches.len());
        let gone = gone.ok_or_else(|| format!("{} batches are told of {} events", batches.len(), told.len()))?;
        if let Some(last) = gone.checked_sub(1) {
            feeds.may_be_gone(told[last], journal.events[told[last]].now, kept_bytes)?;
        }
        if number > 0 {
            feeds.note_oldest(number)?;
        }
        let event = told.get(gone).copied().unwrap_or(end);
        let mut reader = FeedReader::at(journal, event);
        for batch in batches {
            reader.take(journal, end, batch)?;
            feeds.known.note(reader.cursor() - 1, batch)?;
        }
        feeds.counts.batches += batches.len() as u64;
        reader.finish(journal, end)?;
        Ok(event)
    }

    fn read_everything(&mut self) -> Checked<()> {
        let db = self.opened()?.db.clone();
        let Some(oldest) = self.read_all(&db, self.events())? else { return Ok(()) };
        self.check_settings(&db, oldest.event)
    }

    /// The same by a handle beside the writer.
    pub(super) fn read_changes_beside(&mut self, db: &Db) -> Checked<()> {
        if self.world.model.journal().is_none() {
            return Ok(());
        }
        self.read_all(db, self.events()).map(drop)
    }

    /// Whether the settings of keyspaces are those that they had at some events.
    fn check_settings(&self, db: &Db, first: usize) -> Checked<()> {
        const MOST: usize = 5;
        let journal = self.journal()?;
        let changes = match db.changes(0) {
            Ok(changes) => changes,
            Err(error) => return Err(format!("reading from the oldest fails: {error}")),
        };
        for (event, batch) in self.feeds.known.from(first).rev().take(MOST) {
            let Some(change) = batch.changes.last() else { continue };
            let face = journal.events[event].faces.values().find(|face| face.name == change.keyspace);
            let (Some(face), false) = (face, change.operation == ChangeOperation::DropKeyspace) else { continue };
            let found = changes.keyspace_settings(change.keyspace_id, change.sequence);
            let found = found.map_err(|error| format!("settings at {} fail: {error}", change.sequence))?;
            let operator = supply(face.operator).map(|operator| operator.name().to_owned());
            let is_right = found.as_ref().is_some_and(|found| {
                *found.name == *face.name
                    && found.merge_operator.as_deref() == operator.as_deref()
                    && found.ttl == lives(face.ttl)
            });
            // In the background the change may have been given up.
            let is_gone = found.is_none() && self.feeds.gives_up();
            if !is_right && !is_gone {
                return Err(format!("settings at {} are {found:?}, expected {face:?}", change.sequence));
            }
        }
        Ok(())
    }

    fn read_from(&mut self, random: u64) -> Checked<()> {
        let db = self.opened()?.db.clone();
        let Some(oldest) = self.read_all(&db, self.events())? else { return Ok(()) };
        let last = db.snapshot().sequence();
        let from = 1 + random % (last + 3);
        let behind = oldest.number.max(last + 1);
        self.feeds.counts.numbers += 1;
        match db.changes(from) {
            Err(Error::Gone { oldest: found }) => {
                let is_right =
                    from < found && found >= oldest.number && (found == oldest.number || self.feeds.gives_up());
                if is_right {
                    Ok(())
                } else {
                    Err(format!("from {from}: gone up to {found}, expected {}", oldest.number))
                }
            }
            Err(Error::InvalidArgument { .. }) if from > behind => Ok(()),
            Err(error) => Err(format!("from {from} of {last}: {error}")),
            Ok(_) if from < oldest.number || from > behind => {
                Err(format!("from {from}: it yields changes, which are kept from {} to {last}", oldest.number))
            }
            Ok(changes) => {
                let found: Vec<ChangeBatch> = match changes.collect() {
                    Ok(found) => found,
                    Err(Error::Gone { .. }) if self.feeds.gives_up() => return Ok(()),
                    Err(error) => return Err(format!("from {from} of {last}: {error}")),
                };
                let known = self.feeds.known.from(oldest.event).map(|(_, batch)| batch);
                let mut expected = known.filter(|batch| batch.next_sequence() > from);
                for batch in &found {
                    let rest = |whole: &&ChangeBatch| {
                        let kept = whole.changes.iter().filter(|change| change.sequence >= from);
                        kept.eq(&batch.changes)
                    };
                    if expected.next().filter(rest).is_none() {
                        return Err(format!("from {from}: it yields {batch:?}, which is not next"));
                    }
                }
                match expected.next() {
                    None => Ok(()),
                    Some(more) => Err(format!("from {from}: it does not yield {more:?}")),
                }
            }
        }
    }

    fn open_changes(&mut self, slot: usize, start: Start, only_durable: bool) -> Checked<()> {
        let db = self.opened()?.db.clone();
        let end = self.events();
        // What came before is known, so that its numbers are.
        let Some(oldest) = self.read_all(&db, end)? else { return Ok(()) };
        let journal = self.world.model.journal().ok_or("there is no journal")?;
        let (number, event) = match start {
            Start::Oldest => (0, oldest.event),
            Start::Present => (db.snapshot().sequence() + 1, end),
            Start::Number(random) => {
                let known: Vec<(usize, &ChangeBatch)> = self.feeds.known.from(oldest.event).collect();
                match known.get((random % known.len().max(1) as u64) as usize) {
                    Some((event, batch)) => (batch.changes.first().map_or(0, |change| change.sequence), *event),
                    None => (0, oldest.event),
                }
            }
        };
        // Of changes that were kept anew, the first number may be the next one.
        let number = if number > 0 { number.max(oldest.number) } else { number };
        match db.changes(number) {
            Ok(changes) if number == 0 && changes.position() != oldest.number => Ok(()),
            Ok(changes) => {
                self.feeds.held[slot] = Some(Held::new(changes, FeedReader::at(journal, event), only_durable));
                Ok(())
            }
            Err(Error::Gone { .. }) if self.feeds.gives_up() => Ok(()),
            Err(error) => Err(format!("from {number}: {error}")),
        }
    }

    /// The held reader, if there is one; where its process has ended, it goes on in this one.
    fn resume(&mut self, slot: usize, db: &Db) -> Checked<Option<Held>> {
        let Some(mut held) = self.feeds.held[slot].take() else { return Ok(None) };
        if held.changes.is_some() {
            return Ok(Some(held));
        }
        match db.changes(held.position()) {
            Ok(changes) => {
                held.resume(changes);
                Ok(Some(held))
            }
            Err(error) => self.check_failure(db, self.events(), held.position(), error).map(|()| None),
        }
    }

    /// Whether a reader that goes on with that number can be told so.
    fn check_failure(&mut self, db: &Db, end: usize, position: u64, error: Error) -> Checked<()> {
        match error {
            Error::InvalidArgument { .. } if self.feeds.begun.is_none() => Ok(()),
            Error::Gone { oldest: told } if self.feeds.begun.is_some() => {
                self.feeds.counts.gone += 1;
                // More may have gone in the background since. What has gone is checked here.
                let oldest = self.read_all(db, end)?.map_or(u64::MAX, |oldest| oldest.number);
                if position < told && told <= oldest {
                    return Ok(());
                }
                Err(format!(
                    "a reader at {position} is told that all before {told} is gone; from {oldest} on it is there"
                ))
            }
            error => Err(format!("a reader at {position} fails: {error}")),
        }
    }

    fn read_on(&mut self, slot: usize, count: usize) -> Checked<()> {
        let db = self.opened()?.db.clone();
        let end = self.events();
        let Some(mut held) = self.resume(slot, &db)? else { return Ok(()) };
        let Driver { world, feeds, unlogged, .. } = self;
        let journal = world.model.journal().ok_or("there is no journal")?;
        match held.read(journal, (&mut feeds.known, &mut feeds.counts), end, count)? {
            Ok(is_end) => {
                if is_end {
                    let least = if held.only_durable { feeds.durable } else { end };
                    held.reader.finish(journal, least)?;
                    let (position, last) = (held.position(), db.snapshot().sequence());
                    if !held.only_durable && !*unlogged && position != last + 1 {
                        return Err(format!("a reader that was told of all up to {last} goes on from {position}"));
                    }
                }
                if held.only_durable {
                    feeds.durable_end = feeds.durable_end.max(held.reader.next());
                }
                feeds.held[slot] = Some(held);
                Ok(())
            }
            Err(error) => self.check_failure(&db, end, held.position(), error),
        }
    }

    fn wait_for_changes(&mut self, slot: usize) -> Checked<()> {
        let db = self.opened()?.db.clone();
        let Some(mut held) = self.resume(slot, &db)? else { return Ok(()) };
        let now = (self.events(), self.feeds.syncs);
        let events = &self.journal()?.events;
        let expected = match held.waited {
            None => Expected::Yes,
            Some((seen, _)) if events[seen..].iter().any(|event| event.told != Told::Nothing) => Expected::Yes,
            // A sync may find nothing to do, and others come with flushes and full segments.
            Some(_) if held.only_durable => Expected::Either,
            Some(_) => Expected::No,
        };
        let Some(changes) = &mut held.changes else { return Ok(()) };
        let answer = answered(|| changes.wait(Duration::ZERO), expected, held.only_durable)?;
        self.feeds.counts.note_wait(expected);
        if answer {
            held.waited = Some(now);
        }
        self.feeds.held[slot] = Some(held);
        Ok(())
    }

    /// A follower catches up, has what the writer has, and so has its reader of changes.
    fn follow(&mut self, count: usize) -> Checked<()> {
        self.flush_unlogged()?;
        let mut followed = match self.feeds.followed.take() {
            Some(followed) => followed,
            None => {
                let follower = Db::open_follower(self.place.path(), self.options())
                    .map_err(|error| format!("no follower: {error}"))?;
                Followed { follower, end: self.events(), held: None }
            }
        };
        match followed.follower.catch_up() {
            Ok(_) => followed.end = self.events(),
            Err(Error::Stalled { .. }) => return Ok(()),
            Err(error) => return Err(format!("a follower cannot catch up: {error}")),
        }
        let beside = Opened::new(followed.follower.db().clone(), &self.world, self.openings - 1)?;
        compare_all(&beside, &self.world).map_err(|what| format!("a follower: {what}"))?;
        self.feeds.followed = Some(followed);
        self.follower_reads_on(count)
    }

    fn follower_reads_on(&mut self, count: usize) -> Checked<()> {
        let Some(Followed { follower, end, held }) = self.feeds.followed.take() else { return Ok(()) };
        let db = follower.db().clone();
        let held = self.held_of_follower(&db, end, held)?;
        let Some(mut held) = held else {
            self.feeds.followed = Some(Followed { follower, end, held: None });
            return Ok(());
        };
        let Driver { world, feeds, .. } = self;
        let journal = world.model.journal().ok_or("there is no journal")?;
        let before = feeds.counts.batches;
        let read = held.read(journal, (&mut feeds.known, &mut feeds.counts), end, count)?;
        feeds.counts.of_followers += feeds.counts.batches - before;
        let held = match read {
            Ok(is_end) => {
                if is_end {
                    held.reader.finish(journal, end)?;
                }
                Some(held)
            }
            Err(error) => {
                self.check_failure(&db, end, held.position(), error)
                    .map_err(|what| format!("of a follower: {what}"))?;
                None
            }
        };
        self.feeds.followed = Some(Followed { follower, end, held });
        Ok(())
    }

    /// The reader of a follower, or one that begins with the oldest changes.
    fn held_of_follower(&mut self, db: &Db, end: usize, held: Option<Held>) -> Checked<Option<Held>> {
        if held.is_some() {
            return Ok(held);
        }
        let Some(oldest) = self.read_all(db, end).map_err(|what| format!("of a follower: {what}"))? else {
            return Ok(None);
        };
        // Where the follower is behind what is kept, it is not known which event comes next.
        if oldest.event >= end && end < self.events() {
            return Ok(None);
        }
        let journal = self.world.model.journal().ok_or("there is no journal")?;
        match db.changes(oldest.number) {
            Ok(changes) => Ok(Some(Held::new(changes, FeedReader::at(journal, oldest.event), false))),
            Err(Error::Gone { .. }) if self.feeds.gives_up() => Ok(None),
            Err(error) => Err(format!("of a follower, from {}: {error}", oldest.number)),
        }
    }

    fn watch(&mut self, slot: usize, keyspace: usize, prefix: &[u8]) -> Checked<()> {
        let order = self.world.model.order(keyspace);
        let settings = self.world.model.settings(keyspace);
        let face = self.journal()?.face(keyspace, settings, order);
        let watch = self.opened()?.keyspaces[keyspace].watch(prefix).map_err(|error| format!("no watch: {error}"))?;
        let reported = self.events();
        self.feeds.watches[slot] = Some(Watched { watch, life: face.life, order, prefix: prefix.to_vec(), reported });
        Ok(())
    }

    fn ask_watch(&mut self, slot: usize) -> Checked<()> {
        let events = self.events();
        let Driver { world, feeds, .. } = self;
        let journal = world.model.journal().ok_or("there is no journal")?;
        let Some(watched) = &mut feeds.watches[slot] else { return Ok(()) };
        let expected = watched.expected(journal);
        answered(|| watched.watch.wait(Duration::ZERO), expected, false)
            .map_err(|what| format!("of keys with {}: {what}", crate::state::shown(&watched.prefix)))?;
        feeds.counts.note_wait(expected);
        watched.reported = events;
        Ok(())
    }

    fn sync_log(&mut self) -> Checked<()> {
        self.opened()?.db.sync().map_err(|error| format!("the sync failed: {error}"))?;
        self.feeds.note_durable(self.events());
        Ok(())
    }

    /// Whether what a power failure, or the death of the process, leaves has what was yielded as
    /// durable, and what is, and no reader goes on behind what it has.
    fn lose_power(&mut self, seed: u64) -> Checked<()> {
        let Place::Memory(env) = &self.place else { return Ok(()) };
        let env = env.clone();
        let modes = [CrashMode::LoseAll, CrashMode::Random];
        // Sometimes only the process.
        let has_power = seed % 4 == 3;
        let db = self.opened()?.db.clone();
        // First: what the background gives up meanwhile the image may lack, and never the other way
        // round.
        let Some(oldest) = self.read_all(&db, self.events())? else { return Ok(()) };
        let left = if has_power { env.kill() } else { env.crash(&modes[(seed % 2) as usize], seed) };
        self.feeds.counts.losses += 1;
        // The death of a process takes nothing that is in the log.
        let least = if has_power { usize::MAX } else { self.feeds.durable };
        let options = Place::Memory(left).attach(self.options());
        let after = Db::open(self.place.path(), options).map_err(|error| format!("open after a loss: {error}"))?;
        let last = after.snapshot().sequence();
        if last + 1 < self.feeds.durable_end {
            return Err(format!("{} was yielded as durable, and {last} is the last", self.feeds.durable_end - 1));
        }
        let of_follower = self.feeds.followed.iter().filter_map(|followed| followed.held.as_ref());
        for held in self.feeds.held.iter().flatten().chain(of_follower).filter(|held| has_power || held.only_durable) {
            let position = held.position();
            if position > held.begun.max(last + 1) {
                return Err(format!(
                    "a reader goes on from {position} after a loss, and would miss write {}",
                    last + 1
                ));
            }
        }
        let found = match after.changes(0).and_then(|changes| changes.collect::<esker::Result<Vec<_>>>()) {
            // The next opening keeps none.
            Err(Error::InvalidArgument { .. }) if self.feeds.retention.is_none() => return Ok(()),
            found => found.map_err(|error| format!("reading after a loss fails: {error}"))?,
        };
        let known: Vec<(usize, &ChangeBatch)> = self.feeds.known.from(oldest.event).collect();
        let (Some(first), Some(final_batch)) = (found.first(), found.last()) else {
            let durable = known.iter().any(|(event, _)| *event < least);
            return if durable && !self.feeds.will_give_up() {
                Err("after a loss nothing is told".to_string())
            } else {
                Ok(())
            };
        };
        let begin = known.iter().position(|(_, batch)| *batch == first);
        let begin = begin.ok_or_else(|| format!("after a loss there is {first:?}"))?;
        let expected = known[begin..].iter().take(found.len()).map(|(_, batch)| *batch);
        if !expected.eq(&found) {
            return Err(format!("after a loss other changes are told, from {first:?} to {final_batch:?}"));
        }
        let rest = &known[begin + found.len()..];
        match rest.iter().find(|(event, _)| *event < least) {
            None => Ok(()),
            Some((event, batch)) => Err(format!("after a loss event {event} is gone, which was durable: {batch:?}")),
        }
    }
}

/// The answer of a wait, if it is right. What it has reported it does not report again, but for
/// syncs, which may come in the background.
fn answered(mut wait: impl FnMut() -> esker::Result<bool>, expected: Expected, is_of_syncs: bool) -> Checked<bool> {
    let answer = wait().map_err(|error| format!("the wait fails: {error}"))?;
    if !expected.allows(answer) {
        return Err(format!("the wait yields {answer}, expected {expected:?}"));
    }
    if answer && !is_of_syncs {
        match wait() {
            Ok(false) => {}
            other => return Err(format!("the wait after that yields {other:?}")),
        }
    }
    Ok(answer)
}
