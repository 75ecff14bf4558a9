//! The files of a database as names in its directory. Only this module removes or moves them.
//!
//! | file | what it holds |
//! |---|---|
//! | `remover` | removing and moving files |
//! | `copy` | copying files |
//! | `lost_edit` | tables that an edit lost to damage may have announced |
//! | `repair_mark` | the mark of an unfinished repair |

pub mod copy;
pub mod lost_edit;
pub mod remover;
pub mod repair_mark;
