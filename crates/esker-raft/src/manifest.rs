//! What a snapshot consists of: the files of a checkpoint, and the position that it has.

use crate::encoding::{decode_membership, encode_membership};
use crate::error::{Error, Result};
use crate::slots::COPY_BYTES;
use crate::types::{LeaderId, LogId, SnapshotMeta, StoredMembership};
use esker::env::Env;
use serde::{Deserialize, Serialize};
use std::path::Path;
use twox_hash::XxHash3_128;

/// No file system of those that the engine runs on takes a longer name.
const MOST_NAME_BYTES: usize = 255;

/// The list of the files of a snapshot. A replica that receives it can tell which bytes it still
/// lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotManifest {
    /// Term, node and index of the last entry that the snapshot holds.
    last: Option<(u64, u64, u64)>,
    /// The membership as of that entry, in the form that the state machine stores.
    membership: Vec<u8>,
    /// The files, by name.
    files: Vec<SnapshotFile>,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// Its name, without directory.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// XXH3, of 128 bits, of its bytes.
    pub hash: u128,
}

impl SnapshotManifest {
    /// The manifest of the checkpoint in `directory`. Tables and blob files that `known` has with
    /// the same length are not read: they never change once a checkpoint has them.
    pub(crate) fn of(
        env: &dyn Env,
        directory: &Path,
        position: (Option<LogId>, &StoredMembership),
        known: &[SnapshotFile],
    ) -> Result<SnapshotManifest> {
        let mut names = env.list(directory)?;
        names.retain(|name| name != "LOCK");
        names.sort();
        let mut files = Vec::new();
        for name in names {
            let bytes = env.open(&directory.join(&name))?.len();
            let same = known.iter().find(|file| is_immutable(&name) && file.name == name && file.bytes == bytes);
            let hash = match same {
                Some(file) => file.hash,
                None => hash_of(env, &directory.join(&name))?,
            };
            files.push(SnapshotFile { name, bytes, hash });
        }
        let last = position.0.map(|id| (id.committed_leader_id().term, id.committed_leader_id().node_id, id.index()));
        Ok(SnapshotManifest { last, membership: encode_membership(position.1)?, files })
    }

    /// The files, by name.
    pub fn files(&self) -> &[SnapshotFile] {
        &self.files
    }

    /// The length of all files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// The last entry that the snapshot holds.
    pub fn last_log_id(&self) -> Option<LogId> {
        self.last.map(|(term, node_id, index)| LogId::new(LeaderId { term, node_id }, index))
    }

    /// What openraft says of the snapshot.
    ///
    /// # Errors
    /// `Damaged` if the membership does not have its form.
    pub fn meta(&self) -> Result<SnapshotMeta> {
        let last_membership = decode_membership(&self.membership)?;
        Ok(SnapshotMeta { last_log_id: self.last_log_id(), last_membership })
    }

    /// Tells two manifests apart.
    pub(crate) fn identity(&self) -> Result<u128> {
        let encoded = postcard::to_stdvec(self);
        Ok(XxHash3_128::oneshot(&encoded.map_err(|error| Error::invalid(error.to_string()))?))
    }

    /// Refuses what came from elsewhere and names anything but files of a directory.
    pub(crate) fn check(&self) -> Result<()> {
        self.meta()?;
        let mut before: Option<&str> = None;
        for SnapshotFile { name, .. } in &self.files {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            let is_named = !name.is_empty() && name.len() <= MOST_NAME_BYTES;
            if !is_plain || !is_named || name.starts_with('.') || name == "LOCK" {
                let what = format!("{:?} is no name of a file of a snapshot", esker::escape_key(name.as_bytes()));
                return Err(Error::damaged("the manifest of a snapshot", what));
            }
            if before.is_some_and(|before| before >= name.as_str()) {
                return Err(Error::damaged("the manifest of a snapshot", format!("{name} is not in its place")));
            }
            before = Some(name);
        }
        Ok(())
    }
}

/// Whether a file of that name keeps its bytes, so that it may be linked.
pub(crate) fn is_immutable(name: &str) -> bool {
    name.ends_with(".table") || name.ends_with(".blob")
}

/// The hash of a file, which is read piece by piece.
pub(crate) fn hash_of(env: &dyn Env, path: &Path) -> Result<u128> {
    let file = env.open(path)?;
    let mut hasher = XxHash3_128::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < file.len() {
        let left = usize::try_from(file.len() - offset).unwrap_or(COPY_BYTES);
        let piece = &mut buffer[..left.min(COPY_BYTES)];
        file.read_at(offset, piece)?;
        hasher.write(piece);
        offset += piece.len() as u64;
    }
    Ok(hasher.finish_128())
}
