//! Reads a table to be copied: the bytes of a block are verified before they are handed on.

use super::format::{FOOTER_BYTES, Footer, Handle, unseal};
use super::reader::Table;
use crate::error::{Error, Result};

impl Table {
    /// Passes the bytes of the file, in order, to `write`. They are read from the file, not from
    /// the cache or the mapping, and their checksum is verified on the bytes that are passed.
    pub fn copy(&self, write: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let file = &*self.file.0;
        let data = (0..self.index.len()).filter_map(|number| self.index.handle(number));
        let mut others = [self.footer.filter, self.footer.index, self.footer.properties];
        others.sort_by_key(|handle| handle.offset);
        let mut at = 0;
        let mut buffer = Vec::new();
        for handle in data.chain(others.into_iter().filter(|handle| handle.bytes > 0)) {
            self.refuse_gap(at, handle.offset)?;
            self.read_checked(handle, &mut buffer)?;
            write(&buffer)?;
            at += handle.bytes;
        }
        self.refuse_gap(at, file.len().saturating_sub(FOOTER_BYTES as u64))?;
        let mut bytes = [0; FOOTER_BYTES];
        file.read_at(at, &mut bytes)?;
        if Footer::check(&bytes, &self.path, self.file_number, at)? != self.footer {
            return Err(Error::corruption(&self.path, at, "the footer has changed since the table was opened"));
        }
        write(&bytes)
    }

    /// Reads a block as it is stored and checks it.
    fn read_checked(&self, handle: Handle, buffer: &mut Vec<u8>) -> Result<()> {
        let length = usize::try_from(handle.bytes)
            .map_err(|_| Error::corruption(&self.path, handle.offset, "a block does not fit into memory"))?;
        buffer.resize(length, 0);
        self.file.0.read_at(handle.offset, buffer)?;
        unseal(buffer, &self.path, self.file_number, handle.offset).map(drop)
    }

    /// No checksum covers what lies between blocks; nothing does in a table that was written here.
    fn refuse_gap(&self, end: u64, next: u64) -> Result<()> {
        if end == next {
            return Ok(());
        }
        Err(Error::corruption(
            &self.path,
            end,
            format!("the next block begins at {next}, and not where the last one ends"),
        ))
    }
}
