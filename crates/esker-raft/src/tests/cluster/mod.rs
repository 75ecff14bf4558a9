//! Clusters of three and five replicas in one process: a network that delays, drops, repeats and
//! divides, disks that lose power and fill up, clocks that jump, nodes that are replaced, and
//! clients whose histories must be linearizable.
//!
//! Everything runs in one thread, with a clock that stands still while anything can be done, and
//! all random numbers come from one seed, those of openraft too: the seed repeats the run.

mod clients;
mod faults;
mod history;
mod network;
mod objects;
mod replay;
mod replicas;

use self::clients::{Clients, Done, Semantics};
use self::faults::{Counts, Faults};
use self::history::Overlap;
use self::replicas::{Planted, Replicas};
use super::world::{run_seeded, seed};
use esker_fault_schedule::Schedule;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How a run goes.
#[derive(Clone)]
struct Plan {
    seed: u64,
    nodes: u64,
    planted: Planted,
    /// How many faults come one after the other.
    faults: usize,
    /// These faults, instead of those that the seed draws.
    schedule: Option<Arc<Schedule>>,
    semantics: Semantics,
}

impl Plan {
    fn of(seed: u64, nodes: u64) -> Plan {
        let (planted, semantics) = (Planted::Nothing, Semantics::Sessions);
        Plan { seed, nodes, planted, faults: 12, schedule: None, semantics }
    }

    /// With the faults of that schedule.
    fn on(seed: u64, schedule: &Arc<Schedule>) -> Plan {
        Plan { schedule: Some(Arc::clone(schedule)), ..Plan::of(seed, schedule.head.nodes) }
    }
}

/// Runs a cluster with clients and faults; what was seen, or what was wrong.
fn simulate(plan: Plan) -> Result<Counts, String> {
    run_seeded(plan.seed, async {
        let replicas = Replicas::start(plan.seed, plan.nodes, plan.planted).await?;
        let clients = Clients::start(&replicas, plan.seed, plan.semantics);
        let mut faults = Faults::new(plan.seed, &replicas, clients.caller());
        match &plan.schedule {
            Some(schedule) => faults.replay(schedule).await?,
            None => {
                for _ in 0..plan.faults {
                    faults.next().await?;
                }
            }
        }
        faults.end().await?;
        let done = clients.finish().await?;
        let Overlap { uses, ended, within_another } = done.overlap;
        println!("seed {}: {uses} uses, {ended} ended, {within_another} of them within another one", plan.seed);
        replicas.agree().await?;
        shows_an_order(done.overlap)?;
        let mut counts = faults.counts().clone();
        count_done(&mut counts, &done);
        counts.insert("snapshots installed", replicas.network.installed());
        counts.insert("messages that came twice", replicas.network.repeated());
        counts.insert("simulated milliseconds", replicas.ran_ms());
        Ok(counts)
    })
}

fn count_done(counts: &mut Counts, done: &Done) {
    counts.insert("operations", done.overlap.uses);
    counts.insert("operations that ended", done.overlap.ended);
    counts.insert("operations within another one", done.overlap.within_another);
    counts.insert("objects", done.objects);
    counts.insert("repeated requests", done.retries);
    counts.insert("steps of checks", done.steps);
}

const TOO_FEW: &str = "too few overlap";

/// Uses one after the other say nothing of an order: a third of those that ended has to begin while
/// another one of its object is under way.
fn shows_an_order(overlap: Overlap) -> Result<(), String> {
    if overlap.within_another * 3 > overlap.ended { Ok(()) } else { Err(format!("{TOO_FEW}: {overlap:?}")) }
}

fn add(all: &mut Counts, counts: Counts) {
    for (what, count) in counts {
        *all.entry(what).or_default() += count;
    }
}

/// The seeds of a test, each in turn; `ESKER_SEED` and `ESKER_SEEDS` for others.
fn seeds(default: u64, count: u64) -> std::ops::Range<u64> {
    let first = seed(default);
    let count = std::env::var("ESKER_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(count);
    first..first + count
}

fn simulate_all(default: u64, count: u64, nodes: u64) {
    let mut all = Counts::new();
    for seed in seeds(default, count) {
        let counts = simulate(Plan::of(seed, nodes));
        add(&mut all, counts.unwrap_or_else(|what| panic!("ESKER_SEED={seed}, {nodes} nodes: {what}")));
    }
    println!("{all:?}");
    for what in ["power losses", "clock jumps", "full disks", "repeated requests", "snapshots installed"] {
        assert!(all.get(what).is_some_and(|count| *count > 0), "no {what}: {all:?}");
    }
}

#[test]
fn a_run_whose_uses_do_not_overlap_has_failed() {
    let overlap = |within_another| Overlap { uses: 100, ended: 90, within_another };
    assert!(shows_an_order(overlap(31)).is_ok());
    assert!(shows_an_order(overlap(30)).is_err());
}

#[test]
fn three_replicas_are_linearizable_under_faults() {
    simulate_all(100, 12, 3);
}

#[test]
fn five_replicas_are_linearizable_under_faults() {
    simulate_all(200, 6, 5);
}

#[cfg(tokio_unstable)]
#[test]
fn a_seed_repeats_its_run() {
    for seed in seeds(700, 3) {
        let [first, second] = [simulate(Plan::of(seed, 3)), simulate(Plan::of(seed, 3))];
        assert_eq!(first, second, "seed {seed}");
    }
}

/// The schedule in the file that `ESKER_SCHEDULE` names, if it does.
fn schedule() -> Option<Arc<Schedule>> {
    let path = std::env::var("ESKER_SCHEDULE").ok()?;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Some(Arc::new(Schedule::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"))))
}

/// The fault of all replicas or clients that `ESKER_PLANTED` names, if it does: a schedule of
/// processes with that fault is to find it here too.
fn planted() -> (Planted, Semantics) {
    let name = std::env::var("ESKER_PLANTED").unwrap_or_default();
    match name.as_str() {
        "" => (Planted::Nothing, Semantics::Sessions),
        "early-acknowledgement" => (Planted::EarlyAcknowledgement, Semantics::Sessions),
        "restored-leaders" => (Planted::RestoredLeaders, Semantics::Sessions),
        "lost-votes" => (Planted::LostVotes, Semantics::Sessions),
        "applied-twice" => (Planted::AppliedTwice, Semantics::Sessions),
        "local-clocks" => (Planted::LocalClocks, Semantics::Sessions),
        "old-copies" => (Planted::OldCopies, Semantics::Sessions),
        "blind-retries" => (Planted::Nothing, Semantics::BlindRetries),
        "local-reads" => (Planted::Nothing, Semantics::LocalReads),
        "early-answers" => (Planted::Nothing, Semantics::EarlyAnswers),
        other => panic!("ESKER_PLANTED={other:?} is no fault"),
    }
}

/// Many histories, for `scripts/cluster-histories`. A seed divisible by four is a cluster of five.
/// With `ESKER_SCHEDULE` each has the faults of that schedule, and its number of nodes; with
/// `ESKER_PLANTED` that fault.
#[test]
#[ignore = "takes as long as it is told to; scripts/cluster-histories runs it"]
fn histories() {
    let (mut all, mut failed, schedule) = (Counts::new(), Vec::new(), schedule());
    let (planted, semantics) = planted();
    for seed in seeds(1, 100) {
        let plan = match &schedule {
            Some(schedule) => Plan::on(seed, schedule),
            None => Plan::of(seed, if seed.is_multiple_of(4) { 5 } else { 3 }),
        };
        let plan = Plan { planted, semantics, ..plan };
        let nodes = plan.nodes;
        let outcome = catch_unwind(AssertUnwindSafe(|| simulate(plan)));
        match outcome.unwrap_or_else(|_| Err("a panic".into())) {
            Ok(counts) => {
                add(&mut all, counts);
                add(
                    &mut all,
                    Counts::from([
                        ("histories", 1),
                        (
                            if nodes == 5 { "of five nodes" } else { "of three nodes" },
                            u64::from(matches!(nodes, 3 | 5)),
                        ),
                    ]),
                );
            }
            Err(what) => {
                println!("ESKER_SEED={seed} ESKER_SEEDS=1, {nodes} nodes: {what}");
                failed.push(seed);
            }
        }
    }
    for (what, count) in &all {
        println!("count: {count} {what}");
    }
    assert!(failed.is_empty(), "these seeds failed: {failed:?}");
}

/// Runs seeds until the fault is noticed.
fn noticed(planted: Planted, semantics: Semantics) {
    noticed_by(|seed| Plan { planted, semantics, ..Plan::of(seed, 3) });
}

/// The same with the faults of a schedule.
fn noticed_on(schedule: &Arc<Schedule>, planted: Planted, semantics: Semantics) {
    noticed_by(|seed| Plan { planted, semantics, ..Plan::on(seed, schedule) });
}

fn noticed_by(plan: impl Fn(u64) -> Plan) {
    let found = (300..500).find_map(|seed| {
        // That the run is no good is not what is looked for.
        let what = simulate(plan(seed)).err().filter(|what| !what.starts_with(TOO_FEW))?;
        Some((seed, what))
    });
    let planted = plan(300).planted;
    let (seed, what) = found.unwrap_or_else(|| panic!("{planted:?} was never noticed"));
    println!("{planted:?} was noticed with seed {seed}: {what}");
}

#[test]
fn a_cluster_that_acknowledges_before_the_sync_is_noticed() {
    noticed(Planted::EarlyAcknowledgement, Semantics::Sessions);
}

/// A room that loses its power over and over: what the seeds draw seldom finds it.
#[test]
fn leaders_that_go_on_after_a_power_loss_are_noticed() {
    let mut text = "{\"nodes\":3}\n".to_string();
    for begun_ms in (1..20).map(|count| count * 1_200) {
        let over_ms = begun_ms + 50;
        text.push_str(&format!(
            "{{\"fault\":\"power-loss\",\"nodes\":[1,2,3],\"begun_ms\":{begun_ms},\"over_ms\":{over_ms}}}\n"
        ));
    }
    noticed_on(&Arc::new(Schedule::parse(&text).unwrap()), Planted::RestoredLeaders, Semantics::Sessions);
}

#[test]
fn a_cluster_that_loses_votes_is_noticed() {
    noticed(Planted::LostVotes, Semantics::Sessions);
}

#[test]
fn a_cluster_that_applies_twice_is_noticed() {
    noticed(Planted::AppliedTwice, Semantics::Sessions);
}

#[test]
fn a_cluster_with_clocks_of_their_own_is_noticed() {
    noticed(Planted::LocalClocks, Semantics::Sessions);
}

#[test]
fn reads_of_a_leader_that_is_not_asked_are_noticed() {
    noticed(Planted::Nothing, Semantics::LocalReads);
}

/// A copy of the disk that is older than the node has forgotten a vote, and what was confirmed.
#[test]
fn nodes_that_start_with_old_copies_are_noticed() {
    noticed(Planted::OldCopies, Semantics::Sessions);
}

/// A schedule with a fault of each kind.
fn every_kind() -> Arc<Schedule> {
    Arc::new(Schedule::parse(include_str!("../../../../esker-fault-schedule/every_kind.jsonl")).unwrap())
}

#[test]
fn a_schedule_has_all_its_faults() {
    let mut all = Counts::new();
    for seed in seeds(800, 4) {
        let counts = simulate(Plan::on(seed, &every_kind()));
        add(&mut all, counts.unwrap_or_else(|what| panic!("ESKER_SEED={seed}: {what}")));
    }
    println!("{all:?}");
    for what in [
        "kills",
        "partitions of a schedule",
        "nodes cut off for one that stood still",
        "slow networks",
        "power losses",
        "clock jumps",
        "full disks",
        "rolling restarts",
        "nodes replaced",
        "nodes that begin with a backup",
        "leadership transfers",
    ] {
        assert!(all.contains_key(what), "no {what}: {all:?}");
    }
}

/// What a schedule is repeated for: it finds what was wrong.
#[test]
fn a_schedule_finds_a_planted_fault() {
    noticed_on(&every_kind(), Planted::Nothing, Semantics::LocalReads);
}

#[test]
fn a_cluster_that_answers_before_a_majority_has_a_write_is_noticed() {
    noticed(Planted::Nothing, Semantics::EarlyAnswers);
}

#[test]
fn clients_that_retry_without_a_session_are_noticed() {
    noticed(Planted::Nothing, Semantics::BlindRetries);
}
