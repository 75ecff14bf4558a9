//! Clusters of three and five replicas in one process: a network that delays, drops, repeats and
//! divides, disks that lose power and fill up, clocks that jump, nodes that are replaced, and
//! clients whose histories must be linearizable.
//!
//! Everything runs in one thread, with a clock that stands still while anything can be done, and
//! all random numbers come from one seed, those of openraft too: the seed repeats the run.

mod clients;
mod faults;
mod network;
mod objects;
mod replicas;

use self::clients::{Clients, Semantics};
use self::faults::{Counts, Faults};
use self::replicas::{Planted, Replicas};
use super::world::{run_seeded, seed};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a run goes.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    nodes: u64,
    planted: Planted,
    /// How many faults come one after the other.
    faults: usize,
    semantics: Semantics,
}

impl Plan {
    fn of(seed: u64, nodes: u64) -> Plan {
        Plan { seed, nodes, planted: Planted::Nothing, faults: 12, semantics: Semantics::Sessions }
    }
}

/// Runs a cluster with clients and faults; what was seen, or what was wrong.
fn simulate(plan: Plan) -> Result<Counts, String> {
    run_seeded(plan.seed, async {
        let replicas = Replicas::start(plan.seed, plan.nodes, plan.planted).await?;
        let clients = Clients::start(&replicas, plan.seed, plan.semantics);
        let mut faults = Faults::new(plan.seed, &replicas);
        for _ in 0..plan.faults {
            faults.next().await?;
        }
        faults.end().await?;
        let (operations, retries) = clients.finish().await?;
        replicas.agree().await?;
        let mut counts = faults.counts().clone();
        counts.insert("operations", operations as u64);
        counts.insert("repeated requests", retries as u64);
        counts.insert("snapshots installed", replicas.network.installed());
        counts.insert("messages that came twice", replicas.network.repeated());
        counts.insert("simulated milliseconds", replicas.ran_ms());
        Ok(counts)
    })
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
        assert!(all.contains_key(what), "no {what}: {all:?}");
    }
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

/// Many histories, for `scripts/cluster-histories`. A seed divisible by four is a cluster of five.
#[test]
#[ignore = "takes as long as it is told to; scripts/cluster-histories runs it"]
fn histories() {
    let (mut all, mut failed) = (Counts::new(), Vec::new());
    for seed in seeds(1, 100) {
        let nodes = if seed.is_multiple_of(4) { 5 } else { 3 };
        let outcome = catch_unwind(AssertUnwindSafe(|| simulate(Plan::of(seed, nodes))));
        match outcome.unwrap_or_else(|_| Err("a panic".into())) {
            Ok(counts) => {
                add(&mut all, counts);
                add(
                    &mut all,
                    Counts::from([
                        ("histories", 1),
                        if nodes == 5 { ("of five nodes", 1) } else { ("of three nodes", 1) },
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
    let found = (300..500).find_map(|seed| {
        let plan = Plan { planted, semantics, ..Plan::of(seed, 3) };
        simulate(plan).err().map(|what| (seed, what))
    });
    let (seed, what) = found.unwrap_or_else(|| panic!("{planted:?} was never noticed"));
    println!("{planted:?} was noticed with seed {seed}: {what}");
}

#[test]
fn a_cluster_that_acknowledges_before_the_sync_is_noticed() {
    noticed(Planted::EarlyAcknowledgement, Semantics::Sessions);
}

#[test]
fn leaders_that_go_on_after_a_power_loss_are_noticed() {
    noticed(Planted::RestoredLeaders, Semantics::Sessions);
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

#[test]
fn clients_that_retry_without_a_session_are_noticed() {
    noticed(Planted::Nothing, Semantics::BlindRetries);
}
