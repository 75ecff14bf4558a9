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
