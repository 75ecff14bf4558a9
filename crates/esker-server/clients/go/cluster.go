package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// What go-redis does with a cluster whose followers redirect.
func checkCluster(ctx context.Context, r *redis.ClusterClient) {
	value(r.FlushAll(ctx).Result())
	same(value(r.Set(ctx, "a", 1, 0).Result()), "OK")
	same(value(r.Incr(ctx, "a").Result()), int64(2))
	same(value(r.Get(ctx, "a").Result()), "2")
	// The client looks the keys of a command up in the reply to COMMAND, and where to send it.
	commands := value(r.Command(ctx).Result())
	same(commands["cluster"].Arity, int8(-2))
	same(commands["raft.add"].Flags, []string{"admin", "no_multi"})
	same(commands["readonly"].FirstKeyPos, int8(0))
	same(commands["get"].FirstKeyPos, int8(1))
	same(commands["get"].ReadOnly, true)
	pipe := r.Pipeline()
	set, incr, get := pipe.Set(ctx, "x", 1, 0), pipe.Incr(ctx, "y"), pipe.Get(ctx, "x")
	value(pipe.Exec(ctx))
	same([]any{set.Val(), incr.Val(), get.Val()}, []any{"OK", int64(1), "1"})
	transaction := r.TxPipeline()
	set, incr = transaction.Set(ctx, "{t}a", 1, 0), transaction.Incr(ctx, "{t}b")
	value(transaction.Exec(ctx))
	same([]any{set.Val(), incr.Val()}, []any{"OK", int64(1)})
	same(value(r.ClusterCountKeysInSlot(ctx, int(value(r.ClusterKeySlot(ctx, "t").Result()))).Result()), int64(2))
	masters := 0
	value(0, r.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		masters++
		return master.Ping(ctx).Err()
	}))
	same(masters, 1)
}
