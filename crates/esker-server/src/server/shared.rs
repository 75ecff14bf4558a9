//! What all parts of a server share: settings, clients, counters.

pub use super::clock::now_ms;

use super::client_memory::{ClientMemory, HeldBytes};
use super::command_statistics::{CommandStatistics, Rate};
use super::config::{Config, Settings};
use super::occasional::Occasional;
use super::pause::Pause;
use crate::cluster::Node;
use crate::protocol::Reply;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, watch};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it back to 0.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What is counted since the start.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Connections that were accepted.
    pub connections: Counter,
    /// Connections that were refused, as there were too many.
    pub refused_connections: Counter,
    /// Commands that were executed.
    pub commands: Counter,
    /// Error replies.
    pub errors: Counter,
    /// What is counted of each command; in a cluster, of errors only.
    pub by_command: CommandStatistics,
    /// The commands of the last second; none in a cluster.
    pub rate: Rate,
    /// Keys that commands have read and found; none in a cluster.
    pub found_keys: Counter,
    /// Keys that commands have wanted to read and that were not there; none in a cluster.
    pub missed_keys: Counter,
    /// Transactions of the engine that were committed: each is of all commands of a batch.
    pub batches: Counter,
    /// Collections whose elements were removed, as they had expired.
    pub expired_collections: Counter,
    /// Clients that were disconnected, as all together held too much memory.
    pub evicted_clients: Counter,
    /// Bytes read from clients.
    pub input_bytes: Counter,
    /// Bytes written to clients.
    pub output_bytes: Counter,
}

impl Statistics {
    /// Counts a reply that is an error.
    pub fn note(&self, reply: &Reply) {
        if reply.is_error() {
            self.errors.add(1);
            self.by_command.add_error(reply);
        }
    }

    /// Begins anew, as CONFIG RESETSTAT says.
    pub fn reset(&self) {
        let counters = [
            &self.connections,
            &self.refused_connections,
            &self.commands,
            &self.errors,
            &self.found_keys,
            &self.missed_keys,
            &self.input_bytes,
            &self.output_bytes,
        ];
        counters.iter().for_each(|counter| counter.reset());
        self.by_command.reset();
    }
}

/// A connection, as others see it.
#[derive(Debug)]
pub struct Client {
    /// Its number.
    pub id: u64,
    /// Where it comes from.
    pub address: SocketAddr,
    /// The address of the server that it connected to.
    pub local_address: SocketAddr,
    /// When it came, in milliseconds since the epoch.
    pub connected_ms: u64,
    /// When its last command came.
    pub active_ms: AtomicU64,
    /// What CLIENT SETNAME and SETINFO have said.
    pub names: Mutex<Names>,
    /// The logical database that it is in.
    pub database: AtomicUsize,
    /// 2 or 3.
    pub protocol: AtomicUsize,
    /// How many commands are queued behind MULTI; -1 without MULTI, as `usize::MAX`.
    pub queued: AtomicUsize,
    /// The bytes that have come from it and were not executed yet.
    pub input_bytes: AtomicUsize,
    /// What is left of the buffer that they are in.
    pub input_free_bytes: AtomicUsize,
    /// The bytes of the requests that are executed.
    pub request_bytes: AtomicUsize,
    /// What the commands queued behind MULTI take in memory, about.
    pub queued_bytes: AtomicUsize,
    /// The number that its socket has in the process; 0 where there is none.
    pub descriptor: AtomicU64,
    /// Whether it waits in a blocking command.
    pub is_blocked: AtomicBool,
    /// What it holds of the memory of clients.
    pub held: HeldBytes,
    /// Whether it stays when clients hold too much memory, as CLIENT NO-EVICT says.
    pub is_kept: AtomicBool,
    /// Whether CLIENT PAUSE holds its command up.
    pub is_held: AtomicBool,
    is_killed: AtomicBool,
    killed: Notify,
}

/// The names of a connection.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Of CLIENT SETNAME.
    pub name: String,
    /// Of CLIENT SETINFO LIB-NAME.
    pub library: String,
    /// Of CLIENT SETINFO LIB-VER.
    pub library_version: String,
    /// The command that came last, with its subcommand.
    pub last_command: &'static str,
}

impl Client {
    /// Ends the connection, once what it has in work is done.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.killed.notify_one();
    }

    /// Has others see whether CLIENT PAUSE holds its command up; then it counts as blocked.
    pub fn hold(&self, is_held: bool) {
        self.is_blocked.store(is_held, Ordering::Relaxed);
        self.is_held.store(is_held, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Waits until it is to end.
    pub async fn wait_killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }
}

/// Lines of the log that clients cause.
#[derive(Debug, Default)]
pub struct ClientLog {
    /// That a request of HTTP has come.
    pub http: Occasional,
    /// That a handshake of TLS has failed.
    pub handshakes: Occasional,
}

/// What all parts of a server share.
#[derive(Debug)]
pub struct Shared {
    /// How it was set up.
    pub config: Config,
    /// What may change.
    pub settings: RwLock<Settings>,
    /// Who is connected.
    pub clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// What clients hold in memory.
    pub client_memory: ClientMemory,
    /// What was counted.
    pub statistics: Statistics,
    /// What clients cause in the log.
    pub log: ClientLog,
    /// Which commands are held up, as CLIENT PAUSE says.
    pub pause: Pause,
    /// The node of a cluster that this server is, once it is one.
    pub cluster: OnceLock<Arc<Node>>,
    /// When it was started, in milliseconds since the epoch.
    pub started_ms: u64,
    /// When the log was synced last, in seconds since the epoch.
    pub synced_seconds: AtomicU64,
    /// A name of this run: 40 hexadecimal digits.
    pub run_id: String,
    next_id: AtomicU64,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// The shared state of a new server; `run` is a number for its name.
    pub fn new(config: Config, run: u64) -> Shared {
        let run_id =
            format!("{run:016x}{:024x}", u128::from(run).wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 96) - 1));
        Shared {
            settings: RwLock::new(Settings::of(&config)),
            client_memory: ClientMemory::new(config.client_memory_bytes),
            config,
            clients: Mutex::new(BTreeMap::new()),
            statistics: Statistics::default(),
            log: ClientLog::default(),
            pause: Pause::default(),
            cluster: OnceLock::new(),
            started_ms: now_ms(),
            synced_seconds: AtomicU64::new(now_ms() / 1000),
            run_id,
            next_id: AtomicU64::new(1),
            stop: watch::Sender::new(false),
        }
    }

    /// Registers a connection; `None` if there are too many.
    pub fn connect(&self, address: SocketAddr, local_address: SocketAddr) -> Option<Arc<Client>> {
        let mut clients = self.clients.lock();
        if clients.len() >= self.settings.read().max_clients {
            self.statistics.refused_connections.add(1);
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            connected_ms: now_ms(),
            active_ms: AtomicU64::new(now_ms()),
            names: Mutex::default(),
            database: AtomicUsize::new(0),
            protocol: AtomicUsize::new(2),
            queued: AtomicUsize::new(usize::MAX),
            input_bytes: AtomicUsize::new(0),
            input_free_bytes: AtomicUsize::new(0),
            request_bytes: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            descriptor: AtomicU64::new(0),
            is_blocked: AtomicBool::new(false),
            held: HeldBytes::default(),
            is_kept: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
        });
        clients.insert(id, Arc::clone(&client));
        self.statistics.connections.add(1);
        Some(client)
    }

    /// Forgets a connection.
    pub fn disconnect(&self, id: u64) {
        let client = self.clients.lock().remove(&id);
        if let Some(client) = client {
            self.client_memory.forget(&client.held);
        }
    }

    /// Disconnects the clients that hold most, if all together have held too much for long: so many
    /// that the others are within the limit.
    pub fn evict_clients(&self, now_ms: u64) {
        if !self.client_memory.take_overdue(now_ms) {
            return;
        }
        let clients = self.clients.lock();
        // What those that go already hold is free soon. Those that are to stay go last.
        let mut staying: Vec<&Arc<Client>> = clients.values().filter(|client| !client.is_killed()).collect();
        staying.sort_by_key(|client| (client.is_kept.load(Ordering::Relaxed), std::cmp::Reverse(client.held.total())));
        let (mut held, limit) =
            (staying.iter().map(|client| client.held.total()).sum::<usize>(), self.client_memory.limit());
        for client in staying.iter().filter(|client| client.held.total() > 0) {
            if held <= limit {
                return;
            }
            let (input, output) = (client.held.input(), client.held.output());
            tracing::warn!(
                client = client.id,
                address = %client.address,
                input,
                output,
                limit,
                "the clients hold too much memory together; the one that holds most is disconnected"
            );
            self.statistics.evicted_clients.add(1);
            held -= input + output;
            client.kill();
        }
    }

    /// Has the server stop: what was begun is finished.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the server is to stop.
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until the server is to stop.
    pub async fn wait_stop(&self) {
        // The sender lives as long as this, so that there is no error.
        let _ = self.stop.subscribe().wait_for(|&is_stopping| is_stopping).await;
    }
}
