//! How long and with which seed the random tests run: set by the environment, so that the same
//! tests serve as a quick check and as a long run.

use std::time::{Duration, Instant};

/// Seed and time budget of one campaign.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// When to stop starting new work.
    pub budget: Duration,
    /// So much work is done whatever time it takes: a test that a slow machine passes for having
    /// done nothing shows nothing.
    pub least: u64,
    started: Instant,
}

impl Settings {
    /// Those figures, counting from now.
    pub fn new(seed: u64, budget: Duration) -> Settings {
        Settings { seed, budget, least: 0, started: Instant::now() }
    }

    /// The same, with so much work whatever time it takes.
    pub fn at_least(self, least: u64) -> Settings {
        Settings { least, ..self }
    }

    /// `ESKER_CHECK_SEED` and `ESKER_CHECK_SECONDS`, or the given defaults.
    pub fn from_environment(default_seed: u64, default_seconds: u64) -> Settings {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seed = number("ESKER_CHECK_SEED").unwrap_or(default_seed);
        let seconds = number("ESKER_CHECK_SECONDS").unwrap_or(default_seconds);
        Settings::new(seed, Duration::from_secs(seconds))
    }

    /// Whether no piece of work is to be begun any more, if so many were.
    pub fn enough(&self, begun: u64) -> bool {
        begun >= self.least && self.over()
    }

    /// Whether the time is used up.
    pub fn over(&self) -> bool {
        self.started.elapsed() >= self.budget
    }

    /// Seconds since the start.
    pub fn elapsed_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
