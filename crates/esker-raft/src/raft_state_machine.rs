//! The state machine as openraft calls it.

use crate::apply::Apply;
use crate::error::Result;
use crate::snapshot_files::SnapshotFiles;
use crate::state_machine::StateMachine;
use crate::types::{LeaderId, LogId, SnapshotMeta, StoredMembership, TypeConfig};
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{BasicNode, OptionalSend};
use std::io;

/// Entries that are applied in a row, before other work has its turn.
const ENTRIES_AT_A_TIME: usize = 256;

/// A snapshot as openraft passes it around.
pub type Snapshot = openraft::Snapshot<LeaderId, u64, BasicNode, SnapshotFiles>;

fn snapshot(files: SnapshotFiles) -> Result<Snapshot> {
    Ok(Snapshot { meta: files.manifest().meta()?, snapshot: files })
}

/// Makes snapshots of a state machine.
pub struct SnapshotBuilder<A: Apply> {
    machine: StateMachine<A>,
}

impl<A: Apply> RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder<A> {
    type SnapshotData = SnapshotFiles;

    /// The snapshot holds the state as of this call, and says so.
    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let machine = self.machine.clone();
        let built = self.machine.executor().run(move || snapshot(machine.build()?)).await;
        Ok(built?)
    }
}

impl<A: Apply> RaftStateMachine<TypeConfig> for StateMachine<A> {
    type SnapshotData = SnapshotFiles;
    type SnapshotBuilder = SnapshotBuilder<A>;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok(self.database().applied())
    }

    async fn apply<Strm>(&mut self, entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        let mut groups = entries.ready_chunks(ENTRIES_AT_A_TIME);
        while let Some(group) = groups.next().await {
            let machine = self.clone();
            let apply_group = move || {
                for item in group {
                    let (entry, responder) = match item {
                        Ok(item) => item,
                        Err(error) => return Ok(Err(error)),
                    };
                    let reply = machine.apply(&entry)?;
                    if let Some(responder) = responder {
                        responder.send(reply);
                    }
                }
                Ok(Ok(()))
            };
            self.executor().run(apply_group).await??;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<A> {
        SnapshotBuilder { machine: self.clone() }
    }

    async fn install_snapshot(&mut self, _meta: &SnapshotMeta, files: SnapshotFiles) -> io::Result<()> {
        let machine = self.clone();
        Ok(self.executor().run(move || machine.install(&files)).await?)
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        Ok(self.snapshot().map(snapshot).transpose()?)
    }
}
