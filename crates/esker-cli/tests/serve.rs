//! `esker serve` as a process: its start, its end, and what survives both kinds of end.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/served.rs"]
mod served;

use common::{Sandbox, fails};
use served::{Served, ask, free_ports};
use std::io::{Read, Write};
use std::net::TcpStream;

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
