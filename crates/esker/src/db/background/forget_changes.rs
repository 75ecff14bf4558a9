//! Giving up changes that were kept for long enough.

use crate::db::background::commit_version_edit::try_renew_manifest;
use crate::db::files::remover;
use crate::db::state::inner::Inner;
use crate::error::Result;
use crate::version::edit::Change;

/// Whether there are any.
pub fn are_expendable(inner: &Inner) -> bool {
    let Some(log) = inner.log.as_ref().filter(|log| log.keeps_changes()) else { return false };
    log.changes_from(inner.options.clock.now_ms()).is_some()
}

/// Gives them up, and removes their segments. The caller holds the job lock, or is alone. `keep`:
/// as in [`remover::release_segments`].
pub fn forget(inner: &Inner, keep: bool) -> Result<()> {
    let Some(log) = inner.log.as_ref().filter(|log| log.keeps_changes()) else { return Ok(()) };
    let Some((sequence, segment)) = log.changes_from(inner.options.clock.now_ms()) else { return Ok(()) };
    // Before the segments go: a reader finds that they are gone, and never a log with a hole.
    match try_renew_manifest(inner, &[Change::ChangesFrom { sequence, segment }]) {
        // What room the segments would make, a full disk has none to say so.
        Err(error) if error.is_disk_full() && inner.error_state.check().is_ok() => return Ok(()),
        result => result?,
    }
    log.forget_changes(segment);
    let floor = inner.manifest.lock().as_ref().map_or(0, |manifest| manifest.state().log_floor);
    remover::release_segments(inner, floor, keep)
}
