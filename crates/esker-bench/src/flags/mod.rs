//! The command line of `esker bench`, in the syntax of db_bench so that old command lines keep working.
//!
//! ```text
//! argument = ("--" | "-") name "=" value      any flag
//!          | ("--" | "-") name value          flags that are not boolean
//!          | ("--" | "-") name                boolean: true
//!          | ("--" | "-") "no" name           boolean: false
//! ```

pub mod config;
pub mod table;

use std::collections::BTreeMap;
use table::{Flag, Shape, Use};

/// What the command line says, checked against the table but not yet interpreted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    /// One line per flag that is obeyed under another name or not at all.
    pub warnings: Vec<String>,
}

impl Given {
    /// Parses the arguments. The error is one line.
    pub fn parse(arguments: &[String]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(body) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return Err(format!("'{argument}' is not a flag; flags are written --name=value"));
            };
            if body == "h" {
                given.set("help", "1".into());
                continue;
            }
            let (name, inline) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (body, None),
            };
            let negated = table::find(name).is_none() && inline.is_none();
            let flag = match table::find(name) {
                Some(flag) => flag,
                None => match name.strip_prefix("no").and_then(table::find).filter(|f| f.shape == Shape::Boolean) {
                    Some(flag) if negated => flag,
                    _ => return Err(unknown(name)),
                },
            };
            let value = match (inline, flag.shape) {
                (Some(value), _) => value,
                (None, Shape::Boolean) => (if negated { "0" } else { "1" }).to_string(),
                (None, _) => rest.next().cloned().ok_or_else(|| format!("--{name} needs a value: --{name}=..."))?,
            };
            given.add(flag, value)?;
        }
        Ok(given)
    }

    fn add(&mut self, flag: &'static Flag, value: String) -> Result<(), String> {
        let value = check(flag, &value)?;
        match flag.used {
            Use::Obeyed | Use::Engine => {}
            Use::Mapped(note) => self.warnings.push(format!("warning: --{} is obeyed as {note}", flag.name)),
            Use::Ignored(reason) => {
                self.warnings.push(format!("warning: --{} is accepted but has no effect: {reason}", flag.name));
            }
        }
        let values = self.values.entry(flag.name).or_default();
        if flag.name != "lib" {
            values.clear();
        }
        values.push(value);
        Ok(())
    }

    /// Sets a flag of the table from inside the program, as if it had been given. Names that are not in the table are ignored.
    pub fn set(&mut self, name: &str, value: String) {
        if let Some(flag) = table::find(name) {
            self.values.insert(flag.name, vec![value]);
        }
    }

    /// The value given, or the default; `None` if there is neither.
    pub fn get(&self, name: &str) -> Option<&str> {
        let given = self.values.get(name).and_then(|values| values.last()).map(String::as_str);
        given.or_else(|| table::find(name).map(|flag| flag.default)).filter(|value| !value.is_empty())
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
            let value =
                if flag.name == "lib" { self.every("lib").join(",") } else { self.get(flag.name).unwrap_or("").into() };
            let shown = matches!(flag.used, Use::Obeyed) || self.has(flag.name);
            if shown && flag.name != "help" && flag.name != "list" {
                all.insert(flag.name.to_string(), value);
            }
        }
        all
    }
}

fn unknown(name: &str) -> String {
    match table::nearest(name) {
        Some(nearest) => format!("unknown flag --{name}; did you mean --{nearest}?"),
        None => format!("unknown flag --{name}; --help lists all flags"),
    }
}

/// Checks a value against its flag's shape and returns it in its plain form.
pub fn check(flag: &Flag, value: &str) -> Result<String, String> {
    let fits = match flag.shape {
        Shape::Boolean => {
            return match value.to_ascii_lowercase().as_str() {
                "1" | "true" | "t" | "yes" | "y" => Ok("1".into()),
                "0" | "false" | "f" | "no" | "n" => Ok("0".into()),
                _ => Err(format!("--{}: '{value}' is neither true nor false", flag.name)),
            };
        }
        Shape::Unsigned => value.parse::<u64>().is_ok(),
        Shape::Signed => value.parse::<i64>().is_ok(),
        Shape::Fraction => value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
        Shape::Text => true,
    };
    let wanted = match flag.shape {
        Shape::Unsigned => "a whole number that is not negative",
        Shape::Signed => "a whole number",
        _ => "a number that is not negative",
    };
    if fits { Ok(value.to_string()) } else { Err(format!("--{}: '{value}' is not {wanted}", flag.name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Given, String> {
        Given::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
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
        assert_eq!(parse("--benchmark=fillseq").unwrap_err(), "unknown flag --benchmark; did you mean --benchmarks?");
        assert!(parse("fillseq").unwrap_err().contains("not a flag"));
        assert!(parse("--num=x").unwrap_err().contains("--num: 'x'"));
        assert!(parse("--num=-1").unwrap_err().contains("not negative"));
        assert!(parse("--sync=2").unwrap_err().contains("neither"));
        assert!(parse("--num").unwrap_err().contains("needs a value"));
        assert!(parse("--nonum").unwrap_err().contains("unknown flag"));
        assert!(parse("--scale=nan").unwrap_err().contains("--scale"));
        for mistake in ["--", "-", "--=", "-=3", "---num=1", ""] {
            let _ = Given::parse(&[mistake.to_string()]);
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
