//! What an engine stands for on the page, and its rates over those of the baseline.

use crate::judgement::case::{Case, Ratio};

/// The experiment that the others are compared with.
pub const BASELINE: &str = "baseline";

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

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Role::LevelDb => "LevelDB",
            Role::TreeDb => "TreeDB",
            Role::Sqlite => "SQLite",
        }
    }

    /// Its name in the ids of the published records.
    pub fn id(self) -> &'static str {
        match self {
            Role::LevelDb => "LevelDB",
            Role::TreeDb => "Kyoto_TreeDB",
            Role::Sqlite => "SQLite3",
        }
    }
}

/// The rate of a row over that of another, or why there is none.
pub fn ratio(case: &Case<'_>, of: (&str, &str), to: (&str, &str)) -> Result<Ratio, String> {
    let (numerator, denominator) = (case.rates(of.0, of.1, &[]), case.rates(to.0, to.1, &[]));
    Ratio::of(&numerator, &denominator).ok_or_else(|| {
        let (experiment, row) = if numerator.is_empty() { of } else { to };
        case.reason(experiment, row)
    })
}
