//! One key and value as a line, the form that `scan` and `dump` write and `load` reads.
//!
//! ```text
//! TSV  := key TAB value                 key and value escaped or hexadecimal (text.rs), hence without tab and line end
//! JSON := {"key": text, "value": text}  the same texts as JSON strings
//!         "keyspace": name              where it is not the one that was asked for
//!         "op": "put" | "merge" | "delete"     put if left out; delete has no value
//!         "value": number               the 8 bytes of an unsigned number, little-endian
//!       | {"keyspace": name, "merge_operator": name | null}    a keyspace, also if it is empty
//! ```

use crate::text::Form;
use serde::Deserialize;
use serde_json::Value;

/// What is printed for a value.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// The bytes, in the form chosen.
    Bytes(&'a [u8]),
    /// The number they stand for.
    Number(i128),
}

/// Appends a value.
pub fn write_value(line: &mut String, value: Shown<'_>, form: Form) {
    match value {
        Shown::Bytes(bytes) => form.encode_into(bytes, line),
        Shown::Number(number) => line.push_str(&number.to_string()),
    }
}

/// Appends a TSV line without its end; without a value only the key.
pub fn write_tsv(line: &mut String, key: &[u8], value: Option<Shown<'_>>, form: Form) {
    form.encode_into(key, line);
    if let Some(value) = value {
        line.push('\t');
        write_value(line, value, form);
    }
}

/// Appends a JSON object.
pub fn write_json(line: &mut String, keyspace: Option<&str>, key: &[u8], value: Option<Shown<'_>>, form: Form) {
    line.push('{');
    if let Some(name) = keyspace {
        line.push_str("\"keyspace\":");
        push_json_text(line, name);
        line.push(',');
    }
    line.push_str("\"key\":");
    push_json_text(line, &form.encode(key));
    match value {
        None => {}
        Some(Shown::Bytes(bytes)) => {
            line.push_str(",\"value\":");
            push_json_text(line, &form.encode(bytes));
        }
        Some(Shown::Number(number)) => line.push_str(&format!(",\"value\":{number}")),
    }
    line.push('}');
}

/// Appends the JSON object that stands for a keyspace.
pub fn write_json_keyspace(line: &mut String, name: &str, operator: Option<&str>) {
    line.push_str("{\"keyspace\":");
    push_json_text(line, name);
    line.push_str(",\"merge_operator\":");
    match operator {
        Some(operator) => push_json_text(line, operator),
        None => line.push_str("null"),
    }
    line.push('}');
}

fn push_json_text(line: &mut String, text: &str) {
    line.push_str(&Value::from(text).to_string());
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    /// A change of one key.
    Change {
        /// Where, if the line says so.
        keyspace: Option<String>,
        /// The key.
        key: Vec<u8>,
        /// What happens to it.
        change: Change,
    },
    /// A keyspace exists.
    Keyspace {
        /// Its name.
        name: String,
        /// The name of its merge operator.
        merge_operator: Option<String>,
    },
}

/// What happens to a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets this value.
    Put(Vec<u8>),
    /// It is merged with this operand.
    Merge(Vec<u8>),
    /// It goes.
    Delete,
}

/// Reads a TSV line, which always puts.
pub fn parse_tsv(line: &[u8], form: Form) -> Result<Record, String> {
    let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
        return Err("no tab between key and value".into());
    };
    let (key, value) = (&line[..tab], &line[tab + 1..]);
    if value.contains(&b'\t') {
        return Err("more than one tab: write \\x09 for a tab in a key or value".into());
    }
    let key = form.decode(key).map_err(|problem| format!("key: {problem}"))?;
    let value = form.decode(value).map_err(|problem| format!("value: {problem}"))?;
    Ok(Record::Change { keyspace: None, key, change: Change::Put(value) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRecord {
    keyspace: Option<String>,
    merge_operator: Option<String>,
    key: Option<String>,
    value: Option<Value>,
    op: Option<String>,
}

/// Reads a JSON object.
pub fn parse_json(line: &[u8], form: Form) -> Result<Record, String> {
    let parsed: JsonRecord =
        serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))?;
    let Some(key) = parsed.key else {
        return match (parsed.keyspace, parsed.value, parsed.op) {
            (Some(name), None, None) => Ok(Record::Keyspace { name, merge_operator: parsed.merge_operator }),
            _ => Err("no field \"key\"".into()),
        };
    };
    if parsed.merge_operator.is_some() {
        return Err("\"merge_operator\" belongs to a line without \"key\"".into());
    }
    let key = form.decode(key.as_bytes()).map_err(|problem| format!("key: {problem}"))?;
    let value = match parsed.value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(form.decode(text.as_bytes()).map_err(|problem| format!("value: {problem}"))?),
        Some(Value::Number(number)) => match number.as_u64() {
            Some(number) => Some(number.to_le_bytes().to_vec()),
            None => return Err(format!("value {number} is not an unsigned number of 64 bits")),
        },
        Some(_) => return Err("value is neither a string nor a number".into()),
    };
    let change = match (parsed.op.as_deref(), value) {
        (None | Some("put"), Some(value)) => Change::Put(value),
        (Some("merge"), Some(operand)) => Change::Merge(operand),
        (Some("delete"), None) => Change::Delete,
        (Some("delete"), Some(_)) => return Err("a delete has no value".into()),
        (None | Some("put" | "merge"), None) => return Err("no field \"value\"".into()),
        (Some(other), _) => return Err(format!("unknown op {other:?}: put, merge or delete")),
    };
    Ok(Record::Change { keyspace: parsed.keyspace, key, change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(keyspace: Option<&str>, key: &[u8], value: &[u8]) -> Record {
        Record::Change { keyspace: keyspace.map(Into::into), key: key.into(), change: Change::Put(value.into()) }
    }

    #[test]
    fn lines_read_back_as_written() {
        let all: Vec<u8> = (0..=255).collect();
        for form in [Form::Escaped, Form::Hex] {
            for (key, value) in [(&all[..], &all[..]), (b"", b""), (b"\"", b"\\x41")] {
                let mut line = String::new();
                write_tsv(&mut line, key, Some(Shown::Bytes(value)), form);
                assert_eq!(parse_tsv(line.as_bytes(), form), Ok(put(None, key, value)));
                line.clear();
                write_json(&mut line, Some("a \"b\""), key, Some(Shown::Bytes(value)), form);
                assert_eq!(parse_json(line.as_bytes(), form), Ok(put(Some("a \"b\""), key, value)));
            }
        }
        let mut line = String::new();
        write_json_keyspace(&mut line, "hits", Some("uint64add"));
        let keyspace = Record::Keyspace { name: "hits".into(), merge_operator: Some("uint64add".into()) };
        assert_eq!(parse_json(line.as_bytes(), Form::Escaped), Ok(keyspace));
    }

    #[test]
    fn operations_and_numbers() {
        let read = |line: &str| parse_json(line.as_bytes(), Form::Escaped);
        let change = |change| Ok(Record::Change { keyspace: None, key: b"k".to_vec(), change });
        assert_eq!(read(r#"{"key":"k","op":"delete"}"#), change(Change::Delete));
        assert_eq!(
            read(r#"{"key":"k","op":"merge","value":258}"#),
            change(Change::Merge(vec![2, 1, 0, 0, 0, 0, 0, 0]))
        );
    }

    #[test]
    fn unclear_lines_are_refused() {
        for line in [
            "",
            "x",
            "[]",
            "{}",
            r#"{"key":"k"}"#,
            r#"{"key":1,"value":"v"}"#,
            r#"{"key":"k","value":-1}"#,
            r#"{"key":"k","value":["v"]}"#,
            r#"{"key":"k","value":"v","op":"move"}"#,
            r#"{"value":"v"}"#,
            r#"{"key":"k","value":"v","op":"delete"}"#,
            r#"{"key":"k","value":"v","vlaue":"w"}"#,
            r#"{"key":"\\q","value":""}"#,
        ] {
            assert!(parse_json(line.as_bytes(), Form::Escaped).is_err(), "{line}");
        }
        for line in ["key", "a\tb\tc", "\\q\tv"] {
            assert!(parse_tsv(line.as_bytes(), Form::Escaped).is_err(), "{line}");
        }
    }
}
