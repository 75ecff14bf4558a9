//! openraft's own suite for storages.

use crate::types::Runtime;
use crate::{Executor, KeyValue, LogStore, StateMachine, StateOptions, TypeConfig};
use esker::env::mem::MemEnv;
use esker::{Db, Options};
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use std::sync::Arc;

/// Each store on a disk of its own.
struct Builder {
    executor: Executor,
}

impl StoreBuilder<TypeConfig, LogStore, StateMachine<KeyValue>> for Builder {
    async fn build(&self) -> Result<((), LogStore, StateMachine<KeyValue>), StorageError<TypeConfig>> {
        let env = Arc::new(MemEnv::new());
        let db = Db::open("log", Options::default().env(env.clone())).unwrap();
        let log = LogStore::open(&db, 0, self.executor).unwrap();
        let apply = KeyValue::new().keyspace("names", Default::default());
        let options = StateOptions::default().env(env).executor(self.executor);
        Ok(((), log, StateMachine::open("state", apply, options).unwrap()))
    }
}

#[tokio::test]
async fn the_suite_passes_with_blocking_threads() {
    Runtime::scope(0, Suite::test_all(Builder { executor: Executor::BlockingThreads })).await.unwrap();
}

#[tokio::test]
async fn the_suite_passes_in_place() {
    Runtime::scope(0, Suite::test_all(Builder { executor: Executor::InPlace })).await.unwrap();
}
