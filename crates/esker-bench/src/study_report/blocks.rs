//! What a report says, before it is written as HTML or as Markdown: sections made of a few kinds of blocks. Every text is plain.

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

/// A piece of a section.
#[derive(Debug)]
pub enum Block {
    /// A heading below the section's.
    Title(String),
    /// A heading below a title.
    Subtitle(String),
    /// A paragraph.
    Text(String),
    /// A paragraph that the reader must not miss.
    Warning(String),
    /// Short paragraphs.
    List(Vec<String>),
    /// Something to be copied, line by line.
    Code(String),
    /// A table.
    Table(Table),
    /// Bar charts that stand side by side where there is room.
    Charts(Vec<Chart>),
    /// Heat maps that stand side by side where there is room.
    Maps(Vec<HeatMap>),
    /// What only some readers want: a line, and what is behind it.
    Folded(String, Vec<Block>),
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
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Whether it holds figures.
    pub number: bool,
}

impl Column {
    /// A column of figures.
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: true }
    }

    /// A column of words.
    pub fn words(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: false }
    }
}

/// A line of a table.
#[derive(Debug, Default)]
pub struct Line {
    /// Its heading.
    pub head: String,
    /// Whether it is about Esker.
    pub ours: bool,
    /// Its cells, one for each column.
    pub cells: Vec<Field>,
}

/// A cell of a table.
#[derive(Debug, Default, Clone)]
pub struct Field {
    /// What stands in it.
    pub text: String,
    /// What its look says beside its text.
    pub look: Look,
}

/// How a cell looks. The text says the same.
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
}

impl From<String> for Field {
    fn from(text: String) -> Field {
        Field { text, look: Look::Plain }
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        text.to_string().into()
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
    /// Whether it is Esker's.
    pub ours: bool,
    /// Whether it is a published figure.
    pub published: bool,
    /// Its length in any unit; `None`: there is no bar, and `text` says why.
    pub length: Option<f64>,
    /// The least and the greatest repetition in the same unit.
    pub range: Option<(f64, f64)>,
    /// The figure with its unit.
    pub text: String,
    /// What stands behind it: `(1.08x baseline)`.
    pub note: String,
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

/// Figures over two variables, each cell with its figure printed and a colour between those of the least and the greatest.
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
        let figures: Vec<f64> = self.figures.iter().flatten().flatten().copied().filter(|f| f.is_finite()).collect();
        crate::stats::extent(&figures)
    }
}
