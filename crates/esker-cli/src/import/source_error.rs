//! What the source of an import says when it refuses something.

use crate::failure::Failure;
use esker_engines::EngineError;

/// The failure of the command; the text begins with the name of the engine.
pub fn refused(error: EngineError) -> Failure {
    let text = error.0;
    Failure::Operation(if text.contains("; ") { text } else { format!("{text}; check the source") })
}
