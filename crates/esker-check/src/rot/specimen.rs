//! Idle databases, and what they may hold after damage.

use super::harm::Damage;
use super::manifest::InForce;
use super::witness::{Candidate, Witness};
use crate::Checked;
use crate::feed::ALL_BYTES;
use crate::model::Model;
use crate::powerloss::generated::{Limits, generated};
use crate::powerloss::option_variants;
use crate::powerloss::progress::{Progress, Recovered};
use crate::powerloss::script::{NAMES, Step};
use crate::powerloss::session::{Ground, Session, run, with_operators};
use crate::random::Random;
use crate::simulated::MEMORY_PATH;
use crate::state::{Place, database_state};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{ChangeBatch, ChangeRetention, Compression, Db, Error, Options, ReadMode, RepairReport, VerifyEvent};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// How a database came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Dropped,
    /// Killed at some call: while it loads, flushes, merges, opens.
    Killed,
    PowerLost,
}

const ENDS: [End; 4] = [End::Closed, End::Dropped, End::Killed, End::PowerLost];

/// How tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    FromFiles,
    Mapped,
    /// And every block is checked at every read.
    MappedChecked,
}

/// What the manifest said after a step that had returned.
struct Mark {
    manifest: u64,
    end_of_edits: usize,
    listed: usize,
    synced: usize,
}

/// A script that was run, to its end or until a call that died.
pub struct Performed {
    pub env: MemEnv,
    pub progress: Progress,
    /// After every step.
    pub steps: Vec<(MemEnv, Progress)>,
    pub outcome: esker::Result<()>,
}

/// Runs the script on a disk that remembers; only so many mutating calls pass.
pub fn perform(steps: &[Step], options: &Options, calls: Option<u64>) -> Performed {
    let env = MemEnv::new();
    env.remember_sectors();
    if let Some(calls) = calls {
        env.crash_after(calls);
    }
    let mut progress = Progress::default();
    let mut seen = vec![(env.kill(), progress.clone())];
    let mut observe = |progress: &Progress| seen.push((env.kill(), progress.clone()));
    let outcome = run(steps, &Ground::new(options, env.clone()), &mut progress, &mut observe);
    Performed { env, progress, steps: seen, outcome }
}

/// An idle database and what it may hold.
pub struct Specimen {
    pub image: MemEnv,
    options: Options,
    /// Reads may miss what changes in a block that they have checked.
    pub checked_once: bool,
    pub end: End,
    pub progress: Progress,
    /// The commits that it holds as it is.
    pub count: usize,
    /// Every key that it ever held.
    pub places: BTreeSet<Place>,
    /// What keys held between two writes of one batch.
    held_within_batches: BTreeSet<(Place, Vec<u8>)>,
    /// Its files after every step.
    pub older: Vec<MemEnv>,
    marks: Vec<Mark>,
    in_force: InForce,
    /// None if it keeps no changes, or if it was repaired, which nobody knows the changes of.
    kept: Option<Kept>,
}

/// The changes that a database keeps.
struct Kept {
    /// What its readers are told.
    all: Vec<ChangeBatch>,
    /// How many of these, at least and at most, with each number of commits: renamed keyspaces and
    /// other settings may come behind the last of them.
    told: Vec<RangeInclusive<usize>>,
}

impl Kept {
    /// `found`: what the database consists of that tells `all`.
    fn new(all: Vec<ChangeBatch>, progress: &Progress, found: &Recovered) -> Checked<Kept> {
        let model = model_of(progress);
        let journal = model.journal().ok_or("there is no journal")?;
        let told = |events: usize| journal.told_from(0, events).len();
        if told(found.events) != all.len() {
            return Err(format!("{} batches are told of {} events", all.len(), found.events));
        }
        let end = |count: usize| progress.supposed(count).events.min(found.events);
        let begin = |count: usize| count.checked_sub(1).map_or(0, |before| end(before) + 1);
        let of_count = |count: usize| RangeInclusive::new(told(begin(count)), told(end(count)));
        let told = (0..=found.count).map(of_count).collect();
        Ok(Kept { all, told })
    }
}

/// The model of everything so far. It is handed out by an alteration, as what to go back to; this
/// one changes nothing, and is noted in a copy.
fn model_of(progress: &Progress) -> Model {
    let mut copy = progress.clone();
    let same = copy.standing.present(0);
    copy.attempt_alteration(0, same)
}

/// All that an intact database tells readers of changes; none if it keeps none.
fn changes_of(db: &Db) -> Checked<Option<Vec<ChangeBatch>>> {
    let read = match db.changes(0) {
        Err(Error::InvalidArgument { .. }) => return Ok(None),
        changes => changes.and_then(|changes| changes.collect::<esker::Result<Vec<_>>>()),
    };
    read.map(Some).map_err(|error| format!("a reader of changes fails: {error}"))
}

fn variants() -> Vec<(Options, Tables)> {
    let from_files = |(_, options)| (options, Tables::FromFiles);
    let mut variants: Vec<_> = option_variants().into_iter().map(from_files).collect();
    let base = variants[0].0.clone().write_buffer_bytes(4 << 10);
    variants.extend([
        (base.clone(), Tables::Mapped),
        (base.clone().compression(Compression::None), Tables::Mapped),
        (base.clone().read_mode(ReadMode::Pread).block_cache_bytes(0), Tables::FromFiles),
        (base.clone().min_blob_size(100).upper_compression(Compression::Lz4), Tables::FromFiles),
        (base.clone().read_mode(ReadMode::MmapChecked), Tables::MappedChecked),
        (
            base.clone().wal_segment_bytes(1 << 10).min_blob_size(100).keep_changes(ChangeRetention::Bytes(ALL_BYTES)),
            Tables::FromFiles,
        ),
        // As by default, space is held back for opens on a full disk.
        (base.clone().wal_segment_bytes(512 << 10), Tables::FromFiles),
        (base.read_mode(ReadMode::MmapChecked).compression(Compression::None), Tables::MappedChecked),
    ]);
    if Compression::Zstd.is_available() {
        let base = variants[0].0.clone().write_buffer_bytes(4 << 10).min_blob_size(100);
        let zstd = base.compression(Compression::Zstd).upper_compression(Compression::Zstd);
        variants.push((zstd.clone(), Tables::Mapped));
        variants.push((zstd.read_mode(ReadMode::Pread).block_cache_bytes(0), Tables::FromFiles));
    }
    variants
}

/// What the random scripts may do: less than in a campaign of crashes.
const LIMITS: Limits = Limits {
    steps: 14,
    batch: 100,
    value: 1000,
    expiring_unlogged: false,
    refusals: false,
    retentions: false,
    failing: false,
    fading: false,
    ..Limits::USUAL
};

/// What a random script has left.
struct Left {
    image: MemEnv,
    performed: Performed,
    options: Options,
    tables: Tables,
    end: End,
}

impl Left {
    fn random(seed: u64, unlogged: bool) -> Checked<Left> {
        let mut random = Random::derived(seed, &[2]);
        let variants = variants();
        let (options, tables) = variants[random.below(variants.len())].clone();
        let mut end = ENDS[random.below(ENDS.len())];
        let limits = Limits { unlogged, ..LIMITS };
        let steps = generated(seed, limits).steps;
        let mut performed = perform(&steps, &options, None);
        performed.outcome.map_err(|error| format!("the script fails by itself: {error}"))?;
        performed.outcome = Ok(());
        let image = match end {
            End::Closed => performed.env.kill(),
            End::Dropped => {
                // The last was taken after the close.
                performed.steps.pop();
                if let Some((_, progress)) = performed.steps.last() {
                    performed.progress = progress.clone();
                }
                performed.steps.last().map_or_else(MemEnv::new, |(image, _)| image.kill())
            }
            // Between two calls of the user's: the last edit is often not vouched for on the
            // device, and the log is not there.
            End::PowerLost if random.percent(50) => {
                let step = random.below(performed.steps.len());
                performed.steps.truncate(step + 1);
                if let Some((_, progress)) = performed.steps.last() {
                    performed.progress = progress.clone();
                }
                let mode = [CrashMode::LoseAll, CrashMode::Random][random.below(2)];
                performed.steps.last().map_or_else(MemEnv::new, |(env, _)| env.crash(&mode, random.next()))
            }
            End::Killed | End::PowerLost => {
                let calls = random.below(performed.env.mutations() as usize) as u64;
                performed = perform(&steps, &options, Some(calls));
                if performed.progress.destroying {
                    // A part of a database need not open.
                    performed = perform(&steps, &options, None);
                    end = End::Closed;
                }
                if end == End::PowerLost {
                    performed.env.crash(&CrashMode::Random, random.next())
                } else {
                    performed.env.kill()
                }
            }
        };
        Ok(Left { image, performed, options, tables, end })
    }
}

impl Specimen {
    /// What a random script leaves.
    ///
    /// What a loss leaves of writes without log is no state after some number of commits: of each
    /// keyspace it is what a flush of its own had, and the logged writes behind. Damage to the log
    /// makes one such mixture of another, and which of them are allowed the states do not say. So a
    /// database that would have lost such writes is made again without any; in the others a flush
    /// has made them durable, in the first record of a manifest of its own.
    pub fn random(seed: u64) -> Checked<Specimen> {
        let mut left = Left::random(seed, seed.is_multiple_of(2))?;
        if left.performed.progress.holds_unlogged() {
            left = Left::random(seed, false)?;
        }
        let Left { image, performed, options, tables, end } = left;
        Specimen::of(image, performed, (&options, tables), end)
    }

    /// What is left of a script in `image`.
    pub fn of(
        image: MemEnv,
        performed: Performed,
        (options, tables): (&Options, Tables),
        end: End,
    ) -> Checked<Specimen> {
        if tables != Tables::FromFiles {
            image.map_files();
        }
        let Performed { mut progress, steps, .. } = performed;
        let held_within_batches = progress.held_within_batches();
        progress.forget_expired();
        let mark = |(env, progress): &(MemEnv, Progress)| {
            let found = InForce::of(env)?;
            let (listed, synced) = (progress.listed, progress.synced);
            Some(Mark { manifest: found.number, end_of_edits: found.end_of_edits(), listed, synced })
        };
        let removed = progress.removed;
        let mut specimen = Specimen {
            places: progress.places(),
            held_within_batches,
            image,
            options: options.clone(),
            checked_once: tables == Tables::Mapped,
            end,
            progress,
            count: 0,
            marks: steps.iter().filter_map(mark).collect(),
            // What a power loss took was on no disk, and so in no copy of what was there.
            // Nor is a file of a database that was removed before it a copy of its own.
            older: steps
                .into_iter()
                .filter(|(_, then)| then.removed == removed)
                .map(|(env, _)| if end == End::PowerLost { env.crash(&CrashMode::LoseAll, 0) } else { env })
                .collect(),
            in_force: InForce::default(),
            kept: None,
        };
        specimen.settle()?;
        Ok(specimen)
    }

    /// What is promised of it without damage.
    fn promised(&self) -> usize {
        if self.end == End::PowerLost { self.progress.synced } else { self.progress.acknowledged }
    }

    /// What it holds if nothing is damaged. One whose manifest was lost by its script is repaired
    /// first.
    fn settle(&mut self) -> Checked<()> {
        let ground = Ground::new(&self.options, self.image.clone());
        let least = self.promised();
        if self.progress.damaged {
            let session = Session::open(&ground, &mut self.progress).map_err(|error| format!("no repair: {error}"))?;
            session.close().map_err(|error| format!("no close after a repair: {error}"))?;
            self.image = self.image.kill();
            self.end = End::Closed;
        }
        // Before its first step there is no database: this open makes it.
        self.progress.note_opening(&self.options.explain());
        let db = self.open(&self.image.kill()).map_err(|error| format!("it does not open: {error}"))?;
        self.progress.note_kept(&db.explain());
        let state = database_state(&db, &NAMES)?;
        self.count = self.progress.find(&state, least)?;
        if self.progress.feed_is_known
            && let Some(all) = changes_of(&db)?
        {
            let found = self.progress.find_all(&db, &state, least)?;
            self.count = found.count;
            self.kept = Some(Kept::new(all, &self.progress, &found)?);
        }
        self.in_force = InForce::of(&self.image).unwrap_or_default();
        Ok(())
    }

    fn options_on(&self, env: &MemEnv) -> Options {
        Ground::new(&self.options, env.clone()).options_at(self.progress.now)
    }

    /// Opens it in that environment.
    pub fn open(&self, env: &MemEnv) -> esker::Result<Db> {
        self.open_at(MEMORY_PATH, env)
    }

    /// Opens a copy of it.
    pub fn open_at(&self, path: &str, env: &MemEnv) -> esker::Result<Db> {
        Db::open(path, self.options_on(env)).and_then(with_operators)
    }

    /// Repairs it in that environment.
    pub fn repair(&self, env: &MemEnv) -> esker::Result<RepairReport> {
        Db::repair(MEMORY_PATH, self.options_on(env))
    }

    /// Whether the key ever held that value, which has not expired, be it between two writes of one
    /// batch: of a batch that is in two tables one can be lost.
    pub fn has_held(&self, place: &Place, value: &[u8]) -> bool {
        self.progress.states.iter().any(|state| state.get(place).is_some_and(|held| held.value == value))
            || self.held_within_batches.contains(&(place.clone(), value.to_vec()))
    }

    /// Checks the directory without opening it for writing; what was found, and how much was told.
    pub fn verify_directory(&self, env: &MemEnv) -> (esker::Result<()>, u64) {
        let options = self.options_on(env);
        let mut told = 0;
        let mut tell = |event: VerifyEvent<'_>| told += u64::from(matches!(event, VerifyEvent::Damage(_)));
        let found = Db::verify_directory(MEMORY_PATH, options, &mut tell).map(drop);
        (found, told)
    }

    /// Its files, and how many bytes of each are worth damaging.
    pub fn files(env: &MemEnv) -> Vec<(PathBuf, u64)> {
        let own = env.files().into_iter().filter(|path| path.starts_with(MEMORY_PATH));
        own.map(|path| {
            let bytes = env.file_bytes(&path).unwrap_or_default();
            // A log is allocated ahead; of what was never written a little is enough.
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            (path, bytes.len().min(used + 16) as u64)
        })
        .filter(|(_, bytes)| *bytes > 0)
        .collect()
    }

    /// Whether readers of changes are asked too.
    pub fn keeps_changes(&self) -> bool {
        self.kept.is_some()
    }

    /// Who asks it after damage while it is closed, in that environment.
    ///
    /// A manifest that is newer than the one in force was prepared when it died. Damage can
    /// complete the step that it was made for, and then which changes are told is unknown.
    pub fn witness_behind(&self, damages: &[Damage], env: &MemEnv) -> Witness<'_> {
        let is_newer = InForce::of(env).is_some_and(|named| named.number > self.in_force.number);
        if !is_newer {
            return self.witness(damages);
        }
        let counts = self.promised().min(self.count)..=self.progress.attempted();
        let candidates = counts.rev().map(|count| Candidate::new(&self.progress.states[count], 0..=0)).collect();
        Witness::new(candidates, None).behind(damages)
    }

    /// Whether `CURRENT` names an older manifest now, which a power loss has brought back: what
    /// only the newer one said, drops and settings, is undone then ("An older state put back" in
    /// `doc/durability.md`), and no state of the script needs to be what it holds.
    pub fn may_have_undone(&self, env: &MemEnv) -> bool {
        self.end == End::PowerLost && InForce::of(env).is_some_and(|named| named.number < self.in_force.number)
    }

    /// Who asks it after damage while it is closed; without any, what it holds is known.
    pub fn witness(&self, damages: &[Damage]) -> Witness<'_> {
        let least = damages.iter().map(|damage| self.least(damage)).min().unwrap_or(self.count);
        let may_be_older = damages.iter().any(Damage::may_bring_back_a_manifest);
        let candidate = |count: usize| Candidate::new(&self.progress.states[count], self.told(count, may_be_older));
        let candidates = (least.min(self.count)..=self.count).rev().map(candidate).collect();
        Witness::new(candidates, self.kept.as_ref().map(|kept| &kept.all[..])).behind(damages)
    }

    /// How many batches readers of changes are told with so many commits. Those that no commit is
    /// behind are all there unless an older manifest is in force: each was in the first record of a
    /// manifest of its own before it was reported as done.
    fn told(&self, count: usize, may_be_older: bool) -> RangeInclusive<usize> {
        let Some(kept) = &self.kept else { return 0..=0 };
        let told = &kept.told[count];
        if count == self.count && !may_be_older { *told.end()..=*told.end() } else { told.clone() }
    }

    /// How many commits are there at least, unless there is an error.
    fn least(&self, damage: &Damage) -> usize {
        let is = |part: &str| damage.path.to_string_lossy().contains(part);
        if damage.path == self.in_force.path {
            return self.in_force.lost_from(&damage.range).map_or(self.count, |at| self.least_before_edits(at));
        }
        match self.end {
            // It died between two manifests, and the older one is a state that it may have died in.
            End::Killed | End::PowerLost if is("CURRENT") && damage.is_old => self.promised(),
            End::PowerLost if is(".wal") || is(".blob") => self.progress.listed,
            // A sector can hold both a record and the later one that says that it was synced.
            End::Dropped | End::Killed if is(".wal") || is(".blob") => {
                if damage.is_flip {
                    self.progress.vouched
                } else {
                    self.progress.listed
                }
            }
            _ => self.count,
        }
    }

    /// The same if the edits behind `at` read as never written: "What it announced is found in the
    /// log again, or missed with an error; if the power loss took the log as well, [...] the writes
    /// are missing".
    fn least_before_edits(&self, at: usize) -> usize {
        match self.end {
            End::Closed | End::Dropped => self.count,
            // An ingest that was cut off before its manifest edit was reported may have left
            // nothing but that edit.
            End::Killed => self.progress.acknowledged,
            End::PowerLost => {
                let number = self.in_force.number;
                let is_before =
                    |mark: &&Mark| mark.manifest < number || (mark.manifest == number && mark.end_of_edits <= at);
                let before = self.marks.iter().filter(is_before);
                let known = before.map(|mark| mark.synced.max(mark.listed)).max().unwrap_or(0);
                known.max(self.progress.log_synced)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixed::{fixed, with_changes_kept};
    use super::*;
    use crate::feed::retention_in;
    use crate::model::{Change, Life, Write};
    use crate::powerloss::put;
    use crate::powerloss::script::{KEYSPACES, NOW_MS};
    use crate::state::Durability;

    #[test]
    fn some_databases_keep_their_changes_and_some_hold_space_back() {
        let opened = |options: &Options| {
            let env = MemEnv::new();
            let options = Ground::new(options, env.clone()).options_at(NOW_MS);
            let db = Db::open(MEMORY_PATH, options).expect("it is made");
            (db.changes(0).is_ok(), env.files().iter().any(|path| path.ends_with("RESERVE")))
        };
        let found: Vec<(bool, bool)> = variants().iter().map(|(options, _)| opened(options)).collect();
        assert!(found.iter().any(|(keeps, _)| *keeps) && found.iter().any(|(_, holds)| *holds), "{found:?}");
    }

    /// `rot --seed 1796051060 --first-run 7` had one.
    #[test]
    fn what_a_power_loss_before_the_first_step_leaves_is_made_by_the_next_open() {
        let keeps = |(options, _): &(Options, Tables)| retention_in(&options.explain()).is_some();
        let (options, tables) = variants().into_iter().find(keeps).expect("some do");
        let (progress, steps, outcome) = (Progress::default(), Vec::new(), Ok(()));
        let performed = Performed { env: MemEnv::new(), progress, steps, outcome };
        let specimen = Specimen::of(MemEnv::new(), performed, (&options, tables), End::PowerLost).expect("it is right");
        assert!(specimen.keeps_changes() && specimen.count == 0);
    }

    /// If readers of changes were not asked, or what they are told were not compared with the
    /// state, this would fail.
    #[test]
    fn a_change_that_a_database_lacks_or_has_beside_the_right_ones_is_noticed() {
        let (_, mut specimen) = fixed(with_changes_kept()).expect("it is made");
        let db = specimen.open(&specimen.image.kill()).expect("it is intact");
        let is_right = |specimen: &Specimen| {
            let mut witness = specimen.witness(&[]);
            let agrees = witness.question(&db, &specimen.places).is_ok();
            assert_eq!(witness.errors, 0);
            agrees
        };
        assert!(is_right(&specimen));
        let all = specimen.kept.as_ref().expect("it keeps them").all.clone();
        assert!(all.len() > 10, "{all:?}");
        let mut supposed = |all: Vec<ChangeBatch>, count: usize| {
            specimen.kept = Some(Kept { all, told: vec![count..=count; specimen.count + 1] });
            is_right(&specimen)
        };
        assert!(supposed(all.clone(), all.len()));
        assert!(!supposed(all.clone(), all.len() - 1), "it has one that is of another state");
        for number in 0..all.len() {
            let mut fewer = all.clone();
            fewer.remove(number);
            assert!(!supposed(fewer, all.len() - 1), "it has number {number}");
            let mut more = all.clone();
            more.insert(number, all[number].clone());
            assert!(!supposed(more, all.len() + 1), "it lacks number {number}");
        }
    }

    #[test]
    fn with_more_commits_readers_of_changes_are_told_of_more() {
        let (_, specimen) = fixed(with_changes_kept()).expect("it is made");
        let kept = specimen.kept.as_ref().expect("it keeps them");
        assert_eq!(kept.told.len(), specimen.count + 1);
        assert_eq!((*kept.told[0].start(), *kept.told[specimen.count].end()), (0, kept.all.len()));
        assert!(kept.told.windows(2).all(|pair| pair[0].end() < pair[1].start()), "{:?}", kept.told);
        let renamed = kept.told.iter().filter(|told| told.start() < told.end());
        assert_eq!(renamed.count(), 1, "a name and a setting come between two commits");
        assert_eq!(specimen.told(specimen.count, false), kept.all.len()..=kept.all.len());
    }

    /// If every value that some write has put were taken for one that the key has, this would fail.
    #[test]
    fn a_key_has_held_what_has_not_expired_also_between_two_writes_of_one_batch() {
        let sessions = KEYSPACES.iter().position(|(name, ..)| *name == "sessions").expect("it is there");
        let session =
            |key: &str, value: &str, life: Life| Write::new(sessions, key, Change::Put(value.into())).living(life);
        let soon = Life::Until(NOW_MS + 50);
        let longer = Write::new(sessions, "d", Change::Expire).living(Life::Until(NOW_MS + 500));
        let steps = [
            Step::Single(session("a", "expired", soon), Durability::Async),
            Step::Single(session("d", "touched", soon), Durability::Async),
            Step::Batch(vec![put("b", "first"), put("b", "second")], Durability::Sync),
            Step::Batch(vec![session("c", "expired", soon), session("c", "lasts", Life::Usual)], Durability::Sync),
            Step::Batch(vec![longer, session("d", "lasts", Life::Usual)], Durability::Sync),
            Step::Clock(100),
        ];
        let options = option_variants().swap_remove(0).1;
        let performed = perform(&steps, &options, None);
        let image = performed.env.kill();
        let specimen =
            Specimen::of(image, performed, (&options, Tables::FromFiles), End::Closed).expect("it is intact");
        let held = |keyspace: usize, key: &str, value: &str| {
            specimen.has_held(&(keyspace, key.as_bytes().to_vec()), value.as_bytes())
        };
        assert!(held(0, "b", "first") && held(0, "b", "second") && !held(0, "b", "third"));
        assert!(held(sessions, "c", "lasts") && !held(sessions, "c", "expired") && !held(sessions, "a", "expired"));
        assert!(held(sessions, "d", "lasts") && held(sessions, "d", "touched"), "it lives longer for a moment");
    }
}
