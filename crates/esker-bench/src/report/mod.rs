//! Reports: one set of blocks, one renderer for each form, and a module for each kind of report.
//!
//! From records to a page:
//!
//! 1. `measured` holds the repetitions of one measurement. `groups` collects the measurements of
//!    one row and thread count, and computes every ratio.
//! 2. A kind of report makes `blocks`: `run` from one invocation, `scoreboard` from its rows,
//!    `study` from kept studies. `curves` and `plot` draw latency and throughput over time as
//!    inline SVG.
//! 3. `render` writes blocks as HTML, Markdown or text, and the fields of records as CSV
//!    (`records`). The HTML page shows itself without any request to the network.
//! 4. `engine_style` has the names and colours of engines; `crate::text` writes figures and lists.

pub(crate) mod blocks;
mod curves;
pub(crate) mod engine_style;
pub(crate) mod groups;
pub(crate) mod measured;
mod plot;
pub(crate) mod records;
pub(crate) mod render;
mod run;
pub(crate) mod scoreboard;
pub mod study;

use crate::record::Run;
use std::path::Path;

/// The report of `run` as one HTML document.
pub fn render_html(run: &Run) -> String {
    render::html::document(&run::document(run))
}

/// Writes the report of `run` to `path`, replacing what is there.
pub fn write_html(run: &Run, path: &Path) -> std::io::Result<()> {
    std::fs::write(path, render_html(run))
}
