//! Sessions: what lets a client repeat a request whose answer it did not get.
//!
//! The keyspace `raft.sessions` has a record for each session, under its number in big-endian
//! bytes, with the greatest request number and the reply to it. The record is written with the
//! effects of the request, in one step. It expires by the time of entries, after the session was
//! not used for as long as sessions are kept.
//!
//! ```text
//! record    format u8 = 1, request number u64, postcard of the reply
//! ```

use crate::encoding::{Reader, put_postcard, record};
use crate::error::Result;
use crate::types::Reply;
use esker::{Db, Keyspace, KeyspaceOptions, Transaction, Ttl};
use std::time::{Duration, SystemTime};

const KEYSPACE: &str = "raft.sessions";

/// The sessions of one database.
pub(crate) struct Sessions {
    keyspace: Keyspace,
    kept_for: Duration,
}

/// What a session says of a request.
pub(crate) enum Seen {
    /// It is new.
    No,
    /// It is not to be applied; this is the reply.
    Reply(Reply),
}

impl Sessions {
    pub fn open(db: &Db, kept_for: Duration) -> Result<Sessions> {
        let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
        Ok(Sessions { keyspace: db.keyspace(KEYSPACE, options)?, kept_for })
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

    /// Keeps the reply to the newest request; number 0 is that of the opening.
    pub fn keep(
        &self,
        transaction: &mut Transaction,
        (session, number): (u64, u64),
        reply: &Reply,
        time_ms: u64,
    ) -> Result<()> {
        let mut bytes = record();
        bytes.extend_from_slice(&number.to_le_bytes());
        put_postcard(&mut bytes, reply)?;
        let expires = at(time_ms).and_then(|now| now.checked_add(self.kept_for));
        match expires {
            Some(expires) => transaction.put_until(&self.keyspace, session.to_be_bytes(), bytes, expires)?,
            // Later than the system can say.
            None => transaction.put(&self.keyspace, session.to_be_bytes(), bytes)?,
        }
        Ok(())
    }
}

/// The time of that many milliseconds since the Unix epoch.
pub(crate) fn at(time_ms: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(time_ms))
}
