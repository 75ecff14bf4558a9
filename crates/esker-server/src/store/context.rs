//! What a command executes on: one logical database in a transaction, at a given time.

use super::encoding::{
    ELEMENT_BYTES_MAX, KEY_BYTES_MAX, item_key, key_of, member_key, member_of, prefix_of_items, prefix_of_members,
};
use super::entry::{Body, Collection, Entry, Kind};
use super::keyspaces::{Keyspaces, Pair};
use super::random::Random;
use super::thresholds::Thresholds;
use crate::protocol::Reply;
use bytes::Bytes;
use esker::{Error, KeyRange, Slice, Transaction};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use twox_hash::XxHash3_128;

/// Why a command has no ordinary reply.
#[derive(Debug)]
pub enum Failure {
    /// The client requested what cannot be done; nothing was written.
    Refused(Cow<'static, str>),
    /// The engine failed; the transaction is given up.
    Engine(Error),
    /// There is nothing yet of what the client waits for; nothing was written.
    Blocked(Blocked),
}

/// What a client waits for.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The command is to be executed again when one of these keys is filled.
    pub keys: Vec<Bytes>,
    /// How long the client waits, in milliseconds; without end if it is 0.
    pub timeout_ms: u64,
    /// What it gets within EXEC, where nothing waits. One that has waited so long gets no array.
    pub otherwise: Reply,
}

/// What a command results in.
pub type Outcome<T = Reply> = Result<T, Failure>;

/// A value of another type than that of the command.
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl Failure {
    /// A refusal in these words, which begin with the code.
    pub fn refused<T>(text: impl Into<Cow<'static, str>>) -> Outcome<T> {
        Err(Failure::Refused(text.into()))
    }
}

/// What commands did to a database, for those who wait for it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Keys that were written, with their logical databases.
    pub modified: Vec<(usize, Bytes)>,
    /// Logical databases that were emptied or swapped.
    pub replaced: Vec<usize>,
    /// Keys whose lists or sorted sets got elements.
    pub filled: Vec<(usize, Bytes)>,
    /// The bytes of all writes.
    pub written_bytes: usize,
    /// How often something was written.
    pub writes: u64,
    /// The expiries that were written, in milliseconds since the epoch.
    pub expiries_ms: Vec<u64>,
    /// How many keys were looked up and found.
    pub found_keys: u64,
    /// How many keys were looked up and not found.
    pub missed_keys: u64,
    /// Whether a stored value was met that is damaged, or of another version.
    pub has_damage: bool,
}

/// A collection that a command works on.
#[derive(Clone, Debug)]
pub struct Open {
    /// Its key.
    pub key: Bytes,
    /// When it expires.
    pub expiry_ms: Option<u64>,
    /// Where its elements are, and how many.
    pub collection: Collection,
    /// As it is stored; `None` if it is new.
    stored: Option<Collection>,
}

impl Open {
    /// How many elements it has.
    pub fn count(&self) -> u64 {
        self.collection.count
    }
}

/// Collections with more elements are deleted as a range: a range tombstone costs as much as some
/// ordinary ones.
const DELETED_ONE_BY_ONE: u64 = 64;

/// One logical database in a transaction, at a given time.
#[derive(Debug)]
pub struct Context<'t> {
    transaction: &'t mut Transaction,
    keyspaces: &'t mut Keyspaces,
    effects: &'t mut Effects,
    pair: Pair,
    database: usize,
    now_ms: u64,
    /// What random replies are drawn from.
    pub random: Random,
}

impl<'t> Context<'t> {
    /// A context on the logical database `database` at the time `now_ms`. Replies depend on these,
    /// on `seed` and on the state of the database, and on nothing else.
    ///
    /// # Errors
    /// Those of the engine, where a keyspace is to be created.
    pub fn new(
        transaction: &'t mut Transaction,
        keyspaces: &'t mut Keyspaces,
        effects: &'t mut Effects,
        (database, now_ms, seed): (usize, u64, u64),
    ) -> Outcome<Context<'t>> {
        let pair = keyspaces.logical(database)?;
        Ok(Context { transaction, keyspaces, effects, pair, database, now_ms, random: Random::new(seed) })
    }

    /// The time of the command.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The logical database.
    pub fn database(&self) -> usize {
        self.database
    }

    /// How many logical databases there are.
    pub fn databases(&self) -> usize {
        self.keyspaces.databases()
    }

    /// Whether a logical database was ever used.
    pub fn is_created(&self, database: usize) -> bool {
        self.keyspaces.is_created(database)
    }

    /// What OBJECT ENCODING goes by.
    pub fn thresholds(&self) -> &Thresholds {
        &self.keyspaces.thresholds
    }

    /// Goes on in another logical database.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn switch(&mut self, database: usize) -> Outcome<()> {
        self.pair = self.keyspaces.logical(database)?;
        self.database = database;
        Ok(())
    }

    fn wrote(&mut self, bytes: usize) {
        self.effects.written_bytes += bytes + 32;
        self.effects.writes += 1;
    }

    /// Notes that the key was written.
    pub fn modified(&mut self, key: &Bytes) {
        self.effects.modified.push((self.database, key.clone()));
    }

    /// Notes that the collection at the key has got elements.
    pub fn filled(&mut self, key: &Bytes) {
        self.effects.filled.push((self.database, key.clone()));
    }

    // Keys.

    /// What is at the key.
    ///
    /// # Errors
    /// A key that is too long is refused; those of the engine.
    pub fn entry(&mut self, key: &[u8]) -> Outcome<Option<Entry>> {
        if key.len() > KEY_BYTES_MAX {
            return Failure::refused(format!("ERR key is longer than {KEY_BYTES_MAX} bytes"));
        }
        let stored = self.transaction.get(&self.pair.keys, key_of(self.keyspaces.seed, key))?;
        let found = match stored {
            None => None,
            Some(stored) => match Entry::decode(stored) {
                Some(entry) => Some(entry).filter(|entry| entry.is_visible(self.now_ms)),
                None => {
                    self.effects.has_damage = true;
                    return Failure::refused(
                        "ERR the stored value of the key is damaged; delete it, or restore a backup",
                    );
                }
            },
        };
        *(if found.is_some() { &mut self.effects.found_keys } else { &mut self.effects.missed_keys }) += 1;
        Ok(found)
    }

    /// The string at the key, as an entry.
    ///
    /// # Errors
    /// As [`Context::entry`]; `WRONGTYPE`.
    pub fn string(&mut self, key: &[u8]) -> Outcome<Option<Entry>> {
        match self.entry(key)? {
            Some(entry) if entry.kind() != Kind::String => Failure::refused(WRONG_TYPE),
            entry => Ok(entry),
        }
    }

    fn put_entry(&mut self, key: &Bytes, stored: &[u8], expiry_ms: Option<u64>) -> Outcome<()> {
        let place = key_of(self.keyspaces.seed, key);
        match expiry_ms {
            None => self.transaction.put(&self.pair.keys, place, stored)?,
            Some(at) => {
                self.effects.expiries_ms.push(at);
                self.transaction.put_until(&self.pair.keys, place, stored, time(at))?;
            }
        }
        self.wrote(key.len() + stored.len());
        self.modified(key);
        Ok(())
    }

    /// Sets the key to the string that the parts make; `old` is what is there.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn set_string(
        &mut self,
        key: &Bytes,
        parts: &[&[u8]],
        expiry_ms: Option<u64>,
        old: Option<&Entry>,
    ) -> Outcome<()> {
        if let Some(Entry { expiry_ms, body: Body::Collection(collection) }) = old {
            self.drop_elements(*expiry_ms, collection)?;
        }
        self.put_entry(key, &Entry::encode_string(expiry_ms, parts), expiry_ms)
    }

    /// Stores at the key what was read at another one, or the same with another expiry. `elements`
    /// is whether elements go along, which are nowhere else then.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn put_as(&mut self, key: &Bytes, entry: &Entry) -> Outcome<()> {
        let stored = match &entry.body {
            Body::String(..) => Entry::encode_string(entry.expiry_ms, &[entry.string().unwrap_or_default()]),
            Body::Collection(collection) => {
                if let Some(at_ms) = entry.expiry_ms {
                    self.note_expiry(at_ms, collection.generation, key)?;
                }
                Entry::encode_collection(entry.expiry_ms, collection)
            }
        };
        self.put_entry(key, &stored, entry.expiry_ms)
    }

    /// Takes the key away, and leaves the elements to where they went.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn forget(&mut self, key: &Bytes) -> Outcome<()> {
        self.transaction.delete(&self.pair.keys, key_of(self.keyspaces.seed, key))?;
        self.wrote(key.len());
        self.modified(key);
        Ok(())
    }

    /// Deletes the key with all that it holds.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete(&mut self, key: &Bytes, entry: &Entry) -> Outcome<()> {
        if let Body::Collection(collection) = &entry.body {
            self.drop_elements(entry.expiry_ms, collection)?;
        }
        self.forget(key)
    }

    /// Gives what is at the key another expiry.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn set_expiry(&mut self, key: &Bytes, entry: &Entry, expiry_ms: Option<u64>) -> Outcome<()> {
        if let Body::Collection(collection) = &entry.body {
            self.forget_expiry(entry.expiry_ms, collection.generation)?;
        }
        self.put_as(key, &Entry { expiry_ms, body: entry.body.clone() })
    }

    /// Notes that a collection expires, where it is and at which key.
    fn note_expiry(&mut self, at_ms: u64, generation: u64, key: &[u8]) -> Outcome<()> {
        let number = self.keyspaces.physical(self.database) as u32;
        let value = [&number.to_be_bytes()[..], key].concat();
        self.transaction.put(&self.keyspaces.system, expiry_note(at_ms, generation), value)?;
        self.wrote(16 + key.len());
        Ok(())
    }

    /// Takes the note away that a collection expires.
    fn forget_expiry(&mut self, at_ms: Option<u64>, generation: u64) -> Outcome<()> {
        if let Some(at_ms) = at_ms {
            self.transaction.delete(&self.keyspaces.system, expiry_note(at_ms, generation))?;
        }
        Ok(())
    }

    fn drop_elements(&mut self, expiry_ms: Option<u64>, collection: &Collection) -> Outcome<()> {
        self.forget_expiry(expiry_ms, collection.generation)?;
        self.delete_generation(collection.generation, collection.count)
    }

    fn delete_generation(&mut self, generation: u64, count: u64) -> Outcome<()> {
        let prefix = generation.to_be_bytes();
        self.wrote(16);
        if count > DELETED_ONE_BY_ONE {
            return Ok(self.transaction.delete_prefix(&self.pair.elements, prefix)?);
        }
        let keys: Vec<Slice> = self
            .transaction
            .prefix(&self.pair.elements, prefix)
            .map(|pair| pair.map(|(key, _)| key))
            .collect::<Result<_, Error>>()?;
        for key in keys {
            self.transaction.delete(&self.pair.elements, key)?;
            self.wrote(16);
        }
        Ok(())
    }

    /// Removes up to `limit` collections that have expired: the elements, and the keys too, which
    /// would be seen again if the clock went back. Returns how many there were.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn sweep(&mut self, limit: usize) -> Outcome<usize> {
        let (from, to) = (expiry_note(0, 0), expiry_note(self.now_ms.saturating_add(1), 0));
        let notes = self.transaction.range(&self.keyspaces.system, from..to).take(limit);
        let found: Vec<(Slice, Slice)> = notes.collect::<Result<_, Error>>()?;
        for (note, value) in &found {
            let (number, key) = value.split_first_chunk().unwrap_or((&[0; 4], &[]));
            let number = u32::from_be_bytes(*number);
            let generation = note.get(9..).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
            self.pair = self.keyspaces.pair(number as usize)?;
            self.delete_generation(generation, u64::MAX)?;
            self.forget_swept(key, generation)?;
            self.transaction.delete(&self.keyspaces.system, note)?;
        }
        self.switch(self.database)?;
        Ok(found.len())
    }

    /// Deletes what is stored at the key, unless it is something else than that collection.
    fn forget_swept(&mut self, key: &[u8], generation: u64) -> Outcome<()> {
        let place = key_of(self.keyspaces.seed, key);
        let stored = self.transaction.get(&self.pair.keys, &place)?;
        // An expired entry is hidden by the engine, and covered by a delete like any other.
        let is_other = stored.is_some_and(|stored| match Entry::decode(stored) {
            Some(Entry { body: Body::Collection(collection), .. }) => collection.generation != generation,
            _ => true,
        });
        if !is_other {
            self.transaction.delete(&self.pair.keys, place)?;
            self.wrote(key.len());
        }
        Ok(())
    }

    /// A hash over all that is at the key: type, expiry, and the value or all elements. Nothing if
    /// nothing is there.
    ///
    /// # Errors
    /// As [`Context::entry`].
    pub fn fingerprint(&mut self, key: &[u8]) -> Outcome<Option<u128>> {
        let Some(entry) = self.entry(key)? else { return Ok(None) };
        let mut hasher = XxHash3_128::new();
        let mut add = |bytes: &[u8]| {
            hasher.write(&(bytes.len() as u64).to_le_bytes());
            hasher.write(bytes);
        };
        add(entry.kind().name().as_bytes());
        add(&entry.expiry_ms.unwrap_or(u64::MAX).to_le_bytes());
        match &entry.body {
            Body::String(..) => add(entry.string().unwrap_or_default()),
            Body::Collection(collection) => {
                let prefix = collection.generation.to_be_bytes();
                for pair in self.transaction.prefix(&self.pair.elements, prefix) {
                    let (key, value) = pair?;
                    // Without the generation, which another collection with the same elements has.
                    add(key.get(prefix.len()..).unwrap_or_default());
                    add(&value);
                }
            }
        }
        Ok(Some(hasher.finish_128()))
    }

    // Collections.

    /// The collection at the key.
    ///
    /// # Errors
    /// As [`Context::entry`]; `WRONGTYPE`.
    pub fn open(&mut self, key: &Bytes, kind: Kind) -> Outcome<Option<Open>> {
        match self.entry(key)? {
            None => Ok(None),
            Some(Entry { expiry_ms, body: Body::Collection(collection) }) if collection.kind == kind => {
                Ok(Some(Open { key: key.clone(), expiry_ms, collection, stored: Some(collection) }))
            }
            Some(_) => Failure::refused(WRONG_TYPE),
        }
    }

    /// The collection at the key, or a new one.
    ///
    /// # Errors
    /// As [`Context::open`].
    pub fn open_or_create(&mut self, key: &Bytes, kind: Kind) -> Outcome<Open> {
        match self.open(key, kind)? {
            Some(open) => Ok(open),
            None => self.create(key, kind),
        }
    }

    /// A new collection for the key, where nothing is. It is there once [`Context::close`] finds
    /// elements in it.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn create(&mut self, key: &Bytes, kind: Kind) -> Outcome<Open> {
        let next = self.transaction.get(&self.keyspaces.system, "generation")?;
        let generation = next.and_then(|next| next.as_ref().try_into().ok()).map_or(1, u64::from_be_bytes);
        self.transaction.put(&self.keyspaces.system, "generation", (generation + 1).to_be_bytes())?;
        let collection = Collection { kind, generation, count: 0, first: 0 };
        Ok(Open { key: key.clone(), expiry_ms: None, collection, stored: None })
    }

    /// Stores what has changed of the collection, or deletes it if it is empty. To be called after
    /// changes only.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn close(&mut self, open: &Open) -> Outcome<()> {
        if open.collection.count == 0 {
            if open.stored.is_some() {
                self.forget_expiry(open.expiry_ms, open.collection.generation)?;
                self.forget(&open.key)?;
            }
            return Ok(());
        }
        if open.stored == Some(open.collection) {
            self.modified(&open.key);
            return Ok(());
        }
        let stored = Entry::encode_collection(open.expiry_ms, &open.collection);
        self.put_entry(&open.key, &stored, open.expiry_ms)
    }

    /// The value of an element key.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn element(&mut self, key: &[u8]) -> Outcome<Option<Slice>> {
        Ok(self.transaction.get(&self.pair.elements, key)?)
    }

    /// Writes an element key.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn put_element(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.transaction.put(&self.pair.elements, key, value)?;
        self.wrote(key.len() + value.len());
        Ok(())
    }

    /// Deletes an element key.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete_element(&mut self, key: &[u8]) -> Outcome<()> {
        self.transaction.delete(&self.pair.elements, key)?;
        self.wrote(key.len());
        Ok(())
    }

    /// The value of a field or member.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn member(&mut self, open: &Open, member: &[u8]) -> Outcome<Option<Slice>> {
        if member.len() > ELEMENT_BYTES_MAX {
            return Ok(None);
        }
        self.element(&member_key(self.keyspaces.seed, open.collection.generation, member))
    }

    /// Writes the value of a field or member; `is_new` is whether there was none.
    ///
    /// # Errors
    /// A member that is too long is refused; those of the engine.
    pub fn put_member(&mut self, open: &mut Open, member: &[u8], value: &[u8], is_new: bool) -> Outcome<()> {
        self.check_member(member)?;
        self.put_element(&member_key(self.keyspaces.seed, open.collection.generation, member), value)?;
        open.collection.count += u64::from(is_new);
        Ok(())
    }

    /// Whether a field or member can be stored.
    ///
    /// # Errors
    /// One that is too long is refused.
    pub fn check_member(&self, member: &[u8]) -> Outcome<()> {
        if member.len() > ELEMENT_BYTES_MAX {
            return Failure::refused(format!("ERR a field or member is longer than {ELEMENT_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Deletes a field or member that is there.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete_member(&mut self, open: &mut Open, member: &[u8]) -> Outcome<()> {
        self.delete_element(&member_key(self.keyspaces.seed, open.collection.generation, member))?;
        open.collection.count = open.collection.count.saturating_sub(1);
        Ok(())
    }

    /// Calls `each` with the key and the value of the elements in a range, in order or backwards,
    /// until it returns false.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn scan_elements(
        &mut self,
        range: impl KeyRange,
        is_backward: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let mut iter = self.transaction.range(&self.pair.elements, range);
        while let Some(pair) = if is_backward { iter.next_back() } else { iter.next() } {
            let (key, value) = pair?;
            if !each(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    /// All fields or members with their values, in the order of scans.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn members(&mut self, open: &Open) -> Outcome<Vec<(Bytes, Bytes)>> {
        let prefix = prefix_of_members(open.collection.generation);
        let mut members = Vec::new();
        for pair in self.transaction.prefix(&self.pair.elements, &prefix) {
            let (key, value) = pair?;
            if let Some((_, member)) = key.get(prefix.len()..).and_then(member_of) {
                members.push((Bytes::copy_from_slice(member), Bytes::copy_from_slice(&value)));
            }
        }
        Ok(members)
    }

    /// All elements of a list, in order.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn items(&mut self, open: &Open) -> Outcome<Vec<Bytes>> {
        let prefix = prefix_of_items(open.collection.generation);
        let mut items = Vec::new();
        for pair in self.transaction.prefix(&self.pair.elements, &prefix) {
            items.push(Bytes::copy_from_slice(&pair?.1));
        }
        Ok(items)
    }

    /// The element of a list at an index of the format.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn item(&mut self, open: &Open, index: i64) -> Outcome<Option<Slice>> {
        self.element(&item_key(open.collection.generation, index))
    }

    // The database as a whole.

    /// Calls `each` with the place, key and entry of the keys from a place on, until it returns
    /// false.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn scan_keys(&mut self, from: &[u8], mut each: impl FnMut(u64, &[u8], Entry) -> bool) -> Outcome<()> {
        for pair in self.transaction.range(&self.pair.keys, from..) {
            let (key, value) = pair?;
            let (Some((place, key)), Some(entry)) = (member_of(&key), Entry::decode(value)) else { continue };
            if entry.is_visible(self.now_ms) && !each(place, key, entry) {
                break;
            }
        }
        Ok(())
    }

    /// How many keys there are.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn count_keys(&mut self) -> Outcome<u64> {
        let mut count = 0;
        self.scan_keys(&[], |_, _, _| {
            count += 1;
            true
        })?;
        Ok(count)
    }

    /// About how many keys there are, at a price that does not grow with them. What the
    /// transaction has written is not among them.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn estimate_keys(&self) -> Outcome<u64> {
        Ok(self.pair.keys.approximate_count(..)?)
    }

    /// Deletes all keys.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn clear(&mut self) -> Outcome<()> {
        self.transaction.delete_range(&self.pair.keys, ..)?;
        self.transaction.delete_range(&self.pair.elements, ..)?;
        self.wrote(0);
        self.effects.replaced.push(self.database);
        Ok(())
    }

    /// Swaps two logical databases.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn swap(&mut self, first: usize, second: usize) -> Outcome<()> {
        self.keyspaces.swap(self.transaction, first, second)?;
        self.wrote(0);
        self.effects.replaced.extend([first, second]);
        self.switch(self.database)
    }
}

/// The key of the note that a collection expires.
fn expiry_note(at_ms: u64, generation: u64) -> Vec<u8> {
    [&b"x"[..], &at_ms.to_be_bytes(), &generation.to_be_bytes()].concat()
}

/// The system's form of a time in milliseconds.
fn time(at_ms: u64) -> SystemTime {
    let end = Duration::from_millis(i64::MAX as u64);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at_ms).min(end)).unwrap_or(SystemTime::UNIX_EPOCH)
}
