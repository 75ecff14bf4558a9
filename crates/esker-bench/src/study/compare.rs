//! `esker study compare`: whether a scoreboard lost against one that was kept.

use crate::exit::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use crate::output::{complain, say};
use crate::report::blocks::{Block, Line as TableLine, TableOf};
use crate::report::render::text;
use crate::report::scoreboard::summary::Line;
use crate::report::scoreboard::verdict::{Compared, Verdict, compare, replace};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Shown below the options.
pub const EXAMPLES: &str = include_str!("../../data/help/compare.txt").trim_ascii_end();

/// The arguments of the study.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The kept scoreboard
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// The one to judge
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Rows measured once more: what this file says of a row counts instead
    #[arg(long, value_name = "FILE")]
    pub again: Option<PathBuf>,
    /// Loss that is still accepted, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    pub max_loss: f64,
    /// Engines to measure Esker by, joined by commas [default: all that are in both files]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub yardstick: Vec<String>,
    /// File for the names of the rows that are lost or unclear, one a line, for `scoreboard
    /// --rows-from`
    #[arg(long, value_name = "FILE")]
    pub failing: Option<PathBuf>,
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments, out: &mut dyn Write) -> i32 {
    match run(arguments, out) {
        Ok(true) => EXIT_OK,
        Ok(false) => EXIT_FAILED,
        Err(problem) => complain("study compare", &problem, EXIT_USAGE),
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<bool, String> {
    if arguments.max_loss.is_nan() || arguments.max_loss < 0.0 {
        return Err("--max-loss must not be negative".into());
    }
    let max_loss = arguments.max_loss / 100.0;
    let base = read(&arguments.base)?;
    let mut rows = compare(&base, &read(&arguments.new)?, &arguments.yardstick, max_loss);
    if let Some(again) = &arguments.again {
        replace(&mut rows, compare(&base, &read(again)?, &arguments.yardstick, max_loss));
    }
    if rows.iter().all(|row| matches!(row.verdict, Verdict::Incomparable(_))) {
        let reason = match rows.first().map(|row| row.verdict) {
            Some(Verdict::Incomparable(reason)) => reason,
            _ => "no row of Esker's is in both files",
        };
        return Err(format!("nothing to compare: {reason}"));
    }
    say(out, &table(&rows, arguments.max_loss));
    if let Some(path) = &arguments.failing {
        let failing = rows.iter().filter(|row| matches!(row.verdict, Verdict::Lost | Verdict::Unclear));
        let names: String = failing.map(|row| format!("{}\n", row.row)).collect();
        std::fs::write(path, names).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(!rows.iter().any(|row| row.verdict == Verdict::Lost))
}

/// The rows of a file; lines of other kinds are passed over.
fn read(path: &Path) -> Result<Vec<Line>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: serde_json::Error| format!("{}, line {}: {error}", path.display(), number + 1);
        let value: serde_json::Value = serde_json::from_str(line).map_err(wrong)?;
        if value["kind"] == "row" {
            lines.push(serde_json::from_value(value).map_err(wrong)?);
        }
    }
    if lines.is_empty() {
        return Err(format!("{} has no row: use a file of `esker study scoreboard --json`", path.display()));
    }
    Ok(lines)
}

fn table(rows: &[Compared], max_loss: f64) -> String {
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (lost, unclear) = (count(Verdict::Lost), count(Verdict::Unclear));
    let compared = rows.iter().filter(|row| !matches!(row.verdict, Verdict::Incomparable(_))).count();
    let caption = "Esker's time over the yardsticks', kept and now: larger is slower.";
    let table = TableOf::new(caption, "row", rows, |row| TableLine::head(&row.row))
        .number("kept", |row| format!("{:.3}", row.base))
        .number("now", |row| format!("{:.3}", row.new))
        .number("change", |row| format!("{:+.1}%", row.loss * 100.0))
        .number("noise", |row| format!("{:.1}%", row.noise * 100.0))
        .number("verdict", |row| row.verdict.to_string())
        .number("measured by", |row| row.yardsticks.join(","));
    text::blocks(&[
        Block::Table(table.done()),
        Block::Text(format!(
            "{compared} rows compared: {lost} lost more than {max_loss} % beyond the noise, {unclear} unclear"
        )),
    ])
}
