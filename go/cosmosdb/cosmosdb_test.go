package cosmosdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"esker"
	"esker/cosmosdb"
)

// The interfaces as the packages have them; the module in the directory suites checks theirs.
type batch interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	Write() error
	WriteSync() error
	Close() error
	GetByteSize() (int, error)
}

type iterator interface {
	Domain() (start, end []byte)
	Valid() bool
	Next()
	Key() []byte
	Value() []byte
	Error() error
	Close() error
}

type database = cosmosdb.DB[batch, iterator]

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *database {
	t.Helper()
	db, err := cosmosdb.Open[batch, iterator](t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func pairsOf(t testing.TB, i iterator, err error) string {
	t.Helper()
	must(t, err)
	var all bytes.Buffer
	for ; i.Valid(); i.Next() {
		fmt.Fprintf(&all, "%s=%s ", i.Key(), i.Value())
	}
	must(t, i.Error())
	must(t, i.Close())
	must(t, i.Close())
	return all.String()
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return
}

func TestRanges(t *testing.T) {
	db := open(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		must(t, db.Set([]byte(key), []byte(key+key)))
	}
	for _, c := range []struct{ start, end, forward, back string }{
		{"", "", "a=aa b=bb c=cc d=dd ", "d=dd c=cc b=bb a=aa "},
		{"b", "d", "b=bb c=cc ", "c=cc b=bb "},
		{"bb", "", "c=cc d=dd ", "d=dd c=cc "},
		{"", "c", "a=aa b=bb ", "b=bb a=aa "},
		{"c", "c", "", ""},
		{"d", "b", "", ""},
	} {
		bound := func(key string) []byte {
			if key == "" {
				return nil
			}
			return []byte(key)
		}
		i, err := db.Iterator(bound(c.start), bound(c.end))
		if found := pairsOf(t, i, err); found != c.forward {
			t.Errorf("%q to %q: %q", c.start, c.end, found)
		}
		i, err = db.ReverseIterator(bound(c.start), bound(c.end))
		if found := pairsOf(t, i, err); found != c.back {
			t.Errorf("%q to %q, backward: %q", c.start, c.end, found)
		}
	}
	i, err := db.Iterator([]byte("b"), nil)
	must(t, err)
	start, end := i.Domain()
	if string(start) != "b" || end != nil {
		t.Fatal(start, end)
	}
	must(t, i.Close())
	if i.Valid() || i.Error() != nil {
		t.Fatal("it is closed")
	}
	for what, f := range map[string]func(){
		"Next": i.Next, "Key": func() { i.Key() }, "Value": func() { i.Value() },
	} {
		if !panics(f) {
			t.Error(what, "at no pair does not panic")
		}
	}
}

func TestAnIteratorIsOfItsMoment(t *testing.T) {
	db := open(t)
	must(t, db.SetSync([]byte("a"), []byte("before")))
	i, err := db.Iterator(nil, nil)
	must(t, err)
	must(t, db.Set([]byte("a"), []byte("after")))
	must(t, db.DeleteSync([]byte("a")))
	if found := pairsOf(t, i, nil); found != "a=before " {
		t.Fatal(found)
	}
	if has, err := db.Has([]byte("a")); has || err != nil {
		t.Fatal(has, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	db := open(t)
	pending := db.NewBatchWithSize(1000)
	for what, err := range map[string]error{
		"set": db.Set(nil, []byte("v")), "set, sync": db.SetSync([]byte{}, []byte("v")),
		"delete": db.Delete(nil), "delete, sync": db.DeleteSync([]byte{}),
		"set in a batch": pending.Set(nil, []byte("v")), "delete in a batch": pending.Delete(nil),
	} {
		if !errors.Is(err, cosmosdb.ErrKeyEmpty) {
			t.Error(what, err)
		}
	}
	_, ofGet := db.Get(nil)
	_, ofHas := db.Has([]byte{})
	_, ofStart := db.Iterator([]byte{}, nil)
	_, ofEnd := db.ReverseIterator(nil, []byte{})
	for _, err := range []error{ofGet, ofHas, ofStart, ofEnd} {
		if !errors.Is(err, cosmosdb.ErrKeyEmpty) {
			t.Error(err)
		}
	}
	if err := db.Set([]byte("k"), nil); !errors.Is(err, cosmosdb.ErrValueNil) {
		t.Error(err)
	}
	if err := pending.Set([]byte("k"), nil); !errors.Is(err, cosmosdb.ErrValueNil) {
		t.Error(err)
	}
	must(t, pending.Set([]byte("k"), []byte{}))
	must(t, pending.Delete([]byte("other")))
	if size, err := pending.GetByteSize(); size != len("kother") || err != nil {
		t.Error(size, err)
	}
	must(t, pending.WriteSync())
	must(t, pending.Close())
	_, ofSize := pending.GetByteSize()
	for _, err := range []error{
		ofSize, pending.Set([]byte("k"), []byte("v")), pending.Delete([]byte("k")), pending.Write(), pending.WriteSync(),
	} {
		if !errors.Is(err, cosmosdb.ErrBatchClosed) {
			t.Error(err)
		}
	}
	value, err := db.Get([]byte("k"))
	if must(t, err); value == nil || len(value) != 0 {
		t.Errorf("%q is not the value of no bytes", value)
	}
}

func TestAfterClose(t *testing.T) {
	db := open(t)
	must(t, db.Set([]byte("k"), []byte("v")))
	pending := db.NewBatch()
	must(t, db.Close())
	must(t, db.Close())
	_, ofGet := db.Get([]byte("k"))
	_, ofIterator := db.Iterator(nil, nil)
	for what, err := range map[string]error{
		"get": ofGet, "iterator": ofIterator, "set": db.Set([]byte("k"), []byte("v")),
		"batch": pending.Set([]byte("k"), []byte("v")), "write": pending.Write(),
		"new batch": db.NewBatch().Write(), "compact": db.Compact(nil, nil), "print": db.Print(),
	} {
		if !errors.Is(err, esker.ErrClosed) {
			t.Error(what, err)
		}
	}
	if stats := db.Stats(); len(stats) != 0 {
		t.Error(stats)
	}
}

func TestMaintenance(t *testing.T) {
	db := open(t)
	must(t, db.Set([]byte("k"), []byte("v")))
	must(t, db.Compact([]byte("a"), []byte("z")))
	must(t, db.Compact([]byte("z"), []byte("a")))
	must(t, db.Compact(nil, nil))
	if db.Stats()["esker.health.writable"] == "" {
		t.Error(db.Stats())
	}
	stdout := os.Stdout
	reading, writing, err := os.Pipe()
	must(t, err)
	os.Stdout = writing
	err = db.Print()
	os.Stdout = stdout
	must(t, err)
	must(t, writing.Close())
	var printed bytes.Buffer
	_, err = printed.ReadFrom(reading)
	must(t, err)
	if !bytes.Contains(printed.Bytes(), []byte("[6B]:\t[76]\n")) {
		t.Error(printed.String())
	}
}

func TestAKeyspaceOfAnOpenDatabase(t *testing.T) {
	db, err := esker.Open(t.TempDir())
	must(t, err)
	defer db.Close()
	keys, err := db.Keyspace("state")
	must(t, err)
	state, err := cosmosdb.Of[batch, iterator](keys)
	must(t, err)
	must(t, state.Set([]byte("k"), []byte("v")))
	must(t, state.Close())
	value, err := keys.Get([]byte("k"))
	if must(t, err); string(value) != "v" {
		t.Fatalf("%q", value)
	}
	backwards, err := db.Keyspace("backwards", esker.ReverseOrder())
	must(t, err)
	if _, err := cosmosdb.Of[batch, iterator](backwards); !errors.Is(err, esker.ErrInvalidArgument) {
		t.Fatal(err)
	}
}

func TestTypesThatDoNotFit(t *testing.T) {
	directory := t.TempDir()
	if _, err := cosmosdb.Open[fmt.Stringer, iterator](directory); !errors.Is(err, esker.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := cosmosdb.Open[batch, int](directory); !errors.Is(err, esker.ErrInvalidArgument) {
		t.Error(err)
	}
	// Nothing was opened.
	db, err := cosmosdb.Open[batch, iterator](directory)
	must(t, err)
	must(t, db.Close())
}
