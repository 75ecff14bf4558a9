//! What happens to a simulated cluster.

use super::super::world::{pause, random};
use super::replicas::Replicas;
use esker::env::mem::CrashMode;
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Faults, one after the other, as the seed says.
pub struct Faults {
    replicas: Replicas,
    random: StdRng,
    /// Nodes that are down, with the number of their next start.
    down: BTreeMap<u64, u64>,
    crashes: usize,
    partitions: usize,
}

impl Faults {
    pub fn new(seed: u64, replicas: &Replicas) -> Faults {
        let (replicas, random) = (replicas.clone(), random(seed ^ 0xfa17));
        Faults { replicas, random, down: BTreeMap::new(), crashes: 0, partitions: 0 }
    }

    pub fn count(&self) -> (usize, usize) {
        (self.crashes, self.partitions)
    }

    async fn wait(&mut self, most_ms: u64) {
        let wait = Duration::from_millis(self.random.random_range(0..most_ms));
        pause(wait).await;
    }

    fn node(&mut self) -> u64 {
        self.random.random_range(1..=self.replicas.nodes)
    }

    /// The next fault, and a while with it.
    pub async fn next(&mut self) -> Result<(), String> {
        let nodes = self.replicas.nodes;
        match self.random.random_range(0..8) {
            0 | 1 => {
                self.partitions += 1;
                let side: Vec<bool> = (0..=nodes).map(|_| self.random.random_range(0..2) == 0).collect();
                let lines = (1..=nodes).flat_map(|from| (1..=nodes).map(move |to| (from, to)));
                let lines = lines.filter(|(from, to)| side[*from as usize] != side[*to as usize]);
                self.replicas.network.cut(lines);
                self.wait(3_000).await;
                self.replicas.network.cut([]);
            }
            2 => {
                // A node that hears and is not heard.
                self.partitions += 1;
                let from = self.node();
                self.replicas.network.cut((1..=nodes).map(|to| (from, to)));
                self.wait(2_000).await;
                self.replicas.network.cut([]);
            }
            3..6 => {
                let node = self.node();
                self.crash(node).await;
            }
            6 => {
                // All at once, as when a room loses its power.
                for node in 1..=nodes {
                    self.crash(node).await;
                }
            }
            _ => {}
        }
        self.wait(800).await;
        let back: Vec<u64> = self.down.keys().copied().filter(|_| self.random.random_range(0..3) > 0).collect();
        for node in back {
            self.boot(node).await?;
        }
        self.wait(1_500).await;
        Ok(())
    }

    /// Cuts the power of a node, now or in a later call of its disk, or kills it.
    async fn crash(&mut self, node: u64) {
        if self.down.contains_key(&node) {
            return;
        }
        self.crashes += 1;
        if self.random.random_range(0..2) == 0 {
            let disk = self.replicas.disk(node);
            disk.crash_after(disk.mutations() + self.random.random_range(0..12));
            self.wait(100).await;
        }
        let mode = match self.random.random_range(0..6) {
            0 => None,
            1..4 => Some(CrashMode::LoseAll),
            4 => Some(CrashMode::KeepAll),
            _ => Some(CrashMode::Random),
        };
        let seed = self.random.random_range(0..u64::MAX);
        if let Some(start) = self.replicas.crash(node, mode, seed).await {
            self.down.insert(node, start);
        }
    }

    async fn boot(&mut self, node: u64) -> Result<(), String> {
        match self.down.remove(&node) {
            Some(start) => self.replicas.boot(node, start).await,
            None => Ok(()),
        }
    }

    /// Ends all faults. A node that an error of its disk has ended is started again.
    pub async fn end(&mut self) -> Result<(), String> {
        self.replicas.network.cut([]);
        for node in self.down.keys().copied().collect::<Vec<_>>() {
            self.boot(node).await?;
        }
        Ok(())
    }
}
