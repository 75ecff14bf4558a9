//! `esker load`: writes the lines of a file or of standard input.

use crate::arguments::{DatabaseArguments, KeyArguments, WriteArguments};
use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use crate::record::{self, Change, Record};
use crate::{open, output};
use esker::{Batch, Db, Keyspace, WriteOptions};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker load --db data users.tsv
  esker dump --db old --json --all-keyspaces | esker load --db new --json
  esker load --db data --keyspace hits --merge-operator uint64add --json hits.jsonl

Lines are KEY<TAB>VALUE, or with --json objects:
  {\"key\":\"a\",\"value\":\"1\"}   {\"key\":\"a\",\"op\":\"delete\"}   {\"key\":\"n\",\"op\":\"merge\",\"value\":1}
  \"keyspace\" in an object names another keyspace; a number is 8 bytes, little-endian.
A line that cannot be read ends the load: the message says which lines are written.";

/// An escaped value of the largest size, with key and JSON around it: a longer line holds nothing that could be stored.
const LONGEST_LINE: u64 = 5 << 30;
/// Bounds the memory of one batch, whatever the number of records in it.
const LARGEST_BATCH_BYTES: usize = 4 << 20;

/// Write the lines of a file or of standard input, in batches; creates database and keyspace if missing
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Load {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    #[command(flatten)]
    write: WriteArguments,
    /// Records written together
    #[arg(long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: u64,
    /// The file; standard input if left out or -
    file: Option<PathBuf>,
}

impl Load {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let (mut source, mut progress) = self.source()?;
        let db = open::or_create(&self.database.db)?;
        let mut loading = Loading::new(&db, &self)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = source.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    let what = format!("cannot read {}", source.name);
                    return Err(loading.with_state(Failure::io(&what, &error)));
                }
            }
            loading.take_line(&line, &source.name)?;
            if loading.batch.is_empty() {
                progress.set(if source.counts_bytes { loading.bytes } else { loading.lines });
            }
        }
        loading.commit()?;
        let (records, bytes, batches) = (loading.records, loading.bytes, loading.batches);
        drop(loading);
        drop(progress);
        db.close()?;
        let seconds = started.elapsed().as_secs_f64();
        output::print_line(&if self.database.json {
            format!(r#"{{"records":{records},"bytes":{bytes},"batches":{batches},"seconds":{seconds:.3}}}"#)
        } else {
            format!("loaded {records} records from {} in {seconds:.2} s", output::bytes_text(bytes))
        })
    }

    fn source(&self) -> Result<(Source, Progress), Failure> {
        match self.file.as_deref().filter(|path| path.as_os_str() != "-") {
            None => {
                let reader: Box<dyn BufRead> = Box::new(io::stdin().lock());
                let source = Source { reader, name: "standard input".into(), counts_bytes: false };
                Ok((source, Progress::new("loading", Unit::Records, None)))
            }
            Some(path) => {
                let what = format!("cannot open {}", path.display());
                let failed = |error: io::Error| Failure::io(&what, &error);
                let file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    return Err(Failure::Operation(format!("{} is a directory; name a file", path.display())));
                }
                let total = metadata.is_file().then_some(metadata.len());
                let reader: Box<dyn BufRead> = Box::new(BufReader::with_capacity(1 << 17, file));
                let source = Source { reader, name: path.display().to_string(), counts_bytes: true };
                Ok((source, Progress::new("loading", Unit::Bytes, total)))
            }
        }
    }
}

struct Source {
    reader: Box<dyn BufRead>,
    name: String,
    counts_bytes: bool,
}

/// The state of a load. Invariant: lines 1 to `committed_lines` are in the database, the lines after them that were read are in
/// `batch` only.
struct Loading<'a> {
    db: &'a Db,
    load: &'a Load,
    options: WriteOptions,
    keyspaces: HashMap<String, Keyspace>,
    default: Keyspace,
    batch: Batch,
    batch_bytes: usize,
    lines: u64,
    committed_lines: u64,
    records: u64,
    bytes: u64,
    batches: u64,
}

impl<'a> Loading<'a> {
    fn new(db: &'a Db, load: &'a Load) -> Result<Loading<'a>, Failure> {
        let default = open::keyspace_or_create(db, &load.key_arguments.keyspace, load.write.merge_operator.as_deref())?;
        Ok(Loading {
            db,
            load,
            options: load.write.options(),
            keyspaces: HashMap::new(),
            default,
            batch: db.batch(),
            batch_bytes: 0,
            lines: 0,
            committed_lines: 0,
            records: 0,
            bytes: 0,
            batches: 0,
        })
    }

    /// Adds a line, and commits the batch when it is full.
    fn take_line(&mut self, line: &[u8], source: &str) -> Result<(), Failure> {
        self.lines += 1;
        self.bytes += line.len() as u64;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(());
        }
        let form = self.load.key_arguments.form();
        let parsed =
            if self.load.database.json { record::parse_json(line, form) } else { record::parse_tsv(line, form) };
        let added = parsed.and_then(|record| self.add(record));
        if let Err(problem) = added {
            let what = format!("line {} of {source}: {problem}; {}", self.lines, self.state());
            return Err(Failure::Operation(format!("{what}; correct the line and load the rest")));
        }
        self.batch_bytes += line.len();
        if self.batch.len() as u64 >= self.load.batch || self.batch_bytes >= LARGEST_BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn add(&mut self, record: Record) -> Result<(), String> {
        let result = match record {
            Record::Keyspace { name, merge_operator } => {
                return self.open_keyspace(&name, merge_operator.as_deref()).map(|_| ());
            }
            Record::Change { keyspace, key, change } => {
                let keyspace = match keyspace {
                    None => self.default.clone(),
                    Some(name) => self.open_keyspace(&name, None)?,
                };
                match change {
                    Change::Put(value) => self.batch.put(&keyspace, key, value),
                    Change::Merge(operand) => self.batch.merge(&keyspace, key, operand),
                    Change::Delete => self.batch.delete(&keyspace, key),
                }
            }
        };
        self.records += 1;
        result.map_err(|error| error.to_string())
    }

    fn open_keyspace(&mut self, name: &str, operator: Option<&str>) -> Result<Keyspace, String> {
        if name == self.default.name() && operator.is_none() {
            return Ok(self.default.clone());
        }
        if let (Some(keyspace), None) = (self.keyspaces.get(name), operator) {
            return Ok(keyspace.clone());
        }
        let keyspace = open::keyspace_or_create(self.db, name, operator).map_err(|failure| match failure {
            Failure::Usage(text) | Failure::Operation(text) => text,
            other => format!("{other:?}"),
        })?;
        self.keyspaces.insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            let result = self.batch.commit_and_clear(&self.options);
            result.map_err(|error| self.with_state(Failure::from(error)))?;
            self.batches += 1;
        }
        self.batch_bytes = 0;
        self.committed_lines = self.lines;
        Ok(())
    }

    fn state(&self) -> String {
        match self.committed_lines {
            0 => "nothing was written".into(),
            lines => format!("lines 1 to {lines} are written, nothing after them"),
        }
    }

    fn with_state(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Operation(text) => Failure::Operation(format!("{text}; {}", self.state())),
            other => other,
        }
    }
}
