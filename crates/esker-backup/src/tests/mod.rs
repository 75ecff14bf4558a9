//! What holds of a target in memory whose calls fail, hang, or come in any order.

mod faults;
mod forward;
mod orders;
mod rate;
mod retries;
mod rot;
mod store;
mod world;
