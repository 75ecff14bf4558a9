package esker

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Snapshot is all keyspaces at one moment. Close it: what it sees is kept until then.
type Snapshot struct {
	db     *DB
	handle snapshotHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

type snapshotHandle struct{ c *C.esker_snapshot }

// Snapshot takes a snapshot.
func (db *DB) Snapshot() (*Snapshot, error) {
	var handle snapshotHandle
	if err := db.run(func() C.esker_code { return C.esker_db_snapshot(db.handle.c, &handle.c) }); err != nil {
		return nil, err
	}
	s := &Snapshot{db: db, handle: handle}
	s.net = runtime.AddCleanup(s, func(handle snapshotHandle) { C.esker_snapshot_destroy(handle.c) }, handle)
	return s, nil
}

// Close releases the snapshot.
func (s *Snapshot) Close() error {
	if s == nil || s.db == nil {
		return newError(ErrWrongHandle, "no snapshot")
	}
	if s.closed.Swap(true) {
		return closed("the snapshot")
	}
	s.net.Stop()
	err := call(func() C.esker_code { return C.esker_snapshot_destroy(s.handle.c) })
	runtime.KeepAlive(s)
	return err
}

func (s *Snapshot) usable() error {
	if s == nil || s.db == nil {
		return newError(ErrWrongHandle, "no snapshot")
	}
	if s.closed.Load() {
		return closed("the snapshot")
	}
	return s.db.usable()
}

// run makes a call with a keyspace.
func (s *Snapshot) run(k *Keyspace, f func() C.esker_code) error {
	if err := s.usable(); err != nil {
		return err
	}
	err := k.run(f)
	runtime.KeepAlive(s)
	return err
}

// Sequence is the number of the last write that the snapshot sees: [DB.Changes] goes on behind it.
func (s *Snapshot) Sequence() (uint64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	var sequence C.uint64_t
	err := call(func() C.esker_code { return C.esker_snapshot_sequence(s.handle.c, &sequence) })
	runtime.KeepAlive(s)
	return uint64(sequence), err
}

// Get is as [Keyspace.Get].
func (s *Snapshot) Get(k *Keyspace, key []byte) ([]byte, error) {
	var found C.go_value
	err := s.run(k, func() C.esker_code {
		found = C.go_snapshot_get(s.handle.c, k.handle.c, data(key), length(key))
		return found.code
	})
	return take(found.data, found.length), err
}

// GetInto is as [Keyspace.GetInto].
func (s *Snapshot) GetInto(k *Keyspace, key, buffer []byte) (length int, found bool, err error) {
	run := func(f func() C.esker_code) error { return s.run(k, f) }
	return getInto(key, buffer, run, func(key C.go_data, n C.size_t, buffer *C.uchar, most C.size_t) C.go_answer {
		return C.go_snapshot_get_into(s.handle.c, k.handle.c, key, n, buffer, most)
	})
}

// MultiGet is as [Keyspace.MultiGet].
func (s *Snapshot) MultiGet(k *Keyspace, keys ...[]byte) ([][]byte, error) {
	return multiGet(keys, func(f keysCall) error {
		return s.run(k, func() C.esker_code { return f(k.handle.c, s.handle.c, nil) })
	})
}

func (s *Snapshot) answer(k *Keyspace, f func() C.go_answer) (bool, C.uint64_t, error) {
	var answer C.go_answer
	err := s.run(k, func() C.esker_code {
		answer = f()
		return answer.code
	})
	return bool(answer.yes), answer.number, err
}

// Has is as [Keyspace.Has].
func (s *Snapshot) Has(k *Keyspace, key []byte) (bool, error) {
	yes, _, err := s.answer(k, func() C.go_answer {
		return C.go_snapshot_contains_key(s.handle.c, k.handle.c, data(key), length(key))
	})
	return yes, err
}

// ExpiresAt is as [Keyspace.ExpiresAt].
func (s *Snapshot) ExpiresAt(k *Keyspace, key []byte) (at time.Time, found bool, err error) {
	found, ms, err := s.answer(k, func() C.go_answer {
		return C.go_snapshot_expires_at(s.handle.c, k.handle.c, data(key), length(key))
	})
	if found {
		at = expiry(ms)
	}
	return at, found, err
}

func (s *Snapshot) pair(k *Keyspace, f func() C.go_pair) (key, value []byte, err error) {
	var found C.go_pair
	err = s.run(k, func() C.esker_code {
		found = f()
		return found.code
	})
	key, value = takePair(&found)
	return key, value, err
}

// First is as [Keyspace.First].
func (s *Snapshot) First(k *Keyspace) (key, value []byte, err error) {
	return s.pair(k, func() C.go_pair { return C.go_snapshot_first(s.handle.c, k.handle.c) })
}

// Last is as [Keyspace.Last].
func (s *Snapshot) Last(k *Keyspace) (key, value []byte, err error) {
	return s.pair(k, func() C.go_pair { return C.go_snapshot_last(s.handle.c, k.handle.c) })
}

// Count is as [Keyspace.Count].
func (s *Snapshot) Count(k *Keyspace, r Range) (uint64, error) {
	_, count, err := s.answer(k, func() C.go_answer {
		return C.go_snapshot_count(s.handle.c, k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
	return uint64(count), err
}

// Scan yields the pairs of a range as the snapshot sees them.
func (s *Snapshot) Scan(k *Keyspace, options ScanOptions) *Scan {
	if err := s.usable(); err != nil {
		return &Scan{open: func(bool) (*source, error) { return nil, err }}
	}
	return k.scan(s, options)
}

// Cursor makes a cursor over what the snapshot sees.
func (s *Snapshot) Cursor(k *Keyspace, options CursorOptions) (*Cursor, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return newCursor(k, s, options)
}
