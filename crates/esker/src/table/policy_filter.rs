//! The filter that a policy of the program has made of the keys of a table: a property that a
//! reader without the policy does not need.
//!
//! ```text
//! policy filter := name:bytes filter:bytes
//! ```

use crate::base::coding::{Cursor, DecodeError, put_bytes};
use crate::base::key_order::KeyOrder;
use crate::filter_policy::FilterPolicy;
use std::fmt;
use std::sync::Arc;

/// The filter of a table, and the name of its policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyFilter {
    name: String,
    filter: Vec<u8>,
}

impl PolicyFilter {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, self.name.as_bytes());
        put_bytes(&mut out, &self.filter);
        out
    }

    /// Later versions may put more behind what is known here.
    pub(super) fn decode(payload: &[u8]) -> Result<PolicyFilter, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let name = String::from_utf8_lossy(cursor.bytes("the name of a filter policy")?).into_owned();
        Ok(PolicyFilter { name, filter: cursor.bytes("a filter")?.to_vec() })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.name.capacity() + self.filter.capacity()
    }
}

/// A policy that is asked about the keys of a table.
pub(super) struct Policy(Arc<dyn FilterPolicy>);

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policy")
    }
}

impl Policy {
    /// The policy, if it has made the filter.
    pub(super) fn of(policy: &Arc<dyn FilterPolicy>, filter: Option<&Arc<PolicyFilter>>) -> Option<Policy> {
        filter.filter(|filter| filter.name == policy.name()).map(|_| Policy(Arc::clone(policy)))
    }

    /// Whether the table may hold the key that is stored in this form.
    #[cold]
    pub(super) fn may_match(&self, key: &[u8], order: &KeyOrder, filter: Option<&Arc<PolicyFilter>>) -> bool {
        filter.is_none_or(|filter| self.0.key_may_match(order.key_of(key), &filter.filter))
    }
}

/// The distinct keys of a table that is being written, for its policy.
pub(super) struct PolicyKeys {
    policy: Arc<dyn FilterPolicy>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl fmt::Debug for PolicyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.ends.len())
    }
}

impl PolicyKeys {
    pub(super) fn new(policy: Arc<dyn FilterPolicy>) -> PolicyKeys {
        PolicyKeys { policy, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds a key, as the program knows it.
    pub(super) fn add(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// The filter, if the table gets one.
    pub(super) fn filter(&self) -> Option<Arc<PolicyFilter>> {
        let mut start = 0;
        let key = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
        let keys: Vec<&[u8]> = self.ends.iter().map(key).collect();
        if keys.is_empty() {
            return None;
        }
        let filter = self.policy.create_filter(&keys)?;
        Some(Arc::new(PolicyFilter { name: self.policy.name().to_owned(), filter }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let filter = PolicyFilter { name: "a policy".into(), filter: vec![0, 255, 7] };
        let mut payload = filter.encode();
        assert_eq!(PolicyFilter::decode(&payload).unwrap(), filter);
        for end in 0..payload.len() {
            assert!(PolicyFilter::decode(&payload[..end]).is_err(), "{end}");
        }
        payload.push(9);
        assert_eq!(PolicyFilter::decode(&payload).unwrap(), filter);
    }
}
