//! One version of a key as a point read hands it out.

use crate::base::key::{Kind, Sequence};
use crate::base::slice::Slice;

/// One version of the key that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// The write that made this version.
    pub sequence: Sequence,
    /// What the version does.
    pub kind: Kind,
    /// When it expires, in milliseconds since the Unix epoch; [`crate::base::key::NEVER`] if it does not.
    pub expiry_ms: u64,
    /// The value, or the operand of a merge; empty for a delete.
    pub value: Slice,
}
