//! Blocks as text for a terminal: paragraphs, and tables whose columns are as wide as their widest
//! cell.

use super::markdown;
use crate::report::blocks::{Block, Field, Line, Table};
use comfy_table::{CellAlignment, LineStyle, TableStyle};

/// A line below the headings, and no other.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-'));

/// The blocks, with an empty line between them and none at the end.
pub fn blocks(blocks: &[Block]) -> String {
    let block = |block: &Block| match block {
        Block::Text(text) | Block::Quiet(text) => text.clone(),
        Block::Table(content) => table(content),
        // What has no form of its own here is read best as Markdown.
        other => {
            let mut text = String::new();
            markdown::blocks(std::slice::from_ref(other), &mut text);
            text.trim().to_string()
        }
    };
    blocks.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// The first column aligned left, the others as their kind says; the headings are ruled off, and
/// the lines that sum up.
fn table(table: &Table) -> String {
    let heads = std::iter::once(&table.head).chain(table.columns.iter().map(|column| &column.name));
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(STYLE).set_header(heads);
    for line in table.lines.iter().chain(&table.foot) {
        drawn.add_row(cells(line));
    }
    for (index, column) in drawn.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 0 } else { 2 }, 0));
        if index > 0 && table.columns[index - 1].number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<String> = drawn.lines().map(|line| line.trim_end().to_string()).collect();
    if !table.foot.is_empty() && lines.len() > 2 {
        lines.insert(lines.len() - table.foot.len(), lines[1].clone());
    }
    let caption = if table.caption.is_empty() { String::new() } else { format!("{}\n\n", table.caption) };
    format!("{caption}{}", lines.join("\n"))
}

fn cells(line: &Line) -> Vec<String> {
    let text = |field: &Field| match field.note.as_str() {
        "" => field.text.clone(),
        note => format!("{} ({note})", field.text),
    };
    std::iter::once(line.head.clone()).chain(line.cells.iter().map(text)).collect()
}
