//! Clusters of servers: what clients see of them, changes of the members, and TLS between nodes.

use crate::support::{self, Client, FOR_EVER, free_ports, shown, wait_until};
use esker_server::{Address, ClusterConfig, ClusterTlsFiles, Config, Followers, Server};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use tempfile::TempDir;

/// The servers of a cluster, by the numbers of their nodes.
struct Cluster {
    servers: BTreeMap<u64, Server>,
    configs: BTreeMap<u64, Config>,
    directory: TempDir,
}

/// Addresses on this machine that nobody has now.
fn addresses(count: usize) -> Vec<Address> {
    free_ports(2 * count)
        .chunks(2)
        .map(|pair| Address::parse(&format!("127.0.0.1:{}@{}", pair[0], pair[1])).expect("a cluster of this test"))
        .collect()
}

impl Cluster {
    /// Servers with the numbers from 1 on, which are no cluster yet.
    fn prepare(count: usize, change: impl Fn(&mut ClusterConfig)) -> Cluster {
        let directory = tempfile::tempdir().expect("a cluster of this test");
        let mut configs = BTreeMap::new();
        for (number, address) in (1..).zip(addresses(count)) {
            let mut cluster = ClusterConfig::new(number, address.raft(), address.clone());
            // A machine that is busy with other tests elects nobody for that.
            cluster.election_ms = 1000;
            change(&mut cluster);
            let mut config = Config::new(directory.path().join(number.to_string()));
            config.listen = Some(SocketAddr::from(([127, 0, 0, 1], address.port)));
            config.cluster = Some(cluster);
            configs.insert(number, config);
        }
        Cluster { servers: BTreeMap::new(), configs, directory }
    }

    fn start(count: usize, change: impl Fn(&mut ClusterConfig)) -> Cluster {
        let mut cluster = Cluster::prepare(count, change);
        (1..=count as u64).for_each(|number| cluster.boot(number));
        let members: Vec<String> = cluster.configs.keys().map(|&number| cluster.member(number)).collect();
        assert_eq!(cluster.line(1, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
        (1..=count as u64).for_each(|number| cluster.wait_status(number, |status| status["leader"] != "_"));
        cluster
    }

    /// Number and address of a node, as commands take them.
    fn member(&self, number: u64) -> String {
        format!("{number} {}", self.configs[&number].cluster.as_ref().expect("a cluster of this test").advertise)
    }

    fn boot(&mut self, number: u64) {
        self.servers.insert(number, Server::start(self.configs[&number].clone()).expect("a cluster of this test"));
    }

    fn stop(&mut self, number: u64) {
        self.servers.remove(&number).expect("a cluster of this test").stop().expect("a cluster of this test");
    }

    fn client(&self, number: u64) -> Client {
        Client::connect(self.servers[&number].address().expect("a cluster of this test"))
    }

    fn line(&self, number: u64, line: &str) -> String {
        self.client(number).line(line)
    }

    /// RAFT.STATUS by its fields; `_` is nothing.
    fn status(&self, number: u64) -> BTreeMap<String, String> {
        let mut client = self.client(number);
        client.send(&["RAFT.STATUS"]);
        let reply = client.receive();
        let text = String::from_utf8(reply).expect("a cluster of this test");
        let mut items = Vec::new();
        let mut lines = text.split("\r\n").skip(1);
        while let Some(line) = lines.next() {
            match line.split_at_checked(1) {
                Some(("$", "-1")) => items.push("_".to_string()),
                Some(("$", _)) => items.push(lines.next().expect("a cluster of this test").to_string()),
                Some((":", number)) => items.push(number.to_string()),
                _ => {}
            }
        }
        items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    fn wait_status(&self, number: u64, is_right: impl Fn(&BTreeMap<String, String>) -> bool) {
        wait_until(|| is_right(&self.status(number)));
    }

    fn leader(&self) -> u64 {
        let mut found = 0;
        let numbers: Vec<u64> = self.servers.keys().copied().collect();
        wait_until(|| {
            let leader = numbers.iter().find(|&&number| self.status(number)["role"] == "leader");
            found = leader.copied().unwrap_or(0);
            found > 0
        });
        found
    }

    fn follower(&self) -> u64 {
        let leader = self.leader();
        self.servers.keys().copied().find(|&number| number != leader).expect("a cluster of this test")
    }

    /// All replicas have the same state, and end. What they have stored stays until the result
    /// goes.
    fn finish(mut self) -> TempDir {
        let some = *self.servers.keys().next().expect("a cluster of this test");
        assert_eq!(self.line(some, "RAFT.HASH"), "+OK");
        while let Some((_, server)) = self.servers.pop_first() {
            server.stop().expect("a cluster of this test");
        }
        self.directory
    }
}

#[test]
fn every_node_writes_and_reads() {
    let mut cluster = Cluster::start(3, |_| {});
    for (number, line, reply) in [
        (1, "SET a 1", "+OK"),
        (2, "INCRBY a 5", ":6"),
        (3, "GET a", "$1 6"),
        (3, "RPUSH l x y z", ":3"),
        (1, "LRANGE l 0 -1", "*3 $1 x $1 y $1 z"),
        (2, "HSET h f v", ":1"),
        (3, "HGETALL h", "*2 $1 f $1 v"),
        (1, "INCR l", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        (2, "NOSUCH", "-ERR unknown command \\'NOSUCH\\', with args beginning with:"),
        (3, "SWAPDB 0 3", "+OK"),
        (1, "GET a", "$-1"),
        (2, "SWAPDB 0 3", "+OK"),
        (3, "DBSIZE", ":3"),
    ] {
        assert_eq!(cluster.line(number, line), reply, "{line}");
    }
    // A pipeline with reads and writes keeps its order, and its logical database.
    let mut client = cluster.client(cluster.follower());
    for line in ["SET p 1", "GET p", "SELECT 2", "SET p 2", "GET p", "PING", "APPEND p x", "SELECT 0", "GET p"] {
        client.send(&support::words(line));
    }
    let replies: Vec<String> = (0..9).map(|_| shown(&client.receive())).collect();
    assert_eq!(replies, ["+OK", "$1 1", "+OK", "+OK", "$1 2", "+PONG", ":2", "+OK", "$1 1"]);
    // The leader goes, and comes back.
    let leader = cluster.leader();
    cluster.stop(leader);
    let follower = cluster.follower();
    assert_eq!(cluster.line(follower, "INCR a"), ":7");
    cluster.boot(leader);
    assert_eq!(cluster.line(leader, "INCR a"), ":8");
    // All go, and come back.
    (1..=3).for_each(|number| cluster.stop(number));
    (1..=3).for_each(|number| cluster.boot(number));
    assert_eq!(cluster.line(2, "GET a"), "$1 8");
    cluster.finish();
}

#[test]
fn transactions_are_atomic_and_watch() {
    let cluster = Cluster::start(3, |_| {});
    let (mut one, mut two) = (cluster.client(1), cluster.client(2));
    for (line, reply) in [
        ("MULTI", "+OK"),
        ("SET a 1", "+QUEUED"),
        ("SELECT 1", "+QUEUED"),
        ("RPUSH a x", "+QUEUED"),
        ("LRANGE a 0 -1", "+QUEUED"),
        ("BLPOP none 0", "+QUEUED"),
        ("PING", "+QUEUED"),
        ("EXEC", "*6 +OK +OK :1 *1 $1 x *-1 +PONG"),
        ("SELECT 0", "+OK"),
    ] {
        assert_eq!(one.line(line), reply, "{line}");
    }
    // A change by another node, of any type, is noticed.
    for change in ["SET a 2", "DEL a", "HSET a f v", "HSET a f w", "EXPIRE a 100", "SADD other x"] {
        let is_watched = !change.contains("other");
        assert_eq!(one.line("WATCH a b"), "+OK");
        assert!(!two.line(change).starts_with('-'), "{change}");
        one.line("MULTI");
        one.line("INCR done");
        assert_eq!(one.line("EXEC") == "*-1", is_watched, "{change}");
    }
    assert_eq!(two.line("GET done"), "$1 1");
    // A transaction that is not executed does nothing to the connection either.
    for (change, reply) in [("SET a 3", "*-1"), ("SET c 3", "*4 +OK :1 +OK $-1")] {
        assert_eq!(one.line("WATCH a"), "+OK");
        two.line(change);
        for line in ["MULTI", "SELECT 3", "INCR done", "CLIENT SETNAME changed", "GET a"] {
            assert!(one.line(line).starts_with('+'), "{line}");
        }
        assert_eq!(one.line("EXEC"), reply);
        assert_eq!(one.line("CLIENT GETNAME"), if reply == "*-1" { "$-1" } else { "$7 changed" });
    }
    assert_eq!((one.line("SELECT 0"), one.line("CLIENT SETNAME one")), ("+OK".into(), "+OK".into()));
    assert_eq!(one.line("WATCH a"), "+OK");
    two.line("DEL a");
    assert_eq!(one.line("UNWATCH"), "+OK");
    assert_eq!((one.line("MULTI"), one.line("EXEC")), ("+OK".into(), "*0".into()));
    assert_eq!(
        (one.line("MULTI"), one.line("GET")),
        ("+OK".into(), "-ERR wrong number of arguments for \\'get\\' command".into())
    );
    assert_eq!(one.line("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    cluster.finish();
}

#[test]
fn clients_wait_for_keys_of_other_nodes() {
    let cluster = Cluster::start(3, |_| {});
    let mut waiting = cluster.client(3);
    let is_blocked = |count: usize| {
        wait_until(|| cluster.line(3, "INFO clients").contains(&format!("blocked_clients:{count}")));
    };
    waiting.send(&["BLPOP", "q", "r", "0"]);
    is_blocked(1);
    assert_eq!(cluster.line(1, "RPUSH r x"), ":1");
    assert_eq!(shown(&waiting.receive()), "*2 $1 r $1 x");
    assert_eq!(waiting.line("BZPOPMIN z 0.05"), "*-1");
    let id = waiting.line("CLIENT ID");
    waiting.send(&["BLMOVE", "q", "t", "LEFT", "LEFT", "0"]);
    is_blocked(1);
    assert_eq!(cluster.line(3, &format!("CLIENT UNBLOCK {} ERROR", &id[1..])), ":1");
    assert_eq!(shown(&waiting.receive()), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    // What is swapped in is filled, too.
    waiting.send(&["BLPOP", "q", "0"]);
    is_blocked(1);
    let mut other = cluster.client(2);
    for line in ["SELECT 5", "RPUSH q y", "SWAPDB 0 5"] {
        assert!(!other.line(line).starts_with('-'));
    }
    assert_eq!(shown(&waiting.receive()), "*2 $1 q $1 y");
    cluster.finish();
}

/// A client that sends its last commands and goes: it takes nothing that comes later.
#[test]
fn clients_that_have_gone_take_nothing() {
    let cluster = Cluster::start(1, |_| {});
    for lines in ["PING\r\nBLPOP q 0\r\n", "CLIENT REPLY OFF\r\nBLPOP q 0\r\nBLMOVE q r LEFT LEFT 0\r\nBLPOP q 0\r\n"] {
        let mut stream = TcpStream::connect(cluster.servers[&1].address().unwrap()).unwrap();
        stream.set_read_timeout(Some(FOR_EVER)).unwrap();
        stream.write_all(lines.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).expect("the connection ends");
        assert_eq!(replies, if lines.starts_with("PING") { "+PONG\r\n" } else { "" });
    }
    assert_eq!(cluster.line(1, "RPUSH q x"), ":1");
    assert_eq!(cluster.line(1, "LLEN q"), ":1");
    cluster.finish();
}

/// Of many clients that wait for a key, a push has few more write than it serves.
#[test]
fn a_push_does_not_wake_all() {
    const CLIENTS: usize = 12;
    let cluster = Cluster::start(1, |_| {});
    let wait_blocked = |count: usize| {
        wait_until(|| cluster.line(1, "INFO clients").ends_with(&format!("blocked_clients:{count}")));
    };
    let mut waiting = Vec::new();
    for count in 1..=CLIENTS {
        let mut client = cluster.client(1);
        client.send(&["BLPOP", "q", "other", "0"]);
        wait_blocked(count);
        waiting.push(client);
    }
    let last = || cluster.status(1)["last-log"].parse::<u64>().unwrap();
    let before = last();
    assert_eq!(cluster.line(1, "RPUSH q a"), ":1");
    assert_eq!(shown(&waiting.remove(0).receive()), "*2 $1 q $1 a");
    assert_eq!(cluster.line(1, "RPUSH q b c d"), ":3");
    wait_blocked(CLIENTS - 4);
    assert_eq!(cluster.line(1, "DBSIZE"), ":0");
    // Two pushes, an attempt for each and behind each client that was served, and new sessions of
    // the log for those that come at the same time.
    let written = last() - before;
    assert!(written <= 2 + 2 + 4 + 4, "{written}");
    // Those that go do not take the place of the next.
    waiting.drain(4..8);
    assert_eq!(cluster.line(1, "RPUSH other x y z"), ":3");
    wait_until(|| cluster.line(1, "DBSIZE") == ":0");
    cluster.finish();
}

/// Long replies of a pipeline are in several entries, and those of a transaction have a limit.
#[test]
fn long_replies_are_no_long_entries() {
    let cluster = Cluster::start(3, |_| {});
    let mut client = cluster.client(cluster.follower());
    assert_eq!(client.line("SETRANGE big 1048575 x"), ":1048576");
    let last = |cluster: &Cluster| cluster.status(1)["last-log"].parse::<u64>().unwrap();
    let before = last(&cluster);
    let mut pipeline = String::new();
    for number in 1..=12 {
        pipeline += &format!("GET big\r\nSET n {number}\r\nGET n\r\n");
    }
    client.stream.write_all(pipeline.as_bytes()).unwrap();
    for number in 1..=12 {
        assert_eq!(client.receive().len(), (1 << 20) + "$1048576\r\n\r\n".len());
        assert_eq!(shown(&client.receive()), "+OK");
        assert!(shown(&client.receive()).ends_with(&format!(" {number}")));
    }
    wait_until(|| last(&cluster) >= before + 12);
    // A pipeline that only reads.
    client.stream.write_all("GET big\r\nGET n\r\n".repeat(5).as_bytes()).unwrap();
    for _ in 0..5 {
        assert_eq!(client.receive().len(), (1 << 20) + "$1048576\r\n\r\n".len());
        assert_eq!(shown(&client.receive()), "$2 12");
    }
    for (count, is_refused) in [(3, false), (64, true)] {
        assert_eq!(client.line("MULTI"), "+OK");
        client.line("INCR n");
        (0..count).for_each(|_| drop(client.line("GET big")));
        client.send(&["EXEC"]);
        let reply = client.receive();
        assert_eq!(reply.starts_with(b"-ERR the replicas refuse"), is_refused, "{}", shown(&reply[..20]));
    }
    assert_eq!(client.line("GET n"), "$2 13");
    cluster.finish();
}

/// Nothing is written but what lets time go on.
#[test]
fn keys_expire_by_the_time_of_the_leader() {
    let cluster = Cluster::start(3, |_| {});
    for line in ["SET a 1 PX 300", "RPUSH l x", "PEXPIRE l 300", "SET b 1"] {
        assert!(!cluster.line(2, line).starts_with('-'));
    }
    for number in 1..=3 {
        wait_until(|| cluster.line(number, "MGET a b") == "*2 $-1 $1 1");
        wait_until(|| cluster.line(number, "EXISTS l") == ":0");
    }
    // When nothing can expire any more, nothing more is written.
    let mut last = 0;
    wait_until(|| {
        let now = cluster.status(1)["last-log"].parse().unwrap();
        let is_still = now == last;
        last = now;
        is_still
    });
    assert_eq!(cluster.line(3, "DBSIZE"), ":1");
    cluster.finish();
}

/// While a key expires in a long time only, time goes on in long steps: the log hardly grows, and
/// clients see that the key has less time left.
#[test]
fn time_goes_on_in_steps() {
    let cluster = Cluster::start(3, |_| {});
    assert_eq!(cluster.line(2, "SET far 1 EX 100000"), "+OK");
    let left_ms = || cluster.line(1, "PTTL far").strip_prefix(':').unwrap().parse::<u64>().unwrap();
    let written = || cluster.status(1)["last-log"].parse::<u64>().unwrap();
    let (before_ms, before) = (left_ms(), written());
    wait_until(|| left_ms() + 5000 <= before_ms);
    let (passed_ms, entries) = (before_ms - left_ms(), written() - before);
    // By the time of the cluster: one a second, and some at a change of the leader.
    assert!(entries <= passed_ms / 1000 + 5, "{entries} entries in {passed_ms} ms");
    cluster.finish();
}

/// A connection to a follower that may read an older state reads what it has written itself: alone,
/// in a transaction, and what it took from a list.
#[test]
fn stale_reads_have_what_the_connection_wrote() {
    let cluster = Cluster::start(3, |_| {});
    let mut client = cluster.client(cluster.follower());
    assert_eq!(client.line("READONLY"), "+OK");
    for round in 1..=20 {
        assert_eq!(client.line("INCR n"), format!(":{round}"));
        let value = format!("${} {round}", round.to_string().len());
        assert_eq!(client.line("GET n"), value);
        assert_eq!([client.line("MULTI"), client.line("RPUSH l e")], ["+OK", "+QUEUED"]);
        assert_eq!(client.line("EXEC"), "*1 :1");
        assert_eq!([client.line("MULTI"), client.line("LLEN l")], ["+OK", "+QUEUED"]);
        assert_eq!(client.line("EXEC"), "*1 :1");
        assert_eq!(client.line("BLPOP l 0"), "*2 $1 l $1 e");
        assert_eq!(client.line("LLEN l"), ":0");
    }
    cluster.finish();
}

#[test]
fn clients_of_redis_cluster_are_redirected() {
    let cluster = Cluster::start(3, |cluster| cluster.followers = Followers::Redirect);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let address = cluster.configs[&leader].cluster.as_ref().unwrap().advertise.clone();
    let mut client = cluster.client(follower);
    assert_eq!(client.line("SET foo 1"), format!("-MOVED 12182 {}", address.client()));
    assert_eq!(cluster.line(leader, "SET foo 1"), "+OK");
    assert_eq!(client.line("GET foo"), "$1 1");
    // As of Redis Cluster: the command has the error, from which a client learns where to go.
    assert_eq!(client.line("MULTI"), "+OK");
    assert_eq!(client.line("GET foo"), "+QUEUED");
    assert_eq!(client.line("SET foo 2"), format!("-MOVED 12182 {}", address.client()));
    assert!(client.line("EXEC").starts_with("-EXECABORT"));
    let mut late = cluster.client(leader);
    assert_eq!((late.line("MULTI"), late.line("SET foo 4")), ("+OK".into(), "+QUEUED".into()));
    for line in ["READONLY", "READWRITE", "ASKING"] {
        assert_eq!(client.line(line), "+OK");
    }
    assert!(client.line("HELLO").contains("$4 mode $7 cluster"), "{}", client.line("HELLO"));
    assert!(client.line("INFO cluster").contains("cluster_enabled:1"));
    assert!(client.line("CLUSTER INFO").contains("cluster_state:ok"));
    assert_eq!(client.line("CLUSTER KEYSLOT foo"), ":12182");
    assert_eq!(client.line("CLUSTER COUNTKEYSINSLOT 12182"), ":1");
    assert_eq!(client.line("CLUSTER GETKEYSINSLOT 12182 10"), "*1 $3 foo");
    let described = client.line("COMMAND INFO get");
    assert!(described.starts_with("*1 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read "), "{described}");
    let slots = client.line("CLUSTER SLOTS");
    assert!(slots.starts_with(&format!("*1 *5 :0 :16383 *4 $9 127.0.0.1 :{}", address.port)), "{slots}");
    assert_eq!(client.line("CLUSTER NODES").matches("0-16383").count(), 1);
    assert!(client.line("CLUSTER SHARDS").contains("$6 master"));
    assert!(cluster.line(leader, "ROLE").starts_with("*3 $6 master"));
    assert!(client.line("ROLE").starts_with("*5 $5 slave"));
    // The leadership moves.
    assert_eq!(client.line(&format!("RAFT.TRANSFER {follower}")), "+OK");
    cluster.wait_status(follower, |status| status["role"] == "leader");
    assert_eq!(client.line("SET foo 3"), "+OK");
    cluster.wait_status(leader, |status| status["leader"] == follower.to_string());
    assert!(late.line("EXEC").starts_with("-MOVED 12182"));
    assert_eq!(late.line("EXEC"), "-ERR EXEC without MULTI");
    // The replies before the error keep their place.
    late.stream.write_all(b"GET foo\r\nSET foo 5\r\nGET foo\r\n").unwrap();
    let replies: Vec<String> = (0..3).map(|_| shown(&late.receive())).collect();
    assert!(replies[0] == "$1 3" && replies[1].starts_with("-MOVED") && replies[2] == "$1 3", "{replies:?}");
    cluster.finish();
}

/// The keys of a slot, and no others, on the leader and on a follower; what is refused, is in the
/// words of Redis.
#[test]
fn keys_of_a_slot_are_found() {
    let cluster = Cluster::start(1, |_| {});
    let mut client = cluster.client(1);
    for from in (0..3000).step_by(100) {
        let mut command = vec!["MSET".to_string()];
        for number in from..from + 100 {
            // One in ten is of the slot of `foo`, 12182.
            let key = if number % 10 == 0 { format!("{{foo}}{number}") } else { format!("{{bar}}{number}") };
            command.extend([key, String::new()]);
        }
        assert_eq!(client.call(&command), "+OK");
    }
    assert_eq!(client.line("CLUSTER COUNTKEYSINSLOT 12182"), ":300");
    assert_eq!(client.line("CLUSTER COUNTKEYSINSLOT 5061"), ":2700");
    assert_eq!(client.line("CLUSTER COUNTKEYSINSLOT 0"), ":0");
    let found = client.line("CLUSTER GETKEYSINSLOT 12182 7");
    assert!(found.starts_with("*7 ") && found.matches("{foo}").count() == 7, "{found}");
    assert!(client.line("CLUSTER GETKEYSINSLOT 12182 5000").starts_with("*300 "));
    assert_eq!(client.line("CLUSTER GETKEYSINSLOT 12182 0"), "*0");
    for (line, error) in [
        ("CLUSTER COUNTKEYSINSLOT x", "-ERR value is not an integer or out of range"),
        ("CLUSTER COUNTKEYSINSLOT 16384", "-ERR Invalid slot"),
        ("CLUSTER COUNTKEYSINSLOT -1", "-ERR Invalid slot"),
        ("CLUSTER GETKEYSINSLOT 1 x", "-ERR value is not an integer or out of range"),
        ("CLUSTER GETKEYSINSLOT 1 -1", "-ERR Invalid slot or number of keys"),
        ("CLUSTER GETKEYSINSLOT -1 1", "-ERR Invalid slot or number of keys"),
    ] {
        assert_eq!(client.line(line), error, "{line}");
    }
    for line in ["CLUSTER COUNTKEYSINSLOT", "CLUSTER COUNTKEYSINSLOT 1 2", "CLUSTER GETKEYSINSLOT 1"] {
        assert!(client.line(line).starts_with("-ERR unknown subcommand or wrong number"), "{line}");
    }
    cluster.finish();
}

/// A node holds up the writes of its own clients.
#[test]
fn writes_of_a_node_are_paused() {
    let cluster = Cluster::start(3, |_| {});
    let (mut client, mut writer) = (cluster.client(1), cluster.client(1));
    assert_eq!(client.line("CLIENT PAUSE 100000000 WRITE"), "+OK");
    writer.send(&["INCR", "a"]);
    support::wait_until(|| client.line("INFO clients").contains("blocked_clients:1"));
    assert_eq!([cluster.client(2).line("INCR a"), client.line("GET a")], [":1", "$1 1"]);
    assert_eq!(client.line("CLIENT UNPAUSE"), "+OK");
    assert_eq!(writer.receive(), b":2\r\n");
    cluster.finish();
}

/// The error of a command that is not admitted comes in its place among replies of the data.
#[test]
fn errors_come_in_their_place_in_a_pipeline() {
    let cluster = Cluster::start(1, |_| {});
    let mut client = cluster.client(1);
    assert_eq!(client.line("SET a 1"), "+OK");
    client.stream.write_all(b"GET a\r\nOBJECT FOO a\r\nMEMORY USAGE\r\nGET a\r\n").expect("the server reads");
    let replies = [(); 4].map(|()| shown(&client.receive()));
    let expected = [
        "$1 1",
        "-ERR unknown subcommand \\'FOO\\'. Try OBJECT HELP.",
        "-ERR wrong number of arguments for \\'memory|usage\\' command",
        "$1 1",
    ];
    assert_eq!(replies, expected);
    cluster.finish();
}

/// Every command of a node is among those of COMMAND, with what clients of clusters go by.
#[test]
fn a_node_says_which_commands_it_has() {
    let cluster = Cluster::start(1, |_| {});
    let mut client = cluster.client(1);
    let mut listed = support::sorted(&client.line("COMMAND LIST"));
    // Subcommands are listed, and not counted.
    listed.retain(|name| !name.contains('|'));
    assert_eq!(client.line("COMMAND COUNT"), format!(":{}", listed.len()));
    assert!(client.line("COMMAND").starts_with(&format!("*{} *10 ", listed.len())));
    for (name, described) in [
        ("asking", ":1 *1 +fast"),
        ("cluster", ":-2 *0"),
        ("raft.add", ":3 *2 +admin +no_multi"),
        ("raft.hash", ":1 *2 +admin +no_multi"),
        ("raft.init", ":-3 *2 +admin +no_multi"),
        ("raft.promote", ":2 *2 +admin +no_multi"),
        ("raft.remove", ":2 *2 +admin +no_multi"),
        ("raft.status", ":1 *1 +fast"),
        ("raft.transfer", ":2 *2 +admin +no_multi"),
        ("readonly", ":1 *3 +loading +stale +fast"),
        ("readwrite", ":1 *3 +loading +stale +fast"),
    ] {
        let bulk = format!("${} {name}", name.len());
        assert!(listed.contains(&bulk), "{name}: {listed:?}");
        let expected = format!("*1 *10 {bulk} {described} :0 :0 :0 *");
        let found = client.line(&format!("COMMAND INFO {}", name.to_uppercase()));
        assert!(found.starts_with(&expected), "{found}");
        let documented = client.line(&format!("COMMAND DOCS {name}"));
        assert!(documented.starts_with(&format!("*2 {bulk} *")) && documented.contains(" summary "), "{documented}");
        // What COMMAND says is what is accepted.
        let arity: i64 = described.split(' ').next().and_then(|arity| arity[1..].parse().ok()).unwrap();
        let words = vec![name.to_string(); usize::try_from(arity.abs() - 1).unwrap()];
        let refused = format!("-ERR wrong number of arguments for \\'{name}\\' command");
        assert!(words.is_empty() || client.call(&words) == refused, "{name}");
    }
    assert_eq!(client.line("COMMAND LIST FILTERBY PATTERN raft.t*"), "*1 $13 raft.transfer");
    assert_eq!(client.line("COMMAND GETKEYS RAFT.REMOVE 1"), "-ERR The command has no key arguments");
    let mut alone = support::TestServer::start();
    assert_eq!(alone.client().line("COMMAND INFO cluster raft.init"), "*2 $-1 $-1");
    assert_eq!(alone.client().line("COMMAND COUNT"), format!(":{}", listed.len() - 11));
    alone.stop();
    cluster.finish();
}

/// A node that comes later gets what the log has let go as a snapshot.
#[test]
fn members_are_replaced() {
    let mut cluster = Cluster::prepare(4, |cluster| cluster.snapshot_entries = 30);
    (1..=4).for_each(|number| cluster.boot(number));
    let members: Vec<String> = (1..=3).map(|number| cluster.member(number)).collect();
    assert_eq!(cluster.line(2, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
    assert!(cluster.line(2, &format!("RAFT.INIT {}", members.join(" "))).starts_with("-ERR the node is not empty"));
    let leader = cluster.leader();
    wait_until(|| {
        assert_eq!(cluster.line(leader, "INCR n").chars().next(), Some(':'));
        cluster.status(leader)["purged"] != "0"
    });
    assert_eq!(cluster.line(leader, "RPUSH l a b"), ":2");
    assert!(cluster.line(1, "RAFT.PROMOTE 4").contains("RAFT.ADD it first"));
    let member = cluster.member(4);
    let follower = cluster.follower();
    assert_eq!(cluster.line(follower, &format!("RAFT.ADD {member}")), "+OK");
    assert_eq!(cluster.line(follower, &format!("RAFT.ADD {member}")), "+OK");
    assert!(cluster.line(follower, "RAFT.ADD 4 127.0.0.1:1@2").contains("is a member"));
    wait_until(|| cluster.line(1, "RAFT.PROMOTE 4") == "+OK");
    cluster.wait_status(4, |status| status["snapshot"] != "0" && status["role"] == "follower");
    // The node that goes is the leader.
    assert_eq!(cluster.line(4, &format!("RAFT.REMOVE {leader}")), "+OK");
    cluster.stop(leader);
    let left = cluster.status(4);
    assert_eq!((left["voters"].split(',').count(), left["learners"].as_str()), (3, ""));
    let counted = cluster.line(4, "GET n");
    assert_eq!(cluster.line(4, "LRANGE l 0 -1"), "*2 $1 a $1 b");
    assert!(cluster.line(4, "INCR n").starts_with(':'), "{counted}");
    cluster.finish();
}

/// A cluster of three that begins with the data in a directory.
fn begin_with(source: &Path) -> Cluster {
    let mut cluster = Cluster::prepare(3, |cluster| cluster.import = (cluster.node == 1).then(|| source.into()));
    cluster.boot(1);
    assert_eq!(cluster.line(1, "LRANGE l 0 -1"), "*1 $1 x");
    for number in 2..=3 {
        cluster.boot(number);
        let member = cluster.member(number);
        assert_eq!(cluster.line(1, &format!("RAFT.ADD {member}")), "+OK");
        wait_until(|| cluster.line(number, &format!("RAFT.PROMOTE {number}")) == "+OK");
    }
    let mut client = cluster.client(3);
    assert_eq!(client.line("LRANGE l 0 -1"), "*1 $1 x");
    assert_eq!(client.line("RPUSH l y"), ":2");
    assert_eq!((client.line("RPOP l"), client.line("SELECT 1")), ("$1 y".into(), "+OK".into()));
    assert_eq!((client.line("MGET a e"), client.line("HGET h f")), ("*2 $1 1 $1 1".into(), "$1 v".into()));
    // It is there now.
    cluster.stop(1);
    let again = Server::start(cluster.configs[&1].clone()).expect_err("an import over data");
    assert!(again.to_string().contains("new directory"), "{again}");
    cluster.configs.get_mut(&1).and_then(|config| config.cluster.as_mut()).expect("its configuration").import = None;
    cluster.boot(1);
    cluster
}

/// A server on its own becomes a cluster, and so does the state of a node of it.
#[test]
fn a_cluster_begins_with_data() {
    let mut alone = support::TestServer::start();
    let mut client = alone.client();
    for line in ["SET a 1", "HSET h f v", "SELECT 1", "RPUSH l x", "SWAPDB 0 1", "SET e 1 PX 60000"] {
        assert!(!client.line(line).starts_with('-'), "{line}");
    }
    alone.stop();
    let first = begin_with(&alone.config.directory);
    let text = first.line(1, "INFO persistence");
    let place = text.split("raft_state_directory:").nth(1).unwrap().split(' ').next().unwrap();
    let place = std::path::PathBuf::from(place);
    let directory = first.finish();
    begin_with(&place).finish();
    drop(directory);
    let empty = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::prepare(1, |cluster| cluster.import = Some(empty.path().join("none")));
    assert!(Server::start(cluster.configs.remove(&1).unwrap()).unwrap_err().to_string().contains("esker serve"));
}

/// The figures of `/metrics` that are not the engine's, as rows of a table.
fn server_table(metrics: &str) -> Vec<String> {
    let own = |line: &&str| ["esker_server_", "esker_raft_"].iter().any(|prefix| line.starts_with(prefix));
    let row = |line: &str| {
        let (name, help) = line.split_once(' ')?;
        let kind = metrics.split_once(&format!("# TYPE {name} "))?.1.lines().next()?;
        let (first, rest) = kind.split_at(1);
        Some(format!("| `{name}` | {}{rest} | {help} |", first.to_uppercase()))
    };
    let rows = metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")).filter(own).map(row);
    rows.collect::<Option<_>>().expect("each has a name, a help and a type")
}

fn documented_server_table() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../doc/metrics.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let own = |line: &&str| ["| `esker_server_", "| `esker_raft_"].iter().any(|start| line.starts_with(start));
    page.lines().filter(own).map(str::to_string).collect()
}

#[test]
fn a_node_without_a_cluster_says_so() {
    let mut cluster = Cluster::prepare(1, |cluster| cluster.election_ms = 200);
    cluster.configs.get_mut(&1).unwrap().metrics = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    cluster.boot(1);
    let page = |cluster: &Cluster, path: &str| {
        let mut stream = TcpStream::connect(cluster.servers[&1].metrics_address().unwrap()).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    let ready = page(&cluster, "/health/ready");
    assert!(ready.contains(" 503 ") && ready.contains("there is no leader"), "{ready}");
    let mut client = cluster.client(1);
    for line in ["SET a 1", "GET a"] {
        assert!(client.line(line).starts_with("-CLUSTERDOWN"), "{line}");
    }
    assert_eq!(client.line("READONLY"), "+OK");
    assert_eq!(client.line("GET a"), "$-1");
    for line in ["RAFT.ADD 2 127.0.0.1:1@2", "RAFT.INIT 2 127.0.0.1:1@2", "RAFT.INIT 1 nowhere", "RAFT.PROMOTE x"] {
        assert!(client.line(line).starts_with("-ERR"), "{line}");
    }
    // A cluster of one.
    assert_eq!(client.line(&format!("RAFT.INIT {}", cluster.member(1))), "+OK");
    assert!(page(&cluster, "/health/ready").contains(" 200 "));
    let metrics = page(&cluster, "/metrics");
    assert!(metrics.contains("\nesker_raft_leader 1\n") && metrics.contains("\nesker_raft_voters 1\n"), "{metrics}");
    assert_eq!(server_table(&metrics), documented_server_table());
    assert_eq!(client.line("SET a 1"), "+OK");
    assert!(client.line("RAFT.REMOVE 1").contains("only voter"));
    // The leader stays the leader.
    assert_eq!(client.line("RAFT.TRANSFER 1"), "+OK");
    assert_eq!(client.line("SET a 2"), "+OK");
    // What is too long for an entry is refused, and holds up nothing.
    let long = vec![b'x'; 65 << 20];
    client.send(&[&b"SET"[..], &b"a"[..], &long[..]]);
    let refused = shown(&client.receive());
    assert!(refused.starts_with("-ERR") && refused.contains("send it in parts"), "{refused}");
    assert_eq!(client.line("GET a"), "$1 2");
    cluster.finish();
}

/// A node is taken for nobody else: neither for one of another number nor for one of another
/// cluster, whose data a leader would replace.
#[test]
fn nodes_of_others_are_refused() {
    let mut cluster = Cluster::prepare(5, |_| {});
    (1..=5).for_each(|number| cluster.boot(number));
    let address = |cluster: &Cluster, number: u64| {
        cluster.member(number).split_once(' ').expect("a number and an address").1.to_string()
    };
    let (first, second) = (address(&cluster, 1), address(&cluster, 2));
    // Numbers that are swapped.
    let refused = cluster.line(1, &format!("RAFT.INIT 1 {second} 2 {first}"));
    assert!(refused.contains("--advertise"), "{refused}");
    let refused = cluster.line(1, &format!("RAFT.INIT 1 {first} 3 {second}"));
    assert!(refused.contains("has number 2, not 3"), "{refused}");
    assert_eq!(cluster.line(1, &format!("RAFT.INIT {} {}", cluster.member(1), cluster.member(2))), "+OK");
    assert_eq!(cluster.line(1, "SET a 1"), "+OK");
    // Another cluster.
    assert_eq!(cluster.line(3, &format!("RAFT.INIT {}", cluster.member(3))), "+OK");
    assert_eq!(cluster.line(3, "SET a 3"), "+OK");
    for (at, line, why) in [
        (1, format!("RAFT.ADD {}", cluster.member(3)), "another cluster"),
        (1, format!("RAFT.ADD 4 {second}"), "has number 2, not 4"),
        (3, format!("RAFT.ADD {}", cluster.member(1)), "another cluster"),
        (4, format!("RAFT.INIT {} {}", cluster.member(4), cluster.member(3)), "has the data of a cluster"),
    ] {
        let refused = cluster.line(at, &line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    // Also after a start: an empty node has become one of the cluster that added it.
    assert_eq!(cluster.line(1, &format!("RAFT.ADD {}", cluster.member(5))), "+OK");
    cluster.wait_status(5, |status| status["leader"] != "_");
    cluster.stop(5);
    cluster.boot(5);
    assert!(cluster.line(3, &format!("RAFT.ADD {}", cluster.member(5))).contains("another cluster"));
    assert_eq!((cluster.line(2, "GET a"), cluster.line(3, "GET a")), ("$1 1".into(), "$1 3".into()));
    cluster.stop(3);
    cluster.stop(4);
    cluster.finish();
}

/// A member whose directory was lost has forgotten for whom it voted and what it confirmed: it
/// counts as nobody until it is removed and added anew.
#[test]
fn a_member_with_an_emptied_directory_does_not_count() {
    let mut cluster = Cluster::start(3, |_| {});
    assert_eq!(cluster.line(1, "SET a 1"), "+OK");
    cluster.stop(3);
    std::fs::remove_dir_all(&cluster.configs[&3].directory).expect("the directory of a node");
    cluster.boot(3);
    let member = cluster.member(3);
    let refused = cluster.line(1, &format!("RAFT.ADD {member}"));
    assert!(refused.contains("RAFT.REMOVE 3"), "{refused}");
    let (term, write) = (cluster.status(1)["term"].clone(), "SET a 2");
    cluster.stop(2);
    // One of two nodes that have the data is no majority of three.
    let refused = cluster.line(1, write);
    assert!(refused.starts_with("-CLUSTERDOWN") || refused.starts_with("-UNCERTAIN"), "{refused} in term {term}");
    let status = cluster.status(3);
    assert_eq!((status["leader"].as_str(), status["last-log"].as_str()), ("_", "0"), "{status:?}");
    cluster.boot(2);
    wait_until(|| cluster.line(2, write) == "+OK");
    assert_eq!(cluster.line(1, "RAFT.REMOVE 3"), "+OK");
    assert_eq!(cluster.line(2, &format!("RAFT.ADD {member}")), "+OK");
    wait_until(|| cluster.line(1, "RAFT.PROMOTE 3") == "+OK");
    cluster.stop(2);
    assert_eq!((cluster.line(3, "GET a"), cluster.line(1, "SET a 3")), ("$1 2".into(), "+OK".into()));
    cluster.boot(2);
    cluster.finish();
}

/// Copies a directory with what is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() { copy(&entry.path(), &target) } else { drop(std::fs::copy(entry.path(), target)) }
    }
}

/// What a node had earlier makes it no member again: neither its state in the place of the one
/// that was lost, nor a cluster that begins with it. An empty directory does.
#[test]
fn a_node_is_not_replaced_by_a_backup() {
    let mut cluster = Cluster::prepare(4, |_| {});
    (1..=3).for_each(|number| cluster.boot(number));
    let members: Vec<String> = (1..=3).map(|number| cluster.member(number)).collect();
    assert_eq!(cluster.line(1, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
    assert_eq!(cluster.line(1, "RPUSH l x"), ":1");
    // The other two are a majority without it, and what is backed up is to have the write.
    assert_eq!(cluster.line(3, "LLEN l"), ":1");
    cluster.stop(3);
    let (lost, new) = (cluster.configs[&3].directory.clone(), cluster.configs[&4].directory.clone());
    let backup = cluster.directory.path().join("backup");
    copy(&lost.join("state"), &backup);
    std::fs::remove_dir_all(&lost).expect("the directory of a node");
    assert_eq!(cluster.line(1, "RPUSH l y"), ":2");
    for number in [3, 4] {
        copy(&backup, &cluster.configs[&number].directory.join("state"));
        let refused = Server::start(cluster.configs[&number].clone()).expect_err("a state without its log");
        assert!(refused.to_string().contains("the state of a node without its log"), "{refused}");
        std::fs::remove_dir_all(&cluster.configs[&number].directory).expect("the directory of a node");
    }
    let slots = std::fs::read_dir(&backup).expect("a state").map(|entry| entry.expect("an entry").path());
    let source = slots.filter(|path| path.is_dir()).max().expect("a slot");
    cluster.configs.get_mut(&4).and_then(|config| config.cluster.as_mut()).expect("a node").import = Some(source);
    cluster.boot(4);
    assert_eq!(cluster.line(4, "RPUSH l z"), ":2");
    let member = cluster.member(4);
    let refused = cluster.line(1, &format!("RAFT.ADD {member}"));
    assert!(refused.contains("another cluster"), "{refused}");
    cluster.stop(4);
    std::fs::remove_dir_all(&new).expect("the directory of a node");
    cluster.configs.get_mut(&4).and_then(|config| config.cluster.as_mut()).expect("a node").import = None;
    cluster.boot(4);
    assert_eq!(cluster.line(1, &format!("RAFT.ADD {member}")), "+OK");
    wait_until(|| cluster.line(1, "RAFT.PROMOTE 4") == "+OK");
    assert_eq!(cluster.line(2, "RAFT.REMOVE 3"), "+OK");
    assert_eq!(cluster.line(4, "LRANGE l 0 -1"), "*2 $1 x $1 y");
    cluster.finish();
}

/// An older state beside the log is brought up to date, if the log still has what it lacks.
#[test]
fn an_older_state_needs_the_log_behind_it() {
    let mut cluster = Cluster::prepare(1, |cluster| cluster.snapshot_entries = 30);
    cluster.boot(1);
    assert_eq!(cluster.line(1, &format!("RAFT.INIT {}", cluster.member(1))), "+OK");
    assert_eq!(cluster.line(1, "INCR n"), ":1");
    let (state, backup) = (cluster.configs[&1].directory.join("state"), cluster.directory.path().join("backup"));
    cluster.stop(1);
    copy(&state, &backup);
    let bring_back = || {
        std::fs::remove_dir_all(&state).expect("a state");
        copy(&backup, &state);
    };
    cluster.boot(1);
    assert_eq!(cluster.line(1, "INCR n"), ":2");
    cluster.stop(1);
    bring_back();
    cluster.boot(1);
    assert_eq!(cluster.line(1, "GET n"), "$1 2");
    wait_until(|| cluster.line(1, "INCR n").starts_with(':') && cluster.status(1)["purged"] != "0");
    cluster.stop(1);
    bring_back();
    let refused = Server::start(cluster.configs[&1].clone()).expect_err("a log with a gap behind the state");
    assert!(refused.to_string().contains("purged"), "{refused}");
}

/// No change of the members leaves voters of whom no majority is there.
#[test]
fn a_majority_that_is_down_is_not_made() {
    let mut cluster = Cluster::prepare(2, |_| {});
    (1..=2).for_each(|number| cluster.boot(number));
    assert_eq!(cluster.line(1, &format!("RAFT.INIT {}", cluster.member(1))), "+OK");
    assert_eq!(cluster.line(1, &format!("RAFT.ADD {}", cluster.member(2))), "+OK");
    let last = cluster.status(1)["last-log"].clone();
    cluster.wait_status(2, |status| status["applied"] == last);
    cluster.stop(2);
    let refused = cluster.line(1, "RAFT.PROMOTE 2");
    assert!(refused.contains("do not answer: 2"), "{refused}");
    assert_eq!(cluster.line(1, "SET a 1"), "+OK");
    cluster.boot(2);
    wait_until(|| cluster.line(1, "RAFT.PROMOTE 2") == "+OK");
    cluster.finish();
    let mut cluster = Cluster::start(3, |_| {});
    assert_eq!(cluster.line(1, "RAFT.TRANSFER 1"), "+OK");
    cluster.wait_status(1, |status| status["role"] == "leader");
    cluster.stop(2);
    let refused = cluster.line(1, "RAFT.REMOVE 3");
    assert!(refused.contains("do not answer: 2"), "{refused}");
    let refused = cluster.line(1, "RAFT.TRANSFER 2");
    assert!(refused.contains("do not answer: 2"), "{refused}");
    assert_eq!(cluster.line(1, "SET a 1"), "+OK");
    assert_eq!(cluster.line(1, "RAFT.REMOVE 2"), "+OK");
    assert_eq!(cluster.line(3, "GET a"), "$1 1");
    cluster.finish();
}

/// Random commands at random nodes: all replicas come to the same state.
#[test]
fn replicas_stay_the_same() {
    const TEMPLATES: [&str; 22] = [
        "SET K V",
        "SET K V PX 30",
        "GET K",
        "INCR K",
        "APPEND K V",
        "DEL K",
        "PEXPIRE K 20",
        "RENAME K K",
        "COPY K K",
        "HSET K V V",
        "HRANDFIELD K",
        "SADD K V V",
        "SPOP K",
        "SPOP K 2",
        "SRANDMEMBER K -3",
        "ZADD K 1 V 2 V",
        "ZPOPMIN K",
        "RPUSH K V V",
        "LMOVE K K LEFT RIGHT",
        "SWAPDB 0 1",
        "SUNIONSTORE K K K",
        "OBJECT ENCODING K",
    ];
    let seed: u64 = std::env::var("ESKER_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("ESKER_SEED={seed}");
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let mut cluster = Cluster::start(3, |cluster| cluster.snapshot_entries = 200);
    let mut clients: Vec<Client> = (1..=3).map(|number| cluster.client(number)).collect();
    for round in 0..900 {
        let template = TEMPLATES[below(TEMPLATES.len() as u64) as usize];
        let words: Vec<String> = template
            .split(' ')
            .map(|word| match word {
                "K" => char::from(b'a' + below(8) as u8).to_string(),
                "V" => below(9).to_string(),
                word => word.to_string(),
            })
            .collect();
        clients[below(3) as usize].call(&words);
        if round % 300 == 299 {
            assert_eq!(cluster.line(1, "RAFT.HASH"), "+OK");
            let number = 1 + below(3);
            cluster.stop(number);
            cluster.boot(number);
            clients = (1..=3).map(|number| cluster.client(number)).collect();
        }
    }
    cluster.finish();
}

fn pem(directory: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// With TLS only nodes with a certificate of the authority talk to each other.
#[test]
fn nodes_show_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(parameters, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let files = ClusterTlsFiles {
        certificate: pem(directory.path(), "node.pem", &certificate.pem()),
        key: pem(directory.path(), "node.key", &key.serialize_pem()),
        authority: pem(directory.path(), "authority.pem", &authority.pem()),
    };
    // The fourth node has none.
    let mut cluster = Cluster::prepare(4, |cluster| cluster.tls = (cluster.node < 4).then(|| files.clone()));
    (1..=4).for_each(|number| cluster.boot(number));
    let members: Vec<String> = (1..=3).map(|number| cluster.member(number)).collect();
    assert_eq!(cluster.line(1, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
    assert_eq!(cluster.line(3, "SET a 1"), "+OK");
    let member = cluster.member(4);
    let refused = cluster.line(2, &format!("RAFT.ADD {member}"));
    assert!(refused.contains("node 4 does not answer"), "{refused}");
    assert_eq!(cluster.status(4)["term"], "0");
    cluster.stop(4);
    let broken = ClusterTlsFiles { key: directory.path().join("none"), ..files };
    let mut config = cluster.configs[&4].clone();
    config.directory = cluster.directory.path().join("5");
    config.cluster.as_mut().unwrap().tls = Some(broken);
    assert!(Server::start(config).unwrap_err().to_string().contains("none"));
    cluster.finish();
}
