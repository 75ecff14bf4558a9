//! What clients use, and what each use finds when one comes after the other.

use stateright::semantics::SequentialSpec;
use std::collections::BTreeSet;

/// How many kinds of objects there are. Objects have numbers, and the kinds take turns.
pub const KINDS: usize = 4;
/// The kind whose uses have a time.
pub const LEASE: usize = 3;
/// The members that the set may have.
pub const MEMBERS: u8 = 5;

/// An object, with its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    Register(u64),
    Sum(u64),
    Set(BTreeSet<u8>),
    /// A value until a time, and the time of the newest use: time never goes back.
    Lease {
        value: Option<(u64, u64)>,
        time_ms: u64,
    },
}

/// A use of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Use {
    Read,
    Write(u64),
    Add(u64),
    Insert(u8),
    Remove(u8),
    Clear,
    Grant { value: u64, ttl_ms: u64 },
    Renew { ttl_ms: u64 },
}

/// What a use found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Nothing,
    Number(u64),
    /// Whether the member was there before.
    Was(bool),
    Members(BTreeSet<u8>),
    /// The time, and what the lease had before.
    Lease {
        time_ms: u64,
        value: Option<u64>,
    },
}

impl Object {
    /// An object of that number, before it is used.
    pub fn new(number: usize) -> Object {
        match number % KINDS {
            0 => Object::Register(0),
            1 => Object::Sum(0),
            2 => Object::Set(BTreeSet::new()),
            _ => Object::Lease { value: None, time_ms: 0 },
        }
    }
}

fn use_lease(lease: &mut Option<(u64, u64)>, time_ms: u64, what: &Use) -> Found {
    let before = lease.filter(|(_, end_ms)| *end_ms > time_ms).map(|(value, _)| value);
    match what {
        Use::Grant { value, ttl_ms } => *lease = Some((*value, time_ms + ttl_ms)),
        Use::Renew { ttl_ms } => *lease = before.map(|value| (value, time_ms + ttl_ms)),
        _ => {}
    }
    Found::Lease { time_ms, value: before }
}

impl SequentialSpec for Object {
    type Op = Use;
    type Ret = Found;

    fn invoke(&mut self, what: &Use) -> Found {
        match (self, what) {
            (Object::Register(value), Use::Read) => Found::Number(*value),
            (Object::Register(value), Use::Write(new)) => {
                *value = *new;
                Found::Nothing
            }
            (Object::Sum(sum), Use::Add(amount)) => {
                *sum += amount;
                Found::Number(*sum)
            }
            (Object::Sum(sum), _) => Found::Number(*sum),
            (Object::Set(members), Use::Insert(member)) => Found::Was(!members.insert(*member)),
            (Object::Set(members), Use::Remove(member)) => Found::Was(members.remove(member)),
            (Object::Set(members), Use::Clear) => {
                members.clear();
                Found::Nothing
            }
            (Object::Set(members), _) => Found::Members(members.clone()),
            (Object::Lease { value, time_ms }, what) => use_lease(value, *time_ms, what),
            (Object::Register(_), _) => Found::Nothing,
        }
    }

    /// The time of a use is what it found it to be, and not before that of an earlier one.
    fn is_valid_step(&mut self, what: &Use, found: &Found) -> bool {
        if let (Object::Lease { time_ms: newest_ms, .. }, Found::Lease { time_ms, .. }) = (&mut *self, found) {
            if time_ms < newest_ms {
                return false;
            }
            *newest_ms = *time_ms;
        }
        self.invoke(what) == *found
    }
}
