//! Progress on standard error: a bar with rate and remaining time on a terminal, a plain line every
//! ten seconds elsewhere.

use crate::output::bytes_text;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Long enough that a log file of a long job stays short.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// What positions count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of a file.
    Bytes,
    /// Keys or lines.
    Records,
}

/// Shown until dropped; leaves nothing behind on a terminal.
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    unit: Unit,
    total: Option<u64>,
    started: Instant,
    next_plain: Option<Instant>,
}

impl Progress {
    /// `what` is a verb such as `"loading"`; without a total there is no bar and no estimate.
    pub fn new(what: &'static str, unit: Unit, total: Option<u64>) -> Progress {
        let terminal = io::stderr().is_terminal();
        let bar = match (terminal, total) {
            (false, _) => ProgressBar::hidden(),
            (true, Some(total)) => ProgressBar::new(total),
            (true, None) => ProgressBar::new_spinner(),
        };
        let template = match (unit, total.is_some()) {
            (Unit::Bytes, true) => {
                "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
            }
            (Unit::Bytes, false) => "{spinner} {msg} {decimal_bytes}, {decimal_bytes_per_sec}, {elapsed}",
            (Unit::Records, true) => "{msg} {wide_bar} {human_pos} of {human_len} records, {per_sec}, {eta} left",
            (Unit::Records, false) => "{spinner} {msg} {human_pos} records, {per_sec}, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let started = Instant::now();
        let next_plain = if terminal { None } else { Some(started + PLAIN_INTERVAL) };
        Progress { bar, what, unit, total, started, next_plain }
    }

    /// A job of unknown length: only a spinner with the time.
    pub fn waiting(what: &'static str) -> Progress {
        let progress = Progress::new(what, Unit::Records, None);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            progress.bar.set_style(style);
        }
        progress
    }

    /// How far the job is.
    pub fn set(&mut self, position: u64) {
        self.bar.set_position(position);
        if self.next_plain.is_some_and(|next| Instant::now() >= next) {
            self.plain(position);
            self.next_plain = Some(Instant::now() + PLAIN_INTERVAL);
        }
    }

    /// How far the job is, where the total is known only now.
    pub fn set_of(&mut self, position: u64, total: u64) {
        self.total = Some(total);
        self.bar.set_length(total);
        self.set(position);
    }

    fn plain(&self, position: u64) {
        let amount = |number: u64| match self.unit {
            Unit::Bytes => bytes_text(number),
            Unit::Records => format!("{number} records"),
        };
        let rate = (position as f64 / self.started.elapsed().as_secs_f64().max(0.001)) as u64;
        let of = self.total.map(|total| format!(" of {}", amount(total))).unwrap_or_default();
        let _ = writeln!(io::stderr(), "{}: {}{of}, {} a second", self.what, amount(position), amount(rate));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
