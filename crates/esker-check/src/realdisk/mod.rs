//! A real file system, cut off from its device in the middle of work.
//!
//! An image file is mounted through a loop device, and a process with the environment of the
//! operating system writes there. The file system is shut down under it, mostly without writing its
//! journal, which is what a power failure leaves; then it is mounted again and the database opened.
//! It must hold the first n commits, n at least the last one that was promised to survive, and
//! every acknowledged checkpoint its own. The same process goes on with it. Before that the
//! environment is tried alone (`device_error.rs`, `syncs.rs`). In the end a disk is filled whose
//! blocks two databases share (`shared_blocks.rs`).
//!
//! Needs root, loop devices and `unshare`: everything happens in a mount namespace of its own, on a
//! file system in memory, so that nothing is left mounted however the campaign ends.

mod device_error;
mod filesystem;
mod shared_blocks;
mod shutdown;
mod syncs;
mod workload;

use crate::Checked;
use crate::model::Model;
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::ScratchDirectory;
use crate::state::{State, check_gets, database_state, difference, model_state};
use esker::Db;
use filesystem::{Disk, KINDS, Kind, command, text};
use shutdown::Cut;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use workload::{KEYSPACES, Life, NAMES, REPORT_BYTES, Report, checkpoint_name, commit_of, counter, options};

/// Cuts after which a database is given up for a fresh one: what happens early happens often.
const CUTS_PER_DATABASE: u64 = 6;
/// Databases after which the file system is made anew.
const DATABASES_PER_DISK: u64 = 4;
/// Cuts under the syncs of the environment alone, before the others. A sync that promises too much
/// in the moment of a cut is found by one cut in five to ten.
const CUTS_UNDER_SYNCS: u64 = 60;
/// The longest life of a writer, in milliseconds.
const LONGEST_LIFE: usize = 150;
/// A writer that has reported nothing of what is waited for is cut off after this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is run.
#[derive(Clone, Debug)]
pub struct RealDisk {
    /// Seed and time. The moment of a cut is not repeatable.
    pub settings: Settings,
    /// The program that writes: `esker-check` itself.
    pub program: PathBuf,
    /// Where an image that shows a failure is left.
    pub directory: PathBuf,
    /// Only file systems whose name contains this.
    pub only: String,
    /// The most cuts for each.
    pub cuts: u64,
}

/// What happened on one file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Cuts.
    pub cuts: u64,
    /// Those without any writing, as by a power failure.
    pub power_cuts: u64,
    /// Commits that were promised to survive, and did.
    pub synced: u64,
    /// Commits that were not, and did.
    pub unsynced: u64,
    /// Acknowledged commits that were lost, as they may.
    pub lost: u64,
    /// Checkpoints that were acknowledged, all found whole.
    pub checkpoints: u64,
    /// Cuts under the syncs of the environment alone, not counted above.
    pub cuts_under_syncs: u64,
    /// Errors of the device that took a block, none of which was promised.
    pub device_errors: u64,
    /// What those syncs promised, block by block and name by name; all was found.
    pub syncs: u64,
}

/// What keeps the campaign from running here, if anything does.
pub fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_string());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("needs loop devices".to_string());
    }
    // In a namespace of its own, as the campaign: containers may have the devices but not the
    // right.
    command("unshare", &["--mount", "true"]).err().map(|what| format!("needs mount namespaces: {what}"))
}

/// Whether nothing may keep it from filling a disk of shared blocks, which is a part of it if its
/// name contains `only`.
pub fn must_run(only: &str) -> bool {
    shared_blocks::NAME.contains(only) && shared_blocks::is_due()
}

/// Replaces this process by one with a mount namespace of its own, and returns only if that fails.
pub fn enter_namespace(arguments: &[String]) -> String {
    let Ok(program) = std::env::current_exe() else { return "the own program is not known".to_string() };
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "--"]).arg(program).arg("realdisk-inside").args(arguments);
    format!("cannot run unshare: {}", unshare.exec())
}

/// The writing process.
pub fn write(path: &Path, seed: u64, cuts: u64) -> Checked<()> {
    workload::write(path, Life { seed, cuts })
}

/// The process that fills a disk of shared blocks. The directory is on it, and otherwise empty.
pub fn fill_shared(directory: &Path, seed: u64) -> Checked<()> {
    println!("{}", shared_blocks::child(directory, seed)?);
    Ok(())
}

/// What the parent knows of a database.
struct Expected {
    name: String,
    seed: u64,
    model: Model,
    commits: u64,
}

/// What a life left behind.
#[derive(Debug, Default)]
struct Promised {
    committed: u64,
    synced: u64,
    heard: u64,
    checkpoints: Vec<u64>,
}

impl Promised {
    fn note(&mut self, report: Report) {
        match report {
            Report::Committed(number) => self.committed = number,
            Report::Synced(number) => (self.committed, self.synced) = (number, number),
            Report::Checkpoint(number) => self.checkpoints.push(number),
        }
    }
}

/// When a writer is cut off.
#[derive(Clone, Copy, Debug)]
enum Moment {
    After(Duration),
    /// As soon as so many promises of survival have been heard.
    AtSync(u64),
    AtCheckpoint,
}

impl Moment {
    fn random(random: &mut Random) -> Moment {
        match random.below(10) {
            // So early that the writer is still opening.
            0..=1 => Moment::After(Duration::from_micros(random.below(20_000) as u64)),
            2..=4 => Moment::After(Duration::from_millis(random.between(1, LONGEST_LIFE) as u64)),
            5..=8 => Moment::AtSync(random.between(1, 12) as u64),
            _ => Moment::AtCheckpoint,
        }
    }
}

impl RealDisk {
    /// Cuts off each file system in turn; each has its share of the time. Then fills the disk of
    /// shared blocks. The caller has a mount namespace of its own.
    pub fn run(&self, tell: &mut dyn FnMut(&str, &str)) -> Checked<()> {
        let chosen = |kind: &&Kind| kind.name.contains(&self.only) && kind.is_installed();
        let kinds: Vec<&Kind> = KINDS.iter().filter(chosen).collect();
        let failed = |error: std::io::Error| format!("no scratch directory: {error}");
        let scratch = ScratchDirectory::new(&self.directory, "realdisk").map_err(failed)?;
        command("mount", &["-t", "tmpfs", "esker-check", text(scratch.path())?])?;
        let outcome: Checked<()> = kinds.iter().try_for_each(|kind| {
            let share = self.settings.budget / kinds.len() as u32;
            tell(kind.name, &format!("{:?}", self.run_on(**kind, scratch.path(), share)?));
            Ok(())
        });
        let outcome = outcome.and_then(|()| self.run_on_shared_blocks(scratch.path(), tell));
        // It ends with the namespace anyway.
        let _ = command("umount", &["--lazy", text(scratch.path())?]);
        outcome
    }

    fn run_on_shared_blocks(&self, scratch: &Path, tell: &mut dyn FnMut(&str, &str)) -> Checked<()> {
        let name = shared_blocks::NAME;
        if !name.contains(&self.only) {
            return Ok(());
        }
        let failed = |what: String| format!("{name}: {what}\n{}", self.again(name));
        tell(name, &shared_blocks::run(&self.program, scratch, self.settings.seed).map_err(failed)?);
        Ok(())
    }

    /// What is to be run to see a failure again.
    fn again(&self, name: &str) -> String {
        format!("run again with: esker-check realdisk --seed {} --only {name}", self.settings.seed)
    }

    fn run_on(&self, kind: Kind, scratch: &Path, budget: Duration) -> Checked<Totals> {
        let started = Instant::now();
        let mut totals = Totals::default();
        if kind.has_journal_of_ext4() {
            let lost = device_error::round(kind, scratch).map_err(|what| format!("{}: {what}", kind.name))?;
            totals.device_errors = u64::from(lost);
        }
        self.cut_under_syncs(kind, scratch, started + budget, &mut totals)?;
        let mut disk = None;
        let mut database = None;
        while totals.cuts < self.cuts && started.elapsed() < budget {
            let number = totals.cuts / CUTS_PER_DATABASE;
            if totals.cuts.is_multiple_of(CUTS_PER_DATABASE * DATABASES_PER_DISK) {
                // The old one goes first: there is one image at a time.
                drop(disk.take());
                disk = Some(Disk::new(kind, scratch)?);
            }
            if totals.cuts.is_multiple_of(CUTS_PER_DATABASE) {
                database = Some(Expected {
                    name: format!("db{number}"),
                    seed: self.settings.seed.wrapping_add(number),
                    model: Model::new(&KEYSPACES.map(|(_, operator)| operator)),
                    commits: 0,
                });
            }
            let (Some(disk), Some(database)) = (&mut disk, &mut database) else { break };
            self.round(disk, database, &mut totals).map_err(|what| {
                let (cuts, seconds) = (totals.cuts, started.elapsed().as_secs_f64());
                let what = format!("cut {cuts} after {seconds:.1} s, database {}: {what}", database.name);
                self.failure(kind, disk, &what)
            })?;
        }
        Ok(totals)
    }

    fn cut_under_syncs(&self, kind: Kind, scratch: &Path, end: Instant, totals: &mut Totals) -> Checked<()> {
        let mut disk = Disk::new(kind, scratch)?;
        let mut random = Random::derived(self.settings.seed, &[1]);
        while totals.cuts_under_syncs < CUTS_UNDER_SYNCS.min(self.cuts) && Instant::now() < end {
            totals.cuts_under_syncs += 1;
            let found = syncs::round(&mut disk, &mut random);
            let failed = |what: String| {
                self.failure(kind, &disk, &format!("cut {} under syncs: {what}", totals.cuts_under_syncs))
            };
            totals.syncs += found.map_err(failed)?;
        }
        Ok(())
    }

    /// What is printed of a failure. The image is kept.
    fn failure(&self, kind: Kind, disk: &Disk, what: &str) -> String {
        let kept = self.directory.join(format!("esker-check-{}-{}.image", kind.name, std::process::id()));
        let copied = std::fs::copy(disk.image(), &kept);
        let place = copied.map_or_else(|error| format!("not kept: {error}"), |_| kept.display().to_string());
        format!("{}, {what}\nthe image: {place}\n{}", kind.name, self.again(kind.name))
    }

    /// One life, one cut, one recovery.
    fn round(&self, disk: &mut Disk, database: &mut Expected, totals: &mut Totals) -> Checked<()> {
        let mut random = Random::derived(self.settings.seed, &[0, totals.cuts]);
        let cut = match random.below(20) {
            0 => Cut::Flush,
            1..=5 => Cut::JournalOnly,
            6 | 7 if disk.can_be_aborted() => Cut::Abort,
            _ => Cut::Nothing,
        };
        let moment = Moment::random(&mut random);
        let life = Life { seed: database.seed, cuts: totals.cuts };
        totals.cuts += 1;
        totals.power_cuts += u64::from(cut == Cut::Nothing);
        let promised = self.one_life(disk, database, life, moment, cut)?;
        disk.restart()?;
        check(disk.root(), database, life, &promised, totals).map_err(|what| format!("{moment:?}, {cut:?}: {what}"))
    }

    fn one_life(&self, disk: &Disk, database: &Expected, life: Life, moment: Moment, cut: Cut) -> Checked<Promised> {
        let mut child = Command::new(&self.program)
            .arg("realdisk-child")
            .arg(disk.root().join(&database.name))
            .args([life.seed.to_string(), life.cuts.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // After the cut it fails, as it should; before, the parent says how it ended.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let outcome = cut_off(disk, &mut child, moment, cut);
        // Both fail only if it has been waited for.
        let _ = child.kill();
        let _ = child.wait();
        let (reports, mut promised) = outcome?;
        promised.heard = promised.synced;
        // What it said before it died counts, even if it said so after the cut: no promise may be
        // made then that does not hold.
        reports.into_iter().for_each(|report| promised.note(report));
        Ok(promised)
    }
}

/// Waits for the moment and cuts. The reports not read yet, and what those before promised.
fn cut_off(disk: &Disk, child: &mut Child, moment: Moment, cut: Cut) -> Checked<(Receiver<Report>, Promised)> {
    let mut pipe = child.stdout.take().ok_or("the writer has no pipe")?;
    let (sender, reports) = channel();
    // The pipe must be emptied while the writer lives, or it would soon wait for us. The thread
    // ends with the writer.
    std::thread::spawn(move || {
        let mut bytes = [0; REPORT_BYTES];
        while pipe.read_exact(&mut bytes).is_ok() {
            let Some(report) = Report::decode(bytes) else { return };
            if sender.send(report).is_err() {
                return;
            }
        }
    });
    let mut promised = Promised::default();
    let (time, mut syncs) = match moment {
        Moment::After(time) => (time, u64::MAX),
        Moment::AtSync(count) => (PATIENCE, count),
        Moment::AtCheckpoint => (PATIENCE, u64::MAX),
    };
    let end = Instant::now() + time;
    loop {
        match reports.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(report) => {
                promised.note(report);
                syncs -= u64::from(matches!(report, Report::Synced(_)));
                let made = matches!((moment, report), (Moment::AtCheckpoint, Report::Checkpoint(_)));
                if syncs == 0 || made {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().map_err(|error| error.to_string())?;
                return Err(format!("the writer ended by itself: {status}"));
            }
        }
    }
    disk.cut(cut)?;
    Ok((reports, promised))
}

fn check(root: &Path, database: &mut Expected, life: Life, promised: &Promised, totals: &mut Totals) -> Checked<()> {
    let least = promised.synced.max(database.commits);
    let most = promised.committed.max(database.commits) + 1;
    let db =
        Db::open(root.join(&database.name), options(database.seed)).map_err(|error| format!("open failed: {error}"))?;
    let count = counter(&db)?;
    if count < least || count > most {
        let heard = promised.heard;
        return Err(format!(
            "{count} commits are there; heard before the cut: {heard}; {} were after the cut before, {} were promised since and {} acknowledged",
            database.commits, promised.synced, promised.committed
        ));
    }
    let checkpoints = checkpoint_states(database, life, promised);
    for number in database.commits + 1..=count {
        database.model.commit(&commit_of(life, number).0);
    }
    database.model.forget_unseen(&[]);
    totals.synced += least - database.commits;
    totals.unsynced += count - least;
    totals.lost += (most - 1).saturating_sub(count);
    database.commits = count;
    let state = database_state(&db, &NAMES)?;
    if let Some(what) = difference(&model_state(&database.model, database.model.present()), &state) {
        return Err(format!("after {count} commits: {what}"));
    }
    check_gets(&db, &NAMES, &state)?;
    db.verify().map_err(|error| format!("verification failed: {error}"))?;
    for (number, expected) in checkpoints {
        let path = root.join(checkpoint_name(life.cuts, number));
        let wrong = |what: String| format!("the checkpoint of {number} commits: {what}");
        let copy = Db::open(&path, options(database.seed)).map_err(|error| wrong(error.to_string()))?;
        let state = database_state(&copy, &NAMES).map_err(wrong)?;
        if let Some(what) = difference(&expected, &state) {
            return Err(wrong(what));
        }
        totals.checkpoints += 1;
    }
    drop(db);
    remove_checkpoints(root).map_err(|error| format!("a checkpoint cannot be removed: {error}"))
}

/// What each acknowledged checkpoint must hold. It may hold commits that the database itself has
/// lost.
fn checkpoint_states(database: &Expected, life: Life, promised: &Promised) -> Vec<(u64, State)> {
    let mut model = database.model.clone();
    let mut commits = database.commits;
    let mut states = Vec::new();
    for &checkpoint in &promised.checkpoints {
        for number in commits + 1..=checkpoint {
            model.commit(&commit_of(life, number).0);
        }
        commits = commits.max(checkpoint);
        states.push((checkpoint, model_state(&model, model.present())));
    }
    states
}

fn remove_checkpoints(root: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("checkpoint-") {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
