//! Clusters of three and five replicas in one process: a network that delays, drops and divides,
//! disks that lose power, and clients whose histories must be linearizable.
//!
//! Everything runs in one thread, with a clock that stands still while anything can be done. The
//! seed decides what the network and the disks do and when replicas fail; openraft draws its
//! election timeouts from a generator that has no seed, so that a seed repeats a run only nearly.

mod clients;
mod faults;
mod network;
mod replicas;

use self::clients::{Clients, Semantics};
use self::faults::Faults;
use self::replicas::{Planted, Replicas};
use super::world::{run, seed};

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

/// What a run has shown.
#[derive(Debug, Default)]
struct Seen {
    operations: usize,
    retries: usize,
    crashes: usize,
    partitions: usize,
    snapshots_installed: u64,
}

/// Runs a cluster with clients and faults; what was seen, or what was wrong.
fn simulate(plan: Plan) -> Result<Seen, String> {
    run(async {
        let replicas = Replicas::start(plan.seed, plan.nodes, plan.planted).await?;
        let clients = Clients::start(&replicas, plan.seed, plan.semantics);
        let mut faults = Faults::new(plan.seed, &replicas);
        for _ in 0..plan.faults {
            faults.next().await?;
        }
        faults.end().await?;
        let (operations, retries) = clients.finish().await?;
        replicas.agree().await?;
        let (crashes, partitions) = faults.count();
        let snapshots_installed = replicas.snapshots_installed();
        Ok(Seen { operations, retries, crashes, partitions, snapshots_installed })
    })
}

/// The seeds of a test, each in turn; `ESKER_SEED` and `ESKER_SEEDS` for others.
fn seeds(default: u64, count: u64) -> std::ops::Range<u64> {
    let first = seed(default);
    let count = std::env::var("ESKER_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(count);
    first..first + count
}

fn simulate_all(default: u64, count: u64, nodes: u64) {
    let mut all = Seen::default();
    for seed in seeds(default, count) {
        let plan = Plan { seed, nodes, planted: Planted::Nothing, faults: 12, semantics: Semantics::Sessions };
        let seen = simulate(plan).unwrap_or_else(|what| panic!("ESKER_SEED={seed}, {nodes} nodes: {what}"));
        all.operations += seen.operations;
        all.retries += seen.retries;
        all.crashes += seen.crashes;
        all.partitions += seen.partitions;
        all.snapshots_installed += seen.snapshots_installed;
    }
    println!("{all:?}");
    assert!(all.crashes > 0 && all.partitions > 0 && all.retries > 0 && all.snapshots_installed > 0, "{all:?}");
}

#[test]
fn three_replicas_are_linearizable_under_partitions_and_power_losses() {
    simulate_all(100, 12, 3);
}

#[test]
fn five_replicas_are_linearizable_under_partitions_and_power_losses() {
    simulate_all(200, 6, 5);
}

/// Runs seeds until the fault is noticed.
fn noticed(planted: Planted, semantics: Semantics) {
    let found = (300..380).find_map(|seed| {
        let plan = Plan { seed, nodes: 3, planted, faults: 12, semantics };
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
fn a_cluster_that_applies_twice_is_noticed() {
    noticed(Planted::AppliedTwice, Semantics::Sessions);
}

#[test]
fn a_cluster_with_clocks_of_their_own_is_noticed() {
    noticed(Planted::LocalClocks, Semantics::Sessions);
}

#[test]
fn clients_that_retry_without_a_session_are_noticed() {
    noticed(Planted::Nothing, Semantics::BlindRetries);
}
