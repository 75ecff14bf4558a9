package esker

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Watch waits for writes to keys that begin with a prefix. Close it when it is used no more: while
// there is one, each write compares its keys with the prefix.
type Watch struct {
	db     *DB
	handle watchHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

type watchHandle struct{ c *C.esker_watch }

// Watch notes from here on whether keys that begin with a prefix are written; the empty prefix is all
// keys. Loads and the drop of the keyspace count as writes to all of its keys, expiry does not.
func (k *Keyspace) Watch(prefix []byte) (*Watch, error) {
	var handle watchHandle
	err := k.run(func() C.esker_code {
		return C.go_keyspace_watch(k.handle.c, data(prefix), length(prefix), &handle.c)
	})
	if err != nil {
		return nil, err
	}
	w := &Watch{db: k.db, handle: handle}
	w.net = runtime.AddCleanup(w, func(handle watchHandle) { C.esker_watch_destroy(handle.c) }, handle)
	return w, nil
}

// Close ends the watch, and waits for it within a tenth of a second.
func (w *Watch) Close() error {
	if w == nil || w.db == nil {
		return newError(ErrWrongHandle, "no watch")
	}
	if w.closed.Swap(true) {
		return closed("the watch")
	}
	w.net.Stop()
	err := call(func() C.esker_code { return C.esker_watch_destroy(w.handle.c) })
	runtime.KeepAlive(w)
	return err
}

// Wait waits until there was a write since the last wait that found one, or since the watch was made,
// or the context ends: its error then. It may also return without a write. Any number of goroutines
// may wait; each write ends one wait of one of them. The end of the context, and Close, are noticed
// within a tenth of a second; the close of the database, ErrClosed, at once.
func (w *Watch) Wait(ctx context.Context) error {
	if w == nil || w.db == nil {
		return newError(ErrWrongHandle, "no watch")
	}
	return wait(ctx, func(ms C.uint64_t, written *C.bool) error {
		if w.closed.Load() {
			return closed("the watch")
		}
		err := w.db.run(func() C.esker_code { return C.esker_watch_wait(w.handle.c, ms, written) })
		runtime.KeepAlive(w)
		return w.db.ended(err)
	})
}
