//! What the C interfaces of Esker share: handles that tell a closed one, the detection of forks,
//! contained panics, lines on standard error, memory that C frees, events as texts, directories
//! without a database, and LevelDB's levels.
//!
//! ```
//! use esker_ffi::handles::{self, HandleError, Object};
//! use std::sync::Arc;
//! struct Session(u32);
//! impl Object for Session {
//!     const NAME: &'static str = "a session";
//! }
//! let handle = handles::insert(Arc::new(Session(7)))?;
//! assert_eq!(handles::get::<Session>(handle)?.0, 7);
//! handles::remove::<Session>(handle)?;
//! assert!(matches!(handles::get::<Session>(handle), Err(HandleError::Closed { .. })));
//! # Ok::<(), HandleError>(())
//! ```

pub mod contain;
pub mod directory;
pub mod events;
pub mod fork;
pub mod handles;
pub mod lent;
pub mod levels;
pub mod memory;
pub mod standard_error;
