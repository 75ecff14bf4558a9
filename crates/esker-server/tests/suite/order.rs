//! Requests of different connections that arrive together.

use crate::support::{Client, TestServer, shown, wait_until};
use std::io::Write;
use std::net::SocketAddr;

/// Keeps the thread that executes commands busy, so that what is sent meanwhile arrives together.
fn occupy(client: &mut Client) {
    client.send(&["DEBUG", "SLEEP", "0.01"]);
}

/// Requests of different connections are executed in the order in which they have come.
#[test]
fn connections_are_served_in_the_order_of_their_requests() {
    let server = TestServer::with(|config| config.allows_debug = true);
    let mut busy = server.client();
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.line("PING"), "+PONG");
    }
    for round in 0..50 {
        occupy(&mut busy);
        let key = format!("l{round}");
        for (place, client) in clients.iter_mut().enumerate() {
            client.send(&["RPUSH", &key, &place.to_string()]);
        }
        for (place, client) in clients.iter_mut().enumerate() {
            assert_eq!(shown(&client.receive()), format!(":{}", place + 1), "round {round}");
        }
        assert_eq!(shown(&busy.receive()), "+OK");
    }
}

/// Waits until the server's end of a connection has the news that the client has closed its own.
/// On a machine with much to do the system may hand them on behind what another connection has sent
/// since.
fn wait_for_end_of(client: SocketAddr) {
    const CLOSE_WAIT: &str = "08";
    let port = format!(":{:04X}", client.port());
    wait_until(|| {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the connections of this machine");
        let fields = table.lines().map(|line| line.split_whitespace().skip(2).take(2).collect::<Vec<_>>());
        // Where there is none, the server has closed its end too.
        fields.filter(|fields| fields[0].ends_with(&port)).all(|fields| fields[1] == CLOSE_WAIT)
    });
}

/// A client that has gone before an element comes does not take it.
#[test]
fn who_is_gone_before_a_push_takes_nothing() {
    let server = TestServer::with(|config| config.allows_debug = true);
    let (mut busy, mut pusher) = (server.client(), server.client());
    for round in 0..50 {
        let mut gone = server.client();
        gone.send(&["BLPOP", "l", "0"]);
        wait_until(|| pusher.line("INFO clients").contains("blocked_clients:1"));
        let address = gone.stream.local_addr().expect("it is connected");
        occupy(&mut busy);
        drop(gone);
        wait_for_end_of(address);
        pusher.send(&["RPUSH", "l", "e"]);
        assert_eq!(shown(&pusher.receive()), ":1");
        assert_eq!(pusher.line("LPOP l"), "$1 e", "round {round}");
        assert_eq!(shown(&busy.receive()), "+OK");
    }
}

/// An EXEC that was sent before a write of a watched key is executed before it.
#[test]
fn an_exec_sent_before_a_write_is_executed() {
    let server = TestServer::with(|config| config.allows_debug = true);
    let (mut busy, mut writer) = (server.client(), server.client());
    for round in 0..50 {
        let mut client = server.client();
        for line in ["WATCH l", "MULTI", "LLEN l"] {
            assert!(!client.line(line).starts_with('-'), "{line}");
        }
        occupy(&mut busy);
        client.send(&["EXEC"]);
        writer.send(&["LPUSH", "l", "e"]);
        assert_eq!(shown(&client.receive()), format!("*1 :{round}"));
        assert_eq!(shown(&writer.receive()), format!(":{}", round + 1));
        assert_eq!(shown(&busy.receive()), "+OK");
    }
}

/// Once the client that kills another one has its reply, nothing of the other one is executed.
#[test]
fn who_is_killed_does_nothing_more() {
    let server = TestServer::with(|config| config.allows_debug = true);
    let (mut busy, mut killer) = (server.client(), server.client());
    for round in 0..50 {
        let mut killed = server.client();
        let id = killed.line("CLIENT ID").trim_start_matches(':').to_string();
        occupy(&mut busy);
        killer.send(&["CLIENT", "KILL", "ID", &id]);
        killed.send(&["SET", "k", "v"]);
        assert_eq!(shown(&killer.receive()), ":1");
        assert!(killed.is_ended());
        assert_eq!(killer.line("EXISTS k"), ":0", "round {round}");
        assert_eq!(shown(&busy.receive()), "+OK");
    }
}

/// A client that waits for a key, and is killed, takes nothing that comes behind that.
#[test]
fn who_is_killed_takes_nothing() {
    let server = TestServer::start();
    let mut killer = server.client();
    for round in 0..50 {
        let mut killed = server.client();
        let id = killed.line("CLIENT ID").trim_start_matches(':').to_string();
        killed.send(&["BLPOP", "l", "0"]);
        wait_until(|| killer.line("INFO clients").contains("blocked_clients:1"));
        let lines = format!("CLIENT KILL ID {id}\r\nRPUSH l e\r\nLPOP l\r\n");
        killer.stream.write_all(lines.as_bytes()).expect("sent");
        let replies = [(); 3].map(|()| shown(&killer.receive()));
        assert_eq!(replies, [":1", ":1", "$1 e"], "round {round}");
        assert!(killed.is_ended());
    }
}
