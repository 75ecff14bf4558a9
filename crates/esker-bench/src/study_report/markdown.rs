//! Blocks as Markdown: the same figures, charts as tables.
//!
//! ```text
//! report  = title, { section }
//! table   = header line, rule line, { line }      cells without line ends, `|` escaped
//! ```

use super::blocks::{Block, Chart, HeatMap, Section, Table};
use crate::report::number;

/// The whole report.
pub fn document(title: &str, sections: &[Section]) -> String {
    let mut text = format!("# {}\n", inline(title));
    for section in sections {
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
            Block::Text(paragraph) => text.push_str(&format!("{}\n", inline(paragraph))),
            Block::Warning(paragraph) => text.push_str(&format!("**Note:** {}\n", inline(paragraph))),
            Block::List(items) => items.iter().for_each(|item| text.push_str(&format!("* {}\n", inline(item)))),
            Block::Code(code) => code.lines().for_each(|line| text.push_str(&format!("    {line}\n"))),
            Block::Table(content) => table(content, text),
            Block::Charts(charts) => charts.iter().for_each(|content| chart(content, text)),
            Block::Maps(maps) => maps.iter().for_each(|content| map(content, text)),
            Block::Folded(line, inside) => {
                text.push_str(&format!("{}:\n", inline(line)));
                self::blocks(inside, text);
            }
        }
    }
}

fn table(table: &Table, text: &mut String) {
    let head: Vec<&str> =
        std::iter::once(table.head.as_str()).chain(table.columns.iter().map(|column| column.name.as_str())).collect();
    let numbers: Vec<bool> = std::iter::once(false).chain(table.columns.iter().map(|column| column.number)).collect();
    let lines = table.lines.iter().map(|line| {
        std::iter::once(line.head.as_str()).chain(line.cells.iter().map(|field| field.text.as_str())).collect()
    });
    grid(&table.caption, &head, &numbers, lines, text);
}

fn chart(chart: &Chart, text: &mut String) {
    let noted = chart.bars.iter().any(|bar| !bar.note.is_empty());
    let head: &[&str] = if noted { &["", "figure", "note"] } else { &["", "figure"] };
    let lines = chart.bars.iter().map(|bar| {
        let note = noted.then_some(bar.note.as_str());
        [bar.name.as_str(), bar.text.as_str()].into_iter().chain(note).collect()
    });
    grid(&chart.title, head, &[false, true, false][..head.len()], lines, text);
}

fn map(map: &HeatMap, text: &mut String) {
    let corner = format!("{} / {}", map.line_name, map.column_name);
    let head: Vec<&str> = std::iter::once(corner.as_str()).chain(map.columns.iter().map(String::as_str)).collect();
    let numbers = vec![true; head.len()];
    let figures: Vec<Vec<String>> = map
        .figures
        .iter()
        .map(|line| line.iter().map(|figure| figure.map_or(number::ABSENT.to_string(), number::figure)).collect())
        .collect();
    let lines = map.lines.iter().zip(&figures).map(|(name, figures)| {
        std::iter::once(name.as_str()).chain(figures.iter().map(String::as_str)).collect::<Vec<&str>>()
    });
    grid(&map.title, &head, &numbers, lines, text);
}

fn grid<'a>(
    caption: &str,
    head: &[&str],
    numbers: &[bool],
    lines: impl Iterator<Item = Vec<&'a str>>,
    text: &mut String,
) {
    let row = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    text.push_str(&format!("{}\n\n", inline(caption)));
    text.push_str(&row(&mut head.iter().map(|cell| inline(cell))));
    text.push_str(&row(&mut numbers.iter().map(|number| if *number { "---:" } else { "---" }.to_string())));
    for line in lines {
        text.push_str(&row(&mut line.into_iter().map(inline)));
    }
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
    use super::super::blocks::{Column, Line};
    use super::*;

    #[test]
    fn cells_stay_in_their_table() {
        let table = Table {
            caption: "A | table".into(),
            head: "row".into(),
            columns: vec![Column::number("a"), Column::words("b")],
            lines: vec![Line { head: "x\ny".into(), ours: false, cells: vec!["1|2".into(), "<b>".into()] }],
        };
        let section = Section { id: "s".into(), title: "Title".into(), blocks: vec![Block::Table(table)] };
        let text = document("All", &[section]);
        assert!(
            text.starts_with("# All\n\n## Title\n\nA \\| table\n\n| row | a | b |\n| --- | ---: | --- |\n"),
            "{text}"
        );
        assert!(text.contains("| x y | 1\\|2 | &lt;b> |\n"), "{text}");
    }

    #[test]
    fn charts_and_maps_are_tables() {
        let chart = Chart {
            title: "speed".into(),
            bars: vec![super::super::blocks::Bar {
                name: "Esker".into(),
                text: "7 ops/sec".into(),
                ..Default::default()
            }],
            ..Chart::default()
        };
        let map = HeatMap {
            title: "grid".into(),
            line_name: "w".into(),
            column_name: "f".into(),
            lines: vec!["2".into()],
            columns: vec!["2".into(), "4".into()],
            figures: vec![vec![Some(1.5), None]],
            ..HeatMap::default()
        };
        let mut text = String::new();
        blocks(&[Block::Charts(vec![chart]), Block::Maps(vec![map])], &mut text);
        assert!(text.contains("| Esker | 7 ops/sec |"), "{text}");
        assert!(text.contains("| w / f | 2 | 4 |"), "{text}");
        assert!(text.contains("| 2 | 1.500 | \u{2013} |"), "{text}");
    }
}
