//! `esker serve` as a process: its start, its end, and what survives both kinds of end.

#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
use crate::common::command;
#[cfg(target_os = "linux")]
use crate::common::served::next_line;
use crate::common::served::{Served, ask, free_ports};
use crate::common::{self, Sandbox, fails};
use std::io::{Read, Write};
use std::net::TcpStream;
#[cfg(target_os = "linux")]
use std::process::{Child, Command};

/// What was acknowledged survives the process, whatever ends it.
#[test]
fn acknowledged_writes_survive_the_process() {
    let sandbox = Sandbox::new("serve-kill");
    let db = sandbox.text("data");
    for (round, sync) in ["always", "everysec", "no"].into_iter().enumerate() {
        let mut served = Served::start(&db, &["--sync", sync]);
        let mut stream = served.connect();
        for number in 1..=200 {
            assert_eq!(ask(&mut stream, "INCR n"), format!(":{}", round * 200 + number));
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();
    }
    let served = Served::start(&db, &[]);
    assert_eq!(ask(&mut served.connect(), "INCR n"), ":601");
    served.terminate();
}

/// A cluster of processes goes on when its leader is killed, counts once, and takes the killed node
/// back.
#[test]
fn a_cluster_survives_its_leader() {
    let sandbox = Sandbox::new("serve-cluster");
    let ports = free_ports(6);
    let advertised: Vec<String> = (0..3).map(|node| format!("127.0.0.1:{}@{}", ports[node], ports[node + 3])).collect();
    let start = |node: usize| {
        let (number, port) = ((node + 1).to_string(), ports[node].to_string());
        let listen = format!("127.0.0.1:{}", ports[node + 3]);
        let db = sandbox.text(&format!("node-{number}"));
        let mut arguments = vec!["--port", &port, "--cluster-node", &number, "--cluster-listen", &listen];
        arguments.extend(["--advertise", &advertised[node], "--cluster-election-ms", "1000"]);
        Served::start(&db, &arguments)
    };
    let mut served: Vec<Served> = (0..3).map(start).collect();
    let members: Vec<String> = (0..3).map(|node| format!("{} {}", node + 1, advertised[node])).collect();
    assert_eq!(ask(&mut served[0].connect(), &format!("RAFT.INIT {}", members.join(" "))), "+OK");
    let mut expected = 0;
    for _ in 0..2 {
        let mut clients: Vec<TcpStream> = served.iter().map(Served::connect).collect();
        for number in 0..30 {
            expected += 1;
            assert_eq!(ask(&mut clients[number % 3], "INCR n"), format!(":{expected}"));
        }
        let leads = |served: &Served| ask(&mut served.connect(), "ROLE") == "*3";
        let leader = served.iter().position(leads).unwrap_or(0);
        served[leader].child.kill().unwrap();
        served[leader].child.wait().unwrap();
        expected += 1;
        assert_eq!(ask(&mut served[(leader + 1) % 3].connect(), "INCR n"), format!(":{expected}"));
        served[leader] = start(leader);
    }
    assert_eq!(ask(&mut served[2].connect(), "RAFT.HASH"), "+OK");
    served.into_iter().for_each(Served::terminate);
}

/// A field of RAFT.STATUS.
#[cfg(target_os = "linux")]
fn status(stream: &mut TcpStream, name: &str) -> String {
    let count: usize = ask(stream, "RAFT.STATUS")[1..].parse().unwrap();
    let mut input = Lines(stream);
    let fields: Vec<String> = (0..count).map(|_| input.item()).collect();
    fields.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

/// What a reply has line by line.
#[cfg(target_os = "linux")]
struct Lines<'s>(&'s mut TcpStream);

#[cfg(target_os = "linux")]
impl Lines<'_> {
    fn item(&mut self) -> String {
        let head = next_line(self.0);
        if head.starts_with('$') && head != "$-1" { next_line(self.0) } else { head[1..].to_string() }
    }
}

/// Lets the files of a process have so many bytes, as on a disk that is full.
#[cfg(target_os = "linux")]
fn limit(child: &Child, bytes: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let process = Pid::from_raw(child.id().cast_signed());
    prlimit(process, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// A node whose disk has no room for a snapshot goes on trying; one that cannot write down any more
/// what it receives ends with a message. Started again, with room, it comes to the same state.
#[cfg(target_os = "linux")]
#[test]
fn a_node_without_room_for_a_snapshot_ends_and_comes_back() {
    let sandbox = Sandbox::new("serve-full");
    let ports = free_ports(4);
    let advertised: Vec<String> = (0..2).map(|node| format!("127.0.0.1:{}@{}", ports[node], ports[node + 2])).collect();
    let start = |node: usize| {
        let (number, port) = ((node + 1).to_string(), ports[node].to_string());
        let listen = format!("127.0.0.1:{}", ports[node + 2]);
        let db = sandbox.text(&format!("node-{number}"));
        let mut arguments = vec!["serve", &db, "--port", &port, "--cluster-node", &number, "--cluster-listen", &listen];
        arguments.extend(["--advertise", &advertised[node], "--cluster-snapshot-entries", "20"]);
        let program = command(&arguments);
        // A write over the limit is to be an error, and no signal that ends the process.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
        Served::spawn(&mut shell)
    };
    let (first, mut second) = (start(0), start(1));
    let mut client = first.connect();
    assert_eq!(ask(&mut client, &format!("RAFT.INIT 1 {}", advertised[0])), "+OK");
    let mut state = 1u64;
    let mut written = 0;
    let mut write = |client: &mut TcpStream| {
        let draw = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{state:016x}")
        };
        let value: String = (0..1_000).map(draw).collect();
        written += 1;
        assert_eq!(ask(client, &format!("SET k{} {value}", written % 40)), "+OK");
    };
    (0..40).for_each(|_| write(&mut client));
    while status(&mut client, "purged") == "0" {
        write(&mut client);
    }
    limit(&second.child, Some(64 << 10));
    assert_eq!(ask(&mut client, &format!("RAFT.ADD 2 {}", advertised[1])), "+OK");
    // It hears of the leader, has nothing, and runs.
    let mut there = second.connect();
    while status(&mut there, "term") == "0" {}
    (0..60).for_each(|_| write(&mut client));
    assert_eq!((status(&mut there, "applied").as_str(), second.child.try_wait().unwrap()), ("0", None));
    // Not even what it receives can be written down.
    limit(&second.child, Some(0));
    let ended = loop {
        if let Some(ended) = second.child.try_wait().unwrap() {
            break ended;
        }
        write(&mut client);
    };
    let log = second.log.take().unwrap().join().unwrap();
    assert_eq!(ended.code(), Some(1), "{log}");
    assert!(log.contains("no snapshot can be received any more"), "{log}");
    assert!(log.contains("the replica has stopped, and is to be started again"), "{log}");
    let second = start(1);
    while ask(&mut client, "RAFT.PROMOTE 2") != "+OK" {}
    assert_eq!(ask(&mut client, "RAFT.HASH"), "+OK");
    assert_eq!(status(&mut second.connect(), "voters"), "1,2");
    second.terminate();
    first.terminate();
}

#[test]
fn a_signal_ends_it_in_order() {
    let sandbox = Sandbox::new("serve-signal");
    let db = sandbox.text("data");
    let served = Served::start(&db, &[]);
    let (mut writer, mut waiting) = (served.connect(), served.connect());
    assert_eq!(ask(&mut writer, "RPUSH l a"), ":1");
    waiting.write_all(b"BLPOP other 0\r\n").unwrap();
    served.terminate();
    let mut rest = String::new();
    let _ = waiting.read_to_string(&mut rest);
    assert!(rest.is_empty() || rest == "*-1\r\n", "{rest}");
    // The other commands read what it wrote.
    assert!(common::ok(&["keyspaces", "--db", &db]).contains("0.elements"));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let sandbox = Sandbox::new("serve-refused");
    let db = sandbox.text("data");
    let refused = |arguments: &[&str], code: i32, text: &str| {
        let mut all = vec!["serve", "--db", &db];
        all.extend(arguments);
        let error = fails(code, &all);
        assert!(error.contains(text), "{error}");
    };
    refused(&["--listen", "0.0.0.0:0"], 2, "without a password");
    refused(&["--listen", "0.0.0.0:0", "--password", ""], 2, "the password is empty");
    refused(&["--listen", "nowhere"], 2, "--listen");
    refused(&["--no-listen"], 2, "--tls");
    refused(&["--cluster-node", "1"], 2, "--advertise");
    refused(&["--cluster-node", "0", "--cluster-listen", "127.0.0.1:0", "--advertise", "a:1@2"], 2, "--cluster-node");
    refused(&["--cluster-node", "1", "--cluster-listen", "127.0.0.1:0", "--advertise", "a:1"], 2, "host:port@raftport");
    refused(&["--log", "=nonsense="], 2, "--log");
    refused(&["--password-file", &sandbox.text("missing")], 1, "check the path");
    let tls = sandbox.text("no.pem");
    std::fs::write(&tls, "").unwrap();
    let arguments = ["--no-listen", "--tls", "127.0.0.1:0", "--tls-certificate", &tls, "--tls-key", &tls];
    refused(&arguments, 1, "no certificate");
    let served = Served::start(&db, &[]);
    refused(&["--listen", "127.0.0.1:0"], 1, "lock");
    let other = sandbox.text("other");
    let error = fails(1, &["serve", "--db", &other, "--listen", &served.address]);
    assert!(error.contains("choose another address or port"), "{error}");
    served.terminate();
}
