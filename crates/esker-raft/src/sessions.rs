//! Sessions: what lets a client repeat a request whose answer it did not get.
//!
//! The keyspace `raft.sessions` has a record for each session, under its number in big-endian
//! bytes, with the greatest request number and the reply to it. The record is written with the
//! effects of the request, in one step. It expires by the time of entries, as long after its newest
//! request as sessions are kept. A repeat is answered from the record and renews nothing.
//!
//! The record `count` says how many sessions there were when they were last counted, with those
//! that were opened since. Expiry takes none away from it: they are counted anew when they seem to
//! be too many.
//!
//! ```text
//! record    format u8 = 1, request number u64, postcard of the reply
//! count     format u8 = 1, sessions u64
//! ```

use crate::encoding::{Reader, put_postcard, record};
use crate::error::Result;
use crate::types::Reply;
use esker::{Db, Expiry, Keyspace, KeyspaceOptions, Transaction, Ttl};
use std::time::{Duration, SystemTime};

/// The keyspace of the sessions.
pub(crate) const KEYSPACE: &str = "raft.sessions";

/// The record of how many there are. Its key is shorter than that of a session.
const COUNT: &str = "count";

/// The longest record: the engine takes no longer value. It is the same on every replica, since a
/// reply that is kept by one and refused by another makes their states differ.
pub(crate) const MOST_RECORD_BYTES: usize = 1 << 30;

/// What bounds the sessions; the same on every replica.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub kept_for: Duration,
    pub most: u64,
    pub most_record_bytes: usize,
}

/// The sessions of one database.
pub(crate) struct Sessions {
    keyspace: Keyspace,
    limits: Limits,
}

/// What a session says of a request.
pub(crate) enum Seen {
    /// It is new.
    No,
    /// It is not to be applied; this is the reply.
    Reply(Reply),
}

impl Sessions {
    pub fn open(db: &Db, limits: Limits) -> Result<Sessions> {
        let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
        Ok(Sessions { keyspace: db.keyspace(KEYSPACE, options)?, limits })
    }

    /// Begins the session of that number with its first record. Where there are too many, others
    /// end in the same step.
    pub fn begin(&self, transaction: &mut Transaction, session: u64, time_ms: u64) -> Result<Reply> {
        let stored = transaction.get(&self.keyspace, COUNT)?.map(|bytes| decode_count(&bytes)).transpose()?;
        // A state of before the count has sessions, too.
        let mut count = stored.unwrap_or(self.limits.most);
        if count >= self.limits.most {
            count = self.make_room(transaction)?;
        }
        let mut bytes = record();
        bytes.extend_from_slice(&count.saturating_add(1).to_le_bytes());
        transaction.put(&self.keyspace, COUNT, bytes)?;
        let reply = Reply::SessionOpened(session);
        self.keep(transaction, (session, 0), &reply, time_ms)?;
        Ok(reply)
    }

    /// Counts the sessions, and ends those whose newest requests are the oldest until seven eighths
    /// of the most are left: so it looks at all of them only once for many that are opened.
    fn make_room(&self, transaction: &mut Transaction) -> Result<u64> {
        let mut numbers = Vec::new();
        for pair in transaction.iter(&self.keyspace) {
            // But for the record of the count.
            numbers.extend(<[u8; 8]>::try_from(&*pair?.0).ok());
        }
        let mut sessions = Vec::with_capacity(numbers.len());
        for number in numbers {
            // That of the newest request, as all are kept equally long behind it.
            sessions.push((expiry_ms(transaction.expires_at(&self.keyspace, number)?), number));
        }
        sessions.sort_unstable();
        let left = self.limits.most - (self.limits.most / 8).max(1);
        let ended = sessions.len().saturating_sub(usize::try_from(left).unwrap_or(usize::MAX));
        for (_, number) in &sessions[..ended] {
            transaction.delete(&self.keyspace, number)?;
        }
        Ok((sessions.len() - ended) as u64)
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
        if bytes.len() > self.limits.most_record_bytes {
            return Ok(false);
        }
        let expires = at(time_ms).and_then(|now| now.checked_add(self.limits.kept_for));
        match expires {
            Some(expires) => transaction.put_until(&self.keyspace, session.to_be_bytes(), bytes, expires)?,
            // Later than the system can say.
            None => transaction.put(&self.keyspace, session.to_be_bytes(), bytes)?,
        }
        Ok(true)
    }

    /// Why a reply was not kept, for the client.
    pub fn too_long(&self) -> String {
        let most = self.limits.most_record_bytes;
        format!("the reply is too long for its session, which keeps at most {most} bytes")
    }
}

fn decode_count(bytes: &[u8]) -> Result<u64> {
    let mut reader = Reader::new("the number of sessions", bytes)?;
    let count = reader.u64()?;
    reader.end()?;
    Ok(count)
}

/// An expiry as a number; the greatest if there is none.
fn expiry_ms(expiry: Option<Expiry>) -> u64 {
    let Some(Expiry::At(time)) = expiry else { return u64::MAX };
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time of that many milliseconds since the Unix epoch.
pub(crate) fn at(time_ms: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(time_ms))
}
