package esker

// #include "shim.h"
import "C"

import (
	"bytes"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// Range is a range of keys: from Start, which is in it, to End, which is not. A nil Start is the
// first key of all, a nil End is behind the last. The zero range is all keys.
type Range struct {
	Start, End []byte
}

// Prefix is the range of the keys that begin with a prefix, in a keyspace in the order of bytes.
func Prefix(prefix []byte) Range {
	return Range{Start: bytes.Clone(prefix), End: successor(prefix)}
}

// successor is the least key behind all that begin with a prefix; nil if there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

// ScanOptions say what a scan yields.
type ScanOptions struct {
	// Range is where it is. Without it, all keys are.
	Range
	// Prefix, if it is not nil, has all keys that begin with it instead, in any order of keys. Not
	// together with a range.
	Prefix []byte
	// Reverse begins at the last key.
	Reverse bool
	// KeysOnly leaves the values out: they are empty, and large ones are not read, but by the scan of a
	// transaction.
	KeysOnly bool
}

func (o *ScanOptions) check() error {
	if o.Prefix != nil && (o.Start != nil || o.End != nil) {
		return invalid("a scan of a prefix and of a range; use one of them")
	}
	return nil
}

// Scan are the pairs of a range, as of one moment:
//
//	scan := names.Scan(esker.ScanOptions{Range: esker.Range{Start: []byte("a")}})
//	for key, value := range scan.All() { ... }
//	if err := scan.Err(); err != nil { ... }
//
// It holds nothing before and after a loop over it, and can be looped over again: as of another
// moment then, unless it is that of a snapshot. The slices are the caller's; those of one piece that
// was read ahead share memory. One goroutine at a time may use a scan.
type Scan struct {
	open func(keysOnly bool) (*source, error)
	err  error
}

// Err is what has ended the last loop before its end, or nil.
func (s *Scan) Err() error { return s.err }

// All are the pairs. A loop that ends before its time has an error: [Scan.Err].
func (s *Scan) All() iter.Seq2[[]byte, []byte] {
	return s.all(false)
}

func (s *Scan) all(keysOnly bool) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		var pairs *Iterator
		if pairs, s.err = s.iterator(keysOnly); s.err != nil {
			return
		}
		defer pairs.Close()
		for pairs.Next() {
			if !yield(pairs.Key(), pairs.Value()) {
				return
			}
		}
		s.err = pairs.Err()
	}
}

// Keys are the keys alone, as with KeysOnly.
func (s *Scan) Keys() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for key := range s.all(true) {
			if !yield(key) {
				return
			}
		}
	}
}

// source is where pairs come from.
type source struct {
	// fill reads up to so many pairs, and sets the flag if there are no more.
	fill func(pairs *C.go_pairs, most C.size_t, end *C.bool) error
	// passed is told, if it is set, how far was read.
	passed func(last []byte)
	// keysOnly leaves out the values that fill reads all the same.
	keysOnly bool
	end      func()
}

func (s *source) read(most int) (read []pair, end bool, err error) {
	var pairs C.go_pairs
	var isEnd C.bool
	err = s.fill(&pairs, C.size_t(most), &isEnd)
	read = takePairs(&pairs)
	if s.keysOnly {
		for i := range read {
			read[i].value = []byte{}
		}
	}
	if s.passed != nil && len(read) > 0 {
		s.passed(read[len(read)-1].key)
	}
	return read, bool(isEnd), err
}

// Iterator hands out the pairs of a scan one by one, where a loop is of no use. Close it.
type Iterator struct {
	source *source
	net    runtime.Cleanup
	// A close frees what a step reads.
	mutex sync.Mutex
	// What was read ahead, with the pair that it is at before it.
	at    pair
	ahead []pair
	most  int
	// There is nothing behind what was read ahead, or there is this error.
	ended  bool
	err    error
	closed bool
	// A call has met another one, and has returned nothing for that: its caller may take it for an end.
	collided atomic.Bool
}

// What is read ahead: few pairs for a scan that ends soon, and more and more.
const (
	firstPairs    = 16
	mostPairs     = 1024
	mostReadAhead = 256 << 10
)

// Iterator is at no pair; Next moves to the first. It is as of this moment, unless the scan is that of
// a snapshot.
func (s *Scan) Iterator() (*Iterator, error) { return s.iterator(false) }

func (s *Scan) iterator(keysOnly bool) (*Iterator, error) {
	source, err := s.open(keysOnly)
	if err != nil {
		return nil, err
	}
	i := &Iterator{source: source, most: firstPairs}
	i.net = runtime.AddCleanup(i, func(end func()) { end() }, source.end)
	return i, nil
}

// Next moves to the next pair, and says whether there is one. Where there is none it may be for an
// error: [Iterator.Err].
func (i *Iterator) Next() bool {
	if i == nil || i.source == nil || !i.lock() {
		return false
	}
	defer i.mutex.Unlock()
	i.at = pair{}
	if i.closed {
		return false
	}
	if len(i.ahead) == 0 && !i.ended {
		var err error
		i.ahead, i.ended, err = i.source.read(i.most)
		i.most = min(i.most*2, mostPairs)
		if err != nil {
			// It comes behind what was read before it.
			i.ended, i.err = true, err
		}
	}
	if len(i.ahead) == 0 {
		return false
	}
	i.at, i.ahead = i.ahead[0], i.ahead[1:]
	return true
}

// lock locks the iterator, or notes that another call uses it.
func (i *Iterator) lock() bool {
	if i.mutex.TryLock() {
		return true
	}
	i.collided.Store(true)
	return false
}

// Key is the key: nil at no pair.
func (i *Iterator) Key() []byte {
	if i == nil || !i.lock() {
		return nil
	}
	defer i.mutex.Unlock()
	return i.at.key
}

// Value is the value: nil at no pair.
func (i *Iterator) Value() []byte {
	if i == nil || !i.lock() {
		return nil
	}
	defer i.mutex.Unlock()
	return i.at.value
}

// Err is what has ended the iterator before its end, or nil. It is ErrBusy from the moment on at which
// a call has met one of another goroutine: what the two have seen is not all there is.
func (i *Iterator) Err() error {
	if i == nil || i.source == nil {
		return newError(ErrWrongHandle, "no iterator")
	}
	if i.collided.Load() || !i.mutex.TryLock() {
		return i.busy()
	}
	defer i.mutex.Unlock()
	if i.closed && !i.ended {
		return closed("the iterator")
	}
	if len(i.ahead) > 0 {
		return nil
	}
	return i.err
}

func (i *Iterator) busy() error {
	return newError(ErrBusy, "the iterator was used by two calls at once; one goroutine at a time may use it")
}

// Close releases the iterator.
func (i *Iterator) Close() error {
	if i == nil || i.source == nil {
		return newError(ErrWrongHandle, "no iterator")
	}
	if !i.mutex.TryLock() {
		return i.busy()
	}
	defer i.mutex.Unlock()
	if i.closed {
		return closed("the iterator")
	}
	i.closed, i.at, i.ahead = true, pair{}, nil
	i.net.Stop()
	i.source.end()
	return nil
}

// Scan yields the pairs of a range, as of the moment at which a loop over it begins.
func (k *Keyspace) Scan(options ScanOptions) *Scan { return k.scan(nil, options) }

func (k *Keyspace) scan(snapshot *Snapshot, o ScanOptions) *Scan {
	return &Scan{open: func(keysOnly bool) (*source, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		keysOnly = keysOnly || o.KeysOnly
		var iterator *C.esker_iterator
		err := k.runWith(snapshot, func(snapshot *C.esker_snapshot) C.esker_code {
			if o.Prefix != nil {
				return C.go_iterator_create_prefix(k.handle.c, snapshot, C.bool(keysOnly),
					data(o.Prefix), length(o.Prefix), &iterator)
			}
			return C.go_iterator_create(k.handle.c, snapshot, C.bool(keysOnly),
				data(o.Start), length(o.Start), data(o.End), length(o.End), &iterator)
		})
		if err != nil {
			return nil, err
		}
		return &source{
			fill: func(pairs *C.go_pairs, most C.size_t, end *C.bool) error {
				return k.db.run(func() C.esker_code {
					return C.go_iterator_fill(iterator, C.bool(o.Reverse), most, mostReadAhead, pairs, end)
				})
			},
			end: func() { C.esker_iterator_destroy(iterator) },
		}, nil
	}}
}

// runWith makes a call with a snapshot, or with none.
func (k *Keyspace) runWith(snapshot *Snapshot, f func(*C.esker_snapshot) C.esker_code) error {
	if snapshot == nil {
		return k.run(func() C.esker_code { return f(nil) })
	}
	if err := snapshot.usable(); err != nil {
		return err
	}
	err := k.run(func() C.esker_code { return f(snapshot.handle.c) })
	runtime.KeepAlive(snapshot)
	return err
}
