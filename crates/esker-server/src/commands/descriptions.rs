//! What clients ask about commands: what each is for, its arguments, and where its keys are. The
//! text is in `data/commands.txt`, whose head has its form.

use super::arguments::accepts;
use super::arguments_described::{Argument, shown};
use crate::protocol::{Reply, parse_integer};
use bytes::Bytes;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../data/commands.txt");

static DESCRIPTIONS: LazyLock<Vec<Description>> = LazyLock::new(|| parse(TEXT));

/// How far keys go from the first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Up to a place that is counted from the first key, or from the end if negative, in steps.
    Range {
        /// The place of the last key.
        last: i64,
        /// From one key to the next.
        step: i64,
    },
    /// Their number comes first.
    Number,
}

/// Where some keys of a command are, and what it does to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    /// Where the first one is, or their number.
    pub first: i64,
    /// How far they go.
    pub span: Span,
    /// What happens to them, in the words of Redis.
    pub flags: Vec<&'static str>,
}

/// What is told about a command, or about a subcommand.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// In small letters; `command|subcommand` for a subcommand.
    pub name: &'static str,
    /// How many arguments it has, with its name; at least so many if negative.
    pub arity: i64,
    /// The version of Redis that had it first, if one has it.
    pub since: &'static str,
    /// The family that it is of.
    pub group: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// How long it takes.
    pub complexity: &'static str,
    /// Its arguments, as `data/commands.txt` writes them.
    pub syntax: &'static str,
    /// What it is like, in the words of Redis.
    pub flags: Vec<&'static str>,
    /// The categories of access control lists that it is in.
    pub categories: Vec<&'static str>,
    /// How clients of Redis Cluster send it, and what order its reply has.
    pub tips: Vec<&'static str>,
    /// Where its keys are.
    pub keys: Vec<KeySpan>,
}

/// Keys among arguments, with what happens to them.
pub type KeysWithFlags<'a> = Vec<(&'a Bytes, Vec<&'static str>)>;

impl Description {
    /// Its subcommands.
    pub fn subcommands(&self) -> impl Iterator<Item = &'static Description> {
        let name = self.name;
        let is_below =
            move |other: &&Description| other.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('|'));
        DESCRIPTIONS.iter().filter(is_below)
    }

    /// Its arguments.
    pub fn arguments(&self) -> Vec<Argument> {
        Argument::parse(self.syntax)
    }

    /// Whether it can have so many arguments, with its name.
    pub fn accepts(&self, count: usize) -> bool {
        accepts(self.arity, count)
    }

    /// The keys among the arguments; `None` if their number is not that of what follows.
    pub fn keys_of<'a>(&self, arguments: &'a [Bytes]) -> Option<KeysWithFlags<'a>> {
        let mut found = Vec::new();
        for span in &self.keys {
            let count = arguments.len() as i64;
            let (first, last, step) = match span.span {
                Span::Range { last, step } if last < 0 => (span.first, count + last, step),
                Span::Range { last, step } => (span.first, span.first + last, step),
                Span::Number => {
                    let number = arguments.get(usize::try_from(span.first).ok()?)?;
                    let number = parse_integer(number).filter(|&number| number > 0)?;
                    (span.first + 1, span.first.checked_add(number)?, 1)
                }
            };
            if last >= count {
                return None;
            }
            let mut place = first;
            while place <= last {
                found.push((arguments.get(usize::try_from(place).ok()?)?, self.flags_of(span, arguments)));
                place += step.max(1);
            }
        }
        Some(found)
    }

    /// What happens to a key. Only with GET does SET tell what was there.
    fn flags_of(&self, span: &KeySpan, arguments: &[Bytes]) -> Vec<&'static str> {
        if !span.flags.contains(&"variable_flags") {
            return span.flags.clone();
        }
        let reads = arguments.iter().skip(3).any(|option| option.eq_ignore_ascii_case(b"GET"));
        if reads { vec!["RW", "access", "update"] } else { vec!["OW", "update"] }
    }
}

/// That of a command, or of a subcommand as `command|subcommand`, in any case.
pub fn describe(name: &[u8]) -> Option<&'static Description> {
    let lower = name.to_ascii_lowercase();
    let place = DESCRIPTIONS.binary_search_by(|description| description.name.as_bytes().cmp(&lower)).ok()?;
    DESCRIPTIONS.get(place)
}

/// That of the subcommand of that name.
pub fn describe_subcommand(command: &str, subcommand: &[u8]) -> Option<&'static Description> {
    describe(&[command.as_bytes(), b"|", subcommand].concat())
}

/// The commands whose second argument is a subcommand.
const CONTAINERS: [&str; 7] = ["client", "cluster", "command", "config", "function", "memory", "object"];

/// Checks the subcommand, if the command has some and one is given: a wrong one is refused before
/// it is executed, so that it is not queued behind MULTI.
///
/// # Errors
/// As [`find_subcommand`].
pub fn check_subcommand(command: &str, arguments: &[Bytes]) -> Result<(), String> {
    // CLUSTER has more of them on a node of a cluster than are told of.
    let is_checked = arguments.len() > 1 && CONTAINERS.contains(&command) && command != "cluster";
    if is_checked { find_subcommand(command, arguments).map(drop) } else { Ok(()) }
}

/// The subcommand that is given.
///
/// # Errors
/// The text of the error for one that is not there, or has not so many arguments.
pub fn find_subcommand(command: &str, arguments: &[Bytes]) -> Result<&'static Description, String> {
    let given = arguments.get(1).map_or(&b""[..], |given| given);
    match describe_subcommand(command, given) {
        None => {
            let (given, command) = (String::from_utf8_lossy(given), command.to_uppercase());
            Err(format!("ERR unknown subcommand '{given}'. Try {command} HELP."))
        }
        Some(found) if found.accepts(arguments.len()) => Ok(found),
        Some(found) => Err(format!("ERR wrong number of arguments for '{}' command", found.name)),
    }
}

/// The name of a command as it was given, with that of its subcommand.
pub fn full_name(command: &'static str, arguments: &[Bytes]) -> &'static str {
    if !CONTAINERS.contains(&command) {
        return command;
    }
    let subcommand = arguments.get(1).and_then(|name| describe_subcommand(command, name));
    subcommand.map_or(command, |description| description.name)
}

/// The reply to HELP of a command: its subcommands with their arguments, and what each is for.
pub fn help(command: &str) -> Reply {
    let upper = command.to_ascii_uppercase();
    let mut lines = vec![format!("{upper} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for subcommand in describe(command.as_bytes()).into_iter().flat_map(Description::subcommands) {
        let name = subcommand.name.split('|').next_back().unwrap_or_default().to_ascii_uppercase();
        lines.push(format!("{name} {}", shown(subcommand.syntax)).trim_end().to_string());
        lines.push(format!("    {}.", subcommand.summary));
    }
    Reply::Array(lines.into_iter().map(|line| Reply::Status(line.into())).collect())
}

fn parse(text: &'static str) -> Vec<Description> {
    let mut found: Vec<Description> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(line) = line.strip_prefix("  ") else {
            found.push(Description { name: line, ..Description::default() });
            continue;
        };
        let (label, value) = line.split_once(' ').unwrap_or((line, ""));
        let Some(last) = found.last_mut() else { continue };
        let words = || value.split(' ').collect::<Vec<_>>();
        match label {
            "arity" => last.arity = parse_integer(value.as_bytes()).unwrap_or_default(),
            "since" => last.since = value,
            "group" => last.group = value,
            "summary" => last.summary = value,
            "complexity" => last.complexity = value,
            "syntax" => last.syntax = value,
            "flags" => last.flags = words(),
            "categories" => last.categories = words(),
            "tips" => last.tips = words(),
            "keys" => last.keys.extend(key_span(&words())),
            _ => {}
        }
    }
    found
}

fn key_span(words: &[&'static str]) -> Option<KeySpan> {
    let number = |word: &str| parse_integer(word.as_bytes());
    match words {
        [first, "range", last, step, flags @ ..] => {
            let span = Span::Range { last: number(last)?, step: number(step)? };
            Some(KeySpan { first: number(first)?, span, flags: flags.to_vec() })
        }
        [first, "number", flags @ ..] => {
            Some(KeySpan { first: number(first)?, span: Span::Number, flags: flags.to_vec() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{BLOCKING, COMMANDS, WRITE};
    use std::collections::BTreeSet;

    /// Every line of the text is understood, and no field is missing.
    #[test]
    fn the_text_is_whole() {
        let all = &*DESCRIPTIONS;
        assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name), "the search needs the order");
        const LABELS: [&str; 10] =
            ["arity", "since", "group", "summary", "complexity", "syntax", "flags", "categories", "tips", "keys"];
        for line in TEXT.lines().filter_map(|line| line.strip_prefix("  ")) {
            assert!(LABELS.contains(&line.split(' ').next().unwrap()), "{line}");
        }
        let lines = TEXT.lines().filter(|line| line.starts_with("  keys ")).count();
        assert_eq!(all.iter().map(|description| description.keys.len()).sum::<usize>(), lines);
        for description in all {
            let fields = [description.since, description.group, description.summary, description.complexity];
            assert!(description.arity != 0 && fields.iter().all(|field| !field.is_empty()), "{description:?}");
        }
    }

    /// The table, which says what is executed, and the text agree.
    #[test]
    fn every_command_is_described() {
        for command in &COMMANDS {
            let description = describe(command.name.as_bytes()).expect(command.name);
            let has = |flag| description.flags.contains(&flag);
            assert_eq!(description.arity, command.arity, "{}", command.name);
            assert_eq!(has("write"), command.has(WRITE), "{}", command.name);
            assert_eq!(has("blocking"), command.has(BLOCKING), "{}", command.name);
            let is_container = description.subcommands().next().is_some();
            assert_eq!(is_container, CONTAINERS.contains(&command.name), "{}", command.name);
        }
        let found: BTreeSet<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let is_known =
            |name: &str| found.contains(name) || ["asking", "cluster", "readonly", "readwrite"].contains(&name);
        for description in &*DESCRIPTIONS {
            let name = description.name.split('|').next().unwrap();
            assert!(is_known(name) || name.starts_with("raft."), "{name}");
        }
    }

    #[test]
    fn help_has_each_subcommand() {
        let Reply::Array(lines) = help("object") else { panic!("no list") };
        assert!(lines.contains(&Reply::Status("ENCODING key".into())), "{lines:?}");
        assert_eq!(lines.len(), 11);
    }
}
