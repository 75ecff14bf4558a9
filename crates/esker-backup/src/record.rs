//! The records of a target's log: a backup, or a prune.
//!
//! ```text
//! record = header "\n" body
//! header = {"esker-backup":1,"kind":"backup" or "prune","number":N,"sha256":"..."}
//! body   = JSON: BackupRecord or PruneRecord
//! ```
//!
//! The hash is that of the body. The header has exactly this form, so that a change to any byte of
//! a record is found, and the kind of a record is known though its body is damaged. Fields of the
//! body that a reader does not know are ignored: what a later version adds, such as the part of a
//! change feed that follows a backup, must be of no use to a reader that does not know it, and name
//! no objects. What breaks that takes another number of format, and is refused.

use crate::error::{Error, Result};
use crate::layout;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The format that this version writes, and the only one that it reads.
pub const FORMAT: u64 = 1;

/// A file of a database, and where its bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its name in the database directory.
    pub name: String,
    /// Its length.
    pub size: u64,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// The upload that wrote the object.
    pub upload: String,
}

impl FileRecord {
    /// The name of the object with the bytes.
    pub fn object(&self) -> String {
        layout::object(&self.sha256, &self.upload)
    }
}

/// A backup. The put of this record is the moment from which it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRecord {
    /// The upload of the create that made it.
    pub upload: String,
    /// When it was made, in milliseconds since 1970 by the clock of its maker.
    pub time_ms: u64,
    /// The version of the engine.
    pub esker: String,
    /// The last write that it holds. A change feed goes on behind it.
    pub sequence: u64,
    /// The names of the keyspaces.
    pub keyspaces: Vec<String>,
    /// The directory of the database; earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The files, by name.
    pub files: Vec<FileRecord>,
}

/// A prune. Of the records before it, only those in its list exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneRecord {
    /// The identity of the prune, so that it knows its own record.
    pub upload: String,
    /// When it was made, as in a backup.
    pub time_ms: u64,
    /// The numbers of the backups that are kept, ascending.
    pub kept: Vec<u64>,
    /// The uploads on whose objects nothing may rely any more but backups that name them.
    pub condemned: Vec<String>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A backup.
    Backup(BackupRecord),
    /// A prune.
    Prune(PruneRecord),
}

/// The kind of a record, which the header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A backup.
    Backup,
    /// A prune.
    Prune,
}

/// A record that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// Its kind, if that is known for certain.
    pub kind: Option<Kind>,
    /// What is wrong.
    pub error: Error,
}

/// The last millisecond of the year 9999.
const MOST_TIME_MS: u64 = 253_402_300_799_999;

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "esker-backup")]
    format: u64,
    kind: String,
    sha256: String,
}

/// The record as the bytes of the object with this number.
pub fn encode(number: u64, record: &Record) -> Result<Vec<u8>> {
    let (kind, body) = match record {
        Record::Backup(backup) => (Kind::Backup, serde_json::to_vec(backup)),
        Record::Prune(prune) => (Kind::Prune, serde_json::to_vec(prune)),
    };
    let body = body.map_err(|error| Error::damaged(layout::record(number), error.to_string()))?;
    let mut bytes = header(number, kind, &hash(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The record in the object with this number.
pub fn decode(number: u64, bytes: &[u8]) -> std::result::Result<Record, Unreadable> {
    let object = layout::record(number);
    let unreadable = |kind, what: String| Unreadable { kind, error: Error::damaged(&object, what) };
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let (line, body) = bytes.split_at(end);
    let read: Header = serde_json::from_slice(line)
        .map_err(|error| unreadable(None, format!("its first line is not a header ({error})")))?;
    if read.format != FORMAT {
        let what = format!("format {}, and this version reads {FORMAT}", read.format);
        return Err(Unreadable { kind: None, error: Error::Unsupported { object, what } });
    }
    let Some(kind) = [Kind::Backup, Kind::Prune].into_iter().find(|kind| kind.name() == read.kind) else {
        return Err(unreadable(None, format!("its kind is {:?}", read.kind)));
    };
    if header(number, kind, &read.sha256).as_bytes() != line {
        return Err(unreadable(None, "its first line is not as it was written".into()));
    }
    if hash(body) != read.sha256 {
        return Err(unreadable(Some(kind), "its bytes do not have the hash in its first line".into()));
    }
    let record = match kind {
        Kind::Backup => serde_json::from_slice(body).map(Record::Backup),
        Kind::Prune => serde_json::from_slice(body).map(Record::Prune),
    };
    let record = record.map_err(|error| unreadable(Some(kind), format!("it cannot be understood ({error})")))?;
    let checked = match &record {
        Record::Backup(backup) => check_time(backup.time_ms).and_then(|()| check_files(&backup.files)),
        Record::Prune(prune) => check_time(prune.time_ms),
    };
    checked.map_err(|what| unreadable(Some(kind), what))?;
    Ok(record)
}

/// Refuses times that no calendar has: they are shown as dates.
fn check_time(time_ms: u64) -> std::result::Result<(), String> {
    if time_ms <= MOST_TIME_MS { Ok(()) } else { Err(format!("{time_ms} is no time")) }
}

/// Refuses names that would lead out of a directory, and sizes that cannot be: a program that can
/// write to the target can write a record with a good hash.
fn check_files(files: &[FileRecord]) -> std::result::Result<(), String> {
    for file in files {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let is_name = !file.name.is_empty() && !file.name.starts_with('.') && file.name.bytes().all(is_plain);
        if !is_name || [layout::UNFINISHED, layout::CURRENT_TEMPORARY, layout::LOCK].contains(&&*file.name) {
            return Err(format!("{:?} is not the name of a file of a database", file.name));
        }
        if !layout::is_hash(&file.sha256) || !layout::is_upload(&file.upload) {
            return Err(format!("the object of {} has no name", file.name));
        }
    }
    if files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.size)).is_none() {
        return Err("its files are longer than any can be".into());
    }
    let is_ascending = files.windows(2).all(|pair| pair[0].name < pair[1].name);
    if is_ascending { Ok(()) } else { Err("its files are not in order".into()) }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Backup => "backup",
            Kind::Prune => "prune",
        }
    }
}

fn header(number: u64, kind: Kind, sha256: &str) -> String {
    let kind = kind.name();
    format!("{{\"esker-backup\":{FORMAT},\"kind\":\"{kind}\",\"number\":{number},\"sha256\":\"{sha256}\"}}\n")
}

fn hash(bytes: &[u8]) -> String {
    layout::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup() -> Record {
        let file = |name: &str| FileRecord {
            name: name.into(),
            size: 5,
            sha256: "0123456789abcdef".repeat(4),
            upload: "0123456789abcdef".repeat(2),
        };
        Record::Backup(BackupRecord {
            upload: "0123456789abcdef".repeat(2),
            time_ms: 1,
            esker: "0.1.0".into(),
            sequence: 9,
            keyspaces: vec!["hits".into()],
            directory: Some("/data".into()),
            files: vec![file("000007.table"), file("CURRENT")],
        })
    }

    #[test]
    fn every_changed_byte_is_found() {
        let prune = Record::Prune(PruneRecord { upload: "x".into(), time_ms: 1, kept: vec![1], condemned: vec![] });
        for record in [backup(), prune] {
            let bytes = encode(3, &record).unwrap();
            assert_eq!(decode(3, &bytes).unwrap(), record);
            assert!(decode(4, &bytes).is_err(), "under another number");
            for at in 0..bytes.len() {
                for change in [1, 0x20, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= change;
                    assert!(decode(3, &changed).is_err(), "byte {at} changed by {change}");
                }
                assert!(decode(3, &bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn the_kind_is_known_though_the_body_is_damaged() {
        let mut bytes = encode(3, &backup()).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(decode(3, &bytes).unwrap_err().kind, Some(Kind::Backup));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../x", "/etc/x", "a\\b", "", ".", "..", "CHECKPOINT", "LOCK", "a/b", "C:x"] {
            let Record::Backup(mut record) = backup() else { unreachable!() };
            record.files[0].name = name.into();
            let bytes = encode(3, &Record::Backup(record)).unwrap();
            assert!(decode(3, &bytes).is_err(), "{name}");
        }
    }

    #[test]
    fn times_and_sizes_that_cannot_be_are_refused() {
        for (time_ms, size) in [(MOST_TIME_MS, 5), (MOST_TIME_MS + 1, 5), (u64::MAX, 5), (1, u64::MAX)] {
            let Record::Backup(mut record) = backup() else { unreachable!() };
            record.time_ms = time_ms;
            record.files.iter_mut().for_each(|file| file.size = size);
            let bytes = encode(3, &Record::Backup(record)).unwrap();
            assert_eq!(decode(3, &bytes).is_ok(), (time_ms, size) == (MOST_TIME_MS, 5), "{time_ms} {size}");
        }
        assert_eq!(layout::record_number(layout::record(0).strip_prefix("log/").unwrap()), None);
    }

    #[test]
    fn another_format_is_refused_as_one() {
        let bytes = encode(3, &backup()).unwrap();
        let text = String::from_utf8(bytes).unwrap().replace("\"esker-backup\":1", "\"esker-backup\":2");
        assert!(matches!(decode(3, text.as_bytes()).unwrap_err().error, Error::Unsupported { .. }));
    }

    #[test]
    fn what_a_later_version_adds_is_ignored() {
        let Record::Backup(record) = backup() else { unreachable!() };
        let mut body = serde_json::to_value(&record).unwrap();
        body["feed"] = "later".into();
        let body = serde_json::to_vec(&body).unwrap();
        let mut bytes = header(3, Kind::Backup, &hash(&body)).into_bytes();
        bytes.extend_from_slice(&body);
        assert_eq!(decode(3, &bytes).unwrap(), Record::Backup(record));
    }
}
