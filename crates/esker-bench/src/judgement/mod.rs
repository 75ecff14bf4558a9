//! Every published claim, judged by what was measured: direction and magnitude apart, each with one sentence that gives the figures.
//!
//! The claims and the numbers they turn on are those of [`crate::published::hypotheses`]. A claim about an engine is judged of every engine that
//! was measured, as if it stood in that engine's place; where a claim names several engines, each of these is judged by what is said of itself.
//! Where repetitions allow it, a direction is judged by the bootstrap 95 % interval of the ratio of medians: if it holds 1, no difference was shown.
//! With one repetition there is no interval, a ratio within a factor of 1.2 of 1 shows no difference, and the sentence says so. Grids are judged by their 25 cells.
//!
//! Rows of a failed cell count as missing, and so do rows whose own lookups contradict them. Other broken rules of fairness
//! ([`crate::study::fairness`]) are told in the sentence of every claim that such a row counts for. Figures of different sizes (`num`) are never
//! set against each other.
//!
//! Beside the rows of the studies' own experiments, one is expected that only judgement needs: study `leveldb-2011`, experiment `kill`, row
//! `survivors after kill`, a record whose `ops` are the puts that were acknowledged before the process was killed, and whose `found` are those
//! present after the database was opened again.

mod case;
mod leveldb_2011;
mod memtable;
mod missing_keys;
mod rmw;
mod ttl;
mod verdict;

pub use verdict::{Judgement, SURVIVORS, Verdict};

use crate::measurements::Measurements;
use crate::published::hypotheses;
use crate::study::grid::StudyRun;
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
    for hypothesis in hypotheses() {
        for engine in engines {
            let notes = RefCell::new(BTreeSet::new());
            let case = Case { hypothesis, measured: &measured, engine, notes: &notes };
            judgements.push(match hypothesis.study.as_str() {
                "rmw" => rmw::judge(&case),
                "memtable" => memtable::judge(&case),
                "leveldb-2011" => leveldb_2011::judge(&case),
                _ => ttl::judge(&case),
            });
        }
    }
    judgements
}
