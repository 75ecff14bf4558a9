//! What the campaign needs of the system: namespaces, small file systems, a clock that can be set.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Debian has the library that shows another time.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// What this system lets the campaign do.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Namespaces with devices of their own.
    pub network: bool,
    /// File systems of a limited size.
    pub mounts: bool,
    /// Clocks that jump.
    pub clocks: bool,
}

/// Runs a command of the system.
///
/// # Errors
/// It cannot be started, or fails; with what it says.
pub fn run(command: &[&str]) -> Result<(), String> {
    let shown = || command.join(" ");
    let (name, arguments) = command.split_first().ok_or("no command")?;
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", shown()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", shown(), String::from_utf8_lossy(&output.stderr).trim()))
}

impl Abilities {
    /// Finds out, and says what is missing.
    pub fn find(scratch: &Path) -> Abilities {
        let say = |what: &str, result: Result<(), String>| match result {
            Ok(()) => true,
            Err(why) => {
                println!("cluster-check: without {what}: {why}");
                false
            }
        };
        let probe = format!("esker-probe-{}", std::process::id());
        let network = run(&["ip", "netns", "add", &probe]).and_then(|()| run(&["ip", "netns", "del", &probe]));
        let tun = Path::new("/dev/net/tun").exists();
        let network = network.and_then(|()| if tun { Ok(()) } else { Err("there is no /dev/net/tun".into()) });
        let place = scratch.join("probe");
        let mounts = SmallDisk::mount(&place, 1).map(drop);
        let has_library = Path::new(FAKETIME).exists();
        let clocks = if has_library { Ok(()) } else { Err(format!("{FAKETIME} is not there; install faketime")) };
        Abilities {
            network: say("faults of the network", network),
            mounts: say("full disks", mounts),
            clocks: say("clock jumps", clocks),
        }
    }
}

/// A file system in memory, unmounted when it is dropped.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many MiB.
    ///
    /// # Errors
    /// It cannot be mounted, as without the right to.
    pub fn mount(path: &Path, mib: u64) -> Result<SmallDisk, String> {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let place = path.to_string_lossy();
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs", &place])?;
        Ok(SmallDisk { path: path.to_path_buf() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that was killed a moment ago may still have files open.
        let _ = run(&["umount", "-l", &self.path.to_string_lossy()]);
    }
}

/// Fills the file system of a directory.
///
/// # Errors
/// The file cannot be created; that it cannot be made longer is what is wanted.
pub fn fill(directory: &Path) -> io::Result<()> {
    let mut ballast = fs::File::create(directory.join("ballast"))?;
    let chunk = vec![0; 64 << 10];
    while ballast.write_all(&chunk).is_ok() {}
    Ok(())
}

/// Gives the space back.
///
/// # Errors
/// The file is there and cannot be removed.
pub fn free(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join("ballast")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// A clock that processes read instead of the system's.
#[derive(Clone, Debug)]
pub struct Clock {
    file: PathBuf,
}

impl Clock {
    /// A clock that is right.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn new(file: PathBuf) -> io::Result<Clock> {
        let clock = Clock { file };
        clock.set_ahead_ms(0)?;
        Ok(clock)
    }

    /// Sets it so far ahead.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn set_ahead_ms(&self, ahead_ms: u64) -> io::Result<()> {
        let text = format!("+{}.{:03}\n", ahead_ms / 1_000, ahead_ms % 1_000);
        // As a whole: a process may read it at any moment.
        let next = self.file.with_extension("next");
        fs::write(&next, text)?;
        fs::rename(next, &self.file)
    }

    /// Makes a process read it. Durations are as long as they are.
    pub fn give(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", FAKETIME)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("FAKETIME_NO_CACHE", "1");
    }
}
