//! One part of the report: everything about one row and thread count.

use crate::record::Record;
use crate::report::blocks::{Bar, Block, Chart, Field, Line, Look, Plot, Section, Table, TableOf, Whose};
use crate::report::curves;
use crate::report::engine_style::{Style, display_name, listed};
use crate::report::groups::{Group, Groups, durability_name};
use crate::report::measured::{Measured, entry};
use crate::text::number;
use crate::text::words::counted;
use esker_engines::Counters;

/// The address of the part of group `index`.
pub fn anchor(index: usize) -> String {
    format!("row-{}", index + 1)
}

/// The part of group `index`.
pub fn part(groups: &Groups, index: usize, group: &Group) -> Section {
    let label = groups.label(group);
    let others = groups.others();
    let mut blocks = about(group);
    blocks.push(Block::Charts(vec![chart(group)]));
    let notes = notes(group);
    if !notes.is_empty() {
        blocks.push(Block::List(notes));
    }
    blocks.push(Block::Table(table(groups.repetitions > 1, group, &label)));
    blocks.extend(work(group, &label));
    let plots = [curves::latency(group, &label, &others), curves::throughput(group, &label, &others)];
    let plots: Vec<Plot> = plots.into_iter().flatten().collect();
    blocks.push(if plots.is_empty() {
        Block::Quiet("No latencies and no series were recorded for this row.".into())
    } else {
        Block::Plots(legend(group, &others), plots)
    });
    Section::new(anchor(index), label, blocks)
}

/// Which benchmark, how many threads, how durable.
fn about(group: &Group) -> Vec<Block> {
    let benchmark =
        if group.benchmark == group.row { String::new() } else { format!("Benchmark {}. ", group.benchmark) };
    let threads = counted(group.threads, "client thread");
    let durability = group.durability().map(|class| format!(" An acknowledged write is {}.", durability_name(class)));
    let mut blocks = vec![Block::Quiet(format!("{benchmark}{threads}.{}", durability.unwrap_or_default()))];
    let apart = group.cells.iter().filter(|cell| !cell.ran.is_empty() && !group.comparable(cell));
    let said = |cell: &Measured| {
        let class = durability_name(cell.durability()?);
        Some(format!("an acknowledged write of {} is {class}", display_name(&cell.key.engine)))
    };
    let apart: Vec<String> = apart.filter_map(said).collect();
    if !apart.is_empty() {
        let apart = apart.join("; ");
        blocks.push(Block::Warning(format!(
            "Not of equal durability: {apart}. Hatched bars are left out of best cells and ratios."
        )));
    }
    blocks
}

/// Throughput by engine: the bar is the median, the whisker spans the repetitions.
fn chart(group: &Group) -> Chart {
    let bar = |cell: &Measured| {
        let bar = cell.bar(display_name(&cell.key.engine).to_string(), "", String::new());
        let of = if bar.of == Whose::Peer && !group.comparable(cell) { Whose::Apart } else { bar.of };
        let skipped = cell.skipped.filter(|_| bar.length.is_none()).map(|reason| format!("skipped: {reason}"));
        Bar { of, text: bar.text.clone() + &group.marks(cell), note: skipped.unwrap_or(bar.note.clone()), ..bar }
    };
    let bars = group.cells.iter().map(bar).collect();
    Chart { title: "Operations per second".into(), bars, full: None }
}

/// What the engines' runs say of themselves: each message once, with its engines.
fn notes(group: &Group) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &group.cells {
        let mut messages: Vec<String> = cell.ran.iter().map(|record| said(record)).collect();
        // An engine that ran in no repetition says why in the chart and in the table.
        let skipped = cell.skipped.filter(|_| !cell.ran.is_empty());
        messages.extend(skipped.map(|reason| format!("a repetition was skipped: {reason}")));
        messages.extend(
            cell.short_load
                .filter(|load| *load != group.row)
                .map(|load| format!("{load} ended early, so that this was measured on fewer entries")),
        );
        for note in messages.into_iter().filter(|message| !message.is_empty()) {
            let (_, engines) = entry(&mut notes, |(known, _)| *known == note, || (note.clone(), Vec::new()));
            if engines.last() != Some(&cell.key.engine.as_str()) {
                engines.push(&cell.key.engine);
            }
        }
    }
    notes.into_iter().map(|(note, engines)| format!("{}: {note}", listed(&engines))).collect()
}

fn said(record: &Record) -> String {
    match record.found {
        Some(found) if record.message.is_empty() => format!("{found} found"),
        _ => record.message.clone(),
    }
}

/// A column of figures: heading, and the text of a cell.
type Figure = (&'static str, fn(&Measured) -> Option<String>);

/// The columns after the name of the engine.
const FIGURES: [Figure; 12] = [
    ("Operations", |cell| cell.median(|record| record.ops as f64).map(number::whole)),
    ("Time \u{b5}s/op", |cell| cell.median(|record| record.micros_per_op).map(number::figure)),
    ("Throughput ops/s", |cell| cell.rate().map(number::whole)),
    ("Data MB/s", |cell| cell.median(|record| record.mb_per_sec).map(number::figure)),
    ("p50 \u{b5}s", |cell| cell.median(|record| record.latency.p50_us).map(number::latency)),
    ("p99 \u{b5}s", |cell| cell.median(|record| record.latency.p99_us).map(number::latency)),
    ("p99.9 \u{b5}s", |cell| cell.median(|record| record.latency.p999_us).map(number::latency)),
    ("Max \u{b5}s", |cell| largest(cell, |record| record.latency.max_us).map(number::latency)),
    ("Peak RSS", |cell| largest(cell, |record| record.rss_peak_bytes as f64).map(number::bytes)),
    // Older records do not have it.
    ("without mapped files", |cell| largest(cell, |record| record.rss_anonymous_peak_bytes as f64).map(number::bytes)),
    ("Disk", |cell| cell.median(|record| record.disk_bytes as f64).map(number::bytes)),
    ("CPU s", |cell| cell.median(|record| record.cpu_user_s + record.cpu_sys_s).map(number::figure)),
];

fn largest(cell: &Measured, field: impl Fn(&Record) -> f64) -> Option<f64> {
    cell.range(field).map(|range| range.1)
}

/// The figures of every engine.
fn table(repeated: bool, group: &Group, label: &str) -> Table {
    let medians =
        if repeated { " Medians over the repetitions; maximum and peak RSS are the largest of them." } else { "" };
    let caption = format!("Figures of {label}.{medians} CPU is user and system time of the whole process.");
    let name =
        |cell: &Measured| Line::of(&cell.key.engine, display_name(&cell.key.engine).to_string() + &group.marks(cell));
    let range = |cell: &Measured| {
        let (low, high) = cell.range(|record| record.ops_per_sec)?;
        Some(format!("{} to {}", number::whole(low), number::whole(high)))
    };
    let mut table = TableOf::new(caption, "Engine", &group.cells, name);
    for (name, text) in FIGURES {
        table = table.number(name, |cell| text(cell).unwrap_or(number::ABSENT.to_string()));
    }
    if repeated {
        table = table.number("Range ops/s", |cell| range(cell).unwrap_or(number::ABSENT.to_string()));
    }
    let mut table = table.done();
    for (line, cell) in table.lines.iter_mut().zip(&group.cells) {
        if let (true, Some(reason)) = (cell.ran.is_empty(), cell.skipped) {
            line.cells = vec![Field::looking(Look::Quiet, format!("skipped: {reason}"))];
        }
    }
    table
}

/// A column of the work that engines count themselves.
type Work = (&'static str, fn(&Counters) -> f64, fn(f64) -> String);

const WORK: [Work; 10] = [
    ("Comparisons", |counters| taken(counters.comparisons), number::whole),
    ("Log written", |counters| counters.wal_bytes as f64, number::bytes),
    ("Flushes", |counters| taken(counters.flushes), number::whole),
    ("Flushed", |counters| counters.flush_bytes as f64, number::bytes),
    ("Compacted", |counters| counters.compaction_bytes as f64, number::bytes),
    ("Tables searched", |counters| taken(counters.files_probed), number::whole),
    ("Tables read", |counters| counters.read_bytes as f64, number::bytes),
    ("Cache hits", |counters| counters.cache_hits as f64, number::whole),
    ("Cache misses", |counters| counters.cache_misses as f64, number::whole),
    ("Stalled \u{b5}s", |counters| counters.stall_micros as f64, number::whole),
];

/// What was not counted is not a number, which shows as absent.
fn taken(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
}

/// What the engines counted of their own work, where any did.
fn work(group: &Group, label: &str) -> Option<Block> {
    let reported = |cell: &&Measured| cell.ran.iter().any(|record| record.counters != Counters::default());
    let cells: Vec<&Measured> = group.cells.iter().filter(reported).collect();
    if cells.is_empty() {
        return None;
    }
    let caption = format!("Work reported in {label}; engines that report none are left out.");
    let mut table = TableOf::new(caption, "Engine", &cells, |cell| Line::head(display_name(&cell.key.engine)));
    for (name, field, text) in WORK {
        let middle = |cell: &&Measured| cell.median(|record| field(&record.counters));
        table = table.number(name, |cell| middle(cell).map_or(number::ABSENT.to_string(), text));
    }
    Some(Block::Folded("Work that the engines report of themselves".into(), vec![Block::Table(table.done())]))
}

fn legend(group: &Group, others: &[&str]) -> Vec<(String, Style)> {
    let entry = |cell: &Measured| (display_name(&cell.key.engine).to_string(), Style::of(&cell.key.engine, others));
    group.cells.iter().filter(|cell| !cell.ran.is_empty()).map(entry).collect()
}
