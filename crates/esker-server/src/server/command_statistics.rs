//! How often each command was executed, how long that took, and which errors there were.

use crate::protocol::Reply;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The codes of errors that are counted: no command makes others up, but what it is told may.
const MOST_CODES: usize = 128;

/// What is counted of a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandCounts {
    /// How often it was executed.
    pub calls: u64,
    /// How often its reply was an error.
    pub failed: u64,
    /// How often it was refused, and not executed.
    pub rejected: u64,
    /// How long the executions took.
    pub took: Duration,
}

/// What is counted of all commands since the start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct CommandStatistics {
    commands: Mutex<HashMap<&'static str, CommandCounts>>,
    codes: Mutex<BTreeMap<String, u64>>,
}

impl CommandStatistics {
    /// Counts a command, with its subcommand, that was executed.
    pub fn add(&self, name: &'static str, took: Duration, has_failed: bool) {
        let mut commands = self.commands.lock();
        let counts = commands.entry(name).or_default();
        counts.calls += 1;
        counts.failed += u64::from(has_failed);
        counts.took += took;
    }

    /// Counts a command that was refused.
    pub fn add_rejected(&self, name: &'static str) {
        self.commands.lock().entry(name).or_default().rejected += 1;
    }

    /// Counts an error by its code.
    pub fn add_error(&self, reply: &Reply) {
        let Reply::Error(text) = reply else { return };
        /// The longest code, in bytes: what a client has the server say may have none.
        const LONGEST_CODE: usize = 64;
        let code = text.split(' ').next().filter(|code| code.len() <= LONGEST_CODE).unwrap_or_default();
        let mut codes = self.codes.lock();
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
        } else if codes.len() < MOST_CODES {
            codes.insert(code.into(), 1);
        }
    }

    /// What was counted of each command, by name.
    pub fn commands(&self) -> BTreeMap<&'static str, CommandCounts> {
        self.commands.lock().iter().map(|(name, counts)| (*name, *counts)).collect()
    }

    /// How often there was an error of each code.
    pub fn codes(&self) -> BTreeMap<String, u64> {
        self.codes.lock().clone()
    }

    /// Begins anew.
    pub fn reset(&self) {
        self.commands.lock().clear();
        self.codes.lock().clear();
    }
}

/// How many commands there were in the last second.
#[derive(Debug, Default)]
pub struct Rate(Mutex<RateState>);

#[derive(Debug, Default)]
struct RateState {
    since_ms: u64,
    count: u64,
    per_second: u64,
}

impl Rate {
    /// Notes that there were `count` until then. Each second the rate is that of the second before.
    pub fn note(&self, now_ms: u64, count: u64) {
        let mut state = self.0.lock();
        let passed_ms = now_ms.saturating_sub(state.since_ms);
        if passed_ms < 1000 {
            return;
        }
        let more = u128::from(count.saturating_sub(state.count)) * 1000;
        state.per_second = if state.since_ms == 0 { 0 } else { (more / u128::from(passed_ms)) as u64 };
        (state.since_ms, state.count) = (now_ms, count);
    }

    /// The rate.
    pub fn per_second(&self) -> u64 {
        self.0.lock().per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let rate = Rate::default();
        rate.note(10_000, 50);
        assert_eq!(rate.per_second(), 0);
        rate.note(10_900, 500);
        rate.note(11_000, 1050);
        assert_eq!(rate.per_second(), 1000);
        rate.note(13_000, 1050);
        assert_eq!(rate.per_second(), 0);
    }

    #[test]
    fn codes_are_bounded() {
        let statistics = CommandStatistics::default();
        (0..1000).for_each(|number| statistics.add_error(&Reply::error(format!("CODE{number} text"))));
        statistics.add_error(&Reply::error("CODE0 text"));
        assert_eq!((statistics.codes().len(), statistics.codes()["CODE0"]), (MOST_CODES, 2));
    }
}
