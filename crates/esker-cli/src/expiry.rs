//! How long a value lives, behind the value.

use crate::duration;
use crate::record;
use esker::Expiry;
use std::time::SystemTime;

/// Appends it to a line: as the time that is left for people, as the time of the expiry to JSON.
pub fn append(line: &mut String, expiry: Expiry, json: bool) {
    match expiry {
        _ if json => record::write_json_expiry(line, expiry),
        Expiry::Never => line.push_str("\tnever"),
        Expiry::At(at) => {
            line.push('\t');
            line.push_str(&duration::text(at.duration_since(SystemTime::now()).unwrap_or_default()));
        }
    }
}
