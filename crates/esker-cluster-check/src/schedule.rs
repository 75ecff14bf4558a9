//! What happens to a cluster of processes, one thing after the other, as the seed says.

use crate::cluster::Cluster;
use crate::load::Load;
use crate::machine::Abilities;
use crate::network::Weather;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// How often something happened, by its name.
pub type Counts = BTreeMap<&'static str, u64>;

/// How often a replacement is tried after the faults.
const ATTEMPTS: usize = 150;
/// The furthest that a clock is set ahead, in milliseconds.
const MOST_AHEAD_MS: u64 = 8_000;

/// The faults of a run.
pub struct Faults<'c> {
    cluster: &'c mut Cluster,
    load: &'c Load,
    abilities: Abilities,
    random: StdRng,
    /// Runs without clock jumps know when leases must not end yet.
    clocks_jump: bool,
    replacement: Option<(usize, usize)>,
    counts: Counts,
}

impl<'c> Faults<'c> {
    /// Those of a seed.
    pub fn new(cluster: &'c mut Cluster, load: &'c Load, abilities: Abilities, seed: u64) -> Faults<'c> {
        let random = StdRng::seed_from_u64(seed ^ 0xfa17);
        let clocks_jump = abilities.clocks && seed.is_multiple_of(2);
        Faults { cluster, load, abilities, random, clocks_jump, replacement: None, counts: Counts::new() }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn wait(&mut self, least_ms: u64, most_ms: u64) {
        thread::sleep(Duration::from_millis(self.random.random_range(least_ms..most_ms)));
    }

    fn any(&mut self) -> usize {
        let numbers = self.cluster.numbers();
        numbers[self.random.random_range(0..numbers.len())]
    }

    /// The leader, or any node if there is none.
    fn leader(&mut self) -> usize {
        match self.cluster.leader() {
            Some(leader) => leader,
            None => self.any(),
        }
    }

    fn leader_or_any(&mut self) -> usize {
        if self.random.random_range(0..2) == 0 { self.leader() } else { self.any() }
    }

    /// The next fault, and a while without one.
    ///
    /// # Errors
    /// A node does not start.
    pub fn next(&mut self) -> Result<(), String> {
        match self.random.random_range(0..20) {
            0..3 => self.kill_one()?,
            3 => self.kill_all()?,
            4 | 5 => self.stand_still(),
            6..10 if self.abilities.network => self.partition(),
            10..13 if self.abilities.network => self.storm(),
            13 | 14 if self.clocks_jump => self.jump()?,
            15 | 16 if self.abilities.mounts => self.fill_disk()?,
            17 => self.replace()?,
            18 => self.restart_one_after_the_other()?,
            19 => {
                let to = self.any().to_string();
                self.count("leadership transfers");
                // It may be the leader, or the leader may be gone.
                let _ = self.cluster.order_leader(&["RAFT.TRANSFER".into(), to]);
            }
            _ => {}
        }
        self.revive()?;
        self.wait(300, 2_000);
        Ok(())
    }

    fn kill_one(&mut self) -> Result<(), String> {
        self.count("kills");
        let number = self.leader_or_any();
        if let Some(node) = self.cluster.node(number) {
            node.kill();
        }
        self.wait(0, 2_500);
        self.start(number)
    }

    fn kill_all(&mut self) -> Result<(), String> {
        self.count("kills of all nodes");
        self.cluster.nodes().for_each(crate::node::Node::kill);
        self.wait(0, 300);
        for number in self.cluster.numbers() {
            self.start(number)?;
        }
        Ok(())
    }

    fn start(&mut self, number: usize) -> Result<(), String> {
        self.cluster.node(number).map_or(Ok(()), |node| node.start())
    }

    fn stand_still(&mut self) {
        self.count("nodes that stood still");
        let number = self.leader_or_any();
        if let Some(node) = self.cluster.node(number) {
            node.stop();
        }
        self.wait(200, 4_000);
        if let Some(node) = self.cluster.node(number) {
            node.go_on();
        }
    }

    fn partition(&mut self) {
        let numbers = self.cluster.numbers();
        let all: Vec<(usize, usize)> =
            numbers.iter().flat_map(|from| numbers.iter().map(move |to| (*from, *to))).collect();
        let side: BTreeMap<usize, bool> =
            numbers.iter().map(|number| (*number, self.random.random_range(0..2) == 0)).collect();
        let (leader, any) = (self.leader(), self.any());
        let (what, links): (_, Vec<_>) = match self.random.random_range(0..6) {
            0 | 1 => {
                ("leaders cut off", all.into_iter().filter(|(from, to)| *from == leader || *to == leader).collect())
            }
            2 => {
                let links = all.into_iter().filter(|(from, to)| side[from] != side[to]);
                ("partitions into two sides", links.collect())
            }
            3 => {
                let links = all.into_iter().filter(|(from, to)| *from != any && *to != any && side[from] != side[to]);
                ("bridges", links.collect())
            }
            4 => ("nodes that are not heard", all.into_iter().filter(|(from, _)| *from == any).collect()),
            _ => ("nodes that do not hear", all.into_iter().filter(|(_, to)| *to == leader).collect()),
        };
        self.count(what);
        self.cluster.cut(links);
        self.wait(500, 4_000);
        self.cluster.cut([]);
    }

    fn storm(&mut self) {
        self.count("slow links with loss and reordering");
        let most_delay_ms = self.random.random_range(5..250);
        let lost_percent = self.random.random_range(0..10);
        self.cluster.set_weather(Weather { most_delay_ms, lost_percent });
        self.wait(1_000, 5_000);
        self.cluster.set_weather(Weather::default());
    }

    fn jump(&mut self) -> Result<(), String> {
        self.count("clock jumps");
        let number = self.leader_or_any();
        let ahead_ms = self.random.random_range(0..MOST_AHEAD_MS);
        self.load.expect_ahead_ms(MOST_AHEAD_MS);
        self.cluster.node(number).map_or(Ok(()), |node| node.set_ahead_ms(ahead_ms))
    }

    fn fill_disk(&mut self) -> Result<(), String> {
        self.count("full disks");
        let number = self.leader_or_any();
        if let Some(node) = self.cluster.node(number) {
            node.fill_disk()?;
        }
        self.wait(1_000, 4_000);
        let is_kill = self.random.random_range(0..2) == 0;
        let Some(node) = self.cluster.node(number) else { return Ok(()) };
        let has_stopped = !node.is_up() || node.status().is_some_and(|status| status.has_failed);
        if has_stopped {
            self.count("nodes that a full disk stopped");
        }
        let Some(node) = self.cluster.node(number) else { return Ok(()) };
        if is_kill {
            node.kill();
        }
        node.free_disk()?;
        if is_kill { node.start() } else { Ok(()) }
    }

    fn restart_one_after_the_other(&mut self) -> Result<(), String> {
        self.count("rolling restarts");
        for number in self.cluster.numbers() {
            if let Some(node) = self.cluster.node(number) {
                node.terminate();
                node.start()?;
            }
            self.wait(300, 1_500);
        }
        Ok(())
    }

    /// Puts a node with an empty disk in the place of another one, as far as it can be done now.
    fn replace(&mut self) -> Result<(), String> {
        const STEPS: usize = 12;
        let pair = match self.replacement {
            Some(pair) => pair,
            None if self.cluster.has_port() => (self.leader_or_any(), self.cluster.add_node()?),
            None => return Ok(()),
        };
        self.replacement = Some(pair);
        for _ in 0..STEPS {
            if self.step(pair)? {
                return Ok(());
            }
            self.wait(100, 400);
        }
        Ok(())
    }

    fn step(&mut self, (old, new): (usize, usize)) -> Result<bool, String> {
        match self.cluster.replace(old, new) {
            Ok(true) => {
                self.count("nodes replaced");
                self.replacement = None;
                self.load.set_nodes(self.cluster.addresses());
                Ok(true)
            }
            Ok(false) => Ok(false),
            // Without a leader, or with a node that is behind, it is tried again.
            Err(_) => Ok(false),
        }
    }

    /// Starts nodes that have ended by themselves or given up, as after an error of their disk.
    fn revive(&mut self) -> Result<(), String> {
        for (number, status) in self.cluster.statuses() {
            if status.has_failed {
                self.count("nodes that gave up");
                self.cluster.node(number).into_iter().for_each(crate::node::Node::kill);
                self.start(number)?;
            }
        }
        for number in self.cluster.numbers() {
            if self.cluster.node(number).is_some_and(|node| !node.is_up()) {
                self.count("nodes that ended by themselves");
                self.start(number)?;
            }
        }
        Ok(())
    }

    /// Ends all faults, and waits until every node serves; what there was.
    ///
    /// # Errors
    /// The cluster does not come back.
    pub fn end(mut self) -> Result<Counts, String> {
        self.cluster.cut([]);
        self.cluster.set_weather(Weather::default());
        for node in self.cluster.nodes() {
            node.go_on();
            node.free_disk()?;
        }
        self.revive()?;
        self.give_up_on_silent_nodes()?;
        for _ in 0..ATTEMPTS {
            let Some(pair) = self.replacement else { break };
            if !self.step(pair)? {
                self.wait(100, 300);
            }
        }
        if let Some((old, new)) = self.replacement {
            let why = self.cluster.replace(old, new).err().unwrap_or_default();
            return Err(format!("node {new} does not take the place of node {old}: {why}"));
        }
        let all = |cluster: &mut Cluster| {
            let statuses = cluster.statuses();
            statuses.len() == cluster.numbers().len() && statuses.values().any(|status| status.leads)
        };
        self.cluster.wait_for("a leader, with answers of all nodes,", all)?;
        Ok(self.counts)
    }

    /// Restarts nodes that run and do not answer, as one whose disk was full may.
    fn give_up_on_silent_nodes(&mut self) -> Result<(), String> {
        const LOOKS: usize = 25;
        for look in 1..=LOOKS {
            let answers = self.cluster.statuses();
            let silent: Vec<usize> =
                self.cluster.numbers().into_iter().filter(|number| !answers.contains_key(number)).collect();
            if silent.is_empty() {
                break;
            }
            if look == LOOKS {
                for number in silent {
                    self.count("silent nodes that were restarted");
                    if let Some(node) = self.cluster.node(number) {
                        node.kill();
                    }
                    self.start(number)?;
                }
            }
            self.wait(100, 300);
        }
        Ok(())
    }
}
