//! A state machine that begins with the contents of a database: that of a backup, or of a program
//! that had no cluster.

use crate::apply::Apply;
use crate::database::begin_with;
use crate::error::{Error, Result};
use crate::slots::{Slots, create_directory};
use crate::state_file::{self, Contents};
use crate::state_machine::{StateMachine, StateOptions};
use crate::types::{LeaderId, LogId, Membership, StoredMembership};
use esker::{Db, ManualClock};
use openraft::BasicNode;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

impl<A: Apply> StateMachine<A> {
    /// Begins a state machine in the new `directory` with the contents of the database in `source`,
    /// which stays as it is, as the state of a cluster whose only member is `member`. It has a
    /// snapshot, which other members get when they are added.
    ///
    /// The log of the replica begins behind the position that is returned, with
    /// [`LogStore::begin_behind`](crate::LogStore::begin_behind). Sessions of an earlier cluster
    /// end, as their numbers could come again. `prepare` may change the contents before they count.
    ///
    /// # Errors
    /// `InvalidArgument` if there is a state machine in the directory; as [`Db::open`] for the
    /// source, which nothing else may have open; `Stopped` if it is the state of a replica that had
    /// diverged. After an error the directory is to be removed.
    pub fn import(
        directory: impl AsRef<Path>,
        source: impl AsRef<Path>,
        member: (u64, BasicNode),
        apply: A,
        options: StateOptions,
        prepare: impl FnOnce(&Db) -> esker::Result<()>,
    ) -> Result<(StateMachine<A>, LogId)> {
        let directory = directory.as_ref();
        let (env, how) = options.parts();
        create_directory(&*env, directory)?;
        let lock = env.lock(&directory.join("LOCK"))?;
        if state_file::read(&*env, directory)?.is_some() {
            return Err(Error::invalid(format!(
                "{} has a state already; import into a new directory",
                directory.display()
            )));
        }
        let last = LogId::new(LeaderId { term: 1, node_id: member.0 }, 1);
        let nodes = BTreeMap::from([member.clone()]);
        let membership = Membership::new(vec![BTreeSet::from([member.0])], nodes);
        let membership = membership.map_err(|error| Error::invalid(error.to_string()))?;
        let slots = Slots::new(Arc::clone(&env), directory);
        let slot = slots.allocate()?;
        // Nothing has expired for the copy: the time of the cluster decides that.
        let options = how.options.clone().env(Arc::clone(&env)).clock(Arc::new(ManualClock::new(0)));
        let from = Db::open(source, options.clone())?;
        from.checkpoint(slot.path())?;
        from.close()?;
        let db = Db::open(slot.path(), options.clone())?;
        prepare(&db)?;
        begin_with(&db, &last, &StoredMembership::new(Some(last), membership))?;
        db.close()?;
        state_file::write(&*env, directory, &Contents { database: slot.number(), ..Contents::default() })?;
        drop((slot, slots, lock));
        let machine = StateMachine::open(directory, apply, StateOptions::of(env, how))?;
        machine.build()?;
        Ok((machine, last))
    }
}
