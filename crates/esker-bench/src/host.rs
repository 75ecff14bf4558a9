//! What a reader of a report must know about the machine, taken from the kernel's own files.

use crate::record::Host;
use std::fs;
use std::path::{Path, PathBuf};

/// Describes this machine and the file system that holds `directory` (or will, if it does not exist
/// yet).
pub fn describe(directory: &Path) -> Host {
    let existing = nearest_existing(directory);
    let (file_system, mount_options) = mount_of(&existing, &read("/proc/self/mountinfo"));
    Host {
        cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string()),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: field(&read("/proc/meminfo"), "MemTotal").map_or(0, |text| kilobytes(&text)),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_string(),
        file_system,
        mount_options,
        free_bytes: free_bytes(&existing),
        load_1min: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_string(),
        esker_build: build(),
        command_line: command_line(std::env::args()),
        date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}

/// The words of a command line, the program without its directory: reports go where that one is
/// not.
fn command_line(mut words: impl Iterator<Item = String>) -> String {
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map_or_else(|| program.clone(), |name| name.to_string_lossy().into());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// Free bytes for unprivileged users on the file system of `path`; 0 if it cannot be told.
pub fn free_bytes(path: &Path) -> u64 {
    nix::sys::statvfs::statvfs(path).map_or(0, |s| s.blocks_available().saturating_mul(s.fragment_size()))
}

/// Version, commit where it is known, and profile of this build.
pub fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug assertions on" } else { "release" };
    match option_env!("ESKER_COMMIT") {
        Some(commit) => format!("{} ({commit}, {profile})", env!("CARGO_PKG_VERSION")),
        None => format!("{} ({profile})", env!("CARGO_PKG_VERSION")),
    }
}

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn nearest_existing(directory: &Path) -> PathBuf {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    absolute.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_else(|| PathBuf::from("/"))
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_string())
    })
}

fn kilobytes(text: &str) -> u64 {
    text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

/// File system type and mount options of the deepest mount point above `path`. A later line of the
/// table covers an earlier one.
fn mount_of(path: &Path, mountinfo: &str) -> (String, String) {
    let mut best: Option<(usize, String, String)> = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let before: Vec<&str> = before.split(' ').collect();
        let (Some(point), Some(options)) = (before.get(4), before.get(5)) else { continue };
        let point = point.replace("\\040", " ");
        let depth = Path::new(&point).components().count();
        if path.starts_with(&point) && best.as_ref().is_none_or(|(so_far, ..)| depth >= *so_far) {
            let mut after = after.split(' ');
            let kind = after.next().unwrap_or_default().to_string();
            let super_options = after.nth(1).unwrap_or_default();
            best = Some((depth, kind, format!("{options};{super_options}")));
        }
    }
    best.map(|(_, kind, options)| (kind, options)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_its_program_without_directory() {
        let words = |line: &str| command_line(line.split(' ').map(String::from));
        assert_eq!(words("/home/me/target/release/esker study rmw --db /data"), "esker study rmw --db /data");
        assert_eq!(words("esker"), "esker");
        assert_eq!(command_line(std::iter::empty()), "");
    }

    #[test]
    fn the_deepest_mount_wins() {
        let table = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard\n\
                     2 1 0:5 / /data rw,noatime - xfs /dev/sdb rw\n\
                     3 1 0:6 / /data/my\\040disk rw - btrfs /dev/sdc rw,ssd\nbroken line\n";
        assert_eq!(mount_of(Path::new("/home"), table), ("ext4".into(), "rw,relatime;rw,discard".into()));
        assert_eq!(mount_of(Path::new("/data/x"), table), ("xfs".into(), "rw,noatime;rw".into()));
        assert_eq!(mount_of(Path::new("/data/my disk/x"), table).0, "btrfs");
        assert_eq!(mount_of(Path::new("/database"), table).0, "ext4");
    }

    #[test]
    fn fields_of_kernel_files() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nMemTotal:       1024 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(kilobytes(&field(text, "MemTotal").unwrap()), 1 << 20);
        assert_eq!(field(text, "nothing"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let host = describe(Path::new("/no/such/place"));
        assert!(host.cores >= 1);
        assert!(host.date.ends_with('Z') && host.date.len() == 20);
        assert!(!host.esker_build.is_empty());
    }
}
