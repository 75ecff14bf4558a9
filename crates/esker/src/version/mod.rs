//! What the database consists of: file names, the manifest and its edits, the runs of each
//! keyspace, and cursors over them.

pub mod cursor;
pub mod edit;
pub mod file_name;
pub mod manifest;
pub mod runs;
pub mod salvage;

#[cfg(test)]
mod example_test;
#[cfg(test)]
mod manifest_test;
#[cfg(test)]
mod runs_test;
#[cfg(test)]
mod torn_test;
