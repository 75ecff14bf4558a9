//! What the five documents printed: every figure, what does not follow from the others, and every
//! claim. The data are in `data/published.json`; [`compare`] puts what was measured beside them.

mod data;
mod lookup;

pub use data::{
    ConsistencyCheck, DATA, Data, GRID_MIB, GRID_ROWS, GoldenFound, Grid, Hypothesis, OtherFigure, OtherFigures,
    PublishedRecord,
};
pub use lookup::{Compared, Measured, compare};
