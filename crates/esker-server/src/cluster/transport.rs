//! Takes the messages of other nodes, over HTTP/2.

use super::payload::MOST_PAYLOAD_BYTES;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The path of all requests.
pub const PATH: &str = "/esker/1";
/// How often a connection is tried that nothing comes on.
pub const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// How long a handshake, or an answer to that, may take.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The bytes of a message that may be on their way: pieces of snapshots and entries are larger than
/// the default of HTTP/2.
pub const WINDOW_BYTES: u32 = 4 << 20;
/// The bytes of a message, or an answer, at most: a payload that is as long as can be, in an entry.
pub const BODY_BYTES: usize = MOST_PAYLOAD_BYTES + (16 << 20);
/// The requests of a connection at a time.
const STREAMS: u32 = 10_000;

/// What answers messages.
pub trait Handler: Send + Sync + 'static {
    /// Answers a message.
    fn handle(self: Arc<Self>, message: Bytes) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// Accepts connections for as long as it is polled.
pub async fn serve<H: Handler>(listener: TcpListener, acceptor: Option<TlsAcceptor>, handler: Arc<H>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection of a node was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else { return answer(stream, handler).await };
            match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => answer(stream, handler).await,
                Ok(Err(error)) => tracing::warn!(%error, "a node was not let in"),
                Err(_) => tracing::debug!("a handshake of a node took too long"),
            }
        });
    }
}

async fn answer<H: Handler>(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, handler: Arc<H>) {
    let service = service_fn(move |request| respond(request, Arc::clone(&handler)));
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PATIENCE)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(4 * WINDOW_BYTES)
        .max_concurrent_streams(STREAMS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a node has ended");
    }
}

async fn respond<H: Handler>(request: Request<Incoming>, handler: Arc<H>) -> Result<Response<Full<Bytes>>, Infallible> {
    let handled = async {
        if request.uri().path() != PATH {
            return Err("this version has no such path; run one version on all nodes".to_string());
        }
        let message =
            Limited::new(request.into_body(), BODY_BYTES).collect().await.map_err(|error| error.to_string())?;
        handler.handle(message.to_bytes()).await
    };
    Ok(match handled.await {
        Ok(answer) => Response::new(Full::from(answer)),
        Err(why) => {
            let mut response = Response::new(Full::from(why));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        }
    })
}
