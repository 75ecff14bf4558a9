package esker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"esker"
)

// A program that opens the database in between keeps what is kept.
func TestChangesAreKeptAsBefore(t *testing.T) {
	path := t.TempDir()
	for number, retention := range []esker.Option{
		esker.KeepChangesBytes(1 << 20), esker.KeepChangesAsBefore(), esker.KeepChangesBytes(1 << 20),
	} {
		db, err := esker.Open(path, retention)
		must(t, err)
		names := keyspace(t, db, "names")
		must(t, names.Put(b(fmt.Sprint(number)), b("")))
		changes, err := db.Changes(0)
		must(t, err)
		count := 0
		for batch, err := changes.Next(); len(batch) > 0; batch, err = changes.Next() {
			must(t, err)
			count += len(batch)
		}
		that(t, count == number+1, fmt.Sprint(count))
		must(t, changes.Close())
		must(t, db.Close())
	}
	db, err := esker.Open(t.TempDir(), esker.KeepChangesAsBefore())
	must(t, err)
	defer db.Close()
	_, err = db.Changes(0)
	is(t, err, esker.ErrInvalidArgument)
}

func TestChanges(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	db := open(t, esker.KeepChangesBytes(1<<20), esker.WithClock(clock.Now))
	names := keyspace(t, db, "names", esker.Expires(0), esker.BuiltInMerge(esker.MergeMax))
	changes, err := db.Changes(0)
	must(t, err)
	next := func(expected int) []esker.Change {
		t.Helper()
		batch, err := changes.Next()
		must(t, err)
		that(t, len(batch) == expected, fmt.Sprint(batch))
		return batch
	}
	next(0)
	batch, err := db.Batch()
	must(t, err)
	defer batch.Close()
	must(t, batch.Put(names, b("a\x00b"), b("")))
	must(t, batch.PutUntil(names, b("t"), b("2"), clock.Now().Add(time.Hour)))
	must(t, batch.Merge(names, b("m"), b("3")))
	must(t, batch.Delete(names, b("t")))
	must(t, batch.Commit())
	four := next(4)
	for i, change := range four {
		that(t, change.Keyspace == "names" && change.KeyspaceID == four[0].KeyspaceID, fmt.Sprint(change))
		that(t, i == 0 || change.Sequence > four[i-1].Sequence, "ascending numbers")
	}
	that(t, four[0].Operation == esker.ChangePut && four[0].ExpiresAt.IsZero(), fmt.Sprint(four[0]))
	equal(t, four[0].Key, "a\x00b")
	equal(t, four[0].Value, "")
	that(t, four[1].ExpiresAt.Equal(clock.Now().Add(time.Hour)), fmt.Sprint(four[1]))
	that(t, four[2].Operation == esker.ChangeMerge && four[2].First, fmt.Sprint(four[2]))
	that(t, four[3].Operation == esker.ChangeDelete && four[3].Value == nil, fmt.Sprint(four[3]))
	position, err := changes.Position()
	must(t, err)
	that(t, position == four[3].Sequence+1, "the position")

	must(t, names.DeleteRange(esker.Range{Start: b("a"), End: b("m")}))
	deleted := next(1)[0]
	that(t, deleted.Operation == esker.ChangeDeleteRange && !deleted.StartExcluded && !deleted.EndIncluded, fmt.Sprint(deleted))
	equal(t, deleted.Key, "a")
	equal(t, deleted.Value, "m")
	must(t, names.DeleteRange(esker.Range{}))
	deleted = next(1)[0]
	none(t, deleted.Key)
	none(t, deleted.Value)
	_, err = names.Ingest(func(yield func(key, value []byte) bool) { yield(b("k"), b("v")) })
	must(t, err)
	that(t, next(1)[0].Operation == esker.ChangeLoad, "a load")
	must(t, db.DropKeyspace("names"))
	that(t, next(1)[0].Operation == esker.ChangeDropKeyspace, "a drop")
	next(0)
	must(t, changes.Close())
	is(t, changes.Close(), esker.ErrClosed)
	_, err = changes.Next()
	is(t, err, esker.ErrClosed)
	is(t, changes.Wait(ctx), esker.ErrClosed)
	_, err = changes.Position()
	is(t, err, esker.ErrClosed)

	_, err = db.Changes(1 << 60)
	is(t, err, esker.ErrInvalidArgument)
	_, err = open(t).Changes(0)
	is(t, err, esker.ErrInvalidArgument)
}

func TestRenames(t *testing.T) {
	db := open(t)
	drafts := keyspace(t, db, "drafts")
	put(t, drafts, "k", "old")
	snapshot, err := db.Snapshot()
	must(t, err)
	defer snapshot.Close()
	must(t, drafts.Rename("letters"))
	must(t, drafts.Rename("letters"))
	name, err := drafts.Name()
	must(t, err)
	that(t, name == "letters", name)
	put(t, drafts, "k", "new")
	value, err := snapshot.Get(drafts, b("k"))
	must(t, err)
	equal(t, value, "old")
	_, err = db.ExistingKeyspace("drafts")
	is(t, err, esker.ErrNotFound)
	renamed, err := db.ExistingKeyspace("letters")
	must(t, err)
	value, err = renamed.Get(b("k"))
	must(t, err)
	equal(t, value, "new")

	other := keyspace(t, db, "drafts")
	is(t, drafts.Rename("drafts"), esker.ErrAlreadyExists)
	for _, wrong := range []string{"", "a\nb", "a\x00b", "\xff", strings.Repeat("n", 1<<20)} {
		is(t, drafts.Rename(wrong), esker.ErrInvalidArgument)
	}
	must(t, db.DropKeyspace("drafts"))
	is(t, other.Rename("gone"), esker.ErrKeyspaceDropped)
	names, err := db.Keyspaces()
	must(t, err)
	that(t, fmt.Sprint(names) == "[letters]", fmt.Sprint(names))
}

// Other names and settings have a place among the changes.
func TestAlterations(t *testing.T) {
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	put(t, names, "k", "5")
	must(t, names.Rename("people"))
	must(t, names.SetMergeOperator(esker.BuiltInMerge(esker.MergeMax)))
	// Its operand is combined first.
	must(t, names.Merge(b("k"), b("7")))
	must(t, names.SetTTL(time.Minute))
	must(t, names.SetTTL(0))
	changes, err := db.Changes(0)
	must(t, err)
	defer changes.Close()
	var found []esker.Change
	for batch, err := changes.Next(); len(batch) > 0; batch, err = changes.Next() {
		must(t, err)
		found = append(found, batch...)
	}
	that(t, len(found) == 6, fmt.Sprint(found))
	id := found[0].KeyspaceID
	that(t, found[0].Keyspace == "names" && found[0].FormerName == "", fmt.Sprint(found[0]))
	for i, expected := range map[int]esker.Change{
		1: {FormerName: "names"},
		2: {FormerName: "people", MergeOperator: "max"},
		4: {FormerName: "people", MergeOperator: "max", CanExpire: true, DefaultTTL: time.Minute},
		5: {FormerName: "people", MergeOperator: "max", CanExpire: true},
	} {
		expected.Operation, expected.Keyspace, expected.KeyspaceID = esker.ChangeAlterKeyspace, "people", id
		expected.Sequence = found[i].Sequence
		that(t, fmt.Sprint(found[i]) == fmt.Sprint(expected), fmt.Sprint(found[i], expected))
	}
	for i, expected := range []esker.KeyspaceSettings{
		{Name: "names", Comparator: "bytewise"},
		{Name: "people", Comparator: "bytewise"},
		{Name: "people", Comparator: "bytewise", MergeOperator: "max"},
		{Name: "people", Comparator: "bytewise", MergeOperator: "max"},
		{Name: "people", Comparator: "bytewise", MergeOperator: "max", CanExpire: true, DefaultTTL: time.Minute},
		{Name: "people", Comparator: "bytewise", MergeOperator: "max", CanExpire: true},
	} {
		settings, err := changes.KeyspaceSettings(id, found[i].Sequence)
		must(t, err)
		that(t, settings != nil && *settings == expected, fmt.Sprint(settings, expected))
	}
	number, err := names.ID()
	must(t, err)
	that(t, number == id, "the number of the keyspace")
	settings, err := changes.KeyspaceSettings(id+1000, 1)
	must(t, err)
	that(t, settings == nil, "no such keyspace")
	must(t, changes.Close())
	_, err = changes.KeyspaceSettings(id, 1)
	is(t, err, esker.ErrClosed)
}

func TestChangesThatAreGone(t *testing.T) {
	db := open(t, esker.KeepChangesBytes(1), esker.WALSegmentSize(64<<10))
	names := keyspace(t, db, "names")
	value := make([]byte, 1<<10)
	var err error
	for i := 0; err == nil && i < 20; i++ {
		for range 1000 {
			must(t, names.Put(b("k"), value))
		}
		must(t, db.Flush())
		var changes *esker.Changes
		if changes, err = db.Changes(1); err == nil {
			must(t, changes.Close())
		}
	}
	is(t, err, esker.ErrGone)
	var full *esker.Error
	that(t, errors.As(err, &full) && full.OldestWrite > 1, fmt.Sprint(err))
	changes, err := db.Changes(full.OldestWrite)
	must(t, err)
	must(t, changes.Close())
}

func TestDurableChanges(t *testing.T) {
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	changes, err := db.Changes(0, esker.OnlyDurable())
	must(t, err)
	defer changes.Close()
	put(t, names, "k", "v")
	batch, err := changes.Next()
	must(t, err)
	that(t, batch == nil, "not durable yet")
	must(t, db.Sync())
	batch, err = changes.Next()
	must(t, err)
	that(t, len(batch) == 1, "durable")
}

func TestAllChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	changes, err := db.Changes(0)
	must(t, err)
	seen := make(chan string)
	go func() {
		defer close(seen)
		for batch, err := range changes.All(ctx) {
			if err != nil {
				seen <- err.Error()
				return
			}
			for _, change := range batch {
				seen <- string(change.Key)
			}
		}
	}()
	for i := range 100 {
		key := fmt.Sprintf("key %d", i)
		put(t, names, key, "v")
		that(t, <-seen == key, key)
	}
	cancel()
	_, more := <-seen
	that(t, !more, "the end of the context is the end")
	must(t, changes.Close())

	// The close of the database is the end too.
	changes, err = db.Changes(0)
	must(t, err)
	ended := make(chan error)
	count := 0
	go func() {
		for _, err := range changes.All(context.Background()) {
			if err != nil {
				ended <- err
				return
			}
			if count++; count == 100 {
				go db.Close()
			}
		}
		close(ended)
	}()
	must(t, <-ended)
	that(t, count == 100, "all that was written")
	_ = changes.Close()
}

// The context ends a loop that has much to read too, and a loop without one is an error.
func TestAllChangesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := open(t, esker.KeepChangesBytes(1<<20))
	names := keyspace(t, db, "names")
	for range 10 {
		put(t, names, "k", "v")
	}
	changes, err := db.Changes(0)
	must(t, err)
	defer changes.Close()
	count := 0
	for _, err := range changes.All(ctx) {
		must(t, err)
		if count++; count == 3 {
			cancel()
		}
	}
	that(t, count == 3, "none behind the end of the context")
	for range changes.All(ctx) {
		t.Fatal("the context has ended")
	}
	count = 0
	for _, err := range changes.All(nil) { //nolint:staticcheck
		is(t, err, esker.ErrInvalidArgument)
		count++
	}
	that(t, count == 1, "one error")
}

func TestWatches(t *testing.T) {
	background := context.Background()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	db := open(t)
	jobs := keyspace(t, db, "jobs")
	watch, err := jobs.Watch(b("mail/"))
	must(t, err)
	that(t, errors.Is(watch.Wait(soon()), context.DeadlineExceeded), "nothing written")
	put(t, jobs, "other", "x")
	that(t, errors.Is(watch.Wait(soon()), context.DeadlineExceeded), "nothing with the prefix")
	go func() { _ = jobs.Put(b("mail/1"), b("x")) }()
	must(t, watch.Wait(background))
	cancelled, cancel := context.WithCancel(background)
	go cancel()
	that(t, errors.Is(watch.Wait(cancelled), context.Canceled), "cancelled")
	that(t, errors.Is(watch.Wait(cancelled), context.Canceled), "cancelled before")
	is(t, watch.Wait(nil), esker.ErrInvalidArgument) //nolint:staticcheck

	// Close ends a wait.
	ended := make(chan error)
	go func() { ended <- watch.Wait(background) }()
	must(t, watch.Close())
	is(t, <-ended, esker.ErrClosed)
	is(t, watch.Close(), esker.ErrClosed)

	// So does the end of the database.
	watch, err = jobs.Watch(nil)
	must(t, err)
	go func() { ended <- watch.Wait(background) }()
	must(t, db.Close())
	is(t, <-ended, esker.ErrClosed)
	is(t, watch.Wait(background), esker.ErrClosed)
	must(t, watch.Close())
}

// gate is a compaction filter that waits, and with it the only background thread: writes stall, and
// stay so.
type gate struct{ opened chan bool }

func (gate) Name() string { return "gate" }

func (g gate) Filter(_, _ []byte) (esker.Decision, []byte) {
	<-g.opened
	return esker.Keep, nil
}

// Writes that are stalled end with their context.
func TestStalledWrites(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	closed := gate{make(chan bool)}
	// Before the database is closed, which waits for its background.
	var once sync.Once
	release := func() { once.Do(func() { close(closed.opened) }) }
	db := open(t, esker.WriteBuffer(64<<10), esker.BackgroundThreads(1),
		esker.WithEventListener(func(name, _ string) {
			if name == "stall began" {
				cancel()
			}
		}))
	t.Cleanup(release)
	names := keyspace(t, db, "names", esker.WithCompactionFilter(closed))
	value := make([]byte, 2<<10)
	var err error
	for i := 0; err == nil; i++ {
		err = names.Put(fmt.Appendf(nil, "%08d", i*7919%100_000), value, esker.WithContext(ctx))
	}
	that(t, errors.Is(err, context.Canceled), fmt.Sprint(err))
	err = db.Transact(ctx, func(tx *esker.Transaction) error { return tx.Put(names, b("k"), value) })
	that(t, errors.Is(err, context.Canceled), fmt.Sprint(err))
	tx, err := db.Transaction()
	must(t, err)
	err = tx.Commit(esker.WithContext(ctx))
	that(t, errors.Is(err, context.Canceled), fmt.Sprint(err))
	is(t, tx.Commit(), esker.ErrClosed)

	// A stall may begin as a delay: until writes stop.
	for i := 0; err == nil || errors.Is(err, context.Canceled); i++ {
		err = names.Put(fmt.Appendf(nil, "+%08d", i*7919%100_000), value, esker.Stall(0))
	}
	is(t, err, esker.ErrWriteStalled)
	var full *esker.Error
	that(t, errors.As(err, &full) && full.Retryable, "it can be made again")
	for what, write := range map[string]func(context.Context) error{
		"a put": func(ctx context.Context) error { return names.Put(b("k"), value, esker.WithContext(ctx)) },
		"a transaction": func(ctx context.Context) error {
			return db.Transact(ctx, func(tx *esker.Transaction) error { return tx.Put(names, b("k"), value) })
		},
	} {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			err := write(ctx)
			cancel()
			if err == nil {
				continue
			}
			that(t, errors.Is(err, context.DeadlineExceeded), fmt.Sprint(what, ": ", err))
			break
		}
	}
	release()
	must(t, names.Put(b("k"), value, esker.WithContext(context.Background())))
}
