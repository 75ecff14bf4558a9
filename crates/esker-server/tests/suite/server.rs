//! The server around the commands: connections, limits, blocking, durability, TLS, metrics.

use crate::support::{self, Client, TestServer, shown, sorted, wait_until, words};
use esker_server::{Server, SyncPolicy, TlsFiles};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const LOCAL: [u8; 4] = [127, 0, 0, 1];

/// Asks again until the reply is right.
fn until(client: &mut Client, line: &str, is_right: impl Fn(&str) -> bool) {
    wait_until(|| is_right(&client.line(line)));
}

#[test]
fn data_survives_a_restart() {
    for sync in [SyncPolicy::Always, SyncPolicy::EverySecond, SyncPolicy::No] {
        let mut server = TestServer::with(|config| config.sync = sync);
        let mut client = server.client();
        for line in ["SET a 1", "HSET h f v", "RPUSH l a b c", "ZADD z 1.5 m", "SADD s x", "SELECT 3", "SET three 3"] {
            assert!(!client.line(line).starts_with('-'), "{line}");
        }
        assert_eq!(client.line("SWAPDB 3 4"), "+OK");
        server.restart();
        let mut client = server.client();
        assert_eq!(client.line("MGET a"), "*1 $1 1");
        assert_eq!(client.line("HGETALL h"), "*2 $1 f $1 v");
        assert_eq!(client.line("LRANGE l 0 -1"), "*3 $1 a $1 b $1 c");
        assert_eq!(client.line("ZRANGE z 0 -1 WITHSCORES"), "*2 $1 m $3 1.5");
        assert_eq!(client.line("SMEMBERS s"), "*1 $1 x");
        client.line("SELECT 4");
        assert_eq!(client.line("GET three"), "$1 3");
    }
}

#[test]
fn pipelines_keep_their_order() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..5000 {
        client.send(&["RPUSH", "l", &number.to_string()]);
    }
    for number in 1..=5000 {
        assert_eq!(shown(&client.receive()), format!(":{number}"));
    }
    // More than is sent at once, in both directions.
    let value = "v".repeat(100_000);
    client.call(&["SET", "big", &value]);
    for _ in 0..50 {
        client.send(&["GET", "big"]);
    }
    for _ in 0..50 {
        assert_eq!(client.receive().len(), value.len() + 11);
    }
}

#[test]
fn inline_commands_and_nonsense() {
    let server = TestServer::start();
    let mut client = server.client();
    client.stream.write_all(b"SET a \"x y\"\r\nGET a\n\r\n").expect("sent");
    assert_eq!([shown(&client.receive()), shown(&client.receive())], ["+OK", "$3 x y"]);
    client.stream.write_all(b"*1\r\nGET\r\n").expect("sent");
    assert_eq!(shown(&client.receive()), "-ERR Protocol error: expected \\'$\\', got \\'G\\'");
    assert!(client.is_ended());
    // Deep nesting is no request, and ends nothing but its connection.
    let mut client = server.client();
    client.stream.write_all(&b"*1\r\n".repeat(100_000)).expect("sent");
    assert_eq!(shown(&client.receive()), "-ERR Protocol error: expected \\'$\\', got \\'*\\'");
    assert_eq!(server.client().line("PING"), "+PONG");
}

/// What is no request ends the connection also where requests before it have to wait: nothing
/// behind it is executed.
#[test]
fn nothing_behind_nonsense_is_executed() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.stream.write_all(b"PING\r\nBLPOP l 0\r\n*x\r\nSET behind 1\r\n").expect("sent");
    assert_eq!(shown(&client.receive()), "+PONG");
    until(&mut other, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    assert_eq!(other.line("RPUSH l e"), ":1");
    assert_eq!(shown(&client.receive()), "*2 $1 l $1 e");
    assert_eq!(shown(&client.receive()), "-ERR Protocol error: invalid multibulk length");
    assert!(client.is_ended());
    assert_eq!(other.line("EXISTS behind"), ":0");
}

/// What a page in a browser can send is not executed.
#[test]
fn requests_of_http_end_the_connection() {
    let server = TestServer::start();
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n", "MULTI\r\npost x\r\n"] {
        let mut client = server.client();
        client.stream.write_all(format!("{head}SET pwned 1\r\nEXEC\r\n").as_bytes()).expect("sent");
        let mut answer = Vec::new();
        let _ = client.stream.read_to_end(&mut answer);
        assert!(!shown(&answer).contains("unknown command \\'POST"), "{head}");
        assert_eq!(server.client().line("EXISTS pwned"), ":0", "{head}");
    }
}

/// What is wrong whatever the state is refused before it is queued.
#[test]
fn wrong_subcommands_are_not_queued() {
    let server = TestServer::start();
    let mut client = server.client();
    for (line, why) in [
        ("CLIENT FOO", "-ERR unknown subcommand \\'FOO\\'. Try CLIENT HELP."),
        ("CONFIG GET", "-ERR wrong number of arguments for \\'config|get\\' command"),
        ("OBJECT HELP2", "-ERR unknown subcommand \\'HELP2\\'. Try OBJECT HELP."),
        ("COMMAND COUNT2", "-ERR unknown subcommand \\'COUNT2\\'. Try COMMAND HELP."),
        ("OBJECT ENCODING", "-ERR wrong number of arguments for \\'object|encoding\\' command"),
        ("MEMORY USAGE", "-ERR wrong number of arguments for \\'memory|usage\\' command"),
        ("FUNCTION NONE", "-ERR unknown subcommand \\'NONE\\'. Try FUNCTION HELP."),
        ("DEBUG SLEEP 0", "-ERR DEBUG command not allowed. Start the server with --enable-debug-command to allow it."),
    ] {
        assert_eq!(client.line("MULTI"), "+OK");
        assert_eq!(client.line(line), why);
        assert_eq!(client.line("EXEC"), "-EXECABORT Transaction discarded because of previous errors.", "{line}");
    }
    assert_eq!(client.line("MULTI"), "+OK");
    assert_eq!(client.line("CLIENT ID"), "+QUEUED");
    assert!(client.line("EXEC").starts_with("*1 :"));
}

#[test]
fn blocked_clients_are_served_in_their_order() {
    let server = TestServer::start();
    let (mut first, mut second, mut pusher) = (server.client(), server.client(), server.client());
    first.send(&["BLPOP", "l", "0"]);
    until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    second.send(&["BLPOP", "other", "l", "0"]);
    until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:2"));
    assert_eq!(pusher.line("RPUSH l a b c"), ":3");
    assert_eq!(shown(&first.receive()), "*2 $1 l $1 a");
    assert_eq!(shown(&second.receive()), "*2 $1 l $1 b");
    assert_eq!(pusher.line("LRANGE l 0 -1"), "*1 $1 c");
}

#[test]
fn a_chain_of_blocked_clients_is_served() {
    let server = TestServer::start();
    let (mut mover, mut popper, mut scorer, mut pusher) =
        (server.client(), server.client(), server.client(), server.client());
    mover.send(&["BLMOVE", "a", "b", "LEFT", "RIGHT", "0"]);
    popper.send(&["BLPOP", "b", "0"]);
    scorer.send(&["BZPOPMAX", "z", "0"]);
    until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:3"));
    // A target of another type is an error of the one that waits.
    let mut refused = server.client();
    pusher.line("SET text x");
    refused.send(&["BLMOVE", "from", "text", "LEFT", "LEFT", "0"]);
    until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:4"));
    assert_eq!(pusher.line("LPUSH from v"), ":1");
    assert!(shown(&refused.receive()).starts_with("-WRONGTYPE"));
    assert_eq!(pusher.line("LPOP from"), "$1 v");
    // A value of another type is none that is waited for.
    pusher.line("SADD z x");
    pusher.line("DEL z");
    assert_eq!(pusher.line("LPUSH a v"), ":1");
    assert_eq!(shown(&mover.receive()), "$1 v");
    assert_eq!(shown(&popper.receive()), "*2 $1 b $1 v");
    for line in ["MULTI", "ZADD z 1 m", "ZADD z 2 n", "EXEC"] {
        pusher.line(line);
    }
    assert_eq!(shown(&scorer.receive()), "*3 $1 z $1 n $1 2");
    assert_eq!(pusher.line("EXISTS a b"), ":0");
}

/// Only the key that was filled counts, not what is at the others by then.
#[test]
fn one_of_many_keys_wakes() {
    let server = TestServer::start();
    let mut pusher = server.client();
    for (waits, push, reply) in [
        ("BLPOP other key 0", "RPUSH key v", "*2 $3 key $1 v"),
        ("BRPOP other key 0", "RPUSH key v", "*2 $3 key $1 v"),
        ("BLMPOP 0 2 other key LEFT COUNT 2", "RPUSH key v w", "*2 $3 key *2 $1 v $1 w"),
        ("BZPOPMIN other key 0", "ZADD key 1 v", "*3 $3 key $1 v $1 1"),
        ("BZMPOP 0 2 other key MAX", "ZADD key 1 v", "*2 $3 key *1 *2 $1 v $1 1"),
    ] {
        let mut waiting = server.client();
        waiting.send(&words(waits));
        until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:1"));
        pusher.line("SET other text");
        pusher.line(push);
        assert_eq!(shown(&waiting.receive()), reply, "{waits}");
        assert_eq!(pusher.line("DEL other key"), ":1", "{waits}");
    }
}

/// What comes with a swap wakes those who wait for it.
#[test]
fn a_swap_wakes() {
    let server = TestServer::start();
    let (mut waiting, mut swapper) = (server.client(), server.client());
    for line in ["SELECT 1", "RPUSH l v", "SELECT 0"] {
        swapper.line(line);
    }
    waiting.send(&["BLPOP", "l", "0"]);
    until(&mut swapper, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    assert_eq!(swapper.line("SWAPDB 0 1"), "+OK");
    assert_eq!(shown(&waiting.receive()), "*2 $1 l $1 v");
    assert_eq!(swapper.line("EXISTS l"), ":0");
}

#[test]
fn a_client_that_goes_takes_nothing() {
    let server = TestServer::start();
    let (mut gone, mut other) = (server.client(), server.client());
    gone.send(&["BLPOP", "l", "0"]);
    until(&mut other, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    drop(gone);
    until(&mut other, "INFO clients", |reply| reply.contains("blocked_clients:0"));
    assert_eq!(other.line("RPUSH l a"), ":1");
    assert_eq!(other.line("LLEN l"), ":1");
}

#[test]
fn a_wait_is_ended_by_another_client() {
    let server = TestServer::start();
    let (mut waiting, mut other) = (server.client(), server.client());
    let id = waiting.line("CLIENT ID")[1..].to_string();
    for (reason, reply) in
        [("", "*-1"), (" TIMEOUT", "*-1"), (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    {
        waiting.send(&["BLPOP", "l", "0"]);
        until(&mut other, "INFO clients", |reply| reply.contains("blocked_clients:1"));
        assert_eq!(other.line(&format!("CLIENT UNBLOCK {id}{reason}")), ":1");
        assert_eq!(shown(&waiting.receive()), reply);
        assert_eq!(other.line(&format!("CLIENT UNBLOCK {id}{reason}")), ":0");
    }
    assert_eq!(waiting.line("PING"), "+PONG");
}

/// What was pipelined ahead of a command that waits is answered at once.
#[test]
fn replies_before_a_blocked_command_are_sent() {
    let server = TestServer::start();
    let (mut client, mut pusher) = (server.client(), server.client());
    client.send(&["SET", "a", "1"]);
    client.send(&["BLPOP", "l", "0"]);
    client.send(&["GET", "a"]);
    assert_eq!(shown(&client.receive()), "+OK");
    until(&mut pusher, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    pusher.line("RPUSH l x");
    assert_eq!(shown(&client.receive()), "*2 $1 l $1 x");
    assert_eq!(shown(&client.receive()), "$1 1");
}

#[test]
fn watched_keys() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    for (touch, reply) in [
        ("SET a 2", "*-1"),
        ("GET a", "*1 +OK"),
        ("DEL a", "*-1"),
        ("FLUSHALL", "*-1"),
        ("SWAPDB 0 1", "*-1"),
        ("APPEND b x", "*1 +OK"),
    ] {
        client.line("SET a 1");
        client.line("WATCH a");
        other.line(touch);
        client.line("MULTI");
        client.line("SET c 1");
        assert_eq!(client.line("EXEC"), reply, "{touch}");
        client.line("SELECT 0");
    }
    // A key that expires meanwhile counts as written.
    client.line("SET a 1 PX 1");
    client.line("SET a 1 PX 30");
    client.line("WATCH a");
    until(&mut other, "EXISTS a", |reply| reply == ":0");
    client.line("MULTI");
    client.line("PING");
    assert_eq!(client.line("EXEC"), "*-1");
}

#[test]
fn increments_of_many_clients_add_up() {
    increments_add_up(1);
}

#[test]
fn increments_add_up_with_more_threads() {
    increments_add_up(3);
}

fn increments_add_up(io_threads: usize) {
    const CLIENTS: usize = 8;
    const EACH: usize = 200;
    let server = TestServer::with(|config| {
        config.sync = SyncPolicy::Always;
        config.io_threads = io_threads;
    });
    let address = server.server().address().expect("it listens");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for _ in 0..EACH {
                    client.line("INCR n");
                    // Read, and written only if nobody else has.
                    while {
                        client.line("WATCH m");
                        let value: usize =
                            client.line("GET m").split(' ').nth(1).map_or(0, |text| text.parse().unwrap_or(0));
                        client.line("MULTI");
                        client.line(&format!("SET m {}", value + 1));
                        client.line("EXEC") == "*-1"
                    } {}
                }
            });
        }
    });
    let total = (CLIENTS * EACH).to_string();
    let expected = format!("*2 ${0} {total} ${0} {total}", total.len());
    assert_eq!(server.client().line("MGET n m"), expected);
}

#[test]
fn a_scan_yields_what_stays_once() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..3000 {
        client.send(&["SET", &format!("key:{number}"), "v"]);
        client.send(&["HSET", "hash", &format!("field:{number}"), "v"]);
    }
    for _ in 0..6000 {
        client.receive();
    }
    for (first, name) in [("SCAN", "key:"), ("HSCAN hash", "field:")] {
        let (mut found, mut cursor, mut calls) = (Vec::new(), "0".to_string(), 0);
        loop {
            let reply = client.line(&format!("{first} {cursor} COUNT 100 MATCH {name}*"));
            let words: Vec<&str> = reply.split(' ').collect();
            cursor = words[2].to_string();
            found.extend(words.iter().filter(|word| word.starts_with(name)).map(|word| word.to_string()));
            // Others come and go.
            client.line(&format!("SET other:{calls} x"));
            client.line(&format!("DEL other:{}", calls / 2));
            calls += 1;
            if cursor == "0" {
                break;
            }
        }
        found.sort();
        let all = found.len();
        found.dedup();
        assert_eq!((all, found.len()), (3000, 3000), "{first}");
        assert!(calls > 20, "{first}: {calls} calls");
    }
    assert_eq!(client.line("DEL hash"), ":1");
    assert_eq!(client.line("HLEN hash"), ":0");
}

/// The number of members drawn is the client's to choose, and not the memory of the server.
#[test]
fn draws_are_bounded() {
    let server = TestServer::start();
    let mut client = server.client();
    for line in ["SADD s a b c", "HSET h a 1 b 2", "ZADD z 1 a 2 b"] {
        client.line(line);
    }
    for line in ["SRANDMEMBER s", "HRANDFIELD h", "ZRANDMEMBER z"] {
        for count in ["-2000000", "-134217728", "-4000000000"] {
            assert!(client.line(&format!("{line} {count}")).starts_with("-ERR the reply would be"), "{line} {count}");
        }
        assert!(client.line(&format!("{line} -1000")).starts_with("*1000 $1 "), "{line}");
    }
    client.call(&[&b"SADD"[..], b"long", &vec![b'm'; 1 << 19]]);
    assert!(client.line("SRANDMEMBER long -1000").starts_with("-ERR the reply would be"));
    // A collection that is large enough not to be walked over for a few.
    for number in 0..5000 {
        client.send(&["SADD", "large", &number.to_string()]);
    }
    for _ in 0..5000 {
        client.receive();
    }
    for count in ["20", "-20", "1000", "-1000", "4999", "-20000"] {
        let reply = client.line(&format!("SRANDMEMBER large {count}"));
        let mut found = sorted(&reply);
        assert_eq!(found.len(), count.trim_start_matches('-').parse::<usize>().expect("a number"), "{count}");
        let drawn = found.len();
        found.dedup();
        assert!(count.starts_with('-') || found.len() == drawn, "{count}");
        assert!(found.len() > 10, "{count}");
    }
}

/// What is left of an expired collection is removed, and never seen again.
#[test]
fn expired_collections_are_removed() {
    let mut server = TestServer::with(|config| config.metrics = Some(SocketAddr::from((LOCAL, 0))));
    let address = server.server().metrics_address().expect("it listens");
    let mut client = server.client();
    for number in 0..200 {
        client.line(&format!("ZADD z {number} m{number}"));
    }
    // One that was deleted, one that was kept and one that was moved are no leftovers. On a slow
    // machine one may have expired before it is deleted or kept; then there is another one.
    let mut expired = 2;
    for (fill, expire, end) in [("SADD s a", "PEXPIRE s 20", "DEL s"), ("RPUSH l a", "PEXPIRE l 20", "PERSIST l")] {
        let mut is_in_time = || {
            client.line(fill);
            client.line(expire);
            client.line(end) == ":1"
        };
        while !is_in_time() {
            expired += 1;
        }
    }
    client.line("HSET h a b");
    client.line("PEXPIRE h 20");
    client.line("RENAME h renamed");
    client.line("PEXPIRE z 20");
    until(&mut client, "EXISTS z renamed", |reply| reply == ":0");
    client.line("ZADD z 1 new");
    assert_eq!(client.line("ZRANGE z 0 -1"), "*1 $3 new");
    let total = format!("esker_server_expired_collections_total {expired}\n");
    wait_until(|| http(address, "/metrics").contains(&total));
    assert_eq!(client.line("LRANGE l 0 -1"), "*1 $1 a");
    assert_eq!(client.line("DEL z l"), ":2");
    server.stop();
    let db = esker::Db::open(&server.config.directory, esker::Options::default()).expect("a database");
    let elements = db.existing_keyspace("0.elements").expect("a keyspace");
    assert_eq!(elements.count(..).expect("a count"), 0);
    let notes = db.existing_keyspace("system").expect("a keyspace").prefix("x").count();
    assert_eq!(notes, 0);
}

#[test]
fn large_values_and_keys() {
    let server = TestServer::start();
    let mut client = server.client();
    let value = vec![7u8; 5 << 20];
    assert_eq!(client.call(&[&b"SET"[..], b"v", &value]), "+OK");
    client.send(&["GET", "v"]);
    assert!(client.receive().windows(value.len()).any(|window| window == &value[..]));
    let longest = vec![b'k'; (1 << 20) - 6];
    assert_eq!(client.call(&[&b"SET"[..], &longest, b"v"]), "+OK");
    assert_eq!(client.call(&[&b"GET"[..], &longest]), "$1 v");
    let longer = vec![b'k'; (1 << 20) - 5];
    assert_eq!(client.call(&[&b"SET"[..], &longer, b"v"]), "-ERR key is longer than 1048570 bytes");
    assert!(
        client
            .call(&[&b"SADD"[..], b"s", &longer, &vec![b'm'; 1 << 20]])
            .starts_with("-ERR a field or member is longer")
    );
    assert_eq!(client.line("EXISTS s"), ":0");
}

#[test]
fn passwords() {
    let server = TestServer::with(|config| config.password = Some("secret".into()));
    let mut client = server.client();
    assert_eq!(client.line("GET a"), "-NOAUTH Authentication required.");
    assert!(client.line("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(client.line("AUTH wrong").starts_with("-WRONGPASS"));
    assert!(client.line("AUTH other secret").starts_with("-WRONGPASS"));
    assert_eq!(client.line("AUTH secret"), "+OK");
    assert_eq!(client.line("GET a"), "$-1");
    assert_eq!(client.line("RESET"), "+RESET");
    assert_eq!(client.line("GET a"), "-NOAUTH Authentication required.");
    assert_eq!(client.line("AUTH default secret"), "+OK");
    assert!(client.line("CONFIG SET requirepass \\xff\\xfe").starts_with("-ERR CONFIG SET failed"));
    assert_eq!(client.line("CONFIG GET requirepass"), "*2 $11 requirepass $6 secret");
    assert_eq!(client.line("CONFIG SET requirepass \"\""), "+OK");
    assert_eq!(server.client().line("GET a"), "$-1");
    let mut client = server.client();
    client.line("CONFIG SET requirepass secret");
    let mut stranger = server.client();
    stranger.stream.write_all(b"*1000\r\n").expect("sent");
    assert_eq!(shown(&stranger.receive()), "-ERR Protocol error: unauthenticated multibulk length");
}

#[test]
fn limits_of_clients_and_requests() {
    let server = TestServer::with(|config| config.max_clients = 2);
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!([first.line("PING"), second.line("PING")], ["+PONG", "+PONG"]);
    let mut third = server.client();
    assert_eq!(shown(&third.receive()), "-ERR max number of clients reached");
    drop(second);
    until(&mut first, "CLIENT LIST", |reply| reply.matches("id=").count() == 1);
    assert_eq!(server.client().line("PING"), "+PONG");
    assert_eq!(first.line("CONFIG SET proto-max-bulk-len 1048576"), "+OK");
    assert_eq!(
        first.call(&[&b"SET"[..], b"a", &vec![b'x'; (1 << 20) + 1]]),
        "-ERR Protocol error: invalid bulk length"
    );
}

#[test]
fn transactions_beyond_the_buffer_end_the_connection() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.line("CONFIG SET client-query-buffer-limit 1048576"), "+OK");
    assert_eq!(client.line("MULTI"), "+OK");
    let value = vec![b'x'; 100_000];
    for _ in 0..10 {
        assert_eq!(client.call(&[&b"SET"[..], b"a", &value]), "+QUEUED");
    }
    client.send(&[&b"SET"[..], b"a", &value]);
    assert!(client.is_ended());
    assert_eq!(other.line("EXISTS a"), ":0");
    // Many small ones take memory too.
    let mut client = server.client();
    client.send(&["MULTI"]);
    let begun = (0..20_000).take_while(|_| client.stream.write_all(b"PING\r\n").is_ok()).count();
    let mut replies = Vec::new();
    let _ = client.stream.read_to_end(&mut replies);
    let queued = replies.windows(7).filter(|window| window == b"+QUEUED").count();
    assert!(queued > 1000 && queued < begun, "{queued} of {begun}");
}

#[test]
fn requests_beyond_the_buffer_are_refused() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.line("CONFIG SET client-query-buffer-limit 1048576"), "+OK");
    let mut request = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3000000\r\n".to_vec();
    request.resize(3_000_000, b'x');
    // The server may have ended the connection before all is sent.
    let _ = client.stream.write_all(&request);
    let mut answer = Vec::new();
    let _ = client.stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"-ERR Protocol error: the request is longer"));
    assert_eq!(other.line("EXISTS a"), ":0");
    // Many small requests are no long one.
    for number in 0..20_000 {
        other.send(&["SET", "b", &number.to_string()]);
    }
    for _ in 0..20_000 {
        assert_eq!(other.receive(), b"+OK\r\n");
    }
}

#[test]
fn clients_are_named_listed_and_ended() {
    let server = TestServer::start();
    let (mut first, mut second) = (server.client(), server.client());
    let id = first.line("CLIENT ID");
    assert_eq!(second.line("CLIENT SETNAME other"), "+OK");
    assert_eq!(second.line("CLIENT SETINFO LIB-NAME tests"), "+OK");
    let list = first.line("CLIENT LIST");
    assert!(list.contains("name=other") && list.contains("lib-name=tests"), "{list}");
    assert!(first.line("CLIENT INFO").contains(&format!("id={} ", &id[1..])));
    first.send(&["CLIENT", "REPLY", "OFF"]);
    first.send(&["PING"]);
    assert_eq!(first.line("CLIENT REPLY ON"), "+OK");
    first.send(&["CLIENT", "REPLY", "SKIP"]);
    first.send(&["PING"]);
    assert_eq!(first.line("ECHO x"), "$1 x");
    assert_eq!(first.line("CLIENT KILL TYPE normal"), ":1");
    assert!(second.is_ended());
    assert_eq!(first.line("CLIENT KILL TYPE normal SKIPME no"), ":1");
    assert!(first.is_ended());
}

#[test]
fn information() {
    let server = TestServer::start();
    let mut client = server.client();
    client.line("SET a 1");
    client.line("SET b 1 EX 1000");
    let info = client.line("INFO");
    for part in ["redis_version:7.0.15", "# Clients", "role:master", "db0:keys=2,expires=1"] {
        assert!(info.contains(part), "{part} in {info}");
    }
    assert!(!client.line("INFO server").contains("# Clients"));
    assert_eq!(client.line("ROLE"), "*3 $6 master :0 *0");
    assert_eq!([client.line("SAVE"), client.line("BGSAVE")], ["+OK", "+Background saving started"]);
    assert!(client.line("LASTSAVE")[1..].parse::<u64>().is_ok_and(|seconds| seconds > 1_000_000_000));
    assert_eq!(client.line("CONFIG GET appendfsync maxcl*"), "*4 $11 appendfsync $8 everysec $10 maxclients $5 10000");
    assert_eq!(client.line("CONFIG SET appendfsync always maxclients 7"), "+OK");
    assert!(client.line("CONFIG SET appendfsync always maxclients x").starts_with("-ERR CONFIG SET failed"));
    // No system has so many descriptors.
    #[cfg(target_os = "linux")]
    assert!(client.line("CONFIG SET maxclients 9000000000000000000").starts_with("-ERR CONFIG SET failed"));
    assert_eq!(client.line("CONFIG GET maxclients"), "*2 $10 maxclients $1 7");
}

/// The value of a field of a section of INFO, as a number.
fn field(client: &mut Client, section: &str, name: &str) -> u64 {
    let info = client.line(&format!("INFO {section}"));
    let value = info.split(' ').find_map(|line| line.strip_prefix(&format!("{name}:")));
    value.unwrap_or_else(|| panic!("{name} in {info}")).parse().expect(name)
}

#[test]
fn information_about_commands() {
    let server = TestServer::start();
    let mut client = server.client();
    for line in ["SET a 1", "SADD a x", "GET a", "GET b", "MGET a b a", "EXISTS b", "CONFIG GET x*", "GET"] {
        client.line(line);
    }
    let hits = field(&mut client, "stats", "keyspace_hits");
    assert_eq!((hits, field(&mut client, "stats", "keyspace_misses")), (3, 3));
    let info = client.line("INFO commandstats errorstats");
    for (command, calls, rejected, failed) in
        [("get", 2, 1, 0), ("sadd", 1, 0, 1), ("config|get", 1, 0, 0), ("info", 2, 0, 0)]
    {
        let line = info.split(' ').find(|line| line.starts_with(&format!("cmdstat_{command}:"))).expect(command);
        assert!(line.contains(&format!(":calls={calls},usec=")), "{line}");
        assert!(line.ends_with(&format!(",rejected_calls={rejected},failed_calls={failed}")), "{line}");
    }
    assert!(info.contains("errorstat_WRONGTYPE:count=1") && info.contains("errorstat_ERR:count=1"), "{info}");
    assert_eq!(client.line("CONFIG RESETSTAT"), "+OK");
    assert_eq!(field(&mut client, "stats", "keyspace_hits"), 0);
    assert!(!client.line("INFO commandstats").contains("cmdstat_get:"));
    let all = client.line("INFO everything");
    for part in ["# CPU", "# Modules", "# Latencystats", "master_replid:", "executable:", "used_memory_human:"] {
        assert!(all.contains(part), "{part} in {all}");
    }
    assert!(!client.line("INFO").contains("# Commandstats"));
}

#[cfg(target_os = "linux")]
#[test]
fn information_about_the_process() {
    let server = TestServer::start();
    let mut client = server.client();
    assert!(field(&mut client, "memory", "used_memory_rss") > 1 << 20);
    assert!(client.line("INFO cpu").contains("used_cpu_user:"));
}

/// Writes wait for the end of a pause, in their order; reads do not, nor does what is refused.
#[test]
fn writes_are_paused() {
    let server = TestServer::start();
    let (mut client, mut transaction) = (server.client(), server.client());
    transaction.line("MULTI");
    transaction.line("RPUSH l 0");
    assert_eq!(client.line("CLIENT PAUSE 100000000 WRITE"), "+OK");
    assert_eq!([client.line("PING"), client.line("EXISTS l")], ["+PONG", ":0"]);
    assert_eq!(client.line("SET l"), "-ERR wrong number of arguments for \\'set\\' command");
    transaction.send(&["EXEC"]);
    until_blocked(&mut client, 1);
    let mut writers = [server.client(), server.client()];
    for (number, writer) in writers.iter_mut().enumerate() {
        // What comes before the write has its reply.
        writer.send(&["ECHO", "x"]);
        writer.send(&["RPUSH", "l", &number.to_string()]);
        assert_eq!(writer.receive(), b"$1\r\nx\r\n");
        until_blocked(&mut client, 2 + number as u64);
    }
    let held = client.line("CLIENT LIST").split("id=").filter(|line| line.contains("flags=b")).count();
    assert_eq!(held, 3);
    // Not even CLIENT UNBLOCK ends the wait.
    let id = client
        .line("CLIENT LIST")
        .split("id=")
        .find(|line| line.contains("flags=b"))
        .map(|line| line.split(' ').next().expect("a number").to_string());
    assert_eq!(client.line(&format!("CLIENT UNBLOCK {}", id.expect("a client"))), ":0");
    assert_eq!([client.line("EXISTS l"), client.line("CLIENT UNPAUSE")], [":0", "+OK"]);
    assert_eq!(transaction.receive(), b"*1\r\n:1\r\n");
    assert_eq!(writers.map(|mut writer| writer.receive()), [b":2\r\n".to_vec(), b":3\r\n".to_vec()]);
    assert_eq!(client.line("LRANGE l 0 -1"), "*3 $1 0 $1 0 $1 1");
}

/// Waits until so many clients are blocked.
fn until_blocked(client: &mut Client, count: u64) {
    support::wait_until(|| field(client, "clients", "blocked_clients") == count);
}

/// A pause of all commands ends by itself.
#[test]
fn a_pause_ends() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.line("CLIENT PAUSE 100"), "+OK");
    assert_eq!([client.line("PING"), client.line("SET a 1")], ["+PONG", "+OK"]);
}

/// What a client that goes has sent within a pause is not executed, and a server stops within one.
#[test]
fn a_paused_client_goes() {
    let mut server = TestServer::start();
    let mut client = server.client();
    client.line("CLIENT PAUSE 100000000 WRITE");
    let mut gone = server.client();
    gone.send(&["SET", "gone", "1"]);
    until_blocked(&mut client, 1);
    drop(gone);
    until_blocked(&mut client, 0);
    let mut staying = server.client();
    staying.send(&["SET", "staying", "1"]);
    until_blocked(&mut client, 1);
    assert_eq!(client.line("CLIENT UNPAUSE"), "+OK");
    assert_eq!(staying.receive(), b"+OK\r\n");
    assert_eq!(client.line("EXISTS gone staying"), ":1");
    client.line("CLIENT PAUSE 100000000 WRITE");
    staying.send(&["SET", "late", "1"]);
    until_blocked(&mut client, 1);
    // Its reply would be taken for that of the write.
    staying.send(&["ECHO", "x"]);
    server.stop();
    assert!(staying.is_ended());
}

/// CLIENT LIST names the subcommand, and what a connection has in memory.
#[test]
fn clients_are_described() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    let list = client.line("CLIENT LIST");
    assert!(list.contains(" qbuf=26 ") && list.contains(" cmd=client|list "), "{list}");
    assert!(!list.contains(" tot-mem=0 ") && !list.contains(" fd=0 "), "{list}");
    assert!(client.line("CLIENT INFO").contains(" cmd=client|info "));
    other.line("MULTI");
    other.line("SET a 1");
    let list = client.line("CLIENT LIST");
    let queued = list.split("id=").find(|line| line.contains(" multi=1 ")).expect("a transaction");
    assert!(queued.contains(" qbuf=0 ") && !queued.contains(" multi-mem=0 "), "{queued}");
}

/// DEBUG SLEEP stops all clients: it is for those who test.
#[test]
fn debug_is_allowed_on_request() {
    let server = TestServer::start();
    assert!(server.client().line("DEBUG SLEEP 1000").starts_with("-ERR DEBUG command not allowed"));
    let server = TestServer::with(|config| config.allows_debug = true);
    let mut client = server.client();
    assert_eq!(
        [client.line("DEBUG SLEEP 0"), client.line("DEBUG SLEEP x")],
        ["+OK", "-ERR value is not a valid float"]
    );
    assert_eq!(client.line("DEBUG ERROR CODE\\x20text\\x0d\\x0a"), "-CODE text");
    for line in ["SET-ACTIVE-EXPIRE 0", "QUICKLIST-PACKED-THRESHOLD 1b", "RELOAD", "LOADAOF"] {
        assert_eq!(client.line(&format!("DEBUG {line}")), "+OK");
    }
    assert_eq!(client.line("DEBUG NOSUCH"), "-ERR unknown subcommand \\'NOSUCH\\'. Try DEBUG HELP.");
}

/// COMMAND DOCS has what redis-cli shows for `help`.
#[test]
fn commands_are_documented() {
    let server = TestServer::start();
    let docs = server.client().line("COMMAND DOCS set object");
    for part in ["summary", "since $5 1.0.0", "group $6 string", "complexity $4 O(1)", "token $2 EX", "object|encoding"]
    {
        assert!(docs.contains(part), "{part} in {docs}");
    }
}

/// Databases that nobody has used take nothing, also after a FLUSHALL.
#[test]
fn flushing_creates_nothing() {
    let mut server = TestServer::start();
    let mut client = server.client();
    for line in ["SET a 1", "FLUSHALL", "SELECT 3", "SET b 1", "FLUSHALL"] {
        assert_eq!(client.line(line), "+OK");
        assert_eq!(client.line("DBSIZE"), if line.starts_with("SET") { ":1" } else { ":0" }, "{line}");
    }
    server.stop();
    let db = esker::Db::open(&server.config.directory, esker::Options::default()).expect("a database");
    let mut names = db.keyspaces();
    names.sort();
    assert_eq!(names, ["0", "0.elements", "3", "3.elements", "system"]);
}

/// INFO counts few keys, and estimates many.
#[test]
fn many_keys_are_estimated() {
    const KEYS: u64 = 24_000;
    let server = TestServer::start();
    let mut client = server.client();
    for first in (0..KEYS).step_by(1000) {
        for key in first..first + 1000 {
            client.send(&["SET", &key.to_string(), "v", "EX", "1000"][..if key % 2 == 0 { 5 } else { 3 }]);
        }
        for _ in 0..1000 {
            client.receive();
        }
    }
    assert_eq!(client.line("DBSIZE"), format!(":{KEYS}"));
    let info = client.line("INFO keyspace");
    let number = |name: &str| -> u64 {
        let (_, rest) = info.split_once(name).expect("a field");
        rest.split(',').next().and_then(|digits| digits.parse().ok()).expect("a number")
    };
    let (keys, expiring) = (number("keys="), number("expires="));
    assert!((KEYS / 2..KEYS * 2).contains(&keys), "{info}");
    assert!((keys * 9 / 20..keys * 11 / 20).contains(&expiring), "{info}");
}

fn http(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

#[test]
fn metrics_and_health() {
    let server = TestServer::with(|config| config.metrics = Some(SocketAddr::from((LOCAL, 0))));
    let address = server.server().metrics_address().expect("it listens");
    let mut client = server.client();
    client.line("SET a 1");
    client.line("NOSUCH");
    let metrics = http(address, "/metrics");
    for line in
        ["esker_server_commands_total 2", "esker_server_error_replies_total 1", "esker_server_connected_clients 1"]
    {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    assert!(metrics.contains("# TYPE esker_cache_hits_total counter"));
    assert!(http(address, "/health/live").starts_with("HTTP/1.1 200 "));
    assert!(http(address, "/health/ready").ends_with("ready\n"));
    assert!(http(address, "/nosuch").starts_with("HTTP/1.1 404 "));
}

#[test]
fn shutdown_finishes_what_was_begun() {
    let mut server = TestServer::start();
    let (mut client, mut waiting) = (server.client(), server.client());
    waiting.send(&["BLPOP", "l", "0"]);
    until(&mut client, "INFO clients", |reply| reply.contains("blocked_clients:1"));
    for number in 0..1000 {
        client.send(&["RPUSH", "n", &number.to_string()]);
    }
    client.send(&["SHUTDOWN"]);
    for number in 1..=1000 {
        assert_eq!(shown(&client.receive()), format!(":{number}"));
    }
    assert!(client.is_ended());
    server.server().wait().expect("it was told to end");
    server.restart();
    assert_eq!(server.client().line("LLEN n"), ":1000");
}

#[test]
fn a_directory_is_served_once() {
    let server = TestServer::start();
    let mut config = server.config.clone();
    config.listen = Some(SocketAddr::from((LOCAL, 0)));
    let error = Server::start(config).map(|_| ()).expect_err("it is locked");
    assert!(error.to_string().contains("lock"), "{error}");
}

/// A certificate in files, and as the client has it.
struct Identity {
    files: TlsFiles,
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
    _directory: tempfile::TempDir,
}

impl Identity {
    fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
        let directory = tempfile::tempdir().expect("a directory");
        let (certificate, key) = (directory.path().join("certificate.pem"), directory.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        Identity { files: TlsFiles { certificate, key, client_authority: None }, made, _directory: directory }
    }

    fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.made.cert.der().to_vec())
    }
}

/// A connection with TLS to a server with the one certificate, by a client with the other one.
fn tls_client(
    server: &TestServer,
    of: &Identity,
    by: Option<&Identity>,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(of.certificate()).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match by {
        None => builder.with_no_client_auth(),
        Some(by) => {
            let key = PrivateKeyDer::try_from(by.made.signing_key.serialize_der()).expect("a key");
            builder.with_client_auth_cert(vec![by.certificate()], key).expect("an identity")
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect(server.server().tls_address().expect("it listens")).expect("it listens");
    Client::over(StreamOwned::new(connection, stream))
}

#[test]
fn tls() {
    let identity = Identity::new();
    let server = TestServer::with(|config| config.tls = Some((SocketAddr::from((LOCAL, 0)), identity.files.clone())));
    let mut client = tls_client(&server, &identity, None);
    assert_eq!(client.line("SET a 1"), "+OK");
    let value = "x".repeat(1 << 20);
    assert_eq!(client.call(&["SET", "big", &value]), "+OK");
    assert_eq!(client.line("STRLEN big"), ":1048576");
    assert_eq!(server.client().line("GET a"), "$1 1");
    // Who speaks no TLS gets none.
    let mut stream = TcpStream::connect(server.server().tls_address().expect("it listens")).expect("it listens");
    stream.write_all(b"PING\r\n").expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+PONG"));
}

#[test]
fn tls_with_certificates_of_clients() {
    let (identity, known, stranger) = (Identity::new(), Identity::new(), Identity::new());
    let server = TestServer::with(|config| {
        let mut files = identity.files.clone();
        files.client_authority = Some(known.files.certificate.clone());
        config.tls = Some((SocketAddr::from((LOCAL, 0)), files));
    });
    assert_eq!(tls_client(&server, &identity, Some(&known)).line("PING"), "+PONG");
    for by in [None, Some(&stranger)] {
        let mut client = tls_client(&server, &identity, by);
        let _ = client.stream.write_all(b"PING\r\n");
        assert!(client.is_ended());
    }
}

/// Replies that nobody takes do not pile up: clients wait, and who holds most goes.
#[test]
fn replies_that_are_not_taken_are_limited() {
    const VALUE_BYTES: usize = 32 << 20;
    let server = TestServer::with(|config| config.client_memory_bytes = 48 << 20);
    let (mut first, mut second, mut other) = (server.client(), server.client(), server.client());
    assert_eq!(other.call(&[&b"SET"[..], b"big", &vec![b'x'; VALUE_BYTES]]), "+OK");
    first.send(&["GET", "big"]);
    until(&mut other, "INFO memory", |reply| !reply.contains("mem_clients_normal:0"));
    assert!(other.line("INFO stats").contains("evicted_clients:0"));
    second.send(&["GET", "big"]);
    until(&mut other, "INFO stats", |reply| reply.contains("evicted_clients:1"));
    // The other one gets its reply, whichever it is.
    let mut whole = 0;
    for client in [&mut first, &mut second] {
        let mut reply = vec![0; VALUE_BYTES];
        whole += usize::from(client.stream.read_exact(&mut reply).is_ok());
    }
    assert_eq!(whole, 1);
    until(&mut other, "INFO memory", |reply| reply.contains("mem_clients_normal:0"));
}

/// CLIENT NO-EVICT puts a connection last, and does not let it stop the server. Seen: all others
/// were disconnected each second, and CLIENT KILL never executed.
#[test]
fn a_connection_that_is_to_stay_goes_where_it_alone_holds_too_much() {
    const VALUE_BYTES: usize = 32 << 20;
    let server = TestServer::with(|config| config.client_memory_bytes = 16 << 20);
    let (mut kept, mut other) = (server.client(), server.client());
    assert_eq!(other.call(&[&b"SETRANGE"[..], b"big", format!("{VALUE_BYTES}").as_bytes(), b"x"]), ":33554433");
    assert_eq!(kept.line("CLIENT NO-EVICT ON"), "+OK");
    kept.send(&["GET", "big"]);
    until(&mut other, "INFO stats", |reply| reply.contains("evicted_clients:1"));
    let mut reply = Vec::new();
    let _ = kept.stream.read_to_end(&mut reply);
    assert!(reply.len() < VALUE_BYTES);
}

/// Seen: empty requests counted as memory that is held, until nobody was read any more.
#[test]
fn empty_requests_hold_no_memory() {
    let server = TestServer::with(|config| config.client_memory_bytes = 1 << 20);
    let (mut client, mut other) = (server.client(), server.client());
    let empty = b"\r\n*0\r\n".repeat(500_000);
    client.stream.write_all(&empty).expect("the server reads");
    assert_eq!([client.line("PING"), other.line("PING")], ["+PONG", "+PONG"]);
    assert!(other.line("INFO stats").contains("evicted_clients:0"));
}

/// Requests that do not end do not pile up either.
#[test]
fn requests_that_do_not_end_are_limited() {
    let server = TestServer::with(|config| config.client_memory_bytes = 4 << 20);
    let mut other = server.client();
    assert_eq!(other.line("SET a 1"), "+OK");
    let part = [&b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$9000000\r\n"[..], &vec![b'x'; 3 << 20]].concat();
    let mut senders = Vec::new();
    for _ in 0..2 {
        let (mut stream, part) = (server.client().stream, part.clone());
        senders.push(std::thread::spawn(move || {
            // It is cut off where it is the one that goes.
            let _ = stream.write_all(&part);
            let mut end = Vec::new();
            let _ = stream.read_to_end(&mut end);
        }));
    }
    until(&mut other, "INFO stats", |reply| reply.contains("evicted_clients:1"));
    assert_eq!(other.line("GET a"), "$1 1");
    assert_eq!(other.line("CLIENT KILL TYPE normal"), ":1");
    for sender in senders {
        sender.join().expect("it ends");
    }
    assert_eq!(other.line("CONFIG SET maxmemory-clients 0"), "+OK");
    assert_eq!(other.line("CONFIG GET maxmemory-clients"), "*2 $17 maxmemory-clients $1 0");
}

#[test]
fn arguments_at_the_edge() {
    let server = TestServer::start();
    let mut client = server.client();
    let range = "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    for (line, reply) in [
        ("HSET h f v", ":1"),
        ("HRANDFIELD h -9223372036854775807 WITHVALUES", "-ERR value is out of range"),
        ("HRANDFIELD h -9223372036854775808", range),
        ("ZADD z 1 a", ":1"),
        ("ZRANDMEMBER z 9223372036854775807 WITHSCORES", "-ERR value is out of range"),
        ("ZADD z 1e400 c", "-ERR value is not a valid float"),
        ("ZADD z 1e-400 c", "-ERR value is not a valid float"),
        ("ZADD z 0x1.8p3 f", ":1"),
        ("ZSCORE z f", "$2 12"),
        ("ZCOUNT z (0x1 1e400", ":1"),
        ("SET n 0x10", "+OK"),
        ("INCRBYFLOAT n 0x1p-1", "$4 16.5"),
        ("INCRBYFLOAT n 1e5000", "-ERR value is not a valid float"),
        ("GETEX nokey EX -1", "$-1"),
        ("GETEX h EX foo", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GETEX n EX -1", "-ERR invalid expire time in \\'getex\\' command"),
        ("BITCOUNT h a b", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BITCOUNT nokey a", ":0"),
        ("BITCOUNT n 1 b FOO", "-ERR value is not an integer or out of range"),
        ("BITCOUNT n 1 2 FOO", "-ERR syntax error"),
        ("ZRANGE z 0 -1 BYSCORE BYLEX", "-ERR syntax error"),
        ("ZRANGE z 0 1 REV REV", "-ERR syntax error"),
        ("BGSAVE FOO", "-ERR syntax error"),
        ("BGSAVE SCHEDULE", "+Background saving started"),
        ("WAIT 0 -1", "-ERR timeout is negative"),
        ("WAIT 0 a", "-ERR timeout is not an integer or out of range"),
        ("SHUTDOWN ABORT", "-ERR No shutdown in progress."),
        ("SHUTDOWN SAVE NOSAVE", "-ERR syntax error"),
        ("MEMORY USAGE n SAMPLES -1", "-ERR syntax error"),
        ("SCAN -1", "*2 $1 0 *0"),
        ("SCAN -18446744073709551616", "-ERR invalid cursor"),
        ("SCAN -", "-ERR invalid cursor"),
        ("BLPOP nokey inf", "-ERR timeout is negative"),
        ("BLPOP nokey 9223372036854775807", "-ERR timeout is negative"),
        ("BLPOP nokey nan", "-ERR timeout is not a float or out of range"),
        ("BLPOP nokey 0x0.01", "*-1"),
        ("CLUSTER INFO", "-ERR This instance has cluster support disabled"),
        ("READONLY", "-ERR This instance has cluster support disabled"),
        ("READONLY a", "-ERR wrong number of arguments for \\'readonly\\' command"),
        ("SETBIT bits 7 1", ":0"),
        ("WATCH bits", "+OK"),
        ("SETBIT bits 7 1", ":1"),
        ("MULTI", "+OK"),
        ("EXEC", "*0"),
    ] {
        assert_eq!(client.line(line), reply, "{line}");
    }
}
