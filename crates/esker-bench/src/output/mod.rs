//! Where rows go as they finish: text, JSON lines, CSV. Each row is flushed, so an interrupted run loses none.

pub mod csv;
pub mod text;

use crate::record::Record;
use crate::report::render::csv::line;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that rows are appended to, one line each.
pub struct LineFile {
    path: PathBuf,
    file: File,
}

impl LineFile {
    /// Creates the file, replacing an older one. The error is one line.
    pub fn create(path: &Path) -> Result<LineFile, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(LineFile { path: path.to_path_buf(), file })
    }

    /// Writes one line. The error is one line.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// The machine-readable files of a run.
#[derive(Default)]
pub struct Files {
    json: Option<LineFile>,
    csv: Option<LineFile>,
}

impl Files {
    /// Creates the files asked for. The error is one line.
    pub fn create(json: Option<&Path>, csv: Option<&Path>) -> Result<Files, String> {
        let mut files =
            Files { json: json.map(LineFile::create).transpose()?, csv: csv.map(LineFile::create).transpose()? };
        if let Some(file) = &mut files.csv {
            file.line(line(csv::header()).trim_end())?;
        }
        Ok(files)
    }

    /// Writes a row to each. The error is one line.
    pub fn row(&mut self, record: &Record) -> Result<(), String> {
        if let Some(file) = &mut self.json {
            file.line(&serde_json::to_string(record).map_err(|error| format!("cannot write a row as JSON: {error}"))?)?;
        }
        if let Some(file) = &mut self.csv {
            file.line(line(csv::row(record)).trim_end())?;
        }
        Ok(())
    }
}

/// Writes to standard output or wherever text goes. A reader that went away (`| head`) is no reason to stop measuring.
pub fn say(out: &mut dyn Write, text: &str) {
    let _: io::Result<()> =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}
