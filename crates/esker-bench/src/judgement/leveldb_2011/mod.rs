//! The page of 2011: LDB-1 to LDB-13. It compares LevelDB with TreeDB and SQLite; every other engine is judged in LevelDB's place.

mod device;
mod ranking;
mod ratios;
mod role;
mod work;

use super::case::Case;
use super::verdict::Judgement;

pub fn judge(case: &Case<'_>) -> Judgement {
    let judged = match case.hypothesis.id.as_str() {
        "LDB-1" => ranking::baseline(case),
        "LDB-2" => ranking::large_values(case),
        "LDB-5" => device::synchronous(case),
        "LDB-10" => Ok(device::file_systems(case)),
        "LDB-11" => work::processors(case),
        "LDB-12" => device::killed(case),
        "LDB-13" => work::sorted_files(case),
        _ => ratios::judge(case),
    };
    judged.unwrap_or_else(|why| case.not_measured(why))
}
