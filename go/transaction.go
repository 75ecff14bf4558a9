package esker

// #include "shim.h"
import "C"

import (
	"bytes"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// Transaction reads as of the moment at which it began, with its own writes, and takes effect as one
// step at the commit, or fails there with ErrConflict. [DB.Transact] runs one again after that.
type Transaction struct {
	db     *DB
	handle transactionHandle
	ended  atomic.Bool
	net    runtime.Cleanup
}

type transactionHandle struct{ c *C.esker_transaction }

// Transaction begins a transaction. End it with Commit or Rollback.
func (db *DB) Transaction() (*Transaction, error) {
	var handle transactionHandle
	if err := db.run(func() C.esker_code { return C.esker_db_transaction(db.handle.c, &handle.c) }); err != nil {
		return nil, err
	}
	t := &Transaction{db: db, handle: handle}
	t.net = runtime.AddCleanup(t, func(handle transactionHandle) { C.esker_transaction_rollback(handle.c) }, handle)
	return t, nil
}

// usable is an error if the transaction has ended.
func (t *Transaction) usable() error {
	if t == nil || t.db == nil {
		return newError(ErrWrongHandle, "no transaction")
	}
	if t.ended.Load() {
		return newError(ErrClosed, "the transaction has ended")
	}
	return t.db.usable()
}

// end notes that the transaction has ended, unless another call used it.
func (t *Transaction) end(err error) error {
	if !errors.Is(err, ErrBusy) {
		t.ended.Store(true)
		t.net.Stop()
	}
	runtime.KeepAlive(t)
	return t.db.ended(err)
}

// Commit writes all that the transaction has written in one atomic step, or fails with ErrConflict
// and writes nothing. The transaction has ended in any case but ErrBusy, also where the options are
// wrong. A context is looked at before the commit, and its deadline ends a wait where writes are
// stalled; its cancellation does not.
func (t *Transaction) Commit(options ...WriteOption) error {
	if err := t.usable(); err != nil {
		return t.giveUp(err)
	}
	o, err := newWriteOptions(options)
	if err == nil && o.ctx != nil {
		err = o.ctx.Err()
	}
	if err != nil {
		return t.giveUp(err)
	}
	if o.ctx != nil && o.stall == waitForever {
		if deadline, ok := o.ctx.Deadline(); ok {
			o.stall = max(time.Until(deadline), 0)
		}
	}
	// Not in pieces: the first failure ends the transaction.
	reached := false
	err = o.write(o.stall, func(c *C.esker_write_options) C.esker_code {
		reached = true
		return C.esker_transaction_commit(t.handle.c, c)
	})
	if !reached {
		return t.giveUp(err)
	}
	err = t.end(err)
	if o.ctx != nil && o.ctx.Err() != nil && errors.Is(err, ErrWriteStalled) {
		return o.ctx.Err()
	}
	return err
}

// giveUp ends the transaction for an error before its commit, unless another call uses it.
func (t *Transaction) giveUp(err error) error {
	if busy := t.Rollback(); errors.Is(busy, ErrBusy) {
		return busy
	}
	return err
}

// Rollback ends the transaction without writing.
func (t *Transaction) Rollback() error {
	if t == nil || t.db == nil {
		return newError(ErrWrongHandle, "no transaction")
	}
	if t.ended.Load() {
		return newError(ErrClosed, "the transaction has ended")
	}
	return t.end(call(func() C.esker_code { return C.esker_transaction_rollback(t.handle.c) }))
}

// run makes a call with a keyspace.
func (t *Transaction) run(k *Keyspace, f func() C.esker_code) error {
	if err := t.usable(); err != nil {
		return err
	}
	err := k.run(f)
	runtime.KeepAlive(t)
	return err
}

// Sequence is the number of the last write that the transaction sees.
func (t *Transaction) Sequence() (uint64, error) {
	var sequence C.uint64_t
	err := t.call(func() C.esker_code { return C.esker_transaction_sequence(t.handle.c, &sequence) })
	return uint64(sequence), err
}

// Len is the number of operations that the transaction writes.
func (t *Transaction) Len() (int, error) {
	var count C.size_t
	err := t.call(func() C.esker_code { return C.esker_transaction_write_count(t.handle.c, &count) })
	return int(count), err
}

// call makes a call of the transaction itself.
func (t *Transaction) call(f func() C.esker_code) error {
	if err := t.usable(); err != nil {
		return err
	}
	err := call(f)
	runtime.KeepAlive(t)
	return err
}

// Get is as [Keyspace.Get].
func (t *Transaction) Get(k *Keyspace, key []byte) ([]byte, error) {
	var found C.go_value
	err := t.run(k, func() C.esker_code {
		found = C.go_transaction_get(t.handle.c, k.handle.c, data(key), length(key))
		return found.code
	})
	return take(found.data, found.length), err
}

// GetInto is as [Keyspace.GetInto].
func (t *Transaction) GetInto(k *Keyspace, key, buffer []byte) (length int, found bool, err error) {
	run := func(f func() C.esker_code) error { return t.run(k, f) }
	return getInto(key, buffer, run, func(key C.go_data, n C.size_t, buffer *C.uchar, most C.size_t) C.go_answer {
		return C.go_transaction_get_into(t.handle.c, k.handle.c, key, n, buffer, most)
	})
}

// MultiGet is as [Keyspace.MultiGet]. All the keys count as read.
func (t *Transaction) MultiGet(k *Keyspace, keys ...[]byte) ([][]byte, error) {
	return multiGet(keys, func(f keysCall) error {
		return t.run(k, func() C.esker_code { return f(k.handle.c, nil, t.handle.c) })
	})
}

// ExpiresAt is as [Keyspace.ExpiresAt], as of the beginning of the transaction. For a key that the
// transaction has written it is ErrInvalidArgument: times to live count from the commit.
func (t *Transaction) ExpiresAt(k *Keyspace, key []byte) (at time.Time, found bool, err error) {
	var answer C.go_answer
	err = t.run(k, func() C.esker_code {
		answer = C.go_transaction_expires_at(t.handle.c, k.handle.c, data(key), length(key))
		return answer.code
	})
	if answer.yes {
		at = expiry(answer.number)
	}
	return at, bool(answer.yes), err
}

// Has is as [Keyspace.Has].
func (t *Transaction) Has(k *Keyspace, key []byte) (bool, error) {
	var answer C.go_answer
	err := t.run(k, func() C.esker_code {
		answer = C.go_transaction_contains_key(t.handle.c, k.handle.c, data(key), length(key))
		return answer.code
	})
	return bool(answer.yes), err
}

func (t *Transaction) pair(k *Keyspace, f func() C.go_pair) (key, value []byte, err error) {
	var found C.go_pair
	err = t.run(k, func() C.esker_code {
		found = f()
		return found.code
	})
	key, value = takePair(&found)
	return key, value, err
}

// First is as [Keyspace.First].
func (t *Transaction) First(k *Keyspace) (key, value []byte, err error) {
	return t.pair(k, func() C.go_pair { return C.go_transaction_first(t.handle.c, k.handle.c) })
}

// Last is as [Keyspace.Last].
func (t *Transaction) Last(k *Keyspace) (key, value []byte, err error) {
	return t.pair(k, func() C.go_pair { return C.go_transaction_last(t.handle.c, k.handle.c) })
}

// PopFirst is as [Keyspace.PopFirst].
func (t *Transaction) PopFirst(k *Keyspace) (key, value []byte, err error) {
	return t.pair(k, func() C.go_pair { return C.go_transaction_pop_first(t.handle.c, k.handle.c) })
}

// Count is as [Keyspace.Count].
func (t *Transaction) Count(k *Keyspace, r Range) (uint64, error) {
	var answer C.go_answer
	err := t.run(k, func() C.esker_code {
		answer = C.go_transaction_count(t.handle.c, k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
		return answer.code
	})
	return uint64(answer.number), err
}

// Put sets the value of a key.
func (t *Transaction) Put(k *Keyspace, key, value []byte) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_put(t.handle.c, k.handle.c, data(key), length(key), data(value), length(value))
	})
}

// PutWithTTL sets the value of a key with a time to live, which counts from the commit.
func (t *Transaction) PutWithTTL(k *Keyspace, key, value []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return t.run(k, func() C.esker_code {
		return C.go_transaction_put_with_ttl(t.handle.c, k.handle.c, data(key), length(key), data(value), length(value), ms)
	})
}

// PutUntil sets the value of a key until a time; the zero time is never.
func (t *Transaction) PutUntil(k *Keyspace, key, value []byte, at time.Time) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_put_until(t.handle.c, k.handle.c, data(key), length(key), data(value), length(value),
			until(at))
	})
}

// Delete deletes a key.
func (t *Transaction) Delete(k *Keyspace, key []byte) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_delete(t.handle.c, k.handle.c, data(key), length(key))
	})
}

// Merge merges an operand.
func (t *Transaction) Merge(k *Keyspace, key, operand []byte) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_merge(t.handle.c, k.handle.c, data(key), length(key), data(operand), length(operand))
	})
}

// MergeWithTTL merges an operand with a time to live, which counts from the commit.
func (t *Transaction) MergeWithTTL(k *Keyspace, key, operand []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return t.run(k, func() C.esker_code {
		return C.go_transaction_merge_with_ttl(t.handle.c, k.handle.c, data(key), length(key), data(operand),
			length(operand), ms)
	})
}

// DeleteRange deletes every key of a range.
func (t *Transaction) DeleteRange(k *Keyspace, r Range) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_delete_range(t.handle.c, k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
}

// DeletePrefix deletes every key that begins with a prefix.
func (t *Transaction) DeletePrefix(k *Keyspace, prefix []byte) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_delete_prefix(t.handle.c, k.handle.c, data(prefix), length(prefix))
	})
}

// Touch changes the expiry of a key: so long from the commit on.
func (t *Transaction) Touch(k *Keyspace, key []byte, ttl time.Duration) error {
	ms, err := milliseconds(ttl)
	if err != nil {
		return err
	}
	return t.run(k, func() C.esker_code {
		return C.go_transaction_touch(t.handle.c, k.handle.c, data(key), length(key), ms)
	})
}

// ExpireAt changes the expiry of a key; the zero time is never.
func (t *Transaction) ExpireAt(k *Keyspace, key []byte, at time.Time) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_expire_at(t.handle.c, k.handle.c, data(key), length(key), until(at))
	})
}

// Persist makes the value of a key one that never expires.
func (t *Transaction) Persist(k *Keyspace, key []byte) error {
	return t.run(k, func() C.esker_code {
		return C.go_transaction_persist(t.handle.c, k.handle.c, data(key), length(key))
	})
}

// Scan yields the pairs of a range as the transaction sees them. The loop may use the transaction;
// whether it meets what it has itself written ahead of it, nothing says. In a keyspace that is not in
// the order of bytes the whole range is read at once.
func (t *Transaction) Scan(k *Keyspace, o ScanOptions) *Scan {
	return &Scan{open: func(keysOnly bool) (*source, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		if err := t.usable(); err != nil {
			return nil, err
		}
		comparator, err := k.Comparator()
		if err != nil {
			return nil, err
		}
		o := o
		o.KeysOnly = o.KeysOnly || keysOnly
		if comparator != bytewise {
			return t.whole(k, o), nil
		}
		if o.Prefix != nil {
			o.Range, o.Prefix = Prefix(o.Prefix), nil
		}
		return &source{
			fill: func(pairs *C.go_pairs, most C.size_t, end *C.bool) error {
				return t.run(k, func() C.esker_code { return t.fill(k, &o, most, mostReadAhead, pairs, end) })
			},
			passed: func(last []byte) {
				if o.Reverse {
					o.End = last
				} else {
					o.Start = append(bytes.Clone(last), 0)
				}
			},
			keysOnly: o.KeysOnly,
			end:      func() {},
		}, nil
	}}
}

// bytewise is the name of the order of bytes, in which a key with a zero byte is the next one.
const bytewise = "bytewise"

// whole reads all there is in one call.
func (t *Transaction) whole(k *Keyspace, o ScanOptions) *source {
	return &source{
		fill: func(pairs *C.go_pairs, _ C.size_t, end *C.bool) error {
			return t.run(k, func() C.esker_code {
				if o.Prefix != nil {
					return C.go_transaction_fill_prefix(t.handle.c, k.handle.c, data(o.Prefix), length(o.Prefix),
						C.bool(o.Reverse), C.SIZE_MAX, C.SIZE_MAX, pairs, end)
				}
				return t.fill(k, &o, C.SIZE_MAX, C.SIZE_MAX, pairs, end)
			})
		},
		keysOnly: o.KeysOnly,
		end:      func() {},
	}
}

func (t *Transaction) fill(k *Keyspace, o *ScanOptions, most, bytes C.size_t, pairs *C.go_pairs, end *C.bool) C.esker_code {
	return C.go_transaction_fill(t.handle.c, k.handle.c, data(o.Start), length(o.Start), data(o.End), length(o.End),
		C.bool(o.Reverse), most, bytes, pairs, end)
}
