//! The full check of a table against itself.

use super::block::Block;
use super::filter::Filter;
use super::format::{Footer, read_plain};
use super::reader::Table;
use super::summary::TableSummary;
use crate::base::key::{self, Kind, Sequence, compare};
use crate::base::slice::Pin;
use crate::error::{Error, Result, escape_key};
use std::cmp::Ordering;

impl Table {
    /// Reads the whole file again, past the cache and the mapping, and checks every block's
    /// checksum, the order of all entries, the index, the filter, and counts and bounds against the
    /// properties. `progress` is called with the bytes done after each block.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let file = &*self.file.0;
        if Footer::read(file, &self.path, self.file_number)? != self.footer {
            return Err(Error::corruption(&self.path, file.len(), "the footer has changed since the table was opened"));
        }
        let properties = read_plain(file, &self.path, self.file_number, self.footer.properties)?;
        read_plain(file, &self.path, self.file_number, self.footer.index)?;
        let filter = match self.footer.filter.bytes {
            0 => None,
            _ => Some(Filter::read(file, &self.path, self.file_number, self.footer.filter)?),
        };
        let mut found = TableSummary::default();
        let mut last: Option<(Vec<u8>, Sequence)> = None;
        for number in 0..self.index.len() {
            let handle = self.index.handle(number).unwrap_or_default();
            let length = usize::try_from(handle.bytes).unwrap_or_default();
            let mut stored = vec![0u8; length];
            file.read_at(handle.offset, &mut stored)?;
            let block = self.unpack(handle.offset, &stored, Vec::new())?;
            self.verify_block(&block, handle.offset, filter.as_ref(), &mut last, &mut found)?;
            if !last.as_ref().is_some_and(|(key, sequence)| self.index.is_last(number, key, *sequence)) {
                return Err(self.inconsistent(number));
            }
            progress(handle.bytes);
        }
        found.largest_key = last.map(|(key, _)| key).unwrap_or_default();
        let stored = TableSummary::decode(&properties, &self.path, self.footer.properties.offset)?;
        found.add_range_tombstones(stored.range_tombstones);
        found.keyspace = stored.keyspace;
        (found.file_number, found.file_bytes) = (self.file_number, file.len());
        if found != self.summary {
            let what = "the entries do not add up to what the properties say";
            return Err(Error::corruption(&self.path, self.footer.properties.offset, what));
        }
        progress(file.len() - self.index.data_end());
        Ok(())
    }

    /// Checks the entries of one block and adds them to what was found before.
    fn verify_block(
        &self,
        block: &Block,
        offset: u64,
        filter: Option<&Filter>,
        last: &mut Option<(Vec<u8>, Sequence)>,
        found: &mut TableSummary,
    ) -> Result<()> {
        let (bytes, layout) = (block.bytes(), &block.layout);
        let mut key = layout.prefix(bytes).to_vec();
        for index in 0..layout.count {
            key.truncate(layout.prefix_bytes);
            key.extend_from_slice(layout.key_rest(bytes, index));
            let sequence = layout.sequence_of(bytes, index);
            let wrong = |what: &str| {
                let what = format!("key {} with sequence {sequence} {what}", escape_key(&key));
                Err(Error::corruption(&self.path, offset, what))
            };
            match last {
                Some((last_key, last_sequence)) => {
                    if compare(last_key, *last_sequence, &key, sequence) != Ordering::Less {
                        return wrong("is out of order");
                    }
                }
                None => found.smallest_key.clone_from(&key),
            }
            if filter.is_some_and(|filter| !filter.may_contain(key::hash(&key))) {
                return wrong("is missing from the filter");
            }
            let kind: Kind = layout.kind_of(bytes, index);
            let (start, end) = layout.value_range(bytes, index);
            found.add_columns(&[sequence], &[kind as u8], &[layout.expiry_of(bytes, index)]);
            if kind == Kind::PutBlob {
                found.add_blob(bytes.get(start..end).unwrap_or_default());
            }
            found.raw_key_bytes += key.len() as u64;
            found.raw_value_bytes += (end - start) as u64;
            let (last_key, last_sequence) = last.get_or_insert_with(|| (Vec::new(), 0));
            last_key.clone_from(&key);
            *last_sequence = sequence;
        }
        Ok(())
    }
}
