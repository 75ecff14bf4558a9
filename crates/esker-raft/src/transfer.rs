//! The messages that bring a snapshot from one replica to another.
//!
//! The sender begins with the manifest, and each answer says which byte the receiver lacks first:
//! at the beginning of a new transfer byte 0 of file 0, after a break where it ended. A piece that
//! is not at that place changes nothing, so that messages may be repeated and reordered.

use crate::manifest::SnapshotManifest;
use serde::{Deserialize, Serialize};

/// A place in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The number of the file in the manifest.
    pub file: u32,
    /// The byte in the file.
    pub offset: u64,
}

/// What the sender says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferRequest {
    /// This snapshot is to come.
    Begin {
        /// What it consists of.
        manifest: SnapshotManifest,
    },
    /// A piece of a file.
    Piece {
        /// Which snapshot it is of.
        snapshot: u128,
        /// Where it begins.
        place: Place,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// What the receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferReply {
    /// The first byte that it lacks.
    Wanted(Place),
    /// It lacks none, and every file has the hash that the manifest says.
    Complete,
    /// It does not know the snapshot, or its device failed; begin anew.
    Unknown,
}
