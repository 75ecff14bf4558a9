//! `esker report`: kept runs as HTML, Markdown and CSV, and one run against another.
//!
//! Hops, from run directories to a page:
//!
//! 1. `load` reads run directories and files of records; `measured` puts the repetitions of each row together.
//! 2. `findings` takes verdicts, published figures and broken rules from where they are worked out; `against` compares two runs.
//! 3. `sections` says everything in `blocks`, one file for each section.
//! 4. `html` and `markdown` write blocks; `csv` writes records. The frame and style of the page are those of `crate::report`.

mod against;
mod blocks;
mod command;
mod csv;
mod findings;
mod html;
mod load;
mod markdown;
mod measured;
mod sections;

use crate::study::grid::StudyRun;
use blocks::Section;
use findings::Findings;

pub use command::{report_main, report_with};

/// Kept runs, worked out and ready to be written.
pub struct Report {
    title: String,
    date: String,
    cpu: String,
    sections: Vec<Section>,
}

impl Report {
    /// Works out everything about `runs`. A `comparison` comes first.
    fn new(runs: &[StudyRun], comparison: Option<Section>) -> Report {
        let findings = Findings::of(runs);
        let mut sections = sections::all(runs, &findings);
        if let Some(comparison) = comparison {
            sections.insert(0, comparison);
        }
        let hosts = || runs.iter().flat_map(|run| &run.finished).map(|finished| &finished.host);
        Report {
            title: title(runs),
            date: hosts().map(|host| host.date.clone()).max().unwrap_or_default(),
            cpu: hosts().next().map_or(String::new(), |host| host.cpu.clone()),
            sections,
        }
    }

    fn html(&self) -> String {
        html::document(&self.title, &self.date, &self.cpu, &self.sections)
    }

    fn markdown(&self) -> String {
        markdown::document(&self.title, &self.sections)
    }
}

/// The report of some runs as one HTML document.
pub fn render_html(runs: &[StudyRun]) -> String {
    Report::new(runs, None).html()
}

/// The same as Markdown.
pub fn render_markdown(runs: &[StudyRun]) -> String {
    Report::new(runs, None).markdown()
}

/// Every record of some runs as CSV.
pub fn render_csv(runs: &[StudyRun]) -> String {
    csv::text(runs)
}

fn title(runs: &[StudyRun]) -> String {
    let mut titles: Vec<&str> = runs.iter().map(|run| run.title.trim()).filter(|title| !title.is_empty()).collect();
    titles.dedup();
    match titles.as_slice() {
        [only] => only.to_string(),
        _ => "Studies of embedded key-value engines".into(),
    }
}
