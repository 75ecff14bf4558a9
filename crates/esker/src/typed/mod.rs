//! Keyspaces of typed keys and values: [`TypedKeyspace`], and [`Counters`]. The codecs are traits,
//! for types of your own; the encodings are in `doc/format/typed.md`.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::{Counters, TypedKeyspace};
//!
//! // By user and number of the order: the price.
//! let orders: TypedKeyspace<(String, u32), u64> = TypedKeyspace::open(&db, "orders", Default::default())?;
//! orders.put(("ada", 7), 1200)?;
//! orders.put(("ada", 12), 450)?;
//! orders.put(("bob", 9), 800)?;
//! for order in orders.prefix(("ada",)) {
//!     let ((user, number), price) = order?;
//!     println!("{user} {number}: {price}");
//! }
//!
//! let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
//! hits.add("/index.html", 1)?;
//! assert_eq!(hits.get("/index.html")?, 1);
//! # Ok::<(), esker::Error>(())
//! ```

mod counters;
mod decode_error;
mod encoded;
mod expiry;
mod iterator;
mod key;
mod keyspace;
#[cfg(feature = "serde")]
mod postcard_value;
mod range;
mod returning;
mod string_key;
#[cfg(test)]
mod tests;
mod time_key;
mod transaction;
mod tuple_key;
mod value;
mod with_handles;
mod with_options;

pub use counters::{Count, CounterBatch, CounterTransaction, Counters};
pub use decode_error::DecodeError;
pub use iterator::{TypedIter, TypedKeys};
pub use key::{EncodeKey, KeyCodec, KeyPrefix};
pub use keyspace::TypedKeyspace;
#[cfg(feature = "serde")]
pub use postcard_value::Postcard;
pub use range::TypedRange;
pub use transaction::TypedTransaction;
pub use value::{EncodeValue, ValueCodec};
pub use with_handles::{TypedBatch, TypedSnapshot};
