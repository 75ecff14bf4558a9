//! The contents of a whole database as plain data, the keyspaces that the harnesses use, and
//! writing to them.

use crate::Checked;
use crate::model::{At, Change, Life, Model, NEVER, Operator, Span, Ttl, Write};
use crate::operators::supply;
use crate::orders::order_of;
use esker::{Batch, Db, Error, Expiry, Keyspace, KeyspaceOptions, Slice, Snapshot, WriteOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Its value.
    pub value: Vec<u8>,
    /// Until when, in milliseconds since the Unix epoch; [`NEVER`] where that has no end.
    pub expiry: u64,
    /// Whether its operands cannot be combined, so that there is no value to be read. What is
    /// expected has the one that an operator without a defect makes of them, what was found none.
    pub fails: bool,
}

impl Held {
    /// What a key holds that can be read.
    pub fn value(value: Vec<u8>, expiry: u64) -> Held {
        Held { value, expiry, fails: false }
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Held { fails: true, .. } => write!(f, "a merge that fails"),
            Held { value, expiry: NEVER, .. } => write!(f, "{}", shown(value)),
            Held { value, expiry, .. } => write!(f, "{} until {expiry}", shown(value)),
        }
    }
}

/// Every visible key of every keyspace, and what it holds.
pub type State = BTreeMap<Place, Held>;

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

/// Creation options for a keyspace with that operator and those lives.
pub fn keyspace_options(operator: Operator, ttl: Ttl) -> KeyspaceOptions {
    let options = match supply(operator) {
        Some(operator) => KeyspaceOptions::default().shared_merge_operator(operator),
        None => KeyspaceOptions::default(),
    };
    if ttl == Ttl::Off { options } else { options.ttl(lives(ttl)) }
}

/// The setting for those lives.
pub fn lives(ttl: Ttl) -> esker::Ttl {
    match ttl {
        Ttl::Off => esker::Ttl::Disabled,
        Ttl::On(default) => esker::Ttl::Enabled { default: default.map(Duration::from_millis) },
    }
}

/// The time so many milliseconds after the Unix epoch.
pub fn time(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds)
}

/// Drops a keyspace and creates one of the same name, in both. The old handle goes behind all
/// others, where the model has what it sees.
pub fn drop_and_create(
    db: &Db,
    keyspaces: &mut Vec<Keyspace>,
    model: &mut Model,
    keyspace: usize,
    (settings, options): ((Operator, Ttl), KeyspaceOptions),
) -> Checked<()> {
    let name = keyspaces[keyspace].name();
    let failed = |what: &str, error: Error| format!("{what} {name} failed: {error}");
    db.drop_keyspace(&name).map_err(|error| failed("dropping", error))?;
    match db.existing_keyspace(&name) {
        Err(Error::NotFound { .. }) => {}
        other => return Err(format!("{name} was dropped, and is {other:?}")),
    }
    let new = db.keyspace(&name, options).map_err(|error| failed("creating", error))?;
    let old = std::mem::replace(&mut keyspaces[keyspace], new);
    keyspaces.push(old);
    match model.drop_keyspace(keyspace, settings) {
        index if index + 1 == keyspaces.len() => Ok(()),
        index => Err(format!("the model has it at {index}, of {} handles", keyspaces.len())),
    }
}

/// Performs one write outside a batch. A put until some time, a change of an expiry and a delete of
/// a prefix are asynchronous whatever was requested, and wait where writes are stalled.
pub fn write_one(keyspace: &Keyspace, write: &Write, options: WriteOptions) -> esker::Result<()> {
    let is_plain = options == WriteOptions::new();
    let options = match write.life {
        Life::For(milliseconds) => options.ttl(Duration::from_millis(milliseconds)),
        _ => options,
    };
    match (&write.change, write.life) {
        (Change::Put(value), Life::Until(expiry)) => keyspace.put_until(&write.key, value, time(expiry)),
        (Change::Put(value), Life::For(milliseconds)) if is_plain => {
            keyspace.put_with_ttl(&write.key, value, Duration::from_millis(milliseconds))
        }
        (Change::Put(value), _) => keyspace.put_with(&write.key, value, &options),
        (Change::Delete, _) => keyspace.delete_with(&write.key, &options),
        (Change::Merge(operand), Life::For(milliseconds)) if is_plain => {
            keyspace.merge_with_ttl(&write.key, operand, Duration::from_millis(milliseconds))
        }
        (Change::Merge(operand), _) => keyspace.merge_with(&write.key, operand, &options),
        (Change::Expire, Life::For(milliseconds)) => {
            keyspace.touch(&write.key, Duration::from_millis(milliseconds)).map(drop)
        }
        (Change::Expire, Life::Until(expiry)) => keyspace.expire_at(&write.key, time(expiry)).map(drop),
        (Change::Expire, _) => keyspace.persist(&write.key).map(drop),
        (Change::DeleteRange(low, high), _) => keyspace.delete_range_with((low.clone(), high.clone()), &options),
        (Change::DeletePrefix(prefix), _) => keyspace.delete_prefix(prefix),
    }
}

/// Performs writes as one batch.
pub fn write_batch(db: &Db, keyspaces: &[Keyspace], writes: &[Write], options: WriteOptions) -> esker::Result<()> {
    let mut batch = db.batch();
    if writes.len() % 4 == 3 {
        // What the batch forgets is not written.
        add(&mut batch, keyspaces, &writes[0])?;
        batch.clear();
    }
    writes.iter().try_for_each(|write| add(&mut batch, keyspaces, write))?;
    if writes.len().is_multiple_of(2) { batch.commit_with(&options) } else { batch.commit_and_clear(&options) }
}

fn add(batch: &mut Batch, keyspaces: &[Keyspace], write: &Write) -> esker::Result<()> {
    let (keyspace, key) = (&keyspaces[write.keyspace], &write.key);
    match (&write.change, write.life) {
        (Change::Put(value), Life::Usual | Life::Around(_)) => batch.put(keyspace, key, value),
        (Change::Put(value), Life::For(life)) => batch.put_with_ttl(keyspace, key, value, Duration::from_millis(life)),
        (Change::Put(value), Life::Until(expiry)) => batch.put_until(keyspace, key, value, time(expiry)),
        (Change::Delete, _) => batch.delete(keyspace, key),
        (Change::Merge(operand), Life::For(life)) => {
            batch.merge_with_ttl(keyspace, key, operand, Duration::from_millis(life))
        }
        (Change::Merge(operand), _) => batch.merge(keyspace, key, operand),
        (Change::Expire, Life::For(life)) => batch.touch(keyspace, key, Duration::from_millis(life)),
        (Change::Expire, Life::Until(expiry)) => batch.expire_at(keyspace, key, time(expiry)),
        (Change::Expire, _) => batch.persist(keyspace, key),
        (Change::DeleteRange(low, high), _) => batch.delete_range(keyspace, (low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), _) => batch.delete_prefix(keyspace, prefix),
    }
}

/// What a reader of the model sees. Keys whose merge fails are left out.
pub fn model_state(model: &Model, at: At) -> State {
    let mut state = State::new();
    for keyspace in 0..model.keyspace_count() {
        for (key, value) in model.scan(keyspace, &Span::All, at) {
            if let (Ok(value), Some(expiry)) = (value, model.expires_at(keyspace, &key, at)) {
                state.insert((keyspace, key.to_vec()), Held::value(value.to_vec(), expiry));
            }
        }
    }
    state
}

/// What a scan shows of a key: its value, or none if its operands cannot be combined.
pub type Seen = (Vec<u8>, Option<Vec<u8>>);

/// What a scan shows with the item that it has yielded: "After a merge that failed, the scan goes
/// on behind that key".
pub fn seen(entry: esker::Result<(Slice, Slice)>) -> esker::Result<Seen> {
    match entry {
        Ok((key, value)) => Ok((key.to_vec(), Some(value.to_vec()))),
        Err(Error::MergeFailed { key, .. }) => Ok((unescaped(&key), None)),
        Err(error) => Err(error),
    }
}

/// The key that [`esker::escape_key`] makes this of, if that has not shortened it.
fn unescaped(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    let mut key = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return key,
            [b'\\', b'x', high, low, rest @ ..] => {
                key.push(digit(*high) * 16 + digit(*low));
                rest
            }
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
                key.push(*byte);
                rest
            }
        };
    }
}

fn expiry_of(keyspace: &Keyspace, key: &[u8]) -> esker::Result<u64> {
    Ok(match keyspace.expires_at(key)? {
        // The clock of these checks stands still, so what a scan yields is there.
        Some(Expiry::At(at)) => at.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64),
        Some(Expiry::Never) | None => NEVER,
    })
}

/// The name that a keyspace gets where it is renamed.
pub fn other_name(name: &str) -> String {
    format!("{name}, renamed")
}

/// The keyspace that has this name, or was renamed.
pub fn find_keyspace(db: &Db, name: &str) -> esker::Result<Keyspace> {
    match db.existing_keyspace(name) {
        Err(Error::NotFound { .. }) => db.existing_keyspace(&other_name(name)),
        found => found,
    }
}

/// What the database holds, read by forward scans; a keyspace that does not exist is an empty one.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer: keys that
/// do not ascend.
pub fn read_state(db: &Db, names: &[&str]) -> Checked<esker::Result<State>> {
    let mut state = State::new();
    for (index, name) in names.iter().enumerate() {
        let keyspace = match find_keyspace(db, name) {
            Ok(keyspace) => keyspace,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Ok(Err(error)),
        };
        let mut last: Option<Vec<u8>> = None;
        for entry in keyspace.iter() {
            let (key, value) = match seen(entry) {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error)),
            };
            if last.as_deref().is_some_and(|last| order_of(name).compare(last, &key).is_ge()) {
                return Err(format!("scan of {name} is out of order at {}", shown(&key)));
            }
            let held = match value {
                Some(value) => expiry_of(&keyspace, &key).map(|expiry| Held::value(value, expiry)),
                // What cannot be combined has no expiry to be read.
                None => Ok(Held { fails: true, ..Held::value(Vec::new(), NEVER) }),
            };
            let held = match held {
                Ok(held) => held,
                Err(error) => return Ok(Err(error)),
            };
            last = Some(key.clone());
            state.insert((index, key), held);
        }
    }
    Ok(Ok(state))
}

/// The same where every read must succeed.
pub fn database_state(db: &Db, names: &[&str]) -> Checked<State> {
    read_state(db, names)?.map_err(|error| format!("the scan of everything failed: {error}"))
}

/// A key of a keyspace, by the keyspace's index.
pub type Place = (usize, Vec<u8>);

/// Reads by get, which takes other paths than a scan does, every key of the state and every one of
/// `probes`, which are there or not as the state says. Results as for [`read_state`].
pub fn read_gets(db: &Db, names: &[&str], state: &State, probes: &BTreeSet<Place>) -> Checked<esker::Result<()>> {
    let more = probes.iter().filter(|place| !state.contains_key(*place));
    for place in state.keys().chain(more) {
        let (index, key) = place;
        let found = match find_keyspace(db, names[*index]) {
            Ok(keyspace) => keyspace.get(key),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let fails = state.get(place).is_some_and(|held| held.fails);
        let found = match found {
            Ok(found) => found,
            Err(Error::MergeFailed { .. }) if fails => continue,
            Err(error) => return Ok(Err(error)),
        };
        let expected = state.get(place).map(|held| &held.value[..]);
        if fails || found.as_deref() != expected {
            let [found, expected] = [found.as_deref(), expected].map(|value| value.map(shown));
            return Err(format!("get {index}/{} yields {found:?}, a scan {expected:?}", shown(key)));
        }
    }
    Ok(Ok(()))
}

/// The same of what is there, where every read must succeed.
pub fn check_gets(db: &Db, names: &[&str], state: &State) -> Checked<()> {
    read_gets(db, names, state, &BTreeSet::new())?.map_err(|error| format!("a get failed: {error}"))
}

/// Those of the keyspaces that there are, each with its index.
pub fn existing_keyspaces(db: &Db, names: &[&str]) -> esker::Result<Vec<(usize, Keyspace)>> {
    let mut keyspaces = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match find_keyspace(db, name) {
            Ok(keyspace) => keyspaces.push((index, keyspace)),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(keyspaces)
}

/// The keys that a snapshot shows, each with its value, or none if its operands cannot be combined:
/// of the keyspaces of its time, though they may have been dropped since, and of those that there
/// are now, which show nothing else.
pub fn snapshot_values(
    (db, names): (&Db, &[&str]),
    snapshot: &Snapshot,
    then: &[(usize, Keyspace)],
) -> esker::Result<BTreeMap<Place, Option<Vec<u8>>>> {
    let mut values = BTreeMap::new();
    for (index, keyspace) in then.iter().chain(&existing_keyspaces(db, names)?) {
        for entry in snapshot.iter(keyspace) {
            let (key, value) = seen(entry)?;
            values.insert((*index, key), value);
        }
    }
    Ok(values)
}

/// The first difference between two states, in words.
pub fn difference(expected: &State, found: &State) -> Option<String> {
    let wrong = expected.iter().find(|(place, held)| found.get(*place) != Some(*held));
    let extra = || found.iter().find(|(place, _)| !expected.contains_key(*place));
    let place = wrong.or_else(extra).map(|(place, _)| place)?;
    Some(disagreement(place, expected.get(place), found.get(place)))
}

/// What a key should hold and does not, in words.
pub fn disagreement(place: &Place, expected: Option<&Held>, found: Option<&Held>) -> String {
    let [expected, found] = [expected, found].map(|held| held.map_or("nothing".to_string(), Held::to_string));
    format!("{}/{} is {found}, expected {expected}", place.0, shown(&place.1))
}

/// Bytes for messages: printable, and shortened when long.
pub fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", esker::escape_key(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_what_names_it() {
        let keys: [&[u8]; 6] = [b"", b"key-000", b"\\", b"a\\x41b", &[0, 0x7f, 0x80, 0xff], b"\\\\x"];
        for key in keys {
            assert_eq!(unescaped(&esker::escape_key(key)), key);
        }
    }
}
