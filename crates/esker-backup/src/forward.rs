//! A restore that goes on behind its backup, with the changes that a database has kept.
//!
//! The backup is restored to a directory beside the one that was named, with `.restore-forward`
//! behind its name. The changes behind the backup are applied to it, batch by batch, and it is
//! renamed when all of them are durable. A file beside it, with `.unfinished` behind that name, is
//! there first and goes last: it says that the directory is one of a restore. One that was cut
//! short is removed by the next; a directory without that file is not touched.
//!
//! The clock of the database stands still before everything that can expire while changes are
//! applied: what had expired when a change was made is decided by the change itself, and so is what
//! expires when.

use crate::error::{Error, Result};
use crate::layout;
use crate::restore::{self, sync_directory};
use esker::{
    Batch, Change, ChangeBatch, ChangeOperation, Changes, Comparator, Db, Expiry, Keyspace, KeyspaceOptions,
    KeyspaceSettings, ManualClock, MergeOperator, Options, Slice, Ttl,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// From where, and how far, a restore goes on behind its backup.
///
/// ```
/// let forward = esker_backup::Forward::new("data").to_sequence(7);
/// # let _ = forward;
/// ```
#[derive(Clone)]
pub struct Forward {
    changes_from: PathBuf,
    to_sequence: Option<u64>,
    comparators: Vec<Arc<dyn Comparator>>,
    operators: Vec<Arc<dyn MergeOperator>>,
}

impl std::fmt::Debug for Forward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forward")
            .field("changes_from", &self.changes_from)
            .field("to_sequence", &self.to_sequence)
            .finish_non_exhaustive()
    }
}

impl Forward {
    /// With the changes that the database in this directory has kept
    /// ([`Options::keep_changes`](esker::Options::keep_changes)): the database that the backup was
    /// made of, which may be open, or have crashed. It is read, and not changed.
    ///
    /// Another database is refused if a keyspace of the backup had another name, comparator, merge
    /// operator or time to live in it, or none with its number, at the write that the backup ends
    /// with; two that agree in all that cannot be told apart.
    ///
    /// ```
    /// let forward = esker_backup::Forward::new("data");
    /// # let _ = forward;
    /// ```
    #[must_use]
    pub fn new(changes_from: impl Into<PathBuf>) -> Forward {
        let (comparators, operators) = (Vec::new(), Vec::new());
        Forward { changes_from: changes_from.into(), to_sequence: None, comparators, operators }
    }

    /// Up to the write with this number: the batch that it is the last write of is the last one,
    /// and a batch that goes beyond it is left out. Without it, up to the last change.
    ///
    /// ```
    /// let forward = esker_backup::Forward::new("data").to_sequence(81_726);
    /// # let _ = forward;
    /// ```
    #[must_use]
    pub fn to_sequence(mut self, sequence: u64) -> Forward {
        self.to_sequence = Some(sequence);
        self
    }

    /// A comparator that a keyspace has, as for
    /// [`Options::comparator`](esker::Options::comparator). Call it once for each.
    ///
    /// ```
    /// use std::sync::Arc;
    /// struct ByLength;
    /// impl esker::Comparator for ByLength {
    ///     fn name(&self) -> &str { "example.by-length" }
    ///     fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    ///         a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    ///     }
    /// }
    /// let forward = esker_backup::Forward::new("data").comparator(Arc::new(ByLength));
    /// # let _ = forward;
    /// ```
    #[must_use]
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Forward {
        self.comparators.push(comparator);
        self
    }

    /// A merge operator of the program's own that a keyspace has, or had at some place behind the
    /// backup. Call it once for each.
    ///
    /// ```
    /// # let operator = esker::merge::UInt64Add;
    /// use std::sync::Arc;
    /// let forward = esker_backup::Forward::new("data").merge_operator(Arc::new(operator));
    /// # let _ = forward;
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> Forward {
        self.operators.push(operator);
        self
    }

    /// Up to which write the backup to begin with may go.
    pub(crate) fn end(&self) -> u64 {
        self.to_sequence.unwrap_or(u64::MAX)
    }

    fn options(&self) -> Options {
        let comparators = self.comparators.iter().cloned();
        comparators.fold(Options::default().create_if_missing(false), Options::comparator)
    }

    fn operator(&self, name: &str) -> Option<Arc<dyn MergeOperator>> {
        let own = self.operators.iter().find(|operator| operator.name() == name);
        own.cloned().or_else(|| esker::merge::built_in(name))
    }

    fn needed_operator(&self, keyspace: &str, name: &str) -> Result<Arc<dyn MergeOperator>> {
        self.operator(name).ok_or_else(|| {
            let (keyspace, operator) = (keyspace.to_owned(), name.to_owned());
            Error::Database(esker::Error::MissingMergeOperator { keyspace, operator })
        })
    }
}

/// What the file beside the directory says.
const MARK: &[u8] = b"beside it is an unfinished restore of a backup and of changes\n";

/// The directory in which the restore is made.
pub fn unfinished(directory: &Path) -> Result<PathBuf> {
    let name = directory.file_name().ok_or_else(|| {
        Error::invalid(format!("{} has no name that a directory beside it could have", directory.display()))
    })?;
    Ok(directory.with_file_name(with_suffix(name, ".restore-forward")))
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut longer = OsString::from(name);
    longer.push(suffix);
    longer
}

fn mark_of(unfinished: &Path) -> PathBuf {
    PathBuf::from(with_suffix(unfinished.as_os_str(), ".unfinished"))
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether there is anything in a directory, which need not exist.
fn has_entries(directory: &Path) -> Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("list", directory, error)),
    }
}

/// Refuses a directory with something in it, removes what a restore that was cut short has left
/// beside it, and marks that place.
pub fn begin(directory: &Path, unfinished: &Path) -> Result<()> {
    if has_entries(directory)? {
        return Err(Error::invalid(format!("{} is not empty; name a new directory", directory.display())));
    }
    let mark = mark_of(unfinished);
    let is_ours = match fs::read(&mark) {
        // Of one that was cut short, there is nothing beside it yet.
        Ok(text) if MARK.starts_with(&text) => text == MARK,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(Error::io("read", &mark, error)),
        Ok(_) => {
            return Err(Error::invalid(format!("{} is there, and not of a restore; rename it", mark.display())));
        }
    };
    if !is_ours && has_entries(unfinished)? {
        return Err(Error::invalid(format!(
            "{} is not empty, and no restore says that it has made it; rename or remove it",
            unfinished.display()
        )));
    }
    remove_database(unfinished)?;
    restore::make_directory(parent_of(unfinished))?;
    write_mark(&mark).map_err(|error| Error::io("write", &mark, error))?;
    sync_directory(parent_of(unfinished))
}

/// Writes the mark over what there may be of it. It is never shorter than it was: cut short in
/// that, it would not say any more what the files beside it are.
fn write_mark(mark: &Path) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(false).write(true).open(mark)?;
    file.write_all(MARK)?;
    file.sync_all()
}

/// Removes the database that a restore has made, or what a removal that was cut short has left. The
/// files of an unfinished restore are left to the restore, which begins anew.
fn remove_database(unfinished: &Path) -> Result<()> {
    let exists = |name: &str| unfinished.join(name).exists();
    if !has_entries(unfinished)? || (exists(layout::UNFINISHED) && !exists(layout::CURRENT)) {
        return Ok(());
    }
    // Refused while another restore or a program has it open.
    Db::destroy(unfinished, Options::default()).map_err(Error::Database)?;
    let _ = fs::remove_file(unfinished.join(layout::LOCK));
    fs::remove_dir(unfinished).map_err(|error| Error::io("remove", unfinished, error))
}

/// Removes what a restore that has failed has made, as far as that can be done. The mark stays
/// beside what is left, or may come back, for the next one.
pub fn abandon(unfinished: &Path) {
    if remove_database(unfinished).is_ok() && !has_entries(unfinished).unwrap_or(true) {
        let _ = fs::remove_dir(unfinished);
        if sync_directory(parent_of(unfinished)).is_ok() {
            let _ = fs::remove_file(mark_of(unfinished));
        }
    }
}

/// Applies the changes behind the write `sequence`, which the database in `unfinished` ends with,
/// and puts it in the place of `directory`. The last write that was applied. Where it fails, what
/// it has made is removed.
pub fn finish(forward: &Forward, sequence: u64, directory: &Path, unfinished: &Path) -> Result<u64> {
    let reached = put_in_place(forward, sequence, directory, unfinished).inspect_err(|_| abandon(unfinished))?;
    // Without this the renaming may come undone, and the mark has to be there then.
    sync_directory(parent_of(directory))?;
    // All is done. One that stays marks a directory that is not there.
    let _ = fs::remove_file(mark_of(unfinished));
    Ok(reached)
}

fn put_in_place(forward: &Forward, sequence: u64, directory: &Path, unfinished: &Path) -> Result<u64> {
    let reached = Applying::apply_all(forward, sequence, unfinished).map_err(|error| match error {
        Failed::Engine(error) => Error::Database(error),
        Failed::Other(error) => error,
    })?;
    if directory.exists() {
        fs::remove_dir(directory).map_err(|error| Error::io("replace", directory, error))?;
    }
    fs::rename(unfinished, directory).map_err(|error| Error::io("rename", unfinished, error))?;
    Ok(reached)
}

/// What ends it.
enum Failed {
    Engine(esker::Error),
    Other(Error),
}

impl From<esker::Error> for Failed {
    fn from(error: esker::Error) -> Failed {
        Failed::Engine(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Other(error)
    }
}

/// A database to which changes are applied.
struct Applying<'f> {
    forward: &'f Forward,
    db: Db,
    /// By their numbers in the database that the changes are of.
    keyspaces: BTreeMap<u64, Keyspace>,
}

impl Applying<'_> {
    fn apply_all(forward: &Forward, sequence: u64, directory: &Path) -> std::result::Result<u64, Failed> {
        let source = Db::open_read_only(&forward.changes_from, forward.options())?;
        let last = source.stats().last_sequence;
        if last < sequence || forward.to_sequence.is_some_and(|end| end > last) {
            let wanted = forward.to_sequence.unwrap_or(sequence).max(sequence);
            return Err(Error::invalid(format!(
                "the database in {} ends at write {last}, before {wanted}",
                forward.changes_from.display()
            ))
            .into());
        }
        let changes = source.changes(sequence + 1)?;
        // Before everything that expires.
        let clock = Arc::new(ManualClock::new(1));
        let db = Db::open(directory, forward.options().clock(clock))?;
        let mut applying = Applying { forward, db, keyspaces: BTreeMap::new() };
        applying.take_keyspaces(&changes, sequence)?;
        let reached = applying.apply(changes, sequence)?;
        let Applying { db, keyspaces, .. } = applying;
        drop(keyspaces);
        db.flush()?;
        db.close()?;
        Ok(reached)
    }

    /// Takes the keyspaces of the backup, by their numbers in the database.
    fn take_keyspaces(&mut self, changes: &Changes, sequence: u64) -> std::result::Result<(), Failed> {
        for name in self.db.keyspaces() {
            let keyspace = self.db.existing_keyspace(&name)?;
            let known = changes.keyspace_settings(keyspace.id(), sequence)?;
            if !known.is_some_and(|known| is_described(&keyspace, &name, &known)) {
                return Err(Error::invalid(format!(
                    "the backup has a keyspace {name:?}, and the database in {} had none then with its number, name, \
                     comparator, operator and time to live: they are not of the same database",
                    self.forward.changes_from.display()
                ))
                .into());
            }
            if let Some(operator) = keyspace.merge_operator()
                && let Some(operator) = self.forward.operator(&operator)
            {
                self.db.keyspace(&name, KeyspaceOptions::default().shared_merge_operator(operator))?;
            }
            self.keyspaces.insert(keyspace.id(), keyspace);
        }
        Ok(())
    }

    fn apply(&mut self, mut changes: Changes, sequence: u64) -> std::result::Result<u64, Failed> {
        let mut reached = sequence;
        while let Some(batch) = changes.next() {
            let batch = batch?;
            if batch.next_sequence() - 1 > self.forward.end() {
                break;
            }
            self.apply_batch(&changes, &batch)?;
            reached = batch.next_sequence() - 1;
        }
        Ok(reached)
    }

    fn apply_batch(&mut self, changes: &Changes, batch: &ChangeBatch) -> std::result::Result<(), Failed> {
        let mut writes = self.db.batch();
        for change in &batch.changes {
            let keyspace = self.keyspace(changes, change)?;
            match &change.operation {
                ChangeOperation::DropKeyspace => {
                    self.keyspaces.remove(&change.keyspace_id);
                    self.db.drop_keyspace(&keyspace.name())?;
                }
                ChangeOperation::AlterKeyspace { merge_operator, ttl, .. } => {
                    self.alter(&keyspace, &change.keyspace, merge_operator.as_deref(), *ttl)?;
                }
                ChangeOperation::Load => {
                    return Err(Error::invalid(format!(
                        "write {} loads pairs into keyspace {:?}, which changes do not list: go no further than the \
                         write before it, or begin with a backup that was made later",
                        change.sequence, change.keyspace
                    ))
                    .into());
                }
                operation => add(&mut writes, &keyspace, operation)?,
            }
        }
        if !writes.is_empty() {
            writes.commit()?;
        }
        Ok(())
    }

    /// The keyspace of a change, made if it was created behind the backup.
    fn keyspace(&mut self, changes: &Changes, change: &Change) -> std::result::Result<Keyspace, Failed> {
        if let Some(keyspace) = self.keyspaces.get(&change.keyspace_id) {
            return Ok(keyspace.clone());
        }
        let settings = changes.keyspace_settings(change.keyspace_id, change.sequence - 1)?;
        let settings =
            settings.ok_or_else(|| esker::Error::KeyspaceDropped { keyspace: change.keyspace.to_string() })?;
        let keyspace = self.create(&settings)?;
        self.keyspaces.insert(change.keyspace_id, keyspace.clone());
        Ok(keyspace)
    }

    fn create(&self, settings: &KeyspaceSettings) -> std::result::Result<Keyspace, Failed> {
        let KeyspaceSettings { name, comparator, merge_operator, ttl, .. } = settings;
        let mut options = KeyspaceOptions::default().ttl(*ttl);
        if let Some(operator) = merge_operator {
            options = options.shared_merge_operator(self.forward.needed_operator(name, operator)?);
        }
        let own = self.forward.comparators.iter().find(|own| own.name() == &**comparator);
        options = match (own, &**comparator) {
            (Some(own), _) => options.shared_comparator(Arc::clone(own)),
            (None, "bytewise") => options,
            (None, "reverse-bytewise") => options.comparator(esker::ReverseBytewise),
            (None, other) => {
                let (keyspace, comparator) = (name.to_string(), other.to_owned());
                return Err(esker::Error::MissingComparator { keyspace, comparator }.into());
            }
        };
        Ok(self.db.keyspace(name, options)?)
    }

    fn alter(
        &self,
        keyspace: &Keyspace,
        name: &str,
        operator: Option<&str>,
        ttl: Ttl,
    ) -> std::result::Result<(), Failed> {
        keyspace.rename(name)?;
        if keyspace.ttl() != ttl {
            keyspace.set_ttl(ttl)?;
        }
        if let Some(operator) = operator.filter(|operator| keyspace.merge_operator().as_deref() != Some(operator)) {
            keyspace.set_shared_merge_operator(self.forward.needed_operator(name, operator)?)?;
        }
        Ok(())
    }
}

/// Whether this is what the database of the changes says of the keyspace with the same number.
fn is_described(keyspace: &Keyspace, name: &str, known: &KeyspaceSettings) -> bool {
    *known.name == *name
        && *known.comparator == *keyspace.comparator()
        && known.merge_operator.as_deref() == keyspace.merge_operator().as_deref()
        && known.ttl == keyspace.ttl()
}

/// Adds what a change has done. Where entries can expire, the change says when.
fn add(writes: &mut Batch, keyspace: &Keyspace, operation: &ChangeOperation) -> esker::Result<()> {
    match operation {
        ChangeOperation::Put { key, value, expiry: Expiry::At(time) } => writes.put_until(keyspace, key, value, *time),
        ChangeOperation::Put { key, value, expiry } => {
            writes.put(keyspace, key, value)?;
            set_expiry(writes, keyspace, key, *expiry)
        }
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            if *is_first {
                // What had expired by then has not by this clock.
                writes.delete(keyspace, key)?;
            }
            writes.merge(keyspace, key, operand)?;
            set_expiry(writes, keyspace, key, *expiry)
        }
        ChangeOperation::Delete { key } => writes.delete(keyspace, key),
        ChangeOperation::DeleteRange { start, end } => writes.delete_range(keyspace, (bound(start), bound(end))),
        other => Err(esker::Error::InvalidArgument {
            what: format!("this version does not know the change {other:?}; use a newer one"),
        }),
    }
}

fn bound(bound: &Bound<Slice>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// Sets the recorded expiry, which is not the one that a write of now would get.
fn set_expiry(writes: &mut Batch, keyspace: &Keyspace, key: &[u8], expiry: Expiry) -> esker::Result<()> {
    match (keyspace.ttl(), expiry) {
        (Ttl::Disabled, _) => Ok(()),
        (_, Expiry::At(time)) => writes.expire_at(keyspace, key, time),
        (_, _) => writes.persist(keyspace, key),
    }
}
