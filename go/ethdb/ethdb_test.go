package ethdb_test

import (
	"bytes"
	"errors"
	"testing"

	"esker"
	"esker/ethdb"

	geth "github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/dbtest"
)

func open(t testing.TB) *ethdb.Database {
	t.Helper()
	db, err := ethdb.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The suite of go-ethereum, as it is published.
func TestDatabaseSuite(t *testing.T) {
	dbtest.TestDatabaseSuite(t, func() geth.KeyValueStore { return open(t) })
}

func BenchmarkDatabaseSuite(b *testing.B) {
	dbtest.BenchDatabaseSuite(b, func() geth.KeyValueStore { return open(b) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotFound(t *testing.T) {
	db := open(t)
	if _, err := db.Get([]byte("k")); !errors.Is(err, ethdb.ErrNotFound) {
		t.Fatal(err)
	}
	must(t, db.Put([]byte("k"), nil))
	value, err := db.Get([]byte("k"))
	must(t, err)
	if value == nil || len(value) != 0 {
		t.Fatalf("%q is not the empty value", value)
	}
}

// An iterator is as of the moment at which it was made.
func TestAnIteratorIsOfItsMoment(t *testing.T) {
	db := open(t)
	must(t, db.Put([]byte("a"), []byte("before")))
	iterator := db.NewIterator(nil, nil)
	must(t, db.Put([]byte("a"), []byte("after")))
	must(t, db.Put([]byte("b"), nil))
	if !iterator.Next() || string(iterator.Value()) != "before" || iterator.Next() {
		t.Fatal("it sees what was written later")
	}
	iterator.Release()
	iterator.Release()
	if iterator.Next() || iterator.Key() != nil || iterator.Error() != nil {
		t.Fatal("it has ended")
	}
}

func TestAfterClose(t *testing.T) {
	db := open(t)
	iterator := db.NewIterator(nil, nil)
	must(t, db.Close())
	must(t, db.Close())
	if iterator.Next() || !errors.Is(iterator.Error(), esker.ErrClosed) {
		t.Fatal(iterator.Error())
	}
	iterator.Release()
	iterator = db.NewIterator(nil, nil)
	if iterator.Next() || !errors.Is(iterator.Error(), esker.ErrClosed) {
		t.Fatal(iterator.Error())
	}
	iterator.Release()
	for what, err := range map[string]error{
		"sync":    db.SyncKeyValue(),
		"compact": db.Compact(nil, nil),
		"range":   db.DeleteRange(nil, nil),
		// Of no keys.
		"empty compact": db.Compact([]byte("z"), []byte("a")),
		"empty range":   db.DeleteRange([]byte("z"), []byte("a")),
		"put":           db.Put([]byte("k"), nil),
	} {
		if !errors.Is(err, esker.ErrClosed) {
			t.Fatal(what, err)
		}
	}
}

// writer takes puts and deletes alone.
type writer struct{ geth.KeyValueWriter }

func TestBatches(t *testing.T) {
	db := open(t)
	key := []byte("key")
	batch := db.NewBatchWithSize(-1)
	must(t, batch.Put(key, []byte("value")))
	// What was passed may be used again.
	copy(key, "xxx")
	must(t, batch.Delete([]byte("other")))
	if batch.ValueSize() != len("keyvalueother") {
		t.Fatal(batch.ValueSize())
	}
	must(t, batch.Write())
	must(t, batch.Write())
	value, err := db.Get([]byte("key"))
	must(t, err)
	if !bytes.Equal(value, []byte("value")) {
		t.Fatalf("%q", value)
	}
	must(t, batch.DeleteRange([]byte("a"), []byte("z")))
	must(t, batch.DeleteRange([]byte("z"), []byte("a")))
	if err := batch.Replay(writer{db}); err == nil {
		t.Fatal("the writer deletes no ranges")
	}
	must(t, batch.Replay(db))
	if has, err := db.Has([]byte("key")); has || err != nil {
		t.Fatal(has, err)
	}
	batch.Reset()
	if batch.ValueSize() != 0 {
		t.Fatal(batch.ValueSize())
	}
	batch.Close()
}

func TestMaintenance(t *testing.T) {
	db := open(t)
	must(t, db.Put([]byte("k"), []byte("v")))
	must(t, db.SyncKeyValue())
	must(t, db.Compact([]byte("a"), []byte("z")))
	must(t, db.Compact([]byte("z"), []byte("a")))
	must(t, db.Compact(nil, nil))
	stat, err := db.Stat()
	must(t, err)
	if stat == "" {
		t.Fatal("no statistics")
	}
}

func TestAKeyspaceOfAnOpenDatabase(t *testing.T) {
	db, err := esker.Open(t.TempDir())
	must(t, err)
	defer db.Close()
	keys, err := db.Keyspace("state")
	must(t, err)
	store, err := ethdb.Of(keys)
	must(t, err)
	must(t, store.Put([]byte("k"), []byte("v")))
	must(t, store.Close())
	value, err := keys.Get([]byte("k"))
	must(t, err)
	if string(value) != "v" {
		t.Fatalf("%q", value)
	}
}

func TestOtherOrdersAreRefused(t *testing.T) {
	db, err := esker.Open(t.TempDir())
	must(t, err)
	defer db.Close()
	keys, err := db.Keyspace("backwards", esker.ReverseOrder())
	must(t, err)
	store, err := ethdb.Of(keys)
	if store != nil || !errors.Is(err, esker.ErrInvalidArgument) {
		t.Fatal(err)
	}
	must(t, keys.Close())
	if _, err = ethdb.Of(keys); !errors.Is(err, esker.ErrClosed) {
		t.Fatal(err)
	}
	if _, err = ethdb.Of(nil); !errors.Is(err, esker.ErrWrongHandle) {
		t.Fatal(err)
	}
}
