//! The bar chart of a group: one row per engine with its throughput and a bar, made of boxes that the style sheet draws.

use super::engine_style::{OURS, display_name};
use super::group::{Cell, Group};
use super::number;
use crate::record::Record;
use maud::{Markup, html};

fn throughput(record: &Record) -> f64 {
    record.ops_per_sec
}

/// Throughput by engine: the bar is the median, the whisker spans the repetitions.
pub fn chart(group: &Group) -> Markup {
    let largest = group.cells.iter().filter_map(|cell| cell.range(throughput)).map(|range| range.1).fold(0.0, f64::max);
    html! {
        div.bars role="img" aria-label=(spoken(group)) {
            @for cell in &group.cells {
                div.bar-row {
                    span.bar-name.ours[cell.engine == OURS] { (display_name(cell.engine)) }
                    @if let Some(middle) = cell.median(throughput) {
                        span.bar-value { (number::whole(middle)) }
                        (track(cell, group.comparable(cell), middle, largest))
                    } @else {
                        span.bar-value { (number::ABSENT) }
                        span.bar-skipped { (cell.skipped.map_or("no throughput recorded".to_string(), |reason| format!("skipped: {reason}"))) }
                    }
                }
            }
        }
    }
}

fn track(cell: &Cell, comparable: bool, middle: f64, largest: f64) -> Markup {
    let share = |value: f64| format!("{:.2}%", value / largest * 100.0);
    html! {
        span.bar-track {
            span.bar.ours[cell.engine == OURS].apart[!comparable] style=(format!("width:{}", share(middle))) {}
            @if let Some((low, high)) = cell.range(throughput).filter(|range| range.1 > range.0) {
                span.whisker style=(format!("left:{};width:{}", share(low), share(high - low))) {}
            }
        }
    }
}

/// The chart in words.
fn spoken(group: &Group) -> String {
    let engine = |cell: &Cell| {
        let figure = match (cell.median(throughput), cell.skipped) {
            (Some(middle), _) => number::whole(middle),
            (None, Some(_)) => "skipped".to_string(),
            (None, None) => "not recorded".to_string(),
        };
        format!("{} {figure}", display_name(cell.engine))
    };
    let engines: Vec<String> = group.cells.iter().map(engine).collect();
    format!("Bar chart of operations per second: {}. The table below has the figures.", engines.join(", "))
}
