//! How `esker serve` ends: its exit codes, and what the units for systemd make of them.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use crate::common::served::{Served, ask, free_ports, next_line};
use crate::common::{Sandbox, fails, ok};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A node that can be started more than once.
struct Node {
    db: String,
    arguments: Vec<String>,
    advertised: String,
}

impl Node {
    fn new(sandbox: &Sandbox, number: usize) -> Node {
        let ports = free_ports(2);
        let (listen, advertised) = (format!("127.0.0.1:{}", ports[1]), format!("127.0.0.1:{}@{}", ports[0], ports[1]));
        let arguments = ["--port", &ports[0].to_string(), "--cluster-node", &number.to_string()]
            .into_iter()
            .chain(["--cluster-listen", &listen, "--advertise", &advertised, "--cluster-election-ms", "1000"])
            .map(String::from)
            .collect();
        Node { db: sandbox.text(&format!("node-{number}")), arguments, advertised }
    }

    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    fn start(&self) -> Served {
        Served::start(&self.db, &self.arguments())
    }
}

/// What ends a server in order ends it with 0, also right behind the line that says it is ready.
#[test]
fn an_orderly_end_is_0() {
    let sandbox = Sandbox::new("serve-exit-0");
    let db = sandbox.text("data");
    for round in 0..10 {
        let served = Served::start(&db, &[]);
        served.signal(if round % 2 == 0 { "-TERM" } else { "-INT" });
        assert_eq!(served.wait().code(), Some(0), "round {round}");
    }
    let served = Served::start(&db, &[]);
    served.connect().write_all(b"SHUTDOWN\r\n").unwrap();
    assert_eq!(served.wait().code(), Some(0));
    let node = Node::new(&sandbox, 1);
    let served = node.start();
    assert_eq!(ask(&mut served.connect(), &format!("RAFT.INIT 1 {}", node.advertised)), "+OK");
    served.signal("-TERM");
    assert_eq!(served.wait().code(), Some(0));
}

/// A node that cannot write its log any more ends with 1, and starts again once it can. It has all
/// that it acknowledged.
#[test]
fn a_node_that_cannot_write_is_1() {
    let sandbox = Sandbox::new("serve-exit-1");
    let node = Node::new(&sandbox, 1);
    // Where a signal that would end the process is ignored, a write beyond the limit is an error.
    let script = "trap '' XFSZ; ulimit -f 40000; exec \"$0\" \"$@\"";
    let mut arguments = vec!["-c", script, env!("CARGO_BIN_EXE_esker"), "serve", &node.db];
    arguments.extend(node.arguments());
    let limited = Served::spawn(Command::new("sh").args(&arguments).env_remove("ESKER_DB"));
    let mut client = limited.connect();
    assert_eq!(ask(&mut client, &format!("RAFT.INIT 1 {}", node.advertised)), "+OK");
    let value = "x".repeat(1 << 20);
    let mut written = 0;
    // Without a limit that works, so many values would be there.
    while written < 1000 {
        let key = format!("k{written}");
        let request = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len());
        let mut reply = String::new();
        if client.write_all(request.as_bytes()).is_ok() {
            let mut first = [0];
            reply = match client.read(&mut first) {
                Ok(1) => format!("{}{}", char::from(first[0]), next_line(&mut client)),
                _ => String::new(),
            };
        }
        if reply != "+OK" {
            break;
        }
        written += 1;
    }
    assert!((1..1000).contains(&written), "{written}");
    assert_eq!(limited.wait().code(), Some(1));
    let served = node.start();
    let mut client = served.connect();
    let last = written - 1;
    assert_eq!(ask(&mut client, &format!("STRLEN k{last}")), format!(":{}", value.len()));
    drop(client);
    served.terminate();
}

/// A node whose state is not that of the others ends with 3, and does not start any more.
#[test]
fn a_node_with_another_state_is_3() {
    let sandbox = Sandbox::new("serve-exit-3");
    let nodes: Vec<Node> = (1..=3).map(|number| Node::new(&sandbox, number)).collect();
    let mut served: Vec<Served> = nodes.iter().map(Node::start).collect();
    let members: Vec<String> = (1..=3).map(|number| format!("{number} {}", nodes[number - 1].advertised)).collect();
    let mut client = served[0].connect();
    assert_eq!(ask(&mut client, &format!("RAFT.INIT {}", members.join(" "))), "+OK");
    assert_eq!(ask(&mut client, "SET a 1"), "+OK");
    assert_eq!(ask(&mut client, "RAFT.HASH"), "+OK");
    let directory = state_directory(&served[2]);
    served.pop().unwrap().terminate();
    ok(&["put", "--db", &directory, "--keyspace", "system", "planted", "1"]);
    let mut other = nodes[2].start();
    // While it is not reached, it is not compared.
    while other.child.try_wait().unwrap().is_none() {
        let answer = ask(&mut client, "RAFT.HASH");
        assert!(answer == "+OK" || answer.starts_with("-ERR node 3: "), "{answer}");
        if answer != "+OK" {
            break;
        }
    }
    assert_eq!(other.wait().code(), Some(3));
    let mut arguments = vec!["serve", &nodes[2].db];
    arguments.extend(nodes[2].arguments());
    let error = fails(3, &arguments);
    assert!(error.contains("system"), "{error}");
    drop(client);
    served.into_iter().for_each(Served::terminate);
}

/// Where INFO says that the state of a node is.
fn state_directory(served: &Served) -> String {
    let mut stream = served.connect();
    let mut line = ask(&mut stream, "INFO persistence");
    loop {
        if let Some(directory) = line.strip_prefix("raft_state_directory:") {
            return directory.to_string();
        }
        line = next_line(&mut stream);
    }
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// The values of a directive of a unit.
fn directive<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

/// The units start again what may go on, and leave the rest: 2 is an option that stays wrong, 3 a
/// state that stays another one.
#[test]
fn the_units_fit_the_exit_codes() {
    for (name, prevented) in [("esker.service", "2"), ("esker-cluster@.service", "2 3")] {
        let unit = fs::read_to_string(packaging().join(name)).unwrap();
        for (directive_name, expected) in [
            ("Restart", "on-failure"),
            ("RestartPreventExitStatus", prevented),
            ("KillSignal", "SIGTERM"),
            // Longer than connections may take to end, twice over, and another node to lead.
            ("TimeoutStopSec", "60"),
        ] {
            assert_eq!(directive(&unit, directive_name), [expected], "{name}: {directive_name}");
        }
        // 0 is no failure, and 1 is none that stays.
        assert!(directive(&unit, "SuccessExitStatus").is_empty(), "{name}");
        let [start] = directive(&unit, "ExecStart")[..] else { panic!("{name} has not one ExecStart") };
        let start = start.replace("%i", "1").replace("$ESKER_NODE", "--cluster-listen 127.0.0.1:2 --advertise a:1@2");
        let (program, arguments) = start.split_once(' ').unwrap();
        assert_eq!(program, "/usr/local/bin/esker", "{name}");
        // The help is shown once all options before it are understood.
        let arguments: Vec<&str> = arguments.split(' ').chain(["--help"]).collect();
        assert!(ok(&arguments).contains("--cluster-node"), "{name}");
    }
}

/// Where systemd is, its own check finds nothing wrong with the units.
#[test]
fn systemd_takes_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI needs systemd-analyze");
        eprintln!("skipped: systemd-analyze is not here");
        return;
    }
    let sandbox = Sandbox::new("serve-units");
    for name in ["esker.service", "esker-cluster@.service"] {
        let verify = |unit: &str| {
            fs::write(sandbox.path(name), unit).unwrap();
            let output = Command::new("systemd-analyze").arg("verify").arg(sandbox.path(name)).output().unwrap();
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let unit = fs::read_to_string(packaging().join(name)).unwrap();
        // The program is where this build has put it.
        let unit = unit.replace("/usr/local/bin/esker", env!("CARGO_BIN_EXE_esker"));
        let (is_right, said) = verify(&unit);
        assert!(is_right && !said.contains(name), "{name}: {said}");
        let (is_right, said) = verify(&unit.replace("RestartPreventExitStatus=", "RestartPreventExitStatus=none"));
        assert!(!is_right || said.contains("none"), "the check finds nothing: {said}");
    }
}

#[test]
fn the_help_says_the_codes() {
    let help = ok(&["serve", "--help"]);
    let (_, codes) = help.split_once("Exit codes: ").unwrap();
    assert!(["0 ", "1 ", "2 ", "3 "].iter().all(|code| codes.contains(code)), "{codes}");
}
