//! What a reader of changes lends, as C sees it: a batch, and the settings of a keyspace.

use crate::caller::esker_bytes;
use crate::codes::*;
use crate::times::{default_ttl_ms, milliseconds};
use esker::{Change, ChangeBatch, ChangeOperation, KeyspaceSettings, Slice, Ttl};
use std::ffi::{CString, c_char};
use std::ops::Bound;
use std::ptr;

/// One operation as it was committed. Which fields have a meaning says `operation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_change {
    /// Its place in the order of writes. Numbers ascend, with gaps.
    pub sequence: u64,
    /// The name that the keyspace had then; where it was renamed, the new one.
    pub keyspace: *const c_char,
    /// The number of the keyspace, which no other keyspace of the database ever has.
    pub keyspace_id: u64,
    /// What was done: one of `ESKER_CHANGE_...`.
    pub operation: i32,
    /// The key; of a delete of a range where it begins, without data if at the first key; of a
    /// keyspace that was altered the name that it had before.
    pub key: esker_bytes,
    /// The value or the operand; of a delete of a range where it ends, without data if behind the
    /// last key; of a keyspace that was altered the name of its merge operator, without data if it
    /// has none.
    pub value: esker_bytes,
    /// When the key expires, in milliseconds since 1970; ESKER_NEVER if it does not. Of a keyspace
    /// that was altered how many milliseconds its entries live by default: 0 if only writes say so,
    /// ESKER_NEVER if they cannot expire.
    pub expires_at_ms: u64,
    /// Of a merge: the operand was combined with nothing.
    pub is_first: bool,
    /// Of a delete of a range: `key` is not in it.
    pub start_is_excluded: bool,
    /// Of a delete of a range: `value` is in it.
    pub end_is_included: bool,
}

// SAFETY: the pointers lead to memory of the batch that is kept beside the array, which never
// changes.
unsafe impl Send for esker_change {}

/// A batch as C sees it.
pub(crate) struct LentBatch {
    /// What the pointers of `changes` lead to.
    _content: (ChangeBatch, Vec<CString>),
    pub(crate) changes: Vec<esker_change>,
}

impl LentBatch {
    pub(crate) fn new(batch: ChangeBatch) -> LentBatch {
        let name = |change: &Change| CString::new(change.keyspace.replace('\0', "\\0")).unwrap_or_default();
        let names: Vec<CString> = batch.changes.iter().map(name).collect();
        let changes = batch.changes.iter().zip(&names).map(|(change, name)| lent(change, name)).collect();
        LentBatch { _content: (batch, names), changes }
    }
}

fn lent(change: &Change, name: &CString) -> esker_change {
    let mut lent = esker_change {
        sequence: change.sequence,
        keyspace: name.as_ptr(),
        keyspace_id: change.keyspace_id,
        operation: ESKER_CHANGE_OTHER,
        key: esker_bytes::NONE,
        value: esker_bytes::NONE,
        expires_at_ms: ESKER_NEVER,
        is_first: false,
        start_is_excluded: false,
        end_is_included: false,
    };
    match &change.operation {
        ChangeOperation::Put { key, value, expiry } => {
            lent.operation = ESKER_CHANGE_PUT;
            (lent.key, lent.value) = (esker_bytes::lent(key), esker_bytes::lent(value));
            lent.expires_at_ms = milliseconds(*expiry);
        }
        ChangeOperation::Delete { key } => {
            lent.operation = ESKER_CHANGE_DELETE;
            lent.key = esker_bytes::lent(key);
        }
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            lent.operation = ESKER_CHANGE_MERGE;
            (lent.key, lent.value) = (esker_bytes::lent(key), esker_bytes::lent(operand));
            lent.expires_at_ms = milliseconds(*expiry);
            lent.is_first = *is_first;
        }
        ChangeOperation::DeleteRange { start, end } => {
            lent.operation = ESKER_CHANGE_DELETE_RANGE;
            (lent.key, lent.value) = (bound(start), bound(end));
            lent.start_is_excluded = matches!(start, Bound::Excluded(_));
            lent.end_is_included = matches!(end, Bound::Included(_));
        }
        ChangeOperation::Load => lent.operation = ESKER_CHANGE_LOAD,
        ChangeOperation::DropKeyspace => lent.operation = ESKER_CHANGE_DROP_KEYSPACE,
        ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl } => {
            lent.operation = ESKER_CHANGE_ALTER_KEYSPACE;
            lent.key = esker_bytes::lent(former_name.as_bytes());
            lent.value = merge_operator.as_ref().map_or(esker_bytes::NONE, |name| esker_bytes::lent(name.as_bytes()));
            if let Ttl::Enabled { default } = ttl {
                lent.expires_at_ms = default_ttl_ms(*default);
            }
        }
        _ => {}
    }
    lent
}

fn bound(bound: &Bound<Slice>) -> esker_bytes {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => esker_bytes::lent(key),
        Bound::Unbounded => esker_bytes::NONE,
    }
}

/// What a keyspace was at one place in the order of writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_keyspace_settings {
    /// Its name.
    pub name: *const c_char,
    /// The name of the order of its keys, which is "bytewise" without a comparator.
    pub comparator: *const c_char,
    /// The name of its merge operator; NULL if it had none.
    pub merge_operator: *const c_char,
    /// How many milliseconds its entries lived by default: 0 if only writes said so, ESKER_NEVER if
    /// they could not expire.
    pub default_ttl_ms: u64,
}

// SAFETY: the pointers lead to memory of the texts that are kept beside it, which never change.
unsafe impl Send for esker_keyspace_settings {}

/// Settings as C sees them.
pub(crate) struct LentSettings {
    /// What the pointers of `settings` lead to.
    _texts: [Option<CString>; 3],
    /// In memory that stays where it is.
    pub(crate) settings: Box<esker_keyspace_settings>,
}

impl LentSettings {
    pub(crate) fn new(settings: &KeyspaceSettings) -> LentSettings {
        let text = |text: &str| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        let operator = settings.merge_operator.as_deref().map(text);
        let texts = [Some(text(&settings.name)), Some(text(&settings.comparator)), operator];
        let [name, comparator, merge_operator] = texts.each_ref().map(start_of);
        let default_ttl_ms = match settings.ttl {
            Ttl::Disabled => ESKER_NEVER,
            Ttl::Enabled { default } => default_ttl_ms(default),
        };
        let lent = esker_keyspace_settings { name, comparator, merge_operator, default_ttl_ms };
        LentSettings { _texts: texts, settings: Box::new(lent) }
    }
}

fn start_of(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}
