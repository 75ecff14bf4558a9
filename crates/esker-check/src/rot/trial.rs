//! One harm to one database: it is opened, asked, worked on, and asked again.

use super::harm::{Damage, Harm};
use super::specimen::Specimen;
use super::witness::{Pair, Witness};
use crate::Checked;
use crate::model::Operator;
use crate::orders::order_of;
use crate::powerloss::script::{KEYSPACES, NAMES};
use crate::random::Random;
use crate::state::{find_keyspace, shown};
use esker::env::mem::MemEnv;
use esker::{CheckpointMode, Db, Error};

/// Of so many in a hundred databases the directory is checked before they are opened.
const CHECKED_PERCENT: usize = 25;
/// So many in a hundred of those that were worked on are repaired, beside the usual opening.
const REPAIRED_PERCENT: usize = 15;

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
    let mut witness = specimen.witness_behind(&damages, &env);
    let has_undone = specimen.may_have_undone(&env);
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
    match witness.question(&db, &specimen.places) {
        Err(_) if has_undone => return Ok(Outcome::Allowed),
        asked => asked?,
    }
    if let (true, Some(error)) = (is_healthy, &witness.damage) {
        return Err(format!("a check finds nothing, and {} answers are errors, as {error}", witness.errors));
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
    let mut witness = specimen.witness(&[]);
    witness.question(&db, &specimen.places)?;
    if witness.errors > 0 { Err("errors with the right bytes back".to_string()) } else { Ok(()) }
}

/// Opens, reads a little, harms, then works and asks.
pub fn harm_open(specimen: &Specimen, harm: &Harm, random: &mut Random) -> Checked<Outcome> {
    let env = specimen.image.kill();
    let db = specimen.open(&env).map_err(|error| format!("it does not open: {error}"))?;
    let mut witness = specimen.witness(&[]);
    if random.percent(70) {
        witness.question(&db, &specimen.places)?;
    }
    // The opening has made files and removed others.
    let files = Specimen::files(&env);
    let still = files.iter().any(|(path, _)| *path == harm.path);
    let harm = if still { harm.clone() } else { harm.elsewhere(&files, random) };
    if harm.apply(&env, &[]).is_empty() {
        return Ok(Outcome::Nothing);
    }
    // A mapped block that was checked before may be read as it is now: the third exception. What
    // jobs make of it may not.
    if !specimen.checked_once {
        witness.question(&db, &specimen.places)?;
    }
    let worked = work_on(db, specimen, &env, &mut witness, random);
    worked.map_err(|what| if still { what } else { format!("{what} (that file was gone: {harm:?})") })?;
    Ok(Outcome::of(&witness))
}

/// A few calls that read or write everything, then an opening; asked again at the end.
fn work_on(db: Db, specimen: &Specimen, env: &MemEnv, witness: &mut Witness<'_>, random: &mut Random) -> Checked<()> {
    let (mut failed, mut loaded) = (0, None);
    for number in 0..random.between(1, 3) {
        let outcome = match random.below(8) {
            0..=1 => db.compact(),
            2 => db.flush(),
            3 => db.wait_idle(),
            4 => db.verify().map(|_| ()),
            5 => checkpoint(&db, number, (specimen, env), witness)?,
            6 if loaded.is_none() => match load(&db, specimen, random) {
                Some((load, outcome)) => {
                    witness.note_load(&load, outcome.is_err());
                    loaded = Some((load, outcome.is_err()));
                    outcome
                }
                None => Ok(()),
            },
            _ => KEYSPACES
                .iter()
                .filter(|(_, operator, _)| *operator != Operator::Longest)
                .filter_map(|(name, ..)| find_keyspace(&db, name).ok())
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
    let (load, has_failed) = loaded.unwrap_or_default();
    if has_failed {
        // That handle did not show it, and the next one may: "may or may not be there after the
        // next open" (C5).
        witness.note_load(&load, true);
    }
    if random.percent(REPAIRED_PERCENT) {
        repair(specimen, &env.kill(), witness, &load)?;
    }
    match specimen.open(&env.kill()) {
        Ok(db) => witness.question(&db, &specimen.places),
        Err(_) => {
            witness.errors += 1;
            Ok(())
        }
    }
}

/// A checkpoint that shares no file with the database. "Everything that is copied is checked": if
/// there is one, it opens and answers everything.
fn checkpoint(
    db: &Db,
    number: usize,
    (specimen, env): (&Specimen, &MemEnv),
    witness: &mut Witness<'_>,
) -> Checked<esker::Result<()>> {
    let path = format!("/copy-{number}");
    if let Err(error) = db.checkpoint_with(&path, CheckpointMode::Copy) {
        return Ok(Err(error));
    }
    let copy = specimen.open_at(&path, env).map_err(|error| format!("a checkpoint does not open: {error}"))?;
    let before = witness.errors;
    witness.question_contents(&copy, &specimen.places).map_err(|what| format!("a checkpoint: {what}"))?;
    match witness.errors - before {
        0 => Ok(Ok(())),
        errors => Err(format!("a checkpoint was made, and {errors} of its answers are errors")),
    }
}

/// Loads new values for some keys of one keyspace, if that is there.
fn load(db: &Db, specimen: &Specimen, random: &mut Random) -> Option<(Vec<Pair>, esker::Result<()>)> {
    let (index, _) = *specimen.places.iter().nth(random.below(specimen.places.len().max(1)))?;
    let keyspace = find_keyspace(db, NAMES[index]).ok()?;
    // Counters have eight bytes.
    let is_counter = matches!(KEYSPACES[index].1, Operator::UInt64Add | Operator::Int64Add);
    let value = random.bytes(if is_counter { 8 } else { 150 });
    let all = specimen.places.range((index, Vec::new())..(index + 1, Vec::new()));
    let mut load: Vec<Pair> = all.filter(|_| random.percent(50)).map(|place| (place.clone(), value.clone())).collect();
    load.sort_by(|((_, a), _), ((_, b), _)| order_of(NAMES[index]).compare(a, b));
    let outcome = keyspace.ingest(load.iter().map(|((_, key), value)| (key, value)));
    Some((load, outcome.map(drop)))
}

/// A repair instead of the opening. One that finds nothing wrong has changed nothing. After any
/// other the database opens.
fn repair(specimen: &Specimen, env: &MemEnv, witness: &mut Witness<'_>, load: &[Pair]) -> Checked<()> {
    let Ok(report) = specimen.repair(env) else {
        witness.errors += 1;
        return Ok(());
    };
    let db = specimen.open(env).map_err(|error| format!("it was repaired, and does not open: {error}"))?;
    if report.healthy {
        return witness.question(&db, &specimen.places).map_err(|what| format!("nothing to repair: {what}"));
    }
    check_repaired(&db, specimen, load).map_err(|what| format!("{what}; the repair said: {report}"))
}

/// "An older value, or a deleted key, can show again", but no value that its key never had. What is
/// merged of operands that are lost, or count twice, is in no state: so this is checked where there
/// never was a merge operator.
fn check_repaired(db: &Db, specimen: &Specimen, load: &[Pair]) -> Checked<()> {
    for (index, (name, operator, _)) in KEYSPACES.iter().enumerate() {
        let now = specimen.progress.standing.present(index).operator;
        if *operator != Operator::None || now != Operator::None {
            continue;
        }
        let Ok(keyspace) = find_keyspace(db, name) else { continue };
        if keyspace.merge_operator().is_some() {
            continue;
        }
        // An error is an answer too, and ends the scan.
        for (key, value) in keyspace.iter().map_while(Result::ok) {
            let (place, value) = ((index, key.to_vec()), value.to_vec());
            let is_loaded = load.iter().any(|(loaded, new)| *loaded == place && *new == value);
            if !is_loaded && !specimen.has_held(&place, &value) {
                return Err(format!("{name}/{} is {}, which it never was", shown(&place.1), shown(&value)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixed::{fixed, with_changes_kept};
    use super::super::harm::How;
    use super::super::specimen::{End, Tables, perform};
    use super::*;
    use crate::powerloss::script::Step;
    use crate::powerloss::{option_variants, put};
    use crate::simulated::MEMORY_PATH;
    use crate::state::Durability;
    use esker::Options;
    use esker::env::mem::CrashMode;
    use std::path::{Path, PathBuf};

    const CURRENT: &str = "CURRENT";

    fn path(name: &str) -> PathBuf {
        Path::new(MEMORY_PATH).join(name)
    }

    /// A script that drops a keyspace behind synced writes, under options.
    fn dropping() -> (Vec<Step>, Options) {
        let written = Step::Batch(vec![put("a", "1"), put("b", "2")], Durability::Sync);
        (vec![written, Step::Flush, Step::DropKeyspace(0)], option_variants().swap_remove(0).1)
    }

    /// Seen: the oracle took a drop for wrong that damage completes.
    #[test]
    fn what_was_prepared_to_be_in_force_may_be() {
        let (steps, options) = dropping();
        let prepared = path("CURRENT.tmp");
        let mut completed = 0;
        for calls in 0..perform(&steps, &options, None).env.mutations() {
            let performed = perform(&steps, &options, Some(calls));
            let image = performed.env.kill();
            let Ok(specimen) = Specimen::of(image, performed, (&options, Tables::FromFiles), End::Killed) else {
                continue;
            };
            if specimen.image.file_bytes(&prepared).is_some() && specimen.image.file_bytes(&path(CURRENT)).is_some() {
                let how = How::Misdirected(prepared.clone(), 0, 512);
                let harm = Harm { path: path(CURRENT), at: 0, how };
                let outcome = harm_closed(&specimen, &harm, 0, &mut Random::new(calls));
                completed += usize::from(outcome.expect("it is allowed") == Outcome::Allowed);
            }
        }
        assert!(completed > 0, "no death lay between the making of a pointer and its use");
    }

    /// Seen: the oracle took a drop for durable that an older pointer undoes, where a power loss
    /// has brought back the manifest from before it.
    #[test]
    fn what_an_older_pointer_undoes_behind_a_power_loss_is_no_wrong_answer() {
        let (steps, options) = dropping();
        let mut performed = perform(&steps, &options, None);
        // The last is behind the close.
        performed.steps.pop();
        let (env, progress) = performed.steps.last().cloned().expect("a drop");
        performed.progress = progress;
        let image = env.crash(&CrashMode::OnlyData, 0);
        let specimen = Specimen::of(image, performed, (&options, Tables::FromFiles), End::PowerLost).expect("it opens");
        let mut undone = 0;
        for step in 0..specimen.older.len() {
            let harm = Harm { path: path(CURRENT), at: 0, how: How::Older(step) };
            let harmed = specimen.image.kill();
            harm.apply(&harmed, &specimen.older);
            undone += usize::from(specimen.may_have_undone(&harmed));
            harm_closed(&specimen, &harm, 0, &mut Random::new(0)).unwrap_or_else(|error| panic!("{step}: {error}"));
        }
        assert!(undone > 0, "no manifest came back");
    }

    /// If readers of changes were told of less than was written and of no damage, or of anything
    /// else, this would fail.
    #[test]
    fn no_damage_to_a_database_that_keeps_its_changes_gives_a_wrong_answer() {
        const SEED: u64 = 1;
        const HARMS: u64 = 400;
        let (_, specimen) = fixed(with_changes_kept()).expect("it is made");
        assert!(specimen.keeps_changes());
        let files = Specimen::files(&specimen.image);
        let (mut errors, mut allowed) = (0, 0);
        for number in 0..HARMS {
            let mut random = Random::derived(SEED, &[number]);
            let open = number % 2 == 1;
            let harm = Harm::any(&files, specimen.older.len(), open, &mut random);
            let outcome = match open {
                true => harm_open(&specimen, &harm, &mut random),
                false => harm_closed(&specimen, &harm, 50, &mut random),
            };
            match outcome {
                Ok(Outcome::Error) => errors += 1,
                Ok(Outcome::Allowed) => allowed += 1,
                Ok(Outcome::Nothing) => {}
                Err(what) => panic!("seed {SEED}, number {number}, {harm:?}, while open: {open}: {what}"),
            }
        }
        assert!(errors > 20 && allowed > 0, "{errors} errors, {allowed} allowed states");
    }

    #[test]
    fn a_value_that_no_key_ever_had_is_noticed_behind_a_repair() {
        let (_, specimen) = fixed(0).expect("it is made");
        let env = specimen.image.kill();
        let db = specimen.open(&env).expect("it is intact");
        let keyspace = find_keyspace(&db, NAMES[0]).expect("the script has made it");
        check_repaired(&db, &specimen, &[]).expect("all of it was there once");
        keyspace.put("k1", "one").expect("it can be written to");
        check_repaired(&db, &specimen, &[]).expect("an older value may show again");
        keyspace.put("k1", "none of them").expect("it can be written to");
        assert!(check_repaired(&db, &specimen, &[]).is_err());
        let load = [((0, b"k1".to_vec()), b"none of them".to_vec())];
        check_repaired(&db, &specimen, &load).expect("it was loaded");
    }

    #[test]
    fn an_intact_database_can_be_loaded_and_copied_and_needs_no_repair() {
        let (_, specimen) = fixed(0).expect("it is made");
        let env = specimen.image.kill();
        let mut witness = specimen.witness(&[]);
        let db = specimen.open(&env).expect("it is intact");
        let some = |seed| load(&db, &specimen, &mut Random::new(seed)).filter(|(load, _)| !load.is_empty());
        let (load, outcome) = (0..).find_map(some).expect("there are keys");
        outcome.expect("it is intact");
        // None of the states that were possible before has it.
        assert!(witness.question(&db, &specimen.places).is_err());
        let mut witness = specimen.witness(&[]);
        witness.note_load(&load, false);
        checkpoint(&db, 0, (&specimen, &env), &mut witness).expect("the copy is right").expect("it is made");
        drop(db);
        repair(&specimen, &env.kill(), &mut witness, &load).expect("there is nothing to repair");
        assert_eq!(witness.errors, 0);
    }
}
