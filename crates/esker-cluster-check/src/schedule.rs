//! What happens to a cluster of processes, one thing after the other, as the seed says, or a
//! schedule.

use crate::cluster::Cluster;
use crate::load::Load;
use crate::machine::Abilities;
use crate::network::Weather;
use esker_fault_schedule::{Fault, Kind, Schedule};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

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
    /// Where the faults are written down, and since when their times count.
    record: (File, Instant),
}

/// The number of a node in a schedule.
fn wide(number: usize) -> u64 {
    number as u64
}

/// The number of a node of a schedule, which has few.
fn narrow(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'c> Faults<'c> {
    /// Those of a seed, or of a schedule, written down as lines of `record`.
    pub fn new(
        cluster: &'c mut Cluster,
        load: &'c Load,
        (abilities, seed): (Abilities, u64),
        record: File,
    ) -> Faults<'c> {
        let random = StdRng::seed_from_u64(seed ^ 0xfa17);
        let clocks_jump = abilities.clocks && seed.is_multiple_of(2);
        let (replacement, counts, record) = (None, Counts::new(), (record, Instant::now()));
        Faults { cluster, load, abilities, random, clocks_jump, replacement, counts, record }
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

    /// That node, or any.
    fn this_or_any(&mut self, leader: usize) -> usize {
        if self.random.random_range(0..2) == 0 { leader } else { self.any() }
    }

    fn drawn(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_millis(self.random.random_range(least_ms..most_ms))
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.record.1.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The next fault, and a while without one.
    ///
    /// # Errors
    /// A node does not start, or one has taken part that must not.
    pub fn next(&mut self) -> Result<(), String> {
        let leads = self.cluster.leader();
        let leader = leads.unwrap_or_else(|| self.any());
        match self.draw(leader) {
            Some((kind, lasts)) => self.take(kind, lasts, leads)?,
            None => self.revive()?,
        }
        self.wait(300, 2_000);
        Ok(())
    }

    /// The faults of a schedule, at its times, or when the one before is over.
    ///
    /// # Errors
    /// As for the next one.
    pub fn replay(&mut self, schedule: &Schedule) -> Result<(), String> {
        for fault in &schedule.faults {
            thread::sleep(Duration::from_millis(fault.begun_ms.saturating_sub(self.elapsed_ms())));
            let nodes: Vec<u64> = self.cluster.numbers().into_iter().map(wide).collect();
            let leads = self.cluster.leader();
            let kind = fault.with_leader(&nodes, leads.map(wide));
            self.take(kind, Duration::from_millis(fault.lasts_ms()), leads)?;
        }
        Ok(())
    }

    /// A fault that this system can have, and how long it lasts.
    fn draw(&mut self, leader: usize) -> Option<(Kind, Duration)> {
        let node = self.this_or_any(leader);
        let (of_one, all) = (vec![wide(node)], self.cluster.numbers().into_iter().map(wide).collect());
        let (node, none) = (wide(node), Duration::ZERO);
        Some(match self.random.random_range(0..22) {
            0..3 => (Kind::Kill { nodes: of_one }, self.drawn(0, 2_500)),
            3 => (Kind::Kill { nodes: all }, self.drawn(0, 300)),
            4 | 5 => (Kind::StandStill { nodes: of_one }, self.drawn(200, 4_000)),
            6..10 if self.abilities.network => (self.partition(leader), self.drawn(500, 4_000)),
            10..13 if self.abilities.network => {
                let most_delay_ms = self.random.random_range(5..250);
                let lost_percent = self.random.random_range(0..10);
                (Kind::SlowNetwork { most_delay_ms, lost_percent }, self.drawn(1_000, 5_000))
            }
            13 | 14 if self.clocks_jump => {
                (Kind::ClockJump { node, ahead_ms: self.random.random_range(0..MOST_AHEAD_MS) }, none)
            }
            15 | 16 if self.abilities.mounts => {
                let is_killed = self.random.random_range(0..2) == 0;
                (Kind::FullDisk { node, is_killed }, self.drawn(1_000, 4_000))
            }
            17 => (Kind::Replace { node }, none),
            18 => (Kind::RollingRestart { nodes: all }, none),
            19 => (Kind::Transfer { node: wide(self.any()) }, none),
            20 => (Kind::ReplaceFromBackup { node, backup_of: wide(self.any()) }, none),
            _ => return None,
        })
    }

    /// Which links are cut.
    fn partition(&mut self, leader: usize) -> Kind {
        let numbers = self.cluster.numbers();
        let all: Vec<(usize, usize)> =
            numbers.iter().flat_map(|from| numbers.iter().map(move |to| (*from, *to))).collect();
        let side: BTreeMap<usize, bool> =
            numbers.iter().map(|number| (*number, self.random.random_range(0..2) == 0)).collect();
        let any = self.any();
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
        let links = links.into_iter().filter(|(from, to)| from != to);
        Kind::Partition { links: links.map(|(from, to)| (wide(from), wide(to))).collect() }
    }

    /// Has a fault, and writes it down.
    fn take(&mut self, kind: Kind, lasts: Duration, leader: Option<usize>) -> Result<(), String> {
        let begun_ms = self.elapsed_ms();
        let outcome = self.perform(&kind, lasts);
        let fault = Fault { kind, begun_ms, over_ms: self.elapsed_ms(), leader: leader.map(wide) };
        writeln!(self.record.0, "{}", fault.line()?).map_err(|error| format!("the schedule: {error}"))?;
        outcome?;
        self.revive()
    }

    fn perform(&mut self, kind: &Kind, lasts: Duration) -> Result<(), String> {
        let Abilities { network, mounts, clocks } = self.abilities;
        let is_possible = match kind {
            Kind::Partition { .. } | Kind::SlowNetwork { .. } => network,
            Kind::FullDisk { .. } => mounts,
            Kind::ClockJump { .. } => clocks,
            _ => true,
        };
        match kind {
            _ if !is_possible => self.count("faults that this system cannot have"),
            Kind::Kill { nodes } | Kind::PowerLoss { nodes } => self.kill(nodes, lasts)?,
            Kind::StandStill { nodes } => self.stand_still(nodes, lasts),
            Kind::Partition { links } => {
                self.count("partitions");
                self.cluster.cut(links.iter().map(|(from, to)| (narrow(*from), narrow(*to))));
                thread::sleep(lasts);
                self.cluster.cut([]);
            }
            Kind::SlowNetwork { most_delay_ms, lost_percent } => {
                self.count("slow links with loss and reordering");
                let (most_delay_ms, lost_percent) = (*most_delay_ms, u32::from(*lost_percent));
                self.cluster.set_weather(Weather { most_delay_ms, lost_percent });
                thread::sleep(lasts);
                self.cluster.set_weather(Weather::default());
            }
            Kind::ClockJump { node, ahead_ms } => {
                self.count("clock jumps");
                self.load.expect_ahead_ms(MOST_AHEAD_MS.max(*ahead_ms));
                self.cluster.node(narrow(*node)).map_or(Ok(()), |node| node.set_ahead_ms(*ahead_ms))?;
            }
            Kind::FullDisk { node, is_killed } => self.fill_disk(narrow(*node), lasts, *is_killed)?,
            Kind::RollingRestart { nodes } => self.restart_one_after_the_other(nodes)?,
            Kind::Replace { node } => self.replace(narrow(*node), None)?,
            Kind::ReplaceFromBackup { node, backup_of } => self.replace(narrow(*node), Some(narrow(*backup_of)))?,
            Kind::Transfer { node } => {
                self.count("leadership transfers");
                // It may be the leader, or the leader may be gone.
                let _ = self.cluster.order_leader(&["RAFT.TRANSFER".into(), node.to_string()]);
            }
        }
        Ok(())
    }

    fn kill(&mut self, nodes: &[u64], lasts: Duration) -> Result<(), String> {
        self.count(if nodes.len() == 1 { "kills" } else { "kills of all nodes" });
        for number in nodes {
            self.cluster.node(narrow(*number)).into_iter().for_each(crate::node::Node::kill);
        }
        thread::sleep(lasts);
        nodes.iter().try_for_each(|number| self.start(narrow(*number)))
    }

    fn start(&mut self, number: usize) -> Result<(), String> {
        self.cluster.node(number).map_or(Ok(()), |node| node.start())
    }

    fn stand_still(&mut self, nodes: &[u64], lasts: Duration) {
        self.count("nodes that stood still");
        for number in nodes {
            self.cluster.node(narrow(*number)).into_iter().for_each(|node| node.stop());
        }
        thread::sleep(lasts);
        for number in nodes {
            self.cluster.node(narrow(*number)).into_iter().for_each(|node| node.go_on());
        }
    }

    fn fill_disk(&mut self, number: usize, lasts: Duration, is_killed: bool) -> Result<(), String> {
        self.count("full disks");
        if let Some(node) = self.cluster.node(number) {
            node.fill_disk()?;
        }
        // What clients of the histories write has room in the segments of the log that are there.
        let until = Instant::now() + lasts;
        self.cluster.write_much(until);
        thread::sleep(until.saturating_duration_since(Instant::now()));
        let Some(node) = self.cluster.node(number) else { return Ok(()) };
        let has_stopped = !node.is_up() || node.status().is_some_and(|status| status.has_failed);
        if has_stopped {
            self.count("nodes that a full disk stopped");
        }
        let Some(node) = self.cluster.node(number) else { return Ok(()) };
        if is_killed {
            node.kill();
        }
        node.free_disk()?;
        if is_killed { node.start() } else { Ok(()) }
    }

    fn restart_one_after_the_other(&mut self, nodes: &[u64]) -> Result<(), String> {
        self.count("rolling restarts");
        for number in nodes {
            if let Some(node) = self.cluster.node(narrow(*number)) {
                node.terminate();
                node.start()?;
            }
            self.wait(300, 1_500);
        }
        Ok(())
    }

    /// Puts a node with an empty disk in the place of another one, as far as it can be done now.
    /// With a backup the other one has lost its disk, and what operators may think of is tried
    /// first: none of it may bring a node into the cluster.
    fn replace(&mut self, old: usize, backup_of: Option<usize>) -> Result<(), String> {
        const STEPS: usize = 12;
        let pair = match self.replacement {
            Some(pair) => pair,
            None if !self.cluster.has_port() => return Ok(()),
            None => {
                let backup = match backup_of {
                    Some(number) => self.cluster.back_up(number)?,
                    None => None,
                };
                match backup {
                    Some(backup) => {
                        self.count("nodes that lost their disks, with a backup");
                        self.wait(300, 2_000);
                        self.cluster.lose_disk(old)?;
                        let (new, is_asked) = self.cluster.add_node_of_backup(&backup)?;
                        self.cluster.check_is_out(old)?;
                        if is_asked {
                            self.count("backups that a cluster has refused");
                        }
                        (old, new)
                    }
                    None => (old, self.cluster.add_node()?),
                }
            }
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
