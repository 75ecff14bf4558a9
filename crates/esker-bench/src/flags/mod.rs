//! The command line of `esker bench`. Flags may have the spellings of gflags, as those of db_bench
//! do; they are normalised to clap's spelling first.
//!
//! ```text
//! argument = ("--" | "-") name "=" value      any flag
//!          | ("--" | "-") name value          flags that are not boolean
//!          | ("--" | "-") name                boolean: true
//!          | ("--" | "-") "no" name           boolean: false
//! ```

pub mod config;
pub(crate) mod table;

use std::collections::BTreeMap;
use table::{Shape, Use};

/// What the command line says, checked against the table but not yet interpreted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    /// One line per flag that is obeyed under another name or not at all.
    pub warnings: Vec<String>,
}

/// Writes each flag of the table as `--name=value`. Any other argument stays unchanged, so that
/// clap reports it.
fn normalized(arguments: &[String]) -> Vec<String> {
    let mut plain = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let body = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
        let (name, value) = match body.unwrap_or(argument).split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body.unwrap_or(argument), None),
        };
        let negated = name.strip_prefix("no").and_then(table::find).filter(|flag| flag.shape == Shape::Boolean);
        plain.push(match (table::find(name), value) {
            _ if body.is_none() => argument.clone(),
            (Some(flag), Some(value)) => format!("--{}={value}", flag.name),
            (Some(flag), None) if flag.shape == Shape::Boolean => format!("--{name}=1"),
            (Some(_), None) => rest.next().map_or(format!("--{name}"), |value| format!("--{name}={value}")),
            (None, None) if negated.is_some() => format!("--{}=0", negated.map_or("", |flag| &flag.name)),
            (None, _) if name == "h" => "--help".into(),
            // Two dashes alone would end the flags.
            (None, None) if name.is_empty() => "-".into(),
            (None, _) => format!("--{}", body.unwrap_or("")),
        });
    }
    plain
}

impl Given {
    /// Parses the arguments.
    pub fn parse(arguments: &[String]) -> Result<Given, clap::Error> {
        Given::of(table::command(), arguments)
    }

    /// The same by a command that has all flags.
    pub fn of(command: clap::Command, arguments: &[String]) -> Result<Given, clap::Error> {
        let matches = command.try_get_matches_from(normalized(arguments))?;
        let mut given = Given::default();
        let mut warnings = Vec::new();
        for flag in table::all() {
            let Some(values) = matches.get_many::<String>(&flag.name) else { continue };
            given.values.insert(&flag.name, values.cloned().collect());
            let text = match &flag.used {
                Use::Obeyed | Use::Engine => continue,
                Use::Mapped(note) => format!("warning: --{} is obeyed as {note}", flag.name),
                Use::Ignored(reason) => format!("warning: --{} is accepted but has no effect: {reason}", flag.name),
            };
            warnings.push((matches.index_of(&flag.name), text));
        }
        warnings.sort();
        given.warnings = warnings.into_iter().map(|(_, text)| text).collect();
        Ok(given)
    }

    /// Sets a flag of the table from inside the program, as if it had been given. Names that are
    /// not in the table are ignored.
    pub fn set(&mut self, name: &str, value: String) {
        if let Some(flag) = table::find(name) {
            self.values.insert(&flag.name, vec![value]);
        }
    }

    /// The value given, or the default; `None` if there is neither.
    pub fn get(&self, name: &str) -> Option<&str> {
        let given = self.values.get(name).and_then(|values| values.last()).map(String::as_str);
        given.or_else(|| table::find(name).map(|flag| flag.default.as_str())).filter(|value| !value.is_empty())
    }

    /// Every value of a flag that may be given several times.
    pub fn every(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether the flag was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A boolean flag.
    pub fn boolean(&self, name: &str) -> bool {
        self.get(name) == Some("1")
    }

    /// A flag that is a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(|value| value.parse().ok())
    }

    /// Every flag with its value, defaults included, for the record of a run.
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for flag in table::all() {
            let value = if flag.name == "lib" {
                self.every("lib").join(",")
            } else {
                self.get(&flag.name).unwrap_or("").into()
            };
            let shown = matches!(flag.used, Use::Obeyed) || self.has(&flag.name);
            if shown && flag.name != "list" {
                all.insert(flag.name.clone(), value);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Given, String> {
        let given = Given::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>());
        given.map_err(|error| esker_usage::summary(&error.to_string(), "esker bench"))
    }

    #[test]
    fn all_spellings_of_a_flag() {
        let given =
            parse("--num=5 -threads=2 --reads -7 --histogram=1 --comparisons --statistics=false --nosync").unwrap();
        assert_eq!(given.number::<u64>("num"), Some(5));
        assert_eq!(given.number::<u64>("threads"), Some(2));
        assert_eq!(given.number::<i64>("reads"), Some(-7));
        assert!(given.boolean("comparisons"));
        assert!(!given.boolean("statistics") && !given.boolean("sync"));
        assert!(parse("--sync=TRUE").unwrap().boolean("sync"));
    }

    #[test]
    fn libraries_add_up_and_other_flags_replace() {
        let given = parse("--lib rocksdb=/a=b.so --lib=leveldb=/c.so --num=1 --num=2").unwrap();
        assert_eq!(given.every("lib"), ["rocksdb=/a=b.so", "leveldb=/c.so"]);
        assert_eq!(given.get("num"), Some("2"));
    }

    #[test]
    fn mistakes_are_one_clear_line() {
        assert!(
            parse("--benchmark=fillseq")
                .unwrap_err()
                .contains("'--benchmark' found; a similar argument exists: '--benchmarks'")
        );
        assert!(parse("fillseq").unwrap_err().contains("unexpected argument 'fillseq'"));
        assert!(parse("--num=x").unwrap_err().contains("--num: 'x'"));
        assert!(parse("--num=-1").unwrap_err().contains("not negative"));
        assert!(parse("--sync=2").unwrap_err().contains("neither"));
        assert!(parse("--num").unwrap_err().contains("--num=<N>"));
        assert!(parse("--nonum").unwrap_err().contains("unexpected argument '--nonum'"));
        assert!(parse("--scale=nan").unwrap_err().contains("--scale"));
        for mistake in ["--", "-", "--=", "-=3", "---num=1", ""] {
            assert!(Given::parse(&[mistake.to_string()]).is_err(), "{mistake}");
        }
    }

    #[test]
    fn old_flags_warn_once_each() {
        let given = parse("--disable_seek_compaction=1 --max_background_compactions=20 --num=3").unwrap();
        assert_eq!(given.warnings.len(), 2);
        assert!(given.warnings[0].contains("no effect"));
        assert!(given.warnings[1].contains("max_background_jobs"));
    }

    #[test]
    fn the_record_holds_defaults() {
        let all = parse("--num=3 --num_levels=6").unwrap().all();
        assert_eq!(all["num"], "3");
        assert_eq!(all["threads"], "1");
        assert_eq!(all["num_levels"], "6");
        assert!(!all.contains_key("page_size"));
    }
}
