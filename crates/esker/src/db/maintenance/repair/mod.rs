//! Making a damaged database open again, with everything that can be read.
//!
//! 1. Take the lock. Undo a repair that was cut short. Open and verify as a reader would; if that
//!    succeeds there is nothing to do.
//! 2. Read the manifest as far as it can be; without one, take every table for what it says to be.
//!    Mark the directory (`db/files/repair_mark.rs`).
//! 3. Copy damaged tables block by block. Where the manifest does not give the order of tables,
//!    compact them by their sequence numbers.
//! 4. Replay the log as far as it can be read, and write that to tables.
//! 5. Give what was damaged or is not used a second name in the directory `lost`.
//! 6. Begin a log segment, write a manifest, and point `CURRENT` at it.
//! 7. Remove the mark, and then the first names of what is in `lost`. Cut short before that, the
//!    next open does it.
//!
//! Nothing that was there is changed before step 6 is done, which is one rename; cut short before
//! it, a repair begins anew, and the mark says what not to read then: the tables of an unfinished
//! repair say that they hold what is in the log, and those beside them that do may not have been
//! durable.

mod lost_settings;
mod removed_values;
mod report;
pub mod survey;
mod tables;

pub use report::{RepairReport, RepairedFile};

use crate::base::batch::{AnyOperation, Operations};
use crate::base::blob_reference::DistinctValues;
use crate::base::comparator::BYTEWISE;
use crate::base::key::Sequence;
use crate::base::memory::MemoryPool;
use crate::blob::format::file_number as blob_number;
use crate::db::files::lost_edit::{self, Lost};
use crate::db::files::{remover, repair_mark};
use crate::db::lifecycle::other_engine::refuse_other_engine;
use crate::db::lifecycle::{directory, recovery, recovery_flush};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::table::{BlockCache, Table, TableSummary};
use crate::version::edit::{KeyspaceRecord, MAX_KEYSPACE_ID, ManifestState, TableRecord};
use crate::version::file_name::{CURRENT, LOCK, LOST};
use crate::version::manifest::Manifest;
use crate::version::runs::Version;
use crate::version::salvage::Missing;
use crate::wal::salvage::{Known, SalvagedLog, salvage};
use crate::wal::segment::{Position, SegmentMaker, file_number as segment_number};
use crate::wal::writer::{Inherited, LogWriter};
use removed_values::RemovedValues;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use survey::{Survey, first_damage, survey};
use tables::{Found, Tables};

/// Repairs the database in `directory`.
pub fn repair(directory: &Path, options: &Options) -> Result<RepairReport> {
    options.validate()?;
    let env = &*options.env;
    let names = if env.exists(directory)? { env.list(directory)? } else { Vec::new() };
    if !names.iter().any(|name| directory::is_ours(name) && name != LOCK && name != LOST) {
        return Err(Error::NotFound { what: format!("database in {}", directory.display()) });
    }
    refuse_other_engine(env, directory)?;
    directory::refuse_unfinished_checkpoint(options, directory)?;
    let options = &options.resolved();
    let _lock = env.lock(&directory.join(LOCK))?;
    remover::remove_unfinished_repair(env, directory)?;
    if first_damage(directory, options)?.is_none() {
        return Ok(RepairReport { healthy: true, ..RepairReport::default() });
    }
    let Survey { state, missing, is_whole, damaged, tables, manifests, read_from } = survey(directory, options)?;
    // Before anything is written.
    for record in state.keyspaces.values() {
        options.key_order(&record.name, &record.comparator)?;
    }
    // That of the log segment that it begins too.
    let names = env.list(directory)?;
    let first_segment = names.iter().filter_map(|name| segment_number(name)).max().map_or(0, |number| number + 1);
    let first_made = directory::first_free_number(env, directory, state.next_file)?.max(first_segment);
    repair_mark::set(env, directory, first_made)?;
    let cache = Arc::new(BlockCache::new(options.block_cache_bytes));
    let blobs = directory::blob_store(directory, options);
    let mut work = Work {
        manifest_is_whole: is_whole,
        first_made,
        tables: Tables { directory, options, cache, next_file: AtomicU64::new(first_made), blobs },
        state,
        report: RepairReport::default(),
        aside: BTreeSet::new(),
        unordered: BTreeSet::new(),
        restored: BTreeSet::new(),
    };
    for (at, (name, offset, what)) in damaged.iter().enumerate() {
        if damaged[..at].iter().any(|(earlier, ..)| earlier == name) {
            continue;
        }
        let at = if *offset == 0 { String::new() } else { format!("at offset {offset}: ") };
        // `CURRENT` and manifests hold no entries; what is lost with them shows in tables and logs.
        work.note_file(name, format!("{at}{what}"), Some(0));
    }
    if !is_whole {
        work.aside.extend(manifests);
    }
    work.repair(&tables, missing.unwrap_or(Missing::Any), read_from)?;
    remover::remove_repair_mark(env, directory)?;
    work.report.lost_directory = remover::remove_kept(env, directory, &work.aside)?;
    Ok(work.report)
}

struct Work<'a> {
    manifest_is_whole: bool,
    /// Its files have this number or a higher one.
    first_made: u64,
    tables: Tables<'a>,
    /// What the new manifest will say.
    state: ManifestState,
    report: RepairReport,
    /// The names of the files to move away at the end.
    aside: BTreeSet<String>,
    /// The keyspaces about whose tables the manifest does not say all.
    unordered: BTreeSet<u64>,
    /// The keyspaces whose name and settings are those that their tables say.
    restored: BTreeSet<u64>,
}

/// The tables of one keyspace that no manifest names, with what is left of them.
type Unnamed = BTreeMap<u64, Vec<(u64, Found)>>;

/// The blob files that no table refers to. The next open would remove them, and they may be all
/// that is left of what they hold.
fn unused_values(
    env: &dyn Env,
    directory: &Path,
    recovering: &BTreeMap<u64, recovery::Recovering>,
) -> Result<Vec<String>> {
    let used = recovery::blobs_in_use(recovering);
    let is_unused = |name: &String| blob_number(name).is_some_and(|number| !used.contains(&number));
    Ok(env.list(directory)?.into_iter().filter(is_unused).collect())
}

impl Work<'_> {
    fn repair(&mut self, on_disk: &BTreeSet<u64>, missing: Missing, in_force: Option<String>) -> Result<()> {
        let maker =
            SegmentMaker { read_only: true, ..directory::segment_maker(self.tables.directory, self.tables.options) };
        let (mut in_log, mut last_in_log, mut removed) = (BTreeSet::new(), 0, RemovedValues::default());
        let known = Known { floor: self.state.log_floor, vouched: self.vouched(), in_tables: Sequence::MAX };
        let log = salvage(&maker, known, &mut |record| {
            let operations = Operations::new(record.payload).collect::<std::result::Result<Vec<_>, _>>();
            let operations = operations.map_err(|error| error.at(record.path, record.offset))?;
            in_log.extend(operations.iter().map(AnyOperation::keyspace));
            removed.look(&self.state, &self.tables.blobs, record.sequence, &operations)?;
            last_in_log = (record.sequence + operations.len() as u64).saturating_sub(1);
            Ok(last_in_log)
        })?;
        let named: BTreeSet<u64> =
            self.state.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied()).collect();
        let nothing_missing = named.is_subset(on_disk);
        let mut numbers: Vec<u64> = on_disk.difference(&named).copied().collect();
        let missing = if nothing_missing && !log.beginning_lost { missing } else { Missing::Any };
        match missing {
            // Values go when the manifest says that their records are in tables: one that says less
            // has lost edits, although it may look whole.
            Missing::Nothing if removed.found => {
                numbers = self.with_newer_writes(numbers, Some(last_in_log))?;
                if !numbers.is_empty() {
                    self.disbelieve(in_force);
                }
            }
            // What the manifest does not name is left over from a job that was cut short, or the
            // removal of which was.
            Missing::Nothing => {
                let left_over = std::mem::take(&mut numbers).into_iter().map(crate::version::file_name::table);
                self.aside.extend(left_over.filter(|_| !self.manifest_is_whole));
            }
            Missing::Last => numbers = self.with_newer_writes(numbers, None)?,
            Missing::Any => {}
        }
        let mut unnamed = self.assign(&numbers, &in_log)?;
        let ids: Vec<u64> = self.state.keyspaces.keys().copied().collect();
        for id in ids {
            self.repair_keyspace(id, on_disk, unnamed.remove(&id).unwrap_or_default())?;
        }
        let in_tables = self.in_tables(&in_log);
        self.finish(&maker, Known { in_tables, ..known })
    }

    /// Up to here tables have every write, as far as what is left tells: that of a keyspace which
    /// nothing names any more may be missing.
    fn in_tables(&self, in_log: &BTreeSet<u64>) -> Sequence {
        let has_tables = |id: &u64| self.state.keyspaces.contains_key(id) || self.state.was_dropped(*id);
        let flushed = self.state.keyspaces.values().map(|record| record.flushed).min();
        flushed.filter(|_| in_log.iter().all(has_tables)).unwrap_or(0)
    }

    /// Keeps a manifest that looks whole, and has lost edits.
    fn disbelieve(&mut self, manifest: Option<String>) {
        let what = "edits are missing at its end: the log refers to large values whose files are gone, and there are \
                    tables of later flushes";
        if let Some(name) = manifest {
            self.note_file(&name, what.into(), Some(0));
            self.aside.insert(name);
        }
    }

    /// A report about something that is not a table. `entries_lost`: as in [`RepairedFile`].
    fn note_file(&mut self, name: &str, problem: String, entries_lost: Option<u64>) {
        let path = self.tables.directory.join(name);
        self.report.files.push(RepairedFile {
            path,
            keyspace: None,
            problem,
            entries_kept: 0,
            entries_lost,
            lost_ranges: Vec::new(),
        });
    }

    fn warn_of_settings(&mut self, are_lost: bool, has_merges: bool) {
        if are_lost {
            self.warn_of_values(lost_settings::KEYSPACES_OF_THE_LOG);
        }
        if has_merges {
            self.warn_of_values(lost_settings::MERGES_OF_UNKNOWN_OPERATOR);
        }
    }

    /// A warning that values may be wrong.
    fn warn_of_values(&mut self, what: &str) {
        self.report.may_be_wrong = true;
        self.warn(what);
    }

    fn warn(&mut self, what: &str) {
        if !self.report.warnings.iter().any(|warning| warning == what) {
            self.report.warnings.push(what.to_owned());
        }
    }

    /// Those of the tables that lost edits may have brought: what a flush or a load brings shows by
    /// its newer writes. The others are left out: by the manifest they are not in use. `in_log`:
    /// the last write in the log, where that tells of lost edits.
    fn with_newer_writes(&mut self, numbers: Vec<u64>, in_log: Option<Sequence>) -> Result<Vec<u64>> {
        let (mut tables, mut unknown) = (BTreeMap::new(), BTreeSet::new());
        for &number in &numbers {
            match self.tables.inspect_unnamed(number)? {
                Found::Intact(table) | Found::Damaged(table, _) if table.summary().keyspace.is_some() => {
                    tables.insert(number, table);
                }
                // If it was in use, something else is damaged besides the end of the manifest.
                _ => _ = unknown.insert(number),
            }
        }
        let summaries = || tables.values().map(|table| table.summary());
        let last_write = in_log.map(|in_log| lost_edit::last_write(&self.state, in_log, summaries()));
        let lost = last_write.map_or(Lost::Torn, Lost::Told);
        let newer = lost_edit::with_newer_writes(&self.state, lost, tables.keys().copied().zip(summaries()));
        if let Some(last_write) = last_write {
            // What no flush came behind was being written, and the log has it. Others may have been
            // written beside a flush; of a table in use that would hide the loss.
            unknown.retain(|number| newer.last().is_some_and(|last| number < last));
            let is_above = |summary: &TableSummary| summary.largest_sequence > last_write;
            if summaries().any(|summary| is_above(summary) && lost_edit::is_of_a_load(summary)) {
                self.warn("tables of a load are in `lost`: it was under way, or nothing was written after it");
            }
        }
        let (newer, others): (Vec<u64>, Vec<u64>) =
            numbers.into_iter().partition(|number| newer.contains(number) || unknown.contains(number));
        self.aside.extend(others.into_iter().map(crate::version::file_name::table));
        Ok(newer)
    }

    /// Finds out whose the tables are that no manifest names.
    fn assign(&mut self, numbers: &[u64], in_log: &BTreeSet<u64>) -> Result<Unnamed> {
        let mut unnamed = Unnamed::new();
        let mut nameless = Vec::new();
        let mut restored: BTreeMap<u64, KeyspaceRecord> = BTreeMap::new();
        for &number in numbers {
            let found = self.tables.inspect_unnamed(number)?;
            let Some(keyspace) = found.keyspace().cloned().filter(|keyspace| keyspace.id < MAX_KEYSPACE_ID) else {
                nameless.push((number, found));
                continue;
            };
            let id = keyspace.id;
            if self.state.was_dropped(id) {
                self.aside.insert(crate::version::file_name::table(number));
                continue;
            }
            match self.state.keyspaces.get_mut(&id) {
                Some(record) => record.flushed = record.flushed.max(keyspace.flushed),
                None => lost_settings::learn_from_table(restored.entry(id).or_default(), &keyspace),
            }
            unnamed.entry(id).or_default().push((number, found));
        }
        self.restore_keyspaces(restored);
        for (number, found) in nameless {
            self.assign_nameless(number, found, in_log, &mut unnamed)?;
        }
        Ok(unnamed)
    }

    /// Takes up keyspaces that no manifest has. Where several had the same name, at different
    /// times, the one that was flushed last has it.
    fn restore_keyspaces(&mut self, restored: BTreeMap<u64, KeyspaceRecord>) {
        let mut latest_first: Vec<(u64, KeyspaceRecord)> = restored.into_iter().collect();
        latest_first.sort_by_key(|(id, record)| Reverse((record.flushed, *id)));
        for (id, record) in latest_first {
            let name = self.free_name(id, &record.name);
            self.restored.insert(id);
            self.state.keyspaces.insert(id, KeyspaceRecord { name, ..record });
        }
    }

    /// A table that names no keyspace gets a keyspace of its own, if anything can be read of it.
    fn assign_nameless(
        &mut self,
        number: u64,
        found: Found,
        in_log: &BTreeSet<u64>,
        unnamed: &mut Unnamed,
    ) -> Result<()> {
        let table = crate::version::file_name::table(number);
        if let Found::Unindexed(_, problem) = found {
            self.note_file(
                &table,
                format!("{problem}; no manifest names the table, and it does not say whose it is"),
                None,
            );
            self.aside.insert(table);
            return Ok(());
        }
        // The log may name keyspaces that cannot be.
        let last = self.state.keyspaces.keys().chain(in_log).filter(|id| **id < MAX_KEYSPACE_ID).max();
        let is_free =
            |id: &u64| !self.state.keyspaces.contains_key(id) && !self.state.was_dropped(*id) && !in_log.contains(id);
        let Some(id) = (last.map_or(1, |last| last + 1)..MAX_KEYSPACE_ID).chain(1..MAX_KEYSPACE_ID).find(is_free)
        else {
            self.note_file(
                &table,
                "it does not say whose it is, and there are too many keyspaces for another".into(),
                None,
            );
            self.aside.insert(table);
            return Ok(());
        };
        let name = self.free_name(id, &format!("recovered-{number:06}"));
        self.warn_of_values(
            "a table that does not say whose it is has become a keyspace named recovered- and its number",
        );
        let record = KeyspaceRecord { name, comparator: BYTEWISE.to_owned(), ..KeyspaceRecord::default() };
        self.state.keyspaces.insert(id, record);
        unnamed.insert(id, vec![(number, found)]);
        Ok(())
    }

    /// `name`, or if another keyspace has it, one like it.
    fn free_name(&self, id: u64, name: &str) -> String {
        let is_taken = self.state.keyspaces.iter().any(|(other, record)| *other != id && record.name == name);
        if is_taken || name.is_empty() { format!("{name}-recovered-{id}") } else { name.to_owned() }
    }

    /// Brings the tables of one keyspace into order.
    fn repair_keyspace(&mut self, id: u64, on_disk: &BTreeSet<u64>, unnamed: Vec<(u64, Found)>) -> Result<()> {
        let Some(record) = self.state.keyspaces.get(&id).cloned() else { return Ok(()) };
        let label = record.label(id);
        let order = self.tables.order_of(&label)?;
        let order_is_known = unnamed.is_empty();
        self.unordered.extend((!order_is_known).then_some(id));
        let mut tables: Vec<(u64, Arc<Table>)> = Vec::new();
        let mut sources = Vec::new();
        for (&number, place) in &record.tables {
            if !on_disk.contains(&number) {
                self.report.files.push(self.tables.missing(number, &label));
                continue;
            }
            sources.push((number, place.run, self.tables.inspect(number, Some(place.bytes), &order)?));
        }
        sources.extend(unnamed.into_iter().map(|(number, found)| (number, 0, found)));
        let mut names: Vec<String> = Vec::new();
        for (number, run, found) in sources {
            let name = crate::version::file_name::table(number);
            let (rescued, problem) = self.tables.rescue(number, found, &label)?;
            if let Some(problem) = problem {
                self.report.files.push(problem);
                self.aside.insert(name.clone());
            }
            names.push(name);
            tables.extend(rescued.into_iter().map(|table| (run, table)));
        }
        if self.report.files.iter().any(|file| file.entries_lost != Some(0) && file.keyspace.is_some()) {
            self.warn_of_values("where a lost entry was the newest of its key, an older value of that key shows, or one that was deleted");
        }
        if !order_is_known || Version::from_tables(tables.iter().cloned()).overlap().is_some() {
            let merged = self.tables.merge(tables.into_iter().map(|(_, table)| table).collect(), &label)?;
            let run = self.tables.next_number();
            tables = merged.into_iter().map(|table| (run, table)).collect();
            self.aside.extend(names);
            self.warn_of_values(
                "the manifest did not name all tables: tables that had been merged into others may be among them, so that deleted \
                 keys and overwritten values show again and merge operands count twice",
            );
        }
        let places = tables.iter().map(|(run, table)| {
            let summary = table.summary();
            (summary.file_number, TableRecord { run: *run, bytes: summary.file_bytes })
        });
        let newest = tables.iter().map(|(_, table)| table.summary().largest_sequence).max().unwrap_or(0);
        self.state.last_sequence = self.state.last_sequence.max(newest).max(record.flushed);
        self.state.keyspaces.insert(id, KeyspaceRecord { tables: places.collect(), ..record });
        Ok(())
    }

    /// Replays the log and makes the result current.
    fn finish(&mut self, maker: &SegmentMaker, known: Known) -> Result<()> {
        let Tables { directory, options, .. } = self.tables;
        let env = &*options.env;
        let memory = MemoryPool::of_the_process();
        let mut recovering = recovery::open_versions(
            directory,
            options,
            &self.state,
            &self.tables.cache,
            &memory,
            &self.tables.blobs,
            false,
        )?;
        let (state, mut last_sequence) = (&mut self.state, 0);
        let (restored, mut has_merges) = (&self.restored, false);
        let (with_tables, mut checked) = (state.keyspaces.len(), DistinctValues::default());
        lost_settings::learn_from_tables(state, &mut recovering);
        let mut log = salvage(maker, known, &mut |record| {
            let operations = recovery::decode(&record)?;
            for operation in &operations {
                lost_settings::learn_from_log(state, &mut recovering, operation, options, &memory)?;
            }
            let blobs = &self.tables.blobs;
            if let Some(error) = recovery::missing_value(&recovering, &record, &operations, blobs, &mut checked)? {
                // As in any recovery, the log ends with the value that is missing.
                return Err(error);
            }
            has_merges |= lost_settings::has_merges(&record, &operations, restored, &recovering);
            let next = state.next_keyspace;
            let last = recovery::apply_record(options, &mut recovering, next, &record, operations, &memory)?;
            last_sequence = last_sequence.max(last);
            Ok(last)
        })?;
        self.state.last_sequence = self.state.last_sequence.max(last_sequence);
        self.warn_of_settings(self.state.keyspaces.len() > with_tables, has_merges);
        self.note_log(&mut log)?;
        self.state.next_file = self.tables.next_file.load(Relaxed);
        let caches = (&self.tables.cache, &memory);
        recovery_flush::write_replayed(
            directory,
            options,
            &mut self.state,
            &mut recovering,
            caches,
            (&self.tables.blobs, false),
        )?;
        self.order_replayed(&mut recovering)?;
        self.aside.extend(unused_values(env, directory, &recovering)?);
        let mut kept = self.aside.clone();
        kept.extend(self.report.files.iter().any(|file| file.path == directory.join(CURRENT)).then(|| CURRENT.into()));
        remover::keep_in_lost(env, directory, &kept)?;
        // The link leads back to the old segments, in case the power fails before the manifest is
        // current.
        let highest_number = log.highest_number.max(self.first_made.saturating_sub(1));
        let inherited = Inherited { highest_number, below_floor: log.newest, ..Inherited::default() };
        let writer = LogWriter::start(directory::segment_maker(directory, options), inherited)?;
        self.state.log_floor = writer.position().segment;
        self.state.forget_changes();
        self.state.log_synced = writer.position().into();
        let number = self.state.next_file;
        self.state.next_file += 1;
        let manifest = Manifest::create(env, directory, number, self.state.clone())?;
        self.report.keyspaces = manifest.state().keyspaces.values().map(|record| record.name.clone()).collect();
        let tables = recovering.values().flat_map(|recovered| recovered.version.tables());
        self.report.entries = tables.map(|(_, table)| table.summary().entries).sum();
        Ok(())
    }

    /// Puts tables that came from the log into order among those that the manifest did not name. A
    /// load is newer than writes that only the log has: how far the log was in tables, none of its
    /// tables says, and a flush of deletes alone leaves no table that would.
    fn order_replayed(&mut self, recovering: &mut BTreeMap<u64, recovery::Recovering>) -> Result<()> {
        self.tables.next_file.store(self.state.next_file, Relaxed);
        for (id, recovered) in recovering.iter_mut().filter(|(id, _)| self.unordered.contains(id)) {
            if recovered.version.runs.len() < 2 {
                continue;
            }
            let Some(record) = self.state.keyspaces.get_mut(id) else { continue };
            let tables = recovered.version.tables().map(|(_, table)| table).collect();
            // What they are made of is the repair's own: the next open removes it.
            let merged = self.tables.merge(tables, &record.label(*id))?;
            let run = self.tables.next_number();
            let places = merged.iter().map(|table| table.summary());
            let places = places.map(|it| (it.file_number, TableRecord { run, bytes: it.file_bytes }));
            record.tables = places.collect();
            recovered.version = Arc::new(Version::from_tables(merged.into_iter().map(|table| (run, table))));
        }
        self.state.next_file = self.tables.next_file.load(Relaxed);
        Ok(())
    }

    /// How far the log was synced, or closed, as the manifest says.
    fn vouched(&self) -> Position {
        self.state.closed.unwrap_or_default().max(self.state.log_synced).into()
    }

    fn note_log(&mut self, log: &mut SalvagedLog) -> Result<()> {
        if log.problems.is_empty() && self.state.closed.is_none() && self.state.log_synced > log.end {
            let (segment, offset) = self.state.log_synced;
            let what = format!("the log was synced up to offset {offset} of segment {segment}, it ends before");
            log.problem(self.tables.directory.to_path_buf(), 0, what);
        }
        if let Some((segment, offset)) = self.state.closed.filter(|closed| *closed != log.end) {
            let what =
                format!("the log was closed at offset {offset} of segment {segment}, it can be read to another place");
            log.problem(self.tables.directory.to_path_buf(), 0, what);
        }
        for problem in &log.problems {
            let at = if problem.offset == 0 { String::new() } else { format!("at offset {}: ", problem.offset) };
            let what = format!("{at}{}", problem.what);
            let name = problem.path.strip_prefix(self.tables.directory).unwrap_or(&problem.path);
            self.note_file(&name.to_string_lossy(), what, None);
        }
        if !log.problems.is_empty() {
            self.warn(if log.problems.iter().any(|problem| !problem.is_in_tables) {
                "writes that were only in the part of the log that cannot be read are lost, and every write after them"
            } else {
                "writes that were only in the part of the log that cannot be read are lost; by what the tables say, \
                 there were none"
            });
            let names = self.tables.options.env.list(self.tables.directory)?;
            self.aside.extend(names.into_iter().filter(|name| segment_number(name).is_some()));
        }
        Ok(())
    }
}
