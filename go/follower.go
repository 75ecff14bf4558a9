package esker

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync/atomic"
)

// Follower is a database that is read behind its writer, in this process or another.
type Follower struct {
	db     *DB
	handle followerHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

type followerHandle struct{ c *C.esker_follower }

// OpenFollower opens a database for reading behind its writer.
func OpenFollower(path string, options ...Option) (*Follower, error) {
	var handle followerHandle
	err := withOptions(options, func(options *C.esker_options) error {
		return withText("the path", path, func(path *C.char) error {
			return call(func() C.esker_code { return C.esker_follower_open(path, options, &handle.c) })
		})
	})
	if err != nil {
		return nil, err
	}
	db, err := newDB(func(db **C.esker_db) C.esker_code { return C.esker_follower_db(handle.c, db) })
	if err != nil {
		C.esker_follower_destroy(handle.c)
		return nil, err
	}
	f := &Follower{db: db, handle: handle}
	f.net = runtime.AddCleanup(f, func(handle followerHandle) { C.esker_follower_destroy(handle.c) }, handle)
	return f, nil
}

// DB is the database, to be read. It ends with the follower. It is nil for no follower.
func (f *Follower) DB() *DB {
	if f == nil {
		return nil
	}
	return f.db
}

// CatchUp reads what the writer has written since. It returns the number of the last write that the
// follower has.
func (f *Follower) CatchUp() (uint64, error) {
	if f == nil || f.db == nil {
		return 0, newError(ErrWrongHandle, "no follower")
	}
	var sequence C.uint64_t
	err := f.db.run(func() C.esker_code { return C.esker_follower_catch_up(f.handle.c, &sequence) })
	runtime.KeepAlive(f)
	return uint64(sequence), f.db.ended(err)
}

// FollowerLag is how far a follower is behind what its writer has written.
type FollowerLag struct {
	// Batches in the log that the follower has not read.
	Batches uint64
	// LogBytes are the bytes of log that they take.
	LogBytes uint64
	// Sequence is the number of the last write in them; if there are none, of the last write that
	// the follower has.
	Sequence uint64
}

// Lag is how far the follower is behind; it stays where it is. It is not known where the log from
// there on is gone, because it is in tables, which the next CatchUp reads.
func (f *Follower) Lag() (lag FollowerLag, known bool, err error) {
	if f == nil || f.db == nil {
		return FollowerLag{}, false, newError(ErrWrongHandle, "no follower")
	}
	var isKnown C.bool
	var batches, logBytes, sequence C.uint64_t
	err = f.db.run(func() C.esker_code {
		return C.esker_follower_lag(f.handle.c, &isKnown, &batches, &logBytes, &sequence)
	})
	runtime.KeepAlive(f)
	lag = FollowerLag{Batches: uint64(batches), LogBytes: uint64(logBytes), Sequence: uint64(sequence)}
	return lag, bool(isKnown), f.db.ended(err)
}

// Close ends the follower and its database.
func (f *Follower) Close() error {
	if f == nil || f.db == nil {
		return newError(ErrWrongHandle, "no follower")
	}
	if f.closed.Swap(true) {
		return closed("the follower")
	}
	f.net.Stop()
	// The database may have been closed before, which ends the follower too.
	_ = f.db.Close()
	err := call(func() C.esker_code { return C.esker_follower_destroy(f.handle.c) })
	runtime.KeepAlive(f)
	return err
}
