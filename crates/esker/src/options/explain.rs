//! The explanation of options: the value of each, its origin, and its trade-off.

use super::Options;
use super::origin::Origin;
use std::fmt;

/// One option with its present value.
///
/// ```
/// let explanation = esker::Options::default().block_bytes(4 << 10).explain();
/// let block = explanation.options.iter().find(|option| option.name == "block_bytes");
/// assert!(block.is_some_and(|block| block.value == "4 KiB" && block.origin == esker::Origin::Set));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedOption {
    /// The name of its setter.
    pub name: &'static str,
    /// Its value, with the unit.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
    /// Its trade-off.
    pub trade_off: &'static str,
}

/// All options with their present values; its `Display` is one line for each.
///
/// ```
/// print!("{}", esker::Options::default().explain());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The options, in the order in which they are documented.
    pub options: Vec<ExplainedOption>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for option in &self.options {
            let ExplainedOption { name, value, origin, trade_off } = option;
            writeln!(f, "{name} = {value} ({origin}): {trade_off}")?;
        }
        Ok(())
    }
}

/// Lines of `name: value => trade-off;`. An option is added to the explanation with one.
macro_rules! rows {
    ($($name:ident: $value:expr => $trade_off:literal;)*) => { vec![$((stringify!($name), $value, $trade_off)),*] };
}

/// The number of bytes in the largest unit that leaves it whole.
fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

impl Options {
    /// Every value that a database opened with these options would have, its origin, and its
    /// trade-off.
    ///
    /// ```
    /// use esker::{Options, Profile};
    /// let options = Options::default().profile(Profile::ReadHeavy).memory_budget_bytes(64 << 20);
    /// let text = options.explain().to_string();
    /// assert!(text.contains("filter_bits_per_key = 14 (profile read-heavy)"));
    /// assert!(text.contains("write_buffer_bytes = 16 MiB (from the memory budget)"));
    /// ```
    pub fn explain(&self) -> Explanation {
        let options = self.resolved();
        let rows = options.rows().into_iter().map(|(name, value, trade_off)| {
            let origin = options.origins.of(name);
            ExplainedOption { name, value, origin, trade_off }
        });
        Explanation { options: rows.collect() }
    }

    /// Name, value and trade-off of every option.
    fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let size = |value: usize| bytes(value as u64);
        rows! {
            create_if_missing: self.create_if_missing.to_string() => "true makes a database of an empty directory; false finds mistyped paths";
            error_if_exists: self.error_if_exists.to_string() => "true refuses what is there already; false opens it";
            write_buffer_bytes: size(self.write_buffer_bytes) => "larger: fewer flushes, less compaction; smaller: less memory, faster recovery";
            block_cache_bytes: size(self.block_cache_bytes) => "larger: fewer reads and decompressions; smaller: less memory";
            block_bytes: size(self.block_bytes) => "larger: better compression and scans; smaller: cheaper point reads that miss the cache";
            compression: name(self.compression) => "lz4: less space; none: blocks are read in place where files are mapped; zstd: least space, slower, with the feature zstd";
            filter_bits_per_key: self.filter_bits_per_key.to_string() => "more: fewer useless block reads; fewer: less memory";
            target_file_bytes: bytes(self.target_file_bytes) => "larger: fewer files; smaller: compaction takes less memory";
            min_blob_size: bytes(self.min_blob_size as u64) => "smaller: less is rewritten; larger: fewer reads of another file";
            wal_segment_bytes: bytes(self.wal_segment_bytes) => "larger: fewer files to prepare; smaller: less disk space and mapped memory";
            wal_mode: name(self.wal_mode) => "mapped: cheaper writes; plain: for network and copy-on-write file systems";
            read_mode: name(self.read_mode) => "auto, mmap: nothing is copied; pread: bounded memory, no page faults; mmapchecked: as mmap, every read checked";
            background_threads: self.background_threads.to_string() => "0: flush and compaction inside writing calls, deterministic; 1: beside them; more: compactions end sooner; unset: a second one while writers are delayed for compaction";
            upper_compression: self.upper_compression.map_or_else(|| if self.upper() == self.compression { "as compression".into() } else { name(self.upper()) }, name) => "none: cheaper flushes and first compactions; lz4: less space in upper runs";
            compaction_bytes_per_second: bytes(self.compaction_bytes_per_second) => "0: no limit; else the device is kept free for others, writers may stall";
            memory_budget_bytes: size(self.memory_budget_bytes) => "0: each part has its own limit; else one for all: earlier flushes, a smaller cache";
            env: self.given("env", "the operating system") => "a simulation can fail calls and lose power, for tests";
            filter_policy: self.given("filter_policy", "none") => "a policy rules out tables that the engine's filter lets through, at a call for each";
            event_listener: self.given("event_listener", "none") => "a listener is told what happens, by a thread of its own";
            comparator: self.given("comparator", "none") => "an order of keys other than that of bytes costs a call for each comparison";
            latency_histograms: self.latency_histograms.to_string() => "true: how long calls take is measured, at a cost of a few nanoseconds each; false: at none";
            keep_changes: self.keep_changes.map_or_else(|| "none".into(), |retention| retention.to_string()) => "none: no cost; bytes, time: the log is kept for readers of changes";
            clock: self.given("clock", "the system's clock") => "one set by hand makes tests of expiry repeatable";
        }
    }

    /// The text for an option that has no value to print.
    fn given(&self, name: &str, default: &str) -> String {
        if self.origins.of(name) == Origin::Default { default.into() } else { "the program's own".into() }
    }
}

/// The name of a variant, in lower case.
fn name(value: impl fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    /// More than this are not read.
    const MOST_OPTIONS: usize = 25;

    /// The setters of `Options`, with their comments and bodies, as they are in the source.
    fn setters() -> Vec<(&'static str, String, &'static str)> {
        let source = include_str!("mod.rs");
        let start = source.find("impl Options {").expect("the setters");
        let source = &source[start..start + source[start..].find("\n}\n").expect("their end")];
        let mut comment = String::new();
        let mut found = Vec::new();
        for (at, line) in
            source.match_indices('\n').map(|(at, _)| (at + 1, source[at + 1..].lines().next().unwrap_or("")))
        {
            let line = line.trim();
            if line.starts_with("///") {
                comment.push_str(line);
            } else if let Some(rest) = line.strip_prefix("pub fn ") {
                let name = rest.split('(').next().expect("a name");
                let body = &source[at..at + source[at..].find("\n    }\n").expect("its end")];
                if body.contains("mut self") && name != "profile" {
                    found.push((name, comment.clone(), body));
                }
                comment.clear();
            } else {
                comment.clear();
            }
        }
        found
    }

    #[test]
    fn every_option_is_explained_noted_and_documented() {
        let mut explained: Vec<&str> = Options::default().explain().options.iter().map(|option| option.name).collect();
        let setters = setters();
        let mut names: Vec<&str> = setters.iter().map(|(name, ..)| *name).collect();
        explained.sort_unstable();
        names.sort_unstable();
        assert_eq!(explained, names, "`rows` must have a line for every setter of `Options`");
        assert!(names.len() <= MOST_OPTIONS, "{} options", names.len());
        for (name, comment, body) in setters {
            assert!(body.contains(&format!("self.note(\"{name}\");")), "{name} does not note that it was set");
            let default = comment.find("Default: ").unwrap_or_else(|| panic!("{name}: no `Default: `"));
            assert!(comment[default..].contains("Trade-off: "), "{name}: no `Trade-off: ` after its default");
        }
    }

    #[test]
    fn the_origin_follows_the_last_call() {
        let origin = |options: &Options, name| {
            let explanation = options.explain();
            explanation.options.iter().find(|option| option.name == name).map(|option| option.origin)
        };
        let options = Options::default();
        assert!(options.explain().options.iter().all(|option| option.origin == Origin::Default));
        let options = options.block_bytes(1 << 10).profile(Profile::LargeValues).wal_segment_bytes(1 << 20);
        assert_eq!(origin(&options, "block_bytes"), Some(Origin::Profile(Profile::LargeValues)));
        assert_eq!(origin(&options, "wal_segment_bytes"), Some(Origin::Set));
        assert_eq!(origin(&options, "read_mode"), Some(Origin::Default));
        let options = options.memory_budget_bytes(64 << 20);
        assert_eq!(origin(&options, "write_buffer_bytes"), Some(Origin::Budget));
        assert_eq!(origin(&options, "wal_segment_bytes"), Some(Origin::Set));
        assert_eq!(origin(&options, "block_bytes"), Some(Origin::Profile(Profile::LargeValues)));
    }

    #[test]
    fn the_balanced_profile_is_the_default() {
        let (default, balanced) = (Options::default().rows(), Options::default().profile(Profile::Balanced).rows());
        assert_eq!(default, balanced);
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(
            [bytes(0), bytes(1000), bytes(8 << 10), bytes(3 << 29)],
            ["0 bytes", "1000 bytes", "8 KiB", "1536 MiB"]
        );
    }
}
