//! The report of a run: one self-contained HTML page that a browser shows without any request to the network.
//!
//! Hops, from records to page:
//!
//! 1. `group` collects the records of one row and thread count into a group with one cell per engine.
//! 2. `frame` holds what every report has, with the one of kept studies (`crate::study_report`); `page` writes the summary;
//!    `section` one section per group; `appendix` the settings and the machine.
//! 3. `bars` draws throughput with CSS alone; `curves` and `plot` draw latency and throughput over time as inline SVG.
//! 4. `engine_style`, `number` and `varying` are what all of them share: names and colours, figures as text, and
//!    settings that differ from row to row.
//!
//! Markup comes from maud templates, which escape every text; the only text that passes unescaped is the style sheet of
//! this crate and the SVG of the plots, which holds no text from a record.

mod appendix;
mod bars;
mod curves;
pub(crate) mod engine_style;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod number;
mod page;
mod plot;
mod section;
mod varying;

use crate::record::Run;
use std::path::Path;

/// The report of `run` as one HTML document.
pub fn render_html(run: &Run) -> String {
    page::document(run, &group::Groups::of(&run.records)).into_string()
}

/// Writes the report of `run` to `path`, replacing what is there.
pub fn write_html(run: &Run, path: &Path) -> std::io::Result<()> {
    std::fs::write(path, render_html(run))
}
