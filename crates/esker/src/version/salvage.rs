//! Reading what is left of a damaged manifest, for a repair.

use super::edit::{ManifestState, decode};
use super::file_name::manifest;
use super::manifest::{Found, HEADER_BYTES, RECORD_HEADER_BYTES, RecordSearch, check_header, read_file, record_at};
use crate::env::Env;
use crate::error::{Error, Result};
use std::path::Path;

/// What is left of a manifest.
#[derive(Debug)]
pub struct SalvagedManifest {
    /// What its intact records say together.
    pub state: ManifestState,
    /// The first place that could not be read; none if all of it could be.
    pub damage: Option<u64>,
    /// Nothing intact lies behind that place: at most the last edit is missing from the state, and perhaps only the record that vouches for it, as a power loss leaves it.
    pub ends_torn: bool,
}

/// Applies every intact record, also those behind damage. `None` if the file is missing or its first record, which has the whole state, is lost.
///
/// # Errors
/// `Unsupported` for a newer version, which this build must not touch; `Io`.
pub fn salvage(env: &dyn Env, directory: &Path, number: u64) -> Result<Option<SalvagedManifest>> {
    let path = directory.join(manifest(number));
    if !env.exists(&path)? {
        return Ok(None);
    }
    let bytes = read_file(env, &path)?;
    let mut damage = match check_header(&path, number, &bytes) {
        Ok(()) => None,
        Err(error @ Error::Unsupported { .. }) => return Err(error),
        Err(_) => Some(0),
    };
    let mut state = ManifestState::default();
    let mut offset = HEADER_BYTES;
    let mut search = RecordSearch::of(number, &bytes);
    if record_at(number, &bytes, offset).is_none() {
        return Ok(None);
    }
    while offset < bytes.len() {
        let Some(payload) = record_at(number, &bytes, offset) else {
            let is_first = damage.is_none();
            damage = damage.or(Some(offset as u64));
            match search.next_from(offset + 1) {
                Found::At(next) => offset = next,
                Found::Nothing => return Ok(Some(SalvagedManifest { state, damage, ends_torn: is_first })),
                Found::TooMuch => break,
            }
            continue;
        };
        let changes = decode(payload).unwrap_or_default();
        // Behind a lost edit, some make no sense: a table may go that never came.
        let failed = changes.iter().filter(|change| state.apply(change).is_err()).count();
        if failed > 0 || changes.is_empty() {
            damage = damage.or(Some(offset as u64));
        }
        offset += RECORD_HEADER_BYTES + payload.len();
    }
    Ok(Some(SalvagedManifest { state, damage, ends_torn: false }))
}
