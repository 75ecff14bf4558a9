//! Copies a file to a second name: by a hard link, or byte by byte where the file system has none.

use crate::env::{Env, ReadFile};
use crate::error::Result;
use std::path::Path;
use std::sync::Arc;

/// Copies, and compares, in pieces of this size.
const COPY_BYTES: u64 = 1 << 20;

/// Calls `piece` with all bytes of the file, in order.
fn read(source: &dyn ReadFile, mut piece: impl FnMut(u64, &[u8]) -> Result<bool>) -> Result<()> {
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < source.len() {
        buffer.resize(COPY_BYTES.min(source.len() - offset) as usize, 0);
        source.read_at(offset, &mut buffer)?;
        if !piece(offset, &buffer)? {
            break;
        }
        offset += buffer.len() as u64;
    }
    Ok(())
}

/// Gives the file `from` the second name `to`, which nothing has. Where that does not work, returns
/// the file, open: whatever becomes of its name, it can be copied.
pub fn link_or_open(env: &dyn Env, from: &Path, to: &Path) -> Result<Option<Arc<dyn ReadFile>>> {
    if link(env, from, to)? { Ok(None) } else { env.open(from).map(Some) }
}

/// Gives the file `from` the second name `to`, which nothing has. Returns whether that works; if
/// not, nothing has that name.
pub fn link(env: &dyn Env, from: &Path, to: &Path) -> Result<bool> {
    if env.hard_link(from, to).is_ok() {
        return Ok(true);
    }
    // A link that was made but not reported would be written through, into the original.
    if env.exists(to)? {
        env.remove(to)?;
    }
    Ok(false)
}

/// As [`link`], if the file still has the known length. It has another one if the directory was
/// replaced by that of another database meanwhile.
pub fn link_same(env: &dyn Env, from: &Path, to: &Path, bytes: u64) -> Result<bool> {
    if !link(env, from, to)? {
        return Ok(false);
    }
    let is_same = env.open(to)?.len() == bytes;
    if !is_same {
        env.remove(to)?;
    }
    Ok(is_same)
}

/// Writes the bytes of `source` to the file `to`, durably but for its name.
pub fn copy(env: &dyn Env, source: &dyn ReadFile, to: &Path) -> Result<()> {
    let mut copy = env.create(to)?;
    read(source, |_, bytes| copy.append(bytes).map(|()| true))?;
    copy.sync()
}

/// Whether two files have the same bytes.
pub fn is_same(env: &dyn Env, one: &Path, other: &Path) -> Result<bool> {
    let (one, other) = (env.open(one)?, env.open(other)?);
    let mut same = one.len() == other.len();
    let mut buffer = Vec::new();
    if same {
        read(&*one, |offset, bytes| {
            buffer.resize(bytes.len(), 0);
            other.read_at(offset, &mut buffer)?;
            same = buffer == bytes;
            Ok(same)
        })?;
    }
    Ok(same)
}
