//! `esker dump`: writes a keyspace, or all, as lines that `esker load` reads.

use crate::arguments::{DatabaseArguments, KeyArguments};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::record::{self, Shown};
use crate::settings::Settings;
use crate::{keyspaces, open};
use esker::{Expiry, Keyspace, Snapshot, Ttl};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker dump --db data > data.tsv
  esker dump --db data --json --all-keyspaces --output data.jsonl
  esker dump --db data --json --all-keyspaces | esker load --db copy --json

A dump sees one moment of the database, also beside a running writer. Times of expiry are in it, and
what a keyspace was created with, where that is not the usual: a line \\keyspace at the beginning.
The file appears under its name when it is complete.";

/// How many records pass between two looks at the clock.
const PROGRESS_STEP: u64 = 1024;

/// Write a keyspace as lines that `esker load` reads; opens read-only
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Dump {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    /// All keyspaces, also empty ones
    #[arg(long, requires = "json", conflicts_with = "keyspace")]
    all_keyspaces: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Dump {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let db = open::read_only(&self.database.db)?;
        let names = if self.all_keyspaces { db.keyspaces() } else { vec![self.key_arguments.keyspace.clone()] };
        let chosen = names.iter().map(|name| db.existing_keyspace(name)).collect::<esker::Result<Vec<_>>>()?;
        let stats = db.stats();
        let total = stats.keyspaces.iter().filter(|stats| names.contains(&stats.name)).map(keyspaces::entries).sum();
        let snapshot = db.snapshot();
        let mut output = match &self.output {
            Some(path) => Output::file(path)?,
            None => Output::standard(),
        };
        let mut progress = Progress::new("dumping", Unit::Records, Some(total));
        let mut count = 0;
        for keyspace in &chosen {
            self.dump(keyspace, &snapshot, &mut output, &mut progress, &mut count)?;
        }
        drop(progress);
        output.finish()?;
        match &self.output {
            None => Ok(()),
            Some(_) if self.database.json => output::print_line(&format!(r#"{{"records":{count}}}"#)),
            Some(path) => output::print_line(&format!("dumped {count} records to {}", path.display())),
        }
    }

    fn dump(
        &self,
        keyspace: &Keyspace,
        snapshot: &Snapshot,
        output: &mut Output,
        progress: &mut Progress,
        count: &mut u64,
    ) -> Result<(), Failure> {
        let form = self.key_arguments.form();
        let name = self.all_keyspaces.then(|| keyspace.name());
        let name = name.as_deref();
        let mut line = String::new();
        let (settings, ttl) = (Settings::of(keyspace), keyspace.ttl());
        if self.database.json && (name.is_some() || settings != Settings::default()) {
            record::write_json_keyspace(&mut line, name, &settings);
            output.line(&line)?;
        } else if settings != Settings::default() {
            record::write_tsv_settings(&mut line, &settings);
            output.line(&line)?;
        }
        for entry in snapshot.iter(keyspace) {
            let (key, value) = entry?;
            line.clear();
            let value = Some(Shown::Bytes(value.as_ref()));
            let expiry = self.expiry_to_write(keyspace, snapshot, ttl, key.as_ref())?;
            if self.database.json {
                record::write_json(&mut line, name, key.as_ref(), value, form);
                expiry.into_iter().for_each(|expiry| record::write_json_expiry(&mut line, expiry));
            } else {
                record::write_tsv(&mut line, key.as_ref(), value, form);
                expiry.into_iter().for_each(|expiry| record::write_tsv_expiry(&mut line, expiry));
            }
            output.line(&line)?;
            *count += 1;
            if count.is_multiple_of(PROGRESS_STEP) {
                progress.set(*count);
            }
        }
        Ok(())
    }

    /// The expiry of a key, where a put without one would not get it.
    fn expiry_to_write(
        &self,
        keyspace: &Keyspace,
        snapshot: &Snapshot,
        ttl: Ttl,
        key: &[u8],
    ) -> Result<Option<Expiry>, Failure> {
        let Ttl::Enabled { default } = ttl else { return Ok(None) };
        let expiry = snapshot.expires_at(keyspace, key)?;
        Ok(expiry.filter(|expiry| *expiry != Expiry::Never || default.is_some()))
    }
}
