//! The command line of `esker report`.

use super::against::Comparison;
use super::measured::measure;
use super::{document, load, render_csv};
use crate::exit::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use crate::output::{complain, say};
use crate::report::render::{html, markdown};
use crate::report::scoreboard::verdict::Verdict;
use crate::sweep::grid::lines;
use clap::Parser;
use clap::error::ErrorKind;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = include_str!("../../../data/help/report.txt").trim_ascii_end();

/// Reports of kept runs, and one run against another.
#[derive(Parser)]
#[command(
    name = "esker report",
    bin_name = "esker report",
    no_binary_name = true,
    max_term_width = 120,
    after_help = EXAMPLES
)]
struct Arguments {
    /// Run directories, or files of records
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// File for the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// File for the report as Markdown; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// File for every record as CSV; `-` is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// File for the run itself as JSON lines, to be kept: all that reports read of it. Of one RUN
    /// only
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    /// An older run to compare with
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Loss that is still accepted, in percent [default: 10]
    #[arg(long, value_name = "PERCENT", requires = "against")]
    max_loss: Option<f64>,
}

/// Runs `esker report` with the arguments after that word and returns the exit code of the process.
pub fn report_main(args: &[String]) -> i32 {
    report_with(args, &mut std::io::stdout())
}

/// The same, with its output passed in.
pub fn report_with(args: &[String], out: &mut dyn Write) -> i32 {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            say(out, error.render().to_string().trim_end());
            return EXIT_OK;
        }
        Err(error) => {
            return complain("report", &esker_usage::summary(&error.to_string(), "esker report"), EXIT_USAGE);
        }
    };
    match run(&arguments, out) {
        Ok(code) => code,
        Err((problem, code)) => complain("report", &problem, code),
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<i32, (String, i32)> {
    let unreadable = |problem: String| (problem, EXIT_USAGE);
    let percent = arguments.max_loss.unwrap_or(10.0);
    if percent.is_nan() || percent < 0.0 {
        return Err(unreadable("--max-loss must not be negative".into()));
    }
    let runs = load::runs(&arguments.runs).map_err(unreadable)?;
    let compare = |path: &PathBuf| {
        let base = load::runs(std::slice::from_ref(path))?;
        let comparison = Comparison::of(&measure(&base, &[]), &measure(&runs, &[]), percent / 100.0)?;
        let section = comparison.section(&path.display().to_string(), percent);
        Ok((section, comparison.summary(percent), comparison.count(Verdict::Lost) > 0))
    };
    let compared = arguments.against.as_ref().map(compare).transpose().map_err(unreadable)?;
    let kept = match (&arguments.lines, runs.as_slice()) {
        (Some(_), [only]) => lines::write(only),
        (Some(_), _) => return Err(unreadable("--lines is for one RUN: give each its own file".into())),
        (None, _) => String::new(),
    };
    let Arguments { html, markdown, csv, lines, .. } = arguments;
    let is_asked = [html, markdown, csv, lines].iter().any(|file| file.is_some());
    let code = if matches!(compared, Some((.., true))) { EXIT_FAILED } else { EXIT_OK };
    let (section, summary) = compared.map(|(section, summary, _)| (section, summary)).unzip();
    if let (Some(section), false) = (&section, is_asked) {
        let mut text = format!("## {}\n", section.title);
        markdown::blocks(&section.blocks, &mut text);
        say(out, text.trim_end());
        return Ok(code);
    }
    let report = document(&runs, section);
    if !is_asked {
        say(out, markdown::document(&report).trim_end());
    }
    let files: [(_, &dyn Fn() -> String); 4] = [
        (html, &|| html::document(&report)),
        (markdown, &|| markdown::document(&report)),
        (csv, &|| render_csv(&runs)),
        (lines, &|| kept.clone()),
    ];
    for (path, text) in files.into_iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
        put(&text(), path, out).map_err(|problem| (problem, EXIT_FAILED))?;
    }
    if let Some(summary) = summary {
        eprintln!("{summary}");
    }
    Ok(code)
}

/// Writes to a file, or to standard output where it is called `-`.
fn put(text: &str, path: &Path, out: &mut dyn Write) -> Result<(), String> {
    if path == Path::new("-") {
        say(out, text.trim_end());
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
