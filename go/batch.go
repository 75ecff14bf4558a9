package esker

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Batch is operations that are written together. Close it when it is used no more.
type Batch struct {
	db     *DB
	handle batchHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

type batchHandle struct{ c *C.esker_batch }

// Batch makes an empty batch.
func (db *DB) Batch() (*Batch, error) {
	var handle batchHandle
	if err := db.run(func() C.esker_code { return C.esker_db_batch(db.handle.c, &handle.c) }); err != nil {
		return nil, err
	}
	b := &Batch{db: db, handle: handle}
	b.net = runtime.AddCleanup(b, func(handle batchHandle) { C.esker_batch_destroy(handle.c) }, handle)
	return b, nil
}

// Close releases the batch; what was not committed is not written.
func (b *Batch) Close() error {
	if b == nil || b.db == nil {
		return newError(ErrWrongHandle, "no batch")
	}
	if b.closed.Swap(true) {
		return closed("the batch")
	}
	b.net.Stop()
	err := call(func() C.esker_code { return C.esker_batch_destroy(b.handle.c) })
	runtime.KeepAlive(b)
	return err
}

func (b *Batch) usable() error {
	if b == nil || b.db == nil {
		return newError(ErrWrongHandle, "no batch")
	}
	if b.closed.Load() {
		return closed("the batch")
	}
	return b.db.usable()
}

// run makes a call of the batch itself.
func (b *Batch) run(f func() C.esker_code) error {
	if err := b.usable(); err != nil {
		return err
	}
	err := call(f)
	runtime.KeepAlive(b)
	return err
}

// with makes a call with a keyspace.
func (b *Batch) with(k *Keyspace, f func() C.esker_code) error {
	if err := b.usable(); err != nil {
		return err
	}
	err := k.run(f)
	runtime.KeepAlive(b)
	return err
}

// Put adds a put.
func (b *Batch) Put(k *Keyspace, key, value []byte) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_put(b.handle.c, k.handle.c, data(key), length(key), data(value), length(value))
	})
}

// PutWithTTL adds a put with a time to live, which counts from the commit.
func (b *Batch) PutWithTTL(k *Keyspace, key, value []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return b.with(k, func() C.esker_code {
		return C.go_batch_put_with_ttl(b.handle.c, k.handle.c, data(key), length(key), data(value), length(value), ms)
	})
}

// PutUntil adds a put until a time; the zero time is never.
func (b *Batch) PutUntil(k *Keyspace, key, value []byte, at time.Time) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_put_until(b.handle.c, k.handle.c, data(key), length(key), data(value), length(value),
			until(at))
	})
}

// Delete adds a delete.
func (b *Batch) Delete(k *Keyspace, key []byte) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_delete(b.handle.c, k.handle.c, data(key), length(key))
	})
}

// Merge adds an operand.
func (b *Batch) Merge(k *Keyspace, key, operand []byte) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_merge(b.handle.c, k.handle.c, data(key), length(key), data(operand), length(operand))
	})
}

// MergeWithTTL adds an operand with a time to live.
func (b *Batch) MergeWithTTL(k *Keyspace, key, operand []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return b.with(k, func() C.esker_code {
		return C.go_batch_merge_with_ttl(b.handle.c, k.handle.c, data(key), length(key), data(operand), length(operand), ms)
	})
}

// DeleteRange adds a delete of every key of a range.
func (b *Batch) DeleteRange(k *Keyspace, r Range) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_delete_range(b.handle.c, k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
}

// DeletePrefix adds a delete of every key that begins with a prefix.
func (b *Batch) DeletePrefix(k *Keyspace, prefix []byte) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_delete_prefix(b.handle.c, k.handle.c, data(prefix), length(prefix))
	})
}

// Touch adds a change of the expiry of a key: so long from the commit on.
func (b *Batch) Touch(k *Keyspace, key []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return b.with(k, func() C.esker_code {
		return C.go_batch_touch(b.handle.c, k.handle.c, data(key), length(key), ms)
	})
}

// ExpireAt adds a change of the expiry of a key; the zero time is never.
func (b *Batch) ExpireAt(k *Keyspace, key []byte, at time.Time) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_expire_at(b.handle.c, k.handle.c, data(key), length(key), until(at))
	})
}

// Persist adds that the value of a key never expires.
func (b *Batch) Persist(k *Keyspace, key []byte) error {
	return b.with(k, func() C.esker_code {
		return C.go_batch_persist(b.handle.c, k.handle.c, data(key), length(key))
	})
}

// Len is the number of operations.
func (b *Batch) Len() (int, error) {
	var count C.size_t
	err := b.run(func() C.esker_code { return C.esker_batch_count(b.handle.c, &count) })
	return int(count), err
}

// Clear removes all operations.
func (b *Batch) Clear() error {
	return b.run(func() C.esker_code { return C.esker_batch_clear(b.handle.c) })
}

// Commit writes all operations in one atomic step, and leaves the batch empty. After a failure it has
// them still.
func (b *Batch) Commit(options ...WriteOption) error {
	if err := b.usable(); err != nil {
		return err
	}
	err := write(options, func(o *C.esker_write_options) C.esker_code {
		return C.esker_batch_commit(b.handle.c, o)
	})
	runtime.KeepAlive(b)
	return b.db.ended(err)
}
