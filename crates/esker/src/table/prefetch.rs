//! Asking for memory before it is needed, so that several misses overlap.

/// Cache lines are this long on the machines that matter; elsewhere the hints are only less apt.
pub(super) const LINE_BYTES: usize = 64;

/// Starts loading the first line of `bytes`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn prefetch(bytes: &[u8]) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint: it changes no state a program can see and does not fault, whatever the
    // address. SSE, which it needs, is part of every x86-64.
    unsafe { _mm_prefetch::<{ _MM_HINT_T0 }>(bytes.as_ptr().cast()) };
}

/// Starts loading the first line of `bytes`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn prefetch(bytes: &[u8]) {
    // An early load that nothing waits for.
    std::hint::black_box(bytes.first());
}

/// Starts loading the first `lines` lines of `bytes`.
#[inline]
pub(super) fn prefetch_lines(bytes: &[u8], lines: usize) {
    for line in 0..lines {
        if let Some(rest) = bytes.get(line * LINE_BYTES..) {
            prefetch(rest);
        }
    }
}
