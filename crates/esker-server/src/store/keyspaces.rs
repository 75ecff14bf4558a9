//! The keyspaces of the server in a database.

use super::thresholds::Thresholds;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, Transaction, Ttl};
use std::fmt;
use std::path::Path;

const FORMAT: &[u8] = b"1";

/// The two keyspaces of a logical database.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The keys of clients.
    pub keys: Keyspace,
    /// What collections hold.
    pub elements: Keyspace,
}

/// Why the directory cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The engine does not open it.
    Engine(Error),
    /// It is of another version of the format; the text says which.
    Format(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Engine(error) => error.fmt(f),
            OpenError::Format(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        OpenError::Engine(error)
    }
}

/// The keyspaces, and what is constant in a database.
#[derive(Clone, Debug)]
pub struct Keyspaces {
    db: Db,
    /// Generations, and what else is no data of clients.
    pub system: Keyspace,
    /// The seed of the places of keys.
    pub seed: u64,
    pairs: Vec<Option<Pair>>,
    /// What OBJECT ENCODING goes by.
    pub thresholds: Thresholds,
    /// The physical database of each logical one, also of those that an earlier open had more.
    mapping: Vec<usize>,
    databases: usize,
    /// Whether a replica has read the seed.
    is_begun: bool,
}

impl Keyspaces {
    /// Opens or creates the database in `directory`, with `databases` logical databases. `seed` is
    /// that of a new database; drawn at random, nobody can choose keys whose places are the same.
    ///
    /// # Errors
    /// Those of [`Db::open`]; [`OpenError::Format`] if another version has written it.
    pub fn open(directory: &Path, options: Options, databases: usize, seed: u64) -> Result<Keyspaces, OpenError> {
        let db = Db::open(directory, options)?;
        let system = db.keyspace("system", KeyspaceOptions::default())?;
        if let Some(format) = system.put_if_absent("format", FORMAT)?
            && &*format != FORMAT
        {
            let found = String::from_utf8_lossy(&format);
            return Err(OpenError::Format(format!(
                "the directory has the server's format {found}, and this version reads 1; use the version that wrote it"
            )));
        }
        let seed = match system.put_if_absent("seed", seed.to_be_bytes())? {
            None => seed,
            Some(stored) => stored.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| {
                OpenError::Format("the stored seed has not 8 bytes; restore the directory from a backup".into())
            })?,
        };
        // A place that is lost would hide every key: it is durable before the first of them.
        db.sync()?;
        let mut keyspaces = Keyspaces::unread(db, system, databases);
        keyspaces.seed = seed;
        keyspaces.reload()?;
        Ok(keyspaces)
    }

    /// The keyspaces of a replica: nothing is written but by commands that all replicas apply, the
    /// seed of places by the first of them. [`Keyspaces::refresh`] reads what is stored.
    ///
    /// # Errors
    /// Those of [`Db::keyspace`].
    pub fn of_replica(db: &Db, databases: usize) -> Result<Keyspaces, Error> {
        let system = db.keyspace("system", KeyspaceOptions::default())?;
        Ok(Keyspaces::unread(db.clone(), system, databases))
    }

    fn unread(db: Db, system: Keyspace, databases: usize) -> Keyspaces {
        let (pairs, mapping, thresholds) = (vec![None; databases], Vec::new(), Thresholds::default());
        Keyspaces { db, system, seed: 0, pairs, thresholds, mapping, databases, is_begun: false }
    }

    /// Reads what a transaction of a replica sees: the seed, and which physical database each of
    /// `databases` logical ones is.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn refresh(&mut self, transaction: &mut Transaction, databases: usize) -> Result<(), Error> {
        self.databases = databases;
        if !self.is_begun
            && let Some(seed) = transaction.get(&self.system, "seed")?
        {
            self.seed = seed.as_ref().try_into().map_or(0, u64::from_be_bytes);
            self.is_begun = true;
        }
        let stored = transaction.get(&self.system, "swapped")?;
        self.map(stored.as_deref().unwrap_or_default());
        Ok(())
    }

    /// Makes `seed` the seed of places, if this is the first transaction of all.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn begin(&mut self, transaction: &mut Transaction, seed: u64) -> Result<(), Error> {
        if !self.is_begun {
            transaction.put(&self.system, "format", FORMAT)?;
            transaction.put(&self.system, "seed", seed.to_be_bytes())?;
            // Whether that is committed the next transaction reads.
            self.seed = seed;
        }
        Ok(())
    }

    /// Reads which physical database each logical one is: at the open, and after a transaction that
    /// was not committed.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn reload(&mut self) -> Result<(), Error> {
        let stored = self.system.get("swapped")?;
        self.map(stored.as_deref().unwrap_or_default());
        Ok(())
    }

    fn map(&mut self, stored: &[u8]) {
        let numbers = stored.chunks_exact(4);
        let stored: Vec<usize> =
            numbers.map(|number| number.try_into().map_or(0, u32::from_be_bytes) as usize).collect();
        let count = self.databases.max(stored.len());
        self.mapping = (0..count).map(|logical| stored.get(logical).copied().unwrap_or(logical)).collect();
        let most = self.mapping.iter().max().map_or(0, |&most| most + 1);
        self.pairs.resize(self.pairs.len().max(most), None);
    }

    /// The number in the names of the keyspaces of a logical database.
    pub fn physical(&self, logical: usize) -> usize {
        self.mapping.get(logical).copied().unwrap_or(logical)
    }

    /// The keyspaces of a logical database.
    ///
    /// # Errors
    /// As [`Keyspaces::pair`].
    pub fn logical(&mut self, logical: usize) -> Result<Pair, Error> {
        self.pair(self.physical(logical))
    }

    /// Swaps two logical databases, from the commit of the transaction on.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn swap(&mut self, transaction: &mut Transaction, first: usize, second: usize) -> Result<(), Error> {
        let mut mapping = self.mapping.clone();
        mapping.swap(first, second);
        let stored: Vec<u8> = mapping.iter().flat_map(|&number| (number as u32).to_be_bytes()).collect();
        transaction.put(&self.system, "swapped", stored)?;
        self.mapping = mapping;
        Ok(())
    }

    /// The database of the engine.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// How many logical databases there are.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The keyspaces of the physical database `number`, which are created if there are none.
    ///
    /// # Errors
    /// Those of [`Db::keyspace`].
    pub fn pair(&mut self, number: usize) -> Result<Pair, Error> {
        if let Some(Some(pair)) = self.pairs.get(number) {
            return Ok(pair.clone());
        }
        let ttl = Ttl::Enabled { default: None };
        let keys = self.db.keyspace(&number.to_string(), KeyspaceOptions::default().ttl(ttl))?;
        let elements = self.db.keyspace(&format!("{number}.elements"), KeyspaceOptions::default())?;
        let pair = Pair { keys, elements };
        if let Some(place) = self.pairs.get_mut(number) {
            *place = Some(pair.clone());
        }
        Ok(pair)
    }

    /// Whether the logical database has keyspaces yet.
    pub fn is_created(&self, logical: usize) -> bool {
        let number = self.physical(logical);
        matches!(self.pairs.get(number), Some(Some(_))) || self.db.keyspaces().contains(&number.to_string())
    }

    /// Begins a transaction on all of them.
    pub fn transaction(&self) -> Transaction {
        self.db.transaction()
    }
}
