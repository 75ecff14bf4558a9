//! A client of one server, which says whether a command was done, not done, or perhaps.

use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What came of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its reply, which is no error.
    Done(OwnedFrame),
    /// It was not done, and will not be.
    NotDone(String),
    /// Nobody knows.
    Unknown(String),
}

/// Errors with these first words say that nothing was done.
const REFUSALS: [&str; 5] = ["CLUSTERDOWN", "MOVED", "LOADING", "READONLY", "MASTERDOWN"];

/// A client, connected or not.
pub struct Client {
    address: SocketAddr,
    patience: Duration,
    is_for_reads: bool,
    connection: Option<(TcpStream, Vec<u8>)>,
}

impl Client {
    /// A client that waits so long for a reply.
    pub fn new(address: SocketAddr, patience: Duration) -> Client {
        Client { address, patience, is_for_reads: false, connection: None }
    }

    /// A client that is content with what the node itself has.
    pub fn for_reads(address: SocketAddr, patience: Duration) -> Client {
        Client { is_for_reads: true, ..Client::new(address, patience) }
    }

    /// Sends a command and waits for its reply.
    pub fn call(&mut self, arguments: &[&str]) -> Outcome {
        if self.connection.is_none() {
            if let Err(error) = self.connect() {
                return Outcome::NotDone(error.to_string());
            }
            if self.is_for_reads && !matches!(self.exchange(&["READONLY"]), Ok(OwnedFrame::SimpleString(_))) {
                self.connection = None;
                return Outcome::NotDone("it is not READONLY".into());
            }
        }
        match self.exchange(arguments) {
            Ok(OwnedFrame::Error(text)) => {
                let is_refusal = REFUSALS.iter().any(|word| text.starts_with(word));
                if is_refusal { Outcome::NotDone(text) } else { Outcome::Unknown(text) }
            }
            Ok(frame) => Outcome::Done(frame),
            Err(why) => {
                // The reply may still come, and is not that of the next command.
                self.connection = None;
                Outcome::Unknown(why)
            }
        }
    }

    fn connect(&mut self) -> std::io::Result<()> {
        let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        self.connection = Some((stream, Vec::new()));
        Ok(())
    }

    fn exchange(&mut self, arguments: &[&str]) -> Result<OwnedFrame, String> {
        let (stream, input) = self.connection.as_mut().ok_or("not connected")?;
        let mut request = format!("*{}\r\n", arguments.len());
        for argument in arguments {
            request.push_str(&format!("${}\r\n{argument}\r\n", argument.len()));
        }
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        loop {
            if let Some((frame, length)) = decode(input).map_err(|error| error.to_string())? {
                input.drain(..length);
                return Ok(frame);
            }
            let mut chunk = [0; 16_384];
            match stream.read(&mut chunk).map_err(|error| error.to_string())? {
                0 => return Err("the connection ended".into()),
                read => input.extend_from_slice(&chunk[..read]),
            }
        }
    }
}

/// The text of a reply that is one.
pub fn text(frame: &OwnedFrame) -> Option<String> {
    match frame {
        OwnedFrame::SimpleString(bytes) | OwnedFrame::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        OwnedFrame::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The texts of a reply that is an array.
pub fn texts(frame: &OwnedFrame) -> Option<Vec<String>> {
    match frame {
        OwnedFrame::Array(frames) => frames.iter().map(text).collect(),
        _ => None,
    }
}
