//! Writing the tables of a job: cut at the target size, between keys only, made durable, and opened
//! again before they are installed.

use super::blob_values::BlobValues;
use super::output_splitter::{OutputSplitter, Passage};
use crate::base::key::{Entry, Kind, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::blob::BlobWriter;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter_policy::FilterPolicy;
use crate::options::{Options, ReadMode};
use crate::table::{BlockCache, Buffers, Table, TableBuilder, TableKeyspace, TableOptions, TableSummary};
use crate::version::file_name;
use std::path::PathBuf;
use std::sync::Arc;

/// How and where a job writes tables.
pub struct OutputOptions<'a> {
    pub env: &'a dyn Env,
    pub directory: PathBuf,
    pub table: TableOptions,
    /// The order of their keys.
    pub order: KeyOrder,
    /// What makes another filter of their keys.
    pub filter_policy: Option<Arc<dyn FilterPolicy>>,
    /// Whose tables they are. The last one records how far the keyspace is in tables with this job,
    /// those before it how far it was without.
    pub keyspace: TableKeyspace,
    /// The last write that is in tables with this job.
    pub flushed: Sequence,
    pub target_file_bytes: u64,
    pub cache: Arc<BlockCache>,
    pub read_mode: ReadMode,
    /// Gives out file numbers.
    pub next_file: &'a (dyn Fn() -> u64 + Sync),
    /// What is done with large values.
    pub large: BlobValues<'a>,
}

/// How the options of a database say that tables of its last run are written, or of the others.
pub fn table_options(options: &Options, last_run: bool) -> TableOptions {
    TableOptions {
        block_bytes: options.block_bytes,
        compression: if last_run { options.compression } else { options.upper() },
        filter_bits_per_key: options.filter_bits_per_key,
    }
}

/// The tables of one job, in the order of their keys.
pub struct Output<'a> {
    options: &'a OutputOptions<'a>,
    current: Option<TableBuilder>,
    buffers: Buffers,
    finished: Vec<TableSummary>,
    splitter: Passage<'a>,
    /// The range tombstones that are in no finished table.
    tombstones: RangeTombstones,
    /// Blob files that no other output appends to meanwhile: the parts of a divided compaction
    /// share none.
    blobs: BlobWriter<'a>,
    /// Bytes that were written to blob files at the last yield point.
    copied_before: u64,
}

/// Bytes of large values between two pauses.
const COPIED_BETWEEN_PAUSES: u64 = 8 << 20;

impl<'a> Output<'a> {
    /// For tables that also hold the range tombstones. Each gets what lies before the first key of
    /// the next, so that they do not overlap.
    pub fn new(
        options: &'a OutputOptions<'a>,
        tombstones: RangeTombstones,
        splitter: &'a OutputSplitter,
    ) -> Output<'a> {
        let blobs = BlobWriter::new(options.large.store, options.large.one_by_one);
        let splitter = Passage::new(splitter, options.target_file_bytes, &options.order);
        Output {
            options,
            current: None,
            buffers: Buffers::default(),
            finished: Vec::new(),
            splitter,
            tombstones,
            blobs,
            copied_before: 0,
        }
    }

    /// Whether enough bytes of large values were written since this last returned true for another
    /// yield point.
    pub fn copied_much(&mut self) -> bool {
        let much = self.blobs.written_bytes() - self.copied_before >= COPIED_BETWEEN_PAUSES;
        if much {
            self.copied_before = self.blobs.written_bytes();
        }
        much
    }

    /// Adds an entry; entries come in internal key order.
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        let is_large = entry.kind == Kind::Put && entry.value.len() >= self.options.large.threshold;
        if is_large || entry.kind == Kind::PutBlob {
            return self.add_large(entry);
        }
        self.add_entry(entry)
    }

    /// Adds an entry whose value is, or is to be, in a blob file.
    #[cold]
    fn add_large(&mut self, entry: Entry<'_>) -> Result<()> {
        match self.options.large.settle(entry, &mut self.blobs, self.options.next_file)? {
            Some(reference) => self.add_entry(Entry { kind: Kind::PutBlob, value: &reference.encode(), ..entry }),
            None => self.add_entry(entry),
        }
    }

    fn add_entry(&mut self, entry: Entry<'_>) -> Result<()> {
        if let Some(builder) = &self.current {
            let bytes = builder.estimated_file_bytes();
            if self.splitter.looks(bytes)
                && builder.last_key() != entry.key
                && self.splitter.ends(bytes, builder.last_key(), entry.key)
            {
                self.finish_table(entry.key, self.options.keyspace.flushed)?;
            }
        }
        if self.current.is_none() {
            self.start_table()?;
        }
        match &mut self.current {
            Some(builder) => builder.add(entry),
            None => Ok(()),
        }
    }

    fn start_table(&mut self) -> Result<()> {
        let number = (self.options.next_file)();
        let path = self.options.directory.join(file_name::table(number));
        let file = self.options.env.create(&path)?;
        let buffers = std::mem::take(&mut self.buffers);
        let builder = TableBuilder::new(file, path, number, self.options.table).in_order(&self.options.order);
        let builder = builder.with_policy(self.options.filter_policy.as_ref());
        self.current = Some(builder.reusing(buffers));
        Ok(())
    }

    /// Finishes the table at hand. `end`: the first key of the next one; empty if there is none.
    fn finish_table(&mut self, end: &[u8], flushed: Sequence) -> Result<()> {
        if let Some(mut builder) = self.current.take() {
            if !self.tombstones.is_empty() {
                builder.set_range_tombstones(self.tombstones.clip(&[], end));
                let rest = if end.is_empty() { RangeTombstones::default() } else { self.tombstones.clip(end, &[]) };
                self.tombstones = rest;
            }
            builder.set_keyspace(TableKeyspace { flushed, ..self.options.keyspace.clone() });
            let (summary, buffers) = builder.finish_reusably()?;
            self.buffers = buffers;
            self.finished.push(summary);
        }
        Ok(())
    }

    /// Makes all names durable, finishes the last table, and opens every table: what cannot be read
    /// back must not enter the manifest.
    ///
    /// In this order because the last table records how far the keyspace is in tables: where no
    /// manifest is left, a repair relies on that. A table that says so after a power loss has all
    /// of its entries, all tables and large values beside it, and their names. What the entries
    /// refer to in files of others is durable before the job begins.
    pub fn finish(mut self) -> Result<Vec<Arc<Table>>> {
        if self.current.is_none() && !self.tombstones.is_empty() {
            self.start_table()?;
        }
        let Some(last) = &mut self.current else { return Ok(Vec::new()) };
        let flushed = self.options.flushed.max(self.options.keyspace.flushed);
        if flushed > self.options.keyspace.flushed {
            last.sync_entries()?;
        }
        self.blobs.sync()?;
        self.options.env.sync_dir(&self.options.directory)?;
        self.finish_table(&[], flushed)?;
        let finished = std::mem::take(&mut self.finished);
        finished.into_iter().map(|summary| self.reopen(summary)).collect()
    }

    fn reopen(&self, summary: TableSummary) -> Result<Arc<Table>> {
        let path = self.options.directory.join(file_name::table(summary.file_number));
        let file = self.options.env.open(&path)?;
        let cache = Arc::clone(&self.options.cache);
        let (order, number) = (&self.options.order, summary.file_number);
        let table = Table::open_in(order, file, path.clone(), number, cache, self.options.read_mode)?;
        table.ask_policy(self.options.filter_policy.as_ref());
        // The bounds are found again by the comparator, which may answer differently.
        let is_same = match order.is_trusted() {
            true => *table.summary() == summary,
            false => table.summary().entries == summary.entries,
        };
        if !is_same {
            return Err(Error::corruption(path, 0, "the table read back is not the one written"));
        }
        Ok(table)
    }
}
