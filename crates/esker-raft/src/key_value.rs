//! The built-in commands: writes to keyspaces, all or none, on conditions.

use crate::apply::{Apply, Context, Rejection};
use crate::error::{Error, Result};
use crate::sessions::at;
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// Operations that take effect together, if all conditions hold.
///
/// ```
/// use esker_raft::{KeyValueCommand, Operation};
/// let names = || "names".to_string();
/// let command = KeyValueCommand::new()
///     .expect("names", "ada", None)
///     .then(Operation::Put { keyspace: names(), key: b"ada".into(), value: b"1815".into(), ttl_ms: None });
/// let payload = command.to_bytes()?;
/// assert_eq!(KeyValueCommand::from_bytes(&payload)?, command);
/// # Ok::<(), esker_raft::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValueCommand {
    /// What must be there before; looked at before any operation.
    pub conditions: Vec<Condition>,
    /// What is done then, in this order.
    pub operations: Vec<Operation>,
}

/// What a key must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The keyspace.
    pub keyspace: String,
    /// The key.
    pub key: Vec<u8>,
    /// Its value; nothing if it must have none.
    pub value: Option<Vec<u8>>,
}

/// A step of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Sets a value.
    Put {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// How long it lives, in milliseconds after the time of the entry; else the default of the
        /// keyspace holds. Only in a keyspace with time to live.
        ttl_ms: Option<u64>,
    },
    /// Removes a key, which need not exist.
    Delete {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Removes all keys from `start` to before `end`, or to the end of the keyspace.
    DeleteRange {
        /// The keyspace.
        keyspace: String,
        /// The first key.
        start: Vec<u8>,
        /// The end of the range.
        end: Option<Vec<u8>>,
    },
    /// Combines an operand with what the key has, by the operator of the keyspace.
    Merge {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
        /// The operand.
        operand: Vec<u8>,
    },
    /// Gives the value of a key another expiry, or none; does nothing to a key without value.
    Expire {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
        /// How long it lives, in milliseconds after the time of the entry; for good if not set.
        ttl_ms: Option<u64>,
    },
    /// Puts the value that the key has at this point into the answer.
    Get {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
    },
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyValueAnswer {
    /// All operations were done; the values are those of each [`Operation::Get`].
    Done(Vec<Option<Vec<u8>>>),
    /// A condition did not hold; nothing was done.
    ConditionFailed {
        /// The number of the condition.
        condition: u32,
        /// The value that the key has.
        found: Option<Vec<u8>>,
    },
}

impl KeyValueCommand {
    /// A command without conditions and operations.
    pub fn new() -> KeyValueCommand {
        KeyValueCommand::default()
    }

    /// Adds a condition.
    pub fn expect(mut self, keyspace: &str, key: impl Into<Vec<u8>>, value: Option<Vec<u8>>) -> KeyValueCommand {
        self.conditions.push(Condition { keyspace: keyspace.into(), key: key.into(), value });
        self
    }

    /// Adds an operation.
    pub fn then(mut self, operation: Operation) -> KeyValueCommand {
        self.operations.push(operation);
        self
    }

    /// The payload.
    ///
    /// # Errors
    /// `InvalidArgument`, never for what memory can hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        to_bytes(self)
    }

    /// The command of a payload.
    ///
    /// # Errors
    /// `Damaged` if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyValueCommand> {
        from_bytes("a command", bytes)
    }
}

impl KeyValueAnswer {
    /// The answer in the bytes of [`crate::Reply::Applied`].
    ///
    /// # Errors
    /// `Damaged` if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyValueAnswer> {
        from_bytes("an answer", bytes)
    }
}

fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| Error::invalid(format!("it has no encoding: {error}")))
}

fn from_bytes<T: DeserializeOwned>(object: &str, bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| Error::damaged(object, error.to_string()))
}

/// The state machine of [`KeyValueCommand`]: a set of keyspaces, the same on every replica.
///
/// ```
/// use esker::{KeyspaceOptions, merge::UInt64Add};
/// let apply = esker_raft::KeyValue::new()
///     .keyspace("names", KeyspaceOptions::default())
///     .keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add));
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyValue {
    keyspaces: BTreeMap<String, KeyspaceOptions>,
}

impl KeyValue {
    /// A state machine without keyspaces.
    pub fn new() -> KeyValue {
        KeyValue::default()
    }

    /// Adds a keyspace. With the compaction style `Fifo`, a compaction filter, or a name that
    /// begins with `raft.` the state machine does not open; see [`Apply::open`].
    pub fn keyspace(mut self, name: impl Into<String>, options: KeyspaceOptions) -> KeyValue {
        self.keyspaces.insert(name.into(), options);
        self
    }
}

fn refuse_if(is_refused: bool, name: &str) -> esker::Result<()> {
    if !is_refused {
        return Ok(());
    }
    let name = esker::escape_key(name.as_bytes());
    let what = format!(
        "keyspace {name:?} has the compaction style `Fifo` or a compaction filter, which change each replica at \
         another moment; use a time to live"
    );
    Err(esker::Error::InvalidArgument { what })
}

fn named<'k>(keyspaces: &'k BTreeMap<String, Keyspace>, name: &str) -> std::result::Result<&'k Keyspace, Rejection> {
    let found = keyspaces.get(name);
    found.ok_or_else(|| Rejection::Refused(format!("no keyspace is named {:?}", esker::escape_key(name.as_bytes()))))
}

/// The time so many milliseconds after that of the entry.
fn after(time_ms: u64, ttl_ms: u64) -> std::result::Result<std::time::SystemTime, Rejection> {
    if ttl_ms == 0 {
        return Err(Rejection::Refused("a time to live of 0 ms; delete the key instead".into()));
    }
    let end = at(time_ms.saturating_add(ttl_ms));
    end.ok_or_else(|| Rejection::Refused(format!("{ttl_ms} ms to live are more than the system can count")))
}

impl Apply for KeyValue {
    type Keyspaces = BTreeMap<String, Keyspace>;

    fn open(&self, db: &Db) -> esker::Result<BTreeMap<String, Keyspace>> {
        // Before any is opened: the style that an open gives is stored, and takes effect.
        for (name, options) in &self.keyspaces {
            if name.starts_with("raft.") {
                let what = format!("keyspace {name:?} is named as one of the state machine; name it without `raft.`");
                return Err(esker::Error::InvalidArgument { what });
            }
            refuse_if(options.drops_values_in_compaction(), name)?;
        }
        let open = |(name, options): (&String, &KeyspaceOptions)| {
            let keyspace = db.keyspace(name, options.clone())?;
            refuse_if(matches!(keyspace.compaction_style(), CompactionStyle::Fifo { .. }), name)?;
            Ok((name.clone(), keyspace))
        };
        self.keyspaces.iter().map(open).collect()
    }

    fn apply(
        &self,
        context: &mut Context<'_, BTreeMap<String, Keyspace>>,
        payload: &[u8],
    ) -> std::result::Result<Vec<u8>, Rejection> {
        let refused = |error: Error| Rejection::Refused(error.to_string());
        let command = KeyValueCommand::from_bytes(payload).map_err(refused)?;
        for (number, Condition { keyspace, key, value }) in command.conditions.iter().enumerate() {
            let found = context.transaction.get(named(context.keyspaces, keyspace)?, key)?;
            if found.as_deref() != value.as_deref() {
                let condition = u32::try_from(number).unwrap_or(u32::MAX);
                let found = found.map(|found| found.to_vec());
                return to_bytes(&KeyValueAnswer::ConditionFailed { condition, found }).map_err(refused);
            }
        }
        let mut values = Vec::new();
        for operation in &command.operations {
            apply_operation(context, operation, &mut values)?;
        }
        to_bytes(&KeyValueAnswer::Done(values)).map_err(refused)
    }
}

fn apply_operation(
    context: &mut Context<'_, BTreeMap<String, Keyspace>>,
    operation: &Operation,
    values: &mut Vec<Option<Vec<u8>>>,
) -> std::result::Result<(), Rejection> {
    let (transaction, time_ms) = (&mut *context.transaction, context.time_ms);
    let keyspace = |name: &str| named(context.keyspaces, name);
    match operation {
        Operation::Put { keyspace: name, key, value, ttl_ms: None } => transaction.put(keyspace(name)?, key, value)?,
        Operation::Put { keyspace: name, key, value, ttl_ms: Some(ttl_ms) } => {
            transaction.put_until(keyspace(name)?, key, value, after(time_ms, *ttl_ms)?)?;
        }
        Operation::Delete { keyspace: name, key } => transaction.delete(keyspace(name)?, key)?,
        Operation::DeleteRange { keyspace: name, start, end: None } => {
            transaction.delete_range(keyspace(name)?, start..)?;
        }
        Operation::DeleteRange { keyspace: name, start, end: Some(end) } => {
            transaction.delete_range(keyspace(name)?, start..end)?;
        }
        Operation::Merge { keyspace: name, key, operand } => transaction.merge(keyspace(name)?, key, operand)?,
        Operation::Expire { keyspace: name, key, ttl_ms: None } => transaction.persist(keyspace(name)?, key)?,
        Operation::Expire { keyspace: name, key, ttl_ms: Some(ttl_ms) } => {
            transaction.expire_at(keyspace(name)?, key, after(time_ms, *ttl_ms)?)?;
        }
        Operation::Get { keyspace: name, key } => {
            let value = transaction.get(keyspace(name)?, key)?;
            values.push(value.map(|value| value.to_vec()));
        }
    }
    Ok(())
}
