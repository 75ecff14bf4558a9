//! A check of a directory that need not open as a database.
//!
//! What opens is checked as any handle is (`verify.rs`). Otherwise every part is gone over on its
//! own: the manifest, each table that it names, the large values that tables and log refer to, and
//! the log. A writer may be at work beside this: of a table that is gone meanwhile nothing is told,
//! and the log is read again if the manifest has changed.

use crate::base::batch::{AnyOperation, Operations};
use crate::base::blob_reference::{BlobReference, DistinctValues};
use crate::base::key::{Kind, MAX_SEQUENCE, Sequence};
use crate::base::key_order::KeyOrder;
use crate::blob::{BlobFile, BlobStore};
use crate::db::lifecycle::{directory, open};
use crate::db::maintenance::repair::survey::survey;
use crate::db::maintenance::verify::{VerifyEvent, VerifyReport, verify};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::table::{BlockCache, Checked, Table, verify_file};
use crate::version::edit::ManifestState;
use crate::version::file_name::{CURRENT, manifest_number, table, table_number};
use crate::version::manifest::{InForce, read_current, stamp};
use crate::wal::reader::Record;
use crate::wal::segment::file_number;
use crate::wal::verify as log;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So often all is begun anew where nothing is found that explains why the directory does not open:
/// a writer beside this may have been at work.
const ATTEMPTS: usize = 3;
/// So often the log is read anew where the manifest changes meanwhile.
const LOG_ATTEMPTS: usize = 5;

/// Checks the database in `directory`, and tells of all damage.
pub fn verify_directory(
    directory: &Path,
    options: &Options,
    tell: &mut dyn FnMut(VerifyEvent<'_>),
) -> Result<VerifyReport> {
    let mut attempt = 1;
    loop {
        let error = match open::open_read_only(directory, options.clone()) {
            Ok(inner) => return verify(&inner, tell),
            Err(Error::NotFound { what }) => without_current(directory, options, what)?,
            Err(error) => error,
        };
        if path_of(&error).is_none() {
            return Err(error);
        }
        let mut walk = Walk::new(directory, options.resolved(), tell);
        walk.run()?;
        if walk.first.is_none() && attempt < ATTEMPTS {
            attempt += 1;
            continue;
        }
        let is_explained = walk.explains(&error);
        let first = walk.first;
        if !is_explained {
            tell(VerifyEvent::Damage(&error));
        }
        return Err(first.unwrap_or(error));
    }
}

/// The error about `CURRENT`, if the directory without one was a database.
fn without_current(path: &Path, options: &Options, what: String) -> Result<Error> {
    let refused = if options.env.exists(path)? { directory::refuse_missing_current(options, path) } else { Ok(()) };
    match refused {
        Err(error @ Error::Corruption { .. }) => Ok(error),
        Err(error) => Err(error),
        Ok(()) => Err(Error::NotFound { what }),
    }
}

/// The file that is damaged or cannot be read, if the error is about one.
fn path_of(error: &Error) -> Option<&Path> {
    match error {
        Error::Corruption { path, .. }
        | Error::Io { path, .. }
        | Error::Unsupported { path, .. }
        | Error::UnsupportedCompression { path, .. } => Some(path),
        _ => None,
    }
}

/// The readable part of the manifest.
struct Found {
    state: ManifestState,
    /// All of it could be read.
    is_whole: bool,
    /// The tables in the directory, where they must be looked at because the manifest does not say
    /// which are in use.
    tables: BTreeSet<u64>,
    /// While this is the same, the content of the manifest is the same.
    stamp: Option<(u64, u64)>,
}

/// Damage of a table or of the log, which is told if they still are in use at the end.
#[derive(Default)]
struct Places {
    damage: Vec<Error>,
    /// Blob files that do not open.
    blobs: BTreeMap<u64, Error>,
}

/// A check under way.
struct Walk<'a> {
    directory: &'a Path,
    options: Options,
    tell: &'a mut dyn FnMut(VerifyEvent<'_>),
    cache: Arc<BlockCache>,
    blobs: Arc<BlobStore>,
    /// Blob files that do not open, if they are there: their values have checksums of their own.
    damaged_blobs: BTreeMap<u64, Option<BlobFile>>,
    /// The files of which something was told, and whether that was about the file as a whole.
    told: BTreeMap<PathBuf, bool>,
    first: Option<Error>,
    done: u64,
    total: u64,
}

impl<'a> Walk<'a> {
    fn new(directory: &'a Path, options: Options, tell: &'a mut dyn FnMut(VerifyEvent<'_>)) -> Walk<'a> {
        Walk {
            cache: Arc::new(BlockCache::new(options.block_cache_bytes)),
            blobs: directory::blob_store(directory, &options),
            directory,
            options,
            tell,
            damaged_blobs: BTreeMap::new(),
            told: BTreeMap::new(),
            first: None,
            done: 0,
            total: 0,
        }
    }

    fn run(&mut self) -> Result<()> {
        let Some(found) = self.manifest() else { return Ok(()) };
        let tables = found.state.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
        self.total = tables.fold(self.log_bytes(), |sum, place| sum.saturating_add(place.bytes));
        self.tables(&found)?;
        self.log(found)
    }

    /// Tells of damage, but of a file as a whole only once.
    fn damage(&mut self, error: Error) {
        let is_whole = !matches!(error, Error::Corruption { offset: 1.., .. });
        if let Some(path) = path_of(&error) {
            let told = self.told.entry(path.to_path_buf()).or_default();
            if is_whole && std::mem::replace(told, true) && path != self.directory {
                return;
            }
        }
        (self.tell)(VerifyEvent::Damage(&error));
        self.first.get_or_insert(error);
    }

    fn progress(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes).min(self.total);
        (self.tell)(VerifyEvent::Progress { done: self.done, total: self.total });
    }

    /// Whether damage was reported in the file that this error names. An error of the log may name
    /// the directory, and one of the manifest `CURRENT`.
    fn explains(&self, error: &Error) -> bool {
        let names = |is: &dyn Fn(&str) -> bool| self.told.keys().filter_map(|path| path.file_name()?.to_str()).any(is);
        path_of(error).is_some_and(|path| {
            self.told.contains_key(path)
                || (path == self.directory && names(&|name| file_number(name).is_some()))
                || (path == self.directory.join(CURRENT) && names(&|name| manifest_number(name).is_some()))
        })
    }

    /// Reads the current manifest, or the readable part of it. `None` if a newer version of the
    /// engine has written it.
    fn manifest(&mut self) -> Option<Found> {
        let env = Arc::clone(&self.options.env);
        let stamp = stamp(&*env, self.directory).unwrap_or_default();
        let error = match read_current(&*env, self.directory) {
            Ok(Some(InForce { state, .. })) => {
                return Some(Found { state, is_whole: true, tables: BTreeSet::new(), stamp });
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        match survey(self.directory, &self.options) {
            Ok(survey) => {
                let is_told = !survey.damaged.is_empty();
                for (name, offset, what) in survey.damaged {
                    self.damage(Error::corruption(self.directory.join(name), offset, what));
                }
                if let Some(error) = error.filter(|_| !is_told) {
                    self.damage(error);
                }
                Some(Found { state: survey.state, is_whole: survey.is_whole, tables: survey.tables, stamp })
            }
            Err(error) => {
                let is_newer = matches!(error, Error::Unsupported { .. });
                self.damage(error);
                let names = env.list(self.directory).unwrap_or_default();
                let tables = names.iter().filter_map(|name| table_number(name)).collect();
                let state = ManifestState::default();
                (!is_newer).then_some(Found { state, is_whole: false, tables, stamp })
            }
        }
    }

    fn tables(&mut self, found: &Found) -> Result<()> {
        let mut unnamed = found.tables.clone();
        for record in found.state.keyspaces.values() {
            let order = self.options.key_order(&record.name, &record.comparator)?;
            for (&number, place) in &record.tables {
                unnamed.remove(&number);
                self.table(found, number, Some(place.bytes), &order)?;
            }
        }
        if !found.is_whole {
            for number in unnamed {
                self.unnamed_table(found, number)?;
            }
        }
        Ok(())
    }

    /// A table that what is left of the manifest does not name. One without an end was not
    /// finished.
    fn unnamed_table(&mut self, found: &Found, number: u64) -> Result<()> {
        let path = self.directory.join(table(number));
        let label = self.options.env.open(&path).and_then(|file| {
            let has_an_end = Table::has_an_end(&*file, number)?;
            Ok(if has_an_end { Some(Table::label(&*file, &path, number)?) } else { None })
        });
        let order = match label {
            Ok(None) => return Ok(()),
            Ok(Some(Some(label))) => self.options.key_order(&label.name, &label.comparator)?,
            // What is wrong shows when it is read.
            Ok(Some(None)) | Err(_) => KeyOrder::Bytewise,
        };
        self.table(found, number, None, &order)
    }

    /// Checks a table. `bytes`: how long it should be, if that is known.
    fn table(&mut self, found: &Found, number: u64, bytes: Option<u64>, order: &KeyOrder) -> Result<()> {
        let path = self.directory.join(table(number));
        let mut places = Places::default();
        match self.read_table(&path, number, bytes, order, &mut places) {
            Err(error) if path_of(&error).is_some() => places.damage.push(error),
            result => result?,
        }
        let is_damaged = !places.damage.is_empty() || !places.blobs.is_empty();
        if is_damaged && self.still_names(found, number) {
            self.tell_all(places);
        }
        Ok(())
    }

    fn tell_all(&mut self, places: Places) {
        places.blobs.into_values().chain(places.damage).for_each(|error| self.damage(error));
    }

    fn read_table(
        &mut self,
        path: &Path,
        number: u64,
        bytes: Option<u64>,
        order: &KeyOrder,
        places: &mut Places,
    ) -> Result<()> {
        if !self.options.env.exists(path)? {
            return Err(Error::corruption(path, 0, "the table is missing"));
        }
        let file = self.options.env.open(path)?;
        let length = file.len();
        if let Some(bytes) = bytes.filter(|&bytes| bytes != length) {
            let what = format!("the table should have {bytes} bytes, it has {length}");
            places.damage.push(Error::corruption(path, length, what));
        }
        verify_file(file, path, number, Arc::clone(&self.cache), order, &mut |checked| {
            match checked {
                Checked::Bytes(bytes) => self.progress(bytes),
                Checked::Large(reference) => self.large_value(reference, places),
                Checked::Damage(error) => places.damage.push(error),
            }
            Ok(())
        })
    }

    /// Whether the table is still in use, as far as the manifest can be read.
    fn still_names(&self, found: &Found, number: u64) -> bool {
        if !found.is_whole || self.is_unchanged(found) {
            return true;
        }
        match read_current(&*self.options.env, self.directory) {
            Ok(Some(now)) => now.state.keyspaces.values().any(|keyspace| keyspace.tables.contains_key(&number)),
            Ok(None) | Err(_) => true,
        }
    }

    fn is_unchanged(&self, found: &Found) -> bool {
        stamp(&*self.options.env, self.directory).unwrap_or_default() == found.stamp
    }

    /// Checks a large value that something refers to.
    fn large_value(&mut self, reference: &BlobReference, places: &mut Places) {
        let number = reference.file;
        if let Entry::Vacant(unknown) = places.blobs.entry(number) {
            // A writer beside this may be appending to it.
            match self.blobs.open_file(number, reference.end().unwrap_or(0)) {
                Ok(file) => return places.damage.extend(file.read(reference).err()),
                Err(error) => unknown.insert(error),
            };
        }
        let (env, directory) = (&*self.options.env, self.directory);
        let open = || BlobFile::open_for_check(env, directory, number).ok();
        if let Some(file) = self.damaged_blobs.entry(number).or_insert_with(open) {
            places.damage.extend(file.read_stored(reference).err());
        }
    }

    fn log_bytes(&self) -> u64 {
        let env = &*self.options.env;
        let names = env.list(self.directory).unwrap_or_default();
        let segments = names.iter().filter(|name| file_number(name).is_some());
        let lengths = segments.filter_map(|name| Some(env.open(&self.directory.join(name)).ok()?.len()));
        lengths.fold(0, u64::saturating_add)
    }

    fn log(&mut self, mut found: Found) -> Result<()> {
        let maker = directory::segments_to_read(self.directory, &self.options);
        for _ in 0..LOG_ATTEMPTS {
            let state = &found.state;
            let expected = log::Expected {
                floor: found.is_whole.then_some(state.log_floor),
                synced: if found.is_whole { state.log_synced.into() } else { Default::default() },
                closed: state.closed.filter(|_| found.is_whole).map(Into::into),
            };
            let mut orders = BTreeMap::new();
            for (&id, record) in &state.keyspaces {
                orders.insert(id, self.options.key_order(&record.name, &record.comparator)?);
            }
            let (places, checked) = (Places::default(), DistinctValues::default());
            let mut records = Records { walk: self, found: &found, orders, checked, places };
            let result = log::verify(&maker, &expected, &mut records);
            let mut places = records.places;
            match result {
                Err(error) if path_of(&error).is_some() => places.damage.push(error),
                result => result?,
            }
            if !found.is_whole || self.is_unchanged(&found) {
                self.tell_all(places);
                return Ok(());
            }
            let stamp = stamp(&*self.options.env, self.directory).unwrap_or_default();
            if let Ok(Some(InForce { state, .. })) = read_current(&*self.options.env, self.directory) {
                found = Found { state, stamp, ..found };
            }
        }
        // The manifest changes, so a writer is open, which read the manifest without an error.
        Ok(())
    }
}

/// The check of the records of the log.
struct Records<'w, 'a> {
    walk: &'w mut Walk<'a>,
    found: &'w Found,
    /// Of the keyspaces that there are.
    orders: BTreeMap<u64, KeyOrder>,
    /// Large values that were looked at: many records may refer to one.
    checked: DistinctValues,
    places: Places,
}

impl log::Visitor for Records<'_, '_> {
    fn check(&mut self, record: &Record<'_>) -> Result<log::Checked> {
        let operations = Operations::new(record.payload).collect::<std::result::Result<Vec<_>, _>>();
        let operations = operations.map_err(|error| error.at(record.path, record.offset))?;
        let last = self.last_of(record, &operations)?;
        let mut places = Places::default();
        for (operation, sequence) in operations.iter().zip(record.sequence..) {
            let AnyOperation::Key(operation) = operation else { continue };
            let flushed = self.found.state.keyspaces.get(&operation.keyspace).map(|keyspace| keyspace.flushed);
            // Of a keyspace that was dropped nothing is needed.
            if operation.kind != Kind::PutBlob || flushed.is_none_or(|flushed| sequence <= flushed) {
                continue;
            }
            let Some(reference) = BlobReference::decode(operation.value) else {
                let what = "a reference to a large value is malformed";
                return Err(Error::corruption(record.path, record.offset, what));
            };
            let is_new = self.checked.insert(reference);
            if is_new.map_err(|what| Error::corruption(record.path, record.offset, what))? {
                self.walk.large_value(&reference, &mut places);
                // That is no end of a log: see `lifecycle/recovery.rs`.
                if let Entry::Occupied(error) = places.blobs.entry(reference.file)
                    && self.walk.blobs.is_missing(reference.file)?
                {
                    return Err(error.remove());
                }
            }
        }
        Ok(log::Checked { last, missing: places.blobs.into_values().chain(places.damage).collect() })
    }

    fn damage(&mut self, error: Error) {
        self.places.damage.push(error);
    }

    fn bytes(&mut self, bytes: u64) {
        self.walk.progress(bytes);
    }
}

impl Records<'_, '_> {
    /// The last sequence number of the record, if a replay would not refuse it: see
    /// `lifecycle/recovery.rs`. Without a whole manifest it is not known which keyspaces there are.
    fn last_of(&self, record: &Record<'_>, operations: &[AnyOperation<'_>]) -> Result<Sequence> {
        let wrong = |what: &str| Err(Error::corruption(record.path, record.offset, what));
        for operation in operations {
            let (id, order) = (operation.keyspace(), self.orders.get(&operation.keyspace()));
            if order.is_none() && self.found.is_whole && id >= self.found.state.next_keyspace {
                return wrong(&format!("an operation on keyspace {id}, which does not exist"));
            }
            let order = order.filter(|order| order.is_trusted());
            if let (AnyOperation::Range(range), Some(order)) = (operation, order)
                && !range.is_possible(order)
            {
                return wrong("a range delete that ends before it begins");
            }
        }
        match (operations.len() as u64).checked_sub(1).map(|others| record.sequence.saturating_add(others)) {
            None => wrong("an empty batch"),
            Some(last) if last > MAX_SEQUENCE => wrong("an impossible sequence number"),
            Some(last) => Ok(last),
        }
    }
}
