//! The names of the objects of a target, and the identity of an upload.
//!
//! ```text
//! esker-backup           nothing; the first create puts it
//! log/NUMBER             a record: a backup, or a prune (`record.rs`); ten digits or more
//! objects/HASH-UPLOAD    the bytes of a file; the SHA-256 of them, and the upload that wrote them
//! uploads/UPLOAD         the intent of a create that has not ended
//! uploads/UPLOAD.alive   put again and again while that create goes on
//! ```

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What shows that the store puts an object only if there is none, when it is told to.
pub const MARK: &str = "esker-backup";
/// The records.
pub const LOG: &str = "log";
/// The contents of files.
pub const OBJECTS: &str = "objects";
/// The intents.
pub const UPLOADS: &str = "uploads";
/// The file that makes the engine refuse a directory as an unfinished copy, as of a checkpoint.
pub const UNFINISHED: &str = "CHECKPOINT";
/// The file of the engine's lock on a directory.
pub const LOCK: &str = "LOCK";
/// The file without which a directory is no database.
pub const CURRENT: &str = "CURRENT";
/// What becomes [`CURRENT`] by renaming.
pub const CURRENT_TEMPORARY: &str = "CURRENT.tmp";
/// What the name of a sign of life has behind that of the intent.
const ALIVE: &str = ".alive";

/// The name of the record with this number.
pub fn record(number: u64) -> String {
    format!("{LOG}/{number:010}")
}

/// The number of the record with this file name.
pub fn record_number(file_name: &str) -> Option<u64> {
    let number = file_name.parse().ok()?;
    // One record, one name. They begin at 1.
    (number > 0 && record(number).strip_prefix("log/") == Some(file_name)).then_some(number)
}

/// The name of the object with this content, written by this upload.
pub fn object(hash: &str, upload: &str) -> String {
    format!("{OBJECTS}/{hash}-{upload}")
}

/// The hash and the upload of the object with this file name.
pub fn object_parts(file_name: &str) -> Option<(&str, &str)> {
    file_name.split_once('-').filter(|(hash, upload)| is_hash(hash) && is_upload(upload))
}

/// The name of the intent of an upload.
pub fn intent(upload: &str) -> String {
    format!("{UPLOADS}/{upload}")
}

/// The name of the sign of life of an upload.
pub fn alive(upload: &str) -> String {
    format!("{UPLOADS}/{upload}{ALIVE}")
}

/// The upload that a file in `uploads` is of, and whether the file is the intent itself.
pub fn upload_of(file_name: &str) -> Option<(&str, bool)> {
    let (upload, is_intent) = file_name.strip_suffix(ALIVE).map_or((file_name, true), |upload| (upload, false));
    is_upload(upload).then_some((upload, is_intent))
}

/// Whether this is a SHA-256 as it is written here.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && is_lower_hex(text)
}

/// Whether this is the identity of an upload.
pub fn is_upload(text: &str) -> bool {
    text.len() == 32 && is_lower_hex(text)
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// A new identity: the time in microseconds, so that names sort by it, and 64 random bits. The
/// intent is put only if no object has its name, so that two uploads never have the same one.
pub fn new_upload() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut random = RandomState::new().build_hasher();
    random.write_u128(since.as_nanos());
    random.write_u32(std::process::id());
    format!("{:016x}{:016x}", since.as_micros() as u64, random.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_parts() {
        assert_eq!(record(7), "log/0000000007");
        assert_eq!(record_number("0000000007"), Some(7));
        assert_eq!(record_number("12345678901"), Some(12_345_678_901));
        for wrong in ["7", "+000000007", "0000000007#1", "", "00000000007"] {
            assert_eq!(record_number(wrong), None, "{wrong}");
        }
        let (hash, upload) = ("0123456789abcdef".repeat(4), new_upload());
        let name = object(&hash, &upload);
        assert_eq!(object_parts(name.strip_prefix("objects/").unwrap()), Some((&*hash, &*upload)));
        assert_eq!(object_parts(&format!("{}-{upload}", hash.to_uppercase())), None);
        assert_eq!(upload_of(intent(&upload).strip_prefix("uploads/").unwrap()), Some((&*upload, true)));
        assert_eq!(upload_of(alive(&upload).strip_prefix("uploads/").unwrap()), Some((&*upload, false)));
        assert_ne!(new_upload(), new_upload());
    }
}
