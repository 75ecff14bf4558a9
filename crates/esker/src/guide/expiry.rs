//! Time to live.
//!
//! In a keyspace that was created with [`KeyspaceOptions::ttl`](crate::KeyspaceOptions::ttl), a key
//! has its value before its expiry, and none from then on: in gets, scans, snapshots and merges.
//!
//! ```
//! use esker::{Db, KeyspaceOptions, ManualClock, Options, Ttl, env::mem::MemEnv};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! // A clock that the test moves; a program leaves the clock as it is.
//! let clock = Arc::new(ManualClock::new(0));
//! let options = Options::default().env(Arc::new(MemEnv::new())).clock(clock.clone());
//! let db = Db::open("data", options)?;
//! let half_an_hour = Duration::from_secs(1800);
//! let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(half_an_hour) });
//! let sessions = db.keyspace("sessions", expiring)?;
//!
//! sessions.put("7f3a", "ada")?;                                    // the default: half an hour
//! sessions.put_with_ttl("91bc", "bob", Duration::from_secs(60))?;
//! clock.advance(Duration::from_secs(61));
//! assert!(sessions.contains_key("7f3a")? && !sessions.contains_key("91bc")?);
//!
//! // A use extends it; the value stays.
//! assert!(sessions.touch("7f3a", half_an_hour)?);
//! assert!(!sessions.touch("91bc", half_an_hour)?, "it has expired");
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! * A put replaces the expiry: by its own time, the default, or none.
//! * A merge keeps the expiry that the key has, so that a counter with a default time lives from
//!   its first count on.
//! * [`Keyspace::expire_at`](crate::Keyspace::expire_at) sets a time of the clock,
//!   [`Keyspace::persist`](crate::Keyspace::persist) takes it away,
//!   [`Keyspace::expires_at`](crate::Keyspace::expires_at) tells it.
//! * Bytes of expired entries go with compactions, in an idle database too.
