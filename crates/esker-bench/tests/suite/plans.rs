//! The studies that reproduce published ones plan what they have always planned: a cell with
//! another flag, another step or another size has another hash, and a run directory of before would
//! not go on.

#![allow(clippy::unwrap_used)]

use esker_bench::study::planned::Planned;
use esker_engines::ENGINES;

#[test]
fn every_study_can_be_planned() {
    for study in Planned::all() {
        let plan = study.plan(&[], &ENGINES, &[]).unwrap();
        assert!(!plan.cells.is_empty() && plan.study == study.name());
        for task in plan.cells.iter().flat_map(|cell| &cell.tasks) {
            assert!(task.config().is_ok());
        }
    }
}

/// A change of plan is made here too, on purpose, and said in the changelog: figures of before and
/// after do not compare.
#[test]
fn cells_are_those_of_kept_runs() {
    for (study, arguments, cells, expected) in [
        ("memtable", &["--spot-repeat=3"][..], 548, 0x6836_477c_f801_89bd_u64),
        ("memtable", &["--scale=0.03", "--no-comparisons"], 436, 0xcdc8_683b_f280_fe78),
        ("rmw", &[], 160, 0xe983_788a_ea60_0814),
        ("rmw", &["--scale=1"], 32, 0xda78_7cf9_cf90_4c99),
        ("rmw", &["--scale=1/100"], 160, 0xfb82_9578_b60a_8470),
        ("leveldb-2011", &[], 213, 0xa695_9e09_e1a6_77a2),
        ("leveldb-2011", &["--scale=0.013", "--sync-ops=7", "--kill-ops=9"], 213, 0x76ba_6907_c9b3_675b),
        ("workloads", &[], 216, 0xbb6a_1d87_71b9_e863),
        ("workloads", &["--quick", "--repeat=2"], 224, 0x689f_64ea_87d6_161c),
    ] {
        let plan = Planned::find(study).unwrap().plan(arguments, &ENGINES, &[]).unwrap();
        let hashes = plan.cells.iter().map(|cell| u64::from_str_radix(&cell.hash(), 16).unwrap());
        let all = hashes.fold(0u64, |all, hash| all.wrapping_mul(31).wrapping_add(hash));
        assert_eq!((plan.cells.len(), all), (cells, expected), "{study} {arguments:?}: {all:#x}");
    }
}
