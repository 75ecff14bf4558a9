//! The document: introduction, summary, and the order of everything else.

use super::engine_style::{OURS, display_name, listed};
use super::frame::Frame;
use super::group::{Cell, Group, Groups, geometric_mean};
use super::{appendix, number, section};
use crate::record::Run;
use maud::{Markup, html};

/// The whole document.
pub fn document(run: &Run, groups: &Groups) -> Markup {
    let title = if run.title.trim().is_empty() { "Benchmark of embedded key-value engines" } else { &run.title };
    let host = appendix::host(run);
    let main = html! {
        @if groups.groups.is_empty() {
            p.warning { strong { "This run holds no records." } " There is nothing to compare." }
        } @else {
            (introduction(groups))
            (summary(groups))
            section id="benchmarks" aria-labelledby="benchmarks-title" {
                h2 id="benchmarks-title" { "Benchmarks" }
                @for (index, group) in groups.groups.iter().enumerate() { (section::section(groups, index, group)) }
            }
            (appendix::settings(run, groups))
        }
        (appendix::machine(run, host))
    };
    let frame = Frame { title, date: &host.date, cpu: &host.cpu, style: "", made_by: "esker bench" };
    frame.document(&contents(groups), &main)
}

fn contents(groups: &Groups) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @if !groups.groups.is_empty() {
                    li { a href="#summary" { "Summary" } }
                    li { a href="#benchmarks" { "Benchmarks" } }
                    li { a href="#settings" { "Settings" } }
                }
                li { a href="#machine" { "Machine and command" } }
            }
        }
    }
}

/// The paragraph that says how to read the page.
fn introduction(groups: &Groups) -> Markup {
    html! {
        p.lead {
            @if groups.engines.len() == 1 { "This page shows " } @else { "This page compares " }
            (listed(&groups.engines)) " in " (groups.groups.len())
            @if groups.groups.len() == 1 { " row." } @else { " rows." }
            " Time is given in microseconds per operation as one client thread sees it, where lower is better; throughput in "
            "operations per second of wall time, where higher is better. "
            @if groups.repetitions > 1 {
                "Figures are medians of up to " (groups.repetitions) " repetitions, and the thin line across a bar reaches "
                "from the slowest repetition to the fastest: where two such lines overlap, the order of the engines is not settled. "
            } @else {
                "Every figure comes from a single repetition, so small differences mean nothing. "
            }
            "Only engines whose writes are equally durable are compared within a row. "
            "Every engine keeps its colour, its dashes and its marker throughout."
        }
    }
}

fn summary(groups: &Groups) -> Markup {
    html! {
        section id="summary" aria-labelledby="summary-title" {
            h2 id="summary-title" { "Summary" }
            (verdict(groups))
            div.scroll role="region" tabindex="0" aria-label="Summary of all rows" {
                table.summary {
                    caption { span {
                        "Median microseconds per operation; lower is better. "
                        span.best { "Bold with a dot" } " marks the best of a row."
                        @if groups.has_ratios() {
                            " The ratios say how many times as fast as the peer Esker is: below 1, with a hollow triangle, it is slower."
                        }
                    } }
                    (summary_head(groups))
                    tbody {
                        @for (index, group) in groups.groups.iter().enumerate() { (summary_row(groups, index, group)) }
                    }
                    @if groups.has_ratios() { (summary_foot(groups)) }
                }
            }
            (summary_notes(groups))
        }
    }
}

/// What the summary comes to, in one sentence.
fn verdict(groups: &Groups) -> Markup {
    let ratios: Vec<f64> = groups.groups.iter().filter_map(Group::ratio_to_best_peer).map(|(_, ratio)| ratio).collect();
    let ahead = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
    html! {
        @match geometric_mean(&ratios) {
            Some(mean) => {
                p {
                    "Esker is at least as fast as the best peer in " strong { (ahead) " of " (ratios.len()) }
                    " compared rows; the geometric mean of its speed is " strong { (number::ratio(mean)) } " that of the best peer"
                    @if let Some((mean, count)) = mean_ratio(groups, "rocksdb") {
                        " and " strong { (number::ratio(mean)) } " that of RocksDB (" (count) @if count == 1 { " row" } @else { " rows" } ")"
                    }
                    "."
                }
            }
            None => { p.quiet { "No row has figures of both Esker and a comparable peer, so no ratios are given." } }
        }
    }
}

/// The geometric mean of Esker's speed relative to `engine`, with the number of rows it is over.
fn mean_ratio(groups: &Groups, engine: &str) -> Option<(f64, usize)> {
    let ratios: Vec<f64> = groups.groups.iter().filter_map(|group| group.ratio_to(engine)).collect();
    Some((geometric_mean(&ratios)?, ratios.len()))
}

fn summary_head(groups: &Groups) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "Row" }
            @for engine in &groups.engines {
                th.number.ours[*engine == OURS] scope="col" { (display_name(engine)) }
            }
            @if groups.has_ratios() {
                th.number.ratio scope="col" { "Ratio to " span.nowrap { "best peer" } }
                @if groups.engines.contains(&"rocksdb") { th.number.ratio scope="col" { "Ratio to RocksDB" } }
            }
        } }
    }
}

fn summary_row(groups: &Groups, index: usize, group: &Group) -> Markup {
    let best = group.fastest(|_| true).map(|(engine, _)| engine);
    html! {
        tr {
            th scope="row" { a href=(format!("#{}", section::anchor(index))) { (groups.label(group)) } }
            @for engine in &groups.engines {
                td.number.ours[*engine == OURS] { (summary_cell(group, group.cell(engine), best == Some(*engine))) }
            }
            @if groups.has_ratios() {
                td.number.ratio {
                    @if let Some((peer, ratio)) = group.ratio_to_best_peer() {
                        (ratio_text(ratio)) " " span.peer { (display_name(peer)) }
                    } @else { (number::ABSENT) }
                }
                @if groups.engines.contains(&"rocksdb") {
                    td.number.ratio {
                        @if let Some(ratio) = group.ratio_to("rocksdb") { (ratio_text(ratio)) } @else { (number::ABSENT) }
                    }
                }
            }
        }
    }
}

fn summary_cell(group: &Group, cell: Option<&Cell>, best: bool) -> Markup {
    let figure = cell.and_then(|cell| Some((cell, cell.micros_per_op()?)));
    html! {
        @match (figure, cell.and_then(|cell| cell.skipped)) {
            (Some((_, micros)), _) if best => span.best { span.hidden { "best: " } (number::figure(micros)) },
            (Some((cell, micros)), _) if !group.comparable(cell) => { (number::figure(micros)) "\u{2020}" }
            (Some((_, micros)), _) => { (number::figure(micros)) }
            (None, Some(reason)) => span.quiet title=(reason) { "skipped" },
            (None, None) => { (number::ABSENT) }
        }
    }
}

fn ratio_text(ratio: f64) -> Markup {
    html! {
        @if ratio < 1.0 {
            span.behind { span.hidden { "slower: " } (number::ratio(ratio)) }
        } @else { (number::ratio(ratio)) }
    }
}

/// The last line: Esker's speed relative to every engine over all rows.
fn summary_foot(groups: &Groups) -> Markup {
    let best: Vec<f64> = groups.groups.iter().filter_map(Group::ratio_to_best_peer).map(|(_, ratio)| ratio).collect();
    let mean = |found: Option<(f64, usize)>| {
        html! {
            @match found {
                Some((mean, rows)) => { (ratio_text(mean)) br; span.peer { (rows) @if rows == 1 { " row" } @else { " rows" } } }
                None => { (number::ABSENT) }
            }
        }
    };
    html! {
        tfoot { tr {
            th scope="row" { "Esker\u{2019}s speed relative to each, geometric mean" }
            @for engine in &groups.engines {
                @if *engine == OURS {
                    td.number.ours { "1" }
                } @else {
                    td.number { (mean(mean_ratio(groups, engine))) }
                }
            }
            td.number.ratio { (mean(geometric_mean(&best).map(|mean| (mean, best.len())))) }
            @if groups.engines.contains(&"rocksdb") { td.number.ratio { (mean(mean_ratio(groups, "rocksdb"))) } }
        } }
    }
}

/// What marks in the table mean, and a list of what was skipped.
fn summary_notes(groups: &Groups) -> Markup {
    let cells = || groups.groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, cell)));
    let apart = cells().any(|(group, cell)| !cell.ran.is_empty() && !group.comparable(cell));
    let skipped: Vec<(&Group, &Cell, &str)> =
        cells().filter_map(|(group, cell)| Some((group, cell, cell.skipped?))).collect();
    html! {
        @if apart { p.quiet { "\u{2020} Durability of another class than the row\u{2019}s: not compared." } }
        @if !skipped.is_empty() {
            details {
                summary { "Skipped: " (skipped.len()) @if skipped.len() == 1 { " cell" } @else { " cells" } ", with the reasons" }
                ul {
                    @for (group, cell, reason) in &skipped {
                        li { (groups.label(group)) ", " (display_name(cell.engine)) ": " (reason) }
                    }
                }
            }
        }
    }
}
