//! Sessions: what lets a client repeat a request whose answer it did not get.
//!
//! The keyspace `raft.sessions` has a record for each session, under its number in big-endian
//! bytes, with the greatest request number and the reply to it. The record is written with the
//! effects of the request, in one step. It expires by the time of entries, as long after its newest
//! request as sessions are kept. A repeat is answered from the record and renews nothing.
//!
//! ```text
//! record    format u8 = 1, request number u64, postcard of the reply
//! ```

use crate::encoding::{Reader, put_postcard, record};
use crate::error::Result;
use crate::types::Reply;
use esker::{Db, Keyspace, KeyspaceOptions, Transaction, Ttl};
use std::time::{Duration, SystemTime};

/// The keyspace of the sessions.
pub(crate) const KEYSPACE: &str = "raft.sessions";

/// The longest record: the engine takes no longer value. It is the same on every replica, since a
/// reply that is kept by one and refused by another makes their states differ.
pub(crate) const MOST_RECORD_BYTES: usize = 1 << 30;

/// The sessions of one database.
pub(crate) struct Sessions {
    keyspace: Keyspace,
    kept_for: Duration,
    most_record_bytes: usize,
}

/// What a session says of a request.
pub(crate) enum Seen {
    /// It is new.
    No,
    /// It is not to be applied; this is the reply.
    Reply(Reply),
}

impl Sessions {
    pub fn open(db: &Db, kept_for: Duration, most_record_bytes: usize) -> Result<Sessions> {
        let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
        Ok(Sessions { keyspace: db.keyspace(KEYSPACE, options)?, kept_for, most_record_bytes })
    }

    /// Whether the session has sent that number, or a greater one, before.
    pub fn seen(&self, transaction: &mut Transaction, session: u64, number: u64) -> Result<Seen> {
        let Some(bytes) = transaction.get(&self.keyspace, session.to_be_bytes())? else {
            return Ok(Seen::Reply(Reply::UnknownSession));
        };
        let mut reader = Reader::new("a session", &bytes)?;
        let newest = reader.u64()?;
        let reply: Reply = reader.postcard()?;
        reader.end()?;
        Ok(match number.cmp(&newest) {
            std::cmp::Ordering::Greater => Seen::No,
            std::cmp::Ordering::Equal => Seen::Reply(reply),
            std::cmp::Ordering::Less => Seen::Reply(Reply::Superseded { newest }),
        })
    }

    /// Keeps the reply to the newest request; number 0 is that of the opening. Returns false, and
    /// keeps nothing, if the record would be longer than the engine takes.
    pub fn keep(
        &self,
        transaction: &mut Transaction,
        (session, number): (u64, u64),
        reply: &Reply,
        time_ms: u64,
    ) -> Result<bool> {
        let mut bytes = record();
        bytes.extend_from_slice(&number.to_le_bytes());
        put_postcard(&mut bytes, reply)?;
        if bytes.len() > self.most_record_bytes {
            return Ok(false);
        }
        let expires = at(time_ms).and_then(|now| now.checked_add(self.kept_for));
        match expires {
            Some(expires) => transaction.put_until(&self.keyspace, session.to_be_bytes(), bytes, expires)?,
            // Later than the system can say.
            None => transaction.put(&self.keyspace, session.to_be_bytes(), bytes)?,
        }
        Ok(true)
    }

    /// Why a reply was not kept, for the client.
    pub fn too_long(&self) -> String {
        format!("the reply is too long for its session, which keeps at most {} bytes", self.most_record_bytes)
    }
}

/// The time of that many milliseconds since the Unix epoch.
pub(crate) fn at(time_ms: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(time_ms))
}
