// What go-redis does with a server: `go run . PORT`; or with a cluster: `go run . cluster PORT`, the port of any node.
//
// With TLS where ESKER_CLIENT_AUTHORITY names the certificate of the authority, and with the password ESKER_CLIENT_PASSWORD.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var checked int

func same(found, expected any) {
	checked++
	if !reflect.DeepEqual(found, expected) {
		fmt.Printf("check %d: %#v is not %#v\n", checked, found, expected)
		os.Exit(1)
	}
}

func value[T any](found T, err error) T {
	if err != nil {
		fmt.Printf("after check %d: %v\n", checked, err)
		os.Exit(1)
	}
	return found
}

func refused(err error, text string) {
	checked++
	if err == nil || !strings.Contains(err.Error(), text) {
		fmt.Printf("check %d: %v is not %s\n", checked, err, text)
		os.Exit(1)
	}
}

func check(ctx context.Context, r *redis.Client) {
	value(r.FlushAll(ctx).Result())
	same(value(r.Set(ctx, "a", 1, 0).Result()), "OK")
	same(value(r.SetNX(ctx, "a", 2, 0).Result()), false)
	same(value(r.IncrBy(ctx, "a", 5).Result()), int64(6))
	same(value(r.IncrByFloat(ctx, "f", 1.5).Result()), 1.5)
	same(value(r.MGet(ctx, "a", "missing").Result()), []any{"6", nil})
	same(value(r.Set(ctx, "e", "v", time.Minute).Result()), "OK")
	same(value(r.TTL(ctx, "e").Result()) > 50*time.Second, true)
	same(r.Get(ctx, "missing").Err(), redis.Nil)
	refused(r.LPush(ctx, "a", "x").Err(), "WRONGTYPE")
	refused(r.Do(ctx, "NOSUCH", "x").Err(), "unknown command")

	same(value(r.HSet(ctx, "h", "f", "v", "g", "w").Result()), int64(2))
	same(value(r.HGetAll(ctx, "h").Result()), map[string]string{"f": "v", "g": "w"})
	same(value(r.SAdd(ctx, "s", "a", "b").Result()), int64(2))
	same(value(r.SMembersMap(ctx, "s").Result()), map[string]struct{}{"a": {}, "b": {}})
	same(value(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}).Result()), int64(2))
	same(value(r.ZRangeWithScores(ctx, "z", 0, -1).Result()), []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
	same(value(r.ZRangeByScore(ctx, "z", &redis.ZRangeBy{Min: "(1", Max: "+inf"}).Result()), []string{"b"})
	same(value(r.ZPopMin(ctx, "z", 1).Result()), []redis.Z{{Score: 1, Member: "a"}})
	same(value(r.RPush(ctx, "l", "a", "b", "c").Result()), int64(3))
	same(value(r.LRange(ctx, "l", 0, -1).Result()), []string{"a", "b", "c"})
	same(value(r.BLPop(ctx, time.Second, "missing", "l").Result()), []string{"l", "a"})

	pipe := r.TxPipeline()
	incremented := pipe.Incr(ctx, "a")
	value(pipe.Exec(ctx))
	same(incremented.Val(), int64(7))
	err := r.Watch(ctx, func(tx *redis.Tx) error {
		value(r.Set(ctx, "a", 100, 0).Result())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", 101, 0)
			return nil
		})
		return err
	}, "a")
	same(err, redis.TxFailedErr)

	for number := range 500 {
		value(r.Set(ctx, fmt.Sprintf("key:%d", number), "v", 0).Result())
	}
	found := map[string]bool{}
	scan := r.Scan(ctx, 0, "key:*", 50).Iterator()
	for scan.Next(ctx) {
		found[scan.Val()] = true
	}
	same(scan.Err(), error(nil))
	same(len(found), 500)
	same(value(r.ClientGetName(ctx).Result()), "check")
}

func main() {
	ctx := context.Background()
	address := "127.0.0.1:" + os.Args[len(os.Args)-1]
	isCluster := os.Args[1] == "cluster"
	var encryption *tls.Config
	if authority := os.Getenv("ESKER_CLIENT_AUTHORITY"); authority != "" {
		encryption = &tls.Config{RootCAs: x509.NewCertPool()}
		encryption.RootCAs.AppendCertsFromPEM(value(os.ReadFile(authority)))
	}
	for _, protocol := range []int{2, 3} {
		if isCluster {
			r := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}, Protocol: protocol})
			checkCluster(ctx, r)
			r.Close()
		} else {
			r := redis.NewClient(&redis.Options{
				Addr: address, Protocol: protocol, ClientName: "check", TLSConfig: encryption,
				Password: os.Getenv("ESKER_CLIENT_PASSWORD"),
			})
			check(ctx, r)
			r.Close()
		}
	}
	of := "a server"
	if isCluster {
		of = "a cluster"
	}
	if encryption != nil {
		of += " with TLS"
	}
	fmt.Printf("go-redis %s: %d checks of %s in RESP2 and RESP3\n", redis.Version(), checked, of)
}
