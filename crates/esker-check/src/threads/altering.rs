//! A thread that gives a keyspace other names, other settings and loads of pairs, beside all
//! others.
//!
//! Each generation does this, in this order:
//!
//! 1. gives the keyspace its other name,
//! 2. sets the time to live by default: none at first, then another one each time,
//! 3. puts a claim for its number under one of the keys of the load,
//! 4. loads its number under all of them,
//! 5. puts its number behind the load, and adds one to a count, in one batch,
//! 6. waits a moment, and now and then gives the keyspace another merge operator, which adds as the
//!    one before does.
//!
//! So what a reader finds tells how far the generation was, and each expiry tells under which
//! setting it was written. The keyspaces of the writers' sum and votes get other settings, too,
//! while others merge there: if an operand was lost or counted twice, the sum shows it.

use super::stored::{NOW, number};
use crate::Checked;
use crate::random::Random;
use crate::state::time;
use esker::merge::{Int64Add, UInt64Add};
use esker::{Change, ChangeOperation, Db, Error, Expiry, Keyspace, KeyspaceOptions, Slice, Snapshot, Ttl};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const NAMES: [&str; 2] = ["altered", "altered, renamed"];
/// The keys of a load.
const KEYS: [&str; 6] = ["pair0", "pair1", "pair2", "pair3", "pair4", "pair5"];
/// Where among them the claim is.
const CLAIMED: usize = 3;
/// What a claim has besides the number.
const CLAIM: u64 = 1 << 63;
/// These keys are between those of a load, so that memory has something where it goes.
const BEHIND: &str = "pair1, behind";
const COUNT: &str = "pair4, count";
/// The generation from which on entries can expire.
const FIRST_LIVES: u64 = 4;
/// How often the first time to live may be refused. Each snapshot that is in its way ends soon.
const MOST_REFUSALS: u32 = 10_000;
/// How often the votes and the sum get other settings: one in so many generations. While others
/// merge all the time, which they do into the sum, that takes long and is refused.
const SUMS_IN_TURN: [usize; 2] = [4, 32];

/// What the others know of it: the numbers of the last generation whose steps were done.
#[derive(Default)]
pub(super) struct Altering {
    begun: AtomicU64,
    renamed: AtomicU64,
    set: AtomicU64,
    loaded: AtomicU64,
    finished: AtomicU64,
    /// How many merge operators were replaced, of this keyspace and of those of the sums.
    operators: AtomicU64,
}

/// What must be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    renamed: u64,
    set: u64,
    loaded: u64,
    finished: u64,
    /// Writes that were not synced may be lost, settings that came behind them are not.
    lost_power: bool,
}

/// How far a generation is, as a reader finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The last one whose load is there.
    loaded: u64,
    /// The next one has made its claim.
    is_claimed: bool,
    /// The last one has not put its number behind the load.
    is_unfinished: bool,
}

fn name(generation: u64) -> &'static str {
    NAMES[(generation % 2) as usize]
}

fn life(generation: u64) -> Option<Duration> {
    (generation >= FIRST_LIVES).then(|| Duration::from_secs(3600 * generation))
}

fn ttl(generation: u64) -> Ttl {
    match life(generation) {
        None => Ttl::Disabled,
        default => Ttl::Enabled { default },
    }
}

/// The expiry of what a generation writes.
fn expiry(generation: u64) -> Expiry {
    life(generation).map_or(Expiry::Never, |life| Expiry::At(time(NOW) + life))
}

fn failed(error: Error) -> String {
    format!("a call on the altered keyspace failed: {error}")
}

/// The keyspace, under whatever name it has.
pub(super) fn existing(db: &Db) -> esker::Result<Keyspace> {
    db.existing_keyspace(NAMES[0]).or_else(|_| db.existing_keyspace(NAMES[1]))
}

/// The same, created if it is missing.
pub(super) fn open(db: &Db) -> esker::Result<Keyspace> {
    existing(db).or_else(|_| db.keyspace(name(0), KeyspaceOptions::default().merge_operator(UInt64Add)))
}

/// The keyspace is listed once, under one of its names.
pub(super) fn check_names(db: &Db) -> Checked<()> {
    let names = db.keyspaces();
    match names.iter().filter(|name| NAMES.contains(&name.as_str())).count() {
        1 => Ok(()),
        count => Err(format!("{count} of {NAMES:?} are among {names:?}")),
    }
}

/// Gives a keyspace the operator that adds in the other way. False if operands stay, because a
/// reader sees what is below them, or others merge.
fn replace_operator(keyspace: &Keyspace) -> Checked<bool> {
    let (outcome, now) = match keyspace.merge_operator().as_deref() {
        Some("uint64add") => (keyspace.set_merge_operator(Int64Add), "int64add"),
        _ => (keyspace.set_merge_operator(UInt64Add), "uint64add"),
    };
    let found = keyspace.merge_operator();
    match outcome {
        Ok(()) if found.as_deref() == Some(now) => Ok(true),
        Ok(()) => Err(format!("the operator is {found:?}, and was set to {now}")),
        Err(Error::InvalidArgument { .. }) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

impl Altering {
    /// What survives from now on: the end of the process, or also a loss of power.
    pub(super) fn least(&self, lost_power: bool) -> Least {
        let of = |number: &AtomicU64| number.load(Ordering::Acquire);
        // In the order in which they grow, from the last to the first.
        let finished = if lost_power { 0 } else { of(&self.finished) };
        let (loaded, set, renamed) = (of(&self.loaded), of(&self.set), of(&self.renamed));
        Least { renamed, set, loaded, finished, lost_power }
    }

    /// How many loads were made.
    pub(super) fn loads(&self) -> u64 {
        self.loaded.load(Ordering::Acquire)
    }

    /// The last generation whose steps were all done.
    pub(super) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }

    /// How many operators were replaced.
    pub(super) fn operators(&self) -> u64 {
        self.operators.load(Ordering::Acquire)
    }

    /// Whether everything was done at least once.
    pub(super) fn is_each_done(&self) -> bool {
        self.loads() > FIRST_LIVES
    }

    /// Alters `altered`, and now and then those of the votes and of the sum, again and again.
    pub(super) fn alter(
        &self,
        (db, altered, sums): (&Db, &Keyspace, [&Keyspace; 2]),
        stop: &AtomicBool,
        mut random: Random,
    ) -> Checked<()> {
        for generation in 1u64.. {
            self.begun.store(generation, Ordering::Release);
            altered.rename(name(generation)).map_err(failed)?;
            self.renamed.store(generation, Ordering::Release);
            check_rename(db, altered, generation)?;
            if !set_ttl_again(altered, generation, stop, MOST_REFUSALS)? {
                return Ok(());
            }
            self.set.store(generation, Ordering::Release);
            self.load(db, altered, generation)?;
            for (sum, one_of) in sums.into_iter().zip(SUMS_IN_TURN) {
                if random.below(one_of) == 0 {
                    self.operators.fetch_add(u64::from(replace_operator(sum)?), Ordering::AcqRel);
                    set_ttl_of_sum(sum, generation)?;
                }
            }
            if stop.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(Duration::from_millis(random.below(8) as u64));
            // Not right behind the merge: there is nearly always a snapshot from before it.
            if random.below(4) == 0 {
                self.operators.fetch_add(u64::from(replace_operator(altered)?), Ordering::AcqRel);
            }
        }
        Ok(())
    }

    /// Steps 3 to 5.
    fn load(&self, db: &Db, altered: &Keyspace, generation: u64) -> Checked<()> {
        altered.put(KEYS[CLAIMED], (CLAIM | generation).to_le_bytes()).map_err(failed)?;
        let report = altered.ingest(KEYS.map(|key| (key, generation.to_le_bytes()))).map_err(failed)?;
        if report.entries != KEYS.len() as u64 {
            return Err(format!("{report:?} of {} pairs", KEYS.len()));
        }
        self.loaded.store(generation, Ordering::Release);
        let mut batch = db.batch();
        let put = batch.put(altered, BEHIND, generation.to_le_bytes());
        put.and_then(|()| batch.merge(altered, COUNT, 1u64.to_le_bytes())).map_err(failed)?;
        batch.commit().map_err(failed)?;
        self.finished.store(generation, Ordering::Release);
        Ok(())
    }

    /// Whether a snapshot, which was made before this call, shows one moment between two steps, not
    /// before those of `least`.
    pub(super) fn check(&self, altered: &Keyspace, snapshot: &Snapshot, least: &Least) -> Checked<Seen> {
        let begun = self.begun.load(Ordering::Acquire);
        let read = |key: &str| number(snapshot.get(altered, key));
        let loaded = read(KEYS[0])?;
        let others = KEYS.iter().enumerate().filter(|(place, _)| *place != CLAIMED);
        for (_, key) in others.clone() {
            let other = read(key)?;
            if other != loaded {
                return Err(format!("half a load is visible: {} is {loaded}, and {key} {other}", KEYS[0]));
            }
        }
        let (claimed, behind, count) = (read(KEYS[CLAIMED])?, read(BEHIND)?, read(COUNT)?);
        let is_claimed = claimed == (CLAIM | (loaded + 1));
        let is_unfinished = behind + 1 == loaded;
        let fits = if is_claimed { behind == loaded } else { claimed == loaded && (behind == loaded || is_unfinished) };
        let is_known = loaded >= least.loaded && behind >= least.finished && loaded <= begun;
        if !fits || !is_known || count != behind {
            return Err(format!(
                "load {loaded} is there with the claim {claimed:#x}, {behind} behind it and a count of {count}; \
                 {begun} was begun, and before there was {least:?}"
            ));
        }
        let expires = |key: &str, value: u64, generation: u64| {
            let right = (value > 0).then(|| expiry(generation));
            match snapshot.expires_at(altered, key) {
                Ok(found) if found == right => Ok(()),
                other => Err(format!("{key} of generation {generation} expires {other:?}, expected {right:?}")),
            }
        };
        others.clone().try_for_each(|(_, key)| expires(key, loaded, loaded))?;
        expires(KEYS[CLAIMED], claimed, claimed & !CLAIM)?;
        expires(BEHIND, behind, behind)?;
        // What was there before keeps what it has.
        expires(COUNT, count, 0)?;
        Ok(Seen { loaded, is_claimed, is_unfinished })
    }
}

/// Whether the name and the settings are those of what was seen, where nothing moves.
pub(super) fn check_settings(db: &Db, altered: &Keyspace, seen: &Seen, least: &Least) -> Checked<()> {
    check_names(db)?;
    let next = seen.loaded + 1;
    let possible = match seen.is_unfinished && !least.lost_power {
        _ if seen.is_claimed => next..=next,
        true => seen.loaded..=seen.loaded,
        false => seen.loaded..=next,
    };
    let (present, lives) = (altered.name(), altered.ttl());
    let fits = |renamed: u64, set: u64| {
        set <= renamed
            && renamed >= least.renamed
            && set >= least.set
            && *name(renamed) == *present
            && ttl(set) == lives
    };
    if possible.clone().any(|renamed| possible.clone().any(|set| fits(renamed, set))) {
        return Ok(());
    }
    Err(format!("{present} with {lives:?}, where there is {seen:?}, and before there was {least:?}"))
}

/// The new name is there with the same keyspace, and the former one is free.
fn check_rename(db: &Db, altered: &Keyspace, generation: u64) -> Checked<()> {
    let found = db.existing_keyspace(name(generation)).map_err(failed)?;
    let former = db.existing_keyspace(name(generation - 1));
    if found.id() == altered.id() && *altered.name() == *name(generation) && former.is_err() {
        return Ok(());
    }
    Err(format!("{} was renamed to {}, and {former:?} is there", altered.name(), name(generation)))
}

/// The refusal if operands stay, because a reader sees what is below them: the first time to live
/// folds them.
fn set_ttl(altered: &Keyspace, generation: u64) -> Checked<Option<Error>> {
    match altered.set_ttl(ttl(generation)) {
        Ok(()) if altered.ttl() == ttl(generation) => Ok(None),
        Ok(()) => Err(format!("generation {generation} has {:?}", altered.ttl())),
        Err(error @ Error::InvalidArgument { .. }) if generation == FIRST_LIVES => Ok(Some(error)),
        Err(error) => Err(failed(error)),
    }
}

/// The same until it is not refused, or was too often. False if all are to stop before.
fn set_ttl_again(altered: &Keyspace, generation: u64, stop: &AtomicBool, most_refusals: u32) -> Checked<bool> {
    let mut refusals = 0;
    while let Some(error) = set_ttl(altered, generation)? {
        refusals += 1;
        if refusals == most_refusals {
            return Err(format!("the first time to live was refused {refusals} times, at last so: {error}"));
        }
        if stop.load(Ordering::Acquire) {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

fn set_ttl_of_sum(sum: &Keyspace, generation: u64) -> Checked<()> {
    let before = sum.ttl();
    match sum.set_ttl(Ttl::Enabled { default: Some(Duration::from_secs(3600 * generation)) }) {
        Err(Error::InvalidArgument { .. }) if before == Ttl::Disabled => Ok(()),
        outcome => outcome.map_err(failed),
    }
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Claimed(u64),
    Loaded(u64),
    Finished(u64),
}

/// What the changes have told of the keyspace: each generation's claim, load and number, once and
/// in order, under its name of then.
#[derive(Debug, Default)]
pub(super) struct Told(Option<Stage>);

impl Told {
    /// Takes the next batch.
    pub(super) fn take(&mut self, changes: &[Change]) -> Checked<()> {
        for change in changes.iter().filter(|change| NAMES.contains(&&*change.keyspace)) {
            let (before, known) = (self.0, self.take_one(change)?);
            let Some(next) = known else { continue };
            let follows = match (before, next) {
                (None, _) => true,
                (Some(Stage::Finished(last)), Stage::Claimed(next)) => next == last + 1,
                (Some(Stage::Claimed(last)), Stage::Loaded(next)) => next == last,
                (Some(Stage::Loaded(last)), Stage::Finished(next)) => next == last,
                _ => false,
            };
            let (Stage::Claimed(generation) | Stage::Loaded(generation) | Stage::Finished(generation)) = next;
            if !follows || *change.keyspace != *name(generation) {
                return Err(format!("the changes go on with {next:?} behind {before:?}, in {}", change.keyspace));
            }
            self.0 = known;
        }
        Ok(())
    }

    /// Whether they end with the generation that was finished last, as far as there were any.
    pub(super) fn check_end(&self, finished: u64) -> Checked<()> {
        match self.0 {
            None => Ok(()),
            Some(Stage::Finished(last)) if last == finished => Ok(()),
            Some(stage) => Err(format!("the changes end with {stage:?}, and generation {finished} was finished")),
        }
    }

    /// How far a change takes the keyspace; none if it tells nothing of that.
    fn take_one(&self, change: &Change) -> Checked<Option<Stage>> {
        let generation = |value: &Slice| number(Ok(Some(value.clone()))).map(|value| value & !CLAIM);
        Ok(match (&change.operation, self.0) {
            (ChangeOperation::Put { key, value, .. }, _) if *key == *KEYS[CLAIMED] => {
                Some(Stage::Claimed(generation(value)?))
            }
            (ChangeOperation::Put { key, value, .. }, _) if *key == *BEHIND => {
                Some(Stage::Finished(generation(value)?))
            }
            (ChangeOperation::Load, Some(Stage::Claimed(generation))) => Some(Stage::Loaded(generation)),
            // Of the first one that is read the number is not known.
            (ChangeOperation::Load, None) => None,
            (ChangeOperation::Load, Some(stage)) => return Err(format!("the changes have a load behind {stage:?}")),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
