//! What the checks are given.

use super::history::Written;
use crate::engine::Engine;
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::values::ValuePool;

/// What a check needs.
#[derive(Clone, Copy)]
pub struct Checking<'a> {
    /// The open engine.
    pub engine: &'a dyn Engine,
    /// The benchmarks that wrote what it holds.
    pub written: &'a [Written],
    /// Where their values came from.
    pub pool: &'a ValuePool,
    /// The form of their keys.
    pub keys: &'a KeyBuffer,
    /// Ends the check early.
    pub interrupt: &'a Interrupt,
}
