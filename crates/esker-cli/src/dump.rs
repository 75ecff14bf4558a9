//! `esker dump`: writes a keyspace, or all, as lines that `esker load` reads.

use crate::arguments::{DatabaseArguments, KeyArguments};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::record::{self, Shown};
use crate::{keyspaces, open};
use esker::{Keyspace, Snapshot};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker dump --db data > data.tsv
  esker dump --db data --json --all-keyspaces --output data.jsonl
  esker dump --db data --json --all-keyspaces | esker load --db copy --json

A dump sees one moment of the database, also beside a running writer.
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
    /// All keyspaces with their merge operators
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
        let mut line = String::new();
        if let Some(name) = name {
            record::write_json_keyspace(&mut line, name, keyspace.merge_operator().as_deref());
            output.line(&line)?;
        }
        for entry in snapshot.iter(keyspace) {
            let (key, value) = entry?;
            line.clear();
            let value = Some(Shown::Bytes(value.as_ref()));
            if self.database.json {
                record::write_json(&mut line, name, key.as_ref(), value, form);
            } else {
                record::write_tsv(&mut line, key.as_ref(), value, form);
            }
            output.line(&line)?;
            *count += 1;
            if count.is_multiple_of(PROGRESS_STEP) {
                progress.set(*count);
            }
        }
        Ok(())
    }
}
