//! `esker serve` as a process.
#![allow(dead_code, clippy::unwrap_used)]

use super::command;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// Ports of this machine that nobody has now. The system gives none of them to a connection, or to
/// who listens at port 0: it could take such a one before its server does, or while that restarts.
pub fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id() % 100 * 200;
    let ports = (0..20_000).map(|_| (10_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16);
    ports.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).take(count).collect()
}

/// A server.
pub struct Served {
    pub child: Child,
    pub address: String,
    /// What it logs once it is ready, when it has ended.
    pub log: Option<JoinHandle<String>>,
}

impl Served {
    /// Starts a server, and reads its log until it says where it listens.
    pub fn start(db: &str, more: &[&str]) -> Served {
        let mut arguments = vec!["serve", db, "--listen", "127.0.0.1:0"];
        // A node of a cluster has the port that others know.
        if more.contains(&"--port") {
            arguments.truncate(2);
        }
        arguments.extend(more);
        Served::spawn(&mut command(&arguments))
    }

    /// The same of a command that is made already.
    pub fn spawn(command: &mut Command) -> Served {
        let mut child = command.env_remove("ESKER_LOG").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("the server is ready") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
        }
        // The rest is read, so that the server is never held up by its log.
        let log = std::thread::spawn(move || {
            let mut rest = Vec::new();
            let _ = log.read_to_end(&mut rest);
            String::from_utf8_lossy(&rest).into_owned()
        });
        let (_, rest) = line.split_once("plain: Some(").unwrap();
        Served { child, address: rest.split(')').next().unwrap().to_string(), log: Some(log) }
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a signal, as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn terminate(self) {
        self.signal("-TERM");
        assert!(self.wait().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next line of replies.
pub fn next_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap().trim_end().to_string()
}

/// Sends a line, and returns the first line of the reply.
pub fn ask(stream: &mut TcpStream, line: &str) -> String {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    next_line(stream)
}
