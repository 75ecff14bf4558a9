package esker_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"esker"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is fails unless an error has a code.
func is(t testing.TB, err error, code esker.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("%v instead of %v", err, code)
	}
	var full *esker.Error
	if !errors.As(err, &full) || full.Code != code || full.Message == "" {
		t.Fatalf("%#v is no *esker.Error with the code %v", err, code)
	}
}

func equal(t testing.TB, found []byte, expected string) {
	t.Helper()
	if found == nil || !bytes.Equal(found, []byte(expected)) {
		t.Fatalf("%q instead of %q", found, expected)
	}
}

func none(t testing.TB, found []byte) {
	t.Helper()
	if found != nil {
		t.Fatalf("%q instead of nothing", found)
	}
}

func that(t testing.TB, so bool, what string) {
	t.Helper()
	if !so {
		t.Fatalf("not so: %s", what)
	}
}

func open(t testing.TB, options ...esker.Option) *esker.DB {
	t.Helper()
	db, err := esker.Open(t.TempDir(), options...)
	must(t, err)
	// A test may have closed it.
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func keyspace(t testing.TB, db *esker.DB, name string, options ...esker.KeyspaceOption) *esker.Keyspace {
	t.Helper()
	k, err := db.Keyspace(name, options...)
	must(t, err)
	return k
}

func b(text string) []byte { return []byte(text) }

// put writes pairs of keys and values.
func put(t testing.TB, k *esker.Keyspace, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		must(t, k.Put(b(pairs[i]), b(pairs[i+1])))
	}
}

// scanned is what a scan yields, as "key=value" with spaces between.
func scanned(t testing.TB, scan *esker.Scan) string {
	t.Helper()
	var text []byte
	for key, value := range scan.All() {
		if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(append(append(text, key...), '='), value...)
	}
	must(t, scan.Err())
	return string(text)
}

// manualClock is a time that is set by hand.
type manualClock struct{ now chan time.Time }

func newClock() *manualClock {
	clock := &manualClock{make(chan time.Time, 1)}
	clock.now <- time.UnixMilli(1_000_000)
	return clock
}

func (c *manualClock) Now() time.Time {
	now := <-c.now
	c.now <- now
	return now
}

func (c *manualClock) Pass(d time.Duration) {
	now := <-c.now
	c.now <- now.Add(d)
}
