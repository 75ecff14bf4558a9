//! Grids: many cells, each one engine with one set of flags, done one after another and kept as
//! they finish, so that a study of hours can be done in slices. A cell that is kept is not done
//! again; one that failed is.
//!
//! Hops, from a study's arguments to its report:
//!
//! 1. A study (`rmw`, `memtable`, ...) or a sweep file makes a [`Plan`] of [`Cell`]s: pure, nothing
//!    is touched.
//! 2. [`RunDirectory`] keeps the plan and, one file each, what became of its cells.
//! 3. [`execute`] does the cells that are not kept yet, each task in a process of its own, and says
//!    how long the rest will take.
//! 4. Judgement and reports read the directory as a [`StudyRun`], and nothing else.

mod arguments;
mod cell;
mod directory;
mod execute;
pub mod lines;

pub use arguments::{GridArguments, run_study};
pub use cell::{Cell, Finished, Plan, SCHEMA, StudyRun};
pub use directory::RunDirectory;
pub use execute::{Ending, Execution, Performed, execute, kept_cells, perform};
