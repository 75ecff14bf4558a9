// What ioredis does with a cluster whose followers redirect: `node cluster.mjs PORT`, the port of any node.
import { createRequire } from "node:module";
import { deepStrictEqual } from "node:assert";

const require = createRequire(process.env.ESKER_CLIENT_MODULES + "/package.json");
const { Cluster } = require("ioredis");
const { version } = require("ioredis/package.json");

let checked = 0;
const same = (found, expected) => {
  checked++;
  deepStrictEqual(found, expected, `check ${checked}`);
};

const cluster = new Cluster([{ host: "127.0.0.1", port: Number(process.argv[2]) }]);
same(await cluster.set("a", "1"), "OK");
same(await cluster.incr("a"), 2);
same(await cluster.get("a"), "2");
same(cluster.nodes("master").length, 1);
same(cluster.nodes("slave").length, 2);
same(await cluster.pipeline().set("x", "1").incr("x").get("x").exec(), [[null, "OK"], [null, 2], [null, "2"]]);
same(await cluster.multi().set("x", "1").incr("x").exec(), [[null, "OK"], [null, 2]]);
cluster.disconnect();
console.log(`ioredis ${version}: ${checked} checks of a cluster`);
