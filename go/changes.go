package esker

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ChangeOperation is what was done.
type ChangeOperation int32

// The operations of changes.
const (
	// ChangeOther is an operation that this version has no name for.
	ChangeOther ChangeOperation = C.ESKER_CHANGE_OTHER
	// ChangePut: the key has this value from here on. Also a change of its expiry.
	ChangePut ChangeOperation = C.ESKER_CHANGE_PUT
	// ChangeDelete: the key has no value from here on.
	ChangeDelete ChangeOperation = C.ESKER_CHANGE_DELETE
	// ChangeMerge: the operand was combined with what the key had.
	ChangeMerge ChangeOperation = C.ESKER_CHANGE_MERGE
	// ChangeDeleteRange: the keys of a range have no value from here on.
	ChangeDeleteRange ChangeOperation = C.ESKER_CHANGE_DELETE_RANGE
	// ChangeLoad: pairs were loaded by [Keyspace.Ingest], which are not listed: read the keyspace.
	ChangeLoad ChangeOperation = C.ESKER_CHANGE_LOAD
	// ChangeDropKeyspace: the keyspace was dropped.
	ChangeDropKeyspace ChangeOperation = C.ESKER_CHANGE_DROP_KEYSPACE
	// ChangeAlterKeyspace: the keyspace was renamed, or has another merge operator or time to live from
	// here on.
	ChangeAlterKeyspace ChangeOperation = C.ESKER_CHANGE_ALTER_KEYSPACE
)

// Change is one operation as it was committed.
type Change struct {
	// Sequence is its place in the order of writes. Numbers ascend, with gaps.
	Sequence uint64
	// Keyspace is the name that the keyspace had then; where it was renamed, the new one.
	Keyspace string
	// KeyspaceID is the number of the keyspace, which no other keyspace of the database ever has.
	KeyspaceID uint64
	// Operation says what was done.
	Operation ChangeOperation
	// Key is the key; of a delete of a range where it begins, nil if at the first key.
	Key []byte
	// Value is the value or the operand; of a delete of a range where it ends, nil if behind the last
	// key.
	Value []byte
	// ExpiresAt is when the key expires, the zero time if it does not.
	ExpiresAt time.Time
	// First says of a merge that the operand was combined with nothing.
	First bool
	// StartExcluded says of a delete of a range that Key is not in it.
	StartExcluded bool
	// EndIncluded says of a delete of a range that Value is in it.
	EndIncluded bool
	// FormerName is, of a keyspace that was altered, the name that it had before.
	FormerName string
	// MergeOperator is, of a keyspace that was altered, the name of its merge operator, or empty.
	MergeOperator string
	// CanExpire says of a keyspace that was altered whether its entries can expire.
	CanExpire bool
	// DefaultTTL is, of a keyspace that was altered, how long entries live by default; 0 is for ever.
	DefaultTTL time.Duration
}

// KeyspaceSettings are what a keyspace was at one place in the order of writes.
type KeyspaceSettings struct {
	// Name is its name.
	Name string
	// Comparator is the name of the order of its keys.
	Comparator string
	// MergeOperator is the name of its merge operator, or empty.
	MergeOperator string
	// CanExpire says whether its entries could expire.
	CanExpire bool
	// DefaultTTL is how long entries lived by default; 0 is for ever.
	DefaultTTL time.Duration
}

// Changes reads what was written, in order. Close it when it is used no more.
type Changes struct {
	db     *DB
	handle changesHandle
	closed atomic.Bool
	net    runtime.Cleanup
	// What the library lends lasts until the next call: it is copied before there can be one.
	reading sync.Mutex
}

type changesHandle struct{ c *C.esker_changes }

// ChangesOption changes what is read.
type ChangesOption func(*bool)

// OnlyDurable reads only what a power failure cannot take back.
func OnlyDurable() ChangesOption { return func(onlyDurable *bool) { *onlyDurable = true } }

// Changes begins to read what was written from the write with a number on; 0 is all that is kept. The
// database must be one that keeps changes: [KeepChangesBytes] or [KeepChangesFor]. To keep something
// in step with the database, take over a snapshot, and go on from its Sequence plus 1. ErrGone if the
// changes are not kept any more.
func (db *DB) Changes(from uint64, options ...ChangesOption) (*Changes, error) {
	onlyDurable := false
	for _, set := range options {
		if set == nil {
			return nil, invalid("an option that is nil")
		}
		set(&onlyDurable)
	}
	var handle changesHandle
	err := db.run(func() C.esker_code {
		return C.esker_db_changes(db.handle.c, C.uint64_t(from), C.bool(onlyDurable), &handle.c)
	})
	if err != nil {
		return nil, err
	}
	c := &Changes{db: db, handle: handle}
	c.net = runtime.AddCleanup(c, func(handle changesHandle) { C.esker_changes_destroy(handle.c) }, handle)
	return c, nil
}

// Close ends the reader: a call of Next under way ends as it would have, and a wait within a tenth of a
// second.
func (c *Changes) Close() error {
	if c == nil || c.db == nil {
		return newError(ErrWrongHandle, "no reader of changes")
	}
	if c.closed.Swap(true) {
		return closed("the reader of changes")
	}
	// Next calls nothing of the program, which could be what has called Close.
	c.reading.Lock()
	defer c.reading.Unlock()
	c.net.Stop()
	err := call(func() C.esker_code { return C.esker_changes_destroy(c.handle.c) })
	runtime.KeepAlive(c)
	return err
}

func (c *Changes) busy() error {
	return newError(ErrBusy, "the reader of changes is in use by another call; one goroutine at a time may use it")
}

// run makes a call of the reader.
func (c *Changes) run(f func() C.esker_code) error {
	if c == nil || c.db == nil {
		return newError(ErrWrongHandle, "no reader of changes")
	}
	if c.closed.Load() {
		return closed("the reader of changes")
	}
	err := c.db.run(f)
	runtime.KeepAlive(c)
	return c.db.ended(err)
}

// Next is the next committed batch: its operations in their order, which took effect together. It is
// nil if there is no more for now; a later call may find more. After an error the next call tries
// again.
func (c *Changes) Next() ([]Change, error) {
	if c == nil || c.db == nil {
		return nil, newError(ErrWrongHandle, "no reader of changes")
	}
	if !c.reading.TryLock() {
		return nil, c.busy()
	}
	defer c.reading.Unlock()
	var batch *C.esker_change
	var count C.size_t
	err := c.run(func() C.esker_code { return C.esker_changes_next(c.handle.c, &batch, &count) })
	if err != nil || count == 0 {
		return nil, err
	}
	changes := make([]Change, int(count))
	for i, change := range unsafe.Slice(batch, int(count)) {
		changes[i] = copied(&change)
	}
	runtime.KeepAlive(c)
	return changes, nil
}

func copied(change *C.esker_change) Change {
	bytes := func(bytes C.esker_bytes) []byte {
		if bytes.data == nil {
			return nil
		}
		return lent(bytes.data, bytes.length)
	}
	result := Change{
		Sequence:   uint64(change.sequence),
		Keyspace:   C.GoString(change.keyspace),
		KeyspaceID: uint64(change.keyspace_id),
		Operation:  ChangeOperation(change.operation),
	}
	if result.Operation == ChangeAlterKeyspace {
		result.FormerName = string(bytes(change.key))
		result.MergeOperator = string(bytes(change.value))
		result.DefaultTTL, result.CanExpire = defaultTTL(change.expires_at_ms)
		return result
	}
	result.Key = bytes(change.key)
	result.Value = bytes(change.value)
	result.ExpiresAt = expiry(change.expires_at_ms)
	result.First = bool(change.is_first)
	result.StartExcluded = bool(change.start_is_excluded)
	result.EndIncluded = bool(change.end_is_included)
	return result
}

// defaultTTL is how long entries live by default, and whether they can expire.
func defaultTTL(ms C.uint64_t) (time.Duration, bool) {
	if ms == C.ESKER_NEVER {
		return 0, false
	}
	return duration(ms), true
}

// KeyspaceSettings are what the keyspace with a number, the KeyspaceID of a change, was behind the write
// with a number: nil if that is not known, because the keyspace was dropped before the changes that are
// kept, or there never was one. What it was when it was created is taken for what it was before that.
func (c *Changes) KeyspaceSettings(keyspaceID, sequence uint64) (*KeyspaceSettings, error) {
	if c == nil || c.db == nil {
		return nil, newError(ErrWrongHandle, "no reader of changes")
	}
	if !c.reading.TryLock() {
		return nil, c.busy()
	}
	defer c.reading.Unlock()
	var settings *C.esker_keyspace_settings
	err := c.run(func() C.esker_code {
		return C.esker_changes_keyspace_settings(c.handle.c, C.uint64_t(keyspaceID), C.uint64_t(sequence), &settings)
	})
	if err != nil || settings == nil {
		return nil, err
	}
	result := &KeyspaceSettings{
		Name:          C.GoString(settings.name),
		Comparator:    C.GoString(settings.comparator),
		MergeOperator: C.GoString(settings.merge_operator),
	}
	result.DefaultTTL, result.CanExpire = defaultTTL(settings.default_ttl_ms)
	runtime.KeepAlive(c)
	return result, nil
}

// Wait waits until there may be more to read, or the context ends: its error then. For a reader of
// durable changes that is behind a sync too. The end of the context, and Close, are noticed within a
// tenth of a second; the close of the database, ErrClosed, at once.
func (c *Changes) Wait(ctx context.Context) error {
	return wait(ctx, func(ms C.uint64_t, more *C.bool) error {
		return c.run(func() C.esker_code { return C.esker_changes_wait(c.handle.c, ms, more) })
	})
}

// wait waits in pieces, between which it looks whether the context has ended.
func wait(ctx context.Context, piece func(C.uint64_t, *C.bool) error) error {
	if ctx == nil {
		return invalid("no context")
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var found C.bool
		ms := slice
		if deadline, ok := ctx.Deadline(); ok {
			ms = min(ms, max(time.Until(deadline), 0))
		}
		if err := piece(C.uint64_t((ms+time.Millisecond-1)/time.Millisecond), &found); err != nil {
			return err
		}
		if found {
			return nil
		}
	}
}

// Position is the number to go on from with [DB.Changes]: that of the next change, or a smaller one
// above all that were read.
func (c *Changes) Position() (uint64, error) {
	var sequence C.uint64_t
	err := c.run(func() C.esker_code { return C.esker_changes_position(c.handle.c, &sequence) })
	return uint64(sequence), err
}

// All are the batches from here on, those that are yet to be written too: it waits for them until the
// context ends, or the database or the reader is closed. An error ends it, as its last element,
// unless it is that of one of these ends.
func (c *Changes) All(ctx context.Context) iter.Seq2[[]Change, error] {
	return func(yield func([]Change, error) bool) {
		if ctx == nil {
			yield(nil, invalid("no context"))
			return
		}
		for ctx.Err() == nil {
			batch, err := c.Next()
			if err == nil && batch == nil {
				err = c.Wait(ctx)
			}
			switch {
			case errors.Is(err, ErrClosed) || (ctx.Err() != nil && errors.Is(err, ctx.Err())):
				return
			case err != nil:
				yield(nil, err)
				return
			case batch != nil && !yield(batch, nil):
				return
			}
		}
	}
}
