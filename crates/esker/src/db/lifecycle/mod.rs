//! Opening and closing a database, creating and dropping keyspaces.
//!
//! | file | what it holds |
//! |---|---|
//! | `open` | opening |
//! | `directory` | what may be in the directory, and what is made in it |
//! | `other_engine` | directories of LevelDB and RocksDB |
//! | `recovery` | tables, and the log replayed on top of them |
//! | `recovery_flush` | what recovery writes to tables |
//! | `follow` | reading behind a writer in another process |
//! | `follower_progress` | how far a follower is, and how far behind |
//! | `close` | closing |
//! | `destroy` | removing a whole database |
//! | `keep_changes` | what an open does for readers of changes |
//! | `keyspaces` | creating and opening keyspaces |
//! | `settings` | changing the settings of keyspaces |
//! | `drop_keyspace` | dropping keyspaces |
//! | `guarded_callbacks` | a callback of the user's may not use the database that called it |
//! | `guarded_env` | the same for an environment |

pub mod close;
pub mod destroy;
pub mod directory;
pub mod drop_keyspace;
pub mod follow;
pub mod follower_progress;
pub mod guarded_callbacks;
pub mod guarded_env;
pub mod keep_changes;
pub mod keyspaces;
pub mod open;
pub mod other_engine;
pub mod recovery;
pub mod recovery_flush;
pub mod settings;
