//! What one scenario is given: where, how long, how many.

use crate::Checked;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The part of the campaign that one scenario is.
#[derive(Clone, Debug)]
pub struct Share {
    /// An empty directory of its own.
    pub directory: PathBuf,
    /// Where all randomness comes from; what threads do beside each other is up to the machine.
    pub seed: u64,
    /// How long the load lasts. What has to be checked afterwards takes its own time.
    pub time: Duration,
    /// Snapshots and iterators held at a time.
    pub readers: u64,
    /// Keyspaces of one database.
    pub keyspaces: u64,
}

impl Share {
    /// The arguments that carry it to the process of the scenario.
    pub fn encode(&self) -> Vec<String> {
        let numbers = [self.seed, self.time.as_millis() as u64, self.readers, self.keyspaces];
        let directory = self.directory.display().to_string();
        std::iter::once(directory).chain(numbers.map(|number| number.to_string())).collect()
    }

    /// The opposite.
    pub fn decode(arguments: &[String]) -> Checked<Share> {
        let [directory, numbers @ ..] = arguments else { return Err("a directory and four numbers".to_string()) };
        let numbers: Result<Vec<u64>, _> = numbers.iter().map(|text| text.parse()).collect();
        match numbers.as_deref() {
            Ok(&[seed, milliseconds, readers, keyspaces]) => {
                let time = Duration::from_millis(milliseconds);
                Ok(Share { directory: PathBuf::from(directory), seed, time, readers, keyspaces })
            }
            _ => Err("a directory and four numbers".to_string()),
        }
    }
}

/// What is to happen is waited for so long before its absence is a finding, on a machine of any
/// speed.
const PATIENCE: Duration = Duration::from_secs(300);

/// Tries again until it succeeds; the last failure if it never does.
pub fn eventually<T>(mut attempt: impl FnMut() -> Checked<T>) -> Checked<T> {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(what) if started.elapsed() > PATIENCE => return Err(format!("for {PATIENCE:?}: {what}")),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The words for an error of a call that must succeed.
pub fn failed(call: &str) -> impl Fn(esker::Error) -> String + '_ {
    move |error| format!("{call} failed: {error}")
}
