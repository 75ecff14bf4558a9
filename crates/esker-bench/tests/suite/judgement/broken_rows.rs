//! What failed or contradicts itself is not judged; other broken rules stand in the sentence.

use super::of;
use super::synthetic::{self, World};
use esker_bench::judgement::Verdict::{Held, NotMeasured};
use esker_bench::judgement::judge;
use esker_bench::published;
use esker_bench::record::Verification;
use esker_bench::sweep::grid::{Finished, StudyRun};
use esker_engines::Durability;

/// The study with the cells that updated changed.
fn with_updates(change: impl Fn(&mut Finished, usize)) -> StudyRun {
    let mut run = synthetic::rmw(World::AsPublished);
    for finished in run.finished.iter_mut().filter(|finished| finished.cell.experiment == "seed") {
        let at = finished.records.iter().position(|record| record.row == "updaterandom");
        if let Some(at) = at {
            change(finished, at);
        }
    }
    run
}

fn compared_seed(run: &StudyRun) -> usize {
    let compared = published::compare(std::slice::from_ref(run));
    compared.iter().filter(|c| c.record.experiment == "seed" && !c.measured.is_empty()).count()
}

#[test]
fn rows_of_a_failed_cell_are_missing() {
    let run = with_updates(|finished, _| finished.failure = Some("verifyupdates: 17 values lost".into()));
    let judgements = judge(std::slice::from_ref(&run));
    let judged = of(&judgements, "RMW-1", "rocksdb");
    assert_eq!((judged.direction, judged.magnitude), (NotMeasured, NotMeasured));
    assert!(judged.why.contains("failed: verifyupdates: 17 values lost"), "{}", judged.why);
    assert!(compared_seed(&synthetic::rmw(World::AsPublished)) > 0);
    assert_eq!(compared_seed(&run), 0, "nor do they stand beside the published figures");
}

#[test]
fn the_other_repetitions_still_count() {
    let run = with_updates(|finished, _| {
        if finished.cell.repetition == 2 {
            finished.failure = Some("verifyupdates: 17 values lost".into());
        }
    });
    assert_eq!(of(&judge(&[run]), "RMW-1", "rocksdb").direction, Held);
}

fn look(mismatches: u64) -> Option<Verification> {
    Some(Verification { entries: 1000, content_hash: "aa".into(), sampled: 632, mismatches })
}

#[test]
fn lookups_that_contradict_a_scan_are_not_judged() {
    let run = with_updates(|finished, at| finished.records[at].verification = look(3));
    let judgements = judge(&[run]);
    let judged = of(&judgements, "RMW-1", "rocksdb");
    assert_eq!(judged.direction, NotMeasured);
    let reason = "is not judged, for 3 of 632 sampled entries were not found as a scan had shown them";
    assert!(judged.why.contains(reason), "{}", judged.why);
}

#[test]
fn another_broken_rule_is_a_note() {
    let mut run = synthetic::rmw(World::AsPublished);
    let safer = |engine: &str, class| {
        let engine = engine.to_owned();
        move |finished: &Finished| {
            let mut finished = finished.clone();
            finished.cell.engine.clone_from(&engine);
            for record in &mut finished.records {
                (record.engine, record.durability) = (engine.clone(), Some(class));
            }
            finished
        }
    };
    let all: Vec<Finished> = run.finished.iter().map(safer("esker", Durability::OperatingSystem)).collect();
    run.finished = run.finished.iter().map(safer("rocksdb", Durability::Device)).chain(all).collect();
    let judgements = judge(&[run]);
    let judged = of(&judgements, "RMW-1", "rocksdb");
    assert_eq!(judged.direction, Held, "{}", judged.why);
    assert!(judged.why.contains("(note: rocksdb mergerandom: its durability is `device`"), "{}", judged.why);
    assert!(!of(&judgements, "RMW-1", "esker").why.contains("note:"));
}
