//! `esker report`: kept runs as HTML, Markdown and CSV, and one run against another.
//!
//! Hops, from run directories to a page:
//!
//! 1. `load` reads run directories and files of records; `measured` puts the repetitions of each
//!    row together.
//! 2. `against` compares two runs.
//! 3. `sections` says everything in the blocks of `crate::report`, one file for each section, with
//!    the verdicts, the published figures and the broken rules; its renderers write them.

mod against;
mod command;
mod load;
mod measured;
mod sections;

use crate::report::blocks::{Document, Section};
use crate::report::records;
use crate::report::render::{html, markdown};
use crate::sweep::grid::StudyRun;

pub use command::{report_main, report_with};
pub use load::runs as load_runs;

/// Everything about `runs`. A `comparison` comes first.
fn document(runs: &[StudyRun], comparison: Option<Section>) -> Document {
    let hosts = || runs.iter().flat_map(|run| &run.finished).map(|finished| &finished.host);
    Document {
        title: title(runs),
        date: hosts().map(|host| host.date.clone()).max().unwrap_or_default(),
        cpu: hosts().next().map_or(String::new(), |host| host.cpu.clone()),
        made_by: "esker report",
        lead: Vec::new(),
        sections: comparison.into_iter().chain(sections::all(runs)).collect(),
    }
}

/// The report of some runs as one HTML document.
pub fn render_html(runs: &[StudyRun]) -> String {
    html::document(&document(runs, None))
}

/// The same as Markdown.
pub fn render_markdown(runs: &[StudyRun]) -> String {
    markdown::document(&document(runs, None))
}

/// Every record of some runs as CSV.
pub fn render_csv(runs: &[StudyRun]) -> String {
    records::of_runs(runs)
}

fn title(runs: &[StudyRun]) -> String {
    let mut titles: Vec<&str> = runs.iter().map(|run| run.title.trim()).filter(|title| !title.is_empty()).collect();
    titles.dedup();
    match titles.as_slice() {
        [only] => only.to_string(),
        _ => "Studies of embedded key-value engines".into(),
    }
}
