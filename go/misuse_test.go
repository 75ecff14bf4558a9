package esker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"esker"
)

func TestWrongArguments(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	long := make([]byte, 1<<20+1)
	is(t, names.Put(long, nil), esker.ErrInvalidArgument)
	_, err := names.Get(long)
	must(t, err)
	// The ends of a range need not be keys.
	must(t, names.DeleteRange(esker.Range{Start: long}))
	for _, name := range []string{"", "a\x00b", "\xff\xfe", strings.Repeat("n", 1<<20)} {
		_, err := db.Keyspace(name)
		is(t, err, esker.ErrInvalidArgument)
	}
	_, err = db.ExistingKeyspace("none")
	is(t, err, esker.ErrNotFound)
	for _, path := range []string{"", "a\x00b"} {
		_, err = esker.Open(path)
		is(t, err, esker.ErrInvalidArgument)
		is(t, esker.Destroy(path), esker.ErrInvalidArgument)
		_, err = esker.Repair(path)
		is(t, err, esker.ErrInvalidArgument)
		is(t, esker.VerifyDirectory(path), esker.ErrInvalidArgument)
		is(t, db.Checkpoint(path), esker.ErrInvalidArgument)
	}
	_, err = esker.Open("/dev/null/db")
	is(t, err, esker.ErrIO)
	_, _, err = db.Property("a\x00b")
	is(t, err, esker.ErrInvalidArgument)
}

// A process may end in any way with a database that is open: what was acknowledged is there, and the
// lock is free. While the database is open, another process is refused.
func TestProcessesThatEnd(t *testing.T) {
	const variable, marker = "ESKER_TEST_END", "acknowledged"
	if how := os.Getenv(variable); how != "" {
		path := os.Getenv(variable + "_DIRECTORY")
		db, err := esker.Open(path)
		if how == "refused" {
			is(t, err, esker.ErrLocked)
			return
		}
		must(t, err)
		names := keyspace(t, db, "names")
		must(t, names.Put(b(marker), b(how)))
		_, err = names.Cursor(esker.CursorOptions{})
		must(t, err)
		go func() {
			for {
				_ = names.Put(b("other"), nil)
			}
		}()
		switch how {
		case "exit":
			os.Exit(0)
		case "panic":
			go panic("asked to")
			select {}
		case "kill":
			must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		return
	}
	for _, how := range []string{"return", "exit", "panic", "kill"} {
		path := t.TempDir()
		run := func(how string) error {
			command := exec.Command(os.Args[0], "-test.run=^TestProcessesThatEnd$")
			command.Env = append(os.Environ(), variable+"="+how, variable+"_DIRECTORY="+path)
			return command.Run()
		}
		err := run(how)
		that(t, (err == nil) == (how == "return" || how == "exit"), fmt.Sprint(how, err))
		db, err := esker.Open(path)
		must(t, err)
		value, err := keyspace(t, db, "names").Get(b(marker))
		must(t, err)
		equal(t, value, how)
		must(t, run("refused"))
		must(t, db.Close())
	}
}

// More than a gigabyte is refused before it is read: the memory is never touched.
func TestHugeLengths(t *testing.T) {
	names := keyspace(t, open(t), "names")
	huge := make([]byte, 1<<30+1)
	is(t, names.Put(b("k"), huge), esker.ErrInvalidArgument)
	is(t, names.Put(huge, nil), esker.ErrInvalidArgument)
	_, err := names.Get(huge)
	is(t, err, esker.ErrInvalidArgument)
	_, err = names.Count(esker.Range{Start: huge})
	is(t, err, esker.ErrInvalidArgument)
}

func TestTwoOpens(t *testing.T) {
	directory := t.TempDir()
	db, err := esker.Open(directory)
	must(t, err)
	_, err = esker.Open(directory)
	is(t, err, esker.ErrLocked)
	var full *esker.Error
	that(t, errors.As(err, &full) && full.Retryable, "it may succeed later")
	_, err = esker.Repair(directory)
	is(t, err, esker.ErrLocked)
	read, err := esker.OpenReadOnly(directory)
	must(t, err)
	must(t, read.Close())
	must(t, db.Close())
	db, err = esker.Open(directory)
	must(t, err)
	must(t, db.Close())
}

// One call of each kind.
func TestClosedDatabases(t *testing.T) {
	ctx := context.Background()
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	put(t, names, "a", "1", "b", "2")
	snapshot, err := db.Snapshot()
	must(t, err)
	cursor, err := names.Cursor(esker.CursorOptions{})
	must(t, err)
	_, err = cursor.First()
	must(t, err)
	batch, err := db.Batch()
	must(t, err)
	must(t, batch.Put(names, b("k"), nil))
	transaction, err := db.Transaction()
	must(t, err)
	must(t, transaction.Put(names, b("k"), nil))
	changes, err := db.Changes(0)
	must(t, err)
	watch, err := names.Watch(nil)
	must(t, err)
	next, stop := iter.Pull2(names.All().All())
	defer stop()
	key, _, more := next()
	that(t, more && string(key) == "a", "the first pair")
	must(t, db.Close())
	is(t, db.Close(), esker.ErrClosed)
	that(t, errors.Is(db.Close(), fs.ErrClosed), "an error of package fs")

	r := esker.Range{}
	calls := map[string]func() error{
		"Keyspace": func() error { _, err := db.Keyspace("names"); return err },
		"Snapshot": func() error { _, err := db.Snapshot(); return err },
		"Stats":    func() error { _, err := db.Stats(); return err },
		"Flush":    db.Flush,
		"Verify":   db.Verify,
		"Transact": func() error { return db.Transact(ctx, func(*esker.Transaction) error { return nil }) },
		"Put":      func() error { return names.Put(nil, nil) },
		"PutWith":  func() error { return names.Put(nil, nil, esker.Sync(), esker.WithContext(ctx)) },
		"Get":      func() error { _, err := names.Get(nil); return err },
		"GetInto":  func() error { _, _, err := names.GetInto(b("a"), nil); return err },
		"MultiGet": func() error { _, err := names.MultiGet(b("a")); return err },
		"Count":    func() error { _, err := names.Count(r); return err },
		"Ingest":   func() error { _, err := names.Ingest(func(func(a, b []byte) bool) {}); return err },
		"Watch":    func() error { _, err := names.Watch(nil); return err },
		"ID":       func() error { _, err := names.ID(); return err },
		"Rename":   func() error { return names.Rename("other") },
		"Scan": func() error {
			scan := names.All()
			for range scan.All() {
			}
			return scan.Err()
		},
		"snapshot":    func() error { _, err := snapshot.Get(names, nil); return err },
		"sequence":    func() error { _, err := snapshot.Sequence(); return err },
		"cursor":      func() error { _, err := cursor.Next(); return err },
		"batch":       func() error { return batch.Commit() },
		"transaction": func() error { return transaction.Commit() },
		"get":         func() error { _, err := transaction.Get(names, nil); return err },
		"changes":     func() error { _, err := changes.Next(); return err },
		"settings":    func() error { _, err := changes.KeyspaceSettings(1, 1); return err },
		"wait":        func() error { return changes.Wait(ctx) },
		"watch":       func() error { return watch.Wait(ctx) },
	}
	for what, call := range calls {
		t.Run(what, func(t *testing.T) { is(t, call(), esker.ErrClosed) })
	}
	none(t, cursor.Key())
	none(t, cursor.Value())
	// Closing them still works, in any order.
	must(t, changes.Close())
	must(t, names.Close())
	must(t, watch.Close())
	must(t, cursor.Close())
	_ = transaction.Rollback() // A commit has failed, which ends it too.
	must(t, snapshot.Close())
	must(t, batch.Close())
}

func TestClosedKeyspaces(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	transaction, err := db.Transaction()
	must(t, err)
	defer transaction.Rollback()
	snapshot, err := db.Snapshot()
	must(t, err)
	defer snapshot.Close()
	must(t, names.Close())
	is(t, names.Close(), esker.ErrClosed)
	_, err = names.Get(nil)
	is(t, err, esker.ErrClosed)
	is(t, names.Rename("other"), esker.ErrClosed)
	is(t, batch.Put(names, nil, nil), esker.ErrClosed)
	is(t, transaction.Put(names, nil, nil), esker.ErrClosed)
	_, err = snapshot.Get(names, nil)
	is(t, err, esker.ErrClosed)
	_, err = snapshot.MultiGet(names, nil)
	is(t, err, esker.ErrClosed)
	_, err = transaction.MultiGet(names, nil)
	is(t, err, esker.ErrClosed)
	_, _, err = transaction.GetInto(names, nil, nil)
	is(t, err, esker.ErrClosed)
}

// What was never made is told as well.
func TestZeroObjects(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	var (
		noDB          *esker.DB
		noKeyspace    *esker.Keyspace
		noBatch       *esker.Batch
		noSnapshot    *esker.Snapshot
		noTransaction *esker.Transaction
		noCursor      *esker.Cursor
		noChanges     *esker.Changes
		noWatch       *esker.Watch
		noFollower    *esker.Follower
		noIterator    *esker.Iterator
	)
	for what, call := range map[string]func() error{
		"DB":               func() error { return noDB.Flush() },
		"zero DB":          func() error { return new(esker.DB).Flush() },
		"close DB":         func() error { return noDB.Close() },
		"Keyspace":         func() error { return noKeyspace.Put(nil, nil) },
		"zero Keyspace":    func() error { return new(esker.Keyspace).Put(nil, nil) },
		"close Keyspace":   func() error { return noKeyspace.Close() },
		"rename Keyspace":  func() error { return noKeyspace.Rename("other") },
		"Batch":            func() error { return noBatch.Put(names, nil, nil) },
		"zero Batch":       func() error { return new(esker.Batch).Commit() },
		"close Batch":      func() error { return noBatch.Close() },
		"Snapshot":         func() error { _, err := noSnapshot.Get(names, nil); return err },
		"zero Snapshot":    func() error { _, err := new(esker.Snapshot).Sequence(); return err },
		"close Snapshot":   func() error { return noSnapshot.Close() },
		"Transaction":      func() error { return noTransaction.Commit() },
		"read many":        func() error { _, err := noTransaction.MultiGet(names, nil); return err },
		"zero Transaction": func() error { return new(esker.Transaction).Put(names, nil, nil) },
		"roll back":        func() error { return noTransaction.Rollback() },
		"Cursor":           func() error { _, err := noCursor.Next(); return err },
		"close Cursor":     func() error { return new(esker.Cursor).Close() },
		"Changes":          func() error { _, err := noChanges.Next(); return err },
		"settings":         func() error { _, err := noChanges.KeyspaceSettings(1, 1); return err },
		"wait Changes":     func() error { return new(esker.Changes).Wait(context.Background()) },
		"close Changes":    func() error { return noChanges.Close() },
		"Iterator":         func() error { return noIterator.Err() },
		"close Iterator":   func() error { return new(esker.Iterator).Close() },
		"Watch":            func() error { return noWatch.Wait(context.Background()) },
		"close Watch":      func() error { return new(esker.Watch).Close() },
		"Follower":         func() error { _, err := noFollower.CatchUp(); return err },
		"lag":              func() error { _, _, err := new(esker.Follower).Lag(); return err },
		"close Follower":   func() error { return noFollower.Close() },
		"no keyspace": func() error {
			batch, err := db.Batch()
			must(t, err)
			defer batch.Close()
			return batch.Put(noKeyspace, nil, nil)
		},
	} {
		t.Run(what, func(t *testing.T) { is(t, call(), esker.ErrWrongHandle) })
	}
	that(t, noKeyspace.DB() == nil && noFollower.DB() == nil, "no database")
	that(t, noIterator.Key() == nil && noIterator.Value() == nil && !noIterator.Next(), "no pair")
}

// A keyspace of another database is refused.
func TestOtherDatabases(t *testing.T) {
	db, other := open(t), open(t)
	names := keyspace(t, other, "names")
	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	err = batch.Put(names, b("k"), nil)
	if err == nil {
		err = batch.Commit()
	}
	is(t, err, esker.ErrInvalidArgument)
}

// Zero bytes are bytes like others, in keys, values and the ends of ranges.
func TestZeroBytes(t *testing.T) {
	names := keyspace(t, open(t), "names")
	pairs := []struct{ key, value string }{
		{"", "\x00"}, {"\x00", "a\x00b"}, {"\x00\x00", ""}, {"a", "\x00\x00"}, {"a\x00", "c\x00"}, {"a\x00b", "\x00d"},
	}
	for _, pair := range pairs {
		must(t, names.Put(b(pair.key), b(pair.value)))
	}
	for _, pair := range pairs {
		value, err := names.Get(b(pair.key))
		must(t, err)
		equal(t, value, pair.value)
	}
	for within, expected := range map[*esker.ScanOptions][]int{
		{}: {0, 1, 2, 3, 4, 5},
		{Range: esker.Range{Start: b("\x00"), End: b("a\x00")}}:   {1, 2, 3},
		{Range: esker.Range{Start: b("a\x00"), End: b("a\x00b")}}: {4},
		{Prefix: b("\x00")}:                 {1, 2},
		{Prefix: b("a\x00"), Reverse: true}: {5, 4},
	} {
		scan, count := names.Scan(*within), 0
		for key, value := range scan.All() {
			that(t, count < len(expected), "no more pairs")
			equal(t, key, pairs[expected[count]].key)
			equal(t, value, pairs[expected[count]].value)
			count++
		}
		must(t, scan.Err())
		that(t, count == len(expected), "all pairs")
	}
	must(t, names.Delete(b("a\x00")))
	value, err := names.Get(b("a\x00"))
	must(t, err)
	none(t, value)
	value, err = names.Get(b("a"))
	must(t, err)
	equal(t, value, "\x00\x00")
}

// Slices of objects that have pointers can be passed, which cgo refuses where it looks.
func TestBytesBesidePointers(t *testing.T) {
	type node struct {
		next *node
		key  [8]byte
	}
	names := keyspace(t, open(t), "names")
	inner := &node{next: &node{}}
	must(t, names.Put(inner.key[:], inner.key[:4]))
	value, err := names.Get(inner.key[:])
	must(t, err)
	that(t, len(value) == 4, "the value")
	_, err = names.Count(esker.Range{Start: inner.key[:], End: inner.next.key[:]})
	must(t, err)
}

// Handles whose numbers lie where the memory of Go does are no pointers to the garbage collector.
func TestHandlesAreNoPointers(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	put(t, names, "k", "v")
	// A slot is used again with the next number: 0xc0 of them are where the heap of Go begins.
	for i := range 300 {
		kept := make([]*esker.Snapshot, 20)
		for j := range kept {
			snapshot, err := db.Snapshot()
			must(t, err)
			kept[j] = snapshot
		}
		if i%10 == 0 || i > 180 && i < 220 {
			runtime.GC()
		}
		for _, snapshot := range kept {
			value, err := snapshot.Get(names, b("k"))
			must(t, err)
			equal(t, value, "v")
			must(t, snapshot.Close())
		}
	}
}

// What is not closed ends with the garbage collection, in any order.
func TestGarbage(t *testing.T) {
	directory := t.TempDir()
	func() {
		db, err := esker.Open(directory, esker.KeepChangesBytes(1<<20))
		must(t, err)
		names := keyspace(t, db, "names")
		put(t, names, "k", "v")
		for range 50 {
			_, err := db.Snapshot()
			must(t, err)
			_, err = names.Cursor(esker.CursorOptions{})
			must(t, err)
			_, err = db.Batch()
			must(t, err)
			_, err = db.Transaction()
			must(t, err)
			_, err = db.Changes(0)
			must(t, err)
			_, err = names.Watch(nil)
			must(t, err)
			keyspace(t, db, "names")
			for range names.All().All() {
				break
			}
			_, err = names.All().Iterator()
			must(t, err)
			runtime.GC()
			must(t, names.Put(b("k"), b("v")))
		}
	}()
	// The database was not closed: it releases its lock when it is collected.
	for {
		runtime.GC()
		db, err := esker.Open(directory)
		if err == nil {
			must(t, db.Close())
			return
		}
		is(t, err, esker.ErrLocked)
		runtime.Gosched()
	}
}

// A keyspace keeps its database.
func TestAKeyspaceKeepsItsDatabase(t *testing.T) {
	names := func() *esker.Keyspace {
		db, err := esker.Open(t.TempDir())
		must(t, err)
		return keyspace(t, db, "names")
	}()
	for range 10 {
		runtime.GC()
		must(t, names.Put(b("k"), b("v")))
	}
	must(t, names.DB().Close())
}

func TestClosesUnderWay(t *testing.T) {
	directory := t.TempDir()
	for round := range 20 {
		db, err := esker.Open(filepath.Join(directory, fmt.Sprint(round)), esker.KeepChangesBytes(1<<20))
		must(t, err)
		names := keyspace(t, db, "names")
		cursor, err := names.Cursor(esker.CursorOptions{})
		must(t, err)
		batch, err := db.Batch()
		must(t, err)
		changes, err := db.Changes(0)
		must(t, err)
		watch, err := names.Watch(nil)
		must(t, err)
		var pairs atomic.Pointer[esker.Iterator]
		begin := func() error {
			begun, err := names.All().Iterator()
			if err != nil {
				return err
			}
			pairs.Store(begun)
			return nil
		}
		must(t, begin())
		var group sync.WaitGroup
		work := func(call func(i int) error) {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := 0; ; i++ {
					switch err := call(i); {
					case errors.Is(err, esker.ErrClosed):
						return
					case err != nil && !errors.Is(err, esker.ErrBusy):
						t.Error(err)
						return
					}
				}
			}()
		}
		key := func(i int) []byte { return fmt.Appendf(nil, "%d", i) }
		for range 2 {
			work(func(i int) error { return names.Put(key(i), key(i)) })
			work(func(i int) error { _, err := names.Get(key(i)); return err })
			work(func(i int) error { return batch.Put(names, key(i), key(i)) })
			work(func(i int) error {
				if i%7 == 0 {
					return batch.Clear()
				}
				_, err := cursor.Seek(key(i))
				_ = cursor.Key()
				return err
			})
			work(func(i int) error {
				if i%50 == 49 {
					_ = pairs.Load().Close()
					return begin()
				}
				pairs.Load().Next()
				return nil
			})
			work(func(int) error { _, err := changes.Next(); return err })
			work(func(int) error { return watch.Wait(context.Background()) })
			work(func(int) error {
				scan := names.All()
				for range scan.All() {
				}
				return scan.Err()
			})
		}
		for i := range 100 {
			must(t, names.Put(key(i), nil))
		}
		switch round % 4 {
		case 0:
			_ = cursor.Close()
			_ = batch.Close()
			_ = changes.Close()
			must(t, watch.Close())
			must(t, names.Close())
		case 1:
			must(t, names.Close())
		}
		must(t, db.Close())
		group.Wait()
	}
}

// A scan that outlives its database ends with an error, not with less than there is.
func TestAScanThatOutlivesItsDatabase(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	for i := range 1000 {
		must(t, names.Put(fmt.Appendf(nil, "%04d", i), nil))
	}
	scan := names.All()
	seen := 0
	for range scan.All() {
		if seen++; seen == 1 {
			must(t, db.Close())
		}
	}
	is(t, scan.Err(), esker.ErrClosed)
	that(t, seen < 1000, "not all")
}

// The messages of failures are those of their own call, also where goroutines change their threads: a
// call that takes long loses its processor to another goroutine, and goes on in any thread.
func TestMessagesAreOfTheirCall(t *testing.T) {
	db := open(t)
	names := []string{"first keyspace", "second keyspace"}
	keyspaces := make([]*esker.Keyspace, len(names))
	for i, name := range names {
		keyspaces[i] = keyspace(t, db, name, esker.WithMergeOperator(&longest{}))
		batch, err := db.Batch()
		must(t, err)
		for key := range 50_000 {
			must(t, batch.Put(keyspaces[i], fmt.Appendf(nil, "%08d", key), nil))
		}
		must(t, batch.Merge(keyspaces[i], b("last"), b("fail")))
		must(t, batch.Commit())
		must(t, batch.Close())
	}
	// One processor, and somebody who always wants it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
		}
	}()
	var group sync.WaitGroup
	for i, name := range names {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 30 {
				_, err := keyspaces[i].Count(esker.Range{})
				if !errors.Is(err, esker.ErrMergeFailed) || !strings.Contains(err.Error(), name) {
					t.Errorf("%v does not name %s", err, name)
					return
				}
			}
		}()
	}
	group.Wait()
}

// A file that is cut short under its mapping is an error, not the end of the process: the engine and the
// runtime of Go share the signal.
func TestFilesThatAreCutShort(t *testing.T) {
	directory := t.TempDir()
	db, err := esker.Open(directory, esker.ReadTables(esker.ReadMapped), esker.CompressLastRun(esker.NoCompression),
		esker.CompressUpperRuns(esker.NoCompression))
	must(t, err)
	defer db.Close()
	names := keyspace(t, db, "names")
	value := make([]byte, 1000)
	for i := range 1000 {
		must(t, names.Put(fmt.Appendf(nil, "%04d", i), value))
	}
	must(t, db.Compact())
	tables, err := filepath.Glob(filepath.Join(directory, "*.table"))
	must(t, err)
	that(t, len(tables) > 0, "a table was found")
	for _, table := range tables {
		must(t, os.Truncate(table, 4096))
	}
	failed := 0
	for i := range 1000 {
		if _, err := names.Get(fmt.Appendf(nil, "%04d", i)); err != nil {
			that(t, errors.Is(err, esker.ErrIO) || errors.Is(err, esker.ErrCorruption), err.Error())
			failed++
		}
	}
	that(t, failed > 500, fmt.Sprintf("%d gets have failed", failed))
	scan := names.All()
	for range scan.All() {
	}
	that(t, scan.Err() != nil, "the scan fails")
	// A fault of the program itself is still the runtime's: a panic.
	func() {
		defer func() { that(t, recover() != nil, "a panic") }()
		var nothing *int
		*nothing = 1 //nolint:govet
	}()
}

func TestOneCallAtATime(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names", esker.BuiltInMerge(esker.MergeMax))
	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 500 {
				if err := batch.Put(names, b("k"), b("v")); err != nil && !errors.Is(err, esker.ErrBusy) {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	must(t, batch.Put(names, b("k"), b("v")))
	must(t, batch.Commit())
	that(t, scanned(t, names.All()) == "k=v", "what was written")
}
