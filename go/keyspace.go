package esker

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// Keyspace is a named, ordered map from bytes to bytes, part of one [DB]. Any goroutine may use it.
type Keyspace struct {
	db     *DB
	handle keyspaceHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

type keyspaceHandle struct{ c *C.esker_keyspace }

func (db *DB) newKeyspace(open func(**C.esker_keyspace) C.esker_code) (*Keyspace, error) {
	var handle keyspaceHandle
	if err := db.run(func() C.esker_code { return open(&handle.c) }); err != nil {
		return nil, err
	}
	k := &Keyspace{db: db, handle: handle}
	k.net = runtime.AddCleanup(k, func(handle keyspaceHandle) { C.esker_keyspace_destroy(handle.c) }, handle)
	return k, nil
}

// Close releases the keyspace; what is in it stays.
func (k *Keyspace) Close() error {
	if k == nil || k.db == nil {
		return newError(ErrWrongHandle, "no keyspace")
	}
	if k.closed.Swap(true) {
		return closed("the keyspace")
	}
	k.net.Stop()
	err := call(func() C.esker_code { return C.esker_keyspace_destroy(k.handle.c) })
	runtime.KeepAlive(k)
	return err
}

func (k *Keyspace) usable() error {
	if k == nil || k.db == nil {
		return newError(ErrWrongHandle, "no keyspace")
	}
	if k.closed.Load() {
		return closed("the keyspace")
	}
	return k.db.usable()
}

// run makes a call of the keyspace, which is not collected meanwhile.
func (k *Keyspace) run(f func() C.esker_code) error {
	if err := k.usable(); err != nil {
		return err
	}
	err := call(f)
	runtime.KeepAlive(k)
	return k.db.ended(err)
}

// write makes a write with options.
func (k *Keyspace) write(options []WriteOption, f func(*C.esker_write_options) C.esker_code) error {
	if err := k.usable(); err != nil {
		return err
	}
	err := write(options, f)
	runtime.KeepAlive(k)
	return k.db.ended(err)
}

// DB is the database of the keyspace; nil for none.
func (k *Keyspace) DB() *DB {
	if k == nil {
		return nil
	}
	return k.db
}

// Name is the name of the keyspace.
func (k *Keyspace) Name() (string, error) {
	return k.text(func(text **C.char) C.esker_code { return C.esker_keyspace_name(k.handle.c, text) })
}

// ID is the number of the keyspace, which no other keyspace of the database ever has, and which a rename
// does not change: the KeyspaceID of its changes.
func (k *Keyspace) ID() (uint64, error) {
	var id C.uint64_t
	err := k.run(func() C.esker_code { return C.esker_keyspace_id(k.handle.c, &id) })
	return uint64(id), err
}

// Rename gives the keyspace another name, in one atomic step that is durable when it returns. All
// objects go on; the old name is free at once. ErrAlreadyExists if a keyspace has that name; its own
// name changes nothing.
func (k *Keyspace) Rename(name string) error {
	return withText("the name of a keyspace", name, func(name *C.char) error {
		return k.run(func() C.esker_code { return C.esker_keyspace_rename(k.handle.c, name) })
	})
}

// Comparator is the name of the order of the keys, which is "bytewise" without a comparator.
func (k *Keyspace) Comparator() (string, error) {
	return k.text(func(text **C.char) C.esker_code { return C.esker_keyspace_comparator(k.handle.c, text) })
}

// MergeOperator is the name of the merge operator, or empty.
func (k *Keyspace) MergeOperator() (string, error) {
	return k.text(func(text **C.char) C.esker_code { return C.esker_keyspace_merge_operator(k.handle.c, text) })
}

func (k *Keyspace) text(f func(**C.char) C.esker_code) (string, error) {
	var text *C.char
	if err := k.run(func() C.esker_code { return f(&text) }); err != nil {
		return "", err
	}
	return takeText(text), nil
}

// DefaultTTL says whether entries can expire, and after what time by default: 0 is never.
func (k *Keyspace) DefaultTTL() (ttl time.Duration, enabled bool, err error) {
	var yes C.bool
	var ms C.uint64_t
	err = k.run(func() C.esker_code { return C.esker_keyspace_ttl(k.handle.c, &yes, &ms) })
	return duration(ms), bool(yes), err
}

// SetTTL makes entries of the keyspace expire from now on, after a time by default, or 0 if writes that
// bring none never expire: also of a keyspace that was created without [Expires]. What was written
// before keeps the expiry that it has, or has none. It waits for a flush or compaction that is under
// way. Where nothing could expire before, and the keyspace has a merge operator, its operands are
// combined first, as by [Keyspace.SetMergeOperator].
func (k *Keyspace) SetTTL(byDefault time.Duration) error {
	var ms C.uint64_t
	if byDefault != 0 {
		var err error
		if ms, err = milliseconds(byDefault); err != nil {
			return err
		}
	}
	return k.run(func() C.esker_code { return C.esker_keyspace_set_ttl(k.handle.c, ms) })
}

// SetMergeOperator gives the keyspace the merge operator of an option: [BuiltInMerge] or
// [WithMergeOperator]. In the place of another one it takes the time to rewrite the keyspace, whose
// operands are combined first. It does nothing where the keyspace has an operator of that name, but
// supply it if the keyspace was opened without. ErrInvalidArgument for another option, and where operands
// cannot be combined, as where an iterator sees what is below them.
func (k *Keyspace) SetMergeOperator(operator KeyspaceOption) error {
	if operator == nil {
		return invalid("no merge operator")
	}
	if err := k.usable(); err != nil {
		return err
	}
	return withKeyspaceOptions([]KeyspaceOption{operator}, func(options *C.esker_keyspace_options) error {
		return k.run(func() C.esker_code { return C.esker_keyspace_set_merge_operator(k.handle.c, options) })
	})
}

// CompactionStyle is how the keyspace is compacted, and of FIFO the most bytes of tables.
func (k *Keyspace) CompactionStyle() (style CompactionStyle, maxBytes uint64, err error) {
	var number C.int32_t
	var bytes C.uint64_t
	err = k.run(func() C.esker_code { return C.esker_keyspace_compaction_style(k.handle.c, &number, &bytes) })
	return CompactionStyle(number), uint64(bytes), err
}

// CompareKeys is how two keys are ordered in the keyspace, as [bytes.Compare] has it.
func (k *Keyspace) CompareKeys(a, b []byte) (order int, err error) {
	err = k.run(func() C.esker_code {
		var code C.esker_code
		order = int(C.go_keyspace_compare_keys(k.handle.c, data(a), length(a), data(b), length(b), &code))
		return code
	})
	return order, err
}

// value makes a call that returns a value, or nil for none.
func (k *Keyspace) value(f func() C.go_value) ([]byte, error) {
	var found C.go_value
	err := k.run(func() C.esker_code {
		found = f()
		return found.code
	})
	return take(found.data, found.length), err
}

// Get is the value of a key: nil if it has none.
func (k *Keyspace) Get(key []byte) ([]byte, error) {
	return k.value(func() C.go_value { return C.go_keyspace_get(k.handle.c, data(key), length(key)) })
}

// GetInto copies the value of a key into a buffer, without memory of its own. The length is that of
// the value: where it is more than that of the buffer, nothing is copied, and the error is
// ErrBufferTooShort.
func (k *Keyspace) GetInto(key, buffer []byte) (length int, found bool, err error) {
	return getInto(key, buffer, k.run, func(key C.go_data, n C.size_t, buffer *C.uchar, most C.size_t) C.go_answer {
		return C.go_keyspace_get_into(k.handle.c, key, n, buffer, most)
	})
}

func getInto(
	key, buffer []byte,
	run func(func() C.esker_code) error,
	get func(C.go_data, C.size_t, *C.uchar, C.size_t) C.go_answer,
) (int, bool, error) {
	var answer C.go_answer
	err := run(func() C.esker_code {
		answer = get(data(key), length(key), (*C.uchar)(unsafe.SliceData(buffer)), length(buffer))
		return answer.code
	})
	return int(answer.number), bool(answer.yes), err
}

// MultiGet is the values of many keys, all of one moment: nil for a key that has none.
func (k *Keyspace) MultiGet(keys ...[]byte) ([][]byte, error) {
	return multiGet(keys, func(f keysCall) error {
		return k.run(func() C.esker_code { return f(k.handle.c, nil, nil) })
	})
}

// keysCall makes a call for many keys, of a snapshot or a transaction if there is one.
type keysCall func(*C.esker_keyspace, *C.esker_snapshot, *C.esker_transaction) C.esker_code

func multiGet(keys [][]byte, run func(keysCall) error) ([][]byte, error) {
	total := 0
	lengths := make([]C.size_t, len(keys))
	for i, key := range keys {
		lengths[i] = length(key)
		total += len(key)
	}
	all := make([]byte, 0, total)
	for _, key := range keys {
		all = append(all, key...)
	}
	var pairs C.go_pairs
	err := run(func(k *C.esker_keyspace, s *C.esker_snapshot, t *C.esker_transaction) C.esker_code {
		var first *C.size_t
		if len(lengths) > 0 {
			first = &lengths[0]
		}
		return C.go_multi_get(k, s, t, data(all), first, length(keys), &pairs)
	})
	values := make([][]byte, len(keys))
	for i, pair := range takePairs(&pairs) {
		if len(pair.key) > 0 {
			values[i] = pair.value
		}
	}
	return values, err
}

// answer makes a call that returns whether, and perhaps a number.
func (k *Keyspace) answer(f func() C.go_answer) (bool, C.uint64_t, error) {
	var answer C.go_answer
	err := k.run(func() C.esker_code {
		answer = f()
		return answer.code
	})
	return bool(answer.yes), answer.number, err
}

// Has says whether a key has a value.
func (k *Keyspace) Has(key []byte) (bool, error) {
	yes, _, err := k.answer(func() C.go_answer {
		return C.go_keyspace_contains_key(k.handle.c, data(key), length(key))
	})
	return yes, err
}

// ExpiresAt is when the value of a key expires, the zero time if it does not. It says whether the key
// has a value.
func (k *Keyspace) ExpiresAt(key []byte) (at time.Time, found bool, err error) {
	found, ms, err := k.answer(func() C.go_answer {
		return C.go_keyspace_expires_at(k.handle.c, data(key), length(key))
	})
	if found {
		at = expiry(ms)
	}
	return at, found, err
}

func (k *Keyspace) pair(f func() C.go_pair) (key, value []byte, err error) {
	var found C.go_pair
	err = k.run(func() C.esker_code {
		found = f()
		return found.code
	})
	key, value = takePair(&found)
	return key, value, err
}

// First is the least key that has a value, with the value: nil if there is none.
func (k *Keyspace) First() (key, value []byte, err error) {
	return k.pair(func() C.go_pair { return C.go_keyspace_first(k.handle.c) })
}

// Last is the greatest key that has a value, with the value: nil if there is none.
func (k *Keyspace) Last() (key, value []byte, err error) {
	return k.pair(func() C.go_pair { return C.go_keyspace_last(k.handle.c) })
}

// PopFirst deletes the least key, and returns it with its value: nil if there is none.
func (k *Keyspace) PopFirst() (key, value []byte, err error) {
	return k.pair(func() C.go_pair { return C.go_keyspace_pop_first(k.handle.c) })
}

// Count is the number of keys of a range that have a value.
func (k *Keyspace) Count(r Range) (uint64, error) {
	_, count, err := k.answer(func() C.go_answer {
		return C.go_keyspace_count(k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
	return uint64(count), err
}

// ApproximateSize is about the bytes of a range on disk and in memory.
func (k *Keyspace) ApproximateSize(r Range) (uint64, error) {
	_, bytes, err := k.answer(func() C.go_answer {
		return C.go_keyspace_approximate_size(k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
	return uint64(bytes), err
}

// ApproximateCount is about how many entries there are in a range, without reading a file: a key counts
// once for each table and memtable that has a version of it, also where it was deleted or has
// expired, until compaction drops it.
func (k *Keyspace) ApproximateCount(r Range) (uint64, error) {
	_, entries, err := k.answer(func() C.go_answer {
		return C.go_keyspace_approximate_count(k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
	return uint64(entries), err
}

// Compact flushes, and compacts a range into one run.
func (k *Keyspace) Compact(r Range) error {
	return k.run(func() C.esker_code {
		return C.go_keyspace_compact(k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End))
	})
}

// Put sets the value of a key.
func (k *Keyspace) Put(key, value []byte, options ...WriteOption) error {
	return k.write(options, func(o *C.esker_write_options) C.esker_code {
		return C.go_keyspace_put(k.handle.c, data(key), length(key), data(value), length(value), o)
	})
}

// PutUntil sets the value of a key until a time; the zero time is never. ErrInvalidArgument in a keyspace
// whose entries cannot expire.
func (k *Keyspace) PutUntil(key, value []byte, at time.Time) error {
	return k.run(func() C.esker_code {
		return C.go_keyspace_put_until(k.handle.c, data(key), length(key), data(value), length(value), until(at))
	})
}

// Delete deletes a key, which need not exist.
func (k *Keyspace) Delete(key []byte, options ...WriteOption) error {
	return k.write(options, func(o *C.esker_write_options) C.esker_code {
		return C.go_keyspace_delete(k.handle.c, data(key), length(key), o)
	})
}

// Merge combines an operand with what a key holds, without reading it.
func (k *Keyspace) Merge(key, operand []byte, options ...WriteOption) error {
	return k.write(options, func(o *C.esker_write_options) C.esker_code {
		return C.go_keyspace_merge(k.handle.c, data(key), length(key), data(operand), length(operand), o)
	})
}

// DeleteRange deletes every key of a range, for the price of a put.
func (k *Keyspace) DeleteRange(r Range, options ...WriteOption) error {
	return k.write(options, func(o *C.esker_write_options) C.esker_code {
		return C.go_keyspace_delete_range(k.handle.c, data(r.Start), length(r.Start), data(r.End), length(r.End), o)
	})
}

// DeletePrefix deletes every key that begins with a prefix.
func (k *Keyspace) DeletePrefix(prefix []byte) error {
	return k.run(func() C.esker_code {
		return C.go_keyspace_delete_prefix(k.handle.c, data(prefix), length(prefix))
	})
}

// valueOfWrite makes a write that returns a value, or nil for none.
func (k *Keyspace) valueOfWrite(options []WriteOption, f func(*C.esker_write_options) C.go_value) ([]byte, error) {
	var found C.go_value
	err := k.write(options, func(o *C.esker_write_options) C.esker_code {
		found = f(o)
		return found.code
	})
	return take(found.data, found.length), err
}

// PutIfAbsent sets the value of a key that has none: nil if it did, or the value that the key has.
func (k *Keyspace) PutIfAbsent(key, value []byte, options ...WriteOption) (existing []byte, err error) {
	return k.valueOfWrite(options, func(o *C.esker_write_options) C.go_value {
		return C.go_keyspace_put_if_absent(k.handle.c, data(key), length(key), data(value), length(value), o)
	})
}

// CompareAndSwap sets the value of a key that has the expected one. Both may be nil for none. If the
// key has another value, it is returned, and nothing is written.
func (k *Keyspace) CompareAndSwap(key, expected, value []byte, options ...WriteOption) (swapped bool, current []byte, err error) {
	var swap C.go_swap
	err = k.write(options, func(o *C.esker_write_options) C.esker_code {
		swap = C.go_keyspace_compare_and_swap(k.handle.c, data(key), length(key), data(expected), length(expected),
			data(value), length(value), o)
		return swap.code
	})
	return bool(swap.yes), take(swap.data, swap.length), err
}

// MergeAndGet merges an operand, and returns what the key holds then: nil if nothing.
func (k *Keyspace) MergeAndGet(key, operand []byte, options ...WriteOption) ([]byte, error) {
	return k.valueOfWrite(options, func(o *C.esker_write_options) C.go_value {
		return C.go_keyspace_merge_and_get(k.handle.c, data(key), length(key), data(operand), length(operand), o)
	})
}

// Take deletes a key, and returns the value that it had: nil if none.
func (k *Keyspace) Take(key []byte, options ...WriteOption) ([]byte, error) {
	return k.valueOfWrite(options, func(o *C.esker_write_options) C.go_value {
		return C.go_keyspace_take(k.handle.c, data(key), length(key), o)
	})
}

// Touch gives the value of a key so long to live from now on. It says whether the key has one.
func (k *Keyspace) Touch(key []byte, ttl time.Duration) (bool, error) {
	ms, err := milliseconds(ttl)
	if err != nil {
		return false, err
	}
	found, _, err := k.answer(func() C.go_answer {
		return C.go_keyspace_touch(k.handle.c, data(key), length(key), ms)
	})
	return found, err
}

// ExpireAt makes the value of a key expire at a time; the zero time is never. It says whether the key has one.
func (k *Keyspace) ExpireAt(key []byte, at time.Time) (bool, error) {
	found, _, err := k.answer(func() C.go_answer {
		return C.go_keyspace_expire_at(k.handle.c, data(key), length(key), until(at))
	})
	return found, err
}

// Persist makes the value of a key one that never expires. It says whether the key has one.
func (k *Keyspace) Persist(key []byte) (bool, error) {
	found, _, err := k.answer(func() C.go_answer {
		return C.go_keyspace_persist(k.handle.c, data(key), length(key))
	})
	return found, err
}

// All are the pairs of the keyspace in their order. See [Keyspace.Scan].
func (k *Keyspace) All() *Scan { return k.Scan(ScanOptions{}) }
