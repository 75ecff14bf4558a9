//! Progress on standard error: a bar with rate and remaining time on a terminal, a line now and
//! then elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// A bar that redraws itself.
    Bar,
    /// Whole lines, first after ten seconds, then at doubling intervals.
    Lines,
    /// Nothing.
    Hidden,
}

impl Display {
    /// What suits this process's standard error.
    pub fn detect() -> Display {
        if std::io::stderr().is_terminal() { Display::Bar } else { Display::Lines }
    }
}

/// Progress of one benchmark. Dropping it clears the bar.
pub struct Progress {
    label: String,
    total: u64,
    started: Instant,
    bar: Option<ProgressBar>,
    next_line: Option<Duration>,
    interval: Duration,
}

impl Progress {
    const FIRST_LINE: Duration = Duration::from_secs(10);
    const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

    /// Starts showing a benchmark of `total` operations.
    pub fn start(display: Display, label: String, total: u64) -> Progress {
        let bar = (display == Display::Bar).then(|| {
            let bar = ProgressBar::new(total);
            let template = "{prefix} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(label.clone());
            bar
        });
        Progress {
            label,
            total,
            started: Instant::now(),
            bar,
            next_line: (display == Display::Lines).then_some(Self::FIRST_LINE),
            interval: Self::FIRST_LINE,
        }
    }

    /// Shows that `done` operations are done.
    pub fn update(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done.min(self.total));
        }
        if let Some(line) = self.line_due(done, self.started.elapsed()) {
            eprintln!("{line}");
        }
    }

    fn line_due(&mut self, done: u64, elapsed: Duration) -> Option<String> {
        let due = self.next_line?;
        if elapsed < due {
            return None;
        }
        self.interval = (self.interval * 2).min(Self::LONGEST_INTERVAL);
        self.next_line = Some(elapsed + self.interval);
        let seconds = elapsed.as_secs_f64();
        let rate = done as f64 / seconds.max(1e-9);
        let left = self.total.saturating_sub(done) as f64 / rate.max(1e-9);
        Some(format!(
            "... {}: {done} of {} operations after {seconds:.0} s, {rate:.0}/s, about {left:.0} s left",
            self.label, self.total
        ))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_growing_intervals() {
        let mut progress = Progress::start(Display::Lines, "fillseq".into(), 1000);
        let shown: Vec<u64> =
            (1..=200).filter(|second| progress.line_due(*second, Duration::from_secs(*second)).is_some()).collect();
        assert_eq!(shown, [10, 30, 70, 150]);
        let mut hidden = Progress::start(Display::Hidden, "x".into(), 1);
        assert_eq!(hidden.line_due(1, Duration::from_secs(1000)), None);
    }

    #[test]
    fn a_line_says_rate_and_time_left() {
        let mut progress = Progress::start(Display::Lines, "fillseq".into(), 1000);
        let line = progress.line_due(500, Duration::from_secs(10)).unwrap();
        assert_eq!(line, "... fillseq: 500 of 1000 operations after 10 s, 50/s, about 10 s left");
    }
}
