//! How far a follower is behind a process that writes.
//!
//! The child writes at a rate, and now and then the time. The parent catches up without a pause,
//! and notes how old the newest time is that it finds then: an upper bound of its lag, which has
//! the distance between two times in it.

use crate::Checked;
use crate::random::Random;
use crate::simulated::ScratchDirectory;
use esker::{Db, KeyspaceOptions, Options};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const KEYSPACE: &str = "values";
const CLOCK: &str = "~clock";
const KEYS: u64 = 1 << 20;
const VALUE_BYTES: usize = 100;
/// Puts between two times.
const EVERY: u64 = 20;

/// A measurement.
#[derive(Clone, Debug)]
pub struct Lag {
    /// The program to run as child: `esker-check` itself.
    pub program: PathBuf,
    /// Where the database goes.
    pub directory: PathBuf,
    /// Puts a second.
    pub rate: u64,
    /// How long it takes.
    pub duration: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Microseconds, as all of these; ascending in the end. With pauses of the writer in it.
    lags: Vec<u64>,
    /// Of the calls of `catch_up`.
    calls: Vec<u64>,
    /// Of gets of any key, between the calls.
    gets: Vec<f64>,
    batches: u64,
    seconds: f64,
}

fn percentile<T: Copy + Default>(sorted: &[T], part: f64) -> T {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { lags, calls, gets, batches, seconds } = self;
        let rate = *batches as f64 / seconds;
        write!(f, "{rate:.0} writes/s followed, {} calls in {seconds:.1} s; ms of", calls.len())?;
        for (what, all) in [("lag", lags), ("a call", calls)] {
            write!(f, " {what}:")?;
            for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("most", 1.0)] {
                write!(f, " {name} {:.2}", percentile(all, part) as f64 / 1000.0)?;
            }
            f.write_str(";")?;
        }
        write!(f, " us of a get: p50 {:.2} p90 {:.2}", percentile(gets, 0.5), percentile(gets, 0.9))
    }
}

fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// The child: writes at the rate until it is killed.
pub fn child(path: &Path, rate: u64) -> Checked<()> {
    let failed = |error: esker::Error| format!("the child failed: {error}");
    let db = Db::open(path, Options::default()).map_err(failed)?;
    let values = db.keyspace(KEYSPACE, KeyspaceOptions::default()).map_err(failed)?;
    let begun = Instant::now();
    let value = [7; VALUE_BYTES];
    for number in 0u64.. {
        if number.is_multiple_of(EVERY) {
            let due = Duration::from_nanos(number * 1_000_000_000 / rate);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            values.put(CLOCK, now_micros().to_le_bytes()).map_err(failed)?;
        }
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS;
        values.put(key.to_be_bytes(), value).map_err(failed)?;
    }
    Ok(())
}

impl Lag {
    /// Measures.
    pub fn run(&self) -> Checked<Measured> {
        let scratch =
            ScratchDirectory::new(&self.directory, "lag").map_err(|error| format!("no directory: {error}"))?;
        let path = scratch.path().join("db");
        let mut child = Command::new(&self.program)
            .arg("lag-child")
            .arg(&path)
            .arg(self.rate.to_string())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let measured = self.follow(&path);
        child.kill().and_then(|()| child.wait()).map_err(|error| format!("cannot end the child: {error}"))?;
        measured
    }

    fn follow(&self, path: &Path) -> Checked<Measured> {
        let failed = |error: esker::Error| format!("the follower failed: {error}");
        let patience = Instant::now() + Duration::from_secs(30);
        let (follower, values) = loop {
            let opened = Db::open_follower(path, Options::default());
            let opened = opened.and_then(|it| it.db().existing_keyspace(KEYSPACE).map(|values| (it, values)));
            match opened {
                Ok(opened) => break opened,
                Err(error) if Instant::now() > patience => return Err(failed(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let (mut measured, mut random) = (Measured::default(), Random::new(0));
        let begun = Instant::now();
        while begun.elapsed() < self.duration {
            let called = Instant::now();
            let progress = follower.catch_up().map_err(failed)?;
            measured.calls.push(called.elapsed().as_micros() as u64);
            measured.batches += progress.batches;
            let Some(time) = values.get(CLOCK).map_err(failed)? else { continue };
            let time = time[..].try_into().map(u64::from_le_bytes).map_err(|_| "the time is damaged".to_string())?;
            measured.lags.push(now_micros().saturating_sub(time));
            let key = (random.next() % KEYS).to_be_bytes();
            let read = Instant::now();
            values.get(key).map_err(failed)?;
            measured.gets.push(read.elapsed().as_nanos() as f64 / 1000.0);
            // As often as a service would.
            std::thread::sleep(Duration::from_micros(500));
        }
        measured.seconds = begun.elapsed().as_secs_f64();
        measured.lags.sort_unstable();
        measured.calls.sort_unstable();
        measured.gets.sort_unstable_by(f64::total_cmp);
        Ok(measured)
    }
}
