"""What redis-py does with a server: `python check.py PORT`.

With TLS where ESKER_CLIENT_AUTHORITY names the certificate of the authority, and with the password ESKER_CLIENT_PASSWORD.
"""

import os
import sys
import threading

import redis

port = int(sys.argv[1])
checked = 0


def same(found, expected):
    global checked
    checked += 1
    if found != expected:
        raise SystemExit(f"check {checked}: {found!r} is not {expected!r}")


def refused(call, text):
    global checked
    checked += 1
    try:
        call()
    except redis.ResponseError as error:
        if text in str(error):
            return
        raise
    raise SystemExit(f"check {checked}: not refused: {text}")


def strings(r):
    same(r.set("a", 1), True)
    same(r.set("a", 2, nx=True), None)
    same(r.set("a", 3, xx=True, get=True), "1")
    same(r.incr("a", 4), 7)
    same(r.incrbyfloat("f", 1.25), 1.25)
    same(r.mget("a", "missing"), ["7", None])
    same(r.mset({"b": "x", "c": "y"}), True)
    same(r.getrange("b", 0, -1), "x")
    same(r.append("b", "yz"), 3)
    same(r.setex("e", 100, "v"), True)
    same(99 <= r.ttl("e") <= 100, True)
    same(r.expire("e", 1000, gt=True), True)
    same(r.persist("e"), True)
    same(r.ttl("e"), -1)
    same(r.type("a"), "string")
    refused(lambda: r.incr("b"), "value is not an integer")
    refused(lambda: r.lpush("a", 1), "WRONGTYPE")
    refused(lambda: r.execute_command("NOSUCH", "x"), "unknown command")


def collections(r):
    same(r.hset("h", mapping={"f": "v", "g": "w"}), 2)
    same(r.hgetall("h"), {"f": "v", "g": "w"})
    same(r.hincrby("h", "n", 5), 5)
    same(dict(r.hscan_iter("h", count=1)), {"f": "v", "g": "w", "n": "5"})
    same(r.sadd("s", "a", "b", "c"), 3)
    same(r.smembers("s"), {"a", "b", "c"})
    same(r.sinter("s", "missing"), set() if isinstance(r.sinter("s", "missing"), set) else [])
    same(set(r.sscan_iter("s")), {"a", "b", "c"})
    same(r.zadd("z", {"a": 1, "b": 2.5, "c": 3}), 3)
    same(r.zadd("z", {"a": 5}, gt=True, ch=True), 1)
    same([member for member, _ in r.zrange("z", 0, -1, withscores=True)], ["b", "c", "a"])
    same(r.zrangebyscore("z", "(2.5", "+inf"), ["c", "a"])
    same(r.zrange("z", "+inf", "-inf", byscore=True, desc=True, offset=0, num=1), ["a"])
    same(float(r.zscore("z", "b")), 2.5)
    same(r.zrank("z", "a"), 2)
    same(dict(r.zscan_iter("z")), {"a": 5.0, "b": 2.5, "c": 3.0})
    same(r.rpush("l", "a", "b", "c"), 3)
    same(r.lrange("l", 0, -1), ["a", "b", "c"])
    same(r.lmove("l", "m", "LEFT", "RIGHT"), "a")
    same(r.lpos("l", "c"), 1)
    same(r.linsert("l", "BEFORE", "c", "x"), 3)
    same(r.blpop(["missing", "l"], timeout=1), ("l", "b") if r.connection_pool.connection_kwargs["protocol"] == 2 else ["l", "b"])


def transactions(r):
    with r.pipeline(transaction=True) as pipe:
        pipe.set("t", 1).incr("t").get("t")
        same(pipe.execute(), [True, 2, "2"])
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.rpush("many", number)
        same(pipe.execute(), list(range(1, 1001)))
    with r.pipeline() as pipe:
        pipe.watch("t")
        r.set("t", 10)
        pipe.multi()
        pipe.set("t", 11)
        try:
            pipe.execute()
            raise SystemExit("a watched key was written, and EXEC went on")
        except redis.WatchError:
            same(r.get("t"), "10")


def blocking(r):
    found = []
    thread = threading.Thread(target=lambda: found.append(r.brpop("queue", timeout=30)))
    thread.start()
    while r.info("clients")["blocked_clients"] == 0:
        pass
    r.lpush("queue", "job")
    thread.join()
    same(list(found[0]), ["queue", "job"])


def server(r):
    same(r.ping(), True)
    same(r.echo("x"), "x")
    same(r.client_setname("check"), True)
    same(r.client_getname(), "check")
    same(r.client_id() > 0, True)
    same(any(client["name"] == "check" for client in r.client_list()), True)
    same(r.config_get("maxclients")["maxclients"], "10000")
    same("redis_version" in r.info(), True)
    same(r.command_count() > 150, True)
    same("get" in r.command(), True)
    same(sorted(r.scan_iter("many*")), ["many"])
    same(len(r.time()), 2)
    same(r.object("encoding", "a"), "int")


authority = os.environ.get("ESKER_CLIENT_AUTHORITY")
access = {"password": os.environ.get("ESKER_CLIENT_PASSWORD")}
if authority:
    access |= {"ssl": True, "ssl_ca_certs": authority}
for protocol in (2, 3):
    r = redis.Redis(port=port, protocol=protocol, decode_responses=True, **access)
    r.flushall()
    for part in (strings, collections, transactions, blocking, server):
        part(r)
    same(r.select(1), True)
    same(r.dbsize(), 0)
    r.close()
print(f"redis-py {redis.__version__}: {checked} checks in RESP2 and RESP3{', with TLS' if authority else ''}")
