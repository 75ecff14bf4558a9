//! The one report: what is to be said in blocks, renderers that write blocks as HTML, Markdown,
//! text or CSV, and the report of a run.
//!
//! Hops, from records to page:
//!
//! 1. `measured` holds the repetitions of one measurement; `groups` collects those of one row and
//!    thread count, and works out every ratio.
//! 2. `run` says everything about a run in `blocks`; `crate::study_report` does so for kept
//!    studies, the scoreboard for its tables. `curves` and `plot` draw latency and throughput over
//!    time as inline SVG.
//! 3. `render` writes blocks. The HTML page shows itself without any request to the network.
//! 4. `engine_style`, `number` and `words` are what all of them share: names and colours, figures
//!    as text, and lists as people write them.

pub(crate) mod blocks;
mod curves;
pub(crate) mod engine_style;
pub(crate) mod groups;
pub(crate) mod measured;
pub(crate) mod number;
mod plot;
pub(crate) mod render;
mod run;
pub(crate) mod words;

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
