//! The scoreboard: one line for each row and engine, its tables, and one scoreboard against
//! another.

pub mod summary;
pub mod tables;
pub mod verdict;
