//! A cluster of nodes, with the network between them.

use crate::client::{Outcome, text, texts};
use crate::network::{PacketCounts, Switch, Weather};
use crate::node::{Namespaces, Node, Site, Status};
use crate::specification::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

/// How many nodes may join later.
pub const SPARE: usize = 3;
/// How often something is tried before it counts as impossible, and the pause between.
const ATTEMPTS: usize = 150;
const PAUSE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(5);
/// How many entries a node may lack that is made a voter.
const LAG: u64 = 100;

/// A copy of the state of a node.
pub struct Backup {
    state: PathBuf,
    database: PathBuf,
}

/// Copies a directory with what is in it, but for locks.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.file_name() != "LOCK" {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A cluster that runs.
pub struct Cluster {
    site: Site,
    nodes: BTreeMap<usize, Node>,
    next: usize,
    last: usize,
    switch: Option<Switch>,
    _namespaces: Option<Namespaces>,
}

impl Cluster {
    /// Starts a cluster of so many nodes, and waits for its leader.
    ///
    /// # Errors
    /// The system refuses what it needs, or the nodes do not elect one.
    pub fn start(site: &Site, count: usize, seed: u64) -> Result<Cluster, String> {
        let last = count + SPARE;
        let (mut switch, mut namespaces) = (None, None);
        if site.has_network {
            let names: Vec<String> = (0..=last).map(|port| site.device(port)).collect();
            switch = Some(Switch::start(&names, seed).map_err(|error| format!("the switch: {error}"))?);
            namespaces = Some(Namespaces::new(site, last + 1)?);
        }
        let site = site.clone();
        let nodes = BTreeMap::new();
        let mut cluster = Cluster { site, nodes, next: 1, last, switch, _namespaces: namespaces };
        for _ in 0..count {
            cluster.add_node()?;
        }
        let mut command = vec!["RAFT.INIT".to_string()];
        for number in 1..=count {
            command.extend([number.to_string(), cluster.site.advertised(number)]);
        }
        cluster.wait_for("an answer of node 1", |cluster| cluster.nodes[&1].status().is_some())?;
        cluster.order(1, &command)?;
        cluster.wait_for("a leader", |cluster| cluster.leader().is_some())?;
        Ok(cluster)
    }

    /// Starts another node, of which the others do not know.
    ///
    /// # Errors
    /// There is no port for it, or it does not start.
    pub fn add_node(&mut self) -> Result<usize, String> {
        let number = self.next;
        if number > self.last {
            return Err("there are no more ports".into());
        }
        self.next += 1;
        let mut node = Node::new(&self.site, number)?;
        node.start()?;
        self.nodes.insert(number, node);
        Ok(number)
    }

    /// Copies the state of a node while it is stopped, and starts it again: the copy, and where in
    /// it the database is. Nothing if the node does not say where its state is, or has applied
    /// nothing that a client wrote: no cluster begins with that.
    ///
    /// # Errors
    /// The files cannot be copied, or the node does not start.
    pub fn back_up(&mut self, number: usize) -> Result<Option<Backup>, String> {
        let place = self.site.directory.join("backup");
        let Some(node) = self.nodes.get_mut(&number) else { return Ok(None) };
        let mut client = node.reader(PATIENCE);
        match client.call(&["DBSIZE"]) {
            Outcome::Done(keys) if text(&keys).is_some_and(|keys| keys != "0") => {}
            _ => return Ok(None),
        }
        let Outcome::Done(information) = client.call(&["INFO", "persistence"]) else { return Ok(None) };
        let information = text(&information).unwrap_or_default();
        let directory = information.lines().find_map(|line| line.strip_prefix("raft_state_directory:"));
        let state = node.data().join("state");
        let database =
            directory.and_then(|directory| Path::new(directory.trim()).file_name()).map(|name| place.join(name));
        node.terminate();
        let _ = fs::remove_dir_all(&place);
        let copied = copy(&state, &place).map_err(|error| format!("{}: {error}", state.display()));
        node.start()?;
        copied?;
        Ok(database.filter(|database| database.is_dir()).map(|database| Backup { state: place, database }))
    }

    /// Lets a member lose its disk, and starts it. It has forgotten its votes, and must not count.
    ///
    /// # Errors
    /// The files cannot be removed, or it does not start.
    pub fn lose_disk(&mut self, number: usize) -> Result<(), String> {
        let Some(node) = self.nodes.get_mut(&number) else { return Ok(()) };
        node.lose_data()?;
        node.start()
    }

    /// Checks that a member which lost its disk has not taken part since.
    ///
    /// # Errors
    /// It has.
    pub fn check_is_out(&mut self, number: usize) -> Result<(), String> {
        match self.nodes.get(&number).and_then(Node::status) {
            Some(status) if status.term > 0 => {
                Err(format!("node {number} has lost its disk, and takes part: {}", status.text))
            }
            _ => Ok(()),
        }
    }

    /// Starts another node, as `add_node`, when it was tried to bring the backup in with it: as its
    /// state, without a log, and as a cluster of its own that the other one is to add. Whether the
    /// cluster was there to refuse the second one.
    ///
    /// # Errors
    /// One of them was not refused.
    pub fn add_node_of_backup(&mut self, backup: &Backup) -> Result<(usize, bool), String> {
        let leader = self.leader();
        let number = self.next;
        self.next += 1;
        let mut node = Node::new(&self.site, number)?;
        let state = node.data().join("state");
        copy(&backup.state, &state).map_err(|error| format!("{}: {error}", state.display()))?;
        node.start()?;
        if (0..ATTEMPTS).all(|_| {
            thread::sleep(PAUSE);
            node.is_up()
        }) {
            return Err(format!("node {number} runs with a state of another node, and no log"));
        }
        node.lose_data()?;
        node.start_with(&["--import", &backup.database.to_string_lossy()])?;
        let leads = |node: &Node| node.status().is_some_and(|status| status.leads);
        if (0..ATTEMPTS).all(|_| {
            thread::sleep(PAUSE);
            !leads(&node)
        }) {
            return Err(format!("node {number} does not begin a cluster with a backup"));
        }
        let mut is_asked = false;
        if let Some(leader) = leader {
            let command = ["RAFT.ADD".to_string(), number.to_string(), self.site.advertised(number)];
            match self.order(leader, &command) {
                Ok(()) => return Err(format!("node {number} has the data of a backup, and was added")),
                Err(why) => is_asked = why.contains("another cluster"),
            }
        }
        node.lose_data()?;
        node.start()?;
        self.nodes.insert(number, node);
        Ok((number, is_asked))
    }

    /// Whether there is a port for another node.
    pub fn has_port(&self) -> bool {
        self.next <= self.last
    }

    /// The numbers of all nodes, up or down.
    pub fn numbers(&self) -> Vec<usize> {
        self.nodes.keys().copied().collect()
    }

    /// The addresses of all nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.keys().map(|number| self.site.address(*number)).collect()
    }

    /// A node.
    pub fn node(&mut self, number: usize) -> Option<&mut Node> {
        self.nodes.get_mut(&number)
    }

    /// All nodes.
    pub fn nodes(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.values_mut()
    }

    /// What the nodes that answer say of themselves.
    pub fn statuses(&mut self) -> BTreeMap<usize, Status> {
        let up = self.nodes.iter_mut().filter_map(|(number, node)| node.is_up().then_some((*number, &*node)));
        up.filter_map(|(number, node)| node.status().map(|status| (number, status))).collect()
    }

    /// A node that takes itself for the leader.
    pub fn leader(&mut self) -> Option<usize> {
        self.statuses().into_iter().find(|(_, status)| status.leads).map(|(number, _)| number)
    }

    /// Cuts links between nodes, each in one direction, and no others.
    pub fn cut(&self, links: impl IntoIterator<Item = (usize, usize)>) {
        if let Some(switch) = &self.switch {
            switch.cut(links);
        }
    }

    /// Sets how all links are, those to the clients too.
    pub fn set_weather(&self, weather: Weather) {
        if let Some(switch) = &self.switch {
            switch.set_weather(weather);
        }
    }

    /// What became of all packets.
    pub fn packets(&self) -> PacketCounts {
        self.switch.as_ref().map(Switch::counts).unwrap_or_default()
    }

    /// Gives a node a command of an operator.
    fn order(&self, number: usize, command: &[String]) -> Result<(), String> {
        let node = self.nodes.get(&number).ok_or("no such node")?;
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match node.client(PATIENCE).call(&words) {
            Outcome::Done(_) => Ok(()),
            Outcome::NotDone(why) | Outcome::Unknown(why) => Err(format!("{}: {why}", command.join(" "))),
        }
    }

    /// Gives the leader a command of an operator.
    ///
    /// # Errors
    /// There is none, or it refuses, or nothing is known.
    pub fn order_leader(&mut self, command: &[String]) -> Result<(), String> {
        let leader = self.leader().ok_or("there is no leader")?;
        self.order(leader, command)
    }

    /// Writes large values until then, or until there are many: nodes need new files for them. What
    /// becomes of them does not matter, and no history is about them.
    pub fn write_much(&mut self, until: Instant) {
        const VALUE_BYTES: usize = 512 << 10;
        const VALUES: usize = 64;
        const KEYS: usize = 8;
        let value = "large".repeat(VALUE_BYTES / 5);
        for number in 0..VALUES {
            if Instant::now() >= until {
                return;
            }
            let leader = self.leader().and_then(|leader| self.nodes.get(&leader));
            let set = ["SET", &format!("large:{}", number % KEYS), &value];
            let done = leader.map(|leader| leader.client(Duration::from_secs(1)).call(&set));
            if !matches!(done, Some(Outcome::Done(_))) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// The next step of putting a node in the place of another one; whether that was the last.
    ///
    /// # Errors
    /// The step cannot be made now.
    pub fn replace(&mut self, old: usize, new: usize) -> Result<bool, String> {
        let statuses = self.statuses();
        let (leader, status) = statuses.iter().find(|(_, status)| status.leads).ok_or("there is no leader")?;
        let word = |name: &str, number: usize| vec![name.to_string(), number.to_string()];
        if status.voters.contains(&new) {
            if status.voters.contains(&old) || status.learners.contains(&old) {
                self.order(*leader, &word("RAFT.REMOVE", old))?;
                return Ok(false);
            }
            self.nodes.remove(&old);
            return Ok(true);
        }
        if status.learners.contains(&new) {
            let applied = statuses.get(&new).map_or(0, |status| status.applied);
            if applied + LAG < status.applied {
                return Err(format!("node {new} has {applied} entries of {}", status.applied));
            }
            self.order(*leader, &word("RAFT.PROMOTE", new))?;
            return Ok(false);
        }
        let mut command = word("RAFT.ADD", new);
        command.push(self.site.advertised(new));
        self.order(*leader, &command)?;
        Ok(false)
    }

    /// Waits until something is so.
    ///
    /// # Errors
    /// It is not, for long.
    pub fn wait_for(&mut self, what: &str, mut is_so: impl FnMut(&mut Cluster) -> bool) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            if is_so(self) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let statuses = self.statuses();
        let shown = statuses.iter().map(|(number, status)| format!("{number}: {}", status.text));
        Err(format!("{what} does not come; {}", shown.collect::<Vec<_>>().join("; ")))
    }

    /// Has all nodes compare their states, by their hashes.
    ///
    /// # Errors
    /// One has another state, or they cannot be compared.
    pub fn compare(&mut self) -> Result<(), String> {
        let mut why = String::new();
        for _ in 0..ATTEMPTS / 5 {
            match self.order_leader(&["RAFT.HASH".into()]) {
                Ok(()) => {
                    let different = self.statuses().into_iter().find(|(_, status)| status.has_failed);
                    return different.map_or(Ok(()), |(number, status)| Err(format!("node {number}: {}", status.text)));
                }
                Err(refusal) => why = refusal,
            }
            thread::sleep(PAUSE);
        }
        Err(format!("the nodes do not compare their states, as when one has stopped: {why}"))
    }

    /// What a node itself has of these objects.
    fn content(&self, number: usize, objects: &[(String, bool)]) -> Result<Vec<String>, String> {
        let node = self.nodes.get(&number).ok_or("no such node")?;
        let mut reader = node.reader(PATIENCE);
        let mut content = Vec::new();
        for (key, is_set) in objects {
            let command = if *is_set { "SMEMBERS" } else { "GET" };
            match reader.call(&[command, key]) {
                Outcome::Done(frame) if *is_set => {
                    let members: BTreeSet<String> = texts(&frame).unwrap_or_default().into_iter().collect();
                    content.push(format!("{key}={members:?}"));
                }
                Outcome::Done(frame) => content.push(format!("{key}={:?}", text(&frame))),
                Outcome::NotDone(why) | Outcome::Unknown(why) => return Err(format!("node {number}: {key}: {why}")),
            }
        }
        Ok(content)
    }

    /// Waits until all nodes have the same of these objects. Leases are left out: two nodes are not
    /// asked at the same time.
    ///
    /// # Errors
    /// They do not; the first difference.
    pub fn agree<'o>(&mut self, objects: impl Iterator<Item = (&'o str, &'o Object)>) -> Result<(), String> {
        let lasting = objects.filter(|(_, object)| !matches!(object, Object::Lease(_)));
        let objects: Vec<(String, bool)> =
            lasting.map(|(key, object)| (key.to_string(), matches!(object, Object::Set(_)))).collect();
        let mut difference = String::new();
        for _ in 0..ATTEMPTS {
            let contents: Vec<_> = self.numbers().iter().map(|number| self.content(*number, &objects)).collect();
            match contents.into_iter().collect::<Result<Vec<_>, _>>() {
                Err(why) => difference = why,
                Ok(contents) => {
                    let first = contents.first().cloned().unwrap_or_default();
                    let other = contents.iter().find_map(|other| first.iter().zip(other).find(|(a, b)| a != b));
                    match other {
                        None => return Ok(()),
                        Some((here, there)) => difference = format!("one node has {here}, another one {there}"),
                    }
                }
            }
            thread::sleep(PAUSE);
        }
        Err(format!("the nodes do not come to the same data: {difference}"))
    }
}
