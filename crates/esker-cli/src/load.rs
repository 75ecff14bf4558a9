//! `esker load`: writes the lines of a file or of standard input.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType, WriteArguments};
use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use crate::record::{self, Change, Record};
use crate::settings::{self, Settings};
use crate::text::Form;
use crate::{open, output};
use esker::{Batch, Db, Expiry, Keyspace, Ttl, WriteOptions};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  esker load --db data users.tsv
  esker dump --db old --json --all-keyspaces | esker load --db new --json
  esker load --db data --keyspace hits --merge-operator uint64add --json hits.jsonl
  esker load --db data --csv --key id --value name customers.csv
  esker load --db data --csv --keyspace stock --merge-operator uint64add --as u64 stock.csv
  esker load --db data --raw paths.tsv

Lines are KEY<TAB>VALUE, with the escapes that `esker dump` writes; with --raw every byte but the first tab and the
line end stands for itself. With --csv the first record has the names of the columns. With --json lines are objects:

  {\"key\":\"a\",\"value\":\"1\"}
  {\"key\":\"a\",\"op\":\"delete\"}
  {\"key\":\"n\",\"op\":\"merge\",\"value\":1}
  {\"key\":\"s\",\"value\":\"1\",\"expires_at\":1893456000000}
  {\"keyspace\":\"s\",\"merge_operator\":null,\"ttl\":\"on\"}

\"keyspace\" in an object names another keyspace; a number is 8 bytes, little-endian; expires_at is in milliseconds
since 1970. In text the same stands behind a second tab. A number below 0 is one as int64add keeps it.

A line that cannot be read ends the load: the message says which lines are written.";

/// An escaped value of the largest size, with key and JSON around it: a longer line holds nothing
/// that could be stored.
const LONGEST_LINE: u64 = 5 << 30;
/// How text of some programs begins. A dump never does: it would be escaped.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// A record behind the last one of a file with CSV. Within quotes that are not closed it is none.
const LAST_RECORD: &[u8] = b"\n\x00esker: no record after this\x00\n";
const OPEN_QUOTE: &str = "a quote is not closed before the end of the file; a quote in a quoted field is written twice";
/// Bounds the memory of one batch, whatever the number of records in it.
const LARGEST_BATCH_BYTES: usize = 4 << 20;

/// Write the lines of a file or of standard input, in batches; creates database and keyspace if
/// missing
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
    /// Take keys and values as they are, without escapes: no backslash means anything
    #[arg(long, conflicts_with_all = ["json", "hex", "csv"])]
    raw: bool,
    /// Read CSV, whose first record names the columns; fields are taken as they are
    #[arg(long, conflicts_with_all = ["json", "hex"])]
    csv: bool,
    /// The column with the keys, by its name, or by its number from 1 on; the first if left out
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    key: Option<String>,
    /// The column with the values; the second if left out
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    value: Option<String>,
    /// Values are decimal numbers, which are stored as uint64add and int64add keep them
    #[arg(long = "as", value_name = "TYPE", conflicts_with_all = ["json", "hex"])]
    value_type: Option<ValueType>,
    /// The file; standard input if left out or -
    file: Option<PathBuf>,
}

impl Load {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let (mut source, mut progress) = self.source()?;
        let db = open::or_create(&self.database.db)?;
        let mut loading = Loading::new(&db, &self);
        let loaded = match self.csv {
            true => self.take_csv(source, &mut loading, &mut progress),
            false => self.take_lines(&mut source, &mut loading, &mut progress),
        };
        let loaded = loaded.and_then(|()| loading.finish());
        let (records, bytes, batches) = (loading.records, loading.bytes, loading.batches);
        drop(loading);
        drop(progress);
        // In any case: a log that was closed needs no tables, and so no room, at the next open.
        let closed = db.close();
        loaded?;
        closed?;
        let seconds = started.elapsed().as_secs_f64();
        output::print_line(&if self.database.json {
            format!(r#"{{"records":{records},"bytes":{bytes},"batches":{batches},"seconds":{seconds:.3}}}"#)
        } else {
            format!("loaded {records} records from {} in {seconds:.2} s", output::bytes_text(bytes))
        })
    }

    fn take_lines(
        &self,
        source: &mut Source,
        loading: &mut Loading<'_>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = source.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            match read {
                Ok(0) => return Ok(()),
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
    }

    fn take_csv(&self, source: Source, loading: &mut Loading<'_>, progress: &mut Progress) -> Result<(), Failure> {
        let Source { reader, name, counts_bytes } = source;
        let ended = reader.chain(LAST_RECORD);
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(ended);
        let unreadable = |error: csv::Error| Failure::Operation(format!("cannot read {name}: {error}; check the file"));
        let mut headers = reader.byte_headers().map_err(unreadable)?.clone();
        if is_end(&headers) {
            headers.clear();
        } else if has_open_quote(&headers) {
            return Err(Failure::Operation(format!("line 1 of {name}: {OPEN_QUOTE}")));
        }
        let key = column(&headers, self.key.as_deref(), 0)?;
        let value = column(&headers, self.value.as_deref(), 1)?;
        let mut fields = csv::ByteRecord::new();
        loop {
            match reader.read_byte_record(&mut fields) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(loading.with_state(unreadable(error))),
            }
            if is_end(&fields) {
                return Ok(());
            }
            loading.lines = fields.position().map_or(loading.lines, csv::Position::line);
            loading.bytes = reader.position().byte();
            let change = match (fields.len(), fields.get(key), fields.get(value)) {
                _ if has_open_quote(&fields) => Err(OPEN_QUOTE.into()),
                (count, Some(key), Some(value)) if count == headers.len() => {
                    let change = Change::Put(value.to_vec(), None);
                    Ok(Record::Change { keyspace: None, key: key.to_vec(), change })
                }
                // A comma too many moves what follows into the wrong column.
                (count, ..) => Err(format!(
                    "the record has {}{count} fields, and the first one {}; put a field with a comma in quotes",
                    if count < headers.len() { "only " } else { "" },
                    headers.len()
                )),
            };
            loading.take(change, fields.as_slice().len(), &name)?;
            if loading.batch.is_empty() {
                progress.set(if counts_bytes { loading.bytes } else { loading.lines });
            }
        }
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

/// Whether the file had no further record.
fn is_end(record: &csv::ByteRecord) -> bool {
    record.len() == 1 && record.get(0) == Some(LAST_RECORD.trim_ascii())
}

/// Whether a quote has made all the rest of the file one field.
fn has_open_quote(record: &csv::ByteRecord) -> bool {
    record.as_slice().ends_with(LAST_RECORD)
}

/// The place of a column that is named, or numbered from 1 on.
fn column(headers: &csv::ByteRecord, wanted: Option<&str>, usual: usize) -> Result<usize, Failure> {
    if let Some(wanted) = wanted
        && headers.iter().filter(|name| *name == wanted.as_bytes()).count() > 1
    {
        return Err(Failure::Operation(format!(
            "there is more than one column {wanted:?}; give its number, from 1 on, to --key or --value"
        )));
    }
    let found = match wanted {
        None => Some(usual),
        Some(wanted) => headers
            .iter()
            .position(|name| name == wanted.as_bytes())
            .or_else(|| wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1))),
    };
    if let Some(place) = found.filter(|place| *place < headers.len()) {
        return Ok(place);
    }
    let names: Vec<String> = headers.iter().map(|name| Form::Escaped.encode(name)).collect();
    let wanted = wanted.map_or(format!("number {}", usual + 1), |wanted| format!("{wanted:?}"));
    Err(Failure::Operation(format!(
        "there is no column {wanted} among {}; name one with --key and --value",
        if names.is_empty() { "none".into() } else { names.join(", ") }
    )))
}

fn text_of(failure: Failure) -> String {
    match failure {
        Failure::Usage(text) | Failure::Operation(text) => text,
        other => format!("{other:?}"),
    }
}

struct Source {
    reader: Box<dyn BufRead>,
    name: String,
    counts_bytes: bool,
}

/// The state of a load. Invariant: lines 1 to `committed_lines` are in the database, the lines
/// after them that were read are in `batch` only.
struct Loading<'a> {
    db: &'a Db,
    load: &'a Load,
    options: WriteOptions,
    keyspaces: HashMap<String, Keyspace>,
    batch: Batch,
    batch_bytes: usize,
    lines: u64,
    committed_lines: u64,
    records: u64,
    bytes: u64,
    batches: u64,
}

impl<'a> Loading<'a> {
    fn new(db: &'a Db, load: &'a Load) -> Loading<'a> {
        Loading {
            db,
            load,
            // Times to live are those of the operations of a batch, not of the batch.
            options: WriteOptions::new().sync(load.write.sync),
            keyspaces: HashMap::new(),
            batch: db.batch(),
            batch_bytes: 0,
            lines: 0,
            committed_lines: 0,
            records: 0,
            bytes: 0,
            batches: 0,
        }
    }

    /// Adds a line, and commits the batch when it is full.
    fn take_line(&mut self, line: &[u8], source: &str) -> Result<(), Failure> {
        self.lines += 1;
        self.bytes += line.len() as u64;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_marked = self.lines == 1 && !self.load.raw;
        let line = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_marked).unwrap_or(line);
        if line.is_empty() {
            return Ok(());
        }
        let form = self.load.key_arguments.form();
        let parsed = match (self.load.database.json, self.load.raw) {
            (true, _) => record::parse_json(line, form),
            (_, true) => record::parse_raw(line),
            _ => record::parse_tsv(line, form),
        };
        self.take(parsed, line.len(), source)
    }

    /// Adds what a line says, and commits the batch when it is full.
    fn take(&mut self, parsed: Result<Record, String>, bytes: usize, source: &str) -> Result<(), Failure> {
        let added = parsed.and_then(|record| self.add(record));
        if let Err(problem) = added {
            let what = format!("line {} of {source}: {problem}; {}", self.lines, self.state());
            return Err(Failure::Operation(format!("{what}; correct the line and load the rest")));
        }
        self.batch_bytes += bytes;
        if self.batch.len() as u64 >= self.load.batch || self.batch_bytes >= LARGEST_BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn add(&mut self, record: Record) -> Result<(), String> {
        let record = match (record, self.load.value_type) {
            (Record::Change { keyspace, key, change: Change::Put(value, expiry) }, Some(number)) => {
                let text = String::from_utf8_lossy(&value);
                let value = number.value_of(OsStr::new(&*text)).map_err(text_of)?;
                Record::Change { keyspace, key, change: Change::Put(value, expiry) }
            }
            (record, _) => record,
        };
        let result = match record {
            Record::Keyspace { name, settings } => {
                return self.open_keyspace(name.as_deref(), Some(settings)).map(|_| ());
            }
            Record::Change { keyspace, key, change } => {
                let keyspace = self.open_keyspace(keyspace.as_deref(), None)?;
                let required = match &change {
                    Change::Put(_, Some(Expiry::At(_))) => settings::require_ttl(&keyspace),
                    Change::Put(..) | Change::Merge(_) if self.load.write.ttl.is_some() => {
                        settings::require_ttl(&keyspace)
                    }
                    _ => Ok(()),
                };
                let required = required.and_then(|()| match &change {
                    Change::Merge(_) => settings::require_merge_operator(&keyspace),
                    _ => Ok(()),
                });
                required.map_err(text_of)?;
                match (change, self.load.write.ttl) {
                    (Change::Put(value, Some(Expiry::At(at))), _) => self.batch.put_until(&keyspace, key, value, at),
                    (Change::Put(value, Some(Expiry::Never)), _) => match keyspace.ttl() {
                        // A put alone would get the default.
                        Ttl::Enabled { default: Some(_) } => {
                            let put = self.batch.put(&keyspace, &key, value);
                            put.and_then(|()| self.batch.persist(&keyspace, &key))
                        }
                        _ => self.batch.put(&keyspace, key, value),
                    },
                    (Change::Put(value, None), Some(ttl)) => self.batch.put_with_ttl(&keyspace, key, value, ttl),
                    (Change::Put(value, None), None) => self.batch.put(&keyspace, key, value),
                    (Change::Merge(operand), Some(ttl)) => self.batch.merge_with_ttl(&keyspace, key, operand, ttl),
                    (Change::Merge(operand), None) => self.batch.merge(&keyspace, key, operand),
                    (Change::Delete, _) => self.batch.delete(&keyspace, key),
                }
            }
        };
        self.records += 1;
        result.map_err(|error| error.to_string())
    }

    /// The keyspace of that name, or the one that was requested; opened when it is first needed, so
    /// that a load creates none that gets nothing.
    fn open_keyspace(&mut self, name: Option<&str>, settings: Option<Settings>) -> Result<Keyspace, String> {
        let asked_for = &self.load.key_arguments.keyspace;
        let name = name.unwrap_or(asked_for);
        if let (Some(keyspace), None) = (self.keyspaces.get(name), &settings) {
            return Ok(keyspace.clone());
        }
        let settings = settings.unwrap_or_default();
        let write = &self.load.write;
        let opened = match name == asked_for {
            true => write.settings().or(settings).open(self.db, name, write.ttl.is_some()),
            false => settings.open(self.db, name, write.ttl.is_some()),
        };
        let keyspace = opened.map_err(text_of)?;
        self.keyspaces.insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Commits the rest. A load of nothing but text makes the keyspace all the same.
    fn finish(&mut self) -> Result<(), Failure> {
        if self.keyspaces.is_empty() && !self.load.database.json {
            self.open_keyspace(None, None).map_err(Failure::Operation)?;
        }
        self.commit()
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
