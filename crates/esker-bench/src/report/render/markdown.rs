//! Blocks as Markdown: the same figures, charts as tables.
//!
//! ```text
//! report  = title, { section }
//! table   = header line, rule line, { line }      cells without line ends, `|` escaped
//! ```

use crate::report::blocks::{Block, Chart, Definition, Document, Field, HeatMap, Line, Look, Plot, Table};
use crate::text::number;
use std::iter::once;

/// The whole report.
pub fn document(document: &Document) -> String {
    let mut text = format!("# {}\n", inline(&document.title));
    blocks(&document.lead, &mut text);
    for section in &document.sections {
        text.push_str(&format!("\n## {}\n", inline(&section.title)));
        blocks(&section.blocks, &mut text);
    }
    text
}

/// The blocks of one section, without its heading.
pub fn blocks(blocks: &[Block], text: &mut String) {
    for block in blocks {
        text.push('\n');
        match block {
            Block::Title(title) => text.push_str(&format!("### {}\n", inline(title))),
            Block::Subtitle(title) => text.push_str(&format!("#### {}\n", inline(title))),
            Block::Text(paragraph) | Block::Quiet(paragraph) => text.push_str(&format!("{}\n", inline(paragraph))),
            Block::Warning(paragraph) => text.push_str(&format!("**Note:** {}\n", inline(paragraph))),
            Block::List(items) => list(items.iter().cloned(), text),
            Block::Code(code) => code.lines().for_each(|line| text.push_str(&format!("    {line}\n"))),
            Block::Definitions(all) => list(all.iter().map(definition), text),
            Block::Table(content) => table(content, text),
            Block::Charts(charts) => charts.iter().for_each(|content| chart(content, text)),
            Block::Maps(maps) => maps.iter().for_each(|content| map(content, text)),
            Block::Plots(_, plots) => list(plots.iter().map(plot), text),
            Block::Beside(groups) => groups.iter().for_each(|group| self::blocks(group, text)),
            Block::Part(part) => {
                text.push_str(&format!("### {}\n", inline(&part.title)));
                self::blocks(&part.blocks, text);
            }
            Block::Folded(line, inside) => {
                text.push_str(&format!("{}:\n", inline(line)));
                self::blocks(inside, text);
            }
        }
    }
}

fn list(items: impl Iterator<Item = String>, text: &mut String) {
    items.for_each(|item| text.push_str(&format!("* {}\n", inline(&item))));
}

fn definition(definition: &Definition) -> String {
    let value = |(value, place): &(String, String)| match (value.as_str(), place.as_str()) {
        ("", "") => "(empty)".to_string(),
        (value, "") => value.to_string(),
        (value, place) => format!("{value} in {place}"),
    };
    format!("{}: {}", definition.name, definition.values.iter().map(value).collect::<Vec<_>>().join("; "))
}

fn plot(plot: &Plot) -> String {
    format!("{}: {} {}", plot.title, plot.description, plot.caption)
}

fn table(table: &Table, text: &mut String) {
    let head: Vec<String> =
        once(&table.head).chain(table.columns.iter().map(|column| &column.name)).map(|name| inline(name)).collect();
    let numbers: Vec<bool> = once(false).chain(table.columns.iter().map(|column| column.number)).collect();
    let cells = |line: &Line| once(inline(&line.head)).chain(line.cells.iter().map(field)).collect();
    grid(&table.caption, &head, &numbers, table.lines.iter().chain(&table.foot).map(cells), text);
}

fn field(field: &Field) -> String {
    let text = [&field.text, &field.note].map(|text| inline(text)).join(" ");
    if field.look == Look::Best { format!("**{}**", text.trim_end()) } else { text.trim_end().to_string() }
}

fn chart(chart: &Chart, text: &mut String) {
    let noted = chart.bars.iter().any(|bar| !bar.note.is_empty());
    let columns = if noted { 3 } else { 2 };
    let head = ["", "figure", "note"].map(String::from);
    let lines = chart.bars.iter().map(|bar| {
        let cells = [&bar.name, &bar.text, &bar.note].map(|text| inline(text));
        cells.into_iter().take(columns).collect()
    });
    grid(&chart.title, &head[..columns], &[false, true, false][..columns], lines, text);
}

fn map(map: &HeatMap, text: &mut String) {
    let corner = format!("{} / {}", map.line_name, map.column_name);
    let head: Vec<String> = once(&corner).chain(&map.columns).map(|name| inline(name)).collect();
    let shown = |figure: &Option<f64>| figure.map_or(number::ABSENT.to_string(), number::figure);
    let lines = map.lines.iter().zip(&map.figures);
    let lines = lines.map(|(name, figures)| once(inline(name)).chain(figures.iter().map(shown)).collect());
    grid(&map.title, &head, &vec![true; head.len()], lines, text);
}

/// A table of cells that are Markdown already.
fn grid(caption: &str, head: &[String], numbers: &[bool], lines: impl Iterator<Item = Vec<String>>, text: &mut String) {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = |number: &bool| if *number { "---:" } else { "---" }.to_string();
    text.push_str(&format!("{}\n\n", inline(caption)));
    text.push_str(&row(head));
    text.push_str(&row(&numbers.iter().map(rule).collect::<Vec<_>>()));
    lines.for_each(|line| text.push_str(&row(&line)));
    text.push('\n');
}

/// A text that stays within its line and its cell, and means nothing to Markdown or HTML.
fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                safe.push('\\');
                safe.push(character);
            }
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::blocks::{Column, Section};

    #[test]
    fn cells_stay_in_their_table() {
        let table = Table {
            caption: "A | table".into(),
            head: "row".into(),
            columns: vec![Column::number("a"), Column::words("b")],
            lines: vec![Line::new("x\ny", vec!["1|2".into(), "<b>".into()])],
            ..Table::default()
        };
        let section = Section { id: "s".into(), title: "Title".into(), blocks: vec![Block::Table(table)] };
        let text = document(&Document { title: "All".into(), sections: vec![section], ..Document::default() });
        assert!(
            text.starts_with("# All\n\n## Title\n\nA \\| table\n\n| row | a | b |\n| --- | ---: | --- |\n"),
            "{text}"
        );
        assert!(text.contains("| x y | 1\\|2 | &lt;b> |\n"), "{text}");
    }
}
