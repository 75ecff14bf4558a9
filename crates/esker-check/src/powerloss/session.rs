//! An open database that performs steps, and the run of a whole script.

mod open_transaction;
mod refused;
mod transacting;

use super::asking::{ask, make, write_options, write_single, wrong};
use super::fading::{self, Times};
use super::progress::Progress;
use super::script::{KEYSPACES, NAMES, SIFTED, SLOTS, Step, WINDOW, count, is_fading, loaded};
use super::sieve::Sieve;
use super::standing::{Setting, name_of, options_of};
use super::survey::survey;
use crate::asked::Question;
use crate::feed::FeedReader;
use crate::model::{Operator, Write};
use crate::operators::{mended, supply};
use crate::orders::order_of;
use crate::simulated::MEMORY_PATH;
use crate::state::{
    Durability, Held, Place, Seen, State, existing_keyspaces, lives, other_name, read_gets, read_state, seen, shown,
    snapshot_values, write_batch,
};
use esker::env::Env;
use esker::{
    ChangeRetention, Changes, CompactionStyle, Compression, Db, Error, Follower, Iter, Keyspace, KeyspaceOptions,
    ManualClock, MergeOperator, Options, ReadMode, Snapshot, WalMode,
};
use open_transaction::Open;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// The directory of a numbered checkpoint.
pub fn checkpoint_path(number: usize) -> String {
    format!("/checkpoint-{number}")
}

/// A snapshot and an iterator, and what they must show.
struct Holding {
    snapshot: Snapshot,
    /// The keyspaces of its time.
    keyspaces: Vec<(usize, Keyspace)>,
    seen: BTreeMap<Place, Option<Vec<u8>>>,
    iterator: Iter,
    left: VecDeque<Seen>,
}

/// Where a script runs: the options, and the environment among them.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Those that it began with.
    base: Options,
    options: Options,
    env: Arc<dyn Env>,
}

/// How many other option sets there are for [`Ground::changed`].
pub const OPTION_CHANGES: usize = 7;

impl Ground {
    /// The options on that environment.
    pub fn new(options: &Options, env: impl Env + 'static) -> Ground {
        let env: Arc<dyn Env> = Arc::new(env);
        let options = options.clone().env(env.clone());
        Ground { base: options.clone(), options, env }
    }

    /// The same place opened with other options, which this number says; changes are kept for as
    /// long as at first.
    pub fn changed(&self, number: usize) -> Ground {
        let base = self.base.clone();
        let options = match number % OPTION_CHANGES {
            0 => base,
            1 => base.memory_budget_bytes(1 << 20),
            2 => base.wal_mode(WalMode::Plain).wal_segment_bytes(1 << 10),
            3 => base.min_blob_size(30).compression(Compression::Lz4).block_bytes(100),
            4 => base.min_blob_size(0).compression(Compression::None).read_mode(ReadMode::Pread).block_cache_bytes(0),
            5 => base.write_buffer_bytes(1).target_file_bytes(1).filter_bits_per_key(0),
            _ => base.write_buffer_bytes(1 << 20).wal_segment_bytes(64 << 10).memory_budget_bytes(4 << 20),
        };
        Ground { options, ..self.clone() }
    }

    /// The same place opened with changes kept for so long; without a length, with the options that
    /// it began with.
    pub fn keeping(&self, retention: Option<ChangeRetention>) -> Ground {
        let options = match retention {
            Some(retention) => self.options.clone().keep_changes(retention),
            None => self.base.clone(),
        };
        Ground { options, ..self.clone() }
    }

    /// The same options on another environment.
    pub fn moved_to(&self, env: impl Env + 'static) -> Ground {
        Ground::new(&self.options, env)
    }

    /// The options with a clock that stands still.
    pub fn options_at(&self, now: u64) -> Options {
        self.options.clone().clock(Arc::new(ManualClock::new(now)))
    }

    /// Removes the file that names the manifest, as an administrator's mistake would.
    pub fn lose_current(&self) -> esker::Result<()> {
        self.env.remove(&Path::new(MEMORY_PATH).join("CURRENT"))
    }
}

/// The database with the merge operators that it does not know by name, and the filter.
pub fn with_operators(db: Db) -> esker::Result<Db> {
    supplied(db, supply(Operator::Fragile))
}

/// The same with the operator that fails in no case.
pub fn with_mended_operators(db: Db) -> esker::Result<Db> {
    supplied(db, Some(mended()))
}

fn supplied(db: Db, fragile: Option<Arc<dyn MergeOperator>>) -> esker::Result<Db> {
    let operators: Vec<_> = supply(Operator::Longest).into_iter().chain(fragile).collect();
    for name in db.keyspaces() {
        let keyspace = db.existing_keyspace(&name)?;
        let stored = keyspace.merge_operator();
        if let Some(operator) = operators.iter().find(|operator| stored.as_deref() == Some(operator.name())) {
            let options = KeyspaceOptions::default().shared_merge_operator(operator.clone()).ttl(keyspace.ttl());
            db.keyspace(&name, options)?;
        }
        if name == NAMES[SIFTED] || name == other_name(NAMES[SIFTED]) {
            db.keyspace(&name, KeyspaceOptions::default().compaction_filter(Sieve))?;
        }
    }
    Ok(db)
}

/// An open database with the keyspaces a script has used so far.
pub struct Session {
    db: Db,
    options: Options,
    clock: Arc<ManualClock>,
    keyspaces: [Option<Keyspace>; KEYSPACES.len()],
    held: [Option<Holding>; SLOTS],
    open: [Option<Open>; SLOTS],
    reading: Option<Reading>,
    following: Option<Following>,
}

/// A reader of changes, and what it has been told.
type Reading = (Changes, FeedReader);

/// A follower, with a reader of changes.
struct Following {
    follower: Follower,
    reading: Option<Reading>,
}

impl Session {
    /// Opens or creates, with a clock of its own that shows what the progress says; repairs first
    /// if a script has damaged it.
    pub fn open(ground: &Ground, progress: &mut Progress) -> esker::Result<Session> {
        let clock = Arc::new(ManualClock::new(progress.now));
        let options = ground.options.clone().clock(clock.clone());
        progress.note_opening(&options.explain());
        if progress.destroying {
            finish_destroying(&options, progress)?;
            // It may be another database now.
            progress.note_opening(&options.explain());
        }
        if progress.damaged {
            Db::repair(MEMORY_PATH, options.clone())?;
            progress.damaged = false;
            progress.feed_is_known = false;
            progress.standing.note_repaired();
            progress.note_table_order_unknown();
        }
        let db = Db::open(MEMORY_PATH, options.clone())?;
        progress.note_kept(&db.explain());
        let db = with_operators(db)?;
        let (keyspaces, held, open) = Default::default();
        Ok(Session { db, options, clock, keyspaces, held, open, reading: None, following: None })
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Closes it.
    pub fn close(self) -> esker::Result<()> {
        drop((self.keyspaces, self.held, self.open, self.reading, self.following));
        self.db.close()
    }

    /// The keyspace of that index, created if it is not there.
    pub fn keyspace(&mut self, index: usize, progress: &mut Progress) -> esker::Result<Keyspace> {
        if let Some(keyspace) = &self.keyspaces[index] {
            return Ok(keyspace.clone());
        }
        let setting = progress.standing.present(index);
        let keyspace = self.db.keyspace(&name_of(index, setting.is_renamed), options_of(index, setting))?;
        progress.standing.note_exists(index);
        self.keyspaces[index] = Some(keyspace.clone());
        Ok(keyspace)
    }

    /// The keyspaces of these writes, and the writes with their indexes among those.
    fn placed(&mut self, writes: &[Write], progress: &mut Progress) -> esker::Result<(Vec<Keyspace>, Vec<Write>)> {
        let mut indexes: Vec<usize> = writes.iter().map(|write| write.keyspace).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let keyspaces = indexes.iter().map(|&index| self.keyspace(index, progress)).collect::<esker::Result<_>>()?;
        let place = |index| indexes.iter().position(|&other| other == index).unwrap_or_default();
        let moved = writes.iter().map(|write| Write { keyspace: place(write.keyspace), ..write.clone() });
        Ok((keyspaces, moved.collect()))
    }

    /// Performs a step that keeps the database open.
    pub fn perform(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Batch(writes, durability) => {
                let writes = [&progress.allowed(writes)[..], &[count(progress.next_number())]].concat();
                let (keyspaces, placed) = self.placed(&writes, progress)?;
                let options = write_options(*durability, progress);
                let attempt = |progress: &mut Progress| progress.attempt(&writes, *durability);
                if make(progress, attempt, || write_batch(&self.db, &keyspaces, &placed, options))?.is_some() {
                    progress.acknowledge(*durability);
                }
            }
            Step::Transaction(..) | Step::Abandon(_) => return self.transact(step, progress),
            _ if step.is_contended() => return self.transact(step, progress),
            Step::Single(write, durability) | Step::Typed(write, durability) => {
                if !progress.allowed(std::slice::from_ref(write)).is_empty() {
                    let keyspace = self.keyspace(write.keyspace, progress)?;
                    let is_typed = matches!(step, Step::Typed(..));
                    return write_single(&keyspace, write, *durability, is_typed, progress);
                }
            }
            Step::Ask(write, expected, durability) => {
                if let Some(question) = progress.question(write, *expected) {
                    return ask(&self.keyspace(write.keyspace, progress)?, &question, *durability, progress);
                }
            }
            Step::PopFirst(index) => {
                let keyspace = self.keyspace(*index, progress)?;
                return ask(&keyspace, &Question::PopFirst(*index), Durability::Async, progress);
            }
            Step::Ingest(index, pairs) => {
                let keyspace = self.keyspace(*index, progress)?;
                let sync = Durability::Sync;
                progress.attempt_load(&loaded(*index, pairs));
                keyspace.ingest(pairs.iter().map(|(key, value)| (key, value)))?;
                progress.acknowledge(sync);
                progress.note_renewed();
            }
            Step::RefusedIngest(index, pairs, why) => return self.refuse_load(*index, pairs, *why, progress),
            Step::DropKeyspace(index) => {
                let name = self.keyspace(*index, progress)?.name();
                progress.attempt_drop(*index);
                self.db.drop_keyspace(&name)?;
                progress.acknowledge(Durability::Sync);
                progress.note_renewed();
                progress.standing.note_dropped(*index);
                self.keyspaces[*index] = None;
                self.open.iter_mut().flatten().for_each(|open| open.note_dropped(*index));
            }
            Step::Clock(milliseconds) => {
                progress.tick(*milliseconds);
                self.clock.set(progress.now);
            }
            _ if step.opens() => {}
            _ => return self.maintain(step, progress),
        }
        Ok(())
    }

    fn maintain(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Create(index) => _ = self.keyspace(*index, progress)?,
            Step::Rename(index) => {
                let now = progress.standing.present(*index);
                return self.alter(*index, Setting { is_renamed: !now.is_renamed, ..now }, progress);
            }
            Step::Operator(index, operator) => {
                let now = progress.standing.present(*index);
                return self.alter(*index, Setting { operator: *operator, ..now }, progress);
            }
            Step::Ttl(index, ttl) => {
                let now = progress.standing.present(*index);
                return self.alter(*index, Setting { ttl: *ttl, ..now }, progress);
            }
            Step::Style(index, style) => {
                let now = progress.standing.present(*index);
                return self.alter(*index, Setting { style: *style, ..now }, progress);
            }
            Step::ClockBack(milliseconds) => {
                progress.turn_back(*milliseconds);
                self.clock.set(progress.now);
                return self.look_again(progress);
            }
            Step::Sync => {
                self.db.sync()?;
                progress.note_log_synced();
            }
            Step::Flush => {
                self.db.flush()?;
                progress.note_flushed();
            }
            Step::Compact => {
                self.db.compact()?;
                progress.note_flushed();
            }
            Step::CompactRange(index, low, high) => {
                self.keyspace(*index, progress)?.compact_range((low.clone(), high.clone()))?;
            }
            Step::WaitIdle => self.db.wait_idle()?,
            Step::Checkpoint(number, mode) => {
                // Every other one without the writer's doing. By what is known in any run of these
                // steps: a program that goes on after failures knows nothing of a follower.
                if progress.attempted() % 2 == 1 {
                    self.flush_unlogged(progress)?;
                    self.follower()?.follower.db().checkpoint_with(checkpoint_path(*number), *mode)?;
                } else {
                    self.db.checkpoint_with(checkpoint_path(*number), *mode)?;
                }
                progress.checkpoints.push((*number, progress.attempted()));
            }
            _ => return self.read(step, progress),
        }
        Ok(())
    }

    /// Gives a keyspace another name or other settings.
    fn alter(&mut self, index: usize, next: Setting, progress: &mut Progress) -> esker::Result<()> {
        let keyspace = self.keyspace(index, progress)?;
        let now = progress.standing.present(index);
        if next == now {
            return Ok(());
        }
        // What they have merged is combined by the operator of the commit, and was read by another.
        self.open = Default::default();
        // "Where operands stay": the operator fails on them, or a reader sees what is below them,
        // or nothing is compacted.
        let must_stay = next.operator != now.operator && progress.keeps_failing(index);
        let is_fifo = matches!(now.style, CompactionStyle::Fifo { .. });
        let may_stay = must_stay || is_fifo || self.held.iter().any(Option::is_some);
        let before = progress.attempt_alteration(index, next);
        let outcome = match supply(next.operator).filter(|_| next.operator != now.operator) {
            Some(operator) => keyspace.set_shared_merge_operator(operator),
            None if next.ttl != now.ttl => keyspace.set_ttl(lives(next.ttl)),
            None if next.style != now.style => {
                let options = KeyspaceOptions::default().compaction_style(next.style);
                self.db.keyspace(&keyspace.name(), options).map(drop)
            }
            None => keyspace.rename(&name_of(index, next.is_renamed)),
        };
        match outcome {
            Ok(()) if must_stay => wrong(format!("{now:?} became {next:?} over operands that cannot be combined")),
            Ok(()) => progress.note_altered(index),
            Err(Error::InvalidArgument { .. }) if may_stay => progress.note_unaltered(index, before),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Looks what is there of what has expired by a clock that went back since: from then on it is
    /// as it is found.
    fn look_again(&self, progress: &mut Progress) -> esker::Result<()> {
        let state = read_state(&self.db, &NAMES).unwrap_or_else(|what| wrong(what))?;
        if let Some(what) = progress.differs_after(progress.attempted(), &state) {
            wrong(format!("after the clock went back: {what}"));
        }
        progress.note_what_is_seen(&state);
        Ok(())
    }

    /// Takes a snapshot and begins an iterator. Of what compaction may have taken a snapshot shows
    /// what it finds at first.
    fn hold(&mut self, index: usize, progress: &mut Progress) -> esker::Result<Holding> {
        let keyspace = self.keyspace(index, progress)?;
        let expected = progress.seen();
        let value = |held: &Held| (!held.fails).then(|| held.value.clone());
        let own = expected.iter().filter(|((held, _), _)| *held == index);
        let mut left: Vec<Seen> = own.map(|((_, key), held)| (key.clone(), value(held))).collect();
        left.sort_by(|a, b| order_of(NAMES[index]).compare(&a.0, &b.0));
        let (snapshot, keyspaces) = (self.db.snapshot(), existing_keyspaces(&self.db, &NAMES)?);
        let sure = expected.iter().filter(|(place, _)| !is_fading(place.0));
        let mut seen: BTreeMap<Place, Option<Vec<u8>>> =
            sure.map(|(place, held)| (place.clone(), value(held))).collect();
        if keyspaces.iter().any(|(index, _)| is_fading(*index)) {
            let found = snapshot_values((&self.db, &NAMES), &snapshot, &keyspaces)?;
            seen.extend(found.into_iter().filter(|(place, _)| is_fading(place.0)));
        }
        Ok(Holding { snapshot, keyspaces, seen, iterator: keyspace.iter(), left: left.into() })
    }

    /// Steps that compare. They are for runs in which every write so far has succeeded.
    fn read(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Hold(slot, index) => {
                let holding = self.hold(*index, progress)?;
                self.held[*slot] = Some(holding);
            }
            Step::Look(slot, steps) => {
                let Some(mut holding) = self.held[*slot].take() else { return Ok(()) };
                holding.step(*steps)?;
                let seen = snapshot_values((&self.db, &NAMES), &holding.snapshot, &holding.keyspaces)?;
                // FIFO "drops the oldest tables", "for snapshots too".
                holding.seen.retain(|place, _| place.0 != WINDOW || seen.contains_key(place));
                if seen != holding.seen {
                    wrong(format!(
                        "a snapshot shows {} keys, {} expected, or another value",
                        seen.len(),
                        holding.seen.len()
                    ));
                }
                self.held[*slot] = Some(holding);
            }
            Step::Compare => {
                compare(&self.db, progress)?;
                progress.check_feed(&self.db).unwrap_or_else(|what| wrong(what))?;
                self.read_on(progress)?;
            }
            Step::ReadBeside => {
                self.flush_unlogged(progress)?;
                let open = || Db::open_read_only(self.db.path(), self.options.clone());
                compare_beside(&with_operators(open()?)?, progress.newest(), progress)?;
                if progress.newest().values().any(|held| held.fails) {
                    let mended = fading::mended(progress.newest());
                    compare_beside(&with_mended_operators(open()?)?, &mended, progress)?;
                }
                self.follow(progress)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A follower from the last time, or a new one, catches up, and so does its reader of changes.
    fn follow(&mut self, progress: &Progress) -> esker::Result<()> {
        let Following { follower, reading } = self.follower()?;
        follower.catch_up()?;
        compare_beside(&with_operators(follower.db().clone())?, progress.newest(), progress)?;
        read_on(follower.db(), reading, progress)
    }

    /// The follower from the last time, or a new one.
    fn follower(&mut self) -> esker::Result<&mut Following> {
        let following = match self.following.take() {
            Some(following) => following,
            None => Following { follower: Db::open_follower(self.db.path(), self.options.clone())?, reading: None },
        };
        Ok(self.following.insert(following))
    }

    /// The reader of changes goes on.
    fn read_on(&mut self, progress: &Progress) -> esker::Result<()> {
        read_on(&self.db, &mut self.reading, progress)
    }

    /// What was written without log is only where it should be after a flush.
    pub fn flush_unlogged(&self, progress: &mut Progress) -> esker::Result<()> {
        if progress.holds_unlogged() {
            self.db.flush()?;
            progress.note_flushed();
        }
        Ok(())
    }
}

impl Holding {
    /// From the front and from the back in turns.
    fn step(&mut self, steps: usize) -> esker::Result<()> {
        for number in 0..steps {
            let front = number % 3 != 2;
            let expected = if front { self.left.pop_front() } else { self.left.pop_back() };
            let found = if front { self.iterator.next() } else { self.iterator.next_back() };
            let found = found.map(seen).transpose()?;
            if found != expected {
                let words = |(key, value): Seen| (shown(&key), value.as_deref().map(shown));
                let [found, expected] = [found, expected].map(|entry| entry.map(words));
                wrong(format!("a held iterator yields {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }
}

/// Lets a reader of changes go on, or begins with all of them. It is behind by some steps of the
/// script; one that is overtaken begins anew.
fn read_on(db: &Db, reading: &mut Option<Reading>, progress: &Progress) -> esker::Result<()> {
    if !progress.feed_is_known {
        return Ok(());
    }
    if let Some((changes, reader)) = reading {
        // Another look at whether that is so.
        if !matches!(db.changes(Changes::position(changes)), Err(Error::Gone { .. })) {
            return progress.read_on(reader, changes).unwrap_or_else(|what| wrong(what));
        }
    }
    let reader = progress.check_feed(db).unwrap_or_else(|what| wrong(what))?;
    *reading = match reader {
        Some(reader) => Some((db.changes(reader.next())?, reader)),
        None => None,
    };
    Ok(())
}

/// What the process that writes shows: what compaction has taken of it is known.
fn compare(db: &Db, progress: &Progress) -> esker::Result<()> {
    let state = compare_all(db, (&progress.seen(), Times { latest: progress.now, ..progress.times() }), progress)?;
    if let Some(what) = progress.differs_after(progress.attempted(), &state) {
        wrong(what);
    }
    Ok(())
}

/// What another process shows of the same files: it may still have what compaction has taken.
fn compare_beside(db: &Db, expected: &State, progress: &Progress) -> esker::Result<()> {
    compare_all(db, (expected, progress.times()), progress).map(drop)
}

/// Everything by scans, then by gets, with the keys that are not there any more; what is there.
fn compare_all(db: &Db, (expected, times): (&State, Times), progress: &Progress) -> esker::Result<State> {
    let state = read_state(db, &NAMES).unwrap_or_else(|what| wrong(what))?;
    if let Some(what) = fading::difference(expected, &state, times) {
        wrong(what);
    }
    let places = progress.places();
    read_gets(db, &NAMES, &state, &places).unwrap_or_else(|what| wrong(what))?;
    survey(db, &state, &places).unwrap_or_else(|what| wrong(what))?;
    Ok(state)
}

/// What was left of a database that was being removed is the whole of it, or "opens as no
/// database"; then the same call removes the rest.
fn finish_destroying(options: &Options, progress: &mut Progress) -> esker::Result<()> {
    match Db::open(MEMORY_PATH, options.clone().create_if_missing(false)) {
        Ok(_) => progress.destroying = false,
        Err(Error::NotFound { .. }) => {
            Db::destroy(MEMORY_PATH, options.clone())?;
            progress.restart();
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The steps, each as often as [`run`] calls `observe` for it: for one that closes also behind the
/// close, where that is one of its own.
pub fn observed(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().flat_map(|step| std::iter::repeat_n(step, if step.closes() { 2 } else { 1 }))
}

/// Runs steps until one fails. `observe` is called after every step, and behind every close.
pub fn run(
    steps: &[Step],
    ground: &Ground,
    progress: &mut Progress,
    observe: &mut dyn FnMut(&Progress),
) -> esker::Result<()> {
    let mut session = Session::open(ground, progress)?;
    progress.note_opened();
    let mut ground = ground.clone();
    for step in steps {
        match step {
            _ if step.closes() => {
                session.close()?;
                progress.note_closed();
                observe(progress);
                match step {
                    Step::ReopenWith(number) => ground = ground.changed(*number),
                    Step::Keep(retention) => ground = ground.keeping(*retention),
                    Step::Destroy => {
                        progress.destroying = true;
                        Db::destroy(MEMORY_PATH, ground.options_at(progress.now))?;
                        progress.restart();
                    }
                    _ => {}
                }
                session = Session::open(&ground, progress)?;
                progress.note_renewed();
            }
            Step::DropAndReopen => {
                session.flush_unlogged(progress)?;
                drop(session);
                session = Session::open(&ground, progress)?;
            }
            Step::Repair => {
                session.flush_unlogged(progress)?;
                drop(session);
                progress.damaged = true;
                ground.lose_current()?;
                session = Session::open(&ground, progress)?;
                // What is in no table any more the log may still have.
                if progress.times().latest > progress.now {
                    session.look_again(progress)?;
                }
            }
            _ => session.perform(step, progress)?,
        }
        if step.opens() {
            progress.note_opened();
        }
        observe(progress);
    }
    session.close()?;
    progress.note_closed();
    observe(progress);
    Ok(())
}
