//! Which keyspaces a database has, and with what names and settings.

use super::commits::{ALTERED, COUNTER, NAMES, OPERATORS, PASSING, RENAMED, Settings, VALUES};
use crate::Checked;
use crate::model::{Operator, Ttl};
use crate::operators::supply;
use esker::{Db, Error};

/// What can differ from one commit to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    /// The name of the keyspace that comes and goes, if it is there.
    pub(super) passing: Option<&'static str>,
    /// The settings of the one that gets others, if it is there.
    pub(super) altered: Option<(Operator, Ttl)>,
}

impl Present {
    /// Both are there, with these settings.
    pub(super) fn at(settings: &Settings) -> Present {
        Present { passing: Some(settings.passing), altered: Some(settings.altered) }
    }

    /// What the database has.
    pub(super) fn of(db: &Db) -> Checked<Present> {
        let is_there = |name: &&'static str| db.existing_keyspace(name).is_ok();
        let passing: Vec<&'static str> = [NAMES[PASSING], RENAMED].into_iter().filter(is_there).collect();
        if passing.len() > 1 {
            return Err(format!("{passing:?} are there, which are names of one keyspace"));
        }
        let altered = match db.existing_keyspace(NAMES[ALTERED]) {
            Ok(altered) => Some((operator_named(altered.merge_operator().as_deref())?, ttl_of(altered.ttl()))),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(format!("{} cannot be opened: {error}", NAMES[ALTERED])),
        };
        Ok(Present { passing: passing.first().copied(), altered })
    }

    /// The names of all keyspaces, of those that are missing too.
    pub(super) fn names(&self) -> [&'static str; 6] {
        let mut names = NAMES;
        names[PASSING] = self.passing.unwrap_or(NAMES[PASSING]);
        names
    }
}

fn operator_named(name: Option<&str>) -> Checked<Operator> {
    let Some(name) = name else { return Ok(Operator::None) };
    let is_it = |operator: &Operator| supply(*operator).is_some_and(|supplied| supplied.name() == name);
    OPERATORS.into_iter().find(is_it).ok_or_else(|| format!("{} has the operator {name:?}", NAMES[ALTERED]))
}

fn ttl_of(ttl: esker::Ttl) -> Ttl {
    match ttl {
        esker::Ttl::Disabled => Ttl::Off,
        esker::Ttl::Enabled { default } => Ttl::On(default.map(|default| default.as_millis() as u64)),
    }
}

/// The number of the last commit.
pub(super) fn counter(db: &Db) -> Checked<u64> {
    let Ok(keyspace) = db.existing_keyspace(NAMES[VALUES]) else { return Ok(0) };
    match keyspace.get(COUNTER).map_err(|error| format!("the counter cannot be read: {error}"))? {
        None => Ok(0),
        Some(bytes) => bytes[..].try_into().map(u64::from_le_bytes).map_err(|_| "the counter is damaged".to_string()),
    }
}
