//! Why a server does not start, or does not end as it should.

use crate::store::OpenError;
use std::fmt;
use std::io;

/// Why a server does not start, or does not end as it should.
#[derive(Debug)]
pub enum ServerError {
    /// The database does not open; see the text.
    Open(OpenError),
    /// The engine failed when the database was closed.
    Close(esker::Error),
    /// The system refused something; the text says what it was for.
    System(String, io::Error),
    /// A file of TLS cannot be used.
    Tls(String),
    /// The node of a cluster does not start, or does not end as it should; see the text.
    Cluster(String),
    /// The node of a cluster has stopped, as its device failed or is full; it is to be started
    /// again when that is mended.
    Stopped(String),
    /// The state of the node is not that of the others: it is not to be started again.
    Diverged(String),
    /// The configuration asks for what cannot be.
    Config(String),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Open(error) => error.fmt(f),
            ServerError::Close(error) => error.fmt(f),
            ServerError::System(what, error) => write!(f, "{what}: {error}"),
            ServerError::Tls(text) | ServerError::Cluster(text) | ServerError::Config(text) => f.write_str(text),
            ServerError::Stopped(text) | ServerError::Diverged(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ServerError {}
