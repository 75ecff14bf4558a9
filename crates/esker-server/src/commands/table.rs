//! The table of commands: name, arity, flags, keys and function of each.

use super::arguments::accepts;
use super::{bits, expiry, hashes, keys, lcs, lists, scan, sets, sorted_algebra, sorted_ranges, sorted_sets, strings};
use crate::protocol::parse_integer;
use crate::store::{Context, Outcome};
use Handler::{Connection, Data};
use bytes::Bytes;

/// It reads only.
pub const READ: u16 = 1;
/// It may write.
pub const WRITE: u16 = 1 << 1;
/// It may wait.
pub const BLOCKING: u16 = 1 << 4;
/// Its keys are behind their number.
pub const MOVABLE_KEYS: u16 = 1 << 5;
/// It is there before the connection has authenticated itself.
pub const NO_AUTH: u16 = 1 << 6;

/// A command on data: given the state of the database, the arguments and the time, its reply is
/// always the same.
pub type DataFunction = fn(&mut Context<'_>, &[Bytes]) -> Outcome;

/// What executes a command.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// A function on data.
    Data(DataFunction),
    /// The session of the connection.
    Connection,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// In small letters.
    pub name: &'static str,
    /// How many arguments it has, with its name; at least so many if negative.
    pub arity: i64,
    /// Some of the constants above.
    pub flags: u16,
    /// The places of the first and the last key, which may count from the end, and their distance;
    /// zeros if it has none, or if they are behind their number.
    pub keys: (i64, i64, i64),
    /// What executes it.
    pub handler: Handler,
}

const fn row(name: &'static str, arity: i64, flags: u16, keys: (i64, i64, i64), handler: Handler) -> Command {
    Command { name, arity, flags, keys, handler }
}

impl Command {
    /// Whether it has this flag.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether it can have so many arguments, with its name.
    pub fn accepts(&self, count: usize) -> bool {
        accepts(self.arity, count)
    }

    /// The keys among the arguments.
    pub fn keys_of<'a>(&self, arguments: &'a [Bytes]) -> Vec<&'a Bytes> {
        let count = arguments.len() as i64;
        let (first, last, step) = self.keys;
        let mut found: Vec<&Bytes> = Vec::new();
        if first > 0 {
            let last = if last < 0 { count + last } else { last };
            let places = (first..=last.min(count - 1)).step_by(usize::try_from(step).unwrap_or(1).max(1));
            found.extend(places.filter_map(|place| arguments.get(place as usize)));
        }
        if self.has(MOVABLE_KEYS) {
            // Behind a target or a timeout stands the number of keys.
            let before = if first > 0 || self.has(BLOCKING) { 2 } else { 1 };
            let number = arguments.get(before).and_then(|number| parse_integer(number)).unwrap_or(0);
            let number = usize::try_from(number).unwrap_or(0);
            found.extend(arguments.iter().skip(before + 1).take(number));
        }
        found
    }
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; 24];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok().map(|place| &COMMANDS[place])
}

/// All commands, by name.
pub const COMMANDS: [Command; COUNT] = [
    row("append", 3, WRITE, (1, 1, 1), Data(strings::append)),
    row("auth", -2, NO_AUTH, (0, 0, 0), Connection),
    row("bgsave", -1, 0, (0, 0, 0), Connection),
    row("bitcount", -2, READ, (1, 1, 1), Data(bits::bitcount)),
    row("bitop", -4, WRITE, (2, -1, 1), Data(bits::bitop)),
    row("bitpos", -3, READ, (1, 1, 1), Data(bits::bitpos)),
    row("blmove", 6, WRITE | BLOCKING, (1, 2, 1), Data(lists::blmove)),
    row("blmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, (0, 0, 0), Data(lists::blmpop)),
    row("blpop", -3, WRITE | BLOCKING, (1, -2, 1), Data(lists::blpop)),
    row("brpop", -3, WRITE | BLOCKING, (1, -2, 1), Data(lists::brpop)),
    row("brpoplpush", 4, WRITE | BLOCKING, (1, 2, 1), Data(lists::brpoplpush)),
    row("bzmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, (0, 0, 0), Data(sorted_ranges::bzmpop)),
    row("bzpopmax", -3, WRITE | BLOCKING, (1, -2, 1), Data(sorted_ranges::bzpopmax)),
    row("bzpopmin", -3, WRITE | BLOCKING, (1, -2, 1), Data(sorted_ranges::bzpopmin)),
    row("client", -2, 0, (0, 0, 0), Connection),
    row("command", -1, 0, (0, 0, 0), Connection),
    row("config", -2, 0, (0, 0, 0), Connection),
    row("copy", -3, WRITE, (1, 2, 1), Data(keys::copy)),
    row("dbsize", 1, READ, (0, 0, 0), Data(keys::dbsize)),
    row("debug", -2, 0, (0, 0, 0), Connection),
    row("decr", 2, WRITE, (1, 1, 1), Data(strings::decr)),
    row("decrby", 3, WRITE, (1, 1, 1), Data(strings::decrby)),
    row("del", -2, WRITE, (1, -1, 1), Data(keys::del)),
    row("discard", 1, 0, (0, 0, 0), Connection),
    row("echo", 2, 0, (0, 0, 0), Connection),
    row("exec", 1, 0, (0, 0, 0), Connection),
    row("exists", -2, READ, (1, -1, 1), Data(keys::exists)),
    row("expire", -3, WRITE, (1, 1, 1), Data(expiry::expire)),
    row("expireat", -3, WRITE, (1, 1, 1), Data(expiry::expireat)),
    row("expiretime", 2, READ, (1, 1, 1), Data(expiry::expiretime)),
    row("flushall", -1, WRITE, (0, 0, 0), Data(keys::flushall)),
    row("flushdb", -1, WRITE, (0, 0, 0), Data(keys::flushdb)),
    row("function", -2, 0, (0, 0, 0), Connection),
    row("get", 2, READ, (1, 1, 1), Data(strings::get)),
    row("getbit", 3, READ, (1, 1, 1), Data(bits::getbit)),
    row("getdel", 2, WRITE, (1, 1, 1), Data(strings::getdel)),
    row("getex", -2, WRITE, (1, 1, 1), Data(strings::getex)),
    row("getrange", 4, READ, (1, 1, 1), Data(strings::getrange)),
    row("getset", 3, WRITE, (1, 1, 1), Data(strings::getset)),
    row("hdel", -3, WRITE, (1, 1, 1), Data(hashes::hdel)),
    row("hello", -1, NO_AUTH, (0, 0, 0), Connection),
    row("hexists", 3, READ, (1, 1, 1), Data(hashes::hexists)),
    row("hget", 3, READ, (1, 1, 1), Data(hashes::hget)),
    row("hgetall", 2, READ, (1, 1, 1), Data(hashes::hgetall)),
    row("hincrby", 4, WRITE, (1, 1, 1), Data(hashes::hincrby)),
    row("hincrbyfloat", 4, WRITE, (1, 1, 1), Data(hashes::hincrbyfloat)),
    row("hkeys", 2, READ, (1, 1, 1), Data(hashes::hkeys)),
    row("hlen", 2, READ, (1, 1, 1), Data(hashes::hlen)),
    row("hmget", -3, READ, (1, 1, 1), Data(hashes::hmget)),
    row("hmset", -4, WRITE, (1, 1, 1), Data(hashes::hmset)),
    row("hrandfield", -2, READ, (1, 1, 1), Data(hashes::hrandfield)),
    row("hscan", -3, READ, (1, 1, 1), Data(scan::hscan)),
    row("hset", -4, WRITE, (1, 1, 1), Data(hashes::hset)),
    row("hsetnx", 4, WRITE, (1, 1, 1), Data(hashes::hsetnx)),
    row("hstrlen", 3, READ, (1, 1, 1), Data(hashes::hstrlen)),
    row("hvals", 2, READ, (1, 1, 1), Data(hashes::hvals)),
    row("incr", 2, WRITE, (1, 1, 1), Data(strings::incr)),
    row("incrby", 3, WRITE, (1, 1, 1), Data(strings::incrby)),
    row("incrbyfloat", 3, WRITE, (1, 1, 1), Data(strings::incrbyfloat)),
    row("info", -1, 0, (0, 0, 0), Connection),
    row("keys", 2, READ, (0, 0, 0), Data(scan::keys)),
    row("lastsave", 1, 0, (0, 0, 0), Connection),
    row("lcs", -3, READ, (1, 2, 1), Data(lcs::lcs)),
    row("lindex", 3, READ, (1, 1, 1), Data(lists::lindex)),
    row("linsert", 5, WRITE, (1, 1, 1), Data(lists::linsert)),
    row("llen", 2, READ, (1, 1, 1), Data(lists::llen)),
    row("lmove", 5, WRITE, (1, 2, 1), Data(lists::lmove)),
    row("lmpop", -4, WRITE | MOVABLE_KEYS, (0, 0, 0), Data(lists::lmpop)),
    row("lpop", -2, WRITE, (1, 1, 1), Data(lists::lpop)),
    row("lpos", -3, READ, (1, 1, 1), Data(lists::lpos)),
    row("lpush", -3, WRITE, (1, 1, 1), Data(lists::lpush)),
    row("lpushx", -3, WRITE, (1, 1, 1), Data(lists::lpushx)),
    row("lrange", 4, READ, (1, 1, 1), Data(lists::lrange)),
    row("lrem", 4, WRITE, (1, 1, 1), Data(lists::lrem)),
    row("lset", 4, WRITE, (1, 1, 1), Data(lists::lset)),
    row("ltrim", 4, WRITE, (1, 1, 1), Data(lists::ltrim)),
    row("memory", -2, READ, (0, 0, 0), Data(keys::memory)),
    row("mget", -2, READ, (1, -1, 1), Data(strings::mget)),
    row("move", 3, WRITE, (1, 1, 1), Data(keys::move_key)),
    row("mset", -3, WRITE, (1, -1, 2), Data(strings::mset)),
    row("msetnx", -3, WRITE, (1, -1, 2), Data(strings::msetnx)),
    row("multi", 1, 0, (0, 0, 0), Connection),
    row("object", -2, READ, (0, 0, 0), Data(keys::object)),
    row("persist", 2, WRITE, (1, 1, 1), Data(expiry::persist)),
    row("pexpire", -3, WRITE, (1, 1, 1), Data(expiry::pexpire)),
    row("pexpireat", -3, WRITE, (1, 1, 1), Data(expiry::pexpireat)),
    row("pexpiretime", 2, READ, (1, 1, 1), Data(expiry::pexpiretime)),
    row("ping", -1, 0, (0, 0, 0), Connection),
    row("psetex", 4, WRITE, (1, 1, 1), Data(strings::psetex)),
    row("pttl", 2, READ, (1, 1, 1), Data(expiry::pttl)),
    row("quit", -1, NO_AUTH, (0, 0, 0), Connection),
    row("randomkey", 1, READ, (0, 0, 0), Data(scan::randomkey)),
    row("rename", 3, WRITE, (1, 2, 1), Data(keys::rename)),
    row("renamenx", 3, WRITE, (1, 2, 1), Data(keys::renamenx)),
    row("reset", 1, NO_AUTH, (0, 0, 0), Connection),
    row("role", 1, 0, (0, 0, 0), Connection),
    row("rpop", -2, WRITE, (1, 1, 1), Data(lists::rpop)),
    row("rpoplpush", 3, WRITE, (1, 2, 1), Data(lists::rpoplpush)),
    row("rpush", -3, WRITE, (1, 1, 1), Data(lists::rpush)),
    row("rpushx", -3, WRITE, (1, 1, 1), Data(lists::rpushx)),
    row("sadd", -3, WRITE, (1, 1, 1), Data(sets::sadd)),
    row("save", 1, 0, (0, 0, 0), Connection),
    row("scan", -2, READ, (0, 0, 0), Data(scan::scan)),
    row("scard", 2, READ, (1, 1, 1), Data(sets::scard)),
    row("sdiff", -2, READ, (1, -1, 1), Data(sets::sdiff)),
    row("sdiffstore", -3, WRITE, (1, -1, 1), Data(sets::sdiffstore)),
    row("select", 2, 0, (0, 0, 0), Connection),
    row("set", -3, WRITE, (1, 1, 1), Data(strings::set)),
    row("setbit", 4, WRITE, (1, 1, 1), Data(bits::setbit)),
    row("setex", 4, WRITE, (1, 1, 1), Data(strings::setex)),
    row("setnx", 3, WRITE, (1, 1, 1), Data(strings::setnx)),
    row("setrange", 4, WRITE, (1, 1, 1), Data(strings::setrange)),
    row("shutdown", -1, 0, (0, 0, 0), Connection),
    row("sinter", -2, READ, (1, -1, 1), Data(sets::sinter)),
    row("sintercard", -3, READ | MOVABLE_KEYS, (0, 0, 0), Data(sets::sintercard)),
    row("sinterstore", -3, WRITE, (1, -1, 1), Data(sets::sinterstore)),
    row("sismember", 3, READ, (1, 1, 1), Data(sets::sismember)),
    row("smembers", 2, READ, (1, 1, 1), Data(sets::smembers)),
    row("smismember", -3, READ, (1, 1, 1), Data(sets::smismember)),
    row("smove", 4, WRITE, (1, 2, 1), Data(sets::smove)),
    row("spop", -2, WRITE, (1, 1, 1), Data(sets::spop)),
    row("srandmember", -2, READ, (1, 1, 1), Data(sets::srandmember)),
    row("srem", -3, WRITE, (1, 1, 1), Data(sets::srem)),
    row("sscan", -3, READ, (1, 1, 1), Data(scan::sscan)),
    row("strlen", 2, READ, (1, 1, 1), Data(strings::strlen)),
    row("substr", 4, READ, (1, 1, 1), Data(strings::getrange)),
    row("sunion", -2, READ, (1, -1, 1), Data(sets::sunion)),
    row("sunionstore", -3, WRITE, (1, -1, 1), Data(sets::sunionstore)),
    row("swapdb", 3, WRITE, (0, 0, 0), Data(keys::swapdb)),
    row("time", 1, 0, (0, 0, 0), Connection),
    row("touch", -2, READ, (1, -1, 1), Data(keys::exists)),
    row("ttl", 2, READ, (1, 1, 1), Data(expiry::ttl)),
    row("type", 2, READ, (1, 1, 1), Data(keys::type_of)),
    row("unlink", -2, WRITE, (1, -1, 1), Data(keys::del)),
    row("unwatch", 1, 0, (0, 0, 0), Connection),
    row("wait", 3, 0, (0, 0, 0), Connection),
    row("watch", -2, 0, (1, -1, 1), Connection),
    row("zadd", -4, WRITE, (1, 1, 1), Data(sorted_sets::zadd)),
    row("zcard", 2, READ, (1, 1, 1), Data(sorted_sets::zcard)),
    row("zcount", 4, READ, (1, 1, 1), Data(sorted_ranges::zcount)),
    row("zdiff", -3, READ | MOVABLE_KEYS, (0, 0, 0), Data(sorted_algebra::zdiff)),
    row("zdiffstore", -4, WRITE | MOVABLE_KEYS, (1, 1, 1), Data(sorted_algebra::zdiffstore)),
    row("zincrby", 4, WRITE, (1, 1, 1), Data(sorted_sets::zincrby)),
    row("zinter", -3, READ | MOVABLE_KEYS, (0, 0, 0), Data(sorted_algebra::zinter)),
    row("zintercard", -3, READ | MOVABLE_KEYS, (0, 0, 0), Data(sorted_algebra::zintercard)),
    row("zinterstore", -4, WRITE | MOVABLE_KEYS, (1, 1, 1), Data(sorted_algebra::zinterstore)),
    row("zlexcount", 4, READ, (1, 1, 1), Data(sorted_ranges::zlexcount)),
    row("zmpop", -4, WRITE | MOVABLE_KEYS, (0, 0, 0), Data(sorted_ranges::zmpop)),
    row("zmscore", -3, READ, (1, 1, 1), Data(sorted_sets::zmscore)),
    row("zpopmax", -2, WRITE, (1, 1, 1), Data(sorted_ranges::zpopmax)),
    row("zpopmin", -2, WRITE, (1, 1, 1), Data(sorted_ranges::zpopmin)),
    row("zrandmember", -2, READ, (1, 1, 1), Data(sorted_sets::zrandmember)),
    row("zrange", -4, READ, (1, 1, 1), Data(sorted_ranges::zrange)),
    row("zrangebylex", -4, READ, (1, 1, 1), Data(sorted_ranges::zrangebylex)),
    row("zrangebyscore", -4, READ, (1, 1, 1), Data(sorted_ranges::zrangebyscore)),
    row("zrangestore", -5, WRITE, (1, 2, 1), Data(sorted_ranges::zrangestore)),
    row("zrank", 3, READ, (1, 1, 1), Data(sorted_sets::zrank)),
    row("zrem", -3, WRITE, (1, 1, 1), Data(sorted_sets::zrem)),
    row("zremrangebylex", 4, WRITE, (1, 1, 1), Data(sorted_ranges::zremrangebylex)),
    row("zremrangebyrank", 4, WRITE, (1, 1, 1), Data(sorted_ranges::zremrangebyrank)),
    row("zremrangebyscore", 4, WRITE, (1, 1, 1), Data(sorted_ranges::zremrangebyscore)),
    row("zrevrange", -4, READ, (1, 1, 1), Data(sorted_ranges::zrevrange)),
    row("zrevrangebylex", -4, READ, (1, 1, 1), Data(sorted_ranges::zrevrangebylex)),
    row("zrevrangebyscore", -4, READ, (1, 1, 1), Data(sorted_ranges::zrevrangebyscore)),
    row("zrevrank", 3, READ, (1, 1, 1), Data(sorted_sets::zrevrank)),
    row("zscan", -3, READ, (1, 1, 1), Data(scan::zscan)),
    row("zscore", 3, READ, (1, 1, 1), Data(sorted_sets::zscore)),
    row("zunion", -3, READ | MOVABLE_KEYS, (0, 0, 0), Data(sorted_algebra::zunion)),
    row("zunionstore", -4, WRITE | MOVABLE_KEYS, (1, 1, 1), Data(sorted_algebra::zunionstore)),
];

const COUNT: usize = 169;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_name() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].name < pair[1].name), "the search needs the order");
        for command in &COMMANDS {
            assert_eq!(find(command.name.to_uppercase().as_bytes()).map(|found| found.name), Some(command.name));
            let is_data = matches!(command.handler, Data(_));
            assert_eq!(is_data, command.has(READ) != command.has(WRITE), "{}", command.name);
        }
        assert!(find(b"nosuch").is_none() && find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn keys_are_found() {
        let keys = |line: &str| {
            let arguments: Vec<Bytes> = line.split(' ').map(|word| Bytes::from(word.to_string())).collect();
            let found = find(&arguments[0]).unwrap().keys_of(&arguments).into_iter().cloned();
            found.map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(keys("get a"), ["a"]);
        assert_eq!(keys("mset a 1 b 2"), ["a", "b"]);
        assert_eq!(keys("blpop a b 0"), ["a", "b"]);
        assert_eq!(keys("zunionstore t 2 a b weights 1 2"), ["t", "a", "b"]);
        assert_eq!(keys("blmpop 0 2 a b left"), ["a", "b"]);
        assert_eq!(keys("lmpop 1 a left"), ["a"]);
        assert_eq!(keys("ping"), [""; 0]);
    }
}
