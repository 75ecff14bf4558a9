//! Lines on standard error, for what no caller can be told otherwise.
//!
//! They do not go through the standard library: its writer panics where standard error cannot be
//! written, and its lock may be held for ever in a child of `fork`.

use std::io;

/// Writes a line in one piece, where standard error takes it. What it does not take is lost.
///
/// ```
/// esker_ffi::standard_error::write_line("libexample: the handle was closed before");
/// ```
pub fn write_line(text: &str) {
    let line = format!("{text}\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        // SAFETY: the bytes are those of a slice, which lives until the call returns.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written @ 1..) => rest = rest.get(written..).unwrap_or_default(),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
        }
    }
}
