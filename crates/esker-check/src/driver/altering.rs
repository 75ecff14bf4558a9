//! Other names and settings for keyspaces that are in use.

use super::Driver;
use super::world::World;
use crate::Checked;
use crate::model::{Operator, Ttl};
use crate::operators::supply;
use crate::state::lives;
use esker::Error;

impl Driver {
    /// Gives a keyspace its other name.
    pub(super) fn rename(&mut self, keyspace: usize) -> Checked<()> {
        let opened = self.opened.as_ref().ok_or("the database is not open")?;
        let role = &mut self.world.cast[keyspace];
        let before = role.present_name();
        role.renamed = !role.renamed;
        let after = role.present_name();
        let failed = |what: String| format!("{before} cannot be renamed to {after}: {what}");
        opened.keyspaces[keyspace].rename(&after).map_err(|error| failed(error.to_string()))?;
        let names = opened.db.keyspaces();
        if *opened.keyspaces[keyspace].name() != *after || names.contains(&before) || !names.contains(&after) {
            return Err(failed(format!("{names:?}")));
        }
        self.world.model.rename(keyspace, &after);
        Ok(())
    }

    /// Gives a keyspace other settings. With no reader it must be possible.
    pub(super) fn alter(&mut self, keyspace: usize, operator: Operator, ttl: Ttl, alone: bool) -> Checked<()> {
        let before = self.world.model.settings(keyspace);
        let is_sound = |operator: Operator| !matches!(operator, Operator::Fragile | Operator::Shelved);
        // Entries may have an expiry already, and what expires is not known if the clock went back.
        let is_given_up = before.1 != Ttl::Off && ttl == Ttl::Off || operator == Operator::None && before.0 != operator;
        if self.world.back || is_given_up || !is_sound(before.0) || !is_sound(operator) {
            return Ok(());
        }
        if alone {
            self.cursors = Default::default();
            self.iterators = Default::default();
            self.snapshots = Default::default();
        }
        let World { cast, model, .. } = &mut self.world;
        let opened = self.opened.as_ref().ok_or("the database is not open")?;
        let outcome = match supply(operator).filter(|_| before.0 != operator) {
            Some(operator) => opened.keyspaces[keyspace].set_shared_merge_operator(operator),
            None if ttl != before.1 => opened.keyspaces[keyspace].set_ttl(lives(ttl)),
            None => return Ok(()),
        };
        // One at a time.
        let now = if operator != before.0 { (operator, before.1) } else { (before.0, ttl) };
        match outcome {
            Ok(()) => {
                model.alter(keyspace, now);
                (cast[keyspace].operator, cast[keyspace].ttl) = now;
                Ok(())
            }
            // Readers see what is below operands; and what an operator failed on once stays.
            Err(Error::InvalidArgument { .. }) if !alone || model.has_failed(keyspace) => Ok(()),
            Err(error) => Err(format!("{before:?} of keyspace {keyspace} cannot become {now:?}: {error}")),
        }
    }
}
