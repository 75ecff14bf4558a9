//! The report of one run: a summary, a part for each row, the settings of every engine, and the
//! machine.

mod appendix;
mod row;
mod summary;

use super::blocks::{Block, Document, Section};
use super::engine_style::listed;
use super::groups::Groups;
use crate::record::{Host, Run};

/// The whole report.
pub fn document(run: &Run) -> Document {
    let groups = Groups::of(&run.records).ranked();
    let title = if run.title.trim().is_empty() { "Benchmark of embedded key-value engines" } else { &run.title };
    let host = host(run);
    let mut document = Document {
        title: title.to_string(),
        date: host.date.clone(),
        cpu: host.cpu.clone(),
        made_by: "esker bench",
        ..Document::default()
    };
    if groups.groups.is_empty() {
        let warning = "This run holds no records. There is nothing to compare.";
        document.lead.push(Block::Warning(warning.into()));
    } else {
        let rows = groups.groups.iter().enumerate().map(|(index, group)| Block::Part(row::part(&groups, index, group)));
        document.lead.push(Block::Text(introduction(&groups)));
        document.sections.extend([
            Section::new("summary", "Summary", summary::blocks(&groups)),
            Section::new("benchmarks", "Benchmarks", rows.collect()),
            Section::new("settings", "Settings", appendix::settings(run, &groups)),
        ]);
    }
    document.sections.push(Section::new("machine", "Machine and command", appendix::machine(run, host)));
    document
}

/// The machine of a run: the run's own, or that of its first record where the run names none.
fn host(run: &Run) -> &Host {
    match run.records.first() {
        Some(record) if run.host == Host::default() => &record.host,
        _ => &run.host,
    }
}

/// The paragraph that says how to read the page.
fn introduction(groups: &Groups) -> String {
    let rows = groups.groups.len();
    format!(
        "This page {} {} in {rows} row{}. Time is given in microseconds per operation, where lower is better: in the summary of wall time of all client \
         threads together, in the table of a row as one client thread sees it; throughput in operations per second of wall time, where higher is \
         better. {} Only engines whose writes are equally durable are compared within a row. Every engine keeps its colour, its dashes and its \
         marker throughout.",
        if groups.engines.len() == 1 { "shows" } else { "compares" },
        listed(&groups.engines),
        if rows == 1 { "" } else { "s" },
        match groups.repetitions {
            0 | 1 => "Every figure comes from a single repetition, so small differences mean nothing.".to_string(),
            repetitions => format!(
                "Figures are medians of up to {repetitions} repetitions, and the thin line across a bar reaches from the slowest repetition to the \
                 fastest: where two such lines overlap, the order of the engines is not settled."
            ),
        }
    )
}
