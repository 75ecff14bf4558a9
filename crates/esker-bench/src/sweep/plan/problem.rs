//! What is wrong with a sweep file, and where.

use std::ops::Range;
use std::path::Path;

/// One mistake. It is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    at: Range<usize>,
    text: String,
}

impl Problem {
    /// A mistake at these bytes of the file.
    pub fn at(at: Range<usize>, text: String) -> Problem {
        Problem { at, text }
    }

    /// `FILE:LINE:COLUMN: what is wrong`, with line and column from 1 and columns in characters.
    pub fn describe(&self, path: &Path, file: &str) -> String {
        let start = (0..=self.at.start.min(file.len())).rev().find(|at| file.is_char_boundary(*at)).unwrap_or(0);
        let before = &file[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{}:{line}:{column}: {}", path.display(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns() {
        let text = "a = 1\n\u{e9}\u{e9} = 2\n";
        let place = |at: usize| Problem::at(at..at, "x".into()).describe(Path::new("f.toml"), text);
        assert_eq!([place(0), place(4)], ["f.toml:1:1: x", "f.toml:1:5: x"]);
        assert_eq!(
            [place(6), place(8), place(10), place(900)],
            ["f.toml:2:1: x", "f.toml:2:2: x", "f.toml:2:3: x", "f.toml:3:1: x"]
        );
        assert_eq!(place(7), "f.toml:2:1: x");
    }
}
