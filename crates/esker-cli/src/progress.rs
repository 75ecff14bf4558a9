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

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::process::{Command, Output};
    use std::sync::{Arc, Mutex};

    /// A terminal of one line, and what is on it.
    #[derive(Clone, Debug, Default)]
    struct Line(Arc<Mutex<String>>);

    impl Line {
        fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }
    }

    impl TermLike for Line {
        fn width(&self) -> u16 {
            120
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Shows what `progress` would on a terminal, with nothing that moves on its own.
    fn on_terminal(progress: &Progress) -> Line {
        let line = Line::default();
        progress.bar.disable_steady_tick();
        // A bar without a terminal has no length.
        progress.total.into_iter().for_each(|total| progress.bar.set_length(total));
        progress.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(line.clone())));
        line
    }

    #[test]
    fn a_terminal_shows_the_amount_and_the_total_and_then_nothing() {
        // As `esker backup` does it: the total of a phase comes with its first amount.
        let mut progress = Progress::new("copying", Unit::Bytes, Some(0));
        let line = on_terminal(&progress);
        for (done, total, shown) in [(0, 2000, "0 B of 2.00 kB"), (500, 2000, "500 B of 2.00 kB")] {
            progress.set_of(done, total);
            let text = line.text();
            assert!(text.contains("copying ") && text.contains(&format!(" {shown}, ")), "{text:?}");
        }
        drop(progress);
        assert!(!line.text().contains("copying"), "{:?}", line.text());
        let mut progress = Progress::new("dumping", Unit::Records, Some(5000));
        let line = on_terminal(&progress);
        progress.set(1234);
        assert!(line.text().contains(" 1,234 of 5,000 records, "), "{:?}", line.text());
    }

    /// Set in the process whose standard error is read.
    const CHILD: &str = "ESKER_PROGRESS_CHILD";

    /// Runs `test` again in a process of its own, whose standard error is no terminal.
    fn in_a_process(test: &str) -> Output {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &format!("progress::tests::{test}"), "--nocapture", "--test-threads=1"]);
        child.env(CHILD, "1").output().unwrap()
    }

    #[test]
    fn without_a_terminal_there_is_a_plain_line_when_it_is_due_and_nothing_before() {
        if std::env::var_os(CHILD).is_some() {
            return show_plain_lines();
        }
        let output = in_a_process("without_a_terminal_there_is_a_plain_line_when_it_is_due_and_nothing_before");
        let (shown, told) = (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
        assert!(output.status.success() && told.contains("1 passed"), "{told}{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let expected = ["copying: 1.50 kB of 2.00 kB, ", "dumping: 7 records of 9 records, ", "loading: 8 records, "];
        assert_eq!(lines.len(), expected.len(), "{shown}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected) && line.ends_with(" a second"), "{shown}");
        }
    }

    /// Shows amounts that are not due, and each time one that is.
    fn show_plain_lines() {
        let later = Instant::now() + Duration::from_secs(3600);
        let mut bytes = Progress::new("copying", Unit::Bytes, Some(0));
        let mut records = Progress::new("dumping", Unit::Records, Some(9));
        let mut unknown = Progress::new("loading", Unit::Records, None);
        for progress in [&mut bytes, &mut records, &mut unknown] {
            assert!(progress.next_plain.is_some(), "this is to run without a terminal");
            progress.next_plain = Some(later);
        }
        bytes.set_of(500, 2000);
        records.set(6);
        unknown.set(6);
        let begun = Instant::now();
        for progress in [&mut bytes, &mut records, &mut unknown] {
            progress.next_plain = Some(begun);
        }
        bytes.set_of(1500, 2000);
        records.set(7);
        unknown.set(8);
        for progress in [&bytes, &records, &unknown] {
            assert!(progress.next_plain.is_some_and(|next| next >= begun + PLAIN_INTERVAL), "it is due too early");
        }
    }
}
