//! What a line of the shell says, and doing it.

use crate::arguments::ValueType;
use crate::failure::{Failure, one_line};
use crate::keyspaces::{Change, keyspace_json};
use crate::output::Output;
use crate::record::{self, Shown};
use crate::stats::stats_json;
use crate::text::Form;
use crate::{duration, expiry, settings};
use clap::Parser;
use clap::error::ErrorKind;
use esker::{Db, Expiry, Keyspace, Slice, WriteOptions};
use std::ffi::OsStr;
use std::io::{self, Write as _};

/// The commands: name, other words, what it does.
const COMMANDS: [(&str, &str, &str); 12] = [
    ("get", "KEY [--show-ttl]", "the value of a key, and how long it lives"),
    ("put", "KEY VALUE [--ttl TIME]", "set it; an earlier time to live does not stay"),
    ("delete", "KEY", "remove a key"),
    ("merge", "KEY OPERAND", "combine, by the keyspace's merge operator"),
    ("scan", "[PREFIX [LIMIT]] [--show-ttl]", "keys and values in order, 20 unless another limit is given"),
    ("count", "[PREFIX]", "how many keys there are"),
    ("stats", "", "sizes, shape and health"),
    ("keyspaces", "", "what is in the database"),
    ("keyspaces", "COMMAND ...", "create, set, rename, clear or drop one; see `keyspaces --help`"),
    ("use", "KEYSPACE", "read and write another keyspace"),
    ("help", "", "this list"),
    ("quit", "", "the end"),
];
const HELP_END: &str = "\
Words are separated by spaces, and \"...\" is one word. Keys and values are text, \\xNN is a byte; a
number where the keyspace adds numbers (uint64add, int64add).";

/// So many lines fit on a screen.
const SCAN_LIMIT: u64 = 20;
const SHOW_TTL: &str = "--show-ttl";

/// Whether to go on.
pub enum Outcome {
    /// With the next line.
    Done,
    /// No.
    Quit,
}

/// One shell on an open database.
pub struct Session<'a> {
    db: &'a Db,
    keyspace: String,
    form: Form,
    json: bool,
}

impl<'a> Session<'a> {
    /// A shell that begins in that keyspace.
    pub fn new(db: &'a Db, keyspace: String, hex: bool, json: bool) -> Session<'a> {
        Session { db, keyspace, form: Form::from_flag(hex), json }
    }

    /// The keyspace that commands are about.
    pub fn keyspace_name(&self) -> String {
        one_line(&self.keyspace)
    }

    /// Does what a line says.
    pub fn run(&mut self, line: &str) -> Result<Outcome, Failure> {
        let words = words(line).map_err(Failure::Usage)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut output = Output::standard();
        match words[..] {
            [] => {}
            [word, ..] if word.starts_with('#') => {}
            ["quit" | "exit"] => return Ok(Outcome::Quit),
            ["help"] => output.line(&help())?,
            ["get", key] => self.get(key, false, &mut output)?,
            ["get", key, SHOW_TTL] => self.get(key, true, &mut output)?,
            ["put", key, value] => self.put(key, value, None)?,
            ["put", key, value, "--ttl", ttl] => self.put(key, value, Some(ttl))?,
            ["merge", key, operand] => {
                let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
                settings::require_merge_operator(&keyspace)?;
                let operand = match self.numbers(&keyspace) {
                    Some(numbers) => numbers.operand_of("operand", OsStr::new(operand))?,
                    None => self.bytes(operand)?,
                };
                keyspace.merge(key, operand)?;
            }
            ["delete", key] => self.keyspace()?.delete(self.bytes(key)?)?,
            ["scan", ref rest @ .., SHOW_TTL] if rest.len() < 3 => self.scan(rest, true, &mut output)?,
            ["scan", ref rest @ ..] if rest.len() < 3 => self.scan(rest, false, &mut output)?,
            ["count"] => self.count("", &mut output)?,
            ["count", prefix] => self.count(prefix, &mut output)?,
            ["stats"] => {
                let stats = self.db.stats();
                output.line(&match self.json {
                    true => stats_json(&stats, &self.db.health()).to_string(),
                    false => stats.to_string().trim_end().to_owned(),
                })?;
            }
            ["keyspaces"] => self.keyspaces(&mut output)?,
            ["keyspaces", ref change @ ..] => self.change(change, &mut output)?,
            ["use", name] => {
                if !self.db.keyspaces().iter().any(|existing| existing == name) {
                    return Err(Failure::Operation(format!(
                        "there is no keyspace {name:?}; `keyspaces create {name:?}` makes it"
                    )));
                }
                self.db.existing_keyspace(name)?;
                self.keyspace = name.to_owned();
            }
            [name, ..] => return Err(Failure::Usage(unknown(name))),
        }
        output.finish()?;
        Ok(Outcome::Done)
    }

    fn keyspace(&self) -> Result<Keyspace, Failure> {
        Ok(self.db.existing_keyspace(&self.keyspace)?)
    }

    fn bytes(&self, text: &str) -> Result<Vec<u8>, Failure> {
        self.form.decode(text.as_bytes()).map_err(|problem| Failure::Usage(format!("{text:?}: {problem}")))
    }

    /// The numbers of the keyspace, if it adds such.
    fn numbers(&self, keyspace: &Keyspace) -> Option<ValueType> {
        match keyspace.merge_operator().as_deref() {
            _ if matches!(self.form, Form::Hex) => None,
            Some("uint64add") => Some(ValueType::U64),
            Some("int64add") => Some(ValueType::I64),
            _ => None,
        }
    }

    fn value(&self, keyspace: &Keyspace, text: &str) -> Result<Vec<u8>, Failure> {
        match self.numbers(keyspace) {
            Some(numbers) => numbers.value_of(OsStr::new(text)),
            None => self.bytes(text),
        }
    }

    /// A value that is no number, where numbers are usual, is shown as bytes.
    fn shown<'v>(&self, keyspace: &Keyspace, key: &[u8], value: &'v [u8]) -> Shown<'v> {
        let number = self.numbers(keyspace).and_then(|numbers| numbers.number_of(key, value).ok());
        number.map_or(Shown::Bytes(value), Shown::Number)
    }

    fn get(&self, key: &str, show_ttl: bool, output: &mut Output) -> Result<(), Failure> {
        let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
        // Value and expiry of one moment.
        let snapshot = self.db.snapshot();
        let Some(value) = snapshot.get(&keyspace, &key)? else {
            return Err(Failure::Operation(format!("not found: {}; see `scan`", self.form.encode(&key))));
        };
        let shown = self.shown(&keyspace, &key, &value);
        let mut line = String::new();
        match self.json {
            true => record::write_json(&mut line, None, &key, Some(shown), self.form),
            false => record::write_value(&mut line, shown, self.form),
        }
        if let Some(expiry) = snapshot.expires_at(&keyspace, &key)?.filter(|_| show_ttl) {
            expiry::append(&mut line, expiry, self.json);
        }
        output.line(&line)
    }

    fn put(&self, key: &str, value: &str, ttl: Option<&str>) -> Result<(), Failure> {
        let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
        let value = self.value(&keyspace, value)?;
        if let Some(ttl) = ttl {
            settings::require_ttl(&keyspace)?;
            let ttl = duration::time_to_live(ttl);
            let ttl = ttl.map_err(|problem| Failure::Usage(format!("the time to live: {problem}")))?;
            return Ok(keyspace.put_with(&key, value, &WriteOptions::new().ttl(ttl))?);
        }
        let before = keyspace.expires_at(&key)?;
        keyspace.put(&key, value)?;
        if let Some(Expiry::At(_)) = before
            && let Some(Expiry::Never) = keyspace.expires_at(&key)?
        {
            let key = self.form.encode(&key);
            let told = "had a time to live, and has none now; `put KEY VALUE --ttl TIME` gives it one";
            let _ = writeln!(io::stderr(), "esker: {key} {told}");
        }
        Ok(())
    }

    /// `rest`: a prefix and a limit, or none.
    fn scan(&self, rest: &[&str], show_ttl: bool, output: &mut Output) -> Result<(), Failure> {
        let prefix = self.bytes(rest.first().unwrap_or(&""))?;
        let limit = match rest.get(1) {
            Some(limit) => limit.parse().map_err(|_| Failure::Usage(format!("the limit {limit:?} is no number")))?,
            None => SCAN_LIMIT,
        };
        let keyspace = self.keyspace()?;
        let snapshot = self.db.snapshot();
        let mut pairs = snapshot.prefix(&keyspace, prefix);
        let mut line = String::new();
        for _ in 0..limit {
            let Some(pair) = pairs.next() else { return Ok(()) };
            let (key, value): (Slice, Slice) = pair?;
            let shown = Some(self.shown(&keyspace, &key, &value));
            line.clear();
            match self.json {
                true => record::write_json(&mut line, None, &key, shown, self.form),
                false => record::write_tsv(&mut line, &key, shown, self.form),
            }
            if show_ttl && let Some(expiry) = snapshot.expires_at(&keyspace, &key)? {
                expiry::append(&mut line, expiry, self.json);
            }
            output.line(&line)?;
        }
        Ok(())
    }

    fn count(&self, prefix: &str, output: &mut Output) -> Result<(), Failure> {
        let keys = self.keyspace()?.prefix(self.bytes(prefix)?).keys();
        let count = keys.into_iter().try_fold(0u64, |count, key| key.map(|_| count + 1))?;
        output.line(&if self.json { format!(r#"{{"count":{count}}}"#) } else { count.to_string() })
    }

    /// What changes a keyspace, or shows how.
    fn change(&mut self, words: &[&str], output: &mut Output) -> Result<(), Failure> {
        let line = match KeyspacesLine::try_parse_from(words) {
            Ok(line) => line,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => return output.line(error.to_string().trim_end()),
            Err(error) => return Err(Failure::Usage(esker_usage::summary(&error.to_string(), "keyspaces"))),
        };
        let done = line.change.apply(self.db)?;
        // The keyspace at hand keeps its new name.
        if let Some(new) = done["to"].as_str().filter(|_| done["renamed"] == *self.keyspace) {
            self.keyspace = new.to_owned();
        }
        if self.json { output.line(&done.to_string()) } else { Ok(()) }
    }

    fn keyspaces(&self, output: &mut Output) -> Result<(), Failure> {
        for keyspace in &self.db.stats().keyspaces {
            output.line(&match self.json {
                true => keyspace_json(keyspace).to_string(),
                false => one_line(&keyspace.name),
            })?;
        }
        Ok(())
    }
}

/// `esker keyspaces` with a command, from its words.
#[derive(Parser)]
#[command(name = "keyspaces", no_binary_name = true, disable_help_subcommand = true)]
struct KeyspacesLine {
    #[command(subcommand)]
    change: Change,
}

/// The list of commands, in two columns.
fn help() -> String {
    let forms = COMMANDS.map(|(name, words, what)| (format!("{name} {words}"), what));
    let width = forms.iter().map(|(form, _)| form.len()).max().unwrap_or(0);
    let lines = forms.map(|(form, what)| format!("{form:width$}  {what}\n"));
    lines.concat() + HELP_END
}

fn unknown(name: &str) -> String {
    let forms: Vec<String> = COMMANDS
        .iter()
        .filter(|(known, ..)| *known == name)
        .map(|(known, words, _)| format!("`{}`", format!("{known} {words}").trim_end()))
        .collect();
    match forms.is_empty() {
        true => format!("there is no command {name:?}; see `help`"),
        false => format!("`{name}` takes other words: {}; see `help`", forms.join(" or ")),
    }
}

/// The words of a line. Within quotes a space is part of the word, and `\"` a quote; every other
/// escape is left for the form of keys.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut in_quotes = false;
    let mut characters = line.trim_end_matches('\r').chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_quotes = !in_quotes;
                word.get_or_insert_default();
            }
            '\\' => match characters.next() {
                Some('"') => word.get_or_insert_default().push('"'),
                next => {
                    let word = word.get_or_insert_default();
                    word.push('\\');
                    word.extend(next);
                }
            },
            space if space.is_ascii_whitespace() && !in_quotes => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    if in_quotes {
        return Err("a quote is not closed; write \\\" for a quote that is meant".into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_separated_by_spaces_outside_of_quotes() {
        let split = |line: &str| words(line).unwrap();
        assert_eq!(split("  put a  \"b c\" "), ["put", "a", "b c"]);
        assert_eq!(split(r#"put "" a\"b"#), ["put", "", "a\"b"]);
        assert_eq!(split(r#"put \x00\\ "a\x20\"b""#), ["put", r"\x00\\", r#"a\x20"b"#]);
        assert_eq!(split("get\ta\r"), ["get", "a"]);
        assert_eq!(split(r"get a\"), ["get", r"a\"]);
        assert!(words("get \"a").is_err());
        assert!(split("").is_empty());
    }
}
