//! The state of a connection, and what its commands do to it. A session is with the connection, or
//! with the executor while commands are executed: never with both.

use super::client_memory::COUNTED_BYTES;
use super::cluster_reads::AsOf;
use super::shared::{Client, Shared};
use super::watches::{Watch, Watches};
use crate::cluster::{Guard, LogSession, Node, ProposeError};
use crate::commands::Command;
use crate::protocol::{Protocol, Reply, encode};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which replies are sent, as CLIENT REPLY says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// All.
    On,
    /// None.
    Off,
    /// All but that of the next command.
    SkipNext,
    /// Not that of this one.
    Skip,
}

/// Commands queued behind MULTI.
#[derive(Debug, Default)]
pub struct Queue {
    /// The commands.
    pub commands: Vec<(&'static Command, Vec<Bytes>)>,
    /// What they take in memory, about.
    pub bytes: usize,
    /// Whether one of them was refused.
    pub has_failed: bool,
}

/// The state of a connection.
#[derive(Debug)]
pub struct Session {
    /// The connection as others see it.
    pub client: Arc<Client>,
    /// The server.
    pub shared: Arc<Shared>,
    /// The logical database.
    pub database: usize,
    /// The version of the protocol.
    pub protocol: Protocol,
    /// Whether it may do what needs a password.
    pub is_authenticated: bool,
    /// Which replies are sent.
    pub reply_mode: ReplyMode,
    /// Replies that were not sent yet.
    pub output: BytesMut,
    /// Where the output of the batch begins.
    batch_start: usize,
    /// Where the replies of the batch end in `output`, and whether each depends on its commit.
    batch: Vec<(usize, bool)>,
    /// Whether the command that is executed reads or writes data: its reply depends on the commit.
    pub is_on_data: bool,
    /// Whether the connection ends once `output` is sent.
    pub closes: bool,
    /// The commands behind MULTI.
    pub queue: Option<Queue>,
    /// The keys that were watched.
    pub watch: Option<Watch>,
    /// The same in a cluster, with what was there.
    pub guards: Vec<Guard>,
    /// Whether reads may be stale, in a cluster.
    pub reads_stale: bool,
    /// The index of an entry of the log that has what the connection wrote last.
    pub written_index: u64,
    /// The session of the log in which a write of the connection was given up as uncertain.
    pub doubt: Option<LogSession>,
}

impl Session {
    /// The session of a new connection.
    pub fn new(client: Arc<Client>, shared: Arc<Shared>) -> Session {
        let is_authenticated = shared.settings.read().password.is_none();
        Session {
            client,
            shared,
            database: 0,
            protocol: Protocol::Resp2,
            is_authenticated,
            reply_mode: ReplyMode::On,
            output: BytesMut::new(),
            batch_start: 0,
            batch: Vec::new(),
            is_on_data: false,
            closes: false,
            queue: None,
            watch: None,
            guards: Vec::new(),
            reads_stale: false,
            written_index: 0,
            doubt: None,
        }
    }

    /// Begins a batch.
    pub fn begin(&mut self) {
        self.batch.clear();
        self.batch_start = self.output.len();
    }

    /// Puts an error into the place of the replies of the batch, which was not committed. Those of
    /// commands on the connection stay, as what they did stays: SELECT, MULTI, what was queued.
    pub fn fail(&mut self, error: &str) {
        let error = Reply::error(error.to_string());
        let replies = self.output.split_off(self.batch_start);
        let mut start = self.batch_start;
        for (end, is_on_data) in std::mem::take(&mut self.batch) {
            if is_on_data {
                encode(&mut self.output, self.protocol, &error);
            } else {
                self.output.extend_from_slice(&replies[start - self.batch_start..end - self.batch_start]);
            }
            start = end;
        }
    }

    /// Sends a reply, unless the connection wants none.
    pub fn reply(&mut self, reply: &Reply) {
        self.shared.statistics.note(reply);
        match self.reply_mode {
            ReplyMode::On if *reply != Reply::Silence => {
                encode(&mut self.output, self.protocol, reply);
                self.batch.push((self.output.len(), self.is_on_data));
            }
            ReplyMode::On | ReplyMode::Off => {}
            ReplyMode::SkipNext => self.reply_mode = ReplyMode::Skip,
            ReplyMode::Skip => self.reply_mode = ReplyMode::On,
        }
    }

    /// Has others see how much memory the replies take, once that is much.
    pub fn note_output(&self) {
        let held = &self.client.held;
        if self.output.len().abs_diff(held.output()) >= COUNTED_BYTES {
            self.shared.client_memory.set_output(held, self.output.len());
        }
    }

    /// Has others see how many commands are queued.
    pub fn note_queue(&self) {
        let queued = self.queue.as_ref().map_or(usize::MAX, |queue| queue.commands.len());
        self.client.queued.store(queued, Ordering::Relaxed);
        let bytes = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        self.client.queued_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns when a write that was given up as uncertain is done, or never will be, in a cluster.
    ///
    /// # Errors
    /// `NoLeader`.
    pub async fn settle(&mut self, node: &Node) -> Result<(), ProposeError> {
        let index = node.settle(&mut self.doubt).await?;
        self.written_index = self.written_index.max(index);
        Ok(())
    }

    /// How new the state is at least that the connection reads, in a cluster. Also a stale one has
    /// what the connection wrote, but for what is uncertain: it asks no leader.
    ///
    /// # Errors
    /// `NoLeader` where a write of the connection stays uncertain.
    pub async fn as_of(&mut self, node: &Node) -> Result<AsOf, ProposeError> {
        if self.reads_stale {
            return Ok(AsOf::Entry(self.written_index));
        }
        self.settle(node).await?;
        Ok(AsOf::Now)
    }

    /// Forgets the watched keys.
    pub fn unwatch(&mut self, watches: &mut Watches) {
        self.guards.clear();
        if let Some(watch) = self.watch.take() {
            watches.remove(watch);
        }
    }

    /// Moves to another logical database.
    pub fn select(&mut self, database: usize) {
        self.database = database;
        self.client.database.store(database, Ordering::Relaxed);
    }

    /// Speaks another version of the protocol.
    pub fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.protocol.store(if protocol == Protocol::Resp3 { 3 } else { 2 }, Ordering::Relaxed);
    }
}
