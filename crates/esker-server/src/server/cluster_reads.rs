//! Reads of a node of a cluster: on its own state, after it is known to be new enough.

use super::execution::Execution;
use super::shared::Shared;
use crate::cluster::{Call, Guard, Node, ProposeError};
use crate::commands::{Handler, find};
use crate::protocol::Reply;
use crate::store::Keyspaces;
use bytes::Bytes;
use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// Reads of connections that work at a time: beyond that they wait, and leave the processors to
/// the consensus. They read from the device, too, so it is more than there are processors.
static READERS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(2 * std::thread::available_parallelism().map_or(1, NonZero::get).max(2)));

/// How new the state is at least that a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// It has all that was acknowledged when the read began.
    Now,
    /// It has the entry of this index; 0 is none.
    Entry(u64),
}

/// An execution that reads the state as of now.
///
/// # Errors
/// The text of the engine's error, or why the replica has stopped: its state may be wrong.
pub fn view(shared: &Arc<Shared>, node: &Node) -> Result<Execution, String> {
    if let Some(failure) = node.failure() {
        return Err(failure);
    }
    let database = node.database();
    let (mut transaction, time_ms) = database.view();
    let mut keyspaces: Keyspaces = database.keyspaces().lock().clone();
    keyspaces.refresh(&mut transaction, shared.config.databases).map_err(|error| error.to_string())?;
    keyspaces.thresholds.clone_from(&shared.settings.read().thresholds);
    Ok(Execution::view(Arc::clone(shared), keyspaces, transaction, (time_ms, node.seed())))
}

/// Waits until the state is new enough, and works on it.
async fn with_view<T: Send + 'static>(
    shared: &Arc<Shared>,
    node: &Arc<Node>,
    as_of: AsOf,
    work: impl FnOnce(&mut Execution) -> T + Send + 'static,
) -> Result<T, ProposeError> {
    match as_of {
        AsOf::Now => node.wait_readable().await?,
        AsOf::Entry(0) => {}
        AsOf::Entry(index) => node.wait_applied(index).await?,
    }
    // It is never closed.
    let _permit = READERS.acquire().await.map_err(|error| ProposeError::Failed(error.to_string()))?;
    let (shared, node) = (Arc::clone(shared), Arc::clone(node));
    // The engine may have to read from the device.
    let worked = tokio::task::spawn_blocking(move || view(&shared, &node).map(|mut execution| work(&mut execution)));
    let worked = worked.await.unwrap_or_else(|error| Err(error.to_string()));
    worked.map_err(ProposeError::Failed)
}

/// The replies to commands that only read, all of them on one state, and the commands that are left
/// when the replies have about `most_bytes`. At least one is executed.
///
/// # Errors
/// `NoLeader` where it is not known in time whether the state is new enough.
pub async fn read(
    shared: &Arc<Shared>,
    node: &Arc<Node>,
    as_of: AsOf,
    mut calls: Vec<Call>,
    most_bytes: usize,
) -> Result<(Vec<Reply>, Vec<Call>), ProposeError> {
    let work = move |execution: &mut Execution| {
        let (mut replies, mut bytes) = (Vec::with_capacity(calls.len()), 0);
        for call in &calls {
            let reply = execute(execution, call);
            bytes += reply.size_bytes();
            replies.push(reply);
            if bytes >= most_bytes {
                break;
            }
        }
        let rest = calls.split_off(replies.len());
        (replies, rest)
    };
    with_view(shared, node, as_of, work).await
}

fn execute(execution: &mut Execution, Call { database, arguments }: &Call) -> Reply {
    let handler = arguments.first().and_then(|name| find(name)).map(|command| command.handler);
    let Some(Handler::Data(function)) = handler else { return Reply::error("ERR the command has no function") };
    let called = execution.call(*database as usize, function, arguments);
    called.unwrap_or_else(|blocked| blocked.otherwise)
}

/// Calls `each` with the keys of the first logical database, which clients of Redis Cluster know
/// alone, and with what it has found, until it returns false. Nothing else is kept of the keys.
///
/// # Errors
/// The reply for the client: as of [`read`], and those of the engine.
pub async fn fold_keys<T: Send + 'static>(
    shared: &Arc<Shared>,
    node: &Arc<Node>,
    as_of: AsOf,
    mut found: T,
    mut each: impl FnMut(&mut T, &[u8]) -> bool + Send + 'static,
) -> Result<T, Reply> {
    let work = move |execution: &mut Execution| {
        let scanned = execution.run(0, |context| {
            context.scan_keys(&[], |_, key, _| each(&mut found, key))?;
            Ok(Reply::OK)
        });
        match scanned.unwrap_or_else(|blocked| blocked.otherwise) {
            error @ Reply::Error(_) => Err(error),
            _ => Ok(found),
        }
    };
    with_view(shared, node, as_of, work).await.unwrap_or_else(|error| Err(error.reply()))
}

/// What is at the keys now, for EXEC to compare with.
///
/// # Errors
/// As [`read`].
pub async fn guards(
    shared: &Arc<Shared>,
    node: &Arc<Node>,
    database: usize,
    keys: Vec<Bytes>,
) -> Result<Vec<Guard>, ProposeError> {
    let work = move |execution: &mut Execution| {
        let mut guards = Vec::with_capacity(keys.len());
        for key in keys {
            let mut fingerprint = None;
            let read = execution.run(database, |context| {
                fingerprint = context.fingerprint(&key)?;
                Ok(Reply::OK)
            });
            if let Ok(Reply::Error(text)) = read {
                return Err(ProposeError::Refused(text.into_owned()));
            }
            guards.push(Guard { database: database as u32, key, fingerprint });
        }
        Ok(guards)
    };
    with_view(shared, node, AsOf::Now, work).await?
}
