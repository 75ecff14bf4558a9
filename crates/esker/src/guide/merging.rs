//! Merging: changes without a read.
//!
//! A merge hands the engine an operand, which the keyspace's operator combines with the value when
//! it is read, or earlier. The write itself reads nothing. Threads that merge into the same key do
//! not conflict.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::{KeyspaceOptions, merge::UInt64Add};
//!
//! let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
//! hits.merge("/", 1u64.to_le_bytes())?;
//! hits.merge("/", 2u64.to_le_bytes())?;
//! assert_eq!(hits.get("/")?.as_deref(), Some(&3u64.to_le_bytes()[..]));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! [`Counters`](crate::Counters) is the same with numbers instead of bytes:
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::Counters;
//!
//! let hits: Counters<String> = Counters::open(&db, "hits", Default::default())?;
//! hits.add("/", 3)?;
//! assert_eq!((hits.get("/")?, hits.get("/never")?), (3, 0));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! The module [`merge`](crate::merge) has the operators that are built in: sums, maxima and minima,
//! appended texts, bits. They are found by their stored name; one of your own must be supplied at
//! each open.
//!
//! # An operator of your own
//!
//! It implements [`MergeOperator`](crate::MergeOperator). It must be deterministic: the engine
//! combines operands at any time, in any grouping, in any thread. `partial_merge` makes one operand
//! of two, or declines with `None`.
//! [`merge::check_laws`](crate::merge::check_laws) tests that.
//!
//! ```
//! # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
//! use esker::{KeyspaceOptions, MergeError, MergeOperator};
//!
//! /// Keeps the longest text.
//! struct Longest;
//!
//! impl MergeOperator for Longest {
//!     fn name(&self) -> &str {
//!         "example.longest"
//!     }
//!
//!     fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
//!         let all = existing.into_iter().chain(operands.iter().copied());
//!         Ok(all.max_by_key(|text| text.len()).map(<[u8]>::to_vec))
//!     }
//!
//!     fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
//!         Some(if newer.len() >= older.len() { newer } else { older }.to_vec())
//!     }
//! }
//!
//! let words = db.keyspace("words", KeyspaceOptions::default().merge_operator(Longest))?;
//! words.merge("w", "one")?;
//! words.merge("w", "three")?;
//! words.merge("w", "four")?;
//! assert_eq!(words.get("w")?.as_deref(), Some(&b"three"[..]));
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! Where an operator fails, reads of that key fail with
//! [`Error::MergeFailed`](crate::Error::MergeFailed); the operands stay, and all else goes on.
