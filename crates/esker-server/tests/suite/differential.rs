//! Random commands, given to the server and to Redis: the replies are the same, byte by byte, but
//! for the order of what has none.

use crate::support::{self, Client, Redis, TestServer, shown};
use redis_protocol::resp3::decode::complete::decode;
use redis_protocol::resp3::types::OwnedFrame;

/// The numbers of a run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Templates of commands. `K` is a key, `M` a member or field, `V` a value, `N` an integer, `F` a
/// number, `C` a small count, `I` an index, `T` a time far away, `S` a bound of scores, `X` one of
/// members; `A|B` is one of two words, `?W` a word that may be there, and `K+` one or more.
const TEMPLATES: &[&str] = &[
    "SET K V ?NX ?XX ?GET ?KEEPTTL",
    "SET K V PXAT T ?NX|XX ?GET",
    "GET K",
    "GETSET K V",
    "GETDEL K",
    "GETEX K ?PERSIST",
    "GETEX K PXAT T",
    "SETNX K V",
    "APPEND K V",
    "STRLEN K",
    "GETRANGE K I I",
    "SETBIT K C 0|1",
    "BITCOUNT K I I ?BIT|BYTE",
    "BITPOS K 0|1 ?I",
    "BITPOS K 0|1 I I ?BIT|BYTE",
    "BITOP AND|OR|XOR K K+",
    "BITOP NOT K K",
    "LCS K K ?LEN",
    "LCS K K IDX ?WITHMATCHLEN ?MINMATCHLEN|MINMATCHLEN C",
    "SETRANGE K C V",
    "INCR K",
    "DECR K",
    "INCRBY K N",
    "DECRBY K N",
    "INCRBYFLOAT K F",
    "MGET K+",
    "MSET K V K V",
    "MSETNX K V K V",
    "DEL K+",
    "UNLINK K",
    "EXISTS K+",
    "TOUCH K+",
    "TYPE K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K ?REPLACE",
    "COPY K K DB C ?REPLACE",
    "MOVE K C",
    "DBSIZE",
    "PEXPIREAT K T ?NX|XX|GT|LT",
    "EXPIREAT K 33333333333 ?NX|XX|GT|LT",
    "PERSIST K",
    "PEXPIRETIME K",
    "EXPIRETIME K",
    "HSET K M V M V",
    "HSET K M N",
    "HSETNX K M V",
    "HGET K M",
    "HMGET K M M M",
    "HDEL K M M",
    "HLEN K",
    "HSTRLEN K M",
    "HEXISTS K M",
    "HINCRBY K M N",
    "HINCRBYFLOAT K M F",
    "*HKEYS K",
    "*HVALS K",
    "*HGETALL K",
    "HMSET K M V",
    "SADD K M M M",
    "SADD K N N",
    "SREM K M M",
    "SISMEMBER K M",
    "SMISMEMBER K M M",
    "SCARD K",
    "*SMEMBERS K",
    "SMOVE K K M",
    "*SINTER K+",
    "*SUNION K+",
    "*SDIFF K+",
    "SINTERSTORE K K+",
    "SUNIONSTORE K K+",
    "SDIFFSTORE K K+",
    "SINTERCARD 2 K K ?LIMIT|LIMIT C",
    "ZADD K F M F M",
    "ZADD K ?NX|XX ?GT|LT ?CH C M C M",
    "ZADD K INCR ?NX|XX|GT|LT F M",
    "ZINCRBY K F M",
    "ZREM K M M",
    "ZCARD K",
    "ZSCORE K M",
    "ZMSCORE K M M",
    "ZRANK K M",
    "ZREVRANK K M",
    "ZRANGE K I I ?REV ?WITHSCORES",
    "ZRANGE K S S BYSCORE ?REV ?WITHSCORES",
    "ZRANGE K S S BYSCORE LIMIT C I",
    "ZREVRANGE K I I ?WITHSCORES",
    "ZRANGEBYSCORE K S S ?WITHSCORES",
    "ZREVRANGEBYSCORE K S S LIMIT C C",
    "ZCOUNT K S S",
    "ZRANGESTORE K K I I ?REV",
    "ZRANGESTORE K K S S BYSCORE",
    "ZREMRANGEBYRANK K I I",
    "ZREMRANGEBYSCORE K S S",
    "ZPOPMIN K ?C",
    "ZPOPMAX K ?C",
    "ZMPOP 2 K K MIN|MAX ?COUNT|COUNT C",
    "ZUNION 2 K K ?WITHSCORES",
    "ZUNION 2 K K WEIGHTS F F AGGREGATE SUM|MIN|MAX WITHSCORES",
    "ZINTER 2 K K ?WITHSCORES",
    "ZDIFF 2 K K ?WITHSCORES",
    "ZUNIONSTORE K 2 K K",
    "ZINTERSTORE K 2 K K WEIGHTS C C",
    "ZDIFFSTORE K 2 K K",
    "ZINTERCARD 2 K K",
    "BZPOPMIN K K 0.001",
    "LPUSH K V V",
    "RPUSH K V V V",
    "LPUSHX K V",
    "RPUSHX K V",
    "LPOP K ?C",
    "RPOP K ?C",
    "LLEN K",
    "LINDEX K I",
    "LSET K I V",
    "LRANGE K I I",
    "LTRIM K I I",
    "LINSERT K BEFORE|AFTER V V",
    "LREM K I V",
    "LMOVE K K LEFT|RIGHT LEFT|RIGHT",
    "RPOPLPUSH K K",
    "LPOS K V",
    "LPOS K V RANK I",
    "LPOS K V COUNT C MAXLEN C",
    "LMPOP 2 K K LEFT|RIGHT ?COUNT|COUNT C",
    "BLPOP K K 0.001",
    "BLMOVE K K LEFT|RIGHT LEFT|RIGHT 0.001",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH K",
    "UNWATCH",
    "SELECT C",
    "SWAPDB C C",
    "FLUSHDB",
    "ECHO V",
];

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const MEMBERS: [&str; 8] = ["m", "n", "o", "p", "1", "2", "33", "\"\""];
const VALUES: [&str; 8] = ["x", "y", "10", "-3", "2.5", "hello", "\"\"", "9223372036854775807"];

fn expand(random: &mut Random, word: &str, line: &mut Vec<String>) {
    let index = |random: &mut Random| (random.below(9) as i64 - 4).to_string();
    let word = match word.strip_prefix('?') {
        Some(_) if random.chance(60) => return,
        Some(optional) => optional,
        None => word,
    };
    let expanded = match word {
        "K" => random.of(&KEYS).to_string(),
        "K+" => {
            for _ in 0..=random.below(3) {
                line.push(random.of(&KEYS).to_string());
            }
            return;
        }
        "M" => random.of(&MEMBERS).to_string(),
        "V" => random.of(&VALUES).to_string(),
        "N" => random.of(&["1", "-1", "7", "100", "9223372036854775807", "x"]).to_string(),
        "F" => random.of(&["1", "-1", "0.5", "2.25", "1e3", "3", "x"]).to_string(),
        "C" => random.below(4).to_string(),
        "I" => index(random),
        "T" => (99_999_999_999_999 + random.below(3)).to_string(),
        "S" => random.of(&["-inf", "+inf", "0", "1", "(1", "2", "(2.25", "3", "x"]).to_string(),
        _ => {
            let words: Vec<&str> = word.split('|').collect();
            random.of(&words).to_string()
        }
    };
    line.push(expanded);
}

fn command(random: &mut Random) -> (String, bool) {
    let template = random.of(TEMPLATES);
    // Transactions and what empties everything come seldom enough that something is there.
    if ["FLUSHDB", "SWAPDB C C", "SELECT C", "MOVE K C"].contains(&template) && random.chance(70) {
        return command(random);
    }
    let is_unordered = template.starts_with('*');
    let mut line = Vec::new();
    for word in template.trim_start_matches('*').split(' ') {
        expand(random, word, &mut line);
    }
    if random.chance(2) {
        line.pop();
    } else if random.chance(2) {
        line.push("extra".into());
    }
    (line.join(" "), is_unordered)
}

/// A reply as a value without order. Fields with their values, in a list of RESP2, stay together.
fn value(reply: &[u8], line: &str) -> Option<OwnedFrame> {
    let (frame, _) = decode(reply).ok()??;
    Some(unordered(frame, line))
}

fn unordered(frame: OwnedFrame, line: &str) -> OwnedFrame {
    let OwnedFrame::Array { data, attributes } = frame else { return frame };
    let together = if line.to_uppercase().starts_with("HGETALL") { 2 } else { 1 };
    let mut elements: Vec<&[OwnedFrame]> = data.chunks(together).collect();
    elements.sort_by_key(|element| format!("{element:?}"));
    OwnedFrame::Array { data: elements.concat(), attributes }
}

/// Replies to what a transaction holds come together, those without order among them.
fn value_together(reply: &[u8]) -> Option<OwnedFrame> {
    // The decoder does not know the two forms of no value that RESP2 has; no value has a line end.
    let text = String::from_utf8_lossy(reply).replace("$-1\r\n", "_\r\n").replace("*-1\r\n", "_\r\n");
    let (frame, _) = decode(text.as_bytes()).ok()??;
    let OwnedFrame::Array { data, attributes } = frame else { return Some(frame) };
    Some(OwnedFrame::Array { data: data.into_iter().map(|item| unordered(item, "")).collect(), attributes })
}

fn is_same(ours: &[u8], theirs: &[u8], line: &str, is_unordered: bool) -> bool {
    let is_together = line.starts_with("EXEC");
    ours == theirs
        || is_unordered && value(ours, line).is_some_and(|value_of_ours| Some(value_of_ours) == value(theirs, line))
        || is_together && value_together(ours).is_some_and(|together| Some(together) == value_together(theirs))
}

fn compare(seed: u64, commands: usize, ours: &mut Client, theirs: &mut Client) {
    let mut random = Random(seed | 1);
    let mut history: Vec<String> = Vec::new();
    for client in [&mut *ours, &mut *theirs] {
        client.reset();
        client.line("FLUSHALL");
        if seed.is_multiple_of(2) {
            client.hello3();
        }
    }
    for _ in 0..commands {
        let (line, is_unordered) = command(&mut random);
        let words = support::words(&line);
        ours.send(&words);
        theirs.send(&words);
        let (our_reply, their_reply) = (ours.receive(), theirs.receive());
        history.push(line.clone());
        if !is_same(&our_reply, &their_reply, &line, is_unordered) {
            let from = history.len().saturating_sub(40);
            panic!(
                "command {} of ESKER_SEED={seed}: {line}\n  Redis: {}\n  ours:  {}\nafter\n{}",
                history.len(),
                shown(&their_reply),
                shown(&our_reply),
                history[from..].join("\n")
            );
        }
    }
}

#[test]
fn random_commands_have_the_replies_of_redis() {
    let Some(redis) = Redis::start() else { return };
    let server = TestServer::start();
    let (mut ours, mut theirs) = (server.client(), Client::connect(redis.address));
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().expect(name));
    let seed = number("ESKER_SEED", 0);
    let (runs, commands) = (number("ESKER_RUNS", 20), number("ESKER_COMMANDS", 1000) as usize);
    if seed != 0 {
        return compare(seed, commands, &mut ours, &mut theirs);
    }
    for run in 1..=runs {
        compare(run.wrapping_mul(0x9e37_79b9_7f4a_7c15), commands, &mut ours, &mut theirs);
    }
}
