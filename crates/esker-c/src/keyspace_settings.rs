//! What a keyspace was at a place in the order of writes, as C sees it.

use crate::codes::ESKER_NEVER;
use crate::times::default_ttl_ms;
use esker::{KeyspaceSettings, Ttl};
use std::ffi::{CString, c_char};
use std::ptr;

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
