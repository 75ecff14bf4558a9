//! Tests of whole tables: against a sorted vector, against damage, and against the page that describes the
//! format.

mod damage;
mod page;
mod round_trip;
mod speed;
pub(crate) mod support;
