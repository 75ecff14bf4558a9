//! The page of 2011: LDB-1 to LDB-13. It compares LevelDB with TreeDB and SQLite; every other
//! engine is judged in LevelDB's place.

pub mod device;
pub mod ranking;
pub mod ratios;
mod role;
pub mod work;
