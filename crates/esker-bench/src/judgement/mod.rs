//! Every published claim, judged by what was measured: direction and magnitude apart, each with one
//! sentence that gives the figures.
//!
//! The claims and the numbers they turn on are those of [`crate::published::DATA`]. A claim about
//! an engine is judged of every engine that was measured, as if it stood in that engine's place;
//! where a claim names several engines, each of these is judged by what is said of itself. Where
//! repetitions allow it, a direction is judged by the bootstrap 95 % interval of the ratio of
//! medians: if it holds 1, no difference was shown. With one repetition there is no interval, a
//! ratio within a factor of 1.2 of 1 shows no difference, and the sentence says so. Grids are
//! judged by their 25 cells.
//!
//! Rows of a failed cell count as missing, and so do rows whose own lookups contradict them. Other
//! broken rules of fairness ([`crate::sweep::fairness`]) are told in the sentence of every claim
//! that such a row counts for. Figures of different sizes (`num`) are never set against each other.
//!
//! Most claims are data (`data/claims.toml`): rows, figures made of them, when these hold, and the
//! sentence, all judged by `claims`. Rules in code have only those that nothing of the kind
//! decides: LDB-1 and LDB-2 rank engines, and LDB-2 asks which bytes an engine counts (`ranking`);
//! LDB-10 cannot be told, and LDB-11 is about the greatest of all rows (`page`); MEM-9 sets two
//! explanations against each other (`missing_keys`); MEM-11 has an exact number for some sizes
//! (`found`).
//!
//! Beside the rows of the studies' own experiments, one is expected that only judgement needs:
//! study `leveldb-2011`, experiment `kill`, row `survivors after kill`, a record whose `ops` are
//! the puts that were acknowledged before the process was killed, and whose `found` are those
//! present after the database was opened again.

mod case;
mod claims;
mod found;
mod missing_keys;
mod page;
mod ranking;
mod role;
pub mod ttl_rows;
mod verdict;

pub use verdict::{Judgement, SURVIVORS, Verdict};

use crate::measurements::Measurements;
use crate::published::DATA;
use crate::sweep::grid::StudyRun;
use case::Case;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Judges every claim for every engine that the runs hold, claim by claim.
pub fn judge(runs: &[StudyRun]) -> Vec<Judgement> {
    let engines = Measurements::of(runs).engines().into_iter().map(str::to_owned).collect::<Vec<_>>();
    judge_engines(runs, &engines)
}

/// Judges every claim for these engines.
pub fn judge_engines(runs: &[StudyRun], engines: &[String]) -> Vec<Judgement> {
    let measured = Measurements::of(runs);
    let mut judgements = Vec::new();
    for hypothesis in &DATA.hypotheses {
        for engine in engines {
            let notes = RefCell::new(BTreeSet::new());
            let case = Case { hypothesis, measured: &measured, study: &hypothesis.study, engine, notes: &notes };
            judgements.push(rule(&hypothesis.id)(&case).unwrap_or_else(|why| case.not_measured(why)));
        }
    }
    judgements
}

/// Judges a claim of an engine. The error is why it cannot be judged.
type Rule = fn(&Case<'_>) -> Result<Judgement, String>;

/// The rule of a claim: its own, or that of the claims which ratios decide.
fn rule(claim: &str) -> Rule {
    match claim {
        "MEM-9" => missing_keys::judge,
        "MEM-11" => found::judge,
        "LDB-1" => ranking::baseline,
        "LDB-2" => ranking::large_values,
        "LDB-10" => page::file_systems,
        "LDB-11" => page::processors,
        _ => claims::judge,
    }
}
