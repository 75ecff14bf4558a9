//! What a report says, before a renderer writes it: sections made of a few kinds of blocks. Every
//! text is plain.

use super::engine_style::{OURS, Style};

/// A whole report.
#[derive(Debug, Default)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// When it was measured, RFC 3339; empty if that is not known.
    pub date: String,
    /// The processor; empty if that is not known.
    pub cpu: String,
    /// The command that writes it.
    pub made_by: &'static str,
    /// What stands before the sections.
    pub lead: Vec<Block>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A part of a report with a heading of its own.
#[derive(Debug, Default)]
pub struct Section {
    /// Its address in the page: letters, digits and hyphens.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it says.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section of these blocks.
    pub fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id: id.into(), title: title.into(), blocks }
    }
}

/// A piece of a section.
#[derive(Debug)]
pub enum Block {
    /// A heading below the section's.
    Title(String),
    /// A heading below a title.
    Subtitle(String),
    /// A paragraph.
    Text(String),
    /// A paragraph that matters less than the others.
    Quiet(String),
    /// A paragraph that the reader must not miss.
    Warning(String),
    /// Short paragraphs.
    List(Vec<String>),
    /// Something to be copied, line by line.
    Code(String),
    /// Names with their values.
    Definitions(Vec<Definition>),
    /// A table.
    Table(Table),
    /// Bar charts that stand side by side where there is room.
    Charts(Vec<Chart>),
    /// Heat maps that stand side by side where there is room.
    Maps(Vec<HeatMap>),
    /// Line plots that share their legend and stand side by side where there is room.
    Plots(Vec<(String, Style)>, Vec<Plot>),
    /// Groups of blocks that stand side by side where there is room.
    Beside(Vec<Vec<Block>>),
    /// A section within the section.
    Part(Section),
    /// What only some readers want: a line, and what is behind it.
    Folded(String, Vec<Block>),
}

/// A name with the values it has.
#[derive(Debug, Default)]
pub struct Definition {
    /// The name.
    pub name: String,
    /// Each value, and where it holds if not everywhere.
    pub values: Vec<(String, String)>,
}

/// A table with a heading to each column and each line.
#[derive(Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The heading of the first column, which names the lines.
    pub head: String,
    /// The other columns.
    pub columns: Vec<Column>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Lines that sum up the others.
    pub foot: Vec<Line>,
}

impl Table {
    /// A table without lines that sum up.
    pub fn new(
        caption: impl Into<String>,
        head: impl Into<String>,
        columns: impl Into<Vec<Column>>,
        lines: impl IntoIterator<Item = Line>,
    ) -> Table {
        let (columns, lines) = (columns.into(), lines.into_iter().collect());
        Table { caption: caption.into(), head: head.into(), columns, lines, foot: Vec::new() }
    }
}

/// A table with a line for each of `of`, made column by column.
pub struct TableOf<'t, T> {
    of: &'t [T],
    table: Table,
}

impl<'t, T> TableOf<'t, T> {
    /// Without columns yet. `line` gives the heading of a line.
    pub fn new(
        caption: impl Into<String>,
        head: impl Into<String>,
        of: &'t [T],
        line: impl Fn(&'t T) -> Line,
    ) -> TableOf<'t, T> {
        TableOf { of, table: Table::new(caption, head, Vec::new(), of.iter().map(line)) }
    }

    /// The same with a column more.
    pub fn column<F: Into<Field>>(mut self, column: Column, cell: impl Fn(&'t T) -> F) -> TableOf<'t, T> {
        self.table.columns.push(column);
        for (line, of) in self.table.lines.iter_mut().zip(self.of) {
            line.cells.push(cell(of).into());
        }
        self
    }

    /// The same with a column of figures more.
    pub fn number<F: Into<Field>>(self, name: impl Into<String>, cell: impl Fn(&'t T) -> F) -> TableOf<'t, T> {
        self.column(Column::number(name), cell)
    }

    /// The same with a column of words more.
    pub fn words<F: Into<Field>>(self, name: impl Into<String>, cell: impl Fn(&'t T) -> F) -> TableOf<'t, T> {
        self.column(Column::words(name), cell)
    }

    /// The table.
    pub fn done(self) -> Table {
        self.table
    }
}

/// A column of a table.
#[derive(Debug, Default, Clone)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Whether it holds figures.
    pub number: bool,
    /// Whether it is about Esker.
    pub ours: bool,
    /// Whether it stays in sight where the table has to be scrolled.
    pub pinned: bool,
}

impl Column {
    /// A column of figures.
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: true, ..Column::default() }
    }

    /// A column of words.
    pub fn words(name: impl Into<String>) -> Column {
        Column { name: name.into(), ..Column::default() }
    }
}

/// A line of a table.
#[derive(Debug, Default)]
pub struct Line {
    /// Its heading.
    pub head: String,
    /// The section or part that says more of it.
    pub link: Option<String>,
    /// Whether it is about Esker.
    pub ours: bool,
    /// Its cells, one for each column; if there are fewer, the last spans the rest.
    pub cells: Vec<Field>,
}

impl Line {
    /// A line with cells still to come.
    pub fn head(head: impl Into<String>) -> Line {
        Line { head: head.into(), ..Line::default() }
    }

    /// The same, about an engine.
    pub fn of(engine: &str, head: impl Into<String>) -> Line {
        Line { ours: engine == OURS, ..Line::head(head) }
    }

    /// A line of these cells.
    pub fn new(head: impl Into<String>, cells: Vec<Field>) -> Line {
        Line { cells, ..Line::head(head) }
    }
}

/// A cell of a table.
#[derive(Debug, Default, Clone)]
pub struct Field {
    /// What stands in it.
    pub text: String,
    /// What its look says beside its text.
    pub look: Look,
    /// What stands behind it in small letters.
    pub note: String,
}

/// How a cell looks. The text says the same, or the renderer says it for those who do not see it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As the others.
    #[default]
    Plain,
    /// Less than the others.
    Quiet,
    /// Something that is as expected.
    Good,
    /// Something that is not.
    Bad,
    /// The best of its line.
    Best,
    /// A ratio below 1.
    Behind,
}

impl Field {
    /// The field for a figure that was not taken.
    pub fn absent() -> Field {
        Field { look: Look::Quiet, ..crate::text::number::ABSENT.into() }
    }

    /// A text with a look.
    pub fn looking(look: Look, text: impl Into<String>) -> Field {
        Field { look, ..text.into().into() }
    }
}

impl From<String> for Field {
    fn from(text: String) -> Field {
        Field { text, ..Field::default() }
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        text.to_string().into()
    }
}

impl From<Option<String>> for Field {
    fn from(text: Option<String>) -> Field {
        text.map_or_else(Field::absent, Field::from)
    }
}

/// Horizontal bars, all to the scale of the longest.
#[derive(Debug, Default)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Its bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// The length that fills the width, where charts share a scale; else that of the longest bar.
    pub full: Option<f64>,
}

/// One bar.
#[derive(Debug, Default)]
pub struct Bar {
    /// What it is of.
    pub name: String,
    /// Whose it is.
    pub of: Whose,
    /// Its length in any unit; `None`: there is no bar, and `text` says why.
    pub length: Option<f64>,
    /// The least and the greatest repetition in the same unit.
    pub range: Option<(f64, f64)>,
    /// The figure with its unit.
    pub text: String,
    /// What stands behind it: `(1.08x baseline)`.
    pub note: String,
}

/// Whose bar it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Another engine's.
    #[default]
    Peer,
    /// Esker's.
    Ours,
    /// Another engine's that may not be compared with the others.
    Apart,
    /// A published figure.
    Published,
}

impl Whose {
    /// Esker's, or another engine's.
    pub fn engine(engine: &str) -> Whose {
        if engine == OURS { Whose::Ours } else { Whose::Peer }
    }
}

impl Chart {
    /// The length that fills the width: that of the longest bar or repetition.
    pub fn scale(&self) -> f64 {
        if let Some(full) = self.full {
            return full;
        }
        let ends = self.bars.iter().flat_map(|bar| [bar.length, bar.range.map(|range| range.1)]);
        ends.flatten().filter(|length| length.is_finite()).fold(0.0, f64::max)
    }
}

/// Figures over two variables, each cell with its figure printed and a colour between those of the
/// least and the greatest.
#[derive(Debug, Default)]
pub struct HeatMap {
    /// What it shows.
    pub title: String,
    /// Whether it shows published figures.
    pub published: bool,
    /// What varies from line to line.
    pub line_name: String,
    /// What varies from column to column.
    pub column_name: String,
    /// The value of each line.
    pub lines: Vec<String>,
    /// The value of each column.
    pub columns: Vec<String>,
    /// The figures, by line and column; `None`: not measured.
    pub figures: Vec<Vec<Option<f64>>>,
}

impl HeatMap {
    /// The least and the greatest figure.
    pub fn extent(&self) -> Option<(f64, f64)> {
        crate::stats::extent(self.figures.iter().flatten().flatten().filter(|figure| figure.is_finite()))
    }
}

/// A line plot.
#[derive(Debug)]
pub struct Plot {
    /// What it shows, in a few words.
    pub title: String,
    /// Of what: the row.
    pub of: String,
    /// The same in words, for those who do not see it.
    pub description: String,
    /// What the reader must know to read it.
    pub caption: String,
    /// The drawing, safe to stand unescaped.
    pub svg: String,
}
