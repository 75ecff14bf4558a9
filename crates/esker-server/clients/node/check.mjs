// What ioredis does with a server: `node check.mjs PORT`, where ioredis is installed.
//
// With TLS where ESKER_CLIENT_AUTHORITY names the certificate of the authority, and with the password ESKER_CLIENT_PASSWORD.
import { createRequire } from "node:module";
import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";

const require = createRequire(process.env.ESKER_CLIENT_MODULES + "/package.json");
const Redis = require("ioredis");
const { version } = require("ioredis/package.json");

const port = Number(process.argv[2]);
let checked = 0;
const same = (found, expected) => {
  checked++;
  deepStrictEqual(found, expected, `check ${checked}`);
};
const refused = async (promise, text) => {
  checked++;
  const error = await promise.then(() => undefined, (error) => error);
  if (!error?.message.includes(text)) throw new Error(`check ${checked}: not refused: ${text}`);
};

const authority = process.env.ESKER_CLIENT_AUTHORITY;
const tls = authority ? { ca: readFileSync(authority) } : undefined;
const redis = new Redis({ port, connectionName: "check", password: process.env.ESKER_CLIENT_PASSWORD, tls });
await redis.flushall();

same(await redis.set("a", "1"), "OK");
same(await redis.set("a", "2", "NX"), null);
same(await redis.incrby("a", 5), 6);
same(await redis.mget("a", "missing"), ["6", null]);
same(await redis.getBuffer("a"), Buffer.from("6"));
same(await redis.setex("e", 100, "v"), "OK");
same((await redis.ttl("e")) > 90, true);
await refused(redis.lpush("a", "x"), "WRONGTYPE");
await refused(redis.call("NOSUCH", "x"), "unknown command");

same(await redis.hset("h", { f: "v", g: "w" }), 2);
same(await redis.hgetall("h"), { f: "v", g: "w" });
same(await redis.sadd("s", "a", "b"), 2);
same((await redis.smembers("s")).sort(), ["a", "b"]);
same(await redis.zadd("z", 1, "a", 2.5, "b"), 2);
same(await redis.zrange("z", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5"]);
same(await redis.zrangebyscore("z", "(1", "+inf"), ["b"]);
same(await redis.rpush("l", "a", "b", "c"), 3);
same(await redis.lrange("l", 0, -1), ["a", "b", "c"]);

const pipelined = await redis.pipeline().set("p", 1).incr("p").get("p").lpush("p", "x").exec();
same(pipelined.slice(0, 3), [[null, "OK"], [null, 2], [null, "2"]]);
same(pipelined[3][0].message.includes("WRONGTYPE"), true);
same(await redis.multi().incr("p").get("p").exec(), [[null, 3], [null, "3"]]);

await redis.watch("p");
const other = redis.duplicate();
await other.set("p", "10");
same(await redis.multi().set("p", "11").exec(), null);

const waits = other.blpop("queue", 30);
while (!(await redis.info("clients")).includes("blocked_clients:1"));
await redis.rpush("queue", "job");
same(await waits, ["queue", "job"]);

for (let number = 0; number < 500; number++) redis.set(`key:${number}`, "v");
const keys = new Set();
for await (const part of redis.scanStream({ match: "key:*", count: 50 })) part.forEach((key) => keys.add(key));
same(keys.size, 500);
same(await redis.client("GETNAME"), "check");

redis.disconnect();
other.disconnect();
console.log(`ioredis ${version}: ${checked} checks${tls ? ", with TLS" : ""}`);
