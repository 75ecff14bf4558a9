//! What the engine runs with.

pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};
pub use parking_lot::{Condvar, Mutex};
pub use std::hint::spin_loop;
pub use std::sync::OnceLock;
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub use std::thread::yield_now;

/// Memory that a type owns raw: words in it that are only accessed as atomics, and bytes that are
/// not.
pub mod raw {
    use std::sync::atomic::{AtomicU32, AtomicU64};

    /// The word at `start`.
    ///
    /// # Safety
    /// As for [`AtomicU64::from_ptr`].
    #[inline(always)]
    pub unsafe fn word<'a>(start: *mut u8) -> &'a AtomicU64 {
        // SAFETY: the caller promises it.
        unsafe { AtomicU64::from_ptr(start.cast()) }
    }

    /// The half word at `start`.
    ///
    /// # Safety
    /// As for [`AtomicU32::from_ptr`].
    #[inline(always)]
    pub unsafe fn half<'a>(start: *mut u8) -> &'a AtomicU32 {
        // SAFETY: the caller promises it.
        unsafe { AtomicU32::from_ptr(start.cast()) }
    }

    /// Says that so many words of zeroes begin at `start`, which any thread may look at first.
    #[inline(always)]
    pub fn begin(_start: *mut u8, _words: usize) {}

    /// Notes that memory is released: later contents of these addresses are unrelated.
    #[inline(always)]
    pub fn end(_start: *const u8, _bytes: usize) {}

    /// Says that plain bytes are read.
    #[inline(always)]
    pub fn reads(_start: *const u8, _bytes: usize) {}

    /// Says that plain bytes are written.
    #[inline(always)]
    pub fn writes(_start: *const u8, _bytes: usize) {}
}
