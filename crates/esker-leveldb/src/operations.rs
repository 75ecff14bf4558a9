//! The operations of a batch.

use crate::failure::{Done, Failure};

/// Keys and values one after the other, and where they end.
#[derive(Clone, Default)]
pub(crate) struct Operations {
    bytes: Vec<u8>,
    /// Where a key ends, and its value; a delete has none.
    ends: Vec<(usize, Option<usize>)>,
    /// Why an operation that was to be here is not.
    refused: Option<String>,
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

    /// Adds those of another batch; what that one lacks, this one lacks too.
    pub(crate) fn append(&mut self, other: &Operations) {
        for (key, value) in other.iter() {
            self.add(key, value);
        }
        if let Some(why) = &other.refused {
            self.refuse(why);
        }
    }

    /// Notes that an operation is missing: a part of a batch must not be written as if it were all.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
    }

    /// That no operation is missing.
    ///
    /// # Errors
    /// Why the first one is, if one is.
    pub(crate) fn check(&self) -> Done<()> {
        self.refused.as_ref().map_or(Ok(()), |why| {
            Err(Failure::invalid(format!("the batch lacks an operation that was refused: {why}")))
        })
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.refused = None;
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
