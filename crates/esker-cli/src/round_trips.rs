//! What the target `line` of the fuzzer checks, and `esker-check/tests/fuzzed.rs` in every test
//! run: both have this file, and those that it uses, as modules of their own.

use crate::record::{self, Change, Record, Shown};
use crate::text::Form;

/// The record as a line of TSV, which has no place for the name of a keyspace.
fn tsv(record: &Record, form: Form) -> Option<String> {
    let mut line = String::new();
    match record {
        Record::Change { key, change: Change::Put(value, expiry), .. } => {
            record::write_tsv(&mut line, key, Some(Shown::Bytes(value)), form);
            expiry.iter().for_each(|expiry| record::write_tsv_expiry(&mut line, *expiry));
        }
        Record::Change { .. } => return None,
        Record::Keyspace { settings, .. } => record::write_tsv_settings(&mut line, settings),
    }
    Some(line)
}

fn json(record: &Record, form: Form) -> Option<String> {
    let mut line = String::new();
    match record {
        Record::Change { keyspace, key, change: Change::Put(value, expiry) } => {
            record::write_json(&mut line, keyspace.as_deref(), key, Some(Shown::Bytes(value)), form);
            expiry.iter().for_each(|expiry| record::write_json_expiry(&mut line, *expiry));
        }
        Record::Change { .. } => return None,
        Record::Keyspace { name, settings } => record::write_json_keyspace(&mut line, name.as_deref(), settings),
    }
    Some(line)
}

/// A line that is read is read again from what is written for it.
///
/// # Panics
/// If it is not.
pub fn check(bytes: &[u8]) {
    for form in [Form::Escaped, Form::Hex] {
        if let Ok(record) = record::parse_tsv(bytes, form)
            && let Some(line) = tsv(&record, form)
        {
            assert_eq!(record::parse_tsv(line.as_bytes(), form), Ok(record), "{line}");
        }
        if let Ok(record) = record::parse_json(bytes, form)
            && let Some(line) = json(&record, form)
        {
            assert_eq!(record::parse_json(line.as_bytes(), form), Ok(record), "{line}");
        }
        let _ = record::parse_raw(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_form_come_back() {
        for line in ["k\tv", "\\x00\t\\t", "6b\t76", r#"{"key":"k","value":"v"}"#, r#"{"keyspace":"a"}"#, "", "{"] {
            check(line.as_bytes());
        }
    }
}
