package esker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"esker"
)

// What a call returns after its object was closed under way is nothing, and is freed by nobody.
func TestPairsOfWhatIsClosedUnderWay(t *testing.T) {
	db := open(t)
	for range 100 {
		names := keyspace(t, db, "names", esker.BuiltInMerge(esker.MergeMax))
		put(t, names, "a", "1", "b", "2")
		snapshot, err := db.Snapshot()
		must(t, err)
		transaction, err := db.Transaction()
		must(t, err)
		var group sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, _, err := snapshot.First(names); return err },
			func() error { _, _, err := snapshot.Last(names); return err },
			func() error { _, err := snapshot.MultiGet(names, b("a"), b("b")); return err },
			func() error { _, _, err := transaction.First(names); return err },
			func() error { _, _, err := transaction.Last(names); return err },
			func() error { _, _, err := transaction.PopFirst(names); return err },
			func() error { _, _, err := names.First(); return err },
			func() error { _, err := names.MultiGet(b("a"), b("b")); return err },
		} {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					err := call()
					if errors.Is(err, esker.ErrClosed) {
						return
					}
					if err != nil && !errors.Is(err, esker.ErrBusy) {
						t.Error(err)
						return
					}
				}
			}()
		}
		_, err = names.Get(b("a"))
		must(t, err)
		must(t, names.Close())
		group.Wait()
		must(t, snapshot.Close())
		must(t, transaction.Rollback())
	}
}

// A commit that fails before it is one ends the transaction as well, and with it what it has seen.
func TestCommitsThatAreRefused(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for what, options := range map[string][]esker.WriteOption{
		"a time to live that has passed": {esker.TTL(-time.Second)},
		"no option":                      {nil},
		"a context that has ended":       {esker.WithContext(ended)},
	} {
		t.Run(what, func(t *testing.T) {
			db := open(t)
			names := keyspace(t, db, "names", esker.Expires(0))
			value := make([]byte, 1<<10)
			for key := range 1000 {
				for i := range value {
					value[i] = byte(rand.Uint32())
				}
				must(t, names.Put(fmt.Appendf(nil, "%04d", key), value))
			}
			must(t, db.Flush())
			transaction, err := db.Transaction()
			must(t, err)
			_, err = transaction.Count(names, esker.Range{})
			must(t, err)
			must(t, transaction.Put(names, b("other"), nil))
			that(t, transaction.Commit(options...) != nil, "refused")
			is(t, transaction.Rollback(), esker.ErrClosed)
			must(t, names.DeleteRange(esker.Range{}))
			must(t, names.Compact(esker.Range{}))
			bytes, err := names.ApproximateSize(esker.Range{})
			must(t, err)
			that(t, bytes < 1<<19, "the values that the transaction saw are gone")
			runtime.KeepAlive(transaction)
		})
	}
	db := open(t)
	transaction, err := db.Transaction()
	must(t, err)
	must(t, db.Close())
	is(t, transaction.Commit(), esker.ErrClosed)
	is(t, transaction.Rollback(), esker.ErrClosed)
}

// looking is a merge operator that calls the program.
type looking struct{ look func() }

func (looking) Name() string { return "looking" }

func (l looking) FullMerge(_, _ []byte, operands [][]byte) ([]byte, error) {
	if l.look != nil {
		l.look()
	}
	return operands[len(operands)-1], nil
}

// A call that meets another one of the same iterator sees nothing, which is not told as the end.
func TestIteratorsInUse(t *testing.T) {
	var pairs *esker.Iterator
	looked := 0
	db := open(t)
	names := keyspace(t, db, "names", esker.WithMergeOperator(looking{func() {
		if pairs == nil {
			return
		}
		looked++
		that(t, !pairs.Next() && pairs.Key() == nil && pairs.Value() == nil, "in use")
		is(t, pairs.Err(), esker.ErrBusy)
		is(t, pairs.Close(), esker.ErrBusy)
	}}))
	must(t, names.Merge(b("k"), b("v")))
	var err error
	pairs, err = names.All().Iterator()
	must(t, err)
	that(t, pairs.Next(), "a pair")
	equal(t, pairs.Key(), "k")
	that(t, looked > 0, "it was in use")
	that(t, !pairs.Next(), "the end")
	is(t, pairs.Err(), esker.ErrBusy)
	must(t, pairs.Close())
	is(t, pairs.Err(), esker.ErrBusy)
	pairs = nil
}

// Keys and values are read by other goroutines than the one that steps.
func TestIteratorsOfManyGoroutines(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	for i := range 1000 {
		must(t, names.Put([]byte{byte(i), byte(i >> 8)}, b("v")))
	}
	pairs, err := names.All().Iterator()
	must(t, err)
	defer pairs.Close()
	var group sync.WaitGroup
	var ended atomic.Bool
	var reads atomic.Int64
	for range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			for !ended.Load() {
				if key := pairs.Key(); key != nil && len(key) != 2 {
					t.Errorf("%q", key)
				}
				if value := pairs.Value(); value != nil && string(value) != "v" {
					t.Errorf("%q", value)
				}
				reads.Add(1)
			}
		}()
	}
	for reads.Load() < 10_000 {
		pairs.Next()
	}
	ended.Store(true)
	group.Wait()
}

// Close of a reader of changes closes it, whatever other goroutines do with it.
func TestChangesAreClosedUnderWay(t *testing.T) {
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	for range 100 {
		put(t, names, "k", "v")
	}
	for range 100 {
		changes, err := db.Changes(0)
		must(t, err)
		begun := make(chan bool, 1)
		var group sync.WaitGroup
		for range 2 {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					_, err := changes.Next()
					if errors.Is(err, esker.ErrClosed) {
						return
					}
					if err != nil && !errors.Is(err, esker.ErrBusy) {
						t.Error(err)
						return
					}
					select {
					case begun <- true:
					default:
					}
				}
			}()
		}
		<-begun
		must(t, changes.Close())
		is(t, changes.Close(), esker.ErrClosed)
		group.Wait()
	}
}
