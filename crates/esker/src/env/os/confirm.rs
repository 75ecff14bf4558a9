//! Whether a sync that succeeded holds.
//!
//! Ext4 and XFS report success for a sync in whose course they give up, as after an error of their
//! device, although what they were to note of the file never gets there: that blocks were written
//! for the first time, a new length, new names. After the next mount these bytes are zeroes, or
//! missing. So the file system is asked behind each sync, before anybody is told of it, for
//! something that it refuses once it has given up; and it gives up before it drops a note.
//! doc/decisions/0009 has the figures.

use std::fs::File;
use std::io;

/// An error if the file system of a file or of a directory has given up before this call.
///
/// An attribute is removed that is not there: a cheap call for which ext4 begins an operation of
/// its journal, and answers with the journal's error, and which leaves nothing for the next sync to
/// do. XFS looks first whether it is shut down, and an overlay asks what is below it. Any other
/// answer than that of a broken file system tells nothing of the sync, and passes: one may have no
/// attributes, or not allow them.
pub(super) fn confirm_sync(file: &File) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::fremovexattr;
        use rustix::io::{Errno, retry_on_intr};
        let asked = retry_on_intr(|| fremovexattr(file, c"user.esker.none"));
        if let Err(error @ (Errno::IO | Errno::ROFS)) = asked {
            return Err(error.into());
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = file;
    Ok(())
}
