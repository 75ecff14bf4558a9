//! Clusters in one process whose lines are cut: what clients see is right, and each planted fault
//! is noticed.

use super::config::Config;
use super::error::ServerError;
use super::listener::Server;
use crate::cluster::{Address, Call, ClusterConfig, CommandList, Fault, Node, Payload, ProposeError};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The limit that only turns a wait for ever into a failure.
const FOR_EVER: Duration = Duration::from_secs(300);

/// A connection that stays.
struct Client(BufReader<TcpStream>);

impl Client {
    /// The first line of the reply to a command of words.
    fn line(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        self.0.read_line(&mut reply).unwrap();
        reply.trim_end().to_string()
    }
}

/// A cluster of three.
struct Cluster {
    servers: Vec<Server>,
    directory: TempDir,
}

/// Ports of this machine that nobody has now. The system gives none of them to a connection, or to
/// who listens at port 0: it could take such a one before its server does, or while that restarts.
fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id() % 100 * 200;
    let ports = (0..20_000).map(|_| (10_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16);
    ports.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).take(count).collect()
}

/// Asks again until something is so.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    // The limit, of five minutes or more, only turns a wait for ever into a failure.
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("what was waited for does not come");
}

impl Cluster {
    fn start() -> Cluster {
        let directory = tempfile::tempdir().unwrap();
        let ports = free_ports(6);
        let address = |node: usize| Address::parse(&format!("127.0.0.1:{}@{}", ports[node], ports[node + 3])).unwrap();
        let start = |node: usize| {
            let address = address(node);
            let cluster = ClusterConfig {
                election_ms: 600,
                ..ClusterConfig::new(node as u64 + 1, address.raft(), address.clone())
            };
            let mut config = Config::new(directory.path().join(format!("{node}")));
            config.listen = Some(SocketAddr::from(([127, 0, 0, 1], address.port)));
            config.cluster = Some(cluster);
            Server::start(config).unwrap()
        };
        let servers: Vec<Server> = (0..3).map(start).collect();
        let cluster = Cluster { servers, directory };
        let members: Vec<String> = (0..3).map(|node| format!("{} {}", node + 1, address(node))).collect();
        assert_eq!(cluster.line(0, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
        cluster
    }

    /// The reply of a node to a command of words, on a connection of its own.
    fn line(&self, node: usize, line: &str) -> String {
        let mut stream = TcpStream::connect(self.servers[node].address().unwrap()).unwrap();
        stream.set_read_timeout(Some(FOR_EVER)).unwrap();
        stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.strip_suffix("+OK\r\n").unwrap_or(&reply).replace("\r\n", " ").trim_end().to_string()
    }

    fn client(&self, node: usize) -> Client {
        let stream = TcpStream::connect(self.servers[node].address().unwrap()).unwrap();
        stream.set_read_timeout(Some(FOR_EVER)).unwrap();
        Client(BufReader::new(stream))
    }

    fn node(&self, node: usize) -> Arc<Node> {
        self.servers[node].node()
    }

    fn plant(&self, fault: Option<Fault>) {
        for (node, server) in self.servers.iter().enumerate() {
            if let Some(fault) = fault {
                server.node().planted.set(fault, 100_000 * node as u64);
            }
        }
    }

    /// Waits for a leader that these nodes agree on, and returns it.
    fn leader(&self, among: &[usize]) -> usize {
        let mut found = None;
        wait_until(|| {
            let leaders: Vec<_> = among.iter().map(|&node| self.node(node).leader()).collect();
            found = leaders[0].as_ref().map(|leader| leader.id as usize - 1).filter(|leader| among.contains(leader));
            found.is_some()
                && leaders.iter().all(|leader| leader.as_ref().map(|leader| leader.id as usize - 1) == found)
        });
        found.unwrap()
    }

    fn others(&self, node: usize) -> Vec<usize> {
        (0..3).filter(|&other| other != node).collect()
    }

    /// Cuts all lines of a node.
    fn isolate(&self, node: usize) {
        let raft = |node: usize| self.node(node).config.advertise.raft();
        for other in self.others(node) {
            self.node(other).planted.cut([raft(node)]);
        }
        self.node(node).planted.cut(self.others(node).into_iter().map(raft));
    }

    fn heal(&self) {
        (0..3).for_each(|node| self.node(node).planted.cut([]));
    }

    fn stop(self) {
        for server in self.servers {
            server.stop().unwrap();
        }
    }
}

fn expect(what: &str, found: &str, is_right: bool) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(format!("{what}: {found}")) }
}

/// A leader that was deposed, and does not know it, answers no read from before.
fn a_deposed_leader_reads_nothing_old(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let others = cluster.others(leader);
    cluster.line(leader, "SET x 1");
    cluster.isolate(leader);
    let next = cluster.leader(&others);
    let written = cluster.line(next, "SET x 2");
    expect("the next leader writes", &written, written == "+OK")?;
    let read = cluster.line(leader, "GET x");
    expect("the deposed leader reads", &read, read.starts_with("-CLUSTERDOWN"))?;
    cluster.heal();
    let read = cluster.line(leader, "GET x");
    expect("it reads when it is back", &read, read == "$1 2")
}

/// A leader that no majority hears acknowledges nothing, and what was acknowledged stays.
fn nothing_acknowledged_is_lost(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let others = cluster.others(leader);
    cluster.line(leader, "SET x 1");
    cluster.isolate(leader);
    let acknowledged = cluster.line(leader, "SET x 2") == "+OK";
    let next = cluster.leader(&others);
    cluster.line(next, "SET y 1");
    cluster.heal();
    let read = cluster.line(next, "GET x");
    expect("an acknowledged write is there", &read, !acknowledged || read == "$1 2")?;
    expect("a leader without a majority acknowledges", &read, !acknowledged)
}

/// All replicas have the same state.
fn replicas_agree(cluster: &Cluster) -> Result<(), String> {
    cluster.leader(&[0, 1, 2]);
    for line in ["SET x 1 PX 50000", "HSET h f v", "EXPIRE h 100", "INCR n", "SPOP h", "RPUSH l a b c"] {
        cluster.line(0, line);
    }
    let compared = cluster.line(1, "RAFT.HASH");
    expect("the replicas compare", &compared, compared == "+OK")
}

/// A write whose answer is lost is repeated, and counts once.
fn a_repeated_write_counts_once(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let follower = cluster.others(leader)[0];
    // It opens the session.
    cluster.line(follower, "SET other 1");
    cluster.node(follower).planted.lose_answers(2);
    let counted = cluster.line(follower, "INCR n");
    expect("the counter after one increment", &counted, counted == ":1")
}

/// A write of which nobody knows whether it is done is done before the next command of its
/// connection, or never.
fn an_uncertain_write_is_settled(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let follower = cluster.others(leader)[0];
    let (mut client, mut writer) = (cluster.client(follower), cluster.client(leader));
    let hold = || (0..3).for_each(|node| cluster.node(node).planted.hold());
    let release = || (0..3).flat_map(|node| cluster.node(node).planted.release()).collect::<Vec<_>>();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let deliver = |mut late: Vec<esker_raft::Request>| {
        assert!(!late.is_empty());
        late.dedup();
        late.iter().try_for_each(|request| {
            let proposed = runtime.block_on(cluster.node(leader).propose(request));
            proposed.map(drop).map_err(|error| format!("what comes late is not taken: {error}"))
        })
    };
    hold();
    let written = client.line("INCR n");
    expect("a write that does not arrive", &written, written.starts_with("-UNCERTAIN"))?;
    // Nobody can say yet.
    let read = client.line("EXISTS n");
    expect("a read while it may arrive", &read, read.starts_with("-CLUSTERDOWN"))?;
    let late = release();
    let read = client.line("EXISTS n");
    expect("a read before it arrives", &read, read == ":0")?;
    deliver(late)?;
    let read = client.line("EXISTS n");
    expect("a read behind it", &read, read == ":0")?;
    // Nor does it overtake a later write.
    hold();
    let written = writer.line("SET n 1");
    expect("another one", &written, written.starts_with("-UNCERTAIN"))?;
    let late = release();
    let written = writer.line("SET n 2");
    expect("a write behind it", &written, written == "+OK")?;
    deliver(late)?;
    let counted = client.line("INCR n");
    expect("what is written last", &counted, counted == ":3")?;
    // One that was done, and whose answers were lost.
    let node = cluster.node(follower);
    node.planted.lose_answers(u64::MAX);
    let written = client.line("INCR n");
    node.planted.lose_answers(0);
    expect("a write without an answer", &written, written.starts_with("-UNCERTAIN"))?;
    let counted = client.line("INCR n");
    expect("it has counted", &counted, counted == ":5")
}

/// A node that cannot reach the others is not ready, though it follows the leader that it knew.
fn a_node_that_is_cut_off_is_not_ready(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let follower = cluster.others(leader)[0];
    let ready = |node: usize| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(cluster.node(node).problem())
    };
    wait_until(|| ready(follower).is_none() && ready(leader).is_none());
    cluster.isolate(follower);
    let cut = ready(follower);
    cluster.heal();
    expect("a follower that is cut off", &format!("{cut:?}"), cut.is_some())?;
    cluster.isolate(leader);
    let cut = ready(leader);
    cluster.heal();
    expect("a leader that is cut off", &format!("{cut:?}"), cut.is_some())
}

/// What the replicas could not apply is not put into the log.
fn a_payload_that_is_none_is_refused(cluster: &Cluster) -> Result<(), String> {
    let leader = cluster.leader(&[0, 1, 2]);
    let follower = cluster.node(cluster.others(leader)[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for payload in [vec![7; 100], Vec::new(), vec![1, 0xff], unknown_command()] {
        let proposed = runtime.block_on(follower.propose(&esker_raft::Request::Apply(payload)));
        expect("a payload", &format!("{proposed:?}"), matches!(proposed, Err(ProposeError::Refused(_))))?;
    }
    let written = cluster.line(leader, "SET x 1");
    expect("a write behind it", &written, written == "+OK")
}

fn unknown_command() -> Vec<u8> {
    let call = Call { database: 0, arguments: vec!["NOSUCH".into()] };
    let list = CommandList { databases: 16, seed: 1, is_transaction: false, guards: Vec::new(), calls: vec![call] };
    Payload::Commands(list).to_bytes().unwrap()
}

/// Where replicas differ, and most of them do not answer, none is taken for the wrong one.
#[test]
fn no_replica_stops_at_a_tie() {
    let cluster = Cluster::start();
    let leader = cluster.leader(&[0, 1, 2]);
    let others = cluster.others(leader);
    cluster.plant(Some(Fault::LocalClock));
    cluster.line(leader, "SET x 1 PX 50000");
    cluster.isolate(others[0]);
    let compared = cluster.line(leader, "RAFT.HASH");
    assert!(compared.contains(&format!("did not answer: {}", others[0] + 1)), "{compared}");
    for node in [leader, others[1]] {
        assert_eq!(cluster.line(node, "SET y 1"), "+OK");
        assert_eq!(cluster.node(node).failure(), None);
    }
    cluster.servers.into_iter().for_each(|server| drop(server.stop()));
}

/// The process of a replica with another state ends, and does not start again.
#[test]
fn a_replica_with_another_state_ends() {
    let cluster = Cluster::start();
    cluster.leader(&[0, 1, 2]);
    let wrong = cluster.node(1);
    wrong.planted.set(Fault::LocalClock, 100_000);
    cluster.line(0, "SET x 1 PX 50000");
    let compared = cluster.line(0, "RAFT.HASH");
    assert!(compared.contains("node 2"), "{compared}");
    let waited = cluster.servers[1].wait();
    assert!(matches!(waited, Err(ServerError::Diverged(_))), "{waited:?}");
    let mut config = Config::new(cluster.directory.path().join("1"));
    config.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.cluster = Some(wrong.config.clone());
    drop(wrong);
    let Cluster { servers, directory } = cluster;
    servers.into_iter().for_each(|server| drop(server.stop()));
    let started = Server::start(config).map(drop);
    assert!(matches!(started, Err(ServerError::Diverged(_))), "{started:?}");
    drop(directory);
}

#[test]
fn a_cluster_is_right() {
    let cluster = Cluster::start();
    a_payload_that_is_none_is_refused(&cluster).unwrap();
    a_repeated_write_counts_once(&cluster).unwrap();
    replicas_agree(&cluster).unwrap();
    a_deposed_leader_reads_nothing_old(&cluster).unwrap();
    nothing_acknowledged_is_lost(&cluster).unwrap();
    a_node_that_is_cut_off_is_not_ready(&cluster).unwrap();
    cluster.leader(&[0, 1, 2]);
    assert_eq!(cluster.line(2, "RAFT.HASH"), "+OK");
    cluster.stop();
}

#[test]
fn what_is_uncertain_is_settled() {
    let cluster = Cluster::start();
    an_uncertain_write_is_settled(&cluster).unwrap();
    assert_eq!(cluster.line(0, "RAFT.HASH"), "+OK");
    cluster.stop();
}

/// Runs a check on a cluster with the fault, and expects it to fail.
fn noticed(fault: Fault, check: fn(&Cluster) -> Result<(), String>) {
    let cluster = Cluster::start();
    cluster.leader(&[0, 1, 2]);
    cluster.plant(Some(fault));
    let found = check(&cluster);
    println!("{fault:?}: {found:?}");
    assert!(found.is_err(), "{fault:?} is not noticed");
    // Replicas that have stopped cannot be stopped again.
    cluster.servers.into_iter().for_each(|server| drop(server.stop()));
}

#[test]
fn a_read_of_a_deposed_leader_is_noticed() {
    noticed(Fault::DeposedReads, a_deposed_leader_reads_nothing_old);
}

#[test]
fn an_answer_before_the_quorum_is_noticed() {
    noticed(Fault::EarlyAnswer, nothing_acknowledged_is_lost);
}

#[test]
fn a_clock_of_the_replicas_is_noticed() {
    noticed(Fault::LocalClock, replicas_agree);
}

#[test]
fn a_repeat_without_a_session_is_noticed() {
    noticed(Fault::NoSessions, a_repeated_write_counts_once);
}

#[test]
fn a_write_that_stays_uncertain_is_noticed() {
    noticed(Fault::Unsettled, an_uncertain_write_is_settled);
}

#[test]
fn a_payload_that_is_applied_twice_is_noticed() {
    noticed(Fault::AppliedTwice, a_repeated_write_counts_once);
}
