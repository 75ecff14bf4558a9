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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;
    use crate::key_value::KeyValue;
    use crate::log_store::LogStore;
    use esker::env::Env;
    use esker::env::mem::{CrashMode, MemEnv};
    use esker::{KeyspaceOptions, Options};
    use openraft::storage::RaftLogStorage;

    fn state_options(env: &Arc<dyn Env>) -> StateOptions {
        StateOptions::default().env(Arc::clone(env)).executor(Executor::InPlace)
    }

    fn import(env: &Arc<dyn Env>, source: &str) -> Result<(StateMachine<KeyValue>, LogId)> {
        let apply = KeyValue::new().keyspace("names", KeyspaceOptions::default());
        let member = (7, BasicNode::new("there"));
        StateMachine::import("state", source, member, apply, state_options(env), |db| {
            db.existing_keyspace("names")?.put("more", "added")
        })
    }

    fn log(env: &Arc<dyn Env>, directory: &str) -> LogStore {
        let db = Db::open(directory, Options::default().env(Arc::clone(env))).unwrap();
        LogStore::open(&db, 7, Executor::InPlace).unwrap()
    }

    /// The contents, the position and the membership are there, also after a power loss, and the
    /// log begins behind them.
    #[tokio::test]
    async fn an_import_is_durable_and_done_once() {
        let memory = MemEnv::new();
        let env: Arc<dyn Env> = Arc::new(memory.clone());
        let source = Db::open("source", Options::default().env(Arc::clone(&env))).unwrap();
        source.keyspace("names", KeyspaceOptions::default()).unwrap().put("a", "1").unwrap();
        source.close().unwrap();
        let (machine, last) = import(&env, "source").unwrap();
        log(&env, "log").begin_behind(last).unwrap();
        assert!(import(&env, "source").is_err(), "the directory is in use");
        drop(machine);
        let env: Arc<dyn Env> = Arc::new(memory.crash(&CrashMode::LoseAll, 1));
        let error = import(&env, "source").map(drop).unwrap_err();
        assert!(error.to_string().contains("new directory"), "{error}");
        let apply = KeyValue::new().keyspace("names", KeyspaceOptions::default());
        let machine = StateMachine::open("state", apply, state_options(&env)).unwrap();
        let (applied, membership) = machine.database().applied();
        assert_eq!((applied, membership.log_id()), (Some(last), &Some(last)));
        assert_eq!(membership.membership().voter_ids().collect::<Vec<_>>(), [7]);
        let names = machine.database().db().existing_keyspace("names").unwrap();
        assert_eq!(names.get("a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(names.get("more").unwrap().as_deref(), Some(&b"added"[..]));
        assert_eq!(machine.snapshot().map(|files| files.manifest().last_log_id()), Some(Some(last)));
        let mut log = log(&env, "log");
        let state = log.get_log_state().await.unwrap();
        assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(last), Some(last)));
        assert!(log.begin_behind(last).unwrap_err().to_string().contains("not empty"));
    }

    /// What ended a replica ends what is made of it.
    #[test]
    fn the_state_of_a_diverged_replica_is_not_imported() {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let source = Db::open("source", Options::default().env(Arc::clone(&env))).unwrap();
        source.keyspace("names", KeyspaceOptions::default()).unwrap();
        source.keyspace("raft.state", KeyspaceOptions::default()).unwrap().put("stopped", "it differs").unwrap();
        source.close().unwrap();
        assert!(matches!(import(&env, "source").map(drop), Err(Error::Stopped { why }) if why == "it differs"));
    }
}
