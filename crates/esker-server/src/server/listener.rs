//! A server: started, and stopped.

use super::cluster_jobs;
use super::config::Config;
use super::config::SyncPolicy;
use super::connection;
use super::descriptors::limit_clients;
use super::error::ServerError;
use super::execution::{Execution, Syncer};
use super::executor::{Executor, Message};
use super::http::{self, Database};
use super::network::{Network, runtime_of, spawn, system};
use super::shared::{Client, Shared, now_ms};
use super::tls;
use crate::cluster::{self, ClusterConfig, Running, StartError};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::AsRawFd;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task;
use tokio_rustls::TlsAcceptor;

/// How long connections may take to finish what they have begun, when the server stops.
const GRACE: Duration = Duration::from_secs(10);

/// A running server.
#[derive(Debug)]
pub struct Server {
    network: Network,
    shared: Arc<Shared>,
    messages: UnboundedSender<Message>,
    /// Gives back the database of a server on its own.
    executor: task::JoinHandle<Option<Execution>>,
    store: Store,
    /// Answers requests for metrics, also while a command takes long.
    observer: Option<Runtime>,
    /// Closed when the last connection has ended.
    connections: (tokio::sync::mpsc::Sender<()>, tokio::sync::mpsc::Receiver<()>),
    addresses: Addresses,
}

/// What the server has to close.
#[derive(Debug)]
enum Store {
    /// The database of a server on its own.
    Database {
        syncer: JoinHandle<()>,
        /// Ends the syncer when it is dropped.
        syncing: mpsc::Sender<()>,
    },
    /// The node of a cluster, on threads of its own: however many clients there are, the signs of
    /// life between nodes come in time.
    Node(Running, Runtime),
}

/// Where a server listens: also where the configuration left the port to the system.
#[derive(Clone, Copy, Debug, Default)]
struct Addresses {
    plain: Option<SocketAddr>,
    tls: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
}

/// A number that nobody foresees.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// As many threads as there are processors, up to this.
fn processors(most: usize) -> usize {
    thread::available_parallelism().map_or(1, |count| count.get().min(most))
}

impl Server {
    /// Opens the database, and serves it.
    ///
    /// # Errors
    /// [`ServerError`] where the database does not open, an address cannot be listened at, or a
    /// file of TLS cannot be used.
    pub fn start(config: Config) -> Result<Server, ServerError> {
        let server = Server::open(config)?;
        server.announce();
        Ok(server)
    }

    fn open(config: Config) -> Result<Server, ServerError> {
        if config.databases == 0 || config.databases > 10_000 {
            return Err(ServerError::Config("there must be 1 to 10000 databases".into()));
        }
        if config.listen.is_none() && config.tls.is_none() {
            return Err(ServerError::Config("the server listens nowhere; give it an address, or files of TLS".into()));
        }
        if config.max_clients == 0 {
            return Err(ServerError::Config("there must be a client at least that may be connected".into()));
        }
        if config.io_threads == 0 {
            return Err(ServerError::Config("there must be a thread at least that serves connections".into()));
        }
        let acceptor = config.tls.as_ref().map(|(_, files)| tls::acceptor(files)).transpose()?;
        // Commands of a cluster block the thread that they are on while others are to go on.
        let network = match (config.io_threads, &config.cluster) {
            (1, None) => Network::in_order()?,
            (threads, _) => Network::of_threads(threads)?,
        };
        let shared = Arc::new(Shared::new(config, random()));
        let listeners = network.block_on(listen(&shared.config))?;
        let (messages, received) = unbounded_channel();
        let (executor, store, database) = match shared.config.cluster.clone() {
            None => open_database(&shared, &network, received)?,
            Some(cluster) => join_cluster(&shared, cluster, &network, received)?,
        };
        let connections = tokio::sync::mpsc::channel(1);
        let addresses = listeners.addresses()?;
        let accepting =
            Accepting { shared: Arc::clone(&shared), messages: messages.clone(), alive: connections.0.clone() };
        if let Some(listener) = listeners.plain {
            network.spawn(accepting.clone().accept(listener, None));
        }
        if let Some(listener) = listeners.tls {
            network.spawn(accepting.clone().accept(listener, acceptor));
        }
        let observer = listeners.metrics.map(|listener| accepting.observe(listener, database)).transpose()?;
        Ok(Server { network, shared, messages, executor, store, observer, connections, addresses })
    }

    fn announce(&self) {
        let Server { shared, addresses, .. } = self;
        tracing::info!(?addresses, directory = %shared.config.directory.display(), "the server is ready");
    }

    /// Where clients connect without TLS.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.plain
    }

    /// Where clients connect with TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.addresses.tls
    }

    /// The node of a cluster that it is.
    #[cfg(test)]
    pub(crate) fn node(&self) -> Arc<crate::cluster::Node> {
        Arc::clone(self.shared.cluster.get().expect("it is one"))
    }

    /// Where metrics are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.addresses.metrics
    }

    /// Returns when the process is told to end (SIGTERM, SIGINT), or a client has sent SHUTDOWN.
    ///
    /// # Errors
    /// [`ServerError::System`] if signals cannot be received; [`ServerError::Stopped`] and
    /// [`ServerError::Diverged`] when the node of a cluster does nothing any more.
    pub fn wait(&self) -> Result<(), ServerError> {
        self.wait_for(self.signals()?)
    }

    /// What takes the signals from now on, which would end the process.
    fn signals(&self) -> Result<Signals, ServerError> {
        let _entered = self.network.handle().enter();
        Signals::new().map_err(system("cannot receive signals"))
    }

    fn wait_for(&self, signals: Signals) -> Result<(), ServerError> {
        self.network.block_on(async {
            tokio::select! {
                signal = signals.received() => signal.map_err(system("cannot receive signals")),
                () = self.shared.wait_stop() => Ok(()),
                error = self.replica_stopped() => Err(error),
            }
        })
    }

    /// Returns when the node of a cluster does nothing any more.
    async fn replica_stopped(&self) -> ServerError {
        let Some(node) = self.shared.cluster.get() else { return std::future::pending().await };
        match node.stopped().await {
            (why, true) => ServerError::Diverged(why),
            (why, false) => ServerError::Stopped(why),
        }
    }

    /// Finishes the commands that have come, sends their replies, and closes the database.
    ///
    /// # Errors
    /// [`ServerError::Close`] if the engine fails.
    pub fn stop(self) -> Result<(), ServerError> {
        let Server { network, shared, messages, executor, store, observer, connections, .. } = self;
        tracing::info!("the server stops");
        shared.stop();
        let (alive, mut ended) = connections;
        drop(alive);
        network.block_on(async {
            if tokio::time::timeout(GRACE, ended.recv()).await.is_err() {
                tracing::warn!("some clients did not take their replies");
                for client in shared.clients.lock().values() {
                    client.kill();
                }
                let _ = tokio::time::timeout(GRACE, ended.recv()).await;
            }
        });
        // An executor that has stopped already stays so.
        let _ = messages.send(Message::Stop);
        let joined = network.block_on(executor);
        if let Some(observer) = observer {
            observer.shutdown_timeout(GRACE);
        }
        let closed = match store {
            Store::Database { syncer, syncing } => {
                drop(syncing);
                let _ = syncer.join();
                network.shut_down(GRACE);
                joined.map(|execution| execution.map_or(Ok(()), Execution::close).map_err(ServerError::Close))
            }
            Store::Node(running, node_runtime) => {
                let stopped = node_runtime.block_on(running.stop());
                node_runtime.shutdown_timeout(GRACE);
                network.shut_down(GRACE);
                joined.map(|_| stopped.map_err(ServerError::Cluster))
            }
        };
        closed.unwrap_or_else(|_| {
            let error = std::io::Error::other("it ended by a panic, which the log shows");
            Err(ServerError::System("the task that executes commands".into(), error))
        })
    }
}

/// What executes commands, and what it executes them on.
type Started = (task::JoinHandle<Option<Execution>>, Store, Database);

fn open_database(
    shared: &Arc<Shared>,
    network: &Network,
    received: UnboundedReceiver<Message>,
) -> Result<Started, ServerError> {
    let execution = Execution::open(Arc::clone(shared), random()).map_err(ServerError::Open)?;
    let (db, syncer) = (execution.keyspaces().db().clone(), execution.syncer());
    let executor = Executor::new(execution, Arc::clone(shared));
    let executor = spawn_executor(network, shared, async { Some(executor.run(received).await) });
    let (syncing, syncing_ends) = mpsc::channel();
    let shared = Arc::clone(shared);
    let syncer = spawn("esker-sync", move || sync_every_second(&syncer, &shared, &syncing_ends))?;
    Ok((executor, Store::Database { syncer, syncing }, Arc::new(move || db.clone())))
}

fn join_cluster(
    shared: &Arc<Shared>,
    cluster: ClusterConfig,
    network: &Network,
    received: UnboundedReceiver<Message>,
) -> Result<Started, ServerError> {
    let Config { directory, databases, memory_budget_bytes, .. } = &shared.config;
    let started = cluster::start(directory, cluster, (*databases, *memory_budget_bytes), random());
    let node_runtime = runtime_of("esker-cluster", processors(4))?;
    let running = node_runtime.block_on(started).map_err(|error| match error {
        StartError::Diverged(why) => ServerError::Diverged(why),
        StartError::Failed(why) => ServerError::Cluster(why),
    })?;
    let node = Arc::clone(&running.node);
    // It is set once, here.
    let _ = shared.cluster.set(Arc::clone(&node));
    let jobs = cluster_jobs::run(Arc::clone(shared), Arc::clone(&node), received);
    let executor = spawn_executor(network, shared, async {
        jobs.await;
        None
    });
    Ok((executor, Store::Node(running, node_runtime), Arc::new(move || node.database().db().clone())))
}

/// Serves until the process is told to end. The limit of open files is raised to what the clients
/// take, and fewer clients are served where that cannot be.
///
/// # Errors
/// Those of [`Server::start`], [`Server::wait`] and [`Server::stop`].
pub fn run(mut config: Config) -> Result<(), ServerError> {
    config.max_clients = limit_clients(config.max_clients);
    let server = Server::open(config)?;
    // Before the announcement: a program that reads it may send a signal at once.
    let signals = server.signals()?;
    server.announce();
    let waited = server.wait_for(signals);
    let stopped = server.stop();
    waited.and(stopped)
}

/// Has the server stop when the task that holds it panics: [`Server::stop`] returns the error.
struct StopAtPanic(Arc<Shared>);

impl Drop for StopAtPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("the task that executes commands has panicked; the server stops");
            self.0.stop();
        }
    }
}

fn spawn_executor<T: Send + 'static>(
    network: &Network,
    shared: &Arc<Shared>,
    body: impl Future<Output = T> + Send + 'static,
) -> task::JoinHandle<T> {
    let guard = StopAtPanic(Arc::clone(shared));
    network.spawn(async {
        let _guard = guard;
        body.await
    })
}

fn sync_every_second(syncer: &Syncer, shared: &Shared, ended: &mpsc::Receiver<()>) {
    while ended.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
        let is_wanted = shared.settings.read().sync == SyncPolicy::EverySecond;
        if is_wanted && let Err(error) = syncer.sync(false) {
            tracing::error!(error, "the log was not synced");
        }
    }
}

/// SIGTERM and SIGINT.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn received(mut self) -> std::io::Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        Ok(())
    }
}

/// Control-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn received(self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

struct Listeners {
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    metrics: Option<std::net::TcpListener>,
}

impl Listeners {
    fn addresses(&self) -> Result<Addresses, ServerError> {
        let unknown = || system("cannot tell the address");
        let address = |listener: &Option<TcpListener>| {
            listener.as_ref().map(TcpListener::local_addr).transpose().map_err(unknown())
        };
        let metrics = self.metrics.as_ref().map(std::net::TcpListener::local_addr).transpose();
        Ok(Addresses { plain: address(&self.plain)?, tls: address(&self.tls)?, metrics: metrics.map_err(unknown())? })
    }
}

async fn listen(config: &Config) -> Result<Listeners, ServerError> {
    async fn at(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ServerError> {
        let Some(address) = address else { return Ok(None) };
        let bound = TcpListener::bind(address).await;
        bound.map(Some).map_err(system(format!("cannot listen at {address}; choose another address or port")))
    }
    let tls = config.tls.as_ref().map(|(address, _)| *address);
    let metrics = at(config.metrics).await?.map(TcpListener::into_std).transpose();
    let metrics = metrics.map_err(system("cannot listen for requests for metrics"))?;
    Ok(Listeners { plain: at(config.listen).await?, tls: at(tls).await?, metrics })
}

/// Logs why a handshake has failed: the client hears little of it.
fn report_handshake(shared: &Shared, address: SocketAddr, error: &str) {
    let remedy = match error.contains("UnsupportedCertVersion") {
        true => "the certificate of the client is not of X.509 version 3; make one with extensions",
        false => "",
    };
    match shared.log.handshakes.take(now_ms()) {
        Some(passed_over) => {
            tracing::warn!(%address, error, remedy, passed_over, "a handshake of TLS has failed");
        }
        None => tracing::debug!(%address, error, remedy, "a handshake of TLS has failed"),
    }
}

/// What accepts connections.
#[derive(Clone)]
struct Accepting {
    shared: Arc<Shared>,
    messages: UnboundedSender<Message>,
    /// Held by every connection.
    alive: tokio::sync::mpsc::Sender<()>,
}

impl Accepting {
    /// The next connection; `None` when the server stops.
    async fn next(&self, listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => return Some(accepted),
                    Err(error) => {
                        // As when there are no descriptors left: others end meanwhile.
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = self.shared.wait_stop() => return None,
            }
        }
    }

    async fn accept(self, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
        while let Some((stream, address)) = self.next(&listener).await {
            // Here, and not in the task: who has come first is not refused in favour of another.
            let client = self.shared.connect(address, stream.local_addr().unwrap_or(address));
            tokio::spawn(self.clone().serve(stream, client, acceptor.clone()));
        }
    }

    /// Serves a connection: that of the client, or of one too many.
    async fn serve(self, mut stream: TcpStream, client: Option<Arc<Client>>, acceptor: Option<TlsAcceptor>) {
        let _alive = &self.alive;
        let Some(client) = client else {
            let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
            return connection::refuse(&mut stream, &self.shared).await;
        };
        #[cfg(unix)]
        client.descriptor.store(u64::from(stream.as_raw_fd().unsigned_abs()), Ordering::Relaxed);
        // Replies are written whole.
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = acceptor else {
            return connection::serve(stream, client, Arc::clone(&self.shared), self.messages.clone()).await;
        };
        let (id, address) = (client.id, client.address);
        match tokio::time::timeout(GRACE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                connection::serve(stream, client, Arc::clone(&self.shared), self.messages.clone()).await;
            }
            Ok(Err(error)) => report_handshake(&self.shared, address, &error.to_string()),
            Err(_) => report_handshake(&self.shared, address, "it took too long"),
        }
        self.shared.disconnect(id);
    }

    /// Answers requests for metrics, on a thread of its own.
    fn observe(self, listener: std::net::TcpListener, database: Database) -> Result<Runtime, ServerError> {
        let runtime = runtime_of("esker-metrics", 1)?;
        let _entered = runtime.enter();
        let listener = TcpListener::from_std(listener).map_err(system("cannot listen for requests for metrics"))?;
        runtime.spawn(async move {
            while let Some((stream, _)) = self.next(&listener).await {
                tokio::spawn(http::answer(stream, Arc::clone(&self.shared), Arc::clone(&database)));
            }
        });
        Ok(runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose executor has panicked does not stay as one that answers nobody.
    #[test]
    fn a_panic_of_the_executor_stops_the_server() {
        for panics in [true, false] {
            let shared = Arc::new(Shared::new(Config::new("data"), 1));
            for network in [Network::in_order().unwrap(), Network::of_threads(1).unwrap()] {
                let executor = spawn_executor(&network, &shared, async move { assert!(!panics, "a planted panic") });
                assert_eq!(network.block_on(executor).is_err(), panics);
                assert_eq!(shared.is_stopping(), panics);
                network.shut_down(GRACE);
            }
        }
    }

    /// Counts the warnings.
    struct Warnings(Arc<std::sync::atomic::AtomicUsize>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::WARN
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    /// A log of warnings shows that handshakes fail, and does not grow with each of them.
    #[test]
    fn failed_handshakes_are_logged() {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let shared = Shared::new(Config::new("data"), 1);
        tracing::subscriber::with_default(Warnings(Arc::clone(&count)), || {
            for _ in 0..100 {
                report_handshake(&shared, SocketAddr::from(([127, 0, 0, 1], 1)), "UnsupportedCertVersion");
            }
        });
        assert!((1..50).contains(&count.load(std::sync::atomic::Ordering::Relaxed)), "{count:?}");
    }
}
