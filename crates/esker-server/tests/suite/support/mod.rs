//! A client that shows replies as they are on the wire, a server to talk to, and, where there is
//! one, Redis to compare with.

#![allow(dead_code)]

use esker_server::{Config, Server};
use redis_protocol::{resp2, resp3};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The limit that only turns a wait for ever into a failure.
pub const FOR_EVER: Duration = Duration::from_secs(300);

/// Looks again until something is so; many more times than it takes on a slow machine.
pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    // The limit, of five minutes or more, only turns a wait for ever into a failure.
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("what was waited for does not come");
}

/// A connection.
pub struct Client<S = TcpStream> {
    pub stream: S,
    input: Vec<u8>,
    is_resp3: bool,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(FOR_EVER)).expect("a timeout");
        Client::over(stream)
    }
}

impl<S: Read + Write> Client<S> {
    pub fn over(stream: S) -> Client<S> {
        Client { stream, input: Vec::new(), is_resp3: false }
    }

    /// Sends a command without waiting for its reply.
    pub fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            request.extend(format!("${}\r\n", argument.as_ref().len()).into_bytes());
            request.extend_from_slice(argument.as_ref());
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).expect("the server reads");
    }

    /// The next reply, as it came. The length is found by a decoder that is not the server's.
    pub fn receive(&mut self) -> Vec<u8> {
        loop {
            if let Some(length) = self.complete() {
                return self.input.drain(..length).collect();
            }
            let mut chunk = [0; 65536];
            let read = self.read(&mut chunk).expect("a reply");
            assert!(read > 0, "the connection ended within {:?}", String::from_utf8_lossy(&self.input));
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    fn complete(&self) -> Option<usize> {
        if self.is_resp3 {
            resp3::decode::complete::decode(&self.input).expect("RESP3").map(|(_, length)| length)
        } else {
            resp2::decode::decode(&self.input).expect("RESP2").map(|(_, length)| length)
        }
    }

    /// Sends a command, and returns the reply as text with escapes.
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> String {
        self.send(arguments);
        let reply = shown(&self.receive());
        if arguments.first().is_some_and(|name| name.as_ref().eq_ignore_ascii_case(b"hello"))
            && let Some(version) = arguments.get(1)
            && !reply.starts_with('-')
        {
            self.is_resp3 = version.as_ref() == b"3";
        }
        reply
    }

    /// Sends a command of words, and returns the reply as text with escapes.
    pub fn line(&mut self, line: &str) -> String {
        self.call(&words(line))
    }

    /// As a new connection.
    pub fn reset(&mut self) {
        assert_eq!(self.line("RESET"), "+RESET");
        self.is_resp3 = false;
    }

    /// The reader of a reply to HELLO 3 has to know its form ahead.
    pub fn hello3(&mut self) -> String {
        self.is_resp3 = true;
        self.line("HELLO 3")
    }

    /// Whether the server has ended the connection.
    pub fn is_ended(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.read(&mut byte), Ok(0) | Err(_))
    }

    /// A signal that the process gets meanwhile, as a stop on a machine that is suspended, is no
    /// answer of the server.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// The words of a line, of which `""` is empty, with `\xNN` for any byte.
pub fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| {
            if word == "\"\"" {
                return Vec::new();
            }
            let mut bytes = Vec::new();
            let mut rest = word.as_bytes();
            while let Some((&first, tail)) = rest.split_first() {
                if rest.starts_with(b"\\x") {
                    let digits = std::str::from_utf8(&rest[2..4]).expect("two digits");
                    bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                    rest = &rest[4..];
                } else {
                    bytes.push(first);
                    rest = tail;
                }
            }
            bytes
        })
        .collect()
}

/// A reply as text: what is not printable is escaped, and line ends are spaces.
pub fn shown(reply: &[u8]) -> String {
    let text: String = reply.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
    text.replace("\\r\\n", " ").trim_end().to_string()
}

/// The elements of a shown reply, which is an array of byte strings, in order of the alphabet.
pub fn sorted(reply: &str) -> Vec<String> {
    let mut found: Vec<String> =
        reply.split(' ').skip(1).collect::<Vec<_>>().chunks(2).map(|pair| pair.join(" ")).collect();
    found.sort();
    found
}

/// A server on a database of its own.
pub struct TestServer {
    server: Option<Server>,
    pub config: Config,
    _directory: TempDir,
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> TestServer {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = Config::new(directory.path());
        config.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut config);
        let server = Server::start(config.clone()).expect("a server");
        TestServer { server: Some(server), config, _directory: directory }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    pub fn client(&self) -> Client {
        Client::connect(self.server().address().expect("it listens"))
    }

    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().expect("it stops");
        }
    }

    pub fn restart(&mut self) {
        self.stop();
        self.server = Some(Server::start(self.config.clone()).expect("it starts again"));
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// Ports of this machine that nobody has now. The system gives none of them to a connection, or to
/// who listens at port 0: it could take such a one before its server does, or while that restarts.
pub fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id() % 100 * 200;
    let ports = (0..20_000).map(|_| (10_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16);
    ports.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).take(count).collect()
}

/// A process of Redis on a directory of its own.
pub struct Redis {
    child: Child,
    pub address: SocketAddr,
    _directory: TempDir,
}

impl Redis {
    /// Starts it; `None` where it is not installed, which is a failure where CI is set.
    pub fn start() -> Option<Redis> {
        let program = std::env::var("ESKER_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let directory = tempfile::tempdir().expect("a directory");
        let free = SocketAddr::from(([127, 0, 0, 1], free_ports(1)[0]));
        let spawned = Command::new(&program)
            .args(["--port", &free.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else {
            assert!(std::env::var_os("CI").is_none(), "{program} is missing; install it, as CI needs it");
            eprintln!("not compared: {program} is missing");
            return None;
        };
        let redis = Redis { child, address: free, _directory: directory };
        wait_until(|| TcpStream::connect(free).is_ok());
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
