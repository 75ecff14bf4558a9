//! A connection: requests are read and parsed, given to the executor, and the replies written.

use super::client_memory::{self, COUNTED_BYTES, ClientMemory};
use super::executor::{Finished, Job, Message};
use super::session::Session;
use super::shared::{Client, Shared, now_ms};
use crate::protocol::{Reply, RequestLimits, RequestParser, encode};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// The requests of a job at most: others get their turn between.
const JOB_REQUESTS: usize = 1024;
/// The bytes of requests of a job, about.
const JOB_BYTES: usize = 4 << 20;
/// What is read at once, and ahead while commands are executed.
const READ_BYTES: usize = 64 << 10;
/// How long a client may take to hear that its connection ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a client that was refused may go on sending.
const LINGER: Duration = Duration::from_secs(5);

/// A connection with its stream.
#[derive(Debug)]
struct Connection<S> {
    stream: S,
    client: Arc<Client>,
    shared: Arc<Shared>,
    executor: UnboundedSender<Message>,
    parser: RequestParser,
    input: BytesMut,
    /// The bytes of the requests behind MULTI.
    queued_bytes: usize,
    is_at_end: bool,
    /// The bytes of the requests that are executed.
    taken_bytes: usize,
    /// Whether the client was told of an error while it may still send what is not read any more.
    is_refused: bool,
}

/// Says goodbye to a client that may still send: a connection that is closed with input that nobody
/// has read is reset, and what was written last is lost with it.
pub async fn refuse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), shared: &Shared) {
    let drain = async {
        stream.shutdown().await?;
        let mut ignored = vec![0; READ_BYTES];
        while stream.read(&mut ignored).await? > 0 {}
        io::Result::Ok(())
    };
    // It is the client's own loss.
    tokio::select! {
        _ = tokio::time::timeout(LINGER, drain) => {}
        () = shared.wait_stop() => {}
    }
}

/// Serves a connection until it ends.
pub async fn serve<S>(stream: S, client: Arc<Client>, shared: Arc<Shared>, executor: UnboundedSender<Message>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let id = client.id;
    tracing::debug!(id, address = %client.address, "a client has connected");
    let session = Box::new(Session::new(Arc::clone(&client), Arc::clone(&shared)));
    let mut held = Held { session: Some(session), executor: executor.clone() };
    let (parser, input) = (RequestParser::default(), BytesMut::new());
    let mut connection = Connection {
        stream,
        client,
        shared: Arc::clone(&shared),
        executor,
        parser,
        input,
        queued_bytes: 0,
        is_at_end: false,
        taken_bytes: 0,
        is_refused: false,
    };
    if let Err(error) = connection.run(&mut held).await {
        tracing::debug!(id, %error, "a connection has failed");
    }
    drop(held);
    if connection.is_refused {
        // They count no more.
        connection.input = BytesMut::new();
        connection.parser = RequestParser::default();
        shared.disconnect(id);
        refuse(&mut connection.stream, &shared).await;
    } else {
        // With TLS there is something to say, which a client that reads nothing would hold up.
        let _ = tokio::time::timeout(FAREWELL, connection.stream.shutdown()).await;
        shared.disconnect(id);
    }
    tracing::debug!(id, "a client has gone");
}

/// A session while it is with its connection, however that ends.
#[derive(Debug)]
struct Held {
    session: Option<Box<Session>>,
    executor: UnboundedSender<Message>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // An executor that has stopped has forgotten everything.
            let _ = self.executor.send(Message::Forget(session));
        }
    }
}

/// Why a session ends where a stream fails.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the executor has stopped")
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(&mut self, held: &mut Held) -> io::Result<()> {
        let mut requests = VecDeque::new();
        // Why nothing behind the requests is one. The parser does not know it any more.
        let mut error = None;
        loop {
            // The executor gives it back, unless it has stopped.
            let Some(session) = &mut held.session else { return Err(broken()) };
            if requests.is_empty() && error.is_none() {
                error = self.parse(session, &mut requests);
            }
            self.queued_bytes = session.queue.as_ref().map_or(0, |queue| queue.bytes);
            self.note_input();
            if requests.is_empty() {
                if let Some(error) = error {
                    self.is_refused = true;
                    encode(&mut session.output, session.protocol, &Reply::error(error));
                    return self.write(session).await;
                }
                if self.is_at_end || self.client.is_killed() || self.shared.is_stopping() || !self.wait_input().await? {
                    return Ok(());
                }
                continue;
            }
            self.wait_for_room(ClientMemory::holds_execution).await;
            if self.client.is_killed() {
                return Ok(());
            }
            let Some(session) = held.session.take() else { return Err(broken()) };
            self.note_input();
            let finished = self.execute(session, requests).await?;
            requests = finished.requests;
            if requests.is_empty() {
                self.taken_bytes = 0;
                self.note_input();
            }
            let session = held.session.insert(finished.session);
            self.write(session).await?;
            if session.closes || self.client.is_killed() {
                return Ok(());
            }
        }
    }

    /// Has others see what has come and was not executed, and how much memory it takes.
    fn note_input(&self) {
        let unparsed = self.input.len() + self.parser.pending_bytes();
        let executing = if self.taken_bytes < COUNTED_BYTES { 0 } else { self.taken_bytes };
        self.shared.client_memory.set_input(&self.client.held, unparsed + self.queued_bytes + executing);
        self.client.input_bytes.store(self.taken_bytes + unparsed, Ordering::Relaxed);
        self.client.input_free_bytes.store(self.input.capacity() - self.input.len(), Ordering::Relaxed);
        self.client.request_bytes.store(self.taken_bytes, Ordering::Relaxed);
    }

    /// Takes complete requests from what was read. Returns the error that ends the connection.
    fn parse(&mut self, session: &Session, requests: &mut VecDeque<Vec<Bytes>>) -> Option<String> {
        let (argument_bytes, query_buffer_bytes) = {
            let settings = self.shared.settings.read();
            (settings.argument_bytes, settings.query_buffer_bytes)
        };
        let limits = RequestLimits { argument_bytes, arguments: i32::MAX as usize };
        let mut bytes = 0;
        let before = self.input.len() + self.parser.pending_bytes();
        while requests.len() < JOB_REQUESTS && bytes < JOB_BYTES {
            match self.parser.next(&mut self.input, &limits, session.is_authenticated) {
                Ok(Some(request)) => {
                    bytes += request.iter().map(Bytes::len).sum::<usize>();
                    let is_control = !session.is_authenticated;
                    requests.push_back(request);
                    // What comes behind AUTH is parsed with the limits after it.
                    if is_control {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => return Some(error.to_string()),
            }
        }
        let taken = before.saturating_sub(self.input.len() + self.parser.pending_bytes());
        // Requests without a word take no memory.
        self.taken_bytes = if requests.is_empty() { 0 } else { taken };
        if self.input.len() + self.parser.pending_bytes() > query_buffer_bytes && requests.is_empty() {
            return Some("ERR Protocol error: the request is longer than client-query-buffer-limit".into());
        }
        None
    }

    /// Waits as long as clients hold too much memory, and has those go that hold most if that does
    /// not end by itself.
    async fn wait_for_room(&self, is_held_up: fn(&ClientMemory) -> bool) {
        let memory = &self.shared.client_memory;
        while is_held_up(memory) && !self.client.is_killed() && !self.shared.is_stopping() {
            tokio::select! {
                () = memory.wait_freed(is_held_up) => {}
                () = tokio::time::sleep(client_memory::PATIENCE) => {}
                () = self.client.wait_killed() => {}
                () = self.shared.wait_stop() => {}
            }
            self.shared.evict_clients(now_ms());
        }
    }

    /// Reads more; false if the connection is to end.
    async fn wait_input(&mut self) -> io::Result<bool> {
        let timeout = self.shared.settings.read().timeout_seconds;
        let idle = async {
            if timeout == 0 {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_secs(timeout)).await;
        };
        self.wait_for_room(ClientMemory::is_full).await;
        self.input.reserve(READ_BYTES);
        tokio::select! {
            read = self.stream.read_buf(&mut self.input) => {
                let read = read?;
                self.shared.statistics.input_bytes.add(read as u64);
                self.is_at_end = read == 0;
                self.note_input();
                Ok(read > 0)
            }
            () = self.client.wait_killed() => Ok(false),
            () = self.shared.wait_stop() => Ok(false),
            () = idle => Ok(false),
        }
    }

    /// Has the requests executed. Meanwhile more is read, so that a client that goes away while it
    /// waits for a key is noticed.
    async fn execute(&mut self, session: Box<Session>, requests: VecDeque<Vec<Bytes>>) -> io::Result<Finished> {
        let (done, mut finished) = oneshot::channel();
        let mut is_released = false;
        self.executor.send(Message::Run(Job { session, requests, done })).map_err(|_| broken())?;
        loop {
            if self.is_at_end && !is_released {
                self.release(&mut is_released);
            }
            let reads_on = !self.is_at_end && self.input.len() < READ_BYTES;
            if reads_on {
                self.input.reserve(READ_BYTES);
            }
            tokio::select! {
                biased;
                finished = &mut finished => return finished.map_err(|_| broken()),
                read = self.stream.read_buf(&mut self.input), if reads_on => {
                    // An error shows again when the reply is written.
                    let read = read.unwrap_or(0);
                    self.shared.statistics.input_bytes.add(read as u64);
                    self.is_at_end = read == 0;
                    self.note_input();
                }
                () = self.client.wait_killed(), if !is_released => self.release(&mut is_released),
                () = self.shared.wait_stop(), if !is_released => self.release(&mut is_released),
            }
        }
    }

    /// Tells the executor not to wait any more, if it does.
    fn release(&self, is_released: &mut bool) {
        *is_released = true;
        // An executor that has stopped drops the job.
        let _ = self.executor.send(Message::Release(self.client.id));
    }

    async fn write(&mut self, session: &mut Session) -> io::Result<()> {
        self.shared.statistics.output_bytes.add(session.output.len() as u64);
        let (client, shared) = (Arc::clone(&self.client), Arc::clone(&self.shared));
        while session.output.has_remaining() {
            let left = session.output.len();
            // It is begun only if the client does not take the replies at once.
            let stalled = async {
                shared.client_memory.set_output(&client.held, left);
                loop {
                    tokio::time::sleep(client_memory::PATIENCE).await;
                    shared.evict_clients(now_ms());
                }
            };
            tokio::select! {
                biased;
                written = self.stream.write_buf(&mut session.output) => {
                    if written? == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                }
                // A client that takes nothing is not waited for, if it is to go.
                () = self.client.wait_killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
                () = stalled => {}
            }
        }
        self.shared.client_memory.set_output(&self.client.held, 0);
        if session.output.capacity() > READ_BYTES {
            session.output = BytesMut::new();
        }
        tokio::select! {
            biased;
            flushed = self.stream.flush() => flushed,
            // With TLS the stream has a buffer, so that it is here that a client is waited for.
            () = self.client.wait_killed() => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::config::Config;
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{DuplexStream, ReadBuf};
    use tokio::sync::mpsc;

    /// A stream with a buffer that takes everything and that the other side never empties.
    struct Stalled(DuplexStream);

    impl AsyncRead for Stalled {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            read: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, read)
        }
    }

    impl AsyncWrite for Stalled {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    /// A client that takes nothing goes when it is killed.
    #[test]
    fn a_stalled_connection_is_killed() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).unwrap();
        let (messages, mut received) = mpsc::unbounded_channel();
        let (ours, mut theirs) = tokio::io::duplex(1024);
        runtime.block_on(theirs.write_all(b"PING\r\n")).unwrap();
        let served = runtime.spawn(serve(Stalled(ours), Arc::clone(&client), Arc::clone(&shared), messages));
        let Message::Run(mut job) = received.blocking_recv().unwrap() else { panic!("no request") };
        job.session.output.extend_from_slice(b"+PONG\r\n");
        let finished = Finished { session: job.session, requests: job.requests };
        assert!(job.done.send(finished).is_ok());
        client.kill();
        runtime.block_on(served).unwrap();
        assert!(shared.clients.lock().is_empty());
    }

    /// A client that is refused hears why, although it goes on sending.
    #[test]
    fn a_refused_client_hears_why() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let served = runtime.spawn(serve(ours, client, shared, mpsc::unbounded_channel().0));
        let mut request = b"*1\r\n$999999999999\r\n".to_vec();
        request.resize(100_000, b'x');
        let mut reply = Vec::new();
        runtime.block_on(async {
            theirs.write_all(&request).await.unwrap();
            theirs.read_to_end(&mut reply).await.unwrap();
        });
        assert_eq!(&reply[..], b"-ERR Protocol error: invalid bulk length\r\n");
        drop(theirs);
        runtime.block_on(served).unwrap();
    }

    /// A server that stops waits for no client that it has refused.
    #[test]
    fn a_refused_client_holds_no_stop_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shared = Shared::new(Config::new("data"), 1);
        let (mut ours, _theirs) = tokio::io::duplex(1024);
        runtime.block_on(async {
            let mut refused = std::pin::pin!(refuse(&mut ours, &shared));
            let turns = async || {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = &mut refused => panic!("the client may hear why"),
                () = turns() => {}
            }
            shared.stop();
            tokio::select! {
                () = &mut refused => {}
                () = turns() => panic!("the stop waits for the client"),
            }
        });
    }

    /// What a session watches is forgotten also if its replies cannot be written.
    #[test]
    fn a_broken_connection_is_forgotten() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = shared.connect(address, address).unwrap();
        let (messages, mut received) = mpsc::unbounded_channel();
        let (ours, mut theirs) = tokio::io::duplex(1024);
        runtime.block_on(theirs.write_all(b"WATCH a\r\n")).unwrap();
        runtime.spawn(serve(ours, client, shared, messages));
        let Message::Run(mut job) = received.blocking_recv().unwrap() else { panic!("no request") };
        drop(theirs);
        job.session.output.extend_from_slice(b"+OK\r\n");
        let finished = Finished { session: job.session, requests: job.requests };
        assert!(job.done.send(finished).is_ok());
        let found: Vec<Message> = std::iter::from_fn(|| received.blocking_recv()).collect();
        assert!(found.iter().any(|message| matches!(message, Message::Forget(_))), "{found:?}");
    }
}
