#![no_main]
#![allow(dead_code)]

#[path = "../../crates/esker-cli/src/duration.rs"]
mod duration;
#[path = "../../crates/esker-cli/src/failure.rs"]
mod failure;
#[path = "../../crates/esker-cli/src/record.rs"]
mod record;
#[path = "../../crates/esker-cli/src/settings.rs"]
mod settings;
#[path = "../../crates/esker-cli/src/text.rs"]
mod text;

use record::{Change, Record, Shown};
use text::Form;

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

// A line that is read is read again from what is written for it.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
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
});
