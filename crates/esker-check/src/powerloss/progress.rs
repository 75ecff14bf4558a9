//! The operations requested and acknowledged so far: which contents a database may hold.

mod changes;
mod unlogged;

use super::fading::{self, Times};
use super::script::{
    COUNTER, MOST_KEYS, NAMES, NOW_MS, WINDOW, dropping, empty_model, model_with, seen_state, usual_key, whole_state,
};
use super::standing::{Found, Setting, Standing, first_setting, name_of};
use super::window::Tables;
use crate::Checked;
use crate::asked::{Question, Right};
use crate::feed::{ClockReadings, Retained};
use crate::generator::Expected;
use crate::model::{Change, Journal, Model, Operator, Told, Ttl, Write};
use crate::state::{Durability, Place, State, disagreement, shown};
use esker::ChangeRetention;
use std::collections::BTreeSet;

/// A commit: what leads from one state to the next.
#[derive(Clone, Debug)]
struct Commit {
    writes: Vec<Write>,
    logged: bool,
    now: u64,
    settings: Vec<(Operator, Ttl)>,
}

/// Whether others have written where a transaction has read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// They have not.
    None,
    /// They have changed an expiry there, which writes nothing where there is no value.
    Possible,
    /// They have.
    Certain,
}

/// What a recovered database consists of.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// So many commits.
    pub count: usize,
    /// So many events of the journal.
    pub events: usize,
    /// The keyspaces that there are.
    pub found: Found,
}

/// The operations requested and acknowledged so far.
#[derive(Clone, Debug)]
pub struct Progress {
    model: Model,
    /// The commit counter before the first commit.
    base: u64,
    /// The state after every number of commits, with what has expired and what compaction may have
    /// taken: a clock that goes back shows it again if it is still there.
    pub states: Vec<State>,
    commits: Vec<Commit>,
    /// How many events the journal has behind each number of commits.
    ends: Vec<usize>,
    /// So many of them are durable where changes are kept.
    altered: usize,
    /// Whether the journal is all that readers of changes are told: a repair begins anew.
    pub feed_is_known: bool,
    /// For how long changes were kept.
    retained: Retained,
    /// For how long the last open keeps them.
    pub kept: Option<ChangeRetention>,
    /// What the keyspaces may be called, and their settings.
    pub standing: Standing,
    /// What the clock shows.
    pub now: u64,
    /// The latest that any clock of the database has shown.
    latest: u64,
    /// What it has shown, behind the events of the journal.
    clock: ClockReadings,
    /// Commits that returned success: they survive the process.
    pub acknowledged: usize,
    /// Commits covered by a synced write, a flush or a close that returned success: they survive
    /// the machine.
    pub synced: usize,
    /// Those of them that a sync of the log alone makes durable, whatever becomes of the manifest:
    /// covered by a synced write, or by a sync.
    pub log_synced: usize,
    /// Commits of which the manifest or a later record says that the log was synced up to there.
    pub vouched: usize,
    /// Those of which the manifest says so.
    pub listed: usize,
    /// Those of which the first record of a manifest says so: later edits are appended beside their
    /// predecessors, which a disk that tears what it rewrites can take with them.
    pub renewed: usize,
    /// Commits covered by a flush or a close: they survive even if they were not logged.
    pub flushed: usize,
    /// What is known of the tables of the keyspace that keeps its newest ones.
    tables: Tables,
    /// Whether a sync has failed: what the system shows of the files may not be on the device.
    pub sync_failed: bool,
    /// Whether a recovery has relied on what the system showed.
    relied_on_a_failed_sync: bool,
    /// Whether the file that names the manifest may be missing.
    pub damaged: bool,
    /// Whether the database may have been removed in part.
    pub destroying: bool,
    /// How many were removed before it.
    pub removed: usize,
    /// Keys that some write was to change, whatever became of it, and of the database.
    tried: BTreeSet<Place>,
    /// Whether the contents are what was noted here. A program that goes on after failures notes
    /// each step by itself.
    contents_are_known: bool,
    /// Checkpoints that returned success, and the number of commits in each.
    pub checkpoints: Vec<(usize, usize)>,
    /// Those of databases that were removed since, and what is in each.
    pub former_checkpoints: Vec<(usize, State)>,
}

fn with_journal(mut model: Model) -> Model {
    model.keep_journal(Journal::new(&NAMES));
    model
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            model: with_journal(empty_model(NOW_MS)),
            base: 0,
            states: vec![State::new()],
            commits: Vec::new(),
            ends: vec![0],
            altered: 0,
            feed_is_known: true,
            retained: Retained::default(),
            kept: None,
            standing: Standing::default(),
            now: NOW_MS,
            latest: NOW_MS,
            clock: ClockReadings::default(),
            acknowledged: 0,
            synced: 0,
            log_synced: 0,
            vouched: 0,
            listed: 0,
            renewed: 0,
            flushed: 0,
            tables: Tables::default(),
            sync_failed: false,
            relied_on_a_failed_sync: false,
            damaged: false,
            destroying: false,
            removed: 0,
            tried: BTreeSet::new(),
            contents_are_known: true,
            checkpoints: Vec::new(),
            former_checkpoints: Vec::new(),
        }
    }
}

/// Notes what the database shows of what has not expired: what it does not, compaction has taken.
fn note_seen_state(model: &mut Model, found: &State) {
    let now = model.present().now;
    for keyspace in 0..NAMES.len() {
        for holding in model.holdings(keyspace).into_iter().filter(|holding| holding.expiry > now) {
            let is_seen = found.contains_key(&(keyspace, holding.key.to_vec()));
            model.note_taken(keyspace, &holding.key, !is_seen);
        }
    }
}

/// Keys that most likely no write was to change, a few of each keyspace: next to one that some
/// write was to change, behind all of those, and one that scripts choose as any other.
fn strangers(keyspace: usize, tried: &BTreeSet<Place>, turn: usize) -> Vec<Place> {
    let own = tried.range((keyspace, Vec::new())..(keyspace + 1, Vec::new()));
    let own: Vec<&[u8]> = own.map(|(_, key)| key.as_slice()).collect();
    let mut keys = Vec::new();
    if let (Some(key), Some(last)) = (own.get(turn % own.len().max(1)), own.last()) {
        keys.push([*key, &[0]].concat());
        keys.push(key[..key.len().saturating_sub(1)].to_vec());
        keys.push([*last, &[u8::MAX]].concat());
    }
    let mut usual = (0..MOST_KEYS).map(|number| usual_key((turn + number) % MOST_KEYS));
    keys.extend(usual.find(|key| !own.contains(&key.as_slice())));
    keys.into_iter().map(|key| (keyspace, key)).collect()
}

impl Progress {
    /// A database of which nothing is known but the time and whether it has to be repaired; its
    /// commits are numbered from `base` on.
    pub fn unknown(base: u64, now: u64, damaged: bool) -> Progress {
        let model = with_journal(empty_model(now));
        let tables = Tables::unknown();
        Progress { model, base, now, latest: now, damaged, tables, contents_are_known: false, ..Progress::default() }
    }

    /// Goes on from a recovered database that holds `state`, which is what `count` commits lead to,
    /// in a new process.
    ///
    /// After a power loss everything that was recovered was on the disk, so no later loss may take
    /// it. After the death of a process only, what was not synced can still be lost with the
    /// machine, until something later is synced.
    pub fn recovered(
        &self,
        Recovered { count, events, found }: &Recovered,
        state: State,
        all_durable: bool,
    ) -> Progress {
        let (count, events) = (*count, *events);
        let mut states = self.states[..count].to_vec();
        let setting = |keyspace: usize| found[keyspace].unwrap_or(first_setting(keyspace));
        let settings: Vec<_> = (0..NAMES.len()).map(setting).map(|one| (one.operator, one.ttl)).collect();
        let whole = fading::held_behind(&self.states[count], &state, self.times());
        let mut model = model_with(&whole, self.now, &settings);
        note_seen_state(&mut model, &state);
        let mut journal = self.model.journal().cloned().unwrap_or_default();
        journal.truncate(events);
        for keyspace in 0..NAMES.len() {
            journal.set_name(keyspace, &name_of(keyspace, setting(keyspace).is_renamed));
        }
        model.keep_journal(journal);
        model.note_contents();
        states.push(whole);
        let altered = self.altered.min(events);
        Progress {
            altered: if all_durable { events } else { altered },
            // Of what was found behind the last commit, a later loss may take all but `altered`.
            ends: [&self.ends[..count], &[self.ends[count].min(events)]].concat(),
            feed_is_known: self.feed_is_known,
            retained: self.retained.up_to(events),
            kept: self.kept,
            sync_failed: self.sync_failed,
            // After a power loss what is shown is what the device has.
            relied_on_a_failed_sync: self.relied_on_a_failed_sync || self.sync_failed && !all_durable,
            standing: self.standing.recovered(found, all_durable),
            model,
            // Numbers that the lost commits had are not used again, so that no later state equals a
            // lost one.
            base: self.base + (self.attempted() - count) as u64,
            states,
            commits: self.commits[..count].to_vec(),
            now: self.now,
            latest: self.latest,
            clock: self.clock.up_to(events),
            acknowledged: count,
            synced: if all_durable { count } else { self.synced.min(count) },
            log_synced: self.log_synced.min(count),
            vouched: self.vouched.min(count),
            listed: self.listed.min(count),
            renewed: self.renewed.min(count),
            flushed: if all_durable { count } else { self.flushed.min(count) },
            tables: self.tables.recovered(count, self.holds_unlogged()),
            damaged: self.damaged,
            destroying: self.destroying,
            removed: self.removed,
            tried: self.tried.clone(),
            contents_are_known: true,
            checkpoints: Vec::new(),
            former_checkpoints: Vec::new(),
        }
    }

    /// What is known of the image of which a recovery has found `recovered`, for another recovery
    /// of it: one that removes the rest of a database may be cut short, and a power loss bring the
    /// whole of it back.
    pub fn behind_recovery(&self, recovered: Progress) -> Progress {
        if self.destroying { self.clone() } else { Progress { damaged: self.damaged, destroying: false, ..recovered } }
    }

    /// Begins anew, in a database that was removed and is to be made again. Numbers of commits are
    /// not used again.
    pub fn restart(&mut self) {
        let all = std::mem::take(&mut self.checkpoints);
        let mut former_checkpoints = std::mem::take(&mut self.former_checkpoints);
        former_checkpoints.extend(all.into_iter().map(|(number, count)| (number, self.states[count].clone())));
        let base = self.base + self.attempted() as u64;
        let tried = std::mem::take(&mut self.tried);
        let anew = Progress::unknown(base, self.now, false);
        let (removed, latest, tables) = (self.removed + 1, self.latest, Tables::default());
        *self = Progress { removed, former_checkpoints, tried, latest, tables, contents_are_known: true, ..anew };
    }

    /// How many commits were attempted.
    pub fn attempted(&self) -> usize {
        self.states.len() - 1
    }

    /// How many operations these commits are made of.
    pub fn operations(&self) -> u64 {
        self.commits.iter().map(|commit| commit.writes.len() as u64).sum()
    }

    /// What keys held between two writes of one batch, without what has expired since. To be called
    /// before [`Progress::forget_expired`]: a write of the batch can have given a longer life to
    /// what had a short one.
    pub fn held_within_batches(&self) -> BTreeSet<(Place, Vec<u8>)> {
        let mut held = BTreeSet::new();
        for (before, commit) in self.states.iter().zip(&self.commits).filter(|(_, commit)| commit.writes.len() > 1) {
            let mut model = model_with(before, commit.now, &commit.settings);
            for write in &commit.writes[..commit.writes.len() - 1] {
                model.commit(std::slice::from_ref(write));
                let (keyspace, key, at) = (write.keyspace, &write.key, model.present());
                let lasts = model.expires_at(keyspace, key, at).is_some_and(|expiry| expiry > self.now);
                if let (true, Ok(Some(value))) = (lasts, model.get(keyspace, key, at)) {
                    held.insert(((keyspace, key.clone()), value.to_vec()));
                }
            }
        }
        held
    }

    /// The number that the commit counter gets with the next commit.
    pub fn next_number(&self) -> u64 {
        self.base + self.attempted() as u64 + 1
    }

    /// The contents after everything that was attempted: in files of which some compaction may have
    /// taken what had expired, and others not.
    pub fn newest(&self) -> &State {
        // There is a state after no commit at all, and none is ever taken away.
        &self.states[self.states.len() - 1]
    }

    /// What the process that writes shows of them.
    pub fn seen(&self) -> State {
        seen_state(&self.model)
    }

    /// By what a reader must find.
    pub fn times(&self) -> Times {
        Times { now: self.now, latest: self.latest }
    }

    /// What a reader finds and must not, where some commits have led to the expected contents.
    pub fn differs(&self, expected: &State, found: &State) -> Option<String> {
        fading::difference(expected, found, self.times())
    }

    /// Whether a reader may find this after so many commits.
    fn agrees(&self, count: usize, found: &State) -> bool {
        fading::agrees(&self.states[count], found, self.times()) && self.lost_too_early(count, found).is_none()
    }

    /// What the window cannot have lost yet, if this is found after so many commits. Of what a
    /// repair makes, or was making when it died, nothing is known.
    fn lost_too_early(&self, count: usize, found: &State) -> Option<&Place> {
        if self.damaged {
            return None;
        }
        let commits: Vec<&[Write]> = self.commits[..count].iter().map(|commit| &commit.writes[..]).collect();
        self.tables.lost_too_early(&commits, &self.states[count], found)
    }

    /// What a reader finds and must not after so many commits, in words: also what is there of the
    /// window, where older tables go first.
    pub fn differs_after(&self, count: usize, found: &State) -> Option<String> {
        let expected = &self.states[count];
        let too_early =
            || self.lost_too_early(count, found).map(|place| disagreement(place, expected.get(place), None));
        self.differs(expected, found).or_else(too_early)
    }

    /// Whether so many commits may have left nothing to be seen.
    pub fn may_be_empty(&self, count: usize) -> bool {
        self.agrees(count, &State::new())
    }

    /// Whether operands in a keyspace cannot be combined: there they are kept.
    pub fn keeps_failing(&self, keyspace: usize) -> bool {
        self.model.holdings(keyspace).iter().any(|holding| holding.fails)
    }

    /// Those of the writes that the settings allow: where others were to be set before, and a
    /// shorter script leaves that out, they are not made.
    pub fn allowed(&self, writes: &[Write]) -> Vec<Write> {
        writes.iter().filter(|write| !self.model.refuses(write)).cloned().collect()
    }

    /// The contents as a reader sees them that begins now, where they are known.
    pub fn view(&self) -> Option<Model> {
        self.contents_are_known.then(|| self.model.copy_at(self.model.present()))
    }

    /// Whether a write can change any key at all: a range may hold none.
    pub fn has_keys(&self, write: &Write) -> bool {
        self.model.order(write.keyspace).meets(&write.touched(), &write.touched())
    }

    /// Whether the commits behind the first `since` are to keys or ranges of these writes.
    pub fn interference(&self, since: usize, own: &[Write]) -> Interference {
        let meets = |other: &Write, write: &Write| {
            let order = self.model.order(write.keyspace);
            other.keyspace == write.keyspace && order.meets(&write.touched(), &other.touched())
        };
        let others = self.commits[since..].iter().flat_map(|commit| &commit.writes);
        let met: Vec<&Write> = others.filter(|&other| own.iter().any(|write| meets(other, write))).collect();
        match met.iter().any(|other| other.change != Change::Expire) {
            true => Interference::Certain,
            false if met.is_empty() => Interference::None,
            false => Interference::Possible,
        }
    }

    /// Notes that these writes are tried, in whatever way.
    pub fn note_tried(&mut self, writes: &[Write]) {
        let single = writes.iter().filter(|write| !write.change.is_range());
        self.tried.extend(single.map(|write| (write.keyspace, write.key.clone())));
    }

    /// Goes back to what was noted before a commit that was refused, but for the keys that it tried
    /// to change.
    pub fn take_back(&mut self, before: Progress) {
        let tried = std::mem::take(&mut self.tried);
        *self = Progress { tried, ..before };
    }

    /// Notes a commit before it is attempted.
    pub fn attempt(&mut self, writes: &[Write], durability: Durability) {
        self.note_tried(writes);
        let settings = (0..NAMES.len()).map(|keyspace| self.model.settings(keyspace)).collect();
        self.model.commit(writes);
        self.states.push(whole_state(&self.model));
        let logged = durability != Durability::Unlogged;
        if !logged {
            self.model.retell(|_| Told::Nothing);
        }
        self.commits.push(Commit { writes: writes.to_vec(), logged, now: self.now, settings });
        self.note_end();
    }

    fn note_end(&mut self) {
        self.ends.push(self.model.journal().map_or(0, |journal| journal.events.len()));
    }

    /// The same of a transaction.
    pub fn attempt_transaction(&mut self, writes: &[Write], durability: Durability) {
        self.attempt(writes, durability);
        self.model.retell(|told| if let Told::Batch(writes) = told { Told::Transaction(writes) } else { told });
    }

    /// The same of a load.
    pub fn attempt_load(&mut self, writes: &[Write]) {
        self.attempt(writes, Durability::Sync);
        self.model.retell(|_| Told::Load);
    }

    /// The same of the drop of a keyspace.
    pub fn attempt_drop(&mut self, keyspace: usize) {
        self.standing.attempt_drop(keyspace);
        self.attempt(&dropping(keyspace), Durability::Sync);
        self.model.retell(|_| Told::Drop);
        if let Some(journal) = self.model.journal_mut() {
            journal.begin_life(keyspace, NAMES[keyspace]);
        }
        let first = first_setting(keyspace);
        self.model.set_settings(keyspace, (first.operator, first.ttl));
    }

    /// Notes that a keyspace is to get another name or other settings. What to go back to if that
    /// is refused.
    pub fn attempt_alteration(&mut self, keyspace: usize, next: Setting) -> Model {
        let before = self.model.clone();
        if keyspace == WINDOW && next.style != self.standing.present(keyspace).style {
            self.note_table_order_unknown();
        }
        if next.is_renamed != self.standing.present(keyspace).is_renamed {
            self.model.rename(keyspace, &name_of(keyspace, next.is_renamed));
        } else if (next.operator, next.ttl) != self.model.settings(keyspace) {
            self.model.alter(keyspace, (next.operator, next.ttl));
        }
        // Of another style readers of changes are told nothing.
        self.standing.attempt(keyspace, next);
        before
    }

    /// Notes that it has; where changes are kept, it is durable with everything before it.
    pub fn note_altered(&mut self, keyspace: usize) {
        self.standing.settle(keyspace, true);
        self.note_opened_events();
    }

    /// Notes that it was refused.
    pub fn note_unaltered(&mut self, keyspace: usize, before: Model) {
        self.standing.settle(keyspace, false);
        self.model = before;
    }

    /// Notes that an open has ended: what it has found of names and settings is durable.
    pub fn note_opened(&mut self) {
        self.standing.note_opened();
        self.note_opened_events();
    }

    fn note_opened_events(&mut self) {
        self.altered = self.model.journal().map_or(0, Journal::behind_alterations).max(self.altered);
    }

    /// Notes that the last commit returned success.
    pub fn acknowledge(&mut self, durability: Durability) {
        self.acknowledged = self.attempted();
        // What may have written nothing, as a delete of an empty range, may have left no record.
        let may_write_nothing = |write: &Write| write.change.is_range() || write.change == Change::Expire;
        let leaves_a_record = |commit: &Commit| commit.logged && !commit.writes.iter().all(may_write_nothing);
        if self.commits.last().is_some_and(leaves_a_record) {
            self.vouched = self.vouched.max(self.synced);
        }
        if durability == Durability::Sync {
            self.note_log_synced();
        }
    }

    /// Notes that the log is on the device.
    pub fn note_log_synced(&mut self) {
        self.synced = self.attempted();
        self.log_synced = self.attempted();
    }

    /// Notes that everything is in tables.
    pub fn note_flushed(&mut self) {
        self.tables.note_flush(self.attempted());
        self.note_closed();
    }

    /// Notes that everything is in tables or in a log that was closed. Writes without log are then
    /// in a manifest of their own, with all before them: "flushes of `disable_wal` writes are never
    /// lost this way".
    pub fn note_closed(&mut self) {
        let unlogged = self.commits.iter().rposition(|commit| !commit.logged);
        self.renewed = self.renewed.max(unlogged.map_or(0, |last| last + 1));
        self.synced = self.attempted();
        self.flushed = self.attempted();
        self.note_listed();
    }

    /// Notes that the order of tables may not say any more how old they are.
    pub fn note_table_order_unknown(&mut self) {
        self.tables = Tables::unknown();
    }

    /// Notes that a manifest of its own was written behind everything so far.
    pub fn note_renewed(&mut self) {
        self.renewed = self.attempted();
        self.note_listed();
    }

    fn note_listed(&mut self) {
        self.vouched = self.attempted();
        self.listed = self.attempted();
    }

    /// Whether the death of the process would lose what was acknowledged.
    pub fn holds_unlogged(&self) -> bool {
        self.commits[self.flushed..].iter().any(|commit| !commit.logged)
    }

    /// Moves the clock ahead.
    pub fn tick(&mut self, milliseconds: u64) {
        self.set_now(self.now + milliseconds);
    }

    /// Sets it back: "expired entries that are still there are visible again; those that were given
    /// back are not". Which ones are, only the database can tell.
    pub fn turn_back(&mut self, milliseconds: u64) {
        self.set_now(self.now - milliseconds);
    }

    fn set_now(&mut self, now: u64) {
        self.now = now;
        self.latest = self.latest.max(now);
        self.clock.note(self.model.journal().map_or(0, |journal| journal.events.len()), now);
        self.model.set_now(now);
    }

    /// Notes what the process that writes shows, where that is not for the writes to tell.
    pub fn note_what_is_seen(&mut self, found: &State) {
        note_seen_state(&mut self.model, found);
    }

    /// Forgets what has expired: the clock stands still from now on.
    pub fn forget_expired(&mut self) {
        for state in &mut self.states {
            state.retain(|_, held| held.expiry > self.now);
        }
    }

    /// The question that goes with a write.
    pub fn question(&self, write: &Write, expected: Expected) -> Option<Question> {
        Question::of(write, expected, &self.model)
    }

    /// What it must be answered, and what that writes.
    pub fn right(&self, question: &Question) -> Right {
        question.right(&self.model)
    }

    /// Notes that a synced call has declined to write: "with `sync`, what it has seen is durable
    /// when it returns", which is the last write to the key, if the log has it, and all before.
    pub fn note_seen(&mut self, keyspace: usize, key: &[u8]) {
        let order = self.model.order(keyspace);
        let touches = |write: &Write| write.keyspace == keyspace && order.contains(&write.touched(), key);
        let last = self.commits.iter().rposition(|commit| commit.writes.iter().any(touches));
        if let Some(last) = last.filter(|&last| self.commits[last].logged) {
            self.synced = self.synced.max(last + 1);
            self.log_synced = self.log_synced.max(last + 1);
        }
    }

    /// The keys to look up, which are there or not as a state says: every one that any of the
    /// states holds or some write was to change, and a few that none was.
    pub fn places(&self) -> BTreeSet<Place> {
        let held = self.states.iter().flat_map(|state| state.keys().cloned());
        let strange = (0..NAMES.len()).flat_map(|keyspace| strangers(keyspace, &self.tried, self.attempted()));
        held.chain(self.tried.iter().cloned()).chain(strange).collect()
    }

    /// The number of commits that a state holds, if it is one of those allowed.
    pub fn find(&self, state: &State, least: usize) -> Checked<usize> {
        let whole = (least..self.states.len()).rev().find(|&count| self.agrees(count, state));
        let found = whole.or_else(|| {
            let right = self.holds_unlogged().then(|| self.right_where_unlogged_are_lost(state, least));
            right.and_then(|right| right.iter().rposition(|is_right| *is_right))
        });
        found.ok_or_else(|| {
            let (near, newest) = (self.newest(), self.attempted());
            let counter = |state: &State| state.get(&(COUNTER.0, COUNTER.1.to_vec())).cloned();
            format!(
                "the contents are not those after any of {least}..={newest} commits (counter {:?}, newest {:?}); against \
                 the newest: {}; against the oldest allowed: {}",
                counter(state).map(|held| shown(&held.value)),
                counter(near).map(|held| shown(&held.value)),
                self.differs_after(newest, state).unwrap_or_default(),
                self.differs_after(least.min(newest), state).unwrap_or_default(),
            )
        })
    }
}

#[cfg(test)]
mod tests;
