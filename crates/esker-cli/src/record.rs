//! Keys and values as lines, the form that `scan` and `dump` write and `load` reads.
//!
//! ```text
//! TSV  := key TAB value [TAB expiry]    key and value escaped or hexadecimal (text.rs), hence without tab and line end
//!       | '\keyspace' (TAB name '=' setting)*      of the keyspace that is loaded, before its entries
//! JSON := {"key": text, "value": text}  the same texts as JSON strings
//!         "keyspace": name              where it is not the one that was requested
//!         "op": "put" | "merge" | "delete"     put if left out; delete has no value
//!         "value": number               its 8 bytes, little-endian, with a sign if it is below 0
//!         "expires_at": expiry          of a put
//!       | {"keyspace": name, settings}  a keyspace, also if it is empty; without name, the one that was requested
//! expiry   := NUMBER | 'never'          milliseconds since 1970, not counting leap seconds; without one, a put gets the
//!                                       time to live that is usual in its keyspace
//! settings := "merge_operator": name | null    "comparator": name    "ttl": 'on' | NUMBER    "compaction_style": style
//!                                       those of the engine, where left out; the number is the default in milliseconds
//! style    := 'lazy-leveling' | 'leveled' | 'tiered' | 'fifo:' BYTES
//! ```
//!
//! A dump has settings and expiries where they are not the usual ones: that of a plain keyspace is
//! nothing but keys and values.

use crate::settings::{self, Settings};
use crate::text::Form;
use esker::Expiry;
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

/// How a line of TSV with settings begins: as no escaped or hexadecimal key does.
const SETTINGS_MARK: &str = "\\keyspace";
const NEVER: &str = "never";

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

/// Appends the expiry to a TSV line with a value.
pub fn write_tsv_expiry(line: &mut String, expiry: Expiry) {
    line.push('\t');
    match millis(expiry) {
        Some(millis) => line.push_str(&millis.to_string()),
        None => line.push_str(NEVER),
    }
}

/// Appends the TSV line with the settings of a keyspace, without its end.
pub fn write_tsv_settings(line: &mut String, settings: &Settings) {
    line.push_str(SETTINGS_MARK);
    let Settings { merge_operator, comparator, ttl, compaction_style } = settings;
    let fields = [
        ("merge_operator", merge_operator.clone()),
        ("comparator", comparator.clone()),
        ("ttl", ttl.and_then(settings::ttl_text)),
        ("compaction_style", compaction_style.map(settings::style_text)),
    ];
    for (name, setting) in fields {
        if let Some(setting) = setting {
            line.push_str(&format!("\t{name}={}", Form::Escaped.encode(setting.as_bytes())));
        }
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

/// Adds the expiry to a JSON object, which is the end of the line.
pub fn write_json_expiry(line: &mut String, expiry: Expiry) {
    line.pop();
    match millis(expiry) {
        Some(millis) => line.push_str(&format!(",\"expires_at\":{millis}}}")),
        None => line.push_str(&format!(",\"expires_at\":\"{NEVER}\"}}")),
    }
}

/// Appends the JSON object that stands for a keyspace; without name, for the one that is loaded.
pub fn write_json_keyspace(line: &mut String, name: Option<&str>, settings: &Settings) {
    line.push('{');
    if let Some(name) = name {
        line.push_str("\"keyspace\":");
        push_json_text(line, name);
        line.push(',');
    }
    line.push_str("\"merge_operator\":");
    match &settings.merge_operator {
        Some(operator) => push_json_text(line, operator),
        None => line.push_str("null"),
    }
    if let Some(comparator) = &settings.comparator {
        line.push_str(",\"comparator\":");
        push_json_text(line, comparator);
    }
    if let Some(ttl) = settings.ttl.and_then(settings::ttl_text) {
        line.push_str(",\"ttl\":");
        if ttl == "on" { push_json_text(line, &ttl) } else { line.push_str(&ttl) }
    }
    if let Some(style) = settings.compaction_style {
        line.push_str(",\"compaction_style\":");
        push_json_text(line, &settings::style_text(style));
    }
    line.push('}');
}

fn push_json_text(line: &mut String, text: &str) {
    line.push_str(&Value::from(text).to_string());
}

/// The milliseconds since 1970; none if it never expires.
pub fn millis(expiry: Expiry) -> Option<u64> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(at) => {
            Some(at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
        }
    }
}

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    if text == NEVER {
        return Ok(Expiry::Never);
    }
    let millis: u64 = text
        .parse()
        .map_err(|_| format!("expiry {text:?} is neither a number of milliseconds since 1970 nor \"{NEVER}\""))?;
    // Later than the system can say is as good as never.
    Ok(UNIX_EPOCH.checked_add(Duration::from_millis(millis)).map_or(Expiry::Never, Expiry::At))
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
        /// Its name, if it is not the one that is loaded.
        name: Option<String>,
        /// What it is created with.
        settings: Settings,
    },
}

/// What happens to a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets this value, until then if the line says so.
    Put(Vec<u8>, Option<Expiry>),
    /// It is merged with this operand.
    Merge(Vec<u8>),
    /// It goes.
    Delete,
}

/// Reads a TSV line.
pub fn parse_tsv(line: &[u8], form: Form) -> Result<Record, String> {
    let mut fields = line.split(|&byte| byte == b'\t');
    let key = fields.next().unwrap_or_default();
    if key == SETTINGS_MARK.as_bytes() {
        return parse_tsv_settings(fields);
    }
    let Some(value) = fields.next() else {
        return Err("no tab between key and value".into());
    };
    let expiry = match (fields.next(), fields.next()) {
        (None, _) => None,
        (Some(expiry), None) => Some(
            parse_expiry(&String::from_utf8_lossy(expiry))
                .map_err(|problem| format!("{problem}; write \\x09 for a tab in a key or value, or load with --raw"))?,
        ),
        _ => return Err("more than two tabs: write \\x09 for a tab in a key or value, or load with --raw".into()),
    };
    let key = form.decode(key).map_err(|problem| format!("key: {problem}; or load with --raw"))?;
    let value = form.decode(value).map_err(|problem| format!("value: {problem}; or load with --raw"))?;
    Ok(Record::Change { keyspace: None, key, change: Change::Put(value, expiry) })
}

/// Reads a line of key, tab and value in which every byte stands for itself, tabs of the value too.
pub fn parse_raw(line: &[u8]) -> Result<Record, String> {
    let tab = line.iter().position(|&byte| byte == b'\t').ok_or("no tab between key and value")?;
    let (key, value) = (line[..tab].to_vec(), line[tab + 1..].to_vec());
    Ok(Record::Change { keyspace: None, key, change: Change::Put(value, None) })
}

fn parse_tsv_settings<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Result<Record, String> {
    let mut settings = Settings::default();
    for field in fields {
        let field = String::from_utf8_lossy(field);
        let (name, setting) = field.split_once('=').ok_or_else(|| format!("setting {field:?} has no value"))?;
        let setting = Form::Escaped.decode(setting.as_bytes())?;
        let setting = String::from_utf8(setting).map_err(|_| format!("setting {name:?} is not UTF-8"))?;
        match name {
            "merge_operator" => settings.merge_operator = Some(setting),
            "comparator" => settings.comparator = Some(setting),
            "ttl" => settings.ttl = Some(settings::parse_ttl(&setting)?),
            "compaction_style" => settings.compaction_style = Some(settings::parse_style(&setting)?),
            _ => return Err(format!("unknown setting {name:?}; a newer esker may have written it")),
        }
    }
    Ok(Record::Keyspace { name: None, settings })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRecord {
    keyspace: Option<String>,
    merge_operator: Option<Value>,
    comparator: Option<String>,
    ttl: Option<Value>,
    compaction_style: Option<String>,
    key: Option<String>,
    value: Option<Value>,
    op: Option<String>,
    expires_at: Option<Value>,
}

/// The text of a JSON string or number.
fn scalar_text(what: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("{what} is neither a string nor a number")),
    }
}

/// Reads a JSON object.
pub fn parse_json(line: &[u8], form: Form) -> Result<Record, String> {
    let parsed: JsonRecord =
        serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))?;
    let Some(key) = parsed.key else {
        return parse_json_keyspace(parsed);
    };
    let of_keyspace = parsed.merge_operator.is_some() || parsed.comparator.is_some() || parsed.ttl.is_some();
    if of_keyspace || parsed.compaction_style.is_some() {
        return Err(
            "\"merge_operator\", \"comparator\", \"ttl\" and \"compaction_style\" belong to a line without \"key\""
                .into(),
        );
    }
    let key = form.decode(key.as_bytes()).map_err(|problem| format!("key: {problem}"))?;
    let value = match parsed.value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(form.decode(text.as_bytes()).map_err(|problem| format!("value: {problem}"))?),
        Some(Value::Number(number)) => match number.as_u64().or(number.as_i64().map(i64::cast_unsigned)) {
            Some(number) => Some(number.to_le_bytes().to_vec()),
            None => return Err(format!("value {number} is not a whole number of 64 bits")),
        },
        Some(_) => return Err("value is neither a string nor a number".into()),
    };
    let expiry = match &parsed.expires_at {
        None | Some(Value::Null) => None,
        Some(expiry) => Some(parse_expiry(&scalar_text("\"expires_at\"", expiry)?)?),
    };
    let change = match (parsed.op.as_deref(), value, expiry) {
        (None | Some("put"), Some(value), expiry) => Change::Put(value, expiry),
        (Some("merge"), Some(operand), None) => Change::Merge(operand),
        (Some("delete"), None, None) => Change::Delete,
        (Some("delete"), Some(_), _) => return Err("a delete has no value".into()),
        (None | Some("put" | "merge"), None, _) => return Err("no field \"value\"".into()),
        (Some("merge" | "delete"), _, Some(_)) => return Err("\"expires_at\" belongs to a put".into()),
        (Some(other), ..) => return Err(format!("unknown op {other:?}: put, merge or delete")),
    };
    Ok(Record::Change { keyspace: parsed.keyspace, key, change })
}

fn parse_json_keyspace(parsed: JsonRecord) -> Result<Record, String> {
    let says_nothing = parsed.keyspace.is_none()
        && parsed.merge_operator.is_none()
        && parsed.comparator.is_none()
        && parsed.ttl.is_none()
        && parsed.compaction_style.is_none();
    if says_nothing || parsed.value.is_some() || parsed.op.is_some() || parsed.expires_at.is_some() {
        return Err("no field \"key\"".into());
    }
    let merge_operator = match parsed.merge_operator {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err("\"merge_operator\" is neither a string nor null".into()),
    };
    let ttl = parsed.ttl.filter(|ttl| !ttl.is_null()).map(|ttl| settings::parse_ttl(&scalar_text("\"ttl\"", &ttl)?));
    let settings = Settings {
        merge_operator,
        comparator: parsed.comparator,
        ttl: ttl.transpose()?,
        compaction_style: parsed.compaction_style.as_deref().map(settings::parse_style).transpose()?,
    };
    Ok(Record::Keyspace { name: parsed.keyspace, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(keyspace: Option<&str>, key: &[u8], value: &[u8]) -> Record {
        Record::Change { keyspace: keyspace.map(Into::into), key: key.into(), change: Change::Put(value.into(), None) }
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
        let plain = Settings { merge_operator: Some("uint64add".into()), ..Settings::default() };
        write_json_keyspace(&mut line, Some("hits"), &plain);
        assert_eq!(line, r#"{"keyspace":"hits","merge_operator":"uint64add"}"#);
        let keyspace = Record::Keyspace { name: Some("hits".into()), settings: plain };
        assert_eq!(parse_json(line.as_bytes(), Form::Escaped), Ok(keyspace));
    }

    #[test]
    fn settings_and_expiries_read_back_as_written() {
        use esker::{CompactionStyle, Ttl};
        let day = Some(Duration::from_secs(86_400));
        for (ttl, style) in [(None, None), (Some(None), Some(CompactionStyle::Tiered)), (Some(day), None)] {
            let settings = Settings {
                merge_operator: ttl.map(|_| "stringappend:09".into()),
                comparator: ttl.map(|_| "reverse-bytewise".into()),
                ttl: ttl.map(|default| Ttl::Enabled { default }),
                compaction_style: style,
            };
            let expected =
                |name: Option<&str>| Record::Keyspace { name: name.map(Into::into), settings: settings.clone() };
            let mut line = String::new();
            write_tsv_settings(&mut line, &settings);
            assert_eq!(parse_tsv(line.as_bytes(), Form::Hex), Ok(expected(None)), "{line}");
            // Where all is as usual there is no line without name.
            for name in [Some("a"), None].into_iter().filter(|name| name.is_some() || ttl.is_some()) {
                line.clear();
                write_json_keyspace(&mut line, name, &settings);
                assert_eq!(parse_json(line.as_bytes(), Form::Escaped), Ok(expected(name)), "{line}");
            }
        }
        for expiry in [Expiry::Never, Expiry::At(UNIX_EPOCH + Duration::from_millis(1_700_000_000_001))] {
            let change = Change::Put(b"v".into(), Some(expiry));
            let expected = Ok(Record::Change { keyspace: None, key: b"k".into(), change });
            let mut line = String::new();
            write_tsv(&mut line, b"k", Some(Shown::Bytes(b"v")), Form::Escaped);
            write_tsv_expiry(&mut line, expiry);
            assert_eq!(parse_tsv(line.as_bytes(), Form::Escaped), expected, "{line}");
            line.clear();
            write_json(&mut line, None, b"k", Some(Shown::Bytes(b"v")), Form::Escaped);
            write_json_expiry(&mut line, expiry);
            assert_eq!(parse_json(line.as_bytes(), Form::Escaped), expected, "{line}");
        }
    }

    #[test]
    fn raw_lines_are_taken_as_they_are() {
        let expected =
            Record::Change { keyspace: None, key: b"C:\\x".into(), change: Change::Put(b"\\q\t".into(), None) };
        assert_eq!(parse_raw(b"C:\\x\t\\q\t"), Ok(expected));
        assert!(parse_raw(b"no tab").is_err());
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
        assert_eq!(
            read(r#"{"key":"k","op":"merge","value":-2}"#),
            change(Change::Merge(vec![254, 255, 255, 255, 255, 255, 255, 255]))
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
            r#"{"key":"k","value":1.5}"#,
            r#"{"key":"k","value":-9223372036854775809}"#,
            r#"{"key":"k","value":["v"]}"#,
            r#"{"key":"k","value":"v","op":"move"}"#,
            r#"{"value":"v"}"#,
            r#"{"key":"k","value":"v","op":"delete"}"#,
            r#"{"key":"k","value":"v","vlaue":"w"}"#,
            r#"{"key":"\\q","value":""}"#,
            r#"{"key":"k","value":"v","expires_at":"soon"}"#,
            r#"{"key":"k","value":"v","expires_at":-1}"#,
            r#"{"key":"k","op":"merge","value":"v","expires_at":1}"#,
            r#"{"key":"k","op":"delete","expires_at":1}"#,
            r#"{"key":"k","value":"v","ttl":1}"#,
            r#"{"keyspace":"k","ttl":0}"#,
            r#"{"keyspace":"k","compaction_style":"best"}"#,
            r#"{"keyspace":"k","merge_operator":3}"#,
            r#"{"expires_at":1}"#,
        ] {
            assert!(parse_json(line.as_bytes(), Form::Escaped).is_err(), "{line}");
        }
        for line in ["key", "a\tb\tc", "a\tb\t1\t2", "\\q\tv", "\\keyspace\tttl", "\\keyspace\tcolour=red"] {
            assert!(parse_tsv(line.as_bytes(), Form::Escaped).is_err(), "{line}");
        }
    }
}
