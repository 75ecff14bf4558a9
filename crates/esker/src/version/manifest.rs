//! The manifest: a log of edits, and the pointer to the one in force. `doc/format/manifest.md` has the picture.
//!
//! ```text
//! manifest := header record*
//! header   := magic[8] version u32, number u64, checksum u32                         24 bytes
//! record   := checksum u32, length u32, payload[length]                              payload: an edit (`edit.rs`)
//! CURRENT  := "MANIFEST-" number " " checksum of the name in hexadecimal "\n"
//! ```
//! Every open writes a new manifest whose first record is the whole state, makes it durable, and only then points `CURRENT` at it, by renaming. So the
//! first record must be intact; a later one that is not intact was never reported as done, and ends the manifest. Should it have been, by damage, then
//! files that the remaining state needs are gone, and opening says so.

use super::edit::{Change, ManifestState, decode, encode};
use super::file_name::{CURRENT, CURRENT_TEMPORARY, manifest, manifest_number};
use crate::base::checksum::checksum;
use crate::base::coding::Cursor;
use crate::env::{Env, WriteFile};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The newest version of the manifest that this build reads, and the one it writes. It stands for the database as a whole.
pub const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"ESKERMAN";
pub(super) const HEADER_BYTES: usize = 24;
pub(super) const RECORD_HEADER_BYTES: usize = 8;

/// The manifest of an open database.
#[derive(Debug)]
pub struct Manifest {
    number: u64,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    state: ManifestState,
}

impl Manifest {
    /// Writes `state` as manifest `number` and points `CURRENT` at it. Both are durable when this returns.
    pub fn create(env: &dyn Env, directory: &Path, number: u64, mut state: ManifestState) -> Result<Manifest> {
        state.closed = None;
        let path = directory.join(manifest(number));
        let mut file = env.create(&path)?;
        file.append(&encode_header(number))?;
        let mut manifest = Manifest { number, path, file, state };
        let snapshot = manifest.state.snapshot();
        manifest.append(&snapshot)?;
        env.sync_dir(directory)?;
        point_current(env, directory, number)?;
        Ok(manifest)
    }

    fn append(&mut self, changes: &[Change]) -> Result<()> {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        encode(changes, &mut record);
        let length = (record.len() - RECORD_HEADER_BYTES) as u32;
        record[4..8].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(self.number, self.file.len(), &record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.file.append(&record)?;
        self.file.sync()
    }

    /// Makes `changes` durable as one. After an error nothing is known about them, and the manifest must not be used any more.
    pub fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let mut next = self.state.clone();
        for change in changes {
            next.apply(change).map_err(|what| Error::corruption(&self.path, self.file.len(), what))?;
        }
        self.append(changes)?;
        self.state = next;
        Ok(())
    }

    /// What the manifest says now.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

fn encode_header(number: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&number.to_le_bytes());
    let sum = checksum(0, 0, &bytes[..20]);
    bytes[20..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn current_line(name: &str) -> String {
    format!("{name} {:08x}\n", checksum(0, 0, name.as_bytes()))
}

fn point_current(env: &dyn Env, directory: &Path, number: u64) -> Result<()> {
    let temporary = directory.join(CURRENT_TEMPORARY);
    let mut file = env.create(&temporary)?;
    file.append(current_line(&manifest(number)).as_bytes())?;
    file.sync()?;
    drop(file);
    env.rename(&temporary, &directory.join(CURRENT))?;
    env.sync_dir(directory)
}

pub(super) fn read_file(env: &dyn Env, path: &Path) -> Result<Vec<u8>> {
    let file = env.open(path)?;
    let length = usize::try_from(file.len()).map_err(|_| Error::corruption(path, 0, "the file is too long"))?;
    let mut bytes = vec![0; length];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// The state that the manifest in force describes, and its number; `None` if there is no `CURRENT`.
pub fn read_current(env: &dyn Env, directory: &Path) -> Result<Option<(u64, ManifestState)>> {
    let current = directory.join(CURRENT);
    if !env.exists(&current)? {
        return Ok(None);
    }
    let number = current_number(env, directory)?
        .ok_or_else(|| Error::corruption(&current, 0, "expected the name of a manifest and its checksum"))?;
    let name = manifest(number);
    let path = directory.join(&name);
    if !env.exists(&path)? {
        return Err(Error::corruption(&current, 0, format!("{name} is missing")));
    }
    Ok(Some((number, decode_manifest(&path, number, &read_file(env, &path)?)?)))
}

/// The number of the manifest that `CURRENT` names; `None` if it is damaged. It exists.
pub fn current_number(env: &dyn Env, directory: &Path) -> Result<Option<u64>> {
    let line = String::from_utf8(read_file(env, &directory.join(CURRENT))?).unwrap_or_default();
    let name = line.split(' ').next().unwrap_or_default();
    Ok(manifest_number(name).filter(|_| line == current_line(name)))
}

fn decode_manifest(path: &Path, number: u64, bytes: &[u8]) -> Result<ManifestState> {
    check_header(path, number, bytes)?;
    let mut state = ManifestState::default();
    let mut offset = HEADER_BYTES;
    while let Some(payload) = record_at(number, bytes, offset) {
        let base = (offset + RECORD_HEADER_BYTES) as u64;
        for change in decode(payload).map_err(|error| error.at(path, base))? {
            state.apply(&change).map_err(|what| Error::corruption(path, base, what))?;
        }
        offset += RECORD_HEADER_BYTES + payload.len();
    }
    if offset == HEADER_BYTES {
        return Err(Error::corruption(path, offset as u64, "the first record does not verify"));
    }
    // A record that ends the manifest is the last one: an intact one behind it means that it is damaged, not cut short.
    if (offset + 1..bytes.len()).any(|at| record_at(number, bytes, at).is_some_and(|payload| !payload.is_empty())) {
        return Err(Error::corruption(path, offset as u64, "a record does not verify"));
    }
    Ok(state)
}

pub(super) fn check_header(path: &Path, number: u64, bytes: &[u8]) -> Result<()> {
    let header = bytes.get(..HEADER_BYTES).ok_or_else(|| Error::corruption(path, 0, "the file is too short"))?;
    let (body, sum) = header.split_at(20);
    if body[..8] != MAGIC || checksum(0, 0, body).to_le_bytes() != sum {
        return Err(Error::corruption(path, 0, "the header does not verify"));
    }
    let mut cursor = Cursor::new(&body[8..]);
    let version = cursor.u32("a version").map_err(|error| error.at(path, 8))?;
    if version > VERSION {
        return Err(Error::Unsupported { path: path.to_path_buf(), version, supported: VERSION });
    }
    if cursor.u64("a number").map_err(|error| error.at(path, 8))? != number {
        return Err(Error::corruption(path, 12, "the manifest has another manifest's number"));
    }
    Ok(())
}

/// The payload of the intact record at `offset`.
pub(super) fn record_at(number: u64, bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let mut cursor = Cursor::new(bytes.get(offset..)?);
    let sum = cursor.u32("").ok()?;
    let length = cursor.u32("").ok()? as usize;
    let payload = cursor.take(length, "").ok()?;
    let covered = &bytes[offset + 4..offset + RECORD_HEADER_BYTES + length];
    (checksum(number, offset as u64, covered) == sum).then_some(payload)
}
