//! Tests of whole tables: against a sorted vector, against damage, and against the page that
//! describes the format.

mod damage;
mod faults;
mod page;
mod range_deletes;
mod round_trip;
mod speed;
pub(crate) mod support;
mod unindexed;
