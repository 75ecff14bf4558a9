//! The file `STATE`, which says what the slots of a state machine hold. It is replaced as a whole
//! by renaming a new one over it, so that every change of several slots is one step.
//!
//! ```text
//! STATE    format u8 = 1, XXH3 of the rest u64, postcard of the contents
//! contents slot of the database u32; snapshot: optional (slot u32, manifest);
//!          snapshot that is being received: optional (slot u32, manifest)
//! manifest optional (term, node, index); membership as it is stored; list of
//!          (name, length in bytes, XXH3 of 128 bits)
//! ```

use crate::encoding::{Reader, record};
use crate::error::{Error, Result};
use crate::manifest::SnapshotManifest;
use esker::env::Env;
use serde::{Deserialize, Serialize};
use std::path::Path;
use twox_hash::XxHash3_64;

const NAME: &str = "STATE";
const NEW: &str = "STATE.new";
/// More is not read: no manifest comes near it.
const MOST_BYTES: u64 = 1 << 30;

/// What the slots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// The slot of the database.
    pub database: u32,
    /// The slot of the newest snapshot.
    pub snapshot: Option<(u32, SnapshotManifest)>,
    /// The slot of a snapshot of which a part has arrived.
    pub incoming: Option<(u32, SnapshotManifest)>,
}

/// Reads the file; nothing if there is none.
pub(crate) fn read(env: &dyn Env, root: &Path) -> Result<Option<Contents>> {
    let path = root.join(NAME);
    if !env.exists(&path)? {
        return Ok(None);
    }
    let file = env.open(&path)?;
    if file.len() > MOST_BYTES {
        return Err(Error::damaged(NAME, format!("it has {} bytes", file.len())));
    }
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
    file.read_at(0, &mut bytes)?;
    let mut reader = Reader::new(NAME, &bytes)?;
    let hash = reader.u64()?;
    let encoded = reader.rest();
    if XxHash3_64::oneshot(&encoded) != hash {
        return Err(Error::damaged(NAME, "its checksum is another one"));
    }
    let contents = postcard::from_bytes(&encoded);
    contents.map(Some).map_err(|error| Error::damaged(NAME, error.to_string()))
}

/// Replaces the file, durably.
pub(crate) fn write(env: &dyn Env, root: &Path, contents: &Contents) -> Result<()> {
    let encoded = postcard::to_stdvec(contents).map_err(|error| Error::invalid(error.to_string()))?;
    let mut bytes = record();
    bytes.extend_from_slice(&XxHash3_64::oneshot(&encoded).to_le_bytes());
    bytes.extend_from_slice(&encoded);
    let mut file = env.create(&root.join(NEW))?;
    file.append(&bytes)?;
    file.sync()?;
    env.rename(&root.join(NEW), &root.join(NAME))?;
    Ok(env.sync_dir(root)?)
}
