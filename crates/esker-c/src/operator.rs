//! Merge operators, comparators, filters, clocks and listeners whose functions are C.

use crate::callbacks::{
    State, esker_check_operand, esker_clock, esker_compare, esker_create_filter, esker_event, esker_filter,
    esker_full_merge, esker_key_may_match, esker_partial_merge,
};
use crate::caller::esker_bytes;
use crate::codes::{ESKER_FILTER_REMOVE, ESKER_FILTER_REPLACE};
use crate::objects::Produced;
use crate::output::with_output;
use esker::{Clock, CompactionFilter, Comparator, Decision, EventListener, FilterPolicy, MergeError, MergeOperator};
use esker_ffi::events::NamedEvents;
use esker_ffi::memory;
use std::cmp::Ordering;
use std::ffi::CString;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// A merge operator of C functions.
pub struct Operator {
    pub name: String,
    pub state: State,
    pub full_merge: esker_full_merge,
    pub partial_merge: esker_partial_merge,
    pub check_operand: esker_check_operand,
}

fn failed(produced: Produced, otherwise: &str) -> MergeError {
    match produced {
        Produced::Failed(reason) => MergeError(reason),
        _ => MergeError(otherwise.to_owned()),
    }
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let Some(full_merge) = self.full_merge else { return Err(MergeError("there is no function".into())) };
        let existing = existing.map(esker_bytes::lent);
        let existing = existing.as_ref().map_or(ptr::null(), ptr::from_ref);
        let operands: Vec<esker_bytes> = operands.iter().map(|operand| esker_bytes::lent(operand)).collect();
        let (done, produced) = with_output(|output| {
            let (key, state) = (esker_bytes::lent(key), self.state.pointer);
            // SAFETY: the program has passed this function for this state; all that it is lent
            // lives until it returns.
            unsafe { full_merge(state, key, existing, memory::start_of_array(&operands), operands.len(), output) }
        })
        .map_err(|failure| MergeError(failure.message))?;
        match (done, produced) {
            (true, Produced::Value(value)) => Ok(Some(value)),
            (true, Produced::Deleted) => Ok(None),
            (true, other) => Err(failed(other, "the function returned true and has set no output")),
            (false, other) => Err(failed(other, "the function returned false")),
        }
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let partial_merge = self.partial_merge?;
        let (done, produced) = with_output(|output| {
            let (key, older, newer) = (esker_bytes::lent(key), esker_bytes::lent(older), esker_bytes::lent(newer));
            // SAFETY: as above.
            unsafe { partial_merge(self.state.pointer, key, older, newer, output) }
        })
        .ok()?;
        match produced {
            Produced::Value(operand) if done => Some(operand),
            _ => None,
        }
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        let Some(check) = self.check_operand else { return Ok(()) };
        // SAFETY: as above.
        let (good, produced) =
            with_output(|output| unsafe { check(self.state.pointer, esker_bytes::lent(operand), output) })
                .map_err(|failure| MergeError(failure.message))?;
        if good { Ok(()) } else { Err(failed(produced, "the operand is refused")) }
    }
}

/// A comparator of a C function.
pub struct COrder {
    pub name: String,
    pub state: State,
    pub compare: esker_compare,
}

impl Comparator for COrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(compare) = self.compare else { return a.cmp(b) };
        // SAFETY: the program has passed this function for this state; both keys live until it
        // returns.
        unsafe { compare(self.state.pointer, esker_bytes::lent(a), esker_bytes::lent(b)) }.cmp(&0)
    }
}

/// A filter policy of C functions.
pub struct CPolicy {
    pub name: String,
    pub state: State,
    pub create_filter: esker_create_filter,
    pub key_may_match: esker_key_may_match,
}

impl FilterPolicy for CPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        let create_filter = self.create_filter?;
        let keys: Vec<esker_bytes> = keys.iter().map(|key| esker_bytes::lent(key)).collect();
        // SAFETY: the program has passed this function for this state; the keys live until it
        // returns.
        let created = with_output(|output| unsafe {
            create_filter(self.state.pointer, memory::start_of_array(&keys), keys.len(), output)
        });
        match created {
            Ok((true, Produced::Value(filter))) => Some(filter),
            _ => None,
        }
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let Some(key_may_match) = self.key_may_match else { return true };
        // SAFETY: the program has passed this function for this state; key and filter live until it
        // returns.
        unsafe { key_may_match(self.state.pointer, esker_bytes::lent(key), esker_bytes::lent(filter)) }
    }
}

/// A compaction filter of a C function.
pub struct Filter {
    pub name: String,
    pub state: State,
    pub filter: esker_filter,
}

impl CompactionFilter for Filter {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        let Some(filter) = self.filter else { return Decision::Keep };
        // SAFETY: the program has passed this function for this state; key and value live until it
        // returns.
        let decided = with_output(|output| unsafe {
            filter(self.state.pointer, esker_bytes::lent(key), esker_bytes::lent(value), output)
        });
        match decided {
            Ok((ESKER_FILTER_REMOVE, _)) => Decision::Remove,
            Ok((ESKER_FILTER_REPLACE, Produced::Value(value))) => Decision::Replace(value),
            _ => Decision::Keep,
        }
    }
}

/// A clock of a C function.
pub struct CClock {
    pub state: State,
    pub now: esker_clock,
}

impl fmt::Debug for CClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a clock of C")
    }
}

impl Clock for CClock {
    fn now_ms(&self) -> u64 {
        // SAFETY: the program has passed this function for this state.
        self.now.map_or(0, |now| unsafe { now(self.state.pointer) })
    }
}

/// A listener of a C function.
pub fn listener(state: State, event: esker_event) -> Arc<dyn EventListener> {
    Arc::new(NamedEvents(move |name: &str, text: String| {
        // The whole of it: it ends with the listener.
        let state = &state;
        let Some(event) = event else { return };
        let c_text = |text: &str| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        let (name, text) = (c_text(name), c_text(&text));
        // SAFETY: the program has passed this function for this state; the texts live until it
        // returns.
        unsafe { event(state.pointer, name.as_ptr(), text.as_ptr()) };
    }))
}
