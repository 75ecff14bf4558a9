//! The page of 2011: LDB-1 to LDB-13. It compares LevelDB with TreeDB and SQLite; every other
//! engine is judged in LevelDB's place.

pub mod device;
pub mod ranking;
pub mod ratios;
pub mod work;

use super::case::{Case, Ratio};
use serde::Deserialize;

/// The experiment that the others are compared with.
const BASELINE: &str = "baseline";

/// What an engine stands for on the page.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Role {
    /// LevelDB, or any engine in its place.
    #[serde(rename = "LevelDB")]
    LevelDb,
    #[serde(rename = "TreeDB")]
    TreeDb,
    #[serde(rename = "SQLite")]
    Sqlite,
}

impl Role {
    fn of(engine: &str) -> Role {
        match engine {
            "kyoto" => Role::TreeDb,
            "sqlite" => Role::Sqlite,
            _ => Role::LevelDb,
        }
    }

    /// Its name on the page.
    fn name(self) -> &'static str {
        match self {
            Role::LevelDb => "LevelDB",
            Role::TreeDb => "TreeDB",
            Role::Sqlite => "SQLite",
        }
    }

    /// The engine that stands for it: the one that is judged, in LevelDB's place unless it has its
    /// own.
    fn engine<'a>(self, case: &Case<'a>) -> &'a str {
        match self {
            Role::TreeDb => "kyoto",
            Role::Sqlite => "sqlite",
            Role::LevelDb if Role::of(case.engine) == Role::LevelDb => case.engine,
            Role::LevelDb => "leveldb",
        }
    }
}

/// The rate of a row over that of another, or why there is none.
fn ratio(case: &Case<'_>, of: (&str, &str), to: (&str, &str)) -> Result<Ratio, String> {
    let (numerator, denominator) = (case.rates(of.0, of.1, &[]), case.rates(to.0, to.1, &[]));
    Ratio::of(&numerator, &denominator).ok_or_else(|| {
        let (experiment, row) = if numerator.is_empty() { of } else { to };
        case.reason(experiment, row)
    })
}
