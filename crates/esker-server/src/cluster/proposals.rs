//! Puts payloads into the log, once each, wherever the leader is.

use super::messages::{Message, Proposed, payload_bytes, transfer_time};
use super::node::{LogSession, Node, now_ms};
use super::payload::{Answer, CommandList, MOST_PAYLOAD_BYTES, Payload};
use super::peers::CallError;
use super::planted::Fault;
use crate::protocol::Reply as ClientReply;
use esker_raft::{Command, Reply, Request};
use openraft::errors::{ClientWriteError, RaftError};
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long another node may take beside the way of the payload: after that it is asked again, or
/// the next leader.
const ATTEMPT: Duration = Duration::from_secs(2);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a payload has no answer.
#[derive(Clone, Debug)]
pub enum ProposeError {
    /// There is no leader that a majority follows; nothing was done.
    NoLeader,
    /// It may have been done, or may be done yet.
    Uncertain(String),
    /// It cannot be done, on any replica; nothing was done.
    Refused(String),
    /// This node has failed, and nothing was done.
    Failed(String),
}

impl ProposeError {
    /// What the client is told.
    pub fn reply(&self) -> ClientReply {
        ClientReply::error(self.to_string())
    }
}

impl fmt::Display for ProposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProposeError::NoLeader => {
                f.write_str("CLUSTERDOWN no leader has a majority of the nodes; nothing was done, so try again")
            }
            ProposeError::Uncertain(why) => {
                let advice = "read on this connection before it is repeated";
                write!(f, "UNCERTAIN whether the command was, or will be, done: {why}; {advice}")
            }
            ProposeError::Failed(why) => write!(f, "ERR {why}"),
            ProposeError::Refused(why) => write!(f, "ERR the replicas refuse the command: {why}"),
        }
    }
}

impl Node {
    /// How long a client waits for a leader.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(2) + Duration::from_millis(self.config.election_ms.saturating_mul(8))
    }

    /// Puts a request into the log if this node leads.
    pub async fn propose_here(&self, request: Request) -> Proposed {
        if self.planted.holds(&request) {
            return Proposed::Unknown("it is on its way".into());
        }
        let command = Command { time_ms: now_ms(), request };
        let is_early = self.planted.has(Fault::EarlyAnswer) && self.leader().is_some_and(|leader| leader.is_here);
        if is_early && matches!(command.request, Request::ApplyOnce { .. }) {
            return self.answer_early(command).await;
        }
        match self.raft.client_write(command).await {
            Ok(written) => Proposed::Done(written.log_id.index(), written.data),
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => Proposed::NotLeader,
            Err(error) => Proposed::Unknown(error.to_string()),
        }
    }

    /// A planted fault: the write is answered before anybody has it.
    async fn answer_early(&self, command: Command) -> Proposed {
        let replies = match &command.request {
            Request::ApplyOnce { payload, .. } => match Payload::from_bytes(payload) {
                Ok(Payload::Commands(list)) => list.calls.iter().map(|_| ClientReply::OK).collect(),
                _ => Vec::new(),
            },
            _ => return Proposed::NotLeader,
        };
        let answer = Answer::Replies { replies, blocked: None }.to_bytes().unwrap_or_default();
        match self.raft.client_write_ff(command, None).await {
            Ok(_) => Proposed::Done(0, Reply::Applied(answer)),
            Err(error) => Proposed::Unknown(error.to_string()),
        }
    }

    /// Asks the leader once.
    async fn attempt(&self, request: &Request, deadline: Instant) -> Proposed {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(leader) = self.leader() else { return Proposed::NotLeader };
        if leader.is_here {
            let late = |_| Proposed::Unknown("no majority has confirmed it in time".into());
            // openraft says when the entry is lost. A repeat would only make a slow log slower.
            return timeout(left, self.propose_here(request.clone())).await.unwrap_or_else(late);
        }
        let Some(address) = leader.address else { return Proposed::NotLeader };
        let patience = left.min(ATTEMPT + transfer_time(payload_bytes(request)));
        match self.peers.call((leader.id, &address.raft()), &Message::Propose(request.clone()), patience).await {
            Ok(proposed) => proposed,
            Err(CallError::NotSent(_) | CallError::Refused(_)) => Proposed::NotLeader,
            Err(error) => Proposed::Unknown(error.to_string()),
        }
    }

    /// Puts a request into the log that may be there more than once. The index of the entry, and
    /// the reply.
    ///
    /// # Errors
    /// `NoLeader` where no leader takes it in time; `Uncertain`.
    pub async fn propose(&self, request: &Request) -> Result<(u64, Reply), ProposeError> {
        self.propose_until(request, Instant::now() + self.patience()).await
    }

    async fn propose_until(&self, request: &Request, deadline: Instant) -> Result<(u64, Reply), ProposeError> {
        let mut unknown = None;
        loop {
            match self.attempt(request, deadline).await {
                Proposed::Done(index, reply) => return Ok((index, reply)),
                Proposed::Refused(why) => return Err(ProposeError::Refused(why)),
                Proposed::NotLeader => {}
                Proposed::Unknown(why) => unknown = Some(why),
            }
            give_up_at(deadline, unknown.as_ref())?;
            sleep(PAUSE).await;
        }
    }

    async fn session(&self, deadline: Instant) -> Result<LogSession, ProposeError> {
        let free = self.sessions.lock().pop();
        if let Some(session) = free {
            return Ok(session);
        }
        // One that is opened and not used goes by itself.
        match self.propose_until(&Request::OpenSession, deadline).await {
            Ok((_, Reply::SessionOpened(id))) => Ok(LogSession { id, next: 1 }),
            Ok((_, other)) => Err(ProposeError::Refused(format!("a session was not opened: {other:?}"))),
            // Nothing of the payload was sent.
            Err(_) => Err(ProposeError::NoLeader),
        }
    }

    /// Has the replicas execute a payload, once: where a leader is lost it is sent to the next one,
    /// with the number that it had. The index of an entry from which on the state has it, and the
    /// answer.
    ///
    /// `doubt` is settled first, and is the session of the payload where that is uncertain.
    ///
    /// # Errors
    /// [`ProposeError`].
    pub async fn write(
        &self,
        payload: &Payload,
        doubt: &mut Option<LogSession>,
    ) -> Result<(u64, Answer), ProposeError> {
        self.settle(doubt).await?;
        let payload = payload.to_bytes().map_err(ProposeError::Refused)?;
        if payload.len() > MOST_PAYLOAD_BYTES {
            let why = format!("its {} bytes are more than {MOST_PAYLOAD_BYTES}; send it in parts", payload.len());
            return Err(ProposeError::Refused(why));
        }
        // One for all: the session, and each attempt.
        let deadline = Instant::now() + self.patience() + transfer_time(payload.len());
        let mut session = self.session(deadline).await?;
        let mut request = request_of(session, payload);
        let mut unknown = None;
        loop {
            let without_session = self.planted.has(Fault::NoSessions).then(|| stripped(&request));
            match self.attempt(without_session.as_ref().unwrap_or(&request), deadline).await {
                Proposed::Done(_, Reply::UnknownSession) if unknown.is_none() => {
                    // It was not used for long, and nothing of this request was sent before.
                    // Those beside it were not used for longer.
                    self.sessions.lock().clear();
                    session = self.session(deadline).await?;
                    request = again(request, session);
                    continue;
                }
                Proposed::Done(index, reply) => return Ok((index, self.done(session, reply)?)),
                Proposed::Refused(why) if unknown.is_none() => {
                    self.sessions.lock().push(session);
                    return Err(ProposeError::Refused(why));
                }
                Proposed::Refused(_) | Proposed::NotLeader => {}
                Proposed::Unknown(why) => unknown = Some(why),
            }
            if let Err(error) = give_up_at(deadline, unknown.as_ref()) {
                match error {
                    ProposeError::Uncertain(_) => *doubt = Some(session.after_request()),
                    // No leader has the request.
                    _ => self.sessions.lock().push(session),
                }
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns when the request that was given up as uncertain is done, or never will be: behind a
    /// request of its session with a greater number, which does nothing, it is not applied any
    /// more. The index of the entry of that request; 0 without a doubt.
    ///
    /// # Errors
    /// `NoLeader`; the doubt stays.
    pub async fn settle(&self, doubt: &mut Option<LogSession>) -> Result<u64, ProposeError> {
        let Some(session) = *doubt else { return Ok(0) };
        if self.planted.has(Fault::Unsettled) {
            *doubt = None;
            return Ok(0);
        }
        let databases = u32::try_from(self.databases).unwrap_or(u32::MAX);
        let (is_transaction, guards, calls) = (false, Vec::new(), Vec::new());
        let nothing = CommandList { databases, seed: self.seed(), is_transaction, guards, calls };
        let nothing = Payload::Commands(nothing).to_bytes().map_err(ProposeError::Failed)?;
        // What comes behind it is what has no leader: nothing of that was sent.
        let settled = self.propose(&request_of(session, nothing)).await.map_err(|_| ProposeError::NoLeader);
        let (index, reply) = settled?;
        *doubt = None;
        // A session that has ended takes no request any more, and so not the one in doubt.
        if reply != Reply::UnknownSession {
            self.sessions.lock().push(session.after_request());
        }
        Ok(index)
    }

    /// The answer in the reply. The session is free for another request.
    fn done(&self, session: LogSession, reply: Reply) -> Result<Answer, ProposeError> {
        let free = session.after_request();
        match reply {
            Reply::Applied(answer) => {
                self.sessions.lock().push(free);
                Answer::from_bytes(&answer).map_err(ProposeError::Uncertain)
            }
            Reply::Rejected(why) => {
                self.sessions.lock().push(free);
                Err(ProposeError::Refused(why))
            }
            Reply::UnknownSession => Err(ProposeError::Uncertain("its session has ended meanwhile".into())),
            other => Err(ProposeError::Uncertain(format!("the replicas answer {other:?}"))),
        }
    }
}

fn give_up_at(deadline: Instant, unknown: Option<&String>) -> Result<(), ProposeError> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(unknown.map_or(ProposeError::NoLeader, |why| ProposeError::Uncertain(why.clone())))
}

fn request_of(session: LogSession, payload: Vec<u8>) -> Request {
    Request::ApplyOnce { session: session.id, number: session.next, payload }
}

/// The same payload in another session.
fn again(request: Request, session: LogSession) -> Request {
    match request {
        Request::ApplyOnce { payload, .. } => request_of(session, payload),
        other => other,
    }
}

/// A planted fault: the same payload without a session.
fn stripped(request: &Request) -> Request {
    match request {
        Request::ApplyOnce { payload, .. } => Request::Apply(payload.clone()),
        other => other.clone(),
    }
}
