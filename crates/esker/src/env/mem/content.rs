//! The bytes of one simulated file, in pages shared between copies until one of them writes.

use std::sync::Arc;

/// The unit of sharing, and the unit in which the simulated page cache writes back.
pub(super) const PAGE: usize = 4096;

type Page = [u8; PAGE];

/// A byte string that is cheap to copy. Page `i` holds bytes from `i * PAGE`; a missing page is all
/// zeroes.
///
/// Invariants: `pages.len()` is `len` in pages, rounded up; bytes of the last page at or beyond
/// `len` are zero.
#[derive(Clone, Default)]
pub(super) struct Content {
    len: usize,
    pages: Vec<Option<Arc<Page>>>,
}

impl Content {
    pub(super) fn from_bytes(bytes: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(0, bytes);
        content
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Fills `buffer` from `offset`; false if the content ends before that.
    pub(super) fn read(&self, offset: usize, buffer: &mut [u8]) -> bool {
        if offset.checked_add(buffer.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        let mut done = 0;
        while done < buffer.len() {
            let (page, start, step) = Self::piece(offset + done, buffer.len() - done);
            let target = &mut buffer[done..done + step];
            match &self.pages[page] {
                Some(bytes) => target.copy_from_slice(&bytes[start..start + step]),
                None => target.fill(0),
            }
            done += step;
        }
        true
    }

    /// Writes at `offset`, extending with zeroes as needed.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if offset + bytes.len() > self.len {
            self.resize(offset + bytes.len());
        }
        let mut done = 0;
        while done < bytes.len() {
            let (page, start, step) = Self::piece(offset + done, bytes.len() - done);
            let page = Arc::make_mut(self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE])));
            page[start..start + step].copy_from_slice(&bytes[done..done + step]);
            done += step;
        }
    }

    /// Truncates, or extends with zeroes.
    pub(super) fn resize(&mut self, len: usize) {
        let tail = len % PAGE;
        if len < self.len
            && tail > 0
            && let Some(page) = &mut self.pages[len / PAGE]
        {
            Arc::make_mut(page)[tail..].fill(0);
        }
        self.pages.resize(len.div_ceil(PAGE), None);
        self.len = len;
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        let whole = self.read(0, &mut bytes);
        debug_assert!(whole);
        bytes
    }

    /// Page number, start within it, and length of the first piece of a range that lies in one
    /// page.
    fn piece(offset: usize, len: usize) -> (usize, usize, usize) {
        let start = offset % PAGE;
        (offset / PAGE, start, len.min(PAGE - start))
    }
}
