//! One harm to one database: it is opened, asked, worked on, and asked again.

use super::harm::{Damage, Harm};
use super::specimen::Specimen;
use super::witness::Witness;
use crate::Checked;
use crate::model::Operator;
use crate::powerloss::script::KEYSPACES;
use crate::random::Random;
use esker::env::mem::MemEnv;
use esker::{Db, Error};

/// Of so many in a hundred databases the directory is checked before they are opened.
const CHECKED_PERCENT: usize = 25;

/// What came of it, if there was no wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An error, of whatever call.
    Error,
    /// Every answer was that of an allowed state.
    Allowed,
    /// Nothing was damaged: the bytes are those that were there before.
    Nothing,
}

impl Outcome {
    fn of(witness: &Witness<'_>) -> Outcome {
        if witness.errors > 0 { Outcome::Error } else { Outcome::Allowed }
    }
}

/// Harms, then opens and asks, does some work in so many of a hundred cases, and asks again.
pub fn harm_closed(specimen: &Specimen, harm: &Harm, work_percent: usize, random: &mut Random) -> Checked<Outcome> {
    let env = specimen.image.kill();
    let damages = harm.apply(&env, &specimen.older);
    if damages.is_empty() {
        return Ok(Outcome::Nothing);
    }
    let mut witness = Witness { candidates: specimen.allowed(&damages), errors: 0 };
    let is_healthy = random.percent(CHECKED_PERCENT) && check(specimen, &env)?;
    let db = match specimen.open(&env) {
        Ok(db) => db,
        Err(error) if is_healthy => return Err(format!("a check finds nothing, and it does not open: {error}")),
        Err(_) => {
            if random.percent(20) {
                heal(specimen, &damages, &env)?;
            }
            return Ok(Outcome::Error);
        }
    };
    witness.question(&db, &specimen.places)?;
    if is_healthy && witness.errors > 0 {
        return Err(format!("a check finds nothing, and {} answers are errors", witness.errors));
    }
    if random.percent(work_percent) {
        work_on(db, specimen, &env, &mut witness, random)?;
    }
    Ok(Outcome::of(&witness))
}

/// Whether a check of the directory, which writes nothing there, finds nothing; it tells of what it
/// finds.
fn check(specimen: &Specimen, env: &MemEnv) -> Checked<bool> {
    let before = env.mutations();
    let (found, told) = specimen.verify_directory(env);
    if env.mutations() > before {
        return Err("a check of the directory writes".to_string());
    }
    match found {
        Ok(()) if told == 0 => Ok(true),
        Ok(()) => Err(format!("a check of the directory tells of {told} damaged places, and says that all is well")),
        Err(Error::Corruption { .. }) if told == 0 => Err("a check of the directory tells of no damage".to_string()),
        Err(_) => Ok(false),
    }
}

/// An open that fails takes nothing away that the undamaged files need.
fn heal(specimen: &Specimen, damages: &[Damage], env: &MemEnv) -> Checked<()> {
    let env = env.kill();
    for damage in damages {
        env.set_file_bytes(&damage.path, specimen.image.file_bytes(&damage.path).unwrap_or_default());
    }
    let db = specimen.open(&env).map_err(|error| format!("it does not open with the right bytes back: {error}"))?;
    let mut witness = Witness { candidates: vec![&specimen.progress.states[specimen.count]], errors: 0 };
    witness.question(&db, &specimen.places)?;
    if witness.errors > 0 { Err("errors with the right bytes back".to_string()) } else { Ok(()) }
}

/// Opens, reads a little, harms, then works and asks.
pub fn harm_open(specimen: &Specimen, harm: &Harm, random: &mut Random) -> Checked<Outcome> {
    let env = specimen.image.kill();
    let db = specimen.open(&env).map_err(|error| format!("it does not open: {error}"))?;
    let mut witness = Witness { candidates: vec![&specimen.progress.states[specimen.count]], errors: 0 };
    if random.percent(70) {
        witness.question(&db, &specimen.places)?;
    }
    // The opening has made files and removed others.
    let files = Specimen::files(&env);
    let still = files.iter().any(|(path, _)| *path == harm.path);
    let harm = if still { harm.clone() } else { Harm::any(&files, 0, true, random) };
    if harm.apply(&env, &[]).is_empty() {
        return Ok(Outcome::Nothing);
    }
    // A mapped block that was checked before may be read as it is now: the third exception. What
    // jobs make of it may not.
    if !specimen.checked_once {
        witness.question(&db, &specimen.places)?;
    }
    work_on(db, specimen, &env, &mut witness, random)?;
    Ok(Outcome::of(&witness))
}

/// A few calls that read or write everything, then an opening; asked again at the end.
fn work_on(db: Db, specimen: &Specimen, env: &MemEnv, witness: &mut Witness<'_>, random: &mut Random) -> Checked<()> {
    let mut failed = 0;
    for _ in 0..random.between(1, 3) {
        let outcome = match random.below(6) {
            0..=1 => db.compact(),
            2 => db.flush(),
            3 => db.wait_idle(),
            4 => db.verify().map(|_| ()),
            _ => KEYSPACES
                .iter()
                .filter(|(_, operator, _)| *operator != Operator::Longest)
                .filter_map(|(name, ..)| db.existing_keyspace(name).ok())
                .try_for_each(|keyspace| keyspace.compact()),
        };
        failed += u64::from(outcome.is_err());
    }
    if !specimen.checked_once {
        witness.question(&db, &specimen.places)?;
    }
    if random.percent(50) {
        failed += u64::from(db.close().is_err());
    } else {
        drop(db);
    }
    witness.errors += failed;
    match specimen.open(&env.kill()) {
        Ok(db) => witness.question(&db, &specimen.places),
        Err(_) => {
            witness.errors += 1;
            Ok(())
        }
    }
}
