//! Prefetching memory before it is needed, so that several cache misses overlap.

/// Cache lines are this long on the machines that matter; elsewhere the hints are only less apt.
pub const LINE_BYTES: usize = 64;

/// Starts loading the first line of `bytes`.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    prefetch_first(bytes);
}

/// Starts loading the line that `items` begin in.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn prefetch_first<T>(items: &[T]) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint: it changes no state a program can see and does not fault,
    // whatever the address. SSE, which it needs, is part of every x86-64.
    unsafe { _mm_prefetch::<{ _MM_HINT_T0 }>(items.as_ptr().cast()) };
}

/// Starts loading the line that `items` begin in.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn prefetch_first<T>(items: &[T]) {
    // An early load that nothing waits for.
    std::hint::black_box(items.first());
}

/// Starts loading `lines` lines from the one that `address` lies in, whatever is there now, even if
/// it is nothing.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn prefetch_address(address: usize, lines: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in 0..lines {
        let at = std::ptr::without_provenance::<i8>(address.wrapping_add(line * LINE_BYTES));
        // SAFETY: as above; nothing is read through the pointer, so it needs no memory behind it.
        unsafe { _mm_prefetch::<{ _MM_HINT_T0 }>(at) };
    }
}

/// Does nothing: an early load would need memory at the address.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn prefetch_address(_address: usize, _lines: usize) {}

/// Starts loading the first `lines` lines of `bytes`.
#[inline]
pub fn prefetch_lines(bytes: &[u8], lines: usize) {
    for line in 0..lines {
        if let Some(rest) = bytes.get(line * LINE_BYTES..) {
            prefetch(rest);
        }
    }
}
