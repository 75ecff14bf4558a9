//! A node: a process of `esker serve`, where it runs, and what it has.

use crate::client::{Client, Outcome, text, texts};
use crate::machine::{self, Clock, SmallDisk, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The room on the disk of a node in MiB: for all that is written while the disk of another one is
/// full.
const DISK_MIB: u64 = 512;
/// How long the status of a node may take.
const STATUS_PATIENCE: Duration = Duration::from_millis(800);

/// Where nodes are.
#[derive(Clone, Debug)]
pub struct Site {
    /// The program.
    pub esker: PathBuf,
    /// A directory for the disks, clocks and logs of this run.
    pub directory: PathBuf,
    /// The third byte of the addresses, and in the names of devices.
    pub slot: u8,
    /// Whether nodes have namespaces, with an address of their own.
    pub has_network: bool,
    /// Whether nodes have disks of a limited size.
    pub has_mounts: bool,
    /// Whether nodes have clocks of their own.
    pub has_clocks: bool,
    /// Further arguments of the program.
    pub arguments: Vec<String>,
}

impl Site {
    /// The address of a node for clients.
    pub fn address(&self, node: usize) -> SocketAddr {
        let byte = u8::try_from(node).unwrap_or(u8::MAX);
        if self.has_network {
            return SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 213, self.slot, byte)), 6379);
        }
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 20_000 + u16::from(self.slot) * 20 + u16::from(byte))
    }

    /// Its address and the port for other nodes, as RAFT.INIT takes it.
    pub fn advertised(&self, node: usize) -> String {
        let address = self.address(node);
        format!("{address}@{}", address.port() + 10_000)
    }

    /// The name of a device, and of its namespace.
    pub fn device(&self, port: usize) -> String {
        format!("esk{}n{port}", self.slot)
    }

    fn disk(&self, node: usize) -> PathBuf {
        self.directory.join(format!("node-{node}"))
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether it takes itself for the leader.
    pub leads: bool,
    /// Its term: 0 as long as it has taken no part.
    pub term: u64,
    /// The last entry that it has applied.
    pub applied: u64,
    /// The members that vote, as it knows them.
    pub voters: Vec<usize>,
    /// Those that do not.
    pub learners: Vec<usize>,
    /// Whether it has given up, as after an error of its disk.
    pub has_failed: bool,
    /// The whole answer.
    pub text: String,
}

/// A node of the cluster.
pub struct Node {
    site: Site,
    number: usize,
    process: Option<Child>,
    clock: Clock,
    _disk: Option<SmallDisk>,
}

impl Node {
    /// A node with an empty disk, that does not run.
    ///
    /// # Errors
    /// The system does not let it have what it needs.
    pub fn new(site: &Site, number: usize) -> Result<Node, String> {
        let disk = site.disk(number);
        let mounted = if site.has_mounts { Some(SmallDisk::mount(&disk, DISK_MIB)?) } else { None };
        fs::create_dir_all(disk.join("data")).map_err(|error| format!("{}: {error}", disk.display()))?;
        let clock = Clock::new(site.directory.join(format!("clock-{number}"))).map_err(|error| error.to_string())?;
        Ok(Node { site: site.clone(), number, process: None, clock, _disk: mounted })
    }

    /// Starts it on what its disk has.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(&mut self) -> Result<(), String> {
        self.start_with(&[])
    }

    /// The same, with further arguments.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_with(&mut self, more: &[&str]) -> Result<(), String> {
        let Site { esker, directory, has_network, has_clocks, arguments, .. } = &self.site;
        // A node does not outlive a campaign that is ended from outside.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if *has_network {
            command.args(["ip", "netns", "exec", &self.site.device(self.number)]);
        }
        command.arg(esker);
        let address = self.site.address(self.number);
        let raft = SocketAddr::new(address.ip(), address.port() + 10_000);
        let log = directory.join(format!("log-{}", self.number));
        let log = File::options().create(true).append(true).open(log).map_err(|error| error.to_string())?;
        command
            .arg("serve")
            .arg("--db")
            .arg(self.site.disk(self.number).join("data"))
            .args(["--listen", &address.to_string(), "--without-password"])
            .args(["--cluster-node", &self.number.to_string(), "--cluster-listen", &raft.to_string()])
            .args(["--advertise", &self.site.advertised(self.number)])
            .args(arguments)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if *has_clocks {
            self.clock.give(&mut command);
        }
        self.process = Some(command.spawn().map_err(|error| format!("{}: {error}", esker.display()))?);
        Ok(())
    }

    /// Whether its process runs.
    pub fn is_up(&mut self) -> bool {
        match &mut self.process {
            Some(process) => matches!(process.try_wait(), Ok(None)),
            None => false,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = self.process.as_ref().and_then(|process| Pid::from_raw(process.id().cast_signed()));
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Ends it as an operator does.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.wait();
    }

    fn wait(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        self.site.disk(self.number).join("data")
    }

    /// Ends it at once, and lets its disk be empty.
    ///
    /// # Errors
    /// The files cannot be removed.
    pub fn lose_data(&mut self) -> Result<(), String> {
        self.kill();
        fs::remove_dir_all(self.data())
            .and_then(|()| fs::create_dir_all(self.data()))
            .map_err(|error| format!("{}: {error}", self.data().display()))
    }

    /// Lets it stand still.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Sets its clock.
    ///
    /// # Errors
    /// The file of the clock cannot be written.
    pub fn set_ahead_ms(&self, ahead_ms: u64) -> Result<(), String> {
        self.clock.set_ahead_ms(ahead_ms).map_err(|error| error.to_string())
    }

    /// Leaves nothing free on its disk.
    ///
    /// # Errors
    /// No file can be created there.
    pub fn fill_disk(&self) -> Result<(), String> {
        machine::fill(&self.site.disk(self.number)).map_err(|error| error.to_string())
    }

    /// Gives its disk the room back.
    ///
    /// # Errors
    /// The ballast cannot be removed.
    pub fn free_disk(&self) -> Result<(), String> {
        machine::free(&self.site.disk(self.number)).map_err(|error| error.to_string())
    }

    /// A client of it, that waits so long for each reply.
    pub fn client(&self, patience: Duration) -> Client {
        Client::new(self.site.address(self.number), patience)
    }

    /// A client of what it has itself.
    pub fn reader(&self, patience: Duration) -> Client {
        Client::for_reads(self.site.address(self.number), patience)
    }

    /// What it says of itself, if it answers.
    pub fn status(&self) -> Option<Status> {
        let Outcome::Done(reply) = self.client(STATUS_PATIENCE).call(&["RAFT.STATUS"]) else { return None };
        let fields = fields(&reply);
        let field = |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let number = |name: &str| field(name).and_then(|value| value.parse().ok());
        Some(Status {
            leads: field("role").is_some_and(|role| role.eq_ignore_ascii_case("leader")),
            term: number("term").unwrap_or(0),
            applied: number("applied").unwrap_or(0),
            voters: numbers(field("voters")),
            learners: numbers(field("learners")),
            has_failed: field("failure").is_some(),
            text: fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
        })
    }
}

/// The names and values of a reply that is a map, or an array of names and values in turns. A value
/// that is an array is its elements with commas between.
fn fields(reply: &redis_protocol::resp2::types::OwnedFrame) -> Vec<(String, String)> {
    use redis_protocol::resp2::types::OwnedFrame;
    let OwnedFrame::Array(frames) = reply else { return Vec::new() };
    let shown = |frame: &OwnedFrame| {
        text(frame).or_else(|| texts(frame).map(|texts| texts.join(","))).unwrap_or_else(|| format!("{frame:?}"))
    };
    frames.chunks_exact(2).map(|pair| (shown(&pair[0]), shown(&pair[1]))).collect()
}

/// The numbers in a text.
fn numbers(text: Option<&str>) -> Vec<usize> {
    let parts = text.unwrap_or("").split(|character: char| !character.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Namespaces with a device in each, removed when they are dropped.
pub struct Namespaces {
    names: Vec<String>,
    own_device: String,
}

impl Namespaces {
    /// Puts the devices of a switch where they belong: port 0 into this namespace, each other one
    /// into its own.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(site: &Site, ports: usize) -> Result<Namespaces, String> {
        let own_device = site.device(0);
        let mut namespaces = Namespaces { names: Vec::new(), own_device: own_device.clone() };
        for port in 1..ports {
            let (device, address) = (site.device(port), format!("10.213.{}.{port}/24", site.slot));
            // One of a run that was killed.
            let _ = run(&["ip", "netns", "del", &device]);
            run(&["ip", "netns", "add", &device])?;
            namespaces.names.push(device.clone());
            run(&["ip", "link", "set", &device, "netns", &device])?;
            run(&["ip", "-n", &device, "addr", "add", &address, "dev", &device])?;
            run(&["ip", "-n", &device, "link", "set", &device, "up"])?;
            run(&["ip", "-n", &device, "link", "set", "lo", "up"])?;
        }
        run(&["ip", "addr", "add", &format!("10.213.{}.254/24", site.slot), "dev", &own_device])?;
        run(&["ip", "link", "set", &own_device, "up"])?;
        Ok(namespaces)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let _ = run(&["ip", "link", "del", &self.own_device]);
        for name in &self.names {
            let _ = run(&["ip", "netns", "del", name]);
        }
    }
}

/// The last lines of the logs of all nodes.
pub fn logs(directory: &Path) -> String {
    const LINES: usize = 12;
    let mut shown = String::new();
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains("/log-")).collect();
    logs.sort();
    for path in logs {
        let text = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        shown.push_str(&format!(
            "{}:\n  {}\n",
            path.display(),
            lines[lines.len().saturating_sub(LINES)..].join("\n  ")
        ));
    }
    shown
}
