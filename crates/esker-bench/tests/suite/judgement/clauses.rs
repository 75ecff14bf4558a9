//! A claim of several clauses is not held by those that happen to be measured, and none of them by
//! a point alone.

use super::of;
use super::synthetic::{self, Builder, Place, World};
use esker_bench::judgement::Verdict::{Held, NoDifferenceShown, NotHeld, NotMeasured, NotTestableHere};
use esker_bench::judgement::{Judgement, judge};
use esker_bench::record::Record;
use esker_bench::sweep::grid::StudyRun;

fn judged(run: StudyRun, id: &str, engine: &str) -> Judgement {
    of(&judge(&[run]), id, engine).clone()
}

fn page_of(engines: &[&str]) -> StudyRun {
    let mut page = synthetic::page(World::AsPublished);
    page.finished.retain(|finished| engines.contains(&finished.cell.engine.as_str()));
    page
}

#[test]
fn gains_of_engines_that_were_not_run_are_not_measured() {
    let batches = judged(page_of(&["leveldb"]), "LDB-3", "leveldb");
    assert_eq!(batches.direction, NotMeasured);
    assert!(batches.why.contains("SQLite's gain in key order over that of leveldb: not measured"), "{}", batches.why);
    assert_eq!(judged(page_of(&["sqlite"]), "LDB-3", "sqlite").direction, NotMeasured);
    let caches = judged(page_of(&["leveldb", "sqlite"]), "LDB-8", "leveldb");
    assert_eq!(caches.direction, NotMeasured);
    assert!(caches.why.contains("TreeDB's gain at random over that of leveldb"), "{}", caches.why);
    assert_eq!(judged(page_of(&["kyoto", "leveldb"]), "LDB-8", "kyoto").direction, NotMeasured);
}

/// The rates of one experiment are scattered over the repetitions.
fn scatter(run: &mut StudyRun, experiment: &str, engine: &str) {
    for finished in run.finished.iter_mut().filter(|f| f.cell.experiment == experiment && f.cell.engine == engine) {
        let factor = [0.2, 1.0, 5.0][finished.cell.repetition as usize - 1];
        for record in &mut finished.records {
            record.ops_per_sec *= factor;
            record.micros_per_op /= factor;
        }
    }
}

#[test]
fn gains_within_the_noise_show_no_difference() {
    let mut page = synthetic::page(World::AsPublished);
    assert_eq!(judged(page.clone(), "LDB-3", "leveldb").direction, Held);
    scatter(&mut page, "batches", "sqlite");
    assert_eq!(judged(page, "LDB-3", "leveldb").direction, NoDifferenceShown);
    let mut page = synthetic::page(World::AsPublished);
    assert_eq!(judged(page.clone(), "LDB-8", "leveldb").direction, Held);
    scatter(&mut page, "larger caches", "kyoto");
    assert_eq!(judged(page, "LDB-8", "leveldb").direction, NoDifferenceShown);
}

#[test]
fn what_compaction_does_to_deferred_cost_needs_its_interval() {
    let mut run = synthetic::rmw(World::AsPublished);
    let rows = run.finished.iter_mut().flat_map(|finished| &mut finished.records);
    for record in rows.filter(|record| record.row == "readrandom after mergerandom after compact") {
        record.micros_per_op = [1.0, 4.0, 40.0][record.repetition as usize - 1];
    }
    let deferred = judged(run, "RMW-7", "rocksdb");
    assert_eq!(deferred.direction, NoDifferenceShown, "{}", deferred.why);
}

/// MEM-9 with these latencies after the sequential load, after the random one, and with every key
/// there.
fn reason(buffers: &[&str], micros: [f64; 3], repetitions: u32) -> Judgement {
    let mut builder = Builder::new("memtable");
    for buffer in buffers {
        let cell = [("write_buffer_mib", *buffer), ("max_file_mib", "2")];
        let [plain, unique] = ["plain", "unique keys"].map(|name| [("write_buffer_mib", *buffer), ("variant", name)]);
        let floor = ("grid", "readrandom after fillseq", &cell);
        for ((experiment, row, variables), micros) in
            [floor, ("why", "readrandom", &plain), ("why", "readrandom", &unique)].into_iter().zip(micros)
        {
            let place = Place { experiment, engine: "leveldb", variables, row };
            for repetition in 1..=repetitions {
                let spread = 1.0 + 0.01 * f64::from(repetition);
                builder.add(&place, repetition, micros * spread, |_| {});
            }
        }
    }
    judged(builder.run, "MEM-9", "leveldb")
}

#[test]
fn a_gap_that_half_closes_is_not_closed() {
    let both = &["2", "32"];
    let half = reason(both, [2.0, 6.0, 3.6], 3);
    assert_eq!(half.direction, NotHeld);
    assert!(half.why.contains("unique keys closes 60 % of the gap"), "{}", half.why);
    assert_eq!(reason(both, [2.0, 6.0, 2.08], 3).direction, Held);
    // Within the noise of the floor.
    assert_eq!(reason(both, [2.0, 6.0, 2.0], 3).direction, Held);
}

#[test]
fn one_repetition_cannot_tell_a_small_gap_from_noise() {
    let both = &["2", "32"];
    let noise = reason(both, [2.0, 2.2, 2.0], 1);
    assert_eq!((noise.direction, noise.magnitude), (NoDifferenceShown, NoDifferenceShown));
    assert!(noise.why.contains("no interval, and a gap counts from a ratio of 1.20"), "{}", noise.why);
    assert_eq!(reason(both, [2.0, 2.2, 2.0], 3).direction, Held);
    assert_eq!(reason(both, [2.0, 2.6, 2.0], 1).direction, Held);
    // Nor does it show that a small rest is one.
    let rest = reason(both, [2.0, 2.6, 2.3], 1);
    assert_eq!((rest.direction, rest.magnitude), (NoDifferenceShown, NotHeld));
    assert_eq!(reason(both, [2.0, 6.0, 3.6], 1).direction, NotHeld);
}

#[test]
fn the_reason_is_asked_for_with_both_buffers() {
    let one = reason(&["2"], [2.0, 6.0, 2.0], 3);
    assert_eq!((one.direction, one.magnitude), (NotMeasured, NotMeasured));
    assert!(one.why.contains("with 32 MiB of buffer"), "{}", one.why);
}

/// Changes every record of an engine in an experiment.
fn change(run: &mut StudyRun, (experiment, engine): (&str, &str), edit: impl Fn(&mut Record)) {
    let cells = run.finished.iter_mut().filter(|f| f.cell.experiment == experiment && f.cell.engine == engine);
    cells.flat_map(|finished| &mut finished.records).for_each(edit);
}

#[test]
fn one_repetition_shows_no_small_gain_or_loss() {
    for (factor, direction) in [(1.07, NoDifferenceShown), (0.9, NoDifferenceShown), (0.6, NotHeld), (1.3, Held)] {
        let mut page = synthetic::page(World::AsPublished);
        page.finished.retain(|finished| finished.cell.repetition == 1);
        for experiment in ["baseline", "no compression reads"] {
            let rate = if experiment == "baseline" { 1e5 } else { 1e5 * factor };
            change(&mut page, (experiment, "leveldb"), |record| record.ops_per_sec = rate);
        }
        let reads = judged(page, "LDB-9", "leveldb");
        assert_eq!(reads.direction, direction, "{factor}: {}", reads.why);
    }
}

#[test]
fn a_small_gain_is_not_near_a_published_loss() {
    let compression = |factor: f64| {
        let mut page = synthetic::page(World::AsPublished);
        change(&mut page, ("baseline", "leveldb"), |record| record.ops_per_sec = 1e5);
        change(&mut page, ("no compression", "leveldb"), |record| record.ops_per_sec = 1e5 * factor);
        judged(page, "LDB-6", "leveldb")
    };
    let gain = compression(1.07);
    assert_eq!((gain.direction, gain.magnitude), (NotHeld, NotHeld), "{}", gain.why);
    assert!(gain.why.contains("a gain is not near a published loss"), "{}", gain.why);
    let loss = compression(0.9);
    assert_eq!((loss.direction, loss.magnitude), (Held, Held), "{}", loss.why);
    assert!(!loss.why.contains("a gain is not near"), "{}", loss.why);
}

#[test]
fn a_doubling_that_makes_it_slower_gains_nothing() {
    let mut run = synthetic::memtable(World::AsPublished);
    assert_eq!(judged(run.clone(), "MEM-4", "leveldb").direction, Held);
    let largest = run.finished.iter_mut().filter(|finished| finished.cell.variables["write_buffer_mib"] == "32");
    for record in largest.flat_map(|finished| &mut finished.records).filter(|record| record.row == "fillrandom") {
        record.micros_per_op *= 1.2;
    }
    let diminishing = judged(run, "MEM-4", "leveldb");
    assert_eq!(diminishing.direction, NotHeld, "{}", diminishing.why);
    assert!(diminishing.why.contains("1.28 and -0.2"), "{}", diminishing.why);
}

#[test]
fn bytes_that_were_not_all_counted_are_no_write_amplification() {
    type Edit = fn(&mut Record);
    let large = |edit: Edit| {
        let mut page = synthetic::page(World::AsPublished);
        change(&mut page, ("large values", "leveldb"), edit);
        judged(page, "LDB-2", "leveldb")
    };
    let counted = large(|_| {});
    assert_eq!((counted.direction, counted.magnitude), (Held, Held), "{}", counted.why);
    let without_log = large(|record| {
        record.counters.wal_bytes = 0;
        record.flags.insert("disable_wal".into(), "1".into());
    });
    assert_eq!(without_log.magnitude, Held, "{}", without_log.why);
    let cases: [(Edit, &str); 5] = [
        (|record| record.counters.wal_bytes = 0, "it counts no bytes of its log in fillseq100K"),
        (
            |record| record.counters.flush_bytes = 0,
            "it counts no bytes of flushes or of files of large values in fillseq100K",
        ),
        (
            |record| {
                (record.counters.wal_bytes, record.counters.flush_bytes) = (68_000, 1000);
                record.counters.compaction_bytes = 0;
            },
            "it counts only 0.000690 bytes for each byte given, too few to be all, in fillseq100K",
        ),
        (
            // The other row alone.
            |record| record.counters.wal_bytes *= u64::from(record.row == "fillseq100K"),
            "it counts no bytes of its log in fillrand100K",
        ),
        (|record| record.counters = Default::default(), "it does not report the bytes it writes"),
    ];
    for (edit, said) in cases {
        let unknown = large(edit);
        assert_eq!((unknown.direction, unknown.magnitude), (Held, NotTestableHere), "{}", unknown.why);
        assert!(unknown.why.contains(said), "{}", unknown.why);
    }
}
