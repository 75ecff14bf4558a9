//! An error of the device under the journal of ext4, which another file's sync is told of.
//!
//! The thread that commits the journal meets the error and aborts it, and ext4 itself learns of it
//! with its next operation. A block that was written for the first time, and is on the device, is
//! then lost with the note of it; there is nothing left for its own sync to do, and it succeeds.

use super::filesystem::{Disk, Kind, command, text};
use crate::Checked;
use esker::env::{Env, os::OsEnv};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

const BLOCK_BYTES: usize = 4096;
const LOG_BYTES: u64 = 1 << 20;

/// One error. Whether the block was lost: then its sync has failed.
pub(super) fn round(kind: Kind, scratch: &Path) -> Checked<bool> {
    let small = scratch.join("small");
    std::fs::create_dir_all(&small).map_err(|error| format!("{}: {error}", small.display()))?;
    // Little more than the image may have. Where it is full, blocks that the image has not got yet
    // are an error of the device.
    command("mount", &["-t", "tmpfs", "-o", "size=80m", "esker-check", text(&small)?])?;
    let outcome = Disk::new(kind, &small).and_then(|mut disk| break_device(&mut disk, &small.join("ballast")));
    let _ = command("umount", &["--lazy", text(&small)?]);
    outcome
}

fn break_device(disk: &mut Disk, ballast: &Path) -> Checked<bool> {
    let (log_path, other_path) = (disk.root().join("log"), disk.root().join("other"));
    let block = [0xa5; BLOCK_BYTES];
    let failed = |error: esker::Error| format!("the files cannot be made: {error}");
    let failed_io = |error: std::io::Error| format!("the files cannot be made: {error}");
    let log = OsEnv.open_log(&log_path, Some(LOG_BYTES), true).map_err(failed)?;
    let same = File::options().read(true).write(true).open(&log_path).map_err(failed_io)?;
    // The image gets these blocks, and the file system takes them for never written.
    log.write(0, &vec![1; LOG_BYTES as usize]).and_then(|()| log.sync()).map_err(failed)?;
    fallocate(&same, FallocateFlags::ZERO_RANGE, 0, LOG_BYTES).map_err(|error| failed_io(error.into()))?;
    let other = File::create(&other_path).map_err(failed_io)?;
    other.sync_all().map_err(failed_io)?;
    log.sync().and_then(|()| OsEnv.sync_dir(disk.root())).map_err(failed)?;

    fill(ballast).map_err(failed_io)?;
    log.write(0, &block).map_err(failed)?;
    // Its bytes go to the device, and the note of them to the journal, which nobody commits yet.
    fadvise(&same, 0, None, Advice::DontNeed).map_err(|error| failed_io(error.into()))?;
    std::thread::sleep(Duration::from_millis(200));
    let told = other.set_modified(SystemTime::now()).and_then(|()| other.sync_all());
    let promised = log.sync_range(0, BLOCK_BYTES as u64).is_ok();
    drop((log, same, other));
    std::fs::remove_file(ballast).map_err(failed_io)?;
    disk.restart()?;
    let found = std::fs::read(&log_path).map_err(|error| format!("{}: {error}", log_path.display()))?;
    match (told, promised, found[..BLOCK_BYTES] == block) {
        (Ok(()), ..) => Err("the device made no error".to_string()),
        (Err(_), true, false) => Err("a block is lost that was synced behind an error of the device".to_string()),
        (Err(_), _, is_there) => Ok(!is_there),
    }
}

/// Writes until there is no room.
fn fill(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    for bytes in [64 << 10, BLOCK_BYTES] {
        let zeroes = vec![0; bytes];
        while file.write_all(&zeroes).is_ok() {}
    }
    Ok(())
}
