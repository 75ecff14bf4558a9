//! What the kernel says about this process: CPU time and peak memory. And how processes of this
//! program talk with each other: line by line, until the one that started the other closes its
//! standard input.

use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// What this process took of the machine, as a whole or in a part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Consumption {
    /// CPU seconds in user code.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
    /// Peak resident bytes.
    pub rss_peak_bytes: u64,
}

impl Consumption {
    /// So far, as the kernel tells it; the peak is that since the last reset.
    pub fn now() -> Consumption {
        Consumption { rss_peak_bytes: peak_memory_bytes(), ..Consumption::of_cpu() }
    }

    /// That with which a part begins: its peak is a new one. The CPU times are taken last, so that
    /// they are those of the part alone.
    pub fn begin() -> Consumption {
        reset_peak_memory();
        Consumption::of_cpu()
    }

    fn of_cpu() -> Consumption {
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        let usage = getrusage(UsageWho::RUSAGE_SELF);
        let (user_s, system_s) =
            usage.map_or((0.0, 0.0), |usage| (seconds(usage.user_time()), seconds(usage.system_time())));
        Consumption { user_s, system_s, rss_peak_bytes: 0 }
    }

    /// Of the part that began with `self`, up to now.
    pub fn until_now(self) -> Consumption {
        let now = Consumption::now();
        let (user_s, system_s) = (now.user_s - self.user_s, now.system_s - self.system_s);
        Consumption { user_s, system_s, ..now }
    }

    /// Of this part and another.
    pub fn and(self, other: Consumption) -> Consumption {
        let (user_s, system_s) = (self.user_s + other.user_s, self.system_s + other.system_s);
        Consumption { user_s, system_s, rss_peak_bytes: self.rss_peak_bytes.max(other.rss_peak_bytes) }
    }
}

/// Restarts the kernel's record of peak memory. Where it may not be reset, peaks are those since
/// the process began.
pub fn reset_peak_memory() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Peak resident bytes since the last reset; 0 if the kernel does not say.
pub fn peak_memory_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Resident bytes of now that no file is mapped to; 0 if the kernel does not say. The others the
/// system can take back: it reads them again.
pub fn anonymous_memory_bytes() -> u64 {
    status_bytes("RssAnon:")
}

fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// Ends this process at once, as a crash would: nothing is closed, flushed or told. Returns only if
/// the system refuses, with a line that says so.
pub fn die() -> String {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    "the process was to die, and did not".into()
}

/// The lines of another process, read by a thread of their own so that waiting for them can be
/// interrupted.
pub fn read_lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(io::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Does something when standard input ends: when the process that started this one wants it, or is
/// gone.
pub fn when_input_ends(act: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        let mut rest = [0; 64];
        while io::stdin().lock().read(&mut rest).is_ok_and(|count| count > 0) {}
        act();
    });
}

/// Writes dirty pages out and drops the system's file cache; needs root.
pub fn drop_file_cache() -> Result<(), String> {
    nix::unistd::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| format!("cannot drop the file cache: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_passes_and_memory_is_used() {
        let begun = std::time::Instant::now();
        let goes_on = || begun.elapsed() < std::time::Duration::from_secs(300);
        let total = |taken: Consumption| taken.user_s + taken.system_s;
        let before = total(Consumption::now());
        let mut sum = 0u64;
        while total(Consumption::now()) <= before && goes_on() {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(total(Consumption::now()) > before);
        reset_peak_memory();
        assert!(peak_memory_bytes() > 100_000);
        // Other tests take and give back memory between two looks.
        while !(50_000..peak_memory_bytes()).contains(&anonymous_memory_bytes()) {
            assert!(goes_on(), "{} of {}", anonymous_memory_bytes(), peak_memory_bytes());
        }
    }
}
