//! Incremental backups of Esker databases, in a directory or in any store of the `object_store`
//! crate.
//!
//! A backup copies the files of a checkpoint that the target lacks, under the hash of their
//! content. Tables and blob files never change, so that backups share most of them. A backup exists
//! from one put on, and is gone with another; no call of a create, a prune or a restore that is cut
//! short leaves half of one. See [`Target`], and `doc/backup.md` in the repository.
//!
//! Modules, each importing only from those above it: `error`; `transfers`, `layout`; `record`,
//! `store`; `moving`, `log`; `origin`; `create`, `prune`, `verify`; `restore`, `source`, `forward`;
//! `target`.

mod create;
mod error;
mod forward;
mod layout;
mod log;
mod moving;
mod origin;
mod prune;
mod record;
mod restore;
mod source;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod transfers;
mod verify;

pub use error::{Error, Result};
pub use forward::Forward;
pub use prune::{Prune, PruneReport};
pub use source::Create;
pub use target::{Backup, Backups, Created, Restored, Target};
pub use transfers::{Cancel, Phase, Progress, Transfers};
pub use verify::{BackupDamage, VerifyReport};
