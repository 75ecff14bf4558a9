"""What redis-py does with a cluster whose followers redirect: `cluster.py PORT`, the port of any node."""

import sys

import redis
from redis.cluster import ClusterNode, RedisCluster

count = 0


def same(found, expected):
    global count
    count += 1
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


port = int(sys.argv[1])
for options in ({}, {"protocol": 3}, {"read_from_replicas": True}):
    client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)], **options)
    kinds = sorted(node.server_type for node in client.get_nodes())
    same(kinds, ["primary", "replica", "replica"])
    same(client.flushall(), True)
    same(client.set("a", 1), True)
    same(client.incr("a"), 2)
    if "read_from_replicas" not in options:
        same(client.get("a"), b"2")
    same(client.mset_nonatomic({"a": 1, "b": 2, "c": 3}), [True] * 3)
    pipeline = client.pipeline()
    pipeline.set("x", 1)
    pipeline.incr("y{x}")
    pipeline.hset("h{x}", mapping={"f": "v"})
    same(pipeline.execute(), [True, 1, 1])
    same(client.cluster_info()["cluster_state"], "ok")
    same(client.cluster_keyslot("foo"), 12182)
    same(len(client.cluster_nodes()), 3)

# A follower says where the leader is.
follower = next(node for node in client.get_replicas())
connection = redis.Redis(follower.host, follower.port)
try:
    connection.set("foo", 1)
    raise AssertionError("a follower has written")
except redis.exceptions.MovedError as moved:
    same((moved.slot_id, moved.port), (12182, client.get_primaries()[0].port))
print(f"redis-py {redis.__version__}: {count} checks of a cluster")
