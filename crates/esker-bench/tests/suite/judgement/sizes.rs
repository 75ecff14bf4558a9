//! Figures of different sizes are never set against each other.

use super::of;
use super::synthetic::{self, World};
use esker_bench::judgement::Verdict::{Held, NotMeasured};
use esker_bench::judgement::{Judgement, judge};
use esker_bench::sweep::grid::{Finished, StudyRun};

const SMALL: u64 = 5_000_000;

fn shrink(finished: &mut Finished) {
    finished.cell.variables.insert("num".into(), SMALL.to_string());
    for record in &mut finished.records {
        record.num = SMALL;
    }
}

/// The study at its full size, and the chosen cells at a tenth of it instead.
fn with_small(is_small: impl Fn(&Finished) -> bool) -> StudyRun {
    let mut run = synthetic::rmw(World::AsPublished);
    run.finished.iter_mut().filter(|finished| is_small(finished)).for_each(shrink);
    run
}

fn judged(runs: &[StudyRun], id: &str) -> Judgement {
    of(&judge(runs), id, "rocksdb").clone()
}

#[test]
fn small_blocks_at_another_size_are_not_measured() {
    let run = with_small(|finished| finished.cell.experiment == "small blocks");
    let mechanism = judged(&[run], "RMW-6");
    assert_eq!((mechanism.direction, mechanism.magnitude), (NotMeasured, NotMeasured));
    assert!(mechanism.why.contains("different sizes"), "{}", mechanism.why);
}

#[test]
fn the_largest_size_that_all_places_share_counts() {
    // Everything at a tenth, where the gain is as published; the published blocks at full size too,
    // where there is none.
    let mut full = synthetic::rmw(World::Flat);
    full.finished.retain(|finished| finished.cell.experiment == "seed");
    let runs = [full, with_small(|_| true)];
    let mechanism = judged(&runs, "RMW-6");
    assert_eq!(mechanism.direction, Held, "{}", mechanism.why);
    assert!(mechanism.why.contains("3.16"), "{}", mechanism.why);
    let threads = judged(&runs, "RMW-2");
    assert!(threads.why.contains("over 5,000,000 keys with 1 thread: "), "{}", threads.why);
    assert!(threads.why.contains("10 threads: 33,499 and"), "{}", threads.why);
}

#[test]
fn buffers_of_full_size_at_another_size_are_told_of_only() {
    let run = synthetic::rmw(World::AsPublished);
    let mut unscaled: Vec<Finished> =
        run.finished.iter().filter(|finished| finished.cell.experiment == "seed").cloned().collect();
    unscaled.iter_mut().for_each(|finished| finished.cell.experiment = "unscaled".into());
    let with = |unscaled: &[Finished]| {
        let mut run = run.clone();
        run.finished.extend_from_slice(unscaled);
        judged(&[run], "RMW-1")
    };
    assert!(with(&unscaled).why.contains("with buffers as large as the published ones it is 3.16"));
    unscaled.iter_mut().for_each(shrink);
    let told = with(&unscaled).why;
    assert!(told.contains("it is not known: unscaled was not measured with 50,000,000 keys"), "{told}");
}

#[test]
fn threads_and_operands_and_deferred_reads_need_a_common_size() {
    let threads = judged(&[with_small(|finished| finished.cell.experiment == "threads")], "RMW-2");
    assert!(threads.why.contains("measured at different sizes only"), "{}", threads.why);
    let small_ones = with_small(|finished| finished.cell.variables.get("operand").is_some_and(|name| name == "one"));
    assert!(judged(&[small_ones], "RMW-5").why.contains("was not measured"));
    let mut run = synthetic::rmw(World::AsPublished);
    for record in run.finished.iter_mut().flat_map(|finished| &mut finished.records) {
        if record.row == "readrandom after mergerandom" {
            record.num = SMALL;
        }
    }
    assert_eq!(judged(&[run], "RMW-7").direction, NotMeasured);
}
