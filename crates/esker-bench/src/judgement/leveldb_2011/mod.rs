//! The page of 2011: LDB-1 to LDB-13. It compares LevelDB with TreeDB and SQLite; every other engine is judged in LevelDB's place.

mod device;
mod gains;
mod ranking;
mod work;

use super::Judgement;
use super::case::{Case, Ratio};

pub const BASELINE: &str = "baseline";

pub fn judge(case: &Case<'_>) -> Judgement {
    let judged = match case.hypothesis.id.as_str() {
        "LDB-1" => ranking::baseline(case),
        "LDB-2" => ranking::large_values(case),
        "LDB-3" => gains::batches(case),
        "LDB-4" => gains::random_batches(case),
        "LDB-5" => device::synchronous(case),
        "LDB-6" => gains::compression(case),
        "LDB-7" => gains::more_memory(case),
        "LDB-8" => gains::larger_caches(case),
        "LDB-9" => gains::uncompressed_reads(case),
        "LDB-10" => Ok(device::file_systems(case)),
        "LDB-11" => work::processors(case),
        "LDB-12" => device::killed(case),
        "LDB-13" => work::sorted_files(case),
        _ => Err("there is no rule for this claim".into()),
    };
    judged.unwrap_or_else(|why| case.not_measured(why))
}

/// What an engine stands for on the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// LevelDB, or any engine in its place.
    LevelDb,
    TreeDb,
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

    /// Its name in the ids of the published records.
    fn id(self) -> &'static str {
        match self {
            Role::LevelDb => "LevelDB",
            Role::TreeDb => "Kyoto_TreeDB",
            Role::Sqlite => "SQLite3",
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

/// The rates of `experiment` over the baseline, in the order `sequential`, `random`.
fn pair(case: &Case<'_>, experiment: &str, rows: [&str; 2], base: [&str; 2]) -> Result<[Ratio; 2], String> {
    let of = |index: usize| ratio(case, (experiment, rows[index]), (BASELINE, base[index]));
    Ok([of(0)?, of(1)?])
}
