//! Cuts a mounted file system off from its device: the only unsafe code of the checks.

use rustix::io::Result;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use std::os::fd::AsFd;

/// What the file system still does before it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It writes everything.
    Flush,
    /// It writes its journal.
    JournalOnly,
    /// Nothing, as when the power fails.
    Nothing,
    /// Nothing of the journal: it finds an error, as that of a device.
    Abort,
}

impl Cut {
    /// The number by which ext4 and XFS call it, if it is a shutdown.
    pub(super) fn flag(self) -> Option<u32> {
        match self {
            Cut::Flush => Some(0),
            Cut::JournalOnly => Some(1),
            Cut::Nothing => Some(2),
            Cut::Abort => None,
        }
    }
}

/// `EXT4_IOC_SHUTDOWN` and `XFS_IOC_GOINGDOWN`: one number.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);

/// Shuts down the file system that an open directory is on. Every later call to it fails, and
/// nothing more reaches the device.
pub(super) fn shut_down(directory: impl AsFd, flag: u32) -> Result<()> {
    // SAFETY: the call reads one 32-bit number through the pointer that `Setter` makes of it, and
    // writes no memory of this process; a file system that does not know the number refuses it.
    unsafe { ioctl(directory, Setter::<SHUTDOWN, u32>::new(flag)) }
}
