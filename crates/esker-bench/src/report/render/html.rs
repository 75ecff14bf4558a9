//! Blocks as one HTML page that a browser shows without any request to the network. maud escapes
//! every text; only numbers, colours of this crate and the drawings of plots, which hold no text
//! from a record, pass unescaped.

use crate::report::blocks::{
    Bar, Block, Chart, Column, Definition, Document, Field, HeatMap, Line, Look, Plot, Section, Table, Whose,
};
use crate::report::engine_style::{Style, plot_rules};
use crate::report::plot::SIZE;
use crate::text::number;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Forbids every request, so that the page shows the same everywhere and tells nobody that it was
/// read.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The whole page.
pub fn document(document: &Document) -> String {
    let Document { title, date, cpu, made_by, lead, sections } = document;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(made_by);
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(plot_rules())) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    h1 { (title) }
                    p.date {
                        @if date.is_empty() { "Date not recorded" } @else { time datetime=(date) { (readable_date(date)) } }
                        @if !cpu.is_empty() { " on " (cpu) }
                    }
                    nav aria-label="Contents" {
                        ul { @for section in sections { li { a href=(format!("#{}", section.id)) { (section.title) } } } }
                    }
                }
                main id="content" {
                    (blocks(lead, "lead"))
                    @for part in sections { (section(part)) }
                }
                footer { p { "Written by " code { (made_by) } ". This page is complete in itself and loads nothing." } }
            }
        }
    };
    page.into_string()
}

/// `2030-01-02T03:04:05Z` as `2030-01-02 03:04:05 UTC`; anything else as it is.
fn readable_date(date: &str) -> String {
    match date.strip_suffix('Z').and_then(|rest| rest.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => date.to_string(),
    }
}

fn section(section: &Section) -> Markup {
    let heading = format!("{}-title", section.id);
    html! {
        section id=(section.id) aria-labelledby=(heading) {
            h2 id=(heading) { (section.title) }
            (blocks(&section.blocks, &section.id))
        }
    }
}

/// `place` is an address that no other blocks are given.
fn blocks(blocks: &[Block], place: &str) -> Markup {
    html! { @for (index, content) in blocks.iter().enumerate() { (block(content, &format!("{place}-{index}"))) } }
}

fn block(block: &Block, place: &str) -> Markup {
    html! {
        @match block {
            Block::Title(text) => h3 { (text) },
            Block::Subtitle(text) => h4.subtitle { (text) },
            Block::Text(text) => p { (text) },
            Block::Quiet(text) => p.quiet { (text) },
            Block::Warning(text) => p.warning { (text) },
            Block::List(items) => ul.notes { @for item in items { li { (item) } } },
            Block::Code(text) => pre { code { (text) } },
            Block::Definitions(all) => { (definitions(all)) },
            Block::Table(content) => { (table(content)) },
            Block::Charts(charts) => div.charts { @for content in charts { (chart(content)) } },
            Block::Maps(maps) => div.maps { @for content in maps { (map(content)) } },
            Block::Plots(entries, plots) => { (legend(entries)) (self::plots(plots, place)) },
            Block::Beside(groups) => div.beside {
                @for (index, group) in groups.iter().enumerate() { div { (blocks(group, &format!("{place}-{index}"))) } }
            },
            Block::Part(part) => section.part id=(part.id) aria-labelledby=(format!("{}-title", part.id)) {
                h3 id=(format!("{}-title", part.id)) { (part.title) }
                (blocks(&part.blocks, &part.id))
            },
            Block::Folded(line, inside) => details { summary { (line) } (blocks(inside, place)) },
        }
    }
}

fn definitions(all: &[Definition]) -> Markup {
    html! {
        dl.settings {
            @for Definition { name, values } in all {
                div {
                    dt { (name) }
                    @for (value, place) in values {
                        dd {
                            @if value.is_empty() { span.quiet { "(empty)" } } @else { (value) }
                            @if !place.is_empty() { span.quiet { " in " (place) } }
                        }
                    }
                }
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
                    @for column in &table.columns { th.number[column.number].ours[column.ours].pinned[column.pinned] scope="col" { (column.name) } }
                } }
                tbody { @for content in &table.lines { (line(content, &table.columns)) } }
                @if !table.foot.is_empty() { tfoot { @for content in &table.foot { (line(content, &table.columns)) } } }
            }
        }
    }
}

fn line(line: &Line, columns: &[Column]) -> Markup {
    let spanning = line.cells.len() < columns.len();
    html! {
        tr.ours[line.ours] {
            th scope="row" { @if let Some(link) = &line.link { a href=(format!("#{link}")) { (line.head) } } @else { (line.head) } }
            @for (index, (column, content)) in columns.iter().zip(&line.cells).enumerate() {
                @if spanning && index + 1 == line.cells.len() {
                    td.words colspan=(columns.len() - index) { (field(content)) }
                } @else {
                    td.number[column.number].words[!column.number].ours[column.ours].pinned[column.pinned] { (field(content)) }
                }
            }
        }
    }
}

fn field(field: &Field) -> Markup {
    let (class, spoken) = match field.look {
        Look::Plain => ("", ""),
        Look::Quiet => ("quiet", ""),
        Look::Good => ("good", ""),
        Look::Bad => ("bad", ""),
        Look::Best => ("best", "best: "),
        Look::Behind => ("behind", "slower: "),
    };
    html! {
        @if class.is_empty() {
            (field.text)
        } @else {
            span class=(class) { @if !spoken.is_empty() { span.hidden { (spoken) } } (field.text) }
        }
        @if !field.note.is_empty() { " " span.peer { (field.note) } }
    }
}

fn chart(chart: &Chart) -> Markup {
    let scale = chart.scale();
    let noted = chart.bars.iter().any(|bar| !bar.note.is_empty());
    html! {
        figure.chart {
            figcaption { (chart.title) }
            div.bars.noted[noted] role="list" { @for content in &chart.bars { (bar(content, scale)) } }
        }
    }
}

fn bar(bar: &Bar, scale: f64) -> Markup {
    let share = |length: f64| format!("{:.2}%", (length / scale * 100.0).clamp(0.0, 100.0));
    let drawn = bar.length.filter(|length| length.is_finite() && *length > 0.0 && scale > 0.0);
    let class = match bar.of {
        Whose::Peer => "bar",
        Whose::Ours => "bar ours",
        Whose::Apart => "bar apart",
        Whose::Published => "bar published",
    };
    html! {
        div.bar-row role="listitem" {
            span.bar-name.ours[bar.of == Whose::Ours] { (bar.name) }
            span.bar-value { (bar.text) }
            @if let Some(length) = drawn {
                span.bar-track aria-hidden="true" {
                    span class=(class) style=(format!("width:{}", share(length))) {}
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

/// Figures that differ by a smaller share than this have less than the whole range of colours, so
/// that noise does not look like a pattern.
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

/// Which line is which engine, by colour, dashes and marker.
fn legend(entries: &[(String, Style)]) -> Markup {
    let points = |marker: &[(i32, i32)]| {
        marker.iter().map(|(x, y)| format!("{},{}", x + 22, y + 7)).collect::<Vec<_>>().join(" ")
    };
    html! {
        ul.legend aria-label="Lines of the plots" {
            @for (name, style) in entries {
                li {
                    svg.plot.sample viewBox="0 0 44 14" aria-hidden="true" focusable="false" {
                        polyline points="1,7 43,7" fill="none" stroke=(style.colour()) stroke-width=(style.width) {}
                        polygon points=(points(style.marker)) fill=(style.colour()) {}
                    }
                    (name)
                }
            }
        }
    }
}

fn plots(plots: &[Plot], place: &str) -> Markup {
    html! {
        div.figures {
            @for (index, Plot { title, of, description, caption, svg }) in plots.iter().enumerate() {
                @let id = format!("{place}-{index}");
                figure {
                    h4 { (title) }
                    svg.plot viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img" aria-labelledby=(format!("{id}-title {id}-desc")) {
                        title id=(format!("{id}-title")) { (title) " of " (of) }
                        desc id=(format!("{id}-desc")) { (description) }
                        (PreEscaped(svg))
                    }
                    figcaption { (caption) }
                }
            }
        }
    }
}
