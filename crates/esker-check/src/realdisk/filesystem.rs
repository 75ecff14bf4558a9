//! File systems in an image file, mounted through a loop device.

use super::shutdown::{Cut, shut_down};
use crate::Checked;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A file system and how it is mounted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// For messages and `--only`.
    pub(super) name: &'static str,
    /// The command that makes one.
    make: &'static str,
    /// Its arguments before the image.
    arguments: &'static [&'static str],
    /// Mount options.
    options: &'static str,
    image_bytes: u64,
    /// Whether files are written through an overlay on top of it, as in a container.
    is_overlaid: bool,
}

const EXT4: Kind = Kind {
    name: "ext4-ordered",
    make: "mkfs.ext4",
    arguments: &["-q", "-F"],
    options: "loop,data=ordered",
    image_bytes: 64 << 20,
    is_overlaid: false,
};

const XFS: Kind = Kind {
    name: "xfs",
    make: "mkfs.xfs",
    arguments: &["-q", "-f"],
    options: "loop",
    // The least that its mkfs makes.
    image_bytes: 320 << 20,
    is_overlaid: false,
};

/// One whose files may share blocks. Not among those that are cut off.
pub(super) const SHARING: Kind = Kind { name: "reflink", arguments: &["-q", "-f", "-m", "reflink=1"], ..XFS };

/// All that are cut off.
pub(super) const KINDS: [Kind; 8] = [
    EXT4,
    Kind { name: "ext4-writeback", options: "loop,data=writeback", ..EXT4 },
    Kind { name: "ext4-journal", options: "loop,data=journal", ..EXT4 },
    Kind { name: "ext4-nodelalloc", options: "loop,nodelalloc", ..EXT4 },
    Kind { name: "ext4-noauto-da-alloc", options: "loop,noauto_da_alloc", ..EXT4 },
    Kind { name: "ext4-overlay", is_overlaid: true, ..EXT4 },
    XFS,
    Kind { name: "xfs-overlay", is_overlaid: true, ..XFS },
];

impl Kind {
    /// Whether it is an ext4, perhaps below an overlay.
    pub(super) fn has_journal_of_ext4(&self) -> bool {
        self.make == EXT4.make
    }

    /// Whether the program that makes one is installed.
    pub(super) fn is_installed(&self) -> bool {
        Command::new(self.make).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    }
}

/// Runs a command that must succeed.
pub(super) fn command(program: &str, arguments: &[&str]) -> Checked<()> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// The text of a path. Those of the campaign come from the scratch directory and are passed to
/// commands.
pub(super) fn text(path: &Path) -> Checked<&str> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

/// A file system in an image, mounted or not; unmounted and removed when dropped.
#[derive(Debug)]
pub(super) struct Disk {
    kind: Kind,
    image: PathBuf,
    mounted: PathBuf,
    overlay: PathBuf,
    is_mounted: bool,
}

impl Disk {
    /// Makes an empty one and mounts it.
    pub(super) fn new(kind: Kind, directory: &Path) -> Checked<Disk> {
        let [image, mounted, overlay] = ["image", "mounted", "overlay"].map(|name| directory.join(name));
        let mut disk = Disk { kind, image, mounted, overlay, is_mounted: false };
        let failed = |error: std::io::Error| format!("no image in {}: {error}", directory.display());
        for place in [&disk.mounted, &disk.overlay] {
            std::fs::create_dir_all(place).map_err(failed)?;
        }
        File::create(&disk.image).and_then(|file| file.set_len(kind.image_bytes)).map_err(failed)?;
        command(kind.make, &[kind.arguments, &[text(&disk.image)?]].concat())?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where its files are.
    pub(super) fn root(&self) -> &Path {
        if self.kind.is_overlaid { &self.overlay } else { &self.mounted }
    }

    /// The file that it is in.
    pub(super) fn image(&self) -> &Path {
        &self.image
    }

    fn mount(&mut self) -> Checked<()> {
        command("mount", &["-o", self.kind.options, text(&self.image)?, text(&self.mounted)?])?;
        self.is_mounted = true;
        if !self.kind.is_overlaid {
            return Ok(());
        }
        let mut options = Vec::new();
        for name in ["lowerdir", "upperdir", "workdir"] {
            let place = self.mounted.join(name);
            std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
            options.push(format!("{name}={}", text(&place)?));
        }
        command("mount", &["-t", "overlay", "-o", &options.join(","), "overlay", text(&self.overlay)?])
    }

    /// Whether its journal can be aborted from outside.
    pub(super) fn can_be_aborted(&self) -> bool {
        self.kind.has_journal_of_ext4()
    }

    /// Cuts it off.
    pub(super) fn cut(&self, cut: Cut) -> Checked<()> {
        let failed = |error: &dyn std::fmt::Display| format!("{} cannot be shut down: {error}", self.kind.name);
        let Some(flag) = cut.flag() else {
            return command("mount", &["-o", "remount,abort", text(&self.mounted)?]);
        };
        let root = File::open(&self.mounted).map_err(|error| failed(&error))?;
        shut_down(&root, flag).map_err(|error| failed(&error))
    }

    /// Unmounts it and mounts it again, as after a restart of the machine. No process may use it.
    pub(super) fn restart(&mut self) -> Checked<()> {
        self.unmount()?;
        self.mount()
    }

    fn unmount(&mut self) -> Checked<()> {
        if self.kind.is_overlaid {
            unmount(&self.overlay)?;
        }
        unmount(&self.mounted)?;
        self.is_mounted = false;
        Ok(())
    }
}

/// A killed process releases its files only a moment after it was waited for.
fn unmount(place: &Path) -> Checked<()> {
    const TRIES: u32 = 200;
    let mut outcome = Ok(());
    for _ in 0..TRIES {
        outcome = command("umount", &[text(place)?]);
        if outcome.is_ok() {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    outcome
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What stays behind after a failure ends with the mount namespace of the process.
        if self.is_mounted && self.unmount().is_err() {
            let _ = Command::new("umount").arg("--lazy").args([&self.overlay, &self.mounted]).status();
        }
        let _ = std::fs::remove_file(&self.image);
    }
}
