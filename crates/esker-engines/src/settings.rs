//! Reading the free-form flags of [`EngineOptions`], and building the list of settings that reports
//! show.

use super::merge::MergeOperator;
use super::{Compression, Description, Durability, EngineError, EngineKind, EngineOptions, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// A flag as a number; `None` if it was not given.
pub fn number<T: std::str::FromStr>(options: &EngineOptions, name: &str) -> Result<Option<T>> {
    match options.extra.get(name) {
        None => Ok(None),
        Some(text) => text
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| EngineError(format!("--{name}={text}: not a number, or out of range"))),
    }
}

/// A flag as a truth value; `None` if it was not given.
pub fn switch(options: &EngineOptions, name: &str) -> Result<Option<bool>> {
    match options.extra.get(name).map(|text| text.trim()) {
        None => Ok(None),
        Some("1" | "true" | "yes" | "") => Ok(Some(true)),
        Some("0" | "false" | "no") => Ok(Some(false)),
        Some(text) => Err(EngineError(format!("--{name}={text}: must be 0 or 1"))),
    }
}

/// Refuses zstd for an engine that compresses with another codec only: with that its figures would
/// be of something else.
pub fn refuse_zstd(engine: &str, options: &EngineOptions) -> Result<()> {
    match options.compression {
        Compression::Zstd => Err(EngineError(format!("{engine}: zstd is for esker and rocksdb; give --compression=1"))),
        _ => Ok(()),
    }
}

/// The settings of an open engine, in the order in which reports show them.
#[derive(Debug, Clone)]
pub struct Settings {
    durability: Durability,
    shown: Vec<(String, String)>,
}

impl Settings {
    /// Starts with the three that every engine states.
    pub fn new(durability: Durability, how: &str, memory: String, compression: &str) -> Settings {
        let mut settings = Settings { durability, shown: Vec::new() };
        settings.add("durability", durability.name());
        settings.add("durability_by", how);
        settings.add("memory", memory);
        settings.add("compression", compression);
        settings
    }

    /// Adds one.
    pub fn add(&mut self, name: &str, value: impl ToString) {
        self.shown.push((name.to_string(), value.to_string()));
    }

    /// Adds how an engine merges that has no merge of its own.
    pub fn add_merge(&mut self, operator: Option<MergeOperator>, by: &str) {
        self.add("merge", operator.map_or("none".to_string(), |operator| format!("{} by {by}", operator.name())));
    }

    /// With the rest of what an adapter says of an open database.
    pub fn describe(self, kind: &EngineKind, version: String) -> Description {
        let Settings { durability, shown: settings } = self;
        Description { name: kind.name, version, capabilities: kind.capabilities, durability, settings }
    }
}

/// The directory of a database, made if missing.
pub fn make_directory(engine: &str, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|e| EngineError(format!("{engine}: cannot create {}: {e}", directory.display())))
}

/// Waits until no file of `directory` appears, goes or grows for a while: all one can see of the
/// background work of an engine that does not report it. Gives up after ten minutes.
pub fn wait_until_quiet(directory: &Path) {
    const QUIET: Duration = Duration::from_millis(400);
    const STEP: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(600);
    let start = Instant::now();
    let mut last = listing(directory);
    let mut since = Instant::now();
    while since.elapsed() < QUIET && start.elapsed() < LONGEST {
        std::thread::sleep(STEP);
        let now = listing(directory);
        if now != last {
            last = now;
            since = Instant::now();
        }
    }
}

fn listing(directory: &Path) -> Vec<(std::ffi::OsString, u64)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    // A file may vanish between the listing and the look at it; then it is simply not part of this
    // picture.
    let mut files: Vec<_> = entries.flatten().filter_map(|e| Some((e.file_name(), e.metadata().ok()?.len()))).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_checked() {
        let mut options = EngineOptions::default();
        options.extra.insert("num_levels".into(), "6".into());
        options.extra.insert("page_size".into(), "x".into());
        options.extra.insert("WAL_enabled".into(), "0".into());
        assert_eq!(number::<i32>(&options, "num_levels"), Ok(Some(6)));
        assert_eq!(number::<i32>(&options, "missing"), Ok(None));
        assert!(number::<i32>(&options, "page_size").is_err());
        assert_eq!(switch(&options, "WAL_enabled"), Ok(Some(false)));
        assert!(switch(&options, "page_size").is_err());
    }
}
