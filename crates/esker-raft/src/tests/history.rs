//! A history of entries, and what a state machine makes of it when nothing happens to it.

use super::world::{apply, blank, entry, membership, put, random, value};
use crate::{Apply, StateDatabase};
use crate::{
    Entry, Error, Executor, KeyValue, KeyValueCommand, Operation, RangeHash, Reply, Request, StateMachine, StateOptions,
};
use esker::env::Env;
use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{KeyspaceOptions, Options, Ttl};
use rand::RngExt;
use rand::rngs::StdRng;
use std::sync::Arc;

/// The keyspaces of the tests: plain ones, sums, and one in which values expire.
pub fn key_value() -> KeyValue {
    KeyValue::new()
        .keyspace("names", KeyspaceOptions::default())
        .keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add))
        .keyspace("leases", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None }))
}

pub fn options(env: Arc<dyn Env>, options: Options) -> StateOptions {
    StateOptions::default().env(env).database(options).executor(Executor::InPlace)
}

/// Everything in the state, but for the position.
pub fn hash<A: Apply>(database: &StateDatabase<A>) -> Vec<RangeHash> {
    crate::state_hash::hash(database.db(), &database.db().snapshot(), "raft.state").unwrap()
}

fn key(random: &mut StdRng) -> String {
    format!("key-{:02}", random.random_range(0..24))
}

fn operation(random: &mut StdRng) -> Operation {
    let key = key(random);
    let (names, sums, leases) = ("names".to_string(), "sums".to_string(), "leases".to_string());
    match random.random_range(0..12) {
        0..3 => put("names", &key, value(random), None),
        3 | 4 => put("leases", &key, value(random), Some(random.random_range(1..400))),
        5 => Operation::Delete { keyspace: names, key: key.into() },
        6 => {
            let end = format!("key-{:02}", random.random_range(0..24));
            let keyspace = if random.random_range(0..2) == 0 { names } else { leases };
            Operation::DeleteRange { keyspace, start: key.into(), end: Some(end.into()) }
        }
        7 | 8 => {
            let operand = random.random_range(0..1000u64).to_le_bytes().to_vec();
            Operation::Merge { keyspace: sums, key: key.into(), operand }
        }
        9 => {
            let ttl_ms = (random.random_range(0..3) > 0).then(|| random.random_range(1..300));
            Operation::Expire { keyspace: leases, key: key.into(), ttl_ms }
        }
        _ => {
            let keyspace = [names, sums, leases][random.random_range(0..3)].clone();
            Operation::Get { keyspace, key: key.into() }
        }
    }
}

/// Entries from index 0 on, of every kind.
pub fn entries(seed: u64, length: u64) -> Vec<Entry> {
    let mut random = random(seed);
    let mut time_ms = 1_000_000;
    let (mut sessions, mut sent) = (Vec::new(), Vec::new());
    let mut entries = vec![membership(1, 0, &[1, 2, 3])];
    for index in 1..length {
        time_ms += random.random_range(0..60);
        // A leader whose clock is behind that of the one before.
        let time_ms = if random.random_range(0..20) == 0 { time_ms - 500 } else { time_ms };
        let operations = (0..random.random_range(1..4)).map(|_| operation(&mut random)).collect::<Vec<_>>();
        let request = match random.random_range(0..20) {
            0 => {
                entries.push(blank(1, index));
                continue;
            }
            1 => {
                entries.push(membership(1, index, &[1, 2, 3, 4]));
                continue;
            }
            2 => {
                sessions.push(index);
                Request::OpenSession
            }
            3..6 if !sessions.is_empty() => {
                let session = sessions[random.random_range(0..sessions.len())];
                let request = Request::ApplyOnce { session, number: index, payload: payload(operations) };
                sent.push(request.clone());
                request
            }
            6 if !sent.is_empty() => sent[random.random_range(0..sent.len())].clone(),
            // What cannot be applied.
            7 => apply(vec![put("names", "key-00", "refused", None), put("nowhere", "key", "", None)]),
            8 => Request::Apply(vec![0xff; 3]),
            9..12 => {
                let expected = (random.random_range(0..2) == 0).then(|| value(&mut random));
                let command = KeyValueCommand { conditions: Vec::new(), operations };
                // Most have no value: whether one has expired decides what is written.
                let command = command.expect("leases", key(&mut random), expected);
                Request::Apply(command.to_bytes().unwrap())
            }
            _ => apply(operations),
        };
        entries.push(entry(1, index, time_ms, request));
    }
    entries
}

pub fn payload(operations: Vec<Operation>) -> Vec<u8> {
    KeyValueCommand { conditions: Vec::new(), operations }.to_bytes().unwrap()
}

/// What each number of entries makes of the state, and the reply to each.
pub struct Expected {
    pub entries: Vec<Entry>,
    /// The hashes after so many entries.
    pub hashes: Vec<Vec<RangeHash>>,
    pub replies: Vec<Reply>,
}

impl Expected {
    pub fn of(seed: u64, length: u64) -> Expected {
        Expected::of_entries(entries(seed, length))
    }

    pub fn of_entries(entries: Vec<Entry>) -> Expected {
        let env = Arc::new(MemEnv::new());
        let machine = StateMachine::open("state", key_value(), options(env, Options::default())).unwrap();
        let mut hashes = vec![hash(&machine.database())];
        let mut replies = Vec::new();
        for entry in &entries {
            replies.push(machine.apply(entry).unwrap());
            hashes.push(hash(&machine.database()));
        }
        Expected { entries, hashes, replies }
    }

    /// How many entries a state machine has applied, if its state is what it should be.
    pub fn check<A: Apply>(&self, database: &StateDatabase<A>, least: usize, most: usize) -> Result<usize, String> {
        let applied = database.applied().0.map_or(0, |id| usize::try_from(id.index()).unwrap() + 1);
        if !(least..=most).contains(&applied) {
            return Err(format!("{applied} entries are applied, where {least} to {most} may be"));
        }
        if hash(database) != self.hashes[applied] {
            return Err(format!("the state after {applied} entries is another one"));
        }
        Ok(applied)
    }

    /// Applies the entries from number `from` on.
    pub fn go_on<A: Apply>(&self, machine: &StateMachine<A>, from: usize) -> Result<(), String> {
        for (entry, expected) in self.entries.iter().zip(&self.replies).skip(from) {
            let reply = machine.apply(entry).map_err(|error: Error| error.to_string())?;
            if reply != *expected {
                let index = openraft::entry::RaftEntry::index(entry);
                return Err(format!("the reply to entry {index} is {reply:?}, not {expected:?}"));
            }
        }
        self.check(&machine.database(), self.entries.len(), self.entries.len()).map(|_| ())
    }
}
