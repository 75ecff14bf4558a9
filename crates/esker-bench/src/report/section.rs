//! One section of the report: everything about one row and thread count.

use super::bars;
use super::curves::{self, Figure};
use super::engine_style::{OURS, Style, display_name, listed};
use super::group::{Cell, Group, Groups, durability_name};
use super::number;
use super::plot;
use crate::engine::Counters;
use crate::record::Record;
use maud::{Markup, PreEscaped, html};

/// The address of the section of group `index` inside the page.
pub fn anchor(index: usize) -> String {
    format!("row-{}", index + 1)
}

/// The section of group `index`.
pub fn section(groups: &Groups, index: usize, group: &Group) -> Markup {
    let id = anchor(index);
    let label = groups.label(group);
    let others = groups.others();
    let figures: Vec<Figure> =
        [curves::latency(group, &others), curves::throughput(group, &others)].into_iter().flatten().collect();
    html! {
        section.row id=(id) aria-labelledby=(format!("{id}-title")) {
            h3 id=(format!("{id}-title")) { (label) }
            (about(group))
            h4 { "Operations per second" }
            (bars::chart(group))
            (notes(group))
            (table(groups, group, &label))
            (work_table(group, &label))
            @if figures.is_empty() {
                p.quiet { "No latencies and no series were recorded for this row." }
            } @else {
                (legend(group, &others))
                div.figures {
                    @for (number, figure) in figures.iter().enumerate() {
                        (plot_figure(&format!("{id}-plot-{}", number + 1), &label, figure))
                    }
                }
            }
        }
    }
}

/// The line under the heading: which benchmark, how many threads, how durable.
fn about(group: &Group) -> Markup {
    let apart: Vec<&Cell> = group.cells.iter().filter(|cell| !cell.ran.is_empty() && !group.comparable(cell)).collect();
    html! {
        p.about {
            @if group.benchmark != group.row {
                "Benchmark " code { (group.benchmark) } ". "
            }
            (group.threads) @if group.threads == 1 { " client thread." } @else { " client threads." }
            @if let Some(class) = group.durability() {
                " An acknowledged write is " strong { (durability_name(class)) } "."
            }
        }
        @if !apart.is_empty() {
            p.warning {
                strong { "Not of equal durability: " }
                @for (index, cell) in apart.iter().enumerate() {
                    @if index > 0 { "; " }
                    @if let Some(class) = cell.durability() {
                        "an acknowledged write of " (display_name(cell.engine)) " is " (durability_name(class))
                    }
                }
                ". Hatched bars are left out of best cells and ratios."
            }
        }
    }
}

/// A column of figures: heading, unit, and the text of a cell.
type Column = (&'static str, &'static str, fn(&Cell) -> Option<String>);

/// The columns after the name of the engine.
const COLUMNS: [Column; 12] = [
    ("Operations", "", |cell| cell.median(|record| record.ops as f64).map(number::whole)),
    ("Time", "\u{b5}s/op", |cell| cell.micros_per_op().map(number::figure)),
    ("Throughput", "ops/s", |cell| cell.median(|record| record.ops_per_sec).map(number::whole)),
    ("Data", "MB/s", |cell| cell.median(|record| record.mb_per_sec).map(number::figure)),
    ("p50", "\u{b5}s", |cell| cell.median(|record| record.p50_us).map(number::latency)),
    ("p99", "\u{b5}s", |cell| cell.median(|record| record.p99_us).map(number::latency)),
    ("p99.9", "\u{b5}s", |cell| cell.median(|record| record.p999_us).map(number::latency)),
    ("Max", "\u{b5}s", |cell| cell.range(|record| record.max_us).map(|range| number::latency(range.1))),
    ("Peak RSS", "", |cell| largest(cell, |record| record.rss_peak_bytes).map(number::bytes)),
    ("without mapped files", "", |cell| {
        // Older records do not have it.
        largest(cell, |record| record.rss_anonymous_peak_bytes).filter(|&bytes| bytes > 0.0).map(number::bytes)
    }),
    ("Disk", "", |cell| cell.median(|record| record.disk_bytes as f64).map(number::bytes)),
    ("CPU", "s", |cell| cell.median(|record| record.cpu_user_s + record.cpu_sys_s).map(number::figure)),
];

fn largest(cell: &Cell, field: impl Fn(&Record) -> u64) -> Option<f64> {
    cell.range(|record| field(record) as f64).map(|range| range.1)
}

/// What the engines' runs say of themselves: each message once, with its engines.
fn notes(group: &Group) -> Markup {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &group.cells {
        // An engine that ran in no repetition says why in the chart and in the table.
        let skipped = cell.skipped.filter(|_| !cell.ran.is_empty());
        let skipped = skipped.map(|reason| format!("a repetition was skipped: {reason}"));
        for note in cell.messages().into_iter().chain(skipped) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, engines)) => engines.push(cell.engine),
                None => notes.push((note, vec![cell.engine])),
            }
        }
    }
    html! {
        @if !notes.is_empty() {
            ul.notes aria-label="Notes" {
                @for (note, engines) in &notes { li { (listed(engines)) ": " (note) } }
            }
        }
    }
}

/// The figures of every engine.
fn table(groups: &Groups, group: &Group, label: &str) -> Markup {
    let repeated = groups.repetitions > 1;
    html! {
        div.scroll role="region" tabindex="0" aria-label=(format!("Figures of {label}")) {
            table {
                caption { span {
                    "Figures of " (label) "."
                    @if repeated { " Medians over the repetitions; maximum and peak RSS are the largest of them." }
                    " CPU is user and system time of the whole process."
                } }
                thead { tr {
                    th scope="col" { "Engine" }
                    @for (name, unit, _) in &COLUMNS {
                        th.number scope="col" { (name) @if !unit.is_empty() { " " span.unit { (unit) } } }
                    }
                    @if repeated { th.number scope="col" { "Range " span.unit { "ops/s" } } }
                } }
                tbody { @for cell in &group.cells { (table_row(cell, repeated)) } }
            }
        }
    }
}

fn table_row(cell: &Cell, repeated: bool) -> Markup {
    let range = cell.range(|record| record.ops_per_sec);
    html! {
        tr.ours[cell.engine == OURS] {
            th scope="row" { (display_name(cell.engine)) }
            @if let (true, Some(reason)) = (cell.ran.is_empty(), cell.skipped) {
                td.quiet colspan=(COLUMNS.len() + usize::from(repeated)) { "skipped: " (reason) }
            } @else {
                @for (_, _, text) in &COLUMNS {
                    td.number { (text(cell).unwrap_or(number::ABSENT.to_string())) }
                }
                @if repeated {
                    td.number {
                        @match range {
                            Some((low, high)) => { (number::whole(low)) " to " (number::whole(high)) }
                            None => { (number::ABSENT) }
                        }
                    }
                }
            }
        }
    }
}

/// A column of the work that engines count themselves.
type WorkColumn = (&'static str, fn(&Counters) -> f64, fn(f64) -> String);

const WORK_COLUMNS: [WorkColumn; 10] = [
    ("Comparisons", |counters| counted(counters.comparisons), number::whole),
    ("Log written", |counters| counters.wal_bytes as f64, number::bytes),
    ("Flushes", |counters| counted(counters.flushes), number::whole),
    ("Flushed", |counters| counters.flush_bytes as f64, number::bytes),
    ("Compacted", |counters| counters.compaction_bytes as f64, number::bytes),
    ("Tables searched", |counters| counted(counters.files_probed), number::whole),
    ("Tables read", |counters| counters.read_bytes as f64, number::bytes),
    ("Cache hits", |counters| counters.cache_hits as f64, number::whole),
    ("Cache misses", |counters| counters.cache_misses as f64, number::whole),
    ("Stalled \u{b5}s", |counters| counters.stall_micros as f64, number::whole),
];

/// What was not counted is not a number, which shows as absent.
fn counted(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
}

/// What the engines counted of their own work, where any did.
fn work_table(group: &Group, label: &str) -> Markup {
    let reported = |cell: &Cell| cell.ran.iter().any(|record| record.counters != Counters::default());
    let cells: Vec<&Cell> = group.cells.iter().filter(|cell| reported(cell)).collect();
    html! {
        @if !cells.is_empty() {
            details {
                summary { "Work that the engines report of themselves" }
                div.scroll role="region" tabindex="0" aria-label=(format!("Work of the engines in {label}")) {
                    table {
                        caption { span { "Work reported in " (label) "; engines that report none are left out." } }
                        thead { tr {
                            th scope="col" { "Engine" }
                            @for (name, _, _) in &WORK_COLUMNS { th.number scope="col" { (name) } }
                        } }
                        tbody { @for cell in &cells { tr {
                            th scope="row" { (display_name(cell.engine)) }
                            @for (_, field, text) in &WORK_COLUMNS {
                                td.number {
                                    (cell.median(|record| field(&record.counters)).map_or(number::ABSENT.to_string(), text))
                                }
                            }
                        } } }
                    }
                }
            }
        }
    }
}

/// Which line is which engine, by colour, dashes and marker.
fn legend(group: &Group, others: &[&str]) -> Markup {
    html! {
        ul.legend aria-label="Lines of the plots" {
            @for cell in group.cells.iter().filter(|cell| !cell.ran.is_empty()) {
                @let style = Style::of(cell.engine, others);
                li {
                    svg.plot.sample viewBox="0 0 44 14" aria-hidden="true" focusable="false" {
                        polyline points="1,7 43,7" fill="none" stroke=(style.colour()) stroke-width=(style.width) {}
                        polygon points=(marker_points(&style)) fill=(style.colour()) {}
                    }
                    (display_name(cell.engine))
                }
            }
        }
    }
}

fn marker_points(style: &Style) -> String {
    style.marker.iter().map(|(x, y)| format!("{},{}", x + 22, y + 7)).collect::<Vec<_>>().join(" ")
}

/// One plot with its words.
fn plot_figure(id: &str, label: &str, figure: &Figure) -> Markup {
    let (width, height) = plot::SIZE;
    html! {
        figure {
            h4 { (figure.title) }
            svg.plot viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(format!("{id}-title {id}-desc")) {
                title id=(format!("{id}-title")) { (figure.title) " of " (label) }
                desc id=(format!("{id}-desc")) { (figure.description) }
                (PreEscaped(&figure.svg))
            }
            figcaption { (figure.caption) }
        }
    }
}
