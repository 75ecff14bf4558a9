//! `esker backup`: incremental backups in a directory or an object store.

use crate::arguments::DatabaseArguments;
use crate::failure::{Failure, one_line};
use crate::open::Beside;
use crate::output::{Output, bytes_text};
use crate::progress::{Progress, Unit};
use crate::size::size;
use crate::{duration, open, output};
use clap::{Args, Subcommand};
use esker_backup::{
    Backup as Kept, Cancel, Create as Options, Error, Forward, Phase, Prune as Policy, Target, Transfers,
};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use url::Url;

const EXAMPLES: &str = "\
Examples:
  esker backup create --db data /mnt/backups/data
  esker backup list /mnt/backups/data
  esker backup verify /mnt/backups/data
  esker backup restore /mnt/backups/data restored     # the newest; another one with --backup 7
  esker backup restore /mnt/backups/data before --changes-from data --to-sequence 81726
  esker backup prune /mnt/backups/data --keep-last 7 --older-than 30d
  esker backup create --db data s3://bucket/data      # in a build with the feature backup-cloud

A target is a directory or a URL, and holds the backups of one database. Only files that it lacks are copied. Several
commands may use a target at the same time; one that is interrupted leaves no half of a backup. Options of a store's
client come from the environment, such as AWS_REGION and AWS_ENDPOINT.
While a program has the database open, it is read beside that program, which goes on: the backup has what the program
had written when the command began.";

/// Make, list, verify, restore and prune incremental backups
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Backup {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Verify(Verify),
    Restore(Restore),
    Prune(Prune),
}

/// Where the backups are, and how bytes are moved.
#[derive(Args)]
struct TargetArguments {
    /// A directory, or a URL as file:///mnt/backups or s3://bucket/path
    #[arg(value_name = "TARGET")]
    target: String,
    /// How many objects are copied or read at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    parallel: u16,
    /// The most bytes a second, to and from the target
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit_rate: Option<usize>,
}

/// Copy what the target lacks, and make a backup
#[derive(Args)]
struct Create {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    target: TargetArguments,
    /// Where the files to copy are linked meanwhile; beside the database if not given
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Check all checksums of the database before anything is copied
    #[arg(long)]
    verify_source: bool,
    /// Make the backup though the target seems to hold those of another database
    #[arg(long)]
    any_database: bool,
}

/// Show the backups of a target, oldest first
#[derive(Args)]
struct List {
    #[command(flatten)]
    target: TargetArguments,
    /// Print JSON instead of text, a line for each backup
    #[arg(long)]
    json: bool,
}

/// Read backups back and compare every byte with what was written
#[derive(Args)]
struct Verify {
    #[command(flatten)]
    target: TargetArguments,
    /// Only this backup
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Write a backup to a new directory, which then opens as a database
#[derive(Args)]
struct Restore {
    #[command(flatten)]
    target: TargetArguments,
    /// The directory, which must be empty or not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// This backup instead of the newest
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,
    /// Go on with the changes that the database in this directory has kept
    #[arg(long, value_name = "PATH")]
    changes_from: Option<PathBuf>,
    /// Go on up to this write; without it, up to the last one
    #[arg(long, value_name = "N", requires = "changes_from")]
    to_sequence: Option<u64>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Remove backups, and what no backup needs
#[derive(Args)]
struct Prune {
    #[command(flatten)]
    target: TargetArguments,
    /// Remove backups that are not among the newest N
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,
    /// Remove backups that are older; with --keep-last, those that both say
    #[arg(long, value_name = "DURATION", value_parser = duration::span)]
    older_than: Option<Duration>,
    /// Remove this backup; can be given again
    #[arg(long, value_name = "NUMBER")]
    backup: Vec<u64>,
    /// Leave alone what a create has copied that gave a sign of life within this time
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = duration::span)]
    grace: Duration,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Backup {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Create(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Restore(command) => command.run(),
            Command::Prune(command) => command.run(),
        }
    }
}

/// What the name of a target means.
enum Place {
    Directory(PathBuf),
    Url(String),
}

/// The options of the clients of stores, which the environment has.
fn environment_of_stores() -> impl Iterator<Item = (String, String)> {
    let is_of_stores = |name: &str| ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix));
    std::env::vars_os().filter_map(move |(name, value)| {
        let name = name.into_string().ok()?.to_ascii_lowercase();
        Some((name, value.into_string().ok()?)).filter(|(name, _)| is_of_stores(name))
    })
}

impl TargetArguments {
    fn place(&self) -> Result<Place, Failure> {
        let name = &self.target;
        // Anything else is a path, such as `C:\backups`.
        if !name.contains("://") {
            return Ok(Place::Directory(name.into()));
        }
        let url = Url::parse(name).map_err(|error| {
            Failure::Usage(format!("target {name:?} is no URL: {error}; write it as file:///mnt/backups"))
        })?;
        match url.scheme() {
            "file" => url.to_file_path().map(Place::Directory).map_err(|()| {
                Failure::Usage(format!("target {name:?} is no local path; write it as file:///mnt/backups"))
            }),
            "memory" => Err(Failure::Usage(format!(
                "target {name:?} would be gone when the command ends; name a directory, or an object store"
            ))),
            _ => Ok(Place::Url(name.clone())),
        }
    }

    /// Refuses a directory in that of the database before it is made.
    fn refuse_inside(&self, database: &Path) -> Result<(), Failure> {
        let Place::Directory(target) = self.place()? else { return Ok(()) };
        let absolute = std::path::absolute(&target).unwrap_or(target);
        let above = absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        match (above, database.canonicalize()) {
            (Some(above), Ok(database)) if above.starts_with(&database) => Err(Failure::Operation(format!(
                "the target {} is in the directory of the database; name one outside of it",
                self.target
            ))),
            _ => Ok(()),
        }
    }

    /// The target, with a progress bar and a Ctrl-C that cancels.
    fn open(&self, is_made: bool) -> Result<Target, Failure> {
        let target = match self.place()? {
            Place::Url(url) => Target::url(&url, environment_of_stores()),
            Place::Directory(path) if is_made => Target::new_directory(path),
            Place::Directory(path) if !path.exists() => {
                return Err(Failure::Operation(format!(
                    "there is no directory {}; check the path (`esker backup create` makes a target)",
                    path.display()
                )));
            }
            Place::Directory(path) => Target::directory(path),
        };
        let cancel = Cancel::default();
        cancel_by_signal(&cancel);
        let shown: Mutex<Option<(Phase, Progress)>> = Mutex::new(None);
        let transfers = Transfers::default()
            .parallel(usize::from(self.parallel))
            .bytes_per_second(self.limit_rate.and_then(|rate| NonZeroU64::new(rate as u64)))
            .cancel(&cancel)
            .progress(move |progress| {
                let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                if shown.as_ref().is_none_or(|(phase, _)| *phase != progress.phase) {
                    // The old bar goes before the new one comes.
                    *shown = None;
                    *shown = Some((progress.phase, Progress::new(name(progress.phase), Unit::Bytes, Some(0))));
                }
                if let Some((_, bar)) = &mut *shown {
                    bar.set_of(progress.done, progress.total);
                }
            });
        Ok(target.map_err(failure)?.with(transfers))
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Hashing => "hashing",
        Phase::Uploading => "copying",
        Phase::Verifying => "verifying",
        Phase::Restoring => "restoring",
        _ => "working",
    }
}

/// The first signal cancels, the second ends the process at once.
fn cancel_by_signal(cancel: &Cancel) {
    let cancel = cancel.clone();
    // An error means that there is a handler already, which no command sets.
    let _ = ctrlc::set_handler(move || {
        if cancel.is_cancelled() {
            std::process::exit(130);
        }
        cancel.cancel();
    });
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Database(error) => error.into(),
        Error::AnotherDatabase { what } => {
            Failure::Operation(format!("{what}; name another target, or give --any-database"))
        }
        Error::InvalidArgument { .. } => Failure::Operation(format!("{error}; nothing was changed")),
        error => Failure::Operation(error.to_string()),
    }
}

/// A backup as one line.
fn text(backup: &Kept) -> String {
    let names: Vec<String> = backup.keyspaces.iter().map(|name| one_line(name)).collect();
    format!(
        "{}\t{}\t{} files\t{}\tsequence {}\t{}",
        backup.number,
        humantime::format_rfc3339_seconds(backup.time),
        backup.files,
        bytes_text(backup.bytes),
        backup.sequence,
        names.join(",")
    )
}

fn object(backup: &Kept) -> Value {
    let since = backup.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "backup": backup.number,
        "time": humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string(),
        "esker_version": backup.esker_version,
        "sequence": backup.sequence,
        "keyspaces": backup.keyspaces,
        "database": backup.directory,
        "files": backup.files,
        "bytes": backup.bytes,
    })
}

impl Create {
    fn run(self) -> Result<(), Failure> {
        let copied = open::for_copying(&self.database.db)?;
        self.target.refuse_inside(&self.database.db)?;
        let target = self.target.open(true)?;
        let mut options = Options::default().verify_source(self.verify_source).any_database(self.any_database);
        if let Some(scratch) = &self.scratch {
            options = options.scratch(scratch);
        }
        let created = target.create(copied.db(), &options);
        let (beside, closed) = (copied.beside(), copied.close());
        let created = created.map_err(failure)?;
        closed?;
        drop(target);
        let (files, bytes) = (created.copied_files, created.copied_bytes);
        output::print_line(&if self.database.json {
            let mut line = object(&created.backup);
            line["copied_files"] = files.into();
            line["copied_bytes"] = bytes.into();
            beside.inspect(|beside| beside.put_into(&mut line));
            line.to_string()
        } else {
            let (number, all) = (created.backup.number, created.backup.files);
            let size = bytes_text(created.backup.bytes);
            let (copied, beside) = (bytes_text(bytes), beside.map(Beside::text).unwrap_or_default());
            format!("backup {number}: {all} files, {size}; {files} copied, {copied}{beside}")
        })
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let target = self.target.open(false)?;
        let listed = target.list().map_err(failure)?;
        let mut output = Output::standard();
        for backup in &listed.backups {
            output.line(&if self.json { object(backup).to_string() } else { text(backup) })?;
        }
        for (number, what) in &listed.damaged {
            output.line(&if self.json {
                json!({ "backup": number, "damage": what }).to_string()
            } else {
                one_line(&format!("{number}, damaged: {what}"))
            })?;
        }
        output.finish()?;
        match listed.damaged.first() {
            None => Ok(()),
            Some((number, _)) => Err(Failure::Operation(format!(
                "the record of backup {number} is damaged; remove it with `esker backup prune --backup {number}`"
            ))),
        }
    }
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        let target = self.target.open(false)?;
        let report = target.verify(self.backup).map_err(failure)?;
        drop(target);
        let mut output = Output::standard();
        if self.json {
            let damage = report.damage.iter();
            let damage: Vec<Value> = damage
                .map(|damage| json!({ "object": damage.object, "what": damage.what, "backups": damage.backups }))
                .collect();
            let (ok, objects, bytes) = (damage.is_empty(), report.objects, report.bytes);
            let line = json!({
                "ok": ok, "backups": report.backups, "objects": objects, "bytes": bytes, "damage": damage,
            });
            output.line(&line.to_string())?;
        } else {
            for damage in &report.damage {
                output
                    .line(&one_line(&format!("{}: {} (backups {:?})", damage.object, damage.what, damage.backups)))?;
            }
            if report.damage.is_empty() {
                let (backups, objects, size) = (report.backups.len(), report.objects, bytes_text(report.bytes));
                output.line(&format!("no damage: {backups} backups, {objects} objects, {size}"))?;
            }
        }
        output.finish()?;
        match report.damage.len() {
            0 => Ok(()),
            places => Err(Failure::Operation(format!(
                "{places} objects are damaged; remove the backups that are named, and make a new one, which copies the \
                 files again"
            ))),
        }
    }
}

impl Restore {
    fn run(self) -> Result<(), Failure> {
        let target = self.target.open(false)?;
        let (backup, reached) = match &self.changes_from {
            None => (target.restore(self.backup, &self.directory).map_err(failure)?, None),
            Some(database) => {
                let forward = Forward::new(database);
                let forward = self.to_sequence.into_iter().fold(forward, Forward::to_sequence);
                let restored = target.restore_forward(self.backup, &self.directory, &forward).map_err(failure)?;
                (restored.backup, Some(restored.sequence))
            }
        };
        drop(target);
        let directory = self.directory.display().to_string();
        output::print_line(&if self.json {
            let mut line = object(&backup);
            line["directory"] = directory.into();
            reached.into_iter().for_each(|sequence| line["restored_sequence"] = sequence.into());
            line.to_string()
        } else {
            let (number, time) = (backup.number, humantime::format_rfc3339_seconds(backup.time));
            let reached = reached.map(|sequence| format!(", up to write {sequence}")).unwrap_or_default();
            format!("backup {number} of {time}{reached} in {directory}")
        })
    }
}

impl Prune {
    fn run(self) -> Result<(), Failure> {
        let target = self.target.open(false)?;
        let mut policy = Policy::default().grace(self.grace).dry_run(self.dry_run);
        if let Some(backups) = self.keep_last {
            policy = policy.keep_last(backups);
        }
        if let Some(age) = self.older_than {
            policy = policy.older_than(age);
        }
        policy = self.backup.iter().fold(policy, |policy, number| policy.backup(*number));
        let report = target.prune(&policy).map_err(failure)?;
        output::print_line(&if self.json {
            json!({
                "removed": report.backups,
                "kept": report.kept,
                "objects": report.objects,
                "bytes": report.bytes,
                "dry_run": self.dry_run,
            })
            .to_string()
        } else {
            let (removed, kept) = (report.backups.len(), report.kept.len());
            let would = if self.dry_run { "would be " } else { "" };
            let (objects, size) = (report.objects, bytes_text(report.bytes));
            format!("{removed} backups and {objects} objects {would}removed, {size}; {kept} backups kept")
        })
    }
}
