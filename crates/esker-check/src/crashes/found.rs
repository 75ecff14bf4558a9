//! What is found after something has died, and the ways to look at it.

use crate::Checked;
use crate::faults::{Course, recovery_fails};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Step, is_fading};
use crate::powerloss::session::{Ground, Session, checkpoint_path, with_operators};
use crate::powerloss::{Examination, Loss};
use crate::random::Random;
use crate::simulated::MEMORY_PATH;
use crate::state::{State, database_state, difference, read_gets, read_state};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error};
use std::sync::atomic::Ordering;

/// What is taken, and how the rest is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// It is opened, holds what it should, and goes on.
    Lost(Loss),
    /// By a disk that harms the neighbours of what it writes, in units of so many bytes.
    Torn(usize, u64),
    /// It is opened for reading, before it is recovered.
    ReadOnly(Loss),
    /// It is recovered by a machine whose clock is so many milliseconds ahead, or behind, and only
    /// then by one whose clock is right.
    OtherClock(Loss, i64),
    /// It is recovered by a machine whose clock is so many milliseconds behind, which goes on with
    /// it.
    EarlierClock(Loss, u64),
    /// It is recovered while a call fails, and then again.
    RecoveryFails(Loss),
}

impl Found {
    /// Whether a seed says what is taken.
    pub fn is_random(self) -> bool {
        match self {
            Found::Torn(..) => true,
            Found::Lost(loss)
            | Found::ReadOnly(loss)
            | Found::OtherClock(loss, _)
            | Found::EarlierClock(loss, _)
            | Found::RecoveryFails(loss) => matches!(loss, Loss::Machine(CrashMode::Random, _)),
        }
    }

    /// The same with another seed.
    pub fn varied(self, more: u64) -> Found {
        let vary = |loss| match loss {
            Loss::Machine(mode, seed) => Loss::Machine(mode, seed.wrapping_add(more)),
            other => other,
        };
        match self {
            Found::Torn(unit, seed) => Found::Torn(unit, seed.wrapping_add(more)),
            Found::Lost(loss) => Found::Lost(vary(loss)),
            Found::ReadOnly(loss) => Found::ReadOnly(vary(loss)),
            Found::OtherClock(loss, milliseconds) => Found::OtherClock(vary(loss), milliseconds),
            Found::EarlierClock(loss, milliseconds) => Found::EarlierClock(vary(loss), milliseconds),
            Found::RecoveryFails(loss) => Found::RecoveryFails(vary(loss)),
        }
    }

    /// Looks at what a death has left in that way.
    pub fn examine(
        self,
        (env, progress): (&MemEnv, &Progress),
        course: Course<'_>,
        examination: &Examination<'_>,
        random: &mut Random,
    ) -> Checked<()> {
        let checked = match self {
            Found::Lost(loss) => return examination.examine(&loss.image(env), loss, progress, random, 2),
            Found::Torn(unit, seed) => {
                check_torn(&env.crash(&CrashMode::TornNeighbours(unit), seed), progress, examination)
            }
            Found::ReadOnly(loss) => {
                let image = loss.image(env);
                check_unfinished(&image, course, progress)
                    .and_then(|()| check_read_only(&image, loss, progress, examination))
            }
            // Threads may merge what they take for expired, and give it back.
            Found::OtherClock(..) if course.threaded => Ok(()),
            // The first of the two would make it anew.
            Found::OtherClock(..) if progress.destroying => Ok(()),
            Found::OtherClock(loss, milliseconds) => {
                check_other_clock(&loss.image(env), loss, progress, examination, milliseconds)
            }
            Found::EarlierClock(loss, milliseconds) => {
                let mut earlier = progress.clone();
                earlier.turn_back(milliseconds);
                examination.examine(&loss.image(env), loss, &earlier, random, 1)
            }
            Found::RecoveryFails(loss) => {
                return recovery_fails(&loss.image(env), loss, progress, examination, random);
            }
        };
        checked.map_err(|what| format!("{self:?}: {what}"))
    }
}

/// Such a disk may take the last synced records of the log and of the manifest ("Where it tears a
/// sector, the last synced record can go with it", durability.md), or leave a database that says
/// that it is damaged. What the first record of a manifest holds, or says was synced, is not among
/// them.
fn check_torn(image: &MemEnv, progress: &Progress, examination: &Examination<'_>) -> Checked<()> {
    let told = |error: Error| match error {
        Error::Corruption { .. } => Ok(()),
        other => Err(format!("it neither opens nor says that it is damaged: {other}")),
    };
    let mut before = progress.clone();
    // A flush can be torn away, whose writes are flushed together with later ones then.
    before.note_table_order_unknown();
    let ground = Ground::new(examination.options, image.clone()).keeping(progress.kept);
    let session = match Session::open(&ground, &mut before) {
        Ok(session) => session,
        Err(error) => return told(error),
    };
    examination.totals.power_images.fetch_add(1, Ordering::Relaxed);
    let state = match read_state(session.db(), &NAMES)? {
        Ok(state) => state,
        Err(error) => return told(error),
    };
    if let Err(error) = read_gets(session.db(), &NAMES, &state, &before.places())? {
        return told(error);
    }
    // A repair of that promises nothing exact.
    if !progress.damaged {
        before.find(&state, before.renewed)?;
    }
    Ok(())
}

/// Nothing is recovered, and yet everything is there. Nothing is written: "Opened read-only it
/// needs none" (C8).
fn check_read_only(image: &MemEnv, loss: Loss, progress: &Progress, examination: &Examination<'_>) -> Checked<()> {
    let env = image.kill();
    let before = env.mutations();
    let options = Ground::new(examination.options, env.clone()).options_at(progress.now);
    let opened = Db::open_read_only(MEMORY_PATH, options);
    let written = env.mutations() - before;
    if written > 0 {
        return Err(format!("opened for reading only, it made {written} calls that write"));
    }
    let least = loss.least(progress);
    let db = match opened {
        Ok(db) => db,
        // Without the file that names the manifest there is nothing to read until it is repaired.
        Err(Error::NotFound { .. } | Error::Corruption { .. }) if progress.damaged => return Ok(()),
        // It was being made; or everything in it was dropped, and to a repair without manifest it
        // was one that is being made, which the next open makes anew.
        Err(Error::NotFound { .. }) if progress.may_be_empty(least) => return Ok(()),
        // It was being removed.
        Err(Error::NotFound { .. }) if progress.destroying => return Ok(()),
        Err(error) => return Err(format!("it does not open for reading: {error}")),
    };
    let db = with_operators(db).map_err(|error| format!("the operators: {error}"))?;
    let state = database_state(&db, &NAMES)?;
    progress.find(&state, least)?;
    read_gets(&db, &NAMES, &state, &progress.places())?.map_err(|error| format!("a get failed: {error}"))?;
    let options = Ground::new(examination.options, env.clone()).options_at(progress.now);
    let checked = Db::verify_directory(MEMORY_PATH, options, &mut |_| {});
    checked.map_err(|error| format!("a check of the directory finds damage where there is none: {error}"))?;
    if env.mutations() == before { Ok(()) } else { Err("a check of the directory has written to it".to_string()) }
}

/// "Recovery discards nothing on the word of a clock" (C7), and "If the clock steps back, expired
/// entries that are still there are visible again" (semantics.md).
fn check_other_clock(
    image: &MemEnv,
    loss: Loss,
    progress: &Progress,
    examination: &Examination<'_>,
    milliseconds: i64,
) -> Checked<()> {
    let ground = Ground::new(examination.options, image.kill()).keeping(progress.kept);
    let mut other = progress.clone();
    other.now = progress.now.saturating_add_signed(milliseconds);
    let session = Session::open(&ground, &mut other).map_err(|error| format!("it does not open: {error}"))?;
    let found = database_state(session.db(), &NAMES)?;
    read_gets(session.db(), &NAMES, &found, &progress.places())?.map_err(|error| format!("a get failed: {error}"))?;
    drop(session);

    let mut right = progress.clone();
    right.damaged = other.damaged;
    let session = Session::open(&ground, &mut right).map_err(|error| format!("the second opening: {error}"))?;
    let state = database_state(session.db(), &NAMES)?;
    // Where it was repaired, the first opening did that: the order of tables is known to neither.
    progress.find(&state, loss.least(progress)).map_err(|what| format!("after the other clock: {what}"))?;
    // Whatever lives by the later of the two clocks was visible by both.
    let later = progress.now.max(other.now);
    let living = |state: &State| -> State {
        state
            .iter()
            .filter(|(place, held)| held.expiry > later && !is_fading(place.0))
            .map(|(place, held)| (place.clone(), held.clone()))
            .collect()
    };
    if let Some(what) = difference(&living(&state), &living(&found)) {
        return Err(format!("by the other clock: {what}"));
    }
    match found.iter().find(|(_, held)| held.expiry <= other.now) {
        Some((place, held)) => {
            Err(format!("{place:?} was visible at {} and had expired at {}", other.now, held.expiry))
        }
        None => Ok(()),
    }
}

/// A checkpoint in which its maker died is refused, or it is whole.
fn check_unfinished(image: &MemEnv, course: Course<'_>, progress: &Progress) -> Checked<()> {
    let numbers = course.steps.iter().filter_map(|step| match step {
        Step::Checkpoint(number, _) => Some(*number),
        _ => None,
    });
    let former = progress.former_checkpoints.iter().map(|(number, _)| *number);
    let made: Vec<usize> = progress.checkpoints.iter().map(|(number, _)| *number).chain(former).collect();
    for number in numbers.filter(|number| !made.contains(number)) {
        let options = Ground::new(course.options, image.kill()).options_at(progress.now).create_if_missing(false);
        let Ok(db) = Db::open(checkpoint_path(number), options).and_then(with_operators) else { continue };
        let state = database_state(&db, &NAMES)?;
        if let Some(what) = progress.differs_after(progress.attempted(), &state) {
            return Err(format!("checkpoint {number} was not finished, and opens with another state: {what}"));
        }
    }
    Ok(())
}
