//! What a replica does with a payload: the commands of the table, in a transaction of the entry.

use super::dues::Dues;
use super::notices::Notices;
use super::payload::{Answer, Call, CommandList, Guard, Payload, Waits};
use super::planted::{Fault, Planted};
use crate::commands::{DataFunction, Handler, find};
use crate::protocol::Reply;
use crate::store::{Context, Effects, Failure, Keyspaces, Outcome, Random};
use bytes::Bytes;
use esker::{Db, Error, Transaction};
use esker_raft::{Apply, Context as EntryContext, Rejection};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How many expired collections an entry removes.
pub const SWEPT: usize = 100;
/// The replies of an entry, about: the commands behind them are left to another entry.
const REPLY_BYTES: usize = 1 << 20;
/// The most that the replies of an entry may have: all replicas keep them, and nodes send them.
const MOST_REPLY_BYTES: usize = 64 << 20;
/// The record of `system` with the latest expiry that was ever set, in milliseconds since the
/// epoch.
pub const LATEST_EXPIRY: &str = "expiry";

/// Executes payloads.
#[derive(Debug)]
pub struct Commands {
    databases: usize,
    notices: Arc<Notices>,
    /// When keys of the state may expire.
    dues: Arc<Mutex<Dues>>,
    /// The time of the newest payload.
    time_ms: Arc<AtomicU64>,
    planted: Arc<Planted>,
}

/// The keyspaces of a replica. Who reads clones them.
pub type Stored = Mutex<Keyspaces>;

/// Where the commands of an entry are executed.
struct Place<'a> {
    transaction: &'a mut Transaction,
    keyspaces: &'a mut Keyspaces,
    effects: Effects,
    seeds: Random,
    time_ms: u64,
}

impl Commands {
    /// Executes payloads on that many logical databases, and tells those who wait for keys.
    pub fn new(databases: usize, notices: Arc<Notices>, planted: Arc<Planted>) -> Commands {
        Commands { databases, notices, dues: Arc::default(), time_ms: Arc::default(), planted }
    }

    /// When keys of the state may expire.
    pub fn dues(&self) -> Arc<Mutex<Dues>> {
        Arc::clone(&self.dues)
    }

    /// The time of the newest payload that was applied, in milliseconds since the epoch.
    pub fn time_ms(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.time_ms)
    }

    /// Notes when keys expire. What has expired is done with once its leftovers are removed, not
    /// already when another entry has that time.
    fn note_dues(&self, expiries_ms: &[u64], answer: &Answer, time_ms: u64) {
        let mut dues = self.dues.lock();
        expiries_ms.iter().for_each(|&at_ms| dues.add(at_ms));
        if matches!(answer, Answer::Swept(swept) if *swept < SWEPT as u64) {
            dues.remove_until(time_ms);
        }
    }

    fn execute(&self, place: &mut Place<'_>, payload: &Payload) -> Result<Answer, Rejection> {
        match payload {
            Payload::Commands(list) => execute_list(place, list),
            Payload::Tick => {
                let swept = in_database(place, 0, |context| context.sweep(SWEPT)).map_err(rejection)?;
                Ok(Answer::Swept(swept as u64))
            }
        }
    }
}

impl Apply for Commands {
    type Keyspaces = Stored;

    fn open(&self, db: &Db) -> esker::Result<Stored> {
        let keyspaces = Keyspaces::of_replica(db, self.databases)?;
        let latest = keyspaces.system.get(LATEST_EXPIRY)?;
        let latest = latest.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes);
        // When its keys expire only a look at each of them would tell.
        self.dues.lock().add_all_until(latest);
        // No entry has told what the entries of a snapshot have filled. Who wakes asks the log.
        self.notices.tell_all();
        Ok(Mutex::new(keyspaces))
    }

    fn apply(&self, context: &mut EntryContext<'_, Stored>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
        let payload = Payload::from_bytes(payload).map_err(Rejection::Failed)?;
        let mut keyspaces = context.keyspaces.lock();
        let (databases, seed) = match &payload {
            Payload::Commands(list) => (list.databases as usize, list.seed),
            Payload::Tick => (keyspaces.databases(), 0),
        };
        keyspaces.refresh(context.transaction, databases)?;
        let mut seeds = Random::new(seed);
        if matches!(payload, Payload::Commands(_)) {
            keyspaces.begin(context.transaction, seeds.next())?;
        }
        let time_ms =
            if self.planted.has(Fault::LocalClock) { local_ms() + self.planted.skew_ms() } else { context.time_ms };
        let (transaction, keyspaces) = (&mut *context.transaction, &mut *keyspaces);
        let mut place = Place { transaction, keyspaces, effects: Effects::default(), seeds, time_ms };
        if self.planted.has(Fault::AppliedTwice) {
            self.execute(&mut place, &payload)?;
        }
        let answer = self.execute(&mut place, &payload)?;
        let Place { transaction, keyspaces, effects, .. } = place;
        if effects.has_damage {
            // Other replicas can read it: this one would answer otherwise than they do.
            return Err(Rejection::Failed(unreadable("it has a key whose stored value cannot be read".into())));
        }
        note_expiry(transaction, &keyspaces.system, effects.expiries_ms.iter().copied().max().unwrap_or(0))?;
        self.time_ms.fetch_max(context.time_ms, Ordering::Relaxed);
        self.note_dues(&effects.expiries_ms, &answer, context.time_ms);
        // Those who wait propose their commands anew, behind this entry.
        self.notices.tell(&effects.filled, &effects.replaced);
        answer.to_bytes().map_err(Rejection::Refused)
    }
}

/// Keeps the latest expiry of all: as long as it is to come, time has to go on also where nothing
/// is written.
fn note_expiry(transaction: &mut Transaction, system: &esker::Keyspace, latest_ms: u64) -> esker::Result<()> {
    if latest_ms == 0 {
        return Ok(());
    }
    let stored = transaction.get(system, LATEST_EXPIRY)?;
    let stored = stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes);
    if latest_ms > stored { transaction.put(system, LATEST_EXPIRY, latest_ms.to_be_bytes()) } else { Ok(()) }
}

fn local_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn in_database<T>(
    place: &mut Place<'_>,
    database: usize,
    function: impl FnOnce(&mut Context<'_>) -> Outcome<T>,
) -> Outcome<T> {
    let at = (database, place.time_ms, place.seeds.next());
    let mut context = Context::new(place.transaction, place.keyspaces, &mut place.effects, at)?;
    function(&mut context)
}

/// Of an engine that failed, and of what it takes from nobody. A refusal of a command is a reply.
fn rejection(failure: Failure) -> Rejection {
    match failure {
        Failure::Engine(error) => error.into(),
        Failure::Refused(text) => Rejection::Refused(text.into_owned()),
        Failure::Blocked(_) => Rejection::Refused("a command waits where nothing can wait".into()),
    }
}

fn unreadable(what: String) -> Error {
    Error::Corruption { path: "an entry of the log".into(), offset: 0, what }
}

fn execute_list(place: &mut Place<'_>, list: &CommandList) -> Result<Answer, Rejection> {
    for Guard { database, key, fingerprint } in &list.guards {
        let found = in_database(place, *database as usize, |context| context.fingerprint(key));
        let is_same = match found {
            Ok(found) => found == *fingerprint,
            // A key that cannot be read is none that was watched.
            Err(Failure::Refused(_)) => false,
            Err(other) => return Err(rejection(other)),
        };
        if !is_same {
            return Ok(Answer::Touched);
        }
    }
    let (mut replies, mut bytes) = (Vec::with_capacity(list.calls.len()), 0);
    for call in &list.calls {
        if bytes >= REPLY_BYTES && !list.is_transaction {
            break;
        }
        let reply = match execute_call(place, call) {
            Ok(reply) => reply,
            Err(Failure::Refused(text)) => Reply::Error(text),
            Err(Failure::Blocked(blocked)) if list.is_transaction => blocked.otherwise,
            Err(Failure::Blocked(blocked)) => {
                let blocked = Some(Waits { keys: blocked.keys, timeout_ms: blocked.timeout_ms });
                return Ok(Answer::Replies { replies, blocked });
            }
            Err(other) => return Err(rejection(other)),
        };
        bytes += reply.size_bytes();
        replies.push(reply);
        if bytes > MOST_REPLY_BYTES {
            let most = MOST_REPLY_BYTES >> 20;
            let why = format!("the replies of an entry that writes are more than {most} MiB; read less in it");
            return Err(Rejection::Refused(why));
        }
    }
    Ok(Answer::Replies { replies, blocked: None })
}

/// Whether replicas of this version can execute it.
pub fn is_known(call: &Call) -> bool {
    function_of(&call.arguments).is_some()
}

fn function_of(arguments: &[Bytes]) -> Option<DataFunction> {
    let command = arguments.first().and_then(|name| find(name)).filter(|command| command.accepts(arguments.len()))?;
    match command.handler {
        Handler::Data(function) => Some(function),
        _ => None,
    }
}

fn execute_call(place: &mut Place<'_>, Call { database, arguments }: &Call) -> Outcome {
    let Some(function) = function_of(arguments) else {
        // The leader knows it. A replica that went on without it would have another state.
        let name = arguments.first().map_or_else(String::new, |name| name.escape_ascii().to_string());
        let what =
            format!("it has the command '{name}', which this version does not know; run one version on all nodes");
        return Err(Failure::Engine(unreadable(what)));
    };
    in_database(place, *database as usize, |context| function(context, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(db: &Db, call: &[&str]) -> Result<Answer, Rejection> {
        let commands = Commands::new(1, Arc::default(), Arc::default());
        let stored = commands.open(db).unwrap();
        applied_at(db, (&commands, &stored), &list_of(call), 1)
    }

    fn list_of(call: &[&str]) -> Payload {
        let arguments = call.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let calls = vec![Call { database: 0, arguments }];
        Payload::Commands(CommandList { databases: 1, seed: 1, is_transaction: false, guards: Vec::new(), calls })
    }

    fn applied_at(
        db: &Db,
        (commands, stored): (&Commands, &Stored),
        payload: &Payload,
        time_ms: u64,
    ) -> Result<Answer, Rejection> {
        let payload = payload.to_bytes().unwrap();
        let mut transaction = db.transaction();
        let mut context = EntryContext { keyspaces: stored, transaction: &mut transaction, time_ms, index: 1 };
        let answer = commands.apply(&mut context, &payload)?;
        transaction.commit()?;
        Ok(Answer::from_bytes(&answer).unwrap())
    }

    /// What expires is due until its leftovers are removed, however the time of its expiry came.
    #[test]
    fn what_expires_is_due_until_it_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), esker::Options::default()).unwrap();
        let commands = Commands::new(1, Arc::default(), Arc::default());
        let stored = commands.open(&db).unwrap();
        let apply = |payload: &Payload, time_ms| applied_at(&db, (&commands, &stored), payload, time_ms).unwrap();
        let first_ms = || commands.dues().lock().first_ms();
        apply(&list_of(&["SET", "a", "1"]), 1000);
        assert_eq!(first_ms(), None);
        for key in 0..SWEPT + 1 {
            let key = key.to_string();
            apply(&list_of(&["RPUSH", &key, "x"]), 1000);
            apply(&list_of(&["PEXPIREAT", &key, "5000"]), 1000);
        }
        apply(&list_of(&["SET", "b", "1", "PXAT", "9000"]), 1000);
        assert_eq!(first_ms(), Some(5000));
        // A write has the time; nothing is removed.
        apply(&list_of(&["SET", "a", "2"]), 6000);
        assert_eq!(first_ms(), Some(5000));
        assert_eq!(apply(&Payload::Tick, 6000), Answer::Swept(SWEPT as u64));
        assert_eq!(first_ms(), Some(5000));
        assert_eq!(apply(&Payload::Tick, 6000), Answer::Swept(1));
        assert_eq!(first_ms(), Some(9000));
        // One that is opened anew does not know which times there are.
        let commands = Commands::new(1, Arc::default(), Arc::default());
        drop(commands.open(&db).unwrap());
        assert_eq!(commands.dues().lock().first_ms(), Some(0));
        commands.dues().lock().remove_until(8999);
        assert_eq!(commands.dues().lock().first_ms(), Some(0));
        commands.dues().lock().remove_until(9000);
        assert_eq!(commands.dues().lock().first_ms(), None);
    }

    /// A replica stops where it would go on with another state than the others.
    #[test]
    fn what_a_replica_cannot_do_stops_it() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), esker::Options::default()).unwrap();
        assert!(matches!(applied(&db, &["SET", "a", "1"]), Ok(Answer::Replies { .. })));
        assert!(matches!(applied(&db, &["NOSUCH", "a"]), Err(Rejection::Failed(_))));
        // Arguments that a version takes, and this one does not.
        assert!(matches!(applied(&db, &["GET", "a", "b"]), Err(Rejection::Failed(_))));
        // What all of them refuse is a reply.
        let long = "x".repeat(2 << 20);
        assert!(matches!(applied(&db, &["GET", &long]), Ok(Answer::Replies { .. })));
        // A stored value that this version cannot read.
        let keys = db.keyspaces().into_iter().filter(|name| name.starts_with('0'));
        for name in keys {
            let keyspace = db.existing_keyspace(&name).unwrap();
            let stored: Vec<_> = keyspace.iter().map(|pair| pair.unwrap().0).collect();
            stored.iter().for_each(|key| keyspace.put(key, [0xee]).unwrap());
        }
        assert!(matches!(applied(&db, &["GET", "a"]), Err(Rejection::Failed(_))));
    }
}
