//! Tables: which are intact, copies of the others, and one run from tables whose order is not
//! known.
//!
//! Entries are copied as they are, with their sequence numbers, and nothing is combined: copies of
//! an attempt that was cut short then are seen to be copies by the next one.

use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::blob::BlobStore;
use crate::db::maintenance::repair::report::RepairedFile;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use crate::iter::Cursor;
use crate::iter::merging::MergingCursor;
use crate::job::blob_values::{BlobValues, Copy};
use crate::job::output::{Output, OutputOptions, table_options};
use crate::job::output_splitter::OutputSplitter;
use crate::options::{Options, ReadMode};
use crate::table::{BlockCache, LostRange, Salvaged, Table, TableKeyspace, salvage_unindexed};
use crate::version::cursor::AnyCursor;
use crate::version::file_name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What became of a table file.
pub enum Found {
    /// All of it verifies.
    Intact(Arc<Table>),
    /// Its index can be used.
    Damaged(Arc<Table>, String),
    /// Not even that.
    Unindexed(Arc<dyn ReadFile>, String),
}

impl Found {
    /// Whose table it says to be.
    pub fn keyspace(&self) -> Option<&TableKeyspace> {
        match self {
            Found::Intact(table) | Found::Damaged(table, _) => table.summary().keyspace.as_ref(),
            Found::Unindexed(..) => None,
        }
    }
}

/// Reads and writes tables in the directory under repair.
pub struct Tables<'a> {
    pub directory: &'a Path,
    pub options: &'a Options,
    pub cache: Arc<BlockCache>,
    pub next_file: AtomicU64,
    pub blobs: Arc<BlobStore>,
}

impl Tables<'_> {
    pub fn path(&self, number: u64) -> PathBuf {
        self.directory.join(file_name::table(number))
    }

    pub fn next_number(&self) -> u64 {
        self.next_file.fetch_add(1, Relaxed)
    }

    /// The order of the keys of a keyspace.
    ///
    /// # Errors
    /// `MissingComparator`.
    pub fn order_of(&self, keyspace: &TableKeyspace) -> Result<KeyOrder> {
        self.options.key_order(&keyspace.name, &keyspace.comparator)
    }

    /// As [`Tables::inspect`], of a table that no manifest names: it says itself whose it is, or is
    /// taken for one of keys in the bytewise order.
    pub fn inspect_unnamed(&self, number: u64) -> Result<Found> {
        let path = self.path(number);
        let label = Table::label(&*self.options.env.open(&path)?, &path, number)?;
        let order = label.map_or(Ok(KeyOrder::Bytewise), |label| self.order_of(&label))?;
        self.inspect(number, None, &order)
    }

    /// Reads all of table `number`, which exists. `bytes`: what the manifest says about its length.
    pub fn inspect(&self, number: u64, bytes: Option<u64>, order: &KeyOrder) -> Result<Found> {
        let path = self.path(number);
        let file = self.options.env.open(&path)?;
        let cache = || Arc::clone(&self.cache);
        let length = file.len();
        let whole = Table::open_in(order, Arc::clone(&file), path.clone(), number, cache(), ReadMode::Pread);
        let whole = whole.and_then(|table| {
            table.verify(&mut |_| {})?;
            match bytes.filter(|&bytes| bytes != length) {
                None => Ok(table),
                Some(bytes) => Err(Error::corruption(&path, length, format!("the table should have {bytes} bytes"))),
            }
        });
        let problem = match whole {
            Ok(table) => {
                return Ok(match self.missing_blob(&table)? {
                    None => Found::Intact(table),
                    Some(problem) => Found::Damaged(table, problem),
                });
            }
            Err(Error::Corruption { offset, what, .. }) => format!("damaged at offset {offset}: {what}"),
            Err(error) => return Err(error),
        };
        Ok(match Table::open_damaged(Arc::clone(&file), path, number, cache(), order)? {
            Some(table) => Found::Damaged(table, problem),
            None => Found::Unindexed(file, problem),
        })
    }

    /// What is wrong with the files of large values that the table refers to, if one of them is not
    /// there.
    fn missing_blob(&self, table: &Table) -> Result<Option<String>> {
        for &number in table.summary().blobs.keys() {
            match self.blobs.open_file(number, 0) {
                Ok(_) => {}
                Err(error @ Error::Corruption { .. }) => {
                    return Ok(Some(format!("the keys with large values in there are lost: {error}")));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether the entry refers to a large value whose file is not there.
    fn is_lost(&self, entry: &Entry<'_>) -> bool {
        let reference = if entry.kind == Kind::PutBlob { BlobReference::decode(entry.value) } else { None };
        let opened = reference.map(|reference| self.blobs.open_file(reference.file, 0));
        matches!(opened, Some(Err(Error::Corruption { .. })))
    }

    /// Tables with what can be read of a table: itself, if it is intact, with no report.
    pub fn rescue(
        &self,
        number: u64,
        found: Found,
        keyspace: &TableKeyspace,
    ) -> Result<(Vec<Arc<Table>>, Option<RepairedFile>)> {
        let path = self.path(number);
        let mut expected = None;
        let (tables, salvaged, problem) = match found {
            Found::Intact(table) => return Ok((vec![table], None)),
            Found::Damaged(table, problem) => {
                expected = Some(table.summary().entries).filter(|&entries| entries > 0);
                let tombstones = table.range_tombstones().clone();
                let mut without_value = 0;
                let (tables, mut salvaged) = self.write(keyspace, tombstones, |take| {
                    table.salvage(&mut |entry| {
                        if self.is_lost(&entry) {
                            without_value += 1;
                            return Ok(());
                        }
                        take(entry)
                    })
                })?;
                salvaged.entries -= without_value;
                if table.summary().entries == 0 {
                    // The properties cannot be read: range tombstones may have been in them.
                    salvaged.lost.push(LostRange { after: None, through: None });
                }
                (tables, salvaged, problem)
            }
            Found::Unindexed(file, problem) => {
                // Its range tombstones are lost: there is a lost range without end.
                let (none, order) = (RangeTombstones::default(), self.order_of(keyspace)?);
                let (tables, salvaged) = self.write(keyspace, none, |take| {
                    let take = &mut |entry: Entry<'_>| if self.is_lost(&entry) { Ok(()) } else { take(entry) };
                    salvage_unindexed(&*file, &path, number, &order, take)
                })?;
                (tables, salvaged, problem)
            }
        };
        let Salvaged { entries: entries_kept, lost } = salvaged;
        let order = self.order_of(keyspace)?;
        let known = |key: Option<Vec<u8>>| key.map(|key| order.key_of(&key).to_vec());
        let lost = lost.into_iter().map(|range| LostRange { after: known(range.after), through: known(range.through) });
        let lost_ranges: Vec<LostRange> = lost.collect();
        let known_lost = expected.map(|entries| entries.saturating_sub(entries_kept));
        let entries_lost = known_lost.or(lost_ranges.is_empty().then_some(0));
        let keyspace = Some(keyspace.name.clone());
        Ok((tables, Some(RepairedFile { path, keyspace, problem, entries_kept, entries_lost, lost_ranges })))
    }

    /// The report of a table that does not exist.
    pub fn missing(&self, number: u64, keyspace: &TableKeyspace) -> RepairedFile {
        RepairedFile {
            path: self.path(number),
            keyspace: Some(keyspace.name.clone()),
            problem: "the table is missing".into(),
            entries_kept: 0,
            entries_lost: None,
            lost_ranges: vec![LostRange { after: None, through: None }],
        }
    }

    fn write<T>(
        &self,
        keyspace: &TableKeyspace,
        tombstones: RangeTombstones,
        fill: impl FnOnce(&mut dyn FnMut(Entry<'_>) -> Result<()>) -> Result<T>,
    ) -> Result<(Vec<Arc<Table>>, T)> {
        let next_file = || self.next_number();
        let options = OutputOptions {
            env: &*self.options.env,
            directory: self.directory.to_path_buf(),
            table: table_options(self.options, true),
            order: self.order_of(keyspace)?,
            filter_policy: None,
            keyspace: keyspace.clone(),
            flushed: 0,
            target_file_bytes: self.options.target_file_bytes,
            cache: Arc::clone(&self.cache),
            read_mode: ReadMode::Pread,
            next_file: &next_file,
            // What tables refer to stays where it is.
            large: BlobValues {
                store: &self.blobs,
                threshold: usize::MAX,
                copy: Copy::From(&|_| false),
                one_by_one: true,
            },
        };
        let splitter = OutputSplitter::default();
        let mut output = Output::new(&options, tombstones, &splitter);
        let result = fill(&mut |entry| output.add(entry))?;
        Ok((output.finish()?, result))
    }

    /// One run with every entry of the tables, in the order of their sequence numbers, whatever the
    /// order of the tables was. Of equal entries, the one in the newest file stays.
    pub fn merge(&self, mut tables: Vec<Arc<Table>>, keyspace: &TableKeyspace) -> Result<Vec<Arc<Table>>> {
        tables.sort_by_key(|table| std::cmp::Reverse(table.summary().file_number));
        let cursors = tables.iter().map(|table| AnyCursor::Table(table.cursor(false))).collect();
        let mut cursor = MergingCursor::new(cursors, &self.order_of(keyspace)?);
        let tombstones = RangeTombstones::union(tables.iter().map(|table| table.range_tombstones()));
        let (merged, ()) = self.write(keyspace, tombstones, |take| {
            let mut last: Option<(Vec<u8>, Sequence)> = None;
            cursor.seek_to_first()?;
            while cursor.valid() {
                let entry = cursor.entry();
                if last.as_ref().is_none_or(|(key, at)| (key.as_slice(), *at) != (entry.key, entry.sequence)) {
                    take(entry)?;
                    let (key, at) = last.get_or_insert_with(|| (Vec::new(), 0));
                    key.clear();
                    key.extend_from_slice(entry.key);
                    *at = entry.sequence;
                }
                cursor.next()?;
            }
            Ok(())
        })?;
        Ok(merged)
    }
}
