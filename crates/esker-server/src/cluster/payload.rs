//! What an entry of the log asks the replicas to do, and what they answer.
//!
//! ```text
//! payload    format u8 = 1, postcard of `Payload`
//! answer     postcard of `Answer`
//! ```

use crate::protocol::Reply;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const FORMAT: u8 = 1;
/// The longest payload, in bytes. A longer one would hold up all entries behind it while it goes to
/// the other nodes.
pub const MOST_PAYLOAD_BYTES: usize = 64 << 20;

/// A command on data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The logical database.
    pub database: u32,
    /// The command with its arguments.
    pub arguments: Vec<Bytes>,
}

/// A key that was watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Its logical database.
    pub database: u32,
    /// The key.
    pub key: Bytes,
    /// What was there; see [`crate::store::Context::fingerprint`].
    pub fingerprint: Option<u128>,
}

/// Commands that are executed together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandList {
    /// How many logical databases there are.
    pub databases: u32,
    /// What random replies are drawn from.
    pub seed: u64,
    /// Whether it is an EXEC: nothing in it waits.
    pub is_transaction: bool,
    /// Nothing is executed if one of these has changed.
    pub guards: Vec<Guard>,
    /// The commands.
    pub calls: Vec<Call>,
}

/// What an entry asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Payload {
    /// Commands of a client.
    Commands(CommandList),
    /// That time goes on: what is left of some expired collections is removed.
    Tick,
}

/// What a replica answers. All of them answer the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The replies to the first commands. If there are less than commands, the next one waits for
    /// a key.
    Replies {
        /// The replies.
        replies: Vec<Reply>,
        /// What the command behind them waits for.
        blocked: Option<Waits>,
    },
    /// A watched key has changed, and nothing was executed.
    Touched,
    /// So many collections were removed.
    Swept(u64),
}

/// What a command waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// The keys.
    pub keys: Vec<Bytes>,
    /// How long, in milliseconds; without end if it is 0.
    pub timeout_ms: u64,
}

impl Payload {
    /// Its bytes in an entry.
    ///
    /// # Errors
    /// The text of the serializer's error.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        postcard::to_extend(self, vec![FORMAT]).map_err(|error| error.to_string())
    }

    /// Reads the bytes of an entry.
    ///
    /// # Errors
    /// `Unsupported` for that of another version, which this replica has to stop at; `Corruption`.
    pub fn from_bytes(bytes: &[u8]) -> esker::Result<Payload> {
        let format = bytes.first().copied().unwrap_or(0);
        if format != FORMAT {
            let (version, supported) = (u32::from(format), u32::from(FORMAT));
            return Err(esker::Error::Unsupported { path: "an entry of the log".into(), version, supported });
        }
        from_postcard(&bytes[1..]).map_err(|why| {
            let what = format!("it holds no payload of this server: {why}");
            esker::Error::Corruption { path: "an entry of the log".into(), offset: 0, what }
        })
    }
}

impl Answer {
    /// Its bytes.
    ///
    /// # Errors
    /// The text of the serializer's error.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        postcard::to_stdvec(self).map_err(|error| error.to_string())
    }

    /// Reads its bytes.
    ///
    /// # Errors
    /// The text of the deserializer's error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Answer, String> {
        from_postcard(bytes)
    }
}

/// Reads a whole value.
fn from_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err("there are bytes behind the value".into()),
        Err(error) => Err(error.to_string()),
    }
}
