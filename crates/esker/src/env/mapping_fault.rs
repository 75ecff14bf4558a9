//! Whether a page under any mapping of the process could not be read.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// See [`mapping_fault_seen`].
static MAPPING_FAULT: AtomicBool = AtomicBool::new(false);

/// Whether any page under a mapping of the process has been unreadable so far. A read checks
/// nothing else until that happens. A load from a mapping before the call precedes the answer: if
/// the load hit such a page, the answer is yes.
#[inline]
pub(crate) fn mapping_fault_seen() -> bool {
    // The first orders this thread after its own signal handler, the second after handlers that ran
    // in other threads.
    compiler_fence(Ordering::SeqCst);
    fence(Ordering::Acquire);
    MAPPING_FAULT.load(Ordering::Relaxed)
}

/// May be called by a signal handler.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) fn note_mapping_fault() {
    MAPPING_FAULT.store(true, Ordering::SeqCst);
}
