//! RESP2 and RESP3: requests parsed, replies encoded, and the numbers in both.

mod encode;
mod extended;
mod number;
mod reply;
mod request;

pub use encode::{Protocol, encode};
pub use extended::add_decimals;
pub use number::{format_double, format_integer, is_infinity, parse_any_double, parse_double, parse_integer};
pub use reply::Reply;
pub use request::{RequestLimits, RequestParser};
