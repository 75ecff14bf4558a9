//! The manifest: a log of version edits, and the pointer to the current one.
//! `doc/format/manifest.md` draws it.
//!
//! ```text
//! manifest := header record*
//! header   := magic[8] version u32, number u64, checksum u32                         24 bytes
//! record   := checksum u32, length u32, payload[length]                              payload: an edit (`edit.rs`)
//! CURRENT  := "MANIFEST-" number " " checksum of the name in hexadecimal "\n"
//! ```
//! Every open writes a new manifest whose first record is the whole state, makes it durable, and
//! only then points `CURRENT` at it, by renaming. So the first record must be intact. Behind every
//! edit that was synced comes a record that vouches for it and changes nothing; it is the system's
//! when the edit is reported as done, and durable with the next edit. A record that is not intact
//! is damage if an intact one follows, and otherwise the torn end of the manifest: the edit was
//! never reported as done, or a power loss took the record that vouches for it
//! ([`InForce::is_torn`]). A change that only the last edit records is put into a new manifest
//! before it is reported as done (`db/background/commit_version_edit.rs`).

use super::edit::{Change, ManifestState, UnloggedChange, decode, encode};
use super::file_name::{CURRENT, CURRENT_TEMPORARY, manifest, manifest_number};
use crate::base::checksum::checksum;
use crate::base::coding::Cursor;
use crate::base::comparator::BYTEWISE;
use crate::base::key::Sequence;
use crate::env::{Env, WriteFile};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The newest version of the manifest that this build reads. It stands for the database as a whole,
/// and is written where changes are kept some of which may be lost, which builds that read
/// version 5 do not know.
pub const VERSION: u32 = 6;
/// The version that is written where readers of changes are told of settings of keyspaces, which
/// builds that read version 4 do not know.
const VERSION_WITH_SETTINGS: u32 = 5;
/// The version that is written where a keyspace has an order of its own, which earlier builds would
/// not notice, and where changes are kept, which they would not know.
const VERSION_WITH_CHANGES: u32 = 4;
/// The version that is written elsewhere: earlier builds read it.
pub const EARLIER_VERSION: u32 = 3;
const MAGIC: [u8; 8] = *b"ESKERMAN";
/// A file that is longer is not read: twenty million tables take less.
const MAX_MANIFEST_BYTES: u64 = 1 << 30;
/// The length of the header: where the first record begins.
pub const HEADER_BYTES: usize = 24;
pub(super) const RECORD_HEADER_BYTES: usize = 8;

/// The manifest of an open database.
#[derive(Debug)]
pub struct Manifest {
    number: u64,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    /// Its length when it was made.
    first_bytes: u64,
    state: ManifestState,
}

impl Manifest {
    /// Writes `state` as manifest `number` and points `CURRENT` at it. Both are durable when this
    /// returns.
    pub fn create(env: &dyn Env, directory: &Path, number: u64, state: ManifestState) -> Result<Manifest> {
        let manifest = Manifest::prepare(env, directory, number, state)?;
        point_current(env, directory, number)?;
        Ok(manifest)
    }

    /// Writes `state` as manifest `number`, durably. Nothing points at it yet.
    pub fn prepare(env: &dyn Env, directory: &Path, number: u64, mut state: ManifestState) -> Result<Manifest> {
        state.closed = None;
        let path = directory.join(manifest(number));
        let mut file = env.create(&path)?;
        file.append(&encode_header(number, version_of(&state)))?;
        let mut manifest = Manifest { number, path, file, first_bytes: 0, state };
        let snapshot = manifest.state.snapshot();
        manifest.append(&snapshot)?;
        manifest.first_bytes = manifest.file.len();
        manifest.file.sync()?;
        env.sync_dir(directory)?;
        Ok(manifest)
    }

    fn append(&mut self, changes: &[Change]) -> Result<()> {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        encode(changes, &mut record);
        seal_record(&mut record, self.number, self.file.len());
        self.file.append(&record)
    }

    /// Makes `changes` durable as one. After an error nothing is known about them, and the manifest
    /// must not be used any more.
    pub fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let mut next = self.state.clone();
        for change in changes {
            next.apply(change).map_err(|what| Error::corruption(&self.path, self.file.len(), what))?;
        }
        self.append(changes)?;
        self.file.sync()?;
        self.state = next;
        // Says that the edit before it was on the device. What it repeats does not matter.
        self.append(&[voucher(&self.state)])?;
        self.file.flush()
    }

    /// Bytes behind the first record, which is the whole state.
    pub fn appended_bytes(&self) -> u64 {
        self.file.len() - self.first_bytes
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

/// Fills the header in front of the payload in `record`, which comes to lie at `offset` of manifest
/// `number`.
fn seal_record(record: &mut [u8], number: u64, offset: u64) {
    let length = (record.len() - RECORD_HEADER_BYTES) as u32;
    record[4..8].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(number, offset, &record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
}

/// The bytes of manifest `number` with these payloads, for the tests of what reads it.
#[cfg(feature = "internals")]
pub fn file_with(number: u64, payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = encode_header(number, EARLIER_VERSION).to_vec();
    for payload in payloads {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(payload);
        seal_record(&mut record, number, bytes.len() as u64);
        bytes.extend_from_slice(&record);
    }
    bytes
}

/// Where the intact records of a manifest are, and which of them vouch for the one before: for the
/// tests that damage some of them.
#[cfg(feature = "internals")]
pub fn intact_records(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, bool)> {
    let Some(number) = bytes.get(12..20).and_then(|field| field.try_into().ok()).map(u64::from_le_bytes) else {
        return Vec::new();
    };
    let (mut search, mut records, mut from) = (RecordSearch::of(number, bytes), Vec::new(), HEADER_BYTES);
    while let Found::At(at) = search.next_from(from) {
        let Some(payload) = record_at(number, bytes, at) else { break };
        from = at + RECORD_HEADER_BYTES + payload.len();
        records.push((at..from, is_voucher(payload)));
    }
    records
}

/// The least version with which builds know all that is in the state.
fn version_of(state: &ManifestState) -> u32 {
    let is_bytewise = state.keyspaces.values().all(|keyspace| keyspace.comparator == BYTEWISE);
    match () {
        () if !state.changes_recovered.is_empty() => VERSION,
        () if state.unlogged.values().any(UnloggedChange::is_later) => VERSION_WITH_SETTINGS,
        () if !is_bytewise || state.changes_from > 0 => VERSION_WITH_CHANGES,
        () => EARLIER_VERSION,
    }
}

fn encode_header(number: u64, version: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..20].copy_from_slice(&number.to_le_bytes());
    let sum = checksum(0, 0, &bytes[..20]);
    bytes[20..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn current_line(name: &str) -> String {
    format!("{name} {:08x}\n", checksum(0, 0, name.as_bytes()))
}

/// Makes this manifest current. Durable when this returns.
pub fn point_current(env: &dyn Env, directory: &Path, number: u64) -> Result<()> {
    prepare_current(env, directory, number)?;
    switch_current(env, directory)
}

/// Writes what is to become `CURRENT`, durably but for its name. Nothing reads it.
pub fn prepare_current(env: &dyn Env, directory: &Path, number: u64) -> Result<()> {
    let mut file = env.create(&directory.join(CURRENT_TEMPORARY))?;
    file.append(current_line(&manifest(number)).as_bytes())?;
    file.sync()
}

/// Puts what was prepared in the place of `CURRENT`. After an error either may be there.
pub fn switch_current(env: &dyn Env, directory: &Path) -> Result<()> {
    env.rename(&directory.join(CURRENT_TEMPORARY), &directory.join(CURRENT))?;
    env.sync_dir(directory)
}

pub(super) fn read_file(env: &dyn Env, path: &Path) -> Result<Vec<u8>> {
    let file = env.open(path)?;
    if file.len() > MAX_MANIFEST_BYTES {
        return Err(Error::corruption(path, 0, "the file is longer than a manifest can be"));
    }
    let length = usize::try_from(file.len()).map_err(|_| Error::corruption(path, 0, "the file is too long"))?;
    let mut bytes = vec![0; length];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// The manifest that `CURRENT` names, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InForce {
    pub number: u64,
    pub state: ManifestState,
    /// It does not end with an intact record: an edit may be missing from the state that had been
    /// made.
    pub is_torn: bool,
    /// The last write by the records in front of the last one, which was appended once they were on
    /// the device. `None` if the last one is the first: then the switch to this manifest need not
    /// be there either ([`is_switched`]).
    pub vouched: Option<Sequence>,
}

/// The current manifest; `None` if there is no `CURRENT`.
pub fn read_current(env: &dyn Env, directory: &Path) -> Result<Option<InForce>> {
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
    decode_manifest(&path, number, &read_file(env, &path)?).map(Some)
}

/// The number and the length of the current manifest. While both are the same, its content is the
/// same. `None` if there is no manifest, or another one is being made current.
pub fn stamp(env: &dyn Env, directory: &Path) -> Result<Option<(u64, u64)>> {
    if !env.exists(&directory.join(CURRENT))? {
        return Ok(None);
    }
    let Some(number) = current_number(env, directory)? else { return Ok(None) };
    let path = directory.join(manifest(number));
    if !env.exists(&path)? {
        return Ok(None);
    }
    Ok(Some((number, env.open(&path)?.len())))
}

/// Whether the switch to the manifest of that number, which `CURRENT` names or has named since, is
/// on the device: the manifests before it are removed only then. Where one cannot be removed, the
/// next edit vouches for the switch.
pub fn is_switched(env: &dyn Env, directory: &Path, number: u64) -> Result<bool> {
    let is_before = |name: &String| manifest_number(name).is_some_and(|other| other < number);
    Ok(!env.list(directory)?.iter().any(is_before))
}

/// The number of the manifest that `CURRENT` names; `None` if it is damaged. It exists.
pub fn current_number(env: &dyn Env, directory: &Path) -> Result<Option<u64>> {
    let line = String::from_utf8(read_file(env, &directory.join(CURRENT))?).unwrap_or_default();
    let name = line.split(' ').next().unwrap_or_default();
    Ok(manifest_number(name).filter(|_| line == current_line(name)))
}

/// Whether `CURRENT`, which exists, has no checksum: it is LevelDB's or RocksDB's then.
pub fn is_current_of_another_engine(env: &dyn Env, directory: &Path) -> Result<bool> {
    let line = String::from_utf8(read_file(env, &directory.join(CURRENT))?).unwrap_or_default();
    Ok(line.strip_suffix('\n').and_then(manifest_number).is_some())
}

fn decode_manifest(path: &Path, number: u64, bytes: &[u8]) -> Result<InForce> {
    check_header(path, number, bytes)?;
    let mut state = ManifestState::default();
    let mut offset = HEADER_BYTES;
    let (mut ends_with_edit, mut vouched) = (false, None);
    while let Some(payload) = record_at(number, bytes, offset) {
        vouched = (offset > HEADER_BYTES).then_some(state.last_sequence);
        ends_with_edit = offset > HEADER_BYTES && !is_voucher(payload);
        offset = apply_record(path, offset, payload, &mut state)?;
    }
    if offset == HEADER_BYTES {
        return Err(Error::corruption(path, offset as u64, "the first record does not verify"));
    }
    if ends_with_edit && let Some((at, payload)) = edit_behind_lost_voucher(number, bytes, offset, &state) {
        offset = apply_record(path, at, payload, &mut state)?;
    }
    if let Some(table) = state.shared_tables().first() {
        return Err(Error::corruption(path, HEADER_BYTES as u64, format!("table {table} belongs to two keyspaces")));
    }
    // A record that ends the manifest is the last one: an intact one behind it means that it is
    // damaged, not cut short.
    match RecordSearch::of(number, bytes).next_from(offset) {
        Found::Nothing => Ok(InForce { number, state, is_torn: offset < bytes.len(), vouched }),
        Found::At(_) | Found::TooMuch => Err(Error::corruption(path, offset as u64, "a record does not verify")),
    }
}

/// Applies the record at `offset` to `state`; where the next one begins.
fn apply_record(path: &Path, offset: usize, payload: &[u8], state: &mut ManifestState) -> Result<usize> {
    let base = (offset + RECORD_HEADER_BYTES) as u64;
    for change in decode(payload).map_err(|error| error.at(path, base))? {
        state.apply(&change).map_err(|what| Error::corruption(path, base, what))?;
    }
    Ok(offset + RECORD_HEADER_BYTES + payload.len())
}

/// What says that the edit before it was on the device.
fn voucher(state: &ManifestState) -> Change {
    Change::NextFile(state.next_file)
}

/// How long the record is that vouches for the last edit.
pub(super) fn voucher_bytes(state: &ManifestState) -> usize {
    let mut payload = Vec::new();
    encode(&[voucher(state)], &mut payload);
    RECORD_HEADER_BYTES + payload.len()
}

fn is_voucher(payload: &[u8]) -> bool {
    matches!(decode(payload).as_deref(), Ok([Change::NextFile(_)]))
}

/// The last edit, if the voucher at `offset` in front of it is all that is not intact: neither was
/// synced when a power loss came, and it took the one and left the other. A voucher says nothing
/// that the edit behind it does not, so nothing is missing. With an intact record behind that edit,
/// the voucher was synced with it, and is damaged.
fn edit_behind_lost_voucher<'a>(
    number: u64,
    bytes: &'a [u8],
    offset: usize,
    state: &ManifestState,
) -> Option<(usize, &'a [u8])> {
    let at = offset + voucher_bytes(state);
    let payload = record_at(number, bytes, at).filter(|payload| !is_voucher(payload))?;
    let behind = RecordSearch::of(number, bytes).next_from(at + 1);
    matches!(behind, Found::Nothing).then_some((at, payload))
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

/// A search for intact records at any offset, in time proportional to the length of the manifest.
pub(super) struct RecordSearch<'a> {
    number: u64,
    bytes: &'a [u8],
    /// Over so many bytes checksums may still be computed.
    budget: usize,
}

/// The result of a search.
pub(super) enum Found {
    At(usize),
    Nothing,
    /// So much looks like records, and overlaps, that no engine can have written it.
    TooMuch,
}

impl<'a> RecordSearch<'a> {
    /// Edits are short and hold numbers; only names could look like records, and they are few.
    const FACTOR: usize = 64;

    pub(super) fn of(number: u64, bytes: &'a [u8]) -> RecordSearch<'a> {
        RecordSearch { number, bytes, budget: bytes.len().saturating_mul(RecordSearch::FACTOR) }
    }

    pub(super) fn next_from(&mut self, from: usize) -> Found {
        for at in from..self.bytes.len() {
            let Some((_, payload)) = split_record(self.bytes, at).filter(|(_, payload)| !payload.is_empty()) else {
                continue;
            };
            let Some(rest) = self.budget.checked_sub(payload.len()) else { return Found::TooMuch };
            self.budget = rest;
            if record_at(self.number, self.bytes, at).is_some() {
                return Found::At(at);
            }
        }
        Found::Nothing
    }
}

/// The checksum and the payload of what may be a record at `offset`.
fn split_record(bytes: &[u8], offset: usize) -> Option<(u32, &[u8])> {
    let mut cursor = Cursor::new(bytes.get(offset..)?);
    let sum = cursor.u32("").ok()?;
    let length = cursor.u32("").ok()? as usize;
    Some((sum, cursor.take(length, "").ok()?))
}

/// The payload of the intact record at `offset`. No edit is empty.
pub(super) fn record_at(number: u64, bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let (sum, payload) = split_record(bytes, offset).filter(|(_, payload)| !payload.is_empty())?;
    let covered = &bytes[offset + 4..offset + RECORD_HEADER_BYTES + payload.len()];
    (checksum(number, offset as u64, covered) == sum).then_some(payload)
}
