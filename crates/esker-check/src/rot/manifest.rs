//! The records of the manifest in force, and what damage to some of them takes away.

use crate::simulated::MEMORY_PATH;
use esker::env::mem::MemEnv;
use esker::internals::manifest_records;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The manifest that `CURRENT` names.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    pub path: PathBuf,
    pub number: u64,
    /// Its intact records, and which of them vouch for the one before.
    records: Vec<(Range<usize>, bool)>,
}

impl InForce {
    /// `None` if there is none, or if it is damaged.
    pub fn of(env: &MemEnv) -> Option<InForce> {
        let line = env.file_bytes(&Path::new(MEMORY_PATH).join("CURRENT"))?;
        let name = String::from_utf8(line).ok()?.split(' ').next()?.to_string();
        let number = name.strip_prefix("MANIFEST-")?.parse().ok()?;
        let path = Path::new(MEMORY_PATH).join(name);
        let records = manifest_records(&env.file_bytes(&path)?);
        Some(InForce { path, number, records })
    }

    /// Where its last edit ends.
    pub fn end_of_edits(&self) -> usize {
        self.records.iter().rev().find(|(_, vouches)| !vouches).map_or(0, |(range, _)| range.end)
    }

    /// Where the edits begin that damage to those bytes can make read as never written: the last
    /// one, if no voucher is behind it, or all from the first that is hit, if "a sector [...], a
    /// file that was cut short, or an older copy" takes every record behind it too. Damage of the
    /// first record, and of any that an intact one follows, is an error.
    pub fn lost_from(&self, damaged: &Range<u64>) -> Option<usize> {
        let hits = |range: &Range<usize>| (range.start as u64) < damaged.end && damaged.start < range.end as u64;
        let first = self.records.iter().position(|(range, _)| hits(range))?;
        let (of_first, behind) = (&self.records[first..], &self.records[first + 1..]);
        if first == 0 || behind.iter().any(|(range, _)| !hits(range)) {
            return None;
        }
        of_first.iter().find(|(_, vouches)| !vouches).map(|(range, _)| range.start)
    }
}
