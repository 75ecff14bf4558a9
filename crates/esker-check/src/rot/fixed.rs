//! The databases that a full sweep begins with: small, and each with files of every type.

use super::specimen::{End, Performed, Specimen, Tables, perform};
use crate::Checked;
use crate::feed::ALL_BYTES;
use crate::model::{Change, Ttl, Write};
use crate::powerloss::option_variants;
use crate::powerloss::script::Step;
use crate::powerloss::session::{Ground, with_operators};
use crate::powerloss::{add, put};
use crate::simulated::MEMORY_PATH;
use crate::state::Durability;
use esker::env::mem::{CrashMode, MemEnv};
use esker::{ChangeRetention, CheckpointMode, Compression, Db, Options, ReadMode};
use std::path::Path;

/// Where the script loads, and where it flushes for the last time.
const INGEST: usize = 5;
const LAST_FLUSH: usize = 7;

/// When it ends.
#[derive(Clone, Copy)]
enum Death {
    /// Closed.
    None,
    /// Not closed.
    Dropped,
    /// In the middle of the calls of a step.
    Within(usize, Loss),
    /// The last of these calls at which there are two manifests.
    BetweenManifests(usize, Loss),
    /// After a step.
    After(usize, Loss),
    /// Not closed, and then in a call that marks its directory.
    Marking(Call),
}

/// Calls that mark the directory in which they work until they are done.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    /// A repair without `CURRENT`, which was put back afterwards: what the repair has made is
    /// there, and means nothing.
    RepairUndone,
    /// The same repair with its own manifest in force, and the mark still there.
    RepairDone,
    /// A checkpoint that has its manifest in force, and the mark still there. Without that manifest
    /// no open takes it (see the test below).
    Checkpoint,
}

impl Call {
    fn mark(self) -> &'static str {
        match self {
            Call::RepairUndone | Call::RepairDone => "REPAIR",
            Call::Checkpoint => "CHECKPOINT",
        }
    }
}

#[derive(Clone, Copy)]
enum Loss {
    Process,
    Power(CrashMode, u64),
}

/// Names, for messages; how tables are read and blocks compressed; when the script ends.
const FIXED: [(&str, Tables, Compression, Death); 17] = [
    ("closed", Tables::Mapped, Compression::Lz4, Death::None),
    ("dropped", Tables::FromFiles, Compression::None, Death::Dropped),
    ("killed in a flush", Tables::MappedChecked, Compression::Lz4, Death::Within(LAST_FLUSH, Loss::Process)),
    ("without power in a flush", Tables::FromFiles, Compression::Lz4, Death::Within(LAST_FLUSH, RANDOM)),
    ("without power", Tables::MappedChecked, Compression::None, Death::After(LAST_FLUSH + 1, RANDOM)),
    ("without power and log", Tables::Mapped, Compression::Lz4, Death::After(LAST_FLUSH, NOTHING)),
    ("killed in a load", Tables::Mapped, Compression::None, Death::Within(INGEST, Loss::Process)),
    ("without power in a load", Tables::FromFiles, Compression::Lz4, Death::Within(INGEST, EVERYTHING)),
    ("without power after a load", Tables::MappedChecked, Compression::Lz4, Death::After(INGEST, NOTHING)),
    ("killed with two manifests", Tables::FromFiles, Compression::Lz4, Death::BetweenManifests(INGEST, Loss::Process)),
    (
        "without power with two manifests",
        Tables::Mapped,
        Compression::None,
        Death::BetweenManifests(INGEST, EVERYTHING),
    ),
    (USED_AGAIN, Tables::FromFiles, Compression::Lz4, Death::Dropped),
    (USED_AGAIN, Tables::FromFiles, Compression::None, Death::After(3 * ROUND + 1, RANDOM)),
    ("killed in a repair", Tables::MappedChecked, Compression::Lz4, Death::Marking(Call::RepairUndone)),
    ("killed at the end of a repair", Tables::FromFiles, Compression::None, Death::Marking(Call::RepairDone)),
    ("killed at the end of a checkpoint", Tables::Mapped, Compression::Lz4, Death::Marking(Call::Checkpoint)),
    (CHANGES_KEPT, Tables::FromFiles, Compression::Lz4, Death::Dropped),
];
/// Whether the name is that of a database whose log is the point.
const USED_AGAIN: &str = "with a log used again";
/// That of one that keeps its changes, in many segments of the log.
const CHANGES_KEPT: &str = "with its changes kept";
const RANDOM: Loss = Loss::Power(CrashMode::Random, 5);
const NOTHING: Loss = Loss::Power(CrashMode::LoseAll, 0);
const EVERYTHING: Loss = Loss::Power(CrashMode::KeepAll, 0);

/// How many there are.
pub const COUNT: u64 = FIXED.len() as u64;

/// What every database does: values short and long, three keyspaces, flushes, a load, and an end
/// that is in the log only.
fn script() -> Vec<Step> {
    let long = |key: &str, letter: &str| put(key, &letter.repeat(150));
    let batch = |writes: Vec<Write>, durability| Step::Batch(writes, durability);
    let append = |key: &str, text: &str| Write::new(2, key, Change::Merge(text.into()));
    let pairs = [("k2", "loaded"), ("k3", "loaded too"), ("m", "m")];
    let pairs = pairs.map(|(key, value)| (key.as_bytes().to_vec(), value.repeat(20).into_bytes())).to_vec();
    vec![
        batch(vec![put("k1", "one"), put("k2", "two"), long("k3", "x"), add("hits", 1)], Durability::Sync),
        batch(vec![append("log", "a"), append("log", "b"), put("gone", "soon")], Durability::Async),
        Step::Flush,
        batch(vec![put("k1", "uno"), long("k4", "y"), add("hits", 2), append("log", "c")], Durability::Sync),
        Step::Single(Write::new(0, "gone", Change::Delete), Durability::Async),
        Step::Ingest(0, pairs),
        batch(vec![put("k5", "five"), long("k6", "z"), add("hits", 3)], Durability::Async),
        Step::Flush,
        batch(vec![put("k1", "un"), long("k7", "w"), add("hits", 4), append("log", "d")], Durability::Sync),
        batch(vec![put("k8", "eight"), add("hits", 5)], Durability::Async),
    ]
}

/// The same with changes that the log has not: a keyspace is dropped, one is renamed, and one gets
/// another setting.
fn altering_script() -> Vec<Step> {
    let mut steps = script();
    let session = Write::new(3, "session", Change::Put("open".into()));
    let alterations =
        [Step::Single(session, Durability::Sync), Step::DropKeyspace(3), Step::Rename(2), Step::Ttl(0, Ttl::On(None))];
    steps.splice(LAST_FLUSH..LAST_FLUSH, alterations);
    steps
}

/// How many writes there are before a flush gives up the log segments that they are in.
const ROUND: usize = 40;

/// Rounds of writes with a flush between them, so that segments are used again. Records have 80
/// bytes and segments a header and a link of 112: some begin where a sector does, and there a lost
/// write leaves whole records of the earlier life. The last round is not synced, so that each of
/// its sectors was written once.
fn rounds() -> Vec<Step> {
    let single = |round: usize, number: usize, durability| {
        let value = [b'a' + round as u8; 46].to_vec();
        Step::Single(Write::new(0, format!("k{number:02}"), Change::Put(value)), durability)
    };
    let mut steps = vec![Step::Batch(vec![put("long", &"v".repeat(150))], Durability::Sync)];
    for round in 0..2 {
        steps.extend((0..ROUND).map(|number| single(round, number, Durability::Sync)));
        steps.push(Step::Flush);
    }
    steps.extend((0..ROUND).map(|number| single(2, number, Durability::Async)));
    steps
}

/// Whether a lost write brings back the record that began with a sector in an earlier life of a log
/// segment.
fn brings_back_an_earlier_life(image: &MemEnv) -> bool {
    let logs = image.files().into_iter().filter(|path| path.to_string_lossy().contains(".wal"));
    logs.into_iter().any(|path| {
        let env = image.kill();
        let lost = env.lose_write(&path, 512, 512);
        lost && env.file_bytes(&path).is_some_and(|bytes| bytes[512..592].contains(&b'a'))
    })
}

fn options(tables: Tables, compression: Compression) -> Options {
    let base = option_variants().swap_remove(0).1.min_blob_size(100).compression(compression);
    match tables {
        Tables::FromFiles => base.read_mode(ReadMode::Pread),
        Tables::Mapped => base,
        Tables::MappedChecked => base.read_mode(ReadMode::MmapChecked),
    }
}

/// How the database of that name is made.
fn making(name: &str, options: Options) -> (Options, Vec<Step>) {
    match name {
        USED_AGAIN => (options.wal_segment_bytes(2 << 10), rounds()),
        CHANGES_KEPT => {
            let keeping = options.wal_segment_bytes(512).keep_changes(ChangeRetention::Bytes(ALL_BYTES));
            (keeping, altering_script())
        }
        _ => (options, script()),
    }
}

/// The runs that die within a step, by the number of calls that pass.
fn dying_within(step: usize, script: &[Step], options: &Options, calls: u64) -> Vec<Performed> {
    let died = (0..calls).map(|calls| perform(script, options, Some(calls)));
    // The first state is the one before any step.
    died.filter(|performed| performed.steps.len() == step + 1).collect()
}

/// Where checkpoints go.
const COPY: &str = "/copy";

/// What is left of a call on the files of `env`, wherever it dies.
fn cut_short(env: &MemEnv, call: impl Fn(&MemEnv)) -> Vec<MemEnv> {
    let dead = (0..).map(|calls| {
        let env = env.kill();
        env.crash_after(calls);
        call(&env);
        env
    });
    dead.take_while(MemEnv::is_dead).map(|env| env.kill()).collect()
}

fn repairs_cut_short(env: &MemEnv, options: &dyn Fn(&MemEnv) -> Options) -> Vec<MemEnv> {
    // Where it dies it fails.
    cut_short(env, |env| drop(Db::repair(MEMORY_PATH, options(env))))
}

fn checkpoints_cut_short(env: &MemEnv, options: &dyn Fn(&MemEnv) -> Options) -> Vec<MemEnv> {
    let checkpoint = |db: Db| db.checkpoint_with(COPY, CheckpointMode::Copy);
    cut_short(env, |env| drop(Db::open(MEMORY_PATH, options(env)).and_then(with_operators).and_then(checkpoint)))
}

fn has(env: &MemEnv, directory: &str, name: &str) -> bool {
    env.file_bytes(&Path::new(directory).join(name)).is_some()
}

/// The files of one directory where databases of this campaign are.
fn moved(env: &MemEnv, directory: &str) -> MemEnv {
    let to = MemEnv::new();
    to.remember_sectors();
    for path in env.files() {
        if let (Ok(name), Some(bytes)) = (path.strip_prefix(directory), env.file_bytes(&path)) {
            to.set_file_bytes(&Path::new(MEMORY_PATH).join(name), bytes);
        }
    }
    to
}

/// What the call leaves of an idle database if it dies in the last moment that leaves that.
fn left_by(call: Call, (performed, options): (&Performed, &Options)) -> Option<MemEnv> {
    let (env, now) = (performed.env.kill(), performed.progress.now);
    let on = |env: &MemEnv| Ground::new(options, env.clone()).options_at(now);
    if call == Call::Checkpoint {
        let left = checkpoints_cut_short(&env, &on);
        let last = left.iter().rfind(|left| has(left, COPY, call.mark()) && has(left, COPY, "CURRENT"))?;
        return Some(moved(last, COPY));
    }
    let current = Path::new(MEMORY_PATH).join("CURRENT");
    let bytes = env.file_bytes(&current)?;
    Ground::new(options, env.clone()).lose_current().ok()?;
    let is_done = call == Call::RepairDone;
    let is_it = |left: &MemEnv| {
        has(left, MEMORY_PATH, call.mark())
            && has(left, MEMORY_PATH, "CURRENT") == is_done
            && tables(left) > tables(&env)
    };
    let last = repairs_cut_short(&env, &on).into_iter().rfind(is_it)?;
    if !is_done {
        last.set_file_bytes(&current, bytes);
    }
    Some(last)
}

fn count(env: &MemEnv, part: &str) -> usize {
    env.files().iter().filter(|path| path.to_string_lossy().contains(part)).count()
}

fn manifests(env: &MemEnv) -> usize {
    count(env, "MANIFEST-")
}

fn tables(env: &MemEnv) -> usize {
    count(env, ".table")
}

/// That database, and its name.
pub fn fixed(number: u64) -> Checked<(&'static str, Specimen)> {
    let (name, tables, compression, death) = FIXED[number as usize % FIXED.len()];
    let (options, script) = making(name, options(tables, compression));
    let whole = perform(&script, &options, None);
    if let Err(error) = whole.outcome {
        return Err(format!("the script fails by itself: {error}"));
    }
    let calls = whole.env.mutations();
    let after = |step: usize| {
        // Nothing dies before the end: the state is looked at in passing.
        let mut performed = perform(&script, &options, None);
        performed.steps.truncate(step + 2);
        if let Some((env, progress)) = performed.steps.last() {
            (performed.env, performed.progress) = (env.clone(), progress.clone());
        }
        performed
    };
    let nothing = || format!("{name}: no call of the script is like that");
    let (performed, loss) = match death {
        Death::None => (whole, None),
        Death::Dropped => (after(script.len() - 1), Some(Loss::Process)),
        Death::After(step, loss) => (after(step), Some(loss)),
        Death::Within(step, loss) => {
            let mut died = dying_within(step, &script, &options, calls);
            let middle = died.len() / 2;
            (died.drain(..).nth(middle).ok_or_else(nothing)?, Some(loss))
        }
        Death::BetweenManifests(step, loss) => {
            let died = dying_within(step, &script, &options, calls);
            (died.into_iter().rfind(|died| manifests(&died.env.kill()) > 1).ok_or_else(nothing)?, Some(loss))
        }
        Death::Marking(call) => {
            let mut marked = after(script.len() - 1);
            marked.env = left_by(call, (&marked, &options)).ok_or_else(nothing)?;
            let is_as_before = call == Call::RepairUndone;
            if !is_as_before {
                // Other files, written and synced by the call, of which there is no earlier state.
                marked.steps.clear();
            }
            (marked, is_as_before.then_some(Loss::Process))
        }
    };
    let (image, end) = match loss {
        None => (performed.env.kill(), End::Closed),
        Some(Loss::Process) if matches!(death, Death::Dropped | Death::Marking(_)) => {
            (performed.env.kill(), End::Dropped)
        }
        Some(Loss::Process) => (performed.env.kill(), End::Killed),
        Some(Loss::Power(mode, seed)) => (performed.env.crash(&mode, seed), End::PowerLost),
    };
    let wanted = if matches!(death, Death::BetweenManifests(..)) { 2 } else { 1 };
    let files = image.files();
    // A copy that was never open has no lock.
    let mark = if let Death::Marking(call) = death { call.mark() } else { "LOCK" };
    for part in [".table", ".blob", ".wal", "MANIFEST-", "CURRENT", mark] {
        let found = count(&image, part);
        if found < if part == "MANIFEST-" { wanted } else { 1 } {
            return Err(format!("{name}: {found} files {part}, of {files:?}"));
        }
    }
    if name == USED_AGAIN && end == End::Dropped && !brings_back_an_earlier_life(&image) {
        return Err(format!("{name}: no record of an earlier life begins with a sector"));
    }
    let specimen = Specimen::of(image, performed, (&options, tables), end).map_err(|what| format!("{name}: {what}"))?;
    Ok((name, specimen))
}

/// The number of the one that keeps its changes.
#[cfg(test)]
pub fn with_changes_kept() -> u64 {
    FIXED.iter().position(|(name, ..)| *name == CHANGES_KEPT).expect("there is one") as u64
}

#[cfg(test)]
mod tests {
    use super::super::harm::Harm;
    use super::*;
    use esker::Error;

    #[test]
    fn every_fixed_database_has_files_of_every_type() {
        for number in 0..COUNT {
            if let Err(what) = fixed(number) {
                panic!("{what}");
            }
        }
    }

    fn options_on(env: &MemEnv) -> Options {
        let options = options(Tables::FromFiles, Compression::Lz4);
        Ground::new(&options, env.clone()).options_at(crate::powerloss::script::NOW_MS)
    }

    #[test]
    fn an_unfinished_copy_is_refused_and_left_alone_whatever_is_damaged_in_its_mark() {
        let whole = perform(&script(), &options(Tables::FromFiles, Compression::Lz4), None);
        let left = checkpoints_cut_short(&whole.env.kill(), &options_on);
        let is_unfinished = |env: &&MemEnv| has(env, COPY, "CHECKPOINT") && !has(env, COPY, "CURRENT");
        let last = left.iter().rfind(is_unfinished).expect("the mark comes first");
        let image = moved(last, COPY);
        let mark = Path::new(MEMORY_PATH).join("CHECKPOINT");
        let bytes = image.file_bytes(&mark).expect("it is there").len() as u64;
        assert!(bytes > 0 && image.files().len() > 2, "{:?}", image.files());
        for harm in Harm::all(&mark, bytes, 0, false) {
            let env = image.kill();
            harm.apply(&env, &[]);
            let before = env.files();
            let refused = Db::open(MEMORY_PATH, options_on(&env)).expect_err("it is no database");
            assert!(matches!(&refused, Error::InvalidArgument { .. }), "{harm:?}: {refused}");
            let refused = Db::repair(MEMORY_PATH, options_on(&env)).expect_err("there is nothing to repair");
            assert!(matches!(&refused, Error::InvalidArgument { .. }), "{harm:?}: {refused}");
            assert!(before.iter().all(|path| env.files().contains(path)), "{harm:?}");
        }
    }
}
