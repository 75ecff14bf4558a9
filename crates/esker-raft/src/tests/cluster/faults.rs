//! What happens to a simulated cluster: as the seed says, or as a schedule that a run of processes
//! has written down.

use super::super::world::{pause, random};
use super::clients::Caller;
use super::objects::KINDS;
use super::replicas::Replicas;
use esker::env::mem::{CrashMode, MemEnv};
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often something happened, by its name.
pub type Counts = BTreeMap<&'static str, u64>;

/// Faults, one after the other, as the seed says.
pub struct Faults {
    pub(super) replicas: Replicas,
    caller: Caller,
    random: StdRng,
    /// Nodes that are down, with the number of their next start.
    down: BTreeMap<u64, u64>,
    /// A node that is about to take the place of another one.
    replacement: Option<(u64, u64)>,
    /// A copy of the disk of a node, made while the node was down.
    backup: Option<MemEnv>,
    counts: Counts,
}

/// How often a replacement is tried after the faults before the cluster counts as stuck.
const ATTEMPTS: usize = 100;

impl Faults {
    pub fn new(seed: u64, replicas: &Replicas, caller: Caller) -> Faults {
        let (replicas, random) = (replicas.clone(), random(seed ^ 0xfa17));
        let (down, counts) = (BTreeMap::new(), Counts::new());
        Faults { replicas, caller, random, down, replacement: None, backup: None, counts }
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    async fn wait(&mut self, most_ms: u64) {
        let wait = self.up_to(most_ms);
        pause(wait).await;
    }

    fn up_to(&mut self, most_ms: u64) -> Duration {
        Duration::from_millis(self.random.random_range(0..most_ms))
    }

    fn node(&mut self) -> u64 {
        let nodes = self.replicas.nodes();
        nodes[self.random.random_range(0..nodes.len())]
    }

    /// The node that leads, as far as another one knows; else any.
    async fn leader(&mut self) -> u64 {
        match self.replicas.leader().await {
            Some(leader) if self.replicas.nodes().contains(&leader) => leader,
            _ => self.node(),
        }
    }

    /// Has clients begin uses that the next fault finds under way: on their way to a node, in its
    /// log, or on their way back.
    pub(super) async fn call_clients(&mut self) {
        if self.random.random_range(0..4) > 0 {
            let kind = self.random.random_range(0..KINDS);
            self.caller.call(kind);
            self.wait(150).await;
        }
    }

    /// The next fault, and a while with it.
    pub async fn next(&mut self) -> Result<(), String> {
        self.call_clients().await;
        match self.random.random_range(0..20) {
            0..4 => self.partition().await,
            4..8 => {
                let node = self.node();
                self.crash(node).await;
            }
            8 => {
                // All at once, as when a room loses its power.
                self.count("losses of all nodes");
                for node in self.replicas.nodes() {
                    self.crash(node).await;
                }
            }
            9 => {
                self.count("slow networks");
                let most_ms = self.random.random_range(30..400);
                self.replicas.network.disturb(Some((most_ms, 2)));
                self.wait(4_000).await;
                self.replicas.network.disturb(None);
            }
            10 | 11 => {
                self.count("clock jumps");
                let node = if self.random.random_range(0..3) > 0 { self.leader().await } else { self.node() };
                let ahead_ms = self.random.random_range(0..10_000);
                self.replicas.set_clock(node, ahead_ms);
            }
            12 => {
                let (node, lasts) = (self.node(), self.up_to(3_000));
                self.fill_disk(node, lasts).await;
            }
            13 => self.restart_one_after_the_other(&self.replicas.nodes()).await?,
            14 => self.replace(None, false).await?,
            15 => self.replace(None, true).await?,
            16 => {
                let node = self.node();
                self.transfer(node).await;
            }
            17 | 18 => self.lose_power_in_election().await?,
            _ => {}
        }
        self.wait(800).await;
        self.revive().await;
        let back: Vec<u64> = self.down.keys().copied().filter(|_| self.random.random_range(0..3) > 0).collect();
        for node in back {
            self.boot(node).await?;
        }
        self.wait(1_500).await;
        Ok(())
    }

    /// Cuts the power of nodes that have just elected another one, before they hear of it again,
    /// and lets them go on with the leader before: one that has forgotten its vote follows that
    /// one, and what both acknowledge then is not in the log of the new leader.
    async fn lose_power_in_election(&mut self) -> Result<(), String> {
        self.count("elections with power losses");
        let (nodes, before) = (self.replicas.nodes(), self.leader().await);
        let around = |away: u64| nodes.iter().flat_map(move |node| [(*node, away), (away, *node)]);
        self.replicas.network.begin_to_note_votes();
        self.replicas.network.cut(around(before));
        for _ in 0..1_500 {
            pause(Duration::from_millis(1)).await;
            let Some((elected, voters)) = self.replicas.network.elected(nodes.len() / 2) else { continue };
            // It still hears that it is elected.
            self.replicas.network.cut(around(elected).filter(|(from, to)| *from == elected || *to == before));
            for node in voters {
                if !self.down.contains_key(&node) {
                    self.stop(node, Some(CrashMode::LoseAll)).await;
                    self.boot(node).await?;
                }
            }
            // Nobody hears of the new leader, and the one before hears them.
            self.replicas.network.cut(around(elected).filter(|(from, _)| *from == elected));
            self.call_clients().await;
            self.wait(1_000).await;
            break;
        }
        self.replicas.network.cut([]);
        Ok(())
    }

    /// Has the leader give way to that node.
    pub(super) async fn transfer(&mut self, node: u64) {
        self.count("leadership transfers");
        let leader = self.replicas.leader().await.and_then(|leader| self.replicas.network.reach(leader));
        if let Some(leader) = leader {
            // It may be the leader, or the leader may be gone.
            drop(leader.raft.trigger().transfer_leader(node).await);
        }
    }

    /// Divides the network for a while.
    async fn partition(&mut self) {
        let nodes = self.replicas.nodes();
        let all = || nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
        let leader = self.leader().await;
        let lines: Vec<(u64, u64)> = match self.random.random_range(0..6) {
            0 | 1 => {
                self.count("partitions into two sides");
                let side: BTreeMap<u64, bool> =
                    nodes.iter().map(|node| (*node, self.random.random_range(0..2) == 0)).collect();
                all().filter(|(from, to)| side[from] != side[to]).collect()
            }
            2 => {
                self.count("leaders cut off");
                all().filter(|(from, to)| *from == leader || *to == leader).collect()
            }
            3 => {
                self.count("nodes that are not heard");
                let mute = self.node();
                all().filter(|(from, _)| *from == mute).collect()
            }
            4 => {
                self.count("nodes that do not hear");
                let deaf = self.node();
                all().filter(|(_, to)| *to == deaf).collect()
            }
            _ => {
                // Two sides that only one node reaches both of.
                self.count("bridges");
                let bridge = self.node();
                let side: BTreeMap<u64, bool> =
                    nodes.iter().map(|node| (*node, self.random.random_range(0..2) == 0)).collect();
                all().filter(|(from, to)| *from != bridge && *to != bridge && side[from] != side[to]).collect()
            }
        };
        let lasts = self.up_to(3_000);
        self.cut(lines, lasts).await;
    }

    pub(super) async fn cut(&mut self, lines: Vec<(u64, u64)>, lasts: Duration) {
        self.replicas.network.cut(lines);
        pause(lasts / 2).await;
        // There may be two leaders by now, of which one does not know that it is none.
        self.call_clients().await;
        pause(lasts / 2).await;
        self.replicas.network.cut([]);
    }

    /// Lets the disk of a node take hardly any more bytes for a while.
    pub(super) async fn fill_disk(&mut self, node: u64, lasts: Duration) {
        self.count("full disks");
        let disk = self.replicas.disk(node);
        let used =
            disk.files().iter().filter_map(|path| disk.file_bytes(path)).map(|bytes| bytes.len() as u64).sum::<u64>();
        disk.set_capacity(Some(used + self.random.random_range(0..4_000)));
        pause(lasts).await;
        disk.set_capacity(None);
    }

    /// Stops each node and starts it again before the next one.
    pub(super) async fn restart_one_after_the_other(&mut self, nodes: &[u64]) -> Result<(), String> {
        self.count("rolling restarts");
        for &node in nodes {
            if let Some(start) = self.replicas.crash(node, None, 0).await {
                self.wait(100).await;
                self.replicas.boot(node, start).await?;
            }
            self.wait(700).await;
        }
        Ok(())
    }

    /// Puts a node in the place of another one, as far as it can be done now: one with an empty
    /// disk, or one that begins with the state that a node had some time ago.
    pub(super) async fn replace(&mut self, old: Option<u64>, from_backup: bool) -> Result<(), String> {
        let old = old.unwrap_or_else(|| self.node());
        let (old, new) = match self.replacement {
            Some(pair) => pair,
            None if from_backup => {
                self.count("nodes that begin with a backup");
                let backup = match self.backup.take() {
                    Some(backup) => backup,
                    None => self.back_up().await?,
                };
                (old, self.replicas.begin(Some(&backup)).await?)
            }
            None => (old, self.replicas.begin(None).await?),
        };
        self.replacement = Some((old, new));
        for _ in 0..3 {
            if self.replicas.replace(old, new).await {
                self.count("nodes replaced");
                self.down.remove(&old);
                self.replacement = None;
                break;
            }
            self.wait(500).await;
        }
        Ok(())
    }

    /// A copy of the disk of a node, which is stopped for that.
    async fn back_up(&mut self) -> Result<MemEnv, String> {
        let node = self.node();
        self.stop(node, None).await;
        let backup = self.replicas.disk(node).kill();
        self.boot(node).await?;
        Ok(backup)
    }

    /// Ends nodes that have given up, so that they are started again.
    pub(super) async fn revive(&mut self) {
        for node in self.replicas.nodes() {
            if !self.replicas.has_stopped(node) {
                continue;
            }
            self.count("nodes that gave up");
            if let Some(start) = self.replicas.crash(node, None, 0).await {
                self.down.insert(node, start);
            }
        }
    }

    /// Cuts the power of a node, now or in a later call of its disk, or kills it.
    pub(super) async fn crash(&mut self, node: u64) {
        if self.down.contains_key(&node) {
            return;
        }
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
        self.stop(node, mode).await;
    }

    /// Cuts the power of a node now, or kills it.
    pub(super) async fn stop(&mut self, node: u64, mode: Option<CrashMode>) {
        self.count(if mode.is_some() { "power losses" } else { "kills" });
        let seed = self.random.random_range(0..u64::MAX);
        if let Some(start) = self.replicas.crash(node, mode, seed).await {
            self.down.insert(node, start);
        }
    }

    async fn boot(&mut self, node: u64) -> Result<(), String> {
        let Some(start) = self.down.remove(&node) else { return Ok(()) };
        if self.random.random_range(0..4) == 0 {
            self.backup = Some(self.replicas.disk(node).kill());
        }
        self.replicas.boot(node, start).await
    }

    /// Starts what is down.
    pub(super) async fn boot_all(&mut self) -> Result<(), String> {
        for node in self.down.keys().copied().collect::<Vec<_>>() {
            self.boot(node).await?;
        }
        Ok(())
    }

    /// Ends all faults. A node that an error of its disk has ended is started again.
    pub async fn end(&mut self) -> Result<(), String> {
        self.replicas.network.cut([]);
        self.replicas.network.disturb(None);
        self.revive().await;
        self.boot_all().await?;
        for _ in 0..ATTEMPTS {
            if self.replacement.is_none() {
                return Ok(());
            }
            self.replace(None, false).await?;
        }
        Err(format!("no node takes the place of another one: {}", self.replicas.describe().await))
    }
}
