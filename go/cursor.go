package esker

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// CursorOptions say where a cursor may be.
type CursorOptions struct {
	// Range has the keys that it finds. Without it, these are all.
	Range
	// KeysOnly leaves the values out: they are empty, and large ones are not read.
	KeysOnly bool
}

// Cursor is a position among the keys of one moment, which seeks and steps in both directions. It
// begins at no key; one that finds none is at none, and steps from there do nothing.
type Cursor struct {
	db     *DB
	handle cursorHandle
	net    runtime.Cleanup
	// What the library lends lasts until the next move: it is copied before there can be one.
	mutex  sync.Mutex
	closed bool
}

type cursorHandle struct{ c *C.esker_cursor }

// Cursor makes a cursor, as of this moment.
func (k *Keyspace) Cursor(options CursorOptions) (*Cursor, error) { return newCursor(k, nil, options) }

func newCursor(k *Keyspace, snapshot *Snapshot, o CursorOptions) (*Cursor, error) {
	var handle cursorHandle
	err := k.runWith(snapshot, func(snapshot *C.esker_snapshot) C.esker_code {
		return C.go_cursor_create(k.handle.c, snapshot, C.bool(o.KeysOnly),
			data(o.Start), length(o.Start), data(o.End), length(o.End), &handle.c)
	})
	if err != nil {
		return nil, err
	}
	c := &Cursor{db: k.db, handle: handle}
	c.net = runtime.AddCleanup(c, func(handle cursorHandle) { C.esker_cursor_destroy(handle.c) }, handle)
	return c, nil
}

// Close releases the cursor.
func (c *Cursor) Close() error {
	return c.exclusively(func() error {
		c.closed = true
		c.net.Stop()
		return call(func() C.esker_code { return C.esker_cursor_destroy(c.handle.c) })
	})
}

// exclusively calls a function unless another call uses the cursor. Waiting for that would be for
// ever where a callback uses what it was called from.
func (c *Cursor) exclusively(f func() error) error {
	if c == nil || c.db == nil {
		return newError(ErrWrongHandle, "no cursor")
	}
	if !c.mutex.TryLock() {
		return newError(ErrBusy, "the cursor is in use by another call; one goroutine at a time may use it")
	}
	defer c.mutex.Unlock()
	if c.closed {
		return closed("the cursor")
	}
	return f()
}

// move makes a move, and says whether the cursor is at a key then.
func (c *Cursor) move(f func() C.esker_code) (valid bool, err error) {
	err = c.exclusively(func() error {
		err := c.db.run(f)
		valid = err == nil && bool(C.esker_cursor_valid(c.handle.c))
		return err
	})
	return valid, err
}

// First moves to the first key. It says, as all moves do, whether the cursor is at a key then. After
// a failure it is at none; after ErrMergeFailed the next step goes on behind the key that failed.
func (c *Cursor) First() (bool, error) {
	return c.move(func() C.esker_code { return C.esker_cursor_seek_to_first(c.handle.c) })
}

// Last moves to the last key.
func (c *Cursor) Last() (bool, error) {
	return c.move(func() C.esker_code { return C.esker_cursor_seek_to_last(c.handle.c) })
}

// Seek moves to the first key at or after a key.
func (c *Cursor) Seek(key []byte) (bool, error) {
	return c.move(func() C.esker_code { return C.go_cursor_seek(c.handle.c, data(key), length(key)) })
}

// SeekForPrev moves to the last key at or before a key.
func (c *Cursor) SeekForPrev(key []byte) (bool, error) {
	return c.move(func() C.esker_code { return C.go_cursor_seek_for_prev(c.handle.c, data(key), length(key)) })
}

// Next moves to the next key.
func (c *Cursor) Next() (bool, error) {
	return c.move(func() C.esker_code { return C.esker_cursor_next(c.handle.c) })
}

// Prev moves to the key before.
func (c *Cursor) Prev() (bool, error) {
	return c.move(func() C.esker_code { return C.esker_cursor_prev(c.handle.c) })
}

// Key is the key at the cursor: nil at none, and where a move would fail.
func (c *Cursor) Key() []byte {
	return c.lent(func(length *C.size_t) *C.char { return C.esker_cursor_key(c.handle.c, length) })
}

// Value is the value at the cursor: nil at no key, and where a move would fail.
func (c *Cursor) Value() []byte {
	return c.lent(func(length *C.size_t) *C.char { return C.esker_cursor_value(c.handle.c, length) })
}

func (c *Cursor) lent(f func(*C.size_t) *C.char) (copied []byte) {
	// An error leaves nothing to be seen.
	_ = c.exclusively(func() error {
		if err := c.db.usable(); err != nil {
			return err
		}
		var length C.size_t
		if bytes := f(&length); bytes != nil {
			copied = lent(unsafe.Pointer(bytes), length)
		}
		return nil
	})
	return copied
}
