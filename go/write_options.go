package esker

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"time"
)

// WriteOption changes how a write is made.
type WriteOption func(*writeOptions)

type writeOptions struct {
	sync, disableWAL bool
	hasTTL           bool
	ttl              time.Duration
	stall            time.Duration
	ctx              context.Context
}

// waitForever is the stall of a write that waits for as long as it takes.
const waitForever time.Duration = -1

// Sync makes the write, and everything before it, be on the device when the call returns.
func Sync() WriteOption { return func(o *writeOptions) { o.sync = true } }

// DisableWAL leaves out the log: the write is lost with the process until a flush.
func DisableWAL() WriteOption { return func(o *writeOptions) { o.disableWAL = true } }

// TTL is the time to live of what is written, rounded up to milliseconds.
func TTL(ttl time.Duration) WriteOption {
	return func(o *writeOptions) { o.hasTTL, o.ttl = true, ttl }
}

// Stall makes the write fail with ErrWriteStalled where writes are stalled, after waiting for at
// most so long; 0 does not wait. Without it a write waits for as long as it takes.
func Stall(wait time.Duration) WriteOption {
	return func(o *writeOptions) { o.stall = max(wait, 0) }
}

// WithContext makes the write wait, where writes are stalled, until the context ends, and fail then with
// the error of the context: nothing was written. The end is noticed within a tenth of a second. A
// context that has ended before the call makes the write fail too.
func WithContext(ctx context.Context) WriteOption {
	return func(o *writeOptions) { o.ctx = ctx }
}

func newWriteOptions(options []WriteOption) (*writeOptions, error) {
	o := &writeOptions{stall: waitForever}
	for _, set := range options {
		if set == nil {
			return nil, invalid("an option that is nil")
		}
		set(o)
	}
	return o, nil
}

// slice is how long a call waits before it looks whether its context has ended, or its object was
// closed.
const slice = 100 * time.Millisecond

// write makes a write with its options for C: nil without any.
func write(options []WriteOption, f func(*C.esker_write_options) C.esker_code) error {
	if len(options) == 0 {
		return call(func() C.esker_code { return f(nil) })
	}
	o, err := newWriteOptions(options)
	if err != nil {
		return err
	}
	if o.ctx == nil || o.ctx.Done() == nil {
		return o.write(o.stall, f)
	}
	// In pieces: a piece that ends with stalled writes has written nothing.
	for left := o.stall; ; left -= slice {
		if err := o.ctx.Err(); err != nil {
			return err
		}
		piece := slice
		if o.stall != waitForever {
			piece = min(piece, max(left, 0))
		}
		err := o.write(piece, f)
		if !errors.Is(err, ErrWriteStalled) || (o.stall != waitForever && left <= slice) {
			return err
		}
	}
}

func (o *writeOptions) write(stall time.Duration, f func(*C.esker_write_options) C.esker_code) error {
	ttl, err := o.lifetime()
	if err != nil {
		return err
	}
	wait := C.uint64_t(math.MaxUint64)
	if stall != waitForever {
		wait = C.uint64_t((stall + time.Millisecond - 1) / time.Millisecond)
	}
	var c *C.esker_write_options
	defer func() {
		if c != nil {
			C.esker_write_options_destroy(c)
		}
	}()
	err = call(func() C.esker_code {
		return C.go_write_options(C.bool(o.sync), C.bool(o.disableWAL), C.bool(o.hasTTL), ttl, wait, &c)
	})
	if err != nil {
		return err
	}
	return call(func() C.esker_code { return f(c) })
}

// lifetime is the time to live, or 0 without one.
func (o *writeOptions) lifetime() (C.uint64_t, error) {
	if !o.hasTTL {
		return 0, nil
	}
	return milliseconds(o.ttl)
}
