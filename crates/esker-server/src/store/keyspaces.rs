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
#[derive(Debug)]
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
        let mut keyspaces = Keyspaces {
            db,
            system,
            seed,
            pairs: vec![None; databases],
            mapping: Vec::new(),
            thresholds: Thresholds::default(),
            databases,
        };
        keyspaces.reload()?;
        Ok(keyspaces)
    }

    /// Reads which physical database each logical one is: at the open, and after a transaction that
    /// was not committed.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn reload(&mut self) -> Result<(), Error> {
        let stored = self.system.get("swapped")?;
        let stored: Vec<usize> = stored
            .iter()
            .flat_map(|stored| stored.chunks_exact(4))
            .map(|number| number.try_into().map_or(0, u32::from_be_bytes) as usize)
            .collect();
        let count = self.databases.max(stored.len());
        self.mapping = (0..count).map(|logical| stored.get(logical).copied().unwrap_or(logical)).collect();
        let most = self.mapping.iter().max().map_or(0, |&most| most + 1);
        self.pairs.resize(self.pairs.len().max(most), None);
        Ok(())
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
