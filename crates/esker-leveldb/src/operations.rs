//! The operations of a batch.

/// Keys and values one after the other, and where they end.
#[derive(Clone, Default)]
pub(crate) struct Operations {
    bytes: Vec<u8>,
    /// Where a key ends, and its value; a delete has none.
    ends: Vec<(usize, Option<usize>)>,
}

impl Operations {
    /// Adds an operation: a put of a value, or a delete.
    pub(crate) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        let value_end = value.map(|value| {
            self.bytes.extend_from_slice(value);
            self.bytes.len()
        });
        self.ends.push((key_end, value_end));
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The operations in their order: a key, and the value of a put.
    pub(crate) fn iter(&self) -> impl std::iter::Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(key_end, value_end)| {
            let key = &self.bytes[start..key_end];
            start = value_end.unwrap_or(key_end);
            (key, value_end.map(|end| &self.bytes[key_end..end]))
        })
    }
}
