//! Standard output or a file, with every failure turned into a [`Failure`]: a reader that has gone
//! ends the command quietly, a full disk is reported.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Buffered lines. Nothing is certain to be written before [`Output::finish`].
pub struct Output {
    writer: BufWriter<Box<dyn Write>>,
    name: String,
    /// A regular file gets its name only when it is complete: (temporary name, name).
    rename: Option<(PathBuf, PathBuf)>,
}

impl Output {
    /// Standard output.
    pub fn standard() -> Output {
        Output { writer: BufWriter::new(Box::new(io::stdout())), name: "standard output".into(), rename: None }
    }

    /// A file that appears under its name when complete. Devices and pipes are written directly.
    pub fn file(path: &Path) -> Result<Output, Failure> {
        let direct = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let target = if direct {
            path.to_path_buf()
        } else {
            let mut name = path.as_os_str().to_os_string();
            name.push(".partial");
            PathBuf::from(name)
        };
        let what = || format!("cannot write {}", target.display());
        let file = if direct { File::options().write(true).open(&target) } else { File::create(&target) };
        let file = file.map_err(|error| Failure::io(&what(), &error))?;
        let rename = if direct { None } else { Some((target, path.to_path_buf())) };
        let name = path.display().to_string();
        Ok(Output { writer: BufWriter::with_capacity(1 << 17, Box::new(file)), name, rename })
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = self.writer.write_all(bytes);
        self.check(result)
    }

    /// Writes a line.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Hands everything to the system and gives a file its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        let result = self.writer.flush();
        self.check(result)?;
        if let Some((temporary, path)) = self.rename.take() {
            let what = format!("cannot rename {} to {}", temporary.display(), path.display());
            std::fs::rename(&temporary, &path).map_err(|error| Failure::io(&what, &error))?;
        }
        Ok(())
    }

    fn check(&self, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
            Err(error) => Err(Failure::io(&format!("cannot write to {}", self.name), &error)),
        }
    }
}

impl Drop for Output {
    /// Removes what an error left incomplete.
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Prints one line to standard output.
pub fn print_line(text: &str) -> Result<(), Failure> {
    let mut output = Output::standard();
    output.line(text)?;
    output.finish()
}

/// A number of bytes for people: three significant digits and a decimal unit.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if amount < 10.0 => format!("{amount:.2} {}", UNITS[unit]),
        _ if amount < 100.0 => format!("{amount:.1} {}", UNITS[unit]),
        _ => format!("{amount:.0} {}", UNITS[unit]),
    }
}
