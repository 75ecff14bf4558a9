//! What is found after something has died, and the ways to look at it.

use crate::Checked;
use crate::faults::recovery_fails;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::NAMES;
use crate::powerloss::session::{Ground, Session};
use crate::powerloss::{Examination, Loss};
use crate::random::Random;
use crate::state::{read_gets, read_state};
use esker::Error;
use esker::env::mem::{CrashMode, MemEnv};
use std::sync::atomic::Ordering;

/// What is taken, and how the rest is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// It is opened, holds what it should, and goes on.
    Lost(Loss),
    /// By a disk that harms the neighbours of what it writes, in units of so many bytes.
    Torn(usize, u64),
    /// It is recovered while a call fails, and then again.
    RecoveryFails(Loss),
}

impl Found {
    /// Whether a seed says what is taken.
    pub fn is_random(self) -> bool {
        match self {
            Found::Torn(..) => true,
            Found::Lost(loss) | Found::RecoveryFails(loss) => {
                matches!(loss, Loss::Machine(CrashMode::Random, _))
            }
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
            Found::RecoveryFails(loss) => Found::RecoveryFails(vary(loss)),
        }
    }

    /// Looks at what a death has left in that way.
    pub fn examine(
        self,
        (env, progress): (&MemEnv, &Progress),
        examination: &Examination<'_>,
        random: &mut Random,
    ) -> Checked<()> {
        let checked = match self {
            Found::Lost(loss) => return examination.examine(&loss.image(env), loss, progress, random, 2),
            Found::Torn(unit, seed) => {
                check_torn(&env.crash(&CrashMode::TornNeighbours(unit), seed), progress, examination)
            }
            Found::RecoveryFails(loss) => {
                return recovery_fails(&loss.image(env), loss, progress, examination, random);
            }
        };
        checked.map_err(|what| format!("{self:?}: {what}"))
    }
}

/// Such a disk may take the last synced records ("Where it tears a sector, the last synced record can go with it", durability.md), or leave a database that
/// says that it is damaged. What the manifest says was synced is not among them: "a flush or an ingest: the manifest says how far the log was synced for it".
fn check_torn(image: &MemEnv, progress: &Progress, examination: &Examination<'_>) -> Checked<()> {
    let told = |error: Error| match error {
        Error::Corruption { .. } => Ok(()),
        other => Err(format!("it neither opens nor says that it is damaged: {other}")),
    };
    let session = match Session::open(&Ground::new(examination.options, image.clone()), &mut progress.clone()) {
        Ok(session) => session,
        Err(error) => return told(error),
    };
    examination.totals.power_images.fetch_add(1, Ordering::Relaxed);
    let state = match read_state(session.db(), &NAMES)? {
        Ok(state) => state,
        Err(error) => return told(error),
    };
    if let Err(error) = read_gets(session.db(), &NAMES, &state, &progress.places())? {
        return told(error);
    }
    // A repair of that promises nothing exact.
    if !progress.damaged {
        progress.find(&state, progress.listed)?;
    }
    Ok(())
}
