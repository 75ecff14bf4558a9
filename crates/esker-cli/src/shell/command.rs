//! What a line of the shell says, and doing it.

use crate::arguments::ValueType;
use crate::failure::{Failure, one_line};
use crate::keyspaces::keyspace_json;
use crate::output::Output;
use crate::record::{self, Shown};
use crate::text::Form;
use esker::{Db, Keyspace, Slice};
use std::ffi::OsStr;

const HELP: &str = "\
get KEY                 the value of a key
put KEY VALUE           set it
delete KEY              remove a key
merge KEY OPERAND       combine, by the keyspace's merge operator
scan [PREFIX [LIMIT]]   keys and values in order; 20 of them, unless another limit is given
count [PREFIX]          how many keys there are
stats                   sizes, shape and health
keyspaces               what is in the database
use KEYSPACE            read and write another keyspace
help, quit              this list; the end
Words are separated by spaces, and \"...\" is one word. Keys and values are text, \\xNN is a byte; a number where the
keyspace adds numbers (uint64add, int64add).";

/// So many lines fit on a screen.
const SCAN_LIMIT: u64 = 20;

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
            ["help"] => output.line(HELP)?,
            ["get", key] => self.get(key, &mut output)?,
            ["put", key, value] => {
                let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
                let value = self.value(&keyspace, value)?;
                keyspace.put(key, value)?;
            }
            ["merge", key, operand] => {
                let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
                let operand = self.value(&keyspace, operand)?;
                keyspace.merge(key, operand)?;
            }
            ["delete", key] => self.keyspace()?.delete(self.bytes(key)?)?,
            ["scan"] => self.scan("", SCAN_LIMIT, &mut output)?,
            ["scan", prefix] => self.scan(prefix, SCAN_LIMIT, &mut output)?,
            ["scan", prefix, limit] => {
                let limit = limit.parse().map_err(|_| Failure::Usage(format!("the limit {limit:?} is no number")))?;
                self.scan(prefix, limit, &mut output)?;
            }
            ["count"] => self.count("", &mut output)?,
            ["count", prefix] => self.count(prefix, &mut output)?,
            ["stats"] => output.line(self.db.stats().to_string().trim_end())?,
            ["keyspaces"] => self.keyspaces(&mut output)?,
            ["use", name] => {
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
            Some(numbers) => numbers.bytes_of("value", OsStr::new(text)),
            None => self.bytes(text),
        }
    }

    /// A value that is no number, where numbers are usual, is shown as bytes.
    fn shown<'v>(&self, keyspace: &Keyspace, key: &[u8], value: &'v [u8]) -> Shown<'v> {
        let number = self.numbers(keyspace).and_then(|numbers| numbers.number_of(key, value).ok());
        number.map_or(Shown::Bytes(value), Shown::Number)
    }

    fn get(&self, key: &str, output: &mut Output) -> Result<(), Failure> {
        let (keyspace, key) = (self.keyspace()?, self.bytes(key)?);
        let Some(value) = keyspace.get(&key)? else {
            return Err(Failure::Operation(format!("not found: {}; see `scan`", self.form.encode(&key))));
        };
        let shown = self.shown(&keyspace, &key, &value);
        let mut line = String::new();
        match self.json {
            true => record::write_json(&mut line, None, &key, Some(shown), self.form),
            false => record::write_value(&mut line, shown, self.form),
        }
        output.line(&line)
    }

    fn scan(&self, prefix: &str, limit: u64, output: &mut Output) -> Result<(), Failure> {
        let keyspace = self.keyspace()?;
        let mut pairs = keyspace.prefix(self.bytes(prefix)?);
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
            output.line(&line)?;
        }
        Ok(())
    }

    fn count(&self, prefix: &str, output: &mut Output) -> Result<(), Failure> {
        let keys = self.keyspace()?.prefix(self.bytes(prefix)?).keys();
        let count = keys.into_iter().try_fold(0u64, |count, key| key.map(|_| count + 1))?;
        output.line(&if self.json { format!(r#"{{"count":{count}}}"#) } else { count.to_string() })
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

fn unknown(name: &str) -> String {
    const COMMANDS: [&str; 10] =
        ["get", "put", "delete", "merge", "scan", "count", "stats", "keyspaces", "use", "quit"];
    match COMMANDS.contains(&name) {
        true => format!("`{name}` takes other words; see `help`"),
        false => format!("there is no command {name:?}; see `help`"),
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
