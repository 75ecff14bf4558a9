//! Blocks as HTML. maud escapes every text; only numbers reach an attribute unescaped.

use super::blocks::{Bar, Block, Chart, Field, HeatMap, Look, Section, Table};
use crate::report::frame::Frame;
use crate::report::number;
use maud::{Markup, html};

/// The whole page.
pub fn document(title: &str, date: &str, cpu: &str, sections: &[Section]) -> String {
    let contents = html! {
        nav aria-label="Contents" {
            ul { @for section in sections { li { a href=(format!("#{}", section.id)) { (section.title) } } } }
        }
    };
    let main = html! { @for part in sections { (section(part)) } };
    let frame = Frame { title, date, cpu, style: include_str!("study.css"), made_by: "esker report" };
    frame.document(&contents, &main).into_string()
}

fn section(section: &Section) -> Markup {
    let heading = format!("{}-title", section.id);
    html! {
        section id=(section.id) aria-labelledby=(heading) {
            h2 id=(heading) { (section.title) }
            (blocks(&section.blocks))
        }
    }
}

fn blocks(blocks: &[Block]) -> Markup {
    html! {
        @for block in blocks {
            @match block {
                Block::Title(text) => h3 { (text) },
                Block::Subtitle(text) => h4.subtitle { (text) },
                Block::Text(text) => p { (text) },
                Block::Warning(text) => p.warning { (text) },
                Block::List(items) => ul.notes { @for item in items { li { (item) } } },
                Block::Code(text) => pre { code { (text) } },
                Block::Table(content) => { (table(content)) },
                Block::Charts(charts) => div.charts { @for content in charts { (chart(content)) } },
                Block::Maps(maps) => div.maps { @for content in maps { (map(content)) } },
                Block::Folded(line, inside) => details { summary { (line) } (self::blocks(inside)) },
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label=(table.caption) {
            table {
                caption { span { (table.caption) } }
                thead { tr {
                    th scope="col" { (table.head) }
                    @for column in &table.columns { th.number[column.number] scope="col" { (column.name) } }
                } }
                tbody {
                    @for line in &table.lines {
                        tr.ours[line.ours] {
                            th scope="row" { (line.head) }
                            @for (column, field) in table.columns.iter().zip(&line.cells) { (cell(field, column.number)) }
                        }
                    }
                }
            }
        }
    }
}

fn cell(field: &Field, number: bool) -> Markup {
    let look = match field.look {
        Look::Plain => "",
        Look::Quiet => "quiet",
        Look::Good => "good",
        Look::Bad => "bad",
    };
    html! {
        @if number {
            td.number { @if look.is_empty() { (field.text) } @else { span class=(look) { (field.text) } } }
        } @else {
            td.words { @if look.is_empty() { (field.text) } @else { span class=(look) { (field.text) } } }
        }
    }
}

fn chart(chart: &Chart) -> Markup {
    let scale = chart.scale();
    let noted = chart.bars.iter().any(|bar| !bar.note.is_empty());
    html! {
        figure.chart {
            figcaption { (chart.title) }
            div.bars.close.noted[noted] role="list" { @for content in &chart.bars { (bar(content, scale)) } }
        }
    }
}

fn bar(bar: &Bar, scale: f64) -> Markup {
    let share = |length: f64| format!("{:.2}%", (length / scale * 100.0).clamp(0.0, 100.0));
    let drawn = bar.length.filter(|length| length.is_finite() && *length > 0.0 && scale > 0.0);
    html! {
        div.bar-row role="listitem" {
            span.bar-name.ours[bar.ours] { (bar.name) }
            span.bar-value { (bar.text) }
            @if let Some(length) = drawn {
                span.bar-track aria-hidden="true" {
                    span.bar.ours[bar.ours].published[bar.published] style=(format!("width:{}", share(length))) {}
                    @if let Some((low, high)) = bar.range.filter(|(low, high)| high > low) {
                        span.whisker style=(format!("left:{};width:{}", share(low), share(high - low))) {}
                    }
                }
            } @else {
                span.bar-track.empty aria-hidden="true" {}
            }
            @if !bar.note.is_empty() { span.bar-note { (bar.note) } }
        }
    }
}

/// Figures that differ by a smaller share than this have less than the whole range of colours, so that noise does not look like a pattern.
const LEAST_SPAN: f64 = 0.25;

fn map(map: &HeatMap) -> Markup {
    let extent = map.extent();
    let heat = |figure: f64| match extent {
        Some((low, high)) if high > low => (figure - low) / (high - low).max(low * LEAST_SPAN) * 100.0,
        _ => 0.0,
    };
    html! {
        div.scroll.map role="region" tabindex="0" aria-label=(map.title) {
            table.heat.published[map.published] {
                caption { span {
                    strong { (map.title) }
                    @if let Some((low, high)) = extent { span.extent { "from " (number::figure(low)) " to " (number::figure(high)) } }
                } }
                thead {
                    tr {
                        th rowspan="2" scope="col" { (map.line_name) }
                        th.number colspan=(map.columns.len().max(1)) scope="colgroup" { (map.column_name) }
                    }
                    tr { @for column in &map.columns { th.number scope="col" { (column) } } }
                }
                tbody {
                    @for (line, figures) in map.lines.iter().zip(&map.figures) {
                        tr {
                            th scope="row" { (line) }
                            @for figure in figures {
                                @if let Some(figure) = figure.filter(|figure| figure.is_finite()) {
                                    td.number.mark style=(format!("--heat:{:.0}%", heat(figure))) { (number::figure(figure)) }
                                } @else {
                                    td.number.quiet { (number::ABSENT) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
