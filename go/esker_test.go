package esker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"esker"
)

func TestValues(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	must(t, names.Put(b("ada"), b("1815")))
	value, err := names.Get(b("ada"))
	must(t, err)
	equal(t, value, "1815")
	value, err = names.Get(b("bob"))
	must(t, err)
	none(t, value)

	// Zero bytes are bytes; the empty key is a key, an empty value one.
	must(t, names.Put(b("a\x00b"), b("c\x00d")))
	value, err = names.Get(b("a\x00b"))
	must(t, err)
	equal(t, value, "c\x00d")
	must(t, names.Put(nil, nil))
	for _, empty := range [][]byte{nil, {}, b("x")[:0]} {
		value, err = names.Get(empty)
		must(t, err)
		equal(t, value, "")
	}
	must(t, names.Delete(nil))
	must(t, names.Delete(b("a\x00b")))

	must(t, names.Put(b("eve"), b("")))
	values, err := names.MultiGet(b("ada"), b("bob"), b("eve"), b(""))
	must(t, err)
	that(t, len(values) == 4, "four values")
	equal(t, values[0], "1815")
	none(t, values[1])
	equal(t, values[2], "")
	none(t, values[3])
	values, err = names.MultiGet()
	must(t, err)
	that(t, len(values) == 0, "no values")

	// Into a buffer, which may be a part of another object.
	holder := struct {
		buffer [4]byte
		other  *int
	}{other: new(int)}
	length, found, err := names.GetInto(b("ada"), holder.buffer[:])
	must(t, err)
	that(t, found && length == 4, "the value")
	equal(t, holder.buffer[:], "1815")
	length, found, err = names.GetInto(b("eve"), nil)
	must(t, err)
	that(t, found && length == 0, "an empty value")
	length, found, err = names.GetInto(b("bob"), nil)
	must(t, err)
	that(t, !found && length == 0, "no value")
	holder.buffer = [4]byte{'-', '-', '-', '-'}
	length, found, err = names.GetInto(b("ada"), holder.buffer[:3])
	is(t, err, esker.ErrBufferTooShort)
	that(t, found && length == 4, "the length that is needed")
	equal(t, holder.buffer[:], "----")

	has, err := names.Has(b("eve"))
	must(t, err)
	that(t, has, "eve")
	has, err = names.Has(b("bob"))
	must(t, err)
	that(t, !has, "no bob")

	key, value, err := names.First()
	must(t, err)
	equal(t, key, "ada")
	equal(t, value, "1815")
	key, value, err = names.Last()
	must(t, err)
	equal(t, key, "eve")
	equal(t, value, "")
	count, err := names.Count(esker.Range{Start: b("b")})
	must(t, err)
	that(t, count == 1, "one key behind b")
	count, err = names.Count(esker.Range{End: []byte{}})
	must(t, err)
	that(t, count == 0, "nothing before the empty key")

	key, value, err = names.PopFirst()
	must(t, err)
	equal(t, key, "ada")
	equal(t, value, "1815")
	must(t, names.DeleteRange(esker.Range{}))
	key, value, err = names.First()
	must(t, err)
	none(t, key)
	none(t, value)
	put(t, names, "user:1", "x", "user:2", "x", "v", "x")
	must(t, names.DeletePrefix(b("user:")))
	count, err = names.Count(esker.Range{})
	must(t, err)
	that(t, count == 1, "the other key")

	name, err := names.Name()
	must(t, err)
	that(t, name == "names", name)
	comparator, err := names.Comparator()
	must(t, err)
	that(t, comparator == "bytewise", comparator)
	order, err := names.CompareKeys(b("a"), b("b"))
	must(t, err)
	that(t, order < 0, "a before b")
	_, err = names.ApproximateSize(esker.Range{})
	must(t, err)
	must(t, names.Compact(esker.Range{}))
	must(t, names.Compact(esker.Range{Start: b("a")}))
	// After a compaction it is exact.
	count, err = names.Count(esker.Range{})
	must(t, err)
	entries, err := names.ApproximateCount(esker.Range{})
	must(t, err)
	that(t, entries == count, fmt.Sprint(entries, " entries of ", count))
	put(t, names, "a", "1", "zz", "2")
	entries, err = names.ApproximateCount(esker.Range{Start: b("z")})
	must(t, err)
	that(t, entries == 1, fmt.Sprint(entries))
}

func TestConditionalWrites(t *testing.T) {
	names := keyspace(t, open(t), "names")
	existing, err := names.PutIfAbsent(b("k"), b("1"))
	must(t, err)
	none(t, existing)
	existing, err = names.PutIfAbsent(b("k"), b("2"))
	must(t, err)
	equal(t, existing, "1")
	swapped, current, err := names.CompareAndSwap(b("k"), b("2"), b("3"))
	must(t, err)
	that(t, !swapped, "another value")
	equal(t, current, "1")
	swapped, current, err = names.CompareAndSwap(b("k"), b("1"), []byte{})
	must(t, err)
	that(t, swapped, "an empty value is one")
	none(t, current)
	swapped, _, err = names.CompareAndSwap(b("k"), []byte{}, nil)
	must(t, err)
	that(t, swapped, "nil is none")
	swapped, _, err = names.CompareAndSwap(b("k"), nil, b("4"), esker.Sync())
	must(t, err)
	that(t, swapped, "none before")
	taken, err := names.Take(b("k"))
	must(t, err)
	equal(t, taken, "4")
	taken, err = names.Take(b("k"))
	must(t, err)
	none(t, taken)
}

func TestBatches(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	batch, err := db.Batch()
	must(t, err)
	must(t, batch.Put(names, b("a1"), b("x")))
	must(t, batch.Put(names, b("b1"), b("x")))
	must(t, batch.Put(names, b("c1"), b("x")))
	must(t, batch.Delete(names, b("a1")))
	must(t, batch.DeletePrefix(names, b("b")))
	must(t, batch.DeleteRange(names, esker.Range{Start: b("d")}))
	length, err := batch.Len()
	must(t, err)
	that(t, length == 6, "six operations")
	must(t, batch.Commit(esker.Sync()))
	length, err = batch.Len()
	must(t, err)
	that(t, length == 0, "an empty batch")
	that(t, scanned(t, names.All()) == "c1=x", "what the batch leaves")
	must(t, batch.Put(names, b("d"), b("x")))
	must(t, batch.Clear())
	must(t, batch.Commit())
	that(t, scanned(t, names.All()) == "c1=x", "nothing more")
	must(t, batch.Close())
	is(t, batch.Close(), esker.ErrClosed)
	is(t, batch.Put(names, nil, nil), esker.ErrClosed)
}

func TestTimesToLive(t *testing.T) {
	clock := newClock()
	db := open(t, esker.WithClock(clock.Now))
	sessions := keyspace(t, db, "sessions", esker.Expires(time.Hour), esker.BuiltInMerge(esker.MergeMax))
	ttl, enabled, err := sessions.DefaultTTL()
	must(t, err)
	that(t, enabled && ttl == time.Hour, "an hour")
	must(t, sessions.Put(b("s1"), b("x"), esker.TTL(100*time.Millisecond)))
	must(t, sessions.PutUntil(b("s2"), b("x"), clock.Now().Add(50*time.Millisecond)))
	must(t, sessions.Put(b("s3"), b("x")))
	at, found, err := sessions.ExpiresAt(b("s2"))
	must(t, err)
	that(t, found && at.Equal(clock.Now().Add(50*time.Millisecond)), "the time of s2")
	at, found, err = sessions.ExpiresAt(b("s3"))
	must(t, err)
	that(t, found && at.Equal(clock.Now().Add(time.Hour)), "the default")
	clock.Pass(60 * time.Millisecond)
	_, found, err = sessions.ExpiresAt(b("s2"))
	must(t, err)
	that(t, !found, "s2 has expired")
	found, err = sessions.Touch(b("s1"), time.Second)
	must(t, err)
	that(t, found, "s1 lives")
	found, err = sessions.ExpireAt(b("s1"), clock.Now().Add(time.Minute))
	must(t, err)
	that(t, found, "s1 lives")
	found, err = sessions.Persist(b("s1"))
	must(t, err)
	that(t, found, "s1 lives")
	at, found, err = sessions.ExpiresAt(b("s1"))
	must(t, err)
	that(t, found && at.IsZero(), "s1 never expires")
	// Less than a millisecond is one.
	must(t, sessions.Put(b("soon"), b("x"), esker.TTL(time.Nanosecond)))
	at, _, err = sessions.ExpiresAt(b("soon"))
	must(t, err)
	that(t, at.Equal(clock.Now().Add(time.Millisecond)), "a millisecond")
	is(t, sessions.Put(b("k"), b("x"), esker.TTL(0)), esker.ErrInvalidArgument)
	is(t, sessions.Put(b("k"), b("x"), esker.TTL(-time.Second)), esker.ErrInvalidArgument)

	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	must(t, batch.PutWithTTL(sessions, b("b1"), b("x"), time.Millisecond))
	must(t, batch.PutUntil(sessions, b("b2"), b("x"), clock.Now().Add(time.Millisecond)))
	must(t, batch.PutUntil(sessions, b("b3"), b("x"), clock.Now().Add(time.Millisecond)))
	must(t, batch.MergeWithTTL(sessions, b("b4"), b("x"), time.Millisecond))
	must(t, batch.Merge(sessions, b("b5"), b("x")))
	must(t, batch.Touch(sessions, b("b2"), time.Hour))
	must(t, batch.Persist(sessions, b("b3")))
	must(t, batch.ExpireAt(sessions, b("b5"), clock.Now().Add(time.Hour)))
	must(t, batch.Commit())
	clock.Pass(time.Second)
	that(t, scanned(t, sessions.Scan(esker.ScanOptions{Prefix: b("b")})) == "b2=x b3=x b5=x", "what lives of the batch")

	// A time before 1970 is one that has passed.
	must(t, sessions.PutUntil(b("old"), b("x"), time.Unix(-5, 0)))
	found, err = sessions.Has(b("old"))
	must(t, err)
	that(t, !found, "it has expired")

	// The zero time is never: what is returned can be passed.
	never := func(key string) {
		t.Helper()
		at, found, err := sessions.ExpiresAt(b(key))
		must(t, err)
		that(t, found && at.IsZero(), key+" never expires")
	}
	must(t, sessions.PutUntil(b("n1"), b("x"), time.Time{}))
	never("n1")
	must(t, sessions.Put(b("n2"), b("x")))
	found, err = sessions.ExpireAt(b("n2"), time.Time{})
	must(t, err)
	that(t, found, "n2 lives")
	never("n2")
	must(t, batch.PutUntil(sessions, b("n3"), b("x"), time.Time{}))
	must(t, batch.Put(sessions, b("n4"), b("x")))
	must(t, batch.ExpireAt(sessions, b("n4"), time.Time{}))
	must(t, batch.Commit())
	never("n3")
	never("n4")
	must(t, db.Transact(context.Background(), func(tx *esker.Transaction) error {
		must(t, tx.PutUntil(sessions, b("n5"), b("x"), time.Time{}))
		value, err := tx.Get(sessions, b("n5"))
		must(t, err)
		equal(t, value, "x")
		must(t, tx.Put(sessions, b("n6"), b("x")))
		return tx.ExpireAt(sessions, b("n6"), time.Time{})
	}))
	never("n5")
	never("n6")

	// Another default, and none.
	must(t, sessions.SetTTL(time.Minute))
	must(t, sessions.Put(b("d"), b("x")))
	at, _, err = sessions.ExpiresAt(b("d"))
	must(t, err)
	that(t, at.Equal(clock.Now().Add(time.Minute)), "the new default")
	must(t, sessions.SetTTL(0))
	must(t, sessions.Put(b("d"), b("x")))
	never("d")
	is(t, sessions.SetTTL(-1), esker.ErrInvalidArgument)

	plain := keyspace(t, db, "plain")
	is(t, plain.Put(b("k"), b("v"), esker.TTL(time.Second)), esker.ErrInvalidArgument)
	_, enabled, err = plain.DefaultTTL()
	must(t, err)
	that(t, !enabled, "nothing expires")
	must(t, plain.SetTTL(0))
	must(t, plain.Put(b("k"), b("v"), esker.TTL(time.Second)))
	must(t, plain.Close())
	is(t, plain.SetTTL(0), esker.ErrClosed)
	is(t, plain.SetMergeOperator(esker.BuiltInMerge(esker.MergeMax)), esker.ErrClosed)
}

func TestScans(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	put(t, names, "a1", "1", "a2", "2", "b1", "3", "b2", "4", "\xff\xff", "5")
	for _, scan := range []struct {
		options  esker.ScanOptions
		expected string
	}{
		{esker.ScanOptions{}, "a1=1 a2=2 b1=3 b2=4 \xff\xff=5"},
		{esker.ScanOptions{Reverse: true}, "\xff\xff=5 b2=4 b1=3 a2=2 a1=1"},
		{esker.ScanOptions{Range: esker.Range{Start: b("a2"), End: b("b2")}}, "a2=2 b1=3"},
		{esker.ScanOptions{Range: esker.Range{Start: b("a2"), End: b("b2")}, Reverse: true}, "b1=3 a2=2"},
		{esker.ScanOptions{Range: esker.Range{End: b("b")}}, "a1=1 a2=2"},
		{esker.ScanOptions{Range: esker.Range{End: []byte{}}}, ""},
		{esker.ScanOptions{Range: esker.Range{Start: b("b"), End: b("a")}}, ""},
		{esker.ScanOptions{Prefix: b("b")}, "b1=3 b2=4"},
		{esker.ScanOptions{Prefix: b("b"), Reverse: true}, "b2=4 b1=3"},
		{esker.ScanOptions{Prefix: b("\xff")}, "\xff\xff=5"},
		{esker.ScanOptions{Prefix: b("x")}, ""},
		{esker.ScanOptions{Range: esker.Prefix(b("a"))}, "a1=1 a2=2"},
		{esker.ScanOptions{Range: esker.Prefix(b("\xff\xff"))}, "\xff\xff=5"},
		{esker.ScanOptions{Range: esker.Prefix(nil), KeysOnly: true}, "a1= a2= b1= b2= \xff\xff="},
	} {
		that(t, scanned(t, names.Scan(scan.options)) == scan.expected, fmt.Sprintf("%+v", scan))
		transaction, err := db.Transaction()
		must(t, err)
		that(t, scanned(t, transaction.Scan(names, scan.options)) == scan.expected, fmt.Sprintf("%+v, in a transaction", scan))
		must(t, transaction.Rollback())
	}
	both := names.Scan(esker.ScanOptions{Prefix: b("a"), Range: esker.Range{Start: b("a")}})
	for range both.All() {
		t.Fatal("a pair")
	}
	is(t, both.Err(), esker.ErrInvalidArgument)

	// A loop that is left, two loops at once, and one of keys.
	all := names.All()
	pairs := 0
	for key := range all.All() {
		for inner := range all.Keys() {
			pairs++
			if string(inner) == string(key) {
				break
			}
		}
	}
	must(t, all.Err())
	that(t, pairs == 1+2+3+4+5, "all pairs of pairs")

	// A scan is as of its beginning.
	seen := 0
	for key := range names.All().All() {
		must(t, names.Delete(key))
		must(t, names.Put(append(key, '+'), nil))
		seen++
	}
	that(t, seen == 5, "what was there")
}

func TestIterators(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	put(t, names, "a", "1", "b", "2")
	pairs, err := names.All().Iterator()
	must(t, err)
	none(t, pairs.Key())
	must(t, names.Delete(b("b")))
	that(t, pairs.Next(), "a pair")
	equal(t, pairs.Key(), "a")
	equal(t, pairs.Value(), "1")
	that(t, pairs.Next(), "the other, as of its beginning")
	equal(t, pairs.Key(), "b")
	that(t, !pairs.Next(), "the end")
	none(t, pairs.Key())
	none(t, pairs.Value())
	must(t, pairs.Err())
	that(t, !pairs.Next(), "still the end")
	must(t, pairs.Close())
	is(t, pairs.Close(), esker.ErrClosed)
	must(t, pairs.Err())
	pairs, err = names.All().Iterator()
	must(t, err)
	must(t, pairs.Close())
	that(t, !pairs.Next(), "closed")
	is(t, pairs.Err(), esker.ErrClosed)
	pairs, err = names.All().Iterator()
	must(t, err)
	must(t, db.Close())
	that(t, !pairs.Next(), "of a closed database")
	is(t, pairs.Err(), esker.ErrClosed)
	must(t, pairs.Close())
	_, err = names.All().Iterator()
	is(t, err, esker.ErrClosed)
}

func TestLongScans(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	large := strings.Repeat("v", 100_000)
	const pairs = 5000
	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	for i := range pairs {
		value := "v"
		if i%1000 == 7 {
			value = large
		}
		must(t, batch.Put(names, fmt.Appendf(nil, "%08d", i), b(value)))
	}
	must(t, batch.Commit())
	transaction, err := db.Transaction()
	must(t, err)
	defer transaction.Rollback()
	for _, reverse := range []bool{false, true} {
		for what, scan := range map[string]*esker.Scan{
			"a keyspace":    names.Scan(esker.ScanOptions{Reverse: reverse}),
			"a transaction": transaction.Scan(names, esker.ScanOptions{Reverse: reverse, Prefix: []byte{}}),
		} {
			seen := 0
			for key, value := range scan.All() {
				at := seen
				if reverse {
					at = pairs - 1 - seen
				}
				that(t, string(key) == fmt.Sprintf("%08d", at), what)
				that(t, len(value) == 1 || at%1000 == 7 && string(value) == large, what)
				seen++
			}
			must(t, scan.Err())
			that(t, seen == pairs, what)
		}
	}
}

func TestCursors(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	put(t, names, "ada", "1", "bob", "2", "eve", "3")
	cursor, err := names.Cursor(esker.CursorOptions{})
	must(t, err)
	none(t, cursor.Key())
	at := func(expected string, valid bool, err error) {
		t.Helper()
		must(t, err)
		that(t, valid == (expected != ""), expected)
		if valid {
			equal(t, cursor.Key(), expected)
		} else {
			none(t, cursor.Key())
			none(t, cursor.Value())
		}
	}
	move := func(expected string, move func() (bool, error)) {
		t.Helper()
		valid, err := move()
		at(expected, valid, err)
	}
	move("ada", cursor.First)
	equal(t, cursor.Value(), "1")
	move("bob", cursor.Next)
	move("ada", cursor.Prev)
	move("", cursor.Prev)
	move("", cursor.Next)
	move("eve", cursor.Last)
	move("eve", func() (bool, error) { return cursor.Seek(b("c")) })
	move("bob", func() (bool, error) { return cursor.SeekForPrev(b("c")) })
	must(t, cursor.Close())
	is(t, cursor.Close(), esker.ErrClosed)
	none(t, cursor.Key())
	_, err = cursor.Next()
	is(t, err, esker.ErrClosed)

	cursor, err = names.Cursor(esker.CursorOptions{Range: esker.Range{Start: b("b"), End: b("c")}, KeysOnly: true})
	must(t, err)
	defer cursor.Close()
	move("bob", cursor.First)
	equal(t, cursor.Value(), "")
	move("", cursor.Next)
	move("bob", cursor.Last)

	// The result of a merge is in memory of its own, and has none where it is empty.
	merged := keyspace(t, db, "merged", esker.BuiltInMerge(esker.MergePut))
	must(t, merged.Merge(b(""), b("")))
	cursor, err = merged.Cursor(esker.CursorOptions{})
	must(t, err)
	defer cursor.Close()
	_, err = cursor.First()
	must(t, err)
	equal(t, cursor.Key(), "")
	equal(t, cursor.Value(), "")
}

func TestSnapshots(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	put(t, names, "ada", "before", "eve", "before")
	snapshot, err := db.Snapshot()
	must(t, err)
	must(t, names.Put(b("ada"), b("after")))
	must(t, names.Delete(b("eve")))
	value, err := snapshot.Get(names, b("ada"))
	must(t, err)
	equal(t, value, "before")
	values, err := snapshot.MultiGet(names, b("eve"), b("x"))
	must(t, err)
	equal(t, values[0], "before")
	none(t, values[1])
	buffer := make([]byte, 8)
	length, found, err := snapshot.GetInto(names, b("ada"), buffer)
	must(t, err)
	that(t, found, "ada")
	equal(t, buffer[:length], "before")
	has, err := snapshot.Has(names, b("eve"))
	must(t, err)
	that(t, has, "eve")
	at, has, err := snapshot.ExpiresAt(names, b("eve"))
	must(t, err)
	that(t, has && at.IsZero(), "eve never expires")
	key, value, err := snapshot.First(names)
	must(t, err)
	equal(t, key, "ada")
	equal(t, value, "before")
	key, _, err = snapshot.Last(names)
	must(t, err)
	equal(t, key, "eve")
	count, err := snapshot.Count(names, esker.Range{})
	must(t, err)
	that(t, count == 2, "two keys")
	that(t, scanned(t, snapshot.Scan(names, esker.ScanOptions{Reverse: true})) == "eve=before ada=before", "the scan")
	cursor, err := snapshot.Cursor(names, esker.CursorOptions{})
	must(t, err)
	defer cursor.Close()
	valid, err := cursor.Last()
	must(t, err)
	that(t, valid, "a key")
	equal(t, cursor.Value(), "before")
	sequence, err := snapshot.Sequence()
	must(t, err)
	that(t, sequence >= 2, "two writes")
	must(t, snapshot.Close())
	is(t, snapshot.Close(), esker.ErrClosed)
	_, err = snapshot.Get(names, b("ada"))
	is(t, err, esker.ErrClosed)
	_, _, err = snapshot.GetInto(names, b("ada"), buffer)
	is(t, err, esker.ErrClosed)
	values, err = snapshot.MultiGet(names, b("ada"), b("eve"))
	is(t, err, esker.ErrClosed)
	that(t, len(values) == 2, "two places")
	ended := snapshot.Scan(names, esker.ScanOptions{})
	for range ended.All() {
		t.Fatal("a pair")
	}
	is(t, ended.Err(), esker.ErrClosed)
}

func TestTransactions(t *testing.T) {
	clock := newClock()
	db := open(t, esker.WithClock(clock.Now))
	names := keyspace(t, db, "names", esker.Expires(0), esker.BuiltInMerge(esker.MergeMax))
	one, err := db.Transaction()
	must(t, err)
	must(t, one.Put(names, b("k1"), b("1")))
	must(t, one.PutWithTTL(names, b("k2"), b("2"), time.Hour))
	must(t, one.PutUntil(names, b("k3"), b("3"), clock.Now().Add(time.Hour)))
	must(t, one.Touch(names, b("k1"), time.Hour))
	must(t, one.ExpireAt(names, b("k2"), clock.Now().Add(2*time.Hour)))
	must(t, one.Persist(names, b("k3")))
	must(t, one.Merge(names, b("k1"), b("0")))
	value, err := one.Get(names, b("k1"))
	must(t, err)
	equal(t, value, "1")
	has, err := one.Has(names, b("k9"))
	must(t, err)
	that(t, !has, "no k9")
	key, _, err := one.First(names)
	must(t, err)
	equal(t, key, "k1")
	key, _, err = one.Last(names)
	must(t, err)
	equal(t, key, "k3")
	count, err := one.Count(names, esker.Range{})
	must(t, err)
	that(t, count == 3, "three keys")
	length, err := one.Len()
	must(t, err)
	that(t, length > 0, "operations")
	_, err = one.Sequence()
	must(t, err)
	// The loop may use the transaction.
	for key := range one.Scan(names, esker.ScanOptions{}).All() {
		must(t, one.Put(names, append(b("copy of "), key...), nil))
	}
	must(t, one.DeletePrefix(names, b("copy of ")))
	that(t, scanned(t, names.All()) == "", "nothing before the commit")
	must(t, one.Commit(esker.Sync()))
	that(t, scanned(t, names.All()) == "k1=1 k2=2 k3=3", "what was committed")
	is(t, one.Commit(), esker.ErrClosed)
	is(t, one.Rollback(), esker.ErrClosed)
	_, err = one.Get(names, b("k1"))
	is(t, err, esker.ErrClosed)

	one, err = db.Transaction()
	must(t, err)
	other, err := db.Transaction()
	must(t, err)
	must(t, one.Delete(names, b("k1")))
	_, err = other.Get(names, b("k1"))
	must(t, err)
	must(t, other.Put(names, b("k4"), b("4")))
	must(t, one.Commit())
	err = other.Commit()
	is(t, err, esker.ErrConflict)
	var full *esker.Error
	that(t, errors.As(err, &full) && full.Retryable, "it can be run again")
	is(t, other.Rollback(), esker.ErrClosed)

	one, err = db.Transaction()
	must(t, err)
	key, value, err = one.PopFirst(names)
	must(t, err)
	equal(t, key, "k2")
	equal(t, value, "2")
	must(t, one.DeleteRange(names, esker.Range{}))
	must(t, one.Rollback())
	that(t, scanned(t, names.All()) == "k2=2 k3=3", "what was rolled back")
}

func TestReadsOfTransactions(t *testing.T) {
	clock := newClock()
	db := open(t, esker.WithClock(clock.Now))
	names := keyspace(t, db, "names", esker.Expires(0), esker.BuiltInMerge(esker.MergeMax))
	put(t, names, "k1", "1", "k2", "2")
	soon := clock.Now().Add(time.Hour)
	must(t, names.PutUntil(b("k3"), b("3"), soon))
	one, err := db.Transaction()
	must(t, err)
	must(t, one.Put(names, b("k1"), b("long")))

	values, err := one.MultiGet(names, b("k2"), b("none"), b("k1"))
	must(t, err)
	that(t, len(values) == 3, "three values")
	equal(t, values[0], "2")
	none(t, values[1])
	equal(t, values[2], "long")
	buffer := make([]byte, 4)
	length, found, err := one.GetInto(names, b("k1"), buffer)
	must(t, err)
	that(t, found && length == 4, "its own write")
	equal(t, buffer, "long")
	length, found, err = one.GetInto(names, b("k1"), buffer[:1])
	is(t, err, esker.ErrBufferTooShort)
	that(t, found && length == 4, "the length that is needed")
	_, found, err = one.GetInto(names, b("none"), buffer)
	must(t, err)
	that(t, !found, "no value")

	at, found, err := one.ExpiresAt(names, b("k3"))
	must(t, err)
	that(t, found && at.Equal(soon), "in an hour")
	at, found, err = one.ExpiresAt(names, b("k2"))
	must(t, err)
	that(t, found && at.IsZero(), "never")
	_, found, err = one.ExpiresAt(names, b("none"))
	must(t, err)
	that(t, !found, "no value")
	_, _, err = one.ExpiresAt(names, b("k1"))
	is(t, err, esker.ErrInvalidArgument)

	is(t, one.MergeWithTTL(names, b("m"), b("7"), 0), esker.ErrInvalidArgument)
	must(t, one.MergeWithTTL(names, b("m"), b("7"), time.Hour))
	must(t, one.Commit())
	at, _, err = names.ExpiresAt(b("m"))
	must(t, err)
	that(t, at.Equal(soon), "an hour from the commit")

	// What was read of many keys counts: another writer of one is a conflict.
	one, err = db.Transaction()
	must(t, err)
	_, err = one.MultiGet(names, b("k2"), b("none"))
	must(t, err)
	must(t, one.Put(names, b("k4"), b("4")))
	must(t, names.Put(b("none"), b("0")))
	is(t, one.Commit(), esker.ErrConflict)
	for what, call := range map[string]func() error{
		"MultiGet":     func() error { _, err := one.MultiGet(names, b("k")); return err },
		"GetInto":      func() error { _, _, err := one.GetInto(names, b("k"), nil); return err },
		"ExpiresAt":    func() error { _, _, err := one.ExpiresAt(names, b("k")); return err },
		"MergeWithTTL": func() error { return one.MergeWithTTL(names, b("k"), b("7"), time.Hour) },
	} {
		t.Run(what, func(t *testing.T) { is(t, call(), esker.ErrClosed) })
	}
}

// What closed databases have left is kept for the next one.
func TestUnusedMemory(t *testing.T) {
	db := open(t, esker.WriteBuffer(1<<20))
	names := keyspace(t, db, "names")
	put(t, names, "k", "v")
	// A keyspace can be read behind the end of its database.
	must(t, names.Close())
	must(t, db.Close())
	bytes, err := esker.UnusedMemoryBytes()
	must(t, err)
	that(t, bytes > 0, "memory is left")
	// A database of another test that was not closed may be collected at this moment.
	for bytes > 0 {
		must(t, esker.ReleaseUnusedMemory())
		bytes, err = esker.UnusedMemoryBytes()
		must(t, err)
	}
}

func TestTransact(t *testing.T) {
	ctx := context.Background()
	db := open(t)
	names := keyspace(t, db, "names")
	runs := 0
	must(t, db.Transact(ctx, func(tx *esker.Transaction) error {
		runs++
		value, err := tx.Get(names, b("k"))
		if err != nil {
			return err
		}
		if runs < 3 {
			must(t, names.Put(b("k"), fmt.Appendf(nil, "%d", runs)))
		}
		return tx.Put(names, b("copy"), value)
	}))
	that(t, runs == 3, "two conflicts")
	that(t, scanned(t, names.All()) == "copy=2 k=2", "the last run")

	// An error of the function is returned, whatever it is.
	for _, code := range []esker.Code{esker.ErrConflict, esker.ErrWriteStalled} {
		ctx, cancel := context.WithCancel(ctx)
		runs = 0
		err := db.Transact(ctx, func(*esker.Transaction) error {
			if runs++; runs > 1 {
				cancel()
			}
			return fmt.Errorf("of the function: %w", code)
		})
		that(t, runs == 1 && errors.Is(err, code), fmt.Sprint(err))
		cancel()
	}

	// An error and a panic roll back.
	mistake := errors.New("a mistake")
	err := db.Transact(ctx, func(tx *esker.Transaction) error {
		must(t, tx.Delete(names, b("k")))
		return mistake
	})
	that(t, err == mistake, "the error of the function")
	func() {
		defer func() { that(t, recover() == "a panic", "the panic goes on") }()
		_ = db.Transact(ctx, func(tx *esker.Transaction) error {
			must(t, tx.Delete(names, b("k")))
			panic("a panic")
		})
	}()
	that(t, scanned(t, names.All()) == "copy=2 k=2", "nothing was written")

	// The end of a context ends the runs.
	ended, end := context.WithCancel(ctx)
	runs = 0
	err = db.Transact(ended, func(tx *esker.Transaction) error {
		runs++
		if runs == 5 {
			end()
		}
		_, err := tx.Get(names, b("k"))
		must(t, err)
		must(t, names.Put(b("k"), fmt.Appendf(nil, "%d", runs)))
		return tx.Put(names, b("copy"), nil)
	})
	that(t, errors.Is(err, context.Canceled) && runs == 5, "five runs")
	is(t, db.Transact(ctx, nil), esker.ErrInvalidArgument)
	is(t, db.Transact(nil, func(*esker.Transaction) error { return nil }), esker.ErrInvalidArgument) //nolint:staticcheck
}

func TestMaintenance(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "db")
	db, err := esker.Open(path, esker.LatencyHistograms(true), esker.Profile("counters"))
	must(t, err)
	names := keyspace(t, db, "names")
	other := keyspace(t, db, "other", esker.ReverseOrder(), esker.KeepAtMost(1<<20))
	put(t, names, "ada", "1815")
	put(t, other, "a", "1", "b", "2")
	that(t, scanned(t, other.All()) == "b=2 a=1", "the reverse order")
	transaction, err := db.Transaction()
	must(t, err)
	that(t, scanned(t, transaction.Scan(other, esker.ScanOptions{Prefix: b("a")})) == "a=1", "a prefix of it")
	that(t, scanned(t, transaction.Scan(other, esker.ScanOptions{Reverse: true})) == "a=1 b=2", "all of it")
	must(t, transaction.Rollback())
	style, bytes, err := other.CompactionStyle()
	must(t, err)
	that(t, style == esker.FIFO && bytes == 1<<20, "the style")
	must(t, db.Flush())
	must(t, db.Compact())
	must(t, db.WaitIdle())
	must(t, db.Sync())
	must(t, db.Verify())
	stats, err := db.Stats()
	must(t, err)
	that(t, strings.Contains(stats, "names"), stats)
	explained, err := db.Explain()
	must(t, err)
	that(t, strings.Contains(explained, "write_buffer_bytes"), explained)
	metrics, err := db.Metrics()
	must(t, err)
	that(t, strings.Contains(metrics, "# TYPE esker_"), metrics)
	writable, err := db.Writable()
	must(t, err)
	that(t, writable, "writable")
	_, found, err := db.Property("none of that name")
	must(t, err)
	that(t, !found, "none")
	properties, err := db.Properties()
	must(t, err)
	that(t, properties["esker.health.writable"] == "true" && len(properties) > 30, "properties")
	keyspaces, err := db.Keyspaces()
	must(t, err)
	that(t, slices.Equal(keyspaces, []string{"names", "other"}), fmt.Sprint(keyspaces))
	of, err := db.Path()
	must(t, err)
	that(t, of == path, of)

	for _, copied := range []struct {
		name string
		make func(string) error
	}{{"linked", db.Checkpoint}, {"copied", db.CheckpointCopy}} {
		copy := filepath.Join(directory, copied.name)
		must(t, copied.make(copy))
		read, err := esker.OpenReadOnly(copy)
		must(t, err)
		of, err := read.ExistingKeyspace("names")
		must(t, err)
		that(t, scanned(t, of.All()) == "ada=1815", copied.name)
		is(t, of.Put(b("k"), nil), esker.ErrReadOnly)
		must(t, read.Close())
	}
	report, err := esker.Repair(filepath.Join(directory, "copied"))
	must(t, err)
	that(t, strings.Contains(report, "nothing is wrong"), report)
	must(t, esker.VerifyDirectory(filepath.Join(directory, "copied")))
	must(t, esker.VerifyDirectory(path))

	follower, err := esker.OpenFollower(path)
	must(t, err)
	put(t, names, "eve", "1990")
	lag, known, err := follower.Lag()
	must(t, err)
	that(t, known && lag.Batches == 1 && lag.LogBytes > 0, fmt.Sprint(lag))
	sequence, err := follower.CatchUp()
	must(t, err)
	that(t, sequence > 0 && sequence == lag.Sequence, fmt.Sprint(lag))
	lag, known, err = follower.Lag()
	must(t, err)
	that(t, known && lag == esker.FollowerLag{Sequence: sequence}, fmt.Sprint(lag))
	followed, err := follower.DB().ExistingKeyspace("names")
	must(t, err)
	that(t, scanned(t, followed.All()) == "ada=1815 eve=1990", "what was followed")
	must(t, follower.Close())
	is(t, follower.Close(), esker.ErrClosed)
	_, err = follower.CatchUp()
	is(t, err, esker.ErrClosed)
	_, known, err = follower.Lag()
	is(t, err, esker.ErrClosed)
	that(t, !known, "no numbers")
	_, err = followed.Get(b("ada"))
	is(t, err, esker.ErrClosed)

	must(t, db.DropKeyspace("other"))
	_, err = db.ExistingKeyspace("other")
	is(t, err, esker.ErrNotFound)
	that(t, errors.Is(err, fs.ErrNotExist), "an error of package fs")
	_, err = other.Get(b("a"))
	is(t, err, esker.ErrKeyspaceDropped)
	is(t, esker.Destroy(path), esker.ErrLocked)
	must(t, db.Close())
	_, err = esker.Open(path, esker.ErrorIfExists(true))
	is(t, err, esker.ErrAlreadyExists)
	that(t, errors.Is(err, fs.ErrExist), "an error of package fs")
	must(t, esker.Destroy(path))
	_, err = esker.Open(path, esker.CreateIfMissing(false))
	is(t, err, esker.ErrNotFound)
}

func TestDamageIsTold(t *testing.T) {
	directory := t.TempDir()
	db, err := esker.Open(directory, esker.CompressLastRun(esker.NoCompression))
	must(t, err)
	defer db.Close()
	names := keyspace(t, db, "names")
	for i := range 100 {
		must(t, names.Put(fmt.Appendf(nil, "key %d", i), b("a value of some length")))
	}
	must(t, db.Flush())
	tables := 0
	must(t, filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".table" {
			return err
		}
		tables++
		content, err := os.ReadFile(path)
		must(t, err)
		content[len(content)/4] ^= 0xff
		return os.WriteFile(path, content, 0o600)
	}))
	that(t, tables > 0, "a table was found")
	err = db.Verify()
	that(t, errors.Is(err, esker.ErrCorruption), fmt.Sprint(err))
	var damage *esker.DamageError
	that(t, errors.As(err, &damage) && len(damage.Damage) > 0 && damage.Damage[0] != "", fmt.Sprint(err))

	// Also where the database does not open: the table is found all the same.
	must(t, db.Close())
	manifests, err := filepath.Glob(filepath.Join(directory, "MANIFEST-*"))
	must(t, err)
	for _, manifest := range append(manifests, filepath.Join(directory, "CURRENT")) {
		must(t, os.WriteFile(manifest, b("damaged"), 0o600))
	}
	_, err = esker.OpenReadOnly(directory)
	is(t, err, esker.ErrCorruption)
	err = esker.VerifyDirectory(directory)
	that(t, errors.Is(err, esker.ErrCorruption), fmt.Sprint(err))
	that(t, errors.As(err, &damage) && len(damage.Damage) > 1, fmt.Sprint(err))
	that(t, strings.Contains(strings.Join(damage.Damage, "\n"), ".table"), fmt.Sprint(damage.Damage))
	is(t, esker.VerifyDirectory(filepath.Join(directory, "nowhere")), esker.ErrNotFound)
}

func TestIngest(t *testing.T) {
	db := open(t)
	names := keyspace(t, db, "names")
	var memory [8]byte
	count, err := names.Ingest(func(yield func(key, value []byte) bool) {
		for i := range 1000 {
			// The same memory for all.
			copy(memory[:], fmt.Sprintf("%08d", i))
			if !yield(memory[:], memory[:i%8]) {
				return
			}
		}
	})
	must(t, err)
	that(t, count == 1000, "a thousand")
	value, err := names.Get(b("00000015"))
	must(t, err)
	equal(t, value, "0000001")
	loaded, err := names.Count(esker.Range{})
	must(t, err)
	that(t, loaded == 1000, "a thousand")

	// Wrong orders and panics load nothing, and the sequence ends.
	other := keyspace(t, db, "other")
	ended := make(chan bool, 1)
	_, err = other.Ingest(func(yield func(key, value []byte) bool) {
		defer func() { ended <- true }()
		for _, key := range []string{"b", "a", "c", "d", "e"} {
			if !yield(b(key), nil) {
				return
			}
		}
	})
	is(t, err, esker.ErrInvalidArgument)
	<-ended
	func() {
		defer func() { that(t, recover() == "a panic", "the panic goes on") }()
		_, _ = other.Ingest(func(yield func(key, value []byte) bool) {
			yield(b("a"), nil)
			panic("a panic")
		})
	}()
	that(t, scanned(t, other.All()) == "", "nothing was loaded")
	_, err = other.Ingest(nil)
	is(t, err, esker.ErrInvalidArgument)
	count, err = other.Ingest(func(func(key, value []byte) bool) {})
	must(t, err)
	that(t, count == 0, "none")
}

func TestOptions(t *testing.T) {
	db := open(t,
		esker.MemoryBudget(64<<20), esker.WriteBuffer(1<<20), esker.BlockCache(1<<20), esker.BlockSize(4096),
		esker.CompressUpperRuns(esker.NoCompression), esker.CompressLastRun(esker.LZ4Compression),
		esker.FilterBitsPerKey(10), esker.TargetFileSize(1<<20), esker.MinBlobSize(1<<16), esker.WALSegmentSize(1<<20),
		esker.MappedWAL(false), esker.ReadTables(esker.ReadPread), esker.BackgroundThreads(1),
		esker.CompactionBytesPerSecond(1<<30), esker.KeepChangesFor(time.Hour))
	explained, err := db.Explain()
	must(t, err)
	for _, line := range []string{"wal_mode = plain", "read_mode = pread", "filter_bits_per_key = 10", "block_bytes = 4 KiB"} {
		that(t, strings.Contains(explained, line), line+" of\n"+explained)
	}
	names := keyspace(t, db, "names", esker.Compacted(esker.Leveled))
	style, _, err := names.CompactionStyle()
	must(t, err)
	that(t, style == esker.Leveled, "the style")
	must(t, names.Put(b("k"), b("v"), esker.Sync(), esker.Stall(time.Second)))
	is(t, names.Put(b("k"), b("v"), esker.Sync(), esker.DisableWAL()), esker.ErrInvalidArgument)
	must(t, names.Put(b("k"), b("v"), esker.DisableWAL()))

	for what, option := range map[string]esker.Option{
		"a profile": esker.Profile("none"), "zero bytes": esker.Profile("a\x00b"), "a size": esker.WriteBuffer(-1),
		"a mode": esker.ReadTables(17), "nil": nil, "a time": esker.KeepChangesFor(-1),
		"no clock": esker.WithClock(nil), "no listener": esker.WithEventListener(nil),
		"no comparator": esker.WithComparator(nil), "no policy": esker.WithFilterPolicy(nil),
	} {
		_, err := esker.Open(t.TempDir(), option)
		that(t, errors.Is(err, esker.ErrInvalidArgument), what)
	}
	for what, option := range map[string]esker.KeyspaceOption{
		"an operator": esker.BuiltInMerge("none"), "a style": esker.Compacted(17), "nil": nil, "a time": esker.Expires(-1),
		"no operator": esker.WithMergeOperator(nil), "no comparator": esker.OrderedBy(nil), "no filter": esker.WithCompactionFilter(nil),
	} {
		_, err := db.Keyspace("wrong", option)
		that(t, errors.Is(err, esker.ErrInvalidArgument), what)
	}
	is(t, names.Put(nil, nil, nil), esker.ErrInvalidArgument)
	must(t, esker.ValidateOptions(esker.MemoryBudget(64<<20)))
	must(t, esker.ValidateOptions())
	is(t, esker.ValidateOptions(esker.MemoryBudget(10)), esker.ErrInvalidArgument)
	is(t, esker.ValidateOptions(nil), esker.ErrInvalidArgument)
	explained, err = esker.ExplainOptions(esker.MemoryBudget(64 << 20))
	must(t, err)
	that(t, strings.Contains(explained, "memory_budget_bytes = 64 MiB"), explained)
	_, err = esker.ExplainOptions(esker.Profile("none"))
	is(t, err, esker.ErrInvalidArgument)
	for _, compression := range []esker.Compression{esker.NoCompression, esker.LZ4Compression} {
		available, err := compression.IsAvailable()
		must(t, err)
		that(t, available, "every library has it")
	}
	_, err = esker.Compression(17).IsAvailable()
	is(t, err, esker.ErrInvalidArgument)
	drops, err := esker.DropsValuesInCompaction(esker.KeepAtMost(1 << 30))
	must(t, err)
	that(t, drops, "it drops the oldest tables")
	drops, err = esker.DropsValuesInCompaction(esker.Compacted(esker.Leveled))
	must(t, err)
	that(t, !drops, "it drops nothing")
	escaped, err := esker.EscapeKey(b("a\x00\xff"))
	must(t, err)
	that(t, escaped == "a\\x00\\xff", escaped)
	that(t, esker.Version() != "", "a version")
	that(t, esker.ErrCorruption.Error() == "ESKER_CORRUPTION", esker.ErrCorruption.Error())
}
