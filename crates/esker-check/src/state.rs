//! The contents of a whole database as plain data, the keyspaces that the harnesses use, and writing to them.

use crate::Checked;
use crate::model::{Change, Model, Operator, Span, Write};
use esker::merge::{Max, Min, Put, StringAppend, UInt64Add};
use esker::{Db, Error, Keyspace, KeyspaceOptions, WriteOptions};
use std::collections::BTreeMap;

/// Every visible key and value of every keyspace.
pub type State = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// How safe a write must be when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the process.
    Async,
    /// Survives the machine.
    Sync,
    /// Lost unless flushed.
    Unlogged,
}

impl Durability {
    /// The options that ask for it.
    pub fn options(self) -> WriteOptions {
        match self {
            Durability::Async => WriteOptions::new(),
            Durability::Sync => WriteOptions::new().sync(true),
            Durability::Unlogged => WriteOptions::new().disable_wal(true),
        }
    }
}

/// Creation options for a keyspace with that operator.
pub fn keyspace_options(operator: Operator) -> KeyspaceOptions {
    let options = KeyspaceOptions::default();
    match operator {
        Operator::None => options,
        Operator::UInt64Add => options.merge_operator(UInt64Add),
        Operator::StringAppend => options.merge_operator(StringAppend::new(",")),
        Operator::Max => options.merge_operator(Max),
        Operator::Min => options.merge_operator(Min),
        Operator::Put => options.merge_operator(Put),
    }
}

/// Performs one write outside a batch.
pub fn write_one(keyspace: &Keyspace, write: &Write, durability: Durability) -> esker::Result<()> {
    let options = durability.options();
    match &write.change {
        Change::Put(value) => keyspace.put_with(&write.key, value, &options),
        Change::Delete => keyspace.delete_with(&write.key, &options),
        Change::Merge(operand) => keyspace.merge_with(&write.key, operand, &options),
    }
}

/// Performs writes as one batch.
pub fn write_batch(db: &Db, keyspaces: &[Keyspace], writes: &[Write], durability: Durability) -> esker::Result<()> {
    let mut batch = db.batch();
    for write in writes {
        let keyspace = &keyspaces[write.keyspace];
        match &write.change {
            Change::Put(value) => batch.put(keyspace, &write.key, value)?,
            Change::Delete => batch.delete(keyspace, &write.key)?,
            Change::Merge(operand) => batch.merge(keyspace, &write.key, operand)?,
        }
    }
    batch.commit_with(&durability.options())
}

/// What the model holds as of a sequence. Keys whose merge fails are left out.
pub fn model_state(model: &Model, at: u64) -> State {
    let mut state = State::new();
    for keyspace in 0..model.keyspace_count() {
        for (key, value) in model.scan(keyspace, &Span::All, at) {
            if let Ok(value) = value {
                state.insert((keyspace, key), value);
            }
        }
    }
    state
}

/// What the database holds, read by forward scans; a keyspace that does not exist is an empty one.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer: keys that do not ascend.
pub fn read_state(db: &Db, names: &[&str]) -> Checked<esker::Result<State>> {
    let mut state = State::new();
    for (index, name) in names.iter().enumerate() {
        let keyspace = match db.existing_keyspace(name) {
            Ok(keyspace) => keyspace,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Ok(Err(error)),
        };
        let mut last: Option<Vec<u8>> = None;
        for entry in keyspace.iter() {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error)),
            };
            if last.as_deref().is_some_and(|last| last >= &key[..]) {
                return Err(format!("scan of {name} is out of order at {}", shown(&key)));
            }
            last = Some(key.to_vec());
            state.insert((index, key.to_vec()), value.to_vec());
        }
    }
    Ok(Ok(state))
}

/// The same where every read must succeed.
pub fn database_state(db: &Db, names: &[&str]) -> Checked<State> {
    read_state(db, names)?.map_err(|error| format!("the scan of everything failed: {error}"))
}

/// Also reads every key by get, which takes other paths than a scan does.
pub fn check_gets(db: &Db, names: &[&str], state: &State) -> Checked<()> {
    for ((index, key), value) in state {
        let keyspace = db.existing_keyspace(names[*index]).map_err(|error| format!("keyspace {index}: {error}"))?;
        match keyspace.get(key) {
            Ok(Some(found)) if found[..] == value[..] => {}
            Ok(found) => {
                let found = found.map(|slice| shown(&slice));
                return Err(format!("get {} yields {found:?}, a scan {}", shown(key), shown(value)));
            }
            Err(error) => return Err(format!("get {} failed: {error}", shown(key))),
        }
    }
    Ok(())
}

/// The first difference between two states, in words.
pub fn difference(expected: &State, found: &State) -> Option<String> {
    for (place, value) in expected {
        match found.get(place) {
            Some(other) if other == value => {}
            other => {
                let other = other.map_or("nothing".to_string(), |other| shown(other));
                return Some(format!("{}/{} is {other}, expected {}", place.0, shown(&place.1), shown(value)));
            }
        }
    }
    let extra = found.iter().find(|(place, _)| !expected.contains_key(*place))?;
    Some(format!("{}/{} is {}, expected nothing", extra.0.0, shown(&extra.0.1), shown(extra.1)))
}

/// Bytes for messages: printable, and shortened when long.
pub fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", esker::escape_key(bytes))
}
