#![no_main]
#![allow(dead_code)]

#[path = "../../crates/esker-cli/src/record.rs"]
mod record;
#[path = "../../crates/esker-cli/src/text.rs"]
mod text;

use record::{Change, Record, Shown, parse_json, parse_tsv, write_json, write_tsv};
use text::Form;

// A line that is read is read again from what is written for it.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for form in [Form::Escaped, Form::Hex] {
        if let Ok(Record::Change { key, change: Change::Put(value), .. }) = parse_tsv(bytes, form) {
            let mut line = String::new();
            write_tsv(&mut line, &key, Some(Shown::Bytes(&value)), form);
            let expected = Record::Change { keyspace: None, key, change: Change::Put(value) };
            assert_eq!(parse_tsv(line.as_bytes(), form), Ok(expected));
        }
        if let Ok(Record::Change { keyspace, key, change: Change::Put(value) }) = parse_json(bytes, form) {
            let mut line = String::new();
            write_json(&mut line, keyspace.as_deref(), &key, Some(Shown::Bytes(&value)), form);
            let expected = Record::Change { keyspace, key, change: Change::Put(value) };
            assert_eq!(parse_json(line.as_bytes(), form), Ok(expected));
        }
    }
});
