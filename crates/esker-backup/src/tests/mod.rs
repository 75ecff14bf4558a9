//! What holds of a target in memory whose calls fail, hang, or come in any order.

mod faults;
mod orders;
mod rate;
mod rot;
mod store;
mod world;
