//! A small file system of its own, for disks that fill.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// It is unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it at a directory, which is made; `None`, with a line, where this process may not
    /// mount one.
    pub fn mount(directory: &Path, mebibytes: u32) -> Option<SmallDisk> {
        fs::create_dir_all(directory).unwrap();
        let size = format!("size={mebibytes}m");
        match Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory).output() {
            Ok(output) if output.status.success() => Some(SmallDisk(directory.to_path_buf())),
            other => {
                eprintln!("skipped: a small file system cannot be mounted here: {other:?}");
                None
            }
        }
    }

    /// Takes all the room there is.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
    }

    /// Gives back what [`SmallDisk::fill`] has taken.
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
