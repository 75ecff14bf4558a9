//! What the system says about the process and the machine. Only Linux is asked.

use std::fs;

/// What is told of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The time of processors in the system, in hundredths of a second.
    pub system_ticks: u64,
    /// The time of processors in the program, in hundredths of a second.
    pub user_ticks: u64,
    /// What it has in memory.
    pub resident_bytes: u64,
    /// The memory of the machine.
    pub machine_bytes: u64,
}

impl Process {
    /// As it is now; `None` where the system does not tell.
    pub fn read() -> Option<Process> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let (user_ticks, system_ticks) = ticks(&stat)?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let memory = fs::read_to_string("/proc/meminfo").ok()?;
        let resident_bytes = kilobytes(&status, "VmRSS:")? << 10;
        Some(Process {
            system_ticks,
            user_ticks,
            resident_bytes,
            machine_bytes: kilobytes(&memory, "MemTotal:")? << 10,
        })
    }
}

/// The name of the system with its release and the processor, as far as it is told.
pub fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = std::env::consts::OS;
    let name = name[..1].to_uppercase() + &name[1..];
    let words = [name.as_str(), release.trim(), std::env::consts::ARCH];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The times in the program and in the system. Programs see them in hundredths of a second on all
/// processors that Linux runs on today. The name of the process stands before them in brackets, and
/// may have spaces.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn kilobytes(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_writes_is_read() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 77 88 0 0 20 0";
        assert_eq!(ticks(stat), Some((77, 88)));
        assert_eq!(kilobytes("VmPeak:\t 9 kB\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!((ticks("12 (a) S 1"), kilobytes("", "VmRSS:")), (None, None));
    }
}
