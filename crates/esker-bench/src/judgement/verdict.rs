//! What judging a claim gives.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The row of a killed process, see above.
pub const SURVIVORS: &str = "survivors after kill";

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Held,
    /// It does not.
    NotHeld,
    /// The published figures, or the source of the program, contradict it.
    RefutedByArithmetic,
    /// This machine, or this engine, cannot tell.
    NotTestableHere,
    /// These runs do not tell.
    NotMeasured,
    /// What was measured is within the noise.
    NoDifferenceShown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Verdict::Held => "HELD",
            Verdict::NotHeld => "NOT HELD",
            Verdict::RefutedByArithmetic => "REFUTED BY ARITHMETIC",
            Verdict::NotTestableHere => "NOT TESTABLE HERE",
            Verdict::NotMeasured => "NOT MEASURED",
            Verdict::NoDifferenceShown => "NO DIFFERENCE SHOWN",
        })
    }
}

/// What one engine says about one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The claim: `MEM-2`.
    pub hypothesis: String,
    /// The engine.
    pub engine: String,
    /// What was measured, short enough for a table: `3.12 [2.98, 3.31]`; empty if nothing was.
    pub value: String,
    /// Whether things differ in the way that is claimed.
    pub direction: Verdict,
    /// Whether they do by as much.
    pub magnitude: Verdict,
    /// One sentence with the figures.
    pub why: String,
}
