//! What handles may name.

use std::any::Any;
use std::num::NonZero;

/// What a handle may name.
///
/// ```
/// struct Session;
/// impl esker_ffi::handles::Object for Session {
///     const NAME: &'static str = "a session";
/// }
/// ```
pub trait Object: Any + Send + Sync {
    /// What it is, with an article, for messages.
    const NAME: &'static str;
}

/// What a slot may own: it is used by one call at a time, and lends a pair of slices, if it is at
/// one.
///
/// ```
/// struct Position(Vec<u8>);
/// impl esker_ffi::handles::Object for Position {
///     const NAME: &'static str = "a position";
/// }
/// impl esker_ffi::handles::Lender for Position {
///     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
///     fn loan(&mut self) -> Option<(&[u8], &[u8])> {
///         Some((&self.0, &[]))
///     }
/// }
/// ```
pub trait Lender: Object {
    /// Tells it from the other lenders of the library.
    const KIND: NonZero<u32>;

    /// A key and its value, which stay where they are until the next call of the object.
    fn loan(&mut self) -> Option<(&[u8], &[u8])>;
}
