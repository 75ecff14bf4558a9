//! The page of 2011 compares LevelDB with TreeDB and SQLite; every other engine is judged in
//! LevelDB's place.

use super::case::Case;

/// The experiment that the others are compared with.
pub const BASELINE: &str = "baseline";

pub const ROLES: [Role; 3] = [Role::LevelDb, Role::TreeDb, Role::Sqlite];

/// What an engine stands for on the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// LevelDB, or any engine in its place.
    LevelDb,
    TreeDb,
    Sqlite,
}

impl Role {
    pub fn of(engine: &str) -> Role {
        match engine {
            "kyoto" => Role::TreeDb,
            "sqlite" => Role::Sqlite,
            _ => Role::LevelDb,
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Role> {
        ROLES.into_iter().find(|role| role.name() == name)
    }

    /// Whom its synchronous writes stand beside.
    pub fn rival(self) -> Role {
        if self == Role::LevelDb { Role::Sqlite } else { Role::LevelDb }
    }

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Role::LevelDb => "LevelDB",
            Role::TreeDb => "TreeDB",
            Role::Sqlite => "SQLite",
        }
    }

    /// The engine that stands for it: the one that is judged, in LevelDB's place unless it has its
    /// own.
    pub fn engine<'a>(self, case: &Case<'a>) -> &'a str {
        match self {
            Role::TreeDb => "kyoto",
            Role::Sqlite => "sqlite",
            Role::LevelDb if Role::of(case.engine) == Role::LevelDb => case.engine,
            Role::LevelDb => "leveldb",
        }
    }
}
