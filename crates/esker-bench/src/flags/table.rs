//! Every flag of `esker bench` in one table, `data/flags.toml`: the parser, the help text and the
//! record of a run are made from it.

use clap::{Arg, ArgAction, Command};
use serde::Deserialize;
use std::sync::LazyLock;

const DATA: &str = include_str!("../../data/flags.toml");

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(DATA).expect("it is part of the program, and a test reads it"));

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "group")]
    groups: Vec<Group>,
}

/// Flags that the help shows together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    title: String,
    #[serde(rename = "flag")]
    flags: Vec<Flag>,
}

/// What values a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `--name`, `--name=0/1/true/false`, `--noname`.
    Boolean,
    /// A number that is not negative.
    Unsigned,
    /// A number.
    Signed,
    /// A number with a fraction.
    Fraction,
    /// Anything.
    Text,
}

/// What the program does with a flag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// It is obeyed.
    #[default]
    Obeyed,
    /// It is handed to the engines, which obey it where they have such a setting.
    Engine,
    /// An older name: obeyed as the text says, with a warning.
    Mapped(String),
    /// Accepted so that old command lines still run; changes nothing, for the reason given, with a
    /// warning.
    Ignored(String),
}

/// One flag.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Its name without dashes.
    pub name: String,
    /// What values it takes.
    pub shape: Shape,
    /// The value when it is not given; empty where the meaning says what happens then.
    #[serde(default)]
    pub default: String,
    /// What is done with it.
    #[serde(default)]
    pub used: Use,
    /// What a value is called in the help; empty: `N`, or `TEXT`.
    #[serde(default)]
    pub value: String,
    /// What says it instead in a plan; empty: plans may set it.
    #[serde(default)]
    pub in_plans: String,
    /// Whether it decides which keys there are, or which are looked up.
    #[serde(default)]
    pub decides_keys: bool,
    /// What it means, for the help text.
    pub meaning: String,
}

/// The flag with this name.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

/// All flags.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    TABLE.groups.iter().flat_map(|group| &group.flags)
}

/// The name nearest to one that does not exist.
pub fn nearest(name: &str) -> Option<&'static str> {
    all()
        .map(|flag| (strsim::damerau_levenshtein(&flag.name, name), flag.name.as_str()))
        .min()
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .map(|(_, candidate)| candidate)
}

impl Flag {
    /// As an argument of the command line.
    fn argument(&'static self, group: &'static str) -> Arg {
        let mut meaning = self.meaning.clone();
        match &self.used {
            Use::Obeyed | Use::Engine => {}
            Use::Mapped(note) => meaning.push_str(&format!(" (becomes {note})")),
            Use::Ignored(reason) => meaning.push_str(&format!(" (no effect: {reason})")),
        }
        // A switch is off unless given, and a long default is told in words.
        if self.shape != Shape::Boolean && !self.default.is_empty() && self.default.len() < 20 {
            meaning.push_str(&format!(" [{}]", self.default));
        }
        let value = match self.shape {
            _ if !self.value.is_empty() => &self.value,
            Shape::Boolean => "0|1",
            Shape::Unsigned | Shape::Signed | Shape::Fraction => "N",
            Shape::Text => "TEXT",
        };
        let name = self.name.as_str();
        let action = if name == "lib" { ArgAction::Append } else { ArgAction::Set };
        let argument = Arg::new(name).long(name).value_name(value).help(meaning).help_heading(group);
        let argument = argument.action(action).require_equals(true).value_parser(move |text: &str| check(self, text));
        if self.shape == Shape::Boolean { argument.num_args(0..=1).default_missing_value("1") } else { argument }
    }
}

/// A command line of all flags, of which the last of several values counts.
pub fn command() -> Command {
    let command = Command::new("esker bench").no_binary_name(true).args_override_self(true).max_term_width(120);
    let of = |group: &'static Group| group.flags.iter().map(|flag| flag.argument(&group.title));
    TABLE.groups.iter().fold(command, |command, group| command.args(of(group)))
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

    #[test]
    fn names_are_unique_and_defaults_parse() {
        let mut names: Vec<&str> = all().map(|flag| flag.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for flag in all().filter(|flag| !flag.default.is_empty()) {
            assert!(check(flag, &flag.default).is_ok(), "{}", flag.name);
        }
    }

    #[test]
    fn the_nearest_name_is_close() {
        assert_eq!(nearest("benchmark"), Some("benchmarks"));
        assert_eq!(nearest("write_bufer_size"), Some("write_buffer_size"));
        assert_eq!(nearest("zzzzzzzzzzzzzzzzzzz"), None);
    }
}
