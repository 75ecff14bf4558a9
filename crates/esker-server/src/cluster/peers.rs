//! Sends messages to other nodes: one connection for each, on which all messages go at once.

use super::identity::{Identity, NOBODY};
use super::messages::{Message, Who, decode, encode};
use super::planted::Planted;
use super::transport::{BODY_BYTES, KEEP_ALIVE, PATH, PATIENCE, WINDOW_BYTES};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);

type Line = SendRequest<Full<Bytes>>;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The message was not sent.
    NotSent(String),
    /// It may have arrived.
    NoAnswer(String),
    /// The other node has refused it.
    Refused(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotSent(why) | CallError::NoAnswer(why) | CallError::Refused(why) => f.write_str(why),
        }
    }
}

/// The connections to other nodes, by address.
pub struct Peers {
    /// Where connections are: not among those of clients, whose number delays the others.
    runtime: Handle,
    identity: Arc<Identity>,
    connector: Option<TlsConnector>,
    planted: Arc<Planted>,
    /// Each is made by one at a time, while others wait for it.
    lines: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<Line>>>>>,
}

impl Peers {
    /// Connects with TLS where there is a connector, on the runtime that it is made on.
    pub fn new(identity: Arc<Identity>, connector: Option<TlsConnector>, planted: Arc<Planted>) -> Peers {
        Peers { runtime: Handle::current(), identity, connector, planted, lines: Mutex::default() }
    }

    /// Who is at `host:port`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn who(&self, address: &str, patience: Duration) -> Result<Who, CallError> {
        self.call((NOBODY, address), &Message::Who, patience).await
    }

    /// Sends a message to the node of that number at `host:port`, and waits for the answer for so
    /// long.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call<T: DeserializeOwned>(
        &self,
        (to, address): (u64, &str),
        message: &Message,
        patience: Duration,
    ) -> Result<T, CallError> {
        if self.planted.is_cut(address) {
            return Err(CallError::NotSent(format!("the line to {address} is cut")));
        }
        let body = Bytes::from(encode(&(self.identity.header(to), message)).map_err(CallError::NotSent)?);
        let deadline = tokio::time::Instant::now() + patience;
        let late = || format!("{address} has not answered within {} ms", patience.as_millis());
        let line = tokio::time::timeout_at(deadline, self.line(address)).await;
        let mut line = line.map_err(|_| CallError::NotSent(late()))?.map_err(CallError::NotSent)?;
        let exchange = async {
            line.ready().await.map_err(|error| CallError::NotSent(error.to_string()))?;
            let request = Request::post(format!("http://node{PATH}")).body(Full::from(body));
            let request = request.map_err(|error| CallError::NotSent(error.to_string()))?;
            let lost = |error: hyper::Error| CallError::NoAnswer(format!("{address}: {error}"));
            let response = line.send_request(request).await.map_err(lost)?;
            let status = response.status();
            let answer = Limited::new(response.into_body(), BODY_BYTES).collect().await;
            let answer = answer.map_err(|error| CallError::NoAnswer(format!("{address}: {error}")))?.to_bytes();
            if status == StatusCode::OK {
                decode(&answer).map_err(CallError::NoAnswer)
            } else {
                Err(CallError::Refused(format!("{address}: {}", String::from_utf8_lossy(&answer))))
            }
        };
        let answered = tokio::time::timeout_at(deadline, exchange).await;
        if matches!(message, Message::Propose(_)) && self.planted.loses_answer() {
            return Err(CallError::NoAnswer(late()));
        }
        answered.unwrap_or_else(|_| Err(CallError::NoAnswer(late())))
    }

    /// The connection, which is made anew if it has ended.
    async fn line(&self, address: &str) -> Result<Line, String> {
        let place = Arc::clone(self.lines.lock().entry(address.to_string()).or_default());
        let mut line = place.lock_owned().await;
        if let Some(line) = line.as_ref().filter(|line| !line.is_closed()) {
            return Ok(line.clone());
        }
        let connecting = tokio::time::timeout(CONNECT, connect(self.connector.clone(), address.to_string()));
        // It is made to the end also if the caller waits no more: a sign of life has less time than
        // a far node takes for the handshakes, and the next one finds the connection.
        let made = self.runtime.spawn(async move {
            let made = connecting.await.unwrap_or_else(|_| Err("the connection took too long".into()))?;
            *line = Some(made.clone());
            Ok(made)
        });
        let made = made.await.unwrap_or_else(|error| Err(error.to_string()));
        made.map_err(|why: String| format!("{address} cannot be reached: {why}"))
    }
}

async fn connect(connector: Option<TlsConnector>, address: String) -> Result<Line, String> {
    let stream = TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    let Some(connector) = connector else { return handshake(stream).await };
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    handshake(stream).await
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Line, String> {
    let (line, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PATIENCE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(4 * WINDOW_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a node has ended");
        }
    });
    Ok(line)
}
