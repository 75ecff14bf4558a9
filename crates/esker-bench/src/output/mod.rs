//! Where rows go as they finish: text, JSON lines, CSV. Each row is flushed, so an interrupted run
//! loses none.

pub mod text;

use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that rows are appended to, one line each; nothing happens where none is requested.
#[derive(Default)]
pub struct LineFile(Option<(PathBuf, File)>);

impl LineFile {
    /// Creates the file, if one is requested, replacing an older one. The error is one line.
    pub fn create(path: Option<&Path>) -> Result<LineFile, String> {
        let Some(path) = path else { return Ok(LineFile(None)) };
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(LineFile(Some((path.to_path_buf(), file))))
    }

    /// Writes one line. The error is one line.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        let written = file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Writes one line of JSON. The error is one line.
    pub fn json(&mut self, line: &impl Serialize) -> Result<(), String> {
        self.line(&serde_json::to_string(line).map_err(|error| format!("cannot write a line as JSON: {error}"))?)
    }
}

/// Whether a file that is written at the end can be written at all: better to learn that at the
/// start.
pub fn check_writable(path: &Path) -> Result<(), String> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Says what is wrong with what was requested of a command, or with what it did. Returns `code`,
/// for the process.
pub fn complain(command: &str, problem: &str, code: i32) -> i32 {
    eprintln!("esker {command}: {problem}");
    code
}

/// Writes to standard output or wherever text goes. A reader that went away (`| head`) is no reason
/// to stop measuring.
pub fn say(out: &mut dyn Write, text: &str) {
    let _: io::Result<()> =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}
