//! A thread that creates a keyspace, writes its number there and beside the numbers, in one batch,
//! and drops the keyspace, again and again.
//!
//! So what is in the keyspace is the number beside it, or nothing; a handle of before says that the
//! keyspace was dropped, but for snapshots of before.

use super::stored::number;
use super::{Opened, Shared};
use crate::Checked;
use crate::random::Random;
use esker::{Keyspace, KeyspaceOptions, Snapshot};
use std::sync::atomic::Ordering;

/// The keyspace that comes and goes, and the key of its number.
const PASSING: &str = "passing";
const GENERATION: &[u8] = b"generation";

impl Opened {
    /// What is in the keyspace that comes and goes is what is beside it, and not of those that were
    /// dropped; nothing is missing that was before a drop.
    pub(super) fn check_passing(&self, dropped: u64) -> Checked<()> {
        let beside = number(self.numbers.get(GENERATION))?;
        if beside < dropped {
            return Err(format!("keyspace {dropped} was dropped, and what was written before is at {beside}"));
        }
        match self.db.existing_keyspace(PASSING) {
            Ok(passing) => match number(passing.get(GENERATION))? {
                0 => Ok(()),
                found if found == beside && found > dropped => Ok(()),
                found => Err(format!("keyspace {found} is there, beside {beside}, and {dropped} was dropped")),
            },
            Err(esker::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(format!("the keyspace that comes and goes: {error}")),
        }
    }

    /// Creates a keyspace, writes to it and beside it, and drops it, again and again.
    pub(super) fn pass(&self, shared: &Shared, mut random: Random) -> Checked<()> {
        let mut generation = 0u64;
        let mut before: Option<(Snapshot, Keyspace)> = None;
        while !shared.stop.load(Ordering::Acquire) {
            generation += 1;
            let failed = |error: esker::Error| format!("keyspace {generation}: {error}");
            let passing = self.db.keyspace(PASSING, KeyspaceOptions::default()).map_err(failed)?;
            if number(passing.get(GENERATION))? != 0 {
                return Err(format!("keyspace {generation} is not empty"));
            }
            let mut batch = self.db.batch();
            batch.put(&self.numbers, GENERATION, generation.to_le_bytes()).map_err(failed)?;
            batch.put(&passing, GENERATION, generation.to_le_bytes()).map_err(failed)?;
            for filler in 0..random.below(80) {
                batch.put(&passing, format!("filler{filler}"), random.bytes(100)).map_err(failed)?;
            }
            batch.commit().map_err(failed)?;
            if random.percent(30) {
                before = Some((self.db.snapshot(), passing.clone()));
            }
            self.db.drop_keyspace(PASSING).map_err(failed)?;
            shared.dropped.store(generation, Ordering::Release);
            shared.totals.drops.fetch_add(1, Ordering::Relaxed);
            match passing.get(GENERATION) {
                Err(esker::Error::KeyspaceDropped { .. }) => {}
                other => return Err(format!("keyspace {generation} was dropped, and holds {other:?}")),
            }
            if let Some((snapshot, passing)) = &before {
                let seen =
                    [number(snapshot.get(passing, GENERATION))?, number(snapshot.get(&self.numbers, GENERATION))?];
                if seen[0] == 0 || seen[0] != seen[1] {
                    return Err(format!("a snapshot sees {seen:?} of a keyspace that was dropped"));
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(random.below(5) as u64));
        }
        Ok(())
    }
}
