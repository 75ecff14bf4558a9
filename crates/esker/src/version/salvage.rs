//! Reading what is left of a damaged manifest, for a repair.

use super::edit::{ManifestState, decode};
use super::file_name::manifest;
use super::manifest::{
    Found, HEADER_BYTES, RECORD_HEADER_BYTES, RecordSearch, check_header, read_file, record_at, voucher_bytes,
};
use crate::env::Env;
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::path::Path;

/// What is left of a manifest.
#[derive(Debug)]
pub struct SalvagedManifest {
    /// What its intact records say together.
    pub state: ManifestState,
    /// The places that could not be read, ascending; none if all of it could be.
    pub damaged: Vec<u64>,
    pub missing: Missing,
}

/// What of a manifest its state may be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No edit: all that cannot be read are records that vouch for others, as a power loss leaves
    /// them.
    Nothing,
    /// Nothing intact lies behind what cannot be read, which is more than such a record: the last
    /// edit, or one that was never reported as done.
    Last,
    /// Any number of edits.
    Any,
}

/// Applies every intact record, also those behind damage. `None` if the file is missing or its
/// first record, which has the whole state, is lost.
///
/// # Errors
/// `Unsupported` for a newer version, which this build must not touch; `Io`.
pub fn salvage(env: &dyn Env, directory: &Path, number: u64) -> Result<Option<SalvagedManifest>> {
    let path = directory.join(manifest(number));
    if !env.exists(&path)? {
        return Ok(None);
    }
    let bytes = read_file(env, &path)?;
    let mut damaged = match check_header(&path, number, &bytes) {
        Ok(()) => Vec::new(),
        Err(error @ Error::Unsupported { .. }) => return Err(error),
        Err(_) => vec![0],
    };
    let mut state = ManifestState::default();
    let mut offset = HEADER_BYTES;
    let mut search = RecordSearch::of(number, &bytes);
    if record_at(number, &bytes, offset).is_none() {
        return Ok(None);
    }
    let mut missing = if !damaged.is_empty() { Missing::Any } else { Missing::Nothing };
    while offset < bytes.len() {
        let Some(payload) = record_at(number, &bytes, offset) else {
            let next = match search.next_from(offset) {
                Found::At(next) => next,
                Found::Nothing => bytes.len(),
                Found::TooMuch => {
                    damaged.push(offset as u64);
                    missing = Missing::Any;
                    break;
                }
            };
            let is_end = next == bytes.len();
            // Behind other damage, the end may be torn: alone it would be no damage.
            if !is_end || damaged.is_empty() {
                damaged.push(offset as u64);
            }
            let vouches = match (next - offset).cmp(&voucher_bytes(&state)) {
                Ordering::Less => is_end,
                Ordering::Equal => true,
                Ordering::Greater => false,
            };
            missing = match missing {
                _ if vouches => missing,
                Missing::Nothing if is_end => Missing::Last,
                _ => Missing::Any,
            };
            offset = next;
            continue;
        };
        let changes = decode(payload).unwrap_or_default();
        // Behind a lost edit, some make no sense: a table may go that never came.
        let failed = changes.iter().filter(|change| state.apply(change).is_err()).count();
        if failed > 0 || changes.is_empty() {
            damaged.push(offset as u64);
            missing = Missing::Any;
        }
        offset += RECORD_HEADER_BYTES + payload.len();
    }
    let shared = state.shared_tables();
    if !shared.is_empty() {
        // No keyspace has them then: each names its own.
        for keyspace in state.keyspaces.values_mut() {
            keyspace.tables.retain(|number, _| !shared.contains(number));
        }
        if damaged.is_empty() {
            damaged.push(HEADER_BYTES as u64);
        }
        missing = Missing::Any;
    }
    Ok(Some(SalvagedManifest { state, damaged, missing }))
}
